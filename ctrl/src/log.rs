//! A log of requests as text-format protobuf, in the order in which they were sent.

use crate::error::CtrlError;
use p4rack_p4rt::text::{self, TextMessage};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file to which requests are written. Clones share the file.
#[derive(Clone, Debug)]
pub struct RequestLog(Arc<Mutex<File>>);

impl RequestLog {
    /// Creates or truncates the file.
    pub fn create(path: &Path) -> Result<RequestLog, CtrlError> {
        let file = File::create(path)
            .map_err(|error| CtrlError::Log(format!("writing {}: {error}", path.display())))?;
        Ok(RequestLog(Arc::new(Mutex::new(file))))
    }

    /// Writes a request, after a comment with the call, the server and the time.
    pub(crate) fn write<M: TextMessage>(&self, addr: &str, call: &str, message: &M) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = format!(
            "# {call} to {addr} at {}.{:06} ({})\n{}\n",
            now.as_secs(),
            now.subsec_micros(),
            M::NAME,
            text::print(message)
        );
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(text.as_bytes()) {
            tracing::error!(%error, call, "a request was not logged");
        }
    }
}
