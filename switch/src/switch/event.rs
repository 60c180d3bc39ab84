//! Events with names, and their text form.

use crate::code::plans::{Mark, Watched};
use crate::compile::Pipeline;
use crate::shape::ParamShape;
use crate::stats::DropReason;
use crate::table::TableState;
use crate::trace::RawEvent;
use crate::words::number;
use num_bigint::BigUint;
use p4rack_p4::ir::{MatchKind, Matcher};
use p4rack_p4::shown::{self, Format};
use std::fmt;

/// How a packet got here: newly received, as a copy, or for another pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number in the program's architecture; 0 is a new packet.
    pub number: u32,
    /// Meaning of the number, in words.
    pub name: &'static str,
}

/// A key of a table that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedKey {
    /// Its name.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// Its width in bits.
    pub width: u32,
    /// How its values are shown.
    pub format: Format,
    /// The packet's value.
    pub value: BigUint,
    /// What the entry that matched has. `None` on a miss, or if the entry has gone since.
    pub matched: Option<Matcher>,
}

/// A value with its name. Its text is `hdr.ipv4.dst=10.0.0.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedValue {
    /// Name of the argument or field.
    pub name: String,
    /// Its value.
    pub value: BigUint,
    /// How the value is shown.
    pub format: Format,
}

/// A variable that has changed. Its text is `meta.port 1 -> 2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedChange {
    /// Name of the field or variable.
    pub name: String,
    /// Its old value.
    pub was: BigUint,
    /// Its new value.
    pub is: BigUint,
    /// How the values are shown.
    pub format: Format,
}

impl TracedKey {
    /// The packet's value as text.
    pub fn shown(&self) -> String {
        shown::number(self.format, &self.value)
    }
}

impl TracedValue {
    /// The value as text.
    pub fn shown(&self) -> String {
        shown::number(self.format, &self.value)
    }
}

impl TracedChange {
    /// The old and the new value as text.
    pub fn shown(&self) -> (String, String) {
        (shown::number(self.format, &self.was), shown::number(self.format, &self.is))
    }
}

impl fmt::Display for TracedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.shown())
    }
}

impl fmt::Display for TracedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.shown())
    }
}

impl fmt::Display for TracedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (was, is) = self.shown();
        write!(f, "{} {was} -> {is}", self.name)
    }
}

/// An event in the life of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// Parser and ingress start. With `clone`, only the parser runs, for a clone of a packet as received.
    Ingress {
        /// Port on which it arrived.
        port: u16,
        /// How it got here.
        origin: Origin,
        /// Length in bytes.
        bytes: usize,
        /// Whether only the parser runs.
        clone: bool,
    },
    /// The parser enters a state.
    State {
        /// Name of the state.
        name: String,
    },
    /// The parser ends.
    Parsed {
        /// `NoError` on success.
        error: String,
        /// Position of the first byte that was not parsed.
        payload_at: usize,
    },
    /// A table is applied.
    Table {
        /// Name of the table.
        table: String,
        /// Its keys.
        keys: Vec<TracedKey>,
        /// Whether an entry matched.
        hit: bool,
        /// The action. `None` if there is none, or if an action profile picks it.
        action: Option<String>,
        /// Its arguments.
        args: Vec<TracedValue>,
    },
    /// An extern that decides where the packet goes is called.
    Extern {
        /// Name of the extern.
        name: &'static str,
    },
    /// Egress starts.
    Egress {
        /// Egress port.
        port: u16,
        /// How it got here.
        origin: Origin,
        /// Replication id.
        rid: u16,
    },
    /// The packet, or a copy of it, is dropped.
    Dropped {
        /// Why it is dropped.
        reason: DropReason,
        /// The port it was meant for, if known.
        port: Option<u16>,
    },
    /// A register's cell is read or written.
    Register {
        /// Name of the register.
        register: String,
        /// Index of the cell. Beyond the end, reads give 0 and writes do nothing.
        index: u64,
        /// The value read, or about to be written.
        value: BigUint,
        /// Whether it is written.
        write: bool,
    },
    /// A meter colours the packet.
    Meter {
        /// Name of the meter. `None` for the direct meter of the table applied.
        meter: Option<String>,
        /// Index of the cell; 0 for a direct meter.
        index: u64,
        /// Colour: 0 green, 1 yellow, 2 red.
        color: u64,
    },
    /// A counter counts the packet.
    Counter {
        /// Name of the counter.
        counter: String,
        /// Index of the cell.
        index: u64,
    },
    /// A hash or random number is computed.
    Number {
        /// `hash` with its algorithm, or `random`.
        what: &'static str,
        /// The resulting value.
        value: BigUint,
    },
    /// Headers and metadata have changed since the previous event.
    Fields {
        /// Each changed field.
        changes: Vec<TracedChange>,
    },
    /// The headers that the packet leaves with, before it is put together.
    Headers {
        /// Name of each valid header, with its fields.
        headers: Vec<(String, Vec<TracedValue>)>,
    },
    /// The packet is sent, on a running switch.
    Sent {
        /// Egress port; `None` for the controller.
        port: Option<u16>,
        /// Length without FCS, in bytes.
        bytes: usize,
    },
    /// Further events were dropped.
    Lost {
        /// Number of dropped events.
        events: u64,
    },
    /// Frames before this event were not traced.
    Skipped {
        /// Number of these frames.
        frames: u64,
    },
}

