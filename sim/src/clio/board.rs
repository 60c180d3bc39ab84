//! A board: the real machine, and the times of its stages.
//!
//! ```text
//!  last bit ─ MAC ─▶ parser, a beat a cycle ─▶ machine ─▶ TLB, bucket, fault ─▶ DMA, DRAM ─▶ stack ─ MAC ─▶ first bit
//!                                         │     ▲
//!                                         └ 40 µs: the processor, calls one by one ┘
//! ```
//!
//! The machine executes a request when it leaves the parser, and says of each answer how its address was translated. Later stages only
//! take time. So does an offload, of which a limited number of calls is under way; its reads share the DMA with those of packets.
//!
//! With [`frame_ps_per_byte`](BoardCosts::frame_ps_per_byte), data of requests pass a stack, too. As in the artifact (MemoryAccess.scala: "We
//! Generate the response first"), an answer doesn't wait for them, but the process's next request with data does.

use super::costs::{BoardCosts, SlowCosts};
use super::memory::SimMemory;
use super::offload::{BoardStore, Used};
use super::rack::{CLOCK, End, HEADERS};
use crate::kernel::Due;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Call, Translation};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Header, Kind, Status, packet};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Sums of time in the stages of a board, picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StageSums {
    pub mac: u64,
    pub parse: u64,
    pub translate: u64,
    pub memory: u64,
    pub stack: u64,
    pub offload: u64,
    pub slow: u64,
}

impl StageSums {
    /// Each stage's sum with that of others, by `both`.
    fn zip(&self, other: &StageSums, both: fn(u64, u64) -> u64) -> StageSums {
        StageSums {
            mac: both(self.mac, other.mac),
            parse: both(self.parse, other.parse),
            translate: both(self.translate, other.translate),
            memory: both(self.memory, other.memory),
            stack: both(self.stack, other.stack),
            offload: both(self.offload, other.offload),
            slow: both(self.slow, other.slow),
        }
    }

    /// The sums of two boards.
    pub fn plus(&self, other: &StageSums) -> StageSums {
        self.zip(other, |one, other| one + other)
    }

    /// The sums since then.
    pub fn since(&self, before: &StageSums) -> StageSums {
        self.zip(before, |now, before| now.saturating_sub(before))
    }
}

/// Translations of accesses, by how they were made.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Translations {
    /// By the TLB.
    pub hits: u64,
    /// By the page table.
    pub misses: u64,
    /// First accesses.
    pub faults: u64,
}

/// A call of an offload that has been executed, until its answer is due.
#[derive(Debug)]
pub(super) struct Finished {
    call: Call<End>,
    ended: Result<(), Status>,
    results: Vec<u8>,
}

/// A board.
#[derive(Debug)]
pub(super) struct BoardNode {
    pub machine: Board<SimMemory, End>,
    costs: BoardCosts,
    slow: SlowCosts,
    /// When the parser takes the next packet, the DMA the next read, and the processor the next call of the slow path.
    parser_ps: u64,
    dma_ps: u64,
    processor_ps: u64,
    /// When each unit of the offload takes the next call.
    units: BinaryHeap<Reverse<u64>>,
    /// When the stack takes the next answer with data of a process, and the next request.
    stack_ps: BTreeMap<u32, u64>,
    stack_in_ps: BTreeMap<u32, u64>,
    /// Calls of the slow path that are not answered: process and id.
    calls: BTreeSet<(u32, u64)>,
    /// Candidates that calls have met in full buckets, not yet accounted for.
    retries: u64,
    pub store: Option<BoardStore>,
    pub due: Due,
    pub sums: StageSums,
    pub translations: Translations,
    out: Vec<u8>,
}

impl BoardNode {
    pub fn new(machine: Board<SimMemory, End>, costs: BoardCosts, slow: SlowCosts) -> BoardNode {
        BoardNode {
            machine,
            costs,
            slow,
            parser_ps: 0,
            dma_ps: 0,
            processor_ps: 0,
            units: (0..costs.offload_units).map(|_| Reverse(0)).collect(),
            stack_ps: BTreeMap::new(),
            stack_in_ps: BTreeMap::new(),
            calls: BTreeSet::new(),
            retries: 0,
            store: None,
            due: Due::default(),
            sums: StageSums::default(),
            translations: Translations::default(),
            out: Vec::new(),
        }
    }

    fn cycles_ps(&self, cycles: u64) -> u64 {
        cycles * self.costs.clock_ps
    }

    fn beats_ps(&self, bytes: usize) -> u64 {
        self.cycles_ps((bytes as u64).div_ceil(self.costs.beat_bytes) * self.costs.interval_cycles)
    }

    /// When a packet whose last bit arrives now reaches the machine.
    pub fn enter(&mut self, now_ps: u64, bytes: &[u8]) -> u64 {
        let (mac_ps, parse_ps) = (self.costs.mac_ns * 1_000, self.cycles_ps(self.costs.parse_cycles));
        let start_ps = self.parser_ps.max(now_ps + mac_ps);
        self.parser_ps = start_ps + self.beats_ps(bytes.len());
        self.sums.mac += mac_ps;
        self.sums.parse += parse_ps;
        let at_ps = start_ps + parse_ps;
        match packet::parse(bytes) {
            Ok(packet) if packet.kind == Kind::Manage => {
                self.sums.slow += self.slow.cross_ns * 1_000;
                at_ps + self.slow.cross_ns * 1_000
            }
            Ok(packet) if !packet.data.is_empty() && self.costs.frame_ps_per_byte > 0 => {
                let free_ps = self.stack_in_ps.entry(packet.header.pid).or_default();
                let at_ps = at_ps.max(*free_ps);
                *free_ps = at_ps + (HEADERS + bytes.len()) as u64 * self.costs.frame_ps_per_byte;
                at_ps
            }
            _ => at_ps,
        }
    }

