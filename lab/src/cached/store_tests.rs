use super::*;
use crate::ycsb::{Client, ClientConfig, Contents};
use p4rack_codegen::rack::Mix;
use p4rack_hosts::remote::{Abilities, Local, Operation, Outcome, RemoteError, Status};
use std::sync::{Arc, Mutex};

const LAYOUT: Layout = Layout { records: 2_000, value_bytes: 104 };

/// Fault of remote memory at every twentieth write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Acknowledges it, and forgets it.
    Forgets,
    /// Changes a bit.
    Spoils,
    /// Puts it where the block before it belongs.
    Misplaces,
}

struct Memory {
    local: Local,
    fault: Arc<Mutex<Fault>>,
    writes: u32,
}

impl Remote for Memory {
    fn abilities(&self) -> &Abilities {
        self.local.abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        let fault = *self.fault.lock().unwrap();
        let Operation::Write { at, bytes } = operation else { return self.local.submit(tag, operation) };
        self.writes += 1;
        match (fault, self.writes.is_multiple_of(20)) {
            (Fault::None, _) | (_, false) => self.local.submit(tag, operation),
            (Fault::Forgets, true) => {
                let there = self.local.bytes()[at as usize..][..bytes.len()].to_vec();
                self.local.submit(tag, Operation::Write { at, bytes: &there })
            }
            (Fault::Spoils, true) => {
                let mut bytes = bytes.to_vec();
                bytes[17] ^= 4;
                self.local.submit(tag, Operation::Write { at, bytes: &bytes })
            }
            (Fault::Misplaces, true) => {
                self.local.submit(tag, Operation::Write { at: at.saturating_sub(512), bytes })
            }
        }
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.local.poll(until, ended)
    }
}

fn config(percent: u64) -> RegionConfig {
    RegionConfig { block_bytes: Some(256), ..RegionConfig::new(LAYOUT.region_bytes() * percent / 100) }
}

/// Loads the records, has the memory make mistakes in a mix of reads and writes with each percentage, and reads all records.
fn ran(fault: Fault, percents: &[u64]) -> (u64, Contents, u64) {
    let now = Arc::new(Mutex::new(Fault::None));
    let local = Local::new(LAYOUT.region_bytes());
    let memory = Memory { local, fault: Arc::clone(&now), writes: 0 };
    let mut store = Cached::new(Box::new(memory), LAYOUT, &config(50)).unwrap();
    let config_of_client =
        ClientConfig { mixes: Vec::new(), records: LAYOUT.records, depth: 1, seed: 5, tells: false };
    let mut client = Client::new(&mut store, &config_of_client);
    client.load().unwrap();
    *now.lock().unwrap() = fault;
    let mut wrong = 0;
    for percent in percents {
        client.store_mut().reopen(&config(*percent)).unwrap();
        let mut operations = 0;
        while operations < 2_000 {
            let report = client.mix(Mix::F, clock::now() + Nanos::from_millis(20)).unwrap();
            operations += report.operations + report.wrong;
            wrong += report.wrong;
        }
    }
    *now.lock().unwrap() = Fault::None;
    client.store_mut().reopen(&config(25)).unwrap();
    (wrong, client.contents().unwrap(), client.writes())
}

#[test]
fn records_survive_regions_with_less_and_less_local_memory() {
    let (wrong, contents, writes) = ran(Fault::None, &[100, 50, 25, 12]);
    assert!(wrong == 0 && writes > 1_000, "{wrong} {writes}");
    assert_eq!(contents, Contents { versions: u64::from(LAYOUT.records) + writes, lost: 0, wrong: 0 });
}

#[test]
fn mistakes_of_remote_memory_are_seen() {
    for fault in [Fault::Forgets, Fault::Spoils, Fault::Misplaces] {
        let (wrong, contents, _) = ran(fault, &[50, 12]);
        assert!(wrong + contents.wrong > 0, "{fault:?}: {wrong} {contents:?}");
    }
}

#[test]
fn a_region_has_room_for_all_records_and_no_more() {
    let mut store = Cached::new(Box::new(Local::new(LAYOUT.region_bytes())), LAYOUT, &config(50)).unwrap();
    for key in 0..LAYOUT.records {
        assert_eq!(store.write(7 * key, None).unwrap(), Ended::Wrote(1));
    }
    assert_eq!(store.write(1, None).unwrap(), Ended::Wrong);
    assert_eq!(store.read(1).unwrap(), Ended::Wrong);
    assert_eq!(store.write(14, Some(2)).unwrap(), Ended::Changed);
    assert_eq!(store.write(14, Some(1)).unwrap(), Ended::Wrote(2));
    assert_eq!((store.read(14).unwrap(), store.read(7).unwrap()), (Ended::Found(2), Ended::Found(1)));
    assert!(store.statistics().unwrap().local_bytes <= config(50).local_bytes);
}
