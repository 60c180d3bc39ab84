//! Queues that the control plane has configured: rates, priorities, weights, limits.

use super::plan::{QueueLimit, QueuePlan, Shaping, ShapingUnit};
use super::*;
use crate::pool::Meta;

/// Bytes that a frame of 996 bytes takes with its FCS, and on the wire.
const STORED: u64 = 1_000;
const WIRE: u64 = 1_020;
/// Nanoseconds of a frame on a wire of 1 Gb/s.
const WIRE_NS: u64 = WIRE * 8;

struct Rig {
    manager: TrafficManager,
    pool: Pool,
}

impl Rig {
    /// A port of 1 Gb/s.
    fn new() -> Rig {
        let ports = vec![PortConfig::new(1, 1_000_000_000)];
        let config = Config { ports, buffer_bytes: 1_000 * STORED, ..Config::default() };
        Rig { manager: TrafficManager::new(&config), pool: Pool::default() }
    }

    fn plan(&mut self, queue: u8, change: impl FnOnce(&mut QueuePlan), now: u64) {
        let mut plan = self.manager.queue_plan(0, queue);
        change(&mut plan);
        self.manager.set_queue_plan(0, queue, plan, Nanos(now));
    }

    /// Queues frames; how many found room.
    fn put(&mut self, queue: u8, count: usize, now: u64) -> usize {
        let mut taken = 0;
        for _ in 0..count {
            let id = self.pool.alloc(&[0; 996], Meta { priority: queue, ..Meta::default() });
            match self.manager.enqueue(&mut self.pool, id, 996, 0, Nanos(now)) {
                Ok(()) => taken += 1,
                Err(_) => self.pool.release(id),
            }
        }
        taken
    }

    /// Sends all that may leave before `until`, each polled `late` after its time; queues and times.
    fn run(&mut self, until: u64, late: u64) -> Vec<(u8, u64)> {
        let mut sent = Vec::new();
        while let Some(due) = self.manager.next_timeout().filter(|due| due.0 < until) {
            let now = due.saturating_add(Nanos(late));
            assert_eq!(self.manager.ready(now), Some(0));
            if let Some((id, _)) = self.manager.dequeue(&mut self.pool, 0, now) {
                let queue = self.pool.get(id).meta.priority;
                self.pool.release(id);
                self.manager.sent(0, 996, now);
                sent.push((queue, due.0));
            }
        }
        sent
    }
}

fn rate(rate_per_s: u64, burst: u64) -> Shaping {
    Shaping { enabled: true, unit: ShapingUnit::Bits, rate_per_s, burst }
}

fn of(sent: &[(u8, u64)], queue: u8) -> Vec<u64> {
    sent.iter().filter(|(own, _)| *own == queue).map(|(_, time)| *time).collect()
}

#[test]
fn a_shaped_queue_gets_its_rate_and_leaves_the_rest_to_others() {
    let mut rig = Rig::new();
    // A frame takes 80 µs of it, and delays by the wire are made up for.
    rig.plan(7, |plan| plan.most = rate(100_000_000, STORED), 0);
    rig.put(7, 20, 0);
    rig.put(0, 100, 0);
    let sent = rig.run(u64::MAX, 0);
    let (shaped, rest) = (of(&sent, 7), of(&sent, 0));
    assert_eq!((shaped.len(), rest.len()), (20, 100));
    // Behind the frame on the wire at its time; the burst is a frame.
    for (at, time) in shaped.iter().enumerate() {
        let due = (at as u64).saturating_sub(1) * 80_000;
        assert!((due..due + 2 * WIRE_NS).contains(time), "frame {at} at {time}");
    }
    assert!(rest[99] < 120 * WIRE_NS, "the wire is never idle: {}", rest[99]);
}

#[test]
fn a_burst_leaves_at_once_after_a_pause() {
    let mut rig = Rig::new();
    rig.plan(3, |plan| plan.most = rate(100_000_000, 4 * STORED), 0);
    rig.put(3, 8, 1_000_000_000);
    let times = of(&rig.run(u64::MAX, 0), 3);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Four from the burst, and one because nothing is owed.
    assert_eq!(gaps[..4], [WIRE_NS; 4]);
    assert_eq!(gaps[4], 80_000 - 4 * WIRE_NS);
    assert_eq!(gaps[5..], [80_000; 2]);
}

#[test]
fn late_polls_cost_no_rate() {
    let mut rig = Rig::new();
    rig.plan(5, |plan| plan.most = rate(100_000_000, 0), 0);
    rig.put(5, 50, 0);
    let times = of(&rig.run(u64::MAX, 1_000_000), 5);
    assert_eq!(times[49], 49 * 80_000);
}

#[test]
fn frames_per_second_of_a_port() {
    let mut rig = Rig::new();
    let shaping = Shaping { enabled: true, unit: ShapingUnit::Frames, rate_per_s: 1_000, burst: 0 };
    rig.manager.set_shaping(0, shaping, Nanos(0));
    rig.put(2, 2, 0);
    rig.put(6, 2, 0);
    let sent = rig.run(u64::MAX, 0);
    assert_eq!(sent, [(6, 0), (6, 1_000_000), (2, 2_000_000), (2, 3_000_000)]);
    rig.manager.set_shaping(0, Shaping::default(), Nanos(4_000_000));
    assert!(rig.manager.ports[0].plan.is_none(), "the port is an ordinary one again");
}

