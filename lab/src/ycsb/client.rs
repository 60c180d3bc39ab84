//! A client of a store: YCSB's mixes with several operations in flight. Each result is checked.
//!
//! Versions of a record count its writes, which reveals a lost write: the client finds an older version than one that it has seen
//! or written, or at the end records have fewer versions than all clients together have written. If a client alone writes the
//! records, a read is right only if it returns a version that was current at some time during the read.

use super::{ClientReport, Contents, Ended, Error, MixReport, Store, Teller};
use crate::workload::Span;
use p4rack_codegen::rack::Mix;
use p4rack_history::Records;
use p4rack_sim::{Random, Zipf};
use p4rack_wire::{Histogram, Nanos};

/// Exponent of the keys' popularity, YCSB's.
const ZIPF: f64 = 0.99;
/// Time after which an operation is lost.
const LOST: Nanos = Nanos::from_secs(2);
/// Longest wait without any answer.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Mixes, one after the other, each for an equal part of the span.
    pub mixes: Vec<Mix>,
    /// Number of keys.
    pub records: u32,
    /// Operations in flight, at most.
    pub depth: usize,
    /// Seed of keys and operations.
    pub seed: u64,
    /// Whether it prints progress lines.
    pub tells: bool,
}

/// Runs the mixes of a configuration, and reads this client's writes again.
pub fn run<S: Store + ?Sized>(
    store: &mut S,
    config: &ClientConfig,
    span: Span,
) -> Result<ClientReport, Error> {
    let mut client = Client::new(store, config);
    let mixes = client.mixes(&config.mixes, span)?;
    let writes = client.writes();
    Ok(ClientReport { mixes, writes, lost_writes: client.lost_writes()? })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// Reads a record, and replaces the version that it has read.
    Change,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Operation {
    /// Counts from 1.
    number: u64,
    key: u32,
    kind: Kind,
    start: Nanos,
    /// The newest version that was known at its last request.
    least: u64,
}

impl Operation {
    /// Whether it can have ended so, after all ends that were checked before.
    fn check(&self, records: &mut Records, ended: Ended) -> bool {
        let record = self.key as usize;
        match ended {
            Ended::Found(version) => records.found(record, self.least, version).is_ok(),
            Ended::Wrote(version) => records.wrote(record, self.least, version).is_ok(),
            Ended::Changed | Ended::Lost | Ended::Wrong => true,
        }
    }
}

/// How an operation ended, and whether that can be.
type Checked = (Ended, bool);

/// A client of a store.
pub struct Client<'a, S: ?Sized> {
    store: &'a mut S,
    random: Random,
    zipf: Zipf,
    /// Versions by key.
    records: Records,
    keys: u32,
    /// By key, whether this client has written it.
    written: Vec<bool>,
    /// Operations in flight, by token.
    under_way: Vec<Option<Operation>>,
    /// Tokens without an operation.
    free: Vec<usize>,
    /// Operations so far.
    begun: u64,
    /// Results by token. Kept to reuse its allocation.
    came: Vec<(usize, Checked)>,
    /// When something ended.
    heard: Nanos,
    /// Time after which an operation is lost.
    limit: Nanos,
    /// Longest wait without any answer.
    patience: Nanos,
    report: MixReport,
    latencies: Histogram,
    /// Sum of the versions of right records.
    found: u64,
    writes: u64,
    tells: bool,
    teller: Option<Teller>,
}

