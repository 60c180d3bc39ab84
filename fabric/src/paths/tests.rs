//! Two hosts at two switches, of which one dies.

use super::numbers::LATE_MAX;
use super::*;
use crate::common::Reason;
use crate::ethernet;
use crate::pl2::{self, Mode, Peer};
use p4rack_wire::pl2::Kind;
use std::collections::{BTreeMap, VecDeque};

const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
const RATE_BPS: u64 = 100_000_000;

/// A mistake that the check has to notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    None,
    /// Each copy is delivered.
    Copies,
    /// Hosts use the first switch only.
    OnePath,
    /// A switch counts as silent between any two frames.
    Silence,
}

/// The switches of a run.
#[derive(Clone, Copy, Debug)]
struct Switches {
    /// The one that dies.
    dies: usize,
    /// Time after which the other one answers a reservation.
    grants_after: Nanos,
}

/// This switch dies, and the other one answers immediately.
fn dying(dies: usize) -> Switches {
    Switches { dies, grants_after: Nanos::ZERO }
}

fn pl2(mac: MacAddr) -> Config {
    let alone = pl2::Config::new(mac, Mode::Clock, RATE_BPS);
    let peers = MACS.iter().map(|mac| Peer { mac: *mac, slot: alone.slot, far: false }).collect();
    Config::Pl2(pl2::Config { peers, ..alone })
}

fn plain(mac: MacAddr) -> Config {
    Config::Ethernet(ethernet::Config { peers: MACS.to_vec(), ..ethernet::Config::new(mac, RATE_BPS) })
}

fn frame(to: MacAddr, from: MacAddr, number: u32) -> Vec<u8> {
    [&to.0[..], &from.0, &[0x08, 0x00], &number.to_be_bytes(), &[0; 1_000]].concat()
}

/// The switch's answer to a frame: an RSV comes back as a grant without waits. `None`: it goes to the other host.
fn granted(frame: &mut [u8]) -> bool {
    let is_rsv = frame[12..14] == [0x81, 0x00] && frame[18] == 0x10 | Kind::Rsv as u8;
    if is_rsv {
        frame[..12].rotate_left(6);
        frame[18] = 0x10 | Kind::Grt as u8;
    }
    is_rsv
}

/// Outcome of a run: how often each frame arrived, and frames that the sender refused.
struct Outcome {
    came: BTreeMap<u32, u32>,
    sent: u32,
    refused: u64,
}

impl Outcome {
    /// Frames that were taken and did not arrive, and arrivals beyond the first.
    fn lost_and_doubled(&self) -> (u64, u64) {
        let doubled = self.came.values().map(|times| u64::from(*times) - 1).sum();
        (u64::from(self.sent) - self.refused - self.came.len() as u64, doubled)
    }
}

