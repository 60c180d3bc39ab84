//! Sequence numbers of a host's frames, and which of the others' have come.
//!
//! A switch that starts again may bring copies that have waited in a host for as long as it was dead, also from before that host
//! started again. So the distance between two numbers does not say whether their host has started again: that says a random byte, in
//! the shim's reserved one. A frame with the byte of an earlier start is a late copy, and so is one far behind in the last start. If
//! more of them come in a row than can have waited anywhere, the host has drawn a byte again.

use crate::common::{Directory, SplitMix, WINDOW, Window, counters};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::{Kind, Shim, VERSION};
use p4rack_wire::{EtherType, MacAddr};
use std::collections::VecDeque;

/// Where a shim begins in a frame, and where the frame's own bytes continue.
const SHIM: usize = Ethernet::BYTES;
const BEHIND: usize = SHIM + Shim::BYTES;
/// Addresses of a frame.
const ADDRESSES: usize = Ethernet::BYTES - 2;

counters! {
    /// Frames of a host at several switches. Those to and from all hosts (broadcasts) are counted as copies only.
    Counters {
        /// Frames to a known host that at least one machine has taken.
        numbered,
        /// Frames that no machine has taken.
        refused,
        /// Frames that some machines have taken and some have not.
        partly_taken,
        /// First copies of frames from known hosts to this one.
        first,
        /// Later copies.
        copies,
        /// Frames without a number, or of an unknown host.
        unnumbered,
    }
}

/// Sequence of a frame's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequence(usize);

/// Sequence numbers: one sequence for each peer, and one for all other destinations.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    ether_type: EtherType,
    own: MacAddr,
    peers: Directory,
    /// The next number by peer, and behind them that of other destinations.
    pub(super) next: Vec<u32>,
    /// The byte of this start.
    pub(super) start: u8,
    heard: Vec<Heard>,
    pub counters: Counters,
}

/// Starts of a peer before the last one whose late copies are known.
const EARLIER: usize = 8;
/// Numbers that are further behind belong to another start with the same byte: no copy is as late.
const BEHIND_MAX: u32 = 1 << 30;
/// More late copies in a row than a host's queue for another host and a switch's buffer have.
pub(super) const LATE_MAX: u32 = 1 << 13;

/// What has come from a peer.
#[derive(Clone, Debug)]
struct Heard {
    /// Its last start, and those before, the latest first.
    last: Start,
    earlier: VecDeque<Start>,
    /// Late copies since the last new frame.
    late: u32,
}

/// What has come since a start of a peer.
#[derive(Clone, Debug)]
struct Start {
    /// Its byte; `None` before the first frame.
    byte: Option<u8>,
    /// Numbers of its frames to this host, and to others.
    windows: [Window; 2],
}

impl Start {
    fn new(byte: Option<u8>) -> Start {
        Start { byte, windows: [Window::new(), Window::new()] }
    }

    /// Whether a frame may be of this start, whose numbers were continued by at most `ahead_max`.
    fn may_have(&self, shim: &Shim, which: usize, ahead_max: u32) -> bool {
        let is_near = |behind: u32| behind < BEHIND_MAX || behind.wrapping_neg() <= ahead_max;
        self.byte == Some(shim.reserved) && self.windows[which].behind(shim.sequence).is_none_or(is_near)
    }
}

impl Heard {
    fn new() -> Heard {
        Heard { last: Start::new(None), earlier: VecDeque::with_capacity(EARLIER), late: 0 }
    }

    /// Whether a frame is new.
    fn is_new(&mut self, shim: &Shim, to_us: bool) -> bool {
        let which = usize::from(!to_us);
        let is_last = self.last.may_have(shim, which, 1 << 31);
        if is_last {
            let window = &mut self.last.windows[which];
            let is_recent = window.behind(shim.sequence).is_some_and(|behind| behind <= WINDOW);
            if window.is_new(shim.sequence) {
                self.late = 0;
                return true;
            }
            if is_recent {
                return false;
            }
        }
        let is_late = is_last || self.earlier.iter().any(|start| start.may_have(shim, which, LATE_MAX));
        if is_late && self.late < LATE_MAX {
            self.late += 1;
            return false;
        }
        self.begin(shim.reserved);
        self.last.windows[which].is_new(shim.sequence)
    }

