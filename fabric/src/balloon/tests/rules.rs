//! The promises of the service and the nodes, one by one.

use super::*;

#[test]
fn an_extent_goes_round() {
    let mut rig = open(config(), &[8]);
    let lent = rig.reserve(A, 1, 2);
    assert_eq!((lent.extent.place, lent.extent.bytes), (Place { node: 0, start: 0 }, 2 * UNIT));
    assert_eq!(rig.reserve(A, 1, 2), lent, "a copy of the request gets the same");
    assert_eq!(refused(&mut rig, A, reserve(1, 4)), Refusal::Number);
    assert_eq!(rig.ask(A, Ask::Online(lent.extent)), Reply::Done);
    assert_eq!(refused(&mut rig, A, Ask::Return(lent.extent)), Refusal::Online);
    assert_eq!(refused(&mut rig, B, Ask::Return(lent.extent)), Refusal::NotHeld);
    let Reply::Renewed(_, all) = rig.ask(A, Ask::Renew) else { panic!("it is renewed") };
    assert_eq!(all, [Lent { is_online: true, ..lent.clone() }]);
    assert!(rig.nodes[0].1.write(&lent.access, 1, 77));
    assert_eq!(rig.ask(A, Ask::Offline(lent.extent)), Reply::Done);
    assert_eq!(rig.ask(A, Ask::Return(lent.extent)), Reply::Done);
    assert!(!rig.nodes[0].1.write(&lent.access, 1, 78), "its key is revoked");
    assert_eq!((rig.free_bytes(), &rig.nodes[0].1.words[..]), (8 * UNIT, &[0; 8][..]));
    assert_eq!(refused(&mut rig, A, reserve(1, 2)), Refusal::Number, "a late copy reserves nothing");
    let next = rig.reserve(B, 1, 2);
    assert_eq!(next.extent.place, lent.extent.place);
    assert_eq!(refused(&mut rig, A, Ask::Return(lent.extent)), Refusal::NotHeld, "nor returns anything");
    for bytes in [0, 1, UNIT / 2, 3 * UNIT, 2 * EXTENT_BYTES_MAX, u64::MAX] {
        assert_eq!(refused(&mut rig, A, Ask::Reserve { number: 9, bytes }), Refusal::Bytes);
    }
}

#[test]
fn quotas_limit_and_keep() {
    let quota =
        |reserved: u64, limit: u64| Quota { reserved_bytes: reserved * UNIT, limit_bytes: limit * UNIT };
    let quotas = [(1, quota(0, 4)), (2, quota(5, 8))].into();
    let mut rig = open(Config { quotas, ..config() }, &[8]);
    assert_eq!(refused(&mut rig, A, reserve(1, 4)), Refusal::NoRoom, "5 of 8 are kept for the other");
    rig.reserve(A, 2, 2);
    rig.reserve(A, 3, 1);
    assert_eq!(refused(&mut rig, A, reserve(4, 1)), Refusal::NoRoom);
    rig.reserve(B, 1, 4);
    rig.reserve(B, 2, 1);
    assert_eq!(refused(&mut rig, A, reserve(5, 2)), Refusal::Quota);
    assert_eq!(refused(&mut rig, B, reserve(3, 4)), Refusal::Quota);
    assert_eq!((refused(&mut rig, B, reserve(4, 1)), rig.free_bytes()), (Refusal::NoRoom, 0));
    // Bytes that a compute node returned are reserved for it again.
    assert_eq!(rig.ask(B, Ask::Close), Reply::Done);
    assert_eq!((refused(&mut rig, A, reserve(6, 1)), rig.free_bytes()), (Refusal::NoRoom, 5 * UNIT));
}

