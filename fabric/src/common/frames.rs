//! A host's frames between application and link: bounded queues, and the NIC.

use super::ledger::Ledger;
use super::nic::{BestEffort, Nic};
use super::pool::{FrameId, Pool};
use super::station::Station;
use super::stats::{Reason, Stats};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::VecDeque;

/// Position of an application's frame within a frame from the link; the addresses are at the start of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppFrame {
    /// EtherType of the application's frame.
    pub ether_type: EtherType,
    /// Offset of its payload.
    start: u16,
}

impl AppFrame {
    /// The one whose rest starts there.
    pub(crate) fn new(ether_type: EtherType, start: usize) -> AppFrame {
        AppFrame { ether_type, start: start as u16 }
    }

    /// Payload of the application's frame in `frame`.
    #[inline]
    pub fn rest<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        frame.get(usize::from(self.start)..).unwrap_or_default()
    }

    /// Addresses, EtherType and payload of the application's frame.
    pub fn parts<'f>(&self, frame: &'f [u8]) -> (&'f [u8], [u8; 2], &'f [u8]) {
        (frame.get(..12).unwrap_or_default(), self.ether_type.0.to_be_bytes(), self.rest(frame))
    }
}

/// Checks a frame of the application. Returns its header if it may be sent.
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

/// Checks a frame from the link, which is at most `added` bytes longer than an application's frame. Returns
/// its header if it is for us.
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

/// A host's queues and counters. A scheme has control frames `C`, scheduled frames `S` and a note `N` on each
/// stored frame.
#[derive(Clone, Debug)]
pub(crate) struct Frames<C, S, N> {
    pub pool: Pool<N>,
    pub nic: Nic<C, S>,
    pub stats: Stats,
    /// Frames of the application accepted and not sent yet.
    pub waiting: usize,
    /// Of these, frames to unknown destinations.
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

    /// Advances the time, which never goes back and ends before [`Nanos::MAX`], because that means "never".
    #[inline]
    pub fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now.min(Nanos(u64::MAX - 1)));
        self.now
    }

    #[inline]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Whether there is room for a frame of the application. `there` is the number already waiting for its destination, or `None` if
    /// that is unknown.
    #[inline]
    pub fn room(&self, there: Option<usize>, station: &Station) -> Result<(), Reason> {
        match there {
            Some(there) if there >= station.queue_limit_frames => Err(Reason::QueueFull),
            None if self.waiting_unknown >= station.best_effort_limit_frames => Err(Reason::BestEffortFull),
            _ if self.waiting >= station.total_limit_frames => Err(Reason::TotalFull),
            _ => Ok(()),
        }
    }

    /// Stores a frame of the application, with `there` as in [`room`](Self::room).
    #[inline]
    pub fn keep(&mut self, frame: &[u8], there: Option<usize>, station: &Station) -> Result<FrameId, Reason> {
        self.room(there, station)?;
        self.waiting += 1;
        if let Some(there) = there {
            self.stats.queue_max_frames = self.stats.queue_max_frames.max(there as u64 + 1);
        }
        Ok(self.pool.store(&[frame]))
    }

    /// Passes a stored frame to the NIC as best effort.
    #[inline]
    pub fn push_best_effort(&mut self, frame: FrameId, destination: Option<usize>, now: Nanos) {
        self.waiting_unknown += usize::from(destination.is_none());
        self.nic.push_best_effort(BestEffort { frame, destination }, now);
    }

    /// Writes a best-effort frame that leaves.
    #[inline]
    pub fn write_best_effort(&mut self, data: BestEffort, out: &mut Vec<u8>) {
        let kept = self.pool.bytes(data.frame);
        out.resize(self.pool.len(data.frame), 0);
        out[..kept.len()].copy_from_slice(kept);
        self.pool.release(data.frame);
        self.stats.counters.best_effort_out += 1;
        self.waiting -= 1;
        self.waiting_unknown -= usize::from(data.destination.is_none());
    }

    /// Records a frame that leaves and was ready at `ready`.
    #[inline]
    pub fn sent(&mut self, frame: &[u8], ready: Nanos, now: Nanos) {
        self.nic.sent(wire_bytes(frame.len() as u64), ready, now);
        self.stats.counters.link_out += 1;
        self.stats.counters.link_out_bytes += frame.len() as u64;
    }

    /// Stores the application's frame within a frame from the link until it is fetched.
    pub fn keep_for_app(&mut self, app: AppFrame, frame: &[u8], station: &Station) {
        if self.app_queue.len() >= station.app_limit_frames {
            return self.stats.drop_frame(Reason::AppQueueFull);
        }
        let (addresses, ether_type, rest) = app.parts(frame);
        self.app_queue.push_back(self.pool.store(&[addresses, &ether_type, rest]));
    }

    /// Where its frames have gone, without those of the scheme: scheduled and control frames.
    pub fn ledger(&self) -> Ledger {
        let counters = &self.stats.counters;
        Ledger {
            app_in: counters.app_in,
            sent: counters.best_effort_out,
            app_dropped: self.stats.app_frames_dropped(),
            waiting: self.waiting as u64,
            data_out: counters.best_effort_out,
            control_out: 0,
            link_in: counters.link_in,
            app_out: counters.app_out,
            unfetched: self.app_queue.len() as u64,
            control_in: 0,
            link_dropped: self.stats.received_frames_dropped(),
        }
    }

    /// Writes the next frame for the application over `out`, if there is one.
    pub fn fetch(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.app_queue.pop_front() else { return false };
        out.clear();
        out.extend_from_slice(self.pool.bytes(id));
        self.pool.release(id);
        self.stats.counters.app_out += 1;
        true
    }
}

