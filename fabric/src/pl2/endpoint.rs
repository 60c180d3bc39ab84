//! The endpoint: what a host agent drives. It joins the queues, the bursts, the NIC ([`send`]) and the
//! receiving side ([`receive`]).

mod receive;
mod send;

use super::dedup::Window;
use super::directory::Directory;
use super::expected::Expected;
use super::frame;
use super::lanes::Lanes;
use super::nic::{Data, Nic};
use super::pool::{FrameId, Pool};
use super::sender::Destination;
use super::{Config, Peer, Reason, Scheme, Stats};
use p4rack_wire::pl2::LANES_MAX;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::VecDeque;

pub use receive::AppFrame;

/// What the machine itself reads of an application's frame: the Ethernet header.
const PL2_SEES: usize = 14;

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
    /// Number of the next RSV, and how many there were.
    next_id: u32,
    rsvs_made: u64,
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
        config.in_flight = config.in_flight.clamp(1, LANES_MAX.into());
        config.lanes = config.lanes.clamp(config.in_flight as u8, LANES_MAX);
        // All cells have a VLAN.
        config.vid = config.vid.clamp(1, 4095 - 2 * u16::from(config.lanes));
        config.mtu = config.mtu.min(9000);
        config.time_unit = config.time_unit.max(Nanos(1));
        let own = config.mac;
        config.peers.retain(|peer| peer.mac != own && !peer.mac.is_group());
        config.peers.sort_by_key(|peer| peer.mac);
        config.peers.dedup_by_key(|peer| peer.mac);
        let mut random = SplitMix(seed);
        let first_id = random.next() as u32;
        let mut destination = |peer: &Peer| {
            let lanes = Lanes::new(config.lanes, config.scheme == Scheme::Counter);
            let mut destination = Destination::new(peer.mac, peer.slot, random.next() as u32, lanes);
            destination.in_flight = config.in_flight;
            destination
        };
        let destinations: Vec<_> = config.peers.iter().map(&mut destination).collect();
        Endpoint {
            windows: vec![Window::new(); destinations.len()],
            directory: Directory::new(destinations.iter().map(|destination| destination.mac)),
            destinations,
            pool: Pool::new(config.snap_bytes.max(PL2_SEES)),
            nic: Nic::new(config.rate_bps, config.catch_up),
            next_id: first_id,
            rsvs_made: 0,
            expected: Expected::new(config.peers.len(), config.notify_patience),
            app_queue: VecDeque::new(),
            to_ask: Vec::new(),
            active: Vec::new(),
            waiting: 0,
            waiting_unknown: 0,
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
        let data =
            Data { frame: id, destination, cell: 0, unsolicited: false, ready: now, opens_burst: false };
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
            if destination.may_ask(now) && !self.to_ask.contains(&d) {
                self.to_ask.push(d);
            }
        }
        let longest = self.destinations[d].waiting() as u64;
        self.stats.queue_max_frames = self.stats.queue_max_frames.max(longest);
        Ok(())
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

    #[inline]
    fn find(&self, mac: MacAddr) -> Option<usize> {
        self.directory.find(mac)
    }

    /// How long an RSV may stay unanswered before it counts as overdue.
    fn patience(&self) -> Nanos {
        let (least, most) = (self.config.grt_timeout_min, self.config.grt_timeout_max);
        self.stats.rsv_grt.bound().max(least).min(most)
    }

    /// When slots that nobody will use are to be given back.
    fn release_at(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.config.release_after)
    }

    /// The number that the next RSV gets.
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

    /// Time goes forward only, and ends before [`Nanos::MAX`], which stands for "never".
    #[inline]
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now.min(Nanos(u64::MAX - 1)));
        self.now
    }
}

/// Steele, Lea and Flood's SplitMix64: a seed into well-spread numbers.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
