//! RDMA's operations, of pools and of Cowbird's engines: requests, and what their responders answer.
//!
//! A packet names the receiver's queue pair alone. So requests are known by the pair that they are for, and the answers' pair is found by
//! the first answer whose sequence number is that of a request to its sender.

use super::operation::{Operation, Seen, What, begin};
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

/// Requests by their first sequence numbers: their positions.
type Requests = BTreeMap<u32, usize>;

/// The request that a sequence number belongs to.
fn covering(requests: &Requests, number: u32) -> Option<usize> {
    let (first, nth) = requests.range(..=number).next_back().or_else(|| requests.iter().next_back())?;
    (psn::distance(*first, number) < NEAR).then_some(*nth)
}

/// Operations of all frames, which are in order of time, in the order in which they begin.
pub fn operations(seen: &[Seen<'_>]) -> Vec<Operation> {
    let mut all: Vec<Operation> = Vec::new();
    let mut flows: HashMap<Flow, Requests> = HashMap::new();
    // Requests by the flow of their answers.
    let mut asked: HashMap<Flow, Flow> = HashMap::new();
    for seen in seen {
        let Ok(frame) = parse(seen.frame, false) else { continue };
        let flow = Flow { from: frame.ethernet.src, to: frame.ethernet.dst, qpn: frame.packet.bth.qpn };
        let number = frame.packet.bth.psn;
        if !frame.packet.opcode.is_response() {
            request(&mut all, flows.entry(flow).or_default(), seen, flow, &frame.packet);
            continue;
        }
        let of = asked.get(&flow).copied().or_else(|| {
            let is_asked = |(asked, requests): &(&Flow, &Requests)| {
                asked.from == flow.to && asked.to == flow.from && covering(requests, number).is_some()
            };
            let far = |requests: &Requests| {
                let first = requests.range(..=number).next_back().or_else(|| requests.iter().next_back());
                first.map_or(u32::MAX, |(first, _)| psn::distance(*first, number))
            };
            let nearest = flows.iter().filter(is_asked).min_by_key(|(_, requests)| far(requests));
            nearest.map(|(asked, _)| *asked)
        });
        let Some(requests) = of.and_then(|of| flows.get(&of)) else { continue };
        if let Some(of) = of {
            asked.insert(flow, of);
        }
        answer(&mut all, requests, seen, &frame.packet);
    }
    all
}

fn request(
    all: &mut Vec<Operation>,
    requests: &mut Requests,
    seen: &Seen<'_>,
    flow: Flow,
    packet: &Packet<'_>,
) {
    let Packet { bth, opcode, extension, payload } = packet;
    let (what, address, bytes) = match extension {
        Extension::Rdma(reth, _) if *opcode == Opcode::ReadRequest => {
            (What::Read, Some(reth.address), Some(reth.bytes))
        }
        Extension::Rdma(reth, _) => (What::Write, Some(reth.address), Some(reth.bytes)),
        Extension::Atomic(atomic) => (What::Modify, Some(atomic.address), Some(8)),
        Extension::None | Extension::Immediate(_) => (What::Send, None, None),
        Extension::Ack(_) | Extension::AtomicAck(..) => return,
    };
    let nth = if opcode.is_first() {
        // The same frame on another link, or sent again.
        *requests.entry(bth.psn).or_insert_with(|| {
            let nth = begin(all, flow.from, flow.to, bth.psn);
            (all[nth].what, all[nth].address, all[nth].bytes) = (Some(what), address, bytes);
            nth
        })
    } else {
        match covering(requests, bth.psn) {
            Some(nth) => nth,
            None => return,
        }
    };
    let says = match (address, bytes) {
        (Some(address), Some(bytes)) if what == What::Write => {
            format!("{} of {bytes} bytes at {address:#x}", payload.len())
        }
        (Some(address), Some(bytes)) => format!("{bytes} bytes at {address:#x}"),
        _ => format!("{} bytes", payload.len()),
    };
    all[nth].add(seen, name(*opcode), says, false);
}

fn answer(all: &mut [Operation], requests: &Requests, seen: &Seen<'_>, packet: &Packet<'_>) {
    let Packet { bth, opcode, extension, payload } = packet;
    let Some(nth) = covering(requests, bth.psn) else { return };
    let syndrome = match extension {
        Extension::Ack(aeth) | Extension::AtomicAck(aeth, _) => Syndrome::of(aeth.syndrome).ok(),
        _ => Some(Syndrome::Ack),
    };
    let kind = name(*opcode);
    match (syndrome, extension) {
        (Some(Syndrome::Nak(Nak::Sequence)), _) => {
            return all[nth].add(seen, "NAK", "packets are missing before this one".to_owned(), false);
        }
        (Some(Syndrome::ReceiverNotReady(_)), _) => {
            return all[nth].add(seen, "RNR NAK", "ask again later".to_owned(), false);
        }
        (Some(Syndrome::Nak(nak)), _) => {
            let why = match nak {
                Nak::InvalidRequest => "the request makes no sense",
                Nak::RemoteAccess => "the memory does not permit it",
                Nak::RemoteOperational | Nak::Sequence => "the responder failed",
            };
            all[nth].refused = Some(why.to_owned());
            return all[nth].add(seen, "NAK", why.to_owned(), true);
        }
        (None, _) => return,
        (Some(Syndrome::Ack), Extension::AtomicAck(_, answer)) => {
            all[nth].add(seen, kind, format!("the word was {:#x}", answer.original), true);
        }
        (Some(Syndrome::Ack), _) if *opcode != Opcode::Acknowledge => {
            all[nth].add(seen, kind, format!("{} bytes", payload.len()), opcode.is_last());
        }
        (Some(Syndrome::Ack), _) => {}
    }
    // What comes before in the flow is done as well.
    for nth in requests.range(..=bth.psn).rev().map(|(_, nth)| *nth) {
        if !matches!(all[nth].what, Some(What::Write | What::Send)) {
            continue;
        }
        if all[nth].was_seen("ACK", seen.at) {
            break;
        }
        all[nth].add(seen, "ACK", format!("up to packet {}", bth.psn), true);
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

    /// Of an operation: what it does, its address, whether it is complete, why it was refused, and its frames.
    type Shape = (Option<What>, Option<u64>, bool, Option<String>, String);

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
                of(What::Write, 0x40, "WRITE ONLY, WRITE ONLY, ACK"),
                of(What::Write, 0x100, "WRITE FIRST, WRITE LAST, ACK"),
                of(What::Read, 0x80, "READ REQUEST, RESPONSE FIRST, RESPONSE LAST"),
                of(What::Modify, 0x10, "FETCH ADD, ATOMIC ACK"),
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
