//! Threads, their libraries, and adapters.

use super::{AHEAD, BOARD_PORT, ClioWorld, Event, PORTS, Parcel};
use crate::clio::compute::{self, Ending, Issued, Library};
use crate::clio::modelled::Posted;
use crate::clio::rack::{self, CLOCK, End, HEADERS};
use crate::clio::spec::{ClioScheme, Load};
use p4rack_fabric::{HostMachine as _, Machine as _};

impl ClioWorld<'_> {
    /// Plans a thread's next call, if it may make one.
    pub(super) fn go_on(&mut self, number: u32, now_ps: u64) {
        let experiment = self.experiment;
        let node = usize::from(self.node_of(self.threads[number as usize].stack));
        let thread = &mut self.threads[number as usize];
        if self.outside.is_some() || !self.computes[node].acts(number) || !self.work.may_ask(thread) {
            return;
        }
        let send_ns = match experiment.spec.scheme {
            ClioScheme::Clio => experiment.compute.send_ns,
            _ => experiment.rdma.post_ns,
        };
        thread.calls = true;
        thread.free_ps = thread.free_ps.max(now_ps) + send_ns * 1_000;
        self.agenda.add(thread.free_ps, Event::Call(number));
    }

    /// The compute node of a library.
    pub(super) fn node_of(&self, stack: u32) -> u16 {
        let together = u32::from(self.experiment.processes_together());
        (stack * together / u32::from(self.experiment.spec.processes)) as u16
    }

    pub(super) fn call(&mut self, number: u32, now_ps: u64) {
        if self.submit(number, now_ps) {
            return;
        }
        let experiment = self.experiment;
        let thread = &mut self.threads[number as usize];
        thread.calls = false;
        let nth = thread.stack;
        let stack = &mut self.stacks[nth as usize];
        let is_model = matches!(stack.library, Library::Modelled(_));
        let send_ns = if is_model { experiment.rdma.post_ns } else { experiment.compute.send_ns };
        let begun_ps = now_ps - send_ns * 1_000;
        if is_model && experiment.spec.load == Load::Allocations {
            let pages = experiment.page_size.pages(experiment.spec.bytes);
            let took_ns = experiment.rdma.register_ns + pages * experiment.rdma.register_page_ns;
            if let Some(tag) = self.work.begin(thread, number, begun_ps) {
                self.agenda.add(now_ps + took_ns * 1_000, Event::Registered(tag));
            }
            return;
        }
        let asked = self.work.ask(thread, stack, number, begun_ps, CLOCK.nanos(now_ps));
        if asked == Issued::Full {
            return;
        }
        self.pump(nth, now_ps);
        self.go_on(number, now_ps);
    }

    /// Sends a library's packets as far as its adapter has room, and plans its timers.
    pub(in crate::clio) fn pump(&mut self, nth: u32, now_ps: u64) {
        let experiment = self.experiment;
        let (node, now) = (self.node_of(nth), CLOCK.nanos(now_ps));
        // The first process that uses it, of the node's.
        let first = nth * u32::from(experiment.processes_together()) % u32::from(experiment.spec.processes);
        loop {
            let compute = &mut self.computes[usize::from(node)];
            let backlog = self.links.get(usize::from(node)).map_or(0, |link| link.backlog_frames()) as u32;
            let stack = &mut self.stacks[nth as usize];
            if compute.crossing + backlog >= AHEAD {
                if !std::mem::replace(&mut stack.waits, true) {
                    compute.waiting.push_back(nth);
                }
                break;
            }
            let polled = match &mut stack.library {
                Library::Clio(client) => client.poll_link(now, &mut self.out).map(|seat| (seat, None)),
                Library::Modelled(client) => client.poll(&mut self.out).map(|one| (one.to, Some(one))),
            };
            let Some((seat, posted)) = polled else { break };
            let (process, board) = (seat / experiment.spec.boards, seat % experiment.spec.boards);
            let mut frame = self.frames.take(self.out.len() < 200);
            frame.clear();
            frame.resize(HEADERS, 0);
            frame.extend_from_slice(&self.out);
            let from = End { host: node, port: PORTS + first as u16 + process };
            let to = End { host: experiment.spec.compute_nodes + board, port: BOARD_PORT };
            rack::address(&mut frame, from, to);
            let nic_ps = self.nic_out_ps(frame.len() as u64, posted);
            let compute = &mut self.computes[usize::from(node)];
            compute.crossed_ps = compute.crossed_ps.max(now_ps + nic_ps);
            compute.crossing += 1;
            self.tally.nic_ps += nic_ps;
            self.agenda.add(compute.crossed_ps, Event::Handed(node, frame));
        }
        let stack = &mut self.stacks[nth as usize];
        if let Library::Clio(client) = &stack.library {
            let link = if stack.waits { None } else { client.next_link() };
            let link = link.map(|at| CLOCK.ticks(at).max(now_ps + 1_000));
            let timer = client.next_timeout().map(|at| CLOCK.ticks(at));
            if let Some(at_ps) = link.into_iter().chain(timer).min().and_then(|at| stack.due.plan(at, now_ps))
            {
                self.agenda.add(at_ps, Event::Library(nth));
            }
        }
    }

    /// Time of a frame from a library to the machine of the link.
    pub(super) fn nic_out_ps(&self, frame_bytes: u64, posted: Option<Posted>) -> u64 {
        let (compute, rdma) = (&self.experiment.compute, &self.experiment.rdma);
        let (ns, bytes) = match posted {
            None => (compute.nic_ns, frame_bytes),
            Some(posted) => {
                let post_ns = if posted.is_posted_again { rdma.post_ns } else { 0 };
                (rdma.pcie_ns + rdma.packet_ns + post_ns, posted.bytes)
            }
        };
        let fetch_ns = if bytes > compute.inline_bytes { compute.fetch_ns } else { 0 };
        (ns + fetch_ns) * 1_000
    }

    pub(super) fn delivered(&mut self, parcel: Parcel, now_ps: u64) {
        let spec = &self.experiment.spec;
        let (now, packet) = (CLOCK.nanos(now_ps), parcel.packet());
        let board = parcel.from.host.wrapping_sub(spec.compute_nodes);
        let together = u32::from(self.experiment.processes_together());
        let (nth, member) = (parcel.process / together, (parcel.process % together) as u16);
        let Some(stack) = self.stacks.get_mut(nth as usize) else {
            return self.frames.release(parcel.frame);
        };
        match &mut stack.library {
            // From no board, it has no seat.
            Library::Clio(client) if board < spec.boards => {
                client.handle_link((member * spec.boards + board, packet), now, now);
            }
            Library::Clio(_) => {}
            Library::Modelled(client) => {
                let ended = client.handle(spec.scheme, packet);
                if let Some(tag) = ended {
                    self.ended(tag, Ending::Done, now_ps);
                }
            }
        }
        self.frames.release(parcel.frame);
        self.complete(nth, now_ps);
        self.pump(nth, now_ps);
    }

    /// Takes the outcomes of a library's operations.
    pub(super) fn complete(&mut self, nth: u32, now_ps: u64) {
        loop {
            let Library::Clio(client) = &mut self.stacks[nth as usize].library else { return };
            let Some((tag, outcome)) = client.poll_completion() else { return };
            if ClioWorld::ended_outside(&mut self.outside, (nth, tag), &outcome, now_ps) {
                self.threads[(tag >> 16) as usize].end(tag as u16);
                continue;
            }
            let one = self.threads[(tag >> 16) as usize].under_way(tag as u16);
            let end = compute::end_of(&outcome, |bytes| self.work.is_right(&one, bytes));
            self.ended(tag, end, now_ps);
        }
    }

    /// An operation has ended. Only those that ended well are measured.
    pub(super) fn ended(&mut self, tag: u64, end: Ending, now_ps: u64) {
        let (number, slot) = ((tag >> 16) as u32, tag as u16);
        let thread = &mut self.threads[number as usize];
        let one = thread.under_way(slot);
        thread.end(slot);
        thread.free_ps = thread.free_ps.max(now_ps);
        let (stack, tally) = (thread.stack, &mut self.tally);
        match end {
            Ending::Done => {}
            Ending::Wrong => tally.wrong += 1,
            Ending::Refused => tally.refused += 1,
            Ending::Unknown => tally.unknown += 1,
        }
        tally.ended += 1;
        let warmup = self.experiment.spec.warmup;
        if tally.ended == warmup {
            self.begin_measuring(now_ps);
        } else if tally.ended > warmup {
            tally.end_ps = now_ps;
            if end == Ending::Done {
                tally.done += 1;
                tally.bytes += one.bytes;
            }
            if end == Ending::Done && one.begun_ps >= tally.begun_ps {
                tally.latency.record((now_ps - one.begun_ps) / 1_000);
                tally.latency_ps += u128::from(now_ps - one.begun_ps);
            }
        }
        let node = usize::from(self.node_of(stack));
        let next = self.computes[node].next(number, &mut self.threads);
        self.go_on(next, now_ps);
        if next != number {
            self.go_on(number, now_ps);
        }
    }
}
