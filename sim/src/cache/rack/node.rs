//! A compute node: a policy on a trace, whose misses are requests of the rack.
//!
//! Hits are known in advance, so a node runs through them; it stops at the first access that asks for something, until the rack has
//! come to the same time.

use super::channel::{Channel, Order};
use crate::requests::{Ended, Requests};
use p4rack_cache::simulate::{Accessed, Program};
use p4rack_cache::{Action, Actions, Served};
use p4rack_wire::Histogram;

/// Times of local memory, picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTimes {
    pub host_ps: u64,
    pub device_ps: u64,
    pub translation_ps: u64,
    pub promote_ps: u64,
}

/// Next step of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It begins.
    Begins,
    /// The action with this number, of those that the policy asks for.
    Acts(usize),
    /// It waits for its block.
    Waits,
    /// There are no more accesses.
    Over,
}

/// Condition for the next step of an action.
enum Needs {
    Nothing,
    /// That a request ends.
    AnEnd,
    /// Time.
    Until(u64),
}

/// Measurements of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Accesses that the CPU waited for, by the memory that served them.
    pub served: [u64; 3],
    pub cost_ps: u64,
    /// Times of these accesses, and of those that waited for a fetch, nanoseconds.
    pub accesses: Histogram,
    pub misses: Histogram,
    /// Blocks that the policy requested.
    pub fetched_blocks: u64,
    pub written_blocks: u64,
    pub promoted: u64,
    /// Accesses whose block was on its way already, and that waited for it.
    pub late: u64,
    /// How often the program waited for room in the queue.
    pub waits: u64,
}

/// A compute node.
#[derive(Debug)]
pub(super) struct CachingNode<'a> {
    program: Program<'a>,
    times: LocalTimes,
    blocks_per_page: u32,
    actions: Actions,
    access: Accessed,
    stage: Stage,
    began_ps: u64,
    now_ps: u64,
    /// Whether the access has waited for a fetch that was begun before it.
    is_late: bool,
    /// Whether it waits for room in the queue.
    is_held: bool,
    /// When it goes on; `u64::MAX`: when a request ends, or never.
    pub due_ps: u64,
    pub channel: Channel,
    pub tally: Tally,
}

impl<'a> CachingNode<'a> {
    pub fn new(
        program: Program<'a>,
        times: LocalTimes,
        blocks_per_page: u32,
        channel: Channel,
    ) -> CachingNode<'a> {
        CachingNode {
            program,
            times,
            blocks_per_page,
            actions: Actions::default(),
            access: Accessed { block: 0, served: Served::Device, waits: false },
            stage: Stage::Begins,
            began_ps: 0,
            now_ps: 0,
            is_late: false,
            is_held: false,
            due_ps: 0,
            channel,
            tally: Tally::default(),
        }
    }

    /// Whether its trace is over.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub fn program(&self) -> &Program<'a> {
        &self.program
    }

    /// A request has ended. Errors: it failed, or the rack refuses the next one.
    pub fn ended(&mut self, ended: &Ended, requests: &mut dyn Requests) -> Result<(), String> {
        self.channel.ended(ended, requests)?;
        self.channel.send(requests, ended.at_ps)?;
        if self.due_ps == u64::MAX { self.go_on(ended.at_ps, requests) } else { Ok(()) }
    }

    /// Goes on now, as far as it can without an end or another time. Errors: the rack refuses a request.
    pub fn go_on(&mut self, now_ps: u64, requests: &mut dyn Requests) -> Result<(), String> {
        self.now_ps = self.now_ps.max(now_ps);
        let was_held = self.is_held;
        loop {
            self.due_ps = self.steps(now_ps);
            self.channel.send(requests, now_ps)?;
            // Requests that left have made room.
            if !self.is_held || !self.channel.has_room() {
                break;
            }
        }
        self.tally.waits += u64::from(self.is_held && !was_held);
        Ok(())
    }

    /// When it goes on.
    fn steps(&mut self, now_ps: u64) -> u64 {
        loop {
            match self.stage {
                Stage::Begins => {
                    let Some(access) = self.program.next(&mut self.actions) else {
                        self.stage = Stage::Over;
                        return u64::MAX;
                    };
                    (self.access, self.began_ps, self.stage) = (access, self.now_ps, Stage::Acts(0));
                    self.is_late = false;
                    let is_local = self.actions.as_slice().is_empty() && self.channel.is_here(access.block);
                    if !is_local && self.now_ps > now_ps {
                        return self.now_ps;
                    }
                }
                Stage::Acts(nth) => {
                    let Some(action) = self.actions.as_slice().get(nth).copied() else {
                        self.stage = Stage::Waits;
                        continue;
                    };
                    match self.act(action) {
                        Needs::Nothing => self.stage = Stage::Acts(nth + 1),
                        Needs::AnEnd => return u64::MAX,
                        Needs::Until(until_ps) => {
                            (self.stage, self.now_ps) = (Stage::Acts(nth + 1), until_ps);
                            return until_ps;
                        }
                    }
                }
                Stage::Waits => {
                    if self.access.waits && !self.channel.is_here(self.access.block) {
                        self.is_late = self.access.served != Served::Remote;
                        self.channel.hasten(self.access.block);
                        return u64::MAX;
                    }
                    self.served();
                    self.stage = Stage::Begins;
                }
                Stage::Over => return u64::MAX,
            }
        }
    }

    fn act(&mut self, action: Action) -> Needs {
        let order = match action {
            Action::Fetch { first, count, ahead } => {
                let is_own = (first..first + count).contains(&self.access.block);
                Order { first, count, is_write: false, is_urgent: self.access.waits && (is_own || !ahead) }
            }
            Action::Evict { block, dirty: true } => {
                Order { first: block, count: 1, is_write: true, is_urgent: false }
            }
            Action::Promote { page } => {
                let first = page * self.blocks_per_page;
                let mut is_whole = true;
                for block in first..first + self.blocks_per_page {
                    if !self.channel.is_here(block) {
                        is_whole = false;
                        self.channel.hasten(block);
                    }
                }
                if !is_whole {
                    return Needs::AnEnd;
                }
                self.tally.promoted += 1;
                return Needs::Until(self.now_ps + self.times.promote_ps);
            }
            Action::Evict { dirty: false, .. } | Action::Demote { .. } => return Needs::Nothing,
        };
        self.is_held = !order.is_urgent && !self.channel.has_room();
        if self.is_held {
            return Needs::AnEnd;
        }
        match order.is_write {
            true => self.tally.written_blocks += 1,
            false => self.tally.fetched_blocks += u64::from(order.count),
        }
        self.channel.order(order);
        Needs::Nothing
    }

    /// The access is served: local memory's time passes.
    fn served(&mut self) {
        if self.access.waits {
            let memory_ps = match self.access.served {
                Served::Host => self.times.host_ps,
                Served::Device => self.times.device_ps,
                Served::Remote => 0,
            };
            self.now_ps += memory_ps + self.times.translation_ps;
            let took_ns = (self.now_ps - self.began_ps) / 1_000;
            self.tally.served[self.access.served as usize] += 1;
            self.tally.accesses.record(took_ns);
            self.tally.late += u64::from(self.is_late);
            if self.access.served == Served::Remote || self.is_late {
                self.tally.misses.record(took_ns);
            }
        }
        self.tally.cost_ps += self.now_ps - self.began_ps;
    }
}
