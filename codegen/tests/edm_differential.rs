//! EDM's programs for v1model and for Tofino get the same frames at the same times and give the same frames out, count the same,
//! and hold the same clocks, calendars and rights.
//!
//! Unavoidable differences are left out: shares of links (`edm.shares`), which they keep in different ways; frames that
//! are longer than their header says, which Tofino drops in egress, and data of the controller's, which v1model takes
//! to be longer by the header before it; and meters of bytes, since v1model's don't count the FCS.
//!
//! `P4RACK_FRAMES=1000000 cargo test --profile verify --workspace --test edm_differential -- --nocapture` takes more frames,
//! `P4RACK_SEED` another seed.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::any_edm::{CHUNK, frame, unpad};
use common::edm::edm_of;
use common::random::{Random, variable};
use common::*;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::edm::{DATA_COUNTER, DEMANDS_COUNTER, DEMOTED_COUNTER, Edm};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::{MacAddr, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Frames of a run; then everything starts again, at another time.
const RUN: usize = 5_000;
/// Frames of each scheme.
const FRAMES: usize = 20_000;

/// Four hosts with links of several rates, two of them with memory. Under `matched` all rates are equal: how far links
/// may be granted ahead depends on the rates, but on Tofino only on the lowest.
fn described(mode: &str, demands: u16) -> Rack {
    let rates = match mode {
        "matched" => ["50 Gb/s"; 4],
        _ => ["100 Gb/s", "50 Gb/s", "100 Gb/s", "25 Gb/s"],
    };
    let window = if ["matched", "calendar"].contains(&mode) { 2 } else { 3 };
    let hosts: String = rates
        .iter()
        .zip(1..)
        .map(|(rate, n)| {
            format!(
                "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n\
                 rate = \"{rate}\"\n"
            )
        })
        .collect();
    let text = format!(
        "name = \"test\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"{mode}\"\nmemory = [\"h3\", \"h4\"]\n\
         chunk_bytes = {CHUNK}\nwindow = {window}\ndemands = {demands}\ncontrol_percent = 100\nshares = false\n{hosts}"
    );
    Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn clocks_of_destinations_agree() {
    compare("timed-dst", 3);
}

/// Hosts in all pipes, most frames between two of them; and two hosts in each of two.
#[test]
fn clocks_of_destinations_in_several_pipes_agree() {
    for ports in [[1, 131, 260, 389], [131, 1, 6, 130]] {
        compare_of(|| at_ports(described("timed-dst", 3), &ports));
    }
}

/// A program for several pipes does what that for one does where all frames stay in one.
#[test]
fn where_nothing_crosses_a_program_for_several_pipes_is_that_for_one() {
    for (arch, shares) in [(Arch::Tna, false), (Arch::T2na, false), (Arch::Tna, true), (Arch::T2na, true)] {
        let of = |last: u16| {
            let mut rack = with_shares(shares);
            let host = rack.hosts[3].clone();
            let mac = MacAddr([2, 0, 0, 0, 0, 5]);
            rack.hosts.push(Host { name: "h5".to_owned(), mac, ..host });
            let mut rack = at_ports(rack, &[1, 2, 3, 4, last]);
            rack.switch.cpu_port = 64;
            Built::on(rack, Scheme::EDM_TIMED_DST, arch)
        };
        let two = [of(5), of(131)];
        assert_eq!(two.each_ref().map(|built| built.p4().contains("EDM_AT_LANE")), [false, true]);
        agree(&two);
    }
}

#[test]
fn clocks_of_sources_and_destinations_agree() {
    compare("timed", 3);
}

#[test]
fn with_all_lanes_in_use_they_agree() {
    compare("timed", 4);
}

#[test]
fn calendars_agree() {
    compare("calendar", 3);
}

#[test]
fn demands_that_wait_agree() {
    compare("matched", 3);
}

/// The comparison can fail: it notices another number of lanes, or clocks of other ports, in one program.
#[test]
fn programs_that_differ_do_not_agree() {
    let of = |mode: &str, demands| {
        let rack = described(mode, demands);
        let scheme = rack.scheme();
        Built::on(rack, scheme, Arch::V1model)
    };
    for (mode, demands) in [("timed", 4), ("timed-dst", 3)] {
        let two = [of("timed", 3), of(mode, demands)];
        let agreed = catch_unwind(AssertUnwindSafe(|| run(&two, &mut Random::new(1), RUN)));
        assert!(agreed.is_err(), "{mode} with {demands} demands is the same to it");
    }
}

/// The rack of clocks of destinations, with windows for shares of links.
fn with_shares(shares: bool) -> Rack {
    let mut rack = described("timed-dst", 3);
    let edm = rack.protocol::<Edm>().unwrap().clone();
    rack.protocols = vec![Arc::new(Edm { shares, window: 4, ..edm })];
    rack
}

/// Compares the programs of all architectures.
fn compare(mode: &str, demands: u16) {
    compare_of(|| described(mode, demands));
}

fn compare_of(rack: impl Fn() -> Rack) {
    agree(&Arch::ALL.map(|arch| Built::on(rack(), rack().scheme(), arch)));
}

/// Compares programs, which meet every reason for drops but the meters'.
fn agree(built: &[Built]) {
    let (scheme, demands) = (built[0].scheme, edm_of(&built[0]).demands);
    let frames = variable("P4RACK_FRAMES", FRAMES as u64) as usize;
    let seed = variable("P4RACK_SEED", 1);
    println!("{scheme}, {demands} demands: {frames} frames, seed {seed}");
    let (mut random, mut left) = (Random::new(seed), frames);
    let mut met = Vec::new();
    while left > 0 {
        let count = left.min(RUN);
        left -= count;
        met.extend(run(built, &mut random, count).into_iter().map(|(reason, _)| reason));
    }
    let all = built[0].runs().drop_reasons();
    let lanes_unused = edm_of(&built[0]).lanes() > demands;
    let never = all.iter().map(|reason| reason.name).filter(|reason| !met.contains(reason));
    // Rings have room for all lanes.
    let possible = |reason: &&str| {
        !reason.ends_with("_meter")
            && !["edm_no_time", "edm_looked"].contains(reason)
            && (lanes_unused || *reason != "edm_bad_lane")
    };
    let never: Vec<&str> = never.filter(possible).collect();
    assert!(never.is_empty(), "never met: {never:?}");
}

/// Result of a frame: frames and the hosts at their ports, the controller's frame, data demoted.
type Outcome = (Vec<(usize, Vec<u8>)>, Option<Vec<u8>>, [u64; 2]);

/// One run; the reasons for drops that it met.
fn run(built: &[Built], random: &mut Random, frames: usize) -> Vec<(&'static str, u64)> {
    let mut rigs: Vec<Rig> = built.iter().map(Rig::new).collect();
    // Anywhere, so that times wrap.
    let begins = random.below(1 << 46);
    rigs.iter_mut().for_each(|rig| rig.now = Nanos(begins));
    let expiry = edm_of(&built[0]).expiry(&built[0].rack).0;
    for number in 0..frames {
        let step = match random.below(64) {
            0..=31 => random.below(20),
            32..=55 => random.below(400),
            56..=62 => random.below(8_000),
            _ => expiry - 100 + random.below(200),
        };
        let (port, frame) = frame(&built[0].rack, random);
        let mut outcomes = rigs.iter_mut().map(|rig| {
            rig.now += Nanos(step);
            let rack = &rig.built.rack.clone();
            let sent = rig.send(port, &frame).into_iter().map(|(port, mut frame)| {
                unpad(rack, &mut frame);
                (position_of(rack, port), frame)
            });
            let mut sent: Vec<_> = sent.collect();
            sent.sort();
            let mut reply = Vec::new();
            let reply = rig.switch.poll_cpu(&mut reply).then_some(reply);
            (sent, reply, [0, 1].map(|reason| rig.counter(DEMOTED_COUNTER, reason).packets))
        });
        let expected = outcomes.next().unwrap();
        for (outcome, built) in outcomes.zip(&built[1..]) {
            assert!(
                outcome == expected,
                "{} on {}: frame {number} from port {port}: {:02x?}:\n{}instead of\n{}",
                built.scheme,
                built.rack.switch.arch,
                &frame[..frame.len().min(48)],
                shown(&outcome),
                shown(&expected)
            );
        }
    }
    let counted = |rig: &Rig| {
        let ports = rig.built.rack.hosts.iter().map(|host| host.port.into()).chain([0]);
        let ports: Vec<_> = ports
            .map(|port| [DEMANDS_COUNTER, DATA_COUNTER].map(|counter| rig.counter(counter, port).packets))
            .collect();
        // Only v1model's frames are copied to look for demands that wait.
        let drops = rig.all_drops().into_iter().filter(|(reason, _)| *reason != "edm_looked");
        (drops.collect::<Vec<_>>(), ports)
    };
    let expected = counted(&rigs[0]);
    for rig in &rigs[1..] {
        assert_eq!(counted(rig), expected, "{}", rig.built.rack.switch.arch);
    }
    expected.0
}

fn shown((sent, reply, demoted): &Outcome) -> String {
    let shown = |(port, frame): &(usize, Vec<u8>)| {
        format!("{port}: {} bytes, {:02x?}\n", frame.len(), &frame[..frame.len().min(48)])
    };
    let sent = sent.iter().map(shown);
    format!("{}{reply:02x?} {demoted:?}\n", sent.collect::<String>())
}
