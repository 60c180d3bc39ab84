//! A way whose reads and writes succeed unless the memory is lost: it repeats operations with an unknown result, and reads writes
//! back if their end means only that they have left.

use super::{Abilities, Operation, Order, Outcome, Remote, RemoteError, Status, Window, Written};
use p4rack_wire::Nanos;

/// Time limit for repeating an operation.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Pause before an operation is repeated, and between two checks of a write.
const PAUSE: Nanos = Nanos::from_micros(50);
/// Bytes that have not arrived this long after their write has left are written again: no frame of it can still be in flight.
const REWRITE: Nanos = Nanos::from_millis(250);

/// A [`Remote`] in front of another. Atomic operations are not repeated: see the [module](super).
#[derive(Debug)]
pub struct Certain<R> {
    inner: R,
    abilities: Abilities,
    under_way: Window<UnderWay>,
    /// Buffer of outcomes, kept.
    came: Vec<(u64, Came)>,
}

#[derive(Debug)]
struct UnderWay {
    tag: u64,
    what: What,
    /// When it ends as unknown.
    until: Nanos,
    step: Step,
}

#[derive(Debug)]
enum What {
    Read { at: u64, bytes: u32 },
    Write { at: u64, bytes: Vec<u8> },
    Modify,
}

/// State of an operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Waits for an answer.
    Asked,
    /// Waits for its bytes to be read back; whether the read was issued, and when the write had left.
    Looks { left: Nanos },
    /// Waits until this time, then is repeated.
    Rests { again: Nanos, left: Option<Nanos> },
}

/// Outcome of an operation of the inner way.
#[derive(Debug)]
enum Came {
    Written,
    Seen(bool),
    Failed(Status),
}

impl<R: Remote> Certain<R> {
    /// Wraps a way.
    pub fn new(inner: R) -> Certain<R> {
        let abilities = inner.abilities();
        // A write is read back in one piece.
        let write_bytes_max = abilities.write_bytes_max.min(abilities.read_bytes_max);
        let abilities = Abilities {
            writes: Written::There,
            // A repeated operation may take effect after later ones.
            order: Order::None,
            // Each piece is repeated alone.
            pieces_max: 0,
            write_bytes_max,
            ..abilities.clone()
        };
        Certain { inner, abilities, under_way: Window::default(), came: Vec::new() }
    }

    /// Submits the next step of an operation to the inner way.
    fn ask(inner: &mut R, number: u64, one: &mut UnderWay) {
        let (operation, step) = match (&one.what, one.step) {
            (What::Read { at, bytes }, _) => (Operation::Read { at: *at, bytes: *bytes }, Step::Asked),
            (What::Write { at, bytes }, Step::Rests { left: Some(left), .. }) => {
                (Operation::Read { at: *at, bytes: bytes.len() as u32 }, Step::Looks { left })
            }
            (What::Write { at, bytes }, _) => (Operation::Write { at: *at, bytes }, Step::Asked),
            (What::Modify, _) => return,
        };
        one.step = match inner.submit(number, operation) {
            Ok(()) => step,
            // The operation was accepted before, so it only has to wait.
            Err(_) => Step::Rests { again: inner.now() + PAUSE, left: one.step.left() },
        };
    }
}

impl Step {
    fn left(self) -> Option<Nanos> {
        match self {
            Step::Asked => None,
            Step::Looks { left } => Some(left),
            Step::Rests { left, .. } => left,
        }
    }
}

