//! Compute and memory nodes around the exact scheduler, with messages that get lost, come twice, or are made up.

use super::compute::{self, Outcome, Refused, Request};
use super::memory::{self, Region, Rights};
use super::window;
use crate::Machine as _;
use crate::edm::scheduler::{self, Demand, Scheduler};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Control, Kind, Message, Opcode, Status, VERSION};
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEY: u32 = 7;
const START: u64 = 0x1000;
const BYTES: usize = 4_096;
/// Port of the memory node; all below are compute nodes.
const MEMORY: u16 = 3;

/// A memory node with this region, in session 0 with compute nodes 0 to 9.
pub(super) fn memory(config: memory::Config, region: Region) -> memory::MemoryNode {
    let mut node = memory::MemoryNode::new(config, vec![region]).unwrap();
    (0..10).for_each(|with| node.begin_session(with, 0));
    node
}

/// A compute node in session 0 with memory nodes 0 to 9.
pub(super) fn compute(config: compute::Config) -> compute::ComputeNode {
    let mut node = compute::ComputeNode::new(config, 1);
    (0..10).for_each(|with| node.begin_session(with, 0));
    node
}

/// Fate of a message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    Twice,
}

/// Three compute nodes, a memory node and the switch between them.
struct Rack {
    computes: Vec<compute::ComputeNode>,
    memory: memory::MemoryNode,
    scheduler: Scheduler,
    /// Requests that the switch holds until their grant: by compute node and id.
    held: BTreeMap<(u16, u16), Vec<u8>>,
    now_ps: u64,
    fates: Vec<Fate>,
    nth: usize,
    outcomes: BTreeMap<(u16, u64), Outcome>,
}

impl Rack {
    fn new(fates: Vec<Fate>) -> Rack {
        let rights = Rights { read: true, write: true };
        let region = Region { start: START, bytes: vec![0; BYTES], key: KEY, rights };
        Rack {
            computes: vec![compute::ComputeNode::new(compute::Config::default(), 0); usize::from(MEMORY)],
            memory: memory::MemoryNode::new(memory::Config::default(), vec![region]).unwrap(),
            scheduler: Scheduler::new(scheduler::Config::new(MEMORY + 1, 100_000_000_000)).unwrap(),
            held: BTreeMap::new(),
            now_ps: 0,
            fates,
            nth: 0,
            outcomes: BTreeMap::new(),
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ps / 1_000)
    }

    fn fate(&mut self) -> usize {
        self.nth += 1;
        match self.fates.get(self.nth % self.fates.len().max(1)) {
            Some(Fate::Lost) => 0,
            Some(Fate::Twice) => 2,
            _ => 1,
        }
    }

