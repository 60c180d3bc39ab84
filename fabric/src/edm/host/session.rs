//! Sessions: a memory node's state of a requester belongs to one start of each of the two.
//!
//! ```text
//!  compute node                                 memory node
//!    RREQ, code OPEN: its incarnation ──▶ offers a session that no earlier message has
//!    ◀── RRES: incarnation, session
//!    first message of the session ──────▶ the session begins; the one before it is over
//! ```
//!
//! Ids count in a session, so duplicates are found in it. Messages of other sessions change nothing: neither those of a compute
//! node that has started again since, however late they come, nor those that a memory node got before it started again. An
//! offer alone ends no session, so a late copy of an old opening does no harm. No clocks are compared.

use p4rack_wire::edm::SESSION_BYTES;
use std::collections::VecDeque;

/// Offers that wait for their first message, per requester, at most. A new one replaces the oldest.
const OFFERS_MAX: usize = 4;

/// A session that was offered, or that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    /// Start of the compute node that opened it.
    incarnation: u64,
    number: u16,
    /// Id of the latest message that opened it.
    id: u16,
}

/// To which session a message belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belongs {
    /// To the current session.
    Current,
    /// To one that was offered: it begins, and an earlier one is over.
    Begins {
        /// Whether there was an earlier one.
        again: bool,
    },
    /// To no known session.
    None,
}

/// The sessions of a requester.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    current: Option<Session>,
    /// Sorted by number, the oldest first.
    offers: VecDeque<Session>,
    next: u16,
}

impl Sessions {
    /// None yet; the first one will have this number.
    pub fn new(first: u16) -> Sessions {
        Sessions { current: None, offers: VecDeque::new(), next: first }
    }

    /// A session that exists from the start, without an opening.
    pub fn begun(number: u16, first: u16) -> Sessions {
        Sessions { current: Some(Session { incarnation: 0, number, id: 0 }), ..Sessions::new(first) }
    }

    /// The session for this start of the requester, offered if there is none. `None` if it is a copy of a message that was answered.
    pub fn open(&mut self, incarnation: u64, id: u16) -> Option<u16> {
        let mut all = self.offers.iter_mut().chain(&mut self.current);
        if let Some(known) = all.find(|one| one.incarnation == incarnation) {
            let is_new = known.id != id;
            known.id = id;
            return is_new.then_some(known.number);
        }
        if self.offers.len() == OFFERS_MAX {
            self.offers.pop_front();
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.offers.push_back(Session { incarnation, number, id });
        Some(number)
    }

    /// The session of a message with this number, which begins if it was only offered.
    pub fn enter(&mut self, number: u16) -> Belongs {
        if self.current.is_some_and(|current| current.number == number) {
            return Belongs::Current;
        }
        let Some(nth) = self.offers.iter().position(|offer| offer.number == number) else {
            return Belongs::None;
        };
        let again = self.current.is_some();
        self.current = self.offers.drain(..=nth).next_back();
        Belongs::Begins { again }
    }

    /// The current session.
    pub fn current(&self) -> Option<u16> {
        self.current.map(|current| current.number)
    }
}

/// The answer to an opening.
pub(super) fn answer(incarnation: u64, session: u16) -> Vec<u8> {
    [incarnation, session.into()].iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The session that such an answer offers to this start of a compute node; `None` if it is for another one.
pub(crate) fn offered(answer: &[u8], incarnation: u64) -> Option<u16> {
    let (own, number) = answer.get(..SESSION_BYTES as usize)?.split_at(8);
    (own == incarnation.to_be_bytes()).then(|| u16::from_be_bytes([number[6], number[7]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_ends_no_session_and_its_first_message_does() {
        let mut sessions = Sessions::new(u16::MAX);
        assert_eq!((sessions.open(7, 0), sessions.open(7, 0)), (Some(u16::MAX), None), "a copy");
        assert_eq!(sessions.open(7, 1), Some(u16::MAX), "its answer was lost");
        assert_eq!(sessions.enter(u16::MAX), Belongs::Begins { again: false });
        // The node restarts. Messages of its first start still count until the second one has sent a message.
        assert_eq!((sessions.open(8, 0), sessions.enter(u16::MAX)), (Some(0), Belongs::Current));
        assert_eq!(sessions.enter(0), Belongs::Begins { again: true });
        assert_eq!((sessions.enter(u16::MAX), sessions.enter(1)), (Belongs::None, Belongs::None));
        // A late copy of its first opening.
        assert_eq!((sessions.open(7, 0), sessions.enter(0)), (Some(1), Belongs::Current));
    }

    #[test]
    fn older_offers_are_over_with_the_session_that_begins() {
        let mut sessions = Sessions::new(3);
        for (nth, incarnation) in (0..6).enumerate() {
            assert_eq!(sessions.open(incarnation, 0), Some(3 + nth as u16));
        }
        assert_eq!(sessions.enter(4), Belongs::None, "four offers wait at most");
        assert_eq!(sessions.enter(7), Belongs::Begins { again: false });
        assert_eq!(
            [5, 6, 7, 8].map(|number| sessions.enter(number)),
            [Belongs::None, Belongs::None, Belongs::Current, Belongs::Begins { again: true }]
        );
    }

    #[test]
    fn an_answer_is_for_one_start_of_a_node() {
        assert_eq!(offered(&answer(9, 0x1234), 9), Some(0x1234));
        assert_eq!(offered(&answer(9, 0x1234), 8), None);
        assert_eq!(offered(&answer(9, 0x1234)[..15], 9), None);
    }
}
