//! The P4Runtime server.
//!
//! ```text
//!  entrance (patience, tls)                        who is let in
//!  front ─ limits                                  what it may take
//!  service ── device ─┬─ requests                    Writes and Reads
//!                     ├─ arbitration                 who may write
//!                     ├─ roles                       what a role is for
//!                     ├─ pipeline (given, compile)   what runs
//!                     ├─ preserve                    a program takes over what another was told
//!                     ├─ work ─ tables, cells,       requests to changes and queries,
//!                     │         replication,
//!                     │         profiles, value_sets
//!                     ├─ plain                       the same for table entries by the million
//!                     ├─ writing                     run in the data-plane thread
//!                     ├─ packets                     packet-in, packet-out
//!                     └─ digests                     lists, repeats, acknowledgements
//!  refusals                                        what the log says of them
//! ```

mod arbitration;
mod cells;
mod device;
mod digests;
mod entrance;
mod front;
mod given;
mod limits;
mod matching;
mod offline;
mod outbox;
mod packets;
mod patience;
mod pipeline;
mod plain;
mod preserve;
mod profiles;
mod refusals;
mod replication;
mod roles;
mod service;
mod tables;
mod tls;
mod value_sets;
mod work;
mod writing;

pub(crate) use device::{Claim, Device};
pub use offline::Offline;
pub use pipeline::Candidate;
pub use service::{ServeError, ServerConfig, bind, serve, serve_on};
pub use tls::ServerTls;

use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::ControlError;

type Refused<T> = Result<T, UpdateError>;

fn refuse<T>(code: Code, message: impl Into<String>) -> Refused<T> {
    Err(UpdateError::new(code, message))
}

/// The switch's answer in P4Runtime's terms; it names the object.
fn control<T>(result: Result<T, ControlError>) -> Refused<T> {
    result.map_err(|error| {
        let code = match &error {
            ControlError::NotFound(_) => Code::NotFound,
            ControlError::AlreadyExists(_) => Code::AlreadyExists,
            ControlError::OutOfRange { .. } => Code::OutOfRange,
            ControlError::ResourceExhausted { .. } => Code::ResourceExhausted,
            ControlError::Invalid(_) => Code::InvalidArgument,
            ControlError::Constant(_) => Code::PermissionDenied,
            ControlError::InUse(_) => Code::FailedPrecondition,
        };
        UpdateError::new(code, error.to_string())
    })
}
