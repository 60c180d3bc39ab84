//! Cached regions over real ways, from several threads, each read checked; and over a way with faults.

#![allow(clippy::unwrap_used)]

#[path = "common/board.rs"]
mod board;

use p4rack_fabric::remote::Way;
use p4rack_fabric::roce;
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::tcp::Served;
use p4rack_hosts::remote::{
    Abilities, Local, Operation, Outcome, Piece, Place, Remote, RemoteError, Shape, Status, UnderWay,
    Written, open,
};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::wait::Waker;
use p4rack_wire::{Nanos, SplitMix};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;

const REGION_BYTES: u64 = 1 << 20;
/// Local memory: an eighth.
const LOCAL_BYTES: u64 = 128 << 10;
const THREADS: u64 = 4;

fn shape() -> Shape {
    let under_way = UnderWay::of(32, 1_024);
    Shape { region_bytes: REGION_BYTES, reads: under_way, writes: under_way }
}

fn config(policy: &str) -> RegionConfig {
    RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(LOCAL_BYTES) }
}

/// Ends a server, however the test ends.
struct Wakes<'a>(&'a Waker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

fn over_tcp(test: impl FnOnce(Box<dyn Remote>)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        let memory = Server { addr, tls: None };
        let place = Place::at("", Ipv4Addr::LOCALHOST, roce::Config::default(), memory);
        test(open(Way::TCP, place, shape()).unwrap().0);
    });
}

/// A thread's random accesses. It has the bytes at every `THREADS`th stripe of 24 bytes, so that threads share all blocks.
fn stripes(region: &RemoteRegion, thread: u64, steps: u64) -> Result<u64, RegionError> {
    const STRIPE: u64 = 24;
    let count = REGION_BYTES / STRIPE / THREADS;
    let mut random = SplitMix(thread);
    let mut written = vec![0u8; count as usize];
    let mut checked = 0;
    for step in 0..steps {
        // Two of three in a hot part.
        let limit = if random.next().is_multiple_of(3) { count } else { count / 16 };
        let stripe = random.between(0, limit - 1);
        let (at, last) = ((stripe * THREADS + thread) * STRIPE, &mut written[stripe as usize]);
        let mut bytes = [0; STRIPE as usize];
        match random.next() % 32 {
            0..10 => {
                *last = step as u8;
                region.write(at, &[*last; STRIPE as usize])?;
            }
            10 => {
                // One of many that begin in the same block.
                let mut view = region.view_mut(at, 24)?;
                *last = step as u8;
                let here = view.len();
                view.fill(*last);
                drop(view);
                region.write(at + here as u64, &vec![*last; 24 - here])?;
            }
            11 => {
                let view = region.view(at, 24)?;
                assert!(view.iter().all(|byte| byte == last), "thread {thread}, step {step}");
            }
            12 => drop(region.prefetch(at, 4_096.min(REGION_BYTES - at))?),
            13 if step % 256 == 0 => region.flush()?,
            14 => {
                // Two stripes at the same time.
                let other = random.between(0, limit - 1);
                let pieces =
                    [stripe, other].map(|one| Piece { at: (one * THREADS + thread) * STRIPE, bytes: 24 });
                let mut both = [0; 48];
                region.gather(&pieces, &mut both)?;
                let expected = [stripe, other].map(|one| [written[one as usize]; 24]).concat();
                assert_eq!(both.as_slice(), expected, "thread {thread}, step {step}");
            }
            _ => {
                region.read(at, &mut bytes)?;
                assert_eq!(bytes, [*last; STRIPE as usize], "thread {thread}, step {step}, {at}");
                checked += 1;
            }
        }
    }
    Ok(checked)
}

/// Several threads, then what remote memory has after a flush.
fn used_by_threads(region: &RemoteRegion, steps: u64) {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || stripes(region, thread, steps).unwrap())).collect();
        for thread in threads {
            assert!(thread.join().unwrap() > steps / 4);
        }
    });
    region.flush().unwrap();
    let statistics = region.statistics();
    assert!(statistics.local_bytes <= LOCAL_BYTES, "{statistics:?}");
    let counters = statistics.counters;
    assert!(counters.from_remote > 0 && counters.written_back > 0 && counters.evicted > 0, "{counters:?}");
}

