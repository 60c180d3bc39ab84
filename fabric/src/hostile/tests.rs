use super::*;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2;

const RATE: u64 = 100_000_000;

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn config(attack: Attack) -> Config {
    Config {
        attack,
        mac: mac(9),
        victim: mac(1),
        others: (1..=5).map(mac).collect(),
        ether_type: EtherType::PL2_DEFAULT,
        vid: 5,
        cells: 2,
        k: 4,
        shim: true,
        rate_bps: RATE,
        wait_unit: Nanos(1),
        frame_max: 9_216,
        catch_up: Nanos::ZERO,
    }
}

/// All frames within a time span, with their times. Each RSV is granted immediately, for a later time.
fn run(attack: Attack, until: Nanos) -> Vec<(Nanos, Vec<u8>)> {
    let mut host = Hostile::new(config(attack), 7, Nanos::ZERO);
    let (mut now, mut out, mut all) = (Nanos::ZERO, Vec::new(), Vec::new());
    while now < until {
        while host.poll_link(now, &mut out).is_some() {
            all.push((now, out.clone()));
            if let Some(rsv) = host.frames.control(&out).filter(|control| control.kind == Kind::Rsv as u8) {
                let grant = Control { kind: Kind::Grt as u8, send_wait: 3_000_000, recv_wait: 7, ..rsv };
                let mut frame = Vec::new();
                host.frames.emit(&mut frame, mac(9), mac(1), grant);
                host.handle_link(&frame, now, now);
            }
        }
        now = host.next_timeout().unwrap_or(Nanos::MAX).max(now + Nanos(1));
    }
    all
}

fn vlan(frame: &[u8]) -> Option<Vlan> {
    (Ethernet::parse(frame).ok()?.ether_type == EtherType::VLAN).then(|| Vlan::parse(&frame[14..]).unwrap())
}

#[test]
fn each_has_a_name_and_fills_its_link_but_no_more() {
    for attack in Attack::ALL {
        assert_eq!(attack.name().parse(), Ok(attack));
        let until = Nanos::from_millis(200);
        let frames = run(attack, until);
        let bytes: u64 = frames.iter().map(|(_, frame)| wire_bytes(frame.len() as u64)).sum();
        let share = bytes as f64 * 8e9 / RATE as f64 / until.0 as f64;
        assert!(share < 1.01, "{attack}: {share}");
        let waits = [Attack::Late, Attack::Hoard, Attack::Overlong, Attack::Twice].contains(&attack);
        assert!(waits || share > 0.99, "{attack}: {share}");
        assert!(frames.iter().all(|(_, frame)| frame.len() >= 14 && frame.len() <= 9_216), "{attack}");
    }
    assert!("nonsense".parse::<Attack>().unwrap_err().contains("rsv-flood"));
}

#[test]
fn an_early_sender_sends_as_much_as_it_reserves_at_once_in_both_halves() {
    let frames = run(Attack::Early, Nanos::from_millis(50));
    let tags: Vec<Vlan> = frames.iter().map(|(_, frame)| vlan(frame).unwrap()).collect();
    for (nth, tag) in tags.iter().enumerate() {
        assert_eq!(tag.pcp == pl2::PCP_CONTROL, nth % 5 == 0);
    }
    assert_eq!((tags[1].vid, tags[6].vid, tags[11].vid), (6, 5, 6));
    assert!(frames.iter().any(|(_, frame)| frame.len() > 1_500));
}

#[test]
fn an_overlong_sender_waits_its_turn() {
    let frames = run(Attack::Overlong, Nanos::from_millis(50));
    let first_data = frames.iter().position(|(_, frame)| frame.len() > 60).unwrap();
    assert_eq!((first_data, frames[first_data].1.len()), (1, 9_216));
    assert!(frames[first_data].0 >= Nanos(3_000_000), "{}", frames[first_data].0);
    assert!(frames[first_data..first_data + 4].iter().all(|(_, frame)| frame.len() == 9_216));
    assert!(frames[first_data + 4].1.len() == 60, "and reserves again");
}

