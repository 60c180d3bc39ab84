//! On which of several boards a client allocates.
//!
//! An allocation goes to the board where the client has asked for least, and from one that has no room to the next. A board that has not
//! answered comes last until it answers again.

use p4rack_fabric::clio::lib::{Operation, Outcome};
use p4rack_wire::clio::{PageSize, Rights, Status};

/// An allocation, and the boards that it has not been refused by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alloc {
    pub tag: u64,
    pub bytes: u64,
    pub rights: Rights,
    /// A bit for each board that has been asked.
    tried: u64,
    /// How the last one refused it.
    pub status: Status,
}

impl Alloc {
    /// One that no board was asked for.
    pub fn new(tag: u64, bytes: u64, rights: Rights) -> Alloc {
        Alloc { tag, bytes, rights, tried: 0, status: Status::NoMemory }
    }
}

/// A change of a board's memory under way.
#[derive(Debug)]
struct Change {
    board: u16,
    tag: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Of a given board.
    Alloc(u64),
    /// Of any board.
    AllocAnywhere(Alloc),
    Free(u64),
}

/// What a client has asked each board for.
#[derive(Debug)]
pub(super) struct Rooms {
    boards: Vec<Room>,
    /// As many as allocations and frees are under way.
    changes: Vec<Change>,
    /// Refused by a board, and to be asked for elsewhere. As many at most.
    again: Vec<Alloc>,
}

#[derive(Debug)]
struct Room {
    page_size: PageSize,
    /// Bytes that this client has asked for there, and not freed.
    asked_bytes: u64,
    /// Its last operation ended without an answer.
    is_silent: bool,
}

impl Rooms {
    /// For boards with pages of these sizes, no more than [`BOARDS_MAX`](super::spread::BOARDS_MAX).
    pub fn new(page_sizes: impl Iterator<Item = PageSize>) -> Rooms {
        let room = |page_size| Room { page_size, asked_bytes: 0, is_silent: false };
        Rooms { boards: page_sizes.map(room).collect(), changes: Vec::new(), again: Vec::new() }
    }

    /// Where to ask next, and what for. `None`: each board was asked.
    pub fn next(&self, alloc: &Alloc) -> Option<(u16, Operation<'static>)> {
        let left = (0..).zip(&self.boards).filter(|(board, _)| alloc.tried >> board & 1 == 0);
        let (board, room) = left.min_by_key(|(_, room)| (room.is_silent, room.asked_bytes))?;
        let Alloc { bytes, rights, .. } = *alloc;
        Some((board, Operation::Alloc { bytes, page_size: room.page_size, rights }))
    }

    /// Notes that a board was asked for an allocation which others may be asked for.
    pub fn asked(&mut self, board: u16, mut alloc: Alloc) {
        alloc.tried |= 1 << board;
        self.add(board, alloc.bytes);
        self.changes.push(Change { board, tag: alloc.tag, kind: Kind::AllocAnywhere(alloc) });
    }

    /// Notes an operation of a given board.
    pub fn asked_at(&mut self, board: u16, tag: u64, operation: &Operation<'_>) {
        let kind = match *operation {
            Operation::Alloc { bytes, .. } => {
                self.add(board, bytes);
                Kind::Alloc(bytes)
            }
            Operation::Free { bytes, .. } => Kind::Free(bytes),
            _ => return,
        };
        self.changes.push(Change { board, tag, kind });
    }

    /// Notes the end of an operation. Returns whether another board is to be asked, so that the operation has not ended.
    pub fn ended(&mut self, board: u16, tag: u64, outcome: &Outcome<'_>) -> bool {
        if let Some(room) = self.boards.get_mut(usize::from(board)) {
            room.is_silent = *outcome == Outcome::Unknown;
        }
        let Some(at) = self.changes.iter().position(|change| (change.board, change.tag) == (board, tag))
        else {
            return false;
        };
        let Change { kind, .. } = self.changes.swap_remove(at);
        match (kind, outcome) {
            (Kind::AllocAnywhere(alloc), Outcome::Refused(status)) => {
                self.take(board, alloc.bytes);
                let is_full = matches!(status, Status::NoMemory | Status::NoAddressSpace);
                let again = is_full && self.next(&alloc).is_some();
                if again {
                    self.again.push(Alloc { status: *status, ..alloc });
                }
                again
            }
            (Kind::Alloc(bytes), Outcome::Refused(_)) | (Kind::Free(bytes), Outcome::Done) => {
                self.take(board, bytes);
                false
            }
            // What ended as unknown may have been executed.
            _ => false,
        }
    }