#[test]
fn priorities_are_those_of_the_plan_and_weights_decide_among_equals() {
    let mut rig = Rig::new();
    rig.plan(0, |plan| plan.priority = 7, 0);
    for (queue, weight) in [(1, 300), (2, 100)] {
        rig.plan(queue, |plan| (plan.priority, plan.weight) = (3, weight), 0);
    }
    for (queue, count) in [(2, 40), (1, 40), (0, 5)] {
        rig.put(queue, count, 0);
    }
    let sent = rig.run(u64::MAX, 0);
    assert_eq!(of(&sent[..5], 0).len(), 5);
    let first = &sent[5..45];
    assert!(of(first, 1).len().abs_diff(30) <= 1, "{}", of(first, 1).len());
    assert_eq!(of(&sent, 2).len(), 40);
}

/// A queue that was idle gets no more than its share afterwards.
#[test]
fn an_idle_queue_saves_nothing() {
    let mut rig = Rig::new();
    for queue in [1, 2] {
        rig.plan(queue, |plan| plan.priority = 3, 0);
    }
    rig.put(1, 50, 0);
    let before = rig.run(40 * WIRE_NS, 0);
    assert_eq!(of(&before, 1).len(), 40);
    rig.put(2, 20, 40 * WIRE_NS);
    let after = rig.run(60 * WIRE_NS, 0);
    assert!(of(&after, 1).len() >= 9, "{}", of(&after, 1).len());
}

/// Nor does one that was not served, or was served before others of another priority.
#[test]
fn a_queue_that_could_not_send_saves_nothing() {
    let mut rig = Rig::new();
    for queue in [1, 2] {
        rig.plan(queue, |plan| plan.priority = 3, 0);
    }
    rig.plan(2, |plan| plan.enabled = false, 0);
    rig.put(2, 20, 0);
    rig.put(1, 60, 0);
    assert_eq!(of(&rig.run(40 * WIRE_NS, 0), 1).len(), 40);
    rig.plan(2, |plan| plan.enabled = true, 40 * WIRE_NS);
    let after = rig.run(60 * WIRE_NS, 0);
    assert!(of(&after, 1).len() >= 9 && of(&after, 2).len() >= 9, "{after:?}");
    // To a priority at which nothing was sent yet, and back.
    rig.put(1, 60, 60 * WIRE_NS);
    rig.put(2, 60, 60 * WIRE_NS);
    rig.put(6, 60, 60 * WIRE_NS);
    rig.plan(1, |plan| plan.priority = 6, 60 * WIRE_NS);
    let equals = rig.run(80 * WIRE_NS, 0);
    assert!(of(&equals, 1).len() >= 9 && of(&equals, 6).len() >= 9, "{equals:?}");
}

/// Frames sent within the guarantee cost no share of the rest.
#[test]
fn a_guarantee_and_a_share_are_counted_apart() {
    let mut rig = Rig::new();
    for queue in [1, 2] {
        rig.plan(queue, |plan| plan.priority = 3, 0);
    }
    // Half of the wire.
    rig.plan(1, |plan| (plan.guaranteed, plan.guaranteed_priority) = (rate(490_000_000, STORED), 7), 0);
    rig.put(1, 100, 0);
    rig.put(2, 100, 0);
    let sent = rig.run(80 * WIRE_NS, 0);
    assert!((57..=63).contains(&of(&sent, 1).len()), "{}", of(&sent, 1).len());
}

#[test]
fn a_frame_that_comes_late_to_an_empty_queue_moves_no_due_time() {
    let mut rig = Rig::new();
    rig.plan(5, |plan| plan.most = rate(100_000_000, 0), 0);
    rig.put(1, 2, 0);
    rig.put(5, 1, WIRE_NS / 2);
    assert_eq!(rig.manager.next_timeout(), Some(Nanos(0)));
}

#[test]
fn a_guaranteed_rate_comes_first() {
    let mut rig = Rig::new();
    // 80 µs a frame at high priority, and the rest at the lowest.
    let change = |plan: &mut QueuePlan| {
        (plan.guaranteed, plan.guaranteed_priority) = (rate(100_000_000, STORED), 7);
    };
    rig.plan(0, change, 0);
    rig.put(0, 10, 0);
    rig.put(5, 100, 0);
    let sent = rig.run(50 * WIRE_NS, 0);
    let own = (50 * WIRE_NS).div_ceil(80_000) as usize;
    assert!((own..=own + 1).contains(&of(&sent, 0).len()), "{sent:?}");
}

#[test]
fn a_queue_that_is_not_served_waits_until_it_is() {
    let mut rig = Rig::new();
    rig.plan(4, |plan| plan.enabled = false, 0);
    rig.put(4, 3, 0);
    assert_eq!(rig.manager.next_timeout(), None);
    rig.put(1, 1, 10);
    assert_eq!(rig.run(u64::MAX, 0), [(1, 10)]);
    rig.plan(4, |plan| plan.enabled = true, 1_000_000);
    assert_eq!(rig.manager.queue_plan(0, 4), QueuePlan::of(4));
    assert_eq!(of(&rig.run(u64::MAX, 0), 4).len(), 3);
    assert_eq!(rig.manager.buffer().0, 0);
}

#[test]
fn limits_drop_and_drops_are_counted() {
    let mut rig = Rig::new();
    rig.plan(4, |plan| plan.limit = Some(QueueLimit { bytes: 5 * STORED, share_log2: None }), 0);
    assert_eq!((rig.put(4, 8, 0), rig.put(3, 8, 0)), (5, 8));
    let queues = rig.manager.queues(0);
    assert_eq!((queues[4].drops, queues[4].max_bytes, queues[3].drops), (3, 5 * STORED, 0));
    // Half of the free buffer: of 987 frames, a third.
    rig.plan(2, |plan| plan.limit = Some(QueueLimit { bytes: 0, share_log2: Some(-1) }), 0);
    assert_eq!(rig.put(2, 900, 0), 329);
    let counts = rig.manager.flush(&mut rig.pool, Nanos(0));
    assert_eq!((counts[0], rig.manager.buffer().0), (5 + 8 + 329, 0));
}
