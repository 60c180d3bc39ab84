//! Words of 64 bits.

use super::Act;
pub use p4rack_wire::edm::Opcode;

/// An operation on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It found this.
    Read(u64),
    /// It leaves this.
    Write(u64),
    /// An atomic operation with its operands, and the old word, if that is known.
    Modify(Opcode, [u64; 2], Option<u64>),
}

impl Act for Word {
    type State = u64;

    #[inline]
    fn apply(&self, value: &u64) -> Option<u64> {
        match *self {
            Word::Read(found) => (found == *value).then_some(*value),
            Word::Write(left) => Some(left),
            Word::Modify(_, _, Some(found)) if found != *value => None,
            Word::Modify(opcode, operands, _) => Some(opcode.apply(*value, operands)),
        }
    }

    fn is_read(&self) -> bool {
        matches!(self, Word::Read(_))
    }

    fn finds(&self) -> bool {
        matches!(self, Word::Read(_) | Word::Modify(_, _, Some(_)))
    }

    fn overwrites(&self) -> bool {
        matches!(self, Word::Write(_))
    }
}
