//! Requests of a residency as operations of a way.

use super::fresh::Fresh;
use super::local::Local;
use crate::remote::{Operation, Outcome, Remote, RemoteError, Status, Window};
use p4rack_cache::region::Request;
use p4rack_wire::Nanos;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long remote memory may answer nothing while it is asked. Most ways report a loss sooner.
const PATIENCE: Nanos = Nanos::from_secs(PATIENCE_S);
const PATIENCE_S: u64 = 10;

/// A way and what is under way on it.
pub(super) struct Transport {
    remote: Box<dyn Remote>,
    block_bytes: u64,
    /// Blocks that are zeros, whatever remote memory has there. `None`: none is.
    fresh: Option<Fresh>,
    requests: Window<Taken>,
    operations: Window<Part>,
    /// Since when something is asked and nothing has succeeded.
    unanswered: Option<Nanos>,
    /// Why the last request failed that failed since.
    last_failure: Option<Status>,
    /// The way's [losses](Remote::losses) when it was taken over.
    losses: u64,
}

/// A request that was taken.
struct Taken {
    request: Request,
    /// Operations that have not ended.
    left: u32,
    failed: Option<Status>,
}

/// What became of requests that were submitted.
#[derive(Clone, Copy, Debug, Default)]
struct Submitted {
    /// Whether the way has operations of them.
    any: bool,
    /// Whether one has ended already.
    has_ended: bool,
}

/// An operation.
struct Part {
    request: u64,
    at: u64,
    bytes: usize,
}

/// The failure of a request that counts: one for good before an unknown result, and this before one that was not carried out.
fn worse(before: Option<Status>, after: Option<Status>) -> Option<Status> {
    let rank = |status: &Status| match status {
        Status::Busy | Status::Full => 0,
        Status::Unknown => 1,
        _ => 2,
    };
    [after, before].into_iter().flatten().max_by_key(rank)
}