impl<R: Remote> Remote for Certain<R> {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let what = match operation {
            Operation::Read { at, bytes } => What::Read { at, bytes },
            Operation::Write { at, bytes } => What::Write { at, bytes: bytes.to_vec() },
            Operation::Modify { .. } => What::Modify,
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
        };
        self.inner.submit(self.under_way.next(), operation)?;
        let until = self.inner.now() + PATIENCE;
        self.under_way.push(UnderWay { tag, what, until, step: Step::Asked });
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let (now, mut wakes) = (self.inner.now(), until);
        for (number, one) in self.under_way.iter_mut() {
            match one.step {
                Step::Rests { again, .. } if again <= now => Self::ask(&mut self.inner, number, one),
                Step::Rests { again, .. } => wakes = wakes.min(again),
                Step::Asked | Step::Looks { .. } => {}
            }
        }
        let (under_way, came) = (&mut self.under_way, &mut self.came);
        self.inner.poll(wakes, &mut |number, outcome| {
            let Some(one) = under_way.get_mut(number) else { return };
            match (&one.what, outcome) {
                (What::Write { bytes, .. }, Outcome::Read(there)) => {
                    came.push((number, Came::Seen(there == bytes)));
                }
                (What::Write { .. }, Outcome::Written) => came.push((number, Came::Written)),
                (_, Outcome::Failed(status)) => came.push((number, Came::Failed(status))),
                (_, outcome) => {
                    ended(one.tag, outcome);
                    under_way.take(number);
                }
            }
        })?;
        let now = self.inner.now();
        let is_sent = self.inner.abilities().writes == Written::Sent;
        for (number, came) in self.came.drain(..) {
            let Some(one) = self.under_way.get_mut(number) else { continue };
            let is_over = now >= one.until;
            let failed = match came {
                Came::Seen(true) => None,
                Came::Written if !is_sent => None,
                Came::Written => {
                    one.step = Step::Rests { again: now, left: Some(now) };
                    Self::ask(&mut self.inner, number, one);
                    continue;
                }
                Came::Seen(false) if !is_over => {
                    let left = one.step.left().filter(|left| now < *left + REWRITE);
                    one.step = Step::Rests { again: now + PAUSE, left };
                    continue;
                }
                Came::Seen(false) => Some(Status::Unknown),
                Came::Failed(status)
                    if status.is_passing() && !is_over && !matches!(one.what, What::Modify) =>
                {
                    one.step = Step::Rests { again: now + PAUSE, left: one.step.left() };
                    continue;
                }
                Came::Failed(status) => Some(status),
            };
            ended(one.tag, failed.map_or(Outcome::Written, Outcome::Failed));
            self.under_way.take(number);
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn losses(&self) -> u64 {
        self.inner.losses()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Local;
    use super::*;

    /// A way that loses writes and answers, and whose ends of writes mean only that they have left.
    struct Poor {
        local: Local,
        random: p4rack_fabric::common::SplitMix,
        abilities: Abilities,
        now: Nanos,
        never: bool,
    }

    impl Remote for Poor {
        fn abilities(&self) -> &Abilities {
            &self.abilities
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            let is_lost = self.never || self.random.next().is_multiple_of(8);
            match operation {
                Operation::Write { at, bytes } if is_lost => {
                    // The write has left, and memory has other bytes.
                    self.local.submit(tag, Operation::Write { at, bytes: &vec![0xee; bytes.len()] })
                }
                _ => self.local.submit(tag, operation),
            }
        }

        fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            self.now = (self.now + Nanos(1_000)).max(until.min(self.now + Nanos::from_millis(1)));
            let random = &mut self.random;
            self.local.poll(Nanos::ZERO, &mut |tag, outcome| match random.next() % 3 {
                0 => ended(tag, Outcome::Failed(Status::Unknown)),
                _ => ended(tag, outcome),
            })
        }

        fn now(&self) -> Nanos {
            self.now
        }
    }

    fn poor(seed: u64, never: bool) -> Certain<Poor> {
        let local = Local::new(4_096);
        let abilities = Abilities { writes: Written::Sent, ..local.abilities().clone() };
        let random = p4rack_fabric::common::SplitMix(seed);
        Certain::new(Poor { local, random, abilities, now: Nanos(1), never })
    }

    /// Polls until something has ended.
    fn end(certain: &mut Certain<Poor>) -> Vec<(u64, Result<Vec<u8>, Status>)> {
        let mut all = Vec::new();
        for _ in 0..1_000_000 {
            certain
                .poll(Nanos::MAX, &mut |tag, outcome| {
                    all.push((
                        tag,
                        match outcome {
                            Outcome::Read(bytes) => Ok(bytes.to_vec()),
                            Outcome::Written => Ok(Vec::new()),
                            Outcome::Word(word) => Ok(word.to_be_bytes().to_vec()),
                            Outcome::Failed(status) => Err(status),
                        },
                    ));
                })
                .unwrap();
            if !all.is_empty() {
                break;
            }
        }
        all
    }

    #[test]
    fn what_was_written_is_there_whatever_was_lost() {
        for seed in 0..50 {
            let mut certain = poor(seed, false);
            for round in 0..20u8 {
                let (at, bytes) = (u64::from(round) * 8, [round; 100]);
                certain.submit(7, Operation::Write { at, bytes: &bytes }).unwrap();
                assert_eq!(end(&mut certain), [(7, Ok(vec![]))], "seed {seed}");
                assert_eq!(certain.inner.local.bytes()[at as usize..][..100], bytes, "seed {seed}");
                certain.submit(8, Operation::Read { at, bytes: 100 }).unwrap();
                assert_eq!(end(&mut certain), [(8, Ok(bytes.to_vec()))], "seed {seed}");
            }
        }
    }

    #[test]
    fn it_gives_up_in_the_end_and_never_repeats_an_atomic_operation() {
        let mut certain = poor(1, true);
        certain.submit(3, Operation::Write { at: 0, bytes: &[1; 16] }).unwrap();
        assert_eq!(end(&mut certain), [(3, Err(Status::Unknown))]);
        let mut unknown = 0;
        for round in 0..100u64 {
            let add = Operation::Modify { at: 64, opcode: super::super::Opcode::FetchAdd, operands: [1, 0] };
            certain.submit(round, add).unwrap();
            unknown += u64::from(end(&mut certain)[0].1.is_err());
        }
        assert!(unknown > 10);
        assert_eq!(certain.inner.local.bytes()[64..72], 100u64.to_be_bytes());
    }
}
