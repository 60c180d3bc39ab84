//! Header formats, the time type, the seeded generator, a hash, quantiles and captures. Each format is described once, here; the Rust views, the P4
//! header text, the Scapy layers and Wireshark's dissectors are generated from the description. No I/O, no clock.

pub mod clio;
pub mod cowbird;
pub mod dissector;
pub mod edm;
pub mod ethernet;
pub mod hash;
pub mod header;
pub mod ipv4;
pub mod pcap;
pub mod pl2;
pub mod quantiles;
pub mod random;
pub mod render;
pub mod roce;
pub mod time;
pub mod udp;

pub use ethernet::{EtherType, MacAddr};
pub use header::{FieldDesc, HeaderDesc, ParseError};
pub use quantiles::Histogram;
pub use random::SplitMix;
pub use time::{Nanos, WireRate};
