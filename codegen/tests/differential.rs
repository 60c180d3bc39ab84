//! A rack's programs for v1model and for Tofino get the same frames at the same times and give the same frames out, count the
//! same drops, and hold the same reservations.
//!
//! Unavoidable differences are left out: a run is shorter than 2^31 ns, since Tofino's times have 32 bits; frames that
//! claim slots are full ones and the controller sends none, since Tofino counts frames where v1model counts bytes (so
//! slots that the controller takes back are compared in frames); the controller writes no more than may be reserved;
//! meters of bytes are off, since v1model's don't count the FCS.
//!
//! `P4RACK_FRAMES=1000000 cargo test --profile verify --workspace --test codegen differential:: -- --nocapture`
//! takes more frames, `P4RACK_SEED` another seed.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::any_pl2::{frame, in_frames, numbered, with_slots};
use common::random::{Random, variable};
use common::*;
use p4rack_codegen::{Arch, Scheme};
use p4rack_wire::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Frames of a run; then everything starts again, at another time.
const RUN: usize = 5_000;
/// Frames of each scheme.
const FRAMES: usize = 10_000;

/// The same rack for v1model, and for both of Tofino's architectures.
fn built(rates: &[&str], pl2: &str, scheme: Scheme) -> [Built; 3] {
    built_at(&[1, 2, 3, 4], rates, pl2, scheme)
}

/// The same with hosts at these ports.
fn built_at(ports: &[u16], rates: &[&str], pl2: &str, scheme: Scheme) -> [Built; 3] {
    let rack = at_ports(rack(rates, pl2), ports);
    let three = [Arch::V1model, Arch::Tna, Arch::T2na].map(|arch| Built::on(rack.clone(), scheme, arch));
    let slots = |built: &Built| ports.iter().map(|port| built.slot(*port).0).collect::<Vec<_>>();
    assert!(three.iter().all(|built| slots(built) == slots(&three[0])));
    three
}

const CLOCK: &str =
    "mode = \"clock\"\nk = 5\nlanes = 2\nt = 3\ndrop_threshold = 4\nbest_effort_percent = 100";

const MIXED: [&str; 4] = ["100 Gb/s", "50 Gb/s", "100 Gb/s", "25 Gb/s"];

fn clocks(rates: [&str; 4], clocks: &str, more: &str) -> Vec<&'static str> {
    let pl2 = format!("{CLOCK}\nclocks = \"{clocks}\"\n{more}\nslot_headroom_percent = 0");
    compare(&built(&rates, &pl2, Scheme::PL2_CLOCK))
}

#[test]
fn pairs_of_clocks_agree() {
    clocks(MIXED, "pair", "control_per_slot = 0");
}

#[test]
fn with_a_meter_for_control_frames_they_agree() {
    let met = clocks(["100 Mb/s"; 4], "pair", "control_per_slot = 1");
    assert!(met.contains(&"control_meter"));
}

#[test]
fn chains_of_clocks_agree() {
    clocks(MIXED, "chain", "control_per_slot = 0");
}

#[test]
fn destinations_clocks_agree() {
    clocks(MIXED, "dst", "control_per_slot = 0");
}

/// Hosts in all pipes, most frames between two of them; and two hosts in each of two.
#[test]
fn clocks_in_several_pipes_agree() {
    for ports in [[1, 131, 260, 389], [131, 1, 6, 130]] {
        for clocks in ["pair", "dst", "chain"] {
            let pl2 =
                format!("{CLOCK}\nclocks = \"{clocks}\"\ncontrol_per_slot = 0\nslot_headroom_percent = 0");
            compare(&built_at(&ports, &MIXED, &pl2, Scheme::PL2_CLOCK));
        }
    }
}

/// A program for several pipes does what that for one does where all frames stay in one.
#[test]
fn where_nothing_crosses_a_program_for_several_pipes_is_that_for_one() {
    let pl2 = format!("{CLOCK}\ncontrol_per_slot = 1\nslot_headroom_percent = 0");
    for arch in [Arch::Tna, Arch::T2na] {
        let of = |last: u16| {
            let mut rack = at_ports(rack(&["100 Mb/s"; 5], &pl2), &[1, 2, 3, 4, last]);
            rack.switch.cpu_port = 64;
            Built::on(rack, Scheme::PL2_CLOCK, arch)
        };
        let two = [of(5), of(131)];
        assert_eq!(two.each_ref().map(|built| built.p4().contains("PASS_BACK")), [false, true]);
        compare(&two);
    }
}

