//! Calls that last as long as the resources they granted.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::Stream;
use tonic::Status;

/// A call's only answer, then nothing. When the call ends, this is dropped, and with it the caller's resources.
pub struct Lease<T> {
    answer: Option<T>,
    free: Option<Box<dyn FnOnce() + Send>>,
}

impl<T> Lease<T> {
    pub(crate) fn new(answer: T, free: impl FnOnce() + Send + 'static) -> Lease<T> {
        Lease { answer: Some(answer), free: Some(Box::new(free)) }
    }
}

impl<T> fmt::Debug for Lease<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("answered", &self.answer.is_none()).finish_non_exhaustive()
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        if let Some(free) = self.free.take() {
            free();
        }
    }
}

impl<T: Unpin> Stream for Lease<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.answer.take() {
            Some(answer) => Poll::Ready(Some(Ok(answer))),
            // Nothing wakes it: it ends with the call.
            None => Poll::Pending,
        }
    }
}
