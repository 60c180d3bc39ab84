//! The memory node, the paper's CBoard, without I/O (§4).
//!
//! ```text
//!             ┌───────── fast path: bounded work per packet ───────────────────────────────────────────┐
//!  packet ──▶ parse ─▶ process, token, CRC ─▶ fences ─▶ retry memory ─▶ TLB, page table ─▶ DRAM ─▶ answers ──▶ packet
//!               │              │                 │            │                │ first access       ▲
//!             drop        drop, NACK           hold     first result           └─▶ ready frame      │
//!                                                │                                     ▲            │
//!                                                └─▶ slow path: alloc, free, share ── zeroing ──────┘
//!                                                    in steps, at next_timeout
//! ```
//!
//! The board keeps an entry per process and the results of executed requests for a time, and nothing per client or connection. Every
//! queue is bounded by [`Config`], and overflow is dropped and counted, or refused with
//! [`Busy`](p4rack_wire::clio::Status::Busy). A packet that does not prove its right to its process gets no answer.
//!
//! The driver's set-up service [begins](Board::begin) and [ends](Board::end) processes. Beside that a board is a
//! [`Machine`](crate::Machine) whose link brings packets (data of UDP) with the address that the answer goes to.

/// Whether a test has planted this bug; never outside of tests.
#[cfg(test)]
macro_rules! planted {
    ($vm:expr, $plant:ident) => {
        $vm.plant == Some($crate::clio::board::plant::Plant::$plant)
    };
}
#[cfg(not(test))]
macro_rules! planted {
    ($vm:expr, $plant:ident) => {
        false
    };
}

mod answers;
mod config;
mod counters;
mod entry;
mod extend;
mod facts;
mod fast;
mod fences;
mod few;
mod grant;
mod locks;
mod lookup3;
mod memory;
mod meter;
mod pages;
#[cfg(test)]
mod plant;
mod process;
mod processes;
mod ranges;
mod recent;
mod retry;
mod search;
mod slow;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod tlb;
mod vm;

pub use config::{Config, Pool, Quota, Quotas};
pub use counters::{Counters, Refusals};
pub use entry::Space;
pub use extend::{Call, View};
pub use facts::ProcessFacts;
pub use grant::{Grant, Refused};
pub use memory::PhysicalMemory;
pub use pages::Usage;
pub use process::PagesOf;
pub use table::{Index, Table};
pub use tlb::Replacement;
pub use vm::Translation;

use super::token::Secret;
use crate::common::ConfigError;
use crate::machine::Machine;
use answers::{Answer, Answers, Body};
use entry::Page;
use extend::Calls;
use fences::Fences;
use locks::Locks;
use meter::Meter;
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet::{self, Packet, PacketError};
use p4rack_wire::clio::{Header, Kind, PageSize, Status, VERSION};
use pages::Pages;
use processes::{Processes, Unknown};
use retry::{Ended, Retries};
use slow::{PeerRequest, Slow};
use std::ops::Range;
use tlb::Tlb;
use vm::Vm;

/// A board. `P` is the destination of an answer, such as a socket's address.
#[derive(Clone, Debug)]
pub struct Board<M, P> {
    config: Config,
    memory: M,
    vm: Vm,
    retries: Retries,
    locks: Locks,
    slow: Slow<P>,
    calls: Calls<P>,
    fences: Fences<P>,
    answers: Answers<P>,
    nacks: Meter,
    /// Reads whose answers wait.
    reads: u32,
    /// When the next step of the slow path is due.
    step_at: Option<Nanos>,
    now: Nanos,
    counters: Counters,
    refusals: Refusals,
}

/// A packet that a board has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<P> {
    /// Where it goes.
    pub to: P,
    /// How the request's address was translated.
    pub translation: Translation,
}

impl<M: PhysicalMemory, P: Copy + Send> Board<M, P> {
    /// A board without processes. Errors: a parameter is out of range, or the pools are larger than the memory.
    pub fn new(config: Config, secret: Secret, memory: M) -> Result<Board<M, P>, ConfigError> {
        config.check()?;
        if config.bytes() > memory.bytes() {
            let problem = "are larger than the memory; give the board more, or make the pools smaller";
            return Err(ConfigError { scheme: "clio", field: "pools", problem });
        }
        let table = Table::new(config.slots(), config.bucket_slots, config.index, secret.seed("pages"));
        let tlb = Tlb::new(config.tlb_entries, config.tlb_replacement, secret.seed("tlb"));
        let retries = Retries::new(config.retry_entries, config.retry_keep, secret.seed("retries"));
        let locks =
            Locks::new(config.locks_max, config.processes_max, config.lock_lease, secret.seed("locks"));
        let pages = Pages::new(&config.pools);
        let processes = Processes::new(config.processes_max, table.slots(), secret);
        let vm = Vm::new(table, tlb, pages, processes);
        Ok(Board {
            vm,
            retries,
            locks,
            slow: Slow::new(),
            calls: Calls::new(config.calls_max),
            fences: Fences::new(config.held_max),
            answers: Answers::new(config.answers_max, config.data_bytes_max),
            nacks: Meter::new(config.nacks_per_s),
            reads: 0,
            step_at: Some(Nanos::ZERO),
            now: Nanos::ZERO,
            counters: Counters::default(),
            refusals: Refusals::new(),
            config,
            memory,
        })
    }

