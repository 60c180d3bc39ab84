//! Shares of a board's resources: no process takes those of others.

use super::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;

/// A board and two processes, each with two pages at the address.
fn pair(config: Config) -> (Rig, [Grant; 2], [u64; 2]) {
    let mut rig = Rig::new(config);
    let grants = [(); 2].map(|()| rig.board.begin(quotas(0, 40)).unwrap());
    let addresses = grants.map(|grant| rig.alloc(&grant, K4, 2 * PAGE, Rights::ALL).unwrap());
    (rig, grants, addresses)
}

#[test]
fn answers_that_wait_leave_room_for_other_processes() {
    let (mut rig, [greedy, other], addresses) = pair(Config { answers_max: [3, 6], ..config() });
    for (grant, address) in [(greedy, addresses[0]), (other, addresses[1])] {
        for _ in 0..5 {
            let write = rig.header(&grant, Kind::Write, 0, address, 1);
            rig.deliver(&write, &[1]);
        }
    }
    let answers = rig.poll();
    let of = |grant: Grant| answers.iter().filter(|(answer, _)| answer.pid == grant.space.pid).count();
    assert_eq!((of(greedy), of(other), rig.board.counters().overflows), (3, 3, 4));
}

#[test]
fn locks_leave_room_for_other_processes() {
    let (mut rig, [greedy, other], addresses) = pair(Config { locks_max: [2, 3], ..config() });
    let mut lock = |grant: &Grant, at| rig.atomic(grant, Atomic::Lock, at, &[0]);
    let of_greedy = [0, 8, 16].map(|at| lock(&greedy, addresses[0] + at).err());
    assert_eq!(of_greedy, [None, None, Some(Status::Busy)]);
    let of_other = [0, 8].map(|at| lock(&other, addresses[1] + at).err());
    assert_eq!(of_other, [None, Some(Status::Busy)], "three in all");
    assert_eq!(rig.atomic(&greedy, Atomic::Unlock, addresses[0], &[0]).err(), None);
    assert_eq!(rig.atomic(&greedy, Atomic::Lock, addresses[0] + 16, &[0]), Ok(0));
}

#[test]
fn calls_of_offloads_and_requests_behind_fences_leave_room_for_other_processes() {
    let config = Config { calls_max: [1, 2], held_max: [1, 2], ..config() };
    let (mut rig, grants, addresses) = pair(config);
    let (mut refused, busy) = (Vec::new(), Status::Busy as u8);
    for kind in [Kind::Call, Kind::Write] {
        for (grant, address) in grants.iter().zip(addresses) {
            if kind == Kind::Write {
                // It waits for the call.
                let fence = rig.header(grant, Kind::Fence, 0, 0, 0);
                rig.deliver(&fence, &[]);
            }
            let requests = [(); 2].map(|()| rig.header(grant, kind, 0, address, 1));
            requests.iter().for_each(|request| rig.deliver(request, &[1]));
            refused.push((requests[1].id, busy));
        }
    }
    let mut answers: Vec<_> = rig.poll().iter().map(|(answer, _)| (answer.id, answer.code)).collect();
    answers.sort();
    assert_eq!(answers, refused, "the second of each");
    // A result that waits counts, too.
    let call = rig.board.poll_call().unwrap();
    let caller = grants.iter().position(|grant| grant.space == call.caller).unwrap();
    rig.board.finish_call(call, Ok(()), &[1; 9], rig.now);
    let again = rig.header(&grants[caller], Kind::Call, 0, 0, 1);
    rig.deliver(&again, &[1]);
    let answers = rig.poll();
    assert!(answers.iter().any(|(answer, _)| (answer.id, answer.code) == (again.id, busy)));
    let again = rig.header(&grants[caller], Kind::Call, 0, 0, 1);
    rig.deliver(&again, &[1]);
    assert_eq!(rig.poll().len(), 0, "it waits for its offload");
}

