//! The traffic manager: eight queues per port with strict priority, one shared buffer, port rates.
//!
//! A port that has sent a frame is busy until `free_at`. If frames are waiting by then, the next one starts
//! at that time, even if the switch is polled late (up to the catch-up limit), so the mean rate stays exact. Wire time
//! includes preamble, FCS and gap; fractions of a nanosecond are carried over. The control plane may give the queues of
//! a port other priorities, rates and limits ([`plan`]). With fair queueing, the frames of a queue leave in turns of
//! their ingress ports ([`turns`]).

mod control;
pub(crate) mod plan;
mod port;
mod turns;

pub(crate) use port::reasons;

use crate::config::{Config, PortConfig, Queueing};
use crate::dues::Dues;
use crate::inlet::Inlet;
use crate::pool::{NONE, PacketId, Pool};
use crate::stats::{DropReason, PortStats};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead::{FCS, MIN_FRAME};
use port::{EgressPort, byte_time};

/// Number of port numbers that programs can represent.
const PORT_NUMBERS: usize = 512;
/// Frames up to this size skip the admission check while the buffer is nearly empty
/// ([`TrafficManager::easy_below`]): on an idle port one comparison replaces up to five.
const EASY: u64 = 10_240;

/// The value of [`TrafficManager::easy_below`] for a configuration.
fn easy_below(config: &Config) -> u64 {
    let unreserved = config.buffer_bytes.saturating_sub(config.reserved_bytes).saturating_sub(EASY);
    let shared =
        |percent: u32| config.buffer_bytes.saturating_sub((EASY + 1) * 100 / u64::from(percent.max(1)) + 1);
    unreserved.min(config.dynamic_percent.map_or(u64::MAX, shared))
}

/// Part of the buffer that each queue for numbers without a port may hold, at least a frame.
const NOWHERE_SHARE: u64 = 16;

/// Replaces a frame's ingress port at egress ports without turns.
const NO_TURNS: usize = usize::MAX;

/// The port that represents all numbers without one. It sends like the fastest of the others, so that programs whose
/// frames only pass its egress keep their rate, and its queues are short, so that such frames take no others' room.
fn nowhere(config: &Config) -> PortConfig {
    let rates = || config.ports.iter().map(|port| port.rate_bps);
    let rate_bps = if rates().any(|rate| rate == 0) { 0 } else { rates().max().unwrap_or(0) };
    let limit = (config.buffer_bytes / NOWHERE_SHARE).max(stored(config.max_frame_bytes));
    PortConfig { port: u16::MAX, rate_bps, queue_limit_bytes: Some(limit) }
}

/// Bytes of the buffer that a frame occupies, with FCS.
fn stored(len: usize) -> u64 {
    (len as u64).max(MIN_FRAME) + FCS
}

/// All ports and the buffer.
#[derive(Clone, Debug)]
pub(crate) struct TrafficManager {
    /// Those of the configuration, the one for numbers without a port, those whose frames come back, the CPU port.
    ports: Vec<EgressPort>,
    /// By position: the time from which frames waiting there for a wire can be sent.
    dues: Dues,
    /// Whether frames wait for the controller.
    pub cpu_waits: bool,
    /// Position in `ports` by port number.
    by_number: Vec<u16>,
    /// Position of the port for numbers without one.
    nowhere: usize,
    buffer_bytes: u64,
    reserved_bytes: u64,
    scheduled_priority: u8,
    dynamic_percent: Option<u32>,
    catch_up: Nanos,
    /// While less than this is used, an empty queue without a limit has room for [`EASY`] bytes, whatever its
    /// priority.
    easy_below: u64,
    used: u64,
    used_best_effort: u64,
    max_used: u64,
}

impl TrafficManager {
    pub fn new(config: &Config) -> TrafficManager {
        let mut manager = TrafficManager {
            ports: Vec::new(),
            dues: Dues::new(0),
            cpu_waits: false,
            by_number: vec![u16::MAX; PORT_NUMBERS],
            nowhere: 0,
            buffer_bytes: config.buffer_bytes,
            reserved_bytes: config.reserved_bytes.min(config.buffer_bytes),
            scheduled_priority: config.scheduled_priority,
            dynamic_percent: config.dynamic_percent,
            catch_up: config.catch_up,
            easy_below: easy_below(config),
            used: 0,
            used_best_effort: 0,
            max_used: 0,
        };
        for port in &config.ports {
            manager.add(port.clone(), config, false);
        }
        if config.queueing == Queueing::Fair {
            manager.ports.iter_mut().for_each(|port| port.turns = Some(Box::default()));
        }
        manager.nowhere = manager.ports.len();
        manager
            .ports
            .push(EgressPort { is_nowhere: true, ..EgressPort::new(nowhere(config), config, false) });
        if let Some(cpu) = config.cpu_port {
            manager.add(PortConfig::new(cpu, 0), config, true);
        }
        manager.dues = Dues::new(manager.ports.len());
        manager
    }

