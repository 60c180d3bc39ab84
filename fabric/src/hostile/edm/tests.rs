use super::*;
use crate::Machine as _;

fn machine(attack: Attack) -> Machine {
    let mac = |n| MacAddr([2, 0, 0, 0, 0, n]);
    let config = Config {
        attack,
        mac: mac(3),
        victim: mac(1),
        others: vec![mac(1), mac(2)],
        ether_type: EtherType::EDM_DEFAULT,
        lanes: 4,
        demands: 3,
        chunk_bytes: 1_024,
        window: 4,
        key: 1,
        write_key: 5,
        address: 0,
        session: Some(1),
        wait_unit: Nanos(1),
        patience: Nanos::from_millis(2),
        rate_bps: 100_000_000,
        catch_up: Nanos::ZERO,
    };
    Machine::new(config, 1, Nanos::ZERO)
}

fn grant(id: u16, offset: u32, bytes: u32, wait: u32) -> Vec<u8> {
    let mut message = vec![0; Control::BYTES];
    let kind = Kind::Grant as u8;
    Control { version: VERSION, kind, answer: 0, id, offset, bytes, wait }.emit(&mut message);
    to_host(&message)
}

/// The frame that brings a message to the host.
fn to_host(message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let (to, from) = (MacAddr([2, 0, 0, 0, 0, 3]), MacAddr([2, 0, 0, 0, 0, 1]));
    edm::emit_frame(to, from, EtherType::EDM_DEFAULT, message, &mut frame);
    frame
}

/// All frames until `until`. Its first demand is granted as soon as it has left.
fn sent(attack: Attack, until: Nanos) -> Vec<(Kind, Message, usize)> {
    let (mut machine, mut frame, mut all) = (machine(attack), Vec::new(), Vec::new());
    let mut now = Nanos::ZERO;
    while now <= until {
        while machine.poll_link(now, &mut frame).is_some() {
            let Some((_, bytes)) = edm::parse_frame(&frame, EtherType::EDM_DEFAULT) else { continue };
            let Ok(kind) = Kind::of(bytes[0]) else { continue };
            if kind == Kind::Notify && all.is_empty() {
                let id = Control::parse(bytes).unwrap().id;
                machine.handle_link(&grant(id, 0, 4_096, 5_000_000), now, now);
            }
            let mut padded = bytes.to_vec();
            padded.resize(bytes.len().max(Message::BYTES), 0);
            all.push((kind, Message::parse(&padded).unwrap(), frame.len()));
        }
        now += Nanos(500);
    }
    all
}

#[test]
fn each_does_what_its_name_says() {
    for attack in Attack::ALL {
        assert_eq!(attack.name().parse(), Ok(attack));
    }
    assert!("earlier".parse::<Attack>().unwrap_err().contains("there are bulk-read"));
    let data = |of: &[(Kind, Message, usize)]| {
        of.iter().filter(|one| one.0 == Kind::Wreq).map(|one| one.1).collect::<Vec<_>>()
    };
    // An honest host sends at the granted time, an early one now.
    let two = Nanos::from_millis(2);
    assert_eq!(data(&sent(Attack::BulkWrite, two)), []);
    let early = data(&sent(Attack::Early, two));
    assert_eq!(
        early.iter().map(|one| (one.offset, one.bytes)).collect::<Vec<_>>()[..2],
        [(0, 1_024), (1_024, 1_024)]
    );
    let bytewise = data(&sent(Attack::Bytewise, Nanos::from_millis(8)));
    assert!(bytewise.len() > 100 && bytewise.iter().all(|one| one.bytes == 1 && one.key == 5));
    // Keys: of reads, of writes, and wrong ones.
    for (attack, kind, key) in [
        (Attack::BulkRead, Kind::Rreq, 1),
        (Attack::WrongKeyRead, Kind::Rreq, !1),
        (Attack::AtomicFlood, Kind::Rmwreq, 5),
        (Attack::WrongKeyWrite, Kind::Wreq, !1),
        (Attack::DataFlood, Kind::Wreq, 5),
    ] {
        let all = sent(attack, Nanos::from_millis(8));
        let found = all.iter().find(|one| one.0 == kind).unwrap();
        assert_eq!(found.1.key, key, "{attack}");
    }
    // Floods fill the link, others do not.
    let wire = |attack| {
        let sent = sent(attack, two);
        sent.iter().map(|one| overhead::wire_bytes(one.2 as u64)).sum::<u64>()
    };
    assert!(wire(Attack::NotifyFlood) > 24_000 && wire(Attack::ReadFlood) > 24_000);
    assert!(wire(Attack::BulkRead) < 1_200 && wire(Attack::Silent) < 1_200);
}

