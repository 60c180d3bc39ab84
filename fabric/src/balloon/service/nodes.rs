//! Memory nodes: joining, their answers, and their reports.

use super::extents::{Record, State};
use super::{Balloon, End, Phase};
use crate::balloon::free::Free;
use crate::balloon::{
    Answer, EXTENT_BYTES_MIN, Extent, NODE_BYTES_MAX, Place, Report, Reported, Session, Term, Told, Why,
    is_extent,
};
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// The service's record of a memory node.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryNode {
    /// The instance that takes its commands; `None`: it is being joined.
    pub instance: Option<u64>,
    /// The instance that has joined last: its extents are known.
    pub joined: Option<u64>,
    /// The service's count of joins at this node's join, and at its instance's last answer.
    joined_nth: u64,
    heard_nth: u64,
    /// Of the last question to join.
    pub nonce: u64,
    /// The number under which the node has already joined, if it is another one.
    pub same_as: Option<u16>,
    pub bytes: u64,
    pub free: Free,
    /// Commands of `Balloon::calls` since its last answer.
    pub unanswered: u32,
    /// It has given up a grant: nothing is taken from it until then.
    closed_until: Nanos,
    /// It is to go offline: nothing is taken from it, and holders move away.
    pub leaves: bool,
}

impl MemoryNode {
    /// Whether extents are taken from it.
    pub fn is_usable(&self, now: Nanos, silent_probes: u32) -> bool {
        self.instance.is_some()
            && self.unanswered <= silent_probes
            && self.closed_until <= now
            && !self.leaves
    }
}

/// Whether a node may report this: extents that don't overlap, inside of its memory, with epochs of earlier services.
fn is_plausible(report: &Report, term: Term) -> bool {
    let mut end = 0;
    let fits = |reported: &Reported| {
        let is_placed = reported.start >= end && reported.start.is_multiple_of(EXTENT_BYTES_MIN);
        end = reported.start.saturating_add(reported.bytes);
        is_placed && is_extent(reported.bytes) && end <= report.bytes && reported.epoch.term < term
    };
    report.bytes.is_multiple_of(EXTENT_BYTES_MIN)
        && report.bytes <= NODE_BYTES_MAX
        && report.extents.iter().all(fits)
}

impl Balloon {
    /// Free bytes of the nodes from which extents are taken.
    pub(super) fn usable_bytes(&self) -> u64 {
        let usable = self.nodes.iter().filter(|node| node.is_usable(self.now, self.config.silent_probes));
        usable.map(|node| node.free.bytes()).sum()
    }

    /// Has a node go offline, or come back. One that goes offline lends nothing more, and holders of its extents learn with their
    /// renewals that they should move them away. A later service does not know of it. Returns whether there is such a node.
    pub fn set_leaving(&mut self, number: u16, leaves: bool) -> bool {
        let node = self.nodes.get_mut(usize::from(number));
        node.map(|node| node.leaves = leaves && !planted!(self, LeavingLends)).is_some()
    }

    pub(super) fn leaves(&self, number: u16) -> bool {
        self.nodes.get(usize::from(number)).is_some_and(|node| node.leaves)
    }

    /// Takes nothing from a node for a time.
    pub(super) fn close(&mut self, node: u16) {
        let until = self.now.saturating_add(self.config.probe);
        self.nodes[usize::from(node)].closed_until = until;
    }

