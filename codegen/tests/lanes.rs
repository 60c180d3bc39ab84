//! The scheduled class as a right: hosts that lie, flood or fail can't harm others.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::*;
use p4rack_codegen::Scheme;
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{Kind, NOT_NOW, Side};
use proptest::prelude::*;
use std::fmt::Write;
use std::sync::LazyLock;

const SAME: [&str; 4] = ["100 Mb/s"; 4];
/// 1550 bytes at 100 Mb/s, 3 % longer.
const SLOT: u64 = 127_720;
const K: u64 = 4;
/// How much before its start a burst may come, in slots.
const EARLY: u64 = 4;
/// And how much after.
const LATE: u64 = K + 1000;
const UNMETERED: &str = "control_per_slot = 0\nbest_effort_percent = 100";

fn clock(rest: &str) -> Built {
    Built::new(rack(&SAME, &format!("mode = \"clock\"\n{UNMETERED}\n{rest}")), Scheme::PL2_CLOCK)
}

fn counter(rest: &str) -> Built {
    Built::new(rack(&SAME, &format!("mode = \"counter\"\n{UNMETERED}\n{rest}")), Scheme::PL2_COUNTER)
}

fn every_mode() -> Vec<Built> {
    every_mode_of("")
}

fn every_mode_of(rest: &str) -> Vec<Built> {
    let clocks = ["pair", "chain", "dst", "calendar"];
    let clocks = clocks.map(|clocks| clock(&format!("clocks = \"{clocks}\"\n{rest}")));
    clocks.into_iter().chain([counter(rest)]).collect()
}

/// Compares figures that should change only on purpose with their snapshot.
fn snapshot(name: &str, table: String) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name.to_owned(), table);
    });
}

/// Reserves more slots at port 3 than a burst may be early, so that what follows begins later.
fn busy(built: &Built) -> Rig {
    let mut rig = Rig::new(built);
    for port in [2, 4] {
        assert_ne!(rig.reserve(port, 3, 4), Some((NOT_NOW, NOT_NOW)));
    }
    rig
}

#[test]
fn what_nobody_reserved_is_best_effort() {
    for built in every_mode() {
        let mut rig = Rig::new(&built);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Demoted("uncovered"));
        assert_eq!(rig.fate(1, 3, 1, false), Fate::Demoted("uncovered"));
        assert_eq!(rig.fate(1, 3, 0, true), Fate::Demoted("uncovered_unsolicited"));
        // A right is the pair's and the cell's: not another destination's, source's or cell's.
        rig.reserve(1, 3, 4);
        for (from, to, cell) in [(1, 2, 0), (3, 1, 0), (2, 3, 0), (1, 3, 1)] {
            assert_eq!(rig.fate(from, to, cell, false), Fate::Demoted("uncovered"), "{from} to {to}, {cell}");
        }
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        // The VLANs beyond the pair's cells, and before, claim nothing: ordinary frames, not demoted ones.
        let before = rig.demoted();
        for cell in [2, 3, 100] {
            assert_eq!(rig.fate(1, 3, cell, false), Fate::Scheduled, "not counted: VLAN {}", 100 + cell);
        }
        assert_eq!(rig.demoted(), before);
    }
}

#[test]
fn demoted_frames_have_the_best_effort_meter_and_class() {
    let built = Built::new(rack(&SAME, "mode = \"clock\""), Scheme::PL2_CLOCK);
    let mut rig = busy(&built);
    rig.reserve(1, 3, 4);
    let frame = data(&built.rack, 1, 3, 1, false, 1400);
    let passed = (0..100).filter(|_| rig.fate_of(1, 3, &frame) != Fate::Dropped).count();
    assert!((20..30).contains(&passed), "{passed} of 100: 32 KiB");
    assert_eq!(rig.drops("best_effort_meter"), 100 - passed as u64);

    let limited = |config: &mut p4rack_switch::Config| {
        config.ports.iter_mut().for_each(|port| port.rate_bps = 100_000_000);
    };
    let mut rig = Rig::with_config(&built, limited);
    rig.reserve(1, 3, 4);
    let (scheduled, demoted) =
        (data(&built.rack, 1, 3, 0, false, 200), data(&built.rack, 1, 3, 1, false, 200));
    for frame in [&demoted, &demoted, &scheduled, &demoted, &scheduled] {
        rig.switch.handle_frame(1, frame, rig.now);
    }
    let mut order = String::new();
    while order.len() < 5 {
        for (port, sent) in rig.drain() {
            if port == 3 {
                order.push(if sent == scheduled { 's' } else { 'd' });
            }
        }
        rig.now = rig.switch.next_timeout().unwrap_or(rig.now).max(rig.now);
    }
    assert!(order == "dssdd" || order == "ssddd", "{order}");
}

