//! P4Runtime's entities: carries out a Write and a Read on the switch's core.
//!
//! The daemon behind gRPC, simulated racks and tests use it. Which clients may ask, how much, and
//! over which connection is the caller's matter; here is no I/O, no thread and no clock.
//!
//! ```text
//!  pipeline ─ given                       from a controller's config to a program that the switch can run
//!  program ─ packets, digests             a program with the look-ups that requests need
//!          ─ names, restrict, follow      translated values, @entry_restriction, @refers_to
//!          ─ initial                      entries that the program's text gives its tables
//!  writing ─┬─ work ─┬─ tables ─ matching      an update becomes a change, an entity asked for a query
//!           │        ├─ profiles               members, groups, action sets
//!           │        ├─ cells                  counters, meters, registers
//!           │        ├─ replication            multicast groups, clone sessions
//!           │        └─ value_sets, digests
//!           └─ plain                           the same for table entries by the million, from the request's bytes
//! ```
//!
//! [`write`] and [`read`] do a request as a whole. A server that also forwards packets does the same in
//! turns: [`each`], [`all`], [`Reading`].

mod digests;
mod follow;
mod given;
mod initial;
mod ledger;
mod matching;
mod names;
mod packets;
mod pipeline;
pub mod plain;
mod program;
mod restrict;
mod value;
mod work;
mod writing;

pub use digests::Digests;
pub use initial::Initial;
pub use packets::ControllerHeader;
pub use pipeline::{Candidate, compiled, refusal};
pub use program::{GroupLimits, Program, TableRef};
pub use work::{
    Answer, Change, Messages, Query, ReadResults, Snapshot, Undo, change, digest_list, idle_message, query,
    query_keyed, snapshot,
};
pub use writing::{Allowed, Outcomes, Reading, UPDATES_A_TURN, accepted, all, each, read, write};

use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::ControlError;

/// The result of checking or applying part of a request; the error goes to the controller.
pub type Checked<T> = Result<T, UpdateError>;

/// An error with this code and message.
pub fn refuse<T>(code: Code, message: impl Into<String>) -> Checked<T> {
    Err(UpdateError::new(code, message))
}

/// Converts a result of the switch to P4Runtime's terms; the error names the object.
pub fn control<T>(result: Result<T, ControlError>) -> Checked<T> {
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
