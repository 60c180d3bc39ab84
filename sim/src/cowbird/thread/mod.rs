//! A thread of the compute node: it probes a hash table with a local index and a share of local records.
//!
//! ```text
//!   batch of probes: index, then  local ─▶ record
//!                                 remote ─▶ post or issue ─▶ … ─▶ fetch what is done ─▶ record, checked
//! ```
//!
//! Only its time is modelled: each step executes immediately and returns its modelled duration.

mod fetch;

use super::costs::CpuSpec;
use super::nic::{HostMemory, ps};
use super::records::{self, POOL_KEY, POOL_START};
use crate::random::Random;
use p4rack_cowbird::{Client, PollId};
use p4rack_fabric::roce::{Adapter, Completion, Request};
use p4rack_wire::Histogram;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A request to a server of the pool: the record's first word, its version, and whether it is written.
pub(super) const ASK_BYTES: usize = 16;

/// Parameters shared by all threads.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub cpu: CpuSpec,
    pub record_bytes: u32,
    /// Keys of a thread: this many from its first.
    pub keys: u64,
    pub local: f64,
    pub writes: f64,
    pub batch: u32,
    pub window: u32,
    /// Regions of the pool's memory, each over a queue pair of its own.
    pub regions: u16,
    pub warm_ps: u64,
    pub end_ps: u64,
}

/// A thread's path to remote records.
#[derive(Debug)]
pub(super) enum RecordPath {
    /// None: all records are local.
    Local,
    /// By verbs on its queue pair.
    Verbs {
        qpn: u32,
        two_sided: bool,
        /// Completions not yet polled.
        done: VecDeque<Completion>,
        /// Requests posted since the last doorbell.
        unrung: u32,
    },
    /// By an I/O thread: queues of its requests, each with whether it is a write, and of results.
    Handed { asked: VecDeque<(Vec<u8>, bool)>, brought: VecDeque<Option<Vec<u8>>> },
    /// By Cowbird's rings.
    Cowbird { client: Box<Client<Arc<[AtomicU64]>>>, poll: PollId },
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    key: u64,
    at_ps: u64,
    /// The record's version when a read was issued; the version that a write makes.
    version: u32,
    is_write: bool,
}

/// Results of a thread, and its time by activity.
#[derive(Debug)]
pub(super) struct Tally {
    pub probes: u64,
    pub remote: u64,
    /// Records with wrong content.
    pub wrong: u64,
    /// Requests that failed or could not be made.
    pub failed: u64,
    pub latency: Histogram,
    /// Own work and records, calls for remote memory, polls without result.
    pub work_ps: u64,
    pub communication_ps: u64,
    pub waiting_ps: u64,
}

/// Duration of a step, and the time of its doorbell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub took_ps: u64,
    pub rung: bool,
}

#[derive(Debug)]
pub(super) struct Thread {
    path: RecordPath,
    random: Random,
    first_key: u64,
    /// Requests in flight, in issue order: those of a queue pair, or Cowbird's reads and its writes.
    reads: VecDeque<PendingRequest>,
    writes: VecDeque<PendingRequest>,
    /// Versions of the records that it wrote.
    versions: BTreeMap<u64, u32>,
    /// Remaining probes of the batch.
    left: u32,
    /// Whether it has to rest before the next batch.
    thinks: bool,
    record: Vec<u8>,
    pub tally: Tally,
}

impl Thread {
    pub fn new(path: RecordPath, first_key: u64, seed: u64, plan: &Plan) -> Thread {
        let tally = Tally {
            probes: 0,
            remote: 0,
            wrong: 0,
            failed: 0,
            latency: Histogram::new(),
            work_ps: 0,
            communication_ps: 0,
            waiting_ps: 0,
        };
        Thread {
            path,
            random: Random::stream(seed, first_key + 1),
            first_key,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            versions: BTreeMap::new(),
            left: plan.batch,
            thinks: true,
            record: vec![0; plan.record_bytes as usize],
            tally,
        }
    }

    /// Requests in flight.
    pub fn outstanding(&self) -> u64 {
        (self.reads.len() + self.writes.len()) as u64
    }

    /// Takes a completion of its queue pair.
    pub fn complete(&mut self, completion: Completion) {
        if let RecordPath::Verbs { done, .. } = &mut self.path {
            done.push_back(completion);
        }
    }

    /// The next request for its I/O thread, and whether it is a write.
    pub fn take_asked(&mut self) -> Option<(Vec<u8>, bool)> {
        match &mut self.path {
            RecordPath::Handed { asked, .. } => asked.pop_front(),
            _ => None,
        }
    }

    /// Takes an answer from its I/O thread: a record, or none for a write.
    pub fn hand(&mut self, record: Option<Vec<u8>>) {
        if let RecordPath::Handed { brought, .. } = &mut self.path {
            brought.push_back(record);
        }
    }

    /// Executes the next step; `None` when nothing is left to do.
    pub fn step(&mut self, now_ps: u64, adapter: &mut Adapter<HostMemory>, plan: &Plan) -> Option<Step> {
        let over = now_ps >= plan.end_ps;
        let room = self.outstanding() + u64::from(self.left) <= u64::from(plan.window);
        if over && self.outstanding() == 0 {
            return None;
        }
        if !over && self.left > 0 && room {
            if std::mem::take(&mut self.thinks) && plan.cpu.think_ns > 0 {
                let took_ps = self.random.below(ps(plan.cpu.think_ns) + 1);
                self.note(took_ps, 0, 0, Thread::is_measured(now_ps, plan));
                return Some(Step { took_ps, rung: false });
            }
            let step = self.probe(now_ps, adapter, plan);
            self.left = match (&self.path, step.1) {
                // There is nothing to poll.
                (RecordPath::Local, _) => self.left,
                (_, true) => self.left - 1,
                (_, false) => 0,
            };
            return Some(step.0);
        }
        let step = self.fetch(now_ps, adapter, plan);
        if self.outstanding() + u64::from(plan.batch) <= u64::from(plan.window) {
            self.left = plan.batch;
            self.thinks = true;
        }
        Some(step)
    }

