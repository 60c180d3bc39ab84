//! The traffic manager alone: conservation, bounds, order, rates.

use super::*;
use crate::pool::Meta;
use proptest::prelude::*;

fn manager(config: &Config) -> (TrafficManager, Pool) {
    (TrafficManager::new(config), Pool::default())
}

fn ports(rates: &[u64]) -> Vec<PortConfig> {
    rates.iter().enumerate().map(|(at, &rate)| PortConfig::new(at as u16 + 1, rate)).collect()
}

fn put(
    manager: &mut TrafficManager,
    pool: &mut Pool,
    len: usize,
    priority: u8,
    at: usize,
    now: u64,
) -> Result<PacketId, DropReason> {
    let id = pool.alloc(&vec![0; len], Meta { priority, ..Meta::default() });
    manager
        .enqueue(pool, id, pool.get(id).len().min(pool.get(id).meta.truncate as usize), at, Nanos(now))
        .map(|()| id)
        .inspect_err(|_| pool.release(id))
}

#[test]
fn higher_priorities_leave_first_and_equals_in_order() {
    let (mut manager, mut pool) = manager(&Config { ports: ports(&[0]), ..Config::default() });
    let ids: Vec<PacketId> = [0, 7, 3, 7, 0, 3]
        .into_iter()
        .map(|priority| put(&mut manager, &mut pool, 100, priority, 0, 0).expect("room"))
        .collect();
    let mut order = Vec::new();
    while let Some((id, _)) = manager.dequeue(&mut pool, 0, Nanos(1)) {
        order.push(ids.iter().position(|&known| known == id).expect("one of ours"));
    }
    assert_eq!(order, [1, 3, 2, 5, 0, 4]);
}

#[test]
fn the_reserve_is_for_scheduled_classes() {
    let config = Config {
        ports: ports(&[0; 8]),
        buffer_bytes: 10 * 104,
        reserved_bytes: 4 * 104,
        scheduled_priority: 4,
        ..Config::default()
    };
    let (mut manager, mut pool) = manager(&config);
    for at in [0, 0, 0, 1, 2, 3] {
        assert_eq!(put(&mut manager, &mut pool, 100, 3, at, 0).err(), None);
    }
    assert_eq!(put(&mut manager, &mut pool, 100, 3, 4, 0).err(), Some(DropReason::BestEffortFull));
    for _ in 0..4 {
        assert_eq!(put(&mut manager, &mut pool, 100, 4, 0, 0).err(), None);
    }
    assert_eq!(put(&mut manager, &mut pool, 100, 7, 0, 0).err(), Some(DropReason::BufferFull));
    assert_eq!(put(&mut manager, &mut pool, 100, 0, 0, 0).err(), Some(DropReason::BufferFull));
    assert_eq!(manager.buffer(), (1040, 1040));
}

/// Under any load of best effort to busy ports, some of its part is left to other ports.
#[test]
fn no_port_takes_all_of_best_efforts_part() {
    let config = Config {
        ports: ports(&[0; 8]),
        buffer_bytes: 80 * 104,
        reserved_bytes: 20 * 104,
        scheduled_priority: 4,
        ..Config::default()
    };
    let (mut manager, mut pool) = manager(&config);
    let mut fill = |at: usize| {
        let mut taken = 0;
        // In all classes of best effort together.
        for priority in [0, 1, 2, 3].into_iter().cycle() {
            match put(&mut manager, &mut pool, 100, priority, at, 0) {
                Ok(_) => taken += 1,
                Err(reason) => return (taken, reason),
            }
        }
        unreachable!()
    };
    // Of 60 frames half, of the rest half, and so on.
    for (at, expected) in [(0, 30), (1, 15), (2, 8), (3, 4), (4, 2), (5, 1)] {
        let reason = if at < 5 { DropReason::BestEffortShare } else { DropReason::BestEffortFull };
        assert_eq!(fill(at), (expected, reason), "port {at}");
    }
    assert!(put(&mut manager, &mut pool, 100, 4, 0, 0).is_ok(), "scheduled frames don't share this");

    // Without a reserve nothing is scheduled, and a port may take all.
    let (mut manager, mut pool) = self::manager(&Config { reserved_bytes: 0, ..config });
    let taken = (0..100).filter(|_| put(&mut manager, &mut pool, 100, 0, 0, 0).is_ok()).count();
    assert_eq!(taken, 80);
}

#[test]
fn a_queue_has_its_own_limit() {
    let mut config = Config { ports: ports(&[0, 0]), ..Config::default() };
    config.ports[0].queue_limit_bytes = Some(200);
    let (mut manager, mut pool) = manager(&config);
    // A short frame is stored as the shortest one with its FCS.
    assert!(put(&mut manager, &mut pool, 14, 1, 0, 0).is_ok());
    assert!(put(&mut manager, &mut pool, 132, 1, 0, 0).is_ok());
    assert_eq!(put(&mut manager, &mut pool, 14, 1, 0, 0).err(), Some(DropReason::QueueLimit));
    assert!(put(&mut manager, &mut pool, 14, 2, 0, 0).is_ok());
    assert!(put(&mut manager, &mut pool, 500, 1, 1, 0).is_ok());
}

/// Sends all that is ready at each of the times; gives frames sent.
fn drain(manager: &mut TrafficManager, pool: &mut Pool, now: u64) -> u64 {
    let mut sent = 0;
    while let Some(at) = manager.ready(Nanos(now)) {
        let (id, _) = manager.dequeue(pool, at, Nanos(now)).expect("ready ports have frames");
        let len = pool.get(id).len();
        manager.sent(at, len, Nanos(now));
        pool.release(id);
        sent += 1;
    }
    sent
}

