//! When parts of writes leave their host, and when they reach memory.
//!
//! Writes have no answer. But a part of a write that reaches a live memory node, in a session of both nodes, has to take effect by
//! then, and not before it has left. A node's writes of one object leave in the order of their requests.

use super::client::{History, Object, object, word};
use super::rack::RESTART_SESSIONS;
use p4rack_history::{Entry, Outcome, Word};
use p4rack_wire::edm::{Kind, Message};
use std::collections::BTreeMap;

/// A part of a write that has left its host: one object.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// Its index among the object's operations.
    entry: usize,
    /// Number of its host's restarts.
    restarts: u64,
}

/// Departed parts of writes, by memory node, object and value: values are unique.
#[derive(Debug, Default)]
pub(super) struct Writes {
    flights: BTreeMap<(u16, u64, u64), Flight>,
    /// The last value that left, by host, memory node and object.
    last: BTreeMap<(u16, u16, u64), u64>,
}

impl Writes {
    /// Records a message that leaves a host. Errors: it is part of a write that must not leave now.
    pub fn left(
        &mut self,
        (from, restarts, to): (u16, u64, u16),
        payload: &[u8],
        now: u64,
        history: &mut History,
    ) -> Result<(), String> {
        let Some((_, place, value)) = part(payload)? else { return Ok(()) };
        let entry = Entry { asked: now, outcome: Outcome::Unknown, act: Word::Write(value) };
        let entry = history.add(Object { node: to, address: place }, entry);
        if self.flights.insert((to, place, value), Flight { entry, restarts }).is_some() {
            return Err(format!("node {from} sends {value:#x} for {place:#x} of node {to} twice"));
        }
        // Values increase.
        match self.last.insert((from, to, place), value) {
            Some(last) if last > value => Err(format!(
                "node {from} writes {place:#x} of node {to} in another order than asked for: {last:#x}, {value:#x}"
            )),
            _ => Ok(()),
        }
    }

    /// Records a message that has reached a memory node whose sessions begin with this number. `restarts`: number of restarts of
    /// its sender.
    pub fn arrived(
        &mut self,
        (to, first_session, restarts): (u16, u16, u64),
        payload: &[u8],
        now: u64,
        history: &mut History,
    ) {
        let Ok(Some((session, place, value))) = part(payload) else { return };
        let Some(flight) = self.flights.get(&(to, place, value)) else { return };
        if flight.restarts == restarts && session.wrapping_sub(first_session) < RESTART_SESSIONS {
            history.done_by(&Object { node: to, address: place }, flight.entry, now);
        }
    }
}

/// Session, object and value of a part of a write; `None` for other messages. Errors: it is not exactly one object.
fn part(payload: &[u8]) -> Result<Option<(u16, u64, u64)>, String> {
    if payload.first().map(|first| Kind::of(*first)) != Some(Ok(Kind::Wreq)) {
        return Ok(None);
    }
    let message = Message::parse(payload).map_err(|error| error.to_string())?;
    let address = message.address + u64::from(message.offset);
    let (place, bytes) = object(address);
    if place != address || bytes != u64::from(message.bytes) {
        return Err(format!("a frame writes {} bytes at {address:#x}: no object", message.bytes));
    }
    Ok(Some((message.start, place, word(&payload[Message::BYTES..]))))
}
