use super::*;
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::{Extension, Path, compose};
use p4rack_wire::roce::{Aeth, Bth, Opcode, Reth, Syndrome};
use std::net::Ipv4Addr;

const NODE: u8 = 1;
const POOL: u8 = 2;
const ENGINE: u8 = 3;
/// Where the set and its region begin.
const SET_AT: u64 = 0x1_0000;
const REGION_AT: u64 = 0x9000;
/// Request data and response data in the set.
const PAYLOAD_AT: u64 = 384;
const RESPONSE_AT: u64 = 448;

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

/// A capture: frames and where each was seen.
#[derive(Default)]
struct Capture(Vec<(&'static str, Vec<u8>)>);

impl Capture {
    fn packet(
        &mut self,
        at: &'static str,
        (from, to): (u8, u8),
        bth: (Opcode, u32, u32),
        extension: Extension,
        payload: &[u8],
    ) {
        let ip = |host: u8| Ipv4Addr::new(10, 0, 0, host);
        let (src_mac, dst_mac, src_ip, dst_ip) = (mac(from), mac(to), ip(from), ip(to));
        let path = Path { src_mac, dst_mac, src_ip, dst_ip, src_port: 0xc000, dscp: 0 };
        let (opcode, qpn, psn) = bth;
        let mut frame = Vec::new();
        compose(&path, Bth::new(opcode, qpn, psn), &extension, payload, &mut frame);
        self.0.push((at, frame));
    }

    /// A READ on the queue pair to a host, with its answer.
    fn read(&mut self, to: u8, qpn: u32, psn: u32, address: u64, answer: &[u8]) {
        self.ask(to, qpn, psn, address, answer.len() as u32);
        self.answer(to, qpn, psn, answer);
    }

    fn ask(&mut self, to: u8, qpn: u32, psn: u32, address: u64, bytes: u32) {
        let reth = Reth { address, key: 1, bytes };
        self.packet("a", (ENGINE, to), (Opcode::ReadRequest, qpn, psn), Extension::Rdma(reth, None), &[]);
    }

    fn answer(&mut self, to: u8, qpn: u32, psn: u32, answer: &[u8]) {
        let ack = Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn: 0 });
        self.packet("b", (to, ENGINE), (Opcode::ReadResponseOnly, 100 + qpn, psn), ack, answer);
    }

    /// A WRITE, acknowledged if that is asked for.
    fn write(&mut self, to: u8, qpn: u32, psn: u32, address: u64, bytes: &[u8], acknowledged: bool) {
        let reth = Reth { address, key: 1, bytes: bytes.len() as u32 };
        self.packet("a", (ENGINE, to), (Opcode::WriteOnly, qpn, psn), Extension::Rdma(reth, None), bytes);
        if acknowledged {
            let ack = Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn: 0 });
            self.packet("b", (to, ENGINE), (Opcode::Acknowledge, 100 + qpn, psn), ack, &[]);
        }
    }

    fn operations(&self) -> Vec<Operation> {
        let seen = self.0.iter().zip(0..).map(|((at, frame), time)| Seen { time: Nanos(time), at, frame });
        operations(&seen.collect::<Vec<_>>())
    }
}

fn entry(kind: Kind, number: u64, remote: u64, local: u64, length: u32) -> Vec<u8> {
    let (req_addr, resp_addr) = match kind {
        Kind::Read => (remote, local),
        Kind::Write => (local, remote),
    };
    let request_id = RequestId::new(kind, 0, number).0;
    let mut bytes = vec![0; Entry::BYTES];
    Entry { request_id, rw_type: kind as u16, region_id: 0, length, req_addr, resp_addr }.emit(&mut bytes);
    bytes
}

fn green(request_tail: u64) -> Vec<u8> {
    let mut bytes = vec![0; Green::BYTES];
    let (request_data_tail, response_data_reserved, response_data_head) = (0, 0, 0);
    Green { request_tail, request_data_tail, response_data_reserved, response_data_head }.emit(&mut bytes);
    bytes
}

fn red(reads: u64, writes: u64, refusal: u64) -> Vec<u8> {
    let mut bytes = vec![0; Red::BYTES];
    let (request_head, write_progress, read_progress) = (reads + writes, writes, reads);
    let (request_data_head, response_data_tail) = (0, 0);
    Red { request_head, request_data_head, response_data_tail, write_progress, read_progress, refusal }
        .emit(&mut bytes);
    bytes
}

/// Of a request: its kind, its address, whether it is complete, and its frames, those of each part behind a name.
fn shape(one: &Operation) -> (Option<OperationKind>, Option<u64>, bool, String) {
    let frames: Vec<_> = one
        .events
        .iter()
        .map(|event| format!("{} {}", event.says.split(':').next().unwrap_or_default(), event.kind))
        .collect();
    (one.what, one.address, one.complete, frames.join(", "))
}

