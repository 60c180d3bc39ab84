//! A host that frees its lane with a byte of data before that is due, and asks again, has one grant at a time all the same. On a chip
//! and on BMv2 passes of a frame take time, in which others come.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::{Net, edm_of, message, notification};
use common::*;
use p4rack_codegen::scheme::edm::Mode;
use p4rack_codegen::{Arch, Rack};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, Control, Kind, Target};

const RATE_BPS: u64 = 10_000_000_000;
const CHUNK: u32 = 1024;
const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
/// What the shortest frame takes of a link.
const FRAME_NS: u64 = 67;
/// From a frame's pass to its next one.
const PASS_NS: u64 = 400;
/// How often the host asks again: not so often that a clock is ahead beyond its horizon, and then in the past.
const TIMES: usize = 60;

/// Hosts 1 to 4; 3 and 4 have memory.
fn built(mode: Mode, window: u32, arch: Arch) -> Built {
    let hosts: String = (1..=4)
        .map(|n| {
            format!("[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n")
        })
        .collect();
    let text = format!(
        "name = \"test\"\n[switch]\nport_rate = \"10 Gb/s\"\n[edm]\nmode = \"timed\"\nmemory = [\"h3\", \"h4\"]\n\
         chunk_bytes = {CHUNK}\nwindow = {window}\ncontrol_percent = 100\n{hosts}"
    );
    let rack = Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Built::on(rack, mode.scheme(), arch)
}

/// Programs with which links have shares, and the same ones with a change that lets data or demands come before their time.
fn all() -> Vec<(Mode, Built, Built)> {
    let on = |mode, arch, also: &[(&str, &str)], change: (&str, &str)| {
        let built = built(mode, 4, arch);
        (mode, built.changed(also), built.changed(&[also, &[change]].concat()))
    };
    let short = ("(meta.edm.behind == 0 || meta.edm.size != EDM_CHUNK)", "meta.edm.behind == 0");
    let pending = ("meta.edm.to_wait = EDM_HORIZON - 1;", "meta.edm.to_wait = 0;");
    // Second passes of data, which the embedded switch makes immediately, are on their way all the time.
    let on_its_way = ("if (meta.edm.early == 1) {\ncome_again();\n} else if", "if");
    let notified =
        ("meta.edm.op == EDM_OP_NOTIFY && meta.edm.amount[0:0] == 0", "meta.edm.op == EDM_OP_NONE");
    let v1model = Mode::ALL.map(|mode| on(mode, Arch::V1model, &[], short));
    let chips = CHIPS
        .into_iter()
        .flat_map(|arch| [Mode::TimedDst, Mode::Timed].map(|mode| on(mode, arch, &[on_its_way], notified)));
    v1model.into_iter().chain([on(Mode::Calendar, Arch::V1model, &[], pending)]).chain(chips).collect()
}

fn passing(built: &Built) -> Net {
    Net { rig: Rig::with_config(built, |config| config.pass_delay = Nanos(PASS_NS)) }
}

/// Host 1 asks to write to host 3 and sends a byte, in turns, as fast as its link carries that.
fn ask_again(net: &mut Net) {
    for _ in 0..TIMES {
        for (bytes, pcp) in [
            (notification(0, 8 * 4 * CHUNK), edm::PCP_CONTROL),
            (message(Kind::Wreq, 0, 100, 0, 1), edm::PCP_DATA),
        ] {
            let frame = net.frame(1, 3, pcp, &bytes);
            net.rig.send(1, &frame);
            net.wait(FRAME_NS);
        }
    }
    settle(net);
}

/// Lets frames on their way make their passes; what left.
fn settle(net: &mut Net) -> Vec<(u16, Vec<u8>)> {
    let passes = (0..20).flat_map(|_| {
        net.wait(PASS_NS / 2);
        net.rig.drain()
    });
    passes.collect()
}

/// How long another host's data has to wait then, if the host is granted anything.
fn wait_beside(net: &mut Net) -> Option<u64> {
    ask_again(net);
    let frame = net.frame(2, 3, edm::PCP_CONTROL, &notification(0, CHUNK));
    let mut sent = net.rig.send(2, &frame);
    sent.extend(settle(net));
    let grant = sent.iter().find(|(port, frame)| *port == 2 && Kind::of(frame[18]) == Ok(Kind::Grant))?;
    Some(Control::parse(&grant.1[18..]).unwrap().wait.into())
}

#[test]
fn a_host_that_asks_again_before_its_data_is_due_has_one_grant() {
    for (mode, right, wrong) in all() {
        let on = format!("{mode:?} on {}", right.rack.switch.arch);
        let window_ns = edm_of(&right).grant_units(&right.rack, (4 * CHUNK).into(), RATE_BPS);
        let beside = |built: &Built| {
            let mut net = passing(built);
            let wait = wait_beside(&mut net);
            let is_full = mode == Mode::Matched && net.rig.drops("edm_no_time") > 0;
            (wait, is_full)
        };
        let [with, without] = [beside(&right), beside(&wrong)];
        println!("{on}: {with:?}, {without:?} with early data; a window takes {window_ns} ns");
        if mode == Mode::Matched {
            // Demands wait in a ring, which has a place for each lane.
            assert!(!with.1 && without.1, "{on}");
            continue;
        }
        assert!(with.0.is_some_and(|wait| wait <= window_ns), "{on}: {with:?}");
        assert!(without.0.is_some_and(|wait| wait > 2 * window_ns), "{on}: {without:?}");
    }
}

/// A lane that is free before its message's data is due, here because of the controller, is free for a notification from then on.
#[test]
fn a_lane_that_is_freed_is_free_when_its_data_is_due() {
    for arch in CHIPS {
        for (mode, window) in [(Mode::TimedDst, 4), (Mode::Timed, 4), (Mode::Calendar, 1)] {
            let built = built(mode, window, arch);
            let mut net = Net::new(&built);
            let on = format!("{mode:?} on {arch}");
            (0..3).for_each(|id| assert!(net.notify(2, 3, id, CHUNK).is_some(), "{on}"));
            let wait = u64::from(net.notify(1, 3, 0, CHUNK).unwrap().wait);
            let cell = edm_of(&built).cell(&built.rack, 0, 2, false, 0).unwrap();
            let free = |net: &mut Net| net.manage(Kind::MgmtReset, Target::Rights as u8, cell, 0);
            assert_eq!(free(&mut net), Some(CHUNK), "{on}");
            assert_eq!(net.notify(1, 3, 0, CHUNK), None, "{on}: {wait} ns before");
            assert_eq!(net.rig.drops("edm_lane_taken"), 1, "{on}");
            free(&mut net);
            net.wait(wait);
            assert!(net.notify(1, 3, 0, CHUNK).is_some(), "{on}: in time");
        }
    }
}
