//! What happens seldom: once a message or less.

use crate::message::{FlowId, Message, MessageId};
use p4rack_wire::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// At one host. Its own flows are told by their places among those that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostEvent {
    /// A message has come to the machine.
    Ready(u32, MessageId, Message),
    /// A server answers; the request was made then, and asked for a record to be written or not.
    Answer(u32, Nanos, bool),
    /// A client asks.
    Ask(u32),
    /// A thread begins: its first message was prepared before, so it is at the machine already.
    Begin(u32),
    /// A client's thread begins; not all at the same instant.
    BeginAsking(FlowId),
    /// A thread has a message of this size, or of one that it draws.
    Submit(u32, Option<u32>),
    /// One of a pair's threads, of which this is the first flow, has a message of this size.
    Arrive(FlowId, u32),
    /// A transport's timer.
    Timer(u32),
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

/// Who noted an event: at the same time the first of these comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The rack as a whole.
    Rack,
    /// The switch.
    Switch,
    /// Whose agenda it is.
    Own,
}

/// Events by time; at the same time by their origins, then in the order in which they were noted there.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Reverse<(Nanos, Origin, u64, E)>>,
    count: u64,
}

impl RackEvent {
    /// Whether it only tells hosts what to do: then they may be told before its time.
    pub fn is_foreseen(self) -> bool {
        matches!(self, RackEvent::Arrival(_) | RackEvent::Replay(_))
    }
}

impl<E: Ord + Copy> Agenda<E> {
    pub fn new() -> Agenda<E> {
        Agenda { heap: BinaryHeap::new(), count: 0 }
    }

    /// Notes an event.
    pub fn push(&mut self, time: Nanos, event: E) {
        self.count += 1;
        self.heap.push(Reverse((time, Origin::Own, self.count, event)));
    }

    /// Notes the `nth` event that comes from elsewhere: when it was noted among the others says nothing.
    pub fn push_foreign(&mut self, time: Nanos, origin: Origin, nth: u64, event: E) {
        self.heap.push(Reverse((time, origin, nth, event)));
    }

    /// When the first of those is that `concerns` says, in no order; `Nanos::MAX`: there is none.
    pub fn due_of(&self, concerns: impl Fn(&E) -> bool) -> Nanos {
        let times = self.heap.iter().filter(|Reverse((.., event))| concerns(event));
        times.map(|Reverse((time, ..))| *time).min().unwrap_or(Nanos::MAX)
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