#[test]
fn requests_of_an_engine_on_a_host_are_put_together() {
    let mut capture = Capture::default();
    let (node, pool) = (7, 8);
    // Both blocks, as an engine reads them first. A read of an earlier lap is done.
    let mut blocks = vec![0; 2 * BLOCK_BYTES as usize];
    blocks[..Green::BYTES].copy_from_slice(&green(1));
    blocks[RED_AT as usize..][..Red::BYTES].copy_from_slice(&red(1, 0, 0));
    capture.read(NODE, node, 0, SET_AT, &blocks);
    let done = entry(Kind::Read, 1, 0x40, RESPONSE_AT, 8);
    capture.read(NODE, node, 1, SET_AT, &green(1));
    capture.read(NODE, node, 2, SET_AT + ENTRIES_AT, &[&done[..], &[0; 32]].concat());
    capture.read(NODE, node, 3, SET_AT, &green(5));
    // Two reads of the same bytes, one of others, and a write.
    let entries = [
        entry(Kind::Read, 2, 0x40, RESPONSE_AT, 8),
        entry(Kind::Write, 1, 0x80, PAYLOAD_AT, 16),
        entry(Kind::Read, 3, 0x40, RESPONSE_AT + 8, 8),
        entry(Kind::Read, 4, 0x100, RESPONSE_AT + 16, 8),
    ];
    capture.read(NODE, node, 4, SET_AT + ENTRIES_AT + 32, &entries.concat());
    capture.read(POOL, pool, 0, REGION_AT + 0x40, &[1; 8]);
    capture.read(NODE, node, 5, SET_AT + PAYLOAD_AT, &[2; 16]);
    capture.read(POOL, pool, 1, REGION_AT + 0x40, &[1; 8]);
    capture.read(POOL, pool, 2, REGION_AT + 0x100, &[3; 8]);
    capture.write(POOL, pool, 3, REGION_AT + 0x80, &[2; 16], true);
    // All responses in one WRITE. The last red block is not acknowledged.
    capture.write(NODE, node, 6, SET_AT + RESPONSE_AT, &[1; 24], true);
    capture.write(NODE, node, 7, SET_AT + RED_AT, &red(2, 1, 0), true);
    capture.write(NODE, node, 8, SET_AT + RED_AT, &red(4, 1, 0), false);
    let all = capture.operations();
    let pair = |part: &str| format!("{part} READ REQUEST, {part} RESPONSE ONLY");
    let written = |part: &str| format!("{part} WRITE ONLY, {part} ACK");
    let read = [pair("entry"), pair("pool"), written("response")].join(", ");
    assert_eq!(
        all.iter().map(shape).collect::<Vec<_>>(),
        [
            (Some(OperationKind::Read), Some(0x40), true, format!("{read}, {}", written("red block"))),
            (
                Some(OperationKind::Write),
                Some(0x80),
                true,
                [pair("entry"), pair("payload"), written("pool"), written("red block")].join(", ")
            ),
            (Some(OperationKind::Read), Some(0x40), false, format!("{read}, red block WRITE ONLY")),
            (Some(OperationKind::Read), Some(0x100), false, format!("{read}, red block WRITE ONLY")),
        ]
    );
    assert!(all.iter().all(|one| (one.from, one.to) == (mac(NODE), mac(POOL))));
    assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), [2, 1, 3, 4]);
    // Each read has its own transfer from the pool.
    let from_pool = |one: &Operation| {
        let events = one.events.iter().filter(|event| event.says.starts_with("pool"));
        events.map(|event| event.time_ns).min()
    };
    assert_eq!([&all[0], &all[2]].map(from_pool), [Some(10), Some(14)]);
}

/// Its sequence numbers follow from positions, and each purpose has a queue pair. While a set is at rest, the same entry is read again
/// and again.
#[test]
fn requests_of_an_engine_in_the_switch_begin_with_the_read_that_finds_them() {
    let mut capture = Capture::default();
    let (probe, guess, response, red_block, pool) = (10, 11, 13, 14, 15);
    let word = |bytes: Vec<u8>| [bytes, vec![0; 8]].concat();
    // Two READs with the same number, answered the other way round.
    capture.ask(NODE, probe, 0, SET_AT, 8);
    capture.ask(NODE, guess, 0, SET_AT + ENTRIES_AT, 40);
    capture.answer(NODE, guess, 0, &[0; 40]);
    capture.answer(NODE, probe, 0, &green(0)[..8]);
    for turn in 1..3 {
        capture.read(NODE, probe, turn, SET_AT, &green(0)[..8]);
        capture.read(NODE, guess, 0, SET_AT + ENTRIES_AT, &[0; 40]);
    }
    let found = capture.0.len() as u64;
    let asked = entry(Kind::Read, 1, 0x1000, RESPONSE_AT, 24);
    capture.read(NODE, guess, 0, SET_AT + ENTRIES_AT, &word(asked));
    capture.read(POOL, pool, 0, REGION_AT + 0x1000, &[3; 24]);
    capture.write(NODE, response, 0, SET_AT + RESPONSE_AT, &[3; 24], true);
    capture.write(NODE, red_block, 0, SET_AT + RED_AT, &red(1, 0, 0), true);
    let all = capture.operations();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (one.address, one.bytes, one.complete, one.refused.as_deref()),
        (Some(0x1000), Some(24), true, None)
    );
    assert_eq!((one.events[0].time_ns, one.events.len()), (found, 8));
}

#[test]
fn requests_of_a_set_that_an_engine_gives_up_are_refused() {
    let mut capture = Capture::default();
    capture.read(NODE, 7, 0, SET_AT, &green(1));
    capture.read(NODE, 7, 1, SET_AT + ENTRIES_AT, &entry(Kind::Read, 9, 0x40, RESPONSE_AT, 8));
    capture.write(NODE, 7, 2, SET_AT + RED_AT, &red(0, 0, 7), true);
    let all = capture.operations();
    assert_eq!(all.len(), 1);
    assert!(!all[0].complete && all[0].refused.as_ref().is_some_and(|why| why.contains("ended the set")));
    // Without the other block there is no set.
    capture.0.truncate(4);
    assert!(capture.operations().is_empty());
}
