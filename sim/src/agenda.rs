//! Events that are rare: at most one per message.

use crate::message::{FlowId, Message, MessageId};
use p4rack_wire::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event at one host. Flows are given by their index among those that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostEvent {
    /// A message has reached the machine.
    Ready(u32, MessageId, Message),
    /// A server answers: when the request was made, and whether it asks to write a record.
    Answer(u32, Nanos, bool),
    /// A client sends a request.
    Ask(u32),
    /// A thread begins. Its first message was prepared in advance and is at the machine already.
    Begin(u32),
    /// A client's thread begins. They do not all begin at the same time.
    BeginAsking(FlowId),
    /// A thread has a message of this size, or of a random one.
    Submit(u32, Option<u32>),
    /// One of a pair's threads has a message of this size; the flow is the pair's first.
    Arrive(FlowId, u32),
    /// A transport's timer.
    Timer(u32),
    /// The receiving end's timer.
    Receiver,
    /// The switch pauses the host, or resumes it.
    Pause(bool),
    /// The host dies.
    Die,
}

/// An event of the whole rack: after everything before it, before everything after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RackEvent {
    /// The next message of a traffic.
    Arrival(usize),
    /// A traffic begins.
    Start(usize),
    /// A round begins.
    Round(usize),
    /// The next message of a trace.
    Replay(usize),
    /// The measured time begins.
    Warm,
}

/// Where an event comes from. Events at the same time are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The rack as a whole.
    Rack,
    /// The switch.
    Switch,
    /// The owner of the agenda.
    Own,
}

/// Events by time, then by origin, then in the order in which they were added there. Hosts and switch run ahead of each other, so
/// the order in which events of one time were added ([`kernel::Agenda`](crate::kernel::Agenda)) would depend on how far.
#[derive(Debug)]
pub(crate) struct RankedAgenda<E> {
    heap: BinaryHeap<Reverse<(Nanos, Origin, u64, E)>>,
    count: u64,
}

impl RackEvent {
    /// Whether it only gives hosts something to do, so that it may be passed on to them in advance.
    pub fn is_foreseen(self) -> bool {
        matches!(self, RackEvent::Arrival(_) | RackEvent::Replay(_))
    }
}

impl<E: Ord + Copy> RankedAgenda<E> {
    pub fn new() -> RankedAgenda<E> {
        RankedAgenda { heap: BinaryHeap::new(), count: 0 }
    }

    /// Adds an event.
    pub fn push(&mut self, time: Nanos, event: E) {
        self.count += 1;
        self.heap.push(Reverse((time, Origin::Own, self.count, event)));
    }

    /// Adds the `nth` event of another origin. When it was added does not affect the order.
    pub fn push_foreign(&mut self, time: Nanos, origin: Origin, nth: u64, event: E) {
        self.heap.push(Reverse((time, origin, nth, event)));
    }

    /// Time of the first event that `concerns` selects; `Nanos::MAX`: there is none.
    pub fn due_of(&self, concerns: impl Fn(&E) -> bool) -> Nanos {
        let times = self.heap.iter().filter(|Reverse((.., event))| concerns(event));
        times.map(|Reverse((time, ..))| *time).min().unwrap_or(Nanos::MAX)
    }

    /// Time of the next event; `Nanos::MAX`: there is none.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.heap.peek().map_or(Nanos::MAX, |Reverse((time, ..))| *time)
    }

    /// Removes an event that is due.
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
        let mut agenda = RankedAgenda::new();
        agenda.push(Nanos(5), 'c');
        agenda.push(Nanos(5), 'a');
        agenda.push(Nanos(4), 'b');
        agenda.push_foreign(Nanos(5), Origin::Switch, 2, 'y');
        agenda.push_foreign(Nanos(5), Origin::Switch, 1, 'z');
        agenda.push_foreign(Nanos(5), Origin::Rack, 3, 'x');
        assert_eq!((agenda.due(), agenda.pop(Nanos(3))), (Nanos(4), None));
        assert_eq!(agenda.due_of(|event| *event == 'a'), Nanos(5));
        let order: Vec<char> = std::iter::from_fn(|| agenda.pop(Nanos(5))).collect();
        assert_eq!(order, ['b', 'x', 'z', 'y', 'c', 'a']);
        assert_eq!(agenda.due(), Nanos::MAX);
    }
}
