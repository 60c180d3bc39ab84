//! A compute node for several threads and tasks.

use super::client::{Client, ClientConfig, Done, Ticket};
use super::operation::{Error, Operation, Remote, operations, word};
use super::port::EdmPortError;
use p4rack_netdev::wait::Waker;
use p4rack_wire::edm::Opcode;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;

/// Maximum operations that wait for the node's thread.
const JOBS_MAX: usize = 4_096;

/// A compute node that a thread of its own runs. Clones share it; it ends with the last of them, when all results have
/// come.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Inbox>);

/// The part that callers see. Dropped with the last handle.
#[derive(Debug)]
struct Inbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    jobs: Mutex<Jobs>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<(Operation, Arc<Cell>)>,
    /// No handle is left.
    orphaned: bool,
    /// The node has ended.
    failed: Option<Error>,
}

/// Where a result arrives.
#[derive(Debug, Default)]
struct Cell {
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct State {
    done: Option<Done>,
    task: Option<std::task::Waker>,
}

/// A panic while one of these is held leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cell {
    fn put(&self, done: Done) {
        let mut state = lock(&self.state);
        state.done = Some(done);
        self.came.notify_one();
        if let Some(task) = state.task.take() {
            task.wake();
        }
    }
}

/// The result of an operation that was submitted. Dropping it does not take the operation back.
#[derive(Debug)]
#[must_use = "the result says whether it was done"]
pub struct Pending(Arc<Cell>);

impl Pending {
    /// Blocks until the result has come.
    pub fn wait(self) -> Done {
        let mut state = lock(&self.0.state);
        loop {
            match state.done.take() {
                Some(done) => return done,
                None => state = self.0.came.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Future for Pending {
    type Output = Done;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done> {
        let mut state = lock(&self.0.state);
        match state.done.take() {
            Some(done) => Poll::Ready(done),
            None => {
                state.task = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Handle {
    /// Opens the link in the calling thread's network namespace and starts the node's thread. Errors: see [`Client::open`].
    pub fn open(config: ClientConfig) -> Result<Handle, EdmPortError> {
        let mut client = Client::open(config)?;
        let waker = Waker::new().map_err(EdmPortError::Wait)?;
        client.also_wait_for(&waker)?;
        let shared = Arc::new(Shared { jobs: Mutex::default(), waker });
        let served = Arc::clone(&shared);
        let started = thread::Builder::new().name("edm".to_owned()).spawn(move || serve(client, &served));
        let what = "starting the thread of a compute node";
        started.map_err(|error| p4rack_netdev::Error::new(what, error))?;
        Ok(Handle(Arc::new(Inbox(shared))))
    }

    /// Accepts an operation. Errors: too many wait, or the link is gone.
    pub fn submit(&self, operation: Operation) -> Result<Pending, Error> {
        let pending = self.push(&mut lock(&self.0.0.jobs), operation);
        self.0.0.waker.wake();
        pending
    }

    /// Accepts several operations together, each of which may be refused. The node executes them concurrently.
    pub fn batch(&self, operations: impl IntoIterator<Item = Operation>) -> Vec<Result<Pending, Error>> {
        let mut jobs = lock(&self.0.0.jobs);
        let pending = operations.into_iter().map(|operation| self.push(&mut jobs, operation)).collect();
        self.0.0.waker.wake();
        pending
    }

    fn push(&self, jobs: &mut Jobs, operation: Operation) -> Result<Pending, Error> {
        if let Some(error) = &jobs.failed {
            return Err(error.clone());
        }
        if jobs.waiting.len() >= JOBS_MAX {
            return Err(Error::Full);
        }
        let cell = Arc::new(Cell::default());
        jobs.waiting.push_back((operation, Arc::clone(&cell)));
        Ok(Pending(cell))
    }
}

operations!(Handle: [async] (self: &Self) |operation| self.submit(operation)?.await);

impl Drop for Inbox {
    fn drop(&mut self) {
        lock(&self.0.jobs).orphaned = true;
        self.0.waker.wake();
    }
}

/// Runs the node until no handle is left and nothing is open, or the link is gone.
fn serve(mut client: Client, shared: &Shared) {
    let mut cells: BTreeMap<Ticket, Arc<Cell>> = BTreeMap::new();
    let failed = loop {
        shared.waker.clear();
        let (jobs, orphaned) = {
            let mut jobs = lock(&shared.jobs);
            (std::mem::take(&mut jobs.waiting), jobs.orphaned)
        };
        for (operation, cell) in jobs {
            match client.submit(operation) {
                Ok(ticket) => _ = cells.insert(ticket, cell),
                Err(error) => cell.put(Err(error)),
            }
        }
        while let Some((ticket, done)) = client.take_done() {
            if let Some(cell) = cells.remove(&ticket) {
                cell.put(done);
            }
        }
        if orphaned && cells.is_empty() {
            return;
        }
        if let Err(error) = client.turn(None) {
            break Error::from(error);
        }
    };
    let mut jobs = lock(&shared.jobs);
    jobs.failed = Some(failed.clone());
    let waiting = jobs.waiting.drain(..).map(|(_, cell)| cell);
    waiting.chain(cells.into_values()).for_each(|cell| cell.put(Err(failed.clone())));
}
