//! A rack of PL2 and EDM: its programs for v1model and for Tofino get the same frames of both protocols at the same times and give
//! the same frames out, count the same, and hold the same reservations, clocks and rights.
//!
//! This leaves out the same cases as the tests of each protocol alone (`differential.rs`, `edm_differential.rs`),
//! shares of links among them.
//!
//! `P4RACK_FRAMES=1000000 cargo test --profile verify --workspace --test codegen beside:: -- --nocapture` takes more frames,
//! `P4RACK_SEED` another seed.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::any_edm::{self, CHUNK, unpad};
use common::any_pl2::{self, in_frames, numbered};
use common::edm::{self, Net, edm_of, message, notification};
use common::random::{Random, variable};
use common::*;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_codegen::scheme::edm::{DATA_COUNTER, DEMANDS_COUNTER, DEMOTED_COUNTER};
use p4rack_codegen::{Arch, Rack};
use p4rack_wire::edm::Kind;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::{EtherType, Nanos};

/// Frames of a run; then everything starts again, at another time.
const RUN: usize = 5_000;
/// Frames of each scheme.
const FRAMES: usize = 20_000;

/// Cowbird's engine beside both. Its own frames have tests of their own (`cowbird_p4`).
const ENGINE: &str = "\n[cowbird]\nip = \"10.0.0.254\"\ncompute = [\"h1\"]\npool = [\"h2\"]";

/// Four hosts with links of several rates, two of them with memory. Where waits are counted in slots, or granted by the lowest
/// rate alone, the rate is one.
fn described(pl2: &str, clocks: &str, edm: &str, engine: &str) -> Rack {
    let rates = match (pl2, edm) {
        ("counter", _) | (_, "matched") => ["50 Gb/s"; 4],
        _ => ["100 Gb/s", "50 Gb/s", "100 Gb/s", "25 Gb/s"],
    };
    let window = if ["matched", "calendar"].contains(&edm) { 2 } else { 3 };
    let tables = format!(
        "mode = \"{pl2}\"\nclocks = \"{clocks}\"\nk = 5\nlanes = 2\nt = 3\ndrop_threshold = 4\nbest_effort_percent = 100\n\
         control_per_slot = 0\nslot_headroom_percent = 0\n\
         [edm]\nmode = \"{edm}\"\nmemory = [\"h3\", \"h4\"]\nchunk_bytes = {CHUNK}\nwindow = {window}\ncontrol_percent = 100\nshares = false{engine}"
    );
    rack(&rates, &tables)
}

#[test]
fn pairs_of_clocks_agree_beside_clocks_of_destinations() {
    compare("clock", "pair", "timed-dst", &Arch::ALL);
}

#[test]
fn pairs_of_clocks_agree_beside_clocks_of_sources_and_destinations() {
    compare("clock", "pair", "timed", &Arch::ALL);
}

#[test]
fn chains_of_clocks_agree_beside_clocks_of_destinations() {
    compare("clock", "chain", "timed-dst", &Arch::ALL);
}

#[test]
fn counters_agree_beside_clocks_of_destinations() {
    compare("counter", "pair", "timed-dst", &Arch::ALL);
}

/// Only the second generation has room for them.
#[test]
fn pairs_of_clocks_agree_beside_calendars() {
    compare("clock", "pair", "calendar", &[Arch::V1model, Arch::T2na]);
}

#[test]
fn pairs_of_clocks_agree_beside_demands_that_wait() {
    compare("clock", "pair", "matched", &[Arch::V1model, Arch::T2na]);
}

#[test]
fn chains_of_clocks_agree_beside_demands_that_wait() {
    compare("clock", "chain", "matched", &[Arch::V1model, Arch::T2na]);
}

#[test]
fn counters_agree_beside_calendars() {
    compare("counter", "pair", "calendar", &[Arch::V1model, Arch::T2na]);
}

#[test]
fn counters_agree_beside_demands_that_wait() {
    compare("counter", "pair", "matched", &[Arch::V1model, Arch::T2na]);
}

#[test]
fn both_agree_beside_an_engine_in_the_switch() {
    compare_beside("clock", "pair", "matched", ENGINE, &[Arch::V1model, Arch::T2na]);
    compare_beside("counter", "pair", "timed-dst", ENGINE, &[Arch::V1model, Arch::T2na]);
}

