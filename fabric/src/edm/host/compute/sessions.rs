//! Sessions with memory nodes, as the compute node sees them: opened, confirmed, lost.

use super::{ANSWERED, Active, Ask, ComputeNode, Outcome, Request, WRITE, Waiting};
use crate::edm::host::session;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Message, SESSION_BYTES, Status};

/// Whether an answer offers a session to this start of a node.
pub(super) fn is_offered(answer: &[u8], incarnation: u64) -> bool {
    session::offered(answer, incarnation).is_some()
}

impl ComputeNode {
    /// Begins a session with a memory node, as if messages had been exchanged: racks may start in a steady state.
    pub fn begin_session(&mut self, with: u16, session: u16) {
        self.peers.entry(with).or_default().session = Some(session);
    }

    /// The session with this memory node, if there is one.
    pub fn session(&self, with: u16) -> Option<u16> {
        self.peers.get(&with)?.session
    }

    /// Reason of the last write that this memory node is known to have refused in the session; `None` if there is none.
    pub fn refused_why(&self, by: u16) -> Option<Status> {
        self.peers.get(&by)?.refused_why
    }

    /// Requests a session, or a confirmation of the existing one. False if a request is in flight, or no lane is free.
    pub(super) fn open(&mut self, to: u16) -> bool {
        let peer = self.peers.entry(to).or_default();
        let active = &peer.active[ANSWERED];
        if active.len() >= usize::from(self.config.active_per_pair)
            || active.values().any(|active| active.token.is_none())
        {
            return false;
        }
        let Some(id) = peer.free_id(ANSWERED, self.config.active_per_pair) else { return false };
        let deadline = self.now.saturating_add(self.config.timeout);
        let what = (0, self.incarnation, Request::Read(SESSION_BYTES));
        peer.active[ANSWERED].insert(id, Active::new(None, 0, what, 0, deadline));
        self.asks.push_back(Ask { to, class: ANSWERED, id });
        true
    }

    /// Takes the answer to an opening, which names the session.
    pub(super) fn opened(&mut self, from: u16, message: &Message, answer: &[u8]) {
        let Some(session) = session::offered(answer, self.incarnation) else { return };
        let peer = self.peers.entry(from).or_default();
        peer.active[ANSWERED].remove(&message.id);
        peer.confirms = 0;
        if peer.session != Some(session) {
            if let Some(old) = peer.session {
                self.session_lost(from, old);
            }
            let peer = self.peers.entry(from).or_default();
            (peer.session, peer.refused, peer.refused_why) = (Some(session), 0, None);
        }
        self.learn(from, session, message);
        self.fill(from, WRITE);
        self.fill(from, ANSWERED);
    }

    /// Notes an answer's count of refused writes.
    pub(super) fn learn(&mut self, from: u16, session: u16, answer: &Message) {
        let peer = self.peers.entry(from).or_default();
        if peer.session == Some(session) {
            let more = answer.key.saturating_sub(peer.refused);
            self.counters.writes_refused += u64::from(more);
            peer.refused = peer.refused.max(answer.key);
            let why = u8::try_from(answer.address).ok().and_then(Status::of);
            peer.refused_why = why.filter(|_| peer.refused > 0);
        }
    }

    /// Notes that a memory node no longer knows this session.
    pub(super) fn session_lost(&mut self, at: u16, session: u16) {
        let peer = self.peers.entry(at).or_default();
        if peer.session == Some(session) {
            self.counters.sessions_lost += 1;
            (peer.session, peer.confirm, peer.confirms) = (None, None, 0);
        }
    }

    /// Handles a request refused because of its session. A read is repeated in a new one. A copy of an atomic operation may
    /// have been executed before the memory node restarted.
    pub(super) fn ask_elsewhere(&mut self, to: u16, id: u16) {
        let (retries, peer) = (self.config.retries, self.peers.entry(to).or_default());
        let active = peer.active[ANSWERED].get(&id);
        let Some((Active { key, address, request, retries: tried, .. }, token)) =
            active.and_then(|active| Some((active, active.token?)))
        else {
            return;
        };
        if !matches!(request, Request::Read(_)) || *tried >= retries {
            return self.finish(to, ANSWERED, id, Outcome::Null);
        }
        let (key, address, request, since) = (*key, *address, request.clone(), self.now);
        let again = Waiting { token, key, address, request, since, retries: tried + 1 };
        peer.active[ANSWERED].remove(&id);
        peer.waiting[ANSWERED].push_front(again);
        self.fill(to, ANSWERED);
    }

    /// Handles an opening without an answer. Without a session, requests end once they have waited for the time of all retries.
    pub(super) fn not_opened(&mut self, to: u16, id: u16) {
        let (timeout, retries, now) = (self.config.timeout, self.config.retries, self.now);
        let confirm_at = self.confirm_at();
        let peer = self.peers.entry(to).or_default();
        peer.active[ANSWERED].remove(&id);
        if peer.session.is_some() {
            peer.confirms += 1;
            let gives_up = peer.confirms > retries;
            if gives_up {
                peer.confirms = 0;
                self.counters.unconfirmed += 1;
            }
            peer.confirm = if gives_up { None } else { confirm_at };
            return self.fill(to, ANSWERED);
        }
        for (class, times) in [(WRITE, u64::from(retries) + 1), (ANSWERED, 1)] {
            let most = timeout.0.saturating_mul(times);
            while let Some(waiting) =
                peer.waiting[class].pop_front_if(|waiting| now.saturating_sub(waiting.since).0 >= most)
            {
                self.counters.timeouts += 1;
                self.completions.push_back((waiting.token, Outcome::Null));
            }
        }
        self.fill(to, WRITE);
    }

    /// Requests confirmation of sessions with unconfirmed writes.
    pub(super) fn confirm(&mut self) {
        let unsure = self.peers.iter().filter(|(_, peer)| peer.confirm.is_some_and(|at| at <= self.now));
        for to in unsure.map(|(to, _)| *to).collect::<Vec<_>>() {
            let confirm = if self.open(to) { None } else { self.confirm_at() };
            self.peers.entry(to).or_default().confirm = confirm;
        }
    }

    /// Time at which to ask whether a write sent now was accepted.
    pub(super) fn confirm_at(&self) -> Option<Nanos> {
        self.config.confirm.map(|after| self.now.saturating_add(after))
    }
}