    /// The peer has started again.
    fn begin(&mut self, byte: u8) {
        let before = std::mem::replace(&mut self.last, Start::new(Some(byte)));
        self.late = 0;
        self.earlier.truncate(EARLIER - 1);
        self.earlier.push_front(before);
        self.earlier.retain(|start| start.byte.is_some_and(|earlier| earlier != byte));
    }
}

impl Numbers {
    pub fn new(ether_type: EtherType, own: MacAddr, peers: &[MacAddr], seed: u64) -> Numbers {
        let mut random = SplitMix(seed);
        let start = random.next() as u8;
        Numbers {
            start,
            ether_type,
            own,
            peers: Directory::new(peers.iter().copied()),
            next: (0..=peers.len()).map(|_| random.next() as u32).collect(),
            heard: peers.iter().map(|_| Heard::new()).collect(),
            counters: Counters::default(),
        }
    }

    /// Writes a frame with its number over `out`. `None` if it is too short.
    pub fn number(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<Sequence> {
        let ethernet = Ethernet::parse(frame).ok()?;
        let sequence = Sequence(self.peers.find(ethernet.dst).unwrap_or(self.heard.len()));
        out.clear();
        out.resize(BEHIND, 0);
        out[..ADDRESSES].copy_from_slice(&frame[..ADDRESSES]);
        out[ADDRESSES..SHIM].copy_from_slice(&self.ether_type.0.to_be_bytes());
        let shim = Shim {
            version: VERSION,
            kind: Kind::Data as u8,
            reserved: self.start,
            ether_type: ethernet.ether_type,
            sequence: self.next[sequence.0],
        };
        shim.emit(&mut out[SHIM..]);
        out.extend_from_slice(&frame[SHIM..]);
        self.next[sequence.0] = self.next[sequence.0].wrapping_add(1);
        Some(sequence)
    }

    /// Records how many of `all` machines have taken the frame with the last number. The number of one that none has taken is
    /// the next one's.
    pub fn taken(&mut self, Sequence(at): Sequence, taken: usize, all: usize) {
        if taken == 0 {
            self.next[at] = self.next[at].wrapping_sub(1);
            self.counters.refused += 1;
            return;
        }
        self.counters.numbered += u64::from(at < self.heard.len());
        self.counters.partly_taken += u64::from(taken < all);
    }

    /// Whether a frame is the first copy. Then removes its number.
    pub fn is_first(&mut self, frame: &mut Vec<u8>) -> bool {
        let Some((ethernet, shim)) = self.parse(frame) else {
            self.counters.unnumbered += 1;
            return false;
        };
        let Some(peer) = self.peers.find(ethernet.src) else {
            self.counters.unnumbered += 1;
            return false;
        };
        let to_us = ethernet.dst == self.own;
        if !self.heard[peer].is_new(&shim, to_us) {
            self.counters.copies += 1;
            return false;
        }
        self.counters.first += u64::from(to_us);
        frame[ADDRESSES..SHIM].copy_from_slice(&shim.ether_type.0.to_be_bytes());
        frame.drain(SHIM..BEHIND);
        true
    }

    /// Whether a frame is from a known host.
    pub fn knows_sender(&self, frame: &[u8]) -> bool {
        Ethernet::parse(frame).is_ok_and(|ethernet| self.peers.find(ethernet.src).is_some())
    }

    fn parse(&self, frame: &[u8]) -> Option<(Ethernet, Shim)> {
        let ethernet = Ethernet::parse(frame).ok().filter(|one| one.ether_type == self.ether_type)?;
        let shim = Shim::parse(frame.get(SHIM..)?).ok()?;
        (shim.version == VERSION && shim.kind == Kind::Data as u8).then_some((ethernet, shim))
    }
}
