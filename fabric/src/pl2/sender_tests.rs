//! A sender's bursts: what they reserve, wait for and give back.

use super::*;
use crate::common::Pool;
use Ordering::{Greater, Less};

const NOW: Nanos = Nanos(0);

fn destination(frames: usize) -> Destination {
    short_frames(frames, 1)
}

fn short_frames(frames: usize, bytes: u32) -> Destination {
    with_flows(None, &vec![(0, bytes); frames])
}

/// Frames of a byte each, which is a slot.
fn by_flow(own_frames: Option<usize>, frames: &[u32]) -> Destination {
    with_flows(own_frames, &frames.iter().map(|number| (*number, 1)).collect::<Vec<_>>())
}

fn with_flows(own_frames: Option<usize>, frames: &[(u32, u32)]) -> Destination {
    let flows = (1, Flows::new(own_frames));
    let peer = Peer { mac: MacAddr::default(), slot: Nanos(1), far: false };
    let mut destination = Destination::new(peer, 0, Lanes::new(8, true), flows);
    let mut pool = Pool::<()>::new(usize::MAX);
    for (number, bytes) in frames {
        destination.push_frame(*number, Waiting { frame: pool.store(&[b""]), bytes: *bytes });
    }
    destination
}

/// A burst in the next cell; its RSV has its number.
fn ask(destination: &mut Destination, demand: u8, unsolicited: bool) -> u8 {
    let state = State::Asked { tries: 0, deadline: None };
    let cell = destination.take_cell(NOW).unwrap();
    let (id, frames) = (cell.into(), demand.into());
    destination.push(Burst { cell, id, left_at: None, frames, demand, flow: 0, unsolicited, state });
    cell
}

fn grant(cell: u8, id: u32, demand: u8) -> Control {
    Control { version: 1, kind: 2, demand, cell, unsolicited: 0, reserved: 0, id, send_wait: 0, recv_wait: 9 }
}

/// A slot a frame.
fn demand(destination: &Destination, in_flight: usize, k: u8) -> Option<u8> {
    let slots = Slots { bytes: 1, parts: 1, k: k.into(), piece: k.into() };
    let mut destination = Destination { in_flight, ..destination.clone() };
    destination.next_wanted(slots, NOW).map(|wanted| wanted.demand)
}

#[test]
fn reserves_what_is_queued_up_to_k_in_flight_and_lanes() {
    let mut d = destination(6);
    assert_eq!(demand(&d, 2, 4), Some(4));
    ask(&mut d, 4, false);
    assert_eq!(demand(&d, 1, 4), None);
    assert_eq!(demand(&d, 2, 4), Some(2));
    ask(&mut d, 2, false);
    assert_eq!(demand(&d, 3, 4), None, "nothing left");
    d.bursts.clear();
    d.in_nic = 1;
    assert_eq!((demand(&d, 1, 4), demand(&d, 2, 4)), (None, Some(4)), "what waits in the NIC is in flight");
    (0..6).for_each(|_| assert!(d.take_cell(NOW).is_some()));
    assert_eq!(demand(&d, 9, 4), None, "all lanes are taken");
}

#[test]
fn short_frames_share_slots() {
    let ask_in = |parts, bytes| {
        let slots = Slots { bytes: 100, parts, k: 2, piece: 2 };
        let wanted = short_frames(9, bytes).next_wanted(slots, NOW);
        wanted.map(|wanted| (wanted.frames, wanted.demand))
    };
    let ask = |share| ask_in(1, share);
    assert_eq!(
        (ask(10), ask(30), ask(60), ask(100)),
        (Some((9, 1)), Some((6, 2)), Some((3, 2)), Some((2, 2)))
    );
    // The same frames in quarters of slots.
    assert_eq!(
        (ask_in(4, 2), ask_in(4, 10), ask_in(4, 30), ask_in(4, 60), ask_in(4, 100)),
        (Some((9, 1)), Some((9, 4)), Some((6, 8)), Some((3, 8)), Some((2, 8)))
    );
}

