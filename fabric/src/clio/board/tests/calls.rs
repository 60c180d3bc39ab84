//! Calls of offloads.

use super::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;

/// A board with offloads, the process of one of them, and a caller with two pages.
fn rig() -> (Rig, Grant, Grant, u64) {
    let mut rig = Rig::new(Config {
        calls_max: [2, 2],
        call_result_bytes_max: 150,
        call_read_bytes_max: 300,
        ..config()
    });
    let [own, caller] = [(); 2].map(|()| rig.board.begin(quotas(0, 9)).unwrap());
    let address = rig.alloc(&caller, K4, 2 * PAGE, Rights::ALL).unwrap();
    (rig, own, caller, address)
}

fn call(rig: &mut Rig, caller: &Grant, arguments: &[u8]) -> Header {
    let header = rig.header(caller, Kind::Call, 7, 3, arguments.len() as u32);
    rig.deliver(&header, arguments);
    header
}

/// An offload that writes its arguments across a border of pages.
fn write(rig: &mut Rig, own: &Grant, at: u64) {
    let call = rig.board.poll_call().unwrap();
    assert_eq!((call.offload(), call.function()), (3, 7));
    let written = rig.board.view(own.space, &call).write(call.caller, at, call.arguments());
    rig.board.finish_call(call, written, &[], rig.now);
}

#[test]
fn a_call_that_changes_memory_is_executed_once() {
    let (mut rig, own, caller, address) = rig();
    let at = address + PAGE - 2;
    let first = call(&mut rig, &caller, &[1, 2, 3, 4]);
    rig.deliver(&Header { attempt: 1, ..first }, &[1, 2, 3, 4]);
    write(&mut rig, &own, at);
    assert!(rig.board.poll_call().is_none(), "the retry has joined it");
    let answers = rig.poll();
    assert_eq!((answers.len(), answers[0].0.code, answers[0].0.attempt), (1, 0, 1));
    assert_eq!(rig.read(&caller, address + PAGE, 2), Ok(vec![3, 4]));
    let (status, again, _) = rig.ask(&Header { attempt: 2, ..first }, &[1, 2, 3, 4]);
    assert_eq!((status, again.flags, rig.board.counters().offloads), (Status::Done, flags::REPEATED, 1));
}

#[test]
fn results_come_in_packets() {
    let (mut rig, _, caller, _) = rig();
    let results: Vec<u8> = (0..150).collect();
    for (bytes, wanted) in [(150, Status::Done), (0, Status::NotFound)] {
        let header = call(&mut rig, &caller, &[]);
        let polled = rig.board.poll_call().unwrap();
        let ended = if wanted == Status::Done { Ok(()) } else { Err(wanted) };
        rig.board.finish_call(polled, ended, &results[..bytes], rig.now);
        let answers = rig.poll();
        let data: Vec<u8> = answers.iter().flat_map(|(_, data)| data.clone()).collect();
        assert_eq!(data, results[..bytes]);
        let places: Vec<_> = answers.iter().map(|(answer, _)| (answer.index, answer.packets)).collect();
        assert_eq!(places, if bytes == 150 { vec![(0, 3), (1, 3), (2, 3)] } else { vec![(0, 1)] });
        assert!(answers.iter().all(|(answer, _)| (answer.id, answer.code) == (header.id, wanted as u8)));
    }
    let header = call(&mut rig, &caller, &[]);
    let polled = rig.board.poll_call().unwrap();
    rig.board.finish_call(polled, Ok(()), &[0; 151], rig.now);
    assert_eq!(rig.poll()[0].0.code, Status::OffloadFailed as u8, "too long");
    // The client gives up. A late copy is not executed.
    let (status, again, _) = rig.ask(&Header { attempt: 1, ..header }, &[]);
    assert_eq!((status, again.flags), (Status::OffloadFailed, flags::REPEATED));
    assert!(rig.board.poll_call().is_none());
    // A call with a temporary error or with results may run again.
    for (ended, results) in [(Err(Status::NoPageYet), &[][..]), (Ok(()), &[1])] {
        let header = call(&mut rig, &caller, &[]);
        let polled = rig.board.poll_call().unwrap();
        rig.board.finish_call(polled, ended, results, rig.now);
        assert_eq!(rig.poll().len(), 1);
        rig.deliver(&Header { attempt: 1, ..header }, &[]);
        let polled = rig.board.poll_call().expect("its retry is executed");
        rig.board.finish_call(polled, Ok(()), &[], rig.now);
        rig.poll();
    }
}

/// Else a client could put an answer together from two executions.
#[test]
fn a_copy_of_an_answered_attempt_is_dropped_and_a_retry_executed() {
    let (mut rig, _, caller, _) = rig();
    let header = call(&mut rig, &caller, &[]);
    let polled = rig.board.poll_call().unwrap();
    rig.board.finish_call(polled, Ok(()), &[1; 100], rig.now);
    assert_eq!(rig.poll().len(), 2);
    rig.deliver(&header, &[]);
    assert!(rig.board.poll_call().is_none() && rig.poll().is_empty());
    rig.deliver(&Header { attempt: 1, ..header }, &[]);
    let polled = rig.board.poll_call().unwrap();
    rig.board.finish_call(polled, Ok(()), &[2; 10], rig.now);
    assert_eq!(rig.poll().len(), 1);
    rig.deliver(&header, &[]);
    assert!(rig.board.poll_call().is_none(), "a late one");
}

