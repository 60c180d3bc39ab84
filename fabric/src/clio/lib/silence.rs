//! Boards that have fallen silent.
//!
//! ```text
//!   a packet leaves ──── TIMEOUT ───▶ suspected: two packets a TIMEOUT, retries first; its answers don't count as expected
//!        │                                    │
//!        └──── all retries of one operation ──┴──▶ silent: all that waits for the board ends as unknown
//!
//!   a packet of the board comes ─▶ heard: as before
//! ```
//!
//! Each operation of a board that is dead would wait for retries of its own, and for its turn in a window that shrinks to a pause. So one
//! operation's retries decide for all that have come by then. What comes later begins with two packets a TIMEOUT, of that operation and of
//! another, which may have an answer, and again, the first operation whose retries are over decides for all. Answers that a dead board
//! owes take no room in the incast window from those of others.

use p4rack_wire::Nanos;

/// What a client has heard of a board.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// When the first packet left since one has come.
    asked: Option<Nanos>,
    /// Whether there was none for a TIMEOUT since then.
    pub is_suspected: bool,
    /// While it is suspected: when the next packet may leave, beside retries of what may have been executed.
    pub resume: Nanos,
    /// When it was found silent last, unless it was heard since.
    pub found: Option<Nanos>,
}

impl Silence {
    /// A packet has left.
    pub fn sent(&mut self, now: Nanos) {
        self.asked.get_or_insert(now);
    }

    /// A packet has come.
    pub fn heard(&mut self) {
        *self = Silence::default();
    }

    /// Whether the board may be dead.
    pub fn is_suspected(&self) -> bool {
        self.is_suspected
    }

    /// Whether the board was found silent after this.
    pub fn includes(&self, admitted: Nanos) -> bool {
        self.found.is_some_and(|found| admitted < found)
    }

    /// How long nothing has come although something had left.
    pub fn lasts(&self, now: Nanos) -> Nanos {
        self.asked.map_or(Nanos::ZERO, |asked| now.saturating_sub(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_ends_the_silence() {
        let mut silence = Silence::default();
        silence.sent(Nanos(10));
        silence.sent(Nanos(500));
        assert_eq!(silence.lasts(Nanos(1_010)), Nanos(1_000));
        silence.is_suspected = true;
        silence.found = Some(Nanos(1_010));
        assert!(silence.includes(Nanos(900)) && !silence.includes(Nanos(1_010)));
        silence.heard();
        assert!(!silence.is_suspected() && !silence.includes(Nanos(900)));
        assert_eq!(silence.lasts(Nanos(5_000)), Nanos::ZERO);
        silence.sent(Nanos(6_000));
        assert_eq!(silence.lasts(Nanos(6_100)), Nanos(100));
    }
}
