//! The way `clio`: clients of a board over UDP on this machine, without root.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::{with_board, with_board_and_store};
use p4rack_fabric::clio::lib;
use p4rack_fabric::remote::Way;
use p4rack_hosts::clio::{
    AskError, CHASE, Kv, KvError, KvOutcome, KvRequest, KvShape, Reply, Session, Wanted, list, load_offload,
};
use p4rack_hosts::remote::{Attachment, Held, Operation, Outcome, Region, Remote, Shape, UnderWay, open};
use p4rack_netdev::clock;
use p4rack_offload::Chase;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Rights, Status, lock_thread};

/// Long enough for a machine that other tests keep busy.
const LIMIT: Nanos = Nanos::from_secs(60);

fn shape(region_bytes: u64) -> Shape {
    let under_way = UnderWay::of(32, 4_096);
    Shape { region_bytes, reads: under_way, writes: under_way }
}

fn region(place: &Attachment, region_bytes: u64) -> (Region, Held) {
    let (remote, held) = open(Way::CLIO, place.clone(), shape(region_bytes)).unwrap();
    (Region::new(remote), held)
}

#[test]
fn clients_of_one_process_share_its_memory() {
    with_board(1 << 20, |place| {
        let ((mut one, _held), (mut other, _other)) = (region(place, 0), region(place, 0));
        assert_eq!(one.remote().abilities().region_bytes, 1 << 20);
        // Longer than a packet, than a page, and than the first windows.
        let bytes: Vec<u8> = (0..300_000u32).map(|nth| (nth * 7 + nth / 251) as u8).collect();
        one.write(4_000, &bytes).unwrap();
        let mut found = vec![0; bytes.len()];
        other.read(4_000, &mut found).unwrap();
        assert!(found == bytes);
        assert_eq!((one.cas(8, 0, 5).unwrap(), other.cas(8, 0, 6).unwrap()), (0, 5));
        assert_eq!(
            one.read(1 << 20, &mut [0]).unwrap_err().to_string().split(':').next(),
            Some("out of bounds")
        );
    });
}

#[test]
fn a_lock_has_one_owner() {
    with_board(1 << 16, |place| {
        let open = || Session::open(place.memory.as_ref().unwrap(), 0, place.patience).unwrap();
        let (mut first, mut second) = (open(), open());
        let lock = lib::Operation::Lock { address: first.range().0 };
        assert!(first.thread() > 0 && first.thread() != second.thread());
        assert_eq!(first.ask(lock).unwrap(), Reply::Done);
        let held = first.thread();
        assert!(matches!(second.ask(lock).unwrap(), Reply::Held(word) if lock_thread(word) == held));
        // The lease goes on after its owner.
        drop(first);
        let mut others: Vec<_> = (0..20).map(|_| open()).collect();
        let replies = others.iter_mut().map(|other| other.ask(lock).unwrap());
        let owners = replies.filter(|reply| *reply == Reply::Done).count();
        assert!(owners <= 1, "{owners} owners");
    });
}

/// A client of a process of its own; a refusal says why.
fn own(place: &Attachment, reserve_bytes: u64, limit_bytes: Option<u64>) -> Result<Session, String> {
    let wanted = Wanted { reserve_bytes, limit_bytes, share_limit_bytes: None };
    let server = place.memory.as_ref().unwrap();
    Session::open_as(server, wanted, None, place.patience).map_err(|error| error.to_string())
}