pub(super) fn named(event: RawEvent, pipeline: &Pipeline, tables: &[TableState]) -> TraceEvent {
    match event {
        RawEvent::Ingress { port, origin, bytes, clone } => {
            TraceEvent::Ingress { port, origin: named_origin(pipeline, origin), bytes, clone }
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
        RawEvent::Table { table, key, entry, found } => {
            let Some(shape) = pipeline.tables.get(table as usize) else {
                return TraceEvent::Lost { events: 1 };
            };
            let words = |offset: usize, limbs: usize| number(key.get(offset..offset + limbs).unwrap_or(&[]));
            let hit = entry.is_some();
            // Another entry may have the row now.
            let state = tables.get(table as usize);
            let matched = entry.zip(state).filter(|((row, age), state)| state.age(*row) == *age);
            let matched = matched.and_then(|((row, _), state)| state.entry(shape, row));
            let mut matchers = matched.map(|entry| entry.keys.into_iter());
            let keys = shape.keys.iter().map(|key| TracedKey {
                name: key.name.clone(),
                kind: key.kind,
                width: key.width,
                format: key.format,
                value: words(key.offset, key.limbs),
                matched: matchers.as_mut().and_then(Iterator::next),
            });
            let keys = keys.collect();
            let action = found.as_ref().and_then(|(action, _)| shape.actions.get(*action as usize));
            let mut args = Vec::new();
            if let (Some(action), Some((_, words))) = (action, &found) {
                let mut at = 0;
                for ParamShape { name, width, format } in &action.params {
                    let limbs = (*width as usize).div_ceil(64).max(1);
                    let value = number(words.get(at..at + limbs).unwrap_or(&[]));
                    args.push(TracedValue { name: name.clone(), value, format: *format });
                    at += limbs;
                }
            }
            let table = shape.name.strip_prefix("table ").unwrap_or(&shape.name).to_string();
            TraceEvent::Table { table, keys, hit, action: action.map(|action| action.name.clone()), args }
        }
        RawEvent::Extern(name) => TraceEvent::Extern { name },
        RawEvent::Egress { port, origin, rid } => {
            TraceEvent::Egress { port, origin: named_origin(pipeline, origin), rid }
        }
        RawEvent::Register { instance, index, value, write } => {
            let register = instance_name(pipeline, instance);
            TraceEvent::Register { register, index, value: number(&value), write }
        }
        RawEvent::Meter { at, color } => TraceEvent::Meter {
            meter: at.map(|(instance, _)| instance_name(pipeline, instance)),
            index: at.map_or(0, |(_, index)| index),
            color,
        },
        RawEvent::Count { instance, index } => {
            TraceEvent::Counter { counter: instance_name(pipeline, instance), index }
        }
        RawEvent::Number { what, value } => TraceEvent::Number { what, value: number(&value) },
        RawEvent::Fields(changes) => {
            let field = |(at, was, is): (u32, Vec<u64>, Vec<u64>)| {
                let Watched { kind, name, format, .. } = pipeline.code.watched.get(at as usize)?;
                // The length of a varbit precedes its bits.
                let value = |words: &[u64]| number(words.get(usize::from(kind.varbit)..).unwrap_or(&[]));
                let (was, is) = (value(&was), value(&is));
                Some(TracedChange { name: name.clone(), was, is, format: *format })
            };
            TraceEvent::Fields { changes: changes.into_iter().filter_map(field).collect() }
        }
        RawEvent::Headers(words) => TraceEvent::Headers { headers: headers(&words, pipeline) },
        RawEvent::Lost { events } => TraceEvent::Lost { events },
        RawEvent::Skipped { frames } => TraceEvent::Skipped { frames },
        RawEvent::Sent { port, bytes } => TraceEvent::Sent { port, bytes },
        RawEvent::Drop { reason, port } => TraceEvent::Dropped { reason, port },
    }
}

/// The valid headers among all watched fields.
fn headers(words: &[u64], pipeline: &Pipeline) -> Vec<(String, Vec<TracedValue>)> {
    let (mut headers, mut fields, mut at) = (Vec::new(), Vec::new(), 0);
    for Watched { kind, name, format, .. } in &pipeline.code.watched {
        let value = words.get(at..at + kind.words()).unwrap_or(&[]);
        at += kind.words();
        match name.strip_suffix(".isValid()") {
            Some(header) if value.iter().any(|word| *word != 0) => {
                headers.push((header.to_owned(), Vec::new()))
            }
            Some(_) => {}
            // The length of a varbit precedes its bits.
            None => {
                let value = number(value.get(usize::from(kind.varbit)..).unwrap_or(&[]));
                fields.push((name, value, *format));
            }
        }
    }
    for (name, value, format) in fields {
        let Some((owner, field)) = name.rsplit_once('.') else { continue };
        if let Some((_, fields)) = headers.iter_mut().find(|(header, _)| header == owner) {
            fields.push(TracedValue { name: field.to_owned(), value, format });
        }
    }
    headers
}

fn named_origin(pipeline: &Pipeline, number: u32) -> Origin {
    Origin { number, name: pipeline.arch.origin(number) }
}

fn instance_name(pipeline: &Pipeline, instance: u16) -> String {
    pipeline.instances.get(instance as usize).map_or_else(String::new, |shape| shape.name.clone())
}

fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// A register's cell or a computed number, which have no names of their own.
fn plain(value: &BigUint) -> String {
    shown::number(Format::Decimal, value)
}

/// One line, without line feed.
impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceEvent::Ingress { port, origin, bytes, clone: false } => {
                write!(f, "ingress   port {port}, {bytes} bytes, {}", origin.name)
            }
            TraceEvent::Ingress { bytes, .. } => write!(f, "parsed again for a clone, {bytes} bytes"),
            TraceEvent::State { name } => write!(f, "state     {name}"),
            TraceEvent::Parsed { error, payload_at } => {
                write!(f, "parsed    {error}, payload from byte {payload_at}")
            }
            TraceEvent::Table { table, keys, hit, action, args } => {
                let hit = if *hit { "hit" } else { "miss" };
                let action = action
                    .as_deref()
                    .map_or("no action of its own".into(), |action| format!("{action}({})", listed(args)));
                write!(f, "table     {table} [{}] {hit} -> {action}", listed(keys))
            }
            TraceEvent::Extern { name } => write!(f, "extern    {name}"),
            TraceEvent::Register { register, index, value, write } => {
                let sign = if *write { "<-" } else { "->" };
                write!(f, "register  {register}[{index}] {sign} {}", plain(value))
            }
            TraceEvent::Meter { meter: Some(meter), index, color } => {
                write!(f, "meter     {meter}[{index}] -> {}", colour(*color))
            }
            TraceEvent::Meter { meter: None, color, .. } => {
                write!(f, "meter     of the table -> {}", colour(*color))
            }
            TraceEvent::Counter { counter, index } => write!(f, "counter   {counter}[{index}]"),
            TraceEvent::Number { what, value } => write!(f, "{what:<9} -> {}", plain(value)),
            TraceEvent::Fields { changes } => {
                write!(f, "fields    {}", listed(changes))
            }
            TraceEvent::Headers { headers } => {
                let header =
                    |(name, fields): &(String, Vec<TracedValue>)| format!("{name} {{{}}}", listed(fields));
                write!(f, "headers   {}", headers.iter().map(header).collect::<Vec<_>>().join(" "))
            }
            TraceEvent::Egress { port, origin, rid } => {
                write!(f, "egress    port {port}, {}, rid {rid}", origin.name)
            }
            TraceEvent::Dropped { reason, port: Some(port) } => {
                write!(f, "dropped   {} at port {port}", reason.name())
            }
            TraceEvent::Dropped { reason, port: None } => write!(f, "dropped   {}", reason.name()),
            TraceEvent::Sent { port: Some(port), bytes } => write!(f, "sent      port {port}, {bytes} bytes"),
            TraceEvent::Sent { port: None, bytes } => write!(f, "sent      the controller, {bytes} bytes"),
            TraceEvent::Lost { events } => write!(f, "… and {events} more events"),
            TraceEvent::Skipped { frames } => write!(f, "… after {frames} frames that were not traced"),
        }
    }
}

fn colour(color: u64) -> &'static str {
    match color {
        0 => "green",
        1 => "yellow",
        2 => "red",
        _ => "no colour",
    }
}
