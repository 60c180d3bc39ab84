//! Mail between hosts and switch: frames, and the simulator's own notes. Mail is handed over between two time windows,
//! in the order in which it was sent.
//!
//! ```text
//!  group ─ ToSwitch ─▶ switch ─ ToHost ─▶ group
//! ```
//!
//! If hosts and switch take turns, the side that runs borrows the other side's [`Inlets`] and puts frames there
//! directly. Handing over each frame took 6 % of the time of a run on one thread.

use crate::agenda::{HostEvent, Origin};
use crate::frames::{Frame, Frames};
use crate::link::{FarEnd, InFlight, Joins, Link};
use crate::message::{FlowId, Message, MessageId};
use crate::schedule::{Dues, Hasten, Schedule};
use p4rack_wire::Nanos;

/// The receiving ends of one side's links, and when each of them has something to do.
#[derive(Debug, Default)]
pub(crate) struct Inlets<D> {
    pub ends: Vec<FarEnd>,
    /// Per link; other components may follow.
    pub dues: D,
    /// Up to when this side has run.
    pub until: Nanos,
    /// Frames that came after their time.
    pub late_frames: u64,
}

impl<D: Hasten> Inlets<D> {
    /// Inlets of this many links, all empty.
    pub fn new(links: usize, dues: D) -> Inlets<D> {
        let ends = (0..links).map(|_| FarEnd::new()).collect();
        Inlets { ends, dues, until: Nanos::ZERO, late_frames: 0 }
    }

    /// Puts a frame at the far end of a link.
    #[inline(always)]
    pub fn put(&mut self, link: usize, frame: InFlight, joins: Joins) {
        self.late_frames += u64::from(frame.due < self.until);
        let end = &mut self.ends[link];
        end.put(frame, joins);
        self.dues.hasten(link, end.due());
    }
}

/// Output of one side to the other.
pub(crate) trait Mail {
    /// Due times at the receiving side.
    type Dues: Hasten + Default;

    /// A frame on a host's link.
    fn frame(host: u16, frame: InFlight, joins: Joins) -> Self;
}

/// From a host.
#[derive(Debug)]
pub(crate) enum ToSwitch {
    /// The host's link carries a frame.
    Frame(u16, InFlight, Joins),
    /// For a flow's receiver, which gets it before the message's first frame.
    Notice(FlowId, Notice),
    /// A destination reports that a sender fell silent.
    Silent { sender: u16, destination: u16, now: Nanos },
}

impl Mail for ToSwitch {
    type Dues = Schedule;

    #[inline(always)]
    fn frame(host: u16, frame: InFlight, joins: Joins) -> ToSwitch {
        ToSwitch::Frame(host, frame, joins)
    }
}

/// A note from the sender of a flow to its receiver.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A message is on the way.
    Message(MessageId, Message),
    /// The message's time starts now.
    Begins(MessageId, Nanos),
}

/// To a host.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// The host's link carries a frame.
    Frame(u16, InFlight, Joins),
    /// For a flow's receiver.
    Notice(FlowId, Notice),
    /// For the host's agenda.
    Event { host: u16, at: Nanos, origin: Origin, nth: u64, event: HostEvent },
}

impl Mail for ToHost {
    type Dues = Dues;

    #[inline(always)]
    fn frame(host: u16, frame: InFlight, joins: Joins) -> ToHost {
        ToHost::Frame(host, frame, joins)
    }
}

/// Mail to be handed over.
#[derive(Debug)]
pub(crate) struct Outbox<M: Mail> {
    pub mail: Vec<M>,
    /// When its receiver first has to do something about it; `Nanos::MAX`: never.
    pub due: Nanos,
    /// Inlets of the other side, per host, while it waits.
    borrowed: Option<Inlets<M::Dues>>,
}

impl<M: Mail> Outbox<M> {
    pub fn new() -> Outbox<M> {
        Outbox { mail: Vec::new(), due: Nanos::MAX, borrowed: None }
    }

    /// Sends a frame over a host's link.
    #[inline(always)]
    pub fn send(&mut self, host: usize, link: &mut Link, frame: Frame, now: Nanos, frames: &mut Frames) {
        if !link.is_plain() {
            return link.send(frame, now, frames, &mut |frame, joins| self.put(host, frame, joins));
        }
        let (due, arrived) = link.pass(frame.len(), now);
        self.put(host, InFlight { due, arrived, frame }, Joins::Last);
    }

    /// Puts a frame at the far end of a host's link.
    #[inline(always)]
    fn put(&mut self, host: usize, frame: InFlight, joins: Joins) {
        match &mut self.borrowed {
            Some(inlets) => inlets.put(host, frame, joins),
            None => self.push(frame.due, M::frame(host as u16, frame, joins)),
        }
    }

    /// Adds mail that the receiver has to look at by `due`.
    #[inline(always)]
    pub fn push(&mut self, due: Nanos, mail: M) {
        self.due = due.min(self.due);
        self.mail.push(mail);
    }

    /// Borrows the other side's inlets while that side is idle.
    #[inline]
    pub fn borrow_inlets(&mut self, inlets: &mut Inlets<M::Dues>) {
        self.borrowed = Some(std::mem::take(inlets));
    }

    /// Returns the borrowed inlets.
    #[inline]
    pub fn return_inlets(&mut self, inlets: &mut Inlets<M::Dues>) {
        *inlets = self.borrowed.take().unwrap_or_default();
    }

    /// Swaps its content with an empty `inbox`; returns when the first mail is due.
    pub fn hand_over(&mut self, inbox: &mut Vec<M>) -> Nanos {
        debug_assert!(inbox.is_empty());
        std::mem::swap(&mut self.mail, inbox);
        std::mem::replace(&mut self.due, Nanos::MAX)
    }
}

/// Reads the first bytes of frames that another processor has written, without waiting for any. Otherwise each of them
/// would cost a cache miss, the time of some hundred instructions, when its turn comes.
pub(crate) fn fetch<'f>(frames: impl Iterator<Item = &'f Frame>) {
    let ends =
        frames.map(|frame| frame.first().copied().unwrap_or(0) ^ frame.get(READ).copied().unwrap_or(0));
    std::hint::black_box(ends.fold(0, |all, one| all ^ one));
}

/// Most bytes of a frame that are read come before this one.
const READ: usize = 47;
