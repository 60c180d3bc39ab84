//! Linux network devices: raw packet sockets, TAP, namespaces, links, clocks, scheduling, captures.
//!
//! All access to the operating system below `std` is in this crate, so that the rest of the project needs no
//! `unsafe`. Calls block and use plain file descriptors; there is no async runtime.

pub mod capture;
pub mod carrier;
pub mod checksum;
pub mod clock;
pub mod datagrams;
mod error;
pub mod ethtool;
pub mod exporter;
pub mod file;
mod filter;
pub mod link;
mod mapping;
mod netlink;
pub mod netns;
pub mod packet;
pub mod pages;
pub mod process;
pub mod sched;
pub mod signal;
pub mod sources;
mod sys;
pub mod tap;
pub mod wait;

pub use capture::Capture;
pub use error::Error;
pub use link::Links;
pub use netns::NetNs;
pub use packet::PacketSocket;
pub use pages::Pages;
pub use sys::set_buffers;
pub use tap::Tap;
pub use wait::Poller;
