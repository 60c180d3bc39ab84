//! Packets that should not be, and locks of owners that die.

use super::*;
use proptest::prelude::*;

const K4: PageSize = PageSize::K4;
const PAGE: u64 = 4_096;

/// A board for two processes, one that has a page, and the packet of a write to it.
fn write() -> (Rig, Grant, u64, Vec<u8>) {
    let mut rig = Rig::new(Config { processes_max: 2, ..config() });
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    let header = rig.header(&grant, Kind::Write, 0, address, 4);
    let mut bytes = Vec::new();
    packet::compose(&header, &[1, 2, 3, 4], &mut bytes);
    (rig, grant, address, bytes)
}

#[test]
fn packets_without_a_right_are_dropped_by_reason() {
    let (mut rig, grant, address, whole) = write();
    let header = packet::parse(&whole).unwrap().header;
    let sealed = |header: Header| {
        let mut bytes = Vec::new();
        packet::compose(&header, &[1, 2, 3, 4], &mut bytes);
        bytes
    };
    let mut version = sealed(header);
    version[0] = 0x22;
    let hostile = [
        ("malformed", whole[..20].to_vec()),
        ("malformed", sealed(Header { kind: 7, ..header })),
        ("malformed", sealed(Header { index: 1, ..header })),
        ("wrong_version", version),
        ("wrong_length", whole[..50].to_vec()),
        ("wrong_length", [&whole[..], &[0]].concat()),
        ("wrong_pid", sealed(Header { pid: 0, ..header })),
        ("wrong_pid", sealed(Header { pid: 2, ..header })),
        ("wrong_pid", sealed(Header { pid: u32::MAX, ..header })),
        ("wrong_epoch", sealed(Header { epoch: 0, ..header })),
        ("wrong_token", sealed(Header { token: 0, ..header })),
        ("wrong_token", sealed(Header { token: header.token ^ 1 << 63, ..header })),
        ("not_requests", sealed(Header { kind: Kind::Answer as u8, ..header })),
    ];
    for (reason, bytes) in hostile {
        let count = |rig: &Rig| rig.board.counters().iter().find(|(name, _)| *name == reason).unwrap().1;
        let before = count(&rig);
        rig.board.handle_link((0, &bytes), rig.now, rig.now);
        assert_eq!((count(&rig) - before, rig.poll().len()), (1, 0), "{reason}");
    }
    assert_eq!(rig.read(&grant, address, 4), Ok(vec![0; 4]));
}

#[test]
fn damaged_packets_get_a_nack_at_a_limited_rate() {
    let (mut rig, grant, address, mut bytes) = write();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    for _ in 0..100 {
        rig.board.handle_link((1, &bytes), rig.now, rig.now);
    }
    let nacks = rig.poll();
    let header = packet::parse(&bytes).unwrap().header;
    assert!(nacks.iter().all(|(nack, _)| (nack.kind, nack.id) == (Kind::Nack as u8, header.id)));
    assert_eq!((nacks.len(), rig.board.counters().damaged), (32, 68));
    // Without a valid token there is none.
    let mut forged = bytes.clone();
    forged[35] ^= 1;
    rig.now += Nanos::from_secs(1);
    rig.board.handle_link((1, &forged), rig.now, rig.now);
    assert_eq!((rig.poll().len(), rig.board.counters().wrong_token), (0, 1));
    assert_eq!(rig.read(&grant, address, 4), Ok(vec![0; 4]));
}

#[test]
fn answers_that_wait_are_limited() {
    let mut rig = Rig::new(Config { answers_max: [3, 3], ..config() });
    let grant = rig.board.begin(quotas(0, 9)).unwrap();
    let address = rig.alloc(&grant, K4, PAGE, Rights::ALL).unwrap();
    for _ in 0..5 {
        let add = rig.header(&grant, Kind::Atomic, Atomic::FetchAdd as u8, address, 8);
        rig.deliver(&add, &1u64.to_le_bytes());
    }
    assert_eq!((rig.poll().len(), rig.board.counters().overflows), (3, 2));
    assert_eq!(rig.read(&grant, address, 8), Ok(3u64.to_le_bytes().to_vec()), "the others were not executed");
}

