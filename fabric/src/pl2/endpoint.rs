//! The PL2 endpoint that a host agent drives. It combines the queues, the bursts, the NIC ([`send`]) and the
//! receiving side ([`receive`]).

mod receive;
mod send;

use super::expected::Expected;
use super::flows::{Flows, Waiting, flow_of};
use super::frame::{self, Rsv};
use super::lanes::Lanes;
use super::sender::Destination;
use super::{Config, Mode, Peer, Stats};
use crate::common::{
    self, AppFrame, Delay, Directory, FrameId, Frames, Ledger, MTU_MAX, Reason, SplitMix, Station, Window,
    clean_peers,
};
use crate::machine::{Event, HostMachine, Machine};
use p4rack_wire::pl2::LANES_MAX;
use p4rack_wire::{MacAddr, Nanos};

/// An RSV in the NIC: index of its destination, and its contents.
type Control = (usize, Rsv);

/// A frame of a burst in the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    frame: FrameId,
    /// Index of the destination.
    destination: usize,
    /// Cell of its reservation.
    cell: u8,
    unsolicited: bool,
    /// If it is the first frame of a burst that leaves at its granted time: the flow that the burst was requested for.
    opens_burst: Option<u8>,
}

/// Note on a stored frame.
#[derive(Clone, Debug, Default)]
struct Note {
    went_unsolicited: bool,
    sequence: Option<u32>,
}

impl Note {
    /// Its sequence number. The first call takes it from `next`; it never changes afterwards.
    #[inline]
    fn sequence(&mut self, next: &mut u32) -> u32 {
        *self.sequence.get_or_insert_with(|| {
            let sequence = *next;
            *next = next.wrapping_add(1);
            sequence
        })
    }
}

/// A host's PL2 machine: between the application's frames and the rack's link, NIC included.
///
/// Frames to a known peer go in reserved slots, everything else as best effort, untagged. Frames handed over together share
/// reservations: the RSV is made at the poll.
///
/// ```
/// use p4rack_fabric::pl2::{Config, Endpoint, Mode, Peer};
/// use p4rack_fabric::{HostMachine, Machine};
/// use p4rack_wire::{MacAddr, Nanos, pl2::Kind};
///
/// let macs = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
/// let config = |mac| {
///     let alone = Config::new(mac, Mode::Clock, 100_000_000);
///     Config { peers: macs.map(|mac| Peer { mac, slot: alone.slot, far: false }).to_vec(), ..alone }
/// };
/// let mut hosts = macs.map(|mac| Endpoint::new(config(mac), 1, Nanos::ZERO));
/// let frame = [&macs[1].0[..], &macs[0].0, &[0x08, 0x00], b"hello"].concat();
/// hosts[0].handle_app(&frame, Nanos::ZERO);
///
/// // A perfect switch, always free: it returns each RSV as a grant whose waits are 0, and forwards the rest.
/// let (mut now, mut out) = (Nanos::ZERO, Vec::new());
/// while hosts[0].backlog_frames() > 0 {
///     while hosts[0].poll_link(now, &mut out).is_some() {
///         let is_rsv = out[18] & 0xf == Kind::Rsv as u8;
///         if is_rsv {
///             out[..12].rotate_left(6);
///             out[18] += Kind::Grt as u8 - Kind::Rsv as u8;
///         }
///         hosts[usize::from(!is_rsv)].handle_link(&out, now, now);
///     }
///     now = now.max(hosts[0].next_timeout().unwrap_or(now));
///     hosts[0].handle_timeout(now);
/// }
/// assert!(hosts[1].poll_app(&mut out) && out == frame);
/// assert_eq!(hosts[0].pl2_stats().counters.scheduled_out, 1);
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
    /// Destinations, sorted by address.
    destinations: Vec<Destination>,
    directory: Directory,
    /// Sequence numbers received from each destination.
    windows: Vec<Window>,
    frames: Frames<Control, Scheduled, Note>,
    /// Number of the next RSV, and how many have been sent.
    next_id: u32,
    rsvs_made: u64,
    expected: Expected,
    /// Destinations with new frames that no reservation covers yet.
    to_ask: Vec<usize>,
    /// Destinations at which something may be due, sorted. Frequent queries check only these.
    active: Vec<usize>,
    /// Before this time no burst is to be handed to the NIC, unless something about bursts or its queues
    /// changes.
    quiet_until: Nanos,
    stats: Stats,
    /// Time from sending an RSV to the arrival of its grant, of peers in another pipe of the switch.
    far_rsv_grt: Delay,
}

