//! Delay and loss of links, beside the switch's core: it knows nothing of them, as it knows nothing of cables.
//!
//! ```text
//!  interface ─ arrive ─▶ queue ─ poll_arrival ─▶ switch ─ depart ─▶ queue ─ poll_departure ─▶ interface
//! ```
//!
//! A link's other end is a host, or a switch that leaves it to this one; so both directions are here.

use p4rack_wire::Nanos;
use p4rack_wire::random::SplitMix;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a link holds in each direction. Frames beyond that are dropped and counted.
const LIMIT_BYTES: usize = 16 << 20;
/// Frames that a link holds in each direction: short ones cost memory, too.
const LIMIT_FRAMES: usize = 65_536;
/// Buffers kept for reuse.
const SPARE_MAX: usize = 1_024;
/// Port numbers of an architecture.
const PORTS: usize = 512;
/// Parts of a whole in which losses are given.
const MILLION: u64 = 1_000_000;

/// Delay and loss of the link at a port, the same in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireSpec {
    /// Number of the port.
    pub port: u16,
    /// Time from one end to the other.
    pub delay: Nanos,
    /// Frames lost, per million.
    pub loss_ppm: u32,
}

/// Drop reason of frames that a port's link lost on purpose.
pub(crate) const LINK_LOSS: &str = "link_loss";
/// Drop reason of frames that found a port's link full.
pub(crate) const LINK_FULL: &str = "link_full";

/// What links have dropped, by port. The data plane counts, telemetry reads.
#[derive(Debug, Default)]
pub struct WireCounts {
    ports: Vec<PortCounts>,
}

#[derive(Debug, Default)]
struct PortCounts {
    port: u16,
    lost: AtomicU64,
    full: AtomicU64,
}

impl WireCounts {
    /// Port, frames lost on purpose, frames that found the link full.
    pub fn read(&self) -> impl Iterator<Item = (u16, u64, u64)> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.ports.iter().map(move |counts| (counts.port, load(&counts.lost), load(&counts.full)))
    }

    /// Frames lost on purpose, frames that found a link full, of all ports.
    pub fn sum(&self) -> (u64, u64) {
        self.read()
            .fold((0, 0), |(lost, full), (_, more_lost, more_full)| (lost + more_lost, full + more_full))
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        for counts in &self.ports {
            counts.lost.store(0, Ordering::Relaxed);
            counts.full.store(0, Ordering::Relaxed);
        }
    }
}

/// Frames on their way in one direction, in order.
#[derive(Debug, Default)]
struct DelayLine {
    frames: VecDeque<(Nanos, Vec<u8>)>,
    bytes: usize,
}

impl DelayLine {
    fn due(&self) -> Option<Nanos> {
        self.frames.front().map(|(due, _)| *due)
    }

    fn pop(&mut self, now: Nanos) -> Option<(Nanos, Vec<u8>)> {
        let (due, frame) = self.frames.pop_front_if(|(due, _)| *due <= now)?;
        self.bytes -= frame.len();
        Some((due, frame))
    }
}

#[derive(Debug)]
struct Wire {
    spec: WireSpec,
    arriving: DelayLine,
    departing: DelayLine,
}

/// The links of a switch that have delay or loss.
#[derive(Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    /// Position in `wires`, by port; empty if there are none.
    position: Vec<Option<u16>>,
    counts: Arc<WireCounts>,
    random: SplitMix,
    spare: Vec<Vec<u8>>,
}