#[test]
fn without_a_session_it_opens_one_before_it_attacks() {
    let mut machine = machine(Attack::ReadFlood);
    machine.session = None;
    let mut frame = Vec::new();
    let said =
        |frame: &[u8]| Message::parse(edm::parse_frame(frame, EtherType::EDM_DEFAULT).unwrap().1).unwrap();
    assert!(machine.poll_link(Nanos::ZERO, &mut frame).is_some());
    let opening = said(&frame);
    assert_eq!((opening.code, opening.total), (OPEN, SESSION_BYTES));
    let again = Nanos::from_millis(2);
    assert!(
        machine.poll_link(again.saturating_sub(Nanos(1)), &mut frame).is_none(),
        "it waits for the answer"
    );
    assert!(machine.poll_link(again, &mut frame).is_some());
    let second = said(&frame);
    assert_eq!((second.code, second.id), (OPEN, opening.id + 4), "its answer was lost");
    let mut answer = vec![0; Message::BYTES];
    Message { kind: Kind::Rres as u8, bytes: SESSION_BYTES as u16, code: 0, ..second }.emit(&mut answer);
    answer.extend([second.address, 9].iter().flat_map(|word| word.to_be_bytes()));
    let (to, from) = (MacAddr([2, 0, 0, 0, 0, 3]), MacAddr([2, 0, 0, 0, 0, 1]));
    edm::emit_frame(to, from, EtherType::EDM_DEFAULT, &answer, &mut frame);
    let frame_of_answer = frame.clone();
    machine.handle_link(&frame_of_answer, again, again);
    assert!(machine.poll_link(again + Nanos::from_millis(1), &mut frame).is_some());
    assert_eq!((said(&frame).code, said(&frame).start), (0, 9));
}

/// All frames until `until`, with their times.
fn frames(machine: &mut Machine, until: Nanos) -> Vec<(Nanos, Vec<u8>)> {
    let (mut now, mut frame, mut all) = (Nanos::ZERO, Vec::new(), Vec::new());
    while now <= until {
        while machine.poll_link(now, &mut frame).is_some() {
            all.push((now, frame.clone()));
        }
        now = machine.next_timeout().unwrap_or(Nanos::MAX).max(now + Nanos(1));
    }
    all
}

/// Kind, id and announced bytes of each of these messages.
fn messages(frames: &[(Nanos, Vec<u8>)]) -> Vec<(Kind, u16, u32)> {
    let one = |(_, frame): &(Nanos, Vec<u8>)| {
        let (_, bytes) = edm::parse_frame(frame, EtherType::EDM_DEFAULT).unwrap();
        match Kind::of(bytes[0]).unwrap() {
            kind @ (Kind::Notify | Kind::Grant) => {
                Control::parse(bytes).map(|it| (kind, it.id, it.bytes)).unwrap()
            }
            kind => Message::parse(bytes).map(|it| (kind, it.id, it.total)).unwrap(),
        }
    };
    frames.iter().map(one).collect()
}

