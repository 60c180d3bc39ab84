//! Both ends over a wire that loses, copies and delays.

use super::*;
use crate::message::MTU;
use crate::random::Random;
use std::collections::BTreeMap;

const CONFIG: Config =
    Config { blind_bytes: 61 * 1_024, active: 0, timeout: Nanos::from_millis(1), frame_time: Nanos(124) };
const DELAY: Nanos = Nanos(1_000);

#[derive(Clone, Copy)]
enum Flying {
    Data(FlowId, Part),
    Reply(Reply),
}

/// Senders over one link of 100 Gb/s. When all has arrived, and how much.
fn run(messages: &[(FlowId, u32)], loss: f64, duplication: f64, reordering: f64, seed: u64) -> (Nanos, u64) {
    let (end, new, _) = run_with(CONFIG, messages, [loss, duplication, reordering], seed);
    (end, new)
}

/// The same, and how many frames were sent again.
fn run_with(
    config: Config,
    messages: &[(FlowId, u32)],
    [loss, duplication, reordering]: [f64; 3],
    seed: u64,
) -> (Nanos, u64, u64) {
    let flows = messages.iter().map(|(flow, _)| *flow + 1).max().unwrap();
    let mut senders: Vec<Sender> = (0..flows).map(|_| Sender::new(config)).collect();
    let mut receiver = Receiver::new(config);
    let mut random = Random::new(seed);
    messages.iter().for_each(|(flow, size)| senders[*flow as usize].write(0, *size));
    let (mut flying, mut count) = (BTreeMap::new(), 0);
    let (mut now, mut free_at, mut new, mut done) = (Nanos::ZERO, Nanos::ZERO, 0, 0);
    while done < messages.len() {
        let mut put = |what, at: Nanos| {
            let copies = if random.chance(loss) { 0 } else { 1 + u64::from(random.chance(duplication)) };
            for _ in 0..copies {
                count += 1;
                let late = if random.chance(reordering) { random.below(5_000) } else { 0 };
                flying.insert((at + DELAY + Nanos(late), count), what);
            }
        };
        for (flow, sender) in senders.iter_mut().enumerate() {
            while let Some(part) = sender.poll(now) {
                free_at = free_at.max(now) + CONFIG.frame_time;
                put(Flying::Data(flow as FlowId, part), free_at);
            }
        }
        while let Some(reply) = receiver.poll() {
            put(Flying::Reply(reply), now);
        }
        let timers = senders.iter().filter_map(Sender::next_timeout).chain(receiver.next_timeout());
        let first = flying.first_key_value().map(|(key, _)| key.0);
        now = now.max(timers.chain(first).min().expect("it goes on"));
        assert!(now < Nanos::from_secs(10), "it comes to an end");
        senders.iter_mut().for_each(|sender| sender.handle_timeout(now));
        receiver.handle_timeout(now);
        while flying.first_key_value().is_some_and(|(key, _)| key.0 <= now) {
            match flying.pop_first().unwrap().1 {
                Flying::Data(flow, part) => {
                    let (bytes, whole) = receiver.handle(flow, &part, now);
                    new += bytes;
                    done += usize::from(whole);
                }
                Flying::Reply(Reply::Grant { flow, key, to }) => {
                    senders[flow as usize].handle_grant(key, to, now);
                }
                Flying::Reply(Reply::Resend { flow, key, ranges, count }) => {
                    senders[flow as usize].handle_resend(key, &ranges[..count], now);
                }
                Flying::Reply(Reply::Done { flow, key }) => senders[flow as usize].handle_done(key),
            }
        }
    }
    (now, new, senders.iter().map(|sender| sender.retransmissions).sum())
}

#[test]
fn every_byte_arrives_once_whatever_the_wire_does() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let messages: Vec<(FlowId, u32)> =
            (0..12).map(|_| (random.below(4) as FlowId, 1 + random.below(300_000) as u32)).collect();
        let total: u64 = messages.iter().map(|(_, size)| u64::from(*size)).sum();
        let mut share = || random.unit() * 0.2;
        let (_, new) = run(&messages, share(), share(), share(), seed);
        assert_eq!(new, total, "{seed}");
    }
}

/// 30 messages of 3 MB take 7 ms: most wait for longer than a timeout.
#[test]
fn what_waits_for_its_turn_is_not_sent_again() {
    for active in [0, 1, 2] {
        let messages: Vec<(FlowId, u32)> = (0..30).map(|flow| (flow, 3_000_000)).collect();
        let (_, new, again) = run_with(Config { active, ..CONFIG }, &messages, [0.0; 3], 1);
        assert_eq!((new, again), (90_000_000, 0), "{active} active");
    }
}

#[test]
fn alone_it_reaches_the_line_rate() {
    let (end, new) = run(&[(0, 30_000_000)], 0.0, 0.0, 0.0, 1);
    let share = new as f64 / f64::from(MTU) * CONFIG.frame_time.0 as f64 / end.0 as f64;
    assert!(share > 0.99 && share <= 1.0, "{share}");
}
