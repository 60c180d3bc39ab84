//! Single rules of a board.

use super::super::plant::TagsWithoutEpoch;
use super::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;
const READ_ONLY: Rights = Rights { read: true, write: false };

fn rig_with(config: Config) -> (Rig, Grant) {
    let mut rig = Rig::new(config);
    let grant = rig.board.begin(quotas(0, 40)).unwrap();
    (rig, grant)
}

fn rig() -> (Rig, Grant) {
    rig_with(config())
}

/// States of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Free,
    Allocated,
    Valid,
    ReadOnly,
    Closing,
    Freed,
}

/// A board with a page in this state, its process, another one to share with, and the page's address.
fn in_state(state: PageState) -> (Rig, Grant, Grant, u64) {
    let (mut rig, grant) = rig();
    let other = rig.board.begin(quotas(0, 9)).unwrap();
    if state == PageState::Free {
        return (rig, grant, other, K4.address_of(1));
    }
    let rights = if state == PageState::ReadOnly { READ_ONLY } else { Rights::ALL };
    let address = rig.alloc(&grant, K4, PAGE, rights).unwrap();
    match state {
        PageState::Valid => assert_eq!(rig.write(&grant, address, &[1]), Status::Done),
        PageState::Closing => {
            let read = rig.header(&grant, Kind::Read, 0, address, 8);
            rig.deliver(&read, &[]);
            let (free, body) = rig.free_header(&grant, address, PAGE);
            rig.deliver(&free, &body);
            rig.pause();
        }
        PageState::Freed => assert_eq!(rig.free(&grant, address, PAGE), Status::Done),
        PageState::Free | PageState::Allocated | PageState::ReadOnly => {}
    }
    (rig, grant, other, address)
}

/// Every request in every state of its page.
#[test]
fn what_a_page_permits_depends_on_its_state() {
    use Status::{Closing, Done, NoSuchAddress, NotPermitted};
    let table = [
        (PageState::Free, [NoSuchAddress; 5]),
        (PageState::Allocated, [Done; 5]),
        (PageState::Valid, [Done; 5]),
        (PageState::ReadOnly, [Done, NotPermitted, NotPermitted, Done, NotPermitted]),
        (PageState::Closing, [Closing; 5]),
        (PageState::Freed, [NoSuchAddress; 5]),
    ];
    for (state, wanted) in table {
        let status = |nth: usize| {
            let (mut rig, grant, other, address) = in_state(state);
            let (kind, code, data) = match nth {
                0 => (Kind::Read, 0, vec![]),
                1 => (Kind::Write, 0, vec![1; 8]),
                2 => (Kind::Atomic, Atomic::FetchAdd as u8, vec![0; 8]),
                3 => (Kind::Manage, Manage::Free as u8, PAGE.to_be_bytes().to_vec()),
                _ => {
                    let mut body = vec![0; ShareBody::BYTES];
                    let Space { pid, epoch } = other.space;
                    ShareBody { bytes: PAGE, pid, epoch, rights: 3, reserved: 0 }.emit(&mut body);
                    (Kind::Manage, Manage::Share as u8, body)
                }
            };
            let length = if kind == Kind::Read { 8 } else { data.len() as u32 };
            let header = rig.header(&grant, kind, code, address, length);
            rig.deliver(&header, &data);
            rig.pause();
            let answers = rig.poll();
            let of_this = answers.iter().find(|(answer, _)| answer.id == header.id).unwrap();
            Status::of(of_this.0.code).unwrap()
        };
        assert_eq!([0, 1, 2, 3, 4].map(status), wanted, "{state:?}");
    }
}

#[test]
fn two_first_accesses_get_one_frame() {
    let (mut rig, grant) = rig();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    for at in [0, 8] {
        let write = rig.header(&grant, Kind::Write, 0, address + at, 8);
        rig.deliver(&write, &[7; 8]);
    }
    assert_eq!(rig.poll().len(), 2);
    assert_eq!((rig.board.usage(K4).taken, rig.board.counters().faults), (1, 1));
    assert_eq!(rig.read(&grant, address, 16), Ok(vec![7; 16]));
}

