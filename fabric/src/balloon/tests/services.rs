//! Rules that hold when services start, end and replace each other.

use super::*;

#[test]
fn a_service_that_starts_anew_learns_what_is_lent_from_the_nodes() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let lents = [rig.reserve(A, 1, 4), rig.reserve(A, 2, 2), rig.reserve(B, 1, 1)];
    rig.ask(A, Ask::Online(lents[0].extent));
    // A later instance of B opens, and its first one's extent is about to be fenced.
    rig.silent = vec![0, 1];
    rig.ask(session(2, 6), Ask::Open);
    rig.service = Balloon::new(Config::new(2), term(1), rig.now).unwrap();
    rig.settle();
    assert_eq!(refused(&mut rig, A, Ask::Renew), Refusal::Starting);
    rig.silent.clear();
    rig.wait(Nanos::from_secs(1));
    assert!(!rig.service.is_serving(), "the first term was the earlier service's");
    let mut rig = Rig { service: Balloon::new(Config::new(2), term(7), rig.now).unwrap(), ..rig };
    rig.settle();
    assert!(rig.service.is_serving());
    let Reply::Renewed(_, all) = rig.ask(A, Ask::Renew) else { panic!("the session goes on") };
    let as_online = |lent: &Lent| Lent { is_online: true, ..lent.clone() };
    assert_eq!(all, lents[..2].iter().map(as_online).collect::<Vec<_>>());
    assert_eq!(rig.reserve(A, 1, 4), as_online(&lents[0]), "copies of earlier requests, too");
    assert_eq!(rig.free_bytes(), UNIT);
    rig.ask(A, Ask::Offline(lents[0].extent));
    assert_eq!(rig.ask(A, Ask::Return(lents[0].extent)), Reply::Done);
    // The silent compute node loses its extent a lease later.
    rig.wait(Nanos::from_secs(8));
    rig.ask(A, Ask::Renew);
    rig.wait(Nanos::from_secs(3));
    assert_eq!(rig.free_bytes(), 6 * UNIT);
}

#[test]
fn terms_grow_and_a_service_steps_down() {
    let mut rig = open(config(), &[4]);
    rig.reserve(A, 1, 1);
    let mut first = rig.service.clone();
    rig.service = Balloon::new(config(), term(9), rig.now).unwrap();
    rig.settle();
    assert!(rig.service.is_serving());
    // The first one does not know yet, and ends a session.
    std::mem::swap(&mut first, &mut rig.service);
    rig.ask(A, Ask::Close);
    assert_eq!(rig.service.end(), Some(End::Superseded(term(9))));
    assert_eq!(rig.nodes[0].0.counts(), [1, 0], "no node has followed it");
    assert_eq!(refused(&mut rig, A, Ask::Open), Refusal::Superseded);
    // One that starts with a small term takes one beyond.
    rig.service = Balloon::new(config(), term(3), rig.now).unwrap();
    rig.wait(Nanos::from_secs(1));
    assert!(rig.service.is_serving());
    assert_eq!(rig.reserve(A, 2, 1).extent.epoch.term, term(10));
}

#[test]
fn two_services_with_the_same_number_have_different_terms() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let at = |service| Term { number: 50, service };
    let mut small = Balloon::new(Config::new(2), at(3), rig.now).unwrap();
    rig.service = Balloon::new(Config::new(2), at(4), rig.now).unwrap();
    rig.settle();
    assert!(rig.service.is_serving());
    rig.ask(A, Ask::Open);
    let lent = rig.reserve(A, 1, 4);
    // The one with the smaller identity has the same clock, and starts later: it takes a number beyond.
    std::mem::swap(&mut small, &mut rig.service);
    rig.wait(Nanos::from_secs(1));
    assert_eq!((rig.service.is_serving(), rig.service.term()), (true, Term { number: 51, service: 3 }));
    assert!(
        matches!(rig.ask(A, Ask::Renew), Reply::Renewed(_, all) if all == [Lent { is_online: true, ..lent }])
    );
    std::mem::swap(&mut small, &mut rig.service);
    rig.wait(Nanos::from_secs(1));
    assert_eq!(rig.service.end(), Some(End::Superseded(Term { number: 51, service: 3 })));
}

/// Has the node that answers to `number` be the node 0. Silent numbers have no answers.
fn join_first(rig: &mut Rig, number: u16) {
    let sent = std::iter::from_fn(|| rig.service.poll_link(rig.now, &mut ()));
    let commands: Vec<_> = sent.collect();
    for one in commands {
        let Sent::Command(to, command) = one else { continue };
        if rig.silent.contains(&to) {
            continue;
        }
        let at = if to == number { 0 } else { usize::from(to) };
        let (node, dram) = &mut rig.nodes[at];
        let answer = node.handle(&command, dram);
        rig.service.handle_link(Received::Answer(to, answer), rig.now, rig.now);
    }
}

#[test]
fn a_node_that_is_named_twice_ends_a_service_that_starts() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let lent = rig.reserve(A, 1, 1);
    rig.service = Balloon::new(Config::new(3), term(5), rig.now).unwrap();
    join_first(&mut rig, 2);
    assert_eq!(rig.service.end(), Some(End::SameNode(0, 2)));
    assert_eq!(refused(&mut rig, A, Ask::Renew), Refusal::SameNode);
    assert!(rig.nodes[0].1.write(&lent.access, 0, 7), "what is lent stays lent");
}