    fn is_measured(now_ps: u64, plan: &Plan) -> bool {
        (plan.warm_ps..plan.end_ps).contains(&now_ps)
    }

    /// Makes a probe. Returns whether there was room for it.
    fn probe(&mut self, now_ps: u64, adapter: &mut Adapter<HostMemory>, plan: &Plan) -> (Step, bool) {
        let (cpu, measured) = (&plan.cpu, Thread::is_measured(now_ps, plan));
        let key = self.first_key + self.random.below(plan.keys);
        let is_local = matches!(self.path, RecordPath::Local) || self.random.chance(plan.local);
        let is_write = self.random.chance(plan.writes);
        let mut work_ps = ps(cpu.compute_ns + cpu.access_ns);
        let (mut communication_ps, mut rung) = (0, false);
        if is_local {
            work_ps += ps(cpu.record_ns(plan.record_bytes));
            self.tally.probes += u64::from(measured);
        } else {
            let last = self.left == 1;
            match self.ask(now_ps, key, is_write, last, adapter, plan) {
                Some((took_ns, rang)) => (communication_ps, rung) = (ps(took_ns), rang),
                None => {
                    self.note(0, ps(cpu.look_ns), 0, measured);
                    return (Step { took_ps: ps(cpu.look_ns), rung: false }, false);
                }
            }
        }
        self.note(work_ps, communication_ps, 0, measured);
        (Step { took_ps: work_ps + communication_ps, rung }, true)
    }

    /// Requests a record. Returns the cost and whether a doorbell was rung; `None`: there is no room.
    fn ask(
        &mut self,
        now_ps: u64,
        key: u64,
        is_write: bool,
        last: bool,
        adapter: &mut Adapter<HostMemory>,
        plan: &Plan,
    ) -> Option<(u32, bool)> {
        let (cpu, bytes) = (&plan.cpu, plan.record_bytes);
        let first = key * u64::from(bytes) / 8;
        let version = self.versions.get(&key).copied().unwrap_or(0) + u32::from(is_write);
        let copy_ns = if is_write { bytes.div_ceil(64) * cpu.line_ns } else { 0 };
        if is_write {
            records::fill(&mut self.record, first, version);
        }
        let asked = PendingRequest { key, at_ps: now_ps, version, is_write };
        let cost = match &mut self.path {
            RecordPath::Local => return None,
            RecordPath::Cowbird { client, poll } => {
                let place = first * 8;
                let region = (key % u64::from(plan.regions)) as u16;
                let id = match is_write {
                    true => client.async_write(region, &self.record, place),
                    false => client.async_read(region, place, bytes),
                }
                .ok()?;
                if client.poll_add(*poll, id).is_err() {
                    self.tally.failed += 1;
                }
                let queue = if is_write { &mut self.writes } else { &mut self.reads };
                queue.push_back(asked);
                (cpu.issue_ns + copy_ns, false)
            }
            RecordPath::Handed { asked: queue, .. } => {
                let record = Some(&self.record[..]).filter(|_| is_write);
                queue.push_back((asks(POOL_START + first * 8, record), is_write));
                self.reads.push_back(asked);
                (cpu.issue_ns + copy_ns, false)
            }
            RecordPath::Verbs { qpn, two_sided, unrung, .. } => {
                let (key, address) = (POOL_KEY, POOL_START + first * 8);
                let request = match (*two_sided, is_write) {
                    (false, false) => Request::Read { key, address, bytes },
                    (false, true) => {
                        Request::Write { key, address, bytes: self.record.clone(), immediate: None }
                    }
                    (true, _) => {
                        let bytes = asks(address, Some(&self.record[..]).filter(|_| is_write));
                        Request::Send { bytes, immediate: None }
                    }
                };
                adapter.handle_request(*qpn, request).ok()?;
                *unrung += 1;
                let rung = last || *unrung >= cpu.requests_per_doorbell;
                let doorbell_ns = if rung { cpu.doorbell_ns } else { 0 };
                if rung {
                    *unrung = 0;
                }
                self.reads.push_back(asked);
                (cpu.request_ns + doorbell_ns + copy_ns, rung)
            }
        };
        if is_write {
            self.versions.insert(key, version);
        }
        Some(cost)
    }

    fn note(&mut self, work_ps: u64, communication_ps: u64, waiting_ps: u64, measured: bool) {
        if measured {
            self.tally.work_ps += work_ps;
            self.tally.communication_ps += communication_ps;
            self.tally.waiting_ps += waiting_ps;
        }
    }
}

/// A request to a server: to read the record at an address, or to write this one.
fn asks(address: u64, written: Option<&[u8]>) -> Vec<u8> {
    let mut ask = Vec::with_capacity(ASK_BYTES + written.map_or(0, <[u8]>::len));
    ask.extend_from_slice(&address.to_le_bytes());
    ask.extend_from_slice(&u64::from(written.is_some()).to_le_bytes());
    ask.extend_from_slice(written.unwrap_or_default());
    ask
}
