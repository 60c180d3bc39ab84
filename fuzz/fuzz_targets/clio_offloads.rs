//! The loader of a board's offloads takes any bytes as a module, and the board's own offloads any arguments. A module that loads runs
//! within its limits, and the memory of an uninvolved process is unchanged.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Board, Config, Grant, Pool, Quota, Quotas};
use p4rack_fabric::clio::token::Secret;
use p4rack_offload::wasm::{Limits, Program, Wasm};
use p4rack_offload::{Kv, Offloads, PointerChase, Progress};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{AllocBody, Header, Kind, Manage, PageSize, Status, VERSION, packet};
use std::sync::LazyLock;

const PAGE: u64 = 4_096;
/// Bytes of the store.
const STORE: u64 = 8 * PAGE;
/// Contents of the uninvolved process's memory.
const MARK: [u8; 24] = [0x5c; 24];
const LIMITS: Limits = Limits {
    module_bytes: 4_096,
    memory_bytes: 128 << 10,
    result_bytes: 1_024,
    fuel: 20_000,
    slice_fuel: 2_000,
};

/// A module: any bytes, or the example with other bytes at some places.
#[derive(Arbitrary, Debug)]
enum Module {
    Bytes(Vec<u8>),
    Changed(Vec<(u16, u8)>),
}

impl Module {
    fn bytes(self) -> Vec<u8> {
        static EXAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
            wat::parse_str(include_str!("../../examples/offload/sum.wat")).expect("a module in text form")
        });
        match self {
            Module::Bytes(bytes) => bytes,
            Module::Changed(changes) => {
                let mut bytes = EXAMPLE.clone();
                let count = bytes.len();
                changes.into_iter().for_each(|(at, to)| bytes[usize::from(at) % count] = to);
                bytes
            }
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    module: Module,
    /// Offload, function, arguments.
    calls: Vec<(u8, u8, Vec<u8>)>,
}

struct Rig {
    board: Board<Vec<u8>, ()>,
    offloads: Offloads,
    now: Nanos,
    ids: u64,
}

impl Rig {
    fn begin(&mut self) -> Grant {
        let mut quotas = Quotas::default();
        quotas[PageSize::K4 as usize] = Quota { reserved: 0, limit: 20, shared: 0 };
        self.board.begin(quotas).expect("room")
    }

    /// A request of one packet: status and address of its answer, and the bytes of all its packets.
    fn ask(&mut self, grant: &Grant, kind: Kind, code: u8, address: u64, data: &[u8]) -> (u8, u64, Vec<u8>) {
        self.ids += 1;
        let length = if kind == Kind::Read { MARK.len() as u32 } else { data.len() as u32 };
        let header = Header {
            version: VERSION,
            kind: kind as u8,
            code,
            flags: 0,
            attempt: 0,
            index: 0,
            packets: 1,
            id: self.ids,
            address,
            pid: grant.space.pid,
            length,
            token: grant.token,
            epoch: grant.space.epoch,
            reserved: 0,
            crc: 0,
        };
        let (mut out, mut bytes) = (Vec::new(), Vec::new());
        packet::compose(&header, data, &mut out);
        self.board.handle_link(((), &out), self.now, self.now);
        // A call has a bound of slices, with any module.
        let mut slices = 0;
        while self.offloads.step(&mut self.board, self.now) != Progress::Idle {
            slices += 1;
            assert!(slices <= 1 + LIMITS.fuel / LIMITS.slice_fuel, "a call without end");
        }
        loop {
            let mut last = None;
            while self.board.poll_link(self.now, &mut out).is_some() {
                let answer = packet::parse_intact(&out).expect("boards send whole packets");
                bytes.extend_from_slice(answer.data);
                last = Some(answer.header);
            }
            if let Some(last) = last {
                return (last.code, last.address, bytes);
            }
            self.now = self.now.max(self.board.next_timeout().expect("it is at work"));
            self.board.handle_timeout(self.now);
        }
    }

    fn alloc(&mut self, grant: &Grant, bytes: u64) -> u64 {
        let mut body = [0; AllocBody::BYTES];
        AllocBody { bytes, page_size: 0, rights: 3, reserved: 0 }.emit(&mut body);
        self.ask(grant, Kind::Manage, Manage::Alloc as u8, 0, &body).1
    }
}

fuzz_target!(|input: Input| {
    let pool = Pool { size: PageSize::K4, frames: 32, ready: 32 };
    let config = Config { calls_max: [2, 2], data_bytes_max: 256, ..Config::new(vec![pool]) };
    let memory = vec![0; config.bytes() as usize];
    let board = Board::new(config, Secret::new([5; 16]), memory).expect("in range");
    let mut rig = Rig { board, offloads: Offloads::default(), now: Nanos::ZERO, ids: 0 };
    while let Some(at) = rig.board.next_timeout().filter(|at| at.0 < 10_000_000) {
        rig.now = rig.now.max(at);
        rig.board.handle_timeout(rig.now);
    }
    let (beside, caller) = (rig.begin(), rig.begin());
    let mine = rig.alloc(&beside, PAGE);
    assert_eq!(rig.ask(&beside, Kind::Write, 0, mine, &MARK).0, Status::Done as u8);
    let own = rig.begin();
    let start = rig.alloc(&own, STORE);
    rig.offloads.add(own.space, Box::new(PointerChase));
    rig.offloads.add(own.space, Box::new(Kv::new(own.space, start, STORE, 5, 9)));
    if let Ok(program) = Program::new(&input.module.bytes(), LIMITS) {
        let space = rig.begin();
        let start = rig.alloc(&space, PAGE);
        rig.offloads.add(space.space, Box::new(Wasm::new(program, space.space, (start, PAGE))));
    }
    rig.alloc(&caller, PAGE);
    for (offload, function, mut arguments) in input.calls.into_iter().take(16) {
        arguments.truncate(1_000);
        rig.ask(&caller, Kind::Call, function, u64::from(offload % 4), &arguments);
    }
    assert_eq!(rig.ask(&beside, Kind::Read, 0, mine, &[]).2, MARK);
});