impl<'a, S: Store + ?Sized> Client<'a, S> {
    /// A client of a store that it has not used before.
    pub fn new(store: &'a mut S, config: &ClientConfig) -> Client<'a, S> {
        let count = config.records as usize;
        let records = if store.is_owned() { Records::alone(count) } else { Records::shared(count) };
        Client {
            heard: store.now(),
            store,
            random: Random::new(config.seed),
            zipf: Zipf::new(config.records, ZIPF),
            records,
            keys: config.records,
            written: vec![false; count],
            under_way: vec![None; config.depth],
            free: (0..config.depth).collect(),
            begun: 0,
            came: Vec::new(),
            limit: LOST,
            patience: PATIENCE,
            report: MixReport::default(),
            latencies: Histogram::new(),
            found: 0,
            writes: 0,
            tells: config.tells,
            teller: None,
        }
    }

    /// Sets the time after which an operation is lost, and with it the longest wait without any answer.
    pub fn set_limit(&mut self, limit: Nanos) {
        (self.limit, self.patience) = (limit, limit);
    }

    /// Sets the longest wait without any answer.
    pub fn set_patience(&mut self, patience: Nanos) {
        self.patience = patience;
    }

    /// Its store.
    pub fn store(&self) -> &S {
        self.store
    }

    /// Its store, to change state that operations don't see.
    pub fn store_mut(&mut self) -> &mut S {
        self.store
    }

    /// Writes since the records were loaded: each was a version.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Runs mixes, each for an equal part of a span.
    pub fn mixes(&mut self, mixes: &[Mix], span: Span) -> Result<Vec<MixReport>, Error> {
        self.teller = self.tells.then(|| Teller::new(span.start_ns));
        let part = Nanos(span.duration_ns / mixes.len().max(1) as u64);
        let mut start = Nanos(span.start_ns);
        let mut reports = Vec::new();
        for mix in mixes {
            while self.store.now() < start {
                self.store.wait(start, &mut |_, _| {})?;
            }
            reports.push(self.mix(*mix, start + part)?);
            start += part;
        }
        Ok(reports)
    }

    /// Writes every record once, in any order.
    pub fn load(&mut self) -> Result<(), Error> {
        let mut keys: Vec<u32> = (0..self.keys).collect();
        for last in (1..keys.len()).rev() {
            keys.swap(last, (self.random.next() % (last as u64 + 1)) as usize);
        }
        self.each(keys.into_iter(), Kind::Write)?;
        self.writes = 0;
        match self.report.lost + self.report.wrong {
            0 => Ok(()),
            missing => Err(Error::NotLoaded(missing)),
        }
    }

    /// Runs a mix until a time.
    pub fn mix(&mut self, mix: Mix, end: Nanos) -> Result<MixReport, Error> {
        self.some(mix, u64::MAX, end)
    }

    /// Runs operations of a mix.
    pub fn operations(&mut self, mix: Mix, count: u64) -> Result<MixReport, Error> {
        self.some(mix, count, Nanos::MAX)
    }

    /// Runs operations of a mix, at most until a time.
    fn some(&mut self, mix: Mix, count: u64, end: Nanos) -> Result<MixReport, Error> {
        self.begin_report();
        let (start, before) = (self.store.now(), self.store.costs());
        let (mut now, mut left) = (start, count);
        while now < end && left > 0 {
            while now < end
                && left > 0
                && let Some(token) = self.free.pop()
            {
                left -= 1;
                let key = self.zipf.sample(&mut self.random);
                let kind = match self.random.chance(mix.reads()) {
                    true => Kind::Read,
                    false if mix.reads_before_writing() => Kind::Change,
                    false => Kind::Write,
                };
                self.begin(token, key, kind)?;
                now = self.store.now();
            }
            if now < end && left > 0 {
                self.step(end.min(now + self.limit))?;
                now = self.store.now();
            }
        }
        self.settle()?;
        let costs = self.store.costs();
        let cold_reads = costs.cold_reads.zip(before.cold_reads).map(|(now, before)| now - before);
        let cpu = costs.thread_cpu.zip(before.thread_cpu).map(|(now, before)| (now - before).0);
        Ok(MixReport {
            mix: mix.name().to_owned(),
            elapsed_ns: (self.store.now() - start).0,
            latencies: self.latencies.counts().collect(),
            cold_reads,
            thread_cpu_ns: cpu,
            ..std::mem::take(&mut self.report)
        })
    }

    /// Reads every record. One that this client knows to be newer is wrong, and a late one lost.
    pub fn contents(&mut self) -> Result<Contents, Error> {
        self.each(0..self.keys, Kind::Read)?;
        Ok(Contents { versions: self.found, lost: self.report.lost, wrong: self.report.wrong })
    }

    /// Counts records with an older version than this client has written or seen, of those that it has written.
    pub fn lost_writes(&mut self) -> Result<u64, Error> {
        let written = std::mem::take(&mut self.written);
        let keys = (0..self.keys).zip(&written).filter(|(_, is_written)| **is_written).map(|(key, _)| key);
        self.each(keys, Kind::Read)?;
        self.written = written;
        Ok(self.report.lost + self.report.wrong)
    }

    fn begin_report(&mut self) {
        (self.report, self.found) = (MixReport::default(), 0);
        self.latencies.reset();
        self.heard = self.store.now();
    }

    /// Does the same to each of these records, and waits until all has ended.
    fn each(&mut self, keys: impl Iterator<Item = u32>, kind: Kind) -> Result<(), Error> {
        self.begin_report();
        // Only mixes have lines about them.
        let teller = self.teller.take();
        for key in keys {
            let token = loop {
                match self.free.pop() {
                    Some(token) => break token,
                    None => self.step(self.store.now() + self.limit)?,
                }
            };
            self.begin(token, key, kind)?;
        }
        self.settle()?;
        self.teller = teller;
        Ok(())
    }

    /// Begins an operation; it may end immediately.
    fn begin(&mut self, token: usize, key: u32, kind: Kind) -> Result<(), Error> {
        self.begun += 1;
        let (start, number) = (self.store.now(), self.begun);
        self.under_way[token] = Some(Operation { number, key, kind, start, least: 0 });
        let ended = if kind == Kind::Write { self.put(token, None)? } else { self.get(token)? };
        ended.map_or(Ok(()), |ended| self.go_on(token, ended))
    }

    /// The operation of a token, which asks for something now.
    fn asks(&mut self, token: usize) -> Result<Operation, Error> {
        let operation = self.under_way.get_mut(token).and_then(Option::as_mut).ok_or(Error::Unasked)?;
        operation.least = self.records.newest(operation.key as usize);
        self.store.begin(operation.number);
        Ok(*operation)
    }

    fn get(&mut self, token: usize) -> Result<Option<Checked>, Error> {
        let operation = self.asks(token)?;
        let ended = self.store.get(token, operation.key, operation.start + self.limit)?;
        Ok(ended.map(|ended| (ended, operation.check(&mut self.records, ended))))
    }

    fn put(&mut self, token: usize, expected: Option<u64>) -> Result<Option<Checked>, Error> {
        let operation = self.asks(token)?;
        let ended = self.store.put(token, operation.key, expected, operation.start + self.limit)?;
        Ok(ended.map(|ended| (ended, operation.check(&mut self.records, ended))))
    }

    /// Something that an operation has asked for has ended: goes on with it.
    fn go_on(&mut self, token: usize, (mut ended, mut is_right): Checked) -> Result<(), Error> {
        let operation = self.under_way.get(token).copied().flatten().ok_or(Error::Unasked)?;
        loop {
            let next = match (ended, operation.kind) {
                (Ended::Found(version), kind) if is_right => {
                    self.report.values += 1;
                    self.found += version;
                    if kind == Kind::Change { self.put(token, Some(version))? } else { break }
                }
                (Ended::Wrote(_), _) => {
                    self.report.values += 1;
                    self.writes += 1;
                    if let Some(written) = self.written.get_mut(operation.key as usize) {
                        *written = true;
                    }
                    break;
                }
                (Ended::Changed, Kind::Change) if self.store.now() < operation.start + self.limit => {
                    self.get(token)?
                }
                (Ended::Changed, _) => {
                    ended = Ended::Lost;
                    break;
                }
                (Ended::Found(_) | Ended::Lost | Ended::Wrong, _) => break,
            };
            match next {
                Some(next) => (ended, is_right) = next,
                None => return Ok(()),
            }
        }
        self.under_way[token] = None;
        self.free.push(token);
        self.end(operation.start, ended, is_right)
    }

    /// Counts an operation that has ended.
    fn end(&mut self, start: Nanos, ended: Ended, is_right: bool) -> Result<(), Error> {
        let now = self.store.now();
        let took = now - start;
        self.heard = now;
        if ended == Ended::Wrong || !is_right {
            self.report.wrong += 1;
            return Ok(());
        }
        match ended == Ended::Lost || took >= self.limit {
            true => self.report.lost += 1,
            false => self.report.operations += 1,
        }
        self.latencies.record(took.0);
        Ok(self.teller.as_mut().map_or(Ok(()), |teller| teller.ended(took.0, now.0))?)
    }

    /// Waits a while for the store, and continues operations with their results.
    fn step(&mut self, until: Nanos) -> Result<(), Error> {
        let (records, under_way, came) = (&mut self.records, &self.under_way, &mut self.came);
        let mut is_unasked = false;
        let any = self.store.wait(until, &mut |token, ended| match under_way.get(token) {
            Some(Some(operation)) => came.push((token, (ended, operation.check(records, ended)))),
            _ => is_unasked = true,
        })?;
        if is_unasked {
            return Err(Error::Unasked);
        }
        let now = self.store.now();
        if any {
            self.heard = now;
        } else if now > self.heard + self.patience {
            return Err(Error::Silence);
        }
        let mut came = std::mem::take(&mut self.came);
        for (token, ended) in came.drain(..) {
            self.go_on(token, ended)?;
        }
        self.came = came;
        Ok(())
    }

    /// Waits until no operation is in flight.
    fn settle(&mut self) -> Result<(), Error> {
        while self.free.len() < self.under_way.len() || !self.store.is_quiet() {
            self.step(self.store.now() + self.limit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
