//! The traffic manager: eight queues a port with strict priority, one shared buffer, port rates.
//!
//! A port that has sent a frame is busy until `free_at`. If frames waited at that time, the next one
//! starts then, however late the switch is polled (up to the catch-up limit): the mean rate
//! stays exact. Wire time counts preamble, FCS and gap, and the fraction of a nanosecond is carried on.

use crate::config::{Config, PortConfig};
use crate::depth::Depth;
use crate::pool::{NONE, PacketId, Pool};
use crate::stats::{DropReason, PortStats, QueueStats};
use p4rack_wire::Nanos;

/// Port numbers that `standard_metadata` can hold.
const PORT_NUMBERS: usize = 512;
/// Shortest Ethernet frame without FCS.
const SHORTEST: u64 = 60;
/// Frame check sequence.
const FCS: u64 = 4;
/// Preamble, start delimiter and gap.
const GAP: u64 = 20;

/// Bytes (with FCS) that a frame holds of the buffer.
fn stored(len: usize) -> u64 {
    (len as u64).max(SHORTEST) + FCS
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: PacketId,
    tail: PacketId,
    stats: QueueStats,
}

/// A port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    config: PortConfig,
    /// Frames for the controller, not for a wire.
    is_cpu: bool,
    queues: [Queue; 8],
    /// Bit `p`: the queue of priority `p` holds something.
    occupied: u8,
    free_at: Nanos,
    /// Since when something waits.
    waiting_since: Nanos,
    /// Bits times 10⁹ that did not make a whole nanosecond.
    fraction: u64,
    depth: Depth,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub drops: [u64; DropReason::ALL.len()],
}

/// All ports and the buffer.
#[derive(Clone, Debug)]
pub(crate) struct TrafficManager {
    ports: Vec<Port>,
    /// When each port may send next; [`Nanos::MAX`] where nothing waits. Apart, for short scans.
    due: Vec<Nanos>,
    /// Position in `ports` by number.
    by_number: Vec<u16>,
    buffer_bytes: u64,
    reserved_bytes: u64,
    scheduled_priority: u8,
    dynamic_percent: Option<u32>,
    catch_up: Nanos,
    used: u64,
    used_best_effort: u64,
    max_used: u64,
}

impl TrafficManager {
    pub fn new(config: &Config) -> TrafficManager {
        let mut manager = TrafficManager {
            ports: Vec::new(),
            due: Vec::new(),
            by_number: vec![u16::MAX; PORT_NUMBERS],
            buffer_bytes: config.buffer_bytes,
            reserved_bytes: config.reserved_bytes.min(config.buffer_bytes),
            scheduled_priority: config.scheduled_priority,
            dynamic_percent: config.dynamic_percent,
            catch_up: config.catch_up,
            used: 0,
            used_best_effort: 0,
            max_used: 0,
        };
        for port in &config.ports {
            manager.add(port.clone(), config, false);
        }
        if let Some(cpu) = config.cpu_port {
            manager.add(PortConfig::new(cpu, 0), config, true);
        }
        manager
    }

    fn add(&mut self, port: PortConfig, config: &Config, is_cpu: bool) {
        let number = port.port as usize;
        if self.by_number.get(number).is_none_or(|taken| *taken != u16::MAX) || port.port == config.drop_port
        {
            return;
        }
        self.by_number[number] = self.ports.len() as u16;
        self.due.push(Nanos::MAX);
        self.ports.push(Port {
            config: port,
            is_cpu,
            queues: [Queue { head: NONE, tail: NONE, stats: QueueStats::default() }; 8],
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
        });
    }

    /// Position of a port by its number.
    #[inline]
    pub fn find(&self, number: u64) -> Option<usize> {
        let at = *self.by_number.get(usize::try_from(number).ok()?)?;
        (at != u16::MAX).then_some(at as usize)
    }

    /// Position of the CPU port.
    pub fn cpu(&self) -> Option<usize> {
        self.ports.last().filter(|port| port.is_cpu).map(|_| self.ports.len() - 1)
    }

    /// Whether frames wait for the controller.
    #[inline]
    pub fn cpu_waits(&self) -> bool {
        self.ports.last().is_some_and(|port| port.is_cpu && port.occupied != 0)
    }

    /// A port's counters.
    pub fn port_mut(&mut self, at: usize) -> &mut Port {
        &mut self.ports[at]
    }

    /// Number of a port.
    pub fn number(&self, at: usize) -> u16 {
        self.ports[at].config.port
    }

    /// Changes a rate; the frame on the wire keeps its own.
    pub fn set_rate(&mut self, at: usize, rate_bps: u64) {
        self.ports[at].config.rate_bps = rate_bps;
        self.ports[at].fraction = 0;
    }

