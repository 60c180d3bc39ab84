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

/// A way and its requests under way.
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
    /// Whether the way took any.
    is_asked: bool,
    /// Blocks that are zeros, and need no operation.
    zeroed: u32,
    failed: Option<Status>,
}

/// A request's operations, as far as the way accepted them.
#[derive(Clone, Copy, Debug, Default)]
struct RequestOperations {
    /// Operations that it took.
    operations: u32,
    /// Blocks that are zeros, and need no operation.
    zeroed: u32,
    /// Why it did not take all.
    failed: Option<Status>,
}

/// Outcome of submitting requests.
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

/// The worse of two failures: a permanent one before an unknown result, and this before a request that was not
/// executed.
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

    /// Submits pending requests, then waits for completions, at most `wait`. A loss is noted in `local`.
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
            let number =
                self.requests.push(Taken { request, left: 0, is_asked: false, zeroed: 0, failed: None });
            let RequestOperations { operations, zeroed, failed } =
                self.submit_request(number, request, &mut local);
            // A request for zeros alone asks the way for nothing.
            if operations > 0 || failed.is_some() {
                self.unanswered.get_or_insert(self.remote.now());
            }
            submitted.any |= operations > 0;
            if let Some(taken) = self.requests.get_mut(number) {
                (taken.left, taken.is_asked) = (operations, operations > 0);
                (taken.zeroed, taken.failed) = (zeroed, failed);
            }
            if operations == 0 {
                self.end(number, &mut local);
                submitted.has_ended = true;
            }
            if failed.is_some() {
                return submitted;
            }
        }
    }

    /// Submits the operations of a request.
    fn submit_request(&mut self, number: u64, request: Request, local: &mut Local) -> RequestOperations {
        // Back in its place below.
        let mut fresh = self.fresh.take();
        let mut zeroed = 0;
        let (operations, failed) = match (request, &mut fresh) {
            (Request::Fetch { first, count }, Some(fresh)) => {
                let (mut operations, mut failed) = (0, None);
                for (is_written, blocks) in fresh.runs(first..first + count) {
                    if !is_written {
                        zeroed += blocks.end - blocks.start;
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
        RequestOperations { operations, zeroed, failed }
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
                // The other end's answer doesn't fit the request.
                _ => Some(Status::BadOperation),
            };
            taken.failed = worse(taken.failed, failed);
        })?;
        // Checked before a request ends: arrived bytes may be those of the new memory.
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
        let Some(Taken { request, is_asked, zeroed, failed, .. }) = self.requests.take(number) else {
            return;
        };
        local.under_way -= 1;
        match (request, failed) {
            // It says nothing of the way.
            (_, None) if !is_asked => {}
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
            (Request::Fetch { first, count }, None) => {
                // Not sooner: a fetch that is refused comes again.
                local.zeroed += u64::from(zeroed);
                local.residency.fetched(first, count);
            }
            (Request::WriteBack { frame, .. }, None) => local.residency.written(frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::{Abilities, Local as Memory};
    use p4rack_cache::region::{Found, Limits, Mode, Residency, Room};

    const BLOCK_BYTES: u32 = 512;
    const BLOCKS: u32 = 64;

    /// Memory that answers nothing. A poll takes two seconds.
    struct Silent {
        memory: Memory,
        now: Nanos,
    }

    impl Remote for Silent {
        fn abilities(&self) -> &Abilities {
            self.memory.abilities()
        }

        fn submit(&mut self, _: u64, _: Operation<'_>) -> Result<(), Status> {
            Ok(())
        }

        fn poll(&mut self, _: Nanos, _: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            self.now += Nanos::from_secs(2);
            Ok(())
        }

        fn now(&self) -> Nanos {
            self.now
        }
    }

    #[test]
    fn blocks_that_need_no_memory_do_not_hide_that_it_is_silent() {
        let policy = p4rack_cache::find("lru").unwrap();
        let limits = Limits { guards: 1, claims: 4, prefetched: 1, fetch: 1 };
        let residency = Residency::new(policy, (BLOCKS, BLOCK_BYTES), Room::Bytes(64 << 10), limits).unwrap();
        let local = Mutex::new(Local::new(residency, BLOCK_BYTES));
        let mut fresh = Fresh::new(BLOCKS);
        fresh.write(0);
        let memory = Memory::new(u64::from(BLOCKS * BLOCK_BYTES));
        let silent = Silent { memory, now: Nanos(1) };
        let mut way = Transport::new(Box::new(silent), BLOCK_BYTES, Some(fresh));
        // A block that needs memory, and then one a poll that does not.
        let mut lost_after = None;
        for block in 0..BLOCKS {
            assert_eq!(lock(&local).residency.access(block, Mode::Read), Found::Wait);
            way.drive(&local, Nanos::ZERO);
            if lock(&local).lost.is_some() {
                lost_after = Some(way.remote.now());
                break;
            }
            let is_here = matches!(lock(&local).residency.claimed(block, Mode::Read), Found::Here(_));
            assert_eq!(is_here, block > 0);
        }
        let lost_after = lost_after.expect("it is never reported");
        assert!(lost_after > PATIENCE && lost_after < PATIENCE + Nanos::from_secs(5), "{lost_after:?}");
        assert!(lock(&local).lost.as_ref().is_some_and(|why| why.contains("no answer for 10 s")));
    }
}