    /// Takes the memory for results of executed operations and for processes now: otherwise it grows with each of them until both lists
    /// are full. To be called before the first packet.
    pub fn prefault(&mut self) {
        self.retries.prefault();
        self.vm.processes.prefault();
    }

    /// Memory of tables that each request reads at another place: the page table, and the results of executed operations. Translations
    /// of the processor cost less in huge pages. It stays where it is for the board's life, the results after
    /// [`prefault`](Self::prefault).
    pub fn tables(&self) -> [Range<*const u8>; 2] {
        [self.vm.table.memory(), self.retries.memory()]
    }

    /// Memory that a request will read before its data: its process, and the bucket of its page. A driver that has taken several packets
    /// has the processor load them together. `None`: there is no such process or page size.
    #[inline]
    pub fn ahead(&self, packet: &[u8]) -> Option<[Range<*const u8>; 2]> {
        let Header { pid, epoch, address, .. } = Header::parse(packet).ok()?;
        let size = PageSize::of_address(address).ok()?;
        let page = Page { space: Space { pid, epoch }, size, number: size.page_of(address) };
        Some([self.vm.processes.place(pid)?, self.vm.table.bucket(&page)])
    }

    /// Begins a process. Errors: too many processes, or more reserved than there is.
    pub fn begin(&mut self, quotas: Quotas) -> Result<Grant, Refused> {
        let grant = self.vm.processes.begin(quotas, &mut self.vm.pages)?;
        // There are frames to zero for it.
        self.schedule();
        Ok(grant)
    }

    /// Confines a process: its pages are free when it has ended, because it shares none. Returns whether it exists.
    pub fn confine(&mut self, space: Space) -> bool {
        let process = self.vm.processes.get_mut(space);
        process.map(|process| process.is_confined = true).is_some()
    }

    /// Ends a process: its requests are dropped from now on, its locks are released, its memory is freed in steps.
    /// Returns whether it was alive.
    pub fn end(&mut self, space: Space, now: Nanos) -> bool {
        self.now = self.now.max(now);
        if !self.vm.processes.end(space, &mut self.vm.pages) {
            return false;
        }
        let calls = self.calls.forget(space);
        if let Some(process) = self.vm.processes.get_mut(space) {
            self.reads -= std::mem::take(&mut process.reads);
            process.jobs -= calls;
        }
        let (answers, held) = (self.answers.forget(space.pid), self.fences.forget(space));
        self.counters.ended += (answers + held + calls) as u64;
        self.retries.give_back(calls as u32);
        while !planted!(self.vm, DeadOwner)
            && let Some((at, lock)) = self.locks.poll_of(space)
        {
            self.end_lock(at, &lock);
        }
        self.slow.end(space);
        self.settle();
        true
    }

    /// Its counters.
    pub fn counters(&self) -> Counters {
        let [tlb_hits, tlb_misses, faults] = self.vm.counts;
        let zeroed_bytes = self.vm.pages.zeroed_bytes();
        Counters { tlb_hits, tlb_misses, faults, zeroed_bytes, ..self.counters.clone() }
    }

    /// Requests that were not executed.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Frames of a page size.
    pub fn usage(&self, size: PageSize) -> Usage {
        self.vm.pages.usage(size)
    }

    /// The page table.
    pub fn table(&self) -> &Table {
        &self.vm.table
    }

    /// Processes that have not ended, or whose memory is still being freed.
    pub fn processes(&self) -> usize {
        self.vm.processes.len()
    }

    /// Answers to a process that have not left.
    pub fn answers_of(&self, pid: u32) -> usize {
        self.answers.len_of(pid)
    }

    /// Where the answer to the call goes that the next step of the slow path goes on with, if it answers one.
    pub fn next_caller(&self) -> Option<P> {
        self.slow.next().and_then(|job| job.asked.as_ref()).map(|asked| asked.peer)
    }

