//! Errors of single updates and entities in BFRuntime. A Write or Read that fails in part ends with UNKNOWN, and
//! `grpc-status-details-bin` holds one error for each part up to the last failed one.

use p4rack_entities::{Checked, refuse};
use p4rack_p4rt::bfrt_proto::Error;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc;
use prost::Message;
use prost_types::Any;
use tonic::Status;

/// Type URL of an error in an [`Any`].
const TYPE_URL: &str = "type.googleapis.com/bfrt_proto.Error";

/// An error of a request that makes no sense.
pub fn invalid<T>(message: impl Into<String>) -> Checked<T> {
    refuse(rpc::Code::InvalidArgument, message)
}

/// Converts an outcome to a message.
fn message(outcome: &Checked<()>) -> Error {
    let (code, text) = match outcome {
        Ok(()) => (rpc::Code::Ok, String::new()),
        Err(UpdateError { code, message }) => (*code, message.clone()),
    };
    Error { canonical_code: code as i32, message: text, ..Default::default() }
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
}
