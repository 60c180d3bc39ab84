//! Programs that ask from outside: a process of one thread on each compute node, and a board for all of them. Nothing else uses the rack.

use super::compute::{Ending, Library, end_of};
use super::experiment::ClioExperiment;
use super::outside::{Outside, OutsideRequest};
use super::rack::CLOCK;
use super::world::{ClioWorld, Event};
use crate::requests::{Ask, Ended, PoolLink, Requests, Sharing, Transfer};
use p4rack_fabric::clio::lib::{Operation, Outcome};

/// Bytes of a page: the default of files.
const PAGE_BYTES: u64 = 4 << 20;

impl ClioWorld<'_> {
    /// A thread submits its next request from outside. Returns whether there are such requests.
    pub(super) fn submit(&mut self, number: u32, now_ps: u64) -> bool {
        let Some(outside) = &mut self.outside else { return false };
        let Some(one) = outside.asked[number as usize].pop_front() else { return true };
        let thread = &mut self.threads[number as usize];
        // A node has one process.
        let nth = thread.stack;
        let stack = &mut self.stacks[nth as usize];
        let address = stack.addresses[0] + one.address;
        let operation = match one.read {
            0 => Operation::Write { address, bytes: &one.written },
            bytes => Operation::Read { address, bytes },
        };
        let tag = self.work.begin(thread, number, now_ps);
        let is_accepted = match (&mut stack.library, tag) {
            (Library::Clio(client), Some(tag)) => {
                outside.tags.insert(tag, one.tag);
                client.submit(0, 0, tag, operation, CLOCK.nanos(now_ps)).is_ok()
            }
            _ => false,
        };
        if !is_accepted {
            if let Some(tag) = tag {
                thread.end(tag as u16);
            }
            let refused = Ended { node: nth as u16, tag: one.tag, at_ps: now_ps, bytes: None };
            outside.over.push_back(refused);
        }
        self.pump(nth, now_ps);
        true
    }

    /// A request from outside has ended. Returns whether there are such requests.
    pub(super) fn ended_outside(
        outside: &mut Option<Outside>,
        (node, tag): (u32, u64),
        outcome: &Outcome<'_>,
        now_ps: u64,
    ) -> bool {
        let Some(outside) = outside else { return false };
        let bytes = match outcome {
            Outcome::Read(bytes) => Some(bytes.to_vec()),
            other => (end_of(other, |_| true) == Ending::Done).then(Vec::new),
        };
        let tag = outside.tags.remove(&tag);
        let ended = tag.map(|tag| Ended { node: node as u16, tag, at_ps: now_ps, bytes });
        outside.over.extend(ended);
        true
    }
}

/// A rack whose compute nodes reach a board of Clio.
#[derive(Debug)]
pub(crate) struct ClioPrograms<'a> {
    world: ClioWorld<'a>,
}

impl ClioPrograms<'_> {
    /// The rack's parameters. Errors: it can't have them.
    pub fn experiment(sharing: &Sharing) -> Result<ClioExperiment, String> {
        let Sharing { nodes, part_bytes, request_bytes_max, window, rate_bps, seed } = *sharing;
        let pages = part_bytes.div_ceil(PAGE_BYTES);
        // A cache's requests under way never overlap, so the library may order them by bytes.
        let text = format!(
            "name = \"programs\"\nkind = \"clio\"\nprofile = \"asic\"\nseed = {seed}\ncompute_nodes = {nodes}\nwindow = \
             {window}\nbytes = {request_bytes_max}\npages = {pages}\nwarmup = 0\n[network]\nrate = \"{rate_bps} \
             b/s\"\ncompute_rate = \"{rate_bps} b/s\"\n[clib]\nby_bytes = true\n"
        );
        let experiment = ClioExperiment::parse(&text, "rack").map_err(|error| error.to_string())?;
        Ok(ClioExperiment { is_outside: true, ..experiment })
    }
}

impl<'a> ClioPrograms<'a> {
    /// The rack after its set-up. Errors: the generator or the board refuses it.
    pub fn new(experiment: &'a ClioExperiment) -> Result<ClioPrograms<'a>, String> {
        Ok(ClioPrograms { world: ClioWorld::new(experiment)? })
    }
}

impl Requests for ClioPrograms<'_> {
    fn start_ps(&self) -> u64 {
        self.world.now_ps
    }

    fn ask(&mut self, ask: Ask<'_>, now_ps: u64) -> Result<(), String> {
        let Ask { node, tag, address, what } = ask;
        let (read, written) = match what {
            Transfer::Read(bytes) => (bytes, Vec::new()),
            Transfer::Write(bytes) => (0, bytes.to_vec()),
        };
        let outside = self.world.outside.as_mut().ok_or("the rack has no programs")?;
        outside.asked[usize::from(node)].push_back(OutsideRequest { tag, address, read, written });
        let thread = &mut self.world.threads[usize::from(node)];
        thread.free_ps = thread.free_ps.max(now_ps) + self.world.experiment.compute.send_ns * 1_000;
        self.world.agenda.add(thread.free_ps, Event::Call(node.into()));
        Ok(())
    }

    fn next(&mut self, until_ps: u64) -> Option<Ended> {
        while self.world.outside.as_ref().is_some_and(|outside| outside.over.is_empty())
            && self.world.step(until_ps)
        {}
        self.world.outside.as_mut()?.over.pop_front()
    }

    fn fresh(&self, _node: u16, _address: u64) -> u64 {
        0
    }

    fn pool(&self, now_ps: u64) -> PoolLink {
        let port = self.world.experiment.spec.compute_nodes + 1;
        self.world.hub.as_ref().map_or_else(PoolLink::default, |hub| hub.link(port, now_ps))
    }
}