    /// An allocation that another board is to be asked for.
    pub fn again(&mut self) -> Option<Alloc> {
        self.again.pop()
    }

    fn add(&mut self, board: u16, bytes: u64) {
        if let Some(room) = self.boards.get_mut(usize::from(board)) {
            room.asked_bytes = room.asked_bytes.saturating_add(bytes);
        }
    }

    fn take(&mut self, board: u16, bytes: u64) {
        if let Some(room) = self.boards.get_mut(usize::from(board)) {
            room.asked_bytes = room.asked_bytes.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(rooms: &mut Rooms, alloc: Alloc) -> Option<(u16, PageSize)> {
        let (board, Operation::Alloc { page_size, .. }) = rooms.next(&alloc)? else { unreachable!() };
        rooms.asked(board, alloc);
        Some((board, page_size))
    }

    fn rooms() -> Rooms {
        Rooms::new([PageSize::K4, PageSize::M4].into_iter())
    }

    #[test]
    fn a_refused_allocation_goes_to_the_next_board_with_its_page_size_and_is_given_back() {
        let mut rooms = rooms();
        assert_eq!(ask(&mut rooms, Alloc::new(1, 100, Rights::ALL)), Some((0, PageSize::K4)));
        assert!(rooms.ended(0, 1, &Outcome::Refused(Status::NoMemory)));
        let again = rooms.again().unwrap();
        assert_eq!(ask(&mut rooms, again), Some((1, PageSize::M4)));
        assert!(!rooms.ended(1, 1, &Outcome::Refused(Status::NoAddressSpace)), "no board is left");
        assert_eq!(rooms.again(), None);
        assert!(rooms.boards.iter().all(|room| room.asked_bytes == 0) && rooms.changes.is_empty());
        // Another reason is no matter of room.
        ask(&mut rooms, Alloc::new(2, 100, Rights::ALL));
        assert!(!rooms.ended(0, 2, &Outcome::Refused(Status::BadLength)));
        assert_eq!(rooms.boards[0].asked_bytes, 0);
    }

    #[test]
    fn what_is_freed_counts_once_it_is() {
        let mut rooms = rooms();
        ask(&mut rooms, Alloc::new(1, 100, Rights::ALL));
        assert!(!rooms.ended(0, 1, &Outcome::Address(4_096)));
        let free = Operation::Free { address: 4_096, bytes: 100 };
        rooms.asked_at(0, 2, &free);
        assert!(!rooms.ended(0, 2, &Outcome::Refused(Status::NoSuchAddress)));
        assert_eq!(rooms.boards[0].asked_bytes, 100);
        rooms.asked_at(0, 3, &free);
        assert!(!rooms.ended(0, 3, &Outcome::Done));
        assert_eq!(rooms.boards[0].asked_bytes, 0);
    }

    #[test]
    fn a_silent_board_comes_last_until_it_answers() {
        let mut rooms = rooms();
        ask(&mut rooms, Alloc::new(1, 100, Rights::ALL));
        assert!(!rooms.ended(0, 1, &Outcome::Unknown), "it may have been executed");
        assert_eq!(rooms.boards[0].asked_bytes, 100);
        for tag in 2..5 {
            assert_eq!(ask(&mut rooms, Alloc::new(tag, 100, Rights::ALL)).unwrap().0, 1);
        }
        assert!(!rooms.ended(0, 9, &Outcome::Done));
        assert_eq!(ask(&mut rooms, Alloc::new(5, 100, Rights::ALL)).unwrap().0, 0);
    }
}
