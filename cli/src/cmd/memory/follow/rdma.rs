//! RDMA's operations, of pools and of Cowbird's engines: requests, and their responders' answers.
//!
//! A packet names the receiver's queue pair alone. So requests are known by the pair that they are for. The pair of their answers is
//! found by its first one: it has the kind, the length and the sequence number of an answer to one of these requests.

use super::operation::{Operation, OperationKind, Seen, begin};
use p4rack_wire::MacAddr;
use p4rack_wire::roce::frame::{Extension, Packet, parse};
use p4rack_wire::roce::{Nak, Opcode, Syndrome, psn};
use std::collections::{BTreeMap, HashMap};

/// An answer's sequence number is at most so far behind its request's.
const NEAR: u32 = 1 << 16;

/// Packets of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    from: MacAddr,
    to: MacAddr,
    /// The receiver's queue pair.
    qpn: u32,
}

/// Positions of requests by their first sequence numbers.
#[derive(Default)]
struct Requests {
    all: BTreeMap<u32, usize>,
    /// Those that an acknowledgement of a later one ends, too.
    writes: BTreeMap<u32, usize>,
}

impl Requests {
    /// The request that a sequence number belongs to.
    fn covering(&self, number: u32) -> Option<usize> {
        let (first, nth) = self.all.range(..=number).next_back().or_else(|| self.all.iter().next_back())?;
        (psn::distance(*first, number) < NEAR).then_some(*nth)
    }
}

/// Operations, and the bytes of short ones.
#[derive(Default)]
pub struct Transfers {
    /// Operations, in the order in which they begin.
    pub operations: Vec<Operation>,
    /// Bytes that each has moved, by position; empty if longer than `kept_max`.
    pub moved: Vec<Moved>,
    kept_max: u32,
}

/// Bytes that an operation has moved: those of the last answer to a read, or of a write.
#[derive(Default)]
pub struct Moved {
    /// The bytes, as far as packets have been seen.
    pub bytes: Vec<u8>,
    /// Position of the event that has changed them last.
    pub changed: usize,
}

impl Transfers {
    /// Adds an operation.
    fn begin(&mut self, flow: Flow, number: u32) -> usize {
        self.moved.push(Moved::default());
        begin(&mut self.operations, flow.from, flow.to, number)
    }

    /// Keeps a packet's payload, before its event is added.
    fn keep(&mut self, nth: usize, packet: &Packet<'_>) {
        let (operation, moved) = (&self.operations[nth], &mut self.moved[nth]);
        let Some(bytes) = operation.bytes.filter(|bytes| *bytes <= self.kept_max) else { return };
        let (bytes, length, opcode) = (bytes as usize, packet.payload.len(), packet.opcode);
        let place = match (opcode.is_first(), opcode.is_last()) {
            (true, _) => 0,
            (false, true) => bytes.saturating_sub(length),
            // All packets in the middle have the same length.
            (false, false) => psn::distance(operation.id, packet.bth.psn) as usize * length,
        };
        moved.bytes.resize(bytes, 0);
        let room = moved.bytes.get_mut(place..place + length);
        if let Some(room) = room.filter(|room| *room != packet.payload) {
            room.copy_from_slice(packet.payload);
            moved.changed = operation.events.len();
        }
    }
}