impl Wires {
    /// Links as described; those without delay and loss are none.
    pub fn new(specs: &[WireSpec], seed: u64) -> Wires {
        let specs = specs.iter().filter(|spec| spec.delay > Nanos::ZERO || spec.loss_ppm > 0);
        let wire = |spec: &WireSpec| Wire {
            spec: *spec,
            arriving: DelayLine::default(),
            departing: DelayLine::default(),
        };
        let wires: Vec<Wire> = specs.map(wire).collect();
        let mut position = if wires.is_empty() { Vec::new() } else { vec![None; PORTS] };
        for (at, wire) in wires.iter().enumerate() {
            if let Some(place) = position.get_mut(usize::from(wire.spec.port)) {
                *place = Some(at as u16);
            }
        }
        let ports = wires.iter().map(|wire| PortCounts { port: wire.spec.port, ..PortCounts::default() });
        let counts = Arc::new(WireCounts { ports: ports.collect() });
        Wires { wires, position, counts, random: SplitMix(seed), spare: Vec::new() }
    }

    /// What they have dropped.
    pub fn counts(&self) -> Arc<WireCounts> {
        self.counts.clone()
    }

    #[inline(always)]
    fn at(&self, port: u16) -> Option<usize> {
        self.position.get(usize::from(port)).copied().flatten().map(usize::from)
    }

    /// Takes a frame that an interface has received. Returns false if the port's link has no delay and no loss: then the
    /// frame is the switch's now.
    #[inline]
    pub fn arrive(&mut self, port: u16, frame: &[u8], at: Nanos) -> bool {
        let Some(wire) = self.at(port) else { return false };
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(frame);
        self.enter(wire, at, buffer, |wire| &mut wire.arriving);
        true
    }

    /// Takes a frame that leaves the switch, and leaves an empty buffer. Returns false if the port's link has no delay and no
    /// loss: then the frame is the interface's now.
    #[inline]
    pub fn depart(&mut self, port: u16, frame: &mut Vec<u8>, now: Nanos) -> bool {
        let Some(wire) = self.at(port) else { return false };
        let frame = std::mem::replace(frame, self.spare.pop().unwrap_or_default());
        self.enter(wire, now, frame, |wire| &mut wire.departing);
        true
    }

    fn enter(&mut self, at: usize, now: Nanos, frame: Vec<u8>, line: impl Fn(&mut Wire) -> &mut DelayLine) {
        let counts = &self.counts.ports[at];
        let wire = &mut self.wires[at];
        let (delay, loss_ppm) = (wire.spec.delay, u64::from(wire.spec.loss_ppm));
        let line = line(wire);
        if loss_ppm > 0 && self.random.next() % MILLION < loss_ppm {
            counts.lost.fetch_add(1, Ordering::Relaxed);
            return self.recycle(frame);
        }
        if line.bytes + frame.len() > LIMIT_BYTES || line.frames.len() >= LIMIT_FRAMES {
            counts.full.fetch_add(1, Ordering::Relaxed);
            return self.recycle(frame);
        }
        line.bytes += frame.len();
        // Frames stay in order even if the kernel's times of arrival don't.
        let due = now.saturating_add(delay).max(line.frames.back().map_or(Nanos::ZERO, |(due, _)| *due));
        line.frames.push_back((due, frame));
    }

    /// The next frame that arrives at the switch, the earliest of all links': its port, when it is due, its bytes.
    pub fn poll_arrival(&mut self, now: Nanos) -> Option<(u16, Nanos, Vec<u8>)> {
        let waiting = self.wires.iter_mut().filter(|wire| wire.arriving.due().is_some());
        let wire = waiting.min_by_key(|wire| wire.arriving.due())?;
        wire.arriving.pop(now).map(|(due, frame)| (wire.spec.port, due, frame))
    }

    /// The next frame for an interface: its port, its bytes.
    pub fn poll_departure(&mut self, now: Nanos) -> Option<(u16, Vec<u8>)> {
        self.wires
            .iter_mut()
            .find_map(|wire| wire.departing.pop(now).map(|(_, frame)| (wire.spec.port, frame)))
    }

    /// Takes a buffer back.
    pub fn recycle(&mut self, mut frame: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// When to poll next.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.wires.iter().flat_map(|wire| [wire.arriving.due(), wire.departing.due()]).flatten().min()
    }
}
