//! Offloads behind a board, called by packets.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{ALL, PAGE, Rig};
use p4rack_offload::{Chase, Kv, KvArguments, KvFunction, PointerChase, VALUE_BYTES_MAX};
use p4rack_wire::clio::{Kind, Status};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A store in as many pages, called by the rig's process.
struct Store {
    rig: Rig,
    kv: u64,
    /// Memory of the caller for long values.
    staged: u64,
}

impl Store {
    fn new(pages: u64, buckets: u64) -> Store {
        let mut rig = Rig::new();
        let own = rig.board.begin(ALL).unwrap();
        let start = rig.alloc(&own, pages);
        let kv = rig.offloads.add(own.space, Box::new(Kv::new(own.space, start, pages * PAGE, buckets, 9)));
        let caller = rig.caller;
        let staged = rig.alloc(&caller, 17);
        Store { rig, kv, staged }
    }

    fn call(
        &mut self,
        function: KvFunction,
        key: &[u8],
        value: &[u8],
        in_memory: bool,
    ) -> Result<Vec<u8>, Status> {
        let (key_bytes, value_bytes) = (key.len() as u8, value.len() as u32);
        let value_address = if in_memory { self.staged + 100 } else { 0 };
        let mut data = vec![0; KvArguments::BYTES];
        KvArguments { value_address, value_bytes, key_bytes, reserved: 0 }.emit(&mut data);
        data.extend_from_slice(key);
        if in_memory {
            self.rig.write(value_address, value);
        } else {
            data.extend_from_slice(value);
        }
        self.ask(function, &data)
    }

    /// Changes the value of a key in this version.
    fn update_version(&mut self, key: &[u8], version: u64, value: &[u8]) -> Result<Vec<u8>, Status> {
        let (key_bytes, value_bytes) = (key.len() as u8, value.len() as u32);
        let mut data = vec![0; KvArguments::BYTES];
        KvArguments { value_address: 0, value_bytes, key_bytes, reserved: 0 }.emit(&mut data);
        self.ask(KvFunction::UpdateVersion, &[&data, key, &version.to_le_bytes(), value].concat())
    }