#[test]
fn a_process_of_ones_own_allocates_up_to_its_limit() {
    const KIB: u64 = 1 << 10;
    with_board(512 * KIB, |place| {
        let is_full = |session: &mut Session| {
            let refused = session.alloc(1, Rights::ALL).err();
            matches!(refused, Some(AskError::Failed(Status::NoMemory)))
        };
        let mut wide = own(place, 64 * KIB, Some(256 * KIB)).unwrap();
        assert_eq!((wide.range().1, wide.limit_bytes()), (64 * KIB, 256 * KIB));
        let more = wide.alloc(192 * KIB, Rights::ALL).unwrap();
        wide.write(more + 192 * KIB - 5, b"bytes").unwrap();
        assert!(is_full(&mut wide));
        wide.free(more, 192 * KIB).unwrap();
        let again = wide.alloc(192 * KIB, Rights::ALL).unwrap();
        assert_eq!(wide.read(again + 192 * KIB - 5, 5).unwrap(), [0; 5], "it was freed");
        assert!(is_full(&mut wide));
        // 320 KiB are left beyond the reservations.
        let said = own(place, 64 * KIB, Some(512 * KIB)).err().unwrap();
        assert!(said.contains("bytes to allocate beyond those reserved"), "{said}");
        for (reserved, limit, says) in [
            (64 * KIB, 60 * KIB, "limit_bytes: 61440; write 65536, what is reserved, to 524288"),
            (64 * KIB, 513 * KIB, "to 524288, the bytes of the board"),
            (64 * KIB, u64::MAX, "limit_bytes"),
            (0, 64 * KIB, "give reserve_bytes, too"),
        ] {
            let said = own(place, reserved, Some(limit)).err().unwrap();
            assert!(said.contains(says), "{said}");
        }
        // Without a limit, as many again, as far as these are left.
        let mut usual = own(place, 48 * KIB, None).unwrap();
        assert_eq!(usual.limit_bytes(), 96 * KIB);
        usual.alloc(48 * KIB, Rights::ALL).unwrap();
        assert!(is_full(&mut usual));
        let _others = own(place, 16 * KIB, Some(288 * KIB)).unwrap();
        let mut last = own(place, 48 * KIB, None).unwrap();
        assert_eq!(last.limit_bytes(), 48 * KIB);
        assert!(is_full(&mut last));
        last.free(last.range().0, 4 * KIB).unwrap();
        last.alloc(1, Rights::ALL).unwrap();
    });
}

#[test]
fn what_a_process_shares_another_one_reads_until_both_have_ended() {
    const KIB: u64 = 1 << 10;
    const READ: Rights = Rights { read: true, write: false };
    with_board(512 * KIB, |place| {
        let server = place.memory.as_ref().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let taken = || runtime.block_on(list(server)).unwrap().pages[0].taken;
        let has_taken = |frames: u32| {
            let until = clock::now() + LIMIT;
            while taken() != frames {
                assert!(clock::now() < until, "{} frames instead of {frames}", taken());
            }
        };
        let refused = |done: Result<u64, AskError>| match done {
            Err(AskError::Failed(status)) => status,
            other => panic!("{other:?}"),
        };
        let before = taken();
        let mut one = own(place, 64 * KIB, None).unwrap();
        let wanted = Wanted { share_limit_bytes: Some(32 * KIB), ..Wanted::bytes(32 * KIB) };
        let mut other = Session::open_as(server, wanted, None, place.patience).unwrap();
        assert_eq!(other.share_limit_bytes(), 32 * KIB);
        let with = (other.credentials().pid, other.credentials().epoch);
        let start = one.range().0;
        one.write(start + 5_000, b"of the first one").unwrap();
        let there = one.share(start, 8 * KIB, with, READ).unwrap();
        assert_eq!(other.read(there + 5_000, 16).unwrap(), b"of the first one");
        one.write(start + 5_000, b"on").unwrap();
        assert_eq!(other.read(there + 5_000, 16).unwrap(), b"on the first one", "the same memory");
        let write = other.write(there, b"x").unwrap_err();
        assert!(matches!(write, AskError::Failed(Status::NotPermitted)), "{write}");
        // A read-only range can't be passed on as writable.
        let back = (one.credentials().pid, one.credentials().epoch);
        assert_eq!(refused(other.share(there, 4 * KIB, back, Rights::ALL)), Status::NotPermitted);
        assert_eq!(
            refused(one.share(start, 28 * KIB, with, READ)),
            Status::NoMemory,
            "8 of 32 KiB are taken"
        );
        assert_eq!(refused(one.share(start, 4 * KIB, (with.0, with.1 + 1), READ)), Status::NoSuchProcess);
        let none = own(place, 4 * KIB, None).unwrap();
        assert_eq!(none.share_limit_bytes(), 0);
        let closed = (none.credentials().pid, none.credentials().epoch);
        assert_eq!(refused(one.share(start, 4 * KIB, closed, READ)), Status::NotPermitted);
        let wanted = Wanted { share_limit_bytes: Some(2 << 20), ..Wanted::bytes(4 * KIB) };
        let said = Session::open_as(server, wanted, None, place.patience).err().unwrap().to_string();
        assert!(said.contains("share_limit_bytes: 2097152; write at most 524288"), "{said}");
        // The frames are freed with the last of both.
        has_taken(before + 2);
        let is_there = |session: &Session| {
            let listed = runtime.block_on(list(server)).unwrap();
            listed.processes.iter().any(|one| one.pid == session.credentials().pid)
        };
        let pid = one.credentials().pid;
        drop(one);
        let until = clock::now() + LIMIT;
        while runtime.block_on(list(server)).unwrap().processes.iter().any(|one| one.pid == pid) {
            assert!(clock::now() < until, "process {pid} does not end");
        }
        assert!(is_there(&other));
        assert_eq!(other.read(there + 5_000, 16).unwrap(), b"on the first one");
        has_taken(before + 2);
        drop(other);
        has_taken(before);
    });
}