#[test]
fn threads_read_what_they_wrote_under_every_policy() {
    for policy in ["runs", "unimem", "kona", "lru", "w-tinylfu", "s3-fifo", "arc", "runs-single"] {
        let region =
            RemoteRegion::new(open(Way::DELAYED, Place::here(), shape()).unwrap().0, &config(policy));
        used_by_threads(&region.unwrap(), 2_000);
    }
}

#[test]
fn threads_read_what_they_wrote_over_tcp() {
    over_tcp(|remote| used_by_threads(&RemoteRegion::new(remote, &config("runs")).unwrap(), 4_000));
}

#[test]
fn threads_read_what_they_wrote_over_clio() {
    board::with_board(REGION_BYTES, |place| {
        let (remote, _held) = open(Way::CLIO, place.clone(), shape()).unwrap();
        used_by_threads(&RemoteRegion::new(remote, &config("runs")).unwrap(), 2_000);
    });
}

#[test]
fn what_was_flushed_is_there_for_the_next_region() {
    over_tcp_twice(|first, second| {
        let region = RemoteRegion::new(first, &config("kona")).unwrap();
        let bytes: Vec<u8> = (0..REGION_BYTES).map(|at| ((at * 31) >> 3) as u8).collect();
        region.write(0, &bytes).unwrap();
        region.flush().unwrap();
        let again = RemoteRegion::new(second, &config("runs")).unwrap();
        let mut back = vec![0; bytes.len()];
        again.read(0, &mut back).unwrap();
        assert!(back == bytes);
    });
}

fn over_tcp_twice(test: impl FnOnce(Box<dyn Remote>, Box<dyn Remote>)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        let place = || {
            let memory = Server { addr: addr.clone(), tls: None };
            Place::at("", Ipv4Addr::LOCALHOST, roce::Config::default(), memory)
        };
        test(open(Way::TCP, place(), shape()).unwrap().0, open(Way::TCP, place(), shape()).unwrap().0);
    });
}

/// A server that is killed: its connections end in the middle.
#[test]
fn a_lost_server_is_an_error_for_every_thread_and_for_good() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::at(
        "",
        Ipv4Addr::LOCALHOST,
        roce::Config::default(),
        Server { addr: front.local_addr().unwrap().to_string(), tls: None },
    );
    let cut: Mutex<Vec<TcpStream>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        // Between the two: passes bytes on until it is cut.
        scope.spawn(|| {
            let (client, server) = (front.accept().unwrap().0, TcpStream::connect(&addr).unwrap());
            let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (mut from_server, mut to_client) = (server, client);
            scope.spawn(move || std::io::copy(&mut from_client, &mut to_server));
            scope.spawn(move || std::io::copy(&mut from_server, &mut to_client));
            cut.lock().unwrap().extend(ends);
        });
        let region = RemoteRegion::new(open(Way::TCP, place, shape()).unwrap().0, &config("runs")).unwrap();
        // Behind the threads' stripes.
        let own = REGION_BYTES - 8;
        region.write(own, b"local").unwrap();
        let region = &region;
        std::thread::scope(|threads| {
            let all: Vec<_> =
                (0..THREADS).map(|thread| threads.spawn(move || stripes(region, thread, u64::MAX))).collect();
            // All have begun.
            while region.statistics().counters.accesses() < 5_000 {
                std::thread::yield_now();
            }
            cut.lock().unwrap().iter().for_each(|one| one.shutdown(std::net::Shutdown::Both).unwrap());
            for thread in all {
                assert!(matches!(thread.join().unwrap(), Err(RegionError::Lost(_))));
            }
        });
        let lost =
            |error: RegionError| assert!(matches!(error, RegionError::Lost(ref why) if !why.is_empty()));
        lost(region.read(own, &mut [0; 5]).unwrap_err());
        lost(region.write(own, b"x").unwrap_err());
        lost(region.view(0, 1).unwrap_err());
        lost(region.flush().unwrap_err());
        lost(region.prefetch(0, 1).unwrap_err());
    });
}

