//! Hosts in several pipes of a chip: an RSV between two of them visits the registers of its destination's pipe, and its
//! own again.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::random::Random;
use common::*;
use p4rack_codegen::scheme::pl2::Clocks;
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_wire::Nanos;
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, Side};
use std::collections::HashSet;

/// Three hosts in the first pipe, and one in each of the others.
const PORTS: [u16; 6] = [1, 2, 131, 260, 389, 6];
const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
const CLOCKS: [&str; 3] = ["pair", "dst", "chain"];
/// A pass by a port that comes back takes some 760 ns at this rate.
const SLOW_BPS: u64 = 1_000_000_000;

fn built(clocks: &str, arch: Arch) -> Built {
    let pl2 = format!(
        "mode = \"clock\"\nclocks = \"{clocks}\"\nlanes = 2\ncontrol_per_slot = 0\nbest_effort_percent = 100"
    );
    Built::on(at_ports(rack(&["100 Gb/s"; 6], &pl2), &PORTS), Scheme::PL2_CLOCK, arch)
}

fn all() -> impl Iterator<Item = Built> {
    CLOCKS.into_iter().flat_map(|clocks| CHIPS.map(|arch| built(clocks, arch)))
}

/// A switch whose passes from pipe to pipe take time.
fn slow(built: &Built) -> Rig {
    // The first port that no host has in any pipe. Ports make up for no time in which they had nothing to send.
    let mut rig = Rig::with_config(built, |config| config.catch_up = Nanos::ZERO);
    let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
    for pipe in 0..4 {
        rig.switch.set_port_rate(128 * pipe + local, SLOW_BPS).unwrap();
    }
    rig
}

/// Frames that came back so far.
fn crossings(rig: &Rig) -> u64 {
    rig.switch.stats(rig.now).recirculations
}

#[test]
fn an_rsv_between_pipes_crosses_twice_and_nothing_else_does() {
    for built in all() {
        let mut rig = Rig::new(&built);
        for (from, to, expected) in [(1, 2, 0), (1, 131, 2), (131, 1, 2), (260, 389, 2), (6, 1, 0)] {
            let before = crossings(&rig);
            let (send, recv) = rig.reserve(from, to, 4).unwrap();
            assert_eq!(crossings(&rig) - before, expected, "RSV from {from} to {to}");
            rig.now += Nanos(u64::from(send.max(recv)));
            let before = crossings(&rig);
            assert_eq!(rig.fate(from, to, 0, false), Fate::Scheduled, "from {from} to {to}");
            assert_eq!(crossings(&rig), before);
        }
    }
}

#[test]
fn each_pipe_has_the_registers_of_its_own_ports() {
    for built in all() {
        let dst = built.pl2().clocks == Clocks::Dst;
        let mut rig = Rig::new(&built);
        rig.reserve(1, 131, 4).unwrap();
        let mut read = |name: &str, port: u16| -> Vec<bool> {
            let name = format!("RackIngress.pl2.{name}");
            (0..4).map(|pipe| rig.register_in(pipe, &name, port) != 0).collect()
        };
        assert_eq!(read("out_reservation", 131), [false, true, false, false]);
        assert_eq!(read("in_reservation", 1), [!dst, false, false, false]);
    }
}

/// A reservation whose RSV crosses the pipes, and what its grant says.
struct Granted {
    from: u16,
    to: u16,
    cell: u8,
    demand: u8,
    sent_at: Nanos,
}

/// Reserved times, at sources or at destinations: port, begin and end.
type Times = Vec<(u16, u64, u64)>;

/// What came of random reservations.
#[derive(Default)]
struct Seen {
    granted: usize,
    crossed: usize,
    times: [Times; 2],
    demoted: u64,
}

impl Seen {
    /// How often a reservation begins before another one at the same port ends.
    fn overlaps(&mut self) -> usize {
        let overlaps = |times: &mut Times| {
            times.sort_unstable();
            times.windows(2).filter(|two| two[0].0 == two[1].0 && two[1].1 < two[0].2).count()
        };
        self.times.iter_mut().map(overlaps).sum()
    }
}

/// A burst that waits for its time: the time, ports of its source and destination, and its cell.
type Due = (Nanos, u16, u16, u8);

