//! Queues of ports from the control plane: service, limits, counters.

use super::Switch;
use crate::error::ControlError;
use crate::stats::QueueStats;
use crate::tm::plan::{QUEUES, QueuePlan, Shaping};
use p4rack_wire::Nanos;

/// Largest weight of a queue.
const MOST_WEIGHT: u16 = 1023;

/// Frames that wait at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortQueues {
    /// Bytes (with FCS) in all its queues now.
    pub bytes: u64,
    /// Maximum of `bytes` since the last reset.
    pub max_bytes: u64,
    /// Queues by number.
    pub queues: [QueueStats; QUEUES],
}

impl Switch {
    /// The position of a port with a wire.
    fn wired(&self, port: u16) -> Result<usize, ControlError> {
        let at = self.manager.find(port.into()).filter(|at| self.manager.has_wire(*at));
        at.ok_or_else(|| ControlError::NotFound(format!("front-panel port {port}")))
    }

    fn queue_of(&self, port: u16, queue: u8) -> Result<usize, ControlError> {
        match usize::from(queue) < QUEUES {
            true => self.wired(port),
            false => Err(ControlError::NotFound(format!("queue {queue} of port {port}, which has 0 to 7"))),
        }
    }

    /// Frames that wait at a port.
    pub fn port_queues(&self, port: u16) -> Result<PortQueues, ControlError> {
        let at = self.wired(port)?;
        let (bytes, max_bytes) = self.manager.depth(at);
        Ok(PortQueues { bytes, max_bytes, queues: self.manager.queues(at) })
    }

    /// Bytes (with FCS) in the shared buffer: now, and the maximum since the last reset.
    pub fn buffer_use(&self) -> (u64, u64) {
        self.manager.buffer()
    }

    /// Sets a queue's counters: its drops to 0, its maximum to its current depth.
    pub fn queue_reset(
        &mut self,
        port: u16,
        queue: u8,
        drops: bool,
        maximum: bool,
    ) -> Result<(), ControlError> {
        let at = self.queue_of(port, queue)?;
        let stats = self.manager.queue_stats_mut(at, queue);
        if drops {
            stats.drops = 0;
        }
        if maximum {
            stats.max_bytes = stats.bytes;
        }
        Ok(())
    }

    /// How a queue is served.
    pub fn queue_plan(&self, port: u16, queue: u8) -> Result<QueuePlan, ControlError> {
        Ok(self.manager.queue_plan(self.queue_of(port, queue)?, queue))
    }

    /// Changes a queue's service, immediately. It stays when programs change.
    pub fn queue_plan_set(
        &mut self,
        port: u16,
        queue: u8,
        plan: QueuePlan,
        now: Nanos,
    ) -> Result<(), ControlError> {
        let at = self.queue_of(port, queue)?;
        let wrong =
            |what: String| Err(ControlError::Invalid(format!("queue {queue} of port {port}: {what}")));
        for priority in [plan.priority, plan.guaranteed_priority] {
            if usize::from(priority) >= QUEUES {
                return wrong(format!("priority {priority} is not 0 to 7"));
            }
        }
        if plan.weight == 0 || plan.weight > MOST_WEIGHT {
            return wrong(format!("weight {} is not 1 to {MOST_WEIGHT}", plan.weight));
        }
        for shaping in [plan.guaranteed, plan.most] {
            if shaping.enabled && shaping.rate_per_s == 0 {
                return wrong("a rate of 0 can't be enabled; set a rate first".into());
            }
        }
        self.manager.set_queue_plan(at, queue, plan, now);
        Ok(())
    }

    /// The shaper of a port, beside the rate of its wire.
    pub fn port_shaping(&self, port: u16) -> Result<Shaping, ControlError> {
        Ok(self.manager.shaping(self.wired(port)?))
    }

    /// Changes it, immediately. It stays when programs change.
    pub fn port_shaping_set(&mut self, port: u16, shaping: Shaping, now: Nanos) -> Result<(), ControlError> {
        let at = self.wired(port)?;
        if shaping.enabled && shaping.rate_per_s == 0 {
            let message = format!("port {port}: a rate of 0 can't be enabled; set a rate first");
            return Err(ControlError::Invalid(message));
        }
        self.manager.set_shaping(at, shaping, now);
        Ok(())
    }
}
