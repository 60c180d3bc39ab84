//! The log of packets, in BMv2's words.
//!
//! ```text
//!  the switch's trace ─▶ batches (bounded) ─▶ Lines ─▶ the log's file, or standard output
//! ```

use num_bigint::BigUint;
use p4rack_netdev::clock;
use p4rack_p4::ir::{MatchKind, Matcher};
use p4rack_switch::{DropReason, TraceEvent, Traced, TracedChange, TracedKey, TracedValue};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use tokio::sync::mpsc::Receiver;
use tracing_subscriber::filter::LevelFilter;

/// Maximum packets in ingress at a time.
const OPEN: usize = 1024;

/// Destination and level of the log.
#[derive(Debug)]
pub struct Settings {
    /// Log file, without BMv2's `.txt`; standard output without one.
    pub file: Option<PathBuf>,
    /// The lowest level.
    pub level: LevelFilter,
    /// The port that means "drop".
    pub drop_port: u16,
}

/// Starts a thread that writes the switch's events.
pub fn write(mut batches: Receiver<Vec<Traced>>, settings: Settings) -> Result<(), String> {
    let mut out: Box<dyn Write + Send> = match &settings.file {
        Some(path) => Box::new(log_file(path)?),
        None => Box::new(io::stdout()),
    };
    let mut lines = Lines::new(settings.level, settings.drop_port);
    let writer = thread::Builder::new().name("packet-log".to_owned()).spawn(move || {
        while let Some(batch) = batches.blocking_recv() {
            let ahead_ns = clock::wall_ns().saturating_sub(clock::now().0);
            batch.iter().for_each(|traced| lines.add(traced, ahead_ns));
            // In one piece, so that p4rack's own lines don't interrupt those of a packet.
            let written = out.write_all(lines.text.as_bytes()).and_then(|()| out.flush());
            if let Err(error) = written {
                tracing::warn!(%error, "the log says no more about packets");
                return;
            }
            lines.text.clear();
        }
    });
    writer.map(|_| ()).map_err(|error| format!("starting a thread for the log: {error}"))
}

/// Opens a switch's log to append to it. Adds BMv2's `.txt` to the name.
pub(super) fn log_file(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    let mut name = path.as_os_str().to_owned();
    name.push(".txt");
    let path = Path::new(&name);
    options.open(path).map_err(|error| format!("--log-file: {}: {error}", path.display()))
}

/// The level of a line, as BMv2 abbreviates it.
#[derive(Clone, Copy)]
enum Level {
    Trace,
    Debug,
    Warn,
    Error,
}

use Level::{Debug, Error, Trace, Warn};

/// Lines of text.
struct Lines {
    level: LevelFilter,
    drop_port: u16,
    text: String,
    /// Prefix of each line, after time and level.
    from: String,
    time: String,
    /// Packets in ingress.
    open: BTreeSet<u32>,
    /// Whether the packet is parsed for a clone alone.
    is_clone: bool,
}

impl Lines {
    fn new(level: LevelFilter, drop_port: u16) -> Lines {
        let (text, from, time) = (String::new(), String::new(), String::new());
        Lines { level, drop_port, text, from, time, open: BTreeSet::new(), is_clone: false }
    }

    fn line(&mut self, level: Level, what: &str) {
        let (sign, lowest) = match level {
            Trace => ('T', LevelFilter::TRACE),
            Debug => ('D', LevelFilter::DEBUG),
            Warn => ('W', LevelFilter::WARN),
            Error => ('E', LevelFilter::ERROR),
        };
        if self.level >= lowest {
            let Lines { time, from, .. } = self;
            // A string takes everything.
            let _ = writeln!(self.text, "[{time}] [bmv2] [{sign}] {from} {what}");
        }
    }