#[test]
fn a_memory_node_that_goes_offline_lends_nothing_more_and_holders_move_away() {
    let quotas = [(1, Quota { reserved_bytes: 0, limit_bytes: 4 * UNIT })].into();
    let mut rig = open(Config { quotas, ..Config::new(2) }, &[8, 8]);
    let lent = rig.reserve(A, 1, 4);
    assert_eq!((lent.extent.place.node, lent.leaves), (0, false));
    assert!(rig.service.set_leaving(0, true) && !rig.service.set_leaving(2, true));
    let leaving: Vec<bool> = rig.service.nodes().iter().map(|node| node.leaves).collect();
    assert_eq!(leaving, [true, false]);
    let Reply::Renewed(_, all) = rig.ask(A, Ask::Renew) else { panic!("it is renewed") };
    assert_eq!(all, [Lent { leaves: true, ..lent.clone() }]);
    // What is to move does not count.
    let next = rig.reserve(A, 2, 4);
    assert_eq!((next.extent.place.node, next.leaves), (1, false));
    assert_eq!(refused(&mut rig, A, reserve(3, 1)), Refusal::Quota);
    assert_eq!(rig.reserve(B, 1, 4).extent.place.node, 1);
    assert_eq!(refused(&mut rig, B, reserve(2, 1)), Refusal::NoRoom, "only the other node has room");
    assert!(rig.nodes[0].1.write(&lent.access, 0, 7), "the key stays valid until then");
    assert_eq!(rig.ask(A, Ask::Return(lent.extent)), Reply::Done);
    assert!(!rig.nodes[0].1.write(&lent.access, 0, 8));
    assert_eq!((rig.memory(0).lent_bytes, rig.memory(0).free_bytes), (0, 8 * UNIT));
    assert!(rig.service.set_leaving(0, false));
    assert_eq!(rig.reserve(B, 3, 8).extent.place.node, 0);
}

#[test]
fn a_session_ends_with_its_lease_and_everything_comes_back() {
    let mut rig = open(config(), &[8]);
    let lent = rig.reserve(A, 1, 4);
    rig.wait(Nanos::from_secs(6));
    assert!(matches!(rig.ask(A, Ask::Renew), Reply::Renewed(_, all) if all.len() == 1));
    rig.wait(Nanos::from_secs(6));
    assert_eq!(rig.service.holders().len(), 1, "the other one has not renewed");
    rig.wait(Nanos::from_secs(4));
    assert_eq!((rig.service.holders().len(), rig.free_bytes()), (0, 8 * UNIT));
    assert!(rig.nodes[0].1.read(&lent.access).is_none());
    for ask in [Ask::Renew, reserve(2, 1), Ask::Online(lent.extent), Ask::Open] {
        assert_eq!(refused(&mut rig, A, ask), Refusal::NoSession);
    }
    let again = session(1, 11);
    assert_eq!(rig.ask(again, Ask::Open), Reply::Opened(Nanos::from_secs(10)));
    for ask in [Ask::Renew, Ask::Open] {
        assert_eq!(refused(&mut rig, A, ask), Refusal::OldInstance, "late words of the earlier instance");
    }
    // A compute node that restarts gives up its extents.
    rig.reserve(again, 1, 4);
    assert_eq!(rig.ask(session(1, 12), Ask::Open), Reply::Opened(Nanos::from_secs(10)));
    assert_eq!(rig.free_bytes(), 8 * UNIT);
}

#[test]
fn a_silent_node_keeps_its_extents_out_of_use_and_another_is_asked() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let lent = rig.reserve(A, 1, 4);
    rig.silent.push(0);
    assert_eq!(rig.ask(A, Ask::Return(lent.extent)), Reply::Done);
    let (facts, is_there) = (rig.memory(0), rig.service.nodes()[0].is_there);
    assert_eq!((facts.fencing_bytes, facts.free_bytes, is_there), (4 * UNIT, 0, true));
    assert_eq!(rig.reserve(A, 2, 4).extent.place.node, 1);
    assert_eq!(refused(&mut rig, A, reserve(3, 1)), Refusal::NoRoom);
    for _ in 0..5 {
        rig.wait(Nanos::from_secs(4));
        rig.ask(A, Ask::Renew);
    }
    assert!(!rig.service.nodes()[0].is_there);
    rig.silent.clear();
    rig.wait(Nanos::from_secs(4));
    let (facts, is_there) = (rig.memory(0), rig.service.nodes()[0].is_there);
    assert_eq!((facts.fencing_bytes, facts.free_bytes, is_there), (0, 4 * UNIT, true));
    // A grant without an answer: the other node has no room, so the request is refused in the end.
    rig.ask(A, Ask::Renew);
    rig.silent.push(0);
    let caller = rig.send(A, reserve(4, 4));
    assert_eq!(rig.reply(caller), None);
    rig.wait(Nanos::from_secs(9));
    assert_eq!(rig.reply(caller), Some(Reply::Refused(Refusal::NoRoom)));
    assert_eq!(rig.memory(0).fencing_bytes, 4 * UNIT, "the grant may have been executed");
}

