//! How a port is served, from the control plane, and serving it so.

use super::TrafficManager;
use super::plan::{PortPlan, QUEUES, QueuePlan, Shaping};
use crate::pool::{PacketId, Pool};
use crate::stats::QueueStats;
use p4rack_wire::Nanos;

impl TrafficManager {
    /// Whether the queues of a port may be configured: those of a wire.
    pub fn has_wire(&self, at: usize) -> bool {
        !self.ports[at].is_cpu && !self.ports[at].is_loop && !self.ports[at].is_nowhere
    }

    /// How a queue is served.
    pub fn queue_plan(&self, at: usize, queue: u8) -> QueuePlan {
        let plan = self.ports[at].plan.as_deref();
        plan.map_or_else(|| QueuePlan::of(queue), |plan| plan.queue(queue as usize % QUEUES))
    }

    /// Changes it. Frames that wait are served by it.
    pub fn set_queue_plan(&mut self, at: usize, queue: u8, plan: QueuePlan, now: Nanos) {
        self.replan(at, now, |port| port.set_queue(queue as usize % QUEUES, plan, now));
    }

    /// The shaper of a port.
    pub fn shaping(&self, at: usize) -> Shaping {
        self.ports[at].plan.as_ref().map_or_else(Shaping::default, |plan| plan.shaping())
    }

    /// Changes it.
    pub fn set_shaping(&mut self, at: usize, shaping: Shaping, now: Nanos) {
        self.replan(at, now, |port| port.set_shaping(shaping, now));
    }

    fn replan(&mut self, at: usize, now: Nanos, change: impl FnOnce(&mut PortPlan)) {
        let port = &mut self.ports[at];
        let mut plan = port.plan.take().unwrap_or_else(|| Box::new(PortPlan::new(now)));
        change(&mut plan);
        port.plan = (!plan.is_default()).then_some(plan);
        // Frames that waited for another reason start now.
        port.waiting_since = port.waiting_since.max(now);
        self.busy(at);
    }

    /// Counters of the queues of a port.
    pub fn queues(&self, at: usize) -> [QueueStats; QUEUES] {
        self.ports[at].queues.map(|queue| queue.stats)
    }

    /// Bytes queued at a port: now, and the maximum.
    pub fn depth(&self, at: usize) -> (u64, u64) {
        (self.ports[at].depth.bytes, self.ports[at].depth.max_bytes)
    }

    /// Counters of a queue, to be changed.
    pub fn queue_stats_mut(&mut self, at: usize, queue: u8) -> &mut QueueStats {
        &mut self.ports[at].queues[queue as usize % QUEUES].stats
    }

    /// A planned queue has a frame after it had none.
    #[cold]
    pub(super) fn planned(&mut self, at: usize, priority: u8, now: Nanos) {
        let port = &self.ports[at];
        if let Some(plan) = &port.plan {
            let next = plan.next(port.occupied, port.free_at.max(now));
            // Waiting frames may have been due before: late polls cost no rate.
            let is_alone = port.occupied & !(1 << priority) == 0;
            self.dues.set(at, if is_alone { next } else { next.min(self.dues.of(at)) });
        }
    }

    /// Removes the packet that the port's plan sends next. `None` if it is none's time.
    #[cold]
    #[inline(never)]
    pub(super) fn dequeue_planned(
        &mut self,
        pool: &mut Pool,
        at: usize,
        now: Nanos,
    ) -> Option<(PacketId, u64)> {
        // A port that is polled late sends when it could have sent.
        let due = self.dues.of(at).max(now.saturating_sub(self.catch_up)).min(now);
        let port = &mut self.ports[at];
        let plan = port.plan.as_mut()?;
        let Some(queue) = plan.choose(port.occupied, due) else {
            let next = plan.next(port.occupied, due.saturating_add(Nanos(1)));
            self.dues.set(at, if port.occupied == 0 { Nanos::MAX } else { next });
            return None;
        };
        port.waiting_since = port.waiting_since.max(due);
        let bytes = pool.get(port.queues[queue].head).meta.charged;
        plan.take(queue, bytes, due);
        let taken = self.take(pool, at, queue as u8, now);
        let port = &self.ports[at];
        if let Some(plan) = port.plan.as_ref().filter(|_| port.occupied != 0) {
            self.dues.set(at, plan.next(port.occupied, port.free_at.max(due)));
        }
        taken
    }
}
