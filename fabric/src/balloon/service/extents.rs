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
    /// How often its command was due, whether or not its node had joined.
    pub tries: u32,
    /// How often its command was sent.
    pub sent: u32,
    /// How often the request was granted before, at other places or in other epochs.
    pub moves: u32,
}

/// A request that needs a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub session: Session,
    pub number: u64,
    pub bytes: u64,
    /// The request that waits for the grant.
    pub caller: Option<u64>,
    /// How often it was granted before.
    pub moves: u32,
}

impl Record {
    pub fn extent(&self, place: Place) -> Extent {
        Extent { place, bytes: self.bytes, epoch: self.epoch }
    }

    /// The command that its node has to execute next.
    pub fn order(&self, place: Place) -> Option<Order> {
        let extent = self.extent(place);
        match (self.state, self.session) {
            (State::Granting, Some(session)) => Some(Order::Grant { extent, session, number: self.number }),
            (State::Fencing, _) => Some(Order::Fence(extent)),
            (State::Zeroing, _) => Some(Order::Zero(extent)),
            (State::Granting | State::Found | State::Lent, _) => None,
        }
    }

    /// The request behind a grant, which is granted once more.
    fn wanted(&self) -> Option<Wanted> {
        let Record { session, number, bytes, caller, moves, .. } = *self;
        (self.state == State::Granting).then_some(())?;
        Some(Wanted { session: session?, number, bytes, caller, moves: moves.saturating_add(1) })
    }

    /// `leaves`: of its node.
    fn lent(&self, place: Place, leaves: bool) -> Option<Lent> {
        let access = self.access.clone().filter(|_| self.state == State::Lent)?;
        let (extent, number, is_online) = (self.extent(place), self.number, self.is_online);
        Some(Lent { extent, number, is_online, leaves, access })
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
            (record.tries, record.sent) = (0, 0);
            self.due.insert((now, place));
        }
    }

    /// Its node is zeroing an extent: asks again after the shortest pause, since nothing is lost.
    pub(super) fn ask_soon(&mut self, place: Place) {
        let at = self.now.saturating_add(self.config.retry);
        if let Some(record) = self.records.get_mut(&place) {
            if let Some(due) = record.due.replace(at) {
                self.due.remove(&(due, place));
            }
            record.tries = 0;
            self.due.insert((at, place));
        }
    }

    /// Sends no further commands for an extent.
    fn unschedule(&mut self, place: Place) {
        if let Some(due) = self.records.get_mut(&place).and_then(|record| record.due.take()) {
            self.due.remove(&(due, place));
        }
    }

    /// An extent as its holder learns of it. `None`: it is not lent.
    pub(super) fn lent(&self, place: Place) -> Option<Lent> {
        self.records.get(&place)?.lent(place, self.leaves(place.node))
    }

    /// Takes the first free range of `bytes` bytes of a node that answers.
    fn take(&mut self, bytes: u64) -> Option<Place> {
        let (now, silent) = (self.now, self.config.silent_probes);
        let usable = self.nodes.iter_mut().enumerate().filter(|(_, node)| node.is_usable(now, silent));
        usable.into_iter().find_map(|(number, node)| {
            node.free.take(bytes).map(|start| Place { node: number as u16, start })
        })
    }

    /// Begins to grant an extent to a session, and counts it as held. Errors: why that session may not have it, or has no room.
    pub(super) fn grant(&mut self, wanted: Wanted) -> Result<(), Refusal> {
        let Wanted { session, number, bytes, caller, moves } = wanted;
        self.check_room(session.holder, bytes)?;
        let place = self.take(bytes).ok_or(Refusal::NoRoom)?;
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
            tries: 0,
            sent: 0,
            moves,
        };
        self.records.insert(place, record);
        self.attach(session.holder, number, place, bytes);
        self.schedule(place);
        Ok(())
    }

    /// The node has given access.
    pub(super) fn granted(&mut self, place: Place, access: Access) {
        self.unschedule(place);
        let Some(record) = self.records.get_mut(&place) else { return };
        (record.state, record.access) = (State::Lent, Some(access));
        self.counters.lent += 1;
        let caller = record.caller.take();
        if let (Some(caller), Some(lent)) = (caller, self.lent(place)) {
            self.reply(caller, Reply::Reserved(lent));
        }
    }

    /// Grants the same extent under another epoch: the last one came too late.
    pub(super) fn grant_again(&mut self, place: Place) {
        let (epoch, moves_max, leaves) = (self.next_epoch(), self.config.moves_max, self.leaves(place.node));
        let Some(record) = self.records.get_mut(&place) else { return };
        if record.moves >= moves_max || leaves {
            return self.regrant(place);
        }
        record.moves += 1;
        record.epoch = epoch;
        self.schedule(place);
    }

    /// Gives up a grant that its node refuses or does not answer, and looks for another place.
    pub(super) fn regrant(&mut self, place: Place) {
        let Some(record) = self.records.get_mut(&place) else { return };
        let Some(wanted) = record.wanted() else { return };
        record.caller = None;
        self.counters.regranted += 1;
        self.detach(place, false);
        self.fence(place);
        self.place_anew(wanted);
    }

    /// Looks for another place for a grant that has lost its last one.
    pub(super) fn place_anew(&mut self, wanted: Wanted) {
        let placed = if wanted.moves > self.config.moves_max {
            Err(Refusal::NoNode)
        } else if !self.is_current(wanted.session, wanted.number) {
            // A node's report has ended the session, or has an extent for this request: a copy of the request learns which.
            Err(Refusal::Repeated)
        } else {
            self.grant(wanted)
        };
        if let (Err(refusal), Some(caller)) = (placed, wanted.caller) {
            self.refuse(caller, refusal);
        }
    }

    /// Gives up a grant that was due often enough. Returns whether it did.
    pub(super) fn give_up(&mut self, place: Place) -> bool {
        let most = self.config.grants_max;
        let is_given_up = |record: &Record| record.state == State::Granting && record.tries >= most;
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

    /// Removes all extents of a node whose memory is gone. Returns the requests whose grants went with it: they need another place.
    pub(super) fn lose(&mut self, node: u16) -> Vec<Wanted> {
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
            granting.extend(self.records.remove(&place).and_then(|record| record.wanted()));
        }
        granting
    }
}
