//! A plain reference for PL2 switches: the paper's Algorithm 1 in both modes, a switch around it, and a rack
//! in virtual time with faults. Tests compare real endpoints and generated programs with it; nothing else
//! uses it.

mod allocator;
mod incast;
mod rack;
mod rights;
mod switch;

pub use allocator::Allocator;
pub use incast::{Incast, Outcome};
pub use rack::{Delivery, Faults, Jitter, Rack, Spread};
pub use rights::{Demoted, Fate, Grace, Limits, Name, Rights};
pub use switch::{OutputPort, Switch, SwitchConfig};
