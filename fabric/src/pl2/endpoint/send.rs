//! Sending: reservations, and bursts in their slots.

use super::super::algorithm::{goes_unsolicited, waiting_time};
use super::super::frame::{self, Rsv};
use super::super::sender::{Burst, Slots, State, Wanted};
use super::super::{Mode, full_frame_wire_bytes};
use super::{Endpoint, Scheduled};
use crate::common::{FrameId, Item};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;

/// Counter mode: multiples of `release_after` to wait for a cell whose frames have left; if they arrive, it
/// holds nothing.
const SENT_PATIENCE: u64 = 64;

impl Endpoint {
    /// Does due work at each destination.
    pub(super) fn handle_due(&mut self, now: Nanos) {
        let mut idle = false;
        for at in 0..self.active.len() {
            let d = self.active[at];
            idle |= !self.destinations[d].is_active();
            if self.destinations[d].due() > now {
                continue;
            }
            self.quiet_until = Nanos::ZERO;
            while let Some((cell, demand)) = self.destinations[d].take_overdue(now, self.next_id) {
                self.stats.counters.rsv_repeated += 1;
                self.push_rsv(d, cell, demand, false, now);
            }
            if self.destinations[d].notice_passed(now) && !self.to_ask.contains(&d) {
                self.to_ask.push(d);
            }
            let later = self.release_at(now);
            while let Some(cell) = self.destinations[d].take_release(now, later, self.next_id) {
                self.push_rsv(d, cell, 0, false, now);
            }
        }
        if idle {
            let destinations = &self.destinations;
            self.active.retain(|d| destinations[*d].is_active());
        }
    }

    /// Requests reservations as long as frames wait and the limit of those in flight permits.
    pub(super) fn ask(&mut self, d: usize, now: Nanos) {
        if !self.destinations[d].may_ask(now) {
            return;
        }
        let fresh = self.config.fresh.unwrap_or(Nanos(self.stats.rsv_grt.mean().0.saturating_mul(2)));
        let slots = self.slots();
        loop {
            let destination = &mut self.destinations[d];
            let first = destination.bursts().is_empty();
            let Some(Wanted { flow, frames, demand }) = destination.next_wanted(slots, now) else { return };
            // A long burst beside those of others would be a queue at the switch.
            let is_short = u64::from(demand) <= slots.piece * slots.parts;
            let unsolicited = first && is_short && self.goes_unsolicited(d, now, fresh);
            let Some(cell) = self.destinations[d].take_cell(now) else { return };
            let (id, state) = (self.next_id, State::Asked { tries: 0, deadline: None });
            let burst = Burst { cell, id, left_at: None, frames, demand, flow, unsolicited, state };
            self.destinations[d].push(burst);
            self.activate(d);
            self.push_rsv(d, cell, demand, unsolicited, now);
            if !unsolicited {
                continue;
            }
            for at in 0..usize::from(frames) {
                let Some(id) = self.destinations[d].covered(at) else { break };
                self.frames.pool.hold(id);
                self.push_scheduled((d, cell), id, true, now, None);
            }
        }
    }

    /// Whether the next burst, with nothing before it, is sent together with its RSV. With something before it, frames
    /// of one destination could overtake each other.
    fn goes_unsolicited(&self, d: usize, now: Nanos, fresh: Nanos) -> bool {
        let destination = &self.destinations[d];
        let clear = || destination.reserved_until <= now && self.frames.nic.pending(now) <= self.config.slot;
        !destination.far
            && goes_unsolicited(destination.last, now, fresh)
            && (!self.config.pace_unsolicited || clear())
    }

    /// Whether short frames share slots. Only clock mode does not count frames.
    fn packs(&self) -> bool {
        self.config.pack && self.config.mode == Mode::Clock
    }

    /// Bytes on the wire of a full frame with its sequence number, if there are some.
    fn full_bytes(&self) -> u64 {
        full_frame_wire_bytes(self.config.shim || self.config.numbered)
    }

    /// Bytes of a slot that an application's frame takes.
    pub(super) fn slot_bytes(&self, frame_bytes: usize) -> u32 {
        let full = self.full_bytes();
        let own = || wire_bytes(frame_bytes as u64 + frame::added_bytes(&self.config));
        if self.packs() { own().min(full) as u32 } else { full as u32 }
    }

    fn slots(&self) -> Slots {
        let (bytes, config) = (self.full_bytes(), &self.config);
        let (parts, k) = (config.slot_parts.into(), config.k.into());
        Slots { bytes, parts, k, piece: config.piece.map_or(k, u64::from) }
    }

    fn push_rsv(&mut self, d: usize, cell: u8, demand: u8, unsolicited: bool, now: Nanos) {
        let id = self.take_id();
        self.frames.nic.push_control((d, Rsv { id, cell, demand, unsolicited }), now);
        self.quiet_until = Nanos::ZERO;
    }

