//! How the queues of a port share it, where the control plane has said so: shapers, priorities, weights, limits. Other
//! ports serve the highest queue first and pay for none of this.
//!
//! ```text
//!  queue ─▶ guaranteed rate left? ── its priority for that ──┐
//!        └▶ most rate left? ──────── its other priority ─────┴▶ highest first, equals by weight ─▶ port's rate left? ─▶ wire
//! ```

use p4rack_wire::Nanos;

/// Queues of a port.
pub const QUEUES: usize = 8;
/// Levels are counted in billionths of a bit or frame, so that a rate per second times nanoseconds is exact.
const SCALE: i128 = 1_000_000_000;
/// Bits per second of an unlimited rate: the largest number of 32 bits, in kilobits.
const NO_LIMIT: u64 = u32::MAX as u64 * 1000;
/// Virtual time of a byte at weight 1.
const BYTE: u128 = 1 << 16;

/// Unit of a shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShapingUnit {
    /// Bits of frames with FCS, without preamble and gap.
    #[default]
    Bits,
    /// Frames.
    Frames,
}

/// A rate and its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// Whether it acts.
    pub enabled: bool,
    /// Counted unit.
    pub unit: ShapingUnit,
    /// Bits or frames per second.
    pub rate_per_s: u64,
    /// Bytes or frames that may leave back to back after a pause. A frame may leave as long as nothing is owed, so at
    /// least one always may.
    pub burst: u64,
}

impl Default for Shaping {
    /// None: a rate above that of any wire, which does not act.
    fn default() -> Shaping {
        Shaping { enabled: false, unit: ShapingUnit::Bits, rate_per_s: NO_LIMIT, burst: 0 }
    }
}

/// Limit of a queue's use of the shared buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// Bytes (with FCS) that it may always hold as far as the buffer has room.
    pub bytes: u64,
    /// Beyond these, it may hold 2 to the power of this times the free part of the buffer.
    pub share_log2: Option<i8>,
}

/// How a queue is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Whether it is served at all.
    pub enabled: bool,
    /// Rate up to which it has `guaranteed_priority`.
    pub guaranteed: Shaping,
    /// Priority within the guaranteed rate, 0 to 7, the highest first.
    pub guaranteed_priority: u8,
    /// The most that it may send.
    pub most: Shaping,
    /// Priority otherwise, 0 to 7, the highest first.
    pub priority: u8,
    /// Share among queues of the same priority, at least 1.
    pub weight: u16,
    /// Its limit; `None`: as much as the switch's configuration says.
    pub limit: Option<QueueLimit>,
}

impl QueuePlan {
    /// Service of an unconfigured queue: strictly by its number.
    pub fn of(queue: u8) -> QueuePlan {
        QueuePlan {
            enabled: true,
            guaranteed: Shaping::default(),
            guaranteed_priority: queue,
            most: Shaping::default(),
            priority: queue,
            weight: 1023,
            limit: None,
        }
    }
}

/// A shaper's level: below 0 something is owed.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    shaping: Shaping,
    level: i128,
    last: Nanos,
}

impl Bucket {
    /// A full one.
    fn new(shaping: Shaping, now: Nanos) -> Bucket {
        Bucket { level: full(shaping), shaping, last: now }
    }

    fn set(&mut self, shaping: Shaping, now: Nanos) {
        if shaping != self.shaping {
            *self = Bucket::new(shaping, now);
        }
    }

    /// The time from which nothing is owed.
    fn due(&self) -> Nanos {
        if !self.shaping.enabled {
            return Nanos::ZERO;
        }
        let owed = u128::try_from(-self.level).unwrap_or(0);
        if owed == 0 {
            return self.last;
        }
        match u128::from(self.shaping.rate_per_s) {
            0 => Nanos::MAX,
            rate => self.last.saturating_add(Nanos(u64::try_from(owed.div_ceil(rate)).unwrap_or(u64::MAX))),
        }
    }

    fn fill(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let gained = i128::from(passed.0).saturating_mul(self.shaping.rate_per_s.into());
        self.level = self.level.saturating_add(gained).min(full(self.shaping));
    }

    fn take(&mut self, bytes: u64, now: Nanos) {
        if self.shaping.enabled {
            self.fill(now);
            self.level -= SCALE * i128::from(amount(self.shaping.unit, bytes));
        }
    }
}

fn amount(unit: ShapingUnit, bytes: u64) -> u64 {
    match unit {
        ShapingUnit::Bits => bytes.saturating_mul(8),
        ShapingUnit::Frames => 1,
    }
}

fn full(shaping: Shaping) -> i128 {
    let burst = match shaping.unit {
        ShapingUnit::Bits => i128::from(shaping.burst) * 8,
        ShapingUnit::Frames => shaping.burst.into(),
    };
    burst * SCALE
}

#[derive(Clone, Copy, Debug)]
struct Served {
    plan: QueuePlan,
    guaranteed: Bucket,
    most: Bucket,
    /// Virtual times, as bytes sent by weight: beyond and within the guaranteed rate. Each has a priority and a share.
    virtual_times: [u128; 2],
}