#[test]
fn a_grant_for_a_node_that_does_not_come_back_is_given_up() {
    let mut rig = open(config(), &[4]);
    // It restarts, says so, and is silent from then on.
    let answer = Answer { instance: 999, told: Told::OtherInstance };
    let caller = rig.send_before(A, reserve(1, 1), |rig| {
        rig.service.handle_link(Received::Answer(0, answer), rig.now, rig.now);
        rig.silent.push(0);
    });
    for _ in 0..3 {
        rig.wait(Nanos::from_secs(5));
        rig.ask(A, Ask::Renew);
    }
    assert_eq!(rig.reply(caller), Some(Reply::Refused(Refusal::NoRoom)));
}

#[test]
fn a_request_that_all_nodes_refuse_is_refused_in_the_end() {
    for why in [Why::Late, Why::Full] {
        let moves_max = 3;
        // A node that refuses is asked again a probe later.
        let config = Config { moves_max, probe: Nanos(1), ..Config::new(2) };
        let mut rig = open(config, &[64, 64]);
        let caller = rig.send_before(A, reserve(1, 1), |_| {});
        let mut grants = 0;
        for _ in 0..1_000 {
            rig.now += Nanos::from_millis(1);
            while let Some(sent) = rig.service.poll_link(rig.now, &mut ()) {
                match sent {
                    Sent::Command(to, Command { order: Order::Grant { extent, .. }, instance, .. }) => {
                        grants += 1;
                        assert!(grants <= 1 + moves_max, "{why:?}: it goes on and on");
                        rig.now += Nanos(2);
                        let answer = Answer { instance, told: Told::NotGranted(extent, why) };
                        rig.service.handle_link(Received::Answer(to, answer), rig.now, rig.now);
                    }
                    Sent::Command(..) => {}
                    Sent::Reply(to, reply) => rig.replies.push((to, reply)),
                }
            }
        }
        assert_eq!(rig.reply(caller), Some(Reply::Refused(Refusal::NoNode)), "{why:?}");
    }
}

#[test]
fn what_is_kept_for_a_compute_node_is_kept_from_a_grant_that_moves() {
    let quota = Quota { reserved_bytes: 4 * UNIT, limit_bytes: 8 * UNIT };
    let mut rig = open(Config { quotas: [(2, quota)].into(), ..Config::new(2) }, &[4, 4]);
    rig.silent.push(0);
    let caller = rig.send(A, reserve(1, 4));
    rig.wait(Nanos::from_secs(9));
    assert_eq!(rig.reply(caller), Some(Reply::Refused(Refusal::NoRoom)), "the other node is kept for B");
    assert_eq!(rig.ask(B, Ask::Renew), Reply::Renewed(Nanos::from_secs(10), vec![]));
    assert_eq!(rig.reserve(B, 1, 4).extent.place.node, 1);
}

#[test]
fn an_extent_that_is_being_zeroed_is_asked_for_without_growing_pauses() {
    let mut rig = open(config(), &[4]);
    rig.nodes[0].1 = Dram::new(4, 20, 100);
    let lent = rig.reserve(A, 1, 4);
    assert_eq!(rig.ask(A, Ask::Return(lent.extent)), Reply::Done);
    rig.wait(Nanos(rig.service.config().retry.0 * 21));
    assert_eq!(rig.free_bytes(), 4 * UNIT);
}

#[test]
fn a_grant_that_a_node_refuses_goes_elsewhere() {
    let mut rig = open(Config::new(2), &[4, 4]);
    rig.nodes[0].0 = Node::new(100, 4 * UNIT, 0);
    let join = Command { term: term(1), instance: 0, order: Order::Join { nonce: 0, node: 0 } };
    let (node, dram) = &mut rig.nodes[0];
    node.handle(&join, dram);
    let lent = rig.reserve(A, 1, 2);
    assert_eq!((lent.extent.place.node, rig.service.counters().regranted), (1, 1));
    assert_eq!(rig.free_bytes(), 6 * UNIT);
}

#[test]
fn a_node_that_starts_anew_has_lost_its_extents() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let lost = rig.reserve(A, 1, 4);
    let kept = rig.reserve(A, 2, 4);
    rig.nodes[0] = (Node::new(999, 8 * UNIT, 64), Dram::new(8, 0, 999));
    rig.wait(Nanos::from_secs(2));
    assert_eq!(rig.ask(A, Ask::Renew), Reply::Renewed(Nanos::from_secs(10), vec![kept.clone()]));
    assert_eq!((rig.service.counters().lost, rig.free_bytes()), (1, 8 * UNIT));
    assert_eq!(refused(&mut rig, A, Ask::Return(lost.extent)), Refusal::NotHeld);
    assert_eq!(rig.reserve(A, 3, 8).extent.place.node, 0);
}

