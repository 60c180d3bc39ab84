//! A log store as YCSB's client sees it: it recognises its values by their content.

use super::log::{Counters, Found, LogStore, Replaced, StoreError};
use crate::ycsb::{Costs, Ended, Error, Store};
use p4rack_history::{fill, version_of};
use p4rack_hosts::remote::Remote;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// An operation for which there was no room.
#[derive(Clone, Copy, Debug)]
struct Waits {
    token: usize,
    key: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Read,
    Write,
    Replace,
}

/// A log store and its way to remote memory, with versions of its records.
pub(super) struct Logged<'a> {
    log: LogStore,
    remote: &'a mut dyn Remote,
    /// Versions by key.
    versions: Vec<u64>,
    /// By token: the key of its read in flight, and the record that its latest read has found.
    reads: Vec<(u32, u64)>,
    waits: VecDeque<Waits>,
    /// Results by token: the version, if the bytes are right. Kept to reuse its allocation.
    came: Vec<(usize, Option<u64>)>,
    /// A value to write.
    value: Vec<u8>,
}

impl<'a> Logged<'a> {
    /// An empty store for this many keys and operations in flight.
    pub(super) fn new(log: LogStore, remote: &'a mut dyn Remote, keys: u32, depth: usize) -> Logged<'a> {
        let value = vec![0; log.value_bytes()];
        let (versions, reads) = (vec![0; keys as usize], vec![(0, 0); depth]);
        Logged { log, remote, versions, reads, waits: VecDeque::new(), came: Vec::new(), value }
    }

    /// The log's counters.
    pub(super) fn counters(&self) -> Counters {
        self.log.counters()
    }

    /// Begins an operation, or goes on with it. Returns how it ended, if it has.
    fn begin(&mut self, token: usize, key: u32, what: What) -> Result<Option<Ended>, Error> {
        let ended = match what {
            What::Read => self.read(token, key)?,
            What::Write | What::Replace => self.write(token, key, matches!(what, What::Replace))?,
        };
        match ended {
            Tried::Ended(ended) => Ok(Some(ended)),
            Tried::Later => Ok(None),
            Tried::NoRoom => {
                self.waits.push_back(Waits { token, key, what });
                Ok(None)
            }
        }
    }

    fn read(&mut self, token: usize, key: u32) -> Result<Tried, StoreError> {
        self.reads[token].0 = key;
        Ok(match self.log.read(self.remote, key.into(), token as u64)? {
            Found::Here(record, value) => {
                self.reads[token].1 = record;
                Tried::Ended(version_of(key.into(), value).map_or(Ended::Wrong, Ended::Found))
            }
            Found::Later => Tried::Later,
            Found::Missing => Tried::Ended(Ended::Wrong),
            Found::Busy => Tried::NoRoom,
        })
    }

    fn write(&mut self, token: usize, key: u32, replaces: bool) -> Result<Tried, StoreError> {
        let next = self.versions[key as usize] + 1;
        fill(key.into(), next, &mut self.value);
        let is_done = if replaces {
            match self.log.replace(self.remote, key.into(), self.reads[token].1, &self.value)? {
                Replaced::Done => true,
                Replaced::Changed => return Ok(Tried::Ended(Ended::Changed)),
                Replaced::Busy => false,
            }
        } else {
            self.log.write(self.remote, key.into(), &self.value)?
        };
        if !is_done {
            return Ok(Tried::NoRoom);
        }
        self.versions[key as usize] = next;
        Ok(Tried::Ended(Ended::Wrote(next)))
    }
}

/// Result of an attempt.
enum Tried {
    Ended(Ended),
    /// Remote memory is asked.
    Later,
    /// It has to be tried again after something came back from remote memory.
    NoRoom,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::gone(error)
    }
}

