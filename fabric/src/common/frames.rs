//! A host's frames between application and link: queues with limits, and the NIC.

use super::nic::{BestEffort, Nic};
use super::pool::{FrameId, Pool};
use super::station::Station;
use super::stats::{Reason, Stats};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::VecDeque;

/// Where a frame from the link has one for the application: the addresses stand at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppFrame {
    /// What the rest is.
    pub ether_type: EtherType,
    /// Where the rest starts.
    start: u16,
}

impl AppFrame {
    /// The one whose rest starts there.
    pub(crate) fn new(ether_type: EtherType, start: usize) -> AppFrame {
        AppFrame { ether_type, start: start as u16 }
    }

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

/// Checks a frame of the application; its header if it may go.
#[inline]
pub(crate) fn check_app(frame: &[u8], station: &Station) -> Result<Ethernet, Reason> {
    let ethernet = Ethernet::parse(frame).map_err(|_| Reason::AppTooShort)?;
    if frame.len() > station.mtu + Ethernet::BYTES {
        return Err(Reason::AppTooLong);
    }
    if ethernet.src != station.mac {
        return Err(Reason::AppForeignSource);
    }
    Ok(ethernet)
}

/// Checks a frame from the link, which has so many bytes beside an application's frame at most; its header if it is for us.
#[inline]
pub(crate) fn check_link(frame: &[u8], station: &Station, added_bytes: usize) -> Result<Ethernet, Reason> {
    let ethernet = Ethernet::parse(frame).map_err(|_| Reason::LinkTooShort)?;
    if frame.len() > station.mtu + Ethernet::BYTES + added_bytes {
        return Err(Reason::LinkTooLong);
    }
    if ethernet.dst != station.mac && !ethernet.dst.is_group() {
        return Err(Reason::NotForUs);
    }
    if ethernet.src == station.mac {
        return Err(Reason::OwnSource);
    }
    Ok(ethernet)
}

/// What waits in a host, and what was counted. A scheme has control frames `C`, scheduled frames `S` and a note `N` on each
/// frame at rest.
#[derive(Clone, Debug)]
pub(crate) struct Frames<C, S, N> {
    pub pool: Pool<N>,
    pub nic: Nic<C, S>,
    pub stats: Stats,
    /// Frames of the application taken and not yet gone.
    pub waiting: usize,
    /// Of these, to nobody known.
    waiting_unknown: usize,
    app_queue: VecDeque<FrameId>,
    now: Nanos,
}

impl<C, S, N: Default> Frames<C, S, N> {
    pub fn new(station: &Station, now: Nanos) -> Self {
        Frames {
            // Machines read an Ethernet header.
            pool: Pool::new(station.snap_bytes.max(Ethernet::BYTES)),
            nic: Nic::new(station.rate_bps, station.catch_up),
            stats: Stats::default(),
            waiting: 0,
            waiting_unknown: 0,
            app_queue: VecDeque::new(),
            now,
        }
    }

    /// Time goes forward only, and ends before [`Nanos::MAX`], which stands for "never".
    #[inline]
    pub fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now.min(Nanos(u64::MAX - 1)));
        self.now
    }

    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Keeps a frame of the application. `there`: how many wait for its destination already; `None`: that is nobody known.
    #[inline]
    pub fn keep(&mut self, frame: &[u8], there: Option<usize>, station: &Station) -> Result<FrameId, Reason> {
        match there {
            Some(there) if there >= station.queue_limit_frames => return Err(Reason::QueueFull),
            None if self.waiting_unknown >= station.best_effort_limit_frames => {
                return Err(Reason::BestEffortFull);
            }
            _ if self.waiting >= station.total_limit_frames => return Err(Reason::TotalFull),
            _ => {}
        }
        self.waiting += 1;
        if let Some(there) = there {
            self.stats.queue_max_frames = self.stats.queue_max_frames.max(there as u64 + 1);
        }
        Ok(self.pool.store(&[frame]))
    }

    /// Hands a frame that is kept to the NIC, as best effort.
    #[inline]
    pub fn push_best_effort(&mut self, frame: FrameId, destination: Option<usize>, now: Nanos) {
        self.waiting_unknown += usize::from(destination.is_none());
        self.nic.push_best_effort(BestEffort { frame, destination }, now);
    }

    /// Writes a best-effort frame as it leaves.
    #[inline]
    pub fn write_best_effort(&mut self, data: BestEffort, out: &mut Vec<u8>) {
        let kept = self.pool.bytes(data.frame);
        out.resize(self.pool.len(data.frame), 0);
        out[..kept.len()].copy_from_slice(kept);
        self.pool.give_back(data.frame);
        self.stats.counters.best_effort_out += 1;
        self.waiting -= 1;
        self.waiting_unknown -= usize::from(data.destination.is_none());
    }

    /// A frame leaves that was to leave from `ready` on.
    #[inline]
    pub fn sent(&mut self, frame: &[u8], ready: Nanos, now: Nanos) {
        self.nic.sent(wire_bytes(frame.len() as u64), ready, now);
        self.stats.counters.link_out += 1;
        self.stats.counters.link_out_bytes += frame.len() as u64;
    }

    /// Keeps the application's frame that is in a frame from the link until it is fetched.
    pub fn keep_for_app(&mut self, app: AppFrame, frame: &[u8], station: &Station) {
        if self.app_queue.len() >= station.app_limit_frames {
            return self.stats.drop_frame(Reason::AppQueueFull);
        }
        let (addresses, ether_type, rest) = app.parts(frame);
        self.app_queue.push_back(self.pool.store(&[addresses, &ether_type, rest]));
    }

    /// The next frame for the application side, written over `out`, if there is one.
    pub fn fetch(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.app_queue.pop_front() else { return false };
        out.clear();
        out.extend_from_slice(self.pool.bytes(id));
        self.pool.give_back(id);
        self.stats.counters.app_out += 1;
        true
    }
}

/// The peers that a machine can have: neither its own address nor groups, by address, each once.
pub(crate) fn clean_peers<P>(peers: &mut Vec<P>, own: MacAddr, mac: impl Fn(&P) -> MacAddr) {
    peers.retain(|peer| mac(peer) != own && !mac(peer).is_group());
    peers.sort_by_key(&mac);
    peers.dedup_by_key(|peer| mac(peer));
}
