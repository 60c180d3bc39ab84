//! A log of requests as text-format protobuf, in the order in which they were sent.

use crate::error::CtrlError;
use p4rack_p4rt::text::{self, TextMessage};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file to which requests are written. Clones share the file.
#[derive(Clone, Debug)]
pub struct RequestLog {
    path: Arc<Path>,
    file: Arc<Mutex<File>>,
}

impl RequestLog {
    /// Creates or truncates the file.
    pub fn create(path: &Path) -> Result<RequestLog, CtrlError> {
        let file = File::create(path).map_err(|error| not_written(path, &error))?;
        Ok(RequestLog { path: path.into(), file: Arc::new(Mutex::new(file)) })
    }

    /// Writes a request, after a comment with the call, the server and the time. Call this before the request is
    /// sent: one that can't be logged must not be.
    pub(crate) fn write<M: TextMessage>(&self, addr: &str, call: &str, message: &M) -> Result<(), CtrlError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = format!(
            "# {call} to {addr} at {}.{:06} ({})\n{}\n",
            now.as_secs(),
            now.subsec_micros(),
            M::NAME,
            text::print(message)
        );
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).map_err(|error| not_written(&self.path, &error))
    }
}

fn not_written(path: &Path, error: &io::Error) -> CtrlError {
    CtrlError::Log(format!("writing {}: {error}", path.display()))
}
