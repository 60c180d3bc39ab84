//! A rack's programs for v1model and for Tofino get the same frames at the same times and give the same frames out, count the
//! same drops, and hold the same reservations.
//!
//! What they can't agree on is left out: a run is shorter than 2^31 ns, since Tofino's times have 32 bits;
//! frames that claim slots are full ones and the controller sends none, since Tofino counts frames where v1model counts
//! bytes (so what the controller takes back is compared in frames); the controller writes no more than may be reserved;
//! meters of bytes are off, since v1model's don't count the FCS.
//!
//! `P4RACK_FRAMES=1000000 cargo test --profile verify -p p4rack-codegen --test differential -- --nocapture` takes more
//! frames, `P4RACK_SEED` another seed.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::random::{Random, variable};
use common::*;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::pl2::{Control, Kind, Side, VERSION};
use p4rack_wire::{EtherType, MacAddr, Nanos};

/// Frames of a run; then everything begins anew, at another time.
const RUN: usize = 5_000;
/// Frames of each scheme.
const FRAMES: usize = 10_000;
/// Payload of a frame that takes a slot: 1500 bytes and the shim.
const FULL: usize = 1_508;

/// The same rack for v1model, and for both of Tofino's architectures.
fn built(rates: &[&str], pl2: &str, scheme: Scheme) -> [Built; 3] {
    let three = [Arch::V1model, Arch::Tna, Arch::T2na].map(|arch| Built::on(rack(rates, pl2), scheme, arch));
    let slots = |built: &Built| (1..=4).map(|port| built.slot(port).0).collect::<Vec<_>>();
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

#[test]
fn counters_agree() {
    let pl2 = CLOCK.replace("clock", "counter") + "\ncontrol_per_slot = 0\nslot_headroom_percent = 0";
    compare(&built(&["100 Gb/s"; 4], &pl2, Scheme::PL2_COUNTER));
}

#[test]
fn plain_switching_agrees() {
    compare(&built(&["100 Gb/s"; 4], "mode = \"clock\"\nslot_headroom_percent = 0", Scheme::L2));
}

/// Compares them; the reasons for drops that it met, which are all but the meters' at least.
fn compare(built: &[Built]) -> Vec<&'static str> {
    let frames = variable("P4RACK_FRAMES", FRAMES as u64) as usize;
    let seed = variable("P4RACK_SEED", 1);
    println!("{}: {frames} frames, seed {seed}", built[0].scheme);
    let (mut random, mut left) = (Random(seed), frames);
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
    assert!(never.iter().all(|reason| reason.ends_with("_meter")), "never met: {never:?}");
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
        let (port, frame) = frame(built, random);
        let mut outcomes = rigs.iter_mut().map(|rig| {
            rig.now += Nanos(step);
            let mut sent = rig.send(port, &numbered(&rig.built, &frame));
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

/// What came of a frame: frames and their ports, the controller's, frames demoted and RSVs refused by reason.
type Outcome = (Vec<(u16, Vec<u8>)>, Option<Vec<u8>>, Option<([u64; 4], [u64; 2])>);

fn shown((sent, reply, counts): &Outcome) -> String {
    let sent = sent.iter().map(|(port, frame)| format!("{port}: {:02x?}\n", &frame[..frame.len().min(40)]));
    format!("{}{reply:02x?} {counts:?}\n", sent.collect::<String>())
}

/// Where a controller's frame has a cell's number, behind its own header and Ethernet's.
const CELL: std::ops::Range<usize> = 32..36;

fn forgets(frame: &[u8]) -> bool {
    frame.get(16) == Some(&(VERSION << 4 | Kind::MgmtForget as u8))
}

/// The frame with the number that the cell has in a program: it comes with places of hosts and cell, a byte each.
fn numbered(built: &Built, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if built.scheme != Scheme::L2
        && forgets(&frame)
        && let (Some(cell), Some(pl2)) = (frame.get_mut(CELL), built.rack.protocol::<Pl2>())
    {
        let [source, destination] = [cell[1], cell[2]].map(usize::from);
        let number = pl2.cell_number(&built.rack, source, destination, cell[3]);
        cell.copy_from_slice(&number.to_be_bytes());
    }
    frame
}

/// What the controller took back by `frame`, in frames, and without the number of the cell.
fn in_frames(rig: &Rig, frame: &[u8], reply: &mut [u8]) {
    const VALUE: std::ops::Range<usize> = 24..28;
    let built = &rig.built;
    let forgets = forgets(frame);
    if forgets && let Some(cell) = reply.get_mut(CELL) {
        cell.fill(0);
    }
    if !forgets || built.scheme != Scheme::PL2_CLOCK || built.rack.switch.arch != Arch::V1model {
        return;
    }
    if let Some(value) = reply.get_mut(VALUE) {
        let bytes = u32::from_be_bytes(value.try_into().unwrap());
        let full = built.pl2().frame_wire_bytes() as u32;
        assert_eq!(bytes % full, 0);
        value.copy_from_slice(&(bytes / full).to_be_bytes());
    }
}

/// A frame of any sort, good or bad, and its port.
fn frame(built: &[Built], random: &mut Random) -> (u16, Vec<u8>) {
    let rack = &built[0].rack;
    // Mostly few pairs, so that they meet their own reservations.
    let mut port = || {
        let ports = if random.below(4) == 0 { 4 } else { 2 };
        1 + random.below(ports) as u16
    };
    let (from, to) = (port(), port());
    let full = |from, to, cell, unsolicited| data(rack, from, to, cell, unsolicited, FULL);
    let cpu_port = rack.switch.cpu_port;
    let packet_out = |egress_port: u16, frame: Vec<u8>| {
        (cpu_port, egress_port.to_be_bytes().into_iter().chain(frame).collect())
    };
    let request = |random: &mut Random| Control {
        unsolicited: random.below(2) as u8,
        ..request(random.below(7) as u8, random.below(5) as u8)
    };
    match random.below(32) {
        0..=9 => {
            let what = request(random);
            (from, control(rack, from, mac(rack, to), what))
        }
        10..=19 => (from, full(from, to, random.below(5) as u8, random.below(3) == 0)),
        20 => (from, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[3; 1200])),
        21 => (from, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
        22 => (from, plain(mac(rack, from), MacAddr([2, 9, 9, 9, 9, 9]), EtherType::IPV6, &[])),
        23 => (from, full(to, from, 0, false)),
        24 => {
            // A shim's kind would make it a short frame that claims slots.
            let kind = [1, 2, 3, 5, 9, 15][random.below(6) as usize];
            let what = Control { version: random.below(3) as u8, kind, ..request(random) };
            let dst =
                [mac(rack, to), MacAddr::BROADCAST, MacAddr([2, 9, 9, 9, 9, 9])][random.below(3) as usize];
            (from, control(rack, from, dst, what))
        }
        25 => {
            let mut frame = rsv(rack, from, to, 1, 0);
            frame.truncate(random.below(40) as usize);
            (from, frame)
        }
        26 if random.below(2) == 0 => {
            // To a group, or with a shim.
            let mut frame = full(from, to, 0, false);
            match random.below(2) {
                0 => frame[..6].copy_from_slice(&MacAddr::BROADCAST.0),
                _ => {
                    frame[16..18].copy_from_slice(&0x88b5u16.to_be_bytes());
                    frame[18] = 0x14;
                }
            }
            (from, frame)
        }
        26 => {
            let mut frame = management(rack, Kind::MgmtWrite as u8, 0, 1, 1);
            frame[6..12].copy_from_slice(&mac(rack, from).0);
            (from, frame)
        }
        27 => {
            let egress_port = [0, 1, 3, 600][random.below(4) as usize];
            let what = request(random);
            match random.below(3) {
                0 => packet_out(egress_port, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
                1 => packet_out(egress_port, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[])),
                _ => packet_out(egress_port, control(rack, from, mac(rack, to), what)),
            }
        }
        28..=29 => {
            let forget = p4rack_wire::pl2::Management {
                kind: Kind::MgmtForget as u8,
                index: from,
                destination: if random.below(9) == 0 { 999 } else { to },
                cell: built[0].rack.protocol::<Pl2>().map_or(0, |pl2| {
                    let [from, to] = [from, to].map(|port| position_of(rack, port) as u8);
                    u32::from_be_bytes([0, from, to, random.below(u64::from(pl2.cells_a_pair())) as u8])
                }),
                ..MANAGEMENT
            };
            packet_out(0, addressed(management_frame(rack, forget), rack, to, random))
        }
        _ => {
            let kind =
                [Kind::MgmtRead, Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset][random.below(4) as usize];
            let targets = if random.below(9) == 0 { 3 } else { 2 };
            let target = [Side::In as u8, Side::Out as u8, 2][random.below(targets) as usize];
            let index = if random.below(9) == 0 { random.below(1024) as u16 } else { from };
            let value = random.below(18) as u32;
            packet_out(0, addressed(management(rack, kind as u8, target, index, value), rack, to, random))
        }
    }
}

/// The frame, as often to a host's address as not: what the controller means is in the frame alone.
fn addressed(mut frame: Vec<u8>, rack: &Rack, to: u16, random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        frame[..6].copy_from_slice(&mac(rack, to).0);
    }
    frame
}