/// Sends frames at `load_percent` of a link's rate for 400 ms; a switch dies after half of that.
fn run(
    config: fn(MacAddr) -> Config,
    load_percent: u64,
    Switches { dies, grants_after }: Switches,
    plant: Plant,
) -> Outcome {
    let switches = if plant == Plant::OnePath { 1 } else { 2 };
    let host = |mac: MacAddr| {
        let mut paths = Paths::new(&config(mac), (switches, EtherType::PL2_DEFAULT), &MACS, 7, Nanos::ZERO);
        if plant == Plant::Silence {
            paths.silence = Nanos::ZERO;
        }
        paths
    };
    let mut hosts = MACS.map(host);
    let (end, gap) = (Nanos::from_millis(400), Nanos(82_000 * 100 / load_percent));
    let (mut now, mut next, mut out) = (Nanos::ZERO, Nanos::ZERO, Vec::new());
    let mut outcome = Outcome { came: BTreeMap::new(), sent: 0, refused: 0 };
    // Grants that wait: when they come, to which host, and over which switch.
    let mut grants = VecDeque::<(Nanos, [usize; 2], Vec<u8>)>::new();
    loop {
        if next <= now && next < end {
            hosts[0].handle_app(&frame(MACS[1], MACS[0], outcome.sent), now);
            (outcome.sent, next) = (outcome.sent + 1, next + gap);
        }
        while let Some((_, [host, switch], grant)) = grants.pop_front_if(|(at, ..)| *at <= now) {
            hosts[host].handle_link(switch, &grant, now, now);
        }
        for host in 0..2 {
            hosts[host].handle_timeout(now);
            for switch in 0..switches {
                while hosts[host].poll_link(switch, now, &mut out) {
                    if switch == dies && now >= Nanos(end.0 / 2) {
                        continue;
                    }
                    let is_granted = granted(&mut out);
                    let to = if is_granted { host } else { 1 - host };
                    if is_granted && switch != dies && grants_after > Nanos::ZERO {
                        grants.push_back((now + grants_after, [to, switch], out.clone()));
                    } else {
                        hosts[to].handle_link(switch, &out, now, now);
                    }
                }
            }
            if plant == Plant::Copies && host == 1 {
                for machine in &mut hosts[1].machines {
                    while machine.poll_app(&mut out) {
                        *outcome.came.entry(number(&out[Shim::BYTES..])).or_default() += 1;
                    }
                }
            }
            while hosts[host].poll_app(&mut out) {
                assert_eq!(out.len(), 1_018, "without its number");
                *outcome.came.entry(number(&out)).or_default() += 1;
            }
        }
        let waits = grants.front().map(|(at, ..)| *at).into_iter().chain((next < end).then_some(next));
        let due = hosts.iter().filter_map(Paths::next_timeout).chain(waits).min();
        let Some(due) = due.filter(|_| now < Nanos::from_secs(2)) else { break };
        now = now.max(due);
    }
    let one_path = || hosts[0].machines()[0].stats().app_frames_dropped();
    outcome.refused = hosts[0].counters().map_or_else(one_path, |counters| counters.refused);
    outcome
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])
}

/// Each frame that was taken arrives once, whichever switch dies, and whether or not the link carries all frames.
#[test]
fn a_switch_that_dies_takes_no_frame_with_it_and_no_frame_comes_twice() {
    for config in [pl2 as fn(MacAddr) -> Config, plain] {
        for (load_percent, dies) in [(60, 0), (60, 1), (300, 0), (300, 1)] {
            let outcome = run(config, load_percent, dying(dies), Plant::None);
            assert_eq!(outcome.lost_and_doubled(), (0, 0), "{load_percent} %, switch {dies}");
            assert_eq!(outcome.refused > 0, load_percent > 100, "{load_percent} %: {}", outcome.refused);
            assert!(outcome.came.len() > 2_500, "{}", outcome.came.len());
        }
    }
}

#[test]
fn the_check_notices_planted_mistakes() {
    let (lost, doubled) = run(pl2, 60, dying(0), Plant::Copies).lost_and_doubled();
    assert!(lost == 0 && doubled > 1_000, "{lost} lost, {doubled} twice");
    let (lost, doubled) = run(pl2, 60, dying(0), Plant::OnePath).lost_and_doubled();
    assert!(lost > 100 && doubled == 0, "{lost} lost, {doubled} twice");
    // The other switch is slow, so its machine's queue is full when this one dies.
    for dies in [0, 1] {
        let slow = Switches { dies, grants_after: Nanos::from_millis(1) };
        let outcome = run(pl2, 80, slow, Plant::None);
        assert_eq!(outcome.lost_and_doubled(), (0, 0), "switch {dies}");
        assert!(outcome.refused > 0 && outcome.came.len() > 1_000, "{}", outcome.came.len());
        let (lost, doubled) = run(pl2, 80, slow, Plant::Silence).lost_and_doubled();
        assert!(lost > 20 && doubled == 0, "switch {dies}: {lost} lost, {doubled} twice");
    }
}

/// Three hosts at two switches, and the frames of the first one's machines.
fn crowded() -> (Paths, MacAddr) {
    let third = MacAddr([2, 0, 0, 0, 0, 3]);
    let peers = vec![MACS[0], MACS[1], third];
    let mut config = ethernet::Config { peers: peers.clone(), ..ethernet::Config::new(MACS[0], RATE_BPS) };
    config.station.total_limit_frames = 10;
    let paths = Paths::new(&Config::Ethernet(config), (2, EtherType::PL2_DEFAULT), &peers, 7, Nanos::ZERO);
    (paths, third)
}

