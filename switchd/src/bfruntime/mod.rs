//! The BFRuntime server: the interface of Tofino's driver, for the programs of its architecture that the embedded
//! switch runs. What a program's tables do is P4Runtime's: updates and reads are translated by name
//! (`p4rack_bfrt::p4runtime`) and take the same way to the switch.
//!
//! ```text
//!  front                                  what a request may take (limits are P4Runtime's)
//!  service ─┬─ clients                      who is there, and who is bound to the program
//!           ├─ programs ── loaded           installing, and a program with its schema
//!           ├─ write ─┬─ update               an update becomes a change of the switch
//!           ├─ read ──┤
//!           ├─ tell   └─ fixed              tables that every device has: ports, multicast, mirror, the device
//!           └─ outcome                      errors, one for each update
//! ```

mod clients;
mod fixed;
mod front;
mod loaded;
mod outcome;
mod programs;
mod read;
mod service;
mod tell;
mod update;
mod write;

pub(crate) use front::Front;
pub(crate) use service::Service;

/// Number of the device: BFRuntime counts them from 0.
pub const DEVICE: u32 = 0;
/// Pipes with a state of their own.
pub const PIPES: u32 = 1;
