//! What happens seldom: once a message or less.

use crate::message::{FlowId, MessageId};
use p4rack_wire::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// At one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostEvent {
    /// A message of so many bytes has come to the machine.
    Ready(FlowId, MessageId, u32),
    /// A server answers; the request was made then.
    Answer(FlowId, Nanos),
    /// A client asks.
    Ask(FlowId),
    /// A transport's timer.
    Timer(FlowId),
    /// The receiving end's timer.
    Receiver,
    /// The switch's pause has come, or its end.
    Pause(bool),
    /// It falls silent.
    Die,
}

/// In the rack as a whole: between everything before it and everything after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RackEvent {
    /// A traffic's next message.
    Arrival(usize),
    /// A traffic begins.
    Start(usize),
    /// A round begins.
    Round(usize),
    /// A trace's next message.
    Replay(usize),
    /// Measuring begins.
    Warm,
}

/// Events by time; at the same time in the order in which they were noted, those from elsewhere first.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<(Nanos, bool, u64, E)>>,
    count: u64,
}

impl<E: Ord + Copy> Agenda<E> {
    pub fn new() -> Agenda<E> {
        Agenda { heap: BinaryHeap::new(), count: 0 }
    }

    /// Notes an event.
    pub fn push(&mut self, time: Nanos, event: E) {
        self.count += 1;
        self.heap.push(Reverse((time, true, self.count, event)));
    }

    /// Notes the `nth` event of those that come from elsewhere: when it was noted among the others says nothing.
    pub fn push_foreign(&mut self, time: Nanos, nth: u64, event: E) {
        self.heap.push(Reverse((time, false, nth, event)));
    }

    /// When the next one is; `Nanos::MAX`: there is none.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((time, ..))| *time)
    }

    /// Takes one whose time has come.
    pub fn pop(&mut self, now: Nanos) -> Option<E> {
        if self.due() > now {
            return None;
        }
        self.heap.pop().map(|Reverse((.., event))| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_time_then_from_elsewhere_then_as_noted() {
        let mut agenda = Agenda::new();
        agenda.push(Nanos(5), 'c');
        agenda.push(Nanos(5), 'a');
        agenda.push(Nanos(4), 'b');
        agenda.push_foreign(Nanos(5), 2, 'y');
        agenda.push_foreign(Nanos(5), 1, 'z');
        assert_eq!((agenda.due(), agenda.pop(Nanos(3))), (Nanos(4), None));
        let order: Vec<char> = std::iter::from_fn(|| agenda.pop(Nanos(5))).collect();
        assert_eq!(order, ['b', 'z', 'y', 'c', 'a']);
        assert_eq!(agenda.due(), Nanos::MAX);
    }
}