/// Peers without the host's own address, group addresses and duplicates, sorted by address.
pub(crate) fn clean_peers<P>(peers: &mut Vec<P>, own: MacAddr, mac: impl Fn(&P) -> MacAddr) {
    peers.retain(|peer| mac(peer) != own && !mac(peer).is_group());
    peers.sort_by_key(&mac);
    peers.dedup_by_key(|peer| mac(peer));
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn frame(dst: MacAddr, src: MacAddr, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes.max(Ethernet::BYTES)];
        Ethernet { dst, src, ether_type: EtherType::IPV4 }.emit(&mut frame);
        frame.truncate(bytes);
        frame
    }

    /// Only frames with a host's own source address leave it, and only frames for it come in, up to the
    /// longest frame.
    #[test]
    fn addresses_and_lengths_are_checked_both_ways() {
        let station = Station { mtu: 100, ..Station::new(OWN, 0) };
        for (dst, src, bytes, expected) in [
            (PEER, OWN, 14, Ok(())),
            (PEER, OWN, 114, Ok(())),
            (OWN, OWN, 60, Ok(())),
            (PEER, OWN, 13, Err(Reason::AppTooShort)),
            (PEER, OWN, 115, Err(Reason::AppTooLong)),
            (PEER, PEER, 60, Err(Reason::AppForeignSource)),
            (PEER, MacAddr::BROADCAST, 60, Err(Reason::AppForeignSource)),
        ] {
            assert_eq!(
                check_app(&frame(dst, src, bytes), &station).map(|_| ()),
                expected,
                "{dst} {src} {bytes}"
            );
        }
        for (dst, src, bytes, expected) in [
            (OWN, PEER, 14, Ok(())),
            (OWN, PEER, 118, Ok(())),
            (MacAddr::BROADCAST, PEER, 60, Ok(())),
            (OWN, PEER, 13, Err(Reason::LinkTooShort)),
            (OWN, PEER, 119, Err(Reason::LinkTooLong)),
            (PEER, PEER, 60, Err(Reason::NotForUs)),
            (OWN, OWN, 60, Err(Reason::OwnSource)),
            (MacAddr::BROADCAST, OWN, 60, Err(Reason::OwnSource)),
        ] {
            let checked = check_link(&frame(dst, src, bytes), &station, 4).map(|_| ());
            assert_eq!(checked, expected, "{dst} {src} {bytes}");
        }
    }
}