    fn add(&mut self, port: PortConfig, config: &Config, is_cpu: bool) {
        let number = port.port as usize;
        if self.by_number.get(number).is_none_or(|taken| *taken != u16::MAX) || port.port == config.drop_port
        {
            return;
        }
        self.by_number[number] = self.ports.len() as u16;
        self.ports.push(EgressPort::new(port, config, is_cpu));
    }

    /// Replaces the ports whose frames come back. Numbers of configured ports stay theirs. All queues are empty.
    pub fn set_loops(&mut self, numbers: &[u16], config: &Config) {
        if numbers.is_empty() && !self.ports.iter().any(|port| port.is_loop) {
            return;
        }
        let cpu = self.cpu().map(|at| self.ports.remove(at));
        self.ports.retain(|port| !port.is_loop);
        let taken = |manager: &TrafficManager, number: u16| {
            manager.ports.iter().chain(&cpu).any(|port| port.config.port == number)
        };
        self.by_number.fill(u16::MAX);
        for number in numbers.iter().filter(|number| !taken(self, **number)).collect::<Vec<_>>() {
            self.add(PortConfig::new(*number, 0), config, false);
            if let Some(port) = self.ports.last_mut().filter(|port| port.config.port == *number) {
                port.is_loop = true;
            }
        }
        self.ports.sort_by_key(|port| port.is_loop);
        self.ports.extend(cpu);
        self.by_number.fill(u16::MAX);
        for (at, port) in self.ports.iter().enumerate().filter(|(_, port)| !port.is_nowhere) {
            self.by_number[port.config.port as usize] = at as u16;
        }
        self.dues = Dues::new(self.ports.len());
    }

    /// Position of a port by its number.
    #[inline]
    pub fn find(&self, number: u64) -> Option<usize> {
        let at = *self.by_number.get(usize::try_from(number).ok()?)?;
        (at != u16::MAX).then_some(at as usize)
    }

    /// Position of the port for a number without one, if programs can represent the number.
    pub fn nowhere(&self, number: u64) -> Option<usize> {
        (number < PORT_NUMBERS as u64).then_some(self.nowhere)
    }

    /// Frames that wait there.
    pub fn nowhere_frames(&self) -> u64 {
        self.ports[self.nowhere].queues.iter().map(|queue| queue.stats.frames).sum()
    }

    /// Whether the port represents numbers without one.
    #[inline]
    pub fn is_nowhere(&self, at: usize) -> bool {
        at == self.nowhere
    }

    /// Position of the CPU port.
    pub fn cpu(&self) -> Option<usize> {
        self.ports.last().filter(|port| port.is_cpu).map(|_| self.ports.len() - 1)
    }

    /// Counters of a port.
    #[inline]
    pub fn port_mut(&mut self, at: usize) -> &mut EgressPort {
        &mut self.ports[at]
    }

    /// Whether frames sent to a port come back.
    #[inline]
    pub fn is_loop(&self, at: usize) -> bool {
        self.ports[at].is_loop
    }

    /// Number of a port.
    #[inline]
    pub fn number(&self, at: usize) -> u16 {
        self.ports[at].config.port
    }

    /// Changes a rate. The frame on the wire keeps the old one.
    pub fn set_rate(&mut self, at: usize, rate_bps: u64, config: &Config) {
        self.ports[at].config.rate_bps = rate_bps;
        self.ports[at].inlet = Inlet::new(rate_bps, config);
        self.ports[at].byte_time = byte_time(rate_bps);
        self.ports[at].fraction = 0;
    }

