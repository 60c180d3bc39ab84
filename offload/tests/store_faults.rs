//! Clients of a store over a network that loses, copies, reorders and damages packets, in virtual time.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{self, Board, Pool, Quota};
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome};
use p4rack_fabric::clio::token::Secret;
use p4rack_offload::{Kv, KvArguments, KvFunction, Offloads};
use p4rack_wire::clio::{PAGE_SIZES, PageSize, Rights, Status};
use p4rack_wire::{Nanos, SplitMix};
use std::collections::BTreeMap;

const FRAMES: u32 = 128;
const STORE: u64 = 64 * 4_096;
const CLIENTS: usize = 2;
/// Keys of a client, and requests for each.
const KEYS: u64 = 4;
const REQUESTS: u32 = 30;
const VALUE_BYTES: u32 = 3_000;
/// The test's own client.
const OWN: usize = CLIENTS;

/// Thousandths of packets.
#[derive(Clone, Copy)]
struct Faults {
    lost: u64,
    copied: u64,
    damaged: u64,
    /// They come when the client has sent them again.
    late: u64,
}

struct World {
    board: Board<Vec<u8>, usize>,
    offloads: Offloads,
    clients: Vec<Client>,
    /// Packets under way, by the time at which they arrive.
    air: BTreeMap<(Nanos, u64), (bool, usize, Vec<u8>)>,
    faults: Faults,
    random: SplitMix,
    now: Nanos,
    sent: u64,
}

impl World {
    fn new(seed: u64, faults: Faults) -> World {
        let config = Config { retries: 16, memory: Nanos::from_millis(20), ..Config::default() };
        let pool = Pool { size: PageSize::K4, frames: FRAMES, ready: FRAMES };
        let parameters = board::Config {
            retry_keep: config.memory,
            calls_max: [64, 64],
            // Results come in several packets.
            data_bytes_max: 256,
            ..board::Config::new(vec![pool])
        };
        let memory = vec![0; FRAMES as usize * 4_096];
        let mut board = Board::new(parameters, Secret::new([7; 16]), memory).unwrap();
        let mut begin =
            || board.begin([Quota { reserved: 0, limit: u32::MAX, shared: 0 }; PAGE_SIZES]).unwrap();
        let (store, caller) = (begin(), begin());
        let of = |grant: board::Grant| Credentials {
            pid: grant.space.pid,
            epoch: grant.space.epoch,
            token: grant.token,
        };
        // All clients are of one process, and the last one is the store's.
        let mut clients: Vec<_> =
            (0..CLIENTS).map(|nth| Client::new(config.clone(), &[of(caller)], nth as u32)).collect();
        clients.push(Client::new(config, &[of(store)], OWN as u32));
        let (air, random) = (BTreeMap::new(), SplitMix(seed));
        let none = Faults { lost: 0, copied: 0, damaged: 0, late: 0 };
        let (offloads, now) = (Offloads::default(), Nanos::ZERO);
        let mut world = World { board, offloads, clients, air, faults: none, random, now, sent: 0 };
        let alloc = Operation::Alloc { bytes: STORE, page_size: PageSize::K4, rights: Rights::ALL };
        world.clients[OWN].submit(0, 0, 0, alloc, world.now).unwrap();
        let mut start = None;
        while start.is_none() {
            world.step(&mut |_, _, outcome| match outcome {
                Outcome::Address(address) => start = Some(address),
                other => panic!("{other:?}"),
            });
        }
        let kv = Kv::new(store.space, start.unwrap(), STORE, 3, seed);
        world.offloads.add(store.space, Box::new(kv));
        world.faults = faults;
        world
    }

    fn send(&mut self, to_board: bool, client: usize, bytes: &[u8]) {
        let Faults { lost, copied, damaged, late } = self.faults;
        let mut chance = |of: u64| self.random.between(0, 999) < of;
        let (is_lost, is_copied, is_damaged) = (chance(lost), chance(copied), chance(damaged));
        for _ in 0..u32::from(!is_lost) + u32::from(is_copied) {
            let mut bytes = bytes.to_vec();
            if is_damaged {
                let at = self.random.between(0, bytes.len() as u64 - 1) as usize;
                bytes[at] ^= 1 << self.random.between(0, 7);
            }
            let most = if self.random.between(0, 999) < late { 60_000 } else { 3_000 };
            let at = self.now + Nanos(self.random.between(500, most));
            self.sent += 1;
            self.air.insert((at, self.sent), (to_board, client, bytes));
        }
    }

