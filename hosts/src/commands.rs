//! Access to one thread's state from other threads: they send it jobs, and wake it.

use p4rack_netdev::wait::Waker;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use tokio::sync::oneshot;

/// Commands that wait at most; further ones wait for their turn outside.
const COMMANDS_MAX: usize = 256;

/// A job from another thread.
pub(crate) type Command<T> = Box<dyn FnOnce(&mut T) + Send>;

/// The thread that was asked has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the adapter's thread has ended")]
pub struct Gone;

/// Access to a `T` from other threads.
#[derive(Debug)]
pub struct Handle<T> {
    commands: SyncSender<Command<T>>,
    waker: Arc<Waker>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle { commands: self.commands.clone(), waker: self.waker.clone() }
    }
}

impl<T: 'static> Handle<T> {
    /// Runs a job on the machine's thread and waits for its result.
    pub async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        let (told, result) = oneshot::channel();
        // A dropped receiver discards the result.
        self.post(move |owned| drop(told.send(work(owned))))?;
        result.await.map_err(|_| Gone)
    }

    /// Has something done. While too much waits, the caller does too: the thread is never long in coming.
    pub fn post(&self, work: impl FnOnce(&mut T) + Send + 'static) -> Result<(), Gone> {
        self.commands.send(Box::new(work)).map_err(|_| Gone)?;
        self.waker.wake();
        Ok(())
    }
}

/// The end of the thread that owns a `T`. It is readable when commands wait.
#[derive(Debug)]
pub(crate) struct Commands<T> {
    commands: Receiver<Command<T>>,
    handle: Handle<T>,
}

impl<T> Commands<T> {
    pub(crate) fn new() -> io::Result<Commands<T>> {
        let (sender, commands) = mpsc::sync_channel(COMMANDS_MAX);
        let handle = Handle { commands: sender, waker: Arc::new(Waker::new()?) };
        Ok(Commands { commands, handle })
    }

    pub(crate) fn handle(&self) -> Handle<T> {
        self.handle.clone()
    }

    /// Makes it unreadable until the next command comes. Take the waiting jobs afterwards.
    pub(crate) fn clear(&self) {
        self.handle.waker.clear();
    }

    pub(crate) fn next(&mut self) -> Option<Command<T>> {
        self.commands.try_recv().ok()
    }
}

impl<T> AsFd for Commands<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.waker.as_fd()
    }
}
