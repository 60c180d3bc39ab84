//! A Cowbird engine serves two sets of rings. The first holds anything; the engine accesses nothing beyond that set and
//! its own region, and the second's thread gets all of its requests done.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_cowbird::{Client, Layout, PollId, words};
use p4rack_fabric::Machine as _;
use p4rack_fabric::cowbird::{Config, Engine, Pool, Set};
use p4rack_fabric::roce::{Outcome, Request};
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LAYOUT: Layout = Layout { entries: 8, request_bytes: 256, response_bytes: 256 };
/// Bytes of each set's region.
const SPAN: usize = 256;
/// Bytes that the first set's thread takes each of its regions to have. It believes in two.
const FAR: u64 = 320;
/// First key of the regions; those of sets count from 0, as addresses of both do.
const POOL_KEY: u32 = 2;
const TO_COMPUTE: u32 = 0x10;
const TO_POOL: u32 = 0x11;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A word of the first set, small or any.
    Ruin {
        at: u8,
        value: u64,
        small: bool,
    },
    /// The first set's thread makes a request, which may be outside of its region.
    Err {
        write: bool,
        region: bool,
        at: u16,
        length: u8,
    },
    /// The second set's thread makes a request, if none is under way.
    Ask {
        write: bool,
        at: u8,
        length: u8,
        byte: u8,
    },
    /// At most this number of the engine's requests are done.
    Exchange(u8),
    Wait(u16),
    /// Another engine takes over, which knows nothing.
    Restart,
}

type Rings = Arc<[AtomicU64]>;

struct World {
    engine: Engine,
    sets: [Rings; 2],
    pool: [Vec<u8>; 2],
    now: Nanos,
}

/// The request that the second set's thread waits for.
enum Waits {
    Write,
    Read { at: usize, length: usize },
}

fn engine() -> Engine {
    let mut engine = Engine::new(Config { message_bytes_max: 512, ..Config::default() });
    for key in 0..2 {
        let pool = Pool { qpn: TO_POOL, key: POOL_KEY + key, address: 0, bytes: SPAN as u64 };
        let set = Set { owner: 0, qpn: TO_COMPUTE, key, address: 0, layout: LAYOUT, regions: vec![pool] };
        engine.add(set, Nanos::ZERO).expect("right");
    }
    engine
}

impl World {
    fn read(&self, key: u32, address: u64, bytes: u32) -> Vec<u8> {
        let (at, mut read) = (address as usize, vec![0; bytes as usize]);
        match key.checked_sub(POOL_KEY) {
            None => words::read(&self.sets[key as usize], at, &mut read).expect("within the set"),
            Some(nth) => read.copy_from_slice(&self.pool[nth as usize][at..at + bytes as usize]),
        }
        read
    }

    fn write(&mut self, key: u32, address: u64, bytes: &[u8]) {
        let at = address as usize;
        match key.checked_sub(POOL_KEY) {
            None => words::write(&self.sets[key as usize], at, bytes).expect("within the set"),
            Some(nth) => self.pool[nth as usize][at..at + bytes.len()].copy_from_slice(bytes),
        }
    }

    /// Does a request of the engine. Returns whether there was one.
    fn exchange(&mut self) -> bool {
        let Some((qpn, request)) = self.engine.poll_link(self.now, &mut ()) else { return false };
        let outcome = match request {
            Request::Read { key, address, bytes } => Outcome::Read(self.read(key, address, bytes)),
            Request::Write { key, address, bytes, .. } => {
                self.write(key, address, &bytes);
                Outcome::Done
            }
            other => panic!("an engine reads and writes: {other:?}"),
        };
        self.engine.handle_link((qpn, outcome), self.now, self.now);
        true
    }

    fn ruin(&self, word: usize, value: u64) {
        let words = &self.sets[0];
        words[word % words.len()].store(value.to_be(), Ordering::Relaxed);
    }
}

/// Checks whether the awaited request is done, against its own copy of the memory.
fn fetch(client: &mut Client<Rings>, poll: PollId, waits: &mut Option<Waits>, model: &[u8]) {
    let fetched = client.poll(poll, 1, |response| match (waits.take(), response.data) {
        (Some(Waits::Write), None) => {}
        (Some(Waits::Read { at, length }), Some(data)) => {
            assert_eq!(data.to_vec(), model[at..at + length], "what was written last");
        }
        _ => panic!("something else came than was asked for"),
    });
    fetched.expect("another thread's rings end nobody's");
}

fuzz_target!(|steps: Vec<Step>| {
    let rings = || -> Rings { (0..LAYOUT.bytes() / 8).map(|_| AtomicU64::new(0)).collect() };
    let sets = [rings(), rings()];
    let mut client = Client::new(sets[1].clone(), LAYOUT, vec![SPAN as u64]).expect("right");
    let poll = client.poll_create();
    let mut first = Client::new(sets[0].clone(), LAYOUT, vec![FAR; 2]).expect("right");
    let all = first.poll_create();
    let mut world = World { engine: engine(), sets, pool: [vec![0; SPAN], vec![0; SPAN]], now: Nanos::ZERO };
    let (mut waits, mut model): (Option<Waits>, _) = (None, vec![0; SPAN]);
    for step in steps {
        match step {
            Step::Ruin { at, value, small } => world.ruin(at.into(), if small { value % 40 } else { value }),
            Step::Err { write, region, at, length } => {
                let (region, bytes) = (region.into(), vec![1; length.into()]);
                let at = u64::from(at) % FAR;
                let asked = if write {
                    first.async_write(region, &bytes, at)
                } else {
                    first.async_read(region, at, length.into())
                };
                // Room and results are arbitrary, as the rings are.
                if let Ok(id) = asked {
                    let _ = first.poll_add(all, id);
                }
                let _ = first.poll(all, usize::MAX, |_| {});
            }
            Step::Ask { write, at, length, byte } if waits.is_none() => {
                let (at, length) = (usize::from(at), 1 + usize::from(length % 64));
                let at = at.min(SPAN - length);
                let asked = if write {
                    model[at..at + length].fill(byte);
                    waits = Some(Waits::Write);
                    client.async_write(0, &model[at..at + length], at as u64)
                } else {
                    waits = Some(Waits::Read { at, length });
                    client.async_read(0, at as u64, length as u32)
                };
                // One is under way at a time, so there is room.
                client.poll_add(poll, asked.expect("room")).expect("new");
            }
            Step::Ask { .. } => {}
            Step::Exchange(times) => {
                let _ = (0..times).all(|_| world.exchange());
                fetch(&mut client, poll, &mut waits, &model);
            }
            Step::Wait(us) => world.now = world.now.saturating_add(Nanos::from_micros(us.into())),
            Step::Restart => world.engine = engine(),
        }
    }
    for _ in 0..1_000 {
        while world.exchange() {}
        fetch(&mut client, poll, &mut waits, &model);
        if waits.is_none() {
            break;
        }
        let next = world.engine.next_link().expect("the second set is probed");
        world.now = world.now.max(next);
    }
    assert!(waits.is_none(), "the second set's thread has what it asked for");
    assert_eq!(world.pool[1], model);
});