#[test]
fn a_half_sends_what_it_reserved_and_no_more() {
    for built in every_mode() {
        let counter = built.scheme == Scheme::PL2_COUNTER;
        for (dei, reason) in [(true, "uncovered_unsolicited"), (false, "uncovered")] {
            let mut rig = Rig::new(&built);
            let reserve = |rig: &mut Rig| {
                rig.now += Nanos(4 * SLOT);
                let waits = if dei { rig.announce(1, 3, 2, 0) } else { rig.reserve(1, 3, 2) };
                assert!(waits.is_some_and(|(send, recv)| send.max(recv) < SLOT as u32), "{waits:?}");
                rig.now += Nanos(if dei { 0 } else { 2 * SLOT });
            };
            // Full frames: as many as slots.
            let full = data(&built.rack, 1, 3, 0, dei, 1508);
            assert_eq!(full.len() + 24, 1550);
            reserve(&mut rig);
            for expected in [Fate::Scheduled, Fate::Scheduled, Fate::Demoted(reason), Fate::Demoted(reason)] {
                assert_eq!(rig.fate_of(1, 3, &full), expected);
            }
            // Short ones share slots with clocks: 142 bytes each on the wire. The shortest take what they are padded to.
            for (payload, wire_bytes) in [(100, 142), (42, 84), (0, 84)] {
                let mut short = data(&built.rack, 1, 3, 0, dei, payload);
                short.truncate(18 + payload);
                reserve(&mut rig);
                let fits = if counter { 2 } else { 3100 / wire_bytes };
                let sent = (0..40).filter(|_| rig.fate_of(1, 3, &short) == Fate::Scheduled).count();
                assert_eq!(sent, fits, "{payload}");
            }
        }
    }
}

/// Rights of each burst of a reservation, whatever its host says and sends.
#[test]
fn a_burst_goes_unsolicited_or_in_its_slots() {
    for built in every_mode_of("t = 6") {
        // Nothing before it; less than t; more.
        for before in [0, 1, 2] {
            for announced in [true, false] {
                let mut rig = Rig::new(&built);
                for port in [2, 4].iter().take(before) {
                    rig.reserve(*port, 3, 4);
                }
                let waits = if announced { rig.announce(1, 3, 4, 0) } else { rig.reserve(1, 3, 4) };
                let (send, recv) = waits.unwrap();
                let unit = if built.scheme == Scheme::PL2_COUNTER { SLOT } else { 1 };
                let wait = u64::from(send.max(recv)) * unit;
                assert_eq!(wait > 6 * SLOT, before == 2, "{wait}");
                let frame = |dei| data(&built.rack, 1, 3, 0, dei, 1508);
                let goes = |rig: &mut Rig, dei| {
                    (0..6).filter(|_| rig.fate_of(1, 3, &frame(dei)) == Fate::Scheduled).count()
                };
                let unsolicited = goes(&mut rig, true);
                rig.now += Nanos(wait);
                let in_slots = goes(&mut rig, false);
                let expected = if announced && before < 2 { (4, 0) } else { (0, 4) };
                assert_eq!((unsolicited, in_slots), expected, "{before} before, announced: {announced}");
                // A burst that waits longer than t comes again in its slots.
                let over = if announced && before == 2 { 6 } else { 0 };
                assert_eq!(rig.drops("unsolicited_has_slots"), over);
                let demoted = rig.demoted();
                assert_eq!(demoted[..2], [6 - in_slots as u64, 6 - unsolicited as u64 - over]);
                assert_eq!(demoted[2..], [0, 0]);
            }
        }
    }
}