/// Operations of all frames, which are in order of time, in the order in which they begin.
pub fn operations(seen: &[Seen<'_>]) -> Vec<Operation> {
    transfers(seen, 0).operations
}

/// The same, with the bytes of those that move at most `kept_max`.
pub fn transfers(seen: &[Seen<'_>], kept_max: u32) -> Transfers {
    let mut all = Transfers { kept_max, ..Transfers::default() };
    let mut flows: HashMap<Flow, Requests> = HashMap::new();
    // Requests by the flow of their answers.
    let mut asked: HashMap<Flow, Flow> = HashMap::new();
    for seen in seen {
        let Ok(frame) = parse(seen.frame, false) else { continue };
        let flow = Flow { from: frame.ethernet.src, to: frame.ethernet.dst, qpn: frame.packet.bth.qpn };
        if !frame.packet.opcode.is_response() {
            request(&mut all, flows.entry(flow).or_default(), seen, flow, &frame.packet);
            continue;
        }
        let of = asked.get(&flow).copied().or_else(|| {
            let of = asked_by(&all.operations, &flows, &asked, flow, &frame.packet)?;
            asked.insert(flow, of);
            Some(of)
        });
        if let Some(requests) = of.and_then(|of| flows.get(&of)) {
            answer(&mut all, requests, seen, &frame.packet);
        }
    }
    all
}

/// The requests that an answer of a new flow may belong to: of the flows without answers so far, the one with the nearest sequence
/// number, and of several that with the oldest request.
fn asked_by(
    all: &[Operation],
    flows: &HashMap<Flow, Requests>,
    asked: &HashMap<Flow, Flow>,
    answers: Flow,
    packet: &Packet<'_>,
) -> Option<Flow> {
    let number = packet.bth.psn;
    let candidates = flows.iter().filter_map(|(flow, requests)| {
        let nth = requests.covering(number)?;
        let is_back = flow.from == answers.to && flow.to == answers.from;
        let far = psn::distance(all[nth].id, number);
        (is_back && answers_to(packet, &all[nth])).then_some((far, nth, *flow))
    });
    let is_free = |flow: &Flow| !asked.values().any(|taken| taken == flow);
    candidates
        .filter(|(.., flow)| is_free(flow))
        .min_by_key(|(far, nth, _)| (*far, *nth))
        .map(|(.., flow)| flow)
}

/// Whether a packet may be an answer to an operation.
fn answers_to(packet: &Packet<'_>, operation: &Operation) -> bool {
    match packet.opcode {
        // It also refuses reads and atomic operations.
        Opcode::Acknowledge => true,
        Opcode::AtomicAcknowledge => operation.what == Some(OperationKind::Modify),
        Opcode::ReadResponseOnly => {
            operation.what == Some(OperationKind::Read)
                && operation.bytes == Some(packet.payload.len() as u32)
        }
        _ => operation.what == Some(OperationKind::Read),
    }
}

fn request(all: &mut Transfers, requests: &mut Requests, seen: &Seen<'_>, flow: Flow, packet: &Packet<'_>) {
    let Packet { bth, opcode, extension, payload } = packet;
    let (what, address, bytes) = match extension {
        Extension::Rdma(reth, _) if *opcode == Opcode::ReadRequest => {
            (OperationKind::Read, Some(reth.address), Some(reth.bytes))
        }
        Extension::Rdma(reth, _) => (OperationKind::Write, Some(reth.address), Some(reth.bytes)),
        Extension::Atomic(atomic) => (OperationKind::Modify, Some(atomic.address), Some(8)),
        Extension::None | Extension::Immediate(_) => (OperationKind::Send, None, None),
        Extension::Ack(_) | Extension::AtomicAck(..) => return,
    };
    let nth = if opcode.is_first() {
        // The same frame on another link, or sent again.
        *requests.all.entry(bth.psn).or_insert_with(|| {
            let nth = all.begin(flow, bth.psn);
            let operation = &mut all.operations[nth];
            (operation.what, operation.address, operation.bytes) = (Some(what), address, bytes);
            if matches!(what, OperationKind::Write | OperationKind::Send) {
                requests.writes.insert(bth.psn, nth);
            }
            nth
        })
    } else {
        match requests.covering(bth.psn) {
            Some(nth) => nth,
            None => return,
        }
    };
    let says = match (address, bytes) {
        (Some(address), Some(bytes)) if what == OperationKind::Write => {
            format!("{} of {bytes} bytes at {address:#x}", payload.len())
        }
        (Some(address), Some(bytes)) => format!("{bytes} bytes at {address:#x}"),
        _ => format!("{} bytes", payload.len()),
    };
    if !payload.is_empty() {
        all.keep(nth, packet);
    }
    all.operations[nth].add(seen, name(*opcode), says, false);
}

fn answer(all: &mut Transfers, requests: &Requests, seen: &Seen<'_>, packet: &Packet<'_>) {
    let Packet { bth, opcode, extension, payload } = packet;
    let Some(nth) = requests.covering(bth.psn) else { return };
    let syndrome = match extension {
        Extension::Ack(aeth) | Extension::AtomicAck(aeth, _) => Syndrome::of(aeth.syndrome).ok(),
        _ => Some(Syndrome::Ack),
    };
    let kind = name(*opcode);
    let operation = &mut all.operations[nth];
    match (syndrome, extension) {
        (Some(Syndrome::Nak(Nak::Sequence)), _) => {
            return operation.add(seen, "NAK", "packets are missing before this one".to_owned(), false);
        }
        (Some(Syndrome::ReceiverNotReady(_)), _) => {
            return operation.add(seen, "RNR NAK", "ask again later".to_owned(), false);
        }
        (Some(Syndrome::Nak(nak)), _) => {
            let why = match nak {
                Nak::InvalidRequest => "the request makes no sense",
                Nak::RemoteAccess => "the memory does not permit it",
                Nak::RemoteOperational | Nak::Sequence => "the responder failed",
            };
            operation.refused = Some(why.to_owned());
            return operation.add(seen, "NAK", why.to_owned(), true);
        }
        (None, _) => return,
        (Some(Syndrome::Ack), Extension::AtomicAck(_, answer)) => {
            operation.add(seen, kind, format!("the word was {:#x}", answer.original), true);
        }
        (Some(Syndrome::Ack), _) if *opcode != Opcode::Acknowledge => {
            all.keep(nth, packet);
            all.operations[nth].add(seen, kind, format!("{} bytes", payload.len()), opcode.is_last());
        }
        (Some(Syndrome::Ack), _) => {}
    }
    // Earlier requests of the flow are done as well.
    for nth in requests.writes.range(..=bth.psn).rev().map(|(_, nth)| *nth) {
        let operation = &mut all.operations[nth];
        if operation.was_seen("ACK", seen.at) {
            break;
        }
        operation.add(seen, "ACK", format!("up to packet {}", bth.psn), true);
    }
}

const fn name(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::SendFirst => "SEND FIRST",
        Opcode::SendMiddle => "SEND MIDDLE",
        Opcode::SendLast | Opcode::SendLastImmediate => "SEND LAST",
        Opcode::SendOnly | Opcode::SendOnlyImmediate => "SEND ONLY",
        Opcode::WriteFirst => "WRITE FIRST",
        Opcode::WriteMiddle => "WRITE MIDDLE",
        Opcode::WriteLast | Opcode::WriteLastImmediate => "WRITE LAST",
        Opcode::WriteOnly | Opcode::WriteOnlyImmediate => "WRITE ONLY",
        Opcode::ReadRequest => "READ REQUEST",
        Opcode::ReadResponseFirst => "RESPONSE FIRST",
        Opcode::ReadResponseMiddle => "RESPONSE MIDDLE",
        Opcode::ReadResponseLast => "RESPONSE LAST",
        Opcode::ReadResponseOnly => "RESPONSE ONLY",
        Opcode::Acknowledge => "ACK",
        Opcode::AtomicAcknowledge => "ATOMIC ACK",
        Opcode::CompareSwap => "CMP SWAP",
        Opcode::FetchAdd => "FETCH ADD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::Nanos;
    use p4rack_wire::roce::frame::{Path, compose};
    use p4rack_wire::roce::{Aeth, AtomicAckEth, AtomicEth, Bth, Reth};
    use std::net::Ipv4Addr;

    const ENDS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

    /// A packet from one end to the other, for its queue pair.
    fn packet(from: usize, opcode: Opcode, psn: u32, extension: Extension, bytes: usize) -> Vec<u8> {
        let ip = |end: usize| Ipv4Addr::new(10, 0, 0, end as u8 + 1);
        let path = Path {
            src_mac: ENDS[from],
            dst_mac: ENDS[1 - from],
            src_ip: ip(from),
            dst_ip: ip(1 - from),
            src_port: 0xc000,
            dscp: 0,
        };
        let mut frame = Vec::new();
        let bth = Bth::new(opcode, [7, 9][1 - from], psn);
        compose(&path, bth, &extension, &vec![5; bytes], &mut frame);
        frame
    }

    fn reth(address: u64, bytes: u32) -> Extension {
        Extension::Rdma(Reth { address, key: 1, bytes }, None)
    }

    fn ack(syndrome: Syndrome) -> Extension {
        Extension::Ack(Aeth { syndrome: syndrome.code(), msn: 0 })
    }

    /// Of an operation: its kind, its address, whether it is complete, why it was refused, and its frames.
    type Shape = (Option<OperationKind>, Option<u64>, bool, Option<String>, String);

    fn shapes(frames: &[(&str, Vec<u8>)]) -> Vec<Shape> {
        let seen = frames.iter().zip(0..).map(|((at, frame), time)| Seen { time: Nanos(time), at, frame });
        let all = operations(&seen.collect::<Vec<_>>());
        let shape = |one: Operation| {
            let kinds: Vec<_> = one.events.iter().map(|event| event.kind).collect();
            (one.what, one.address, one.complete, one.refused, kinds.join(", "))
        };
        all.into_iter().map(shape).collect()
    }

    #[test]
    fn requests_and_their_answers_are_put_together() {
        let write = packet(0, Opcode::WriteOnly, 5, reth(0x40, 8), 8);
        let read = packet(0, Opcode::ReadRequest, 8, reth(0x80, 2_000), 0);
        let atomic = Extension::Atomic(AtomicEth { address: 0x10, key: 1, swap_or_add: 1, compare: 0 });
        let frames = [
            ("h1_in", write.clone()),
            ("h2_out", write),
            ("h1_in", packet(0, Opcode::WriteFirst, 6, reth(0x100, 1_500), 1_024)),
            ("h1_in", packet(0, Opcode::WriteLast, 7, Extension::None, 476)),
            ("h1_in", read),
            ("h1_in", packet(0, Opcode::FetchAdd, 10, atomic, 0)),
            // One acknowledgement for both writes.
            ("h1_out", packet(1, Opcode::Acknowledge, 7, ack(Syndrome::Ack), 0)),
            ("h1_out", packet(1, Opcode::ReadResponseFirst, 8, ack(Syndrome::Ack), 1_024)),
            ("h1_out", packet(1, Opcode::ReadResponseLast, 9, ack(Syndrome::Ack), 976)),
            (
                "h1_out",
                packet(
                    1,
                    Opcode::AtomicAcknowledge,
                    10,
                    Extension::AtomicAck(
                        Aeth { syndrome: Syndrome::Ack.code(), msn: 0 },
                        AtomicAckEth { original: 3 },
                    ),
                    0,
                ),
            ),
        ];
        let of = |what, address, kinds: &str| (Some(what), Some(address), true, None, kinds.to_owned());
        assert_eq!(
            shapes(&frames),
            [
                of(OperationKind::Write, 0x40, "WRITE ONLY, WRITE ONLY, ACK"),
                of(OperationKind::Write, 0x100, "WRITE FIRST, WRITE LAST, ACK"),
                of(OperationKind::Read, 0x80, "READ REQUEST, RESPONSE FIRST, RESPONSE LAST"),
                of(OperationKind::Modify, 0x10, "FETCH ADD, ATOMIC ACK"),
            ]
        );
    }

    #[test]
    fn what_was_refused_or_lost_is_told() {
        let access = ack(Syndrome::Nak(Nak::RemoteAccess));
        let frames = [
            ("h1_in", packet(0, Opcode::ReadRequest, psn::MAX, reth(0x80, 8), 0)),
            ("h1_out", packet(1, Opcode::ReadResponseOnly, psn::MAX, ack(Syndrome::Ack), 8)),
            ("h1_in", packet(0, Opcode::ReadRequest, 0, reth(0x1000, 8), 0)),
            ("h1_out", packet(1, Opcode::Acknowledge, 0, access, 0)),
            ("h1_in", packet(0, Opcode::WriteOnly, 1, reth(0x40, 8), 8)),
        ];
        let said: Vec<_> =
            shapes(&frames).into_iter().map(|(_, _, complete, refused, _)| (complete, refused)).collect();
        let refused = Some("the memory does not permit it".to_owned());
        assert_eq!(said, [(true, None), (true, refused), (false, None)]);
    }
}