/// Additions of several threads, many under way, and none is lost or executed twice.
#[test]
fn every_addition_of_every_client_counts_once() {
    const EACH: u64 = 2_000;
    with_board(1 << 16, |place| {
        let add = |remote: &mut dyn Remote| {
            let (mut asked, mut ended, until) = (0, 0, clock::now() + LIMIT);
            while ended < EACH {
                assert!(clock::now() < until, "{ended} of {EACH}");
                while asked < EACH && asked < ended + 16 {
                    let at = 8 * (asked % 4);
                    let opcode = p4rack_hosts::remote::Opcode::FetchAdd;
                    remote.submit(asked, Operation::Modify { at, opcode, operands: [1, 0] }).unwrap();
                    asked += 1;
                }
                remote
                    .poll(until, &mut |_, outcome| {
                        assert!(matches!(outcome, Outcome::Word(_)), "{outcome:?}");
                        ended += 1;
                    })
                    .unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| add(open(Way::CLIO, place.clone(), shape(0)).unwrap().0.as_mut()));
            }
        });
        let (mut one, _held) = region(place, 0);
        let mut words = [0; 32];
        one.read(0, &mut words).unwrap();
        let sum: u64 = words.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).sum();
        assert_eq!(sum, 3 * EACH);
    });
}

#[test]
fn a_process_of_ones_own_is_apart_and_ends_with_its_client() {
    with_board(1 << 16, |place| {
        let own = Attachment { shared: false, ..place.clone() };
        let (mut all, _held) = region(place, 0);
        all.write(0, b"all").unwrap();
        let (mut mine, held) = region(&own, 40_000);
        let mut found = [9; 3];
        mine.read(0, &mut found).unwrap();
        assert_eq!(found, [0; 3], "zeros, and not what others wrote");
        mine.write(0, b"own").unwrap();
        all.read(0, &mut found).unwrap();
        assert_eq!(&found, b"all");
        let refused = open(Way::CLIO, own.clone(), shape(40_000)).err().unwrap().to_string();
        assert!(refused.contains("refuses"), "{refused}");
        drop((mine, held));
        // The board notices the end of the call, and frees the memory in steps.
        let until = clock::now() + LIMIT;
        let (mut again, _held) = loop {
            match open(Way::CLIO, own.clone(), shape(40_000)) {
                Ok((remote, held)) => break (Region::new(remote), held),
                Err(error) => assert!(clock::now() < until, "{error}"),
            }
        };
        again.read(0, &mut found).unwrap();
        assert_eq!(found, [0; 3], "nothing of the process before");
    });
}

fn store(place: &Attachment, value_bytes_max: u32) -> Kv {
    let shape = KvShape { value_bytes_max, written_bytes_max: value_bytes_max, under_way_max: 16 };
    Kv::open(place.memory.as_ref().unwrap(), shape, place.patience).unwrap()
}

