//! YCSB's mixes on a store with many operations in flight. Each result is checked.
//!
//! Keys are [records](p4rack_history::Records) with one writer, so a read is right if it returns, whole, a version that was current
//! at some time during the read.

use super::log::{Counters, Found, LogStore, Replaced, StoreError};
use crate::store::client::{Contents, Teller};
use p4rack_codegen::rack::Mix;
use p4rack_history::{Records, fill, version_of};
use p4rack_hosts::remote::Remote;
use p4rack_netdev::clock;
use p4rack_sim::{Random, Zipf};
use p4rack_wire::{Histogram, Nanos};

/// Exponent of the keys' popularity, YCSB's.
const ZIPF: f64 = 0.99;
/// Time after which an operation is lost.
const LOST: Nanos = Nanos::from_secs(2);
/// Longest wait without any answer.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Results under a mix.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// Operations that succeeded in time.
    pub(super) operations: u64,
    /// Operations that took too long.
    pub(super) lost: u64,
    /// Wrong values.
    pub(super) wrong: u64,
    /// Values that were read or written.
    pub(super) values: u64,
    /// Time from the first operation to the end of the last.
    pub(super) elapsed: Nanos,
    /// Processor time of the thread.
    pub(super) cpu: Nanos,
    /// Latencies in nanoseconds.
    pub(super) latencies: Histogram,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Operation {
    key: u64,
    start: Nanos,
    /// The version when it began.
    least: u64,
    /// Whether it writes back after the read.
    replaces: bool,
}

/// A client of a store.
pub(super) struct Client<'a> {
    store: &'a mut LogStore,
    remote: &'a mut dyn Remote,
    /// Versions by key.
    records: Records,
    keys: u32,
    /// Operations in flight, by token.
    under_way: Vec<Option<Operation>>,
    free: Vec<usize>,
    /// Values that arrived: token, record, whether its bytes are right, version.
    came: Vec<(u64, u64, Option<u64>)>,
    value: Vec<u8>,
    /// Longest wait without any answer.
    patience: Nanos,
    report: Report,
    /// Sum of the versions of right records.
    found: u64,
    teller: Option<Teller>,
}