/// Hosts of all pipes reserve, mostly towards one, and send in their time, while others' RSVs cross.
fn reserve_at_random(built: &Built, steps: u64) -> Seen {
    let (mut rig, mut random, mut seen) = (slow(built), Random::new(7), Seen::default());
    let (mut asked, mut due): (Vec<Granted>, Vec<Due>) = Default::default();
    // Cells whose burst has not been sent.
    let mut busy = HashSet::new();
    for _ in 0..steps {
        rig.now += Nanos(random.below(150));
        let port = |random: &mut Random| PORTS[random.below(6) as usize];
        let (from, to) = (port(&mut random), if random.below(3) > 0 { 131 } else { port(&mut random) });
        let (cell, demand) = (random.below(4) as u8, 1 + random.below(4) as u8);
        let mut sent = Vec::new();
        if from != to && busy.insert((from, to, cell)) {
            let id = asked.len() as u32;
            let rsv = Control { id, ..request(demand, cell) };
            sent.extend(rig.send(from, &control(&built.rack, from, mac(&built.rack, to), rsv)));
            asked.push(Granted { from, to, cell, demand, sent_at: rig.now });
        }
        let (now, later): (Vec<_>, Vec<_>) = due.into_iter().partition(|(at, ..)| *at <= rig.now);
        due = later;
        for (_, from, to, cell) in now {
            busy.remove(&(from, to, cell));
            sent.extend(rig.send(from, &data(&built.rack, from, to, cell, false, 1_000)));
        }
        sent.extend(rig.drain());
        for (_, frame) in sent {
            let is_pl2 = frame[16..18] == built.pl2().ether_type.0.to_be_bytes();
            let Some(grant) =
                Control::parse(&frame[18..]).ok().filter(|grant| is_pl2 && grant.kind == Kind::Grt as u8)
            else {
                continue;
            };
            let Granted { from, to, cell, demand, sent_at } = asked[grant.id as usize];
            if (grant.send_wait, grant.recv_wait) == (NOT_NOW, NOT_NOW) {
                busy.remove(&(from, to, cell));
                continue;
            }
            seen.granted += 1;
            seen.crossed += usize::from(from / 128 != to / 128);
            let [sends, receives] =
                [grant.send_wait, grant.recv_wait].map(|wait| sent_at.0 + u64::from(wait));
            let lasts = |port: u16| u64::from(demand) * built.slot(port).0;
            if built.pl2().clocks != Clocks::Dst {
                seen.times[0].push((from, sends, sends + lasts(from)));
            }
            seen.times[1].push((to, receives, receives + lasts(to)));
            due.push((Nanos(sends.max(receives)), from, to, cell));
        }
    }
    seen.demoted = rig.demoted().iter().sum();
    seen
}

#[test]
fn reservations_from_different_pipes_never_overlap() {
    for built in all() {
        let mut seen = reserve_at_random(&built, 4_000);
        let what = format!("{:?} on {}", built.pl2().clocks, built.rack.switch.arch);
        assert!(seen.granted > 300 && seen.crossed > 200, "{what}: {} granted", seen.granted);
        assert_eq!(seen.overlaps(), 0, "{what}");
        assert_eq!(seen.demoted, 0, "{what}: all came in their time");
    }
}

/// The program with this instead of that.
fn wrong(built: &Built, from: &str, to: &str) -> Built {
    // Columns depend on the other declarations.
    let in_words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = built.p4().lines().map(in_words).collect::<Vec<_>>().join("\n");
    assert!(text.contains(from), "{from}");
    built.with_text(&text.replace(from, to))
}

/// The test above notices programs in which the pipes share registers that they don't have.
#[test]
fn without_its_crossing_a_program_grants_time_twice() {
    for arch in CHIPS {
        let right = built("pair", arch);
        for (from, to) in [
            ("meta.pl2.away != meta.pl2.home", "meta.pl2.home != meta.pl2.home"),
            ("ig_tm_md.ucast_egress_port = meta.pl2.away;", "ig_tm_md.ucast_egress_port = meta.pl2.home;"),
        ] {
            let mut seen = reserve_at_random(&wrong(&right, from, to), 1_000);
            assert!(seen.overlaps() > 0, "{to} changes nothing");
        }
    }
}

/// Two RSVs in front of another one, so that it is still on its way.
fn on_its_way(rig: &mut Rig) {
    for from in [2, 6, 1] {
        let rack = &rig.built.rack;
        let frame = rsv(rack, from, 131, 4, 0);
        rig.send(from, &frame);
    }
    assert_eq!(crossings(rig), 2, "of six");
}