/// Without grants and answers: a demand in each of the three lanes, and a new one once the host has lost its patience. Floods repeat
/// open demands.
#[test]
fn each_demands_in_all_its_lanes() {
    use Kind::{Notify, Rmwreq, Rreq};
    for (attack, kinds, total, floods) in [
        (Attack::BulkRead, &[Rreq][..], LONG_BYTES, false),
        (Attack::BulkWrite, &[Notify], LONG_BYTES, false),
        (Attack::WindowWrite, &[Notify], 4_096, false),
        (Attack::ReadFlood, &[Rreq], 1_024, true),
        (Attack::WriteFlood, &[Notify], 1_024, true),
        (Attack::WrongKeyRead, &[Rreq], LONG_BYTES, true),
        (Attack::WrongKeyWrite, &[Notify], 1_024, true),
        (Attack::AtomicFlood, &[Rmwreq], 8, true),
        (Attack::Bytewise, &[Notify], 4_096, false),
        (Attack::Early, &[Notify], LONG_BYTES, false),
        (Attack::Silent, &[Notify, Rreq], LONG_BYTES, false),
        (Attack::NotifyFlood, &[Notify], LONG_BYTES, true),
    ] {
        let all = frames(&mut machine(attack), Nanos::from_micros(3_500));
        let of_round = |first: u16| {
            let ids = first..first + 3;
            ids.flat_map(|id| kinds.iter().map(move |kind| (*kind, id, total))).collect::<Vec<_>>()
        };
        let (first, second) = (of_round(4), of_round(8));
        let before: Vec<_> = all.iter().filter(|(at, _)| *at < Nanos::from_millis(2)).cloned().collect();
        let (before, after) = (messages(&before), messages(&all[before.len()..]));
        assert_eq!(before[..first.len()], first, "{attack}");
        if floods {
            assert!(before.len() > 100 && before.iter().all(|one| first.contains(one)), "{attack}");
            assert!(after.iter().all(|one| first.contains(one) || second.contains(one)), "{attack}");
            assert!(second.iter().all(|one| after.contains(one)), "{attack}");
        } else {
            assert_eq!((before, after), (first, second), "{attack}");
        }
    }
}

/// Granted data leaves at the grant's time, chunk by chunk; other grants have no effect. Then the lane is free.
#[test]
fn granted_data_leave_once() {
    let mut host = machine(Attack::WindowWrite);
    let wait = Nanos::from_millis(1);
    let first = frames(&mut host, Nanos::from_micros(100));
    assert_eq!(first.len(), 3);
    let now = Nanos::from_micros(100);
    for other in [grant(8, 0, 4_096, 0), grant(4, 1_024, 1_024, 0), grant(7, 0, 4_096, 0)] {
        host.handle_link(&other, now, now);
    }
    host.handle_link(&grant(4, 0, 2_048, wait.0 as u32), now, now);
    host.handle_link(&grant(4, 0, 2_048, 0), now, now);
    host.handle_link(&grant(4, 2_048, 2_048, 0), now, now);
    let mut frame = Vec::new();
    assert!(host.poll_link(now + wait - Nanos(1), &mut frame).is_none(), "no chunk passes another");
    let (mut now, mut sent) = (now + wait, Vec::new());
    while sent.len() < 5 && now < Nanos::from_millis(5) {
        if host.poll_link(now, &mut frame).is_some() {
            let (_, bytes) = edm::parse_frame(&frame, EtherType::EDM_DEFAULT).unwrap();
            sent.push((Kind::of(bytes[0]).unwrap(), bytes.to_vec()));
        }
        now += Nanos(1_000);
    }
    let offsets: Vec<_> = sent[..4]
        .iter()
        .map(|(kind, bytes)| {
            let chunk = Message::parse(bytes).unwrap();
            assert_eq!((*kind, chunk.id, chunk.total, chunk.start), (Kind::Wreq, 4, 4_096, 1));
            (chunk.offset, chunk.bytes)
        })
        .collect();
    assert_eq!(offsets, [0, 1_024, 2_048, 3_072].map(|offset| (offset, 1_024)));
    let next = Control::parse(&sent[4].1).unwrap();
    assert_eq!((sent[4].0, next.id, next.bytes), (Kind::Notify, 8, 4_096), "it asks again");
}

