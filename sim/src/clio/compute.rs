//! Compute nodes: the library with the processes that use it, and threads that ask for one operation after the other.

use super::experiment::ClioExperiment;
use super::modelled::{Ask, ModelClient};
use super::setup::{self, At};
use super::spec::{ClioScheme, ClioSpec, Load, Order, Walk};
use crate::kernel::Due;
use crate::random::Random;
use crate::ycsb::{Zipf, place};
use p4rack_fabric::clio::lib::{Client, Config, Granule, Operation, Outcome, Seat};
use p4rack_offload::KvFunction;
use p4rack_wire::clio::{Header, PageSize, Rights};
use p4rack_wire::{Nanos, SplitMix};
use std::collections::VecDeque;

/// Bytes of an answer on the link beside its data.
const OVERHEAD_BYTES: u32 = (super::rack::HEADERS + Header::BYTES + 24) as u32;
/// Maximum bytes of all operations of a process under way.
const BUFFER_BYTES: u64 = 1 << 34;

/// How processes reach memory: by Clio's library, or by a model.
#[derive(Debug)]
// A few per node, used for every packet.
#[allow(clippy::large_enum_variant)]
pub(super) enum Library {
    Clio(Client),
    Modelled(ModelClient),
}

/// A library, and the processes that use it: all of a node, or one.
#[derive(Debug)]
pub(super) struct Stack {
    pub library: Library,
    /// Address of each process's pages, by board: the seats of the library, process by process.
    pub addresses: Vec<u64>,
    /// Their PIDs.
    pids: Vec<u32>,
    pub due: Due,
    /// Whether it waits for the adapter.
    pub waits: bool,
}

/// An operation under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnderWay {
    pub begun_ps: u64,
    pub bytes: u64,
    /// Process and address, to check a read's bytes.
    pid: u32,
    address: u64,
    key: u32,
    is_read: bool,
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The library that it uses, of all nodes'.
    pub stack: u32,
    /// The first seat of its process.
    seat: u16,
    /// Its number within the library.
    nth: u16,
    /// When its core is free.
    pub free_ps: u64,
    /// Whether its next call is on the agenda.
    pub calls: bool,
    pub in_flight: u16,
    slots: Vec<UnderWay>,
    free: Vec<u16>,
    /// Operations so far.
    made: u64,
    /// With turns: operations left of the current turn.
    pub left: u64,
    random: Random,
}

/// Parameters of operations, the same for all threads.
#[derive(Debug)]
pub(super) struct Work {
    scheme: ClioScheme,
    load: Load,
    bytes: u64,
    pages: u64,
    page_size: PageSize,
    walk: Walk,
    writes: f64,
    boards: u16,
    window: u16,
    keys: Option<Zipf>,
    /// Pages of a baseline's store.
    store_pages: usize,
    /// Whether boards keep written bytes, so that reads can be checked.
    checked: bool,
    data: Vec<u8>,
}

/// The word that writes leave at an address.
fn word_at(pid: u32, address: u64) -> u64 {
    SplitMix(address ^ u64::from(pid) << 48).next()
}

/// Whether a thread has asked for its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Issued {
    Yes,
    /// The library has no room.
    Full,
}

impl Work {
    pub fn new(experiment: &ClioExperiment, checked: bool) -> Work {
        let spec = &experiment.spec;
        Work {
            scheme: spec.scheme,
            load: spec.load,
            bytes: spec.bytes,
            pages: spec.pages,
            page_size: experiment.page_size,
            walk: spec.walk,
            writes: spec.write_percent / 100.0,
            boards: spec.boards,
            window: spec.window,
            keys: (spec.load == Load::Kv).then(|| Zipf::new(spec.keys, spec.zipf)),
            store_pages: experiment.model_store_pages() as usize,
            checked: checked && spec.bytes.is_multiple_of(8),
            data: Vec::new(),
        }
    }

