//! Behaviour of the generated programs on the embedded switch.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::*;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Scheme};
use p4rack_wire::ethernet::Vlan;
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, Side};
use p4rack_wire::{EtherType, MacAddr, Nanos};

const SAME: [&str; 4] = ["100 Mb/s"; 4];
/// 1550 bytes at 100 Mb/s, 3 % longer.
const SLOT: u64 = 127_720;

/// A scheme's program for each architecture.
fn each(mode: &str, scheme: Scheme) -> [Built; 3] {
    let pl2 = format!("mode = \"{mode}\"\nt = 2\ndrop_threshold = 5");
    Arch::ALL.map(|arch| Built::on(rack(&SAME, &pl2), scheme, arch))
}

fn counters() -> [Built; 3] {
    each("counter", Scheme::PL2_COUNTER)
}

fn clocks() -> [Built; 3] {
    each("clock", Scheme::PL2_CLOCK)
}

fn pl2() -> [Built; 6] {
    let ([a, b, c], [d, e, f]) = (counters(), clocks());
    [a, b, c, d, e, f]
}

fn l2() -> [Built; 3] {
    each("clock", Scheme::L2)
}

fn all() -> Vec<Built> {
    l2().into_iter().chain(pl2()).collect()
}

fn ipv4(built: &Built, from: u16, dst: MacAddr) -> Vec<u8> {
    plain(mac(&built.rack, from), dst, EtherType::IPV4, &[0x45; 80])
}

#[test]
fn frames_reach_their_host_unchanged() {
    for built in all() {
        let mut rig = Rig::new(&built);
        let frame = ipv4(&built, 1, mac(&built.rack, 3));
        assert_eq!(rig.send(1, &frame), [(3, frame)]);
        // The program passes tags of other VLANs unchanged.
        let tag = Vlan { pcp: 3, dei: true, vid: 7, ether_type: EtherType::IPV6 };
        let frame = tagged(mac(&built.rack, 2), mac(&built.rack, 4), tag, &[1; 64]);
        assert_eq!(rig.send(2, &frame), [(4, frame)]);
        assert_eq!(rig.all_drops(), []);
    }
}

#[test]
fn groups_reach_everybody_else() {
    for built in all() {
        let mut rig = Rig::new(&built);
        for dst in [MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
            let frame = ipv4(&built, 2, dst);
            let mut sent = rig.send(2, &frame);
            sent.sort();
            assert_eq!(sent, [(1, frame.clone()), (3, frame.clone()), (4, frame)]);
        }
        assert_eq!(rig.all_drops(), []);
    }
}

#[test]
fn a_port_speaks_for_its_own_host_only() {
    for built in all() {
        let mut rig = Rig::new(&built);
        let frame = ipv4(&built, 1, mac(&built.rack, 3));
        assert_eq!(rig.send(2, &frame), []);
        let stranger = plain(MacAddr([2, 0, 0, 0, 0, 9]), MacAddr::BROADCAST, EtherType::ARP, &[]);
        assert_eq!(rig.send(2, &stranger), []);
        assert_eq!(rig.all_drops(), [("spoofed", 2)]);
    }
    // Scheduler messages too: no host reserves in another's name.
    for built in pl2() {
        let mut rig = Rig::new(&built);
        let frame = rsv(&built.rack, 1, 3, 1, 0);
        assert_eq!(rig.send(2, &frame), []);
        assert_eq!(rig.all_drops(), [("spoofed", 1)]);
        assert_eq!(rig.reserve(1, 3, 1), Some((0, 0)));
    }
}

#[test]
fn unknown_and_own_destinations_are_dropped() {
    for built in all() {
        let mut rig = Rig::new(&built);
        assert_eq!(rig.send(1, &ipv4(&built, 1, MacAddr([2, 0, 0, 0, 0, 9]))), []);
        assert_eq!(rig.send(1, &ipv4(&built, 1, mac(&built.rack, 1))), []);
        assert_eq!(rig.all_drops(), [("unknown_destination", 1), ("same_port", 1)]);
    }
}