    /// Whether a queue of the port accepts this many more bytes.
    #[inline(always)]
    fn admit(&self, at: usize, priority: u8, bytes: u64) -> Result<(), DropReason> {
        let port = &self.ports[at];
        let queue = &port.queues[priority as usize & 7];
        let best_effort = priority < self.scheduled_priority;
        let over = |used: u64, limit: u64| used + bytes > limit;
        if port.config.queue_limit_bytes.is_some_and(|limit| over(queue.stats.bytes, limit)) {
            return Err(DropReason::QueueLimit);
        }
        if let Some(plan) = &port.plan
            && let free = self.buffer_bytes.saturating_sub(self.used)
            && plan.limit(priority as usize & 7, free).is_some_and(|limit| over(queue.stats.bytes, limit))
        {
            return Err(DropReason::QueueLimit);
        }
        let share = |percent: u32| self.buffer_bytes.saturating_sub(self.used) * u64::from(percent) / 100;
        if self.dynamic_percent.is_some_and(|percent| over(queue.stats.bytes, share(percent))) {
            return Err(DropReason::QueueLimit);
        }
        if over(self.used, self.buffer_bytes) {
            return Err(DropReason::BufferFull);
        }
        if best_effort {
            let part = self.buffer_bytes - self.reserved_bytes;
            if over(self.used_best_effort, part) {
                return Err(DropReason::BestEffortFull);
            }
            // Scheduled frames can keep a port busy, and best effort behind them waits as long.
            let at_port = || port.best_effort_bytes(self.scheduled_priority);
            if self.reserved_bytes > 0 && over(at_port(), part - self.used_best_effort) {
                return Err(DropReason::BestEffortShare);
            }
        }
        Ok(())
    }

    /// Whether a queue with turns accepts this many more bytes from the port at `from`: in the queue these hold at most as much of
    /// the buffer as is free. With a reserve, frames that may use it are bounded by the reserved part.
    #[inline(always)]
    fn admit_from(&self, at: usize, priority: u8, from: usize, bytes: u64) -> Result<(), DropReason> {
        let Some(turns) = &self.ports[at].turns else { return Ok(()) };
        let free = match (self.reserved_bytes, priority < self.scheduled_priority) {
            (0, _) => self.buffer_bytes - self.used,
            (reserved, true) => self.buffer_bytes - reserved - self.used_best_effort,
            (_, false) => return Ok(()),
        };
        match turns.bytes(priority.into(), from) + bytes > free {
            true => Err(DropReason::IngressShare),
            false => Ok(()),
        }
    }

    /// Lets a frame pass the empty queues of an idle port, as if it had been queued and dequeued at the same
    /// time. Returns false if it has to wait or has no room.
    #[inline(always)]
    pub fn pass(&mut self, at: usize, priority: u8, len: usize, now: Nanos) -> bool {
        let bytes = stored(len);
        let port = &self.ports[at];
        let is_plain = !port.is_cpu && !port.is_loop && port.plan.is_none();
        let idle = port.occupied == 0 && port.free_at <= now && is_plain;
        let easy = self.used < self.easy_below && bytes <= EASY && port.config.queue_limit_bytes.is_none();
        if !idle || !(easy || self.admit(at, priority, bytes).is_ok()) {
            return false;
        }
        self.max_used = self.max_used.max(self.used + bytes);
        let port = &mut self.ports[at];
        let queue = &mut port.queues[priority as usize & 7];
        queue.stats.max_bytes = queue.stats.max_bytes.max(bytes);
        port.depth.touch(bytes, now);
        true
    }