#[test]
fn a_store_has_values_of_any_length() {
    with_board(8 << 20, |place| {
        let (mut one, mut other) = (store(place, 1_000), store(place, 65_536));
        assert_eq!(one.get(b"a").unwrap(), None);
        assert!(one.create(b"a", b"first").unwrap() && !other.create(b"a", b"second").unwrap());
        assert_eq!(other.get(b"a").unwrap().as_deref(), Some(&b"first"[..]));
        let long: Vec<u8> = (0..65_536u32).map(|nth| (nth / 7) as u8).collect();
        other.put(b"a", &long).unwrap();
        assert!(other.get(b"a").unwrap().unwrap() == long);
        let refused = one.get(b"a").unwrap_err().to_string();
        assert_eq!(refused, "the board refuses: bad length", "longer than this client takes");
        assert!(one.update(b"a", b"").unwrap() && !one.update(b"b", b"").unwrap());
        assert_eq!(one.get(b"a").unwrap(), Some(vec![]));
        assert!(one.delete(b"a").unwrap() && !one.delete(b"a").unwrap());
        assert_eq!(one.put(b"", b"").unwrap_err().to_string(), "a key has 1 to 255 bytes, this one has 0");
        let long = one.put(b"a", &[0; 1_001]).unwrap_err().to_string();
        assert_eq!(long, "a value has at most 1000 bytes here, this one has 1001");
        assert_eq!(one.under_way(), 0);
    });
}

/// Without answers for as long as a client retries, a value's place may still be written to: later values have other places.
#[test]
fn a_client_of_a_store_goes_on_after_a_request_without_an_end() {
    with_board_and_store(8 << 20, 4 << 20, |place, board| {
        let server = place.memory.as_ref().unwrap();
        let shape = KvShape { value_bytes_max: 9_000, written_bytes_max: 9_000, under_way_max: 1 };
        let mut kv = Kv::open(server, shape, place.patience).unwrap();
        kv.put(b"a", &[1; 9_000]).unwrap();
        let (silent, over) = std::sync::mpsc::channel::<()>();
        board.post(move |_| _ = over.recv()).unwrap();
        let error = kv.put(b"a", &[2; 9_000]).unwrap_err();
        assert!(matches!(error, KvError::Unknown), "{error}");
        drop(silent);
        kv.put(b"b", &[3; 9_000]).unwrap();
        assert!(kv.get(b"b").unwrap().unwrap() == [3; 9_000]);
        let first = kv.get(b"a").unwrap().unwrap();
        assert!(first == [1; 9_000] || first == [2; 9_000], "{}", first[0]);
    });
}

/// A board with room for one set of places: the client's former process gives its memory back first. A second client of long values finds
/// none, which its short values don't need.
#[test]
fn places_for_long_values_are_found_on_a_full_board() {
    const VALUE: u32 = 30_000;
    // Two places in pages of 4 KB, and the offered range.
    with_board_and_store(64 << 10, 1 << 20, |place, board| {
        let server = place.memory.as_ref().unwrap();
        let shape = KvShape { value_bytes_max: VALUE, written_bytes_max: VALUE, under_way_max: 1 };
        let mut kv = Kv::open(server, shape, place.patience).unwrap();
        let other = Kv::open(server, shape, place.patience).err().unwrap().to_string();
        assert!(other.contains("refuses"), "{other}");
        let (silent, over) = std::sync::mpsc::channel::<()>();
        board.post(move |_| _ = over.recv()).unwrap();
        let error = kv.put(b"a", &[2; VALUE as usize]).unwrap_err();
        assert!(matches!(error, KvError::Unknown), "{error}");
        drop(silent);
        kv.put(b"b", b"short").unwrap();
        kv.put(b"c", &[3; VALUE as usize]).unwrap();
        assert!(kv.get(b"c").unwrap().unwrap() == [3; VALUE as usize]);
    });
}

