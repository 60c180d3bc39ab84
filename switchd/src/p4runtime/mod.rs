//! The P4Runtime server. What the entities of its requests mean is `p4rack_entities`'.
//!
//! ```text
//!  entrance (patience, tls)                        who is let in
//!  front ─ limits                                  what it may take
//!  service ── device ─┬─ requests                    Writes and Reads
//!                     ├─ arbitration                 who may write
//!                     ├─ roles                       what a role is for
//!                     ├─ preserve                    a program takes over what another was told
//!                     └─ writing                     run in the data-plane thread
//!  refusals                                        what the log says of them
//! ```

mod arbitration;
mod device;
mod entrance;
mod front;
mod limits;
mod outbox;
mod patience;
mod preserve;
mod refusals;
mod roles;
mod service;
mod tls;
mod writing;

pub(crate) use device::{Claim, Device};
pub(crate) use limits::connection_of;
pub use service::{ServeError, ServerConfig, bind, serve, serve_on};
pub use tls::ServerTls;

use p4rack_entities::{Checked, refuse};