    /// Adds the lines of an event. The wall clock is ahead of the switch's by `ahead_ns`.
    fn add(&mut self, traced: &Traced, ahead_ns: u64) {
        let Traced { packet, time, event } = traced;
        self.time = time_of_day(time.0.saturating_add(ahead_ns));
        let thread = std::process::id();
        self.from = match packet.checked_sub(1) {
            Some(number) => format!("[thread {thread}] [{number}.0] [cxt 0]"),
            None => format!("[thread {thread}]"),
        };
        match event {
            TraceEvent::Ingress { port, origin, clone, .. } => {
                self.is_clone = *clone;
                match (clone, origin.name) {
                    (true, _) => self.line(Debug, "Cloning packet at ingress"),
                    (false, "resubmitted") => self.line(Debug, "Resubmitting packet"),
                    (false, "recirculated") => self.line(Debug, "Recirculating packet"),
                    _ => {}
                }
                if !clone {
                    self.line(Debug, &format!("Processing packet received on port {port}"));
                }
                self.line(Debug, "Parser 'parser': start");
            }
            TraceEvent::State { name } => {
                let name = name.rsplit('.').next().unwrap_or(name);
                self.line(Debug, &format!("Parser 'parser' entering state '{name}'"));
            }
            TraceEvent::Parsed { error, payload_at } => {
                match error.as_str() {
                    "NoError" => self.line(Trace, &format!("Bytes parsed: {payload_at}")),
                    _ => self.line(Error, &format!("Exception while parsing: {error}")),
                }
                self.line(Debug, "Parser 'parser': end");
                if !self.is_clone {
                    self.line(Debug, "Pipeline 'ingress': start");
                    self.open.insert(*packet);
                    if self.open.len() > OPEN {
                        self.open.pop_first();
                    }
                }
            }
            TraceEvent::Table { table, keys, hit, action, args } => {
                self.table((table, keys, *hit), action.as_deref(), args);
            }
            TraceEvent::Extern { name } => self.line(Trace, &format!("Primitive {name}")),
            TraceEvent::Register { register, index, value, write: true } => {
                self.line(Trace, &format!("Wrote register '{register}' at index {index} with value {value}"));
            }
            TraceEvent::Register { register, index, value, write: false } => {
                self.line(Trace, &format!("Read register '{register}' at index {index} read value {value}"));
            }
            TraceEvent::Meter { meter, index, color } => {
                let meter = meter.as_deref().unwrap_or("of the table");
                let result = format!("assigning dest field the color result {color}");
                self.line(Trace, &format!("Updated meter '{meter}' at index {index}, {result}"));
            }
            TraceEvent::Counter { counter, index } => {
                self.line(Trace, &format!("Updated counter '{counter}' at index {index}"));
            }
            TraceEvent::Number { what, value } => self.line(Trace, &format!("{what} = {value}")),
            TraceEvent::Fields { changes } => {
                for TracedChange { name, was, is, .. } in changes {
                    self.line(Trace, &format!("Set {name} to {is:x}, was {was:x}"));
                }
            }
            TraceEvent::Egress { port, origin, .. } => {
                let was_open = self.end_of_ingress(*packet);
                match origin.name {
                    "replica" => {
                        if was_open {
                            self.line(Debug, "Multicast requested for packet");
                        }
                        self.line(Debug, &format!("Replicating packet on port {port}"));
                    }
                    name if name.starts_with("clone") => {
                        self.line(Debug, &format!("Cloning packet to egress port {port}"));
                    }
                    _ => self.line(Debug, &format!("Egress port is {port}")),
                }
                self.line(Debug, "Pipeline 'egress': start");
            }
            TraceEvent::Headers { headers } => {
                self.line(Debug, "Pipeline 'egress': end");
                self.line(Debug, "Deparser 'deparser': start");
                for (name, _) in headers {
                    // The deparser's parameter comes before the first point.
                    let name = name.split_once('.').map_or(name.as_str(), |(_, header)| header);
                    self.line(Debug, &format!("Deparsing header '{name}'"));
                }
                self.line(Debug, "Deparser 'deparser': end");
            }
            TraceEvent::Dropped { reason, port } => self.dropped(*packet, *reason, *port),
            TraceEvent::Sent { port: Some(port), bytes } => {
                self.line(Debug, &format!("Transmitting packet of size {bytes} out of port {port}"));
            }
            TraceEvent::Sent { port: None, .. } => self.line(Debug, "Transmitting packet-in"),
            TraceEvent::Lost { events } => {
                self.line(Warn, &format!("{events} steps of packets are left out: there were too many"));
            }
            TraceEvent::Skipped { frames } => {
                self.line(
                    Warn,
                    &format!("{frames} packets are left out: they came faster than they are logged"),
                );
            }
        }
    }