    /// Hands granted bursts to the NIC, earliest first, by equation 1 with the NIC's backlog as `pendingDataDelay`.
    ///
    /// Sending does not move the end of the NIC's queue, so no burst becomes due earlier by it.
    fn hand_off(&mut self, now: Nanos) {
        loop {
            let granted = self.active.iter();
            let first = granted.filter_map(|d| Some((self.destinations[*d].leave_at()?, *d))).min();
            let Some((leave_at, d)) = first else {
                self.quiet_until = Nanos::MAX;
                return;
            };
            if waiting_time(leave_at.saturating_sub(now), Nanos::ZERO, self.frames.nic.pending(now))
                > Nanos::ZERO
            {
                self.quiet_until = leave_at;
                return;
            }
            let Some(burst) = self.destinations[d].pop() else { return };
            let frames = match self.packs() {
                false => burst.frames,
                true => {
                    let slots = self.slots();
                    self.destinations[d].fitting(&burst, slots)
                }
            };
            let mut sent = 0;
            while sent < frames
                && let Some(id) = self.destinations[d].pop_frame()
            {
                let opens = (sent == 0).then_some(burst.flow);
                self.push_scheduled((d, burst.cell), id, false, leave_at, opens);
                sent += 1;
            }
            let destination = &mut self.destinations[d];
            destination.passed_over = sent == 0 && destination.covered(0).is_some();
            if sent > 0 {
                destination.in_nic += 1;
            } else {
                self.destinations[d].ended(burst.flow);
                self.leave_unused(d, burst.cell, leave_at, now);
            }
            self.ask(d, now);
        }
    }

    /// Records that a burst sends nothing in its slots.
    pub(super) fn leave_unused(&mut self, d: usize, cell: u8, starts_at: Nanos, now: Nanos) {
        let due = self.release_at(now);
        self.destinations[d].unused(cell, starts_at, due);
        self.activate(d);
    }

    fn push_scheduled(
        &mut self,
        (d, cell): (usize, u8),
        id: FrameId,
        unsolicited: bool,
        ready: Nanos,
        opens_burst: Option<u8>,
    ) {
        let bytes = self.frames.pool.len(id) as u64 + frame::added_bytes(&self.config);
        let data = Scheduled { frame: id, destination: d, cell, unsolicited, opens_burst };
        let destination = &mut self.destinations[d];
        match unsolicited {
            true => destination.unsolicited_in_nic += 1,
            false => destination.scheduled_in_nic += 1,
        }
        self.frames.nic.push_scheduled(data, ready, wire_bytes(bytes));
        self.quiet_until = Nanos::ZERO;
    }

    /// See [`Machine::poll_link`](crate::Machine::poll_link).
    pub(super) fn send(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        let now = self.frames.advance(now);
        while let Some(d) = self.to_ask.pop() {
            self.ask(d, now);
        }
        if self.quiet_until <= now {
            self.hand_off(now);
        }
        let (item, ready) = self.frames.nic.next(now)?;
        match item {
            Item::Control((destination, rsv)) => self.send_rsv(destination, &rsv, now, out),
            Item::Scheduled(data) => self.send_scheduled(data, ready, now, out),
            Item::BestEffort(data) => {
                self.frames.write_best_effort(data, out);
                if let Some(d) = data.destination {
                    self.destinations[d].unscheduled -= 1;
                }
            }
        }
        self.frames.sent(out, ready, now);
        Some(())
    }

    fn send_rsv(&mut self, d: usize, rsv: &Rsv, now: Nanos, out: &mut Vec<u8>) {
        frame::write_rsv(out, &self.config, self.destinations[d].mac, rsv);
        match rsv.demand {
            0 => self.stats.counters.rsv_bare += 1,
            _ => self.stats.counters.rsv_out += 1,
        }
        let (patience, most) = (self.patience(), self.config.grt_timeout_max);
        self.destinations[d].left(rsv.id, now, |tries| {
            let wait = Nanos(patience.0.saturating_mul(1 << tries.min(20))).min(most).max(Nanos(1));
            now.saturating_add(wait)
        });
    }

    fn send_scheduled(&mut self, data: Scheduled, ready: Nanos, now: Nanos, out: &mut Vec<u8>) {
        let d = data.destination;
        let destination = &mut self.destinations[d];
        let stored = self.frames.pool.get_mut(data.frame);
        let sequence = self.config.shim.then(|| stored.note.sequence(&mut destination.next_sequence));
        let mark = (data.cell, data.unsolicited);
        frame::write_data(out, &self.config, (&stored.bytes, stored.len), sequence, mark);
        let mut may_ask = data.opens_burst.is_some();
        if data.unsolicited {
            stored.note.went_unsolicited = true;
            destination.unsolicited_in_nic -= 1;
            may_ask |= destination.unsolicited_in_nic == 0;
            self.stats.counters.unsolicited_out += 1;
        } else {
            destination.scheduled_in_nic -= 1;
            self.frames.waiting -= 1;
            self.stats.counters.scheduled_out += 1;
            self.stats.counters.resent_out += u64::from(stored.note.went_unsolicited);
        }
        if let Some(flow) = data.opens_burst {
            self.stats.lateness.record(now.saturating_sub(ready), now);
            let patience = Nanos(self.config.release_after.0.saturating_mul(SENT_PATIENCE));
            destination.begun(data.cell, now.saturating_add(patience));
            destination.ended(flow);
            if self.config.mode == Mode::Counter {
                self.activate(d);
            }
        }
        self.frames.pool.release(data.frame);
        if may_ask {
            self.ask(d, now);
        }
    }
}