    /// Lets everything happen that can, and time pass until nothing waits.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            let moved = self.exchange();
            let timeouts = self.computes.iter().filter_map(compute::ComputeNode::next_timeout);
            let timer_ps = timeouts.map(|at| at.0 * 1_000).min();
            let next = [self.scheduler.next_timeout(), timer_ps].into_iter().flatten().min();
            match next {
                _ if moved => {}
                Some(at_ps) => self.now_ps = self.now_ps.max(at_ps),
                None => return,
            }
        }
        panic!("never quiet");
    }

    fn exchange(&mut self) -> bool {
        let (mut out, mut moved, now) = (Vec::new(), false, self.now());
        for node in 0..MEMORY {
            self.computes[usize::from(node)].handle_timeout(now);
            while let Some(to) = self.computes[usize::from(node)].poll_link(now, &mut out) {
                assert_eq!(to, MEMORY);
                moved = true;
                for _ in 0..self.fate() {
                    self.sent_by_compute(node, &out);
                }
            }
            while let Some((token, outcome)) = self.computes[usize::from(node)].poll_completion() {
                assert!(self.outcomes.insert((node, token), outcome).is_none(), "completed twice");
            }
        }
        while let Some(grant) = self.scheduler.poll_grant(self.now_ps) {
            moved = true;
            self.granted(&grant);
        }
        while let Some(to) = self.memory.poll_link(now, &mut out) {
            moved = true;
            for _ in 0..self.fate() {
                self.computes[usize::from(to)].handle_link((MEMORY, &out), now, now);
            }
        }
        moved
    }

    fn sent_by_compute(&mut self, node: u16, bytes: &[u8]) {
        let kind = Kind::of(bytes[0]).unwrap();
        let (source, destination) = if kind == Kind::Notify { (node, MEMORY) } else { (MEMORY, node) };
        let (id, total) = match kind {
            Kind::Notify => Control::parse(bytes).map(|notify| (notify.id, notify.bytes)).unwrap(),
            Kind::Wreq => return self.memory.handle_link((node, bytes), self.now(), self.now()),
            _ => Message::parse(bytes).map(|request| (request.id, request.total)).unwrap(),
        };
        let kind = match kind {
            Kind::Notify => scheduler::Kind::Write,
            Kind::Rreq => scheduler::Kind::Read,
            _ => scheduler::Kind::Modify,
        };
        let demand = Demand { source, destination, id: id as u8, kind, bytes: total, token: u32::from(id) };
        if self.scheduler.handle_demand(node, demand, self.now_ps).is_ok() && kind != scheduler::Kind::Write {
            self.held.insert((node, id), bytes.to_vec());
        }
    }

    fn granted(&mut self, grant: &scheduler::Grant) {
        let (demand, id) = (&grant.demand, grant.demand.token as u16);
        let answer = demand.kind.is_implicit();
        let (copies, now) = (self.fate(), self.now());
        if answer && grant.is_first() {
            let request = self.held.remove(&(demand.destination, id)).unwrap();
            (0..copies).for_each(|_| self.memory.handle_link((demand.destination, &request), now, now));
            return;
        }
        let mut bytes = [0; Control::BYTES];
        let (kind, answer, offset) = (Kind::Grant as u8, u8::from(answer), grant.offset);
        Control { version: VERSION, kind, answer, id, offset, bytes: grant.bytes, wait: 0 }.emit(&mut bytes);
        for _ in 0..copies {
            match answer {
                1 => self.memory.handle_link((demand.destination, &bytes), now, now),
                _ => self.computes[usize::from(demand.source)].handle_link((MEMORY, &bytes), now, now),
            }
        }
    }

    fn ask(&mut self, node: u16, address: u64, request: Request) -> u64 {
        let now = self.now();
        self.computes[usize::from(node)].handle_request(MEMORY, KEY, address, request, now).unwrap()
    }

    fn outcome(&mut self, node: u16, address: u64, request: Request) -> Outcome {
        let token = self.ask(node, address, request);
        self.settle();
        self.outcomes.remove(&(node, token)).unwrap()
    }

    fn words(&self) -> Vec<u64> {
        let bytes = &self.memory.regions()[0].bytes;
        bytes.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().unwrap())).collect()
    }
}

#[test]
fn what_is_written_is_read_and_atomic_operations_answer_the_old_word() {
    let mut rack = Rack::new(Vec::new());
    let data: Vec<u8> = (0..1_000u32).map(|n| n as u8).collect();
    assert_eq!(rack.outcome(0, START + 8, Request::Write(data.clone())), Outcome::Sent);
    assert_eq!(rack.outcome(1, START + 8, Request::Read(1_000)), Outcome::Answer(data));
    let old = |word: u64| Outcome::Answer(word.to_be_bytes().to_vec());
    let mut modify = |opcode, operands| rack.outcome(2, START, Request::Modify(opcode, operands));
    assert_eq!(modify(Opcode::Swap, [5, 0]), old(0));
    assert_eq!(modify(Opcode::Cas, [5, 9]), old(5));
    assert_eq!(modify(Opcode::Cas, [5, 1]), old(9));
    assert_eq!(modify(Opcode::FetchAdd, [u64::MAX, 0]), old(9));
    assert_eq!(modify(Opcode::And, [12, 0]), old(8));
    assert_eq!(modify(Opcode::Or, [3, 0]), old(8));
    assert_eq!(modify(Opcode::Xor, [1, 0]), old(11));
    assert_eq!(modify(Opcode::Min, [4, 0]), old(10));
    assert_eq!(modify(Opcode::Max, [6, 0]), old(4));
    assert_eq!(modify(Opcode::Max, [1, 0]), old(6));
    assert_eq!((rack.words()[0], rack.memory.counters().modifies), (6, 10));
}

