//! Memory operations, put together from the frames of captures.

use p4rack_wire::edm::{self, Control, Kind, Message, Status};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use serde::Serialize;
use std::collections::HashMap;

/// A frame as one capture has it.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Time of the capture.
    pub time: Nanos,
    /// Name of the capture: link and direction.
    pub at: &'a str,
    /// The frame.
    pub frame: &'a [u8],
}

/// What a frame did for its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Time of the capture, in ns since 1970 or since the beginning of a simulation.
    pub time_ns: u64,
    /// Where it was seen: link and direction.
    pub at: String,
    /// `RREQ`, `GRANT`, …
    pub kind: &'static str,
    /// Its numbers, for people.
    pub says: String,
}

/// What a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// RREQ.
    Read,
    /// WREQ.
    Write,
    /// RMWREQ.
    Modify,
}

/// One operation with all of its frames.
#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    /// Its number in the captures, from 1.
    pub number: usize,
    /// Who asks.
    #[serde(serialize_with = "as_text")]
    pub from: MacAddr,
    /// The memory node.
    #[serde(serialize_with = "as_text")]
    pub to: MacAddr,
    /// Chosen by who asks.
    pub id: u16,
    /// What it does; `None` if only grants were seen.
    pub what: Option<What>,
    /// Address of the first byte, if a frame with it was seen.
    pub address: Option<u64>,
    /// Bytes of the message.
    pub bytes: Option<u32>,
    /// Number of the status in the last answer.
    pub status: Option<u8>,
    /// Whether its last byte was seen.
    pub complete: bool,
    /// Its frames, by time.
    pub events: Vec<Event>,
}

fn as_text<S: serde::Serializer>(mac: &MacAddr, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(mac)
}

impl Operation {
    /// Time between its first and its last frame, in ns.
    pub fn took_ns(&self) -> u64 {
        let time = |event: Option<&Event>| event.map_or(0, |event| event.time_ns);
        time(self.events.last()) - time(self.events.first())
    }
}

/// A frame's part in an operation.
struct Part {
    from: MacAddr,
    to: MacAddr,
    id: u16,
    what: Option<What>,
    kind: Kind,
    says: String,
    address: Option<u64>,
    bytes: Option<u32>,
    status: Option<u8>,
    last: bool,
}

/// `None`: the frame is not EDM's, or is malformed.
fn part(frame: &[u8], ether_type: EtherType) -> Option<Part> {
    let (ethernet, bytes) = edm::parse_frame(frame, ether_type)?;
    let kind = Kind::of(bytes[0]).ok()?;
    let answers = |answer| if answer { (ethernet.dst, ethernet.src) } else { (ethernet.src, ethernet.dst) };
    match kind {
        Kind::Notify | Kind::Grant => {
            let Control { answer, id, offset, bytes, wait, .. } = Control::parse(bytes).ok()?;
            // A grant has the other end's address: for a write it goes to who asks.
            let (from, to) = answers(kind == Kind::Grant && answer == 0);
            let end = offset.saturating_add(bytes);
            let says = match kind {
                Kind::Notify => format!("{bytes} bytes to write"),
                _ => format!(
                    "bytes {offset} to {end}, {} in {wait}",
                    if answer == 0 { "write" } else { "answer" }
                ),
            };
            let what = (kind == Kind::Notify || answer == 0).then_some(What::Write);
            let bytes = (kind == Kind::Notify).then_some(bytes);
            Some(Part { from, to, id, what, kind, says, address: None, bytes, status: None, last: false })
        }
        Kind::Rreq | Kind::Wreq | Kind::Rmwreq | Kind::Rres => {
            let message = Message::parse(bytes).ok()?;
            let Message { id, address, total, offset, code, .. } = message;
            let is_answer = kind == Kind::Rres;
            let (from, to) = answers(is_answer);
            let end = offset.saturating_add(message.bytes.into());
            let what = match kind {
                Kind::Rreq => Some(What::Read),
                Kind::Wreq => Some(What::Write),
                Kind::Rmwreq => Some(What::Modify),
                _ => None,
            };
            let says = match kind {
                Kind::Rreq => format!("{total} bytes at 0x{address:x}, answer in {offset}"),
                Kind::Rmwreq => format!("the word at 0x{address:x}, answer in {offset}"),
                Kind::Rres if total == 0 => "no bytes: the NULL response".to_owned(),
                _ => format!("bytes {offset} to {end} of {total}"),
            };
            let refused = is_answer && code != Status::Done as u8;
            let last = matches!(kind, Kind::Wreq | Kind::Rres) && (end >= total || refused);
            Some(Part {
                from,
                to,
                id,
                what,
                kind,
                says,
                address: (!is_answer).then_some(address),
                bytes: (!is_answer || total > 0).then_some(total),
                status: is_answer.then_some(code),
                last,
            })
        }
        Kind::MgmtRead | Kind::MgmtWrite | Kind::MgmtReset | Kind::MgmtReply => None,
    }
}

