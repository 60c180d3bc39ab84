//! Memory of two processes.

use super::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;

/// A board, a process that has a page, and the page's address.
fn rig() -> (Rig, Grant, u64) {
    let mut rig = Rig::new(Config { processes_max: 2, ..config() });
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    (rig, grant, address)
}

#[test]
fn pages_are_shared_until_both_have_freed_them() {
    let (mut rig, grant, address) = rig();
    let other = rig.board.begin(quotas(0, 1)).unwrap();
    let read_only = Rights { read: true, write: false };
    assert_eq!(rig.write(&grant, address, &[7; 8]), Status::Done);
    let theirs = rig.share(&grant, address, PAGE, other.space, read_only).unwrap();
    assert_eq!(rig.read(&other, theirs, 8), Ok(vec![7; 8]));
    assert_eq!(rig.write(&other, theirs, &[1]), Status::NotPermitted);
    assert_eq!(
        rig.share(&other, theirs, PAGE, grant.space, Rights::ALL),
        Err(Status::NotPermitted),
        "no more rights than it has"
    );
    assert_eq!(
        rig.share(&grant, address, PAGE, other.space, read_only),
        Err(Status::NoMemory),
        "the other's limit"
    );
    assert_eq!(rig.board.table().taken(), 2, "nothing is left of what was refused");
    assert_eq!(rig.write(&grant, address, &[8; 8]), Status::Done);
    assert_eq!(rig.free(&grant, address, PAGE), Status::Done);
    assert_eq!((rig.read(&other, theirs, 8), rig.board.usage(K4).taken), (Ok(vec![8; 8]), 1));
    assert_eq!(rig.free(&other, theirs, PAGE), Status::Done);
    assert_eq!(rig.board.usage(K4).taken, 0);
    // Pages that were never accessed get their frames when they are shared.
    let fresh = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let theirs = rig.share(&grant, fresh, PAGE, other.space, Rights::ALL).unwrap();
    assert_eq!(rig.write(&other, theirs, &[3]), Status::Done);
    assert_eq!(rig.read(&grant, fresh, 1), Ok(vec![3]));
}

#[test]
fn a_confined_process_shares_nothing_and_takes_what_others_share() {
    let (mut rig, grant, address) = rig();
    let other = rig.board.begin(quotas(0, 2)).unwrap();
    assert!(rig.board.confine(other.space));
    let theirs = rig.share(&grant, address, PAGE, other.space, Rights::ALL).unwrap();
    for address in [theirs, rig.alloc(&other, K4, PAGE, Rights::ALL).unwrap()] {
        let refused = rig.share(&other, address, PAGE, grant.space, Rights::ALL);
        assert_eq!(refused, Err(Status::NotPermitted));
    }
    rig.board.end(other.space, rig.now);
    assert!(!rig.board.confine(Space { pid: 77, epoch: 1 }));
}

#[test]
fn the_end_of_a_process_gives_back_its_locks_and_its_part_of_shared_pages() {
    let (mut rig, grant, address) = rig();
    let other = rig.board.begin(quotas(0, 5)).unwrap();
    let theirs = rig.share(&grant, address, PAGE, other.space, Rights::ALL).unwrap();
    assert_eq!(rig.atomic(&other, Atomic::Lock, theirs, &[0]), Ok(0));
    let read = rig.header(&other, Kind::Read, 0, theirs, 200);
    rig.deliver(&read, &[]);
    assert!(rig.board.end(other.space, rig.now));
    assert_eq!((rig.poll().len(), rig.board.counters().ended), (0, 1), "its answers are dropped");
    rig.pause();
    assert_eq!(rig.board.processes(), 1);
    assert_eq!(rig.atomic(&grant, Atomic::Lock, address, &[0]), Ok(0), "its lock is free");
    // The next process with this PID has another epoch, and none of these pages.
    let next = rig.board.begin(quotas(0, 5)).unwrap();
    assert_eq!(next.space.pid, other.space.pid);
    assert_eq!(rig.read(&next, theirs, 8), Err(Status::NoSuchAddress));
    rig.deliver(&read, &[]);
    assert_eq!((rig.poll().len(), rig.board.counters().wrong_epoch), (0, 1));
}

#[test]
fn a_process_takes_shared_pages_as_far_as_its_quota_says() {
    let (mut rig, grant, _) = rig();
    let address = rig.alloc(&grant, K4, 3 * PAGE, Rights::ALL).unwrap();
    let mut none = quotas(0, 9);
    none[K4 as usize].shared = 0;
    let other = rig.board.begin(none).unwrap();
    let refused = rig.share(&grant, address, PAGE, other.space, Rights::ALL);
    assert_eq!(refused, Err(Status::NotPermitted), "it has not agreed");
    assert_eq!(rig.free(&grant, address, PAGE), Status::Done, "the page is not held");
    assert!(rig.board.end(other.space, rig.now));
    rig.pause();
    let mut two = quotas(0, 1);
    two[K4 as usize].shared = 2;
    let other = rig.board.begin(two).unwrap();
    let address = rig.alloc(&grant, K4, 3 * PAGE, Rights::ALL).unwrap();
    let share = |rig: &mut Rig, bytes| rig.share(&grant, address, bytes, other.space, Rights::ALL);
    assert_eq!(share(&mut rig, 3 * PAGE), Err(Status::NoMemory));
    let theirs = share(&mut rig, 2 * PAGE).unwrap();
    assert_eq!(share(&mut rig, PAGE), Err(Status::NoMemory));
    assert!(rig.alloc(&other, K4, PAGE, Rights::ALL).is_ok(), "its own limit is another one");
    assert_eq!(rig.free(&other, theirs, PAGE), Status::Done);
    assert_eq!(
        rig.alloc(&other, K4, PAGE, Rights::ALL),
        Err(Status::NoMemory),
        "the freed page was not its own"
    );
    assert!(share(&mut rig, PAGE).is_ok());
}

