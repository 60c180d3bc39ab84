//! An I/O thread of the compute node, as in Redy (§8.2): it takes requests from other threads' queues, sends them in messages to a
//! server of the pool, and returns the answers.
//!
//! ```text
//!   threads ─ queues ─▶ I/O thread ─ SEND: a batch of requests ─▶ server, one request after the other
//!           ◀─ queues ─            ◀─ SEND: the records ─────────
//! ```
//!
//! It never sleeps: without work it polls again.

use super::costs::{CpuSpec, RedySpec};
use super::nic::{HostMemory, ps};
use super::thread::{ASK_BYTES, Thread};
use p4rack_fabric::roce::{Adapter, Completion, Outcome, Request};
use std::collections::VecDeque;

/// A request in a message.
#[derive(Clone, Copy, Debug)]
struct Carried {
    thread: usize,
    is_write: bool,
}

#[derive(Debug)]
pub(super) struct IoThread {
    /// Its queue pair to the pool.
    qpn: u32,
    /// Threads whose requests it carries.
    threads: Vec<usize>,
    /// Index of the thread whose queue it polls next.
    next: usize,
    /// Messages in flight, with their requests.
    under_way: VecDeque<Vec<Carried>>,
    answers: VecDeque<Vec<u8>>,
    /// Messages that failed or got an invalid answer.
    pub failed: u64,
    /// Time in rounds with work.
    pub busy_ps: u64,
}

/// Duration of a round, and whether it rang a doorbell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub took_ps: u64,
    pub rung: bool,
}

impl IoThread {
    pub fn new(qpn: u32, threads: Vec<usize>) -> IoThread {
        let (under_way, answers) = (VecDeque::new(), VecDeque::new());
        IoThread { qpn, threads, next: 0, under_way, answers, failed: 0, busy_ps: 0 }
    }

    /// Takes a completion of its queue pair.
    pub fn complete(&mut self, completion: Completion) {
        match completion {
            Completion::Receive(received) => self.answers.push_back(received.bytes),
            // The message was sent; only the answer counts.
            Completion::Request(_, Outcome::Done) => {}
            Completion::Request(..) => self.failed += 1,
        }
    }

    /// Runs a round: takes an answer if there is one, and sends a message if there are requests.
    pub fn round(
        &mut self,
        threads: &mut [Thread],
        adapter: &mut Adapter<HostMemory>,
        (cpu, spec, record_bytes): (&CpuSpec, &RedySpec, u32),
    ) -> Round {
        let mut took_ns = 0;
        if let Some(answer) = self.answers.pop_front() {
            took_ns += cpu.completion_ns + cpu.receive_ns;
            took_ns += spec.answer_ns * self.hand_back(&answer, threads, record_bytes);
            let posted = adapter.handle_receive(self.qpn, u32::from(spec.batch) * record_bytes);
            self.failed += u64::from(posted.is_err());
        }
        let mut rung = false;
        if self.under_way.len() < usize::from(spec.messages) {
            let (message, carried) = self.gather(threads, spec.batch.into());
            if !carried.is_empty() {
                took_ns += cpu.request_ns + cpu.doorbell_ns + spec.request_ns * carried.len() as u32;
                let request = Request::Send { bytes: message, immediate: None };
                rung = adapter.handle_request(self.qpn, request).is_ok();
                self.failed += u64::from(!rung);
                self.under_way.push_back(carried);
            }
        }
        self.busy_ps += ps(took_ns);
        Round { took_ps: ps(cpu.look_ns.max(took_ns)), rung }
    }

    /// Delivers an answer's records to the requesting threads. Returns the number of answered requests.
    fn hand_back(&mut self, answer: &[u8], threads: &mut [Thread], record_bytes: u32) -> u32 {
        let Some(carried) = self.under_way.pop_front() else {
            self.failed += 1;
            return 0;
        };
        let mut records = answer.chunks_exact(record_bytes as usize);
        for one in &carried {
            let record = if one.is_write { None } else { records.next().map(<[u8]>::to_vec) };
            threads[one.thread].hand(record);
        }
        carried.len() as u32
    }

    /// Requests of its threads, which take turns: the bytes, and the threads.
    fn gather(&mut self, threads: &mut [Thread], batch: usize) -> (Vec<u8>, Vec<Carried>) {
        let (mut message, mut carried) = (Vec::with_capacity(batch * ASK_BYTES), Vec::new());
        let mut in_vain = 0;
        while carried.len() < batch && in_vain < self.threads.len() {
            let thread = self.threads[self.next];
            self.next = (self.next + 1) % self.threads.len();
            match threads[thread].take_asked() {
                Some((ask, is_write)) => {
                    message.extend_from_slice(&ask);
                    carried.push(Carried { thread, is_write });
                    in_vain = 0;
                }
                None => in_vain += 1,
            }
        }
        (message, carried)
    }
}