    fn ask(&mut self, function: KvFunction, data: &[u8]) -> Result<Vec<u8>, Status> {
        let caller = self.rig.caller;
        let (status, _, results) = self.rig.ask(&caller, Kind::Call, function as u8, self.kv, data);
        if status == Status::Done { Ok(results) } else { Err(status) }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Create(Vec<u8>, usize, bool),
    Read(Vec<u8>),
    Update(Vec<u8>, usize, bool),
    Put(Vec<u8>, usize, bool),
    Delete(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    // Keys that differ at their ends and in their length alone.
    let key = (1usize..4, 0u8..4).prop_map(|(length, last)| [&vec![7; 20 * length][..], &[last]].concat());
    let value = prop_oneof![0usize..60, 1_000usize..5_000];
    prop_oneof![
        3 => (key.clone(), value.clone(), any::<bool>()).prop_map(|(key, value, far)| Step::Create(key, value, far)),
        4 => key.clone().prop_map(Step::Read),
        3 => (key.clone(), value.clone(), any::<bool>()).prop_map(|(key, value, far)| Step::Update(key, value, far)),
        2 => (key.clone(), value, any::<bool>()).prop_map(|(key, value, far)| Step::Put(key, value, far)),
        2 => key.prop_map(Step::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A store is a map; with one bucket, too. Freed blocks serve again, so the store never runs out of its few pages.
    #[test]
    fn a_store_is_a_map(steps in prop::collection::vec(step(), 1..80), buckets in 1u64..5) {
        let (mut store, mut map) = (Store::new(60, buckets), BTreeMap::<Vec<u8>, Vec<u8>>::new());
        for (nth, step) in steps.into_iter().enumerate() {
            let value = |bytes| vec![nth as u8; bytes];
            match step {
                Step::Create(key, bytes, far) => {
                    let wanted = if map.contains_key(&key) { Err(Status::Exists) } else { Ok(Vec::new()) };
                    prop_assert_eq!(store.call(KvFunction::Create, &key, &value(bytes), far), wanted);
                    map.entry(key).or_insert(value(bytes));
                }
                Step::Read(key) => {
                    let wanted = map.get(&key).cloned().ok_or(Status::NotFound);
                    prop_assert_eq!(store.call(KvFunction::Read, &key, &[], false), wanted);
                }
                Step::Update(key, bytes, far) => {
                    let wanted = if map.contains_key(&key) { Ok(Vec::new()) } else { Err(Status::NotFound) };
                    prop_assert_eq!(store.call(KvFunction::Update, &key, &value(bytes), far), wanted);
                    map.entry(key).and_modify(|known| *known = value(bytes));
                }
                Step::Put(key, bytes, far) => {
                    prop_assert_eq!(store.call(KvFunction::Put, &key, &value(bytes), far), Ok(Vec::new()));
                    map.insert(key, value(bytes));
                }
                Step::Delete(key) => {
                    let wanted = map.remove(&key).map(|_| Vec::new()).ok_or(Status::NotFound);
                    prop_assert_eq!(store.call(KvFunction::Delete, &key, &[], false), wanted);
                }
            }
        }
    }
}

/// Of two clients that change the value that they have read, one finds another version. A key that is created again
/// starts from version 1.
#[test]
fn versions_count_changes_and_guard_updates() {
    let mut store = Store::new(40, 2);
    let at = |version: u64, value: &[u8]| [&version.to_le_bytes()[..], value].concat();
    let read = |store: &mut Store| store.call(KvFunction::ReadVersion, b"key", &[], false);
    assert_eq!(read(&mut store), Err(Status::NotFound));
    assert_eq!(store.update_version(b"key", 0, b"none"), Err(Status::NotFound), "no such key");
    assert_eq!(store.call(KvFunction::Create, b"key", b"one", false), Ok(vec![]));
    assert_eq!(read(&mut store), Ok(at(1, b"one")));
    assert_eq!(store.update_version(b"key", 1, b"two"), Ok(vec![]));
    assert_eq!(store.update_version(b"key", 1, b"other"), Err(Status::NotFound), "another version");
    assert_eq!(read(&mut store), Ok(at(2, b"two")));
    assert_eq!(store.call(KvFunction::Update, b"key", b"a third value, in a longer block", true), Ok(vec![]));
    assert_eq!(read(&mut store), Ok(at(3, b"a third value, in a longer block")));
    assert_eq!(
        store.call(KvFunction::Read, b"key", &[], false),
        Ok(b"a third value, in a longer block".to_vec())
    );
    assert_eq!(store.call(KvFunction::Delete, b"key", &[], false), Ok(vec![]));
    assert_eq!(store.call(KvFunction::Create, b"key", b"", false), Ok(vec![]));
    assert_eq!(read(&mut store), Ok(at(1, b"")));
    assert_eq!(
        store.call(KvFunction::UpdateVersion, b"key", b"short", false),
        Err(Status::BadLength),
        "no version"
    );
}

#[test]
fn the_longest_keys_and_values_fit_and_no_longer_ones() {
    let mut store = Store::new(40, 8);
    let (key, value) = ([5; 255], (0..VALUE_BYTES_MAX).map(|nth| (nth / 7) as u8).collect::<Vec<_>>());
    assert_eq!(store.call(KvFunction::Create, &key, &value, true), Ok(vec![]));
    assert_eq!(store.call(KvFunction::Read, &key, &[], false), Ok(value.clone()));
    let too_long = vec![0; VALUE_BYTES_MAX as usize + 1];
    assert_eq!(store.call(KvFunction::Update, &key, &too_long, true), Err(Status::BadLength));
    assert_eq!(store.call(KvFunction::Create, &[], &[], false), Err(Status::BadLength), "no key");
    assert_eq!(
        store.call(KvFunction::Create, &[1], &value, true),
        Err(Status::NoMemory),
        "no room for a second one"
    );
    assert_eq!(store.call(KvFunction::Delete, &key, &[], false), Ok(vec![]));
    assert_eq!(store.call(KvFunction::Create, &[1], &value, true), Ok(vec![]), "the block is free again");
    assert_eq!(store.call(KvFunction::Create, &[2], &[3; 10], false), Ok(vec![]));
}

/// A store with room for three blocks of 1 KB: two keys, and a block that updates take in turn.
#[test]
fn the_block_of_the_old_value_serves_again_after_an_update() {
    let mut store = Store::new(1, 1);
    let value = |nth: u8| vec![nth; 990];
    for key in 1..=2 {
        assert_eq!(store.call(KvFunction::Create, &[key], &value(key), true), Ok(vec![]));
    }
    for nth in 3..40 {
        let (key, other) = (1 + nth % 2, 2 - nth % 2);
        let before = if nth == 3 { value(other) } else { value(nth - 1) };
        assert_eq!(store.call(KvFunction::Update, &[key], &value(nth), true), Ok(vec![]), "{nth}");
        assert_eq!(store.call(KvFunction::Read, &[key], &[], false), Ok(value(nth)));
        assert_eq!(
            store.call(KvFunction::Read, &[other], &[], false),
            Ok(before),
            "{nth}: the other key's block is its own"
        );
    }
    // The free block is one: a third key takes it, and then neither a fourth one nor an update finds any.
    assert_eq!(store.call(KvFunction::Create, &[3], &value(50), true), Ok(vec![]));
    assert_eq!(store.call(KvFunction::Create, &[4], &value(51), true), Err(Status::NoMemory));
    assert_eq!(store.call(KvFunction::Update, &[3], &value(52), true), Err(Status::NoMemory));
    for (key, nth) in [(1, 38), (2, 39), (3, 50)] {
        assert_eq!(store.call(KvFunction::Read, &[key], &[], false), Ok(value(nth)), "key {key}");
    }
}

/// Nodes of 32 bytes in the caller's memory: key, next, value.
fn list(rig: &mut Rig, nodes: &[(u64, u64, u64)]) {
    for (address, key, next) in nodes {
        let words = [*key, *next, key * 100, *address + 16];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        rig.write(*address, &bytes);
    }
}

#[test]
fn a_pointer_chase_finds_ends_and_stops() {
    let mut rig = Rig::new();
    let caller = rig.caller;
    let [own, other] = [(); 2].map(|()| rig.board.begin(ALL).unwrap());
    let number = rig.offloads.add(own.space, Box::new(PointerChase));
    let start = rig.alloc(&caller, 3);
    let theirs = rig.alloc(&other, 8) + 7 * PAGE;
    // From the border of two pages to the third one, and back; 3 → 4 → 5 is a circle, 6 leads out of the memory.
    let at = [start + PAGE - 16, start + 2 * PAGE, start + 64, start + 128, start + 192, start + 256];
    list(&mut rig, &[(at[0], 1, at[1]), (at[1], 2, 0)]);
    list(&mut rig, &[(at[2], 3, at[3]), (at[3], 4, at[4]), (at[4], 5, at[3]), (at[5], 6, theirs)]);
    let chase = |rig: &mut Rig, address, key, value_is_pointer| {
        let (key_offset, next_offset) = (0, 8);
        let value_offset = if value_is_pointer == 1 { 24 } else { 16 };
        let (value_bytes, depth, reserved) = (8, 10, 0);
        let chase = Chase {
            address,
            key,
            key_offset,
            next_offset,
            value_offset,
            value_bytes,
            depth,
            value_is_pointer,
            reserved,
        };
        let mut data = [0; Chase::BYTES];
        chase.emit(&mut data);
        let (status, _, results) = rig.ask(&caller, Kind::Call, 1, number, &data);
        let word = |at: usize| u64::from_le_bytes(results[at..at + 8].try_into().unwrap());
        if status == Status::Done { Ok((word(0), word(8))) } else { Err(status) }
    };
    assert_eq!(chase(&mut rig, at[0], 1, 0), Ok((at[0], 100)));
    assert_eq!(chase(&mut rig, at[0], 2, 0), Ok((at[1], 200)));
    assert_eq!(chase(&mut rig, at[0], 2, 1), Ok((at[1], 200)));
    assert_eq!(chase(&mut rig, at[0], 9, 0), Err(Status::NotFound));
    assert_eq!(chase(&mut rig, 0, 9, 0), Err(Status::NotFound));
    assert_eq!(chase(&mut rig, at[2], 5, 0), Ok((at[4], 500)));
    assert_eq!(chase(&mut rig, at[2], 9, 0), Err(Status::OffloadFailed), "a circle");
    assert_eq!(chase(&mut rig, at[5], 9, 0), Err(Status::NoSuchAddress), "another process's memory");
    assert_eq!(chase(&mut rig, u64::MAX - 3, 9, 0), Err(Status::NoSuchAddress));
    assert_eq!(rig.ask(&caller, Kind::Call, 1, number, &[0; 3]).0, Status::BadLength);
    assert_eq!(rig.ask(&caller, Kind::Call, 1, 7, &[]).0, Status::NoSuchOffload);
}
