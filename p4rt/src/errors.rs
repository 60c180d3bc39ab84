//! Results of single updates, carried in the status of a Write.
//!
//! A Write with failed updates ends with UNKNOWN. Its `grpc-status-details-bin` is a `google.rpc.Status` with
//! one `p4.v1.Error` per update, in order, including those that succeeded.

use crate::google::rpc::{Code, Status};
use crate::p4::v1;
use prost::Message;
use prost_types::Any;

/// Type URL of an [`v1::Error`] packed into an [`Any`].
pub const ERROR_TYPE_URL: &str = "type.googleapis.com/p4.v1.Error";

/// Why an update was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateError {
    /// Canonical gRPC code.
    pub code: Code,
    /// The mistake, and a remedy.
    pub message: String,
}

impl UpdateError {
    /// An error with this code.
    pub fn new(code: Code, message: impl Into<String>) -> UpdateError {
        UpdateError { code, message: message.into() }
    }
}

impl std::fmt::Display for UpdateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str_name(), self.message)
    }
}

impl std::error::Error for UpdateError {}

/// The overall status of a Write; `None` if all updates succeeded.
pub fn pack(outcomes: &[Result<(), UpdateError>]) -> Option<Status> {
    status(outcomes, "updates failed")
}

/// The overall status of a Read, with one result for each requested entity; `None` if all were read.
pub fn pack_read(outcomes: &[Result<(), UpdateError>]) -> Option<Status> {
    status(outcomes, "requested entities could not be read")
}

fn status(outcomes: &[Result<(), UpdateError>], what: &str) -> Option<Status> {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    if failed == 0 {
        return None;
    }
    let details = outcomes.iter().map(|outcome| to_any(outcome.as_ref().err())).collect();
    let message = format!(
        "{failed} of {} {what}; the status details say why for each, the switch's log for the first",
        outcomes.len()
    );
    Some(Status { code: Code::Unknown as i32, message, details })
}

/// The results in a Write's status details; `None` if they contain none.
pub fn unpack(details: &[u8]) -> Option<Vec<Result<(), UpdateError>>> {
    let status = Status::decode(details).ok()?;
    if status.details.is_empty() {
        return None;
    }
    status.details.iter().map(from_any).collect()
}

fn to_any(error: Option<&UpdateError>) -> Any {
    let (code, message) = match error {
        Some(error) => (error.code, error.message.clone()),
        None => (Code::Ok, String::new()),
    };
    let error = v1::Error { canonical_code: code as i32, message, ..Default::default() };
    Any { type_url: ERROR_TYPE_URL.into(), value: error.encode_to_vec() }
}

fn from_any(any: &Any) -> Option<Result<(), UpdateError>> {
    if !any.type_url.ends_with("/p4.v1.Error") {
        return None;
    }
    let error = v1::Error::decode(any.value.as_slice()).ok()?;
    Some(match Code::try_from(error.canonical_code).unwrap_or(Code::Unknown) {
        Code::Ok => Ok(()),
        code => Err(UpdateError::new(code, error.message)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_in_order() {
        let outcomes = vec![
            Ok(()),
            Err(UpdateError::new(Code::NotFound, "no such entry")),
            Ok(()),
            Err(UpdateError::new(Code::OutOfRange, "0x400 needs 11 bits")),
        ];
        let status = pack(&outcomes).unwrap();
        assert_eq!(status.code, Code::Unknown as i32);
        assert_eq!(unpack(&status.encode_to_vec()), Some(outcomes));
    }

    #[test]
    fn the_text_says_whether_something_was_written_or_read() {
        let outcomes = [Ok(()), Err(UpdateError::new(Code::NotFound, "no such table"))];
        let (written, read) = (pack(&outcomes).unwrap().message, pack_read(&outcomes).unwrap().message);
        assert!(written.starts_with("1 of 2 updates failed; "), "{written}");
        assert!(read.starts_with("1 of 2 requested entities could not be read; "), "{read}");
    }

    #[test]
    fn success_has_no_status_and_foreign_details_no_outcomes() {
        assert_eq!(pack(&[Ok(()), Ok(())]), None);
        assert_eq!(unpack(b"\xff\xff"), None);
        assert_eq!(unpack(&Status::default().encode_to_vec()), None);
    }
}
