//! The messages of a run, and the fate of each.

use super::message::{Message, Shown, Times};
use super::workload::Arrivals;

/// The messages that a scheme carries. Each method returns the message that begins as a consequence, and its time.
#[derive(Debug)]
pub(super) struct Messages<'a> {
    pub all: &'a [Message],
    arrivals: Arrivals<'a>,
    /// Time to store a message's last byte.
    memory_ps: u64,
    pub shown: Shown,
}

impl<'a> Messages<'a> {
    /// These messages, sorted by time, or of which each node has `in_flight` under way. Also returns those that begin first.
    pub fn new(
        all: &'a [Message],
        in_flight: Option<u32>,
        nodes: usize,
        memory_ps: u64,
    ) -> (Messages<'a>, Vec<(u64, u32)>) {
        let (arrivals, first) = Arrivals::new(all, in_flight);
        let times = vec![Times::default(); all.len()];
        let shown = Shown { times, sent_ps: vec![0; nodes], ..Shown::default() };
        (Messages { all, arrivals, memory_ps, shown }, first)
    }

    /// A message begins.
    pub fn begins(&mut self, nth: u32, now_ps: u64) -> Option<(u64, u32)> {
        self.shown.times[nth as usize].begun_ps = Some(now_ps);
        self.arrivals.after_start(nth, now_ps)
    }

    /// A message's last byte has come, and goes into memory.
    pub fn stored(&mut self, nth: u32, now_ps: u64) -> Option<(u64, u32)> {
        let at_ps = now_ps + self.memory_ps;
        self.shown.times[nth as usize].done_ps = Some(at_ps);
        self.ended(nth, at_ps)
    }

    /// A message has ended in one way or another, which lets another one begin in a closed loop.
    pub fn ended(&mut self, nth: u32, at_ps: u64) -> Option<(u64, u32)> {
        self.arrivals.after_end(nth).map(|next| (at_ps, next))
    }
}