/// Each protocol's bounds are its own: EDM's data is neither best effort, nor a frame that is too long for PL2's slots,
/// nor PL2's in a VLAN of reservations.
#[test]
fn what_edm_grants_is_edms_alone() {
    let tables = "mode = \"clock\"\nbest_effort_percent = 5\n\
                  [edm]\nmode = \"timed-dst\"\nmemory = [\"h3\"]\nwindow = 8\ncontrol_percent = 100";
    for arch in Arch::ALL {
        let rack = rack(&["100 Mb/s"; 4], tables);
        let scheme = rack.scheme();
        let mut net = Net::new(&Built::on(rack, scheme, arch));
        let rack = net.rig.built.rack.clone();
        // Until the best-effort burst is used up.
        for payload in [1_200, 46] {
            let other = plain(mac(&rack, 1), mac(&rack, 2), EtherType::IPV4, &vec![3; payload]);
            assert!((0..1_000).any(|_| net.rig.send(1, &other).is_empty()), "{arch}");
        }

        assert!(net.notify(1, 3, 0, 3_000).is_some(), "{arch}");
        assert_eq!(net.write(1, 3, 0, 3_000, 0, 3_000), edm::Fate::Scheduled(None), "{arch}");
        let part = message(Kind::Wreq, 1, 64, 0, 64);
        assert_eq!(net.rig.send(1, &net.frame(1, 3, 5, &part)), [], "{arch}: not granted, so best effort");
        assert_eq!(net.demoted(), [1, 0], "{arch}");

        let in_vlan = |bytes: &[u8]| {
            let (vid, ether_type) = (net.rig.built.pl2().vid, edm_of(&net.rig.built).ether_type);
            tagged(mac(&rack, 1), mac(&rack, 3), Vlan { pcp: 5, dei: false, vid, ether_type }, bytes)
        };
        let [demand, part] = [notification(1, 64), part].map(|bytes| in_vlan(&bytes));
        assert_eq!(net.rig.send(1, &demand).len(), 1, "{arch}: a grant");
        // Behind the 3000 bytes.
        net.rig.now += Nanos::from_micros(250);
        assert_eq!(net.rig.send(1, &part), [(3, part)], "{arch}");
        assert_eq!((net.rig.demoted(), net.demoted()), ([0; 4], [1, 0]), "{arch}");
        assert_eq!(net.rig.all_drops(), [("best_effort_meter", 3)], "{arch}");
    }
}

/// Compares the programs of these architectures, which meet every reason for drops but the meters'.
fn compare(pl2: &str, clocks: &str, edm: &str, archs: &[Arch]) {
    compare_beside(pl2, clocks, edm, "", archs);
}

fn compare_beside(pl2: &str, clocks: &str, edm: &str, engine: &str, archs: &[Arch]) {
    let on = |arch: &Arch| {
        let rack = described(pl2, clocks, edm, engine);
        let scheme = rack.scheme();
        Built::on(rack, scheme, *arch)
    };
    let built: Vec<Built> = archs.iter().map(on).collect();
    let frames = variable("P4RACK_FRAMES", FRAMES as u64) as usize;
    let seed = variable("P4RACK_SEED", 1);
    println!("{}, {clocks}: {frames} frames, seed {seed}", built[0].scheme);
    let (mut random, mut left) = (Random::new(seed), frames);
    let mut met = Vec::new();
    while left > 0 {
        let count = left.min(RUN);
        left -= count;
        met.extend(run(&built, &mut random, count).into_iter().map(|(reason, _)| reason));
    }
    let all = built[0].runs().drop_reasons();
    let never = all.iter().map(|reason| reason.name).filter(|reason| !met.contains(reason));
    // Rings have room for all lanes.
    let possible = |reason: &&str| {
        !reason.ends_with("_meter")
            && !reason.starts_with("cowbird_")
            && !["edm_no_time", "edm_looked"].contains(reason)
    };
    let never: Vec<&str> = never.filter(possible).collect();
    assert!(never.is_empty(), "never met: {never:?}");
}

/// Result of a frame: frames and their ports, the controller's frame, counts of demoted and refused ones.
type Outcome = (Vec<(u16, Vec<u8>)>, Option<Vec<u8>>, [u64; 4], [u64; 2], [u64; 2]);

