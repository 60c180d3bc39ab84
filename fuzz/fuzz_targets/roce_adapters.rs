//! Two Soft-RoCE adapters take any packets, in any order, from each other and forged; each request ends once and in order,
//! and nothing changes that may not be written.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{Adapter, Completion, Config, Connection, Region, Regions, Request, Rights};
use p4rack_wire::roce::frame::{self, Extension, Path};
use p4rack_wire::roce::{Aeth, AtomicAckEth, AtomicEth, Bth, ImmDt, Mtu, Opcode, Reth};
use p4rack_wire::{MacAddr, Nanos};

const QPN: u32 = 5;
const REQUESTS_MAX: usize = 16;
const RECEIVES_MAX: usize = 4;

#[derive(Arbitrary, Debug)]
enum Step {
    Send {
        node: bool,
        bytes: u16,
        immediate: Option<u32>,
    },
    Write {
        node: bool,
        key: u8,
        address: u16,
        bytes: u16,
        immediate: Option<u32>,
    },
    Read {
        node: bool,
        key: u8,
        address: u16,
        bytes: u16,
    },
    Add {
        node: bool,
        key: u8,
        address: u8,
    },
    Swap {
        node: bool,
        key: u8,
        address: u8,
        compare: u8,
    },
    Receive {
        node: bool,
        bytes: u16,
    },
    /// A packet of any kind, with numbers near the real ones.
    Forge {
        node: bool,
        opcode: u8,
        psn: i8,
        number: u16,
        key: u8,
        syndrome: u8,
        payload: u16,
        ask: bool,
    },
    /// Any bytes.
    Bytes {
        node: bool,
        bytes: Vec<u8>,
    },
    /// Sends frames; bits say which are lost or come twice.
    Exchange {
        fates: u32,
        times: u8,
    },
    Wait(u16),
    Fetch,
}

fn connection(node: usize) -> Connection {
    let mac = |node: usize| MacAddr([2, 0, 0, 0, 0, node as u8]);
    let ip = |node: usize| [10, 0, 0, node as u8].into();
    let path = Path {
        src_mac: mac(node),
        dst_mac: mac(1 - node),
        src_ip: ip(node),
        dst_ip: ip(1 - node),
        src_port: 0xc000,
        dscp: 0,
    };
    Connection { path, peer_qpn: QPN, send_psn: 0xff_fff0, receive_psn: 0xff_fff0, domain: 0 }
}

fn adapter(node: usize) -> Adapter<Regions> {
    let mut regions = Regions::default();
    let read_only = Rights { read: true, ..Rights::default() };
    for (key, start, rights) in [(0, 0, Rights::ALL), (1, 4_096, read_only)] {
        let region = Region { domain: 0, key, start, bytes: vec![0; 2_048], rights };
        regions.register(region).expect("apart");
    }
    let config = Config {
        mtu: Mtu::B256,
        message_bytes_max: 2_048,
        requests_max: REQUESTS_MAX,
        receives_max: RECEIVES_MAX,
        reads_max: 3,
        window_packets: 12,
        ..Config::default()
    };
    let mut adapter = Adapter::new(config, regions).expect("right");
    adapter.add_pair(QPN, connection(node)).expect("free");
    adapter
}

