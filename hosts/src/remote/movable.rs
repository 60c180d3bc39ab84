//! Remote memory whose content moves to other memory while programs use it.

use super::{Abilities, Operation, Outcome, Remote, RemoteError, Status, Written};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are copied with one operation.
const CHUNK_BYTES: u32 = 64 << 10;
/// Longest wait for operations under way, and for each of the copy.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Pause of a program's thread while a move is wanted.
const PAUSE: Duration = Duration::from_micros(50);

/// An end that came while the content moved.
#[derive(Debug)]
enum Ended {
    Read(Vec<u8>),
    Written,
    Word(u64),
    Failed(Status),
}

struct State {
    inner: Box<dyn Remote>,
    /// Operations of the program that have not ended.
    under_way: u64,
    ended: VecDeque<(u64, Ended)>,
    /// Losses of former memories.
    losses: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Option<State>>,
    /// Threads that want to move the content.
    movers: AtomicU32,
}

/// A [`Remote`] in front of another, whose content a [`Mover`] can bring to a third.
pub struct Movable {
    shared: Arc<Shared>,
    abilities: Abilities,
}

/// Moves the content of a [`Movable`], from another thread.
#[derive(Clone)]
pub struct Mover(Arc<Shared>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owned(outcome: Outcome<'_>) -> Ended {
    match outcome {
        Outcome::Read(bytes) => Ended::Read(bytes.to_vec()),
        Outcome::Written => Ended::Written,
        Outcome::Word(word) => Ended::Word(word),
        Outcome::Failed(status) => Ended::Failed(status),
    }
}

impl Movable {
    /// Wraps a way.
    pub fn new(inner: Box<dyn Remote>) -> (Movable, Mover) {
        let abilities = inner.abilities().clone();
        let shared = Arc::new(Shared::default());
        *shared.lock() = Some(State { inner, under_way: 0, ended: VecDeque::new(), losses: 0 });
        (Movable { shared: Arc::clone(&shared), abilities }, Mover(shared))
    }

    /// Runs `f` on the way, after movers that wait.
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        while self.shared.movers.load(Ordering::Acquire) > 0 {
            std::thread::sleep(PAUSE);
        }
        self.shared.lock().as_mut().map(f)
    }
}

impl Drop for Movable {
    fn drop(&mut self) {
        *self.shared.lock() = None;
    }
}

impl Remote for Movable {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        let submitted = self.with(|state| {
            state.inner.submit(tag, operation)?;
            state.under_way += 1;
            Ok(())
        });
        submitted.unwrap_or(Err(Status::Gone))
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let polled = self.with(|state| {
            if state.ended.is_empty() {
                let under_way = &mut state.under_way;
                return state.inner.poll(until, &mut |tag, outcome| {
                    *under_way = under_way.saturating_sub(1);
                    ended(tag, outcome);
                });
            }
            for (tag, end) in state.ended.drain(..) {
                ended(
                    tag,
                    match &end {
                        Ended::Read(bytes) => Outcome::Read(bytes),
                        Ended::Written => Outcome::Written,
                        Ended::Word(word) => Outcome::Word(*word),
                        Ended::Failed(status) => Outcome::Failed(*status),
                    },
                );
            }
            Ok(())
        });
        polled.unwrap_or(Ok(()))
    }

    fn losses(&self) -> u64 {
        self.shared.lock().as_ref().map_or(0, |state| state.losses + state.inner.losses())
    }
}

impl Mover {
    /// Waits for the program's operations to end, copies all bytes to `to`, and has the program go on there. Its threads wait until then.
    ///
    /// Errors: `to` has less memory or other abilities, or an end of a write does not mean that it is there; an operation has no result;
    /// the memory may have lost its content. The program then goes on with the old memory, and nothing may use `to`.
    pub fn move_to(&self, to: Box<dyn Remote>) -> Result<(), RemoteError> {
        self.0.movers.fetch_add(1, Ordering::AcqRel);
        let moved = match self.0.lock().as_mut() {
            Some(state) => state.move_to(to),
            None => Err(RemoteError::Broken("the memory is not in use any more".to_owned())),
        };
        self.0.movers.fetch_sub(1, Ordering::AcqRel);
        moved
    }
}

