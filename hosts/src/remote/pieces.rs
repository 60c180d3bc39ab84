//! Gathers and scatters by several requests, for a way that has nothing better.

use super::{Abilities, Operation, Outcome, Piece, Remote, RemoteError, Status, Window};
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Pieces of an operation at most.
const PIECES_MAX: usize = 64;

/// A [`Remote`] in front of another. Pieces are requests of their own, so another program's writes may come between them.
#[derive(Debug)]
pub struct Pieces<R> {
    inner: R,
    abilities: Abilities,
    /// Requests of the way behind.
    requests: Window<Request>,
    /// Gathers and scatters in flight.
    all: Window<All>,
    /// Pieces for which the way behind had no room, in order.
    later: VecDeque<Later>,
}

/// A request of the way behind.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// An operation with this tag.
    Whole(u64),
    /// A piece of the operation with this number, whose bytes are at this place of it.
    Piece(u64, usize, u32),
}

/// A gather or scatter in flight.
#[derive(Debug)]
struct All {
    tag: u64,
    /// Pieces that have not ended.
    left: usize,
    failed: Option<Status>,
    is_gather: bool,
    /// Gathered bytes, or bytes of a scatter that may still have to be submitted.
    bytes: Vec<u8>,
}

/// A piece that waits for room.
#[derive(Clone, Copy, Debug)]
struct Later {
    number: u64,
    place: usize,
    piece: Piece,
}

impl<R: Remote> Pieces<R> {
    /// In front of a way.
    pub fn new(inner: R) -> Pieces<R> {
        let abilities = Abilities { pieces_max: PIECES_MAX, ..inner.abilities().clone() };
        let (requests, all) = (Window::default(), Window::default());
        Pieces { inner, abilities, requests, all, later: VecDeque::new() }
    }

    fn submit_all(&mut self, tag: u64, pieces: &[Piece], scattered: Option<&[u8]>) -> Result<(), Status> {
        let (number, is_gather) = (self.all.next(), scattered.is_none());
        let mut bytes = Vec::new();
        if is_gather {
            bytes.resize(pieces.iter().map(|piece| piece.bytes as usize).sum(), 0);
        }
        let (mut place, mut failed, mut asked) = (0, None, 0);
        for (nth, piece) in pieces.iter().enumerate() {
            let request = self.requests.next();
            match self.inner.submit(request, operation(*piece, place, scattered)) {
                Ok(()) => {
                    self.requests.push(Request::Piece(number, place, piece.bytes));
                    asked += 1;
                }
                Err(status) if nth == 0 => return Err(status),
                Err(Status::Full) => {
                    // Waiting pieces keep their bytes.
                    bytes.extend_from_slice(scattered.unwrap_or_default());
                    let mut place = place;
                    for piece in &pieces[nth..] {
                        self.later.push_back(Later { number, place, piece: *piece });
                        place += piece.bytes as usize;
                        asked += 1;
                    }
                    break;
                }
                Err(status) => {
                    failed = Some(status);
                    break;
                }
            }
            place += piece.bytes as usize;
        }
        self.all.push(All { tag, left: asked, failed, is_gather, bytes });
        Ok(())
    }

    /// Submits waiting pieces, as far as the way has room. One that is refused may be the last of its operation.
    fn submit_later(&mut self, ended: &mut dyn FnMut(u64, Outcome<'_>)) {
        while let Some(Later { number, place, piece }) = self.later.front().copied() {
            let Some(all) = self.all.get_mut(number) else {
                self.later.pop_front();
                continue;
            };
            let scattered = (!all.is_gather).then_some(all.bytes.as_slice());
            match self.inner.submit(self.requests.next(), operation(piece, place, scattered)) {
                Ok(()) => _ = self.requests.push(Request::Piece(number, place, piece.bytes)),
                Err(Status::Full) => return,
                Err(status) => {
                    all.failed = Some(status);
                    all.left -= 1;
                    if all.left == 0 {
                        ended(all.tag, Outcome::Failed(status));
                        self.all.take(number);
                    }
                }
            }
            self.later.pop_front();
        }
    }
}

/// The request for a piece: without bytes to scatter it is read.
fn operation(piece: Piece, place: usize, scattered: Option<&[u8]>) -> Operation<'_> {
    match scattered {
        None => Operation::Read { at: piece.at, bytes: piece.bytes },
        Some(bytes) => Operation::Write { at: piece.at, bytes: &bytes[place..place + piece.bytes as usize] },
    }
}