    pub(super) fn handle_answer(&mut self, number: u16, answer: Answer) {
        match answer.told {
            Told::Joined(report) => return self.handle_report(number, answer.instance, report),
            Told::Stale(term) => return self.handle_stale(term),
            Told::OtherNumber { nonce, node } => {
                return self.handle_other_number(number, answer.instance, nonce, node);
            }
            _ => {}
        }
        let node = &mut self.nodes[usize::from(number)];
        if node.joined != Some(answer.instance) {
            self.counters.late += 1;
            // Late words of an earlier instance, or the first ones of the next.
            if node.instance.take().is_some() {
                self.call_now(number);
            }
            return;
        }
        (node.unanswered, node.heard_nth) = (0, self.counters.joins);
        match answer.told {
            Told::Granted(extent, access) if self.awaits(number, &extent, State::Granting) => {
                self.granted(extent.place, access);
            }
            Told::NotGranted(extent, why) if self.awaits(number, &extent, State::Granting) => {
                self.counters.node_refusals += 1;
                match why {
                    Why::Late => self.grant_again(extent.place),
                    Why::Taken | Why::Full => {
                        self.close(number);
                        self.regrant(extent.place);
                    }
                }
            }
            Told::Fenced(extent) if self.awaits(number, &extent, State::Fencing) => self.fenced(extent.place),
            Told::Zeroed(extent) if self.awaits(number, &extent, State::Zeroing) => self.free(extent.place),
            Told::Refused(_) => self.counters.node_refusals += 1,
            Told::Zeroing(extent) if self.awaits(number, &extent, State::Zeroing) => {
                self.ask_soon(extent.place);
            }
            Told::Alive => {}
            _ => self.counters.late += 1,
        }
    }

    /// Whether an extent is in this state, in this epoch, and its node's.
    fn awaits(&self, number: u16, extent: &Extent, state: State) -> bool {
        let is_awaited = |record: &Record| record.state == state && record.extent(extent.place) == *extent;
        extent.place.node == number && self.records.get(&extent.place).is_some_and(is_awaited)
    }

    /// Joins or probes a node now.
    fn call_now(&mut self, number: u16) {
        self.calls.retain(|(_, node)| *node != number);
        self.calls.insert((self.now, number));
    }

    /// Joins a node again, whatever it has reported: it may have taken commands of another service since.
    fn join_anew(&mut self, number: u16) {
        // A service that starts has given no grants.
        drop(self.lose(number));
        let node = &mut self.nodes[usize::from(number)];
        // Answers to earlier questions are late.
        *node = MemoryNode { nonce: node.nonce + 1, leaves: node.leaves, ..MemoryNode::default() };
        self.call_now(number);
    }

    /// A node knows a larger term.
    fn handle_stale(&mut self, term: Term) {
        if term <= self.term {
            self.counters.late += 1;
        } else if matches!(self.phase, Phase::Starting(_)) && term.number < u64::MAX {
            // An earlier service's: no epoch was given in this term yet.
            self.term.number = term.number + 1;
            (0..self.config.nodes).for_each(|number| self.join_anew(number));
        } else {
            self.stop(End::Superseded(term));
        }
    }

    /// A node has joined under another number. One that is named twice by mistake is found at the start, or when it
    /// restarts and joins under its second number: the extents under its first one are gone. Apart from that, the way
    /// to a node may lead to another one for a while, and the others are served on.
    fn handle_other_number(&mut self, number: u16, instance: u64, nonce: u64, other: u16) {
        if other >= self.config.nodes || other == number {
            self.counters.nonsense += 1;
            return;
        }
        let MemoryNode { joined, joined_nth, .. } = self.nodes[usize::from(other)];
        let node = &mut self.nodes[usize::from(number)];
        if nonce != node.nonce || node.instance.is_some() {
            self.counters.late += 1;
            return;
        }
        node.same_as = Some(other);
        self.counters.same_nodes += 1;
        // Two nodes are different if one has answered since the other one joined.
        let has_moved = node.joined.is_some() && joined == Some(instance) && node.heard_nth < joined_nth;
        if has_moved || matches!(self.phase, Phase::Starting(_)) {
            self.stop(End::SameNode(other.min(number), other.max(number)));
        }
    }