#[test]
fn callers_take_turns_and_a_paused_call_waits_behind_others() {
    let mut rig = Rig::new(Config { calls_max: [3, 9], ..config() });
    let [one, two] = [(); 2].map(|()| rig.board.begin(quotas(0, 9)).unwrap());
    for nth in 0..4 {
        call(&mut rig, &one, &[nth]);
    }
    assert_eq!(rig.poll()[0].0.code, Status::Busy as u8, "three of a process at a time");
    call(&mut rig, &two, &[10]);
    let mut order = Vec::new();
    let first = rig.board.poll_call().unwrap();
    first.progress().set([7, 8]);
    rig.board.pause_call(first);
    while let Some(polled) = rig.board.poll_call() {
        order.push((polled.arguments()[0], polled.progress().get()));
        rig.board.finish_call(polled, Ok(()), &[], rig.now);
    }
    assert_eq!(order, [(10, [0, 0]), (1, [0, 0]), (2, [0, 0]), (0, [7, 8])]);
    // The end of a process takes its paused call along.
    call(&mut rig, &one, &[1]);
    let polled = rig.board.poll_call().unwrap();
    rig.board.end(one.space, rig.now);
    rig.board.pause_call(polled);
    assert!(rig.board.poll_call().is_none());
}

/// Else a client could leave one offload in the middle of a call, and go on in another.
#[test]
fn a_retry_of_a_call_asks_for_the_same() {
    let (mut rig, _, caller, _) = rig();
    let header = call(&mut rig, &caller, &[]);
    for begun in [false, true] {
        if begun {
            let polled = rig.board.poll_call().unwrap();
            rig.board.pause_call(polled);
        }
        for other in [Header { address: 9, ..header }, Header { code: 1, ..header }] {
            rig.deliver(&Header { attempt: 1, ..other }, &[]);
            assert_eq!(rig.poll()[0].0.code, Status::BadRequest as u8, "{begun}");
        }
        rig.deliver(&Header { attempt: 2, ..header }, &[]);
        rig.deliver(&header, &[]);
        assert!(rig.poll().is_empty(), "they join it");
    }
    let polled = rig.board.poll_call().unwrap();
    assert_eq!((polled.offload(), polled.function()), (3, 7));
    rig.board.finish_call(polled, Ok(()), &[], rig.now);
    assert_eq!(rig.poll()[0].0.attempt, 2);
}

#[test]
fn each_process_has_room_for_a_call_whatever_others_have() {
    let mut rig = Rig::new(Config { calls_max: [2, 2], jobs_max: [1, 1], ..config() });
    let [greedy, other] = [(); 2].map(|()| rig.board.begin(quotas(0, 9)).unwrap());
    let refused = [&greedy, &greedy, &other, &other, &greedy].map(|grant| {
        call(&mut rig, grant, &[]);
        !rig.poll().is_empty()
    });
    assert_eq!(refused, [false, false, false, true, true]);
    assert!(
        rig.alloc(&greedy, K4, PAGE, Rights::ALL).is_ok(),
        "calls of offloads don't hold up the slow path"
    );
}

#[test]
fn results_that_wait_count_as_calls() {
    let (mut rig, _, caller, _) = rig();
    for _ in 0..2 {
        call(&mut rig, &caller, &[]);
        let polled = rig.board.poll_call().unwrap();
        rig.board.finish_call(polled, Ok(()), &[1; 100], rig.now);
    }
    let refused = call(&mut rig, &caller, &[]);
    assert!(rig.board.poll_call().is_none());
    let busy = Status::Busy as u8;
    assert!(rig.poll().iter().any(|(answer, _)| (answer.id, answer.code) == (refused.id, busy)));
    call(&mut rig, &caller, &[]);
    assert!(rig.board.poll_call().is_some(), "the results have left");
}

#[test]
fn calls_and_what_they_use_are_limited() {
    let (mut rig, own, caller, address) = rig();
    let other = rig.board.begin(quotas(0, 9)).unwrap();
    let theirs = rig.alloc(&other, K4, PAGE, Rights::ALL).unwrap();
    for _ in 0..3 {
        call(&mut rig, &caller, &[]);
    }
    assert_eq!(rig.poll()[0].0.code, Status::Busy as u8, "two at a time");
    let polled = rig.board.poll_call().unwrap();
    let mut view = rig.board.view(own.space, &polled);
    assert_eq!(
        view.read(other.space, theirs, &mut [0]),
        Err(Status::NotPermitted),
        "neither its own nor the caller's"
    );
    assert_eq!(view.write(other.space, theirs, &[0]), Err(Status::NotPermitted));
    assert_eq!(view.read(caller.space, address + 2 * PAGE, &mut [0]), Err(Status::NoSuchAddress));
    assert_eq!(view.read(caller.space, address, &mut [0; 42]), Ok(()));
    assert_eq!(
        view.read(caller.space, address, &mut [0]),
        Err(Status::OffloadFailed),
        "it has read 300 bytes"
    );
    drop(view);
    // A fence waits for both; the end of the process drops them.
    let fence = rig.header(&caller, Kind::Fence, 0, 0, 0);
    rig.deliver(&fence, &[]);
    rig.board.finish_call(polled, Ok(()), &[], rig.now);
    assert_eq!(rig.poll().len(), 1);
    assert!(rig.board.end(caller.space, rig.now) && rig.board.poll_call().is_none());
    rig.pause();
    assert_eq!(rig.board.processes(), 2);
}

#[test]
fn boards_without_offloads_say_so() {
    let mut rig = Rig::new(config());
    let caller = rig.board.begin(quotas(0, 9)).unwrap();
    let header = rig.header(&caller, Kind::Call, 1, 0, 0);
    assert_eq!(rig.ask(&header, &[]).0, Status::NoSuchOffload);
}