#[test]
fn what_is_not_permitted_is_refused_and_counted_and_the_node_serves_on() {
    let mut rack = Rack::new(Vec::new());
    let end = START + BYTES as u64;
    for (address, request, status) in [
        (0, Request::Read(8), Status::NoSuchAddress),
        (end - 8, Request::Read(9), Status::NoSuchAddress),
        (u64::MAX - 3, Request::Read(8), Status::NoSuchAddress),
        (START + 4, Request::Modify(Opcode::Swap, [1, 0]), Status::BadOperation),
    ] {
        assert_eq!(rack.outcome(0, address, request), Outcome::Refused(status), "{address:#x}");
    }
    let now = rack.now();
    let token = rack.computes[0].handle_request(MEMORY, KEY + 1, START, Request::Read(8), now).unwrap();
    rack.settle();
    assert_eq!(rack.outcomes[&(0, token)], Outcome::Refused(Status::WrongKey));
    let now = rack.now();
    let refused =
        |node: &mut compute::ComputeNode, request| node.handle_request(MEMORY, KEY, START, request, now);
    assert_eq!(refused(&mut rack.computes[0], Request::Read(0)), Err(Refused::BadLength));
    assert_eq!(refused(&mut rack.computes[0], Request::Write(Vec::new())), Err(Refused::BadLength));
    // A write beyond the region is not answered, but nothing of it is applied.
    assert_eq!(rack.outcome(1, end - 8, Request::Write(vec![1; 9])), Outcome::Sent);
    assert_eq!(rack.words(), vec![0; BYTES / 8]);
    assert_eq!(rack.memory.counters().refused, [0, 4, 1, 0, 0, 1, 0, 0, 0]);
    assert_eq!(rack.outcome(0, START, Request::Read(8)), Outcome::Answer(vec![0; 8]));
}

#[test]
fn rights_are_a_regions_own() {
    let read_only =
        Region { start: 0, bytes: vec![3; 64], key: 1, rights: Rights { read: true, write: false } };
    let over = Region { start: 63, ..read_only.clone() };
    let beyond = Region { start: u64::MAX, ..read_only.clone() };
    let node = |regions| memory::MemoryNode::new(memory::Config::default(), regions);
    assert!(node(vec![read_only.clone(), over]).unwrap_err().contains("overlap"));
    assert!(node(vec![beyond]).unwrap_err().contains("no room"));
    let mut node = node(vec![read_only]).unwrap();
    node.begin_session(0, 0);
    let mut bytes = vec![0; Message::BYTES + 8];
    let message = Message {
        version: VERSION,
        kind: Kind::Wreq as u8,
        code: 0,
        id: 0,
        key: 1,
        address: 0,
        total: 8,
        offset: 0,
        bytes: 8,
        start: 0,
    };
    message.emit(&mut bytes);
    node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
    assert_eq!((node.regions()[0].bytes[0], node.counters().refused[Status::NotPermitted as usize]), (3, 1));
}

#[test]
fn without_an_answer_there_is_a_null_response_and_no_deadlock() {
    let mut node = compute(compute::Config::default());
    let mut out = Vec::new();
    let requests =
        [Request::Read(64), Request::Modify(Opcode::FetchAdd, [1, 0]), Request::Write(vec![1; 64])];
    let tokens = requests.map(|request| node.handle_request(9, KEY, START, request, Nanos::ZERO).unwrap());
    let mut ended = BTreeMap::new();
    while let Some(at) = node.next_timeout() {
        while node.poll_link(Nanos::ZERO, &mut out).is_some() {}
        node.handle_timeout(at);
        ended.extend(std::iter::from_fn(|| node.poll_completion()));
    }
    assert_eq!(ended, tokens.map(|token| (token, Outcome::Null)).into());
    assert_eq!((node.counters().timeouts, node.counters().again), (3, 3));
}

/// A chunk that comes again behind its successor neither undoes it nor holds up the next one.
#[test]
fn a_late_copy_of_a_chunk_is_dropped() {
    let region = Region { start: 0, bytes: vec![0; 24], key: 0, rights: Rights { read: true, write: true } };
    let mut node = memory(memory::Config::default(), region);
    for (offset, byte) in [(0, 1), (8, 2), (0, 9), (16, 3), (16, 9)] {
        let mut bytes = vec![byte; Message::BYTES + 8];
        let (version, kind) = (VERSION, Kind::Wreq as u8);
        Message { version, kind, code: 0, id: 4, key: 0, address: 0, total: 24, offset, bytes: 8, start: 0 }
            .emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
    }
    assert_eq!(node.regions()[0].bytes, [[1; 8], [2; 8], [3; 8]].concat());
    assert_eq!((node.counters().writes, node.counters().copies), (1, 2));
}

