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
