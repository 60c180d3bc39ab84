//! The endpoint: what a host agent drives. It joins the queues, the bursts, the NIC and the
//! receiving side.

use super::algorithm::{Chosen, goes_unsolicited, waiting_time};
use super::dedup::{self, Window};
use super::directory::Directory;
use super::expected::Expected;
use super::frame::{self, Incoming, Rsv};
use super::nic::{Data, Item, Nic};
use super::pool::{FrameId, Pool};
use super::reservations::{Answer, Reservations};
use super::sender::{Burst, Destination, Granted, Slots, State};
use super::{Config, Peer, Reason, Scheme, Stats, full_frame_wire_bytes};
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::{Control, NOT_NOW};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::VecDeque;

/// Most reservations in flight a destination that threads make.
const IN_FLIGHT_MAX: usize = 64;

/// What the machine itself reads of an application's frame: the Ethernet header.
const PL2_SEES: usize = 14;

/// Where a frame from the link has one for the application: the addresses stand at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppFrame {
    /// What the rest is.
    pub ether_type: EtherType,
    /// Where the rest starts.
    start: u16,
}

impl AppFrame {
    /// What follows the EtherType, of the frame from the link that this was said of.
    #[inline]
    pub fn rest<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        frame.get(usize::from(self.start)..).unwrap_or_default()
    }

    /// Addresses, EtherType and rest of that frame.
    pub fn parts<'f>(&self, frame: &'f [u8]) -> (&'f [u8], [u8; 2], &'f [u8]) {
        (frame.get(..12).unwrap_or_default(), self.ether_type.0.to_be_bytes(), self.rest(frame))
    }
}

/// A host's PL2 machine: between the application's frames and the rack's link, NIC included.
///
/// Frames to a known peer go in reserved slots, everything else as best effort, untagged. Handle
/// all events at hand, then call `poll_link` and `poll_app` until they say false, then sleep until
/// `next_timeout`. Frames handed over together share reservations: the RSV is made at the poll.
/// Times that run backwards count as standing still.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
    /// Sorted by address.
    destinations: Vec<Destination>,
    directory: Directory,
    /// What came from each destination.
    windows: Vec<Window>,
    pool: Pool,
    nic: Nic,
    reservations: Reservations,
    expected: Expected,
    app_queue: VecDeque<FrameId>,
    /// Destinations with new frames for which no reservation was asked yet.
    to_ask: Vec<usize>,
    /// Destinations at which something may be due, in order: what is asked often looks at these alone.
    active: Vec<usize>,
    /// Frames of the application taken and not yet gone.
    waiting: usize,
    /// Of these, best effort to nobody known.
    waiting_unknown: usize,
    bursts_made: u64,
    /// Before this time no burst is to be handed to the NIC, unless something about bursts or its queues changes.
    quiet_until: Nanos,
    now: Nanos,
    stats: Stats,
}

impl Endpoint {
    /// A fresh endpoint at `now`. `seed` gives the first sequence numbers and reservation numbers.
    /// What [`Config::check`] refuses is brought to the nearest value that works.
    pub fn new(mut config: Config, seed: u64, now: Nanos) -> Self {
        config.k = config.k.max(1);
        config.slot_parts = match config.scheme {
            Scheme::Clock => config.slot_parts.clamp(1, 255 / config.k),
            Scheme::Counter | Scheme::Off => 1,
        };
        config.in_flight = config.in_flight.max(1);
        config.mtu = config.mtu.min(9000);
        config.time_unit = config.time_unit.max(Nanos(1));
        let own = config.mac;
        config.peers.retain(|peer| peer.mac != own && !peer.mac.is_group());
        config.peers.sort_by_key(|peer| peer.mac);
        config.peers.dedup_by_key(|peer| peer.mac);
        let mut random = SplitMix(seed);
        let first_id = random.next() as u32;
        let mut destination = |peer: &Peer| {
            let mut destination = Destination::new(peer.mac, peer.slot, random.next() as u32);
            destination.in_flight = config.in_flight;
            destination
        };
        let destinations: Vec<_> = config.peers.iter().map(&mut destination).collect();
        let open_max = 64 + 2 * destinations.len().saturating_mul(config.in_flight.clamp(IN_FLIGHT_MAX, 256));
        Endpoint {
            windows: vec![Window::new(); destinations.len()],
            directory: Directory::new(destinations.iter().map(|destination| destination.mac)),
            destinations,
            pool: Pool::new(config.snap_bytes.max(PL2_SEES)),
            nic: Nic::new(config.rate_bps, config.catch_up),
            reservations: Reservations::new(config.scheme == Scheme::Counter, first_id, open_max),
            expected: Expected::new(config.peers.len(), config.notify_patience),
            app_queue: VecDeque::new(),
            to_ask: Vec::new(),
            active: Vec::new(),
            waiting: 0,
            waiting_unknown: 0,
            bursts_made: 0,
            quiet_until: Nanos::ZERO,
            now,
            stats: Stats::new(config.delay_window),
            config,
        }
    }

