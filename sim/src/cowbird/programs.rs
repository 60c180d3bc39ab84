//! Programs that ask from outside: one on each compute node, over RDMA or Cowbird's rings. Their requests depend on when others end,
//! so there are no threads; the cost of a thread's calls is added between a request and its post, and between a
//! completion and its end.

use super::experiment::{CowbirdExperiment, CowbirdScheme};
use super::nic::{Cause, ps};
use super::program::{Posted, Program};
use super::rack::{POOL, POOL_QPN};
use super::records::{POOL_KEY, POOL_START, word};
use super::thread::RecordPath;
use super::world::{CowbirdWorld, Event, home_of};
use crate::requests::{Ask, Ended, PoolLink, Requests, Sharing, Transfer};
use p4rack_cowbird::Kind;
use p4rack_fabric::roce::{Completion, Outcome, Request};

impl CowbirdWorld<'_> {
    /// A program's core is done with posting its next request.
    pub(super) fn post(&mut self, nth: u16, now_ps: u64) {
        let (home, pool) = (self.home(nth.into()), POOL_START);
        let program = &mut self.programs[usize::from(nth)];
        let Some(Posted { tag, address, read, written }) = program.posting.pop_front() else { return };
        let Program { path, reads, writes, .. } = program;
        let is_accepted = match path {
            RecordPath::Verbs { qpn, .. } => {
                let (key, address) = (POOL_KEY, pool + address);
                let request = match read {
                    0 => Request::Write { key, address, bytes: written, immediate: None },
                    bytes => Request::Read { key, address, bytes },
                };
                reads.push_back(tag);
                let is_accepted = self.nics[home].adapter.handle_request(*qpn, request).is_ok();
                self.send(home, now_ps, now_ps, Cause::Doorbell);
                is_accepted
            }
            RecordPath::Cowbird { client, poll } => {
                let (id, queue) = match read {
                    0 => (client.async_write(0, &written, address), writes),
                    bytes => (client.async_read(0, address, bytes), reads),
                };
                queue.push_back(tag);
                id.is_ok_and(|id| client.poll_add(*poll, id).is_ok())
            }
            RecordPath::Local | RecordPath::Handed { .. } => false,
        };
        if !is_accepted {
            let program = &mut self.programs[usize::from(nth)];
            for queue in [&mut program.reads, &mut program.writes] {
                queue.pop_back_if(|last| *last == tag);
            }
            program.seen.push_back((tag, None));
            self.agenda.add(now_ps, Event::Ended(nth));
        }
    }

    /// A queue pair of a program has completed a request.
    pub(super) fn completed(&mut self, qpn: u32, completion: Completion, now_ps: u64) {
        let nth = qpn.wrapping_sub(POOL_QPN) as u16;
        let Some(program) = self.programs.get_mut(usize::from(nth)) else { return };
        if let RecordPath::Verbs { .. } = program.path
            && let Completion::Request(_, outcome) = completion
            && let Some(tag) = program.reads.pop_front()
        {
            let bytes = match outcome {
                Outcome::Read(bytes) => Some(bytes),
                Outcome::Done => Some(Vec::new()),
                _ => None,
            };
            program.seen.push_back((tag, bytes));
            let cpu = &self.plan.cpu;
            self.agenda.add(now_ps + ps(cpu.look_ns + cpu.completion_ns), Event::Ended(nth));
        }
    }

    /// Something has reached the memory of a host: a program's rings may say more than before.
    pub(super) fn look(&mut self, host: usize, now_ps: u64) {
        let cpu = &self.plan.cpu;
        let at_ps = now_ps + ps(cpu.look_ns + cpu.fetch_ns);
        let most = self.plan.window as usize;
        for nth in 0..self.programs.len() {
            if home_of(nth) != host {
                continue;
            }
            let Program { path: RecordPath::Cowbird { client, poll }, reads, writes, seen, .. } =
                &mut self.programs[nth]
            else {
                continue;
            };
            let before = seen.len();
            let polled = client.poll(*poll, most, |response| {
                let (queue, bytes) = match response.id.kind() {
                    Kind::Read => (&mut *reads, response.data.map(|data| data.to_vec())),
                    Kind::Write => (&mut *writes, Some(Vec::new())),
                };
                seen.extend(queue.pop_front().map(|tag| (tag, bytes)));
            });
            self.refused += u64::from(polled.is_err());
            (before..seen.len()).for_each(|_| self.agenda.add(at_ps, Event::Ended(nth as u16)));
        }
    }

    /// A program sees the end of its next request.
    pub(super) fn has_ended(&mut self, nth: u16, now_ps: u64) {
        let seen = self.programs[usize::from(nth)].seen.pop_front();
        self.over.extend(seen.map(|(tag, bytes)| Ended { node: nth, tag, at_ps: now_ps, bytes }));
    }
}