/// Others may allocate more than the memory has. A process still gets addresses for its reservation, a page at a time.
#[test]
fn a_page_table_that_others_fill_has_slots_for_what_is_reserved() {
    for (index, name) in Index::ALL {
        let mut rig = Rig::new(Config { index, ..config() });
        let [greedy, careful] =
            [(0, 40), (5, 9)].map(|(reserved, limit)| rig.board.begin(quotas(reserved, limit)).unwrap());
        let pages = (0..40).take_while(|_| rig.alloc(&greedy, K4, PAGE, Rights::ALL).is_ok()).count();
        assert_eq!(pages, 28 - 5, "{name}");
        for nth in 0..5 {
            let address = rig.alloc(&careful, K4, PAGE, Rights::ALL);
            assert_eq!(
                address.map(|address| rig.write(&careful, address, &[1])),
                Ok(Status::Done),
                "{name}: {nth}"
            );
        }
        assert_eq!(rig.alloc(&careful, K4, PAGE, Rights::ALL), Err(Status::NoAddressSpace), "{name}");
    }
}

#[test]
fn frames_that_others_take_faster_than_they_are_zeroed_leave_some_for_what_is_reserved() {
    let mut rig = Rig::new(config());
    let [greedy, careful] = [0, 2].map(|reserved| rig.board.begin(quotas(reserved, 9)).unwrap());
    let [many, few] = [(greedy, 6), (careful, 2)]
        .map(|(grant, pages)| rig.alloc(&grant, K4, pages * PAGE, Rights::ALL).unwrap());
    let requests =
        (0..6).map(|nth| (greedy, many + nth * PAGE)).chain((0..2).map(|nth| (careful, few + nth * PAGE)));
    for (grant, at) in requests {
        let write = rig.header(&grant, Kind::Write, 0, at, 1);
        rig.deliver(&write, &[1]);
    }
    let answers = rig.poll();
    let of = |grant: Grant, status: Status| {
        answers
            .iter()
            .filter(|(answer, _)| (answer.pid, answer.code) == (grant.space.pid, status as u8))
            .count()
    };
    assert_eq!((of(greedy, Status::Done), of(greedy, Status::NoPageYet)), (3, 3), "three for all");
    assert_eq!(of(careful, Status::Done), 2);
}

/// A call takes longer than results are kept, because a read of its range is under way. Others fill the memory of results before it
/// ends.
#[test]
fn a_long_call_makes_no_result_go_before_its_time() {
    let mut rig = Rig::new(Config { retry_entries: 2, ..config() });
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, 2 * PAGE, Rights::ALL).unwrap();
    let read = rig.header(&grant, Kind::Read, 0, address, 8);
    let (free, body) = rig.free_header(&grant, address, PAGE);
    rig.deliver(&read, &[]);
    rig.deliver(&free, &body);
    rig.now += KEEP;
    rig.pause();
    let adds = [(); 2].map(|()| rig.header(&grant, Kind::Atomic, Atomic::FetchAdd as u8, address + PAGE, 8));
    let one = 1u64.to_le_bytes();
    adds.iter().for_each(|add| rig.deliver(add, &one));
    let code = |answers: &[Back], id| answers.iter().find(|(answer, _)| answer.id == id).unwrap().0.code;
    let answers = rig.poll();
    assert_eq!(adds.map(|add| code(&answers, add.id)), [Status::Done as u8, Status::Busy as u8]);
    rig.pause();
    assert_eq!(code(&rig.poll(), free.id), Status::Done as u8);
    for (again, body) in [(adds[0], &one[..]), (free, &body[..])] {
        let (status, answer, _) = rig.ask(&Header { attempt: 1, ..again }, body);
        assert_eq!((status, answer.flags), (Status::Done, flags::REPEATED));
    }
    assert_eq!(rig.read(&grant, address + PAGE, 8), Ok(one.to_vec()), "added once");
}

