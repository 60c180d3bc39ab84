//! Grants towards a link, from all pipes.

use crate::common::Built;
use crate::common::edm::{edm_of, notification};
use crate::edm_crossing::hosts::{Seen, run};
use crate::edm_crossing::rack::{CHUNK, RATE_BPS, SLOW_BPS, WINDOW, all, slow, wrong};
use p4rack_wire::edm;

/// For how long data waits at its destination's port: for eight chunks.
const QUEUED_NS: u64 = 750;
/// Grants that say when data may leave.
const ABSOLUTE: (&str, &str) =
    ("(bit<32>) meta.edm.to_wait |-| meta.edm.crossed", "meta.edm.earliest + (bit<32>) meta.edm.to_wait");

/// Grants overlap if the program, whose grants say when data may leave, lets them.
fn at_random(built: &Built, shares: bool, steps: u64) -> Seen {
    run(built, (shares, true), (SLOW_BPS, 16), steps)
}

#[test]
fn grants_from_different_pipes_never_overlap() {
    for (shares, built) in all() {
        let mut seen = at_random(&built.changed(&[ABSOLUTE]), shares, 20_000);
        let what = format!("shares: {shares}, {}", built.rack.switch.arch);
        assert!(seen.grants > 1_000 && seen.crossed > 600, "{what}: {} and {}", seen.grants, seen.crossed);
        assert!(seen.done > 300, "{what}: {}", seen.done);
        assert_eq!(seen.overlaps(), 0, "{what}");
        assert_eq!((seen.demoted, seen.unasked), ([0, 0], 0), "{what}: all came in its time");
    }
}

/// A grant's wait counts from its arrival, however long it crossed, so data comes to its destination as granted.
#[test]
fn data_that_crosses_late_is_not_later_by_that() {
    for (shares, right) in all() {
        let queued = |built: &Built| {
            let seen = run(built, (shares, false), (SLOW_BPS / 4, 6), 20_000);
            assert!(seen.grants > 1_000 && seen.crossed > 600 && seen.done > 300);
            (seen.queued_ns, seen.queued.0 / seen.queued.1, seen.demoted)
        };
        let (most, mean, demoted) = queued(&right);
        let (later, longer, _) = queued(&wrong(&right, "|-| meta.edm.crossed", "|-| 0"));
        println!(
            "shares: {shares}: {most} ns at most, {mean} on average; with the crossings {later} and {longer}"
        );
        assert!(most < QUEUED_NS && later > QUEUED_NS && 3 * mean < 2 * longer, "shares: {shares}");
        assert_eq!(demoted, [0, 0]);
    }
}

/// The test above notices programs in which the pipes share registers that they don't have.
#[test]
fn without_its_crossing_a_program_grants_time_twice() {
    for (shares, right) in all() {
        for (from, to) in [
            ("meta.edm.home != meta.edm.away", "meta.edm.home != meta.edm.home"),
            (
                "ig_tm_md.ucast_egress_port = meta.edm.clock_way;",
                "ig_tm_md.ucast_egress_port = meta.edm.lane_way;",
            ),
        ] {
            let mut seen = at_random(&right.changed(&[ABSOLUTE, (from, to)]), shares, 5_000);
            assert!(seen.overlaps() > 0, "{to} changes nothing");
        }
    }
}

/// A frame that was under way for as long as any finds a clock that is as far ahead as any.
#[test]
fn a_clock_is_ahead_of_the_frame_that_crossed_longest() {
    const FREE: &str = "RackIngress.edm.destination_free";
    for (shares, right) in all() {
        // All that the buffer holds, in two queues: frames of 71 bytes there, of 91 on the wire.
        let (buffer, edm) = (right.rack.switch.buffer_bytes, edm_of(&right));
        let longest_ns = 2 * buffer * 91 / 71 * 8 / 100;
        let reach_ns = edm.grant_units(&right.rack, WINDOW.into(), RATE_BPS) * 9 * 3;
        let horizon = edm.horizon_units(&right.rack);
        assert!((longest_ns + reach_ns..2 * (longest_ns + reach_ns)).contains(&horizon), "{horizon}");
        let moved = |built: &Built| {
            let mut net = slow(built, 91 * 8 * 1_000_000_000 / longest_ns);
            let frame = net.frame(1, 131, edm::PCP_CONTROL, &notification(0, CHUNK));
            // The port is idle, so the first frame has it.
            net.rig.send(1, &frame);
            let frame = net.frame(1, 131, edm::PCP_CONTROL, &notification(1, CHUNK));
            net.rig.send(1, &frame);
            net.wait(longest_ns);
            let free = net.rig.now.0 + reach_ns - 200;
            net.rig.set_register_in(1, FREE, 131, free);
            net.rig.drain();
            net.rig.register_in(1, FREE, 131) as i64 - free as i64
        };
        let chunk_ns = edm.grant_units(&right.rack, CHUNK.into(), RATE_BPS) as i64;
        assert_eq!(moved(&right), chunk_ns, "shares: {shares}");
        let [right_text, short] = [horizon, horizon / 2].map(|horizon| format!("EDM_HORIZON = {horizon};"));
        assert!(moved(&wrong(&right, &right_text, &short)) < 0, "{shares}: it looks past");
    }
}
