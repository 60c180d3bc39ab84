//! Links with delay and loss.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_switchd::wire::{WireSpec, Wires};
use p4rack_wire::Nanos;

fn spec(port: u16, delay: Nanos, loss_ppm: u32) -> WireSpec {
    WireSpec { port, delay, loss_ppm }
}

#[test]
fn frames_come_in_order_when_they_are_due() {
    let mut wires = Wires::new(&[spec(3, Nanos(100), 0)], 1);
    assert!(!wires.arrive(1, b"other", Nanos(0)));
    assert!(wires.arrive(3, b"one", Nanos(10)) && wires.arrive(3, b"two", Nanos(5)));
    let mut frame = b"out".to_vec();
    assert!(wires.depart(3, &mut frame, Nanos(20)));
    assert!(frame.is_empty());
    assert_eq!(wires.next_timeout(), Some(Nanos(110)));
    assert_eq!(wires.poll_arrival(Nanos(109)), None);
    assert_eq!(wires.poll_arrival(Nanos(110)), Some((3, Nanos(110), b"one".to_vec())));
    // It was stamped earlier, and does not overtake.
    assert_eq!(wires.poll_arrival(Nanos(110)), Some((3, Nanos(110), b"two".to_vec())));
    assert_eq!(wires.poll_departure(Nanos(119)), None);
    assert_eq!(wires.poll_departure(Nanos(120)), Some((3, b"out".to_vec())));
    assert_eq!(wires.next_timeout(), None);
}

#[test]
fn losses_are_counted_and_are_the_share_that_was_asked_for() {
    let mut wires = Wires::new(&[spec(1, Nanos::ZERO, 100_000)], 7);
    let mut came = 0u64;
    for _ in 0..10_000 {
        assert!(wires.arrive(1, b"frame", Nanos(1)));
        came += u64::from(wires.poll_arrival(Nanos(1)).is_some());
    }
    let (port, lost, full) = wires.counts().read().next().unwrap();
    assert_eq!((port, came + lost, full), (1, 10_000, 0));
    assert!((900..1_100).contains(&lost), "{lost}");
}

#[test]
fn a_link_is_bounded_and_counts_what_does_not_fit() {
    let mut wires = Wires::new(&[spec(1, Nanos::from_secs(1), 0)], 1);
    let frame = vec![0; 1 << 20];
    for _ in 0..20 {
        assert!(wires.arrive(1, &frame, Nanos(1)));
    }
    assert_eq!(wires.counts().read().next(), Some((1, 0, 4)));
    let mut out = std::iter::from_fn(|| wires.poll_arrival(Nanos::from_secs(2)));
    assert_eq!(out.by_ref().count(), 16);
    assert!(wires.arrive(1, &frame, Nanos(1)));
    assert_eq!(wires.counts().read().next(), Some((1, 0, 4)), "there is room again");
}

#[test]
fn a_link_holds_a_number_of_short_frames() {
    let mut wires = Wires::new(&[spec(1, Nanos::from_secs(1), 0)], 1);
    for _ in 0..65_537 {
        assert!(wires.arrive(1, &[0; 60], Nanos(1)));
    }
    assert_eq!(wires.counts().read().next(), Some((1, 0, 1)));
}

#[test]
fn frames_of_all_links_arrive_in_the_order_of_their_times() {
    let mut wires = Wires::new(&[spec(1, Nanos(100), 0), spec(2, Nanos(100), 0)], 1);
    for (port, at) in [(1, 10), (2, 5), (1, 30), (2, 20)] {
        assert!(wires.arrive(port, b"x", Nanos(at)));
    }
    let all = std::iter::from_fn(|| wires.poll_arrival(Nanos(1_000)));
    let order: Vec<_> = all.map(|(port, due, _)| (port, due.0)).collect();
    assert_eq!(order, [(2, 105), (1, 110), (2, 120), (1, 130)]);
}

#[test]
fn links_without_delay_and_loss_are_none() {
    let mut wires = Wires::new(&[spec(1, Nanos::ZERO, 0)], 1);
    assert!(!wires.arrive(1, b"x", Nanos(0)));
    assert_eq!(wires.counts().read().count(), 0);
}
