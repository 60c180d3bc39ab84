//! Fair queueing: the frames of a queue leave in turns of their ingress ports.
//!
//! ```text
//!  from port 1 ─▶ ▭▭▭▭▭▭▭▭ ─┐
//!  from port 2 ─▶ ▭ ────────┼─ a full frame's bytes each, in turn ─▶ head of the queue
//!  from port 5 ─▶ ▭▭▭ ──────┘
//! ```
//!
//! Deficit round robin (Shreedhar and Varghese, 1996) by bytes on the wire: while two ports have frames waiting, what they have
//! sent differs by less than a turn and two frames. Credit is not saved: a port whose frames have all left starts
//! again, at the end of the round. Each step is constant work; only a frame that is longer than a turn takes several.
//!
//! A port that was idle doesn't go first. Output that a program makes of frames from several ports (Cowbird's engine in
//! the switch) would overtake itself more often than it must.

use super::plan::QUEUES;
use crate::pool::{NONE, PacketId, Pool};
use p4rack_wire::ethernet::overhead::{FCS, MTU, wire_bytes};
use p4rack_wire::ethernet::{Ethernet, Vlan};

/// Bytes on the wire that a turn gives: a full frame with a tag.
pub(super) const TURN_BYTES: u64 = wire_bytes((Ethernet::BYTES + Vlan::BYTES) as u64 + MTU);

/// Frames from one port.
#[derive(Clone, Copy, Debug)]
struct Line {
    head: PacketId,
    tail: PacketId,
    /// Bytes of the buffer that they hold.
    bytes: u64,
    /// Bytes on the wire that may leave in this turn.
    credit: u64,
    /// The line that has its turn after this one, if there is one.
    next: usize,
}

impl Line {
    const EMPTY: Line = Line { head: NONE, tail: NONE, bytes: 0, credit: 0, next: 0 };

    /// Bytes of its first frame on the wire.
    fn cost(&self, pool: &Pool) -> u64 {
        wire_bytes(pool.get(self.head).meta.charged - FCS)
    }
}

/// Frames of one queue, by ingress port.
#[derive(Clone, Debug, Default)]
struct Round {
    /// By position of that port; as many as have sent something.
    lines: Vec<Line>,
    /// Lines with frames, and the ends of their list. The credit of the first covers its first frame.
    waiting: usize,
    first: usize,
    last: usize,
}

impl Round {
    /// Puts a line at the end of the list.
    fn append(&mut self, at: usize) {
        match self.waiting {
            0 => self.first = at,
            _ => self.lines[self.last].next = at,
        }
        self.last = at;
        self.waiting += 1;
    }

    /// Ends the turn of the first line, which leaves the list or goes to its end.
    fn end_turn(&mut self, stays: bool) {
        let at = self.first;
        self.first = self.lines[at].next;
        self.waiting -= 1;
        if stays {
            self.append(at);
        }
        if self.waiting > 0 {
            self.lines[self.first].credit += TURN_BYTES;
        }
    }

    /// Gives turns until one covers a frame: the next to leave.
    fn choose(&mut self, pool: &Pool) -> PacketId {
        while self.waiting > 0 {
            let line = &self.lines[self.first];
            if line.credit >= line.cost(pool) {
                return line.head;
            }
            self.end_turn(true);
        }
        NONE
    }
}

/// The queues of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    queues: [Round; QUEUES],
}

impl Turns {
    /// Bytes of the buffer that frames from a port hold in a queue.
    pub fn bytes(&self, queue: usize, from: usize) -> u64 {
        self.queues[queue].lines.get(from).map_or(0, |line| line.bytes)
    }

    /// Adds a packet from a port. Returns the packet that leaves the queue next.
    pub fn push(&mut self, pool: &mut Pool, queue: usize, from: usize, id: PacketId) -> PacketId {
        let round = &mut self.queues[queue];
        if round.lines.len() <= from {
            round.lines.resize(from + 1, Line::EMPTY);
        }
        let line = &mut round.lines[from];
        line.bytes += pool.get(id).meta.charged;
        match std::mem::replace(&mut line.tail, id) {
            NONE => {
                line.head = id;
                round.append(from);
                if round.waiting == 1 {
                    round.lines[from].credit = TURN_BYTES;
                }
            }
            tail => pool.get_mut(tail).next = id,
        }
        round.choose(pool)
    }

    /// Removes the packet that leaves a queue next. Returns the one after it, or [`NONE`].
    pub fn pop(&mut self, pool: &Pool, queue: usize) -> PacketId {
        let round = &mut self.queues[queue];
        let line = &mut round.lines[round.first];
        let packet = pool.get(line.head);
        line.credit -= line.cost(pool);
        line.bytes -= packet.meta.charged;
        line.head = packet.next;
        if line.head == NONE {
            (line.tail, line.credit) = (NONE, 0);
            round.end_turn(false);
        }
        round.choose(pool)
    }
}
