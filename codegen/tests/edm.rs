//! Behaviour of EDM's generated programs on the embedded switch.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::*;
use common::{Built, mac, plain, position_of};
use p4rack_codegen::scheme::edm::{
    DATA_COUNTER, DEMANDS_COUNTER, DESTINATION_FREE, Edm, Mode, RIGHTS, TOO_LONG_COUNTER,
};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::EtherType;
use p4rack_wire::edm::{self, Kind, Target};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

fn every() -> Vec<Built> {
    [Scheme::EDM_TIMED_DST, Scheme::EDM_TIMED].into_iter().flat_map(|scheme| built(scheme, "")).collect()
}

/// Without shares, for which it matters when chunks come.
fn unshared() -> Vec<Built> {
    let of = |scheme| built(scheme, "shares = false");
    [Scheme::EDM_TIMED_DST, Scheme::EDM_TIMED].into_iter().flat_map(of).collect()
}

/// Those of all modes, without shares.
fn all() -> Vec<Built> {
    Mode::ALL.into_iter().flat_map(|mode| built(mode.scheme(), "shares = false")).collect()
}

/// Whether short chunks leave a rest of their grant: where a window's first chunk is granted the whole window.
fn leaves_rest(built: &Built) -> bool {
    [Scheme::EDM_CALENDAR, Scheme::EDM_MATCHED].contains(&built.scheme)
}

#[test]
fn writes_are_granted_one_after_the_other_at_their_destination() {
    for built in built(Scheme::EDM_TIMED_DST, "") {
        let mut net = Net::new(&built);
        let first = net.notify(1, 3, 4, 64).unwrap();
        assert_eq!((first.bytes, first.wait), (64, 0));
        // Another source's transfer begins when the first one's is over; one to another destination begins immediately.
        let second = net.notify(2, 3, 0, 64).unwrap();
        assert_eq!(u64::from(second.wait), net.time(64));
        assert_eq!(net.notify(1, 4, 0, 64).unwrap().wait, 0);
        net.wait(1_000);
        let third = net.notify(4, 3, 0, 200).unwrap();
        assert_eq!(u64::from(third.wait), 2 * net.time(64) - 1_000);
        for from in [1, 2] {
            assert_eq!(net.write(from, 3, if from == 1 { 4 } else { 0 }, 64, 0, 64), Fate::Scheduled(None));
        }
        assert_eq!(net.rig.counter(DATA_COUNTER, 3).packets, 2);
        assert_eq!([1, 2, 4].map(|port| net.rig.counter(DEMANDS_COUNTER, port).packets), [2, 1, 1]);
        assert_eq!(net.rig.all_drops(), []);
        // Long after, the port is free.
        net.wait(10_000_000);
        assert_eq!(net.notify(2, 3, 1, 64).unwrap().wait, 0);
    }
}

#[test]
fn a_sources_own_clock_comes_first_in_timed() {
    for built in built(Scheme::EDM_TIMED, "") {
        let mut net = Net::new(&built);
        assert_eq!(net.notify(1, 3, 0, 64).unwrap().wait, 0);
        // The source is busy; the destination's time begins after that.
        assert_eq!(u64::from(net.notify(1, 4, 0, 64).unwrap().wait), net.time(64));
        assert_eq!(u64::from(net.notify(2, 4, 0, 64).unwrap().wait), 2 * net.time(64));
        // Answers leave the memory node, whose time as a source is its own.
        assert_eq!(net.request(1, 3, 0, 64), Some(0));
        assert_eq!(u64::from(net.request(2, 3, 0, 64).unwrap()), net.time(64));
    }
}