    /// The next event. Returns whether there was one.
    fn step(&mut self, ended: &mut dyn FnMut(usize, u64, Outcome<'_>)) -> bool {
        let calls = self.clients.iter().filter_map(|client| client.next_call(Nanos::ZERO));
        let next =
            calls.chain(self.board.next_call(Nanos::ZERO)).chain(self.air.keys().map(|key| key.0)).min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        let now = self.now;
        if let Some(first) = self.air.first_entry().filter(|first| first.key().0 <= now) {
            let (to_board, client, bytes) = first.remove();
            match to_board {
                true => self.board.handle_link((client, &bytes), now, now),
                false => self.clients[client].handle_link((0, &bytes), now, now),
            }
        }
        self.board.handle_timeout(now);
        self.offloads.serve(&mut self.board, now);
        let mut out = Vec::new();
        while let Some(sent) = self.board.poll_link(now, &mut out) {
            self.send(false, sent.to, &out);
        }
        for nth in 0..self.clients.len() {
            self.clients[nth].handle_timeout(now);
            while self.clients[nth].poll_link(now, &mut out).is_some() {
                self.send(true, nth, &out);
            }
            while let Some((tag, outcome)) = self.clients[nth].poll_completion() {
                ended(nth, tag, outcome);
            }
        }
        true
    }

    fn call(&mut self, client: usize, key: u64, function: KvFunction, value: &[u8]) {
        let name = [client as u8, key as u8];
        let mut arguments = vec![0; KvArguments::BYTES];
        let (value_bytes, key_bytes) = (value.len() as u32, name.len() as u8);
        KvArguments { value_address: 0, value_bytes, key_bytes, reserved: 0 }.emit(&mut arguments);
        arguments.extend_from_slice(&name);
        arguments.extend_from_slice(value);
        let call = Operation::Call {
            offload: 0,
            function: function as u8,
            arguments: &arguments,
            results_bytes_max: VALUE_BYTES,
            is_ordered: false,
        };
        self.clients[client].submit(0, 0, key, call, self.now).unwrap();
    }
}

/// Expected result of a key's request under way, and the key's content after it.
#[derive(Clone, Default)]
struct Key {
    value: Option<Vec<u8>>,
    wanted: Option<Result<Vec<u8>, Status>>,
    requests: u32,
}

/// Runs requests of all clients, each with several keys under way, until the end. Returns retries and executed calls.
fn run(seed: u64, faults: Faults) -> (u64, u64) {
    let mut world = World::new(seed, faults);
    let mut keys = vec![vec![Key::default(); KEYS as usize]; CLIENTS];
    loop {
        for (client, keys) in keys.iter_mut().enumerate() {
            for (nth, key) in keys.iter_mut().enumerate() {
                if key.wanted.is_some() || key.requests == REQUESTS {
                    continue;
                }
                key.requests += 1;
                let value = vec![key.requests as u8; world.random.between(0, 1_300) as usize];
                let known = key.value.clone();
                let (function, wanted) = match world.random.between(0, 5) {
                    0 if known.is_some() => (KvFunction::Create, Err(Status::Exists)),
                    0 => (KvFunction::Create, Ok(vec![])),
                    1 => (KvFunction::Put, Ok(vec![])),
                    2 => (KvFunction::Delete, known.clone().map(|_| vec![]).ok_or(Status::NotFound)),
                    _ => (KvFunction::Read, known.clone().ok_or(Status::NotFound)),
                };
                match function {
                    KvFunction::Delete => key.value = None,
                    KvFunction::Put => key.value = Some(value.clone()),
                    KvFunction::Create if known.is_none() => key.value = Some(value.clone()),
                    _ => {}
                }
                let sent =
                    if matches!(function, KvFunction::Put | KvFunction::Create) { &value[..] } else { &[] };
                world.call(client, nth as u64, function, sent);
                key.wanted = Some(wanted);
            }
        }
        let is_over = !world.step(&mut |client, key, outcome| {
            let wanted = keys[client][key as usize].wanted.take().unwrap();
            let found = match outcome {
                Outcome::Results(bytes) => Ok(bytes.to_vec()),
                Outcome::Refused(status) => Err(status),
                other => panic!("seed {seed}: {other:?}"),
            };
            assert!(
                found == wanted,
                "seed {seed}: client {client}, key {key}: {found:?} instead of {wanted:?}"
            );
        });
        if is_over {
            break;
        }
        assert!(world.now < Nanos::from_secs(2), "seed {seed}: it does not come to rest");
    }
    assert!(keys.iter().flatten().all(|key| key.wanted.is_none() && key.requests == REQUESTS), "seed {seed}");
    let retries = world.clients.iter().map(|client| client.counters().retries).sum();
    (retries, world.board.counters().offloads)
}

#[test]
fn every_request_has_its_effect_once_and_finds_what_is_there() {
    let faults = Faults { lost: 30, copied: 30, damaged: 10, late: 50 };
    let (mut retries, asked) = (0, CLIENTS as u64 * KEYS * u64::from(REQUESTS));
    for seed in 0..60 {
        let (again, executed) = run(seed, faults);
        assert!(executed >= asked, "seed {seed}");
        retries += again;
    }
    assert!(retries > 500, "{retries} retries: the network was too good");
    let none = Faults { lost: 0, copied: 0, damaged: 0, late: 0 };
    assert_eq!(run(1, none).1, asked, "nothing is executed twice without faults");
}
