//! What hosts and switch send each other: frames, and what the simulator itself has to tell. It is handed over between
//! two windows of time, in the order in which it was sent.
//!
//! ```text
//!  group ─ ToSwitch ─▶ switch ─ ToHost ─▶ group
//! ```

use crate::agenda::{HostEvent, Origin};
use crate::link::{InFlight, Joins};
use crate::message::{FlowId, Message, MessageId};
use p4rack_wire::Nanos;

/// From a host.
#[derive(Debug)]
pub(crate) enum ToSwitch {
    /// The host's link carries a frame.
    Frame(u16, InFlight, Joins),
    /// For a flow's receiver: its first frame can't be there earlier.
    Tell(FlowId, Told),
    /// A destination reports that a sender fell silent.
    Silent { sender: u16, destination: u16, now: Nanos },
}

/// What the receiver of a flow is told.
#[derive(Debug)]
pub(crate) enum Told {
    /// A message is on its way.
    Message(MessageId, Message),
    /// Its time counts from then.
    Begins(MessageId, Nanos),
}

/// To a host.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// The host's link carries a frame.
    Frame(u16, InFlight, Joins),
    /// To a flow's receiver.
    Tell(FlowId, Told),
    /// For the host's agenda.
    Event { host: u16, at: Nanos, origin: Origin, nth: u64, event: HostEvent },
}

/// What is to be handed over.
#[derive(Debug)]
pub(crate) struct Outbox<M> {
    pub mail: Vec<M>,
    /// When the first of it asks its receiver to do something; `Nanos::MAX`: never.
    pub due: Nanos,
}

impl<M> Outbox<M> {
    pub fn new() -> Outbox<M> {
        Outbox { mail: Vec::new(), due: Nanos::MAX }
    }

    /// Adds what has to be looked at then.
    #[inline(always)]
    pub fn push(&mut self, due: Nanos, mail: M) {
        self.due = due.min(self.due);
        self.mail.push(mail);
    }

    /// Exchanges its content for an empty `inbox`; when the first of it is due.
    pub fn hand_over(&mut self, inbox: &mut Vec<M>) -> Nanos {
        debug_assert!(inbox.is_empty());
        std::mem::swap(&mut self.mail, inbox);
        std::mem::replace(&mut self.due, Nanos::MAX)
    }
}

/// Reads the starts of frames that another processor has written, one after the other without waiting for any: each would
/// take some hundred instructions' time when its turn comes.
pub(crate) fn fetch<'f>(frames: impl Iterator<Item = &'f Vec<u8>>) {
    let ends =
        frames.map(|frame| frame.first().copied().unwrap_or(0) ^ frame.get(READ).copied().unwrap_or(0));
    std::hint::black_box(ends.fold(0, |all, one| all ^ one));
}

/// Most of what is read of a frame lies before this.
const READ: usize = 47;