pub(super) fn lock(local: &Mutex<Local>) -> MutexGuard<'_, Local> {
    local.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport {
    pub fn new(remote: Box<dyn Remote>, block_bytes: u32, fresh: Option<Fresh>) -> Transport {
        let (requests, operations, losses) = (Window::default(), Window::default(), remote.losses());
        let (unanswered, last_failure) = (None, None);
        let block_bytes = block_bytes.into();
        Transport { remote, block_bytes, fresh, requests, operations, unanswered, last_failure, losses }
    }

    /// The way itself.
    pub fn into_remote(self) -> Box<dyn Remote> {
        self.remote
    }

    /// Submits what is asked for, then waits for ends, at most `wait`. A loss is noted in `local`.
    pub fn drive(&mut self, local: &Mutex<Local>, wait: Nanos) {
        let submitted = self.submit(local);
        // Threads may wait for what has ended without the way.
        let waits = wait > Nanos::ZERO && !submitted.has_ended;
        let until = if waits { self.remote.now() + wait } else { Nanos::ZERO };
        let polled = self.poll(local, until);
        let polled = polled.and_then(|()| match self.submit(local).any {
            // They leave with a poll.
            true => self.poll(local, Nanos::ZERO),
            false => Ok(()),
        });
        let now = self.remote.now();
        let is_late = self.unanswered.is_some_and(|since| now > since + PATIENCE);
        let why = match (polled, self.last_failure) {
            (Err(error), _) => error.to_string(),
            (Ok(()), Some(status)) if is_late => {
                format!("no success for {PATIENCE_S} s; the last failure: {status}")
            }
            (Ok(()), None) if is_late => format!("no answer for {PATIENCE_S} s"),
            (Ok(()), _) => return,
        };
        lock(local).lose(why);
    }

    /// Submits requests as long as the way takes them.
    fn submit(&mut self, local: &Mutex<Local>) -> Submitted {
        let mut submitted = Submitted::default();
        loop {
            let mut local = lock(local);
            let Some(request) = local.residency.next_request() else { return submitted };
            local.under_way += 1;
            let number = self.requests.push(Taken { request, left: 0, failed: None });
            self.unanswered.get_or_insert(self.remote.now());
            let (count, failed) = self.submit_request(number, request, &mut local);
            submitted.any |= count > 0;
            if let Some(taken) = self.requests.get_mut(number) {
                (taken.left, taken.failed) = (count, failed);
            }
            if count == 0 {
                self.end(number, &mut local);
                submitted.has_ended = true;
            }
            if failed.is_some() {
                return submitted;
            }
        }
    }

    /// Submits the operations of a request. Returns how many the way took, and why not all.
    fn submit_request(&mut self, number: u64, request: Request, local: &mut Local) -> (u32, Option<Status>) {
        // Back in its place below.
        let mut fresh = self.fresh.take();
        let submitted = match (request, &mut fresh) {
            (Request::Fetch { first, count }, Some(fresh)) => {
                let (mut operations, mut failed) = (0, None);
                for (is_written, blocks) in fresh.runs(first..first + count) {
                    if !is_written {
                        local.land_zeros(blocks);
                        continue;
                    }
                    let more;
                    (more, failed) = self.submit_parts(number, (blocks.start, blocks.len() as u32), None);
                    operations += more;
                    if failed.is_some() {
                        break;
                    }
                }
                (operations, failed)
            }
            (Request::Fetch { first, count }, None) => self.submit_parts(number, (first, count), None),
            (Request::WriteBack { block, frame }, fresh) => {
                // A write that is refused comes again, and its block stays until then.
                fresh.iter_mut().for_each(|fresh| fresh.write(block));
                self.submit_parts(number, (block, 1), Some(local.outgoing(frame)))
            }
        };
        self.fresh = fresh;
        submitted
    }

    /// Submits the operations on adjacent blocks: reads, or writes of these bytes. Returns how many the way took, and why not all.
    fn submit_parts(
        &mut self,
        number: u64,
        (first, count): (u32, u32),
        outgoing: Option<&[u8]>,
    ) -> (u32, Option<Status>) {
        let abilities = self.remote.abilities();
        let most = if outgoing.is_some() { abilities.write_bytes_max } else { abilities.read_bytes_max };
        let start = u64::from(first) * self.block_bytes;
        let end = (start + u64::from(count) * self.block_bytes).min(abilities.region_bytes);
        let mut count = 0;
        for at in (start..end).step_by(most.max(1) as usize) {
            let bytes = (end - at).min(most.into()) as usize;
            let operation = match outgoing {
                None => Operation::Read { at, bytes: bytes as u32 },
                Some(block) => Operation::Write { at, bytes: &block[(at - start) as usize..][..bytes] },
            };
            let tag = self.operations.next();
            if let Err(status) = self.remote.submit(tag, operation) {
                return (count, Some(status));
            }
            self.operations.push(Part { request: number, at, bytes });
            count += 1;
        }
        (count, None)
    }

    fn poll(&mut self, local: &Mutex<Local>, until: Nanos) -> Result<(), RemoteError> {
        let (requests, operations) = (&mut self.requests, &mut self.operations);
        let mut ended = false;
        self.remote.poll(until, &mut |tag, outcome| {
            let Some(part) = operations.take(tag) else { return };
            let Some(taken) = requests.get_mut(part.request) else { return };
            ended = true;
            taken.left -= 1;
            let failed = match (taken.request, outcome) {
                (Request::Fetch { .. }, Outcome::Read(bytes)) if bytes.len() == part.bytes => {
                    lock(local).land(part.at, bytes);
                    None
                }
                (Request::WriteBack { .. }, Outcome::Written) => None,
                (_, Outcome::Failed(status)) => Some(status),
                // The other end answers what was not asked for.
                _ => Some(Status::BadOperation),
            };
            taken.failed = worse(taken.failed, failed);
        })?;
        // Before a request ends: what has arrived may be of the new memory.
        if self.remote.losses() > self.losses {
            return Err(RemoteError::Broken(
                "the memory's host may have started again, without its content, or has dropped the session"
                    .into(),
            ));
        }
        if ended {
            let over: Vec<u64> = self
                .requests
                .iter_mut()
                .filter(|(_, taken)| taken.left == 0)
                .map(|(number, _)| number)
                .collect();
            let mut local = lock(local);
            over.into_iter().for_each(|number| self.end(number, &mut local));
        }
        Ok(())
    }

    /// All operations of a request have ended.
    fn end(&mut self, number: u64, local: &mut Local) {
        let Some(Taken { request, failed, .. }) = self.requests.take(number) else { return };
        local.under_way -= 1;
        match (request, failed) {
            (_, None) => {
                self.unanswered = (local.under_way > 0).then(|| self.remote.now());
                self.last_failure = None;
            }
            (Request::Fetch { .. }, Some(status)) if status.is_passing() => {}
            // It was not carried out, as a repeated write-back with an unknown result might be, after a newer one.
            (Request::WriteBack { .. }, Some(Status::Busy | Status::Full)) => {}
            (Request::Fetch { first, .. }, Some(status)) => {
                return local.lose(format!("a read of block {first} failed: {status}"));
            }
            (Request::WriteBack { block, .. }, Some(status)) => {
                return local.lose(format!("a write of block {block} failed: {status}"));
            }
        }
        self.last_failure = failed.or(self.last_failure);
        match (request, failed) {
            (request, Some(_)) => local.residency.refuse(request),
            (Request::Fetch { first, count }, None) => local.residency.fetched(first, count),
            (Request::WriteBack { frame, .. }, None) => local.residency.written(frame),
        }
    }
}
