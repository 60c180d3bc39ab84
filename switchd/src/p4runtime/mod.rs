//! The P4Runtime server. `p4rack_entities` interprets the entities of its requests.
//!
//! ```text
//!  front ─ limits                                  how much a client may use
//!  service ── device ─┬─ requests                    Writes and Reads
//!                     ├─ arbitration                 which controller may write
//!                     ├─ roles                       what a role may access
//!                     ├─ preserve                    carries state over to another program
//!                     └─ writing                     runs in the data-plane thread
//!  refusals                                        logs rejected requests
//! ```

mod arbitration;
mod device;
mod front;
mod limits;
mod outbox;
mod preserve;
mod refusals;
mod roles;
mod service;
mod writing;

pub(crate) use device::{Claim, Device, FillError, Held, LARGE_BYTES, Watch, status};
pub(crate) use front::{Counted, Front, RECEIVE_LIMIT, STREAM_LIMIT};
pub(crate) use limits::{
    CALLS_A_CONNECTION, Charge, Connection, Limits, SMALL_UPDATES, UPDATE_BYTES, connection_of,
};
pub(crate) use outbox::{Outbox, Stored};
pub(crate) use refusals::Refusals;
pub(crate) use service::{Service, fitting};
pub(crate) use writing::Job;

use p4rack_entities::{Checked, refuse};
