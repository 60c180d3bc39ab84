//! EDM's programs for v1model and for Tofino get the same frames at the same times and give the same frames out, count the same,
//! and hold the same clocks, calendars and rights.
//!
//! Unavoidable differences are left out: shares of links (`edm.shares`), which they keep in different ways; frames that
//! are longer than their header says, which Tofino drops in egress, and data of the controller's, which v1model takes
//! to be longer by the header before it; and meters of bytes, since v1model's don't count the FCS.
//!
//! `P4RACK_FRAMES=1000000 cargo test --profile verify --workspace --test codegen edm_differential:: -- --nocapture` takes more frames,
//! `P4RACK_SEED` another seed.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::any_edm::{CHUNK, frame, unpad};
use common::edm::edm_of;
use common::random::{Random, variable};
use common::*;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::edm::{DATA_COUNTER, DEMANDS_COUNTER, DEMOTED_COUNTER, Edm};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::edm::{Management, Target};
use p4rack_wire::{MacAddr, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Frames of a run; then everything starts again, at another time.
const RUN: usize = 5_000;
const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
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
        compare_of(|| that_expires(at_ports(described("timed-dst", 3), &ports)));
    }
}

/// A program for several pipes does what that for one does where all frames stay in one.
#[test]
fn where_nothing_crosses_a_program_for_several_pipes_is_that_for_one() {
    for (arch, shares) in [(Arch::Tna, false), (Arch::T2na, false), (Arch::Tna, true), (Arch::T2na, true)] {
        let of = |last: u16| {
            let mut rack = that_expires(with_shares(shares));
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

/// A program with shares grants as much and as early by crossings as in one pipe, whether much of a link is claimed or little.
///
/// Left out is what differs by design: where frames cross, demands that are refused claim no time, a demand also waits until the
/// lane's data is due, and lanes expire later.
#[test]
fn shares_with_crossings_are_those_of_one_pipe() {
    for arch in CHIPS {
        for near in ["1", "0"] {
            agree(&with_and_without_crossings(arch, near, &[]));
        }
    }
}

/// The comparison notices what the first frame of a lane's grant settles, and where.
#[test]
fn shares_with_wrong_crossings_do_not_agree() {
    let settles = "manage_rights.execute(meta.edm.cell";
    let way = |port: &str| {
        format!(
            "hdr.edm_message.key = (bit<32>) meta.edm.to_wait;\nhdr.again.pass = meta.edm.to_unclaimed | EDM_SETTLES;\n\
             meta.again = 1;\nhdr.packet_in.setInvalid();\nig_tm_md.bypass_egress = 1;\n\
             ig_tm_md.ucast_egress_port = meta.edm.{port};"
        )
    };
    for (from, to) in [
        ("meta.edm.to_unclaimed | EDM_SETTLES", "EDM_SETTLES"),
        (&format!("[3:3] == 1) {{\n{settles}"), &format!("[3:3] == 0) {{\n{settles}")),
        (&way("lane_way"), &way("clock_way")),
    ] {
        let two = with_and_without_crossings(Arch::Tna, "1", &[(from, to)]);
        let agreed = catch_unwind(AssertUnwindSafe(|| run(&two, &mut Random::new(1), RUN)));
        assert!(agreed.is_err(), "{to} is the same to it");
    }
}

/// Programs with shares for hosts in one pipe and in four, in which all links are claimed little (1) or far ahead (0), the second one
/// with changes.
fn with_and_without_crossings(arch: Arch, near: &str, changes: &[(&str, &str)]) -> [Built; 2] {
    let of = |ports: &[u16], changes: &[(&str, &str)]| {
        let rack = that_expires(at_ports(with_shares(true), ports));
        let claims = "result = 0;\n} else {\nresult = 1;\n}\nif ((bit<32>) value - meta.edm.now";
        let all = claims.replace("= 0", &format!("= {near}")).replace("= 1", &format!("= {near}"));
        Built::on(rack, Scheme::EDM_TIMED_DST, arch).changed(&[&[(claims, all.as_str())], changes].concat())
    };
    let whenever =
        ("meta.edm.op == EDM_OP_NOTIFY && meta.edm.amount[0:0] == 0", "meta.edm.op == EDM_OP_NONE");
    [of(&[1, 2, 3, 4], &[]), of(&[1, 131, 260, 389], &[&[whenever], changes].concat())]
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

/// The rack with lanes that expire after the same time in all programs: where frames cross, they last longer by that.
fn that_expires(mut rack: Rack) -> Rack {
    let edm = rack.protocol::<Edm>().unwrap().clone();
    rack.protocols = vec![Arc::new(Edm { expiry: Some(Nanos(1_000_000)), ..edm })];
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
        // Racks may differ in their hosts' ports.
        let frames: Vec<_> = built.iter().map(|built| frame(&built.rack, &mut random.clone())).collect();
        let (port, frame) = frame(&built[0].rack, random);
        if built.iter().zip(&frames).any(|(built, (_, frame))| is_about_no_link(&built.rack, frame)) {
            continue;
        }
        let mut outcomes = rigs.iter_mut().zip(frames).map(|(rig, (port, frame))| {
            rig.now += Nanos(step);
            let rack = &rig.built.rack.clone();
            let sent = rig.send(port, &frame).into_iter().map(|(port, mut frame)| {
                unpad(rack, &mut frame);
                (position_of(rack, port), frame)
            });
            let mut sent: Vec<_> = sent.collect();
            sent.sort();
            let mut reply = Vec::new();
            let reply = rig.switch.poll_cpu(&mut reply).then(|| by_position(rack, reply));
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

/// Whether a frame of the controller's is about a clock that no host's link has.
fn is_about_no_link(rack: &Rack, frame: &[u8]) -> bool {
    let asked = frame.get(16..).and_then(|bytes| Management::parse(bytes).ok());
    let is_clock = |asked: &Management| asked.target == Target::Destination as u8;
    let is_link = |asked: &Management| rack.hosts.iter().any(|host| u32::from(host.link) == asked.index);
    frame.starts_with(&[0, 0])
        && asked.is_some_and(|asked| is_clock(&asked) && asked.index != 0 && !is_link(&asked))
}

/// A frame to the controller with hosts' positions instead of the ports that it names.
fn by_position(rack: &Rack, mut frame: Vec<u8>) -> Vec<u8> {
    let position =
        |port: u16| rack.hosts.iter().position(|host| host.port == port).map(|place| place as u16 + 1);
    if let Some(place) = position(u16::from_be_bytes([frame[0], frame[1]])) {
        frame[..2].copy_from_slice(&place.to_be_bytes());
    }
    if let Ok(answer) = Management::parse(&frame[16..])
        && answer.target == Target::Destination as u8
        && let Some(place) = position(answer.index as u16)
    {
        Management { index: place.into(), ..answer }.emit(&mut frame[16..]);
    }
    frame
}

fn shown((sent, reply, demoted): &Outcome) -> String {
    let shown = |(port, frame): &(usize, Vec<u8>)| {
        format!("{port}: {} bytes, {:02x?}\n", frame.len(), &frame[..frame.len().min(48)])
    };
    let sent = sent.iter().map(shown);
    format!("{}{reply:02x?} {demoted:?}\n", sent.collect::<String>())
}