#[test]
fn frames_cut_short_are_malformed() {
    for built in all() {
        let mut rig = Rig::new(&built);
        let tag = Vlan { pcp: 0, dei: false, vid: 7, ether_type: EtherType::IPV4 };
        let frame = tagged(mac(&built.rack, 1), mac(&built.rack, 2), tag, &[]);
        assert_eq!(rig.send(1, &frame[..13]), []);
        assert_eq!(rig.send(1, &frame[..17]), []);
        assert_eq!(rig.send(1, &[]), []);
        assert_eq!(rig.all_drops(), [("malformed", 3)]);
    }
    for built in pl2() {
        let mut rig = Rig::new(&built);
        let frame = rsv(&built.rack, 1, 2, 1, 0);
        for bytes in 18..34 {
            assert_eq!(rig.send(1, &frame[..bytes]), [], "{bytes}");
        }
        assert_eq!(rig.all_drops(), [("malformed", 16)]);
        assert_eq!(rig.send(1, &frame[..34]).len(), 1);
    }
}

#[test]
fn under_l2_pl2_frames_are_ordinary() {
    for built in l2() {
        let mut rig = Rig::new(&built);
        let frame = rsv(&built.rack, 1, 2, 0, 0);
        assert_eq!(rig.send(1, &frame), [(2, frame)]);
        assert!(rig.data(1, 2, true));
    }
}

#[test]
fn counters_reply_what_was_reserved_before() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
        assert_eq!(rig.reserve(1, 4, 2), Some((4, 0)));
        assert_eq!(rig.reserve(2, 3, 3), Some((0, 4)));
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 6);
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 2), 3);
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), 7);
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 4), 2);
    }
}

#[test]
fn an_untagged_reservation_is_as_good() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        let tagged_rsv = rsv(&built.rack, 1, 3, 4, 0);
        let ether_type = built.rack.protocol::<Pl2>().unwrap().ether_type;
        let frame = plain(mac(&built.rack, 1), mac(&built.rack, 3), ether_type, &tagged_rsv[18..34]);
        let sent = rig.send(1, &frame);
        assert_eq!(Control::parse(&sent[0].1[14..]).unwrap().kind, Kind::Grt as u8);
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 4);
    }
}

#[test]
fn covered_frames_count_down_and_nothing_else_does() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        let out = |rig: &Rig| rig.register("RackIngress.pl2.out_reservation", 3);
        rig.announce(2, 3, 2, 0);
        rig.reserve(1, 3, 3);
        assert_eq!(rig.fate(2, 3, 0, true), Fate::Scheduled);
        assert_eq!(out(&rig), 5, "unsolicited frames take no slot off");
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 2);
        assert_eq!(out(&rig), 4);
        // Without rights, frames without a reservation were scheduled and consumed others' slots.
        for port in [4, 1] {
            for _ in 0..4 {
                rig.fate(port, 3, 0, false);
            }
        }
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 0);
        assert_eq!(out(&rig), 2, "the other host's");
        assert_eq!(rig.demoted(), [6, 0, 0, 0]);
    }
}

#[test]
fn a_reservation_gives_back_what_its_cell_still_held() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        rig.reserve(2, 3, 2);
        rig.reserve(1, 3, 4);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        assert_eq!(rig.reserve(1, 3, 1), Some((0, 2)), "three are given back");
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), 3);
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        assert_eq!(rig.reserve_cell(1, 3, 4, 1), Some((0, 2)));
        // Demand 0 gives back, whatever the lane's other half waits for.
        assert_eq!(rig.reserve_cell(1, 3, 0, 0), Some((4, 6)));
        assert_eq!(rig.of_cell("lane_lock", 1, 3, 0), 2, "the other half still waits");
        rig.now += Nanos(10 * SLOT);
        assert_eq!(rig.reserve_cell(1, 3, 0, 1), Some((0, 2)));
        assert_eq!(rig.of_cell("lane_lock", 1, 3, 0), 0);
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 0);
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), 2);
    }
}

#[test]
fn what_has_not_begun_is_not_given_back() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        rig.reserve(2, 3, 4);
        rig.reserve(4, 3, 4);
        assert_eq!(rig.reserve(1, 3, 4), Some((0, 8)));
        // Else a host could have ever new rights to send unsolicited.
        assert_eq!(rig.reserve(1, 3, 0), Some((NOT_NOW, NOT_NOW)));
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 4);
    }
}