impl Store for Logged<'_> {
    fn is_owned(&self) -> bool {
        true
    }

    fn get(&mut self, token: usize, key: u32, _: Nanos) -> Result<Option<Ended>, Error> {
        self.begin(token, key, What::Read)
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        _: Nanos,
    ) -> Result<Option<Ended>, Error> {
        self.begin(token, key, if expected.is_some() { What::Replace } else { What::Write })
    }

    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        let (reads, came) = (&mut self.reads, &mut self.came);
        let any = self.log.wait(self.remote, until, &mut |token, record, value| {
            let token = token as usize;
            if let Some(read) = reads.get_mut(token) {
                read.1 = record;
                came.push((token, version_of(read.0.into(), value)));
            }
        })?;
        for (token, version) in self.came.drain(..) {
            ended(token, version.map_or(Ended::Wrong, Ended::Found));
        }
        for _ in 0..self.waits.len() {
            let Some(Waits { token, key, what }) = self.waits.pop_front() else { break };
            if let Some(how) = self.begin(token, key, what)? {
                ended(token, how);
            }
        }
        Ok(any)
    }

    fn is_quiet(&self) -> bool {
        self.log.is_quiet() && self.waits.is_empty()
    }

    fn costs(&self) -> Costs {
        let cold_reads = Some(self.log.counters().cold_reads);
        Costs { cold_reads, thread_cpu: Some(clock::thread_cpu()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Config;
    use super::*;
    use crate::ycsb::{Client, ClientConfig, Contents};
    use p4rack_codegen::rack::Mix;
    use p4rack_hosts::remote::{Abilities, Local, Operation, Outcome, RemoteError, Status};
    use std::sync::Mutex;

    /// Fate of requests.
    #[derive(Clone, Copy, PartialEq)]
    enum Mood {
        Good,
        /// Reads return data with one bit added.
        Spoils,
        /// Nothing is answered.
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

    /// Loads 2,000 records, of which some are cold, and goes on in another mood.
    fn loaded<T>(mood: Mood, then: impl FnOnce(&mut Client<'_, Logged<'_>>) -> T) -> T {
        let config = Config::new(2_000, 56, 10, 8);
        let now = Mutex::new(Mood::Good);
        let mut remote = Memory { local: Local::new(config.region_bytes()), mood: &now };
        let mut store = Logged::new(LogStore::new(config).unwrap(), &mut remote, 2_000, 8);
        let config = ClientConfig { mixes: Vec::new(), records: 2_000, depth: 8, seed: 1, tells: false };
        let mut client = Client::new(&mut store, &config);
        client.load().unwrap();
        client.set_patience(Nanos::from_millis(20));
        *now.lock().unwrap() = mood;
        then(&mut client)
    }

    fn until(span: Nanos) -> Nanos {
        clock::now() + span
    }

    #[test]
    fn a_record_without_its_last_version_is_missed() {
        let all = Contents { versions: 2_000, lost: 0, wrong: 0 };
        assert_eq!(loaded(Mood::Good, |client| client.contents().unwrap()), all);
        let contents = loaded(Mood::Spoils, |client| client.contents().unwrap());
        let missing = contents.wrong;
        assert_eq!((contents.versions + missing, contents.lost), (2_000, 0));
        assert!((500..2_000).contains(&missing), "{missing} of those in remote memory");
        let report =
            loaded(Mood::Spoils, |client| client.mix(Mix::C, until(Nanos::from_millis(200))).unwrap());
        let latencies: u64 = report.latencies.iter().map(|(_, count)| count).sum();
        assert!(report.wrong > 0 && latencies == report.operations, "{report:?}");
    }

    #[test]
    fn nobody_waits_for_ever() {
        for mix in [Mix::A, Mix::C, Mix::F] {
            let ended =
                loaded(Mood::Silent, |client| client.mix(mix, until(Nanos::from_secs(600))).map(drop));
            assert!(matches!(ended, Err(Error::Silence)), "{mix:?}: {ended:?}");
        }
    }

    #[test]
    fn mixes_on_cold_records_are_right() {
        for mix in [Mix::A, Mix::F] {
            let (report, contents, writes) = loaded(Mood::Good, |client| {
                let report = client.mix(mix, until(Nanos::from_millis(200))).unwrap();
                (report, client.contents().unwrap(), client.writes())
            });
            assert!(report.cold_reads > Some(0) && writes > 0, "{report:?}");
            assert_eq!((report.lost, report.wrong), (0, 0), "{report:?}");
            assert_eq!(contents, Contents { versions: 2_000 + writes, lost: 0, wrong: 0 });
        }
    }
}