/// A frame that takes another pass through the switch is behind its successors: the message is whole all the same.
#[test]
fn chunks_may_pass_each_other() {
    let chunk = |kind: Kind, id, offset, byte| {
        let mut bytes = vec![byte; Message::BYTES + 8];
        let (version, kind) = (VERSION, kind as u8);
        Message { version, kind, code: 0, id, key: 0, address: 0, total: 24, offset, bytes: 8, start: 0 }
            .emit(&mut bytes);
        bytes
    };
    let region = Region { start: 0, bytes: vec![0; 24], key: 0, rights: Rights { read: true, write: true } };
    let mut memory = memory(memory::Config::default(), region);
    let mut compute = compute(compute::Config::default());
    let token = compute.handle_request(MEMORY, 0, 0, Request::Read(24), Nanos::ZERO).unwrap();
    let id = sent(&mut compute, Nanos::ZERO)[0].1;
    for (offset, byte) in [(16, 3), (8, 2), (8, 9), (0, 1), (16, 9)] {
        memory.handle_link((0, &chunk(Kind::Wreq, 4, offset, byte)), Nanos::ZERO, Nanos::ZERO);
        compute.handle_link((MEMORY, &chunk(Kind::Rres, id, offset, byte)), Nanos::ZERO, Nanos::ZERO);
    }
    let whole = [[1; 8], [2; 8], [3; 8]].concat();
    assert_eq!(memory.regions()[0].bytes, whole);
    assert_eq!((memory.counters().writes, memory.counters().copies), (1, 2));
    assert_eq!(compute.poll_completion(), Some((token, Outcome::Answer(whole))));
    assert_eq!(compute.counters().answers_unasked, 2);
}

/// A write that lost a chunk is forgotten when its id comes round again.
#[test]
fn a_write_with_the_id_of_one_that_never_ended_is_new() {
    let region = Region { start: 0, bytes: vec![0; 24], key: 0, rights: Rights { read: true, write: true } };
    let mut node = memory(memory::Config::default(), region);
    let mut take = |id, offset, byte| {
        let mut bytes = vec![byte; Message::BYTES + 8];
        let (version, kind) = (VERSION, Kind::Wreq as u8);
        Message { version, kind, code: 0, id, key: 0, address: 0, total: 16, offset, bytes: 8, start: 0 }
            .emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
        (node.counters().writes, node.counters().copies)
    };
    assert_eq!(take(1, 8, 1), (0, 0));
    for id in (0x1000..=0xF000).step_by(0x1000) {
        take(id, 0, 2);
        take(id, 8, 2);
    }
    assert_eq!((take(1, 8, 3), take(1, 0, 3)), ((15, 0), (16, 0)));
}

/// Answers whose grants never come make room for newer ones.
#[test]
fn forgotten_answers_do_not_fill_a_node() {
    let region =
        Region { start: 0, bytes: vec![0; 4_096], key: 0, rights: Rights { read: true, write: false } };
    let mut node = memory(memory::Config::default(), region);
    let (mut bytes, mut out) = (vec![0; Message::BYTES], Vec::new());
    for id in 0..1_000 {
        let (version, kind) = (VERSION, Kind::Rreq as u8);
        Message {
            version,
            kind,
            code: 0,
            id,
            key: 0,
            address: 0,
            total: 4_096,
            offset: 0,
            bytes: 0,
            start: 0,
        }
        .emit(&mut bytes);
        node.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
        assert_eq!(node.poll_link(Nanos::ZERO, &mut out), Some(0), "its first chunk");
    }
    assert_eq!((node.counters().reads, node.counters().overflows), (1_000, 1_000 - 64));
}

/// A grant that was meant for an earlier message with this id, before the node started again, must not make chunks
/// begin elsewhere: a read returns whole chunks as written.
#[test]
fn grants_of_other_messages_leave_chunks_whole() {
    let mut compute = compute(compute::Config::default());
    compute.handle_request(0, 0, 0, Request::Write(vec![1; 600]), Nanos::ZERO).unwrap();
    let (mut out, mut bytes) = (Vec::new(), [0; Control::BYTES]);
    compute.poll_link(Nanos::ZERO, &mut out);
    let mut granted = |offset, granted| {
        let kind = Kind::Grant as u8;
        Control { version: VERSION, kind, answer: 0, id: 0, offset, bytes: granted, wait: 0 }
            .emit(&mut bytes);
        compute.handle_link((0, &bytes), Nanos::ZERO, Nanos::ZERO);
        compute.poll_link(Nanos::ZERO, &mut out).map(|_| Message::parse(&out).unwrap().bytes)
    };
    assert_eq!(granted(0, 8), None);
    assert_eq!([granted(0, 256), granted(256, 256), granted(512, 88)], [Some(256), Some(256), Some(88)]);
    assert_eq!(compute.counters().grants_unasked, 1);
}