#[test]
fn a_burst_sent_twice_follows_its_rsv_and_comes_again_in_its_slots() {
    let frames = run(Attack::Twice, Nanos::from_millis(50));
    let tag = |nth: usize| vlan(&frames[nth].1).unwrap();
    assert_eq!((tag(0).pcp, tag(1).pcp), (pl2::PCP_CONTROL, pl2::PCP_SCHEDULED));
    assert!((1..5).all(|nth| tag(nth).dei && tag(nth).vid == 5));
    assert!((5..9).all(|nth| !tag(nth).dei && tag(nth).vid == 5 && frames[nth].0 >= Nanos(3_000_000)));
    assert_eq!((tag(9).pcp, tag(10).vid, tag(10).dei), (pl2::PCP_CONTROL, 6, true), "the other half is next");
}

#[test]
fn a_replayer_sends_what_it_sent_and_heard_and_makes_grants_up() {
    let frames = run(Attack::Replay, Nanos::from_millis(50));
    let kind = |frame: &[u8]| frame[18] & 0xf;
    let later = &frames[LEARN as usize..];
    assert!(later.iter().any(|(_, frame)| kind(frame) == Kind::Rsv as u8));
    assert!(later.iter().any(|(_, frame)| kind(frame) == Kind::Grt as u8 && frame[..6] == mac(9).0));
    assert!(later.iter().any(|(_, frame)| kind(frame) == Kind::Grt as u8 && frame[..6] != mac(9).0));
}

/// A frame in words: its destination, and its content.
fn words(frame: &[u8]) -> String {
    let frames = Frames::new(&config(Attack::Early));
    let to = if frame[..6] == [0xff; 6] { "all".into() } else { format!("{}", frame[5]) };
    let len = frame.len();
    match (frames.control(frame), vlan(frame)) {
        (Some(it), _) => format!("rsv of {} in {} to {to}", it.demand, it.cell),
        (None, Some(tag)) => {
            format!("{} of {len} in {} to {to}", if tag.dei { "early" } else { "data" }, tag.vid - 5)
        }
        (None, None) => format!("plain of {len} to {to}"),
    }
}

/// The first frames of each, with K = 4 and two cells.
#[test]
fn each_sends_what_its_name_says() {
    let full = Frames::new(&config(Attack::Early)).full();
    let data = |kind: &str, cell: u8| format!("{kind} of {full} in {cell} to 1");
    let rsv = |cell: u8, to: u8| format!("rsv of 4 in {cell} to {to}");
    let burst = |cell| (0..4).map(move |_| data("data", cell));
    let late = [rsv(0, 1), rsv(1, 1)].into_iter().chain(burst(0)).chain(burst(1)).chain([rsv(0, 1)]);
    for (attack, expected) in [
        (Attack::RsvFlood, vec![rsv(0, 1), rsv(1, 1), rsv(0, 2), rsv(1, 2), rsv(0, 3)]),
        (Attack::ScheduledFlood, vec![data("data", 0), data("data", 1), data("data", 0)]),
        (Attack::UnsolicitedFlood, vec![data("early", 0), data("early", 1), data("early", 0)]),
        (Attack::Late, late.collect()),
        (Attack::Hoard, vec![rsv(0, 1), rsv(1, 1), rsv(0, 1)]),
        (Attack::BestEffortFlood, vec!["plain of 1514 to 1".into(); 3]),
        (Attack::Broadcast, vec!["plain of 1514 to all".into(); 3]),
    ] {
        let frames = run(attack, Nanos::from_millis(50));
        let said: Vec<String> = frames.iter().take(expected.len()).map(|(_, frame)| words(frame)).collect();
        assert_eq!(said, expected, "{attack}");
    }
    // One that hoards leaves its link free for two frames, one that collects for a hundred.
    let times = |attack| run(attack, Nanos::from_millis(50)).iter().map(|(at, _)| at.0).collect::<Vec<_>>();
    let (hoard, late) = (times(Attack::Hoard), times(Attack::Late));
    let (byte_ns, wire) = (80, wire_bytes(full as u64));
    assert!((hoard[1] - hoard[0]).abs_diff(byte_ns * (84 + 2 * wire)) < 100, "{hoard:?}");
    assert!((late[1] - late[0]).abs_diff(byte_ns * (84 + 100 * wire)) < 100, "{late:?}");
    assert!((late[2] - late[1]).abs_diff(byte_ns * (84 + 100 * wire)) < 100, "{late:?}");
    assert!((late[3] - late[2]).abs_diff(byte_ns * wire) < 100, "{late:?}");
}