#[test]
fn counters_agree() {
    let pl2 = CLOCK.replace("clock", "counter") + "\ncontrol_per_slot = 0\nslot_headroom_percent = 0";
    compare(&built(&["100 Gb/s"; 4], &pl2, Scheme::PL2_COUNTER));
}

#[test]
fn plain_switching_agrees() {
    compare(&built(&["100 Gb/s"; 4], "mode = \"clock\"\nslot_headroom_percent = 0", Scheme::L2));
}

/// The comparison can fail: it notices another constant, or other clocks, in one program.
#[test]
fn programs_that_differ_do_not_agree() {
    let of = |pl2: &str| Built::on(rack(&["100 Gb/s"; 4], pl2), Scheme::PL2_CLOCK, Arch::V1model);
    let right = format!("{CLOCK}\nclocks = \"pair\"\ncontrol_per_slot = 0\nslot_headroom_percent = 0");
    for (from, to) in [
        ("\nk = 5", "\nk = 4"),
        ("\nt = 3", "\nt = 2"),
        ("drop_threshold = 4", "drop_threshold = 5"),
        ("\"pair\"", "\"dst\""),
    ] {
        assert!(right.contains(from), "{from}");
        let two = [of(&right), of(&right.replace(from, to))];
        let agreed = catch_unwind(AssertUnwindSafe(|| run(&two, &mut Random::new(1), RUN)));
        assert!(agreed.is_err(), "{from} and {to} are the same to it");
    }
}

/// Waits that a source is told, some of them for lanes that are held: by a reservation that has begun, or by one that has not.
fn asks_for_held_lanes(built: &Built) -> Vec<Option<(u32, u32)>> {
    let mut rig = Rig::new(built);
    rig.now = Nanos::from_millis(1);
    let asked = [(2, 0), (2, 2), (2, 3), (3, 0), (2, 1), (3, 2), (4, 0)];
    asked.iter().map(|(to, cell)| rig.reserve_cell(1, *to, 5, *cell)).collect()
}

/// An RSV takes its time at its source before its lane is known. A held lane gives it back, or has it taken over.
#[test]
fn chained_sources_agree_about_held_lanes() {
    let pl2 = format!("{CLOCK}\nclocks = \"chain\"\ncontrol_per_slot = 0\nslot_headroom_percent = 0");
    let all = built(&["100 Gb/s"; 4], &pl2, Scheme::PL2_CLOCK);
    let expected = asks_for_held_lanes(&all[0]);
    for other in &all[1..] {
        assert_eq!(asks_for_held_lanes(other), expected, "{}", other.rack.switch.arch);
    }
    for (right, wrong) in [
        ("value = value - (int<32>) meta.pl2.time_in;", "value = value;"),
        ("= next_pass.pl2_earliest;", "= ig_intr_md.ingress_mac_tstamp[31:0];"),
    ] {
        let mistaken = all[1].changed(&[(right, wrong)]);
        assert_ne!(asks_for_held_lanes(&mistaken), expected, "{right} and {wrong} are the same to it");
    }
}

/// RSVs for held lanes move their source's time until their second passes give it back. However many a host sends in between, a
/// destination's time continues from no later than the source's lanes permit.
#[test]
fn rsvs_for_held_lanes_move_no_destination_far_ahead() {
    let pl2 = format!("{CLOCK}\nclocks = \"chain\"\ncontrol_per_slot = 0\nslot_headroom_percent = 0");
    let all = built(&["100 Gb/s"; 4], &pl2, Scheme::PL2_CLOCK);
    // The second passes haven't come yet.
    let waits = ("value = value - (int<32>) meta.pl2.time_in;", "value = value;");
    let wait_ns = |built: &Built| {
        let mut rig = Rig::new(built);
        rig.now = Nanos::from_millis(1);
        rig.reserve_cell(1, 2, 5, 0).unwrap();
        for _ in 0..60 {
            rig.reserve_cell(1, 2, 5, 0);
        }
        rig.reserve_cell(1, 3, 5, 0).unwrap().1
    };
    for chip in &all[1..] {
        let bounded = wait_ns(&chip.changed(&[waits]));
        assert!(bounded <= 8_192, "{bounded} ns on {}", chip.rack.switch.arch);
        let without = [waits, (">= (int<32>) SOURCE_HORIZON", ">= (int<32>) HORIZON")];
        let unbounded = wait_ns(&chip.changed(&without));
        assert!(unbounded > 30_000, "{unbounded} ns on {}", chip.rack.switch.arch);
    }
}