/// Copies of refused requests come when they would succeed. The client has given them up by then.
#[test]
fn what_was_refused_is_not_executed_later() {
    let mut rig = Rig::new(config());
    let grant = rig.board.begin(quotas(0, 2)).unwrap();
    let mut body = vec![0; AllocBody::BYTES];
    AllocBody { bytes: PAGE, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
    let address = K4.address_of(1);
    let early = rig.header(&grant, Kind::Write, 0, address, 1);
    assert_eq!(rig.ask(&early, &[9]).0, Status::NoSuchAddress);
    assert_eq!(rig.alloc(&grant, K4, 2 * PAGE, Rights::ALL), Ok(address));
    let unlock = rig.header(&grant, Kind::Atomic, Atomic::Unlock as u8, address, 8);
    assert_eq!(rig.ask(&unlock, &[0; 8]).0, Status::NotOwner);
    assert_eq!(rig.atomic(&grant, Atomic::Lock, address, &[0]), Ok(0));
    let alloc = rig.header(&grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
    assert_eq!(rig.ask(&alloc, &body).0, Status::NoMemory, "the limit");
    assert_eq!(rig.free(&grant, address + PAGE, PAGE), Status::Done);
    for (late, data, wanted) in [
        (early, &[9][..], Status::NoSuchAddress),
        (unlock, &[0; 8], Status::NotOwner),
        (alloc, &body, Status::NoMemory),
    ] {
        let (status, answer, _) = rig.ask(&late, data);
        assert_eq!((status, answer.flags, answer.length), (wanted, flags::REPEATED, 0));
    }
    let word = lock_word(grant.space.pid, 0, grant.space.epoch);
    assert_eq!(rig.read(&grant, address, 8), Ok(word.to_le_bytes().to_vec()), "neither written nor unlocked");
    assert_eq!(rig.board.table().taken(), 1);
}

#[test]
fn a_call_has_one_packet() {
    let mut rig = Rig::new(config());
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let mut body = vec![0; AllocBody::BYTES];
    AllocBody { bytes: PAGE, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
    let alloc = rig.header(&grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
    for index in 0..2 {
        let part = Header { index, packets: 2, ..alloc };
        assert_eq!(rig.ask(&part, &body).0, Status::BadLength);
    }
    assert_eq!(rig.board.table().taken(), 0);
    assert_eq!(rig.ask(&alloc, &body).0, Status::Done, "nothing of it is remembered");
}

/// Answers to callers while a free waits for a read.
#[test]
fn a_free_that_waits_joins_its_retries_and_refuses_all_that_touches_its_range() {
    let mut rig = Rig::new(config());
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, 4 * PAGE, Rights::ALL).unwrap();
    let read = rig.header(&grant, Kind::Read, 0, address + PAGE, 8);
    rig.deliver(&read, &[]);
    let (free, body) = rig.free_header(&grant, address + PAGE, 2 * PAGE);
    rig.deliver(&free, &body);
    rig.pause();
    rig.deliver(&Header { attempt: 1, ..free }, &body);
    let closing = |rig: &mut Rig, (header, body): (Header, Vec<u8>)| {
        rig.deliver(&header, &body);
        (header.id, Status::Closing as u8)
    };
    let late = rig.header(&grant, Kind::Read, 0, address + 2 * PAGE, 8);
    let mut wanted = vec![(read.id, 0), closing(&mut rig, (late, vec![]))];
    // Ranges that begin before, within and at the range, and reach beyond it.
    for (from, pages) in [(0, 2), (0, 4), (1, 1), (2, 2)] {
        let free = rig.free_header(&grant, address + from * PAGE, pages * PAGE);
        wanted.push(closing(&mut rig, free));
    }
    let beyond = rig.free_header(&grant, address + 2 * PAGE, 3 * PAGE);
    rig.deliver(&beyond.0, &beyond.1);
    wanted.push((beyond.0.id, Status::NoSuchAddress as u8));
    let answers: Vec<_> = rig.poll().iter().map(|(answer, _)| (answer.id, answer.code)).collect();
    assert_eq!(answers, wanted);
    assert_eq!(rig.board.counters().joined, 1);
    rig.pause();
    let answers: Vec<_> =
        rig.poll().iter().map(|(answer, _)| (answer.id, answer.attempt, answer.code)).collect();
    assert_eq!(answers, [(free.id, 1, 0)], "the last attempt is answered when the read has left");
    assert_eq!([0, 3].map(|page| rig.free(&grant, address + page * PAGE, PAGE)), [Status::Done; 2]);
}
