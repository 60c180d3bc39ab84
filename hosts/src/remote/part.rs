//! A part of a region as a region of its own, where several programs divide one.

use super::{Abilities, Operation, Outcome, Piece, Remote, RemoteError, Status};
use p4rack_wire::Nanos;

/// A [`Remote`] that has a part of another's region. Nothing outside of it is read or written.
#[derive(Debug)]
pub struct Part<R> {
    inner: R,
    abilities: Abilities,
    start: u64,
}

impl<R: Remote> Part<R> {
    /// The `bytes` bytes from `start` on. Errors: the region ends before, or `start` is no multiple of 8, as words need.
    pub fn new(inner: R, start: u64, bytes: u64) -> Result<Part<R>, Status> {
        let end = start.checked_add(bytes).ok_or(Status::OutOfBounds)?;
        if end > inner.abilities().region_bytes || !start.is_multiple_of(8) {
            return Err(Status::OutOfBounds);
        }
        let abilities = Abilities { region_bytes: bytes, ..inner.abilities().clone() };
        Ok(Part { inner, abilities, start })
    }

    fn shifted(&self, pieces: &[Piece]) -> Vec<Piece> {
        pieces.iter().map(|piece| Piece { at: self.start + piece.at, ..*piece }).collect()
    }
}

impl<R: Remote> Remote for Part<R> {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let start = self.start;
        match operation {
            Operation::Read { at, bytes } => {
                self.inner.submit(tag, Operation::Read { at: start + at, bytes })
            }
            Operation::Write { at, bytes } => {
                self.inner.submit(tag, Operation::Write { at: start + at, bytes })
            }
            Operation::Modify { at, opcode, operands } => {
                self.inner.submit(tag, Operation::Modify { at: start + at, opcode, operands })
            }
            Operation::Gather { pieces } => {
                let pieces = self.shifted(pieces);
                self.inner.submit(tag, Operation::Gather { pieces: &pieces })
            }
            Operation::Scatter { pieces, bytes } => {
                let pieces = self.shifted(pieces);
                self.inner.submit(tag, Operation::Scatter { pieces: &pieces, bytes })
            }
        }
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.inner.poll(until, ended)
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

    #[test]
    fn all_kinds_of_operations_reach_their_part_and_nothing_else() {
        let mut local = Local::new(64);
        local.bytes().copy_from_slice(&(0..64).collect::<Vec<u8>>());
        let mut part = Part::new(local, 16, 32).unwrap();
        let pieces = [Piece { at: 0, bytes: 1 }, Piece { at: 31, bytes: 1 }];
        for (tag, operation) in [
            Operation::Read { at: 30, bytes: 2 },
            Operation::Gather { pieces: &pieces },
            Operation::Write { at: 1, bytes: &[200] },
            Operation::Scatter { pieces: &pieces, bytes: &[201, 202] },
            Operation::Modify { at: 8, opcode: super::super::Opcode::Swap, operands: [0, 0] },
        ]
        .into_iter()
        .enumerate()
        {
            part.submit(tag as u64, operation).unwrap();
        }
        let mut ends = Vec::new();
        part.poll(Nanos::ZERO, &mut |tag, outcome| ends.push((tag, format!("{outcome:?}")))).unwrap();
        let word = u64::from_be_bytes([24, 25, 26, 27, 28, 29, 30, 31]);
        let expected = ["Read([46, 47])", "Read([16, 47])", "Written", "Written", &format!("Word({word})")];
        assert_eq!(ends.iter().map(|(_, end)| end.as_str()).collect::<Vec<_>>(), expected);
        let bytes = part.inner.bytes();
        assert_eq!(
            (bytes[15], bytes[16], bytes[17], bytes[18], bytes[47], bytes[48]),
            (15, 201, 200, 18, 202, 48)
        );
        assert_eq!(bytes[24..32], [0; 8]);
        for operation in [Operation::Read { at: 31, bytes: 2 }, Operation::Write { at: 32, bytes: &[1] }] {
            assert_eq!(part.submit(9, operation), Err(Status::OutOfBounds));
        }
        assert!(Part::new(Local::new(64), 40, 32).is_err() && Part::new(Local::new(64), 4, 8).is_err());
    }
}