#[test]
fn clocks_reply_how_far_both_ports_are_reserved() {
    for built in clocks() {
        let mut rig = Rig::new(&built);
        assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
        assert_eq!(rig.reserve(2, 3, 2), Some((0, 4 * SLOT as u32)));
        rig.now += Nanos(SLOT);
        assert_eq!(rig.reserve_cell(1, 3, 1, 1), Some((3 * SLOT as u32, 5 * SLOT as u32)));
        assert_eq!(rig.fate(1, 3, 0, false), Fate::Scheduled);
        assert_eq!(
            rig.reserve_cell(1, 4, 1, 0),
            Some((4 * SLOT as u32, 0)),
            "data moves no clock, and this pair has lanes of its own"
        );
        // Long after: free again.
        rig.now += Nanos(100 * SLOT);
        assert_eq!(rig.reserve(1, 3, 1), Some((0, 0)));
    }
}

#[test]
fn clocks_count_parts_of_slots() {
    let pl2 = "mode = \"clock\"\nslot_parts = 4\nslot_headroom_percent = 0";
    let mut rig = Rig::new(&Built::new(rack(&SAME, pl2), Scheme::PL2_CLOCK));
    // A quarter of 124 µs.
    let part = 31_000;
    assert_eq!(rig.reserve(1, 3, 1), Some((0, 0)));
    assert_eq!(rig.reserve(2, 3, 16), Some((0, part)), "K slots");
    assert_eq!(rig.reserve(4, 3, 1), Some((0, 17 * part)));
    assert_eq!(rig.reserve(1, 4, 17), None);
    assert_eq!(rig.drops("bad_demand"), 1);
}

#[test]
fn each_port_counts_in_its_own_slots() {
    for arch in Arch::ALL {
        let built =
            Built::on(rack(&["100 Mb/s", "1 Gb/s", "25 Gb/s"], "mode = \"clock\""), Scheme::PL2_CLOCK, arch);
        let mut rig = Rig::new(&built);
        let slot = |port: u16| built.slot(port).0 as u32;
        assert_eq!((slot(1), slot(2), slot(3)), (127_720, 12_772, 511));
        assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
        assert_eq!(rig.reserve(1, 2, 2), Some((4 * slot(1), 0)));
        assert_eq!(rig.reserve(2, 3, 3), Some((0, 4 * slot(3))));
        assert_eq!(rig.reserve(3, 2, 1), Some((0, 2 * slot(2))));
        assert_eq!(rig.reserve(2, 1, 1), Some((3 * slot(2), 0)));
    }
}

/// Ports 1 and 2 alone at the links' rate, two links of a break-out behind port 3.
const BREAKOUT: &str = "name = \"breakout\"\n[switch]\nport_rate = \"50 Gb/s\"\n[pl2]\nCLOCKS\n\
    [[host]]\nname = \"a\"\nport = 1\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n\
    [[host]]\nname = \"b\"\nport = 2\nmac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\n\
    [[host]]\nname = \"c\"\nport = 3\nmac = \"02:00:00:00:00:03\"\nip = \"10.0.0.3/24\"\nport_rate = \"100 Gb/s\"\n\
    [[host]]\nname = \"d\"\nport = 3\nmac = \"02:00:00:00:00:04\"\nip = \"10.0.0.4/24\"\nport_rate = \"100 Gb/s\"\n";

/// Sends an RSV from `from` to the host with the address's last byte `to`.
fn reserve_link(rig: &mut Rig, port: u16, from: u8, to: u8, demand: u8) -> (u32, u32) {
    let mut frame = rsv(&rig.built.rack, 1, 2, demand, 0);
    (frame[5], frame[11]) = (to, from);
    let sent = rig.send(port, &frame);
    assert_eq!((sent.len(), sent[0].0), (1, port));
    let control = p4rack_wire::pl2::Control::parse(&sent[0].1[18..]).unwrap();
    (control.send_wait, control.recv_wait)
}

