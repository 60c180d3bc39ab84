//! Fair queueing: equal shares under any load; shares of the buffer; no credit for later.

use super::turns::TURN_BYTES;
use super::*;
use crate::pool::Meta;
use p4rack_wire::ethernet::overhead::wire_bytes;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Ports where frames come in. They leave at the last one.
const SOURCES: usize = 4;
/// Bytes of a frame in random traffic: few, so that a turn holds several.
const LONGEST: usize = 300;
/// Numbers of all ports begin here.
const FIRST: u16 = 10;

struct Rig {
    manager: TrafficManager,
    pool: Pool,
    /// Frames of each source in the queue.
    waiting: [usize; SOURCES],
    /// Bytes on the wire of each source that have left.
    sent: [u64; SOURCES],
}

impl Rig {
    fn new(buffer_bytes: u64) -> Rig {
        let ports = (0..=SOURCES as u16).map(|at| PortConfig::new(FIRST + at, 0)).collect();
        let config = Config { ports, buffer_bytes, queueing: Queueing::Fair, ..Config::default() };
        let (waiting, sent) = ([0; SOURCES], [0; SOURCES]);
        Rig { manager: TrafficManager::new(&config), pool: Pool::default(), waiting, sent }
    }

    fn put(&mut self, source: usize, len: usize) -> Result<(), DropReason> {
        let ingress_port = FIRST + source as u16;
        let id = self.pool.alloc(&vec![0; len], Meta { ingress_port, ..Meta::default() });
        let done = self.manager.enqueue(&mut self.pool, id, len, SOURCES, Nanos::ZERO);
        match done {
            Ok(()) => self.waiting[source] += 1,
            Err(_) => self.pool.release(id),
        }
        done
    }

    /// Sends a frame; its source and length.
    fn send(&mut self) -> Option<(usize, usize)> {
        let (id, left) = self.manager.dequeue(&mut self.pool, SOURCES, Nanos::ZERO)?;
        let packet = self.pool.get(id);
        let (source, len) = (usize::from(packet.meta.ingress_port - FIRST), packet.len());
        self.pool.release(id);
        self.waiting[source] -= 1;
        self.sent[source] += wire_bytes(len as u64);
        assert_eq!(left as usize, self.waiting.iter().sum::<usize>());
        Some((source, len))
    }
}

proptest! {
    /// While two sources have frames waiting, their sent bytes differ by less than a turn and a longest frame of each;
    /// frames of one source keep their order, and all leave.
    #[test]
    fn sources_with_frames_waiting_send_the_same(
        steps in prop::collection::vec(
            (
                prop::option::weighted(0.7, 0..SOURCES),
                prop_oneof![Just(1usize), 1usize..9, 1usize..200],
                60usize..=LONGEST,
                0usize..80,
            ),
            1..80,
        ),
    ) {
        let mut rig = Rig::new(1 << 30);
        // Bytes that each had sent when both of a pair last began to wait.
        let mut began = [[[0u64; SOURCES]; SOURCES]; SOURCES];
        let mut order: [VecDeque<usize>; SOURCES] = Default::default();
        let longest = wire_bytes(LONGEST as u64);
        for (source, count, len, sends) in steps {
            for _ in 0..source.map_or(0, |_| count) {
                let source = source.unwrap_or(0);
                if rig.waiting[source] == 0 {
                    began[source] = [rig.sent; SOURCES];
                    began.iter_mut().for_each(|of| of[source] = rig.sent);
                }
                rig.put(source, len).unwrap();
                order[source].push_back(len);
            }
            for _ in 0..sends {
                let Some((source, len)) = rig.send() else { break };
                prop_assert_eq!(order[source].pop_front(), Some(len));
                for one in (0..SOURCES).filter(|one| rig.waiting[*one] > 0) {
                    for other in (0..SOURCES).filter(|other| rig.waiting[*other] > 0) {
                        let of = |at: usize| rig.sent[at] - began[one][other][at];
                        prop_assert!(of(one) < of(other) + TURN_BYTES + 2 * longest, "{one} {other}: {:?}", rig.sent);
                    }
                }
            }
        }
        while rig.send().is_some() {}
        prop_assert_eq!((rig.manager.buffer().0, rig.pool.used()), (0, 0));
    }
}