#[test]
fn until_its_rsv_is_back_a_burst_is_early() {
    for built in all() {
        let mut rig = slow(&built);
        on_its_way(&mut rig);
        assert_eq!(rig.fate(1, 131, 0, false), Fate::Demoted("early"));
        assert_eq!(rig.reserve_cell(1, 131, 1, 1), Some((NOT_NOW, NOT_NOW)), "its lane is held");
        // If it began as soon as its RSV left, its burst would be in time.
        let built = wrong(&built, "PENDING - meta.pl2.limit_out", "0 - meta.pl2.limit_out");
        let mut rig = slow(&built);
        on_its_way(&mut rig);
        assert_eq!(rig.fate(1, 131, 0, false), Fate::Scheduled);
    }
}

#[test]
fn a_lane_whose_rsv_is_lost_is_free_after_a_while() {
    for arch in CHIPS {
        let right = built("pair", arch);
        let mut rig = Rig::new(&wrong(&right, "= meta.pl2.away;", "= 300;"));
        assert_eq!(rig.reserve(1, 131, 4), None);
        rig.now += Nanos(10_000);
        assert_eq!(rig.reserve(1, 131, 4), Some((NOT_NOW, NOT_NOW)));
        rig.now += Nanos(right.pl2().horizon_units(&right.rack));
        assert_eq!(rig.reserve(1, 131, 4), None, "asked for again, and lost again");
    }
}

#[test]
fn a_burst_to_another_pipe_always_has_slots() {
    for built in all() {
        let mut rig = Rig::new(&built);
        for (to, kept) in [(2, 1), (131, 0)] {
            let rsv = Control { unsolicited: 1, ..request(2, 0) };
            let sent = rig.send(1, &control(&built.rack, 1, mac(&built.rack, to), rsv));
            let grant = Control::parse(&sent[0].1[18..]).unwrap();
            assert_eq!((grant.kind, grant.unsolicited), (Kind::Grt as u8, kept), "to {to}");
            let expected = if kept == 1 { Fate::Scheduled } else { Fate::Dropped };
            assert_eq!(rig.fate(1, to, 0, true), expected);
        }
        assert_eq!(rig.drops("unsolicited_has_slots"), 1);
    }
}

#[test]
fn the_controller_reads_and_sets_registers_of_all_pipes() {
    for built in all() {
        let mut rig = Rig::new(&built);
        for port in PORTS {
            for side in [Side::In, Side::Out] {
                assert_eq!(rig.manage(Kind::MgmtRead, side, port, 0), Some(0));
                assert_eq!(rig.manage(Kind::MgmtWrite, side, port, 500), Some(0));
                assert_eq!(rig.manage(Kind::MgmtRead, side, port, 0), Some(500));
                assert_eq!(rig.manage(Kind::MgmtReset, side, port, 0), Some(500));
                assert_eq!(rig.manage(Kind::MgmtRead, side, port, 0), Some(0));
            }
        }
        rig.reserve(131, 1, 3).unwrap();
        assert_eq!(rig.forget(131, 1, 0), Some(3), "frames that it may send");
        assert_eq!(rig.forget(131, 1, 0), Some(0));
    }
}

/// A rack of 16 hosts of 100 Gb/s in each pipe.
fn full(k: u8) -> p4rack_codegen::Rack {
    let mut text =
        format!("name = \"r\"\n[switch]\nport_rate = \"100 Gb/s\"\n[pl2]\nmode = \"clock\"\nk = {k}\n");
    for n in 0..64 {
        let port = 128 * (n / 16) + 4 * (n % 16) + 4;
        text += &format!(
            "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{}/24\"\n",
            n + 1
        );
    }
    p4rack_codegen::Rack::parse(&text, "r.toml").unwrap()
}

#[test]
fn rsvs_that_the_ports_between_pipes_do_not_carry_are_refused() {
    for arch in CHIPS {
        for k in [2, 4] {
            assert!(generate(&full(k), Scheme::PL2_CLOCK, arch).is_ok(), "k = {k}");
        }
        let error = generate(&full(1), Scheme::PL2_CLOCK, arch).unwrap_err().to_string();
        let port = if arch == Arch::Tna { 452 } else { 390 };
        for part in [
            "rack r: pl2-clock is not generated for".to_owned(),
            format!("million RSVs a second through port {port} of pipe 3, which carries"),
            "write pl2.k = 2 or more, or spread fewer and slower ports over the pipes".to_owned(),
        ] {
            assert!(error.contains(&part), "{error}");
        }
        assert!(full(1).on(arch).warnings().iter().any(|warning| warning.contains("million RSVs a second")));
    }
}