/// Operations of all frames, in the order in which they begin. An id may be used again once its operation is complete.
pub fn operations(mut seen: Vec<Seen<'_>>, ether_type: EtherType) -> Vec<Operation> {
    seen.sort_by_key(|seen| seen.time);
    let mut all: Vec<Operation> = Vec::new();
    let mut current: HashMap<(MacAddr, MacAddr, u16, bool), usize> = HashMap::new();
    for Seen { time, at, frame } in seen {
        let Some(part) = part(frame, ether_type) else { continue };
        // Writes have ids of their own.
        let key = (part.from, part.to, part.id, part.what == Some(What::Write));
        let begins = matches!(part.kind, Kind::Notify | Kind::Rreq | Kind::Rmwreq);
        let at_hand = current.get(&key).copied().filter(|nth| !(begins && all[*nth].complete));
        let nth = at_hand.unwrap_or_else(|| {
            all.push(Operation {
                number: all.len() + 1,
                from: part.from,
                to: part.to,
                id: part.id,
                what: None,
                address: None,
                bytes: None,
                status: None,
                complete: false,
                events: Vec::new(),
            });
            all.len() - 1
        });
        current.insert(key, nth);
        let operation = &mut all[nth];
        operation.what = operation.what.or(part.what);
        operation.address = operation.address.or(part.address);
        operation.bytes = operation.bytes.or(part.bytes);
        operation.status = part.status.or(operation.status);
        operation.complete |= part.last;
        let name = Kind::ALL.iter().find(|(kind, _)| *kind == part.kind).map_or("", |(_, name)| name);
        operation.events.push(Event {
            time_ns: time.0,
            at: at.to_owned(),
            kind: name.strip_prefix("EDM_").unwrap_or(name),
            says: part.says,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::edm::{VERSION, emit_frame};

    const ASKS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const HAS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn control(
        kind: Kind,
        (to, from): (MacAddr, MacAddr),
        answer: u8,
        (offset, bytes): (u32, u32),
    ) -> Vec<u8> {
        let mut message = vec![0; Control::BYTES];
        Control { version: VERSION, kind: kind as u8, answer, id: 5, offset, bytes, wait: 9 }
            .emit(&mut message);
        let mut frame = Vec::new();
        emit_frame(to, from, EtherType::EDM_DEFAULT, &message, &mut frame);
        frame
    }

    fn message(
        kind: Kind,
        (to, from): (MacAddr, MacAddr),
        total: u32,
        (offset, bytes): (u32, u16),
    ) -> Vec<u8> {
        let (version, kind, code, id, key, address, start) = (VERSION, kind as u8, 0, 5, 1, 0x40, 3);
        let mut message = vec![0; Message::BYTES + usize::from(bytes)];
        Message { version, kind, code, id, key, address, total, offset, bytes, start }.emit(&mut message);
        let mut frame = Vec::new();
        emit_frame(to, from, EtherType::EDM_DEFAULT, &message, &mut frame);
        frame
    }

    #[test]
    fn frames_of_all_links_are_put_together() {
        let (there, back) = ((HAS, ASKS), (ASKS, HAS));
        let frames = [
            (10, "h1 in", message(Kind::Rreq, there, 96, (0, 0))),
            (12, "h1 in", control(Kind::Notify, there, 0, (0, 64))),
            (13, "h1 out", control(Kind::Grant, back, 0, (0, 64))),
            (11, "h2 out", message(Kind::Rreq, there, 96, (7, 0))),
            (20, "h2 in", message(Kind::Rres, back, 96, (0, 64))),
            (21, "h2 out", control(Kind::Grant, there, 1, (64, 32))),
            (22, "h1 in", message(Kind::Wreq, there, 64, (0, 64))),
            (23, "h2 out", message(Kind::Wreq, there, 64, (0, 64))),
            (25, "h1 out", message(Kind::Rres, back, 96, (64, 32))),
            // The id of the read again.
            (40, "h1 in", message(Kind::Rreq, there, 8, (0, 0))),
            (41, "h1 out", vec![0; 60]),
        ];
        let seen = frames.iter().map(|(time, at, frame)| Seen { time: Nanos(*time), at, frame }).collect();
        let all = operations(seen, EtherType::EDM_DEFAULT);
        let shape = |operation: &Operation| {
            let kinds: Vec<_> = operation.events.iter().map(|event| event.kind).collect();
            (operation.what, operation.bytes, operation.complete, operation.took_ns(), kinds.join(" "))
        };
        let shapes: Vec<_> = all.iter().map(shape).collect();
        let of = |kinds: &str| kinds.to_owned();
        assert_eq!(
            shapes,
            [
                (Some(What::Read), Some(96), true, 15, of("RREQ RREQ RRES GRANT RRES")),
                (Some(What::Write), Some(64), true, 11, of("NOTIFY GRANT WREQ WREQ")),
                (Some(What::Read), Some(8), false, 0, of("RREQ")),
            ]
        );
        assert!(all.iter().all(|operation| (operation.from, operation.to) == (ASKS, HAS)));
        assert_eq!(all[0].address, Some(0x40));
    }
}