impl<R: Remote> Remote for Pieces<R> {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        // Later operations must not pass waiting pieces: the way behind may have room for one kind of operation alone.
        if !self.later.is_empty() {
            return Err(Status::Full);
        }
        match operation {
            Operation::Gather { pieces } => self.submit_all(tag, pieces, None),
            Operation::Scatter { pieces, bytes } => self.submit_all(tag, pieces, Some(bytes)),
            one => {
                self.inner.submit(self.requests.next(), one)?;
                self.requests.push(Request::Whole(tag));
                Ok(())
            }
        }
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.submit_later(ended);
        let (requests, operations, mut is_broken) = (&mut self.requests, &mut self.all, false);
        self.inner.poll(until, &mut |request, outcome| {
            let (number, place, length) = match requests.take(request) {
                Some(Request::Whole(tag)) => return ended(tag, outcome),
                Some(Request::Piece(number, place, length)) => (number, place, length as usize),
                None => return,
            };
            let Some(all) = operations.get_mut(number) else { return };
            match outcome {
                Outcome::Read(bytes) => match all.bytes.get_mut(place..place + length) {
                    Some(there) if bytes.len() == length => there.copy_from_slice(bytes),
                    _ => is_broken = true,
                },
                Outcome::Failed(status) => all.failed = all.failed.or(Some(status)),
                Outcome::Written | Outcome::Word(_) => {}
            }
            all.left -= 1;
            if all.left == 0
                && let Some(All { tag, failed, is_gather, bytes, .. }) = operations.take(number)
            {
                match failed {
                    Some(status) => ended(tag, Outcome::Failed(status)),
                    None if is_gather => ended(tag, Outcome::Read(&bytes)),
                    None => ended(tag, Outcome::Written),
                }
            }
        })?;
        if is_broken {
            return Err(RemoteError::Broken("a read was answered with another number of bytes".into()));
        }
        self.submit_later(ended);
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
    use p4rack_netdev::clock;

    /// Local memory without gathers, with room for few reads and as many writes. Writes to its first byte fail.
    struct Narrow {
        local: Local,
        abilities: Abilities,
        open: [usize; 2],
    }

    impl Remote for Narrow {
        fn abilities(&self) -> &Abilities {
            &self.abilities
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            self.abilities.check(&operation)?;
            let open = &mut self.open[usize::from(matches!(operation, Operation::Write { .. }))];
            if *open == self.abilities.under_way_max {
                return Err(Status::Full);
            }
            if matches!(operation, Operation::Write { at: 0, .. }) {
                return Err(Status::NotPermitted);
            }
            *open += 1;
            self.local.submit(tag, operation)
        }

        fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            self.open = [0; 2];
            self.local.poll(Nanos::ZERO, ended)
        }
    }

    fn narrow() -> Pieces<Narrow> {
        let local = Local::new(4_096);
        let abilities = Abilities { pieces_max: 0, under_way_max: 3, ..local.abilities().clone() };
        Pieces::new(Narrow { local, abilities, open: [0; 2] })
    }

    /// Ends of operations, in words.
    fn ends(pieces: &mut Pieces<Narrow>, count: usize) -> Vec<(u64, String)> {
        let (mut all, until) = (Vec::new(), clock::now() + Nanos::from_secs(20));
        while all.len() < count {
            pieces.poll(until, &mut |tag, outcome| all.push((tag, format!("{outcome:?}")))).unwrap();
            assert!(clock::now() < until, "nothing ends");
        }
        all
    }

    #[test]
    fn more_pieces_than_there_is_room_for_go_one_after_the_other() {
        let mut pieces = narrow();
        let places: Vec<Piece> = (1..11).map(|nth| Piece { at: 10 * nth, bytes: 2 }).collect();
        let bytes: Vec<u8> = (0..20).collect();
        pieces.submit(u64::MAX, Operation::Scatter { pieces: &places, bytes: &bytes }).unwrap();
        assert_eq!(pieces.submit(1, Operation::Gather { pieces: &places }), Err(Status::Full));
        // The way has room for a read, which would pass the waiting pieces.
        assert_eq!(pieces.submit(2, Operation::Read { at: 100, bytes: 2 }), Err(Status::Full));
        assert_eq!(ends(&mut pieces, 1), [(u64::MAX, "Written".to_owned())]);
        pieces.submit(7, Operation::Gather { pieces: &places }).unwrap();
        assert_eq!(ends(&mut pieces, 1), [(7, format!("Read({bytes:?})"))]);
        pieces.submit(8, Operation::Read { at: 19, bytes: 3 }).unwrap();
        assert_eq!(ends(&mut pieces, 1), [(8, "Read([0, 2, 3])".to_owned())]);
    }

    #[test]
    fn a_piece_that_fails_fails_all() {
        let mut pieces = narrow();
        let places = [8, 16, 0, 24].map(|at| Piece { at, bytes: 1 });
        pieces.submit(1, Operation::Scatter { pieces: &places, bytes: &[1, 2, 3, 4] }).unwrap();
        assert_eq!(ends(&mut pieces, 1), [(1, "Failed(NotPermitted)".to_owned())]);
        let first = [0, 8].map(|at| Piece { at, bytes: 1 });
        let refused = pieces.submit(2, Operation::Scatter { pieces: &first, bytes: &[1, 2] });
        assert_eq!(refused, Err(Status::NotPermitted));
        // The last one, which waited for room.
        let last = [8, 16, 24, 0].map(|at| Piece { at, bytes: 1 });
        pieces.submit(4, Operation::Scatter { pieces: &last, bytes: &[1, 2, 3, 4] }).unwrap();
        assert_eq!(ends(&mut pieces, 1), [(4, "Failed(NotPermitted)".to_owned())]);
        pieces.submit(3, Operation::Read { at: 8, bytes: 1 }).unwrap();
        assert_eq!(ends(&mut pieces, 1), [(3, "Read([1])".to_owned())]);
    }
}
