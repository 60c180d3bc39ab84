//! The BFRuntime server: the interface of Tofino's driver, for programs for its architecture in the embedded switch.
//! Updates and reads are translated to P4Runtime's by name (`p4rack_bfrt::p4runtime`) and reach the switch in the same
//! way.
//!
//! ```text
//!  front                                  limits of requests, shared with P4Runtime
//!  service ─┬─ clients                      subscribed clients, and which one is bound to the program
//!           ├─ programs ─┬─ loaded          installation; a program with its schema
//!           │            └─ inherit           state it inherits from one with the same name
//!           ├─ write ─┬─ update               translates an update to changes of the switch; ordinary ones need none of it
//!           ├─ read ──┤
//!           ├─ lookup ├─ fixed              tables that every device has: ports, multicast, mirror, the device
//!           │         └─ own                tables of the program that P4Runtime does not have
//!           │           └─ extras             fields of entries that it does not have
//!           ├─ flags, prepared              state that a MODIFY resets; checked updates
//!           ├─ shadows                      counters and registers as they were at the last Sync
//!           ├─ notices                      digests and idle entries, to the bound client
//!           │  └─ digests                     as lists that wait for more
//!           ├─ settings                     attributes of tables, handles of entries
//!           ├─ stage                        a program that is prepared, with a switch of its own
//!           ├─ outcome                      errors, one for each update
//!           ├─ weigh                        memory of a request, before it is decoded
//!           └─ saved                        state for undo
//! ```

mod clients;
mod digests;
mod extras;
mod fixed;
mod flags;
mod front;
mod inherit;
mod loaded;
mod lookup;
mod noted;
mod notices;
mod outcome;
mod own;
mod prepared;
mod programs;
mod read;
mod saved;
mod service;
mod settings;
mod shadows;
mod stage;
mod update;
mod weigh;
mod write;

pub(crate) use front::Front;
pub(crate) use service::Service;

/// Device id. BFRuntime counts devices from 0.
pub const DEVICE: u32 = 0;
