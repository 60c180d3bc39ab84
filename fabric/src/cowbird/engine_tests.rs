//! The engine alone: its RDMA requests are carried out on plain bytes, each where its key permits it, and queue pairs answer in any
//! order among each other.

use super::config::{Config, Counters};
use super::engine::Engine;
use super::set::{Corruption, Pool, Set, State};
use crate::Machine as _;
use crate::common::SplitMix;
use crate::roce::{Failure, Outcome, Request};
use p4rack_wire::Nanos;
use p4rack_wire::cowbird::{Entry, GREEN_AT, Green, Kind, Layout, RED_AT, Red, RequestId, place};
use proptest::prelude::*;
use std::collections::VecDeque;

const LAYOUT: Layout = Layout { entries: 8, request_bytes: 64, response_bytes: 64 };
const SET_QPN: u32 = 2;
const SET_KEY: u32 = 7;
const SET_ADDRESS: u64 = 0x1000;
const POOLS: [Pool; 2] = [
    Pool { qpn: 3, key: 8, address: 0x2000, bytes: 96 },
    Pool { qpn: 4, key: 9, address: 0x3000, bytes: 40 },
];

/// A request of the thread.
#[derive(Clone, Copy, Debug)]
struct Ask {
    kind: Kind,
    region: u16,
    at: u64,
    length: u64,
}

fn ask(kind: Kind, region: u16, at: u64, length: u64) -> Ask {
    Ask { kind, region, at, length }
}

/// An engine, the set that it serves, its pools, and the thread's state.
struct World {
    engine: Engine,
    instance: u32,
    now: Nanos,
    set: Vec<u8>,
    pools: [Vec<u8>; 2],
    /// Requests under way, by queue pair from [`SET_QPN`] on.
    under_way: [VecDeque<Request>; 3],
    random: SplitMix,
    tail: u64,
    /// Of reads and of writes: how many there were, and where the next one's data goes.
    numbers: [u64; 2],
    ends: [u64; 2],
}

fn served() -> Set {
    Set {
        owner: 0,
        qpn: SET_QPN,
        key: SET_KEY,
        address: SET_ADDRESS,
        layout: LAYOUT,
        regions: POOLS.to_vec(),
    }
}

fn engine(config: Config) -> (Engine, u32) {
    let mut engine = Engine::new(config);
    let instance = engine.add(served(), Nanos::ZERO).unwrap();
    (engine, instance)
}

impl World {
    fn new(config: Config, seed: u64) -> World {
        let (engine, instance) = engine(config);
        World {
            engine,
            instance,
            now: Nanos::ZERO,
            set: vec![0; LAYOUT.bytes() as usize],
            pools: POOLS.map(|pool| (0..pool.bytes).map(|at| at as u8 ^ 0x55).collect()),
            under_way: Default::default(),
            random: SplitMix(seed),
            tail: 0,
            numbers: [0; 2],
            ends: [0; 2],
        }
    }

    /// Writes the next entry and its data, without telling of it. Returns the entry and where its data is in the set.
    fn asks(&mut self, ask: Ask, data: u8) -> (Entry, usize) {
        let kind = usize::from(ask.kind == Kind::Write);
        let (ring_at, ring) = match ask.kind {
            Kind::Read => (LAYOUT.response_data_at(), LAYOUT.response_bytes),
            Kind::Write => (LAYOUT.request_data_at(), LAYOUT.request_bytes),
        };
        self.numbers[kind] += 1;
        let (start, end) = place(self.ends[kind], ask.length, ring);
        self.ends[kind] = end;
        let local = ring_at + (start & (ring - 1));
        if ask.kind == Kind::Write {
            self.set[local as usize..][..ask.length as usize].fill(data);
        }
        let (req_addr, resp_addr) = if kind == 0 { (ask.at, local) } else { (local, ask.at) };
        let entry = Entry {
            request_id: RequestId::new(ask.kind, ask.region, self.numbers[kind]).0,
            rw_type: kind as u16 + 1,
            region_id: ask.region,
            length: ask.length as u32,
            req_addr,
            resp_addr,
        };
        self.put(&entry);
        (entry, local as usize)
    }