/// A machine may be full of frames to another host.
#[test]
fn all_machines_take_a_frame_or_none_whatever_is_full() {
    for drained in [0, 1] {
        let (mut paths, third) = crowded();
        let (mut now, mut out) = (Nanos::ZERO, Vec::new());
        (0..10).for_each(|n| paths.handle_app(&frame(third, MACS[0], n), now));
        for _ in 0..100 {
            now += Nanos::from_micros(10);
            paths.handle_timeout(now);
            while paths.poll_link(drained, now, &mut out) {}
        }
        assert_eq!([0, 1].map(|nth| paths.machines[nth].backlog_frames() > 0), [drained == 1, drained == 0]);
        paths.handle_app(&frame(MACS[1], MACS[0], 10), now);
        let counters = paths.counters().unwrap();
        assert_eq!((counters.numbered, counters.refused, counters.partly_taken), (10, 1, 0), "{drained}");
        let dropped = |nth: usize| paths.machines[nth].stats().dropped(Reason::TotalFull);
        assert_eq!([0, 1].map(dropped), [u64::from(drained == 1), u64::from(drained == 0)]);
    }
}

/// A port that brings anything but frames of the other hosts belongs to no switch that carries theirs.
#[test]
fn a_switch_is_heard_by_what_belongs_to_the_rack() {
    let strangers = MacAddr([2, 0, 0, 0, 0, 9]);
    let truncated = frame(MACS[0], MACS[1], 0)[..10].to_vec();
    for (noise, is_heard) in [
        (frame(MACS[0], MACS[1], 0), true),
        (frame(MacAddr::BROADCAST, strangers, 0), false),
        (frame(strangers, MACS[1], 0), false),
        (truncated, false),
    ] {
        let (mut paths, _) = crowded();
        let (mut now, mut out) = (Nanos::ZERO, Vec::new());
        for n in 0..1_000 {
            now += Nanos::from_millis(1);
            paths.handle_link(0, &noise, now, now);
            while paths.poll_app(&mut out) {}
            paths.handle_timeout(now);
            // Nothing leaves over the first link.
            while paths.poll_link(1, now, &mut out) {}
            paths.handle_app(&frame(MACS[1], MACS[0], n), now);
        }
        let counters = paths.counters().unwrap();
        assert_eq!(counters.refused > 900, is_heard, "{counters:?}");
    }
}

/// Broadcasts, and frames without a number, of unknown hosts, or from a host that has started again.
#[test]
fn what_is_not_from_a_known_host_with_a_number_is_dropped_and_counted() {
    let paths = |mac, seed| Paths::new(&plain(mac), (2, EtherType::PL2_DEFAULT), &MACS, seed, Nanos::ZERO);
    let (mut from, mut to) = (paths(MACS[0], 1), paths(MACS[1], 1));
    let mut out = Vec::new();
    let mut now = Nanos::ZERO;
    let mut cross = |from: &mut Paths, to: &mut Paths, frame: &[u8]| {
        now += Nanos::from_secs(1);
        from.handle_app(frame, now);
        for switch in 0..2 {
            while from.poll_link(switch, now, &mut out) {
                to.handle_link(switch, &out, now, now);
            }
        }
        std::iter::from_fn(|| to.poll_app(&mut out).then_some(())).count()
    };
    assert_eq!(cross(&mut from, &mut to, &frame(MacAddr::BROADCAST, MACS[0], 1)), 1);
    assert_eq!(cross(&mut from, &mut to, &frame(MACS[1], MACS[0], 1)), 1);
    let mut again = paths(MACS[0], 99);
    assert_eq!(cross(&mut again, &mut to, &frame(MACS[1], MACS[0], 1)), 1, "it has started again");
    to.handle_link(0, &frame(MACS[1], MACS[0], 1), Nanos::ZERO, Nanos::ZERO);
    assert!(!to.poll_app(&mut Vec::new()));
    let counters = to.counters().unwrap();
    assert_eq!((counters.first, counters.copies, counters.unnumbered), (2, 3, 1));
    from.handle_app(&[0; 5], Nanos::ZERO);
    assert_eq!((from.counters().unwrap().numbered, from.machines()[0].stats().app_frames_dropped()), (1, 1));
}