/// Scheduled frames of a burst that goes unsolicited don't free its lane before its time either.
#[test]
fn a_burst_that_went_unsolicited_holds_its_lane_as_any_other() {
    for built in every_mode() {
        let mut rig = busy(&built);
        rig.announce(1, 3, 4, 0);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Demoted("early"));
        assert_eq!(rig.announce(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
    }
}

/// The graces are slots of the slower of both links, whatever other links the rack has.
#[test]
fn fast_links_have_short_graces() {
    let rates = ["100 Mb/s", "1 Gb/s", "1 Gb/s", "1 Gb/s"];
    let built = Built::new(rack(&rates, &format!("mode = \"clock\"\n{UNMETERED}")), Scheme::PL2_CLOCK);
    let fast = SLOT / 10;
    for (from, slot) in [(1, SLOT), (2, fast)] {
        let mut rig = Rig::new(&built);
        // Far enough ahead for either grace.
        assert!(rig.manage(Kind::MgmtWrite, Side::Out, 3, 100 * SLOT as u32).is_some());
        let (_, wait) = rig.reserve(from, 3, 4).unwrap();
        let begins = rig.now.0 + u64::from(wait);
        for (at, expected) in [
            (begins - EARLY * slot - 1, Fate::Demoted("early")),
            (begins - EARLY * slot, Fate::Scheduled),
            (begins + LATE * slot, Fate::Scheduled),
            (begins + LATE * slot + 1, Fate::Demoted("late")),
        ] {
            rig.now = Nanos(at);
            assert_eq!(rig.fate(from, 3, 0, false), expected, "port {from}");
        }
    }
}

#[test]
fn counted_frames_fit_into_slots() {
    for dei in [false, true] {
        let mut rig = Rig::new(&counter(""));
        let waits = if dei { rig.announce(1, 3, 4, 0) } else { rig.reserve(1, 3, 4) };
        assert_eq!(waits, Some((0, 0)));
        let reason = if dei { "uncovered_unsolicited" } else { "uncovered" };
        let [full, longer, jumbo] =
            [1508, 1509, 9000].map(|payload| data(&rig.built.rack, 1, 3, 0, dei, payload));
        assert_eq!(rig.fate_of(1, 3, &longer), Fate::Demoted(reason));
        assert_eq!(rig.fate_of(1, 3, &jumbo), Fate::Demoted(reason));
        assert_eq!(rig.fate_of(1, 3, &full), Fate::Scheduled);
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), if dei { 4 } else { 3 });
    }
}

/// A lane whose reservation was never used gives it back when the next one takes the lane.
#[test]
fn counters_hoard_nothing_in_the_other_half() {
    let mut rig = Rig::new(&counter(""));
    for round in 0..10 {
        assert_eq!(rig.reserve_cell(1, 3, 4, round % 2), Some((0, 0)), "round {round}");
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), 4);
        rig.now += Nanos(SLOT);
    }
    assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 4);
}

#[test]
fn a_lane_holds_one_reservation_that_has_not_begun() {
    for built in every_mode() {
        let mut rig = busy(&built);
        let granted = rig.reserve(1, 3, 4).unwrap();
        assert!(granted.1 != NOT_NOW, "{granted:?}");
        let reserved = (rig.register_or_cells(1), rig.register_or_cells(3));
        for cell in [0, 1] {
            assert_eq!(rig.reserve_cell(1, 3, 4, cell), Some((NOT_NOW, NOT_NOW)));
        }
        assert_eq!(rig.refused(), [2, 0]);
        assert_eq!((rig.register_or_cells(1), rig.register_or_cells(3)), reserved, "and reserves nothing");
        assert_ne!(rig.reserve(1, 2, 1), Some((NOT_NOW, NOT_NOW)), "other pairs have their own");
        // In time, the first frame frees the lane for the other half, and both halves send.
        rig.now += Nanos(8 * SLOT);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        assert_ne!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        rig.now += Nanos(16 * SLOT);
        assert_eq!(rig.fate(1, 3, 1, false), Fate::Scheduled);
        // Nothing was sent in its slots: the reservation after it waits for its start alone.
        rig.reserve(2, 3, 4);
        rig.reserve(4, 3, 4);
        rig.reserve(1, 3, 4);
        rig.now += Nanos(3 * SLOT);
        assert_eq!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
        rig.now += Nanos(8 * SLOT);
        assert_ne!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
    }
}

#[test]
fn what_grants_nothing_is_no_better_than_best_effort() {
    let built = Built::new(rack(&SAME, "mode = \"clock\""), Scheme::PL2_CLOCK);
    let limited = |config: &mut p4rack_switch::Config| {
        config.ports.iter_mut().for_each(|port| port.rate_bps = 100_000_000);
    };
    let mut rig = Rig::with_config(&built, limited);
    // Others are before it, so what host 1 reserves has not begun.
    rig.reserve(2, 3, 4);
    rig.reserve(4, 3, 4);
    rig.reserve(1, 3, 4);
    rig.reserve(3, 1, 4);
    rig.drain();
    let (refused, scheduled) = (rsv(&built.rack, 1, 3, 4, 1), data(&built.rack, 3, 1, 0, false, 200));
    for _ in 0..3 {
        rig.switch.handle_frame(1, &refused, rig.now);
    }
    rig.switch.handle_frame(3, &scheduled, rig.now);
    let mut order = String::new();
    for _ in 0..20 {
        for (port, sent) in rig.drain() {
            if port == 1 {
                order.push(if sent == scheduled { 's' } else { 'r' });
            }
        }
        rig.now = rig.switch.next_timeout().unwrap_or(rig.now).max(rig.now);
    }
    assert_eq!(rig.refused(), [3, 0]);
    assert_eq!(order, "srrr");
}

