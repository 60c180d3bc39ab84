//! Memory operations and their frames, whatever the way.

use p4rack_wire::{MacAddr, Nanos};
use serde::Serialize;

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

impl Seen<'_> {
    /// Whether the frame has left the switch, as the names of its captures say.
    pub fn is_behind_switch(&self) -> bool {
        self.at.ends_with("_out")
    }
}

/// A frame's role in its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Time of the capture, in ns since 1970 or since the beginning of a simulation.
    pub time_ns: u64,
    /// Where it was seen: link and direction.
    pub at: String,
    /// `RREQ`, `GRANT`, `WRITE ONLY`, …
    pub kind: &'static str,
    /// Its numbers, for people.
    pub says: String,
}

/// Kind of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// A read.
    Read,
    /// EDM: a session.
    Open,
    /// A write.
    Write,
    /// An atomic operation.
    Modify,
    /// RDMA: a message to a program.
    Send,
    /// Several reads in one.
    Gather,
    /// Several writes in one.
    Scatter,
}

impl OperationKind {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Open => "session",
            OperationKind::Write => "write",
            OperationKind::Modify => "modify",
            OperationKind::Send => "send",
            OperationKind::Gather => "gather",
            OperationKind::Scatter => "scatter",
        }
    }
}

/// One operation with all of its frames.
#[derive(Clone, Debug, Serialize)]
pub struct Operation {
    /// Its number in the captures, from 1.
    pub number: usize,
    /// The requester.
    #[serde(serialize_with = "as_text")]
    pub from: MacAddr,
    /// The memory node, or the host with the pool or server.
    #[serde(serialize_with = "as_text")]
    pub to: MacAddr,
    /// EDM: chosen by the requester. RDMA: the first packet's sequence number. TCP: its number on the connection, from 0. Cowbird: its
    /// number among the reads or writes of its thread, from 1.
    pub id: u32,
    /// Its kind; `None` if only grants were seen.
    pub what: Option<OperationKind>,
    /// Address of the first byte, if a frame with it was seen.
    pub address: Option<u64>,
    /// Bytes of the message.
    pub bytes: Option<u32>,
    /// Number of the status in the last answer, where the way has that.
    pub status: Option<u8>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// EDM: the requester's start, if a frame with it was seen. Another start has other messages of the same ids.
    pub start: Option<u16>,
    /// The first capture that has its last byte.
    pub last_at: Option<String>,
    /// Whether its last byte was seen behind the switch, or in more than one capture: it has reached its receiver's link. Cowbird:
    /// whether the red block that ends it has.
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

    /// Whether a capture has a frame of this kind of it.
    pub fn was_seen(&self, kind: &str, at: &str) -> bool {
        self.events.iter().any(|event| event.kind == kind && event.at == at)
    }

    /// Adds a frame, which may have the last byte.
    pub fn add(&mut self, seen: &Seen<'_>, kind: &'static str, says: String, is_last: bool) {
        if is_last {
            self.complete |= seen.is_behind_switch() || self.last_at.as_ref().is_some_and(|at| at != seen.at);
            self.last_at.get_or_insert_with(|| seen.at.to_owned());
        }
        self.events.push(Event { time_ns: seen.time.0, at: seen.at.to_owned(), kind, says });
    }
}

/// Adds an operation of which nothing is known yet. Returns its position.
pub fn begin(all: &mut Vec<Operation>, from: MacAddr, to: MacAddr, id: u32) -> usize {
    all.push(Operation {
        number: all.len() + 1,
        from,
        to,
        id,
        what: None,
        address: None,
        bytes: None,
        status: None,
        refused: None,
        start: None,
        last_at: None,
        complete: false,
        events: Vec::new(),
    });
    all.len() - 1
}
