//! Two hosts at two switches, of which one dies.

use super::*;
use crate::ethernet;
use crate::pl2::{self, Mode, Peer};
use p4rack_wire::pl2::Kind;
use std::collections::BTreeMap;

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
}

fn pl2(mac: MacAddr) -> Config {
    let alone = pl2::Config::new(mac, Mode::Clock, RATE_BPS);
    let peers = MACS.iter().map(|mac| Peer { mac: *mac, slot: alone.slot }).collect();
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

/// Sends frames at `load_percent` of a link's rate for 400 ms; the switch `dies` after half of that.
fn run(config: fn(MacAddr) -> Config, load_percent: u64, dies: usize, plant: Plant) -> Outcome {
    let switches = if plant == Plant::OnePath { 1 } else { 2 };
    let host =
        |mac: MacAddr| Paths::new(&config(mac), (switches, EtherType::PL2_DEFAULT), &MACS, 7, Nanos::ZERO);
    let mut hosts = MACS.map(host);
    let (end, gap) = (Nanos::from_millis(400), Nanos(82_000 * 100 / load_percent));
    let (mut now, mut next, mut out) = (Nanos::ZERO, Nanos::ZERO, Vec::new());
    let mut outcome = Outcome { came: BTreeMap::new(), sent: 0, refused: 0 };
    loop {
        if next <= now && next < end {
            hosts[0].handle_app(&frame(MACS[1], MACS[0], outcome.sent), now);
            (outcome.sent, next) = (outcome.sent + 1, next + gap);
        }
        for host in 0..2 {
            hosts[host].handle_timeout(now);
            for switch in 0..switches {
                while hosts[host].poll_link(switch, now, &mut out) {
                    if switch == dies && now >= Nanos(end.0 / 2) {
                        continue;
                    }
                    let to = if granted(&mut out) { host } else { 1 - host };
                    hosts[to].handle_link(switch, &out, now, now);
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
        let due = hosts.iter().filter_map(Paths::next_timeout).chain((next < end).then_some(next)).min();
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
            let outcome = run(config, load_percent, dies, Plant::None);
            assert_eq!(outcome.lost_and_doubled(), (0, 0), "{load_percent} %, switch {dies}");
            assert_eq!(outcome.refused > 0, load_percent > 100, "{load_percent} %: {}", outcome.refused);
            assert!(outcome.came.len() > 2_500, "{}", outcome.came.len());
        }
    }
}

#[test]
fn the_check_notices_planted_mistakes() {
    let (lost, doubled) = run(pl2, 60, 0, Plant::Copies).lost_and_doubled();
    assert!(lost == 0 && doubled > 1_000, "{lost} lost, {doubled} twice");
    let (lost, doubled) = run(pl2, 60, 0, Plant::OnePath).lost_and_doubled();
    assert!(lost > 100 && doubled == 0, "{lost} lost, {doubled} twice");
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