/// Grants may come in another order than their bursts, so a burst requested for short frames may meet a long one.
#[test]
fn a_long_frame_is_not_passed_over_forever() {
    let slots = Slots { bytes: 100, parts: 4, k: 4, piece: 4 };
    let mut d = Destination { in_flight: 2, ..with_flows(None, &[(0, 100), (0, 10), (0, 10)]) };
    assert_eq!(d.next_wanted(slots, NOW).map(|wanted| wanted.demand), Some(5), "all three");
    ask(&mut d, 1, false);
    let next = |d: &Destination| d.clone().next_wanted(slots, NOW).map(|wanted| wanted.demand);
    assert_eq!(next(&d), Some(1), "the two behind the first");
    d.passed_over = true;
    assert_eq!(next(&d), Some(4), "and slots in which the first fits");
}

/// Frames of a slot each.
fn wanted(destination: &mut Destination, k: u64, piece: u64) -> Option<(u8, u16, u8)> {
    let wanted = destination.next_wanted(Slots { bytes: 1, parts: 1, k, piece }, NOW)?;
    let state = State::Asked { tries: 0, deadline: None };
    let (cell, Wanted { flow, frames, demand }) = (destination.take_cell(NOW)?, wanted);
    destination.push(Burst {
        cell,
        id: cell.into(),
        left_at: None,
        frames,
        demand,
        flow,
        unsolicited: false,
        state,
    });
    Some((flow, frames, demand))
}

#[test]
fn a_flow_is_served_whole_or_in_pieces() {
    let mut d = by_flow(Some(5), &[[1; 10].as_slice(), &[2; 25], &[3; 5]].concat());
    assert_eq!(wanted(&mut d, 20, 4), Some((1, 10, 10)), "all that waits");
    assert_eq!(wanted(&mut d, 20, 4), Some((2, 4, 4)), "more than K: a piece");
    assert_eq!(wanted(&mut d, 20, 4), Some((3, 5, 5)));
    assert_eq!(wanted(&mut d, 20, 4), None, "each long flow has one");
    d.ended(2);
    assert_eq!(wanted(&mut d, 20, 4), Some((2, 4, 4)));
    d.ended(2);
    assert_eq!(wanted(&mut d, 20, 4), Some((2, 17, 17)), "the rest fits");
    assert_eq!(d.queue.len(), 40);
}

#[test]
fn flows_with_little_to_send_share_a_reservation() {
    let mut d = by_flow(Some(5), &[1, 2, 3, 3, 4]);
    assert_eq!(wanted(&mut d, 20, 4), Some((1, 4, 4)), "1 to 3; 4 is too much");
    assert_eq!(wanted(&mut d, 20, 4), None, "one in flight, and 4 may have none of its own");
    let mut paper = by_flow(Some(1), &[1, 2, 3, 3, 4]);
    let asked: Vec<_> = std::iter::from_fn(|| wanted(&mut paper, 4, 4)).collect();
    assert_eq!(asked, [(1, 1, 1), (2, 1, 1), (3, 2, 2), (4, 1, 1)], "as the paper's threads");
}

#[test]
fn what_came_meanwhile_fills_the_slots() {
    let burst = |frames, demand| {
        let state = State::Granted { leave_at: Nanos(0) };
        Burst { cell: 0, id: 1, left_at: None, frames, demand, flow: 0, unsolicited: false, state }
    };
    let slots = Slots { bytes: 100, parts: 1, k: 4, piece: 4 };
    let fitting = |burst: Burst, bytes| short_frames(9, bytes).fitting(&burst, slots);
    assert_eq!(
        (
            fitting(burst(1, 1), 30),
            fitting(burst(2, 2), 30),
            fitting(burst(2, 2), 100),
            fitting(burst(3, 9), 5)
        ),
        (3, 6, 2, 9)
    );
    let quarters = |demand| short_frames(9, 20).fitting(&burst(1, demand), Slots { parts: 4, ..slots });
    assert_eq!((quarters(1), quarters(2), quarters(4), quarters(5)), (1, 2, 5, 6));
}

#[test]
fn the_first_grant_serves_the_first_frames() {
    let mut d = destination(6);
    let (one, two) = (ask(&mut d, 4, false), ask(&mut d, 2, false));
    assert_eq!(d.grant(two, Greater, Nanos(70)), Granted::Waits);
    assert_eq!((d.bursts[0].cell, d.leave_at()), (two, Some(Nanos(70))));
    assert_eq!(d.grant(one, Greater, Nanos(50)), Granted::Waits);
    assert_eq!(d.bursts[1].state, State::Granted { leave_at: Nanos(70) }, "never before its elder");
    assert_eq!(d.grant(one, Greater, Nanos(50)), Granted::Surplus);
}

