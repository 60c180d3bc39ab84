//! Logs rejected requests with the details of their responses.

use p4rack_netdev::clock;
use p4rack_p4rt::errors::unpack;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::Status;

/// Maximum log lines per second; further rejections are only counted.
const LOGGED_A_SECOND: u32 = 20;
/// Maximum updates that the log lists per call; further ones are only counted.
const UPDATES: usize = 10;

/// Counts of logged and suppressed rejections in the current second.
#[derive(Debug, Default)]
struct Logged {
    second: u64,
    count: u32,
}

/// The log of a server.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<Logged>>);

impl Refusals {
    /// Logs a call that ended with an error, unless too many have been logged in this second.
    pub fn log(&self, call: &str, error: Option<&Status>) {
        let Some(error) = error else { return };
        let second = clock::now().0 / 1_000_000_000;
        let left_out = {
            // Two numbers: any values that a panic left are good enough.
            let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let left_out =
                if logged.second == second { 0 } else { logged.count.saturating_sub(LOGGED_A_SECOND) };
            if logged.second != second {
                *logged = Logged { second, count: 0 };
            }
            logged.count = logged.count.saturating_add(1);
            if logged.count > LOGGED_A_SECOND {
                return;
            }
            left_out
        };
        if left_out > 0 {
            tracing::warn!(left_out, "more requests were refused than are logged");
        }
        tracing::warn!("{call}: {:?}: {}{}", error.code(), error.message(), details(error));
    }
}

/// The rejected updates in a status, one per line, up to the log's limit.
fn details(status: &Status) -> String {
    let mut text = String::new();
    let outcomes = unpack(status.details()).unwrap_or_default();
    let mut refused =
        outcomes.iter().enumerate().filter_map(|(at, outcome)| Some((at + 1, outcome.as_ref().err()?)));
    for (number, error) in refused.by_ref().take(UPDATES) {
        let _ = write!(text, "\n  {number} of {}: {error}", outcomes.len());
    }
    match refused.count() {
        0 => {}
        more => text += &format!("\n  and {more} more"),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::errors::{UpdateError, pack};
    use p4rack_p4rt::google::rpc::Code;
    use prost::Message;

    /// The logged lines.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_holds_the_details_that_the_answer_refers_to() {
        let status = pack(&[Ok(()), Err(UpdateError::new(Code::NotFound, "no such entry"))]).unwrap();
        let message = status.message.clone();
        assert!(message.contains("log"), "{message}");
        let status = Status::with_details(tonic::Code::Unknown, message, status.encode_to_vec().into());
        let log = Log::default();
        let written = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || written.clone()).finish();
        tracing::subscriber::with_default(subscriber, || Refusals::default().log("Write", Some(&status)));
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("Write: Unknown: 1 of 2 updates failed"), "{text}");
        assert!(text.contains("2 of 2: NOT_FOUND: no such entry"), "{text}");
    }

    #[test]
    fn refused_updates_are_named_and_those_beyond_counted() {
        let mut outcomes = vec![Ok(()), Err(UpdateError::new(Code::NotFound, "no such entry"))];
        let status = |outcomes: &[_]| {
            let details = pack(outcomes).unwrap().encode_to_vec().into();
            Status::with_details(tonic::Code::Unknown, "some failed", details)
        };
        assert_eq!(details(&status(&outcomes)), "\n  2 of 2: NOT_FOUND: no such entry");
        outcomes.extend(vec![outcomes[1].clone(); UPDATES + 2]);
        let text = details(&status(&outcomes));
        assert!(text.ends_with("\n  11 of 14: NOT_FOUND: no such entry\n  and 3 more"), "{text}");
        assert_eq!(details(&Status::not_found("nothing there")), "");
    }
}