/// A module without an end is called again and again; others are served all the time, and so is another module, for which a tenth of the
/// board's time is left.
#[test]
fn long_calls_end_beside_packets_without_a_pause() {
    // `call` counts down from 1,000,000 for function 1, and never ends for function 0.
    const MODULE: &str = r#"(module (memory (export "memory") 1)
        (func (export "call") (param $function i32) (param $bytes i32) (result i32) (local $left i32)
            (local.set $left (i32.const 100000))
            (loop $again
                (local.set $left (i32.sub (local.get $left) (local.get $function)))
                (br_if $again (local.get $left)))
            (i32.const 0)))"#;
    with_board_and_store(1 << 20, 0, |place, _| {
        let server = place.memory.as_ref().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let load = |name: &str| {
            let loaded = load_offload(server, name, wat::parse_str(MODULE).unwrap(), 4_096);
            runtime.block_on(loaded).unwrap()
        };
        let (endless, counting) = (load("endless"), load("counting"));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let over = || is_over.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            // It ends when its fuel is used up.
            scope.spawn(|| {
                let mut caller = Session::open(server, 4_096, place.patience).unwrap();
                while !over() {
                    _ = caller.call(endless, 0, b"");
                }
            });
            scope.spawn(|| {
                let mut reader = Session::open(server, 4_096, place.patience).unwrap();
                let address = reader.range().0;
                while !over() {
                    assert_eq!(reader.read(address, 8).unwrap(), [0; 8]);
                }
            });
            let mut caller = Session::open(server, 4_096, place.patience).unwrap();
            for _ in 0..5 {
                let ended = caller.call(counting, 1, b"");
                assert_eq!(ended.map_err(|error| error.to_string()), Ok(Vec::new()));
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}

#[test]
fn a_board_without_a_store_has_no_other_offload_in_its_place() {
    // A module with a memory and a `call` that returns 0.
    const MODULE: &[u8] =
        b"\0asm\x01\0\0\0\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f\x03\x02\x01\0\x05\x03\x01\0\x01\
        \x07\x11\x02\x06memory\x02\0\x04call\0\0\x0a\x06\x01\x04\0\x41\0\x0b";
    with_board_and_store(1 << 20, 0, |place, _| {
        let server = place.memory.as_ref().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let load = |name: &str| {
            let loaded = load_offload(server, name, MODULE.to_vec(), 4_096);
            runtime.block_on(loaded).map_err(|error| error.to_string())
        };
        assert_eq!(load("mine"), Ok(2));
        assert!(load("all").unwrap_err().contains("but not `all`"));
        let shape = KvShape { value_bytes_max: 100, written_bytes_max: 0, under_way_max: 1 };
        let error = Kv::open(server, shape, place.patience).unwrap().get(b"a").unwrap_err();
        assert_eq!(error.to_string(), "the board refuses: no such offload");
    });
}

/// Two clients that change values that they have read, with new values in the request or written to the board before.
#[test]
fn an_update_is_made_in_the_version_that_was_read_or_not_at_all() {
    const EACH: u64 = 200;
    with_board(8 << 20, |place| {
        let ends = |kv: &mut Kv, request: KvRequest<'_>| {
            kv.submit(0, request).unwrap();
            let (mut ended, until) = (None, clock::now() + LIMIT);
            while ended.is_none() {
                assert!(clock::now() < until, "no end");
                kv.poll(until, &mut |_, outcome| {
                    ended = Some(match outcome {
                        KvOutcome::Versioned(version, value) => Some((version, value.to_vec())),
                        KvOutcome::Done => Some((0, Vec::new())),
                        KvOutcome::NotFound => None,
                        outcome => panic!("{outcome:?}"),
                    });
                })
                .unwrap();
            }
            ended.unwrap()
        };
        for bytes in [8, 5_000] {
            let key = [bytes as u8];
            let mut first = store(place, 5_000);
            assert_eq!(ends(&mut first, KvRequest::GetVersion(&key)), None);
            assert!(first.create(&key, &vec![0; bytes]).unwrap());
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let (mut kv, mut done) = (store(place, 5_000), 0);
                        while done < EACH {
                            let (version, mut value) = ends(&mut kv, KvRequest::GetVersion(&key)).unwrap();
                            let count = u64::from_le_bytes(value[..8].try_into().unwrap());
                            value[..8].copy_from_slice(&(count + 1).to_le_bytes());
                            done += u64::from(
                                ends(&mut kv, KvRequest::UpdateVersion(&key, version, &value)).is_some(),
                            );
                        }
                    });
                }
            });
            let (version, value) = ends(&mut first, KvRequest::GetVersion(&key)).unwrap();
            assert_eq!((version, &value[..8]), (2 * EACH + 1, &(2 * EACH).to_le_bytes()[..]));
            assert_eq!(ends(&mut first, KvRequest::UpdateVersion(&key, 1, &[])), None, "an old version");
        }
    });
}