#[test]
fn accesses_stay_in_their_page_and_in_the_address_space() {
    let (mut rig, grant) = rig();
    let address = rig.alloc(&grant, K4, 2 * PAGE, Rights::ALL).unwrap();
    for (at, bytes, wanted) in [
        (address, 0, Status::BadLength),
        (address, 4_097, Status::BadLength),
        (address + 4_000, 97, Status::BadLength),
        (u64::MAX, 1, Status::NoSuchAddress),
        (u64::MAX - 7, 8, Status::NoSuchAddress),
        (1 << 48, 8, Status::NoSuchAddress),
        (7 << 44, 8, Status::NoSuchAddress),
        (K4.address_of(u32::MAX) + 4_000, 97, Status::BadLength),
        (PageSize::G1.address_of(1), 8, Status::NoSuchAddress),
        (0, 8, Status::NoSuchAddress),
    ] {
        assert_eq!(rig.read(&grant, at, bytes), Err(wanted), "{bytes} bytes at {at:#x}");
    }
    assert_eq!(rig.write(&grant, address, &[]), Status::BadLength);
    assert_eq!(rig.read(&grant, address + PAGE, 4_096).map(|bytes| bytes.len()), Ok(4_096));
}

#[test]
fn calls_with_impossible_arguments_are_refused() {
    let (mut rig, grant) = rig();
    let alloc = |rig: &mut Rig, size, bytes| rig.alloc(&grant, size, bytes, Rights::ALL);
    assert_eq!(alloc(&mut rig, K4, 0), Err(Status::BadLength));
    assert_eq!(alloc(&mut rig, K4, u64::MAX), Err(Status::NoAddressSpace));
    assert_eq!(alloc(&mut rig, K4, 41 * PAGE), Err(Status::NoAddressSpace), "more than the table has slots");
    assert_eq!(alloc(&mut rig, PageSize::M2, 1), Err(Status::BadRequest), "no such pool");
    let address = alloc(&mut rig, K4, 3 * PAGE).unwrap();
    assert_eq!(rig.free(&grant, address + 8, PAGE), Status::BadRequest);
    assert_eq!(rig.free(&grant, address, 0), Status::BadLength);
    assert_eq!(rig.free(&grant, address, u64::MAX), Status::NoSuchAddress);
    assert_eq!(rig.free(&grant, address, 4 * PAGE), Status::NoSuchAddress);
    assert_eq!(rig.free(&grant, 1 << 60, PAGE), Status::NoSuchAddress);
    let header = rig.header(&grant, Kind::Manage, 9, 0, 0);
    assert_eq!(rig.ask(&header, &[]).0, Status::BadRequest);
    let header = rig.header(&grant, Kind::Manage, Manage::Alloc as u8, 0, 3);
    assert_eq!(rig.ask(&header, &[0; 3]).0, Status::BadLength);
    // A part in the middle leaves two.
    assert_eq!(rig.free(&grant, address + PAGE, 1), Status::Done);
    assert_eq!(rig.read(&grant, address + PAGE, 1), Err(Status::NoSuchAddress));
    assert!(rig.read(&grant, address, 1).is_ok() && rig.read(&grant, address + 2 * PAGE, 1).is_ok());
    let (none, code) = (Space { pid: 77, epoch: 1 }, Status::NoSuchProcess);
    assert_eq!(rig.share(&grant, address, PAGE, none, Rights::ALL), Err(code));
    assert_eq!(rig.share(&grant, address, PAGE, grant.space, Rights::ALL), Err(code), "with itself");
}

#[test]
fn without_a_ready_frame_the_first_access_comes_too_early() {
    let (mut rig, grant) = rig();
    let address = rig.alloc(&grant, K4, 4 * PAGE, Rights::ALL).unwrap();
    for nth in 0..4 {
        let write = rig.header(&grant, Kind::Write, 0, address + nth * PAGE, 1);
        rig.deliver(&write, &[1]);
    }
    let statuses: Vec<_> = rig.poll().iter().map(|(answer, _)| Status::of(answer.code).unwrap()).collect();
    assert_eq!(statuses, [Status::Done, Status::Done, Status::Done, Status::NoPageYet], "three were ready");
    rig.pause();
    assert_eq!(rig.write(&grant, address + 3 * PAGE, &[1]), Status::Done, "the slow path has zeroed others");
}

