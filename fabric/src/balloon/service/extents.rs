//! Extents: from free to lent and back. The module [`balloon`](super::super) draws their states.

use super::Balloon;
use crate::balloon::{Access, Epoch, Extent, Lent, Order, Place, Refusal, Reply, Session};
use p4rack_wire::Nanos;

/// State of an extent that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its node reported it while the service waits for other nodes.
    Found,
    /// Its node is to give access.
    Granting,
    /// Its holder has access.
    Lent,
    /// Its node is to revoke the access.
    Fencing,
    /// Its node is to fill it with zeros.
    Zeroing,
}

/// An extent that is not free.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub bytes: u64,
    /// Of the grant, or of the fence.
    pub epoch: Epoch,
    pub state: State,
    /// Its holder, or the last one; `None` if it was found fenced.
    pub session: Option<Session>,
    /// Number of the holder's request.
    pub number: u64,
    pub is_online: bool,
    /// While it is lent.
    pub access: Option<Access>,
    /// The request that waits for the grant.
    pub caller: Option<u64>,
    /// When its command is sent again.
    pub due: Option<Nanos>,
    /// How often its command was sent.
    pub sent: u32,
}

impl Record {
    pub fn extent(&self, place: Place) -> Extent {
        Extent { place, bytes: self.bytes, epoch: self.epoch }
    }

    /// What its node has to do.
    pub fn order(&self, place: Place) -> Option<Order> {
        let extent = self.extent(place);
        match (self.state, self.session) {
            (State::Granting, Some(session)) => Some(Order::Grant { extent, session, number: self.number }),
            (State::Fencing, _) => Some(Order::Fence(extent)),
            (State::Zeroing, _) => Some(Order::Zero(extent)),
            (State::Granting | State::Found | State::Lent, _) => None,
        }
    }

    pub fn lent(&self, place: Place) -> Option<Lent> {
        let access = self.access.clone().filter(|_| self.state == State::Lent)?;
        Some(Lent { extent: self.extent(place), number: self.number, is_online: self.is_online, access })
    }
}

impl Balloon {
    /// Has the command of an extent sent now, for the first time.
    pub(super) fn schedule(&mut self, place: Place) {
        let now = self.now;
        if let Some(record) = self.records.get_mut(&place) {
            if let Some(due) = record.due.replace(now) {
                self.due.remove(&(due, place));
            }
            record.sent = 0;
            self.due.insert((now, place));
        }
    }

    /// Sends no further commands for an extent.
    fn unschedule(&mut self, place: Place) {
        if let Some(due) = self.records.get_mut(&place).and_then(|record| record.due.take()) {
            self.due.remove(&(due, place));
        }
    }

    /// Takes the first free range of `bytes` bytes of a node that answers.
    fn take(&mut self, bytes: u64) -> Option<Place> {
        let (now, silent) = (self.now, self.config.silent_probes);
        let usable = self.nodes.iter_mut().enumerate().filter(|(_, node)| node.is_usable(now, silent));
        usable.into_iter().find_map(|(number, node)| {
            node.free.take(bytes).map(|start| Place { node: number as u16, start })
        })
    }

    /// Begins to grant an extent to a session, and counts it as held. Returns whether there was room.
    pub(super) fn grant(&mut self, session: Session, number: u64, bytes: u64, caller: Option<u64>) -> bool {
        let Some(place) = self.take(bytes) else { return false };
        let epoch = self.next_epoch();
        let record = Record {
            bytes,
            epoch,
            state: State::Granting,
            session: Some(session),
            number,
            is_online: false,
            access: None,
            caller,
            due: None,
            sent: 0,
        };
        self.records.insert(place, record);
        self.attach(session.holder, number, place, bytes);
        self.schedule(place);
        true
    }

    /// The node has given access.
    pub(super) fn granted(&mut self, place: Place, access: Access) {
        self.unschedule(place);
        let Some(record) = self.records.get_mut(&place) else { return };
        (record.state, record.access) = (State::Lent, Some(access));
        self.counters.lent += 1;
        if let (Some(caller), Some(lent)) = (record.caller.take(), record.lent(place)) {
            self.reply(caller, Reply::Reserved(lent));
        }
    }