#[test]
fn each_link_of_a_port_is_reserved_by_itself() {
    for clocks in ["pair", "chain", "dst", "calendar"] {
        let text = BREAKOUT.replace("CLOCKS", &format!("mode = \"clock\"\nclocks = \"{clocks}\""));
        let rack = p4rack_codegen::Rack::parse(&text, "breakout.toml").unwrap();
        let slot = rack.protocol::<Pl2>().unwrap().slot(&rack, &rack.hosts[2]).0 as u32;
        let mut rig = Rig::new(&Built::new(rack, Scheme::PL2_CLOCK));
        // A calendar's cells begin a little later and are a little longer.
        let near = |wait: u32, wanted: u32| {
            wait >= wanted && (wait <= wanted + slot || clocks != "calendar" && wait == wanted)
        };
        let first = reserve_link(&mut rig, 1, 1, 3, 4);
        assert!(near(first.1, 0), "{clocks}: {first:?}");
        let other_link = reserve_link(&mut rig, 2, 2, 4, 4);
        assert!(near(other_link.1, 0), "{clocks}: {other_link:?}");
        // Four slots at the link's rate, not at the port's.
        let same_link = reserve_link(&mut rig, 2, 2, 3, 4);
        assert!(same_link.1 >= 4 * slot && same_link.1 <= 6 * slot, "{clocks}: {same_link:?} of {slot}");
        // As sources too.
        let from_link = reserve_link(&mut rig, 3, 3, 1, 4);
        assert!(near(from_link.0, 0), "{clocks}: {from_link:?}");
        let link = rig.built.rack.hosts[3].link;
        assert!(rig.manage(Kind::MgmtRead, Side::Out, link, 0).unwrap() >= 4 * slot, "{clocks}");
        assert_eq!(rig.manage(Kind::MgmtRead, Side::Out, 3, 0), Some(0), "{clocks}: nothing at the port");
    }
}

#[test]
fn links_count_slots_by_themselves() {
    for arch in Arch::ALL {
        let rack =
            p4rack_codegen::Rack::parse(&BREAKOUT.replace("CLOCKS", "mode = \"counter\""), "breakout.toml")
                .unwrap();
        let mut rig = Rig::new(&Built::on(rack, Scheme::PL2_COUNTER, arch));
        assert_eq!(reserve_link(&mut rig, 1, 1, 3, 4), (0, 0));
        assert_eq!(reserve_link(&mut rig, 2, 2, 4, 4), (0, 0), "another link");
        assert_eq!(reserve_link(&mut rig, 2, 2, 3, 4), (4, 4));
        let mut frame = data(&rig.built.rack, 1, 2, 0, false, 100);
        (frame[5], frame[11]) = (3, 1);
        assert_eq!(rig.send(1, &frame).len(), 1);
        let link = rig.built.rack.hosts[2].link;
        assert_eq!(rig.manage(Kind::MgmtRead, Side::Out, link, 0), Some(7), "the frame took its slot off");
    }
}

#[test]
fn coarser_time_units_scale_everything() {
    let text = "name = \"us\"\n[switch]\nport_rate = \"100 Mb/s\"\ntime_unit_ns = 1000\n[pl2]\nmode = \"clock\"\n\
        [[host]]\nname = \"a\"\nport = 1\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n\
        [[host]]\nname = \"b\"\nport = 2\nmac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\n";
    let rack = p4rack_codegen::Rack::parse(text, "us.toml").unwrap();
    let mut rig = Rig::new(&Built::new(rack, Scheme::PL2_CLOCK));
    assert_eq!(rig.reserve(1, 2, 4), Some((0, 0)));
    rig.now += Nanos(100_000);
    // 128 µs a slot: whole units, rounded up.
    assert_eq!(rig.reserve(1, 2, 1), Some((4 * 128 - 100, 4 * 128 - 100)), "its start has passed");
}

#[test]
fn clocks_survive_the_wrap_of_time() {
    let [built, ..] = clocks();
    const WRAP: u64 = 1 << 48;
    let mut rig = Rig::new(&built);
    rig.now = Nanos(WRAP - SLOT);
    // The registers still hold 0, which is one slot ahead of the time that wraps.
    rig.now = Nanos(WRAP - (1 << 31));
    assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
    rig.now = Nanos(WRAP - SLOT);
    assert_eq!(rig.reserve(1, 3, 4), Some((0, 0)));
    rig.now = Nanos(WRAP + SLOT);
    assert_eq!(rig.reserve(2, 3, 1), Some((0, 2 * SLOT as u32)), "reserved across the wrap");
    rig.now = Nanos(WRAP + 10 * SLOT);
    assert_eq!(rig.reserve(1, 3, 1), Some((0, 0)), "a time before the wrap is past");
}

