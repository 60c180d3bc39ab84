//! Compute nodes: their sessions, leases, quotas and requests.

use super::Balloon;
use super::extents::{Record, State, Wanted};
use crate::balloon::{Ask, Extent, Place, Quota, Refusal, Reply, Request, Session, is_extent};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A compute node that has a session, or had one.
#[derive(Clone, Debug, Default)]
pub(super) struct Holder {
    pub instance: u64,
    /// When the session ends; `None`: it has ended.
    pub until: Option<Nanos>,
    /// Bytes of its extents, those that are being granted included.
    pub held_bytes: u64,
    pub places: BTreeSet<Place>,
    /// Places by number of the request.
    numbers: BTreeMap<u64, Place>,
    /// Numbers whose extents have gone, and the number below which all have.
    spent: BTreeSet<u64>,
    floor: u64,
}

impl Holder {
    fn spend(&mut self, number: u64, numbers_max: usize) {
        self.spent.insert(number);
        if self.spent.len() > numbers_max
            && let Some(least) = self.spent.pop_first()
        {
            self.floor = self.floor.max(least.saturating_add(1));
        }
    }
}

impl Balloon {
    pub(super) fn quota(&self, holder: u32) -> Quota {
        self.config.quotas.get(&holder).copied().unwrap_or(self.config.quota)
    }

    /// Bytes that are kept for a compute node which holds `held_bytes`.
    fn promised_to(&self, holder: u32, held_bytes: u64) -> u64 {
        self.quota(holder).reserved_bytes.saturating_sub(held_bytes)
    }

    fn set_held(&mut self, holder: u32, held_bytes: u64) {
        let Some(before) = self.holders.get(&holder).map(|entry| entry.held_bytes) else { return };
        let (old, new) = (self.promised_to(holder, before), self.promised_to(holder, held_bytes));
        self.promised_bytes = self.promised_bytes.saturating_sub(old).saturating_add(new);
        if let Some(entry) = self.holders.get_mut(&holder) {
            entry.held_bytes = held_bytes;
        }
    }

    /// Counts an extent as the holder's.
    pub(super) fn attach(&mut self, holder: u32, number: u64, place: Place, bytes: u64) {
        let Some(entry) = self.holders.get_mut(&holder) else { return };
        entry.places.insert(place);
        entry.numbers.insert(number, place);
        let held_bytes = entry.held_bytes.saturating_add(bytes);
        self.set_held(holder, held_bytes);
    }

    /// Counts an extent as its holder's no more. `is_spent`: copies of the request that reserved it are refused.
    pub(super) fn detach(&mut self, place: Place, is_spent: bool) {
        let Some(Record { session: Some(session), number, bytes, .. }) = self.records.get(&place) else {
            return;
        };
        let (holder, number, bytes) = (session.holder, *number, *bytes);
        let numbers_max = self.config.numbers_max;
        let Some(entry) = self.holders.get_mut(&holder) else { return };
        if !entry.places.remove(&place) {
            return;
        }
        entry.numbers.remove(&number);
        if is_spent {
            entry.spend(number, numbers_max);
        }
        let held_bytes = entry.held_bytes.saturating_sub(bytes);
        self.set_held(holder, held_bytes);
    }

    /// Gives a session another lease.
    pub(super) fn extend(&mut self, holder: u32) {
        let until = self.now.saturating_add(self.config.lease);
        if let Some(entry) = self.holders.get_mut(&holder) {
            if let Some(before) = entry.until.replace(until) {
                self.leases.remove(&(before, holder));
            }
            self.leases.insert((until, holder));
        }
    }

    /// Begins a session, unless there is no room for another compute node. Returns whether it did.
    pub(super) fn begin_session(&mut self, session: Session) -> bool {
        if !self.holders.contains_key(&session.holder) && self.holders.len() >= self.config.holders_max {
            let Some(former) = self.former.pop_first() else { return false };
            self.holders.remove(&former);
        }
        self.former.remove(&session.holder);
        let entry = Holder { instance: session.instance, ..Holder::default() };
        self.holders.insert(session.holder, entry);
        self.extend(session.holder);
        true
    }

    /// Ends a session: all that it holds is fenced.
    pub(super) fn end_session(&mut self, holder: u32) {
        let Some(entry) = self.holders.get_mut(&holder) else { return };
        if let Some(until) = entry.until.take() {
            self.leases.remove(&(until, holder));
        }
        entry.numbers.clear();
        let places = std::mem::take(&mut entry.places);
        for place in places {
            self.fence(place);
        }
        self.set_held(holder, 0);
        self.former.insert(holder);
    }

    /// Whether the session is the compute node's present one. Errors: why not.
    fn check(&self, session: Session) -> Result<(), Refusal> {
        match self.holders.get(&session.holder) {
            Some(entry) if entry.until.is_some() && entry.instance == session.instance => Ok(()),
            Some(entry) if entry.until.is_some() && planted!(self, DeadRenews) => Ok(()),
            Some(entry) if entry.instance > session.instance => Err(Refusal::OldInstance),
            _ => Err(Refusal::NoSession),
        }
    }

    /// Answers a request, or will do so when a node has.
    pub(super) fn serve(&mut self, caller: u64, request: Request) {
        let Request { session, ask } = request;
        let served = match ask {
            Ask::Open => self.open(session).map(Some),
            ask => self.check(session).and_then(|()| match ask {
                Ask::Renew | Ask::Open => {
                    self.extend(session.holder);
                    Ok(Some(self.renewed(session)))
                }
                Ask::Reserve { number, bytes } => self.reserve(caller, session, number, bytes),
                Ask::Online(extent) => self.set_online(session, &extent, true).map(|()| Some(Reply::Done)),
                Ask::Offline(extent) => self.set_online(session, &extent, false).map(|()| Some(Reply::Done)),
                Ask::Return(extent) => self.give_back(session, &extent).map(|()| Some(Reply::Done)),
                Ask::Close => {
                    self.end_session(session.holder);
                    Ok(Some(Reply::Done))
                }
            }),
        };
        match served {
            Ok(Some(reply)) => self.reply(caller, reply),
            Ok(None) => {}
            Err(refusal) => self.refuse(caller, refusal),
        }
    }