/// One run; the reasons for drops that it met.
fn run(built: &[Built], random: &mut Random, frames: usize) -> Vec<(&'static str, u64)> {
    let mut rigs: Vec<Rig> = built.iter().map(Rig::new).collect();
    // Anywhere, but with registers that are in the past for all.
    let begins = (random.below(1 << 14) << 32) + (1 << 31) + random.below((1 << 31) - (1 << 26));
    rigs.iter_mut().for_each(|rig| rig.now = Nanos(begins));
    let expiry = edm_of(&built[0]).expiry(&built[0].rack).0;
    for number in 0..frames {
        let step = match random.below(64) {
            0..=53 => random.below(20),
            54..=60 => random.below(400),
            61 => random.below(8_000),
            62 => random.below(100_000),
            _ => expiry - 100 + random.below(200),
        };
        let (port, frame) = frame(&built[0], random);
        let mut outcomes = rigs.iter_mut().map(|rig| {
            rig.now += Nanos(step);
            outcome(rig, port, &frame)
        });
        let expected = outcomes.next().unwrap();
        for (outcome, built) in outcomes.zip(&built[1..]) {
            let arch = built.rack.switch.arch;
            let head = &frame[..frame.len().min(48)];
            assert!(
                outcome == expected,
                "{} on {arch}: frame {number} from port {port}: {head:02x?}:\n{}instead of\n{}",
                built.scheme,
                shown(&outcome),
                shown(&expected)
            );
        }
    }
    let counted = |rig: &Rig| {
        let ports = [0, 1, 2, 3, 4]
            .map(|port| [DEMANDS_COUNTER, DATA_COUNTER].map(|counter| rig.counter(counter, port).packets));
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

fn outcome(rig: &mut Rig, port: u16, frame: &[u8]) -> Outcome {
    let mut sent = rig.send(port, &numbered(&rig.built, frame));
    // No grant is shorter than frames are, whatever became of the chunk that asked for it.
    assert!(frame.len() < 60 || sent.iter().all(|(_, sent)| sent.len() >= 60), "{sent:02x?}");
    sent.iter_mut().for_each(|(_, frame)| unpad(&rig.built.rack, frame));
    sent.sort();
    let mut reply = Vec::new();
    let reply = rig.switch.poll_cpu(&mut reply).then_some(reply);
    let reply = reply.map(|mut reply| {
        in_frames(rig, frame, &mut reply);
        reply
    });
    let data = [0, 1].map(|reason| rig.counter(DEMOTED_COUNTER, reason).packets);
    (sent, reply, rig.demoted(), rig.refused(), data)
}

fn shown((sent, reply, demoted, refused, data): &Outcome) -> String {
    let shown = |(port, frame): &(u16, Vec<u8>)| {
        format!("{port}: {} bytes, {:02x?}\n", frame.len(), &frame[..frame.len().min(48)])
    };
    let sent: String = sent.iter().map(shown).collect();
    format!("{sent}{reply:02x?} {demoted:?} {refused:?} {data:?}\n")
}

/// A frame of either protocol, and its port. Some of EDM's come in a VLAN of reservations, which gives them none.
fn frame(built: &Built, random: &mut Random) -> (u16, Vec<u8>) {
    if random.below(2) == 0 {
        return any_pl2::frame(built, random);
    }
    let (port, mut frame) = any_edm::frame(&built.rack, random);
    let tag = Ethernet::BYTES..Ethernet::BYTES + Vlan::BYTES;
    if port != built.rack.switch.cpu_port
        && random.below(4) == 0
        && let Some(tag) = frame.get_mut(tag)
        && let Ok(known) = Vlan::parse(tag)
        && known.ether_type == edm_of(built).ether_type
    {
        let vid = built.pl2().vid + random.below(5) as u16;
        Vlan { vid, dei: random.below(3) == 0, ..known }.emit(tag);
    }
    // Frames of other protocols to the engine's address are not the engine's.
    if let Some(engine) = built.runs().protocol::<Cowbird>()
        && port != built.rack.switch.cpu_port
        && random.below(16) == 0
        && let Some(address) = frame.get_mut(..6)
    {
        address.copy_from_slice(&engine.mac.0);
    }
    (port, frame)
}