    /// Gives a packet to the machine. Returns a call of an offload, and when it is finished.
    pub fn take(&mut self, from: End, bytes: &[u8], now_ps: u64) -> Option<(u64, Finished)> {
        let now = CLOCK.nanos(now_ps);
        if let Ok(packet) = packet::parse(bytes)
            && packet.kind == Kind::Manage
        {
            self.calls.insert((packet.header.pid, packet.header.id));
        }
        self.machine.handle_link((from, bytes), now, now);
        self.serve(now_ps)
    }

    /// Executes the next call of an offload.
    fn serve(&mut self, now_ps: u64) -> Option<(u64, Finished)> {
        let store = self.store.as_mut()?;
        let call = self.machine.poll_call()?;
        let (ended, results, used) = store.serve(&mut self.machine, &call);
        Some((self.offload(now_ps, used), Finished { call, ended, results }))
    }

    /// When a call that has come and uses this is finished.
    fn offload(&mut self, now_ps: u64, used: Used) -> u64 {
        let free_ps = self.units.pop().map_or(0, |free| free.0);
        let begun_ps = now_ps.max(free_ps) + self.cycles_ps(self.costs.call_cycles);
        let reads_ps =
            used.reads * self.cycles_ps(self.costs.dma_cycles) + self.beats_ps(used.read_bytes as usize);
        let start_ps = self.dma_ps.max(begun_ps);
        self.dma_ps = start_ps + reads_ps;
        let waits_ps = used.reads * self.costs.dram_ns * 1_000;
        // Writes are posted: nothing waits for their DRAM.
        let done_ps = self.dma_ps + waits_ps + self.beats_ps(used.written_bytes as usize);
        self.units.push(Reverse(done_ps));
        self.sums.offload += self.cycles_ps(self.costs.call_cycles) + done_ps - start_ps;
        done_ps
    }

    /// Answers a call of an offload.
    pub fn finish(&mut self, finished: Finished, now: Nanos) {
        let Finished { call, ended, results } = finished;
        self.machine.finish_call(call, ended, &results, now);
    }

    /// The board's clock: a step of the slow path, and ends of locks.
    pub fn timeout(&mut self, now: Nanos) {
        let before = if self.calls.is_empty() { None } else { Some(self.machine.counters().search_retries) };
        self.machine.handle_timeout(now);
        if let Some(before) = before {
            self.retries += self.machine.counters().search_retries - before;
        }
    }

    /// The machine's next answer, behind `room` bytes of `frame`. Returns where it goes, and when it is at the link.
    pub fn poll(&mut self, now_ps: u64, room: usize, frame: &mut Vec<u8>) -> Option<(End, u64)> {
        let sent = self.machine.poll_link(CLOCK.nanos(now_ps), &mut self.out)?;
        frame.clear();
        frame.resize(room, 0);
        frame.extend_from_slice(&self.out);
        let Ok(header) = Header::parse(&self.out) else { return Some((sent.to, now_ps)) };
        let data = self.out.len() - Header::BYTES;
        let mut at_ps = now_ps;
        // Each packet of a write has an address of its own; a read's later packets go on behind its first one.
        if header.index == 0 || data == 0 {
            at_ps += self.translate(sent.translation);
        }
        if data > 0 && sent.translation != Translation::None {
            let (setup_ps, beats_ps) = (self.cycles_ps(self.costs.dma_cycles), self.beats_ps(data));
            let start_ps = self.dma_ps.max(at_ps);
            self.dma_ps = start_ps + setup_ps + beats_ps;
            at_ps = self.dma_ps + self.costs.dram_ns * 1_000;
            self.sums.memory += at_ps - start_ps;
        }
        if data > 0 && self.costs.stack_ps_per_byte > 0 {
            let free_ps = self.stack_ps.entry(header.pid).or_default();
            let took_ps = data as u64 * self.costs.stack_ps_per_byte;
            at_ps = at_ps.max(*free_ps) + took_ps;
            *free_ps = at_ps.max(at_ps - took_ps + frame.len() as u64 * self.costs.frame_ps_per_byte);
            self.sums.stack += took_ps;
        }
        if !self.calls.is_empty() && self.calls.remove(&(header.pid, header.id)) {
            let retries = std::mem::take(&mut self.retries);
            let took_ps = (self.slow.call_ns + retries * self.slow.retry_ns) * 1_000;
            self.processor_ps = self.processor_ps.max(at_ps) + took_ps;
            at_ps = self.processor_ps + self.slow.cross_ns * 1_000;
            self.sums.slow += took_ps + self.slow.cross_ns * 1_000;
        }
        self.sums.mac += self.costs.mac_ns * 1_000;
        Some((sent.to, at_ps + self.costs.mac_ns * 1_000))
    }

    /// Time of a translation.
    fn translate(&mut self, translation: Translation) -> u64 {
        let hit_ps = self.cycles_ps(self.costs.tlb_cycles);
        let miss_ps = hit_ps + self.cycles_ps(self.costs.bucket_cycles) + self.costs.dram_ns * 1_000;
        let took_ps = match translation {
            Translation::None => 0,
            Translation::Hit => {
                self.translations.hits += 1;
                hit_ps
            }
            Translation::Miss => {
                self.translations.misses += 1;
                miss_ps
            }
            // An allocation does not put entries into the TLB, so the first access misses.
            Translation::Fault => {
                self.translations.faults += 1;
                miss_ps + self.cycles_ps(self.costs.fault_cycles)
            }
        };
        self.sums.translate += took_ps;
        took_ps
    }
}