    /// Grants the same extent under another epoch: the last one came too late.
    pub(super) fn grant_again(&mut self, place: Place) {
        let epoch = self.next_epoch();
        if let Some(record) = self.records.get_mut(&place) {
            record.epoch = epoch;
            self.schedule(place);
        }
    }

    /// Gives up a grant that its node refuses or does not answer, and looks for another place.
    pub(super) fn regrant(&mut self, place: Place) {
        let Some(record) = self.records.get_mut(&place) else { return };
        let (session, number, bytes, caller) =
            (record.session, record.number, record.bytes, record.caller.take());
        self.counters.regranted += 1;
        self.detach(place, false);
        self.fence(place);
        self.place_anew(session, number, bytes, caller);
    }

    /// Looks for another place for a grant that has lost its first one.
    pub(super) fn place_anew(
        &mut self,
        session: Option<Session>,
        number: u64,
        bytes: u64,
        caller: Option<u64>,
    ) {
        let has_room = self.records.len() < self.config.extents_max;
        let is_placed = has_room && session.is_some_and(|session| self.grant(session, number, bytes, caller));
        if let Some(caller) = caller.filter(|_| !is_placed) {
            self.refuse(caller, Refusal::NoRoom);
        }
    }

    /// Gives up a grant that was sent often enough. Returns whether it did.
    pub(super) fn give_up(&mut self, place: Place) -> bool {
        let most = self.config.grants_max;
        let is_given_up = |record: &Record| record.state == State::Granting && record.sent >= most;
        if !self.records.get(&place).is_some_and(is_given_up) {
            return false;
        }
        self.close(place.node);
        self.regrant(place);
        true
    }

    /// Begins to revoke the access to an extent. It has left its holder before.
    pub(super) fn fence(&mut self, place: Place) {
        if planted!(self, FreeBeforeFence) {
            return self.free(place);
        }
        let epoch = self.next_epoch();
        let Some(record) = self.records.get_mut(&place) else { return };
        record.epoch = epoch;
        record.state = State::Fencing;
        record.access = None;
        record.is_online = false;
        let caller = record.caller.take();
        self.schedule(place);
        if let Some(caller) = caller {
            self.refuse(caller, Refusal::NoSession);
        }
    }

    /// No access is left.
    pub(super) fn fenced(&mut self, place: Place) {
        self.counters.fenced += 1;
        if let Some(record) = self.records.get_mut(&place) {
            record.state = State::Zeroing;
            self.schedule(place);
        }
    }

    /// The bytes are zeros.
    pub(super) fn free(&mut self, place: Place) {
        self.unschedule(place);
        let Some(record) = self.records.remove(&place) else { return };
        let mut bytes = record.bytes;
        if planted!(self, MergeInUse) {
            let behind = Place { start: place.start + bytes, ..place };
            bytes += self.records.get(&behind).map_or(0, |record| record.bytes);
        }
        self.counters.freed += 1;
        self.nodes[usize::from(place.node)].free.give(place.start, bytes);
    }

    /// Removes all extents of a node whose memory is gone.
    pub(super) fn lose(&mut self, node: u16) {
        let all = Place { node, start: 0 }..=Place { node, start: u64::MAX };
        let places: Vec<Place> = self.records.range(all).map(|(place, _)| *place).collect();
        let mut granting = Vec::new();
        for place in places {
            self.unschedule(place);
            match self.records.get(&place).map(|record| record.state) {
                Some(State::Lent) => {
                    self.counters.lost += 1;
                    self.detach(place, true);
                }
                Some(State::Granting) => self.detach(place, false),
                _ => {}
            }
            granting.extend(self.records.remove(&place).filter(|record| record.state == State::Granting));
        }
        for record in granting {
            self.place_anew(record.session, record.number, record.bytes, record.caller);
        }
    }
}