#[test]
fn a_grant_that_waits_for_a_node_that_starts_anew_is_given_there() {
    let mut rig = open(config(), &[4]);
    rig.silent.push(0);
    let caller = rig.send(A, reserve(1, 4));
    rig.nodes[0] = (Node::new(999, 4 * UNIT, 64), Dram::new(4, 0, 999));
    rig.silent.clear();
    rig.wait(Nanos::from_secs(2));
    let reply = rig.reply(caller);
    assert!(matches!(reply, Some(Reply::Reserved(_))), "it has room for it: {reply:?}");
}

#[test]
fn a_node_takes_no_command_that_is_too_late() {
    let (mut node, mut dram) = (Node::new(7, 4 * UNIT, 64), Dram::new(4, 1, 7));
    let at = |start: u64, units: u64, number: u64| Extent {
        place: Place { node: 0, start: start * UNIT },
        bytes: units * UNIT,
        epoch: Epoch { term: term(2), number },
    };
    let mut told = |of, order| node.handle(&Command { term: term(of), instance: 7, order }, &mut dram).told;
    let grant = |extent| Order::Grant { extent, session: A, number: 1 };
    assert!(
        matches!(told(2, Order::Join { nonce: 1, node: 0 }), Told::Joined(report) if report.extents.is_empty())
    );
    assert!(matches!(told(2, grant(at(0, 2, 1))), Told::Granted(..)));
    assert!(matches!(told(2, grant(at(0, 2, 1))), Told::Granted(..)), "a copy");
    assert_eq!(told(1, Order::Fence(at(0, 2, 9))), Told::Stale(term(2)));
    for other in [at(0, 1, 5), at(1, 1, 5), at(0, 4, 5), at(0, 2, 5)] {
        assert_eq!(told(2, grant(other)), Told::NotGranted(other, Why::Taken));
    }
    for other in [at(0, 1, 5), at(1, 2, 5), at(0, 4, 5)] {
        assert_eq!(told(2, Order::Fence(other)), Told::Refused(other));
        assert_eq!(told(2, Order::Zero(other)), Told::Refused(other));
    }
    assert_eq!(told(2, Order::Zero(at(0, 2, 3))), Told::Refused(at(0, 2, 3)), "it is not fenced");
    assert_eq!(told(2, Order::Fence(at(0, 2, 3))), Told::Fenced(at(0, 2, 3)));
    assert_eq!(told(2, Order::Fence(at(0, 2, 2))), Told::Refused(at(0, 2, 2)));
    assert_eq!(told(2, grant(at(0, 2, 1))), Told::NotGranted(at(0, 2, 1), Why::Late));
    assert_eq!(told(2, Order::Zero(at(0, 2, 3))), Told::Zeroing(at(0, 2, 3)));
    assert_eq!(told(2, Order::Zero(at(0, 2, 3))), Told::Zeroed(at(0, 2, 3)));
    assert_eq!(told(2, Order::Zero(at(0, 2, 3))), Told::Zeroed(at(0, 2, 3)), "a copy");
    assert_eq!(told(2, grant(at(2, 1, 2))), Told::NotGranted(at(2, 1, 2), Why::Late), "below the floor");
    // A fence that overtakes its grant.
    assert_eq!(told(2, Order::Fence(at(2, 1, 6))), Told::Fenced(at(2, 1, 6)));
    assert_eq!(told(2, grant(at(2, 1, 4))), Told::NotGranted(at(2, 1, 4), Why::Late));
    for outside in [at(4, 1, 9), at(3, 2, 9), at(0, 3, 9), at(u64::MAX / UNIT, 2, 9)] {
        assert_eq!(told(2, grant(outside)), Told::NotGranted(outside, Why::Full));
    }
    // Of another request, in the same epoch.
    assert!(matches!(told(2, grant(at(0, 1, 9))), Told::Granted(..)));
    let other = Order::Grant { extent: at(0, 1, 9), session: B, number: 1 };
    assert_eq!(told(2, other), Told::NotGranted(at(0, 1, 9), Why::Taken));
    for (instance, of) in [(8, 2), (7, 3)] {
        let command = Command { term: term(of), instance, order: grant(at(1, 1, 10)) };
        let answer = node.handle(&command, &mut dram);
        assert_eq!(answer, Answer { instance: 7, told: Told::OtherInstance }, "nor one that is not for it");
    }
}