    /// Takes an Ethernet frame (no FCS) from the application side.
    pub fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        let now = self.advance(now);
        self.stats.counters.app_in += 1;
        if let Err(reason) = self.accept(frame, now) {
            self.stats.drop_frame(reason);
        }
    }

    fn accept(&mut self, frame: &[u8], now: Nanos) -> Result<(), Reason> {
        let address = frame::check_app(frame, &self.config)?;
        let destination = self.find(address);
        match destination {
            Some(d) if self.destinations[d].waiting() >= self.config.queue_limit_frames => {
                return Err(Reason::QueueFull);
            }
            None if self.waiting_unknown >= self.config.best_effort_limit_frames => {
                return Err(Reason::BestEffortFull);
            }
            _ if self.waiting >= self.config.total_limit_frames => return Err(Reason::TotalFull),
            _ => {}
        }
        let id = self.pool.store(&[frame]);
        self.waiting += 1;
        let data = Data { frame: id, destination, unsolicited: false, ready: now, opens_burst: false };
        let Some(d) = destination else {
            self.waiting_unknown += 1;
            self.nic.push_best_effort(data);
            return Ok(());
        };
        if self.config.scheme == Scheme::Off || !self.config.reserve {
            self.destinations[d].unscheduled += 1;
            self.nic.push_best_effort(data);
        } else {
            let destination = &mut self.destinations[d];
            destination.queue.push_back(id);
            // Else it is asked when a reservation has come to its end.
            if destination.may_ask() && !self.to_ask.contains(&d) {
                self.to_ask.push(d);
            }
        }
        let longest = self.destinations[d].waiting() as u64;
        self.stats.queue_max_frames = self.stats.queue_max_frames.max(longest);
        Ok(())
    }

    /// Takes an Ethernet frame (no FCS, VLAN tag in place) from the link; `received_at` is when the
    /// kernel or the NIC saw it.
    pub fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        let Some(app) = self.receive(frame, received_at, now) else { return };
        if self.app_queue.len() >= self.config.app_limit_frames {
            return self.stats.drop_frame(Reason::AppQueueFull);
        }
        let (addresses, ether_type, rest) = app.parts(frame);
        self.app_queue.push_back(self.pool.store(&[addresses, &ether_type, rest]));
    }

    /// Like [`handle_link`](Self::handle_link), of a frame from which the application takes its own at once, if there is one in it:
    /// nothing waits for [`poll_app`](Self::poll_app) and nothing is copied.
    #[inline]
    pub fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        let app = self.receive(frame, received_at, now)?;
        self.stats.counters.app_out += 1;
        Some(app)
    }

    fn receive(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        let now = self.advance(now);
        self.stats.counters.link_in += 1;
        let done = match frame::classify(frame, &self.config) {
            Ok(Incoming::Data { source, ether_type, sequence, rest }) => {
                let start = (frame.len() - rest.len()) as u16;
                self.take_data(source, sequence).map(|()| Some(AppFrame { ether_type, start }))
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
                    // Whatever their lengths, no fewer frames fill these slots.
                    let frames = grant.demand.div_ceil(self.config.slot_parts.max(1));
                    self.expected.notified(sender, frames, due);
                }
                Ok(None)
            }
            Ok(Incoming::Plain) => {
                self.stats.counters.best_effort_in += 1;
                let ether_type = EtherType(u16::from_be_bytes([frame[12], frame[13]]));
                Ok(Some(AppFrame { ether_type, start: PL2_SEES as u16 }))
            }
            Err(reason) => Err(reason),
        };
        match done {
            Ok(app) => app,
            Err(reason) => {
                self.stats.drop_frame(reason);
                None
            }
        }
    }

    fn take_data(&mut self, source: MacAddr, sequence: Option<u32>) -> Result<(), Reason> {
        if let Some(sequence) = sequence {
            let peer = self.find(source).ok_or(Reason::BadShim)?;
            match self.windows[peer].accept(sequence) {
                dedup::Verdict::Fresh { lost } => self.stats.counters.losses_seen += lost,
                dedup::Verdict::Restart { lost } => {
                    self.stats.counters.losses_seen += lost;
                    self.stats.counters.peer_restarts += 1;
                }
                dedup::Verdict::Duplicate => return Err(Reason::Duplicate),
            }
        }
        if self.config.notify_patience.is_some()
            && let Some(sender) = self.find(source)
        {
            self.expected.came(sender, self.now);
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
        let answer = self.reservations.answer(d, grant, now, self.patience());
        self.collect_credits(now);
        let attempt = match answer {
            Answer::Known(attempt) => attempt,
            Answer::Duplicate => return Err(Reason::GrtDuplicate),
            Answer::Mismatch => return Err(Reason::GrtMismatch),
            Answer::Unasked => return Err(Reason::GrtUnasked),
        };
        // A timestamp from before the RSV left is none.
        let left_at = attempt.emitted_at.unwrap_or(now);
        let received_at = if received_at < left_at { now } else { received_at.min(now) };
        let delay = received_at.saturating_sub(left_at);
        self.stats.rsv_grt.record(delay, now);
        let Some(number) = attempt.burst else {
            self.stats.counters.grt_bare += 1;
            return Ok(());
        };
        if self.config.scheme == Scheme::Clock && (grant.send_wait, grant.recv_wait) == (NOT_NOW, NOT_NOW) {
            self.stats.counters.grt_not_now += 1;
            // Spread, so that those who were refused together don't come together again.
            let quarters = 4 + u64::from(attempt.id % 8);
            let spread = Nanos(self.stats.rsv_grt.mean().0.saturating_mul(quarters) / 4);
            self.destinations[d].refused(number, now.saturating_add(spread));
            return Ok(());
        }
        let chosen = Chosen::of(grant, &self.config, self.destinations[d].slot);
        if chosen.wait > self.config.wait_max {
            self.credit(d, i64::from(attempt.demand), now);
            return Err(Reason::GrtImplausible);
        }
        let least = self.stats.rsv_grt.min().unwrap_or(delay);
        let leave_at = received_at.saturating_add(waiting_time(chosen.wait, least, Nanos::ZERO));
        let destination = &mut self.destinations[d];
        destination.last = Some((chosen.to_t, received_at));
        self.quiet_until = Nanos::ZERO;
        match destination.grant(number, chosen.to_t, leave_at) {
            Granted::Waits => self.stats.counters.grt_used += 1,
            Granted::Done(frames, demand) => {
                self.stats.counters.grt_used += 1;
                let slot = self.config.slot.max(self.destinations[d].slot);
                let reserved = self.config.parts_time(slot, demand);
                self.destinations[d].reserved_until = leave_at.saturating_add(reserved);
                for _ in 0..frames {
                    if let Some(id) = self.destinations[d].queue.pop_front() {
                        self.pool.give_back(id);
                        self.waiting -= 1;
                    }
                }
                self.credit(d, i64::from(demand), now);
            }
            Granted::Surplus => {
                self.stats.counters.grt_surplus += 1;
                self.credit(d, i64::from(attempt.demand), now);
            }
        }
        self.ask(d, now);
        Ok(())
    }

    /// Does what is due: repeats RSVs, gives back slots. Bursts are handed to the NIC by the polls that follow.
    #[inline]
    pub fn handle_timeout(&mut self, now: Nanos) {
        let now = self.advance(now);
        // Often only the NIC has something to do.
        if self.active.iter().any(|d| self.destinations[*d].due() <= now) {
            self.handle_due(now);
        }
    }

    fn handle_due(&mut self, now: Nanos) {
        let mut idle = false;
        for at in 0..self.active.len() {
            let d = self.active[at];
            idle |= !self.destinations[d].is_active();
            if self.destinations[d].due() > now {
                continue;
            }
            self.quiet_until = Nanos::ZERO;
            while let Some((number, demand)) = self.destinations[d].take_overdue(now) {
                self.stats.counters.rsv_repeated += 1;
                self.reserve(d, Some(number), demand, now);
            }
            if self.destinations[d].release_is_due(now) {
                self.reserve(d, None, 0, now);
            }
        }
        if idle {
            let destinations = &self.destinations;
            self.active.retain(|d| destinations[*d].is_active());
        }
    }

    /// Asks for reservations as long as frames wait and the limit of those in flight allows.
    fn ask(&mut self, d: usize, now: Nanos) {
        if !self.destinations[d].may_ask() {
            return;
        }
        let fresh = self.config.fresh.unwrap_or(Nanos(self.stats.rsv_grt.mean().0.saturating_mul(2)));
        let (slots, packs) = (self.slots(), self.packs());
        loop {
            let (pool, added) = (&self.pool, frame::added_bytes(&self.config));
            let share = |id| if packs { wire_bytes(pool.len(id) as u64 + added) } else { slots.bytes };
            let Some((frames, demand)) = self.destinations[d].to_ask(slots, share) else {
                return;
            };
            let destination = &mut self.destinations[d];
            // Only with nothing before it, so that frames of one destination can't overtake.
            let unsolicited = destination.bursts().is_empty()
                && (destination.reserved_until <= now || !self.config.pace_unsolicited)
                && goes_unsolicited(destination.last, now, fresh);
            self.bursts_made += 1;
            let (number, state) = (self.bursts_made, State::Asked { tries: 0, deadline: None });
            destination.push(Burst { number, frames, demand, unsolicited, state });
            self.activate(d);
            self.reserve(d, Some(number), demand, now);
            if !unsolicited {
                continue;
            }
            for at in 0..usize::from(frames) {
                let Some(id) = self.destinations[d].queue.get(at).copied() else { break };
                self.pool.hold(id);
                self.push_scheduled(d, id, true, now, false);
            }
        }
    }

    /// Whether short frames share slots. Only clocks don't count frames.
    fn packs(&self) -> bool {
        self.config.pack && self.config.scheme == Scheme::Clock
    }

    fn slots(&self) -> Slots {
        let bytes = full_frame_wire_bytes(self.config.shim);
        Slots { bytes, parts: self.config.slot_parts.into(), k: self.config.k.into() }
    }

    /// Allows so many reservations in flight to the peer at `position`, though not fewer than configured and at most 64: as many
    /// as threads have something to send there, and each gets the same share of the destination, whatever hosts they are on.
    pub fn allow_in_flight(&mut self, position: usize, reservations: usize) {
        let least = self.config.in_flight;
        if let Some(destination) = self.destinations.get_mut(position) {
            let before = destination.may_ask();
            destination.in_flight = reservations.min(IN_FLIGHT_MAX).max(least);
            if !before && destination.may_ask() && !self.to_ask.contains(&position) {
                self.to_ask.push(position);
            }
        }
    }

    fn reserve(&mut self, d: usize, burst: Option<u64>, demand: u8, now: Nanos) {
        let due = now.saturating_add(self.config.release_after);
        let release = self.destinations[d].take_release(self.config.k, due);
        self.stats.counters.released_slots += u64::from(release);
        let id = self.reservations.ask(d, burst, demand, release);
        self.stats.counters.lost_attempts_forgotten = self.reservations.forgotten;
        self.nic.push_rsv(d, Rsv { id, demand, release }, now);
        self.quiet_until = Nanos::ZERO;
    }

    /// Hands granted bursts to the NIC, earliest first: equation 1, with what the NIC still has to
    /// send as `pendingDataDelay`.
    ///
    /// What the NIC sends leaves the end of its queue where it is, so nobody's turn comes earlier by that.
    fn hand_off(&mut self, now: Nanos) {
        loop {
            let granted = self.active.iter();
            let first = granted.filter_map(|d| Some((self.destinations[*d].leave_at()?, *d))).min();
            let Some((leave_at, d)) = first else {
                self.quiet_until = Nanos::MAX;
                return;
            };
            if waiting_time(leave_at.saturating_sub(now), Nanos::ZERO, self.nic.pending(now)) > Nanos::ZERO {
                self.quiet_until = leave_at;
                return;
            }
            let Some(burst) = self.destinations[d].pop() else { return };
            let frames = match self.packs() {
                false => burst.frames,
                true => {
                    let (pool, added) = (&self.pool, frame::added_bytes(&self.config));
                    let share = |id| wire_bytes(pool.len(id) as u64 + added);
                    self.destinations[d].fitting(&burst, self.slots(), share)
                }
            };
            for at in 0..frames {
                let Some(id) = self.destinations[d].queue.pop_front() else { break };
                self.destinations[d].in_nic += usize::from(at == 0);
                self.push_scheduled(d, id, false, leave_at, at == 0);
            }
            self.ask(d, now);
        }
    }

    fn push_scheduled(&mut self, d: usize, id: FrameId, unsolicited: bool, ready: Nanos, opens_burst: bool) {
        let bytes = self.pool.len(id) as u64 + frame::added_bytes(&self.config);
        let data = Data { frame: id, destination: Some(d), unsolicited, ready, opens_burst };
        self.nic.push_scheduled(data, wire_bytes(bytes));
        self.quiet_until = Nanos::ZERO;
    }

    /// The next frame to put on the link now, written over `out`. Call until it says false.
    pub fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let now = self.advance(now);
        while let Some(d) = self.to_ask.pop() {
            self.ask(d, now);
        }
        if self.quiet_until <= now {
            self.hand_off(now);
        }
        let Some(item) = self.nic.next(now) else { return false };
        let ready = match item {
            Item::Rsv { destination, rsv, ready } => {
                self.send_rsv(destination, &rsv, now, out);
                ready
            }
            Item::Scheduled(data) => {
                self.send_scheduled(data, now, out);
                data.ready
            }
            Item::BestEffort(data) => {
                let kept = self.pool.bytes(data.frame);
                out.resize(self.pool.len(data.frame), 0);
                out[..kept.len()].copy_from_slice(kept);
                self.pool.give_back(data.frame);
                self.stats.counters.best_effort_out += 1;
                self.waiting -= 1;
                match data.destination {
                    Some(d) => self.destinations[d].unscheduled -= 1,
                    None => self.waiting_unknown -= 1,
                }
                data.ready
            }
        };
        self.nic.sent(wire_bytes(out.len() as u64), ready, now);
        self.stats.counters.link_out += 1;
        self.stats.counters.link_out_bytes += out.len() as u64;
        true
    }

    fn send_rsv(&mut self, d: usize, rsv: &Rsv, now: Nanos, out: &mut Vec<u8>) {
        frame::write_rsv(out, &self.config, self.destinations[d].mac, rsv);
        match rsv.demand {
            0 => self.stats.counters.rsv_bare += 1,
            _ => self.stats.counters.rsv_out += 1,
        }
        let burst = self.reservations.emitted(rsv.id, now).and_then(|attempt| attempt.burst);
        let Some(number) = burst else { return };
        let (patience, most) = (self.patience(), self.config.grt_timeout_max);
        self.destinations[d].asked(number, |tries| {
            let wait = Nanos(patience.0.saturating_mul(1 << tries.min(20))).min(most).max(Nanos(1));
            now.saturating_add(wait)
        });
    }

    fn send_scheduled(&mut self, data: Data, now: Nanos, out: &mut Vec<u8>) {
        let Some(d) = data.destination else { return };
        let next_sequence = &mut self.destinations[d].next_sequence;
        let sequence = self.config.shim.then(|| self.pool.sequence(data.frame, next_sequence));
        let frame = (self.pool.bytes(data.frame), self.pool.len(data.frame));
        frame::write_data(out, &self.config, frame, sequence, data.unsolicited);
        if data.unsolicited {
            self.pool.mark_unsolicited(data.frame);
            self.stats.counters.unsolicited_out += 1;
        } else {
            self.reservations.frame_sent();
            self.waiting -= 1;
            self.stats.counters.scheduled_out += 1;
            self.stats.counters.resent_out += u64::from(self.pool.went_unsolicited(data.frame));
        }
        if data.opens_burst {
            self.stats.lateness.record(now.saturating_sub(data.ready), now);
            self.destinations[d].in_nic -= 1;
        }
        self.pool.give_back(data.frame);
        if data.opens_burst {
            self.ask(d, now);
        }
    }

    /// The next frame for the application side, written over `out`. Call until it says false.
    pub fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.app_queue.pop_front() else { return false };
        out.clear();
        out.extend_from_slice(self.pool.bytes(id));
        self.pool.give_back(id);
        self.stats.counters.app_out += 1;
        true
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and then [`poll_link`](Self::poll_link) next.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        if !self.to_ask.is_empty() {
            return Some(self.now);
        }
        let mut due = self.nic.next_at().unwrap_or(Nanos::MAX);
        for d in &self.active {
            due = due.min(self.destinations[*d].due());
        }
        if self.config.notify_patience.is_some() {
            due = due.min(self.expected.next_timeout().unwrap_or(Nanos::MAX));
        }
        (due != Nanos::MAX).then_some(due)
    }

    /// A sender that was granted slots to send to us and fell silent: what it reserved is for the
    /// controller to take back. Call until `None`.
    pub fn poll_silent(&mut self, now: Nanos) -> Option<MacAddr> {
        let sender = self.expected.take_silent(now)?;
        self.stats.counters.senders_silent += 1;
        Some(self.destinations[sender].mac)
    }

    /// What was counted so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The parameters it runs with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The application's frames that wait to be sent, all queues together.
    pub fn backlog_frames(&self) -> usize {
        self.waiting
    }

    /// The application's frames that wait to be sent to one host; 0 if it is no peer.
    pub fn backlog_to(&self, peer: MacAddr) -> usize {
        self.find(peer).map_or(0, |d| self.backlog_at(d))
    }

    /// Where a peer stands among all, for [`backlog_at`](Self::backlog_at): it never changes.
    pub fn position_of(&self, peer: MacAddr) -> Option<usize> {
        self.find(peer)
    }

    /// The same as [`backlog_to`](Self::backlog_to) of the peer at a position; 0 if there is none.
    #[inline]
    pub fn backlog_at(&self, position: usize) -> usize {
        self.destinations.get(position).map_or(0, Destination::waiting)
    }

    /// Frames of peers that are missing among the newest, and may still come; `losses_seen` counts
    /// them once they can't.
    pub fn missing_frames(&self) -> u64 {
        self.windows.iter().map(Window::missing).sum()
    }

    #[inline]
    fn find(&self, mac: MacAddr) -> Option<usize> {
        self.directory.find(mac)
    }

    /// How long an RSV may stay unanswered before it counts as overdue.
    fn patience(&self) -> Nanos {
        let (least, most) = (self.config.grt_timeout_min, self.config.grt_timeout_max);
        self.stats.rsv_grt.bound().max(least).min(most)
    }

    fn credit(&mut self, d: usize, slots: i64, now: Nanos) {
        if self.config.scheme == Scheme::Counter {
            self.destinations[d].credit(slots, now.saturating_add(self.config.release_after));
            self.activate(d);
        }
    }

    fn activate(&mut self, d: usize) {
        if let Err(at) = self.active.binary_search(&d) {
            self.active.insert(at, d);
        }
    }

    fn collect_credits(&mut self, now: Nanos) {
        while let Some((d, slots)) = self.reservations.credits.pop() {
            self.credit(d, slots, now);
        }
        self.stats.counters.lost_attempts_settled = self.reservations.settled;
        self.stats.counters.lost_attempts_forgotten = self.reservations.forgotten;
        self.stats.counters.ledger_adopted = self.reservations.adopted;
    }

    fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now);
        self.now
    }
}

/// Steele, Lea and Flood's SplitMix64: a seed into well-spread numbers.
#[derive(Clone, Debug)]
pub(super) struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