    fn table(
        &mut self,
        (table, keys, hit): (&str, &[TracedKey], bool),
        action: Option<&str>,
        args: &[TracedValue],
    ) {
        self.line(Trace, &format!("Applying table '{table}'"));
        let looked_up = keys.iter().map(|key| named(key, &hex(key, &key.value)));
        let looked_up: String = looked_up.collect();
        self.line(Debug, &format!("Looking up key:\n{looked_up}"));
        let call = action.map(|action| {
            let args: String = args.iter().map(|arg| format!("{:x},", arg.value)).collect();
            format!("{action} - {args}")
        });
        self.line(Debug, &format!("Table '{table}': {}", if hit { "hit" } else { "miss" }));
        if hit && keys.iter().any(|key| key.matched.is_some()) {
            let entry: String = keys.iter().map(|key| named(key, &matched(key))).collect();
            let call = call.as_ref().map_or(String::new(), |call| format!("Action entry: {call}\n"));
            self.line(Debug, &format!("Dumping entry\nMatch key:\n{entry}{call}"));
        }
        if let (Some(action), Some(call)) = (action, call) {
            self.line(Debug, &format!("Action entry is {call}"));
            self.line(Trace, &format!("Action {action}"));
        }
    }

    fn dropped(&mut self, packet: u32, reason: DropReason, port: Option<u16>) {
        self.end_of_ingress(packet);
        match reason {
            DropReason::IngressDrop => {
                self.line(Debug, &format!("Egress port is {}", self.drop_port));
                self.line(Debug, "Dropping packet at the end of ingress");
            }
            DropReason::EgressDrop => {
                self.line(Debug, "Pipeline 'egress': end");
                self.line(Debug, "Dropping packet at the end of egress");
            }
            _ => {
                let at = port.map_or(String::new(), |port| format!(" at port {port}"));
                self.line(Debug, &format!("Dropping packet{at}: {}", reason.name()));
            }
        }
    }

    /// Ends a packet's ingress, unless it has ended. Returns whether it had not.
    fn end_of_ingress(&mut self, packet: u32) -> bool {
        let was_open = self.open.remove(&packet);
        if was_open {
            self.line(Debug, "Pipeline 'ingress': end");
        }
        was_open
    }
}

/// A line of BMv2's for a key.
fn named(key: &TracedKey, value: &str) -> String {
    format!("* {:<20}: {value}\n", key.name)
}

/// A value in all digits of a key.
fn hex(key: &TracedKey, value: &BigUint) -> String {
    let digits = key.width.div_ceil(8) as usize * 2;
    format!("{value:0digits$x}")
}

/// An entry's value of a key.
fn matched(key: &TracedKey) -> String {
    let kind = match key.kind {
        MatchKind::Exact | MatchKind::Selector => "EXACT",
        MatchKind::Lpm => "LPM",
        MatchKind::Range => "RANGE",
        MatchKind::Ternary | MatchKind::Optional => "TERNARY",
    };
    let all = (BigUint::from(1u8) << key.width) - 1u8;
    let zero = BigUint::ZERO;
    let (value, mask) = match &key.matched {
        Some(Matcher::Exact(value)) => (value, &all),
        Some(Matcher::Mask { value, mask }) => (value, mask),
        Some(Matcher::Range { lo, hi }) => return format!("{kind:<10}{} -> {}", hex(key, lo), hex(key, hi)),
        _ if key.kind == MatchKind::Range => {
            return format!("{kind:<10}{} -> {}", hex(key, &zero), hex(key, &all));
        }
        _ => (&zero, &zero),
    };
    let value = hex(key, value);
    match key.kind {
        MatchKind::Lpm => format!("{kind:<10}{value}/{}", mask.count_ones()),
        MatchKind::Ternary | MatchKind::Optional => format!("{kind:<10}{value} &&& {}", hex(key, mask)),
        _ => format!("{kind:<10}{value}"),
    }
}