fn extension(opcode: Opcode, number: u64, key: u32, syndrome: u8) -> Extension {
    let (reth, data) = (Reth { address: number & 0x1fff, key, bytes: number as u32 >> 4 }, ImmDt { data: 1 });
    let aeth = Aeth { syndrome, msn: 0 };
    match opcode as u8 {
        6 | 10 | 12 => Extension::Rdma(reth, None),
        11 => Extension::Rdma(reth, Some(data)),
        3 | 5 | 9 => Extension::Immediate(data),
        13 | 15..=17 => Extension::Ack(aeth),
        18 => Extension::AtomicAck(aeth, AtomicAckEth { original: number }),
        19 | 20 => Extension::Atomic(AtomicEth { address: number & 0x1ff8, key, swap_or_add: 1, compare: 0 }),
        _ => Extension::None,
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut nodes = [adapter(0), adapter(1)];
    let (mut now, mut out) = (Nanos::ZERO, Vec::new());
    let (mut asked, mut ended) = ([0u64; 2], [0u64; 2]);
    for step in steps {
        let key = |key: u8| u32::from(key % 3);
        let (node, request) = match step {
            Step::Send { node, bytes, immediate: data } => {
                (node, Request::Send { bytes: vec![1; (bytes % 2_100).into()], immediate: data })
            }
            Step::Write { node, key: number, address, bytes, immediate: data } => {
                let (key, bytes) = (key(number), vec![1; (bytes % 2_100).into()]);
                (node, Request::Write { key, address: address.into(), bytes, immediate: data })
            }
            Step::Read { node, key: number, address, bytes } => {
                let bytes = u32::from(bytes % 2_100);
                (node, Request::Read { key: key(number), address: address.into(), bytes })
            }
            Step::Add { node, key: number, address } => {
                (node, Request::FetchAdd { key: key(number), address: 4 * u64::from(address), add: 1 })
            }
            Step::Swap { node, key: number, address, compare } => {
                let (key, address) = (key(number), 4 * u64::from(address));
                (node, Request::CompareSwap { key, address, compare: compare.into(), swap: 9 })
            }
            Step::Receive { node, bytes } => {
                let _ = nodes[usize::from(node)].handle_receive(QPN, bytes.into());
                continue;
            }
            Step::Forge { node, opcode, psn, number, key: of, syndrome, payload, ask } => {
                let opcode = Opcode::ALL[usize::from(opcode) % Opcode::ALL.len()];
                let psn = 0xff_fff0u32.wrapping_add_signed(psn.into()) & 0xff_ffff;
                let mut bth = Bth::new(opcode, QPN, psn);
                bth.ack_request = ask;
                let payload = vec![2; if opcode.has_payload() { (payload % 300).into() } else { 0 }];
                let extension = extension(opcode, number.into(), key(of), syndrome);
                let path = &connection(usize::from(!node)).path;
                frame::compose(path, bth, &extension, &payload, &mut out);
                nodes[usize::from(node)].handle_link(&out, now, now);
                continue;
            }
            Step::Bytes { node, bytes } => {
                nodes[usize::from(node)].handle_link(&bytes, now, now);
                continue;
            }
            Step::Exchange { fates, times } => {
                for turn in 0..u32::from(times) {
                    for from in 0..2 {
                        let fate = fates.rotate_right(2 * turn + from as u32) & 3;
                        if nodes[from].poll_link(now, &mut out).is_some() {
                            (0..[1, 1, 0, 2][fate as usize])
                                .for_each(|_| nodes[1 - from].handle_link(&out, now, now));
                        }
                    }
                }
                continue;
            }
            Step::Wait(us) => {
                now = now.saturating_add(Nanos::from_micros(us.into()));
                nodes.iter_mut().for_each(|node| node.handle_timeout(now));
                assert!(nodes.iter().all(|node| node.next_timeout().is_none_or(|next| next > now)));
                continue;
            }
            Step::Fetch => {
                for (node, ended) in nodes.iter_mut().zip(&mut ended) {
                    let (mut requests, mut receives) = (0, 0);
                    while let Some((_, completion)) = node.poll_completion() {
                        if let Completion::Request(id, _) = completion {
                            assert_eq!(id, *ended, "in order, each once");
                            *ended += 1;
                            requests += 1;
                        } else {
                            receives += 1;
                        }
                    }
                    assert!(requests <= REQUESTS_MAX && receives <= RECEIVES_MAX);
                }
                continue;
            }
        };
        let node = usize::from(node);
        if let Ok(id) = nodes[node].handle_request(QPN, request) {
            assert_eq!(id, asked[node]);
            asked[node] += 1;
        }
    }
    for (node, adapter) in nodes.iter().enumerate() {
        assert!(ended[node] <= asked[node]);
        assert_eq!(adapter.memory().get(1).expect("never removed").bytes, [0; 2_048], "read only");
    }
});