#[test]
fn reserved_frames_are_there_for_their_process() {
    let (mut rig, greedy) = rig();
    let careful = rig.board.begin(quotas(2, 4)).unwrap();
    let address = rig.alloc(&greedy, K4, 12 * PAGE, Rights::ALL).unwrap();
    let touch = |rig: &mut Rig, nth| rig.write(&greedy, address + nth * PAGE, &[1]);
    assert!((0..10).all(|nth| touch(&mut rig, nth) == Status::Done));
    assert_eq!(touch(&mut rig, 10), Status::NoMemory);
    let mine = rig.alloc(&careful, K4, 3 * PAGE, Rights::ALL).unwrap();
    assert!((0..2).all(|nth| rig.write(&careful, mine + nth * PAGE, &[1]) == Status::Done));
    assert_eq!(rig.write(&careful, mine + 2 * PAGE, &[1]), Status::NoMemory, "beyond what it has reserved");
    // A freed frame stays reserved for its process; when the process ends, others get its frames.
    assert_eq!(rig.free(&careful, mine, PAGE), Status::Done);
    assert_eq!(touch(&mut rig, 10), Status::NoMemory);
    assert!(rig.board.end(careful.space, rig.now) && !rig.board.end(careful.space, rig.now));
    rig.pause();
    assert_eq!((touch(&mut rig, 10), touch(&mut rig, 11)), (Status::Done, Status::Done));
    assert_eq!(rig.alloc(&greedy, K4, 29 * PAGE, Rights::ALL), Err(Status::NoAddressSpace));
    assert_eq!(rig.board.begin(quotas(1, 1)).unwrap_err(), Refused::NoMemory(K4));
}

/// Whether a range is freed although a read of it is under way.
fn frees_under_a_read(plant: Option<Plant>) -> bool {
    let mut rig = Rig::planted(config(), plant);
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    rig.write(&grant, address, &[5; 200]);
    let read = rig.header(&grant, Kind::Read, 0, address, 200);
    rig.deliver(&read, &[]);
    let mut out = Vec::new();
    assert!(rig.board.poll_link(rig.now, &mut out).is_some(), "the first of four packets");
    let (free, body) = rig.free_header(&grant, address, PAGE);
    rig.deliver(&free, &body);
    rig.pause();
    let is_freed = rig.board.usage(K4).taken == 0;
    let answers = rig.poll();
    let data: Vec<u8> = answers
        .iter()
        .filter(|(answer, _)| answer.id == read.id)
        .flat_map(|(_, data)| data.clone())
        .collect();
    assert!(is_freed || data == [5; 136]);
    rig.pause();
    assert_eq!(rig.board.usage(K4).taken, 0, "afterwards it is");
    is_freed
}

#[test]
fn a_range_is_freed_when_its_reads_are_answered() {
    assert!(!frees_under_a_read(None));
    assert!(frees_under_a_read(Some(Plant::FreeAtOnce)));
}

/// Whether a late packet of an ended process writes to the memory of the next one with its PID.
fn reaches_the_successor(plant: Option<Plant>) -> bool {
    let mut rig = Rig::planted(Config { processes_max: 1, ..config() }, plant);
    let first = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&first, K4, PAGE, Rights::ALL).unwrap();
    let late = rig.header(&first, Kind::Write, 0, address, 1);
    assert!(rig.board.end(first.space, rig.now));
    (0..20).for_each(|_| rig.pause());
    let next = rig.board.begin(quotas(0, 9)).unwrap();
    assert_eq!((next.space.pid, next.space.epoch), (first.space.pid, first.space.epoch + 1));
    assert_eq!(rig.alloc(&next, K4, PAGE, Rights::ALL), Ok(address));
    rig.deliver(&late, &[9]);
    rig.poll();
    rig.read(&next, address, 1) != Ok(vec![0])
}

