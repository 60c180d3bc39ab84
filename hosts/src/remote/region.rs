//! Remote memory for programs that wait for their operations.

use super::{Abilities, Operation, Outcome, Remote, RemoteError, Status};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Opcode;

/// How long a program waits without any completion. Most ways report a lost connection sooner.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// A region, used by one operation or batch at a time. Programs that submit and poll themselves use the way beneath.
#[derive(Debug)]
pub struct Region<R = Box<dyn Remote>> {
    remote: R,
    /// Tag of the next operation: all earlier ones have ended or were abandoned.
    next: u64,
}

impl<R: Remote> Region<R> {
    /// A region over a way without open operations.
    pub fn new(remote: R) -> Region<R> {
        Region { remote, next: 0 }
    }

    /// The way's abilities.
    pub fn abilities(&self) -> &Abilities {
        self.remote.abilities()
    }

    /// The way. All operations submitted to it must have ended before the region is used again.
    pub fn remote(&mut self) -> &mut R {
        &mut self.remote
    }

    /// Executes several operations at the same time, and calls `ended` with the position and outcome of each. An operation without
    /// an answer ends as [`Status::Unknown`]. Errors: the way is gone.
    pub fn batch<'a>(
        &mut self,
        operations: impl IntoIterator<Item = Operation<'a>>,
        mut ended: impl FnMut(usize, Outcome<'_>),
    ) -> Result<(), RemoteError> {
        let mut operations = operations.into_iter();
        let mut refused: Option<Operation<'a>> = None;
        // Whether each operation is open: submitted and not ended.
        let mut open: Vec<bool> = Vec::new();
        let (first, mut left, mut last) = (self.next, 0, self.remote.now());
        loop {
            while let Some(operation) = refused.take().or_else(|| operations.next()) {
                match self.remote.submit(self.next, operation) {
                    // An end of this batch makes room.
                    Err(Status::Full) if left > 0 => {
                        refused = Some(operation);
                        break;
                    }
                    Err(status) => {
                        ended(open.len(), Outcome::Failed(status));
                        open.push(false);
                    }
                    Ok(()) => {
                        left += 1;
                        open.push(true);
                    }
                }
                self.next += 1;
            }
            if left == 0 {
                return Ok(());
            }
            let before = left;
            self.remote.poll(last + PATIENCE, &mut |tag, outcome| {
                // The end of an abandoned operation.
                let position = tag.checked_sub(first).and_then(|position| usize::try_from(position).ok());
                let Some(position) = position else { return };
                if let Some(is_open) = open.get_mut(position).filter(|is_open| **is_open) {
                    *is_open = false;
                    left -= 1;
                    ended(position, outcome);
                }
            })?;
            let now = self.remote.now();
            if left < before {
                last = now;
            } else if now >= last + PATIENCE {
                let silent = open.iter().enumerate().filter(|(_, is_open)| **is_open);
                silent.for_each(|(position, _)| ended(position, Outcome::Failed(Status::Unknown)));
                return Ok(());
            }
        }
    }

    /// Reads bytes, in pieces of the way's longest operation. Errors: that of the first piece that failed.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), RemoteError> {
        let (piece, total) = (self.remote.abilities().read_bytes_max as usize, into.len());
        let pieces =
            pieces(at, total, piece).map(|(at, part)| Operation::Read { at, bytes: part.len() as u32 });
        let mut failed = None;
        self.batch(pieces.collect::<Vec<_>>(), |nth, outcome| match outcome {
            Outcome::Read(bytes) => match into.get_mut(nth * piece..nth * piece + bytes.len()) {
                Some(place) => place.copy_from_slice(bytes),
                None => failed = failed.or(Some(Status::Unknown)),
            },
            Outcome::Failed(status) => failed = failed.or(Some(status)),
            Outcome::Written | Outcome::Word(_) => failed = failed.or(Some(Status::Unknown)),
        })?;
        if total == 0 { Err(Status::BadLength.into()) } else { ok(failed) }
    }

    /// Writes bytes, in pieces of the way's longest operation. [`Abilities::writes`](super::Abilities::writes) defines what the end
    /// means. Errors: that of the first piece that failed.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let piece = self.remote.abilities().write_bytes_max as usize;
        let pieces =
            pieces(at, bytes.len(), piece).map(|(at, part)| Operation::Write { at, bytes: &bytes[part] });
        let mut failed = None;
        self.batch(pieces, |_, outcome| {
            if let Outcome::Failed(status) = outcome {
                failed = failed.or(Some(status));
            }
        })?;
        if bytes.is_empty() { Err(Status::BadLength.into()) } else { ok(failed) }
    }

    /// Replaces a word by `new` if it is `expected`. Returns the previous word.
    pub fn cas(&mut self, at: u64, expected: u64, new: u64) -> Result<u64, RemoteError> {
        self.modify(at, Opcode::Cas, [expected, new])
    }

    /// Adds to a word, modulo 2^64. Returns the previous word.
    pub fn fetch_add(&mut self, at: u64, more: u64) -> Result<u64, RemoteError> {
        self.modify(at, Opcode::FetchAdd, [more, 0])
    }

    /// Executes any atomic operation; operands that it does not have are ignored. Returns the previous word.
    pub fn modify(&mut self, at: u64, opcode: Opcode, operands: [u64; 2]) -> Result<u64, RemoteError> {
        let mut old = Err(Status::Unknown);
        self.batch([Operation::Modify { at, opcode, operands }], |_, outcome| match outcome {
            Outcome::Word(word) => old = Ok(word),
            Outcome::Failed(status) => old = Err(status),
            Outcome::Read(_) | Outcome::Written => {}
        })?;
        Ok(old?)
    }
}