#[test]
fn demands_that_make_no_sense_are_of_every_kind() {
    let frames = Frames::new(&config(Attack::Early));
    let of = |attack| {
        let sent = run(attack, Nanos::from_millis(20));
        let one =
            |(_, frame): &(Nanos, Vec<u8>)| frames.control(frame).map(|it| (it.demand, it.cell, frame[5]));
        sent.iter().map(|sent| one(sent).unwrap()).collect::<Vec<_>>()
    };
    let wrong = of(Attack::WrongDemand);
    for demand in [0, 5, 8, DEMAND_MAX] {
        assert!(wrong.iter().any(|one| one.0 == demand), "{demand}");
    }
    assert!(wrong.iter().all(|one| [0, 5, 8, DEMAND_MAX].contains(&one.0)));
    let cells = |odd: usize| wrong.iter().enumerate().filter(move |(nth, _)| nth % 2 == odd);
    assert!(cells(0).all(|(nth, one)| usize::from(one.1) == nth % 2));
    assert!(cells(1).any(|(_, one)| one.1 > 1), "cells that there are not");
    let release = of(Attack::Release);
    assert!(release.iter().enumerate().all(|(nth, one)| (one.0, usize::from(one.1)) == (0, nth % 2)));
    assert!(release.iter().enumerate().all(|(nth, one)| nth % 4 == 0 || one.2 == 1));
    assert!(release.iter().any(|one| one.2 == 4));
}

/// Six kinds of noise in turn.
#[test]
fn garbage_is_of_every_kind() {
    let frames = Frames::new(&config(Attack::Early));
    let sent = run(Attack::Garbage, Nanos::from_millis(100));
    assert!(sent.len() > 60);
    let is_other = |bytes: &[u8]| (1..=5).any(|n| bytes == mac(n).0);
    for (nth, (_, frame)) in sent.iter().enumerate() {
        let (to, from) = (&frame[..6], &frame[6..12]);
        let control = frames.control(frame);
        match nth % 6 {
            0 => assert!(frame.len() >= 60 && frame.iter().any(|byte| *byte != 0), "{nth}"),
            1 => assert!(control.is_some() && is_other(to) && from == mac(9).0, "{nth}"),
            2 => assert!((14..60).contains(&frame.len()) && from == mac(9).0, "{nth}"),
            3 => assert!(frame.len() >= 60 && is_other(to) && from == mac(9).0, "{nth}"),
            4 => assert!(frame[12..14] == [0x81, 0x00] && is_other(to), "{nth}"),
            _ => assert!(control.is_some_and(|it| it.demand == 4) && is_other(from), "{nth}"),
        }
    }
    let len = |(_, frame): &(Nanos, Vec<u8>)| frame.len();
    let (shortest, longest) = (sent.iter().map(len).min().unwrap(), sent.iter().map(len).max().unwrap());
    assert!(shortest < 30 && longest > 1_200, "{shortest} to {longest}");
}

/// The slots of an overlong burst begin with the answer to its own RSV; one that is refused is repeated after a burst's time.
#[test]
fn an_overlong_sender_hears_its_own_answer() {
    let host = || {
        let mut host = Hostile::new(config(Attack::Overlong), 7, Nanos::ZERO);
        let mut out = Vec::new();
        assert!(host.poll_link(Nanos::ZERO, &mut out).is_some());
        let rsv = host.frames.control(&out).unwrap();
        (host, rsv)
    };
    let full = host().0.frames.full_wire_bytes();
    let patience = 80 * (84 + PATIENCE_FRAMES * full);
    for (of_other, send_wait, kind, expected_ns) in [
        (false, 5_000, Kind::Grt, 6_000),
        (false, 0, Kind::Grt, 1_007),
        (true, 5_000, Kind::Grt, patience),
        (false, 5_000, Kind::Notify, patience),
        (false, NOT_NOW, Kind::Grt, 1_000 + 80 * 4 * full),
    ] {
        let (mut host, rsv) = host();
        let id = rsv.id + u32::from(of_other);
        let (mut frame, now) = (Vec::new(), Nanos(1_000));
        let answer = Control { kind: kind as u8, id, send_wait, recv_wait: 7, ..rsv };
        host.frames.emit(&mut frame, mac(9), mac(1), answer);
        host.handle_link(&frame, now, now);
        let due = host.next_timeout().unwrap().0;
        assert!(due.abs_diff(expected_ns) <= 10_000.min(expected_ns / 10), "{due} for {expected_ns}");
    }
}
