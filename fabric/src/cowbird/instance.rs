//! One set: probe, fetch entries, execute, complete (paper §5.2).
//!
//! ```text
//!   entries:  … done │ request_head … begun │ started … waiting │ parsed … fetched … │ tail
//! ```
//!
//! After a recovery, writes start first, up to the tail of that time: the previous engine may have executed later ones and not
//! earlier ones, and a read in between would return a state that never existed.
//!
//! Otherwise requests start in order. A request waits for earlier ones to the same bytes, except for those of its own kind: reads
//! don't affect each other, and writes arrive at the pool in the order of sending.

use super::config::{Config, Counters};
use super::operation::{Entries, Operation, Phase};
use super::set::{Corruption, Set, State};
use crate::roce::{Outcome, Request};
use p4rack_wire::Nanos;
use p4rack_wire::cowbird::{BLOCK_BYTES, Entry, GREEN_AT, Green, Kind, RED_AT, Red, WORD_BYTES};
use std::collections::VecDeque;

/// Purpose of an RDMA request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Recover,
    Probe,
    /// From this position on, speculatively: right behind a probe, which returns their number.
    Guess(u64),
    /// From this position on.
    Entries(u64),
    /// Data of the write at this position.
    Payload(u64),
    /// To the pool, for the write at this position.
    Write(u64),
    /// From the pool, for the read at this position.
    Read(u64),
    Responses,
    Red,
}

#[derive(Clone, Debug)]
pub(super) struct Instance {
    set: Set,
    state: State,
    probe_at: Nanos,
    interval: Nanos,
    /// Probes in flight: whether entries are read behind it, and whether another probe was in flight before it.
    probes: VecDeque<(bool, bool)>,
    /// A probe has ended, and the entries behind it come next.
    guess_next: bool,
    fetching: bool,
    /// Entries that the client has written, as last seen.
    tail: u64,
    /// Expected fields of the next entry.
    entries: Entries,
    /// Position of the first recovered entry whose write, if it is one, has not been repeated yet.
    replayed: u64,
    /// Operations from `red.request_head` on.
    operations: VecDeque<Operation>,
    /// Position of the first operation that has not started.
    started: u64,
    /// Positions of unfinished reads and writes, in order.
    reads: VecDeque<u64>,
    writes: VecDeque<u64>,
    /// Started and unfinished requests: reads until their bytes are sent to the compute node, writes until the pool
    /// has them.
    active: usize,
    /// Reads among these whose bytes have not arrived.
    reading: usize,
    /// Reads whose bytes have arrived, at the front of `reads`.
    arrived: usize,
    /// The last red block, written or queued.
    red: Red,
    red_changed: bool,
    red_under_way: bool,
    outbox: VecDeque<(u32, Step, Request)>,
}

