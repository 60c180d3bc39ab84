//! The incast experiment's promises: four senders at full rate into one port of 100 Mb/s, with
//! uneven links and late hosts.
//!
//! Promises are asserted; all other results of the runs are in `snapshots/`, which `cargo xtask bless` writes.

use p4rack_fabric::pl2::Mode;
use p4rack_reference::{Incast, Outcome};
use p4rack_wire::Nanos;

const MTU_FRAME: u64 = 1530;

fn run(mode: Option<Mode>, set: impl FnOnce(&mut Incast)) -> Outcome {
    let mut incast = Incast { duration: Nanos::from_millis(500), ..Incast::new(mode) };
    set(&mut incast);
    incast.run()
}

#[test]
fn plain_ethernet_fills_the_buffer_and_loses_frames() {
    let outcome = run(None, |_| {});
    assert!(outcome.buffer_drops > 1_000, "{outcome:?}");
    assert!(outcome.depth_max_bytes > 250_000, "{outcome:?}");
}

#[test]
fn both_modes_lose_nothing_and_keep_the_queue_short() {
    for (mode, in_flight, goodput) in
        [(Mode::Counter, 1, 0.85), (Mode::Counter, 2, 0.88), (Mode::Clock, 1, 0.93)]
    {
        for headroom_percent in [0, 2] {
            let outcome = run(Some(mode), |incast| {
                (incast.in_flight, incast.headroom_percent, incast.t_slots) =
                    (in_flight, headroom_percent, 2);
            });
            assert_eq!(outcome.buffer_drops + outcome.unsolicited_drops, 0, "{mode:?} {outcome:?}");
            assert_eq!(outcome.demoted, 0, "{mode:?} {outcome:?}");
            assert!(outcome.goodput > goodput, "{mode:?} {in_flight} {outcome:?}");
            assert!(outcome.depth_p999_bytes < 16 * MTU_FRAME, "{mode:?} {outcome:?}");
            assert!(outcome.depth_max_bytes < (16 + 2 * 4 * 4) * MTU_FRAME, "{mode:?} {outcome:?}");
            assert!(outcome.fairness > 0.95, "{mode:?} {outcome:?}");
        }
    }
}

#[test]
fn a_small_response_among_bulk_is_at_least_five_times_faster_than_under_plain_ethernet() {
    let plain = run(None, |_| {});
    for mode in [Mode::Counter, Mode::Clock] {
        let outcome = run(Some(mode), |incast| incast.t_slots = 2);
        assert!(outcome.response_p99.0 * 5 < plain.response_p99.0, "{mode:?} {outcome:?} {plain:?}");
    }
}

/// With t at or above what all senders together can have reserved, the paper's Algorithm 2 makes no sender wait; its t
/// = 15 is for a slot much shorter than RSV→GRT. The schedule stays on: `pace_unsolicited` sends no burst before its
/// predecessor's slots have passed, and without it the switch takes no reservation before the one before has begun.
#[test]
fn a_t_above_all_reservations_does_not_switch_the_schedule_off() {
    for (mode, pace_unsolicited) in
        [(Mode::Counter, true), (Mode::Clock, true), (Mode::Counter, false), (Mode::Clock, false)]
    {
        let outcome =
            run(Some(mode), |incast| (incast.t_slots, incast.pace_unsolicited) = (15, pace_unsolicited));
        assert_eq!((outcome.buffer_drops, outcome.demoted), (0, 0), "{mode:?} {outcome:?}");
        assert!(outcome.depth_max_bytes < 32 * MTU_FRAME, "{mode:?} {outcome:?}");
    }
}

/// Every figure of every run, so that a change is seen before it breaks a promise.
#[test]
fn the_runs_show_what_they_showed() {
    let mut table = format!("{:#?}\n", run(None, |_| {}));
    for mode in [Mode::Counter, Mode::Clock] {
        for (in_flight, headroom_percent, t_slots, pace_unsolicited) in [
            (1, 0, 0, true),
            (1, 0, 2, true),
            (1, 2, 2, true),
            (2, 2, 2, true),
            (1, 0, 15, true),
            (1, 0, 15, false),
        ] {
            let outcome = run(Some(mode), |incast| {
                (incast.in_flight, incast.headroom_percent) = (in_flight, headroom_percent);
                (incast.t_slots, incast.pace_unsolicited) = (t_slots, pace_unsolicited);
            });
            table += &format!(
                "{mode:?}, in flight {in_flight}, headroom {headroom_percent} %, T {t_slots}, paced \
                 {pace_unsolicited}: {outcome:#?}\n"
            );
        }
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("incast", table);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| run(Some(Mode::Clock), |incast| incast.seed = seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).digest, run(8).digest);
}