/// Answers that grant nothing are metered like best effort, so a host that never stops asking gets a bounded number.
#[test]
fn what_grants_nothing_is_metered() {
    for mode in ["clock", "counter"] {
        let scheme = if mode == "clock" { Scheme::PL2_CLOCK } else { Scheme::PL2_COUNTER };
        let built = Built::new(rack(&SAME, &format!("mode = \"{mode}\"\ncontrol_per_slot = 0")), scheme);
        let mut rig = busy(&built);
        rig.reserve(1, 3, 4);
        // 32 KiB of frames of 60 bytes, plus those that the rate of 5 Mb/s adds.
        let answered = (0..2_000).filter(|_| rig.reserve_cell(1, 3, 4, 1).is_some()).count();
        assert!((500..600).contains(&answered), "{answered}");
        assert_eq!(rig.drops("best_effort_meter"), 2_000 - answered as u64);
        assert_eq!(
            rig.reserve(4, 1, 4).map(|waits| waits == (NOT_NOW, NOT_NOW)),
            Some(false),
            "grants are not"
        );
    }
}

#[test]
fn a_burst_has_its_time() {
    for built in every_mode() {
        let start = |rig: &mut Rig| {
            let before = rig.now;
            let (send, recv) = rig.reserve(1, 3, 4).unwrap();
            let unit = if built.scheme == Scheme::PL2_COUNTER { SLOT } else { 1 };
            before + Nanos(u64::from(send.max(recv)) * unit)
        };
        let mut rig = busy(&built);
        let begins = start(&mut rig);
        assert!(begins.0 > rig.now.0 + (EARLY + 1) * SLOT);
        rig.now = Nanos(begins.0 - EARLY * SLOT - 1);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Demoted("early"));
        assert_eq!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)), "it has not begun for all that");
        rig.now += Nanos(1);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        rig.now = Nanos(begins.0 + LATE * SLOT);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        rig.now += Nanos(1);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Demoted("late"));
        assert_eq!(rig.demoted(), [0, 0, 1, 1]);
        // A host that was early once frees the lane with its next reservation.
        assert_ne!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
        // A frame too long for the rest of its rights is early all the same, and does not free the lane.
        let mut rig = busy(&built);
        start(&mut rig);
        for _ in 0..60 {
            rig.fate(1, 3, 0, false);
        }
        assert_eq!(rig.of_cell("lane_lock", 1, 3, 0), 1 | 4, "for RSVs alone to free");
        if built.scheme == Scheme::PL2_CLOCK {
            assert_eq!(rig.demoted(), [17, 0, 43, 0], "until nothing was left: 6200 bytes of 142");
        }
    }
}

/// However an eager host sends ahead of time, it reserves no faster than time passes.
#[test]
fn early_senders_reserve_no_faster_than_time_passes() {
    let mut table = String::new();
    for clocks in ["pair", "chain", "dst", "calendar"] {
        let built = clock(&format!("lanes = 2\nclocks = \"{clocks}\""));
        let mut rig = Rig::new(&built);
        let mut slots = 0;
        let begun = rig.now;
        for round in 0..40_000u64 {
            for cell in [0, 2, 1, 3] {
                slots += match rig.reserve_cell(1, 3, 4, cell) {
                    Some((NOT_NOW, NOT_NOW)) => 0,
                    Some(_) => K,
                    None => panic!("no answer"),
                };
                rig.fate(1, 3, cell, false);
                rig.fate(1, 3, cell, round % 2 == 0);
            }
            rig.now += Nanos(SLOT / 10);
        }
        let passed = (rig.now.0 - begun.0) / SLOT;
        assert!(slots <= passed + 2 * K + K + EARLY + 1, "{clocks}: {slots} slots in the time of {passed}");
        assert!(slots >= passed / 2, "{clocks}: nor is it locked out: {slots} of {passed}");
        let _ =
            writeln!(table, "{clocks}: {slots} slots reserved in the time of {passed}; {}", rig.reasons());
    }
    snapshot("early_senders", table);
}

