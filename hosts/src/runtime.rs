//! The runtime of set-up calls.

/// A runtime for calls that stay open. Errors: the system has no thread for it.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