#[test]
fn a_process_is_not_reached_by_packets_of_the_one_before() {
    assert!(!reaches_the_successor(None));
    assert!(reaches_the_successor(Some(Plant::NoEpoch)));
}

/// Whether entries that an ended process has left in the TLB count as those of the next one with its PID. The board leaves none, so a test
/// has to.
fn takes_old_entries(tags_have_an_epoch: bool) -> bool {
    let _bug = (!tags_have_an_epoch).then(TagsWithoutEpoch::plant);
    let mut rig = Rig::planted(Config { processes_max: 1, ..config() }, Some(Plant::StaleTlb));
    let first = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&first, K4, PAGE, Rights::ALL).unwrap();
    assert_eq!(rig.write(&first, address, &[9]), Status::Done);
    assert!(rig.board.end(first.space, rig.now));
    (0..20).for_each(|_| rig.pause());
    let next = rig.board.begin(quotas(0, 9)).unwrap();
    assert_eq!(next.space.pid, first.space.pid);
    assert_eq!(rig.alloc(&next, K4, PAGE, Rights::ALL), Ok(address));
    rig.read(&next, address, 1) != Ok(vec![0])
}

#[test]
fn the_epoch_in_tags_keeps_a_process_from_entries_of_the_one_before() {
    assert!(!takes_old_entries(true));
    assert!(takes_old_entries(false));
}

/// Whether a fence completes before a read that came earlier.
fn fence_passes_a_read(plant: Option<Plant>) -> bool {
    let mut rig = Rig::planted(config(), plant);
    let [grant, other] = [(); 2].map(|()| rig.board.begin(quotas(0, 9)).unwrap());
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let theirs = rig.alloc(&other, K4, PAGE, Rights::ALL).unwrap();
    let read = rig.header(&grant, Kind::Read, 0, address, 200);
    let fence = rig.header(&grant, Kind::Fence, 0, 0, 0);
    let write = rig.header(&grant, Kind::Write, 0, address, 200);
    let last = rig.header(&grant, Kind::Read, 0, address, 1);
    let of_other = rig.header(&other, Kind::Write, 0, theirs, 1);
    rig.deliver(&read, &[]);
    rig.deliver(&fence, &[]);
    rig.deliver(&write, &[9; 200]);
    rig.deliver(&last, &[]);
    rig.deliver(&of_other, &[1]);
    let answers = rig.poll();
    let place = |id| answers.iter().rposition(|(answer, _)| answer.id == id).unwrap();
    let passes = place(fence.id) < place(read.id);
    if !passes {
        assert!(place(of_other.id) < place(read.id), "other processes don't wait");
        assert!(place(fence.id) < place(write.id) && place(write.id) < place(last.id));
        let data = answers.iter().filter(|(answer, _)| answer.id == read.id).flat_map(|(_, data)| data);
        assert!(data.eq(&[0; 200]), "the write came later");
        assert_eq!((answers[place(last.id)].1.as_slice(), rig.board.counters().held), (&[9][..], 2));
    }
    passes
}

#[test]
fn a_fence_orders_the_requests_of_its_process() {
    assert!(!fence_passes_a_read(None));
    assert!(fence_passes_a_read(Some(Plant::NoFence)));
}

