use super::*;
use p4rack_fabric::common::SplitMix;
use p4rack_hosts::remote::{Abilities, Local};
use std::collections::HashMap;

/// Slow remote memory: operations take effect and end in any order.
struct Slow {
    abilities: Abilities,
    bytes: Vec<u8>,
    random: SplitMix,
    reads: Vec<(u64, u64, u32)>,
    writes: Vec<(u64, u64, Vec<u8>)>,
    done: Vec<(u64, Option<Vec<u8>>)>,
    /// Loses the write of this number.
    loses: Option<usize>,
    writes_done: usize,
}

impl Slow {
    fn new(bytes: u64, seed: u64) -> Slow {
        let local = Local::new(bytes);
        Slow {
            abilities: local.abilities().clone(),
            bytes: vec![0xee; bytes as usize],
            random: SplitMix(seed),
            reads: Vec::new(),
            writes: Vec::new(),
            done: Vec::new(),
            loses: None,
            writes_done: 0,
        }
    }

    /// A random index below `of`.
    fn any(&mut self, of: usize) -> usize {
        self.random.next() as usize % of
    }
}

impl Remote for Slow {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        match operation {
            Operation::Read { at, bytes } => self.reads.push((tag, at, bytes)),
            Operation::Write { at, bytes } => self.writes.push((tag, at, bytes.to_vec())),
            Operation::Gather { .. } | Operation::Scatter { .. } | Operation::Modify { .. } => {
                return Err(Status::BadOperation);
            }
        }
        Ok(())
    }

    fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        for _ in 0..self.random.next() % 6 {
            if self.random.next().is_multiple_of(2) && !self.reads.is_empty() {
                let nth = self.any(self.reads.len());
                let (tag, at, bytes) = self.reads.swap_remove(nth);
                self.done.push((tag, Some(self.bytes[at as usize..][..bytes as usize].to_vec())));
            }
            if self.random.next().is_multiple_of(2) && !self.writes.is_empty() {
                let nth = self.any(self.writes.len());
                let (tag, at, bytes) = self.writes.swap_remove(nth);
                if self.loses != Some(self.writes_done) {
                    self.bytes[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                self.writes_done += 1;
                self.done.push((tag, None));
            }
        }
        for _ in 0..self.random.next() % 12 {
            if !self.done.is_empty() {
                let nth = self.any(self.done.len());
                let (tag, read) = self.done.swap_remove(nth);
                ended(tag, read.as_deref().map_or(Outcome::Written, Outcome::Read));
            }
        }
        Ok(())
    }
}

const CONFIG: Config = Config {
    keys_max: 60,
    value_bytes: 8,
    page_records: 4,
    memory_pages: 5,
    mutable_pages: 3,
    region_pages: 40,
    reads_max: 7,
};

/// Thousands of random operations. Every read has to return a version that was current at some time during the read. Returns the
/// counters, and the first mistake.
fn shuffle(seed: u64, operations: u64, loses: Option<usize>) -> Result<Counters, String> {
    let mut remote = Slow::new(CONFIG.region_bytes(), seed);
    remote.loses = loses;
    let mut random = SplitMix(seed ^ 0x10_0000);
    let mut store = LogStore::new(CONFIG).unwrap();
    // The current version by key. Reads in flight: key, version at the start, whether they replace it.
    let mut current: HashMap<u64, u64> = HashMap::new();
    let mut reads: HashMap<u64, (u64, u64, bool)> = HashMap::new();
    let mut version = 0u64;
    let came = |current: &HashMap<u64, u64>, key: u64, least: u64, value: &[u8]| {
        let got = u64::from_le_bytes(value.try_into().unwrap());
        match (least..=current[&key]).contains(&got) {
            true => Ok(()),
            false => Err(format!("key {key} has version {got}, not {least} to {}", current[&key])),
        }
    };
    for token in 0..operations {
        let (key, what) = (random.next() % CONFIG.keys_max as u64, random.next() % 4);
        if what == 0 {
            let mut tries = 0;
            loop {
                version += 1;
                if store.write(&mut remote, key, &version.to_le_bytes()).unwrap() {
                    break;
                }
                tries += 1;
                assert!(tries < 10_000, "no room ever comes");
                pass(&mut store, &mut remote, &mut reads, &mut current, &mut version, came)?;
            }
            current.insert(key, version);
            continue;
        }
        match store.read(&mut remote, key, token).unwrap() {
            Found::Missing if !current.contains_key(&key) => {}
            Found::Missing => return Err(format!("key {key} is gone")),
            Found::Here(_, value) => came(&current, key, current[&key], value)?,
            Found::Later => drop(reads.insert(token, (key, current[&key], what == 1))),
            Found::Busy => {
                pass(&mut store, &mut remote, &mut reads, &mut current, &mut version, came)?;
            }
        }
    }
    for _ in 0..10_000 {
        if store.is_quiet() {
            break;
        }
        pass(&mut store, &mut remote, &mut reads, &mut current, &mut version, came)?;
    }
    assert!(store.is_quiet() && reads.is_empty());
    Ok(store.counters())
}

