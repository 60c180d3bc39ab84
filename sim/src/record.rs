//! Recordings of a run: captures of links, and the path of one message.

use crate::message::{FlowId, Head, MessageId, host_of};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{Control, Kind};
use serde::Serialize;

/// Maximum frames recorded per run.
pub const FRAMES_MAX: usize = 1_000_000;

/// Where a frame was seen. The number is the host's, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// Starts to leave a host.
    HostOut(usize),
    /// Enters the switch's pipeline.
    SwitchIn(usize),
    /// Starts to leave the switch.
    SwitchOut(usize),
    /// Has arrived at a host.
    HostIn(usize),
    /// Has been delivered to the application.
    App(usize),
}

impl Point {
    /// The point in words.
    pub fn text(self) -> String {
        match self {
            Point::HostOut(host) => format!("h{} sends", host + 1),
            Point::SwitchIn(host) => format!("switch takes from h{}", host + 1),
            Point::SwitchOut(host) => format!("switch sends to h{}", host + 1),
            Point::HostIn(host) => format!("h{} receives", host + 1),
            Point::App(host) => format!("h{}'s application has it", host + 1),
        }
    }
}

/// A frame seen at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The point.
    pub point: Point,
    /// Time at which it was seen.
    pub time: Nanos,
    /// Its bytes, without FCS.
    pub frame: Vec<u8>,
}

/// A step on a message's path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Time of the step.
    #[serde(rename = "time_ns", serialize_with = "as_ns")]
    pub time: Nanos,
    /// Point of the step.
    pub point: Point,
    /// The event.
    pub what: String,
}

fn as_ns<S: serde::Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}

/// Selection of frames to record, and the recordings.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Hosts whose links are captured.
    pub links: Vec<usize>,
    /// Number of the message to trace.
    pub message: Option<u64>,
    /// Whether data carries a shim.
    pub shim: bool,
    /// Frames of captured links.
    pub frames: Vec<Sight>,
    /// Path of the message.
    pub steps: Vec<Step>,
    /// Frames and steps beyond the limit.
    pub lost: u64,
    /// The message while it is in flight, with its sender and receiver.
    under_way: Option<((FlowId, MessageId), (usize, usize))>,
}

impl Recorder {
    /// Records both directions of these hosts' links, and the path of a message if one is given. `shim` says
    /// whether data carries one.
    pub fn new(links: Vec<usize>, message: Option<u64>, shim: bool) -> Recorder {
        Recorder { links, message, shim, ..Recorder::default() }
    }

    #[cold]
    pub(crate) fn note(&mut self, point: Point, time: Nanos, frame: &[u8]) {
        let captured = match point {
            Point::HostOut(host) | Point::HostIn(host) => self.links.contains(&host),
            _ => false,
        };
        if captured {
            if self.frames.len() < FRAMES_MAX {
                self.frames.push(Sight { point, time, frame: frame.to_vec() });
            } else {
                self.lost += 1;
            }
        }
        let Some((message, ends)) = self.under_way else { return };
        if let Some(head) = Head::on_wire(frame, self.shim)
            && (head.flow, head.message) == message
        {
            let kind = match (frame[12..14] == [0x81, 0], frame[14] & 0x10 != 0) {
                (false, _) => "data",
                (true, true) => "data, unsolicited",
                (true, false) => "data, scheduled",
            };
            self.step(point, time, format!("{kind}, frame {}, {} bytes", head.sequence, head.bytes));
            return;
        }
        // Reservations of the pair while the message is in flight, including those before its first frame.
        if let Some(text) = control(frame, ends) {
            self.step(point, time, text);
        }
    }

    fn step(&mut self, point: Point, time: Nanos, what: String) {
        if self.steps.len() < FRAMES_MAX {
            self.steps.push(Step { time, point, what });
        } else {
            self.lost += 1;
        }
    }

    /// The `number`th message is created, from one host to another.
    #[cold]
    pub(crate) fn begins(&mut self, number: u64, message: (FlowId, MessageId), ends: (usize, usize)) {
        if self.message == Some(number) {
            self.under_way = Some((message, ends));
        }
    }

    /// A message has arrived.
    #[cold]
    pub(crate) fn ends(&mut self, message: (FlowId, MessageId)) {
        self.under_way = self.under_way.filter(|(known, _)| *known != message);
    }

    /// The message's path as a Chrome trace in JSON, which Perfetto reads too.
    pub fn chrome(&self) -> String {
        let events: Vec<serde_json::Value> = self
            .steps
            .iter()
            .map(|step| {
                let track = match step.point {
                    Point::HostOut(host) | Point::HostIn(host) | Point::App(host) => host + 1,
                    Point::SwitchIn(_) | Point::SwitchOut(_) => 0,
                };
                serde_json::json!({
                    "name": format!("{}: {}", step.point.text(), step.what),
                    "ph": "i", "s": "t", "pid": 1, "tid": track, "ts": step.time.0 as f64 / 1e3,
                })
            })
            .collect();
        let names = (0..=self.tracks()).map(|track| {
            let name = if track == 0 { "switch".to_owned() } else { format!("h{track}") };
            serde_json::json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": track, "args": { "name": name } })
        });
        let all: Vec<serde_json::Value> = names.chain(events).collect();
        serde_json::json!({ "traceEvents": all, "displayTimeUnit": "ns" }).to_string()
    }

    fn tracks(&self) -> usize {
        let host = |step: &Step| match step.point {
            Point::HostOut(host) | Point::HostIn(host) | Point::App(host) => host + 1,
            _ => 0,
        };
        self.steps.iter().map(host).max().unwrap_or(0)
    }

    /// The message's path as a timeline.
    pub fn timeline(&self) -> String {
        let Some(first) = self.steps.first().map(|step| step.time) else {
            return "nothing was seen of this message".into();
        };
        let line = |step: &Step| {
            format!("{:>10} ns  {:<28}{}", step.time.saturating_sub(first).0, step.point.text(), step.what)
        };
        let lines: Vec<String> = self.steps.iter().map(line).collect();
        format!("from {} ns on\n{}", first.0, lines.join("\n"))
    }
}

fn control(frame: &[u8], ends: (usize, usize)) -> Option<String> {
    let rest = frame.get(Ethernet::BYTES + Vlan::BYTES..)?;
    if frame[12..14] != [0x81, 0] || frame[14] >> 5 != p4rack_wire::pl2::PCP_CONTROL {
        return None;
    }
    let control = Control::parse(rest).ok()?;
    let (to, from) = (host_of(frame)?, host_of(&frame[6..])?);
    if control.kind == Kind::Rsv as u8 {
        (ends == (from, to)).then(|| format!("RSV {:08x} for {} slots", control.id, control.demand))
    } else {
        let text = format!("GRT {:08x}: wait {} / {}", control.id, control.send_wait, control.recv_wait);
        (ends == (to, from)).then_some(text)
    }
}