/// Small requests for much don't take more memory than the node allows, and a grant alone takes none.
#[test]
fn what_waits_to_be_answered_is_bounded() {
    let rights = Rights { read: true, write: false };
    let region = Region { start: 0, bytes: vec![7; 1_000], key: 0, rights };
    let config = memory::Config { answer_bytes_max: 2_500, ..memory::Config::default() };
    let mut node = memory(config, region);
    let (mut bytes, mut out) = (vec![0; Message::BYTES], Vec::new());
    let mut ask = |node: &mut memory::MemoryNode, from, id| {
        let (version, kind) = (VERSION, Kind::Rreq as u8);
        let (total, none) = (1_000, 0);
        Message { version, kind, code: 0, id, key: 0, address: 0, total, offset: 0, bytes: none, start: 0 }
            .emit(&mut bytes);
        node.handle_link((from, &bytes), Nanos::ZERO, Nanos::ZERO);
    };
    (0..3).for_each(|from| ask(&mut node, from, 0));
    assert_eq!((node.counters().reads, node.counters().refused[Status::Busy as usize]), (2, 1));
    // The first one has all its grants, and the rest fits again.
    let mut grant = [0; Control::BYTES];
    for offset in [256, 512, 768] {
        let (kind, bytes) = (Kind::Grant as u8, 256.min(1_000 - offset));
        Control { version: VERSION, kind, answer: 1, id: 0, offset, bytes, wait: 0 }.emit(&mut grant);
        node.handle_link((0, &grant), Nanos::ZERO, Nanos::ZERO);
    }
    while node.poll_link(Nanos::ZERO, &mut out).is_some() {}
    ask(&mut node, 2, 1);
    assert_eq!((node.counters().reads, node.counters().refused[Status::Busy as usize]), (3, 1));
    (100..2_000).for_each(|from| node.handle_link((from, &grant), Nanos::ZERO, Nanos::ZERO));
    node.begin_session(2_001, 0);
    ask(&mut node, 2_001, 0);
    assert_eq!((node.counters().grants_unasked, node.counters().overflows), (1_900, 0));
}

/// Messages that a node sends until `now`: kind, id, offset, and the bytes of the chunk.
fn sent(node: &mut compute::ComputeNode, now: Nanos) -> Vec<(Kind, u16, u32, usize)> {
    let mut out = Vec::new();
    std::iter::from_fn(|| {
        node.poll_link(now, &mut out)?;
        let kind = Kind::of(out[0]).unwrap();
        Some(match kind {
            Kind::Notify => (kind, Control::parse(&out).unwrap().id, 0, 0),
            _ => Message::parse(&out).map(|m| (kind, m.id, m.offset, out.len() - Message::BYTES)).unwrap(),
        })
    })
    .collect()
}

fn grant(answer: u8, id: u16, offset: u32, bytes: u32, wait: u32) -> [u8; Control::BYTES] {
    let mut frame = [0; Control::BYTES];
    Control { version: VERSION, kind: Kind::Grant as u8, answer, id, offset, bytes, wait }.emit(&mut frame);
    frame
}

/// A grant covers a window of chunks, and says when they may leave, in the switch's units. Earlier ones of others go first.
#[test]
fn chunks_leave_when_their_grants_say() {
    let config = compute::Config { window: 4, wait_unit: Nanos(10), ..compute::Config::default() };
    let mut node = compute(config);
    for to in [8, 9] {
        node.handle_request(to, KEY, START, Request::Write(vec![1; 1_300]), Nanos(1_000)).unwrap();
    }
    assert_eq!(sent(&mut node, Nanos(1_000)), [(Kind::Notify, 0, 0, 0); 2]);
    assert_eq!(node.next_link(), None);
    node.handle_link((8, &grant(0, 0, 0, 1_024, 50)), Nanos(2_000), Nanos(2_000));
    node.handle_link((9, &grant(0, 0, 0, 1_025, 0)), Nanos(2_000), Nanos(2_000));
    assert_eq!(node.counters().grants_unasked, 1, "more than a window");
    node.handle_link((9, &grant(0, 0, 0, 512, 20)), Nanos(2_000), Nanos(2_000));
    assert_eq!((node.next_link(), sent(&mut node, Nanos(2_199))), (Some(Nanos(2_200)), Vec::new()));
    assert_eq!(sent(&mut node, Nanos(2_499)), [(Kind::Wreq, 0, 0, 256), (Kind::Wreq, 0, 256, 256)]);
    let chunks = [0, 256, 512, 768].map(|offset| (Kind::Wreq, 0, offset, 256));
    assert_eq!(sent(&mut node, Nanos(2_500)), chunks);
    node.handle_link((8, &grant(0, 0, 1_024, 276, 0)), Nanos(2_600), Nanos(2_600));
    assert_eq!(sent(&mut node, Nanos(2_600)), [(Kind::Wreq, 0, 1_024, 256), (Kind::Wreq, 0, 1_280, 20)]);
    assert_eq!(node.poll_completion(), Some((0, Outcome::Sent)));
}