impl Endpoint {
    /// A new endpoint at `now`. `seed` determines the first sequence numbers and reservation ids. Values that
    /// [`Config::check`] rejects are replaced by the nearest that work.
    pub fn new(mut config: Config, seed: u64, now: Nanos) -> Self {
        config.k = config.k.max(1);
        config.piece = config.piece.map(|piece| piece.clamp(1, config.k));
        config.slot_parts = match config.mode {
            Mode::Clock => config.slot_parts.clamp(1, 255 / config.k),
            Mode::Counter => 1,
        };
        config.in_flight = config.in_flight.clamp(1, LANES_MAX.into());
        config.lanes = config.lanes.clamp(config.in_flight as u8, LANES_MAX);
        // All cells have a VLAN.
        config.vid = config.vid.clamp(1, 4095 - 2 * u16::from(config.lanes));
        config.station.mtu = config.station.mtu.min(MTU_MAX);
        config.time_unit = config.time_unit.max(Nanos(1));
        clean_peers(&mut config.peers, config.station.mac, |peer| peer.mac);
        let mut random = SplitMix(seed);
        let first_id = random.next() as u32;
        let mut destination = |peer: &Peer| {
            let lanes = Lanes::new(config.lanes, config.mode == Mode::Counter);
            let flows = (config.in_flight, Flows::new(config.own_frames()));
            Destination::new(*peer, random.next() as u32, lanes, flows)
        };
        let destinations: Vec<_> = config.peers.iter().map(&mut destination).collect();
        Endpoint {
            windows: vec![Window::new(); destinations.len()],
            directory: Directory::new(destinations.iter().map(|destination| destination.mac)),
            destinations,
            frames: Frames::new(&config.station, now),
            next_id: first_id,
            rsvs_made: 0,
            expected: Expected::new(config.peers.len(), config.notify_patience),
            to_ask: Vec::new(),
            active: Vec::new(),
            quiet_until: Nanos::ZERO,
            stats: Stats::new(config.delay_window),
            far_rsv_grt: Delay::new(config.delay_window),
            config,
        }
    }

    /// Accepts a frame of flow `number` from the application; see [`HostMachine::handle_app`], which distinguishes flows by
    /// addresses and ports.
    pub fn handle_flow(&mut self, frame: &[u8], number: u32, now: Nanos) {
        let now = self.frames.advance(now);
        self.frames.stats.counters.app_in += 1;
        if let Err(reason) = self.accept(frame, number, now) {
            self.frames.stats.drop_frame(reason);
        }
    }

    /// Frames of flow `number` to the peer at `position` that no reservation covers.
    pub fn backlog_of(&self, position: usize, number: u32) -> usize {
        self.destinations.get(position).map_or(0, |destination| destination.waiting_of(number))
    }

    fn accept(&mut self, frame: &[u8], number: u32, now: Nanos) -> Result<(), Reason> {
        let address = frame::check_app(frame, &self.config)?;
        let destination = self.find(address);
        let there = destination.map(|d| self.destinations[d].waiting());
        if let (true, Some(d), Some(there)) = (self.config.by_flow, destination, there)
            && there + self.destinations[d].waiting_of(number) >= self.config.station.queue_limit_frames
        {
            return Err(Reason::QueueFull);
        }
        let id = self.frames.keep(frame, there, &self.config.station)?;
        let bytes = self.slot_bytes(frame.len());
        match destination {
            Some(d) if self.config.reserve => {
                let destination = &mut self.destinations[d];
                destination.push_frame(number, Waiting { frame: id, bytes });
                // Otherwise it is requested when a reservation has ended.
                if destination.may_ask(now) && !self.to_ask.contains(&d) {
                    self.to_ask.push(d);
                }
            }
            _ => {
                if let Some(d) = destination {
                    self.destinations[d].unscheduled += 1;
                }
                self.frames.push_best_effort(id, destination, now);
            }
        }
        Ok(())
    }