    /// Writes an entry at the tail, which is one more then.
    fn put(&mut self, entry: &Entry) {
        entry.emit(&mut self.set[LAYOUT.entry_at(self.tail) as usize..]);
        self.tail += 1;
    }

    fn tell(&mut self, request_tail: u64) {
        let green =
            Green { request_tail, request_data_tail: 0, response_data_reserved: 0, response_data_head: 0 };
        green.emit(&mut self.set[GREEN_AT as usize..]);
    }

    fn red(&self) -> Red {
        Red::parse(&self.set[RED_AT as usize..]).unwrap()
    }

    /// Does one thing: takes a request of the engine, or carries out one of those under way. Returns whether there was one.
    fn step(&mut self) -> bool {
        while let Some((qpn, request)) = self.engine.poll_link(self.now, &mut ()) {
            self.under_way[(qpn - SET_QPN) as usize].push_back(request);
        }
        let busy = (0..3).filter(|nth| !self.under_way[*nth].is_empty()).collect::<Vec<_>>();
        if busy.is_empty() {
            return false;
        }
        let nth = busy[self.random.next() as usize % busy.len()];
        let request = self.under_way[nth].pop_front().unwrap();
        let outcome = self.carried_out(nth, request);
        self.engine.handle_link((SET_QPN + nth as u32, outcome), self.now, self.now);
        true
    }

    /// Carries a request out. An access that its queue pair's key does not permit fails the test.
    fn carried_out(&mut self, nth: usize, request: Request) -> Outcome {
        let (key, address, bytes, memory) = match nth {
            0 => (SET_KEY, SET_ADDRESS, LAYOUT.bytes(), &mut self.set),
            _ => {
                let Pool { key, address, bytes, .. } = POOLS[nth - 1];
                (key, address, bytes, &mut self.pools[nth - 1])
            }
        };
        let place = |asked: u32, from: u64, length: u64| {
            assert!(asked == key && from >= address && from - address + length <= bytes, "{nth} {request:?}");
            (from - address) as usize..(from - address + length) as usize
        };
        match &request {
            Request::Read { key, address, bytes } => {
                Outcome::Read(memory[place(*key, *address, u64::from(*bytes))].to_vec())
            }
            Request::Write { key, address, bytes, immediate: None } => {
                let place = place(*key, *address, bytes.len() as u64);
                let is_red = place == (RED_AT as usize..RED_AT as usize + Red::BYTES);
                assert!(
                    nth > 0 || is_red || place.start >= LAYOUT.response_data_at() as usize,
                    "{request:?}"
                );
                memory[place].copy_from_slice(bytes);
                Outcome::Done
            }
            other => panic!("{other:?}"),
        }
    }

    /// Advances time until all posted entries are done, or the set is refused.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            if !self.step() {
                let red = self.red();
                if red.request_head == self.tail || red.refusal != 0 {
                    return;
                }
                self.now = self.now.max(self.engine.next_link().unwrap());
            }
        }
        panic!("{:?} of {} entries are done: {:?}", self.red(), self.tail, self.engine.counters());
    }

    /// A new engine without this one's state takes over. Requests under way are lost, or carried out without a report.
    fn replaced(&mut self, config: &Config) {
        for nth in 0..3 {
            let mut requests = std::mem::take(&mut self.under_way[nth]);
            requests.truncate(self.random.next() as usize % 4);
            for request in requests {
                self.carried_out(nth, request);
            }
        }
        (self.engine, self.instance) = engine(config.clone());
    }
}

