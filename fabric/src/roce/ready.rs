//! Whose queue pair sends next. Parties have equal shares of the link, however many queue pairs they have and however much they
//! ask for; so have the queue pairs of each. A party is the host at the other end, or one that is served.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Bytes on the wire that a turn gives: a full frame with headers.
const TURN_BYTES: i64 = 1_600;

/// Whose turns the frames of a queue pair take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The host at the other end.
    Peer(Ipv4Addr),
    /// A host that one of the ends serves, by a number that the adapter's owner gives it.
    Served(u64),
}

/// Queue pairs that may have frames to send, by their party.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    parties: BTreeMap<Party, Shared>,
    /// Parties with queue pairs that are ready, in the order of their turns.
    order: VecDeque<Party>,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    /// Queue pairs that it has, ready or not.
    pairs: usize,
    ready: VecDeque<u32>,
    /// It is in `order`.
    listed: bool,
    /// Bytes that may be sent for it before the others' turns. At 0 or below, the next turn is theirs.
    credit: i64,
}

impl Ready {
    /// There is another queue pair of this party.
    pub fn open(&mut self, party: Party) {
        self.parties.entry(party).or_default().pairs += 1;
    }

    /// A queue pair is gone, ready or not.
    pub fn close(&mut self, party: Party, qpn: u32) {
        let Some(of_party) = self.parties.get_mut(&party) else { return };
        of_party.ready.retain(|other| *other != qpn);
        of_party.pairs -= 1;
        if of_party.pairs == 0 {
            self.parties.remove(&party);
            self.order.retain(|other| *other != party);
        }
    }

    /// A queue pair of a known party has something to send, and is not there yet.
    pub fn add(&mut self, party: Party, qpn: u32) {
        let Some(of_party) = self.parties.get_mut(&party) else { return };
        of_party.ready.push_back(qpn);
        if !std::mem::replace(&mut of_party.listed, true) {
            // Turns without anything to send are not saved up.
            of_party.credit = of_party.credit.min(0);
            self.order.push_back(party);
        }
    }

    /// Whether a queue pair may have something to send.
    pub fn any(&self) -> bool {
        !self.order.is_empty()
    }

    /// The queue pair whose turn it is.
    pub fn first(&mut self) -> Option<u32> {
        loop {
            let of_party = self.parties.get_mut(self.order.front()?)?;
            match of_party.ready.front() {
                None => {
                    of_party.listed = false;
                    self.order.pop_front();
                }
                Some(qpn) if of_party.credit > 0 => return Some(*qpn),
                Some(_) => {
                    of_party.credit += TURN_BYTES;
                    self.order.rotate_left(1);
                }
            }
        }
    }

    /// The first one has sent a frame of `bytes`.
    pub fn has_sent(&mut self, bytes: u64) {
        if let Some(of_party) = self.order.front().and_then(|party| self.parties.get_mut(party)) {
            of_party.ready.rotate_left(1);
            of_party.credit -= bytes as i64;
        }
    }

    /// The first one has nothing to send.
    pub fn is_idle(&mut self) {
        if let Some(of_party) = self.order.front().and_then(|party| self.parties.get_mut(party)) {
            of_party.ready.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_equal_shares_whatever_they_ask_for() {
        let mut ready = Ready::default();
        // The third is served by one of the hosts.
        let host = |n: u8| match n {
            3 => Party::Served(1),
            _ => Party::Peer(Ipv4Addr::new(10, 0, 0, n)),
        };
        for qpn in 0..102 {
            let host = host(if qpn < 100 { 1 } else { qpn as u8 - 98 });
            ready.open(host);
            ready.add(host, qpn);
        }
        let mut sent = [0; 3];
        let mut first = Vec::new();
        for _ in 0..3_000 {
            let Some(qpn) = ready.first() else { break };
            let (group, bytes) = match qpn {
                0..100 => (0, 4_200),
                100 => (1, 1_100),
                _ => (2, 90),
            };
            first.push(qpn);
            sent[group] += bytes;
            ready.has_sent(bytes);
        }
        // Within a frame of each.
        assert!(sent.iter().all(|bytes| bytes.abs_diff(sent[0]) < 2 * 4_200), "{sent:?}");
        let mut of_first = first.iter().filter(|qpn| **qpn < 100).copied().zip(0..);
        assert!(of_first.all(|(qpn, nth)| qpn == nth % 100), "those of a host take turns");
        // One that has nothing to send leaves the line, and comes back.
        ready.close(host(1), 7);
        let mut left = 0;
        while ready.first().is_some() {
            ready.is_idle();
            left += 1;
        }
        assert_eq!(left, 101);
        ready.add(host(2), 100);
        ready.add(host(3), 101);
        ready.close(host(2), 100);
        assert_eq!((ready.first(), ready.parties.len()), (Some(101), 2));
    }
}