#[test]
fn idle_clocks_are_free_for_almost_the_whole_range() {
    let built = Built::new(rack(&SAME, "mode = \"clock\"\nlanes = 2"), Scheme::PL2_CLOCK);
    for idle in [1 << 29, (1 << 30) + 1, 1 << 40, 1 << 47, (1 << 48) - (1 << 30) - 1] {
        let mut rig = Rig::new(&built);
        rig.reserve(1, 3, 1);
        rig.now += Nanos(SLOT + idle);
        assert_eq!(rig.reserve_cell(1, 3, 1, 2), Some((0, 0)), "idle for {idle}");
    }
}

#[test]
fn unsolicited_frames_stop_at_the_threshold() {
    for built in pl2() {
        let mut rig = Rig::new(&built);
        rig.announce(1, 3, 4, 0);
        rig.reserve(2, 3, 1);
        assert_eq!(rig.fate(1, 3, 0, true), Fate::Scheduled, "5 slots are not more than T");
        rig.reserve(4, 3, 1);
        assert_eq!(rig.fate(1, 3, 0, true), Fate::Dropped, "6 are");
        assert_eq!(rig.fate(2, 3, 0, false), Fate::Scheduled, "scheduled frames pass all the same");
        rig.announce(2, 4, 1, 0);
        assert_eq!(rig.fate(2, 4, 0, true), Fate::Scheduled, "and other destinations don't care");
        assert_eq!(rig.all_drops(), [("unsolicited_over_threshold", 1)]);
    }
}

#[test]
fn thresholds_are_in_the_destinations_slots() {
    for arch in Arch::ALL {
        let pl2 = "mode = \"clock\"\nt = 1\ndrop_threshold = 3\nk = 8";
        let built = Built::on(rack(&["1 Gb/s", "100 Mb/s", "1 Gb/s"], pl2), Scheme::PL2_CLOCK, arch);
        let mut rig = Rig::new(&built);
        rig.announce(3, 2, 3, 0);
        rig.announce(1, 3, 4, 0);
        assert!(rig.data(3, 2, true));
        assert!(!rig.data(1, 3, true));
    }
}

#[test]
fn what_a_reservation_may_say() {
    for built in pl2() {
        let clock = built.scheme == Scheme::PL2_CLOCK;
        let mut rig = Rig::new(&built);
        let send = |rig: &mut Rig, what: Control| {
            let frame = control(&rig.built.rack, 1, mac(&rig.built.rack, 2), what);
            rig.send(1, &frame).len()
        };
        assert_eq!(send(&mut rig, request(0, 0)), usize::from(!clock), "clocks take nothing back");
        assert_eq!(send(&mut rig, request(5, 0)), 0);
        assert_eq!(send(&mut rig, request(255, 0)), 0);
        assert_eq!(rig.drops("bad_demand"), if clock { 3 } else { 2 });
        for cell in [2, 3, 254, 255] {
            assert_eq!(send(&mut rig, request(1, cell)), 0, "cell {cell}");
        }
        assert_eq!(rig.drops("bad_lane"), 4);
        for kind in [Kind::Grt as u8, Kind::Notify as u8, Kind::MgmtReply as u8, 0, 5, 15] {
            assert_eq!(send(&mut rig, Control { kind, ..request(1, 0) }), 0, "kind {kind}");
        }
        assert_eq!(rig.drops("bad_kind"), 6);
        for version in [0, 2, 15] {
            assert_eq!(send(&mut rig, Control { version, ..request(1, 0) }), 0);
            // Messages of another version are refused, whatever their kind.
            assert_eq!(send(&mut rig, Control { version, kind: Kind::Data as u8, ..request(1, 0) }), 0);
        }
        assert_eq!(rig.drops("bad_version"), 6);
        let group = control(&built.rack, 1, MacAddr::BROADCAST, request(1, 0));
        assert_eq!(rig.send(1, &group), []);
        let nobody = control(&built.rack, 1, MacAddr([2, 0, 0, 0, 0, 9]), request(1, 0));
        assert_eq!(rig.send(1, &nobody), []);
        assert_eq!(rig.drops("unknown_destination"), 2);
        assert_eq!(rig.reserve(1, 1, 1), None);
        assert_eq!(rig.drops("same_port"), 1);
        for port in 1..=4 {
            let free = |name| rig.register(name, port) == 0;
            assert!(
                free("RackIngress.pl2.in_reservation") && free("RackIngress.pl2.out_reservation"),
                "port {port}"
            );
        }
    }
}