/// Unsolicited frames that are scheduled are no more than the slots that were reserved.
#[test]
fn nobody_sends_more_unsolicited_than_it_reserves() {
    let mut table = String::new();
    for built in every_mode() {
        let mut rig = Rig::new(&built);
        let (mut slots, mut sent) = (0, 0);
        for _ in 0..5_000 {
            for cell in [0, 1] {
                if rig.announce(1, 3, 4, cell) != Some((NOT_NOW, NOT_NOW)) {
                    slots += K;
                }
                let frame = data(&built.rack, 1, 3, cell, true, 1508);
                sent += (0..6).filter(|_| rig.fate_of(1, 3, &frame) == Fate::Scheduled).count() as u64;
            }
            rig.now += Nanos(SLOT / 3);
        }
        assert!(sent > 0 && sent <= slots, "{sent} frames, {slots} slots");
        let variant = (built.scheme, built.pl2().clocks);
        let _ = writeln!(table, "{variant:?}: {sent} frames sent, {slots} slots reserved; {}", rig.reasons());
    }
    snapshot("unsolicited", table);
}

/// One host asks in all lanes all the time, for an hour; another asks now and then and is always granted soon. Returns
/// what happened, in a line.
fn flood(clocks: &str, asks_a_round: u32, rounds: u64) -> String {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let built = clock(&format!("lanes = 4\nclocks = \"{clocks}\""));
    let mut rig = Rig::new(&built);
    // Two hosts reserve at port 3: as many reservations as they have lanes, and the one that is being sent.
    let bound = (2 * 4 * K + K + EARLY) * SLOT * if clocks == "chain" { 2 } else { 1 };
    let mut seed = 7u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let (mut asked, mut granted, mut honest) = (0u64, 0u64, 0u64);
    let (mut longest_wait_ns, mut farthest_ns) = (0, [i64::MIN; 4]);
    let begun = rig.now.0;
    for round in 0..rounds {
        for _ in 0..asks_a_round {
            let (to, cell) = (2 + random(3) as u16, random(8) as u8);
            asked += 1;
            granted +=
                u64::from(rig.reserve_cell(1, to, 1 + random(K) as u8, cell) != Some((NOT_NOW, NOT_NOW)));
            // In turn: never; immediately, in the reserved cell; in any cell.
            match round * 3 / rounds {
                0 => {}
                1 => drop(rig.fate(1, to, cell, random(2) == 0)),
                _ => drop(rig.fate(1, to, random(8) as u8, random(2) == 0)),
            }
        }
        let half = (honest % 2) as u8;
        if round % 16 == 0 {
            let (send, recv) = rig.reserve_cell(2, 3, 4, half).unwrap();
            let wait = u64::from(send.max(recv));
            assert!(wait <= bound, "round {round}: {wait} ns");
            longest_wait_ns = wait.max(longest_wait_ns);
            honest += 1;
            let asked_at = rig.now;
            rig.now += Nanos(wait);
            assert_eq!(rig.fate(2, 3, half, false), Fate::Scheduled, "round {round}");
            rig.now = asked_at + Nanos(wait + K * SLOT);
        }
        // The flooding host itself reserves towards three.
        let in_bound = (3 * 4 * K + K + EARLY) * SLOT;
        let registers = [("in", 1, in_bound), ("out", 2, bound), ("out", 3, bound), ("out", 4, bound)];
        for ((register, port, bound), farthest_ns) in registers.into_iter().zip(&mut farthest_ns) {
            let free = rig.register(&format!("RackIngress.pl2.{register}_reservation"), port);
            let ahead = free.wrapping_sub(rig.now.0) as i64;
            assert!(ahead <= bound as i64, "round {round}: {register} {port}: {ahead} ns");
            *farthest_ns = ahead.max(*farthest_ns);
        }
        // Now together, now apart, an hour in all.
        let left = (begun + HOUR_NS).saturating_sub(rig.now.0) / (rounds - round);
        rig.now += Nanos(if random(4) > 0 { random(SLOT) } else { random(8 * left) });
    }
    assert!(rig.now.0 - begun > HOUR_NS / 2 && rig.now.0 - begun < 4 * HOUR_NS, "{}", rig.now.0 - begun);
    assert!(honest > 0 && granted > rounds / 8 && granted < asked * 9 / 10, "{honest} {granted} of {asked}");
    format!(
        "{clocks}: {granted} of {asked} granted; the other host asked {honest} times and waited {longest_wait_ns} ns at \
         most; clocks were at most {farthest_ns:?} ns ahead (in 1, out 2 to 4); {}\n",
        rig.reasons()
    )
}

