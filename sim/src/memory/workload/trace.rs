//! Traces of the EDM authors' generator.

use super::BYTES_MAX;
use crate::memory::message::{Message, Operation};
use crate::memory::published::SLOT_PS;

/// Maximum lines of a trace.
const LINES_MAX: usize = 1_000_000;

/// Reads a trace: lines of `flow_id,type,src,dst,flow_size,rreq_bytes,timeslot` without a header, sorted by time. Type 1 is
/// a read of `rreq_bytes`, type 3 a write of `flow_size`; a slot is 0.64 ns. `file` appears in errors.
pub fn parse_trace(text: &str, file: &str, nodes: u16) -> Result<Vec<Message>, String> {
    let mut messages: Vec<Message> = Vec::new();
    for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |what: String| format!("{file}:{}: {what}", nth + 1);
        let cells: Vec<Option<i64>> = line.split(',').map(|cell| cell.trim().parse().ok()).collect();
        let [Some(_), Some(kind), Some(source), Some(destination), Some(size), Some(asked), Some(slot)] =
            cells[..]
        else {
            return Err(bad(format!(
                "`{line}`: write seven whole numbers: flow_id,type,src,dst,flow_size,rreq_bytes,timeslot"
            )));
        };
        let node = |of: &str, number: i64| {
            let node = u16::try_from(number).ok().filter(|node| *node < nodes);
            node.ok_or_else(|| bad(format!("{of} {number}: there are nodes 0 to {}", nodes - 1)))
        };
        let (operation, bytes) = match kind {
            1 => (Operation::Read, asked),
            3 => (Operation::Write, size),
            _ => return Err(bad(format!("type {kind}: write 1 for a read or 3 for a write"))),
        };
        let bytes = u64::try_from(bytes).ok().filter(|bytes| (1..=BYTES_MAX).contains(bytes));
        let slot = u64::try_from(slot).ok().filter(|slot| *slot < u64::MAX / SLOT_PS / 2);
        let message = Message {
            at_ps: slot.ok_or_else(|| bad("timeslot: write a number of slots of 0.64 ns".into()))? * SLOT_PS,
            operation,
            compute: node("src", source)?,
            memory: node("dst", destination)?,
            bytes: bytes.ok_or_else(|| bad(format!("bytes: a message has 1 to {BYTES_MAX}")))? as u32,
        };
        if message.compute == message.memory {
            return Err(bad(format!("src and dst are both {source}; a node's own memory is not remote")));
        }
        if messages.last().is_some_and(|last| last.at_ps > message.at_ps) {
            return Err(
                bad("timeslot: is before the line above's; sort the trace by its last column".into()),
            );
        }
        if messages.len() == LINES_MAX {
            return Err(bad(format!("more than {LINES_MAX} messages")));
        }
        messages.push(message);
    }
    match messages.is_empty() {
        true => Err(format!("{file}: holds no messages")),
        false => Ok(messages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_and_its_mistakes_are_named() {
        let messages = parse_trace("0,3,75,93,64,-1,0\n1,1,49,25,16,5840,2\n", "t.csv", 144).unwrap();
        let of = |message: &Message| {
            (message.at_ps, message.operation, message.compute, message.memory, message.bytes)
        };
        assert_eq!(of(&messages[0]), (0, Operation::Write, 75, 93, 64));
        assert_eq!(of(&messages[1]), (1_280, Operation::Read, 49, 25, 5_840));
        for (text, named) in [
            ("", "holds no messages"),
            ("0,3,75,93,64,-1", "t.csv:1: `0,3,75,93,64,-1`: write seven"),
            ("0,2,75,93,64,-1,0", "t.csv:1: type 2"),
            ("0,3,75,144,64,-1,0", "dst 144: there are nodes 0 to 143"),
            ("0,3,75,75,64,-1,0", "both 75"),
            ("0,3,75,93,0,-1,0", "a message has 1 to"),
            ("0,3,75,93,64,-1,-4", "timeslot"),
            ("0,3,75,93,64,-1,9\n1,3,75,93,64,-1,8", "t.csv:2: timeslot: is before"),
        ] {
            let error = parse_trace(text, "t.csv", 144).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