#[test]
fn shims_are_ordinary_data() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        rig.reserve(1, 3, 2);
        let pl2 = built.rack.protocol::<Pl2>().unwrap();
        let tag = Vlan { pcp: 5, dei: false, vid: pl2.vid, ether_type: pl2.ether_type };
        let frame = tagged(mac(&built.rack, 1), mac(&built.rack, 3), tag, &[0x14, 0, 8, 0, 0, 0, 0, 1, 0x45]);
        assert_eq!(rig.fate_of(1, 3, &frame), Fate::Scheduled);
        assert_eq!(rig.register("RackIngress.pl2.out_reservation", 3), 1);
    }
}

#[test]
fn groups_are_never_scheduled() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        rig.reserve(1, 3, 2);
        let tag = Vlan {
            pcp: 5,
            dei: false,
            vid: built.rack.protocol::<Pl2>().unwrap().vid,
            ether_type: EtherType::IPV4,
        };
        let frame = tagged(mac(&built.rack, 1), MacAddr::BROADCAST, tag, &[1; 60]);
        assert_eq!(rig.send(1, &frame).len(), 3);
        assert_eq!(rig.register("RackIngress.pl2.in_reservation", 1), 2);
    }
}

#[test]
fn the_controller_takes_back_exactly_what_a_cell_holds() {
    for arch in Arch::ALL {
        let pl2 = "mode = \"counter\"\nlanes = 2\nt = 2";
        let mut rig = Rig::new(&Built::on(rack(&SAME, pl2), Scheme::PL2_COUNTER, arch));
        rig.reserve(2, 3, 3);
        rig.reserve(1, 4, 2);
        // Half 0 of lane 1 sends, its half 1 waits.
        rig.reserve_cell(1, 3, 4, 2);
        rig.now += Nanos(10 * SLOT);
        assert_eq!(rig.fate(1, 3, 2, false), Fate::Scheduled);
        rig.reserve_cell(1, 3, 4, 3);
        let (inward, outward) = ("RackIngress.pl2.in_reservation", "RackIngress.pl2.out_reservation");
        for (cell, held, (left_in, left_out)) in
            [(0, 0, (9, 10)), (2, 3, (6, 7)), (3, 4, (2, 3)), (3, 0, (2, 3)), (1, 0, (2, 3))]
        {
            assert_eq!(rig.forget(1, 3, cell), Some(held), "cell {cell}");
            assert_eq!(rig.register(inward, 1), left_in, "what it reserved elsewhere stays");
            assert_eq!(rig.register(outward, 3), left_out, "what the living one has stays");
            // Only the half that holds the lane frees it.
            assert_eq!(rig.of_cell("lane_lock", 1, 3, 2), if left_out > 3 { 2 } else { 0 });
        }
        assert_eq!(rig.fate(1, 3, 3, false), Fate::Demoted("uncovered"));
        assert_eq!(rig.fate(1, 3, 3, true), Fate::Demoted("uncovered_unsolicited"));
        let cells = rig.built.pl2().cell_count(&rig.built.rack) as u32;
        let beyond = [(1, 512, 0), (512, 3, 0), (1, 3, cells), (1, 3, u32::MAX)];
        for (index, destination, cell) in beyond {
            let kind = Kind::MgmtForget as u8;
            assert_eq!(
                rig.ask(p4rack_wire::pl2::Management { kind, index, destination, cell, ..MANAGEMENT }),
                None
            );
        }
        assert_eq!(rig.all_drops(), [("bad_index", 4)]);
    }
}