#[test]
fn requests_are_the_demand_and_the_grant_of_their_answers() {
    for built in unshared() {
        let mut net = Net::new(&built);
        assert_eq!(net.request(1, 3, 8, 1_000), Some(0));
        // Two answers to one host: the second has to wait at whichever clock both share.
        let wait = net.request(1, 4, 0, 8).unwrap();
        assert_eq!(u64::from(wait), net.time(u64::from(WINDOW)));
        // 1000 bytes are chunks of 256, 256, 256 and 232; the request granted two, each of these grants one more.
        let answer = |net: &mut Net, offset, bytes| net.chunk(Kind::Rres, (3, 1), 8, 1_000, offset, bytes);
        let granted = |fate| match fate {
            Fate::Scheduled(Some(Grant { port: 3, peer: 1, answer: true, id: 8, offset, bytes, .. })) => {
                (offset, bytes)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(granted(answer(&mut net, 0, 256)), (512, 256));
        assert_eq!(granted(answer(&mut net, 256, 256)), (768, 232));
        assert_eq!(answer(&mut net, 512, 256), Fate::Scheduled(None));
        assert_eq!(answer(&mut net, 768, 232), Fate::Scheduled(None));
        assert_eq!(answer(&mut net, 768, 232), Fate::Demoted("uncovered"), "it came before");
        // An atomic operation's answer is a word.
        let modify = net.frame(1, 3, edm::PCP_CONTROL, &message(Kind::Rmwreq, 9, 8, 0, 16));
        assert_eq!(net.send(1, &modify).arrived.len(), 1);
        assert_eq!(net.chunk(Kind::Rres, (3, 1), 9, 8, 0, 8), Fate::Scheduled(None));
        assert_eq!(net.rig.all_drops(), []);
    }
}

#[test]
fn a_write_goes_on_chunk_by_chunk() {
    for built in unshared() {
        let mut net = Net::new(&built);
        let total = 5 * CHUNK;
        assert_eq!(net.notify(1, 3, 0, total).unwrap().bytes, WINDOW);
        let mut offset = 0;
        while offset < total {
            let expected = (offset + WINDOW < total).then_some((offset + WINDOW, CHUNK));
            let Fate::Scheduled(grant) = net.write(1, 3, 0, total, offset, CHUNK as u16) else { panic!() };
            assert_eq!(grant.map(|grant| (grant.offset, grant.bytes)), expected);
            offset += CHUNK;
        }
        // The lane is free again.
        assert!(net.notify(1, 3, 0, 1).is_some());
        assert_eq!(net.rig.counter(DATA_COUNTER, 3).packets, 5);
    }
}

#[test]
fn a_pair_has_x_demands_and_no_more() {
    for built in all() {
        let mut net = Net::new(&built);
        for id in 0..DEMANDS {
            assert!(net.notify(1, 3, id, 64).is_some());
            assert!(net.request(1, 3, id, 64).is_some(), "answers have lanes of their own");
        }
        for id in 0..64 {
            assert_eq!((net.notify(1, 3, id, 64), net.request(1, 3, id, 64)), (None, None));
        }
        let lanes = u64::from(edm_of(&built).lanes());
        let beyond = 2 * 64 * (lanes - u64::from(DEMANDS)) / lanes;
        assert_eq!(net.rig.all_drops(), [("edm_bad_lane", beyond), ("edm_lane_taken", 128 - beyond)]);
        // Other pairs are not affected.
        assert!(net.notify(2, 3, 0, 64).is_some() && net.notify(1, 4, 0, 64).is_some());
        // A message's last byte frees its lane.
        assert_eq!(net.write(1, 3, 1, 64, 0, 64), Fate::Scheduled(None));
        assert!(net.notify(1, 3, 5, 64).is_some());
        assert_eq!(net.notify(1, 3, 9, 64), None);
    }
}

#[test]
fn a_message_that_stops_gives_up_its_lane() {
    for built in all() {
        let mut net = Net::new(&built);
        let expiry = edm_of(&built).expiry(&built.rack).0;
        assert!(net.notify(1, 3, 0, 1_000).is_some());
        net.wait(expiry - 10);
        assert!(matches!(net.write(1, 3, 0, 1_000, 0, 256), Fate::Scheduled(_)));
        net.wait(expiry - 10);
        assert_eq!(net.notify(1, 3, 4, 64), None, "it went on since");
        net.wait(expiry - 10);
        assert_eq!(net.notify(1, 3, 4, 64), None, "asking keeps it");
        net.wait(expiry + 10);
        assert_eq!(net.notify(1, 3, 4, 64).unwrap().bytes, 64);
        assert_eq!(net.write(1, 3, 0, 1_000, 256, 256), Fate::Demoted("uncovered"), "what it had is void");
        assert_eq!(net.write(1, 3, 4, 64, 0, 64), Fate::Scheduled(None));
    }
}

#[test]
fn data_without_a_grant_is_best_effort() {
    for built in all() {
        let mut net = Net::new(&built);
        assert_eq!(net.write(1, 3, 0, 64, 0, 64), Fate::Demoted("uncovered"));
        assert_eq!(net.chunk(Kind::Rres, (3, 1), 0, 64, 0, 64), Fate::Demoted("uncovered"));
        // To or from a host without memory.
        assert_eq!(net.write(1, 2, 0, 64, 0, 64), Fate::Demoted("uncovered"));
        assert_eq!(net.chunk(Kind::Rres, (2, 1), 0, 64, 0, 64), Fate::Demoted("uncovered"));
        net.notify(1, 3, 0, 100).unwrap();
        assert_eq!(net.write(1, 2, 0, 100, 0, 100), Fate::Demoted("uncovered"), "granted for h3");
        assert_eq!(net.write(1, 4, 0, 100, 0, 100), Fate::Demoted("uncovered"));
        assert_eq!(net.write(2, 3, 0, 100, 0, 100), Fate::Demoted("uncovered"), "granted to h1");
        assert_eq!(net.write(1, 3, 0, 101, 0, 101), Fate::Demoted("uncovered"));
        if leaves_rest(&built) {
            assert_eq!(net.write(1, 3, 0, 100, 0, 40), Fate::Scheduled(None));
        }
        assert_eq!(net.write(1, 3, 0, 100, 40, 60), Fate::Scheduled(None));
        assert_eq!(net.write(1, 3, 0, 100, 40, 1), Fate::Demoted("uncovered"));
    }
}

/// Short chunks that claim to have more behind them gain nothing.
#[test]
fn what_is_granted_behind_a_chunk_is_no_more_than_the_chunk() {
    for built in all() {
        let mut net = Net::new(&built);
        net.notify(1, 3, 0, 300).unwrap();
        // A short one is the last one.
        let chunks = if leaves_rest(&built) { 300 } else { 1 };
        for _ in 0..chunks {
            assert_eq!(net.write(1, 3, 0, 100_000, 0, 1), Fate::Scheduled(None));
        }
        assert_eq!(net.write(1, 3, 0, 100_000, 0, 1), Fate::Demoted("uncovered"));
        // A full chunk needs a right to all of it, whatever it leaves.
        net.notify(1, 3, 1, 1).unwrap();
        assert_eq!(net.write(1, 3, 1, WINDOW + 255, 0, 256), Fate::Demoted("uncovered"));
        // A NULL response ends a message, and is not data.
        net.request(1, 3, 0, 500).unwrap();
        assert_eq!(net.chunk(Kind::Rres, (3, 1), 0, 0, 0, 0), Fate::Scheduled(None));
        assert_eq!(net.chunk(Kind::Rres, (3, 1), 0, 0, 0, 0), Fate::Demoted("uncovered"));
    }
}

/// Only a NULL response may be a message of 0 bytes, and it carries no data.
#[test]
fn frames_without_bytes_give_no_rights_and_free_no_lanes() {
    for built in all() {
        let mut net = Net::new(&built);
        let cell = |answer| edm_of(&built).cell(&built.rack, 0, 2, answer, 0).unwrap() as u16;
        net.notify(1, 3, 0, 500).unwrap();
        net.request(1, 3, 0, 500).unwrap();
        // From where on the rest of a message of nothing seems to be positive.
        let wraps = 1 << 31;
        for (kind, way) in [(Kind::Wreq, (1, 3)), (Kind::Rres, (3, 1))] {
            let is_null = |total, bytes| kind == Kind::Rres && (total, bytes) == (0, 0);
            for (total, offset, bytes) in
                [(0, 0, 0), (0, 0, 100), (0, wraps, 256), (0, wraps, 0), (500, 0, 0)]
            {
                if is_null(total, bytes) {
                    continue;
                }
                let before = net.rig.drops("edm_bad_demand");
                let frame = net.frame(way.0, way.1, edm::PCP_DATA, &message(kind, 0, total, offset, bytes));
                assert_eq!(net.send(way.0, &frame), Seen::default(), "{kind:?} {total} {offset} {bytes}");
                assert_eq!(net.rig.drops("edm_bad_demand"), before + 1);
            }
            assert_eq!(net.rig.register(RIGHTS, cell(kind == Kind::Rres)), 500, "{kind:?}");
        }
        assert_eq!(net.notify(1, 3, 0, 500), None, "the lane is taken");
        if !built.rack.switch.arch.is_tofino() {
            // A NULL response behind which bytes follow.
            let mut long = message(Kind::Rres, 0, 0, wraps, 0);
            long.resize(long.len() + 400, 0);
            let long = net.frame(3, 1, edm::PCP_DATA, &long);
            assert_eq!(net.fate((3, 1), &long), Fate::Demoted("too_long"));
            assert_eq!(net.rig.register(RIGHTS, cell(true)), 500, "it used nothing up");
        }
        assert_eq!(
            net.chunk(Kind::Rres, (3, 1), 0, 0, wraps, 0),
            Fate::Scheduled(None),
            "nothing is behind it"
        );
        assert_eq!(net.rig.register(RIGHTS, cell(true)), 0);
    }
}

#[test]
fn frames_longer_than_their_header_says_are_best_effort() {
    for built in all() {
        let mut net = Net::new(&built);
        net.notify(1, 3, 0, 64).unwrap();
        let mut bytes = message(Kind::Wreq, 0, 64, 0, 64);
        if built.rack.switch.arch.is_tofino() {
            // Their length is known in egress alone, which takes a frame of this switch to have an FCS.
            bytes.extend([0; 5]);
            let frame = net.frame(1, 3, edm::PCP_DATA, &bytes);
            assert_eq!(net.send(1, &frame), Seen::default());
            assert_eq!(net.rig.counter(TOO_LONG_COUNTER, 0).packets, 1);
            assert_eq!(net.write(1, 3, 0, 64, 0, 64), Fate::Demoted("uncovered"), "it used its right up");
            net.notify(1, 3, 0, 64).unwrap();
        } else {
            bytes.push(0);
            let frame = net.frame(1, 3, edm::PCP_DATA, &bytes);
            assert_eq!(net.fate((1, 3), &frame), Fate::Demoted("too_long"));
        }
        assert_eq!(net.write(1, 3, 0, 64, 0, 64), Fate::Scheduled(None), "it used nothing up");
        // Padding is not too long.
        net.notify(1, 3, 0, 1).unwrap();
        assert_eq!(net.write(1, 3, 0, 1, 0, 1), Fate::Scheduled(None));
    }
}

#[test]
fn what_hosts_may_not_send_is_dropped_by_reason() {
    for built in all() {
        let mut net = Net::new(&built);
        let limit = edm_of(&built).message_bytes_max;
        let control = |kind: u8, version: u8| {
            let mut bytes = notification(0, 64);
            bytes[0] = version << 4 | kind;
            bytes
        };
        let management = [vec![0x18; 1], vec![0; 20]].concat();
        for (bytes, to, reason) in [
            (notification(0, 0), 3, "edm_bad_demand"),
            (notification(0, limit + 1), 3, "edm_bad_demand"),
            (notification(0, u32::MAX), 3, "edm_bad_demand"),
            (notification(0, 1 << 31), 3, "edm_bad_demand"),
            (message(Kind::Rreq, 0, 0, 0, 0), 3, "edm_bad_demand"),
            (message(Kind::Rreq, 0, limit + 1, 0, 0), 3, "edm_bad_demand"),
            (message(Kind::Rmwreq, 0, 9, 0, 8), 3, "edm_bad_demand"),
            (notification(3, 64), 3, "edm_bad_lane"),
            (notification(0, 64), 2, "edm_no_memory"),
            (message(Kind::Rreq, 0, 64, 0, 0), 2, "edm_no_memory"),
            (control(Kind::Grant as u8, 1), 3, "edm_bad_kind"),
            (control(0, 1), 3, "edm_bad_kind"),
            (control(15, 1), 3, "edm_bad_kind"),
            (control(Kind::Notify as u8, 2), 3, "edm_bad_version"),
            (management, 3, "edm_management_from_host"),
        ] {
            let before = net.rig.drops(reason);
            let frame = net.frame(1, to, edm::PCP_CONTROL, &bytes);
            assert_eq!(net.send(1, &frame), Seen::default(), "{reason}");
            assert_eq!(net.rig.drops(reason), before + 1, "{reason}: {:?}", net.rig.all_drops());
        }
        assert!(net.notify(1, 3, 0, limit).is_some());
        // In another's name, to a group, cut short.
        let frame = net.frame(1, 3, edm::PCP_CONTROL, &notification(0, 64));
        assert_eq!(net.rig.send(2, &frame), []);
        assert_eq!(net.rig.drops("spoofed"), 1);
        let mut group = frame.clone();
        group[..6].fill(0xff);
        assert_eq!(net.rig.send(1, &group), []);
        assert_eq!(net.rig.drops("unknown_destination"), 1);
        assert_eq!(net.rig.send(1, &frame[..25]), []);
        assert_eq!(net.rig.drops("malformed"), 1);
    }
}

#[test]
fn notifications_and_requests_are_metered() {
    for arch in Arch::ALL {
        let rack = rack_of("timed-dst", "control_percent = 10", "");
        let built = Built::on(rack, Scheme::EDM_TIMED_DST, arch);
        let mut net = Net::new(&built);
        let frame = net.frame(1, 3, edm::PCP_CONTROL, &message(Kind::Rreq, 0, 8, 0, 0));
        for _ in 0..1_000 {
            net.rig.send(1, &frame);
        }
        let (dropped, taken) = (net.rig.drops("edm_control_meter"), net.rig.drops("edm_lane_taken"));
        assert_eq!(dropped + taken + 1, 1_000);
        assert!((700..800).contains(&dropped), "{dropped}: a burst of 256");
        // Another port's are not.
        assert!(net.notify(2, 3, 0, 64).is_some());
    }
}

#[test]
fn the_controller_reads_writes_and_resets_clocks_and_rights() {
    for built in every() {
        let mut net = Net::new(&built);
        let scheme = built.scheme;
        net.notify(1, 3, 0, 64).unwrap();
        let time = net.time(64) as u32;
        let clock = Target::Destination as u8;
        assert_eq!(net.manage(Kind::MgmtRead, clock, 3, 0), Some(time));
        assert_eq!(net.manage(Kind::MgmtWrite, clock, 3, 5_000), Some(time));
        assert_eq!(net.manage(Kind::MgmtRead, clock, 3, 0), Some(5_000));
        assert_eq!(net.manage(Kind::MgmtReset, clock, 3, 77), Some(5_000));
        assert_eq!(net.manage(Kind::MgmtRead, clock, 3, 0), Some(0));
        let rack = &built.rack;
        let at = |asks, asked| (position_of(rack, asks), position_of(rack, asked));
        let (asks, asked) = at(1, 3);
        let cell = edm_of(&built).cell(rack, asks, asked, false, 0).unwrap();
        let rights = Target::Rights as u8;
        assert_eq!(net.manage(Kind::MgmtRead, rights, cell, 0), Some(64));
        assert_eq!(net.manage(Kind::MgmtReset, rights, cell, 0), Some(64));
        assert_eq!(net.write(1, 3, 0, 64, 0, 64), Fate::Demoted("uncovered"), "taken back");
        assert!(net.notify(1, 3, 0, 64).is_some(), "the lane is free");
        if scheme == Scheme::EDM_TIMED {
            let source = Target::Source as u8;
            assert_eq!(net.manage(Kind::MgmtWrite, source, 1, 900), Some(2 * time));
            assert_eq!(net.manage(Kind::MgmtRead, source, 1, 0), Some(900));
        } else {
            assert_eq!(net.manage(Kind::MgmtRead, Target::Source as u8, 1, 0), None);
            assert_eq!(net.rig.drops("edm_bad_target"), 1);
        }
        let before = net.rig.drops("edm_bad_index");
        assert_eq!(net.manage(Kind::MgmtRead, clock, 512, 0), None);
        assert_eq!(net.manage(Kind::MgmtRead, rights, 1 << 20, 0), None);
        assert_eq!(net.rig.drops("edm_bad_index"), before + 2);
    }
}

#[test]
fn pl2_and_edm_share_a_pipeline() {
    for mode in ["timed-dst", "timed", "matched"] {
        let pl2 = "[pl2]\nmode = \"clock\"\n";
        let rack = rack_of(mode, "", pl2);
        let scheme = rack.scheme();
        assert_eq!(scheme.name(), format!("edm-{mode}+pl2-clock"));
        let built = Built::new(rack, scheme);
        let mut net = Net::new(&built);
        assert_eq!(net.rig.reserve(1, 3, 4), Some((0, 0)));
        assert!(net.rig.data(1, 3, false));
        let grant = net.notify(1, 3, 0, 64).unwrap();
        assert_eq!(grant.wait, 0, "each has clocks of its own");
        assert_eq!(net.write(1, 3, 0, 64, 0, 64), Fate::Scheduled(None));
        assert_eq!(net.request(2, 4, 0, 64), Some(0));
        assert_eq!(
            net.rig.manage(p4rack_wire::pl2::Kind::MgmtRead, p4rack_wire::pl2::Side::Out, 4, 0),
            Some(0)
        );
        assert!(net.manage(Kind::MgmtRead, Target::Destination as u8, 2, 0).unwrap() > 0);
        let frame = plain(mac(&built.rack, 1), mac(&built.rack, 2), EtherType::IPV4, &[0x45; 80]);
        assert_eq!(net.rig.send(1, &frame), [(2, frame.clone())]);
        assert_eq!(net.rig.all_drops(), []);
    }
}

#[test]
fn what_the_table_says_is_checked() {
    let hosts = "[[host]]\nname = \"a\"\nport = 1\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n\
                 [[host]]\nname = \"b\"\nport = 2\nmac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\n";
    for (edm, wanted) in [
        ("memory = [\"b\"]", "r.toml:4: edm.mode: is missing; add mode = \"timed-dst\""),
        ("mode = \"timed\"", "r.toml:4: edm.memory: is missing; add memory = [\"h3\"]"),
        (
            "mode = \"calendar\"\nmemory = [\"b\"]\nwindow = 3",
            "r.toml:7: edm.window: 3 chunks of 1024 bytes are 3072",
        ),
        ("mode = \"matched\"\nmemory = [\"b\"]\nclasses = 9", "r.toml:7: edm.classes: 9 is out of range"),
        ("mode = \"x\"\nmemory = [\"b\"]", "r.toml:5: edm.mode: `x` is no mode; write \"timed-dst\","),
        ("mode = \"timed\"\nmemory = []", "r.toml:6: edm.memory: is empty; name at least one host"),
        ("mode = \"timed\"\nmemory = [\"c\"]", "r.toml:6: edm.memory[0]: `c` is no host; there are a, b"),
        ("mode = \"timed\"\nmemory = [\"b\", \"b\"]", "r.toml:6: edm.memory[1]: `b` is named twice"),
        (
            "mode = \"timed\"\nmemory = [\"b\"]\nchunk_bytes = 1473",
            "r.toml:7: edm.chunk_bytes: 1473 is out of range",
        ),
        (
            "mode = \"timed\"\nmemory = [\"b\"]\nwindow = 64\nchunk_bytes = 1024",
            "r.toml:7: edm.window: 64 chunks of",
        ),
        (
            "mode = \"timed\"\nmemory = [\"b\"]\nether_type = 0x0800",
            "r.toml:7: edm.ether_type: 0x0800 belongs to",
        ),
        (
            "mode = \"timed\"\nmemory = [\"b\"]\nexpiry_us = 10",
            "r.toml:7: edm.expiry_us: 10.000 µs is not between",
        ),
        ("mode = \"timed\"\nmemory = [\"b\"]\ndemands = 65", "r.toml:7: edm.demands: 65 is out of range"),
        // The answer that opens a session has 16 bytes.
        (
            "mode = \"timed\"\nmemory = [\"b\"]\nmessage_bytes_max = 15",
            "r.toml:7: edm.message_bytes_max: 15 is out of range",
        ),
        ("mode = \"timed\"\nmemory = [\"b\"]\nlanes = 4", "r.toml:7: edm.lanes: is unknown"),
    ] {
        let text = format!("name = \"r\"\n[switch]\nport_rate = \"1 Gb/s\"\n[edm]\n{edm}\n{hosts}");
        let error = Rack::parse(&text, "r.toml").unwrap_err().to_string();
        assert!(error.starts_with(wanted), "wanted: {wanted}\n   got: {error}");
    }
    // So slow that clocks can't tell what is granted from the past; so fast that a time unit is too coarse.
    for (rate, unit, wanted) in [
        ("10 kb/s", 1, "edm.window: so much may be granted ahead"),
        ("1 Gb/s", 1_000, "switch.port_rate: a frame of 60 bytes at 1 Gb/s takes less than two of"),
    ] {
        let text = format!(
            "name = \"r\"\n[switch]\nport_rate = \"{rate}\"\ntime_unit_ns = {unit}\n[edm]\nmode = \"timed\"\nmemory = [\"b\"]\n{hosts}"
        );
        let error = Rack::parse(&text, "r.toml").unwrap_err().to_string();
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
    }
    let edm = Edm::new(Mode::Timed, vec!["b".to_owned()]);
    assert_eq!((edm.chunk_bytes, edm.window, edm.demands, edm.lanes()), (1_024, 4, 3, 4));
    assert_eq!((edm.wire_bytes(64), edm.wire_bytes(1), edm.wire_bytes(1_025)), (134, 84, 1_094 + 84));
}

/// Frames of random hosts: honest, or anything at all.
#[derive(Clone, Debug)]
enum Act {
    Notify {
        way: (u16, u16),
        id: u16,
        bytes: u32,
    },
    Request {
        way: (u16, u16),
        id: u16,
        bytes: u32,
    },
    /// `surplus` bytes follow that no header speaks of.
    Data {
        answer: bool,
        way: (u16, u16),
        id: u16,
        total: u32,
        offset: u32,
        bytes: u16,
        surplus: usize,
    },
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let way = || (1..=4u16, 1..=4u16).prop_filter("two hosts", |(from, to)| from != to);
    let bytes = || prop_oneof![1..=64u32, 200..=600u32, Just(256), Just(2_000)];
    let total = prop_oneof![4 => bytes(), 1 => Just(0)];
    let offset = prop_oneof![4 => Just(0), 4 => Just(256), 4 => 0..2_000u32, 1 => Just(1 << 31)];
    let data = (any::<bool>(), way(), 0..8u16, total, offset);
    let length = prop_oneof![4 => Just(256u16), 4 => 0..600u16, 1 => Just(0)];
    let surplus = prop_oneof![4 => Just(0), 1 => 0..600usize];
    prop_oneof![
        (way(), 0..8u16, bytes()).prop_map(|(way, id, bytes)| Act::Notify { way, id, bytes }),
        (way(), 0..8u16, bytes()).prop_map(|(way, id, bytes)| Act::Request { way, id, bytes }),
        (data, length, surplus).prop_map(|((answer, way, id, total, offset), bytes, surplus)| {
            Act::Data { answer, way, id, total, offset, bytes, surplus }
        }),
        prop_oneof![0..100_000u64, Just(3_000_000)].prop_map(Act::Wait),
    ]
}

static EVERY: LazyLock<Vec<Built>> = LazyLock::new(every);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With any frames of hosts, grants towards a destination never overlap, and begin as soon as they can (in `timed`,
    /// after the grants of the source); no pair has more than X demands, and no more data passes in its class than was
    /// granted.
    #[test]
    fn grants_never_overlap_and_pairs_hold_no_more_than_x(acts in prop::collection::vec(act(), 1..150)) {
        for built in EVERY.iter() {
            check(built, &acts)?;
        }
    }
}

/// Grants and rights as they ought to be.
#[derive(Default)]
struct Ledger {
    /// When ports are free as destinations, and as sources.
    to: BTreeMap<u16, u64>,
    from: BTreeMap<u16, u64>,
    /// Bytes granted and not sent, by requester, responder, whether it is an answer, and lane.
    rights: BTreeMap<(u16, u16, bool, u16), u64>,
}

fn check(built: &Built, acts: &[Act]) -> Result<(), TestCaseError> {
    let (mut net, mut ledger) = (Net::new(built), Ledger::default());
    let lanes = edm_of(built).lanes() as u16;
    for act in acts {
        let now = net.rig.now.0;
        let timed = built.scheme == Scheme::EDM_TIMED;
        let mut grants = |net: &Net, (from, to): (u16, u16), wait: u32, bytes: u32| {
            let (start, time) = (now + u64::from(wait), net.time(bytes.into()));
            let from_free = ledger.from.entry(from).or_default();
            let earliest = if timed { now.max(*from_free) } else { now };
            *from_free = earliest + time;
            let to_free = ledger.to.entry(to).or_default();
            prop_assert!(start >= *to_free, "{from} to {to}: {start} before {to_free}");
            prop_assert_eq!(start, earliest.max(*to_free), "{} to {}", from, to);
            *to_free = start + time;
            Ok(())
        };
        match *act {
            Act::Wait(time) => net.wait(time),
            Act::Notify { way, id, bytes } => {
                if let Some(grant) = net.notify(way.0, way.1, id, bytes) {
                    grants(&net, way, grant.wait, grant.bytes)?;
                    prop_assert!(grant.bytes <= bytes.min(WINDOW));
                    ledger.rights.insert((way.0, way.1, false, id % lanes), grant.bytes.into());
                }
            }
            Act::Request { way, id, bytes } => {
                if let Some(wait) = net.request(way.0, way.1, id, bytes) {
                    let rack = &built.rack;
                    let [asks, asked] = [way.0, way.1].map(|port| position_of(rack, port));
                    let cell = edm_of(built).cell(rack, asks, asked, true, id).unwrap();
                    let granted = net.rig.register(RIGHTS, cell as u16) as u32;
                    prop_assert!([bytes.min(WINDOW), bytes.min(CHUNK)].contains(&granted), "{granted}");
                    grants(&net, (way.1, way.0), wait, granted)?;
                    ledger.rights.insert((way.0, way.1, true, id % lanes), granted.into());
                }
            }
            Act::Data { answer, way, id, total, offset, bytes, surplus } => {
                let kind = if answer { Kind::Rres } else { Kind::Wreq };
                let mut bytes_sent = message(kind, id, total, offset, bytes);
                let said = 18 + bytes_sent.len();
                // Tofino sees that in egress alone.
                let surplus = if built.rack.switch.arch.is_tofino() { 0 } else { surplus };
                bytes_sent.resize(bytes_sent.len() + surplus, 0);
                let frame = net.frame(way.0, way.1, edm::PCP_DATA, &bytes_sent);
                let is_null = answer && (total, bytes) == (0, 0);
                if (total == 0 || bytes == 0) && !is_null {
                    prop_assert_eq!(net.send(way.0, &frame), Seen::default());
                } else if let Fate::Scheduled(grant) = net.fate(way, &frame) {
                    prop_assert!(frame.len() <= said.max(60), "{} bytes, said {said}", frame.len());
                    let (asks, asked) = if answer { (way.1, way.0) } else { way };
                    let rights = ledger.rights.entry((asks, asked, answer, id % lanes)).or_default();
                    prop_assert!(*rights >= u64::from(bytes), "{bytes} of {rights}");
                    // A chunk that is not full is the last one.
                    let is_last = total == 0 || u32::from(bytes) < CHUNK;
                    *rights = if is_last { 0 } else { *rights - u64::from(bytes) };
                    if let Some(grant) = grant {
                        // Behind what was granted before: where links are shared, that may be less than a window.
                        let rack = &built.rack;
                        let next = match rack.switch.arch.is_tofino() && !edm_of(built).claims(rack) {
                            true => offset + WINDOW,
                            false => offset.wrapping_add(u32::from(bytes)).wrapping_add(*rights as u32),
                        };
                        prop_assert_eq!((grant.port, grant.offset), (way.0, next));
                        *rights += u64::from(grant.bytes);
                        prop_assert!(*rights <= u64::from(WINDOW));
                        grants(&net, way, grant.wait, grant.bytes)?;
                    }
                }
            }
        }
        for asks in 1..=4 {
            for asked in 1..=4 {
                for answer in [false, true] {
                    let held =
                        ledger.rights.range((asks, asked, answer, 0)..=(asks, asked, answer, u16::MAX));
                    let held = held.filter(|(_, rights)| **rights > 0).count();
                    prop_assert!(held <= usize::from(DEMANDS), "{held} from {asks} to {asked}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn the_registers_have_their_names() {
    for built in every() {
        let net = Net::new(&built);
        assert_eq!(net.rig.register(DESTINATION_FREE, 3), 0);
        assert_eq!(net.rig.register(RIGHTS, 3), 0);
    }
}
