//! A port of the traffic manager.

use super::plan::{PortPlan, QUEUES};
use super::turns::Turns;
use crate::config::{Config, PortConfig};
use crate::depth::Depth;
use crate::inlet::Inlet;
use crate::pool::{NONE, PacketId};
use crate::stats::{DropReason, PortStats, QueueStats};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::wire_bytes;

/// Wire time of a byte at a rate, in 2⁻⁶⁴ ns. Rounded up, so that an end on a whole nanosecond stays there.
pub(super) fn byte_time(rate_bps: u64) -> u128 {
    match rate_bps {
        0 => 0,
        rate => (8_000_000_000u128 << 64).div_ceil(rate.into()),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub head: PacketId,
    pub tail: PacketId,
    pub stats: QueueStats,
}

/// State of an egress port: its queues and when its wire is free.
#[derive(Clone, Debug)]
pub(crate) struct EgressPort {
    pub(super) config: PortConfig,
    /// Whether its frames go to the controller instead of a wire.
    pub(super) is_cpu: bool,
    /// Whether its frames come back instead of leaving. The loaded program brings such ports.
    pub is_loop: bool,
    /// Whether it represents all numbers without a port: its frames end behind egress.
    pub(super) is_nowhere: bool,
    pub(super) queues: [Queue; QUEUES],
    /// How they are served, if not strictly by their numbers.
    pub(super) plan: Option<Box<PortPlan>>,
    /// The order of frames in its queues, with fair queueing. The head of a queue is then the next to leave, and there is no tail.
    pub(super) turns: Option<Box<Turns>>,
    /// Bit `p` is set if the queue of priority `p` is not empty.
    pub(super) occupied: u8,
    pub(super) free_at: Nanos,
    /// Time since which frames have been waiting.
    pub(super) waiting_since: Nanos,
    /// Wire time of a byte in 2⁻⁶⁴ ns, rounded up; 0 is no limit.
    pub(super) byte_time: u128,
    /// Wire time carried over, in 2⁻⁶⁴ ns.
    pub(super) fraction: u64,
    pub(super) depth: Depth,
    pub inlet: Inlet,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub drops: [u64; DropReason::ALL.len()],
}

impl EgressPort {
    /// A port without frames.
    pub(super) fn new(port: PortConfig, config: &Config, is_cpu: bool) -> EgressPort {
        EgressPort {
            byte_time: byte_time(port.rate_bps),
            // Frames from the controller do not arrive over a wire.
            inlet: Inlet::new(if is_cpu { 0 } else { port.rate_bps }, config),
            config: port,
            is_cpu,
            is_loop: false,
            is_nowhere: false,
            queues: [Queue { head: NONE, tail: NONE, stats: QueueStats::default() }; QUEUES],
            plan: None,
            turns: None,
            occupied: 0,
            free_at: Nanos::ZERO,
            waiting_since: Nanos::ZERO,
            fraction: 0,
            depth: Depth::new(config.buffer_bytes, config.sample_interval, config.samples),
            rx_frames: 0,
            rx_bytes: 0,
            tx_frames: 0,
            tx_bytes: 0,
            drops: [0; DropReason::ALL.len()],
        }
    }

    /// Bytes queued below this priority.
    pub(super) fn best_effort_bytes(&self, scheduled_priority: u8) -> u64 {
        self.queues.iter().take(scheduled_priority.into()).map(|queue| queue.stats.bytes).sum()
    }

    /// Makes the port busy with a frame of this length from `start` on.
    #[inline(always)]
    pub(super) fn send(&mut self, len: usize, start: Nanos) {
        self.tx_frames += 1;
        self.tx_bytes += len as u64;
        if start != self.free_at {
            self.fraction = 0;
        }
        let time = self.byte_time * u128::from(wire_bytes(len as u64)) + u128::from(self.fraction);
        self.fraction = time as u64;
        self.free_at = start.saturating_add(Nanos((time >> 64) as u64));
    }

    pub(super) fn stats(&self, now: Nanos) -> PortStats {
        PortStats {
            port: self.config.port,
            rate_bps: self.config.rate_bps,
            rx_frames: self.rx_frames,
            rx_bytes: self.rx_bytes,
            tx_frames: self.tx_frames,
            tx_bytes: self.tx_bytes,
            queue_bytes: self.depth.bytes,
            queue_max_bytes: self.depth.max_bytes,
            queues: self.queues.map(|queue| queue.stats),
            histogram: self.depth.histogram(now),
            samples: self.depth.samples(),
            drops: reasons(&self.drops),
        }
    }
}

/// Counts by reason, for reasons that occurred.
pub(crate) fn reasons(counts: &[u64]) -> Vec<(DropReason, u64)> {
    DropReason::ALL.into_iter().zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}