#[test]
fn with_clocks_forgetting_frees_the_lane() {
    for built in clocks() {
        let mut rig = Rig::new(&built);
        rig.reserve(2, 3, 4);
        rig.reserve(4, 3, 4);
        rig.reserve(1, 3, 4);
        assert_eq!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
        assert_eq!(rig.forget(1, 3, 1), Some(0), "the other half");
        assert_eq!(rig.reserve_cell(1, 3, 4, 1), Some((NOT_NOW, NOT_NOW)));
        let held = if built.counts_frames() { 4 } else { 4 * 1550 };
        assert_eq!(rig.forget(1, 3, 0), Some(held));
        assert_eq!(rig.reserve_cell(1, 3, 1, 1), Some((4 * SLOT as u32, 12 * SLOT as u32)));
    }
}

#[test]
fn the_controller_reads_writes_and_resets_slots() {
    for built in counters() {
        let mut rig = Rig::new(&built);
        rig.reserve(1, 3, 4);
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 1, 0), Some(4));
        assert_eq!(rig.manage(Kind::MgmtRead, Side::Out, 3, 0), Some(4));
        assert_eq!(rig.manage(Kind::MgmtWrite, Side::Out, 3, 9), Some(4));
        assert_eq!(rig.reserve(2, 3, 1), Some((0, 9)));
        assert_eq!(rig.manage(Kind::MgmtReset, Side::Out, 3, 77), Some(10));
        assert_eq!(rig.manage(Kind::MgmtRead, Side::Out, 3, 0), Some(0));
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 1, 0), Some(4), "the other register is untouched");
        assert_eq!(rig.all_drops(), []);
    }
}

#[test]
fn the_controller_reads_writes_and_resets_clocks() {
    for built in clocks() {
        let mut rig = Rig::new(&built);
        rig.reserve(1, 3, 4);
        rig.now += Nanos(1000);
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 1, 0), Some(4 * SLOT as u32 - 1000));
        assert_eq!(rig.manage(Kind::MgmtWrite, Side::Out, 3, 5000), Some(4 * SLOT as u32 - 1000));
        assert_eq!(rig.reserve(2, 3, 1), Some((0, 5000)));
        assert_eq!(rig.manage(Kind::MgmtReset, Side::Out, 3, 77), Some(5000 + SLOT as u32));
        assert_eq!(rig.manage(Kind::MgmtRead, Side::Out, 3, 0), Some(0));
        rig.now += Nanos(100 * SLOT);
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 1, 0), Some(0), "a time that is past is free");
        assert_eq!(rig.reserve(1, 3, 1), Some((0, 0)));
    }
}

#[test]
fn management_is_checked() {
    for built in pl2() {
        let mut rig = Rig::new(&built);
        let cpu_port = built.rack.switch.cpu_port;
        let out = |rig: &mut Rig, target, index| {
            let mut frame = vec![0, 0];
            frame.extend(management(&built.rack, Kind::MgmtWrite as u8, target, index, 1));
            assert_eq!(rig.send(cpu_port, &frame), []);
            assert!(!rig.switch.poll_cpu(&mut Vec::new()));
        };
        out(&mut rig, 0, 512);
        out(&mut rig, 1, u16::MAX);
        out(&mut rig, 2, 1);
        assert_eq!(rig.all_drops(), [("bad_target", 1), ("bad_index", 2)]);
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 511, 0), Some(0));

        // From a host, with the host's own address: refused whatever it says.
        for kind in [Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset] {
            let mut frame = management(&built.rack, kind as u8, 0, 1, 9);
            frame[6..12].copy_from_slice(&mac(&built.rack, 2).0);
            assert_eq!(rig.send(2, &frame), []);
        }
        assert_eq!(rig.drops("management_from_host"), 3);
        assert_eq!(rig.manage(Kind::MgmtRead, Side::In, 1, 0), Some(0));
    }
}

