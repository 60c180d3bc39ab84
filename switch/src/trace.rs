//! What a program does with a packet, told event by event. Only programs that were compiled with
//! [`crate::Pipeline::compile_traced`] tell; others hold no marks and cost nothing.

use crate::compile::Pipeline;
use crate::state::number;
use crate::stats::DropReason;
use num_bigint::BigUint;
use std::collections::VecDeque;

/// Most events that wait; later ones are dropped and counted in the last.
const MAX_EVENTS: usize = 100_000;

/// A place in the code that tells.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// Start of the parser.
    Ingress,
    /// Start of a parser state.
    State(String),
    /// End of the parser.
    Parsed,
    /// A table is applied: index of its plan.
    Apply(u32),
    /// An extern is called.
    Extern(&'static str),
    /// Start of egress.
    Egress,
}

/// An event in numbers.
#[derive(Clone, Debug)]
pub(crate) enum RawEvent {
    Ingress { port: u16, instance_type: u32, bytes: usize, clone: bool },
    State(u32),
    Parsed { error: u64, payload_at: usize },
    Table { table: u32, key: Vec<u64>, hit: bool, found: Option<(u32, Vec<u64>)> },
    Extern(&'static str),
    Egress { port: u16, instance_type: u32, rid: u16 },
    Drop { reason: DropReason, port: Option<u16> },
}

/// Events that wait for [`crate::Switch::poll_trace`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub on: bool,
    events: VecDeque<RawEvent>,
    lost: u64,
}

impl Trace {
    pub fn new(on: bool) -> Trace {
        Trace { on, ..Trace::default() }
    }

    pub fn push(&mut self, event: RawEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    pub fn pop(&mut self, pipeline: &Pipeline) -> Option<TraceEvent> {
        match self.events.pop_front() {
            Some(event) => Some(named(event, pipeline)),
            None if self.lost > 0 => Some(TraceEvent::Lost { events: std::mem::take(&mut self.lost) }),
            None => None,
        }
    }
}

/// Something that happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// Parser and ingress start; `clone`: the parser alone, for a clone of what came in.
    Ingress {
        /// Port it came in at.
        port: u16,
        /// Of `standard_metadata`: 0 is a new packet.
        instance_type: u32,
        /// Its length.
        bytes: usize,
        /// Whether only the parser runs.
        clone: bool,
    },
    /// The parser enters a state.
    State {
        /// Its name.
        name: String,
    },
    /// The parser ends.
    Parsed {
        /// `NoError` if all went well.
        error: String,
        /// First byte that was not parsed.
        payload_at: usize,
    },
    /// A table is applied.
    Table {
        /// Its name.
        table: String,
        /// Keys by name.
        keys: Vec<(String, BigUint)>,
        /// Whether an entry matched.
        hit: bool,
        /// The action, if there is any; `None` also where a profile picks it.
        action: Option<String>,
        /// Its arguments by name.
        args: Vec<(String, BigUint)>,
    },
    /// An extern that decides on the packet's way is called.
    Extern {
        /// Which.
        name: &'static str,
    },
    /// Egress starts.
    Egress {
        /// Port it leaves at.
        port: u16,
        /// Of `standard_metadata`.
        instance_type: u32,
        /// Number of the replica.
        rid: u16,
    },
    /// The packet, or a copy of it, ends.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Port it was meant for, if known.
        port: Option<u16>,
    },
    /// More happened than is kept.
    Lost {
        /// How many events.
        events: u64,
    },
}

fn named(event: RawEvent, pipeline: &Pipeline) -> TraceEvent {
    match event {
        RawEvent::Ingress { port, instance_type, bytes, clone } => {
            TraceEvent::Ingress { port, instance_type, bytes, clone }
        }
        RawEvent::State(mark) => TraceEvent::State {
            name: match pipeline.code.marks.get(mark as usize) {
                Some(Mark::State(name)) => name.clone(),
                _ => String::new(),
            },
        },
        RawEvent::Parsed { error, payload_at } => {
            let error = pipeline.errors.get(error as usize).cloned();
            TraceEvent::Parsed { error: error.unwrap_or_default(), payload_at }
        }
        RawEvent::Table { table, key, hit, found } => {
            let Some(shape) = pipeline.tables.get(table as usize) else {
                return TraceEvent::Lost { events: 1 };
            };
            let words = |offset: usize, limbs: usize| number(key.get(offset..offset + limbs).unwrap_or(&[]));
            let keys =
                shape.keys.iter().map(|key| (key.name.clone(), words(key.offset, key.limbs))).collect();
            let action = found.as_ref().and_then(|(action, _)| shape.actions.get(*action as usize));
            let mut args = Vec::new();
            if let (Some(action), Some((_, words))) = (action, &found) {
                let mut at = 0;
                for (name, width) in &action.params {
                    let limbs = (*width as usize).div_ceil(64).max(1);
                    args.push((name.clone(), number(words.get(at..at + limbs).unwrap_or(&[]))));
                    at += limbs;
                }
            }
            let table = shape.name.strip_prefix("table ").unwrap_or(&shape.name).to_string();
            TraceEvent::Table { table, keys, hit, action: action.map(|action| action.name.clone()), args }
        }
        RawEvent::Extern(name) => TraceEvent::Extern { name },
        RawEvent::Egress { port, instance_type, rid } => TraceEvent::Egress { port, instance_type, rid },
        RawEvent::Drop { reason, port } => TraceEvent::Dropped { reason, port },
    }
}