#[test]
fn reports_that_no_node_gives_are_not_believed() {
    let mut service = Balloon::new(config(), term(5), Nanos::ZERO).unwrap();
    let reported = |start: u64, bytes: u64, of| Reported {
        start,
        bytes,
        epoch: Epoch { term: term(of), number: 1 },
        lent: None,
    };
    let mut nonsense = 0;
    for (bytes, extents) in [
        (UNIT + 1, vec![]),
        (4 * NODE_BYTES_MAX, vec![]),
        (4 * UNIT, vec![reported(0, 3 * UNIT, 1)]),
        (4 * UNIT, vec![reported(1, UNIT, 1)]),
        (4 * UNIT, vec![reported(4 * UNIT, UNIT, 1)]),
        (4 * UNIT, vec![reported(0, UNIT, 5)]),
        (4 * UNIT, vec![reported(UNIT, UNIT, 1), reported(0, UNIT, 1)]),
        (4 * UNIT, vec![reported(0, 2 * UNIT, 1), reported(UNIT, UNIT, 1)]),
    ] {
        let now = Nanos::from_secs(1 + nonsense);
        let Some(Sent::Command(0, Command { order: Order::Join { nonce, .. }, .. })) =
            service.poll_link(now, &mut ())
        else {
            panic!("it asks again")
        };
        let told = Told::Joined(Report { nonce, bytes, extents });
        service.handle_link(Received::Answer(0, Answer { instance: 3, told }), now, now);
        nonsense += 1;
        assert_eq!((service.counters().nonsense, service.is_serving()), (nonsense, false));
    }
}

#[test]
fn what_finds_no_room_is_refused_or_dropped_and_counted() {
    let config = Config { extents_max: 2, holders_max: 2, numbers_max: 2, replies_max: 3, ..config() };
    let mut rig = open(config, &[8]);
    assert_eq!(refused(&mut rig, session(3, 1), Ask::Open), Refusal::Full);
    rig.ask(B, Ask::Close);
    assert!(matches!(rig.ask(session(3, 1), Ask::Open), Reply::Opened(_)), "one without a session goes");
    for number in 1..8 {
        let lent = rig.reserve(A, number, 1);
        rig.ask(A, Ask::Return(lent.extent));
    }
    for number in 1..8 {
        assert_eq!(refused(&mut rig, A, reserve(number, 1)), Refusal::Number);
    }
    rig.reserve(A, 8, 1);
    rig.reserve(A, 9, 1);
    assert_eq!(refused(&mut rig, A, reserve(10, 1)), Refusal::Full);
    rig.service = Balloon::new(Config { held_max: 1, ..Config::new(1) }, term(2), rig.now).unwrap();
    rig.settle();
    assert_eq!(refused(&mut rig, A, reserve(11, 1)), Refusal::Full, "a compute node has its own limit");
    rig.service = Balloon::new(Config { replies_max: 3, ..Config::new(1) }, term(3), rig.now).unwrap();
    rig.settle();
    for caller in 1_000..1_005 {
        let request = Received::Request(caller, Request { session: A, ask: Ask::Renew });
        rig.service.handle_link(request, rig.now, rig.now);
    }
    assert_eq!(rig.service.counters().overflows, 2);
    rig.settle();
    assert_eq!(rig.replies.len(), 3);
}

#[test]
fn a_configuration_without_sense_is_refused() {
    let fails = |config: Config| Balloon::new(config, term(1), Nanos::ZERO).unwrap_err().to_string();
    assert!(fails(Config::new(0)).contains("balloon nodes: is 0"));
    assert!(fails(Config { lease: Nanos::ZERO, ..config() }).contains("lease"));
    let quota = Quota { reserved_bytes: 2, limit_bytes: 1 };
    assert!(fails(Config { quotas: [(1, quota)].into(), ..config() }).contains("raise the limit"));
    let quota = Quota { reserved_bytes: 1, limit_bytes: 1 };
    assert!(fails(Config { quota, ..config() }).contains("name them in quotas"));
}