fn ok(failed: Option<Status>) -> Result<(), RemoteError> {
    failed.map_or(Ok(()), |status| Err(status.into()))
}

/// Parts of `bytes` bytes from an address, each of at most `most` bytes.
fn pieces(at: u64, bytes: usize, most: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let piece = move |from: usize| (at.wrapping_add(from as u64), from..bytes.min(from + most));
    (0..bytes).step_by(most.max(1)).map(piece)
}

#[cfg(test)]
mod tests {
    use super::super::{Local, WordOrder};
    use super::*;
    use std::collections::VecDeque;

    /// Local memory that takes short operations, two at a time, ends them last first, and loses some ends.
    struct Narrow {
        local: Local,
        abilities: Abilities,
        ends: VecDeque<u64>,
        loses: Option<u64>,
        now: Nanos,
    }

    fn narrow() -> Region<Narrow> {
        let local = Local::new(4_096);
        let abilities = Abilities { read_bytes_max: 24, write_bytes_max: 16, ..local.abilities().clone() };
        assert_eq!(abilities.words, WordOrder::BigEndian);
        Region::new(Narrow { local, abilities, ends: VecDeque::new(), loses: None, now: Nanos(1) })
    }

    impl Remote for Narrow {
        fn abilities(&self) -> &Abilities {
            &self.abilities
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            self.abilities.check(&operation)?;
            if self.ends.len() == 2 {
                return Err(Status::Full);
            }
            self.ends.push_back(tag);
            self.local.submit(tag, operation)
        }

        fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            let mut ends = Vec::new();
            self.local.poll(Nanos::ZERO, &mut |tag, outcome| {
                let bytes = if let Outcome::Read(bytes) = outcome { bytes.to_vec() } else { Vec::new() };
                ends.push((tag, bytes, if let Outcome::Word(word) = outcome { Some(word) } else { None }));
            })?;
            if ends.is_empty() {
                self.now = self.now.max(until);
            }
            while let Some((tag, bytes, word)) = ends.pop() {
                if self.loses == Some(tag) {
                    continue;
                }
                self.ends.retain(|open| *open != tag);
                ended(
                    tag,
                    match (word, bytes.is_empty()) {
                        (Some(word), _) => Outcome::Word(word),
                        (None, true) => Outcome::Written,
                        (None, false) => Outcome::Read(&bytes),
                    },
                );
            }
            Ok(())
        }

        fn now(&self) -> Nanos {
            self.now
        }
    }

    #[test]
    fn long_operations_go_in_pieces_in_any_order() {
        let mut region = narrow();
        let bytes: Vec<u8> = (0..=255).collect();
        region.write(100, &bytes).unwrap();
        let mut back = vec![0; 256];
        region.read(100, &mut back).unwrap();
        assert_eq!(back, bytes);
        assert_eq!(region.modify(8, Opcode::FetchAdd, [5, 0]).unwrap(), 0);
        assert_eq!((region.cas(8, 5, 9).unwrap(), region.cas(8, 5, 7).unwrap()), (5, 9));
        for (error, expected) in [
            (region.read(4_090, &mut back).unwrap_err(), Status::OutOfBounds),
            (region.write(0, &[]).unwrap_err(), Status::BadLength),
            (region.cas(4, 0, 0).unwrap_err(), Status::BadOperation),
        ] {
            assert!(matches!(error, RemoteError::Failed(status) if status == expected), "{error}");
        }
    }

    #[test]
    fn what_is_never_heard_of_is_unknown() {
        let mut region = narrow();
        region.remote().loses = Some(1);
        let mut ends = Vec::new();
        let words = (0..4).map(|nth| Operation::cas(8 * nth, 0, nth));
        region.batch(words, |nth, outcome| ends.push((nth, matches!(outcome, Outcome::Word(0))))).unwrap();
        ends.sort_unstable();
        assert_eq!(ends, [(0, true), (1, false), (2, true), (3, true)]);
    }
}