    /// Queues a packet that occupies `len` bytes at the port, with the priority in its metadata. An error is
    /// the reason for the drop.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        pool: &mut Pool,
        id: PacketId,
        len: usize,
        at: usize,
        now: Nanos,
    ) -> Result<(), DropReason> {
        let packet = pool.get_mut(id);
        let bytes = stored(len);
        let priority = packet.meta.priority & 7;
        let from = match self.ports[at].turns {
            None => NO_TURNS,
            Some(_) => self.find(packet.meta.ingress_port.into()).unwrap_or(self.nowhere),
        };
        let admitted = self.admit(at, priority, bytes);
        if let Err(reason) = admitted.and_then(|()| self.admit_from(at, priority, from, bytes)) {
            self.ports[at].queues[priority as usize].stats.drops += 1;
            return Err(reason);
        }
        let port = &mut self.ports[at];
        let queue = &mut port.queues[priority as usize];
        let best_effort = priority < self.scheduled_priority;
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
            // Frames for the controller never wait for a time.
            match port.is_cpu {
                true => self.cpu_waits = true,
                false => self.dues.set(at, port.free_at),
            }
        }
        let is_first = queue.stats.frames == 0;
        match &mut port.turns {
            None => {
                match queue.tail {
                    NONE => queue.head = id,
                    tail => pool.get_mut(tail).next = id,
                }
                queue.tail = id;
            }
            Some(turns) => queue.head = turns.push(pool, priority.into(), from, id),
        }
        queue.stats.frames += 1;
        queue.stats.bytes += bytes;
        queue.stats.max_bytes = queue.stats.max_bytes.max(queue.stats.bytes);
        port.occupied |= 1 << priority;
        port.depth.set(port.depth.bytes + bytes, now);
        if port.plan.is_some() && is_first {
            self.planned(at, priority, now);
        }
        Ok(())
    }

    /// A port, other than the CPU port, that can send now.
    #[inline]
    pub fn ready(&self, now: Nanos) -> Option<usize> {
        self.dues.ready(now)
    }

    /// The first time at which a port with waiting frames can send.
    #[inline]
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.dues.first()
    }

    /// Removes the next packet of a port. Also returns the number of frames left in its queue.
    #[inline(always)]
    pub fn dequeue(&mut self, pool: &mut Pool, at: usize, now: Nanos) -> Option<(PacketId, u64)> {
        let port = &self.ports[at];
        if port.plan.is_some() {
            return self.dequeue_planned(pool, at, now);
        }
        let priority = port.occupied.checked_ilog2()? as u8;
        self.take(pool, at, priority, now)
    }

    /// Removes the next packet of a queue that is not empty.
    #[inline(always)]
    fn take(&mut self, pool: &mut Pool, at: usize, priority: u8, now: Nanos) -> Option<(PacketId, u64)> {
        let port = &mut self.ports[at];
        let queue = &mut port.queues[priority as usize];
        let id = queue.head;
        let packet = pool.get(id);
        let bytes = packet.meta.charged;
        queue.head = match &mut port.turns {
            None => packet.next,
            Some(turns) => turns.pop(pool, priority.into()),
        };
        if queue.head == NONE {
            queue.tail = NONE;
            port.occupied &= !(1 << priority);
            if port.occupied == 0 {
                match port.is_cpu {
                    true => self.cpu_waits = false,
                    false => self.dues.set(at, Nanos::MAX),
                }
            }
        }
        queue.stats.frames -= 1;
        queue.stats.bytes -= bytes;
        self.used -= bytes;
        if priority < self.scheduled_priority {
            self.used_best_effort -= bytes;
        }
        let left = queue.stats.frames;
        port.depth.set(port.depth.bytes - bytes, now);
        Some((id, left))
    }

    /// Records that a frame of this length leaves the port now, which keeps it busy for the wire time.
    #[inline]
    pub fn sent(&mut self, at: usize, len: usize, now: Nanos) {
        let port = &mut self.ports[at];
        let earliest = now.saturating_sub(self.catch_up);
        port.send(len, port.free_at.max(port.waiting_since).max(earliest));
        self.busy(at);
    }

    /// Same for a frame that passed without being queued.
    #[inline(always)]
    pub fn sent_at_once(&mut self, at: usize, len: usize, now: Nanos) {
        self.ports[at].send(len, now);
        self.busy(at);
    }

    /// A port has started to send: frames waiting there have to wait until it is free again.
    #[inline(always)]
    fn busy(&mut self, at: usize) {
        let port = &self.ports[at];
        if port.occupied != 0 && !port.is_cpu {
            let due = port.plan.as_ref().map_or(port.free_at, |plan| plan.next(port.occupied, port.free_at));
            self.dues.set(at, due);
        }
    }

    /// Bytes queued at a port.
    pub fn queued_bytes(&self, at: usize) -> u64 {
        self.ports[at].depth.bytes
    }

    /// Bytes in the buffer: now, and the maximum.
    pub fn buffer(&self) -> (u64, u64) {
        (self.used, self.max_used)
    }

    /// Empties all queues and releases the packets; returns how many there were per port.
    pub fn flush(&mut self, pool: &mut Pool, now: Nanos) -> Vec<u64> {
        let mut counts = vec![0; self.ports.len()];
        for (at, count) in counts.iter_mut().enumerate() {
            while let Some(priority) = self.ports[at].occupied.checked_ilog2() {
                if let Some((id, _)) = self.take(pool, at, priority as u8, now) {
                    pool.release(id);
                }
                *count += 1;
            }
        }
        counts
    }

    /// Resets the counters.
    pub fn reset(&mut self, now: Nanos) {
        self.max_used = self.used;
        for port in &mut self.ports {
            (port.rx_frames, port.rx_bytes, port.tx_frames, port.tx_bytes) = (0, 0, 0, 0);
            port.drops.fill(0);
            port.depth.reset(now);
            for queue in &mut port.queues {
                (queue.stats.max_bytes, queue.stats.drops) = (queue.stats.bytes, 0);
            }
        }
    }

    /// Counters of all ports.
    pub fn stats(&self, now: Nanos) -> Vec<PortStats> {
        let shown =
            self.ports.iter().filter(|port| !port.is_nowhere && (!port.is_loop || port.rx_frames > 0));
        shown.map(|port| port.stats(now)).collect()
    }
}

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
#[path = "tm_tests.rs"]
mod tests;
#[cfg(test)]
mod turns_tests;
