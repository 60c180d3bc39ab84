//! Operations across edges that the way behind can't cross, as an operation on each side.

use super::{Abilities, Operation, Outcome, Piece, Pieces, Remote, RemoteError, Status};
use p4rack_wire::Nanos;

/// Pieces of an operation at most: an edge divides each in two.
const PIECES_MAX: usize = 32;

/// A [`Remote`] in front of one that refuses operations across the edges of its parts.
#[derive(Debug)]
pub(super) struct Cut<R> {
    parts: Pieces<R>,
    abilities: Abilities,
    /// Offsets of the edges, all multiples of 8, ascending.
    edges: Vec<u64>,
}

impl<R: Remote> Cut<R> {
    /// In front of a way with these edges.
    pub fn new(inner: R, edges: Vec<u64>) -> Cut<R> {
        let abilities = Abilities { pieces_max: PIECES_MAX, ..inner.abilities().clone() };
        Cut { parts: Pieces::new(inner), abilities, edges }
    }

    /// Whether a piece crosses an edge.
    fn crosses(&self, piece: Piece) -> bool {
        let next = self.edges.partition_point(|edge| *edge <= piece.at);
        self.edges.get(next).is_some_and(|edge| edge - piece.at < piece.bytes.into())
    }

    /// Pieces that cross no edge.
    fn cut(&self, pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
        let mut cut = Vec::new();
        for Piece { mut at, mut bytes } in pieces {
            while bytes > 0 {
                let next = self.edges.partition_point(|edge| *edge <= at);
                let room = self.edges.get(next).map_or(u64::MAX, |edge| edge - at);
                let length = room.min(bytes.into()) as u32;
                cut.push(Piece { at, bytes: length });
                (at, bytes) = (at + u64::from(length), bytes - length);
            }
        }
        cut
    }
}

impl<R: Remote> Remote for Cut<R> {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let crosses = match &operation {
            Operation::Read { at, bytes } => self.crosses(Piece { at: *at, bytes: *bytes }),
            Operation::Write { at, bytes } => self.crosses(Piece { at: *at, bytes: bytes.len() as u32 }),
            Operation::Gather { pieces } | Operation::Scatter { pieces, .. } => {
                pieces.iter().any(|piece| self.crosses(*piece))
            }
            // A word crosses none.
            Operation::Modify { .. } => false,
        };
        if !crosses {
            return self.parts.submit(tag, operation);
        }
        let (pieces, scattered) = match operation {
            Operation::Read { at, bytes } => (self.cut([Piece { at, bytes }]), None),
            Operation::Write { at, bytes } => {
                (self.cut([Piece { at, bytes: bytes.len() as u32 }]), Some(bytes))
            }
            Operation::Gather { pieces } => (self.cut(pieces.iter().copied()), None),
            Operation::Scatter { pieces, bytes } => (self.cut(pieces.iter().copied()), Some(bytes)),
            Operation::Modify { .. } => return self.parts.submit(tag, operation),
        };
        match (pieces.as_slice(), scattered) {
            ([Piece { at, bytes }], None) => {
                self.parts.submit(tag, Operation::Read { at: *at, bytes: *bytes })
            }
            ([Piece { at, .. }], Some(bytes)) => self.parts.submit(tag, Operation::Write { at: *at, bytes }),
            (pieces, None) => self.parts.submit(tag, Operation::Gather { pieces }),
            (pieces, Some(bytes)) => self.parts.submit(tag, Operation::Scatter { pieces, bytes }),
        }
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.parts.poll(until, ended)
    }

    fn now(&self) -> Nanos {
        self.parts.now()
    }

    fn losses(&self) -> u64 {
        self.parts.losses()
    }
}
