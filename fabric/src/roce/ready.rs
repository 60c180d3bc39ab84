//! Whose queue pair sends next. Hosts have equal shares of the link, however many queue pairs they have and however much they
//! ask for; so have the queue pairs of each.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Bytes on the wire that a turn gives: a full frame with headers.
const TURN_BYTES: i64 = 1_600;

/// Queue pairs that may have frames to send, by the host at their other end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ready {
    hosts: BTreeMap<Ipv4Addr, Host>,
    /// Hosts with queue pairs that are ready, in the order of their turns.
    order: VecDeque<Ipv4Addr>,
}

#[derive(Clone, Debug, Default)]
struct Host {
    /// Queue pairs that it has, ready or not.
    pairs: usize,
    ready: VecDeque<u32>,
    /// It is in `order`.
    listed: bool,
    /// Bytes that may be sent to it before the others' turns. At 0 or below, the next turn is theirs.
    credit: i64,
}

impl Ready {
    /// There is another queue pair with this host.
    pub fn open(&mut self, host: Ipv4Addr) {
        self.hosts.entry(host).or_default().pairs += 1;
    }

    /// A queue pair is gone, ready or not.
    pub fn close(&mut self, host: Ipv4Addr, qpn: u32) {
        let Some(of_host) = self.hosts.get_mut(&host) else { return };
        of_host.ready.retain(|other| *other != qpn);
        of_host.pairs -= 1;
        if of_host.pairs == 0 {
            self.hosts.remove(&host);
            self.order.retain(|other| *other != host);
        }
    }

    /// A queue pair of a known host has something to send, and is not there yet.
    pub fn add(&mut self, host: Ipv4Addr, qpn: u32) {
        let Some(of_host) = self.hosts.get_mut(&host) else { return };
        of_host.ready.push_back(qpn);
        if !std::mem::replace(&mut of_host.listed, true) {
            // Turns without anything to send are not saved up.
            of_host.credit = of_host.credit.min(0);
            self.order.push_back(host);
        }
    }

    /// Whether a queue pair may have something to send.
    pub fn any(&self) -> bool {
        !self.order.is_empty()
    }

    /// The queue pair whose turn it is.
    pub fn first(&mut self) -> Option<u32> {
        loop {
            let of_host = self.hosts.get_mut(self.order.front()?)?;
            match of_host.ready.front() {
                None => {
                    of_host.listed = false;
                    self.order.pop_front();
                }
                Some(qpn) if of_host.credit > 0 => return Some(*qpn),
                Some(_) => {
                    of_host.credit += TURN_BYTES;
                    self.order.rotate_left(1);
                }
            }
        }
    }

    /// The first one has sent a frame of `bytes`.
    pub fn has_sent(&mut self, bytes: u64) {
        if let Some(of_host) = self.order.front().and_then(|host| self.hosts.get_mut(host)) {
            of_host.ready.rotate_left(1);
            of_host.credit -= bytes as i64;
        }
    }

    /// The first one has nothing to send.
    pub fn is_idle(&mut self) {
        if let Some(of_host) = self.order.front().and_then(|host| self.hosts.get_mut(host)) {
            of_host.ready.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_equal_shares_whatever_they_ask_for() {
        let mut ready = Ready::default();
        let host = |n: u8| Ipv4Addr::new(10, 0, 0, n);
        for qpn in 0..102 {
            let host = host(if qpn < 100 { 1 } else { qpn as u8 - 98 });
            ready.open(host);
            ready.add(host, qpn);
        }
        let mut sent = [0; 3];
        let mut first = Vec::new();
        for _ in 0..3_000 {
            let Some(qpn) = ready.first() else { break };
            let (who, bytes) = match qpn {
                0..100 => (0, 4_200),
                100 => (1, 1_100),
                _ => (2, 90),
            };
            first.push(qpn);
            sent[who] += bytes;
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
        assert_eq!((ready.first(), ready.hosts.len()), (Some(101), 2));
    }
}