proptest! {
    /// Random bytes, and random headers of processes that exist: nothing panics, and another process's memory stays as it is.
    #[test]
    fn any_packets_are_taken(
        packets in prop::collection::vec((any::<[u8; 48]>(), prop::collection::vec(any::<u8>(), 0..80), 0u8..16, 0u8..8), 1..60),
    ) {
        let (mut rig, grant, _, _) = write();
        let other = rig.board.begin(quotas(0, 3)).unwrap();
        let address = rig.alloc(&other, K4, PAGE, Rights::ALL).unwrap();
        prop_assert_eq!(rig.write(&other, address, &[0xab; 64]), Status::Done);
        for (bytes, data, kind, near) in packets {
            rig.board.handle_link((0, &[&bytes[..], &data].concat()), rig.now, rig.now);
            let header = Header::parse(&bytes).unwrap();
            // Addresses and codes that exist now and then.
            let address = if near < 6 { K4.address_of(u32::from(near)) + header.address % 5_000 } else { header.address };
            let forged = Header {
                kind, code: header.code % 6, index: 0, packets: 1, address, length: data.len() as u32,
                pid: grant.space.pid, epoch: grant.space.epoch, token: grant.token, ..header
            };
            rig.deliver(&forged, &data);
            if near == 0 {
                rig.pause();
                rig.poll();
            }
        }
        rig.poll();
        for _ in 0..50 {
            rig.pause();
        }
        rig.poll();
        prop_assert_eq!(rig.read(&other, address, 64), Ok(vec![0xab; 64]));
        prop_assert!(rig.board.end(grant.space, rig.now));
        for _ in 0..200 {
            rig.pause();
        }
        prop_assert_eq!((rig.board.processes(), rig.board.usage(K4).taken), (1, 1));
    }
}

#[test]
fn locks_have_one_owner_and_a_lease() {
    let (mut rig, grant, address, _) = write();
    let mine = |thread| lock_word(grant.space.pid, thread, grant.space.epoch);
    let lock = |rig: &mut Rig, at, thread| rig.atomic(&grant, Atomic::Lock, at, &[thread]);
    let unlock = |rig: &mut Rig, at, thread| rig.atomic(&grant, Atomic::Unlock, at, &[thread]);
    assert_eq!(lock(&mut rig, address, 1), Ok(0), "it was free");
    assert_eq!(lock(&mut rig, address, 2), Ok(mine(1)), "it is held");
    assert_eq!(lock(&mut rig, address, 1), Ok(mine(1)), "it is extended");
    assert_eq!(unlock(&mut rig, address, 2), Err(Status::NotOwner));
    assert_eq!(unlock(&mut rig, address, 1), Ok(mine(1)));
    assert_eq!(unlock(&mut rig, address, 1), Err(Status::NotOwner));
    assert_eq!(lock(&mut rig, address, 1 << 16), Err(Status::BadRequest), "no such thread");
    assert_eq!(lock(&mut rig, address + 4, 1), Err(Status::BadRequest), "not aligned");
    // Two locks are permitted; the third waits until a lease ends.
    assert_eq!((lock(&mut rig, address, 1), lock(&mut rig, address + 8, 1)), (Ok(0), Ok(0)));
    assert_eq!(lock(&mut rig, address + 16, 1), Err(Status::Busy));
    assert_eq!(rig.write(&grant, address + 8, &[9; 8]), Status::Done);
    rig.now += Nanos::from_millis(5);
    rig.pause();
    assert_eq!((lock(&mut rig, address + 16, 1), lock(&mut rig, address, 2)), (Ok(0), Ok(0)));
    assert_eq!(rig.read(&grant, address + 8, 8), Ok(vec![9; 8]), "what a plain write left stays");
    assert_eq!(rig.board.counters().locks_ended, 1);
    // A page that was freed, and has another frame now, keeps its bytes.
    assert_eq!(rig.free(&grant, address, PAGE), Status::Done);
    assert_eq!(rig.alloc(&grant, K4, PAGE, Rights::ALL), Ok(address));
    assert_eq!(rig.write(&grant, address, &mine(2).to_le_bytes()), Status::Done);
    rig.now += Nanos::from_millis(6);
    rig.pause();
    assert_eq!(rig.read(&grant, address, 8), Ok(mine(2).to_le_bytes().to_vec()));
    assert_eq!(rig.board.counters().locks_ended, 1);
}

/// A driver may charge clients for what their requests cost later.
#[test]
fn work_of_a_request_that_comes_later_has_a_known_sender() {
    let mut rig = Rig::new(Config { processes_max: 2, ..config() });
    let [first, second] = [(); 2].map(|()| rig.board.begin(quotas(0, 9)).unwrap());
    let address = rig.alloc(&first, K4, PAGE, Rights::ALL).unwrap();
    assert_eq!((rig.board.next_caller(), rig.board.taken_bytes()), (None, 0), "no page was accessed");
    assert_eq!(rig.read(&first, address, 4), Ok(vec![0; 4]));
    assert_eq!(rig.read(&first, address, 4), Ok(vec![0; 4]));
    assert_eq!(rig.board.taken_bytes(), PAGE);
    // Calls of two processes, in turn.
    for grant in [&first, &second] {
        let mut body = [0; AllocBody::BYTES];
        AllocBody { bytes: 7 * PAGE, page_size: K4 as u8, rights: Rights::ALL.code(), reserved: 0 }
            .emit(&mut body);
        let header = rig.header(grant, Kind::Manage, Manage::Alloc as u8, 0, body.len() as u32);
        rig.deliver(&header, &body);
    }
    let mut of = Vec::new();
    while let Some(peer) = rig.board.next_caller() {
        of.push(u32::from(peer));
        rig.step();
    }
    assert!(of.len() > 4 && of.windows(2).all(|pair| pair[0] != pair[1]), "{of:?}");
    assert_eq!(of[0], first.space.pid);
}
