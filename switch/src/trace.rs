//! What a program does with a packet, told event by event. Only programs that were compiled with
//! [`crate::Pipeline::compile_traced`] tell; others hold no marks and cost nothing.

mod event;

pub use event::{Origin, TraceEvent};

use crate::compile::Pipeline;
use crate::compile::ops::{Slot, Vars};
use crate::compile::plans::Code;
use crate::stats::DropReason;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Most events that wait; later ones are dropped and counted in the last.
const MAX_EVENTS: usize = 100_000;
/// The same of a running switch, whose reader comes by many times a second.
const MAX_LIVE_EVENTS: usize = 10_000;

/// No packet's number.
const NONE: u32 = u32::MAX;

/// A place in the code that tells.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// Start of the parser.
    Ingress,
    /// Start of a parser state.
    State(String),
    /// End of the parser; where the number of its error is.
    Parsed { error: Slot },
    /// A table is applied: index of its plan.
    Apply(u32),
    /// An extern is called.
    Extern(&'static str),
    /// A register's cell was read, or is about to be written.
    Register { instance: u16, index: Slot, value: Slot, words: u16, write: bool },
    /// A meter judged the packet; `None`: the one of the table that was applied.
    Meter { at: Option<(u16, Slot)>, color: Slot },
    /// A counter counts the packet.
    Count { instance: u16, index: Slot },
    /// A hash or a random number was made.
    Number { what: &'static str, value: Slot, words: u16 },
    /// Start of egress.
    Egress,
    /// End of ingress or egress.
    Fields,
}

/// An event in numbers.
#[derive(Clone, Debug)]
pub(crate) enum RawEvent {
    Ingress {
        port: u16,
        origin: u32,
        bytes: usize,
        clone: bool,
    },
    State(u32),
    Parsed {
        error: u64,
        payload_at: usize,
    },
    Table {
        table: u32,
        key: Vec<u64>,
        hit: bool,
        found: Option<(u32, Vec<u64>)>,
    },
    Extern(&'static str),
    Register {
        instance: u16,
        index: u64,
        value: Vec<u64>,
        write: bool,
    },
    Meter {
        at: Option<(u16, u64)>,
        color: u64,
    },
    Count {
        instance: u16,
        index: u64,
    },
    Number {
        what: &'static str,
        value: Vec<u64>,
    },
    /// Numbers of the fields among those that are watched, what they were and what they are.
    Fields(Vec<(u32, Vec<u64>, Vec<u64>)>),
    Egress {
        port: u16,
        origin: u32,
        rid: u16,
    },
    Drop {
        reason: DropReason,
        port: Option<u16>,
    },
    Sent {
        port: Option<u16>,
        bytes: usize,
    },
}

/// Events that wait for [`crate::Switch::poll_trace`].
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Every packet's events are told: the program that runs is a traced one.
    pub on: bool,
    /// Number of the first packet whose events are told though the program is another; [`NONE`]: there is none.
    first: u32,
    /// Number of the packet that is at work; 0: it has none.
    pub packet: u32,
    events: VecDeque<(u32, Nanos, RawEvent)>,
    lost: u64,
    /// Words of the watched fields when they were looked at.
    before: Vec<u64>,
}

impl Trace {
    pub fn new(on: bool) -> Trace {
        let (events, before) = (VecDeque::new(), Vec::new());
        Trace { on, first: NONE, packet: 0, events, lost: 0, before }
    }

    /// Whether what happens now is told.
    #[inline]
    pub fn tells(&self) -> bool {
        self.on || self.packet >= self.first
    }

    pub fn push(&mut self, now: Nanos, event: RawEvent) {
        if !self.tells() {
            return;
        }
        let limit = if self.on { MAX_EVENTS } else { MAX_LIVE_EVENTS };
        if self.events.len() < limit {
            self.events.push_back((self.packet, now, event));
        } else {
            self.lost += 1;
        }
    }

    /// The oldest event, its packet and when it was.
    pub fn pop(&mut self, pipeline: &Pipeline) -> Option<(u32, Nanos, TraceEvent)> {
        match self.events.pop_front() {
            Some((packet, now, event)) => Some((packet, now, event::named(event, pipeline))),
            None if self.lost > 0 => {
                Some((0, Nanos::ZERO, TraceEvent::Lost { events: std::mem::take(&mut self.lost) }))
            }
            None => None,
        }
    }

    /// What happens from now on is told of packets with this number or a larger one, or of none. Nothing of before waits
    /// any more.
    pub fn tell_from(&mut self, first: Option<u32>) {
        self.first = first.unwrap_or(NONE);
        self.packet = 0;
        self.events.clear();
        self.lost = 0;
    }

    /// Looks at the fields that are watched.
    pub fn look(&mut self, code: &Code, vars: &Vars) {
        self.before.clear();
        for (slot, kind, _) in &code.watched {
            self.before.extend_from_slice(&vars[*slot as usize..][..kind.words()]);
        }
    }

    /// Tells which of them have changed since.
    pub fn compare(&mut self, code: &Code, vars: &Vars, now: Nanos) {
        let (mut changes, mut at) = (Vec::new(), 0);
        for (number, (slot, kind, _)) in (0..).zip(&code.watched) {
            let is = &vars[*slot as usize..][..kind.words()];
            let Some(was) = self.before.get_mut(at..at + is.len()) else { break };
            if is != was {
                changes.push((number, was.to_vec(), is.to_vec()));
                was.copy_from_slice(is);
            }
            at += is.len();
        }
        if !changes.is_empty() {
            self.push(now, RawEvent::Fields(changes));
        }
    }
}
