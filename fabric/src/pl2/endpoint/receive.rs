//! Receiving: data for the application, and grants.

use super::super::algorithm::{Chosen, waiting_time};
use super::super::frame::{self, Incoming};
use super::super::sender::{Answer, Granted, refuses};
use super::Endpoint;
use crate::common::{AppFrame, Reason, Verdict};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::Control;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::cmp::Ordering;

impl Endpoint {
    pub(super) fn receive(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        let now = self.frames.advance(now);
        self.frames.stats.counters.link_in += 1;
        let done = match frame::classify(frame, &self.config) {
            Ok(Incoming::Data { source, ether_type, sequence, rest }) => {
                let app = AppFrame::new(ether_type, frame.len() - rest.len());
                self.take_data(source, sequence).map(|()| Some(app))
            }
            Ok(Incoming::Grant(from, grant)) => {
                self.take_grant(from, &grant, received_at, now).map(|()| None)
            }
            Ok(Incoming::Notify(source, grant)) => {
                self.stats.counters.notify_in += 1;
                if let Some(sender) = self.find(source) {
                    let wait = Chosen::of(&grant, &self.config, self.config.slot).wait;
                    let slots = self.config.parts_time(self.config.slot, grant.demand);
                    let due = now.saturating_add(wait.min(self.config.wait_max)).saturating_add(slots);
                    // At least this many frames fill these slots, whatever their lengths.
                    let frames = grant.demand.div_ceil(self.config.slot_parts.max(1));
                    self.expected.notified(sender, frames, due);
                }
                Ok(None)
            }
            Ok(Incoming::Plain) => {
                self.frames.stats.counters.best_effort_in += 1;
                let ether_type = EtherType(u16::from_be_bytes([frame[12], frame[13]]));
                Ok(Some(AppFrame::new(ether_type, Ethernet::BYTES)))
            }
            Err(reason) => Err(reason),
        };
        match done {
            Ok(app) => app,
            Err(reason) => {
                self.frames.stats.drop_frame(reason);
                None
            }
        }
    }

    fn take_data(&mut self, source: MacAddr, sequence: Option<u32>) -> Result<(), Reason> {
        if let Some(sequence) = sequence {
            let peer = self.find(source).ok_or(Reason::BadShim)?;
            match self.windows[peer].accept(sequence) {
                Verdict::Fresh { lost } => self.frames.stats.counters.losses_seen += lost,
                Verdict::Restart { lost } => {
                    self.frames.stats.counters.losses_seen += lost;
                    self.frames.stats.counters.peer_restarts += 1;
                }
                Verdict::Duplicate => return Err(Reason::Duplicate),
            }
        }
        if self.config.notify_patience.is_some()
            && let Some(sender) = self.find(source)
        {
            self.expected.came(sender, self.frames.now());
        }
        self.stats.counters.data_in += 1;
        Ok(())
    }

    #[inline(never)]
    fn take_grant(
        &mut self,
        from: MacAddr,
        grant: &Control,
        received_at: Nanos,
        now: Nanos,
    ) -> Result<(), Reason> {
        let d = self.find(from).ok_or(Reason::UnknownPeer)?;
        let answer = self.destinations[d].answer(grant);
        let left_at = match answer {
            Answer::Burst(left_at) | Answer::Release(left_at) => left_at,
            Answer::Duplicate => return Err(Reason::GrtDuplicate),
            Answer::Mismatch => return Err(Reason::GrtMismatch),
            Answer::Other if self.has_asked(grant.id) => {
                self.stats.counters.grt_surplus += 1;
                if grant.demand > 0 && grant.cell / 2 < self.config.lanes && !refuses(grant) {
                    let due = self.release_at(now);
                    self.destinations[d].hold(grant.cell, due);
                    self.activate(d);
                }
                return Ok(());
            }
            Answer::Other => return Err(Reason::GrtUnasked),
        };
        // A timestamp from before the RSV left is invalid.
        let received_at = if received_at < left_at { now } else { received_at.min(now) };
        let delay = received_at.saturating_sub(left_at);
        self.stats.rsv_grt.record(delay, now);
        if let Answer::Release(_) = answer {
            match refuses(grant) {
                true => self.stats.counters.grt_not_now += 1,
                false => self.stats.counters.grt_bare += 1,
            }
            self.ask(d, now);
            return Ok(());
        }
        if refuses(grant) {
            self.stats.counters.grt_not_now += 1;
            // Spread, so that hosts refused together do not ask together again.
            let quarters = 4 + u64::from(grant.id % 8);
            let spread = Nanos(self.stats.rsv_grt.mean().0.saturating_mul(quarters) / 4);
            self.destinations[d].refused(grant.cell, now.saturating_add(spread));
            return Ok(());
        }
        let chosen = Chosen::of(grant, &self.config, self.destinations[d].slot);
        if chosen.wait > self.config.wait_max {
            return Err(Reason::GrtImplausible);
        }
        // Grants of the switch's other pipes take longer, so the least delay of all is that of the own pipe's.
        let delays = if self.destinations[d].far {
            self.far_rsv_grt.record(delay, now);
            &self.far_rsv_grt
        } else {
            &self.stats.rsv_grt
        };
        let least = delays.min().unwrap_or(delay);
        let leave_at = received_at.saturating_add(waiting_time(chosen.wait, least, Nanos::ZERO));
        let destination = &mut self.destinations[d];
        destination.last = Some((chosen.to_t, received_at));
        self.quiet_until = Nanos::ZERO;
        // The switch may have kept slots for a burst that it was asked to let pass.
        let to_t = if grant.unsolicited == 0 { Ordering::Greater } else { chosen.to_t };
        match destination.grant(grant.cell, to_t, leave_at) {
            Granted::Waits => self.stats.counters.grt_used += 1,
            Granted::Done(burst) => {
                self.stats.counters.grt_used += 1;
                let slot = self.config.slot.max(self.destinations[d].slot);
                let reserved = self.config.parts_time(slot, burst.demand);
                self.destinations[d].reserved_until = leave_at.saturating_add(reserved);
                self.destinations[d].ended(burst.flow);
                for _ in 0..burst.frames {
                    if let Some(id) = self.destinations[d].pop_frame() {
                        self.frames.pool.release(id);
                        self.frames.waiting -= 1;
                        self.stats.unsolicited_done += 1;
                    }
                }
                self.leave_unused(d, grant.cell, leave_at, now);
            }
            Granted::Surplus => self.stats.counters.grt_surplus += 1,
        }
        self.ask(d, now);
        Ok(())
    }
}