/// Local memory behind a way with faults, in a time of its own.
struct Faulty {
    local: Local,
    abilities: Abilities,
    random: SplitMix,
    ends: VecDeque<(u64, Result<Vec<u8>, Status>)>,
    now: Nanos,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Refuses some operations, on submission or later.
    Busy,
    /// Never answers a read.
    Silent,
    /// Does not know of a write whether it was done.
    UnknownWrites,
}

impl Remote for Faulty {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        if self.ends.len() >= self.abilities.under_way_max {
            return Err(Status::Full);
        }
        let chance = self.random.next() % 8;
        match (self.fault, operation) {
            (Fault::Busy, _) if chance == 0 => return Err(Status::Busy),
            (Fault::Busy, _) if chance == 1 => self.ends.push_back((tag, Err(Status::Busy))),
            (Fault::Busy, Operation::Read { .. }) if chance == 2 => {
                self.ends.push_back((tag, Err(Status::Unknown)));
            }
            (Fault::Silent, Operation::Read { .. }) => {}
            (Fault::UnknownWrites, Operation::Write { .. }) => {
                self.ends.push_back((tag, Err(Status::Unknown)));
            }
            _ => {
                self.local.submit(tag, operation)?;
                let ends = &mut self.ends;
                self.local
                    .poll(Nanos::ZERO, &mut |tag, outcome| {
                        let bytes =
                            if let Outcome::Read(bytes) = outcome { bytes.to_vec() } else { Vec::new() };
                        ends.push_back((tag, Ok(bytes)));
                    })
                    .map_err(|_| Status::Gone)?;
            }
        }
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.now = self.now.max(until) + Nanos::from_micros(1);
        // Some ends, in any order.
        for _ in 0..self.random.between(0, 3).min(self.ends.len() as u64) {
            let at = self.random.between(0, self.ends.len() as u64 - 1) as usize;
            match self.ends.remove(at) {
                Some((tag, Ok(bytes))) if bytes.is_empty() => ended(tag, Outcome::Written),
                Some((tag, Ok(bytes))) => ended(tag, Outcome::Read(&bytes)),
                Some((tag, Err(status))) => ended(tag, Outcome::Failed(status)),
                None => {}
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.now
    }
}

fn faulty(fault: Fault, seed: u64, longest: u32, region_bytes: u64) -> Box<dyn Remote> {
    let local = Local::new(region_bytes);
    let abilities = Abilities {
        read_bytes_max: longest,
        write_bytes_max: longest,
        under_way_max: 9,
        pieces_max: 0,
        ..local.abilities().clone()
    };
    Box::new(Faulty { local, abilities, random: SplitMix(seed), ends: VecDeque::new(), now: Nanos(1), fault })
}

/// Operations shorter than blocks, in any order, some refused; a region that ends within a block.
#[test]
fn a_busy_memory_with_short_operations_is_asked_again() {
    for seed in 0..8 {
        let region_bytes = (64 << 10) + 40;
        let remote = faulty(Fault::Busy, seed, 200, region_bytes);
        let policy = ["runs", "kona", "lru", "arc"][seed as usize % 4].to_owned();
        let config = RegionConfig { policy, block_bytes: Some(512), ..RegionConfig::new(24 << 10) };
        let region = RemoteRegion::new(remote, &config).unwrap();
        let mut plain = vec![0u8; region_bytes as usize];
        let mut random = SplitMix(seed);
        for step in 0..4_000u32 {
            let at = random.between(0, region_bytes - 1) as usize;
            let len = random.between(0, 700).min(region_bytes - at as u64) as usize;
            if random.next().is_multiple_of(3) {
                plain[at..at + len].fill(step as u8);
                region.write(at as u64, &vec![step as u8; len]).unwrap();
            } else {
                let mut bytes = vec![0xff; len];
                region.read(at as u64, &mut bytes).unwrap();
                assert!(bytes == plain[at..at + len], "seed {seed}, step {step}");
            }
        }
        region.flush().unwrap();
        assert!(region.statistics().local_bytes <= 24 << 10);
        let mut all = vec![0; plain.len()];
        region.read(0, &mut all).unwrap();
        assert!(all == plain, "seed {seed}");
    }
}

#[test]
fn silence_and_unknown_writes_lose_the_region() {
    let region = |fault| RemoteRegion::new(faulty(fault, 1, 4_096, REGION_BYTES), &config("lru")).unwrap();
    let silent = region(Fault::Silent).read(0, &mut [0]).unwrap_err();
    assert!(silent.to_string().contains("no answer for 10 s"), "{silent}");
    // A write that may still be carried out could undo a newer one.
    let unknown = region(Fault::UnknownWrites);
    unknown.write(7, &[1]).unwrap();
    let why = unknown.flush().unwrap_err().to_string();
    assert!(why.contains("a write of block 0 failed: no answer in time"), "{why}");
}

#[test]
fn views_have_a_limit_and_lie_in_a_block() {
    let remote = Box::new(Local::new(REGION_BYTES));
    let region = RemoteRegion::new(remote, &RegionConfig { guards: Some(2), ..config("lru") }).unwrap();
    region.write(1_000, &[7; 100]).unwrap();
    let first = region.view(1_000, 100).unwrap();
    let second = region.view(1_000, 100).unwrap();
    assert_eq!((first.len(), second.iter().sum::<u8>()), (24, 168), "to the end of the block");
    assert_eq!(region.view(1_024, 8).unwrap_err(), RegionError::Guards(2));
    drop(first);
    let mut writes = region.view_mut(1_024, 8).unwrap();
    writes.copy_from_slice(b"12345678");
    drop(writes);
    let mut bytes = [0; 10];
    region.read(1_023, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\x0712345678\x07");
}

#[test]
fn bad_sizes_are_refused_with_what_was_expected() {
    let refused = |config: RegionConfig| {
        RemoteRegion::new(Box::new(Local::new(REGION_BYTES)), &config).unwrap_err().to_string()
    };
    for (config, expected) in [
        (config("runz"), "policy: `runz`; expected one of kona, "),
        (config("belady"), "policy: belady knows the future"),
        (RegionConfig { block_bytes: Some(100), ..config("lru") }, "block_bytes: 100; expected 64, 128"),
        (RegionConfig { local_bytes: 4_096, ..config("runs") }, "capacity: "),
    ] {
        let why = refused(config);
        assert!(why.starts_with(expected), "{why}");
    }
    let narrow = RemoteRegion::new(faulty(Fault::Busy, 1, 16, REGION_BYTES), &config("lru")).unwrap_err();
    assert!(narrow.to_string().contains("takes 32 operations on this way, of at most 9"), "{narrow}");
    let region = RemoteRegion::new(Box::new(Local::new(REGION_BYTES)), &config("lru")).unwrap();
    let beyond =
        RegionError::OutOfBounds { at: REGION_BYTES - 1, end: REGION_BYTES + 1, region_bytes: REGION_BYTES };
    assert_eq!(region.read(REGION_BYTES - 1, &mut [0; 2]), Err(beyond));
    let pieces = [Piece { at: 0, bytes: 4 }];
    assert_eq!(region.scatter(&pieces, &[0; 5]), Err(RegionError::Length { pieces: 4, buffer: 5 }));
    assert_eq!(
        (region.read(REGION_BYTES, &mut []), region.view(0, 0).map(drop)),
        (Ok(()), Err(RegionError::Empty))
    );
}

/// A way that says only when writes have left is made certain.
#[test]
fn a_way_without_ends_of_writes_is_read_back() {
    struct Sent(Local, Abilities);
    impl Remote for Sent {
        fn abilities(&self) -> &Abilities {
            &self.1
        }
        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            self.0.submit(tag, operation)
        }
        fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            self.0.poll(until, ended)
        }
    }
    let local = Local::new(REGION_BYTES);
    let abilities = Abilities { writes: Written::Sent, ..local.abilities().clone() };
    let region = RemoteRegion::new(Box::new(Sent(local, abilities)), &config("runs")).unwrap();
    used_by_threads(&region, 500);
}