#[test]
fn an_idle_port_saves_nothing_up() {
    let (mut manager, mut pool) = manager(&Config { ports: ports(&[1_000_000_000]), ..Config::default() });
    for _ in 0..3 {
        put(&mut manager, &mut pool, 1000, 0, 0, 1_000_000).expect("room");
    }
    // 1024 bytes on the wire at 1 Gb/s: 8192 ns.
    assert_eq!(drain(&mut manager, &mut pool, 1_000_000), 1);
    assert_eq!(manager.next_timeout(), Some(Nanos(1_008_192)));
    assert_eq!(drain(&mut manager, &mut pool, 1_008_191), 0);
    // Late by more than a frame: the lost time is made up for.
    assert_eq!(drain(&mut manager, &mut pool, 1_020_000), 2);
    assert_eq!(manager.next_timeout(), None);
}

#[test]
fn making_up_is_bounded() {
    let config = Config { ports: ports(&[1_000_000_000]), catch_up: Nanos(20_000), ..Config::default() };
    let (mut manager, mut pool) = manager(&config);
    for _ in 0..100 {
        put(&mut manager, &mut pool, 1000, 0, 0, 0).expect("room");
    }
    assert_eq!(drain(&mut manager, &mut pool, 0), 1);
    assert_eq!(drain(&mut manager, &mut pool, 10_000_000), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Frames in = sent + dropped + queued, the buffer is never overrun, and its use is the queued
    /// frames.
    #[test]
    fn nothing_is_lost_and_bounds_hold(
        buffer in 200u64..20_000,
        reserved in 0u64..20_000,
        limit in proptest::option::of(100u64..5_000),
        steps in proptest::collection::vec((0u64..50_000, 0usize..2_000, 0u8..8, 0usize..3, any::<bool>()), 1..300),
    ) {
        let mut config = Config {
            ports: ports(&[0, 100_000_000, 7_777_777_777]),
            buffer_bytes: buffer,
            reserved_bytes: reserved,
            ..Config::default()
        };
        config.ports[1].queue_limit_bytes = limit;
        let (mut manager, mut pool) = manager(&config);
        let (mut now, mut frames_in, mut dropped, mut sent) = (0, 0u64, 0u64, 0u64);
        for (wait, len, priority, at, poll) in steps {
            now += wait;
            frames_in += 1;
            dropped += u64::from(put(&mut manager, &mut pool, len, priority, at, now).is_err());
            if poll {
                sent += drain(&mut manager, &mut pool, now);
            }
            let stats = manager.stats(Nanos(now));
            let queued: u64 = stats.iter().flat_map(|port| port.queues).map(|queue| queue.frames).sum();
            let bytes: u64 = stats.iter().flat_map(|port| port.queues).map(|queue| queue.bytes).sum();
            let best_effort: u64 = stats.iter().flat_map(|port| &port.queues[..4]).map(|queue| queue.bytes).sum();
            prop_assert_eq!(frames_in, sent + dropped + queued);
            prop_assert_eq!(pool.used() as u64, queued);
            prop_assert_eq!(manager.buffer().0, bytes);
            prop_assert!(bytes <= buffer);
            prop_assert!(best_effort <= buffer.saturating_sub(reserved));
            prop_assert!(limit.is_none_or(|limit| stats[1].queues.iter().all(|queue| queue.bytes <= limit)));
            for port in &stats {
                prop_assert_eq!(port.queue_bytes, port.queues.iter().map(|queue| queue.bytes).sum::<u64>());
                prop_assert!(port.queue_bytes <= port.queue_max_bytes);
                prop_assert_eq!(port.histogram.iter().map(|bin| bin.nanos).sum::<u64>(), now);
            }
        }
        while let Some(at) = manager.next_timeout() {
            now = now.max(at.0);
            sent += drain(&mut manager, &mut pool, now);
        }
        prop_assert_eq!(frames_in, sent + dropped);
        prop_assert_eq!(pool.used(), 0);
    }

    /// A backlogged port sends exactly its rate, even if polled irregularly.
    #[test]
    fn the_rate_is_exact_under_jitter(
        rate in prop_oneof![Just(100_000_000u64), Just(100_000_000_000), 1_000_000u64..400_000_000_000],
        polls in proptest::collection::vec(1u64..3_000, 50..200),
        len in 60usize..1500,
    ) {
        let config = Config { ports: ports(&[rate]), samples: 4, ..Config::default() };
        let (mut manager, mut pool) = manager(&config);
        let wire_bits = (len as u128 + 24) * 8;
        let unit = (wire_bits * 1_000_000_000 / u128::from(rate)).max(1) as u64;
        let (mut now, mut sent) = (0, 0u64);
        for jitter in polls {
            now += jitter * unit / 1000;
            while manager.stats(Nanos(now))[0].queues[0].frames < 10 {
                put(&mut manager, &mut pool, len, 0, 0, now).expect("room");
            }
            sent += drain(&mut manager, &mut pool, now);
        }
        let expect = (u128::from(now) * u128::from(rate)).div_ceil(wire_bits * 1_000_000_000);
        // The first frame waits for the first poll; one more may be on the wire.
        prop_assert!(u128::from(sent) <= expect + 1, "sent {} of {}", sent, expect);
        prop_assert!(u128::from(sent) + 5 >= expect, "sent {} of {}", sent, expect);
    }
}