impl<'a> Client<'a> {
    /// A client with at most this many operations in flight.
    pub(super) fn new(
        store: &'a mut LogStore,
        remote: &'a mut dyn Remote,
        keys: u32,
        value_bytes: usize,
        depth: usize,
    ) -> Client<'a> {
        Client {
            store,
            remote,
            records: Records::alone(keys as usize),
            keys,
            under_way: vec![None; depth],
            free: (0..depth).collect(),
            came: Vec::new(),
            value: vec![0; value_bytes],
            patience: PATIENCE,
            report: empty(),
            found: 0,
            teller: None,
        }
    }

    /// Prints progress lines from a time on.
    pub(super) fn tell_from(&mut self, start: Nanos) {
        self.teller = Some(Teller::new(start.0));
    }

    /// Writes so far: each was a version.
    pub(super) fn versions(&self) -> u64 {
        self.records.versions()
    }

    /// The store's counters.
    pub(super) fn counters(&self) -> Counters {
        self.store.counters()
    }

    /// Writes every key once, in any order.
    pub(super) fn load(&mut self, seed: u64) -> Result<(), StoreError> {
        let mut keys: Vec<u64> = (0..self.keys.into()).collect();
        let mut random = Random::new(seed);
        for last in (1..keys.len()).rev() {
            keys.swap(last, (random.next() % (last as u64 + 1)) as usize);
        }
        for key in keys {
            self.write(key)?;
        }
        self.settle()
    }

    /// Runs a mix for a while.
    pub(super) fn run(&mut self, mix: Mix, span: Nanos, seed: u64) -> Result<Report, StoreError> {
        let (mut random, zipf) = (Random::new(seed), Zipf::new(self.keys, ZIPF));
        self.report = empty();
        let (start, before) = (clock::now(), clock::thread_cpu());
        let mut now = start;
        while now < start + span {
            while let Some(token) = self.free.pop() {
                now = clock::now();
                if now >= start + span {
                    self.free.push(token);
                    break;
                }
                let key = u64::from(zipf.sample(&mut random));
                let least = self.records.newest(key as usize);
                let reads = random.chance(mix.reads());
                let replaces = !reads && mix.reads_before_writing();
                if reads || replaces {
                    self.begin(token, Operation { key, start: now, least, replaces })?;
                } else {
                    self.write(key)?;
                    self.end(now)?;
                    self.free.push(token);
                }
            }
            if self.free.is_empty() {
                self.wait()?;
            }
            now = clock::now();
        }
        self.settle()?;
        self.report.elapsed = clock::now() - start;
        self.report.cpu = clock::thread_cpu() - before;
        Ok(std::mem::replace(&mut self.report, empty()))
    }

    /// Reads every key. A value other than the last version is wrong, and a late one lost.
    pub(super) fn contents(&mut self) -> Result<Contents, StoreError> {
        (self.report, self.teller, self.found) = (empty(), None, 0);
        for key in 0..self.keys.into() {
            while self.free.is_empty() {
                self.wait()?;
            }
            let least = self.records.newest(key as usize);
            if let Some(token) = self.free.pop() {
                self.begin(token, Operation { key, start: clock::now(), least, replaces: false })?;
            }
        }
        self.settle()?;
        Ok(Contents { versions: self.found, lost: self.report.lost, wrong: self.report.wrong })
    }

    /// Begins an operation that reads; it may end immediately.
    fn begin(&mut self, token: usize, operation: Operation) -> Result<(), StoreError> {
        self.under_way[token] = Some(operation);
        loop {
            match self.store.read(self.remote, operation.key, token as u64)? {
                Found::Later => return Ok(()),
                Found::Here(record, value) => {
                    let version = version_of(operation.key, value);
                    return self.finish(token, record, version);
                }
                Found::Missing => return self.finish(token, 0, None),
                Found::Busy => self.wait()?,
            }
        }
    }

    /// Checks a value that arrived, and writes its successor if the operation replaces it.
    fn finish(&mut self, token: usize, record: u64, version: Option<u64>) -> Result<(), StoreError> {
        let Some(operation) = self.under_way[token] else { return Err(StoreError::Unasked) };
        let key = operation.key as usize;
        let right = version.filter(|found| self.records.found(key, operation.least, *found).is_ok());
        if let Some(version) = right {
            self.report.values += 1;
            self.found += version;
        }
        if right.is_some() && operation.replaces {
            let next = self.records.newest(key) + 1;
            fill(operation.key, next, &mut self.value);
            let mut since = clock::now();
            loop {
                match self.store.replace(self.remote, operation.key, record, &self.value)? {
                    Replaced::Done => break,
                    // The value to replace has changed.
                    Replaced::Changed => return self.begin(token, operation),
                    Replaced::Busy => self.step(&mut since)?,
                }
            }
            self.records.write(key);
            self.report.values += 1;
        }
        self.under_way[token] = None;
        self.free.push(token);
        match right {
            Some(_) => self.end(operation.start),
            None => {
                self.report.wrong += 1;
                Ok(())
            }
        }
    }

    /// Counts a successful operation.
    fn end(&mut self, start: Nanos) -> Result<(), StoreError> {
        let now = clock::now();
        let took = now - start;
        self.report.latencies.record(took.0);
        match took < LOST {
            true => self.report.operations += 1,
            false => self.report.lost += 1,
        }
        self.teller.as_mut().map_or(Ok(()), |teller| teller.ended(took.0, now.0)).map_err(StoreError::Telling)
    }

    fn write(&mut self, key: u64) -> Result<(), StoreError> {
        let next = self.records.newest(key as usize) + 1;
        let mut since = clock::now();
        loop {
            fill(key, next, &mut self.value);
            if self.store.write(self.remote, key, &self.value)? {
                break;
            }
            self.step(&mut since)?;
        }
        self.records.write(key as usize);
        self.report.values += 1;
        Ok(())
    }

    /// Waits for remote memory without any response since then; [`wait`](Self::wait) handles responses.
    fn step(&mut self, since: &mut Nanos) -> Result<(), StoreError> {
        let (under_way, all) = (&self.under_way, &mut self.came);
        let came = self.store.wait(self.remote, &mut |token, record, value| {
            let operation = under_way.get(token as usize).copied().flatten();
            all.push((token, record, operation.and_then(|operation| version_of(operation.key, value))));
        })?;
        let now = clock::now();
        if came {
            *since = now;
        }
        if now > *since + self.patience { Err(StoreError::Silence) } else { Ok(()) }
    }

    /// Waits for remote memory, and ends operations whose values arrived.
    fn wait(&mut self) -> Result<(), StoreError> {
        let mut since = clock::now();
        while self.came.is_empty() && !self.store.is_quiet() {
            self.step(&mut since)?;
        }
        // Ending one may wait for others.
        while !self.came.is_empty() {
            for (token, record, version) in std::mem::take(&mut self.came) {
                self.finish(token as usize, record, version)?;
            }
        }
        Ok(())
    }

    /// Waits until no operation is in flight.
    fn settle(&mut self) -> Result<(), StoreError> {
        while self.free.len() < self.under_way.len() || !self.store.is_quiet() {
            if self.came.is_empty() && self.store.is_quiet() {
                return Err(StoreError::Silence);
            }
            self.wait()?;
        }
        Ok(())
    }
}