impl State {
    fn move_to(&mut self, mut to: Box<dyn Remote>) -> Result<(), RemoteError> {
        let broken = |why: &str| Err(RemoteError::Broken(why.to_owned()));
        let (from, other) = (self.inner.abilities().clone(), to.abilities());
        let same = Abilities { region_bytes: from.region_bytes, ..other.clone() };
        if same != from || other.region_bytes < from.region_bytes || from.writes != Written::There {
            return broken("the other memory has other abilities, or writes end before they are there");
        }
        let losses = (self.inner.losses(), to.losses());
        self.settle()?;
        let most = CHUNK_BYTES.min(from.read_bytes_max).min(from.write_bytes_max);
        let mut at = 0;
        while at < from.region_bytes {
            let bytes = u64::from(most).min(from.region_bytes - at) as u32;
            let chunk = carry_out(&mut *self.inner, Operation::Read { at, bytes })?;
            carry_out(&mut *to, Operation::Write { at, bytes: &chunk })?;
            at += u64::from(bytes);
        }
        if losses != (self.inner.losses(), to.losses()) {
            return broken("a memory node has started again");
        }
        self.losses += losses.0;
        self.inner = to;
        Ok(())
    }

    /// Waits for the ends of all operations.
    fn settle(&mut self) -> Result<(), RemoteError> {
        let end = clock::now() + PATIENCE;
        while self.under_way > 0 {
            let (under_way, ended) = (&mut self.under_way, &mut self.ended);
            self.inner.poll(end, &mut |tag, outcome| {
                *under_way = under_way.saturating_sub(1);
                ended.push_back((tag, owned(outcome)));
            })?;
            if self.under_way > 0 && clock::now() >= end {
                return Err(RemoteError::Broken(format!("{} operations have no end", self.under_way)));
            }
        }
        Ok(())
    }
}

/// One operation, alone. Returns the bytes that it has read. Errors: it has no result.
fn carry_out(remote: &mut dyn Remote, operation: Operation<'_>) -> Result<Vec<u8>, RemoteError> {
    let failed = |status: Status| RemoteError::Broken(format!("copying: {status}"));
    remote.submit(0, operation).map_err(failed)?;
    let (end, mut done) = (clock::now() + PATIENCE, None);
    while done.is_none() {
        if clock::now() >= end {
            return Err(failed(Status::Unknown));
        }
        remote.poll(end, &mut |_, outcome| {
            done = Some(match outcome {
                Outcome::Read(bytes) => Ok(bytes.to_vec()),
                Outcome::Written | Outcome::Word(_) => Ok(Vec::new()),
                Outcome::Failed(status) => Err(failed(status)),
            });
        })?;
    }
    done.unwrap_or(Err(failed(Status::Unknown)))
}

#[cfg(test)]
mod tests {
    use super::super::Local;
    use super::*;
    use p4rack_wire::SplitMix;

    const BYTES: u64 = 300_000;

    /// An operation that waits.
    enum Waiting {
        Read(u64, u32),
        Write(u64, Vec<u8>),
    }

    /// Memory whose operations take effect late: some with each poll.
    struct Late {
        local: Local,
        waiting: VecDeque<(u64, Waiting)>,
        random: SplitMix,
        /// Operations that end before one fails.
        until_failure: Option<u64>,
    }

    impl Remote for Late {
        fn abilities(&self) -> &Abilities {
            self.local.abilities()
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            let waiting = match operation {
                Operation::Read { at, bytes } => Waiting::Read(at, bytes),
                Operation::Write { at, bytes } => Waiting::Write(at, bytes.to_vec()),
                _ => return Err(Status::BadOperation),
            };
            self.waiting.push_back((tag, waiting));
            Ok(())
        }

        fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            for _ in 0..self.random.between(0, 2) {
                let Some((tag, waiting)) = self.waiting.pop_front() else { break };
                if let Some(left) = &mut self.until_failure {
                    if *left == 0 {
                        ended(tag, Outcome::Failed(Status::Unknown));
                        continue;
                    }
                    *left -= 1;
                }
                let operation = match &waiting {
                    Waiting::Read(at, bytes) => Operation::Read { at: *at, bytes: *bytes },
                    Waiting::Write(at, bytes) => Operation::Write { at: *at, bytes },
                };
                self.local.submit(tag, operation).unwrap();
            }
            self.local.poll(Nanos::ZERO, ended)
        }
    }

    fn late(bytes: u64, seed: u64) -> Box<Late> {
        let random = SplitMix(seed);
        Box::new(Late { local: Local::new(bytes), waiting: VecDeque::new(), random, until_failure: None })
    }

    /// Random reads and writes of words, up to four under way, each read compared with plain memory. `between` runs before each step.
    fn is_memory(movable: &mut Movable, seed: u64, mut between: impl FnMut(u64)) {
        let mut random = SplitMix(seed);
        let mut plain = vec![0u8; BYTES as usize];
        let mut expected: VecDeque<Option<Vec<u8>>> = VecDeque::new();
        let (mut sent, mut came) = (0, 0);
        for step in 0..3_000 {
            between(step);
            let at = random.between(0, BYTES / 8 - 1) * 8;
            let word = random.next().to_be_bytes();
            if sent - came < 4 && step < 2_900 {
                let place = at as usize..at as usize + 8;
                if random.next().is_multiple_of(2) {
                    plain[place].copy_from_slice(&word);
                    movable.submit(sent, Operation::Write { at, bytes: &word }).unwrap();
                    expected.push_back(None);
                } else {
                    movable.submit(sent, Operation::Read { at, bytes: 8 }).unwrap();
                    expected.push_back(Some(plain[place].to_vec()));
                }
                sent += 1;
            }
            movable
                .poll(Nanos::ZERO, &mut |tag, outcome| {
                    assert_eq!(tag, came, "ends come once, in order");
                    came += 1;
                    match (expected.pop_front().unwrap(), outcome) {
                        (Some(bytes), Outcome::Read(read)) => assert_eq!(bytes, read, "seed {seed}"),
                        (None, Outcome::Written) => {}
                        (_, other) => panic!("{other:?}"),
                    }
                })
                .unwrap();
        }
        assert_eq!(came, sent, "all have ended");
    }

    #[test]
    fn content_and_operations_under_way_move_without_a_wrong_byte() {
        for seed in 0..20 {
            let (mut movable, mover) = Movable::new(late(BYTES, seed));
            is_memory(&mut movable, seed, |step| {
                if step.is_multiple_of(500) {
                    mover.move_to(late(BYTES + seed % 2, step)).unwrap();
                }
            });
        }
    }

    #[test]
    fn a_move_that_fails_leaves_everything_where_it_was() {
        let (mut movable, mover) = Movable::new(late(BYTES, 1));
        is_memory(&mut movable, 2, |step| {
            if step.is_multiple_of(700) {
                let mut failing = late(BYTES, step);
                failing.until_failure = Some(3);
                let why = mover.move_to(failing).unwrap_err().to_string();
                assert!(why.contains("copying: no answer in time"), "{why}");
                let why = mover.move_to(late(BYTES - 8, step)).unwrap_err().to_string();
                assert!(why.contains("other abilities"), "{why}");
            }
        });
        drop(movable);
        let why = mover.move_to(late(BYTES, 3)).unwrap_err().to_string();
        assert!(why.contains("not in use"), "{why}");
    }
}