/// A source that was idle, or had less to send than its share, gets no more than its share afterwards.
#[test]
fn turns_that_were_not_used_are_not_saved() {
    let mut rig = Rig::new(1 << 30);
    for _ in 0..400 {
        rig.put(0, 1_000).unwrap();
    }
    for _ in 0..100 {
        rig.put(1, 60).unwrap();
        while rig.waiting[1] > 0 {
            rig.send().unwrap();
        }
    }
    let before = rig.sent;
    for _ in 0..100 {
        rig.put(1, 1_000).unwrap();
    }
    for _ in 0..100 {
        rig.send().unwrap();
    }
    let sent: Vec<u64> = (0..2).map(|source| rig.sent[source] - before[source]).collect();
    assert!(sent[0].abs_diff(sent[1]) <= TURN_BYTES + 2 * wire_bytes(1_000), "{sent:?}");
}

/// A source that refills as soon as it is empty has no more than its share, either.
#[test]
fn a_source_that_is_empty_again_and_again_has_its_share() {
    let mut rig = Rig::new(1 << 30);
    for _ in 0..2_000 {
        rig.put(0, 500).unwrap();
    }
    for _ in 0..2_000 {
        if rig.waiting[1] == 0 {
            rig.put(1, 500).unwrap();
        }
        rig.send().unwrap();
    }
    assert!(rig.sent[1] < rig.sent[0] + 2 * TURN_BYTES, "{:?}", rig.sent);
}

/// A frame waits for a turn of each other source at most, however many frames the others have.
#[test]
fn a_frame_of_a_quiet_source_leaves_after_a_turn_of_each_other() {
    let mut rig = Rig::new(1 << 30);
    for source in 0..3 {
        for _ in 0..100 {
            rig.put(source, 60).unwrap();
        }
    }
    for _ in 0..3 {
        rig.put(3, 60).unwrap();
        let before: u64 = rig.sent.iter().sum();
        while rig.waiting[3] > 0 {
            rig.send().unwrap();
        }
        let passed = rig.sent.iter().sum::<u64>() - before;
        assert!(passed <= 3 * (TURN_BYTES + wire_bytes(60)), "{passed}");
    }
}

#[test]
fn what_one_source_sends_leaves_half_of_the_buffer_to_others() {
    let (frame, frames) = (104, 1_200);
    let mut rig = Rig::new(frame * frames);
    let mut fill = |source: usize| {
        let mut count = 0;
        loop {
            match rig.put(source, 100) {
                Ok(()) => count += 1,
                Err(reason) => return (count, reason),
            }
        }
    };
    assert_eq!(fill(0), (600, DropReason::IngressShare));
    assert_eq!(fill(1), (300, DropReason::IngressShare));
    assert_eq!(rig.manager.queues(SOURCES)[0].drops, 2);
    // The first one's backlog shrinks as it is served.
    while rig.waiting[0] > 400 {
        rig.send().unwrap();
    }
    let counts = rig.manager.flush(&mut rig.pool, Nanos::ZERO);
    assert_eq!((counts[SOURCES] as usize, rig.manager.buffer().0), (rig.waiting.iter().sum(), 0));
}

/// The control plane may give queues priorities and weights; within a queue, sources still take turns.
#[test]
fn turns_within_a_queue_and_weights_between_queues() {
    let mut rig = Rig::new(1 << 30);
    let plan = plan::QueuePlan { priority: 3, ..rig.manager.queue_plan(SOURCES, 0) };
    rig.manager.set_queue_plan(SOURCES, 0, plan, Nanos::ZERO);
    for (source, count) in [(0, 100), (1, 20)] {
        for _ in 0..count {
            rig.put(source, 1_000).unwrap();
        }
    }
    for _ in 0..30 {
        rig.send().unwrap();
    }
    assert!(rig.sent[0].abs_diff(rig.sent[1]) <= TURN_BYTES + 2 * wire_bytes(1_000), "{:?}", rig.sent);
}