fn asks() -> impl Strategy<Value = Vec<Vec<(Ask, u8)>>> {
    let one = (any::<bool>(), 0..2u16, 0..90u64, 1..17u64, any::<u8>()).prop_map(
        |(read, region, at, length, data)| {
            let most = POOLS[usize::from(region)].bytes;
            let (kind, at) = (if read { Kind::Read } else { Kind::Write }, at % most);
            (Ask { kind, region, at, length: length.min(most - at) }, data)
        },
    );
    prop::collection::vec(prop::collection::vec(one, 1..4), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Everything is done as if one request came after the other, in whatever order queue pairs answer; nothing outside of keys,
    /// rings and regions is touched. A new engine may come at any time: it begins with the writes, so reads may return
    /// the result of later ones.
    #[test]
    fn requests_are_done_as_if_one_after_the_other(
        rounds in asks(), seed in any::<u64>(), small in any::<bool>(), pause_reads in any::<bool>(), restarts in any::<bool>(),
    ) {
        let mut config = Config { pause_reads, ..Config::default() };
        if small {
            config = Config { piece_bytes: 5, batch_reads: 2, batch_bytes: 16, fetch_entries: 2, guess_entries: 0, active_max: 2, probes_max: 2, requests_max: 3, ..config };
        }
        let mut world = World::new(config.clone(), seed);
        prop_assert!(world.step(), "it knows that nothing was done before");
        let (mut pools, mut done) = (world.pools.clone(), [0, 0]);
        for round in rounds {
            let mut reads = Vec::new();
            for (ask, data) in round {
                let (_, local) = world.asks(ask, data);
                let bytes = &mut pools[usize::from(ask.region)][ask.at as usize..][..ask.length as usize];
                match ask.kind {
                    Kind::Read => reads.push((local, bytes.to_vec())),
                    Kind::Write => bytes.fill(data),
                }
                done[usize::from(ask.kind == Kind::Write)] += 1;
            }
            world.tell(world.tail);
            if restarts && world.random.next().is_multiple_of(2) {
                for _ in 0..world.random.next() % 12 {
                    world.step();
                    world.now = world.engine.next_link().unwrap_or(world.now).max(world.now);
                }
                world.replaced(&config);
            }
            world.settle();
            for (local, bytes) in reads {
                prop_assert!(restarts || world.set[local..].starts_with(&bytes), "{:?} at {}", bytes, local);
            }
            let red = world.red();
            prop_assert_eq!(&world.pools, &pools);
            prop_assert_eq!((red.read_progress, red.write_progress, red.refusal), (done[0], done[1], 0));
            prop_assert_eq!((red.response_data_tail, red.request_data_head), (world.ends[0], world.ends[1]));
        }
        prop_assert!(world.under_way.iter().all(VecDeque::is_empty));
        let counters = world.engine.counters();
        prop_assert!(restarts || (counters.reads, counters.writes) == (done[0], done[1]), "{:?}", counters);
    }
}

/// Everything that a thread may write to its rings, at the last valid value and the first invalid one. A refused set
/// gets the reason, and its pools stay unchanged.
#[test]
fn every_wrong_entry_is_refused_for_its_reason_and_touches_nothing() {
    let (read, write) = (ask(Kind::Read, 1, 8, 16), ask(Kind::Write, 0, 8, 16));
    let edited = |from: Ask, edit: fn(&mut Entry)| {
        let mut world = World::new(Config::default(), 1);
        assert!(world.step(), "it knows that nothing was done before");
        let (mut entry, _) = world.asks(from, 9);
        world.tail -= 1;
        edit(&mut entry);
        world.put(&entry);
        world.tell(1);
        world
    };
    let told = |tail: u64| {
        let mut world = World::new(Config::default(), 1);
        assert!(world.step());
        (0..8).for_each(|_| _ = world.asks(ask(Kind::Write, 0, 0, 8), 9));
        world.tell(tail);
        world.tail = tail;
        world
    };
    use Corruption::{Bounds, Id, Length, Place, Region, Tail, Type};
    for (what, mut world, expected) in [
        ("a read", edited(read, |_| ()), None),
        ("a write", edited(write, |_| ()), None),
        ("a read up to the region's end", edited(read, |entry| entry.req_addr = 24), None),
        ("a read a byte further", edited(read, |entry| entry.req_addr = 25), Some(Bounds)),
        ("a read round the last address", edited(read, |entry| entry.req_addr = u64::MAX - 7), Some(Bounds)),
        ("a write up to the region's end", edited(write, |entry| entry.resp_addr = 80), None),
        ("a write a byte further", edited(write, |entry| entry.resp_addr = 81), Some(Bounds)),
        ("another thread's region", edited(read, |entry| entry.region_id = 2), Some(Region)),
        ("a region that its id does not name", edited(read, |entry| entry.region_id = 0), Some(Id)),
        ("no type", edited(read, |entry| entry.rw_type = 0), Some(Type)),
        ("an unknown type", edited(read, |entry| entry.rw_type = 3), Some(Type)),
        ("a write's id for a read", edited(read, |entry| entry.request_id |= 1 << 63), Some(Id)),
        ("the id after the next", edited(read, |entry| entry.request_id += 1), Some(Id)),
        ("an id of before", edited(write, |entry| entry.request_id -= 1), Some(Id)),
        ("no bytes", edited(read, |entry| entry.length = 0), Some(Length)),
        ("half of the ring", edited(read, |entry| (entry.req_addr, entry.length) = (0, 32)), None),
        ("a byte more", edited(read, |entry| (entry.req_addr, entry.length) = (0, 33)), Some(Length)),
        ("a read's data a word further", edited(read, |entry| entry.resp_addr += 8), Some(Place)),
        ("a write's data a word before", edited(write, |entry| entry.req_addr -= 8), Some(Place)),
        ("a read into the red block", edited(read, |entry| entry.resp_addr = RED_AT), Some(Place)),
        ("a full ring", told(8), None),
        ("more than a ring", told(9), Some(Tail)),
    ] {
        let pools = world.pools.clone();
        world.settle();
        let state = world.engine.state(world.instance).unwrap();
        assert_eq!(state, expected.map_or(State::Serving, State::Corrupt), "{what}");
        let mut counted = Counters::default();
        if let Some(reason) = expected {
            counted.count(reason);
            assert_eq!((world.red().refusal, world.red().request_head), (reason as u64, 0), "{what}");
            assert_eq!(world.pools, pools, "{what}");
        }
        let refusals = |counters: &Counters| {
            let of = counters.iter().filter(|(name, _)| name.starts_with("corrupt"));
            of.collect::<Vec<_>>()
        };
        assert_eq!(refusals(world.engine.counters()), refusals(&counted), "{what}");
        // A new engine refuses it for the same reason.
        if let Some(reason) = expected {
            world.replaced(&Config::default());
            world.step();
            assert_eq!(world.engine.state(world.instance), Some(State::Corrupt(reason)), "{what}");
        }
    }
}

/// A tail that goes back is no tail, unless an older probe may have been answered late.
#[test]
fn a_tail_that_goes_back_is_refused() {
    let mut world = World::new(Config::default(), 1);
    for tail in [1, 2] {
        world.asks(ask(Kind::Write, 0, 0, 8), 1);
        world.tell(tail);
        world.settle();
    }
    world.tell(1);
    while world.engine.state(world.instance) == Some(State::Serving) {
        world.now = world.engine.next_link().unwrap();
        assert!(world.step());
    }
    assert_eq!(world.engine.state(world.instance), Some(State::Corrupt(Corruption::Tail)));
}

/// A red block that no engine has written is refused by the one that takes over.
#[test]
fn a_red_block_without_sense_is_refused() {
    let red = Red {
        request_head: 2,
        request_data_head: 8,
        response_data_tail: 8,
        write_progress: 1,
        read_progress: 1,
        refusal: 0,
    };
    let far = (1 << 62) + 1;
    for (what, red, tail, expected) in [
        ("what there may be", red, 2, State::Serving),
        ("far and allowed", Red { request_data_head: far - 1, ..red }, 2, State::Serving),
        ("one entry that the tail did not tell of", red, 1, State::Serving),
        ("two of them", red, 0, State::Corrupt(Corruption::Tail)),
        ("request data", Red { request_data_head: far, ..red }, 2, State::Corrupt(Corruption::Tail)),
        ("response data", Red { response_data_tail: far, ..red }, 2, State::Corrupt(Corruption::Tail)),
        ("writes", Red { write_progress: far, ..red }, 2, State::Corrupt(Corruption::Tail)),
        ("reads", Red { read_progress: far, ..red }, 2, State::Corrupt(Corruption::Tail)),
        ("a refusal", Red { refusal: Corruption::Place as u64, ..red }, 2, State::Corrupt(Corruption::Place)),
        ("an unknown refusal", Red { refusal: 99, ..red }, 2, State::Corrupt(Corruption::Tail)),
    ] {
        let mut world = World::new(Config::default(), 1);
        red.emit(&mut world.set[RED_AT as usize..]);
        world.tell(tail);
        assert_eq!(world.engine.state(world.instance), Some(State::Recovering), "{what}");
        world.step();
        assert_eq!(world.engine.state(world.instance), Some(expected), "{what}");
    }
}

/// The data of a long request comes in pieces, from the pool and from the compute node, and arrives whole.
#[test]
fn no_read_is_longer_than_a_piece() {
    let config = Config { piece_bytes: 8, guess_entries: 0, ..Config::default() };
    let mut world = World::new(config, 1);
    let (_, local) = world.asks(ask(Kind::Read, 0, 3, 29), 0);
    world.asks(ask(Kind::Write, 0, 40, 30), 9);
    world.tell(2);
    let mut lengths = [Vec::new(), Vec::new()];
    let expected = world.pools[0][3..32].to_vec();
    while world.red().request_head < 2 {
        let before = world.under_way.clone();
        if !world.step() {
            world.now = world.engine.next_link().unwrap();
        }
        for (nth, lengths) in lengths.iter_mut().enumerate() {
            let asked = world.under_way[nth].len() > before[nth].len();
            for request in world.under_way[nth].iter().filter(|_| asked) {
                if let Request::Read { bytes, .. } = request {
                    lengths.push(*bytes);
                }
            }
        }
    }
    assert_eq!(world.set[local..][..29], expected[..]);
    assert_eq!(world.pools[0][40..70], [9; 30]);
    assert!(lengths[1].contains(&8) && lengths[1].iter().all(|bytes| *bytes <= 8), "{lengths:?}");
}

/// Three reads of neighbours go to the compute node together, as far as a batch may be long.
#[test]
fn responses_of_neighbours_go_together() {
    for (batch_bytes, batches) in [(64, 1), (16, 2), (15, 3), (8, 3)] {
        let config = Config { batch_bytes, guess_entries: 0, ..Config::default() };
        let mut world = World::new(config, 1);
        for at in [0, 8, 16] {
            world.asks(ask(Kind::Read, 0, at, 8), 0);
        }
        world.tell(3);
        world.settle();
        let counters = world.engine.counters();
        assert_eq!((counters.reads, counters.batches, counters.bytes), (3, batches, 24), "{batch_bytes}");
        assert_eq!((counters.probes_useful, counters.recovered), (0, 0), "the recovery told of them");
    }
}

/// An entry that was read along with the probe that finds it is not read again.
#[test]
fn entries_behind_a_probe_save_a_round_trip() {
    for (guess_entries, kind, fetched) in
        [(8, Kind::Read, 0), (8, Kind::Write, 0), (0, Kind::Read, 3), (0, Kind::Write, 3)]
    {
        let mut world = World::new(Config { guess_entries, ..Config::default() }, 1);
        assert!(world.step(), "it knows that nothing was done before");
        let (mut fetches, mut guesses) = (0, 0);
        for nth in 0..3 {
            world.asks(ask(kind, 0, 8 * nth, 8), 1);
            world.tell(nth + 1);
            let entry = SET_ADDRESS + LAYOUT.entry_at(nth);
            while world.red().request_head <= nth {
                while let Some((qpn, request)) = world.engine.poll_link(world.now, &mut ()) {
                    if let Request::Read { address, bytes, .. } = &request
                        && *address == entry
                    {
                        let is_alone = *bytes as usize == Entry::BYTES;
                        fetches += u32::from(is_alone);
                        guesses += u32::from(!is_alone);
                    }
                    world.under_way[(qpn - SET_QPN) as usize].push_back(request);
                }
                if !world.step() {
                    world.now = world.engine.next_link().unwrap();
                }
            }
        }
        assert_eq!(
            (fetches, guesses > 0),
            (fetched, guess_entries > 0),
            "{kind:?}, {guess_entries} at a time"
        );
    }
}

/// A request waits for one before it that concerns the same bytes, if one of the two writes.
#[test]
fn requests_of_the_same_bytes_wait_for_each_other() {
    let (read, write) = (|at| ask(Kind::Read, 0, at, 8), |at| ask(Kind::Write, 0, at, 8));
    for (first, second, waits) in [
        (write(0), read(7), true),
        (write(0), read(8), false),
        (read(8), write(1), true),
        (read(8), write(0), false),
        (read(0), read(0), false),
        (write(0), write(0), false),
        (write(0), ask(Kind::Read, 1, 0, 8), false),
    ] {
        let mut world = World::new(Config::default(), 1);
        assert!(world.step());
        world.asks(first, 1);
        world.asks(second, 2);
        world.tell(2);
        world.settle();
        assert_eq!(world.engine.counters().overlaps > 0, waits, "{first:?} before {second:?}");
    }
}

/// Probes become rarer while nothing happens, up to a limit, and are as frequent as they may be after a request.
#[test]
fn probes_become_rarer_while_nothing_happens() {
    let config = Config { probe_min: Nanos(10), probe_max: Nanos(50), guess_entries: 0, ..Config::default() };
    let mut world = World::new(config, 1);
    let probed = |world: &mut World, times: usize| {
        let mut at = Vec::new();
        for _ in 0..times {
            while world.step() {}
            world.now = world.engine.next_link().unwrap();
            at.push(world.now.0);
        }
        at
    };
    assert_eq!(probed(&mut world, 6), [10, 30, 70, 120, 170, 220]);
    world.asks(ask(Kind::Write, 0, 0, 8), 1);
    world.tell(1);
    assert_eq!(probed(&mut world, 4), [230, 240, 260, 300]);
    let counters = world.engine.counters();
    assert_eq!((counters.probes, counters.probes_useful, counters.writes, counters.bytes), (10, 1, 1, 8));
}

/// A queue pair that fails, or that is removed, takes the sets with it that use it, and no others.
#[test]
fn a_set_is_lost_with_each_of_its_queue_pairs() {
    let failed = Outcome::Failed(Failure::RetriesExceeded);
    for qpn in [2, 3, 4, 5] {
        let mut world = World::new(Config::default(), 1);
        world.engine.forget_pair(qpn);
        let lost = qpn < 5;
        assert_eq!(world.engine.state(world.instance) == Some(State::Lost), lost, "{qpn}");
        assert_eq!(world.engine.poll_link(world.now, &mut ()).is_none(), lost, "{qpn}");
        world.engine.forget_pair(qpn);
        assert_eq!(world.engine.counters().lost, u64::from(lost), "once");
    }
    let mut world = World::new(Config::default(), 1);
    world.engine.poll_link(world.now, &mut ()).unwrap();
    world.engine.handle_link((SET_QPN, failed), world.now, world.now);
    assert_eq!(world.engine.state(world.instance), Some(State::Lost));
    assert_eq!((world.engine.poll_link(Nanos::MAX, &mut ()), world.engine.next_link()), (None, None));
    assert_eq!(world.engine.instances(), 1);
    assert!(world.engine.remove(world.instance) && !world.engine.remove(world.instance));
    assert_eq!((world.engine.instances(), world.engine.state(world.instance)), (0, None));
}