type Came = fn(&HashMap<u64, u64>, u64, u64, &[u8]) -> Result<(), String>;

/// Waits once, checks the values that arrived, and replaces those that were read for that.
fn pass(
    store: &mut LogStore,
    remote: &mut Slow,
    reads: &mut HashMap<u64, (u64, u64, bool)>,
    current: &mut HashMap<u64, u64>,
    version: &mut u64,
    check: Came,
) -> Result<(), String> {
    let mut all = Vec::new();
    let waited =
        store.wait(remote, Nanos::MAX, &mut |token, record, value| all.push((token, record, value.to_vec())));
    waited.map_err(|error| error.to_string())?;
    for (token, record, value) in all {
        let (key, least, replaces) = reads.remove(&token).ok_or("nobody had asked")?;
        check(current, key, least, &value)?;
        if !replaces {
            continue;
        }
        let next = *version + 1;
        match store.replace(remote, key, record, &next.to_le_bytes()).unwrap() {
            // No write since then: the replaced value is the current one.
            Replaced::Done if value != current[&key].to_le_bytes() => {
                return Err(format!("a write of key {key} was lost"));
            }
            Replaced::Done => {
                *version = next;
                current.insert(key, next);
            }
            Replaced::Changed | Replaced::Busy => {}
        }
    }
    Ok(())
}

#[test]
fn every_read_brings_what_was_current_while_it_was_under_way() {
    let mut all = Counters::default();
    for seed in 0..200 {
        let counters = shuffle(seed, 3_000, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        all.cold_reads += counters.cold_reads;
        all.pages_compacted += counters.pages_compacted;
        all.moved += counters.moved;
    }
    assert!(all.cold_reads > 50_000 && all.pages_compacted > 5_000 && all.moved > 5_000, "{all:?}");
}

#[test]
fn a_page_that_never_arrived_is_seen() {
    let wrong = (0..100).filter(|seed| shuffle(*seed, 3_000, Some(20)).is_err()).count();
    assert!(wrong > 90, "only {wrong} of 100 were seen");
}

#[test]
fn sizes_that_can_not_work_are_refused() {
    assert!(LogStore::new(CONFIG).is_ok());
    for bad in [
        Config { value_bytes: 12, ..CONFIG },
        Config { page_records: 0, ..CONFIG },
        Config { memory_pages: 3, ..CONFIG },
        Config { memory_pages: 0, mutable_pages: 0, ..CONFIG },
        Config { mutable_pages: 5, ..CONFIG },
        Config { mutable_pages: 0, ..CONFIG },
        Config { region_pages: 34, ..CONFIG },
        Config { reads_max: 0, ..CONFIG },
    ] {
        assert!(matches!(LogStore::new(bad), Err(StoreError::Config(_))), "{bad:?}");
    }
}

#[test]
fn another_key_than_the_index_has_room_for_is_refused() {
    let (mut store, mut remote) = (LogStore::new(CONFIG).unwrap(), Slow::new(CONFIG.region_bytes(), 1));
    let mut write = |key| loop {
        match store.write(&mut remote, key, &[0; 8]) {
            Ok(true) => return Ok(()),
            Ok(false) => drop(store.wait(&mut remote, Nanos::MAX, &mut |_, _, _| {}).unwrap()),
            Err(error) => return Err(error),
        }
    };
    let refused = (0..200).find_map(|key| write(key).err());
    assert!(matches!(refused, Some(StoreError::Full(60))), "{refused:?}");
}

#[test]
fn the_sizes_by_share_of_memory_work() {
    for (keys, value_bytes, percent) in [(1, 8, 1), (1_000, 64, 10), (100_000, 504, 25), (10, 8_192, 50)] {
        let config = Config::new(keys, value_bytes, percent, 64);
        assert!(LogStore::new(config).is_ok(), "{config:?}");
    }
}