#[test]
fn a_fence_waits_for_calls_and_what_waits_for_it_is_limited() {
    let (mut rig, grant) = rig_with(Config { held_max: [2, 2], ..config() });
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let (free, body) = rig.free_header(&grant, address, PAGE);
    let fence = rig.header(&grant, Kind::Fence, 0, 0, 0);
    rig.deliver(&free, &body);
    rig.deliver(&fence, &[]);
    let later: Vec<Header> = (0..3).map(|_| rig.header(&grant, Kind::Read, 0, address, 1)).collect();
    later.iter().for_each(|read| rig.deliver(read, &[]));
    let early = rig.poll();
    assert_eq!(early.len(), 1);
    assert_eq!((early[0].0.id, early[0].0.code), (later[2].id, Status::Busy as u8));
    rig.pause();
    let codes: Vec<_> = rig.poll().iter().map(|(answer, _)| (answer.id, answer.code)).collect();
    let gone = Status::NoSuchAddress as u8;
    assert_eq!(codes, [(free.id, 0), (fence.id, 0), (later[0].id, gone), (later[1].id, gone)]);
    let all = Header { flags: flags::ALL, ..rig.header(&grant, Kind::Fence, 0, 0, 0) };
    assert_eq!(rig.ask(&all, &[]).0, Status::NotPermitted);
}

#[test]
fn a_fence_for_all_holds_other_processes_where_it_is_permitted() {
    let (mut rig, grant) = rig_with(Config { fence_all: true, ..config() });
    let other = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let read = rig.header(&grant, Kind::Read, 0, address, 200);
    let fence = Header { flags: flags::ALL, ..rig.header(&grant, Kind::Fence, 0, 0, 0) };
    let of_other = rig.header(&other, Kind::Read, 0, address, 1);
    [read, fence, of_other].iter().for_each(|header| rig.deliver(header, &[]));
    let ids: Vec<u64> = rig.poll().iter().map(|(answer, _)| answer.id).collect();
    assert_eq!(ids, [read.id, read.id, read.id, read.id, fence.id, of_other.id]);
}

#[test]
fn a_full_retry_memory_refuses_instead_of_forgetting() {
    let (mut rig, grant) = rig_with(Config { retry_entries: 3, ..config() });
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    assert_eq!(
        [1, 2, 3].map(|byte| rig.write(&grant, address, &[byte])),
        [Status::Done, Status::Done, Status::Busy]
    );
    assert_eq!(rig.alloc(&grant, K4, PAGE, Rights::ALL), Err(Status::Busy));
    assert_eq!(rig.read(&grant, address, 1), Ok(vec![2]), "reads need no memory");
    rig.now += KEEP;
    assert_eq!(rig.write(&grant, address, &[3]), Status::Done);
}

#[test]
fn retries_of_a_call_join_it_or_get_its_result() {
    let (mut rig, grant) = rig_with(Config { jobs_max: [2, 9], ..config() });
    let mut body = vec![0; AllocBody::BYTES];
    AllocBody { bytes: PAGE, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
    let call = rig.header(&grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
    let retry = Header { attempt: 1, ..call };
    rig.deliver(&call, &body);
    rig.deliver(&retry, &body);
    rig.pause();
    let answers = rig.poll();
    assert_eq!((answers.len(), answers[0].0.attempt, rig.board.counters().joined), (1, 1, 1));
    let (status, again, _) = rig.ask(&Header { attempt: 2, ..call }, &body);
    assert_eq!((status, again.address, again.flags), (Status::Done, answers[0].0.address, flags::REPEATED));
    assert_eq!(rig.board.table().taken(), 1);
    let many: Vec<Header> =
        (0..3).map(|_| rig.header(&grant, Kind::Manage, 1, 0, body.len() as u32)).collect();
    many.iter().for_each(|call| rig.deliver(call, &body));
    let refused = rig.poll();
    assert_eq!((refused.len(), refused[0].0.code), (1, Status::Busy as u8), "two of each process");
}

#[test]
fn long_reads_delay_their_own_process_alone() {
    let (mut rig, grant) = rig();
    let other = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let theirs = rig.alloc(&other, K4, PAGE, Rights::ALL).unwrap();
    let long = rig.header(&grant, Kind::Read, 0, address, 4_096);
    let short = rig.header(&other, Kind::Read, 0, theirs, 64);
    rig.deliver(&long, &[]);
    rig.deliver(&short, &[]);
    let answers = rig.poll();
    let place = answers.iter().position(|(answer, _)| answer.id == short.id);
    assert!(answers.len() == 65 && place.is_some_and(|place| place <= 2), "{place:?}");
}