fn empty() -> Report {
    Report {
        operations: 0,
        lost: 0,
        wrong: 0,
        values: 0,
        elapsed: Nanos(0),
        cpu: Nanos(0),
        latencies: Histogram::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Config;
    use super::*;
    use p4rack_hosts::remote::{Abilities, Local, Operation, Outcome, RemoteError, Status};
    use std::sync::Mutex;

    /// Fate of requests.
    #[derive(Clone, Copy, PartialEq)]
    enum Mood {
        Good,
        /// Reads return data with one bit added.
        Spoils,
        /// No request is answered.
        Silent,
    }

    struct Memory<'a> {
        local: Local,
        mood: &'a Mutex<Mood>,
    }

    impl Remote for Memory<'_> {
        fn abilities(&self) -> &Abilities {
            self.local.abilities()
        }

        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            self.local.submit(tag, operation)
        }

        fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            let mood = *self.mood.lock().unwrap();
            if mood == Mood::Silent {
                return Ok(());
            }
            self.local.poll(Nanos::ZERO, &mut |tag, outcome| match outcome {
                Outcome::Read(bytes) if mood == Mood::Spoils => {
                    let mut bytes = bytes.to_vec();
                    *bytes.last_mut().unwrap() ^= 0x10;
                    ended(tag, Outcome::Read(&bytes));
                }
                outcome => ended(tag, outcome),
            })
        }
    }

    /// Loads 2,000 records, some of them cold, then runs a mix while requests have another fate.
    fn loaded<T>(mood: Mood, then: impl FnOnce(&mut Client<'_>) -> T) -> T {
        let config = Config::new(2_000, 56, 10, 8);
        let now = Mutex::new(Mood::Good);
        let mut remote = Memory { local: Local::new(config.region_bytes()), mood: &now };
        let mut store = LogStore::new(config).unwrap();
        let mut client = Client::new(&mut store, &mut remote, 2_000, 56, 8);
        client.patience = Nanos::from_millis(20);
        client.load(1).unwrap();
        *now.lock().unwrap() = mood;
        then(&mut client)
    }

    #[test]
    fn a_record_without_its_last_version_is_missed() {
        let all = Contents { versions: 2_000, lost: 0, wrong: 0 };
        assert_eq!(loaded(Mood::Good, |client| client.contents().unwrap()), all);
        let contents = loaded(Mood::Spoils, |client| client.contents().unwrap());
        let missing = contents.wrong;
        assert_eq!((contents.versions + missing, contents.lost), (2_000, 0));
        assert!((500..2_000).contains(&missing), "{missing} of those in remote memory");
        let report = loaded(Mood::Spoils, |client| client.run(Mix::C, Nanos::from_millis(200), 2).unwrap());
        assert!(report.wrong > 0 && report.latencies.len() == report.operations, "{report:?}");
    }

    #[test]
    fn nobody_waits_for_ever() {
        for mix in [Mix::A, Mix::C, Mix::F] {
            let ended = loaded(Mood::Silent, |client| client.run(mix, Nanos::from_secs(600), 2).map(drop));
            assert!(matches!(ended, Err(StoreError::Silence)), "{mix:?}: {ended:?}");
        }
    }
}