    /// Puts a packet into a queue of the port, or says why not. Its meta says which.
    pub fn enqueue(
        &mut self,
        pool: &mut Pool,
        id: PacketId,
        at: usize,
        now: Nanos,
    ) -> Result<(), DropReason> {
        let packet = pool.get_mut(id);
        let bytes = stored(packet.len().min(packet.meta.truncate as usize));
        let priority = packet.meta.priority & 7;
        let port = &mut self.ports[at];
        let queue = &mut port.queues[priority as usize];
        let best_effort = priority < self.scheduled_priority;
        let over = |used: u64, limit: u64| used + bytes > limit;
        if port.config.queue_limit_bytes.is_some_and(|limit| over(queue.stats.bytes, limit)) {
            return Err(DropReason::QueueLimit);
        }
        let share = |percent: u32| self.buffer_bytes.saturating_sub(self.used) * u64::from(percent) / 100;
        if self.dynamic_percent.is_some_and(|percent| over(queue.stats.bytes, share(percent))) {
            return Err(DropReason::QueueLimit);
        }
        if over(self.used, self.buffer_bytes) {
            return Err(DropReason::BufferFull);
        }
        if best_effort && over(self.used_best_effort, self.buffer_bytes - self.reserved_bytes) {
            return Err(DropReason::BestEffortFull);
        }
        self.used += bytes;
        self.max_used = self.max_used.max(self.used);
        self.used_best_effort += if best_effort { bytes } else { 0 };
        packet.meta.priority = priority;
        packet.meta.egress_port = port.config.port;
        packet.meta.charged = bytes;
        packet.meta.enqueued = now;
        packet.meta.enqueued_depth = queue.stats.frames as u32;
        packet.next = NONE;
        if port.occupied == 0 {
            port.waiting_since = now;
        }
        match queue.tail {
            NONE => queue.head = id,
            tail => pool.get_mut(tail).next = id,
        }
        queue.tail = id;
        queue.stats.frames += 1;
        queue.stats.bytes += bytes;
        queue.stats.max_bytes = queue.stats.max_bytes.max(queue.stats.bytes);
        port.occupied |= 1 << priority;
        port.depth.set(port.depth.bytes + bytes, now);
        self.due[at] = port.due();
        Ok(())
    }

    /// A port (other than the CPU's) that may send now.
    #[inline]
    pub fn ready(&self, now: Nanos) -> Option<usize> {
        self.due.iter().position(|&due| due <= now && due != Nanos::MAX)
    }

    /// When the first port that has something may send.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.due.iter().copied().filter(|&due| due != Nanos::MAX).min()
    }

    /// Takes the packet that is next at a port; also gives the frames left in its queue.
    pub fn dequeue(&mut self, pool: &mut Pool, at: usize, now: Nanos) -> Option<(PacketId, u64)> {
        let port = &mut self.ports[at];
        let priority = port.occupied.checked_ilog2()? as u8;
        let queue = &mut port.queues[priority as usize];
        let id = queue.head;
        let packet = pool.get_mut(id);
        let bytes = packet.meta.charged;
        queue.head = packet.next;
        if queue.head == NONE {
            queue.tail = NONE;
            port.occupied &= !(1 << priority);
        }
        queue.stats.frames -= 1;
        queue.stats.bytes -= bytes;
        self.used -= bytes;
        if priority < self.scheduled_priority {
            self.used_best_effort -= bytes;
        }
        let left = queue.stats.frames;
        port.depth.set(port.depth.bytes - bytes, now);
        self.due[at] = port.due();
        Some((id, left))
    }

    /// A frame of this length leaves the port now: it is busy for its wire time.
    pub fn sent(&mut self, at: usize, len: usize, now: Nanos) {
        let port = &mut self.ports[at];
        port.tx_frames += 1;
        port.tx_bytes += len as u64;
        let earliest = now.saturating_sub(self.catch_up);
        let start = port.free_at.max(port.waiting_since).max(earliest);
        if start != port.free_at {
            port.fraction = 0;
        }
        let rate = port.config.rate_bps;
        port.free_at = start;
        if rate != 0 {
            let time = (stored(len) + GAP) * 8 * 1_000_000_000 + port.fraction;
            port.fraction = time % rate;
            port.free_at = start.saturating_add(Nanos(time / rate));
        }
        self.due[at] = port.due();
    }

    /// Bytes that wait at a port.
    pub fn queued_bytes(&self, at: usize) -> u64 {
        self.ports[at].depth.bytes
    }

    /// Bytes in the buffer now and at most.
    pub fn buffer(&self) -> (u64, u64) {
        (self.used, self.max_used)
    }

    /// Empties all queues; gives the packets back and says how many there were a port.
    pub fn flush(&mut self, pool: &mut Pool, now: Nanos) -> Vec<u64> {
        let mut counts = vec![0; self.ports.len()];
        for (at, count) in counts.iter_mut().enumerate() {
            while let Some((id, _)) = self.dequeue(pool, at, now) {
                pool.release(id);
                *count += 1;
            }
        }
        counts
    }

    /// Counters start again.
    pub fn reset(&mut self, now: Nanos) {
        self.max_used = self.used;
        for port in &mut self.ports {
            (port.rx_frames, port.rx_bytes, port.tx_frames, port.tx_bytes) = (0, 0, 0, 0);
            port.drops.fill(0);
            port.depth.reset(now);
            for queue in &mut port.queues {
                queue.stats.max_bytes = queue.stats.bytes;
            }
        }
    }

    /// Counters of all ports.
    pub fn stats(&self, now: Nanos) -> Vec<PortStats> {
        self.ports.iter().map(|port| port.stats(now)).collect()
    }
}

impl Port {
    /// When it may send next. What is for the controller never waits for a time.
    fn due(&self) -> Nanos {
        if self.occupied == 0 || self.is_cpu { Nanos::MAX } else { self.free_at }
    }

    fn stats(&self, now: Nanos) -> PortStats {
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

/// Reasons that occurred.
pub(crate) fn reasons(counts: &[u64]) -> Vec<(DropReason, u64)> {
    DropReason::ALL.into_iter().zip(counts.iter().copied()).filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
#[path = "tm_tests.rs"]
mod tests;
