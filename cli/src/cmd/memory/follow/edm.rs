//! EDM's operations: requests, demands, grants and data.

use super::operation::{Operation, OperationKind, Seen, begin};
use p4rack_wire::edm::{self, Control, GRANTED_LATER, Kind, Message, OPEN, Status};
use p4rack_wire::{EtherType, MacAddr};
use std::collections::HashMap;

/// A frame's part in an operation.
struct Part {
    from: MacAddr,
    to: MacAddr,
    id: u16,
    what: Option<OperationKind>,
    kind: Kind,
    says: String,
    address: Option<u64>,
    bytes: Option<u32>,
    status: Option<u8>,
    start: Option<u16>,
    last: bool,
}

/// The grant in a request: none before the switch has granted it, which a wait of 0 alone does not show.
fn granted(wait_units: u32, is_behind_switch: bool, unit_ns: u64) -> String {
    match wait_units {
        GRANTED_LATER => ", answer granted later".to_owned(),
        0 if !is_behind_switch => String::new(),
        _ => format!(", answer in {} ns", u64::from(wait_units) * unit_ns),
    }
}

/// `None`: the frame is not EDM's, or is malformed.
fn part(seen: &Seen<'_>, ether_type: EtherType, unit_ns: u64) -> Option<Part> {
    let (ethernet, bytes) = edm::parse_frame(seen.frame, ether_type)?;
    let kind = Kind::of(bytes[0]).ok()?;
    let answers = |answer| if answer { (ethernet.dst, ethernet.src) } else { (ethernet.src, ethernet.dst) };
    match kind {
        Kind::Notify | Kind::Grant => {
            let Control { answer, id, offset, bytes, wait, .. } = Control::parse(bytes).ok()?;
            // A grant has the other end's address: for a write it goes to the requester.
            let (from, to) = answers(kind == Kind::Grant && answer == 0);
            let end = offset.saturating_add(bytes);
            let says = match kind {
                Kind::Notify => format!("{bytes} bytes to write"),
                _ => format!(
                    "bytes {offset} to {end}, {} in {} ns",
                    if answer == 0 { "write" } else { "answer" },
                    u64::from(wait) * unit_ns
                ),
            };
            let what = (kind == Kind::Notify || answer == 0).then_some(OperationKind::Write);
            let bytes = (kind == Kind::Notify).then_some(bytes);
            let (address, status, start) = (None, None, None);
            Some(Part { from, to, id, what, kind, says, address, bytes, status, start, last: false })
        }
        Kind::Rreq | Kind::Wreq | Kind::Rmwreq | Kind::Rres => {
            let message = Message::parse(bytes).ok()?;
            let Message { id, address, total, offset, code, .. } = message;
            let is_answer = kind == Kind::Rres;
            let (from, to) = answers(is_answer);
            let end = offset.saturating_add(message.bytes.into());
            let what = match kind {
                Kind::Rreq if code == OPEN => Some(OperationKind::Open),
                Kind::Rreq => Some(OperationKind::Read),
                Kind::Wreq => Some(OperationKind::Write),
                Kind::Rmwreq => Some(OperationKind::Modify),
                _ => None,
            };
            let granted = granted(offset, seen.is_behind_switch(), unit_ns);
            let says = match kind {
                Kind::Rreq if code == OPEN => format!("opens a session{granted}"),
                Kind::Rreq => format!("{total} bytes at 0x{address:x}{granted}"),
                Kind::Rmwreq => format!("the word at 0x{address:x}{granted}"),
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
                address: (!is_answer && what != Some(OperationKind::Open)).then_some(address),
                bytes: (!is_answer || total > 0).then_some(total),
                status: is_answer.then_some(code),
                start: Some(message.start),
                last,
            })
        }
        Kind::MgmtRead | Kind::MgmtWrite | Kind::MgmtReset | Kind::MgmtReply => None,
    }
}