/// Many requests of several clients under way; long and short values, none mixed with another.
#[test]
fn clients_of_a_store_keep_many_requests_under_way() {
    const EACH: u64 = 1_500;
    with_board(16 << 20, |place| {
        let work = |number: u8, bytes: u32| {
            let mut kv = store(place, bytes);
            let (mut asked, mut ended, until) = (0u64, 0u64, clock::now() + LIMIT);
            while ended < EACH {
                assert!(clock::now() < until, "{ended} of {EACH}");
                while asked < EACH && kv.under_way() < 16 {
                    let key = [b'k', (asked / 2 % 8) as u8];
                    let value = vec![number; 1 + (asked * 37 % u64::from(bytes)) as usize];
                    let request =
                        if asked % 2 == 0 { KvRequest::Put(&key, &value) } else { KvRequest::Get(&key) };
                    kv.submit(asked, request).unwrap();
                    asked += 1;
                }
                kv.poll(until, &mut |tag, outcome| {
                    ended += 1;
                    match outcome {
                        KvOutcome::Value(value) => {
                            assert!(tag % 2 == 1 && value.iter().all(|byte| *byte == value[0]), "{tag}");
                        }
                        KvOutcome::NotFound => assert_eq!(tag % 2, 1),
                        // Another client's long value.
                        KvOutcome::Failed(Status::BadLength) => assert!(tag % 2 == 1 && bytes < 9_000),
                        outcome => assert_eq!((tag % 2, outcome), (0, KvOutcome::Done)),
                    }
                })
                .unwrap();
            }
        };
        std::thread::scope(|scope| {
            for (number, bytes) in [(1, 1_000), (2, 1_000), (3, 9_000)] {
                let work = &work;
                scope.spawn(move || work(number, bytes));
            }
        });
    });
}

#[test]
fn a_chase_follows_pointers_in_the_callers_memory() {
    with_board(1 << 20, |place| {
        let mut session = Session::open(place.memory.as_ref().unwrap(), 0, place.patience).unwrap();
        let start = session.range().0;
        let node = |key: u64, next: u64| [key, next, key * 10].map(u64::to_le_bytes).concat();
        // The write is still under way when the call is asked for.
        let nodes = [node(1, start + 24), node(2, start + 48), node(3, 0)].concat();
        session.submit(0, lib::Operation::Write { address: start, bytes: &nodes }).unwrap();
        let mut arguments = [0; Chase::BYTES];
        let chase = Chase {
            address: start,
            key: 3,
            key_offset: 0,
            next_offset: 8,
            value_offset: 16,
            value_bytes: 8,
            depth: 10,
            value_is_pointer: 0,
            reserved: 0,
        };
        chase.emit(&mut arguments);
        let call = lib::Operation::Call {
            offload: CHASE,
            function: 0,
            arguments: &arguments,
            results_bytes_max: 64,
            is_ordered: true,
        };
        session.submit(1, call).unwrap();
        let (mut found, until) = (None, clock::now() + LIMIT);
        while found.is_none() && clock::now() < until {
            session
                .poll(until, &mut |tag, outcome| match outcome {
                    lib::Outcome::Results(bytes) => found = Some(bytes.to_vec()),
                    outcome => assert_eq!((tag, outcome), (0, lib::Outcome::Done)),
                })
                .unwrap();
        }
        assert_eq!(found.unwrap(), [start + 48, 30].map(u64::to_le_bytes).concat());
    });
}
