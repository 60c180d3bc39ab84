//! The error type: the attempted operation, the kernel's error, a remedy.

use std::io;

/// A failed operation on a network device.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}{}", .help.as_deref().map(|h| format!("\n  help: {h}")).unwrap_or_default())]
pub struct Error {
    /// The attempted operation, with the name of the interface or file.
    pub what: String,
    /// The error of the system.
    pub source: io::Error,
    /// Advice for the user, if there is any.
    pub help: Option<String>,
}

impl Error {
    /// An error without advice.
    pub fn new(what: impl Into<String>, source: io::Error) -> Error {
        Error { what: what.into(), source, help: None }
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.help = Some(help.into());
        self
    }

    /// Adds advice that applies only if permission was denied.
    pub(crate) fn help_if_denied(self, help: &str) -> Error {
        match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => self.help(help),
            _ => self,
        }
    }
}

/// Adds the attempted operation to the error of an `io::Result`.
pub(crate) trait Context<T> {
    /// Wraps the error. `what` is only evaluated if there is one.
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::new(what(), source))
    }
}

/// Advice for missing privileges.
pub(crate) const NEED_PRIVILEGE: &str = "run as root, or give the right to use raw sockets and \
     interfaces with `setcap cap_net_raw,cap_net_admin=ep`, or run inside a user namespace (`unshare -rn`)";
