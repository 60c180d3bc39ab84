//! The slow path: calls that change address spaces, in steps of bounded work (paper §4.2).
//!
//! ```text
//!   MANAGE ─▶ queue ─▶ one step of the first job ─▶ ended: answer
//!               ▲              │ more to do
//!               └──────────────┘                   processes take turns, however long their calls are
//! ```

mod alloc;
mod end;
mod free;
mod share;

use super::entry::Space;
use super::search::Limits;
use super::vm::Vm;
use alloc::Alloc;
use end::End;
use free::Free;
use p4rack_wire::clio::{AllocBody, FreeBody, Header, Manage, ShareBody, Status};
use share::Share;
use std::collections::VecDeque;
use std::ops::Range;

/// A request, and where its answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerRequest<P> {
    pub peer: P,
    pub header: Header,
}

/// A call that is being done. The end of a process has no request to answer.
#[derive(Clone, Debug)]
pub(super) struct Job<P> {
    pub space: Space,
    pub asked: Option<PeerRequest<P>>,
    task: Task,
}

#[derive(Clone, Debug)]
enum Task {
    Alloc(Alloc),
    Free(Free),
    Share(Box<Share>),
    End(End),
}

/// Progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    More,
    /// It has ended, with the address of the answer.
    Ended(Status, u64),
}

/// State that a step works on.
struct Step<'a> {
    vm: &'a mut Vm,
    limits: Limits,
    /// Ranges and pages that the step may still look at.
    budget: u32,
    /// Whether reads of a process at these addresses wait for the link.
    is_read: &'a dyn Fn(Space, &Range<u64>) -> bool,
}

/// Calls that are not done.
#[derive(Clone, Debug)]
pub(super) struct Slow<P> {
    jobs: VecDeque<Job<P>>,
}

impl<P: Copy> Slow<P> {
    pub fn new() -> Slow<P> {
        Slow { jobs: VecDeque::new() }
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The job of the next step.
    pub fn next(&self) -> Option<&Job<P>> {
        self.jobs.front()
    }

    /// The request of a call with this id that is not done.
    pub fn find(&mut self, space: Space, id: u64) -> Option<&mut PeerRequest<P>> {
        let of_space = self.jobs.iter_mut().filter(|job| job.space == space);
        of_space.filter_map(|job| job.asked.as_mut()).find(|asked| asked.header.id == id)
    }

    /// Begins a call. Errors: it can't be done.
    pub fn begin(
        &mut self,
        space: Space,
        asked: PeerRequest<P>,
        data: &[u8],
        vm: &mut Vm,
    ) -> Result<(), Status> {
        let address = asked.header.address;
        let task = match Manage::of(asked.header.code).ok_or(Status::BadRequest)? {
            Manage::Alloc => {
                let body = AllocBody::parse(data).map_err(|_| Status::BadLength)?;
                Task::Alloc(Alloc::begin(space, &body, vm)?)
            }
            Manage::Free => {
                let body = FreeBody::parse(data).map_err(|_| Status::BadLength)?;
                Task::Free(Free::begin(space, address, body.bytes, vm)?)
            }
            Manage::Share => {
                let body = ShareBody::parse(data).map_err(|_| Status::BadLength)?;
                Task::Share(Box::new(Share::begin(space, address, &body, vm)?))
            }
        };
        self.jobs.push_back(Job { space, asked: Some(asked), task });
        Ok(())
    }

    /// Frees all that a process has, which is ending.
    pub fn end(&mut self, space: Space) {
        self.jobs.push_back(Job { space, asked: None, task: Task::End(End::default()) });
    }

    /// Does a step of the next job. Returns it if it has ended, with its status and the address of the answer.
    pub fn step(
        &mut self,
        vm: &mut Vm,
        limits: Limits,
        budget: u32,
        is_read: &dyn Fn(Space, &Range<u64>) -> bool,
    ) -> Option<(Job<P>, Status, u64)> {
        let mut job = self.jobs.pop_front()?;
        let mut step = Step { vm, limits, budget, is_read };
        let stand = match &mut job.task {
            Task::Alloc(alloc) => alloc.step(&mut step),
            Task::Free(free) => free.step(&mut step),
            Task::Share(share) => share.step(&mut step),
            Task::End(end) => end.step(job.space, &mut step),
        };
        match stand {
            Stand::More => {
                self.jobs.push_back(job);
                None
            }
            Stand::Ended(status, address) => Some((job, status, address)),
        }
    }
}

impl<P> Job<P> {
    /// Candidates of an allocation that met a full bucket.
    pub fn retries(&self) -> u32 {
        match &self.task {
            Task::Alloc(alloc) => alloc.retries(),
            Task::Share(share) => share.retries(),
            Task::Free(_) | Task::End(_) => 0,
        }
    }
}