/// A write whose further grants are late asks for its rest under another id, once its granted chunks have left.
#[test]
fn a_write_asks_again_for_what_has_not_left() {
    let mut node = compute(compute::Config { timeout: Nanos(1_000), ..compute::Config::default() });
    node.handle_request(8, KEY, START, Request::Write(vec![1; 700]), Nanos::ZERO).unwrap();
    assert!(node.handle_request(8, KEY, START, Request::Write(Vec::new()), Nanos::ZERO).is_err());
    assert_eq!((node.counters().requests, node.counters().refused), (1, 1));
    assert_eq!(sent(&mut node, Nanos::ZERO), [(Kind::Notify, 0, 0, 0)]);
    node.handle_link((8, &grant(0, 0, 0, 256, 0)), Nanos(10), Nanos(10));
    // The link is busy for longer than a grant may take.
    node.handle_timeout(Nanos(1_010));
    assert_eq!(sent(&mut node, Nanos(1_010)), [(Kind::Wreq, 0, 0, 256)]);
    assert_eq!(node.counters().again, 0);
    node.handle_timeout(Nanos(2_010));
    let mut out = Vec::new();
    assert_eq!(node.poll_link(Nanos(2_010), &mut out), Some(8));
    let again = Control::parse(&out).unwrap();
    assert_eq!((Kind::of(out[0]), again.bytes, again.id == 0), (Ok(Kind::Notify), 444, false));
    assert_eq!(node.counters().again, 1);
}

/// The same for answers: the request says when the first chunks may leave.
#[test]
fn answers_leave_when_requests_and_grants_say() {
    let region =
        Region { start: 0, bytes: vec![5; 2_000], key: 0, rights: Rights { read: true, write: true } };
    let config = memory::Config { window: 2, wait_unit: Nanos(10), ..memory::Config::default() };
    let mut node = memory(config, region);
    let (mut request, mut out) = (vec![0; Message::BYTES], Vec::new());
    let (version, kind, offset) = (VERSION, Kind::Rreq as u8, 30);
    Message { version, kind, code: 0, id: 3, key: 0, address: 0, total: 700, offset, bytes: 0, start: 0 }
        .emit(&mut request);
    node.handle_link((1, &request), Nanos(1_000), Nanos(1_000));
    node.handle_link((1, &grant(1, 3, 512, 188, 5)), Nanos(1_100), Nanos(1_100));
    let mut sent = |node: &mut memory::MemoryNode, now| {
        let mut offsets = Vec::new();
        while node.poll_link(now, &mut out).is_some() {
            offsets.push(Message::parse(&out).unwrap().offset);
        }
        offsets
    };
    assert!(sent(&mut node, Nanos(1_299)).is_empty(), "chunks don't pass each other");
    assert_eq!((node.next_link(), sent(&mut node, Nanos(1_300))), (Some(Nanos(1_300)), vec![0, 256, 512]));
}

/// A requester may wait for a long answer longer than one may be quiet: while grants of it come, its next request ends nothing.
/// One requester's grants don't delay the others: each has its turn at the link.
#[test]
fn requesters_share_the_link_whatever_they_were_granted() {
    let config = memory::Config { chunk_bytes: 256, window: 4, ..memory::Config::default() };
    let region =
        Region { start: START, bytes: vec![0; BYTES], key: KEY, rights: Rights { read: true, write: false } };
    let mut node = memory::MemoryNode::new(config, vec![region]).unwrap();
    (1..=3).for_each(|with| node.begin_session(with, 1));
    let request = |id, total, key| {
        let (version, kind) = (VERSION, Kind::Rreq as u8);
        let request =
            Message { version, kind, code: 0, id, key, address: START, total, offset: 0, bytes: 0, start: 1 };
        let mut bytes = vec![0; Message::BYTES];
        request.emit(&mut bytes);
        bytes
    };
    // One has eight windows that may leave, another one floods the node with a wrong key; then a third asks for a word.
    for id in 0..8 {
        node.handle_link((1, &request(id, 1_024, KEY)), Nanos(10), Nanos(10));
    }
    for id in 0..200 {
        node.handle_link((2, &request(id, 8, KEY + 1)), Nanos(20), Nanos(20));
    }
    node.handle_link((3, &request(0, 8, KEY)), Nanos(30), Nanos(30));
    let (mut out, mut to) = (Vec::new(), Vec::new());
    while let Some(receiver) = node.poll_link(Nanos(40), &mut out) {
        to.push(receiver);
    }
    let before = to.iter().position(|receiver| *receiver == 3).unwrap();
    assert!(to[..before].iter().filter(|receiver| **receiver == 1).count() <= 1, "{to:?}");
    // Nulls take 84 bytes of the wire, chunks of 256 bytes 330.
    assert!(to[..before].iter().filter(|receiver| **receiver == 2).count() <= 4, "{to:?}");
    assert_eq!(to.iter().filter(|receiver| **receiver == 1).count(), 32);
    assert_eq!(node.next_link(), None);
}