impl Instance {
    pub(super) fn new(set: Set, config: &Config, now: Nanos) -> Instance {
        let read =
            Request::Read { key: set.key, address: set.address + GREEN_AT, bytes: 2 * BLOCK_BYTES as u32 };
        let outbox = VecDeque::from([(set.qpn, Step::Recover, read)]);
        let red = Red {
            request_head: 0,
            request_data_head: 0,
            response_data_tail: 0,
            write_progress: 0,
            read_progress: 0,
            refusal: 0,
        };
        Instance {
            set,
            state: State::Recovering,
            probe_at: now,
            interval: config.probe_min,
            probes: VecDeque::new(),
            guess_next: false,
            fetching: false,
            tail: 0,
            entries: Entries::default(),
            replayed: 0,
            operations: VecDeque::new(),
            started: 0,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            active: 0,
            reading: 0,
            arrived: 0,
            red,
            red_changed: false,
            red_under_way: false,
            outbox,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    pub(super) fn owner(&self) -> u32 {
        self.set.owner
    }

    pub(super) fn uses(&self, qpn: u32) -> bool {
        self.set.qpn == qpn || self.set.regions.iter().any(|pool| pool.qpn == qpn)
    }

    pub(super) fn lose(&mut self, counters: &mut Counters) {
        if self.state != State::Lost {
            self.state = State::Lost;
            counters.lost += 1;
            self.outbox.clear();
        }
    }

    fn may_probe(&self, config: &Config) -> bool {
        self.state == State::Serving && self.probes.len() < config.probes_max
    }

    fn probe_is_due(&self, now: Nanos, config: &Config) -> bool {
        self.may_probe(config) && self.probe_at <= now
    }

    /// Time and queue pair of the set's next probe.
    pub(super) fn next_timeout(&self, config: &Config) -> Option<(Nanos, u32)> {
        // Requests in the outbox wait for outcomes.
        let waits = self.may_probe(config) && self.outbox.is_empty();
        waits.then_some((self.probe_at, self.set.qpn))
    }

    /// Queue pair of the next request.
    pub(super) fn next_pair(&self, now: Nanos, config: &Config) -> Option<u32> {
        match self.outbox.front() {
            Some((qpn, ..)) => Some(*qpn),
            None => self.probe_is_due(now, config).then_some(self.set.qpn),
        }
    }

    /// The next request.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        config: &Config,
        counters: &mut Counters,
    ) -> Option<(Step, Request)> {
        if let Some((_, step, request)) = self.outbox.pop_front() {
            return Some((step, request));
        }
        if !self.probe_is_due(now, config) {
            return None;
        }
        counters.probes += 1;
        self.probe_at = now + self.interval;
        self.interval = Nanos((2 * self.interval.0).min(config.probe_max.0));
        // With nothing in flight the set waits for its first entry: read it along with the probe.
        let guesses = self.operations.is_empty() && !self.fetching && config.guess_entries > 0;
        self.probes.push_back((guesses, !self.probes.is_empty()));
        if guesses {
            let (request, at) = (self.entries_from(config.guess_entries), self.entries.position);
            self.push(self.set.qpn, Step::Guess(at), request);
        }
        Some((Step::Probe, self.fetch(GREEN_AT, Green::BYTES as u32)))
    }

    /// Reads up to this many entries, from the next one on.
    fn entries_from(&self, most: u64) -> Request {
        let (layout, position) = (&self.set.layout, self.entries.position);
        let to_the_end = layout.entries - (position & (layout.entries - 1));
        self.fetch(layout.entry_at(position), most.min(to_the_end) as u32 * Entry::BYTES as u32)
    }

    /// Reads the set.
    fn fetch(&self, at: u64, bytes: u32) -> Request {
        Request::Read { key: self.set.key, address: self.set.address + at, bytes }
    }

    fn push(&mut self, qpn: u32, step: Step, request: Request) {
        self.outbox.push_back((qpn, step, request));
    }

    /// Handles the outcome of a request.
    pub(super) fn handle(
        &mut self,
        step: Step,
        outcome: Outcome,
        now: Nanos,
        config: &Config,
        counters: &mut Counters,
    ) {
        if matches!(outcome, Outcome::Failed(_)) {
            return self.lose(counters);
        }
        if step == Step::Red {
            self.red_under_way = false;
        }
        if !matches!(self.state, State::Recovering | State::Serving) {
            return;
        }
        let done = match (step, outcome) {
            (Step::Recover, Outcome::Read(bytes)) => self.recover(&bytes, now),
            (Step::Probe, Outcome::Read(bytes)) => self.probed(&bytes, now, config, counters),
            (Step::Guess(at), Outcome::Read(bytes)) => {
                self.guess_next = false;
                self.take_in_guess(at, &bytes, counters)
            }
            (Step::Entries(at), Outcome::Read(bytes)) => {
                self.fetching = false;
                self.take_in(at, &bytes, counters)
            }
            (Step::Payload(position), Outcome::Read(bytes)) => {
                self.write(position, bytes);
                Ok(())
            }
            (Step::Write(position), _) => {
                self.written(position, counters);
                Ok(())
            }
            (Step::Read(position), Outcome::Read(bytes)) => {
                self.read(position, bytes);
                Ok(())
            }
            _ => Ok(()),
        };
        match done {
            Ok(()) => self.proceed(config, counters),
            Err(corruption) => {
                counters.count(corruption);
                self.state = State::Corrupt(corruption);
                self.outbox.clear();
                self.red.refusal = corruption as u64;
                self.tell(counters);
            }
        }
    }

    /// Handles the blocks that a previous engine left.
    fn recover(&mut self, bytes: &[u8], now: Nanos) -> Result<(), Corruption> {
        let green = Green::parse(bytes).map_err(|_| Corruption::Tail)?;
        let red = bytes.get(RED_AT as usize..).unwrap_or(&[]);
        self.red = Red::parse(red).map_err(|_| Corruption::Tail)?;
        if self.red.refusal != 0 {
            let known = Corruption::ALL.into_iter().find(|one| *one as u64 == self.red.refusal);
            return Err(known.unwrap_or(Corruption::Tail));
        }
        let head = self.red.request_head;
        (self.replayed, self.started, self.tail) = (head, head, head.saturating_sub(1));
        self.seen(green.request_tail)?;
        self.entries = Entries::recover(&self.red, self.tail)?;
        self.state = State::Serving;
        self.probe_at = now;
        Ok(())
    }

    /// The client's tail. An engine that reads entries speculatively may have executed the last one before the tail covers it.
    fn seen(&mut self, tail: u64) -> Result<(), Corruption> {
        let head = self.red.request_head;
        if tail < self.tail.max(head.saturating_sub(1)) || tail.saturating_sub(head) > self.set.layout.entries
        {
            return Err(Corruption::Tail);
        }
        self.tail = tail;
        Ok(())
    }

    fn probed(
        &mut self,
        bytes: &[u8],
        now: Nanos,
        config: &Config,
        counters: &mut Counters,
    ) -> Result<(), Corruption> {
        let (guess, overlapped) = self.probes.pop_front().unwrap_or_default();
        self.guess_next = guess;
        let (before, green) = (self.tail, Green::parse(bytes).map_err(|_| Corruption::Tail)?);
        // A READ may return older data than the one before it, if the latter was executed again.
        if overlapped && green.request_tail < before {
            return Ok(());
        }
        self.seen(green.request_tail)?;
        if self.tail > before {
            counters.probes_useful += 1;
            self.interval = config.probe_min;
            self.probe_at = self.probe_at.min(now + self.interval);
        }
        Ok(())
    }

    /// Accepts entries from a position on: those below the tail, each once.
    fn take_in(&mut self, at: u64, bytes: &[u8], counters: &mut Counters) -> Result<(), Corruption> {
        for (position, entry) in (at..self.tail).zip(bytes.chunks_exact(Entry::BYTES)) {
            if position == self.entries.position {
                self.parse(entry, counters)?;
            }
        }
        Ok(())
    }

    /// The same for speculatively read entries. The probe's READ may have been executed again, and this one not, so only their
    /// ids prove that they are valid, not the tail.
    fn take_in_guess(&mut self, at: u64, bytes: &[u8], counters: &mut Counters) -> Result<(), Corruption> {
        for (position, entry) in (at..self.tail).zip(bytes.chunks_exact(Entry::BYTES)) {
            if position == self.entries.position && self.entries.is_next(entry) {
                self.parse(entry, counters)?;
            }
        }
        Ok(())
    }

    /// Accepts an entry.
    fn parse(&mut self, bytes: &[u8], counters: &mut Counters) -> Result<(), Corruption> {
        let position = self.entries.position;
        let operation = self.entries.parse(bytes, &self.set, &self.red)?;
        match (operation.phase, operation.kind) {
            (Phase::Done, _) => counters.recovered += 1,
            (_, Kind::Read) => self.reads.push_back(position),
            (_, Kind::Write) => self.writes.push_back(position),
        }
        self.operations.push_back(operation);
        Ok(())
    }

    fn operation(&mut self, position: u64) -> Option<&mut Operation> {
        let at = position.checked_sub(self.red.request_head)?;
        self.operations.get_mut(at as usize)
    }

    /// A piece of a write's data has arrived: sends all of it to the pool once it is complete.
    fn write(&mut self, position: u64, piece: Vec<u8>) {
        let Some(operation) = self.operation(position) else {
            return;
        };
        if !operation.gather(piece) {
            return;
        }
        let (region, remote) = (operation.region, operation.remote);
        let bytes = std::mem::take(&mut operation.bytes);
        let Some(pool) = self.set.regions.get(usize::from(region)).copied() else {
            return;
        };
        let address = pool.address + remote;
        self.push(
            pool.qpn,
            Step::Write(position),
            Request::Write { key: pool.key, address, bytes, immediate: None },
        );
    }

    /// The pool has the data of a write.
    fn written(&mut self, position: u64, counters: &mut Counters) {
        let Some(operation) = self.operation(position) else {
            return;
        };
        operation.phase = Phase::Done;
        counters.writes += 1;
        counters.bytes += u64::from(operation.length);
        self.active -= 1;
        // Writes to different pools may end in another order than they began.
        while let Some(position) = self.writes.front().copied()
            && let Some(operation) = self.operation(position)
            && operation.phase == Phase::Done
        {
            let end = operation.end;
            self.writes.pop_front();
            self.red.write_progress += 1;
            self.red.request_data_head = end;
            self.red_changed = true;
        }
    }

    /// A piece of a read's data has arrived.
    fn read(&mut self, position: u64, piece: Vec<u8>) {
        let Some(operation) = self.operation(position) else {
            return;
        };
        if !operation.gather(piece) {
            return;
        }
        operation.phase = Phase::Arrived;
        self.reading -= 1;
        while let Some(position) = self.reads.get(self.arrived).copied()
            && self.operation(position).is_some_and(|operation| operation.phase == Phase::Arrived)
        {
            self.arrived += 1;
        }
    }

    /// Starts all requests that can start now, and reports progress.
    fn proceed(&mut self, config: &Config, counters: &mut Counters) {
        if self.entries.position < self.tail && !self.fetching && !self.guess_next {
            let at = self.entries.position;
            let request = self.entries_from(config.fetch_entries.min(self.tail - at));
            self.fetching = true;
            self.push(self.set.qpn, Step::Entries(at), request);
        }
        if !self.red_under_way {
            if self.arrived >= config.batch_reads || (self.reading == 0 && self.arrived > 0) {
                self.deliver(config, counters);
            }
            while self.operations.front().is_some_and(|operation| operation.phase == Phase::Done) {
                self.operations.pop_front();
                self.red.request_head += 1;
                self.red_changed = true;
            }
            // Requests completed before the recovery never started here.
            self.started = self.started.max(self.red.request_head);
            if self.red_changed {
                self.tell(counters);
            }
        }
        while self.active < config.active_max && self.replay(config) {}
        let replayed = self.replayed >= self.entries.recovered
            && self.writes.front().is_none_or(|oldest| *oldest >= self.entries.recovered);
        while replayed && self.active < config.active_max && self.begin(config, counters) {}
    }

    /// Repeats the next write that a previous engine may have executed. Returns whether there was another entry of that time.
    fn replay(&mut self, config: &Config) -> bool {
        let position = self.replayed;
        if position >= self.entries.recovered.min(self.entries.position) {
            return false;
        }
        self.replayed += 1;
        let write =
            |operation: &mut Operation| operation.kind == Kind::Write && operation.phase == Phase::Waiting;
        if self.operation(position).is_some_and(write) {
            self.start(position, config);
        }
        true
    }

    /// Starts the next request. Returns whether one could start.
    fn begin(&mut self, config: &Config, counters: &mut Counters) -> bool {
        let position = self.started;
        let at = position - self.red.request_head;
        let Some(operation) = self.operations.get(at as usize) else { return false };
        if operation.phase == Phase::Waiting {
            let (read, all) = (operation.kind == Kind::Read, config.pause_reads);
            let others = if read { &self.writes } else { &self.reads };
            let waits = others.iter().take_while(|other| **other < position).any(|other| {
                let other = &self.operations[(other - self.red.request_head) as usize];
                other.phase == Phase::Begun && ((read && all) || operation.overlaps(other))
            });
            if waits {
                counters.overlaps += 1;
                return false;
            }
            self.start(position, config);
        }
        self.started += 1;
        true
    }

    /// Starts the request at a position.
    fn start(&mut self, position: u64, config: &Config) {
        let Some(operation) = self.operation(position) else { return };
        operation.phase = Phase::Begun;
        let (kind, region, local) = (operation.kind, operation.region, operation.local);
        let (remote, length) = (operation.remote, operation.length);
        let Some(pool) = self.set.regions.get(usize::from(region)).copied() else { return };
        self.active += 1;
        let (qpn, step, key, address) = match kind {
            Kind::Read => {
                self.reading += 1;
                (pool.qpn, Step::Read(position), pool.key, pool.address + remote)
            }
            Kind::Write => (self.set.qpn, Step::Payload(position), self.set.key, self.set.address + local),
        };
        // Outcomes of a queue pair come in order, and so do the pieces.
        let piece = config.piece_bytes.max(1);
        for at in (0..length).step_by(piece as usize) {
            let bytes = piece.min(length - at);
            self.push(qpn, step, Request::Read { key, address: address + u64::from(at), bytes });
        }
    }

    /// Writes arrived responses to the compute node, adjacent ones together. The red block follows on the same queue pair, so
    /// it arrives later.
    fn deliver(&mut self, config: &Config, counters: &mut Counters) {
        let mut batch: Option<(u64, Vec<u8>)> = None;
        for _ in 0..std::mem::take(&mut self.arrived) {
            let Some(position) = self.reads.pop_front() else {
                break;
            };
            let Some(operation) = self.operation(position) else {
                break;
            };
            operation.phase = Phase::Done;
            let (local, end, mut bytes) =
                (operation.local, operation.end, std::mem::take(&mut operation.bytes));
            self.active -= 1;
            counters.reads += 1;
            counters.bytes += bytes.len() as u64;
            self.red.read_progress += 1;
            self.red.response_data_tail = end;
            self.red_changed = true;
            bytes.resize(bytes.len().next_multiple_of(WORD_BYTES as usize), 0);
            match &mut batch {
                Some((at, gathered))
                    if *at + gathered.len() as u64 == local
                        && gathered.len() + bytes.len() <= config.batch_bytes =>
                {
                    gathered.extend_from_slice(&bytes);
                }
                _ => {
                    let full = batch.replace((local, bytes));
                    self.respond(full, counters);
                }
            }
        }
        self.respond(batch, counters);
    }

    fn respond(&mut self, batch: Option<(u64, Vec<u8>)>, counters: &mut Counters) {
        let Some((at, bytes)) = batch else { return };
        counters.batches += 1;
        let address = self.set.address + at;
        let request = Request::Write { key: self.set.key, address, bytes, immediate: None };
        self.push(self.set.qpn, Step::Responses, request);
    }

    /// Writes the red block.
    fn tell(&mut self, counters: &mut Counters) {
        counters.reds += 1;
        let mut bytes = vec![0; Red::BYTES];
        self.red.emit(&mut bytes);
        let address = self.set.address + RED_AT;
        let request = Request::Write { key: self.set.key, address, bytes, immediate: None };
        self.push(self.set.qpn, Step::Red, request);
        (self.red_changed, self.red_under_way) = (false, true);
    }
}
