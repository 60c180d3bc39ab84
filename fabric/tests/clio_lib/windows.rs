//! Congestion at a board's link, and incast at a node.

use crate::clio_lib::board::Moods;
use crate::clio_lib::world::{World, config};
use p4rack_fabric::clio::lib::{Config, Operation};
use p4rack_wire::Nanos;

/// Bytes of each write, a packet.
const BYTES: usize = 512;

/// Twenty clients that write as fast as their windows permit. Returns the longest queue before the board in the second half, and the
/// share of the link's time that was used.
fn incast(queueing: Nanos) -> (Nanos, f64) {
    let config = Config { queueing, timeout_max: Nanos::from_millis(1), ..config() };
    let config = Config { timeout: Nanos::from_micros(500), memory: Nanos::from_millis(3), ..config };
    let mut world = World::new(&config, 20, 1, Moods::default(), 3);
    world.board_bps = 10_000_000_000;
    let address = world.boards[0].alloc(4_000);
    let data = [7; BYTES];
    let mut pages: Vec<u64> = (0..20).map(|client| address + 200 * 4_096 * client).collect();
    let (half, end) = (Nanos::from_micros(1_000), Nanos::from_micros(2_000));
    let (mut done, mut is_first_half) = (0u64, true);
    let mut free: Vec<usize> = (0..20).flat_map(|client| [client; 48]).collect();
    while world.now < end {
        for client in free.drain(..) {
            // Each to a page of its own: nothing depends on anything.
            let first = address + 200 * 4_096 * client as u64;
            pages[client] =
                if pages[client] + 4_096 < first + 199 * 4_096 { pages[client] + 4_096 } else { first };
            world.submit(client, 0, 0, Operation::Write { address: pages[client], bytes: &data }).unwrap();
        }
        if is_first_half && world.now >= half {
            is_first_half = false;
            (world.queue_max, done) = (Nanos::ZERO, 0);
        }
        assert!(world.step(&mut |client, _, _| {
            done += 1;
            free.push(client);
        }));
    }
    let carried = Nanos::on_wire(done * (BYTES as u64 + 48 + 66), 10_000_000_000);
    (world.queue_max, carried.0 as f64 / (end - half).0 as f64)
}

#[test]
fn delay_limits_the_queue_before_a_board_and_its_link_stays_busy() {
    let (queue, used) = incast(Nanos::from_micros(3));
    assert!(queue < Nanos::from_micros(25), "{queue}");
    assert!(used > 0.85, "{used}");
    // The planted mistake: no delay is too long, so windows never shrink. All that is asked for waits in the queue.
    let (queue, _) = incast(Nanos::from_secs(1));
    assert!(queue > Nanos::from_micros(100), "{queue}");
}

#[test]
fn answers_that_are_expected_fit_into_two_round_trips_of_the_link() {
    let config = Config { link_bps: 10_000_000_000, ..config() };
    let mut world = World::new(&config, 1, 4, Moods::default(), 1);
    let addresses: Vec<u64> = world.boards.iter_mut().map(|board| board.alloc(64)).collect();
    let (mut most, mut left) = (0, 0);
    for nth in 0..200u64 {
        let board = (nth % 4) as u16;
        let address = addresses[usize::from(board)] + 4_096 * (nth / 4 % 64);
        let read = Operation::Read { address, bytes: 4_096 };
        let now = world.now;
        world.clients[0].submit((nth % 4) as u16, board, nth, read, now).unwrap();
        left += 1;
        world.step(&mut |_, _, _| left -= 1);
        most = most.max(world.clients[0].under_way(0).1);
    }
    while world.step(&mut |_, _, _| left -= 1) {
        most = most.max(world.clients[0].under_way(0).1);
    }
    // Round trips have at most 3 µs: 7.5 KB, and a packet more where a board's smallest delay has changed.
    assert_eq!(left, 0);
    assert!((2_000..8_200).contains(&most), "{most}");
}