/// Compares them; the reasons for drops that it met, which are all but the meters' at least.
fn compare(built: &[Built]) -> Vec<&'static str> {
    let frames = variable("P4RACK_FRAMES", FRAMES as u64) as usize;
    let seed = variable("P4RACK_SEED", 1);
    println!("{}: {frames} frames, seed {seed}", built[0].scheme);
    let (mut random, mut left) = (Random::new(seed), frames);
    let mut met = Vec::new();
    while left > 0 {
        let count = left.min(RUN);
        left -= count;
        for (reason, _) in run(built, &mut random, count) {
            if !met.contains(&reason) {
                met.push(reason);
            }
        }
    }
    let all: Vec<&str> = built[0].runs().drop_reasons().iter().map(|reason| reason.name).collect();
    let never: Vec<&&str> = all.iter().filter(|reason| !met.contains(reason)).collect();
    // Bursts to another pipe are not to go unsolicited.
    let crosses = built[0].rack.hosts.iter().any(|host| host.port >= 128);
    let rare = |reason: &str| reason.ends_with("_meter") || crosses && reason.starts_with("unsolicited_");
    assert!(never.iter().all(|reason| rare(reason)), "never met: {never:?}");
    met
}

/// One run; the reasons for drops that it met.
fn run(built: &[Built], random: &mut Random, frames: usize) -> Vec<(&'static str, u64)> {
    let mut rigs: Vec<Rig> = built.iter().map(Rig::new).collect();
    // Anywhere, but with registers that are in the past for both.
    let begins = (random.below(1 << 14) << 32) + (1 << 31) + random.below((1 << 31) - (1 << 26));
    rigs.iter_mut().for_each(|rig| rig.now = Nanos(begins));
    let pl2 = built[0].scheme != Scheme::L2;
    for number in 0..frames {
        let step = match random.below(16) {
            0..=7 => random.below(20),
            8..=13 => random.below(400),
            14 => random.below(8_000),
            _ => random.below(200_000),
        };
        let (port, frame) = with_slots(&built[0], frame(&built[0], random));
        let mut outcomes = rigs.iter_mut().map(|rig| {
            rig.now += Nanos(step);
            let sent = rig.send(port, &numbered(&rig.built, &frame));
            let rack = &rig.built.rack;
            let mut sent: Vec<_> =
                sent.into_iter().map(|(port, frame)| (position_of(rack, port), frame)).collect();
            sent.sort();
            let mut reply = Vec::new();
            let replied = rig.switch.poll_cpu(&mut reply);
            in_frames(rig, &frame, &mut reply);
            (sent, replied.then_some(reply), pl2.then(|| (rig.demoted(), rig.refused())))
        });
        let expected = outcomes.next().unwrap();
        for (outcome, built) in outcomes.zip(&built[1..]) {
            let arch = built.rack.switch.arch;
            let head = &frame[..frame.len().min(40)];
            assert!(
                outcome == expected,
                "{} on {arch}: frame {number} from port {port}: {head:02x?}:\n{}instead of\n{}",
                built.scheme,
                shown(&outcome),
                shown(&expected)
            );
        }
    }
    let drops = rigs[0].all_drops();
    for rig in &rigs[1..] {
        assert_eq!(rig.all_drops(), drops, "{}", rig.built.rack.switch.arch);
    }
    drops
}

/// Result of a frame: frames and the hosts at their ports, the controller's frame, frames demoted and RSVs refused by reason.
type Outcome = (Vec<(usize, Vec<u8>)>, Option<Vec<u8>>, Option<([u64; 4], [u64; 2])>);

fn shown((sent, reply, counts): &Outcome) -> String {
    let sent = sent.iter().map(|(port, frame)| format!("{port}: {:02x?}\n", &frame[..frame.len().min(40)]));
    format!("{}{reply:02x?} {counts:?}\n", sent.collect::<String>())
}
