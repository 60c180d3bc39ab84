//! A program's work on a packet, event by event. Only programs compiled with
//! [`crate::Pipeline::compile_traced`] record events; others contain no marks and pay nothing.

use crate::code::ops::Vars;
use crate::code::plans::{Code, Watched};
use crate::stats::DropReason;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Maximum events that wait. Later ones are dropped and counted in a final event.
const MAX_EVENTS: usize = 100_000;
/// The same limit for a running switch, whose events are read many times per second.
const MAX_LIVE_EVENTS: usize = 10_000;
/// Events that wait when a trace of all frames leaves whole frames out: there is room for those of hundreds that are under way.
const MANY_EVENTS: usize = MAX_LIVE_EVENTS / 2;

/// Marks the absence of a packet number.
const NONE: u32 = u32::MAX;

/// An event in numbers, without names.
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
        /// The entry, if one matched: row, and its number among all that were inserted.
        entry: Option<(u32, u64)>,
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
    /// Changed fields: number among the watched ones, old words, new words.
    Fields(Vec<(u32, Vec<u64>, Vec<u64>)>),
    /// Words of all watched fields, one after the other.
    Headers(Vec<u64>),
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
    /// Events that were dropped because too many waited.
    Lost {
        events: u64,
    },
    /// Frames that were not traced because too many events waited.
    Skipped {
        frames: u64,
    },
}

/// Events that wait for [`crate::Switch::poll_trace`].
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Whether all packets are traced, because the loaded program is a traced one.
    pub on: bool,
    /// Number of the first packet that is traced although the loaded program is not; [`NONE`] if there is
    /// none.
    first: u32,
    /// Number of the packet being processed; 0 if it has none.
    pub packet: u32,
    events: VecDeque<(u32, Nanos, RawEvent)>,
    lost: u64,
    /// Frames that were left out since the last one that was traced.
    skipped: u64,
    /// Words of the watched fields when they were last recorded.
    before: Vec<u64>,
}

impl Trace {
    pub fn new(on: bool) -> Trace {
        let (events, before) = (VecDeque::new(), Vec::new());
        Trace { on, first: NONE, packet: 0, events, lost: 0, skipped: 0, before }
    }

    /// Whether events are recorded now.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.on || self.packet >= self.first
    }

    pub fn push(&mut self, now: Nanos, event: RawEvent) {
        if !self.is_recording() {
            return;
        }
        let limit = if self.on { MAX_EVENTS } else { MAX_LIVE_EVENTS };
        if self.events.len() < limit {
            self.events.push_back((self.packet, now, event));
        } else {
            self.lost += 1;
        }
    }

    /// Removes the oldest event. Returns its packet and time as well.
    pub fn pop(&mut self) -> Option<(u32, Nanos, RawEvent)> {
        self.events.pop_front().or_else(|| {
            let event = match (self.lost, self.skipped) {
                (0, 0) => return None,
                (0, _) => RawEvent::Skipped { frames: std::mem::take(&mut self.skipped) },
                _ => RawEvent::Lost { events: std::mem::take(&mut self.lost) },
            };
            Some((0, Nanos::ZERO, event))
        })
    }

    /// Leaves a frame out if too many events wait. Otherwise records how many were left out before it.
    pub fn skips(&mut self, now: Nanos) -> bool {
        let has_no_room = self.events.len() >= MANY_EVENTS;
        match (has_no_room, self.skipped) {
            (true, _) => self.skipped += 1,
            (false, 0) => {}
            (false, frames) => {
                self.skipped = 0;
                self.events.push_back((0, now, RawEvent::Skipped { frames }));
            }
        }
        has_no_room
    }

    /// From now on, records events of packets with this number or a larger one, or of none. Discards earlier
    /// events.
    pub fn tell_from(&mut self, first: Option<u32>) {
        self.first = first.unwrap_or(NONE);
        self.packet = 0;
        self.events.clear();
        (self.lost, self.skipped) = (0, 0);
    }

    /// Records the watched fields.
    pub fn look(&mut self, code: &Code, vars: &Vars) {
        self.before.clear();
        for Watched { slot, kind, .. } in &code.watched {
            self.before.extend_from_slice(&vars[*slot as usize..][..kind.words()]);
        }
    }

    /// The watched fields' words.
    pub fn all(&self, code: &Code, vars: &Vars) -> Vec<u64> {
        let words = code
            .watched
            .iter()
            .flat_map(|Watched { slot, kind, .. }| &vars[*slot as usize..][..kind.words()]);
        words.copied().collect()
    }

    /// Records which of the watched fields have changed since.
    pub fn compare(&mut self, code: &Code, vars: &Vars, now: Nanos) {
        let (mut changes, mut at) = (Vec::new(), 0);
        for (number, Watched { slot, kind, .. }) in (0..).zip(&code.watched) {
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