#[test]
fn an_hour_of_floods_drives_no_clock_beyond_its_bound() {
    snapshot("flood_pair", flood("pair", 12, 200_000));
}

#[test]
fn nor_does_it_where_the_destinations_clock_goes_on_from_the_sources() {
    snapshot("flood_others", flood("chain", 12, 20_000) + &flood("dst", 12, 20_000));
}

#[derive(Clone, Debug)]
enum Step {
    Reserve {
        from: u16,
        to: u16,
        demand: u8,
        cell: u8,
    },
    Data {
        from: u16,
        to: u16,
        cell: u8,
        unsolicited: bool,
        payload: usize,
    },
    /// As an honest host: reserve, then send all of it in time.
    Burst {
        from: u16,
        to: u16,
        demand: u8,
        lane: u8,
    },
    Forget {
        from: u16,
        to: u16,
        cell: u8,
    },
    Wait {
        ns: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let port = || 1u16..=4;
    prop_oneof![
        4 => (port(), port(), 0u8..=5, 0u8..=4)
            .prop_map(|(from, to, demand, cell)| Step::Reserve { from, to, demand, cell }),
        4 => (port(), port(), 0u8..=4, any::<bool>(), 0usize..1600)
            .prop_map(|(from, to, cell, unsolicited, payload)| Step::Data { from, to, cell, unsolicited, payload }),
        2 => (port(), port(), 1u8..=4, 0u8..2)
            .prop_map(|(from, to, demand, lane)| Step::Burst { from, to, demand, lane }),
        1 => (port(), port(), 0u8..4).prop_map(|(from, to, cell)| Step::Forget { from, to, cell }),
        2 => prop_oneof![0..20 * SLOT, 0..2000 * SLOT].prop_map(|ns| Step::Wait { ns }),
    ]
}

static COUNTER: LazyLock<Built> = LazyLock::new(|| counter("lanes = 2\ndrop_threshold = 20"));

/// In any case, each port has reserved exactly the sum of its cells.
fn sums_agree(rig: &Rig) -> Result<(), TestCaseError> {
    let held = |from: u16, to: u16| -> u64 {
        if from == to { 0 } else { (0..4).map(|cell| rig.of_cell("rights", from, to, cell)).sum() }
    };
    for port in 1..=4 {
        let (inward, outward) = ("RackIngress.pl2.in_reservation", "RackIngress.pl2.out_reservation");
        prop_assert_eq!(rig.register(inward, port), (1..=4).map(|to| held(port, to)).sum::<u64>());
        prop_assert_eq!(rig.register(outward, port), (1..=4).map(|from| held(from, port)).sum::<u64>());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_are_the_sum_of_what_cells_hold(steps in proptest::collection::vec(step(), 1..150)) {
        let mut rig = Rig::new(&COUNTER);
        for step in steps {
            match step {
                Step::Reserve { from, to, demand, cell } => drop(rig.reserve_cell(from, to, demand, cell)),
                Step::Data { from, to, cell, unsolicited, payload } => {
                    let frame = data(&COUNTER.rack, from, to, cell, unsolicited, payload);
                    rig.fate_of(from, to, &frame);
                }
                Step::Burst { from, to, demand, lane } if from != to => {
                    // The half that is not waiting, or sending.
                    let half = rig.of_cell("rights", from, to, 2 * lane).min(1) as u8;
                    let (send, recv) = rig.reserve_cell(from, to, demand, 2 * lane + half).unwrap();
                    if recv != NOT_NOW {
                        rig.now += Nanos(u64::from(send.max(recv)) * SLOT);
                        for _ in 0..demand {
                            prop_assert_eq!(rig.fate(from, to, 2 * lane + half, false), Fate::Scheduled);
                            sums_agree(&rig)?;
                        }
                    }
                }
                Step::Burst { .. } => {}
                Step::Forget { from, to, cell } if from != to => {
                    let held = rig.of_cell("rights", from, to, cell) as u32;
                    prop_assert_eq!(rig.forget(from, to, cell), Some(held));
                }
                Step::Forget { .. } => {}
                Step::Wait { ns } => rig.now += Nanos(ns),
            }
            sums_agree(&rig)?;
        }
    }
}