#[test]
fn a_long_answer_survives_the_next_request() {
    let region =
        Region { start: 0, bytes: vec![5; 1_024], key: 0, rights: Rights { read: true, write: false } };
    let mut node = memory(memory::Config::default(), region);
    let (mut request, mut out) = (vec![0; Message::BYTES], Vec::new());
    let (version, kind, bytes) = (VERSION, Kind::Rreq as u8, 0);
    let mut ask = |node: &mut memory::MemoryNode, id, at| {
        Message { version, kind, code: 0, id, key: 0, address: 0, total: 1_024, offset: 0, bytes, start: 0 }
            .emit(&mut request);
        node.handle_link((1, &request), at, at);
    };
    ask(&mut node, 0, Nanos::ZERO);
    node.handle_link((1, &grant(1, 0, 256, 256, 0)), Nanos::from_secs(8), Nanos::from_secs(8));
    ask(&mut node, 1, Nanos::from_secs(16));
    for offset in [512, 768] {
        node.handle_link((1, &grant(1, 0, offset, 256, 0)), Nanos::from_secs(17), Nanos::from_secs(17));
    }
    let mut sent = Vec::new();
    while node.poll_link(Nanos::MAX, &mut out).is_some() {
        let message = Message::parse(&out).unwrap();
        sent.push((message.id, message.offset));
    }
    sent.sort_unstable();
    assert_eq!(sent, [(0, 0), (0, 256), (0, 512), (0, 768), (1, 0)]);
}

/// Memory node 9 answers a read of eight bytes.
fn answer(node: &mut compute::ComputeNode, id: u16) {
    let mut bytes = vec![0; Message::BYTES + 8];
    let (version, kind) = (VERSION, Kind::Rres as u8);
    Message { version, kind, code: 0, id, key: 0, address: 0, total: 8, offset: 0, bytes: 8, start: 0 }
        .emit(&mut bytes);
    node.handle_link((9, &bytes), Nanos::ZERO, Nanos::ZERO);
}

/// The low bits of an id are a lane, and no two active messages of a class and a memory node share one.
#[test]
fn active_messages_have_lanes_of_their_own() {
    let mut node = compute(compute::Config::default());
    for _ in 0..6 {
        node.handle_request(9, KEY, START, Request::Read(8), Nanos::ZERO).unwrap();
    }
    let ids = |node: &mut compute::ComputeNode| -> Vec<u16> {
        sent(node, Nanos::ZERO).into_iter().map(|(_, id, ..)| id).collect()
    };
    assert_eq!(ids(&mut node), [0, 1, 2]);
    answer(&mut node, 1);
    assert_eq!(ids(&mut node), [5], "3 is no lane, 4 has that of 0");
    answer(&mut node, 5);
    answer(&mut node, 2);
    assert_eq!(ids(&mut node), [9, 10]);
}