    /// Bytes of all frames that first accesses have taken so far. As many have to be zeroed for the next ones.
    pub fn taken_bytes(&self) -> u64 {
        self.vm.pages.taken_bytes()
    }

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Checks a packet, and drops it or answers it by a NACK unless it is a request of a process.
    fn accept<'a>(&mut self, peer: P, bytes: &'a [u8]) -> Option<(Space, Packet<'a>)> {
        let counters = &mut self.counters;
        counters.packets_in += 1;
        let packet = match packet::parse(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                *(match error {
                    PacketError::Malformed(_) | PacketError::Crc => &mut counters.malformed,
                    PacketError::Version(_) => &mut counters.wrong_version,
                    PacketError::Length { .. } => &mut counters.wrong_length,
                }) += 1;
                return None;
            }
        };
        if !packet.kind.is_request() {
            counters.not_requests += 1;
            return None;
        }
        let Header { pid, epoch, token, .. } = packet.header;
        let mut verified = self.vm.processes.verify(pid, epoch, token);
        if planted!(self.vm, NoEpoch) {
            let successor = self.vm.processes.iter().find(|process| process.space.pid == pid);
            verified = successor.map(|process| process.space).ok_or(Unknown::Pid);
        }
        let space = match verified {
            Ok(space) => space,
            Err(unknown) => {
                *(match unknown {
                    Unknown::Pid => &mut counters.wrong_pid,
                    Unknown::Epoch => &mut counters.wrong_epoch,
                    Unknown::Token => &mut counters.wrong_token,
                }) += 1;
                return None;
            }
        };
        if self.answers.is_full(pid) {
            counters.overflows += 1;
            return None;
        }
        if packet::is_intact(bytes) {
            return Some((space, packet));
        }
        if !self.nacks.passes(self.now) {
            counters.damaged += 1;
            return None;
        }
        counters.nacks += 1;
        let header = Header { kind: Kind::Nack as u8, code: 0, flags: 0, length: 0, ..packet.header };
        self.answers.push(Answer { peer, header, body: Body::None, translation: Translation::None });
        None
    }

    /// Adds the answer to a request.
    fn answer(
        &mut self,
        asked: &PeerRequest<P>,
        ended: Ended,
        body: Body,
        flags: u8,
        translation: Translation,
    ) {
        self.refusals.count(ended.status);
        let (kind, code) = (Kind::Answer as u8, ended.status as u8);
        let (index, packets) = match body {
            Body::Read { .. } | Body::Result { .. } => (0, 1),
            _ => (asked.header.index, asked.header.packets),
        };
        let header = Header {
            version: VERSION,
            kind,
            code,
            flags,
            index,
            packets,
            address: ended.address,
            ..asked.header
        };
        self.answers.push(Answer { peer: asked.peer, header, body, translation });
    }
}

impl<M: PhysicalMemory, P: Copy + Send> Machine for Board<M, P> {
    /// Where the answer goes, and a packet.
    type Received<'a> = (P, &'a [u8]);
    type Sent = Sent<P>;
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, (peer, bytes): (P, &[u8]), _received_at: Nanos, now: Nanos) {
        self.now = self.now.max(now);
        let Some((space, packet)) = self.accept(peer, bytes) else { return };
        if self.fences.is_empty() || !self.fences.blocks(space) {
            self.execute(space, peer, &packet);
        } else if self.fences.hold(space, peer, bytes) {
            self.counters.held += 1;
        } else {
            self.refuse(&PeerRequest { peer, header: packet.header }, Status::Busy);
        }
        self.settle();
    }

    /// Does a step of the slow path, and ends locks whose lease has ended.
    fn handle_timeout(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        if self.step_at.is_some_and(|at| at <= self.now) {
            self.step_at = None;
            self.step();
        }
        while let Some((at, lock)) = self.locks.poll_ended(self.now) {
            self.end_lock(at, &lock);
        }
        self.settle();
    }

    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<Sent<P>> {
        let left = self.answers.poll(&self.memory, out)?;
        self.now = self.now.max(now);
        self.counters.packets_out += 1;
        if let Some(space) = left.read {
            self.reads -= 1;
            if let Some(process) = self.vm.processes.get_mut(space) {
                process.reads -= 1;
            }
            self.settle();
        }
        Some(Sent { to: left.peer, translation: left.translation })
    }

    fn next_link(&self) -> Option<Nanos> {
        (!self.answers.is_empty()).then_some(Nanos::ZERO)
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.step_at.into_iter().chain(self.locks.next_end()).min()
    }
}
