//! Links between nodes: a frame goes from a node's outlet to an inlet of another node, of the same group or of another one.
//!
//! ```text
//!  node ─ Outlet: rate, loss ─▶ put ─▶ Inlets of a node in the group
//!                                  └─▶ mail ─▶ another group, between two time windows
//! ```

use crate::frames::{Frame, Frames};
use crate::link::{InFlight, Joins, Link};
use crate::schedule::Schedule;
use crate::world::Inlets;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkEnd {
    pub group: u16,
    /// Position of the node in its group.
    pub node: u16,
    /// Its inlet.
    pub inlet: u16,
}

/// A node's end of a link.
#[derive(Debug)]
pub(super) struct Outlet {
    pub link: Link,
    pub to: LinkEnd,
    /// Frames on the link and in the pipeline behind it, if these may exceed the link's capacity.
    pub flight: Option<Box<Flight>>,
    /// Frames dropped because the link was full.
    pub full: u64,
}

/// Bytes and frames that a link holds at most, as one of `p4rack up`.
const FLIGHT_BYTES: u64 = 16 << 20;
const FLIGHT_FRAMES: usize = 65_536;

/// Frames on a link and in the pipeline behind it.
#[derive(Debug)]
pub(super) struct Flight {
    /// The longest time on both.
    delay: Nanos,
    /// When each of them arrives, and its bytes.
    frames: VecDeque<(Nanos, u32)>,
    bytes: u64,
}

impl Flight {
    /// For a link with this rate, on which frames are for this time at most, unless it can't hold that much.
    pub fn of(rate_bps: u64, delay: Nanos) -> Option<Box<Flight>> {
        let most = u128::from(rate_bps) * u128::from(delay.0) / 8_000_000_000;
        let is_bounded = most < u128::from(FLIGHT_BYTES) && most / 84 < FLIGHT_FRAMES as u128;
        let is_short = delay < Nanos::from_micros(1);
        match (rate_bps, is_bounded, is_short) {
            (0, _, true) | (1.., true, _) => None,
            _ => Some(Box::new(Flight { delay, frames: VecDeque::new(), bytes: 0 })),
        }
    }

    /// Adds a frame that leaves after `backlog`, if there is room.
    fn takes(&mut self, len: usize, now: Nanos, backlog: Nanos) -> bool {
        while let Some((_, bytes)) = self.frames.pop_front_if(|(arrives, _)| *arrives <= now) {
            self.bytes -= u64::from(bytes);
        }
        if self.frames.len() >= FLIGHT_FRAMES || self.bytes + len as u64 > FLIGHT_BYTES {
            return false;
        }
        self.bytes += len as u64;
        self.frames.push_back((now + backlog + self.delay, len as u32));
        true
    }
}

/// A frame for a node of another group.
#[derive(Debug)]
pub(super) struct Mail {
    node: u16,
    inlet: u16,
    pub frame: InFlight,
    joins: Joins,
}

/// Mail for one group.
#[derive(Debug)]
pub(super) struct Outbox {
    pub mail: Vec<Mail>,
    /// When the first frame is due.
    pub due: Nanos,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox { mail: Vec::new(), due: Nanos::MAX }
    }
}

/// The links of a group's nodes.
#[derive(Debug)]
pub(super) struct Wires {
    /// Number of the group.
    pub group: u16,
    /// Receiving ends of each node's links, and when it has something to do.
    pub inlets: Vec<Inlets<Schedule>>,
    /// Mail for each group.
    pub outboxes: Vec<Outbox>,
    pub frames: Frames,
    /// Hops of frames that go round in a loop.
    pub loop_hops: u64,
}

impl Wires {
    /// Sends a frame over a link.
    #[inline]
    pub fn send(&mut self, outlet: &mut Outlet, frame: Frame, now: Nanos) {
        let Wires { group, inlets, outboxes, frames, .. } = self;
        let backlog = outlet.link.backlog(now);
        if let Some(flight) = &mut outlet.flight
            && !flight.takes(frame.len(), now, backlog)
        {
            outlet.full += 1;
            return frames.release(frame);
        }
        let to = outlet.to;
        let mut put = |frame: InFlight, joins: Joins| match to.group == *group {
            true => inlets[usize::from(to.node)].put(to.inlet.into(), frame, joins),
            false => {
                let outbox = &mut outboxes[usize::from(to.group)];
                outbox.due = outbox.due.min(frame.due);
                outbox.mail.push(Mail { node: to.node, inlet: to.inlet, frame, joins });
            }
        };
        if !outlet.link.is_plain() {
            return outlet.link.send(frame, now, frames, &mut put);
        }
        let (due, arrived) = outlet.link.pass(frame.len(), now);
        put(InFlight { due, arrived, frame }, Joins::Last);
    }

    /// Delivers mail from another group.
    pub fn take(&mut self, mail: &mut Vec<Mail>) {
        for Mail { node, inlet, frame, joins } in mail.drain(..) {
            self.inlets[usize::from(node)].put(inlet.into(), frame, joins);
        }
    }

    /// When the first node has something to do.
    pub fn due(&self) -> Nanos {
        self.inlets.iter().map(|inlets| inlets.dues.first_due()).min().unwrap_or(Nanos::MAX)
    }
}