    fn open(&mut self, session: Session) -> Result<Reply, Refusal> {
        let entry = self.holders.get(&session.holder).map(|entry| (entry.instance, entry.until.is_some()));
        match entry {
            Some((instance, _)) if instance > session.instance => return Err(Refusal::OldInstance),
            // A copy of the request that opened it.
            Some((instance, true)) if instance == session.instance => {
                self.extend(session.holder);
                return Ok(Reply::Opened(self.config.lease));
            }
            Some((instance, false)) if instance == session.instance => return Err(Refusal::NoSession),
            Some((_, true)) => {
                self.counters.sessions_replaced += 1;
                self.end_session(session.holder);
            }
            Some((_, false)) | None => {}
        }
        match self.begin_session(session) {
            true => Ok(Reply::Opened(self.config.lease)),
            false => Err(Refusal::Full),
        }
    }

    fn renewed(&self, session: Session) -> Reply {
        let places = self.holders.get(&session.holder).into_iter().flat_map(|entry| &entry.places);
        let lent = places.filter_map(|place| self.lent(*place)).collect();
        Reply::Renewed(self.config.lease, lent)
    }

    /// `None`: the reply comes when the node has answered.
    fn reserve(
        &mut self,
        caller: u64,
        session: Session,
        number: u64,
        bytes: u64,
    ) -> Result<Option<Reply>, Refusal> {
        if !is_extent(bytes) {
            return Err(Refusal::Bytes);
        }
        let entry = self.holders.get(&session.holder).ok_or(Refusal::NoSession)?;
        if let Some(place) = entry.numbers.get(&number).copied() {
            return self.reserve_again(caller, place, bytes);
        }
        if entry.spent.contains(&number) || number < entry.floor {
            return Err(Refusal::Number);
        }
        self.grant(Wanted { session, number, bytes, caller: Some(caller), moves: 0 }).map(|()| None)
    }

    /// Whether a compute node may have that many bytes more, beside the bytes reserved for others. Errors: why
    /// not.
    pub(super) fn check_room(&self, holder: u32, bytes: u64) -> Result<(), Refusal> {
        let entry = self.holders.get(&holder).ok_or(Refusal::NoSession)?;
        let staying = entry.held_bytes.saturating_sub(self.leaving_bytes(entry));
        if staying.saturating_add(bytes) > self.quota(holder).limit_bytes {
            return Err(Refusal::Quota);
        }
        if self.records.len() >= self.config.extents_max || entry.places.len() >= self.config.held_max {
            return Err(Refusal::Full);
        }
        let for_others = self.promised_bytes.saturating_sub(self.promised_to(holder, entry.held_bytes));
        match for_others > 0 && self.usable_bytes() < bytes.saturating_add(for_others) {
            true => Err(Refusal::NoRoom),
            false => Ok(()),
        }
    }

    /// Bytes of a compute node's extents that are to move away.
    fn leaving_bytes(&self, entry: &Holder) -> u64 {
        if !self.nodes.iter().any(|node| node.leaves) {
            return 0;
        }
        let leaving = entry.places.iter().filter(|place| self.leaves(place.node));
        leaving.filter_map(|place| Some(self.records.get(place)?.bytes)).sum()
    }

    /// A copy of a Reserve, which gets the same extent.
    fn reserve_again(&mut self, caller: u64, place: Place, bytes: u64) -> Result<Option<Reply>, Refusal> {
        let record = self.records.get(&place).ok_or(Refusal::Number)?;
        if record.bytes != bytes {
            return Err(Refusal::Number);
        }
        self.counters.repeated += 1;
        if let Some(lent) = self.lent(place) {
            return Ok(Some(Reply::Reserved(lent)));
        }
        let record = self.records.get_mut(&place).ok_or(Refusal::Number)?;
        if let Some(before) = record.caller.replace(caller) {
            self.refuse(before, Refusal::Repeated);
        }
        Ok(None)
    }

    /// The session's record of an extent.
    fn held(&mut self, session: Session, extent: &Extent) -> Result<&mut Record, Refusal> {
        let any_epoch = planted!(self, NoEpochInReturn);
        let is_held = |record: &&mut Record| {
            record.state == State::Lent
                && record.session == Some(session)
                && (record.extent(extent.place) == *extent || any_epoch)
        };
        self.records.get_mut(&extent.place).filter(is_held).ok_or(Refusal::NotHeld)
    }

    fn set_online(&mut self, session: Session, extent: &Extent, is_online: bool) -> Result<(), Refusal> {
        self.held(session, extent)?.is_online = is_online;
        Ok(())
    }

    fn give_back(&mut self, session: Session, extent: &Extent) -> Result<(), Refusal> {
        if self.held(session, extent)?.is_online {
            return Err(Refusal::Online);
        }
        self.counters.returned += 1;
        self.detach(extent.place, true);
        self.fence(extent.place);
        Ok(())
    }

    /// Whether an extent that was found is one of a present session, which may not have it twice.
    pub(super) fn is_current(&self, session: Session, number: u64) -> bool {
        let entry = self.holders.get(&session.holder);
        self.check(session).is_ok() && entry.is_some_and(|entry| !entry.numbers.contains_key(&number))
    }
}