    fn handle_report(&mut self, number: u16, instance: u64, report: Report) {
        let term = self.term;
        let node = &mut self.nodes[usize::from(number)];
        if report.nonce != node.nonce || node.instance.is_some() {
            self.counters.late += 1;
            return;
        }
        (node.unanswered, node.same_as) = (0, None);
        if node.joined == Some(instance) {
            // It has not restarted, so its record stays valid.
            (node.instance, node.heard_nth) = (Some(instance), self.counters.joins);
            return;
        }
        if !is_plausible(&report, term) || report.extents.len() > self.config.extents_max {
            self.counters.nonsense += 1;
            return;
        }
        let granting = self.lose(number);
        let mut free = Free::new(report.bytes);
        for reported in &report.extents {
            free.take_at(reported.start, reported.bytes);
        }
        self.counters.joins += 1;
        let node = &mut self.nodes[usize::from(number)];
        (node.instance, node.joined) = (Some(instance), Some(instance));
        (node.joined_nth, node.heard_nth) = (self.counters.joins, self.counters.joins);
        (node.bytes, node.free, node.closed_until) = (report.bytes, free, Nanos::ZERO);
        let places = self.find(number, report);
        match self.phase {
            Phase::Starting(_) if self.nodes.iter().all(|node| node.instance.is_some()) => self.begin(),
            Phase::Serving => {
                self.adopt(&places);
                self.settle_all(places);
            }
            Phase::Starting(_) | Phase::Ended(_) => {}
        }
        // Now the node may have room for them.
        granting.into_iter().for_each(|wanted| self.place_anew(wanted));
    }

    /// Takes over a node's report.
    fn find(&mut self, node: u16, report: Report) -> Vec<Place> {
        let mut places = Vec::with_capacity(report.extents.len());
        for Reported { start, bytes, epoch, lent } in report.extents {
            let place = Place { node, start };
            let (session, number, access) = match lent {
                Some((session, number, access)) => (Some(session), number, Some(access)),
                None => (None, 0, None),
            };
            let record = Record {
                bytes,
                epoch,
                state: State::Found,
                session,
                number,
                // Nothing is known: its holder takes it offline before it returns it.
                is_online: true,
                access,
                caller: None,
                due: None,
                tries: 0,
                sent: 0,
                moves: 0,
            };
            self.records.insert(place, record);
            self.counters.found += 1;
            places.push(place);
        }
        places
    }

    /// Begins to serve. The compute nodes that hold extents get a lease each.
    pub(super) fn begin(&mut self) {
        self.phase = Phase::Serving;
        let found: Vec<Place> = self.records.keys().copied().collect();
        self.adopt(&found);
        self.settle_all(found);
    }

    /// Begins the sessions that hold extents which were found, unless the compute node has one, or a later one has ended. An earlier
    /// session of the compute node ends. A session for which there is no room loses its extents.
    fn adopt(&mut self, found: &[Place]) {
        let mut latest: BTreeMap<u32, u64> = BTreeMap::new();
        let sessions = found.iter().filter_map(|place| self.records.get(place)?.session);
        for Session { holder, instance } in sessions {
            let entry = latest.entry(holder).or_default();
            *entry = instance.max(*entry);
        }
        for (holder, instance) in latest {
            let known = self.holders.get(&holder).map(|entry| entry.instance);
            if known.is_some_and(|known| known >= instance) {
                continue;
            }
            self.end_session(holder);
            self.counters.adopted += u64::from(self.begin_session(Session { holder, instance }));
        }
    }

    /// Of two extents for the same request, the holder knows the later one: settle that one first.
    fn settle_all(&mut self, found: Vec<Place>) {
        let epoch = |place: Place| Some((self.records.get(&place)?.epoch, place));
        let mut found: Vec<_> = found.into_iter().filter_map(epoch).collect();
        found.sort_unstable();
        found.into_iter().rev().for_each(|(_, place)| self.settle(place));
    }

    /// An extent that was found is its holder's, or is fenced.
    fn settle(&mut self, place: Place) {
        let Some(record) = self.records.get_mut(&place) else { return };
        let (session, number, bytes) = (record.session, record.number, record.bytes);
        match session {
            Some(session) if self.is_current(session, number) => {
                if let Some(record) = self.records.get_mut(&place) {
                    record.state = State::Lent;
                }
                self.attach(session.holder, number, place, bytes);
            }
            _ => self.fence(place),
        }
    }
}