/// Operations of all frames, which are in order of time, in the order in which they begin; waits are in units of `unit_ns`. An id may be used again once its
/// operation is complete, and by a node that has started again.
pub fn operations(seen: &[Seen<'_>], ether_type: EtherType, unit_ns: u64) -> Vec<Operation> {
    let mut all: Vec<Operation> = Vec::new();
    let mut known: HashMap<(MacAddr, MacAddr, u16, bool), Vec<usize>> = HashMap::new();
    for seen in seen {
        let Some(part) = part(seen, ether_type, unit_ns) else { continue };
        // Writes have ids of their own.
        let of_id =
            known.entry((part.from, part.to, part.id, part.what == Some(OperationKind::Write))).or_default();
        let is_same_start = |nth: &usize| match (all[*nth].start, part.start) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let at_hand = of_id.iter().rev().copied().find(is_same_start).filter(|nth| {
            match part.kind {
                // It has no start, and is never sent twice.
                Kind::Notify => all[*nth].last_at.is_none() && !all[*nth].was_seen("NOTIFY", seen.at),
                Kind::Rreq | Kind::Rmwreq => all[*nth].last_at.is_none(),
                _ => true,
            }
        });
        let nth = at_hand.unwrap_or_else(|| {
            let nth = begin(&mut all, part.from, part.to, part.id.into());
            of_id.push(nth);
            nth
        });
        let operation = &mut all[nth];
        operation.what = operation.what.or(part.what);
        operation.address = operation.address.or(part.address);
        operation.bytes = operation.bytes.or(part.bytes);
        operation.status = part.status.or(operation.status);
        operation.start = operation.start.or(part.start);
        let refused = operation.status.filter(|code| *code != Status::Done as u8);
        operation.refused = refused.map(|code| {
            Status::of(code)
                .map_or_else(|| format!("status {code}"), |status| status.name().replace('_', " "))
        });
        let name = Kind::ALL.iter().find(|(kind, _)| *kind == part.kind).map_or("", |(_, name)| name);
        operation.add(seen, name.strip_prefix("EDM_").unwrap_or(name), part.says, part.last);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::Nanos;
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

    fn message(kind: Kind, way: (MacAddr, MacAddr), total: u32, part: (u32, u16)) -> Vec<u8> {
        message_of(3, kind, way, total, part)
    }

    fn message_of(
        start: u16,
        kind: Kind,
        (to, from): (MacAddr, MacAddr),
        total: u32,
        (offset, bytes): (u32, u16),
    ) -> Vec<u8> {
        let (version, kind, code, id, key, address) = (VERSION, kind as u8, 0, 5, 1, 0x40);
        let mut message = vec![0; Message::BYTES + usize::from(bytes)];
        Message { version, kind, code, id, key, address, total, offset, bytes, start }.emit(&mut message);
        let mut frame = Vec::new();
        emit_frame(to, from, EtherType::EDM_DEFAULT, &message, &mut frame);
        frame
    }

    fn operations_of(frames: &[(u64, &str, Vec<u8>)], unit_ns: u64) -> Vec<Operation> {
        let seen = frames.iter().map(|(time, at, frame)| Seen { time: Nanos(*time), at, frame });
        let mut seen: Vec<Seen<'_>> = seen.collect();
        seen.sort_by_key(|seen| seen.time);
        operations(&seen, EtherType::EDM_DEFAULT, unit_ns)
    }

    #[test]
    fn frames_of_all_links_are_put_together() {
        let (there, back) = ((HAS, ASKS), (ASKS, HAS));
        let frames = [
            (10, "h1_in", message(Kind::Rreq, there, 96, (0, 0))),
            (12, "h1_in", control(Kind::Notify, there, 0, (0, 64))),
            (13, "h1_out", control(Kind::Grant, back, 0, (0, 64))),
            (11, "h2_out", message(Kind::Rreq, there, 96, (7, 0))),
            (20, "h2_in", message(Kind::Rres, back, 96, (0, 64))),
            (21, "h2_out", control(Kind::Grant, there, 1, (64, 32))),
            (22, "h1_in", message(Kind::Wreq, there, 64, (0, 64))),
            (23, "h2_out", message(Kind::Wreq, there, 64, (0, 64))),
            (25, "h1_out", message(Kind::Rres, back, 96, (64, 32))),
            // The id of the read again.
            (40, "h1_in", message(Kind::Rreq, there, 8, (0, 0))),
            (41, "h1_out", vec![0; 60]),
        ];
        let all = operations_of(&frames, 1);
        let shape = |operation: &Operation| {
            let kinds: Vec<_> = operation.events.iter().map(|event| event.kind).collect();
            (operation.what, operation.bytes, operation.complete, operation.took_ns(), kinds.join(" "))
        };
        let shapes: Vec<_> = all.iter().map(shape).collect();
        let of = |kinds: &str| kinds.to_owned();
        assert_eq!(
            shapes,
            [
                (Some(OperationKind::Read), Some(96), true, 15, of("RREQ RREQ RRES GRANT RRES")),
                (Some(OperationKind::Write), Some(64), true, 11, of("NOTIFY GRANT WREQ WREQ")),
                (Some(OperationKind::Read), Some(8), false, 0, of("RREQ")),
            ]
        );
        assert!(all.iter().all(|operation| (operation.from, operation.to) == (ASKS, HAS)));
        assert_eq!(all[0].address, Some(0x40));
    }
    #[test]
    fn waits_have_a_unit_and_requests_tell_of_grants_behind_the_switch_alone() {
        let (there, back) = ((HAS, ASKS), (ASKS, HAS));
        let frames = [
            (1, "h1_in", message(Kind::Rreq, there, 96, (0, 0))),
            (2, "h2_out", message(Kind::Rreq, there, 96, (0, 0))),
            (3, "h2_out", message(Kind::Rreq, there, 96, (7, 0))),
            (4, "h2_out", message(Kind::Rmwreq, there, 8, (GRANTED_LATER, 0))),
            (5, "h1_out", control(Kind::Grant, back, 0, (0, 64))),
        ];
        let all = operations_of(&frames, 1_000);
        let said: Vec<&str> =
            all.iter().flat_map(|one| &one.events).map(|event| event.says.as_str()).collect();
        assert_eq!(
            said,
            [
                "96 bytes at 0x40",
                "96 bytes at 0x40, answer in 0 ns",
                "96 bytes at 0x40, answer in 7000 ns",
                "the word at 0x40, answer granted later",
                "bytes 0 to 64, write in 9000 ns"
            ]
        );
    }

    /// Each command is a node with a start of its own, and ids from 0.
    #[test]
    fn a_node_that_started_again_has_other_operations() {
        let (there, back) = ((HAS, ASKS), (ASKS, HAS));
        let notify = || control(Kind::Notify, there, 0, (0, 64));
        let frames = [
            (1, "h1_in", message_of(3, Kind::Rreq, there, 96, (0, 0))),
            (2, "h1_in", message_of(4, Kind::Rreq, there, 8, (0, 0))),
            (3, "h1_out", message_of(4, Kind::Rres, back, 8, (0, 8))),
            (4, "h1_out", message_of(3, Kind::Rres, back, 96, (0, 96))),
            (11, "h1_in", notify()),
            (12, "h1_out", control(Kind::Grant, back, 0, (0, 64))),
            (13, "h1_in", notify()),
            (14, "h1_out", control(Kind::Grant, back, 0, (0, 64))),
            (15, "h1_in", message_of(6, Kind::Wreq, there, 64, (0, 64))),
        ];
        let all = operations_of(&frames, 1);
        let shape = |one: &Operation| {
            (one.start, one.complete, one.events.iter().map(|e| e.time_ns).collect::<Vec<_>>())
        };
        assert_eq!(
            all.iter().map(shape).collect::<Vec<_>>(),
            [
                (Some(3), true, vec![1, 4]),
                (Some(4), true, vec![2, 3]),
                (None, false, vec![11, 12]),
                (Some(6), false, vec![13, 14, 15]),
            ]
        );
    }

    /// Frames lost behind the first link did not arrive.
    #[test]
    fn an_operation_is_complete_once_its_last_byte_is_on_its_receivers_link() {
        let there = (HAS, ASKS);
        let write = || message(Kind::Wreq, there, 64, (0, 64));
        let of = |frames: &[(u64, &str, Vec<u8>)]| {
            let all = operations_of(frames, 1);
            (all.len(), all[0].complete, all[0].last_at.clone())
        };
        assert_eq!(of(&[(1, "h1_in", write())]), (1, false, Some("h1_in".to_owned())));
        assert_eq!(of(&[(1, "h1_in", write()), (2, "h2_out", write())]), (1, true, Some("h1_in".to_owned())));
        assert_eq!(of(&[(2, "h2_out", write())]), (1, true, Some("h2_out".to_owned())));
        // Captures of hosts have other names.
        assert_eq!(of(&[(1, "a", write()), (2, "b", write())]), (1, true, Some("a".to_owned())));
    }
}