/// A switch was dead for long, and then brings what has waited in a host.
#[test]
fn copies_that_come_late_are_copies_however_late() {
    let numbers = |mac, seed| Numbers::new(EtherType::PL2_DEFAULT, mac, &MACS, seed);
    let (mut from, mut to, mut out) = (numbers(MACS[0], 1), numbers(MACS[1], 2), Vec::new());
    let mut late = Vec::new();
    for n in 0..100_000 {
        from.number(&frame(MACS[1], MACS[0], n), &mut out).unwrap();
        late.extend((n == 50).then(|| out.clone()));
        assert!(to.is_first(&mut out), "{n}");
    }
    assert!(!to.is_first(&mut late[0].clone()));
    // The host starts again; copies of its frames from before still come.
    let mut again = numbers(MACS[0], 3);
    for n in 0..10 {
        again.number(&frame(MACS[1], MACS[0], n), &mut out).unwrap();
        assert!(to.is_first(&mut out.clone()) && !to.is_first(&mut out), "{n}");
        assert!(!to.is_first(&mut late[0].clone()));
    }
    assert_eq!((to.counters.first, to.counters.copies), (100_010, 21));
}

/// A host that takes frames of another one's starts.
struct Starts {
    to: Numbers,
    out: Vec<u8>,
}

impl Starts {
    fn new() -> Starts {
        Starts { to: Numbers::new(EtherType::PL2_DEFAULT, MACS[1], &MACS, 2), out: Vec::new() }
    }

    /// Takes the next frames of a start. Returns how many were new.
    fn take(&mut self, from: &mut Numbers, frames: u32) -> u32 {
        let mut new = 0;
        for n in 0..frames {
            from.number(&frame(MACS[1], MACS[0], n), &mut self.out).unwrap();
            new += u32::from(self.to.is_first(&mut self.out));
        }
        new
    }

    /// The next frame of a start.
    fn next_frame(&mut self, from: &mut Numbers) -> Vec<u8> {
        from.number(&frame(MACS[1], MACS[0], 0), &mut self.out).unwrap();
        self.out.clone()
    }
}

#[test]
fn copies_of_any_earlier_start_cut_no_host_off() {
    let mut starts = Starts::new();
    let mut from = [0, 1, 2, 3].map(|seed| Numbers::new(EtherType::PL2_DEFAULT, MACS[0], &MACS, seed));
    let mut late = Vec::new();
    for (start, from) in from.iter_mut().enumerate() {
        late.push(starts.next_frame(from));
        // Many frames have come since the start, or hardly any.
        for frames in [1, 5_000] {
            assert_eq!(starts.take(from, frames), frames, "start {start}");
            for copy in &late[..start] {
                assert!(!starts.to.is_first(&mut copy.clone()), "start {start}");
                assert_eq!(starts.take(from, 10), 10, "start {start}");
            }
        }
    }
}

#[test]
fn a_host_that_draws_the_same_byte_again_is_cut_off_for_no_more_than_may_be_late() {
    let with = |start: u8, next: u32| {
        let mut numbers = Numbers::new(EtherType::PL2_DEFAULT, MACS[0], &MACS, 1);
        (numbers.start, numbers.next) = (start, vec![next; 3]);
        numbers
    };
    // Its numbers begin anywhere.
    for (next, lost) in [(1 << 31, 0), (3 << 30, 0), (1_000, LATE_MAX), (u32::MAX - 100_000, LATE_MAX)] {
        let mut starts = Starts::new();
        assert_eq!(starts.take(&mut with(5, 10_000), 3_000), 3_000);
        assert_eq!(starts.take(&mut with(5, next), 20_000), 20_000 - lost, "from {next}");
        // The byte of the start before the last one.
        assert_eq!(starts.take(&mut with(6, 10_000), 3_000), 3_000);
        let mut again = with(5, next.wrapping_sub(1 << 20));
        assert_eq!(starts.take(&mut again, 20_000), 20_000 - LATE_MAX, "before {next}");
    }
}
