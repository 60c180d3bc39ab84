//! One error type: what was being done, what the kernel said, what to do about it.

use std::io;

/// An operation on a network device that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}{}", .help.as_deref().map(|h| format!("\n  help: {h}")).unwrap_or_default())]
pub struct Error {
    /// What was being done, naming the interface or file.
    pub what: String,
    /// What the system said.
    pub source: io::Error,
    /// What the user can do, where that is known.
    pub help: Option<String>,
}

impl Error {
    /// An error with what was being done and no advice.
    pub fn new(what: impl Into<String>, source: io::Error) -> Error {
        Error { what: what.into(), source, help: None }
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }

    /// Adds advice that only holds where permission is what is missing.
    pub(crate) fn help_if_denied(self, help: &str) -> Error {
        match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => self.help(help),
            _ => self,
        }
    }
}

/// Says what was being done when an `io::Result` fails.
pub(crate) trait Context<T> {
    /// Wraps the error; `what` is only built when there is one.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::new(what(), source))
    }
}

/// What to do where neither root nor a user namespace gives the right to open devices.
pub(crate) const NEED_PRIVILEGE: &str = "run as root, or give the right to use raw sockets and \
     interfaces with `setcap cap_net_raw,cap_net_admin=ep`, or run inside a user namespace (`unshare -rn`)";