    /// Whether there is room for a frame to a host, whatever its flow.
    pub(crate) fn has_room(&self, to: MacAddr) -> bool {
        let there = self.find(to).map(|d| self.destinations[d].waiting());
        self.frames.room(there, &self.config.station).is_ok()
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where its frames have gone.
    pub fn ledger(&self) -> Ledger {
        let (common, own) = (self.frames.ledger(), &self.stats.counters);
        Ledger {
            sent: common.sent + own.scheduled_out + self.stats.unsolicited_done,
            data_out: common.data_out + own.scheduled_out + own.unsolicited_out,
            control_out: own.rsv_out + own.rsv_bare,
            control_in: own.grt_used + own.grt_surplus + own.grt_not_now + own.grt_bare + own.notify_in,
            ..common
        }
    }

    /// PL2's own counters and delays, besides [`HostMachine::stats`].
    pub fn pl2_stats(&self) -> &Stats {
        &self.stats
    }

    /// Recent frames of peers that are missing and may still come. `losses_seen` counts them once they
    /// cannot.
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

    /// When to give back unused slots.
    fn release_at(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.config.release_after)
    }

    /// Takes the number for the next RSV.
    fn take_id(&mut self) -> u32 {
        let id = self.next_id;
        (self.next_id, self.rsvs_made) = (id.wrapping_add(1), self.rsvs_made + 1);
        id
    }

    /// Whether one of our RSVs had this number.
    fn has_asked(&self, id: u32) -> bool {
        (1..=self.rsvs_made).contains(&self.next_id.wrapping_sub(id).into())
    }

    fn activate(&mut self, d: usize) {
        if let Err(at) = self.active.binary_search(&d) {
            self.active.insert(at, d);
        }
    }
}

impl Machine for Endpoint {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        if let Some(app) = self.receive(frame, received_at, now) {
            self.frames.keep_for_app(app, frame, &self.config.station);
        }
    }

    /// Repeats RSVs and gives slots back.
    #[inline]
    fn handle_timeout(&mut self, now: Nanos) {
        let now = self.frames.advance(now);
        // Often only the NIC has something to do.
        if self.active.iter().any(|d| self.destinations[*d].due() <= now) {
            self.handle_due(now);
        }
    }

    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        self.send(now, out)
    }

    #[inline]
    fn next_timeout(&self) -> Option<Nanos> {
        if !self.to_ask.is_empty() {
            return Some(self.frames.now());
        }
        let mut due = self.frames.nic.next_at().unwrap_or(Nanos::MAX);
        for d in &self.active {
            due = due.min(self.destinations[*d].due());
        }
        if self.config.notify_patience.is_some() {
            due = due.min(self.expected.next_timeout().unwrap_or(Nanos::MAX));
        }
        (due != Nanos::MAX).then_some(due)
    }
}

impl HostMachine for Endpoint {
    fn handle_app(&mut self, frame: &[u8], now: Nanos) {
        let number = if self.config.by_flow { flow_of(frame) } else { 0 };
        self.handle_flow(frame, number, now);
    }

    #[inline]
    fn forward_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> Option<AppFrame> {
        let app = self.receive(frame, received_at, now)?;
        self.frames.stats.counters.app_out += 1;
        Some(app)
    }

    fn poll_app(&mut self, out: &mut Vec<u8>) -> bool {
        self.frames.fetch(out)
    }

    fn poll_event(&mut self, now: Nanos) -> Option<Event> {
        let sender = self.expected.take_silent(now)?;
        self.stats.counters.senders_silent += 1;
        Some(Event::SenderSilent(self.destinations[sender].mac))
    }

    #[inline]
    fn next_is_control(&self) -> bool {
        !self.to_ask.is_empty() || self.frames.nic.has_control()
    }

    fn backlog_frames(&self) -> usize {
        self.frames.waiting
    }

    fn position_of(&self, peer: MacAddr) -> Option<usize> {
        self.find(peer)
    }

    #[inline]
    fn backlog_at(&self, position: usize) -> usize {
        self.destinations.get(position).map_or(0, Destination::waiting)
    }

    fn station(&self) -> &Station {
        &self.config.station
    }

    fn stats(&self) -> &common::Stats {
        &self.frames.stats
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.frames.stats.counters.iter().chain(self.stats.counters.iter()).collect()
    }

    fn delays(&self) -> Vec<(&'static str, &Delay)> {
        vec![("rsv_grt", &self.stats.rsv_grt), ("lateness", &self.stats.lateness)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_one_sequence_number_for_good() {
        let (mut note, mut next) = (Note::default(), u32::MAX);
        assert_eq!((note.sequence(&mut next), note.sequence(&mut next), next), (u32::MAX, u32::MAX, 0));
        assert_eq!((Note::default().sequence(&mut next), next), (0, 1));
    }
}