/// An answer, whole or refused, frees its lane; a part of one does not.
#[test]
fn answers_free_their_lanes() {
    let answer = |id: u16, total: u32, bytes: u16| {
        let (version, kind) = (VERSION, Kind::Rres as u8);
        let mut message = vec![0; Message::BYTES + usize::from(bytes)];
        Message { version, kind, code: 0, id, key: 0, address: 0, total, offset: 0, bytes, start: 1 }
            .emit(&mut message);
        to_host(&message)
    };
    for (answers, frees) in [
        (vec![answer(4, LONG_BYTES, 1_024); 959], false),
        (vec![answer(4, LONG_BYTES, 1_024); 960], true),
        (vec![answer(4, 0, 0)], true),
        (vec![answer(8, 0, 0)], false),
    ] {
        let mut host = machine(Attack::BulkRead);
        assert_eq!(frames(&mut host, Nanos::from_micros(100)).len(), 3);
        let now = Nanos::from_micros(200);
        answers.iter().for_each(|answer| host.handle_link(answer, now, now));
        let more = messages(&frames(&mut host, Nanos::from_micros(1_900)));
        assert_eq!(more, if frees { vec![(Kind::Rreq, 8, LONG_BYTES)] } else { vec![] });
    }
}

#[test]
fn forgeries_and_noise_come_from_anywhere() {
    let (own, others) = ([2, 0, 0, 0, 0, 3], [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]]);
    let forged = frames(&mut machine(Attack::Forged), Nanos::from_millis(5));
    let said = messages(&forged);
    assert!(said.iter().all(|(_, id, _)| *id < 32), "near the ids in use");
    let mut foreign = 0;
    for (nth, ((_, frame), (kind, _, bytes))) in forged.iter().zip(&said).enumerate() {
        let expected = [(Kind::Grant, 1_024), (Kind::Rres, 64), (Kind::Rreq, 64)][nth % 3];
        assert_eq!((*kind, *bytes), expected, "{nth}");
        assert!(others.iter().any(|other| frame[..6] == other[..]), "{nth}");
        assert!(nth % 2 == 1 || frame[6..12] == own, "{nth}");
        foreign += usize::from(others.iter().any(|other| frame[6..12] == other[..]));
    }
    assert_eq!(foreign, forged.len() / 2, "every other one");

    let noise = frames(&mut machine(Attack::Garbage), Nanos::from_millis(20));
    let (mut known, mut of_others) = (0, 0);
    for (nth, (_, frame)) in noise.iter().enumerate() {
        match edm::parse_frame(frame, EtherType::EDM_DEFAULT) {
            Some((_, bytes)) => known += usize::from(Kind::of(bytes[0]).is_ok() && nth % 2 == 0),
            None => of_others += 1,
        }
    }
    assert!(noise.len() > 200);
    assert_eq!((known, of_others), (noise.len().div_ceil(2), noise.len() / 8), "of {}", noise.len());

    let plain = frames(&mut machine(Attack::BestEffortFlood), Nanos::from_millis(5));
    assert!(plain.iter().all(|(_, frame)| frame.len() == 1_514 && frame[12..14] == [0x88, 0xb7]));
    assert!(plain.iter().all(|(_, frame)| frame[..6] == others[0] && frame[6..12] == own));

    let data = frames(&mut machine(Attack::DataFlood), Nanos::from_millis(5));
    let ids: Vec<_> = messages(&data).into_iter().take(4).collect();
    assert_eq!(ids, [0, 1, 2, 0].map(|id| (Kind::Wreq, id, LONG_BYTES)), "without any grant");
    for all in [forged, noise, plain, data] {
        let (last, bytes) =
            (all.last().unwrap().0, |it: &(Nanos, Vec<u8>)| overhead::wire_bytes(it.1.len() as u64));
        let before: u64 = all[..all.len() - 1].iter().map(bytes).sum();
        assert!(last.0.abs_diff(before * 80) < 80 * 100, "the link is full: {before} bytes in {last:?}");
    }
}

#[test]
fn attacks_without_demands_need_no_session() {
    for attack in Attack::ALL {
        let mut without = machine(attack);
        without.session = None;
        let until = Nanos::from_millis(1);
        let same = frames(&mut without, until) == frames(&mut machine(attack), until);
        let asks_nothing =
            [Attack::DataFlood, Attack::Forged, Attack::Garbage, Attack::BestEffortFlood].contains(&attack);
        assert_eq!(same, asks_nothing, "{attack}");
    }
    assert_eq!(format!("{:>10}|", Attack::Early), "     early|", "columns of tables");
}