    /// Lets a thread ask for its next operation, which began at `begun_ps`. `tag_of` makes a tag of the thread's slot.
    pub fn ask(
        &mut self,
        thread: &mut Thread,
        stack: &mut Stack,
        number: u32,
        begun_ps: u64,
        now: Nanos,
    ) -> Issued {
        let Some(slot) = thread.free.pop() else { return Issued::Full };
        let tag = u64::from(number) << 16 | u64::from(slot);
        let board = (thread.made % u64::from(self.boards)) as u16;
        let write = thread.random.chance(self.writes);
        let page = match self.walk {
            Walk::Random => thread.random.below(self.pages),
            Walk::Sequential => (thread.made / u64::from(self.boards)) % self.pages,
        };
        let room = self.page_size.bytes().saturating_sub(self.bytes) / 8;
        let offset = if room > 0 { 8 * thread.random.below(room.min(1 << 16)) } else { 0 };
        let seat = thread.seat + board;
        let address = stack.addresses[usize::from(seat)] + page * self.page_size.bytes() + offset;
        let key = self.keys.as_ref().map_or(0, |zipf| zipf.sample(&mut thread.random));
        let pid = stack.pids[usize::from(seat)];
        let accepted = match &mut stack.library {
            Library::Modelled(client) => {
                let page = match self.load {
                    Load::Kv => place(key, self.store_pages) as u64,
                    _ => page,
                };
                client.submit(self.scheme, tag, board, Ask { write, bytes: self.bytes, page });
                true
            }
            Library::Clio(client) => {
                let operation = match self.load {
                    Load::Allocations | Load::Fill => {
                        Operation::Alloc { bytes: self.bytes, page_size: self.page_size, rights: Rights::ALL }
                    }
                    Load::Accesses if write => {
                        self.data.clear();
                        let words = (address..address + self.bytes).step_by(8);
                        self.data.extend(words.flat_map(|at| word_at(pid, at).to_le_bytes()));
                        self.data.truncate(self.bytes as usize);
                        Operation::Write { address, bytes: &self.data }
                    }
                    Load::Accesses => Operation::Read { address, bytes: self.bytes as u32 },
                    Load::Kv => {
                        setup::arguments(key, if write { self.bytes as u32 } else { 0 }, &mut self.data);
                        let function = if write { KvFunction::Update } else { KvFunction::Read };
                        Operation::Call {
                            offload: 0,
                            function: function as u8,
                            arguments: &self.data,
                            results_bytes_max: if write { 0 } else { self.bytes as u32 },
                            is_ordered: false,
                        }
                    }
                };
                client.submit(thread.nth, seat, tag, operation, now).is_ok()
            }
        };
        if !accepted {
            thread.free.push(slot);
            return Issued::Full;
        }
        let (bytes, is_read) = (self.bytes, !write);
        thread.slots[usize::from(slot)] = UnderWay { begun_ps, bytes, pid, address, key, is_read };
        thread.made += 1;
        thread.in_flight += 1;
        Issued::Yes
    }

    /// Begins an operation of a thread that no packet belongs to, such as a registration. Returns its tag.
    pub fn begin(&self, thread: &mut Thread, number: u32, begun_ps: u64) -> Option<u64> {
        let slot = thread.free.pop()?;
        thread.slots[usize::from(slot)] = UnderWay { begun_ps, bytes: self.bytes, ..UnderWay::default() };
        thread.in_flight += 1;
        Some(u64::from(number) << 16 | u64::from(slot))
    }

    /// Whether a thread may ask for another operation.
    pub fn may_ask(&self, thread: &Thread) -> bool {
        !thread.calls && thread.in_flight < self.window
    }

    /// Whether the bytes of a read are those written, or zeros.
    pub fn is_right(&self, one: &UnderWay, bytes: &[u8]) -> bool {
        match self.load {
            Load::Kv => {
                let value = setup::key_of(one.key);
                let is_whole = bytes.len() as u64 == one.bytes;
                !one.is_read
                    || is_whole && bytes.iter().enumerate().all(|(at, byte)| *byte == value[at % value.len()])
            }
            Load::Accesses if self.checked && one.is_read => {
                let words = bytes.chunks_exact(8).zip((one.address..).step_by(8));
                bytes.len() as u64 == one.bytes
                    && words
                        .into_iter()
                        .all(|(word, at)| word == [0; 8] || word == word_at(one.pid, at).to_le_bytes())
            }
            _ => true,
        }
    }
}

impl Stack {
    /// A library for processes from `number` on, with the allocations of each at all boards.
    pub fn new(experiment: &ClioExperiment, number: u32, processes: &[Vec<At>]) -> Stack {
        let boards = usize::from(experiment.spec.boards);
        let library = match experiment.spec.scheme {
            ClioScheme::Clio => {
                let seat = |(nth, at): (u32, &At)| Seat {
                    board: (nth % boards as u32) as u16,
                    credentials: at.credentials,
                    number: number + nth / boards as u32,
                    first_thread: 0,
                };
                let seats: Vec<Seat> = (0..).zip(processes.iter().flatten()).map(seat).collect();
                Library::Clio(Client::seated(config(experiment), &seats))
            }
            _ => Library::Modelled(ModelClient::default()),
        };
        let mut addresses: Vec<u64> = processes.iter().flatten().map(|at| at.address).collect();
        let mut pids: Vec<u32> = processes.iter().flatten().map(|at| at.credentials.pid).collect();
        // A model has none.
        addresses.resize(processes.len() * boards, 0);
        pids.resize(processes.len() * boards, 0);
        Stack { library, addresses, pids, due: Due::default(), waits: false }
    }
}

