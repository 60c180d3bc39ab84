//! Addresses of a process set that spans several boards.
//!
//! ```text
//!   board (16) │ address at the board (48), whose top bits name the size of its pages
//! ```
//!
//! A packet has the address at its board. That of the first board, number 0, is the same in both forms, so a client of one board sees the
//! board's own addresses.

use p4rack_fabric::clio::lib::Operation;
use p4rack_wire::clio::address::ADDRESS_BITS;

/// Boards that a client may have at a time.
pub const BOARDS_MAX: usize = 64;

/// An address at a board, or a number of one of its offloads, as one of a client of several boards.
pub const fn at_board(board: u16, address: u64) -> u64 {
    (board as u64) << ADDRESS_BITS | address
}

/// The board of such an address, and the address there.
pub const fn of_board(address: u64) -> (u16, u64) {
    ((address >> ADDRESS_BITS) as u16, address & ((1 << ADDRESS_BITS) - 1))
}

/// An operation as its board has it, and the board. `None`: nothing in it names one.
pub(super) fn locate(operation: Operation<'_>) -> (Option<u16>, Operation<'_>) {
    let (mut operation, mut board) = (operation, None);
    match &mut operation {
        Operation::Free { address, .. }
        | Operation::Share { address, .. }
        | Operation::Read { address, .. }
        | Operation::Write { address, .. }
        | Operation::Modify { address, .. }
        | Operation::Lock { address }
        | Operation::Unlock { address }
        | Operation::Call { offload: address, .. } => {
            let (at, there) = of_board(*address);
            (board, *address) = (Some(at), there);
        }
        Operation::Alloc { .. } | Operation::Fence { .. } | Operation::Release => {}
    }
    (board, operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_board() {
        let (last, address) = (u16::MAX, (1 << ADDRESS_BITS) - 1);
        assert_eq!((at_board(0, address), of_board(at_board(last, address))), (address, (last, address)));
        let read = Operation::Read { address: at_board(3, 4_096), bytes: 8 };
        assert_eq!(locate(read), (Some(3), Operation::Read { address: 4_096, bytes: 8 }));
        assert_eq!(locate(Operation::Release), (None, Operation::Release));
    }
}