/// `hh:mm:ss.mmm` of the day, in UTC, of nanoseconds since 1970.
fn time_of_day(wall_ns: u64) -> String {
    let ms = wall_ns / 1_000_000;
    let s = ms / 1_000;
    format!("{:02}:{:02}:{:02}.{:03}", s / 3600 % 24, s / 60 % 60, s % 60, ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4::shown::Format;
    use p4rack_wire::Nanos;

    fn key(kind: MatchKind, width: u32, value: u64, matched: Option<Matcher>) -> TracedKey {
        let (name, value) = ("hdr.ipv4.dstAddr".into(), value.into());
        TracedKey { name, kind, width, format: Format::Ipv4, value, matched }
    }

    fn told(level: LevelFilter, events: Vec<TraceEvent>) -> String {
        let mut lines = Lines::new(level, 511);
        for event in events {
            let time = Nanos(1_500_000);
            lines.add(&Traced { packet: 7, time, event }, 3_600_000_000_000);
        }
        let from = format!("[01:00:00.001] [bmv2] [D] [thread {}] [6.0] [cxt 0] ", std::process::id());
        let other = |sign| from.replace("[D]", sign);
        lines.text.replace(&from, "D ").replace(&other("[T]"), "T ").replace(&other("[W]"), "W ")
    }

    #[test]
    fn keys_have_all_their_digits_and_entries_their_kind() {
        let number = |value: u64| BigUint::from(value);
        let mask = |value: u64, mask: u64| Some(Matcher::Mask { value: number(value), mask: number(mask) });
        for (kind, width, entry, expected) in [
            (MatchKind::Exact, 9, Some(Matcher::Exact(number(1))), "EXACT     0001"),
            (MatchKind::Lpm, 32, mask(0x0a00_0200, 0xffff_ff00), "LPM       0a000200/24"),
            (MatchKind::Lpm, 32, Some(Matcher::Any), "LPM       00000000/0"),
            (MatchKind::Ternary, 16, mask(0x0800, 0xff00), "TERNARY   0800 &&& ff00"),
            (MatchKind::Optional, 8, Some(Matcher::Exact(number(6))), "TERNARY   06 &&& ff"),
            (
                MatchKind::Range,
                16,
                Some(Matcher::Range { lo: number(80), hi: number(443) }),
                "RANGE     0050 -> 01bb",
            ),
            (MatchKind::Range, 16, Some(Matcher::Any), "RANGE     0000 -> ffff"),
        ] {
            assert_eq!(matched(&key(kind, width, 0, entry)), expected);
        }
    }

    #[test]
    fn levels_leave_lines_out_and_what_is_missing_is_said() {
        let events = || {
            let table = TraceEvent::Table {
                table: "I.t".into(),
                keys: vec![key(MatchKind::Lpm, 32, 0x0a00_0202, None)],
                hit: false,
                action: Some("I.to".into()),
                args: vec![TracedValue {
                    name: "port".into(),
                    value: 0x12u8.into(),
                    format: Format::Decimal,
                }],
            };
            vec![
                table,
                TraceEvent::Dropped { reason: DropReason::QueueLimit, port: Some(3) },
                TraceEvent::Skipped { frames: 12 },
            ]
        };
        let debug = "D Looking up key:\n* hdr.ipv4.dstAddr    : 0a000202\n\nD Table 'I.t': miss\n\
                     D Action entry is I.to - 12,\n";
        let rest = "D Dropping packet at port 3: queue_limit\n\
                    W 12 packets are left out: they came faster than they are logged\n";
        assert_eq!(told(LevelFilter::DEBUG, events()), format!("{debug}{rest}"));
        let all = format!("T Applying table 'I.t'\n{debug}T Action I.to\n{rest}");
        assert_eq!(told(LevelFilter::TRACE, events()), all);
    }
}