/// Parameters of the client library.
fn config(experiment: &ClioExperiment) -> Config {
    let (spec, clib) = (&experiment.spec, &experiment.spec.clib);
    let threads = spec.threads * experiment.processes_together();
    let requests = threads * spec.window;
    let us = |us: u32| Nanos::from_micros(us.into());
    Config {
        threads,
        requests_max: requests,
        thread_requests_max: spec.window,
        buffer_bytes_max: BUFFER_BYTES,
        mtu_bytes: spec.network.packet_bytes,
        granule: if clib.by_bytes { Granule::Byte } else { Granule::Page },
        timeout: us(clib.timeout_us),
        timeout_max: us(clib.timeout_max_us),
        memory: setup::memory(experiment),
        slow_timeout: us(clib.slow_timeout_us),
        retries: clib.retries,
        queueing: us(clib.target_us),
        cwnd_start: clib.cwnd_start,
        cwnd_max: clib.cwnd_max,
        link_bps: if clib.incast { experiment.compute_bps } else { 0 },
        overhead_bytes: OVERHEAD_BYTES,
        ..Config::default()
    }
}

impl Thread {
    /// The thread with this number of all nodes', which has `window` operations under way.
    pub fn new(experiment: &ClioExperiment, number: u32, random: Random) -> Thread {
        let ClioSpec { threads, boards, window, .. } = experiment.spec;
        let together = u32::from(experiment.processes_together());
        let process = number / u32::from(threads);
        let member = (process % together) as u16;
        Thread {
            stack: process / together,
            seat: member * boards,
            nth: member * threads + (number % u32::from(threads)) as u16,
            free_ps: 0,
            calls: false,
            in_flight: 0,
            slots: vec![UnderWay::default(); window.into()],
            free: (0..window).rev().collect(),
            made: 0,
            left: 0,
            random,
        }
    }

    /// The operation in a slot.
    pub fn under_way(&self, slot: u16) -> UnderWay {
        self.slots[usize::from(slot)]
    }

    /// The operation in a slot has ended.
    pub fn end(&mut self, slot: u16) {
        self.free.push(slot);
        self.in_flight -= 1;
    }
}

/// A compute node.
#[derive(Debug)]
pub(super) struct ComputeNode {
    /// Frames between the library and the link.
    pub crossing: u32,
    /// When the last frame has crossed the adapter: frames keep their order.
    pub crossed_ps: u64,
    /// Libraries that wait for the adapter.
    pub waiting: VecDeque<u32>,
    /// Threads, by their numbers of all nodes': a range.
    pub threads: (u32, u32),
    order: Order,
    /// The thread that acts, unless all do.
    pub active: u32,
    /// Operations of a turn.
    share: u64,
    random: Random,
}

impl ComputeNode {
    pub fn new(experiment: &ClioExperiment, nth: u16) -> ComputeNode {
        let spec = &experiment.spec;
        let count = u32::from(spec.processes) * u32::from(spec.threads);
        let first = count * u32::from(nth);
        let all = u64::from(count) * u64::from(spec.compute_nodes);
        ComputeNode {
            crossing: 0,
            crossed_ps: 0,
            waiting: VecDeque::new(),
            threads: (first, first + count),
            order: spec.order,
            active: first,
            share: (spec.operations + spec.warmup).div_ceil(all),
            random: Random::stream(spec.seed, 0xc110_0000 + u64::from(nth)),
        }
    }

    /// Whether a thread of the node may act.
    pub fn acts(&self, thread: u32) -> bool {
        self.order == Order::Together || thread == self.active
    }

    /// Begins the first turn.
    pub fn begin(&self, threads: &mut [Thread]) {
        threads[self.active as usize].left = self.share;
    }

    /// A thread has ended an operation. Returns the thread that acts next.
    pub fn next(&mut self, thread: u32, threads: &mut [Thread]) -> u32 {
        let (first, end) = self.threads;
        match self.order {
            Order::Together => return thread,
            Order::Turns => {
                let one = &mut threads[thread as usize];
                one.left = one.left.saturating_sub(1);
                if one.left == 0 && one.in_flight == 0 {
                    self.active = if thread + 1 < end { thread + 1 } else { first };
                    threads[self.active as usize].left = self.share;
                }
            }
            Order::Random => self.active = first + self.random.below(u64::from(end - first)) as u32,
        }
        self.active
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    /// With wrong bytes.
    Wrong,
    Refused,
    Unknown,
}

/// How an outcome of the client library counts.
pub(super) fn end_of(outcome: &Outcome<'_>, is_right: impl FnOnce(&[u8]) -> bool) -> Ending {
    match outcome {
        Outcome::Read(bytes) | Outcome::Results(bytes) => {
            if is_right(bytes) {
                Ending::Done
            } else {
                Ending::Wrong
            }
        }
        Outcome::Refused(_) => Ending::Refused,
        Outcome::Unknown => Ending::Unknown,
        _ => Ending::Done,
    }
}