/// Short messages that pass a long one wait before memory nodes would forget its id.
#[test]
fn ids_stay_near_those_of_active_messages() {
    let mut node = compute(compute::Config::default());
    let ask =
        |node: &mut compute::ComputeNode| node.handle_request(9, KEY, START, Request::Read(8), Nanos::ZERO);
    // The first one is never answered, all others immediately.
    ask(&mut node).unwrap();
    let old = sent(&mut node, Nanos::ZERO)[0].1;
    let mut newest = old;
    for _ in 0..1000 {
        ask(&mut node).unwrap();
        let Some((_, id, ..)) = sent(&mut node, Nanos::ZERO).into_iter().next() else { break };
        newest = id;
        answer(&mut node, id);
    }
    assert_eq!(newest, old + window::IDS - 2, "the last lane before its window ends");
    answer(&mut node, old);
    let [(_, next, ..)] = sent(&mut node, Nanos::ZERO)[..] else {
        panic!("it goes on once the old one is done")
    };
    assert_eq!(next, old + window::IDS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Counters of atomic operations: each is done once, or never, or it is unknown; and every request ends.
    #[test]
    fn atomic_operations_are_done_once_whatever_happens_to_messages(
        fates in prop::collection::vec(prop::sample::select(vec![
            Fate::Arrives, Fate::Arrives, Fate::Arrives, Fate::Arrives, Fate::Lost, Fate::Twice,
        ]), 1..60),
        adds in prop::collection::vec((0..MEMORY, 0u64..4), 1..40),
    ) {
        let mut rack = Rack::new(fates);
        let tokens: Vec<(u16, u64, u64)> = adds
            .iter()
            .map(|(node, word)| {
                (*node, *word, rack.ask(*node, START + 8 * word, Request::Modify(Opcode::FetchAdd, [1, 0])))
            })
            .collect();
        rack.settle();
        for word in 0..4u64 {
            let of = |wanted: fn(&Outcome) -> bool| {
                let of_word = tokens.iter().filter(|(_, other, _)| *other == word);
                of_word.filter(|(node, _, token)| wanted(&rack.outcomes[&(*node, *token)])).count() as u64
            };
            let (done, unknown) = (of(|outcome| matches!(outcome, Outcome::Answer(_))), of(|outcome| *outcome == Outcome::Null));
            prop_assert_eq!(done + unknown, adds.iter().filter(|(_, other)| *other == word).count() as u64);
            let now = rack.words()[word as usize];
            prop_assert!((done..=done + unknown).contains(&now), "{} done, {} unknown: {}", done, unknown, now);
            // No two saw the same old word.
            let mut olds: Vec<&Outcome> = tokens
                .iter()
                .filter(|(_, other, _)| *other == word)
                .map(|(node, _, token)| &rack.outcomes[&(*node, *token)])
                .filter(|outcome| **outcome != Outcome::Null)
                .collect();
            let count = olds.len();
            olds.sort_by_key(|outcome| format!("{outcome:?}"));
            olds.dedup();
            prop_assert_eq!(olds.len(), count);
        }
    }

    /// Under copies and losses, the data of each successful write is in memory, and no request stays open.
    #[test]
    fn copies_change_nothing(
        fates in prop::collection::vec(prop::sample::select(vec![Fate::Arrives, Fate::Arrives, Fate::Twice]), 1..40),
        writes in prop::collection::vec((0..MEMORY, 1usize..900), 1..4),
    ) {
        let mut rack = Rack::new(fates);
        for (nth, (node, bytes)) in writes.iter().enumerate() {
            rack.ask(*node, START + 1_000 * nth as u64, Request::Write(vec![nth as u8 + 1; *bytes]));
        }
        rack.settle();
        prop_assert_eq!(rack.memory.counters().writes, writes.len() as u64);
        for (nth, (_, bytes)) in writes.iter().enumerate() {
            let at = 1_000 * nth;
            let written = &rack.memory.regions()[0].bytes[at..at + 1_000];
            prop_assert!(written[..*bytes].iter().all(|byte| *byte == nth as u8 + 1));
            prop_assert!(written[*bytes..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn no_bytes_make_a_node_panic(
        messages in prop::collection::vec((0..3u16, 0..7u8, prop::collection::vec(any::<u8>(), 0..80)), 0..60),
    ) {
        let region = Region { start: 0, bytes: vec![0; 64], key: 0, rights: Rights { read: true, write: true } };
        let mut memory = memory(memory::Config::default(), region);
        let mut compute = compute(compute::Config::default());
        let mut out = Vec::new();
        for (from, kind, mut bytes) in messages {
            if let Some(first) = bytes.first_mut() {
                *first = VERSION << 4 | kind;
            }
            // Small numbers, so that some of it means something.
            bytes.iter_mut().skip(2).for_each(|byte| *byte &= 3);
            let _ = compute.handle_request(from, 0, 0, Request::Write(vec![1; 700]), Nanos::ZERO);
            memory.handle_link((from, &bytes), Nanos::ZERO, Nanos::ZERO);
            compute.handle_link((from, &bytes), Nanos::ZERO, Nanos::ZERO);
            while memory.poll_link(Nanos::MAX, &mut out).is_some() {}
            while compute.poll_link(Nanos::MAX, &mut out).is_some() {}
            while compute.poll_completion().is_some() {}
        }
    }
}
