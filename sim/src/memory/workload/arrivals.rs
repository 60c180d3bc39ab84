//! When messages begin: at their times, or, in a closed loop, once another one of their node has ended.

use crate::memory::message::Message;
use std::collections::VecDeque;

/// The messages that have not begun.
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    messages: &'a [Message],
    /// In a closed loop: by compute node, those that wait for another one's end.
    waiting: Option<Vec<VecDeque<u32>>>,
}

impl<'a> Arrivals<'a> {
    /// Messages that begin at their times, or of which each compute node has `in_flight` under way. Returns those that begin
    /// first, with their times.
    pub fn new(messages: &'a [Message], in_flight: Option<u32>) -> (Arrivals<'a>, Vec<(u64, u32)>) {
        let Some(in_flight) = in_flight else {
            let first = messages.first().map(|first| (first.at_ps, 0));
            return (Arrivals { messages, waiting: None }, first.into_iter().collect());
        };
        let nodes = messages.iter().map(|message| usize::from(message.compute) + 1).max().unwrap_or(0);
        let mut waiting = vec![VecDeque::new(); nodes];
        for (nth, message) in messages.iter().enumerate() {
            waiting[usize::from(message.compute)].push_back(nth as u32);
        }
        let take = |of: &mut VecDeque<u32>| {
            let count = of.len().min(in_flight as usize);
            of.drain(..count).map(|nth| (0, nth)).collect::<Vec<_>>()
        };
        let first = waiting.iter_mut().flat_map(take).collect();
        (Arrivals { messages, waiting: Some(waiting) }, first)
    }

    /// The next message after `nth`, which begins now, in an open loop.
    pub fn after_start(&self, nth: u32, now_ps: u64) -> Option<(u64, u32)> {
        let next = self.messages.get(nth as usize + 1).filter(|_| self.waiting.is_none())?;
        Some((next.at_ps.max(now_ps), nth + 1))
    }

    /// The message that begins when message `nth` has ended.
    pub fn after_end(&mut self, nth: u32) -> Option<u32> {
        let compute = usize::from(self.messages[nth as usize].compute);
        self.waiting.as_mut()?.get_mut(compute)?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::message::Operation;

    fn message(at_ps: u64, compute: u16) -> Message {
        Message { at_ps, operation: Operation::Read, compute, memory: 9, bytes: 64 }
    }

    #[test]
    fn messages_with_times_follow_each_other() {
        let messages = [message(5, 0), message(7, 1)];
        let (mut arrivals, first) = Arrivals::new(&messages, None);
        assert_eq!(first, [(5, 0)]);
        assert_eq!((arrivals.after_start(0, 6), arrivals.after_start(0, 8)), (Some((7, 1)), Some((8, 1))));
        assert_eq!((arrivals.after_start(1, 9), arrivals.after_end(0)), (None, None));
    }

    #[test]
    fn in_a_closed_loop_each_node_has_so_many_under_way() {
        let messages = [message(0, 0), message(0, 1), message(0, 0), message(0, 0), message(0, 1)];
        let (mut arrivals, first) = Arrivals::new(&messages, Some(2));
        assert_eq!(first, [(0, 0), (0, 2), (0, 1), (0, 4)]);
        assert_eq!(arrivals.after_start(0, 3), None);
        assert_eq!(
            (arrivals.after_end(2), arrivals.after_end(0), arrivals.after_end(4)),
            (Some(3), None, None)
        );
    }
}