#[test]
fn the_controller_sends_frames() {
    for built in all() {
        let mut rig = Rig::new(&built);
        let cpu_port = built.rack.switch.cpu_port;
        let frame = plain(MacAddr([2, 0, 0, 0, 0, 0xfe]), mac(&built.rack, 3), EtherType::ARP, &[]);
        let packet_out = |port: u16| [&port.to_be_bytes(), frame.as_slice()].concat();
        assert_eq!(rig.send(cpu_port, &packet_out(2)), [(2, frame.clone())], "out of the port it names");
        assert_eq!(rig.send(cpu_port, &packet_out(0)), [(3, frame.clone())], "or where the tables say");
        assert_eq!(rig.send(cpu_port, &packet_out(513)), [], "not where the number wraps to");
        assert_eq!(rig.all_drops(), [("unknown_destination", 1)]);
    }
}

#[test]
fn meters_bound_what_a_port_sends() {
    for arch in Arch::ALL {
        let built = Built::on(rack(&SAME, "mode = \"clock\"\ncontrol_per_slot = 1"), Scheme::PL2_CLOCK, arch);
        let mut rig = Rig::new(&built);
        let granted = (0..400).filter(|_| rig.reserve(1, 3, 1).is_some()).count();
        assert!((250..300).contains(&granted), "{granted} of 400 at once: the burst");
        assert_eq!(rig.drops("control_meter"), 400 - granted as u64);
        assert!(rig.reserve(2, 3, 1).is_some(), "other ports have their own");
        rig.now += Nanos(100 * SLOT);
        let granted = (0..400).filter(|_| rig.reserve(1, 3, 1).is_some()).count();
        assert!((90..110).contains(&granted), "{granted} after 100 slots");

        // Answers that grant nothing have used up port 1's.
        let frame = plain(mac(&built.rack, 4), mac(&built.rack, 2), EtherType::IPV4, &[0; 1400]);
        let passed = (0..100).filter(|_| !rig.send(4, &frame).is_empty()).count();
        assert!((20..30).contains(&passed), "{passed} frames of best effort at once: 32 KiB");
        assert_eq!(rig.drops("best_effort_meter"), 100 - passed as u64);
        rig.now += Nanos(10 * SLOT);
        rig.reserve(1, 2, 1);
        assert_eq!(rig.fate(1, 2, 0, false), Fate::Scheduled, "reserved data is not metered");
    }
}

#[test]
fn unmetered_if_the_description_says_so() {
    for arch in Arch::ALL {
        let pl2 = "mode = \"clock\"\ncontrol_per_slot = 0\nbest_effort_percent = 100";
        let built = Built::on(rack(&SAME, pl2), Scheme::PL2_CLOCK, arch);
        let mut rig = Rig::new(&built);
        assert_eq!((0..2000).filter(|_| rig.reserve(1, 3, 1).is_some()).count(), 2000);
        let frame = ipv4(&built, 1, mac(&built.rack, 2));
        assert_eq!((0..2000).filter(|_| !rig.send(1, &frame).is_empty()).count(), 2000);
    }
}

#[test]
fn grants_pass_data_and_data_passes_best_effort() {
    for built in clocks() {
        let mut rig = Rig::with_config(&built, |config| {
            for port in &mut config.ports {
                port.rate_bps = 100_000_000;
            }
        });
        let (frame, scheduled) =
            (ipv4(&built, 2, mac(&built.rack, 1)), data(&built.rack, 3, 1, 0, false, 100));
        rig.reserve(3, 1, 4);
        rig.now += Nanos(SLOT);
        for _ in 0..3 {
            rig.switch.handle_frame(2, &frame, rig.now);
        }
        for _ in 0..3 {
            rig.switch.handle_frame(3, &scheduled, rig.now);
        }
        let ask = rsv(&built.rack, 1, 4, 1, 0);
        rig.switch.handle_frame(1, &ask, rig.now);
        let mut order = Vec::new();
        while order.len() < 7 {
            for (port, sent) in rig.drain() {
                assert_eq!(port, 1);
                order.push(match sent {
                    sent if sent == frame => 'b',
                    sent if sent == scheduled => 's',
                    _ => 'g',
                });
            }
            rig.now = rig.switch.next_timeout().unwrap_or(rig.now).max(rig.now);
        }
        let order: String = order.into_iter().collect();
        // One frame may have been on the wire already.
        assert!(order == "gsssbbb" || order == "bgsssbb", "{order}");
    }
}