#[test]
fn a_way_that_leads_to_another_node_takes_nothing_from_it() {
    let mut rig = open(Config::new(2), &[4, 4]);
    let lent = rig.reserve(A, 1, 4);
    // The second node is gone, and its address leads to the first one.
    for _ in 0..3 {
        rig.now += Nanos::from_secs(1);
        join_first(&mut rig, 1);
    }
    let facts = rig.service.nodes()[1];
    assert_eq!((facts.same_as, facts.is_there, rig.service.is_serving()), (Some(0), false, true));
    assert!(rig.nodes[0].1.write(&lent.access, 0, 7));
    assert_eq!(refused(&mut rig, A, reserve(2, 1)), Refusal::NoRoom);
    // It comes back.
    rig.wait(Nanos::from_secs(2));
    assert_eq!((rig.service.nodes()[1].same_as, rig.reserve(A, 3, 4).extent.place.node), (None, 1));
}

#[test]
fn a_node_that_starts_anew_under_its_second_number_ends_the_service() {
    let mut rig = open(Config::new(2), &[4, 4]);
    rig.reserve(A, 1, 1);
    // The second name is found when the service serves already.
    rig.silent.push(1);
    rig.service = Balloon::new(Config::new(2), term(5), rig.now).unwrap();
    rig.wait(Nanos::from_secs(11));
    assert_eq!(rig.service.nodes()[1].memory, None);
    rig.silent.clear();
    rig.now += Nanos::from_secs(1);
    join_first(&mut rig, 1);
    assert_eq!((rig.service.nodes()[1].same_as, rig.service.end()), (Some(0), None));
    // The node restarts, and the question to the second name comes first.
    rig.nodes[0] = (Node::new(999, 4 * UNIT, 64), Dram::new(4, 0, 999));
    rig.silent.push(0);
    rig.now += Nanos::from_secs(1);
    join_first(&mut rig, 1);
    assert!(rig.service.nodes()[1].is_there);
    rig.silent.clear();
    for _ in 0..3 {
        rig.now += Nanos::from_secs(1);
        join_first(&mut rig, 1);
    }
    assert_eq!(rig.service.end(), Some(End::SameNode(0, 1)), "what was lent under the first one is gone");
}

#[test]
fn a_number_that_no_node_has_is_nonsense() {
    let mut service = Balloon::new(config(), term(5), Nanos::ZERO).unwrap();
    for node in [0, 1, u16::MAX] {
        let now = Nanos::from_secs(1 + u64::from(node.min(2)));
        let Some(Sent::Command(0, Command { order: Order::Join { nonce, .. }, .. })) =
            service.poll_link(now, &mut ())
        else {
            panic!("it asks again")
        };
        let told = Told::OtherNumber { nonce, node };
        service.handle_link(Received::Answer(0, Answer { instance: 3, told }), now, now);
    }
    assert_eq!((service.counters().nonsense, service.end()), (3, None));
}

#[test]
fn a_serving_service_adopts_the_sessions_that_a_late_node_reports() {
    let mut rig = open(Config::new(2), &[4, 4]);
    rig.reserve(B, 1, 4);
    let lent = rig.reserve(A, 1, 2);
    assert_eq!(lent.extent.place.node, 1);
    rig.silent.push(1);
    rig.service = Balloon::new(Config::new(2), term(5), rig.now).unwrap();
    rig.wait(Nanos::from_secs(11));
    assert!(rig.service.is_serving() && refused(&mut rig, A, Ask::Renew) == Refusal::NoSession);
    rig.silent.clear();
    rig.wait(Nanos::from_secs(1));
    let all = [Lent { is_online: true, ..lent }];
    assert!(matches!(rig.ask(A, Ask::Renew), Reply::Renewed(_, held) if held == all));
}

#[test]
fn of_two_extents_for_a_request_the_later_one_stays() {
    let mut rig = open(Config::new(2), &[4, 4]);
    // The first grant is executed, and its answer is lost.
    let grant = |start: u64, node, number| Order::Grant {
        extent: Extent { place: Place { node, start }, bytes: UNIT, epoch: Epoch { term: term(1), number } },
        session: A,
        number: 7,
    };
    for (node, number) in [(0, 100), (1, 102)] {
        let order = grant(0, node, number);
        let (of, dram) = &mut rig.nodes[usize::from(node)];
        let command = Command { term: term(1), instance: 100 + u64::from(node), order };
        assert!(matches!(of.handle(&command, dram).told, Told::Granted(..)));
    }
    rig.service = Balloon::new(Config::new(2), term(2), rig.now).unwrap();
    rig.settle();
    let lent = rig.reserve(A, 7, 1);
    assert_eq!((lent.extent.place.node, lent.extent.epoch.number), (1, 102));
    assert_eq!(rig.free_bytes(), 7 * UNIT);
}

#[test]
fn a_service_that_takes_a_larger_term_joins_all_nodes_in_it() {
    let mut rig = Rig::new(Config::new(2), &[4, 4]);
    let join =
        |number, node| Command { term: term(number), instance: 0, order: Order::Join { nonce: 0, node } };
    // One node knows the earlier service, the other one has restarted.
    rig.nodes[0] = (Node::new(900, 4 * UNIT, 64), Dram::new(4, 0, 900));
    let (node, dram) = &mut rig.nodes[1];
    node.handle(&join(10, 1), dram);
    rig.service = Balloon::new(Config::new(2), term(5), rig.now).unwrap();
    rig.settle();
    assert!(rig.service.is_serving());
    for (number, (node, dram)) in rig.nodes.iter_mut().enumerate() {
        assert_eq!(
            node.handle(&join(10, number as u16), dram).told,
            Told::Stale(term(11)),
            "the earlier service has no node left"
        );
    }
}
