//! Errors of single updates and entities in BFRuntime. A Write or Read that fails in part ends with UNKNOWN, and
//! `grpc-status-details-bin` holds one error for each part up to the last failed one.

use crate::p4runtime::Charge;
use p4rack_entities::{Checked, refuse};
use p4rack_p4rt::bfrt_proto::{Error, WriteResponse};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc;
use prost::Message;
use prost::encoding;
use prost_types::Any;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::{Request, Status};

/// `status` in a ReadResponse.
const STATUS: u32 = 2;
/// Maximum bytes of a message's key or length.
const KEY_BYTES: usize = 10;
/// Errors of a call that say why; later ones have only their code.
const TEXTS: usize = 1 << 10;
/// Bytes of statuses that are charged first.
const FIRST_BYTES: usize = 4 << 10;
/// Type URL of an error in an [`Any`].
const TYPE_URL: &str = "type.googleapis.com/bfrt_proto.Error";

/// Metadata by which a client allows deletions of missing entries.
const IGNORE: &str = "ignore_not_found";
/// The same, that it wants errors in the answer, not in the call's status.
const IN_ANSWER: &str = "error_in_resp";

/// Options that a client sets in a call's metadata, or has set before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A deletion of a missing entry counts as done.
    pub ignores_missing: bool,
    /// A Read succeeds, and its last answer has the outcome of each part; so has the answer of a successful Write.
    pub errors_in_answer: bool,
    /// It may enable notifications about ports.
    pub hears_of_ports: bool,
}

impl Options {
    /// Those of a request.
    pub fn of<T>(request: &Request<T>) -> Options {
        let is_set = |name| request.metadata().get(name).is_some_and(|value| value == "1");
        Options { ignores_missing: is_set(IGNORE), errors_in_answer: is_set(IN_ANSWER), ..Options::default() }
    }
}

/// Places of updates, collected as they are made.
#[derive(Clone, Debug, Default)]
pub struct Existing(Arc<Mutex<Vec<usize>>>);

impl Existing {
    /// Adds one.
    pub fn add(&self, at: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(at);
    }

    /// All, in order.
    pub fn list(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An error of a request that makes no sense.
pub fn invalid<T>(message: impl Into<String>) -> Checked<T> {
    refuse(rpc::Code::InvalidArgument, message)
}

/// The driver's code for one of P4Runtime's: it has fewer.
fn of_driver(code: rpc::Code) -> rpc::Code {
    match code {
        rpc::Code::PermissionDenied | rpc::Code::OutOfRange => rpc::Code::InvalidArgument,
        // Something refers to it.
        rpc::Code::FailedPrecondition => rpc::Code::AlreadyExists,
        code => code,
    }
}

/// Converts an outcome to a message.
fn message(outcome: &Checked<()>) -> Error {
    let (code, text) = match outcome {
        Ok(()) => (rpc::Code::Ok, String::new()),
        Err(UpdateError { code, message }) => (of_driver(*code), message.clone()),
    };
    Error { canonical_code: code as i32, message: text, ..Default::default() }
}

/// Outcome of each part of a call.
pub enum Told {
    /// For the call's status.
    InStatus(Vec<Checked<()>>),
    /// For the last message, serialised.
    InAnswer { bytes: Vec<u8>, errors: usize },
}

impl Told {
    /// Nothing yet.
    pub fn new(in_answer: bool) -> Told {
        match in_answer {
            false => Told::InStatus(Vec::new()),
            true => Told::InAnswer { bytes: Vec::new(), errors: 0 },
        }
    }

    /// Adds an outcome and charges its memory.
    pub fn tell(&mut self, outcome: Checked<()>, charge: &Charge) -> Result<(), Status> {
        match self {
            Told::InStatus(outcomes) => outcomes.push(outcome),
            Told::InAnswer { bytes, errors } => {
                *errors += usize::from(outcome.is_err());
                let mut error = message(&outcome);
                if *errors > TEXTS {
                    error.message.clear();
                }
                let length = error.encoded_len() + 2 * KEY_BYTES;
                if bytes.capacity() < bytes.len() + length {
                    let more = bytes.capacity().max(FIRST_BYTES);
                    // While it grows, both copies exist.
                    charge.add(more + bytes.capacity())?;
                    bytes.reserve_exact(more);
                }
                encoding::message::encode(STATUS, &error, bytes);
            }
        }
        Ok(())
    }
}

/// Outcomes of a successful Write: positions of the updates that had nothing to delete, and of those that modified an
/// existing entry instead of inserting it.
pub fn answer(updates: usize, missing: &[usize], existing: &[usize]) -> WriteResponse {
    let has = |places: &[usize], at| places.binary_search(&at).is_ok();
    let code = |at| match (has(missing, at), has(existing, at)) {
        (true, _) => rpc::Code::NotFound,
        (_, true) => rpc::Code::AlreadyExists,
        _ => rpc::Code::Ok,
    };
    let one = |at| Error { code: code(at) as i32, ..Error::default() };
    WriteResponse { status: (0..updates).map(one).collect() }
}

/// The status of a call, parts of which may have failed.
pub fn overall(outcomes: &[Checked<()>]) -> Result<(), Status> {
    let Some(last) = outcomes.iter().rposition(Result::is_err) else { return Ok(()) };
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let text = format!("{failed} of {} failed; the status details say why for each", outcomes.len());
    let any = |outcome| Any { type_url: TYPE_URL.into(), value: message(outcome).encode_to_vec() };
    let details = outcomes[..=last].iter().map(any).collect();
    let status = rpc::Status { code: rpc::Code::Unknown as i32, message: text.clone(), details };
    Err(Status::with_details(tonic::Code::Unknown, text, status.encode_to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stand_at_their_updates_and_nothing_behind_the_last() {
        assert!(overall(&[Ok(()), Ok(())]).is_ok());
        let outcomes = [Ok(()), Err(UpdateError::new(rpc::Code::NotFound, "gone")), Ok(())];
        let status = overall(&outcomes).unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unknown);
        let details = rpc::Status::decode(status.details()).unwrap().details;
        let codes: Vec<i32> =
            details.iter().map(|any| Error::decode(&any.value[..]).unwrap().canonical_code).collect();
        assert_eq!(codes, [0, rpc::Code::NotFound as i32]);
    }

    #[test]
    fn codes_are_the_drivers() {
        let code = |code| message(&Err(UpdateError::new(code, ""))).canonical_code;
        assert_eq!(code(rpc::Code::PermissionDenied), rpc::Code::InvalidArgument as i32);
        assert_eq!(code(rpc::Code::FailedPrecondition), rpc::Code::AlreadyExists as i32);
        assert_eq!(code(rpc::Code::NotFound), rpc::Code::NotFound as i32);
    }
}
