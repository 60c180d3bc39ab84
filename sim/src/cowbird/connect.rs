//! Threads, their queue pairs and rings, and the engines and servers on hosts.

use super::experiment::CowbirdScheme;
use super::nic::HostMemory;
use super::program::Program;
use super::rack::{self, COMPUTE, COMPUTE_QPN, POOL, POOL_QPN, SPOT};
use super::records::{POOL_KEY, POOL_START};
use super::redy::IoThread;
use super::server::Server;
use super::spot::Core;
use super::thread::{ASK_BYTES, RecordPath, Thread};
use super::world::{Attacker, CowbirdWorld};
use p4rack_cowbird::{Client, Layout};
use p4rack_fabric::cowbird::{Pool, Set};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

impl CowbirdWorld<'_> {
    /// Makes threads, their queue pairs and rings, and the engines and servers on hosts.
    pub(super) fn connect(&mut self, threads: usize, pool_bytes: u64) -> Result<(), String> {
        let (spec, rate_bps) = (&self.experiment.spec, self.experiment.rate_bps);
        let layout = rack::layout(self.plan.window, spec.record_bytes);
        if spec.scheme == CowbirdScheme::CowbirdSpot {
            // An engine takes the rings of both compute nodes.
            let most = self.attacker.as_ref().map_or(layout, Attacker::layout);
            let entries = most.entries.max(layout.entries);
            let core = || Core::new(&spec.spot, rate_bps, entries, (most.request_bytes / 2) as u32);
            self.cores = (0..spec.spot.cores.min(spec.threads)).map(|_| core()).collect();
        }
        if spec.scheme == CowbirdScheme::RdmaTwoSided {
            self.servers = (0..spec.cpu.servers).map(|_| Server::default()).collect();
        }
        if spec.scheme == CowbirdScheme::Redy {
            self.io_threads()?;
        }
        for nth in 0..threads {
            let path = match spec.scheme {
                CowbirdScheme::Local => RecordPath::Local,
                CowbirdScheme::Redy => {
                    RecordPath::Handed { asked: VecDeque::new(), brought: VecDeque::new() }
                }
                CowbirdScheme::Rdma | CowbirdScheme::RdmaTwoSided => {
                    let two_sided = spec.scheme == CowbirdScheme::RdmaTwoSided;
                    self.verbs(nth, two_sided)?
                }
                CowbirdScheme::CowbirdSpot | CowbirdScheme::CowbirdP4 => {
                    self.rings(nth, layout, pool_bytes)?
                }
            };
            if self.experiment.programs > 0 {
                self.programs.push(Program::new(path));
                continue;
            }
            self.threads.push(Thread::new(path, nth as u64 * self.plan.keys, spec.seed, &self.plan));
        }
        if spec.scheme == CowbirdScheme::CowbirdSpot {
            for set in threads..self.sets {
                self.hostile_rings(set, pool_bytes)?;
            }
        }
        Ok(())
    }

    /// A queue pair to the pool.
    fn verbs(&mut self, nth: usize, two_sided: bool) -> Result<RecordPath, String> {
        let qpn = POOL_QPN + nth as u32;
        self.messages(self.home(nth), qpn, if two_sided { 2 * self.plan.window } else { 0 }, 1)?;
        Ok(RecordPath::Verbs { qpn, two_sided, done: VecDeque::new(), unrung: 0 })
    }

    /// A queue pair to the pool. Either end posts `receives` receives, each for up to `batch` requests or answers.
    fn messages(&mut self, host: usize, qpn: u32, receives: u32, batch: u32) -> Result<(), String> {
        let record_bytes = self.plan.record_bytes;
        self.link_pairs((host, POOL), None, qpn)?;
        for (host, bytes) in [(host, record_bytes), (POOL, ASK_BYTES as u32 + record_bytes)] {
            for _ in 0..receives {
                let posted = self.nics[host].adapter.handle_receive(qpn, batch * bytes);
                posted.map_err(|error| format!("a receive is refused: {error:?}"))?;
            }
        }
        Ok(())
    }

    /// I/O threads, each with its share of the other threads, a queue pair and a server.
    fn io_threads(&mut self) -> Result<(), String> {
        let spec = &self.experiment.spec;
        let count = spec.redy.io_threads.min(spec.threads);
        for nth in 0..count {
            let qpn = POOL_QPN + u32::from(nth);
            self.messages(COMPUTE, qpn, 2 * u32::from(spec.redy.messages), spec.redy.batch.into())?;
            let threads = (nth..spec.threads).step_by(count.into()).map(usize::from).collect();
            self.io.push(IoThread::new(qpn, threads));
            self.servers.push(Server::default());
        }
        Ok(())
    }

    /// Rings, served by a core of the spare host if there is one.
    fn rings(&mut self, nth: usize, layout: Layout, pool_bytes: u64) -> Result<RecordPath, String> {
        let words: Arc<[AtomicU64]> = (0..layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let (key, address) = rack::rings_of(nth);
        let home = self.home(nth);
        let HostMemory::Rings(area) = self.nics[home].adapter.memory_mut() else {
            return Err("the compute node has no rings".to_owned());
        };
        if !area.offer(0, key, address, words.clone()) {
            return Err("two threads have the same rings".to_owned());
        }
        let mut client = Client::new(words, layout, vec![pool_bytes; usize::from(self.plan.regions)])
            .map_err(|error| error.to_string())?;
        let poll = client.poll_create();
        let cores = self.cores.len();
        if cores > 0 {
            let to_compute = COMPUTE_QPN + nth as u32;
            self.link_pairs((SPOT, home), None, to_compute)?;
            let mut regions = Vec::new();
            for region in 0..self.plan.regions {
                let qpn = POOL_QPN + nth as u32 + u32::from(region) * self.sets as u32;
                self.link_pairs((SPOT, POOL), Some(home), qpn)?;
                regions.push(Pool { qpn, key: POOL_KEY, address: POOL_START, bytes: pool_bytes });
            }
            let set = Set { owner: home as u32, qpn: to_compute, key, address, layout, regions };
            let added = self.cores[nth % cores].engine.add(set, Nanos::ZERO);
            added.map_err(|error| error.to_string())?;
        }
        Ok(RecordPath::Cowbird { client: Box::new(client), poll })
    }
}