/// How all queues of a port are served.
#[derive(Clone, Debug)]
pub(crate) struct PortPlan {
    port: Bucket,
    queues: [Served; QUEUES],
    /// By priority, the virtual time at which the last frame was served. Queues that could not send begin there, so a
    /// queue that waited for another reason than its share saves nothing (start-time fair queueing, Goyal, Vin and
    /// Cheng, 1996).
    virtual_times: [u128; QUEUES],
}

impl PortPlan {
    /// As if there were none.
    pub fn new(now: Nanos) -> PortPlan {
        let idle = Bucket::new(Shaping::default(), now);
        let queue = |queue| Served {
            plan: QueuePlan::of(queue as u8),
            guaranteed: idle,
            most: idle,
            virtual_times: [0; 2],
        };
        PortPlan { port: idle, queues: std::array::from_fn(queue), virtual_times: [0; QUEUES] }
    }

    /// Whether it is as if there were none.
    pub fn is_default(&self) -> bool {
        let is_own = |(at, queue): (usize, &Served)| queue.plan == QueuePlan::of(at as u8);
        self.port.shaping == Shaping::default() && self.queues.iter().enumerate().all(is_own)
    }

    pub fn shaping(&self) -> Shaping {
        self.port.shaping
    }

    pub fn set_shaping(&mut self, shaping: Shaping, now: Nanos) {
        self.port.set(shaping, now);
    }

    pub fn queue(&self, queue: usize) -> QueuePlan {
        self.queues[queue].plan
    }

    pub fn set_queue(&mut self, queue: usize, plan: QueuePlan, now: Nanos) {
        let own = &mut self.queues[queue];
        // Among other queues than before, its sent bytes are meaningless.
        if own.plan.priority != plan.priority {
            own.virtual_times[0] = 0;
        }
        if own.plan.guaranteed_priority != plan.guaranteed_priority {
            own.virtual_times[1] = 0;
        }
        own.plan = plan;
        own.guaranteed.set(plan.guaranteed, now);
        own.most.set(plan.most, now);
    }

    /// Limit of a queue while this much of the buffer is free.
    pub fn limit(&self, queue: usize, free: u64) -> Option<u64> {
        let limit = self.queues[queue].plan.limit?;
        let share = limit.share_log2.map_or(0, |log2| match log2 {
            0.. => free.saturating_mul(1 << log2.min(16)),
            _ => free >> -log2.max(-63),
        });
        Some(limit.bytes.max(share))
    }

    /// The first time, from `from` on, at which one of the queues in `occupied` may send; `Nanos::MAX`: never.
    pub fn next(&self, occupied: u8, from: Nanos) -> Nanos {
        let waiting = (0..QUEUES).filter(|queue| occupied >> queue & 1 != 0);
        let first = waiting.map(|queue| &self.queues[queue]).filter(|own| own.plan.enabled);
        let first = first.map(|own| own.most.due()).min().unwrap_or(Nanos::MAX);
        first.max(self.port.due()).max(from)
    }

    /// The queue of those in `occupied` that sends at this time.
    pub fn choose(&mut self, occupied: u8, now: Nanos) -> Option<usize> {
        if self.port.due() > now {
            return None;
        }
        let may = |queue: &usize| {
            let own = &self.queues[*queue];
            occupied >> queue & 1 != 0 && own.plan.enabled && own.most.due() <= now
        };
        let rank = |queue: &usize| {
            let own = &self.queues[*queue];
            (own.class(now), std::cmp::Reverse(self.start(own, now)), *queue)
        };
        (0..QUEUES).filter(may).max_by_key(rank)
    }

    /// A queue sends a frame that takes this many bytes of the buffer.
    pub fn take(&mut self, queue: usize, bytes: u64, now: Nanos) {
        self.port.take(bytes, now);
        let own = &self.queues[queue];
        let (class, is_guaranteed) = (own.class(now), own.is_guaranteed(now));
        let start = self.start(own, now);
        self.virtual_times[class as usize % QUEUES] = start;
        let own = &mut self.queues[queue];
        let cost = u128::from(bytes) * BYTE / u128::from(own.plan.weight.max(1));
        own.virtual_times[usize::from(is_guaranteed)] = start + cost;
        if is_guaranteed {
            own.guaranteed.take(bytes, now);
        }
        own.most.take(bytes, now);
    }

    /// The virtual time at which a queue's next frame begins, among those of its priority.
    fn start(&self, own: &Served, now: Nanos) -> u128 {
        let sent = own.virtual_times[usize::from(own.is_guaranteed(now))];
        sent.max(self.virtual_times[own.class(now) as usize % QUEUES])
    }
}

impl Served {
    fn is_guaranteed(&self, now: Nanos) -> bool {
        self.plan.guaranteed.enabled && self.guaranteed.due() <= now
    }

    /// Its priority at this time.
    fn class(&self, now: Nanos) -> u8 {
        if self.is_guaranteed(now) { self.plan.guaranteed_priority } else { self.plan.priority }
    }
}