#[test]
fn a_later_burst_waits_for_the_fate_of_unsolicited_frames() {
    let mut d = destination(8);
    let (one, two) = (ask(&mut d, 4, true), ask(&mut d, 4, false));
    assert_eq!(d.grant(two, Less, Nanos(5)), Granted::Waits);
    assert_eq!(d.leave_at(), None);
    let mut resent = d.clone();
    let Granted::Done(burst) = d.grant(one, Less, Nanos(9)) else { panic!("it arrived") };
    assert_eq!((burst.frames, burst.demand), (4, 4));
    assert_eq!(d.leave_at(), Some(Nanos(5)));
    assert_eq!(resent.grant(one, Greater, Nanos(9)), Granted::Waits);
    assert_eq!((resent.bursts[0].cell, resent.leave_at()), (one, Some(Nanos(9))));
}

#[test]
fn a_repeated_rsv_makes_unsolicited_frames_go_again() {
    let mut d = destination(4);
    let cell = ask(&mut d, 4, true);
    d.left(0, NOW, |tries| Nanos(10 + u64::from(tries)));
    assert_eq!(d.take_overdue(Nanos(9), 7), None);
    assert_eq!(d.due(), Nanos(10));
    assert_eq!(d.take_overdue(Nanos(10), 7), Some((cell, 4)));
    assert_eq!(d.take_overdue(Nanos(10), 8), None);
    d.left(7, Nanos(11), |tries| Nanos(20 + u64::from(tries)));
    assert_eq!(d.due(), Nanos(21));
    assert_eq!(d.grant(cell, Less, Nanos(30)), Granted::Waits);
}

#[test]
fn only_the_newest_rsv_is_answered_and_once() {
    let mut d = destination(4);
    let cell = ask(&mut d, 4, false);
    assert_eq!(d.answer(&grant(cell, 0, 4)), Answer::Other, "it is still in the NIC");
    d.left(0, NOW, |_| Nanos(10));
    d.take_overdue(Nanos(10), 7);
    d.left(7, Nanos(11), |_| Nanos(20));
    assert_eq!(d.answer(&grant(cell, 0, 4)), Answer::Other, "an older one");
    assert_eq!(d.answer(&grant(cell + 1, 7, 4)), Answer::Other, "another cell");
    assert_eq!(d.answer(&grant(cell, 7, 3)), Answer::Mismatch);
    assert_eq!(d.answer(&grant(cell, 7, 4)), Answer::Burst(Nanos(11)));
    assert_eq!(d.answer(&grant(cell, 7, 4)), Answer::Duplicate);
}

#[test]
fn what_was_refused_is_asked_for_again_at_its_time() {
    let mut d = destination(4);
    let cell = ask(&mut d, 4, false);
    d.left(0, NOW, |_| Nanos(100));
    d.refused(cell, Nanos(20));
    assert_eq!((d.take_overdue(Nanos(19), 7), d.take_overdue(Nanos(20), 7)), (None, Some((cell, 4))));
    assert_eq!(d.grant(cell, Less, Nanos(30)), Granted::Waits);
}

#[test]
fn nothing_is_given_back_that_frames_in_the_nic_may_use() {
    let mut d = destination(0);
    let cell = d.take_cell(NOW).unwrap();
    d.in_nic = 1;
    d.begun(cell, Nanos(5));
    d.scheduled_in_nic = 1;
    assert_eq!((d.take_release(Nanos(5), Nanos(9), 1), d.due()), (None, Nanos(9)));
    d.scheduled_in_nic = 0;
    assert_eq!(d.take_release(Nanos(9), Nanos(13), 1), Some(cell));
    d.left(1, Nanos(10), |_| Nanos(40));
    assert_eq!((d.due(), d.answer(&grant(cell, 1, 0))), (Nanos(40), Answer::Release(Nanos(10))));
    assert_eq!((d.due(), d.is_active()), (Nanos::MAX, false));
}
