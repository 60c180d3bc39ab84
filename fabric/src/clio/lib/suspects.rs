//! What a client does with boards that may be dead, and with those that are.

use super::client::{Board, Client};
use super::operation::Ending;
use super::request::{Request, State};
use p4rack_wire::Nanos;

impl Board {
    /// Packets that may leave now.
    pub fn room(&self, now: Nanos) -> u32 {
        match self.silence.is_suspected {
            true => u32::from(now >= self.silence.resume),
            false => self.window.room(now),
        }
    }

    /// When there is room if no packet comes; `None` if only a packet makes room.
    pub fn room_at(&self) -> Option<Nanos> {
        match self.silence.is_suspected {
            true => Some(self.silence.resume),
            false => self.window.room_at(),
        }
    }
}

impl Client {
    /// Packets to a board had no answer within TIMEOUT.
    pub(super) fn suspect(&mut self, board: usize, timeout: Nanos) {
        let silence = &mut self.boards[board].silence;
        if silence.is_suspected || silence.lasts(self.now) < timeout {
            return;
        }
        silence.is_suspected = true;
        let requests = self.requests.iter_mut();
        let is_of_board = |one: &&mut Request| self.seats[usize::from(one.seat)].board == board;
        for request in requests.filter(|one| one.state == State::Active).filter(is_of_board) {
            self.incast.settle(std::mem::take(&mut request.expected_bytes));
        }
    }

    /// An operation has no attempts left. If nothing has come from its board for long enough, that holds for all of the board's.
    pub(super) fn end_unknown(&mut self, slot: u16) {
        let board = self.board_of(slot);
        let silence = &mut self.boards[board].silence;
        if silence.lasts(self.now) < self.config.silence {
            return self.end(slot, Ending::Unknown);
        }
        silence.found = Some(self.now);
        self.close(slot, Ending::Unknown);
        for other in 0..self.config.requests_max {
            if self.requests[usize::from(other)].state == State::Active && self.board_of(other) == board {
                self.give_up(other);
            }
        }
        self.start();
    }

    /// Ends an operation of a board that was found silent.
    pub(super) fn give_up(&mut self, slot: u16) {
        self.counters.given_up += 1;
        self.close(slot, Ending::Unknown);
    }
}