/// A process that shares reserved pages which it has not accessed, or the other one, ends while the call is under way.
#[test]
fn a_call_that_shares_pages_stops_when_a_process_ends() {
    for steps in 0..12 {
        for ends in [0, 1] {
            let mut rig = Rig::new(config());
            let pair = [6, 0].map(|reserved| rig.board.begin(quotas(reserved, 9)).unwrap());
            let (from, to) = (pair[0], pair[1]);
            rig.pause();
            let address = rig.alloc(&from, K4, 6 * PAGE, Rights::ALL).unwrap();
            let (share, body) = rig.share_header(&from, address, 6 * PAGE, to.space, Rights::ALL);
            rig.deliver(&share, &body);
            (0..steps).for_each(|_| rig.step());
            let is_done = !rig.poll().is_empty();
            assert!(rig.board.end(pair[ends].space, rig.now));
            (0..5).for_each(|_| rig.pause());
            let usage = rig.board.usage(K4);
            let case = format!("{steps} steps, then the end of process {ends}");
            assert_eq!(rig.board.processes(), 1, "{case}");
            if ends == 0 {
                // Pages shared by then stay with the other process.
                let left = if is_done { 6 } else { 0 };
                assert_eq!((usage.taken, usage.promised), (left, 0), "{case}");
            } else {
                let answers = rig.poll();
                let status = answers.first().map(|(answer, _)| Status::of(answer.code).unwrap());
                assert_eq!(status, (!is_done).then_some(Status::NoSuchProcess), "{case}");
                assert_eq!(usage.taken + usage.promised, 6, "{case}");
                assert_eq!(rig.free(&from, address, 6 * PAGE), Status::Done, "{case}");
            }
            assert!(rig.board.end(pair[1 - ends].space, rig.now));
            (0..5).for_each(|_| rig.pause());
            let (usage, room) = (rig.board.usage(K4), rig.board.table().room().iter());
            assert_eq!((rig.board.processes(), usage.taken, usage.promised), (0, 0, 0), "{case}");
            assert_eq!(room.map(|room| u64::from(*room)).sum::<u64>(), rig.board.table().slots(), "{case}");
        }
    }
}

/// A share that fails at its first page has reserved slots for all of them.
#[test]
fn a_call_that_fails_gives_back_its_slots_in_steps() {
    let (mut rig, grant, _) = rig();
    let other = rig.board.begin(quotas(0, 9)).unwrap();
    let read_only = Rights { read: true, write: false };
    let address = rig.alloc(&grant, K4, 8 * PAGE, read_only).unwrap();
    let (share, body) = rig.share_header(&grant, address, 8 * PAGE, other.space, Rights::ALL);
    let room = |rig: &Rig| rig.board.table().room().iter().map(|room| u32::from(*room)).sum::<u32>();
    let (before, mut least) = (room(&rig), u32::MAX);
    rig.deliver(&share, &body);
    for _ in 0..20 {
        let last = room(&rig);
        rig.step();
        let now = room(&rig);
        assert!(now <= last + config().step_pages, "{last} to {now} slots in a step");
        least = least.min(now);
    }
    let codes: Vec<u8> = rig.poll().iter().map(|(answer, _)| answer.code).collect();
    assert_eq!(codes, [Status::NotPermitted as u8]);
    assert_eq!((room(&rig), least), (before, before - 8));
    assert_eq!(rig.free(&grant, address, 8 * PAGE), Status::Done);
}

/// Whether a lock is still held when its owner has ended.
fn outlives_its_owner(plant: Option<Plant>) -> bool {
    let (mut rig, grant, address) = rig();
    rig.board.vm.plant = plant;
    let other = rig.board.begin(quotas(0, 5)).unwrap();
    let theirs = rig.share(&grant, address, PAGE, other.space, Rights::ALL).unwrap();
    assert_eq!(rig.atomic(&other, Atomic::Lock, theirs, &[0]), Ok(0));
    assert!(rig.board.end(other.space, rig.now));
    rig.atomic(&grant, Atomic::Lock, address, &[0]) != Ok(0)
}

#[test]
fn a_lock_ends_with_its_owner() {
    assert!(!outlives_its_owner(None));
    assert!(outlives_its_owner(Some(Plant::DeadOwner)));
}

#[test]
fn a_lock_on_a_shared_page_ends_although_its_owner_no_longer_has_the_page() {
    for owner_ends in [false, true] {
        let (mut rig, grant, address) = rig();
        let other = rig.board.begin(quotas(0, 5)).unwrap();
        let theirs = rig.share(&grant, address, PAGE, other.space, Rights::ALL).unwrap();
        assert_eq!(rig.atomic(&other, Atomic::Lock, theirs, &[0]), Ok(0));
        assert_eq!(rig.free(&other, theirs, PAGE), Status::Done);
        let word = lock_word(other.space.pid, 0, other.space.epoch);
        assert_eq!(rig.atomic(&grant, Atomic::Lock, address, &[0]), Ok(word), "it is held");
        if owner_ends {
            assert!(rig.board.end(other.space, rig.now));
        } else {
            rig.now += Nanos::from_millis(5);
            rig.pause();
        }
        assert_eq!(rig.atomic(&grant, Atomic::Lock, address, &[0]), Ok(0));
        assert_eq!(rig.board.counters().locks_ended, 1);
    }
}