/// A rack whose compute nodes reach a pool of RDMA memory.
#[derive(Debug)]
pub(crate) struct CowbirdPrograms<'a> {
    world: CowbirdWorld<'a>,
    sharing: Sharing,
}

impl CowbirdPrograms<'_> {
    /// The rack's parameters, with a scheme by name. Errors: it can't have them.
    pub fn experiment(scheme: CowbirdScheme, sharing: &Sharing) -> Result<CowbirdExperiment, String> {
        let Sharing { nodes, request_bytes_max, window, rate_bps, seed, .. } = *sharing;
        let records = sharing.pool_bytes().div_ceil(request_bytes_max.into()).max(100 * u64::from(nodes));
        let text = format!(
            "name = \"programs\"\nkind = \"cowbird\"\nscheme = \"{}\"\nseed = {seed}\nthreads = {nodes}\nrecord_bytes = \
             {request_bytes_max}\nrecords = {records}\nbatch = 1\nbatches = {window}\nrate = \"{rate_bps} b/s\"\n",
            scheme.name()
        );
        let experiment = CowbirdExperiment::parse(&text, "rack").map_err(|error| error.to_string())?;
        Ok(CowbirdExperiment { programs: nodes, ..experiment })
    }
}

impl<'a> CowbirdPrograms<'a> {
    /// The rack at time 0. Errors: the generator or an adapter refuses it.
    pub fn new(experiment: &'a CowbirdExperiment, sharing: Sharing) -> Result<CowbirdPrograms<'a>, String> {
        Ok(CowbirdPrograms { world: CowbirdWorld::new(experiment, None)?, sharing })
    }
}

impl Requests for CowbirdPrograms<'_> {
    fn start_ps(&self) -> u64 {
        0
    }

    fn ask(&mut self, ask: Ask<'_>, now_ps: u64) -> Result<(), String> {
        let address = self.sharing.place(ask.node, ask.address);
        let (read, written) = match ask.what {
            Transfer::Read(bytes) => (bytes, Vec::new()),
            Transfer::Write(bytes) => (0, bytes.to_vec()),
        };
        let cpu = &self.world.plan.cpu;
        let program = &mut self.world.programs[usize::from(ask.node)];
        let call_ns = match program.path {
            RecordPath::Verbs { .. } => cpu.request_ns + cpu.doorbell_ns,
            _ => cpu.issue_ns + (written.len() as u32).div_ceil(64) * cpu.line_ns,
        };
        program.free_ps = program.free_ps.max(now_ps) + ps(call_ns);
        program.posting.push_back(Posted { tag: ask.tag, address, read, written });
        self.world.agenda.add(program.free_ps, Event::Posted(ask.node));
        Ok(())
    }

    fn next(&mut self, until_ps: u64) -> Option<Ended> {
        self.world.next_end(until_ps)
    }

    fn fresh(&self, node: u16, address: u64) -> u64 {
        word(self.sharing.place(node, address) / 8, 0)
    }

    fn pool(&self, now_ps: u64) -> PoolLink {
        self.world.hub.link(POOL as u16 + 1, now_ps)
    }
}
