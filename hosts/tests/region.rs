//! Cached regions over real ways, from several threads: each read and the remote memory are checked.

#![allow(clippy::unwrap_used)]

use crate::board;

use p4rack_fabric::remote::Way;
use p4rack_fabric::roce;
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::tcp::Served;
use p4rack_hosts::remote::{
    self, Abilities, Attachment, Delayed, Local, Operation, Outcome, Piece, Remote, RemoteError, Shape,
    Status, UnderWay, Written, open,
};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_netdev::wait::Waker;
use p4rack_wire::{Nanos, SplitMix};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// Runs a test with two connections to the same bytes.
fn over_tcp(test: impl FnOnce([Box<dyn Remote>; 2])) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        let open_one = |_| {
            let memory = Server { addr: addr.clone(), tls: None };
            let place = Attachment::at("", Ipv4Addr::LOCALHOST, roce::Config::default(), memory);
            open(Way::TCP, place, shape()).unwrap().0
        };
        test([0, 1].map(open_one));
    });
}

/// Memory of this process that several ways lead to.
#[derive(Clone)]
struct Common {
    local: Arc<Mutex<Local>>,
    abilities: Abilities,
}

impl Common {
    fn new() -> Common {
        let local = Local::new(REGION_BYTES);
        // An operation ends in the next poll of any of them: only one of the ways is used at a time.
        let abilities = local.abilities().clone();
        Common { local: Arc::new(Mutex::new(local)), abilities }
    }
}

impl Remote for Common {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.local.lock().unwrap().submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.local.lock().unwrap().poll(until, ended)
    }
}

/// What was never written is zeros, whatever remote memory has, and is not fetched; what was written comes back.
#[test]
fn a_region_that_starts_zeroed_fetches_what_was_written_alone() {
    const STEP: u64 = 1_000;
    for policy in ["runs", "lru", "unimem", "kona"] {
        let mut junk = Local::new(REGION_BYTES);
        junk.bytes().fill(0xff);
        let config = RegionConfig { starts_zeroed: true, ..config(policy) };
        let region = RemoteRegion::new(Box::new(junk), &config).unwrap();
        let mut found = vec![1; 64 << 10];
        for at in (0..REGION_BYTES).step_by(found.len()) {
            region.read(at, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 0), "{policy}, {at}");
        }
        let statistics = region.statistics();
        assert_eq!((statistics.fetched_bytes(), statistics.written_bytes()), (0, 0), "{policy}");
        assert!(statistics.local_bytes <= LOCAL_BYTES, "{statistics:?}");
        // A part of a block, in the first half of the region.
        let of = |at: u64| (at / STEP % 251) as u8 + 1;
        for at in (0..REGION_BYTES / 2).step_by(STEP as usize) {
            region.write(at, &[of(at); 7]).unwrap();
        }
        for at in (0..REGION_BYTES).step_by(STEP as usize) {
            let mut found = [9; 9];
            region.read(at, &mut found).unwrap();
            let written = if at < REGION_BYTES / 2 { of(at) } else { 0 };
            assert_eq!(
                found,
                [written, written, written, written, written, written, written, 0, 0],
                "{policy}, {at}"
            );
        }
        let statistics = region.statistics();
        assert!(statistics.fetched_bytes() > REGION_BYTES / 8, "{policy}: {statistics:?}");
        assert!(statistics.fetched_bytes() < REGION_BYTES, "{policy}: {statistics:?}");
        assert_eq!(region.close().unwrap().abilities().region_bytes, REGION_BYTES);
    }
}

const STRIPE: u64 = 24;

/// A thread's random accesses. It has the bytes at every `THREADS`th stripe of 24 bytes, so that threads share all
/// blocks. Returns the last value that it wrote to each of its stripes.
fn stripes(
    region: &RemoteRegion,
    thread: u64,
    steps: impl Iterator<Item = u64>,
) -> Result<Vec<u8>, RegionError> {
    let count = REGION_BYTES / STRIPE / THREADS;
    let mut random = SplitMix(thread);
    let mut written = vec![0u8; count as usize];
    for step in steps {
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
                // A view ends with its block: the rest is in the next one.
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
                let rest = 24 - view.len();
                drop(view);
                if rest > 0 {
                    let view = region.view(at + 24 - rest as u64, rest)?;
                    assert!(view.len() == rest && view.iter().all(|byte| byte == last), "{thread}, {step}");
                }
            }
            12 => drop(region.prefetch(at, 4_096.min(REGION_BYTES - at))?),
            13 if step.is_multiple_of(8) => region.flush()?,
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
            }
        }
    }
    Ok(written)
}

/// Several threads, then the content of remote memory after a flush, read over another way.
fn used_by_threads(remote: Box<dyn Remote>, other: Box<dyn Remote>, policy: &str, steps: u64) {
    let region = &RemoteRegion::new(remote, &config(policy)).unwrap();
    let written: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let run = |thread| move || stripes(region, thread, 0..steps).unwrap();
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    region.flush().unwrap();
    let mut there = vec![0xff; REGION_BYTES as usize];
    remote::Region::new(other).read(0, &mut there).unwrap();
    for (nth, stripe) in there.chunks_exact(STRIPE as usize).enumerate() {
        let (thread, nth) = (nth % THREADS as usize, nth / THREADS as usize);
        if let Some(last) = written[thread].get(nth) {
            assert!(stripe.iter().all(|byte| byte == last), "{policy}: stripe {nth} of thread {thread}");
        }
    }
    let statistics = region.statistics();
    assert!(statistics.local_bytes <= LOCAL_BYTES, "{statistics:?}");
    let counters = statistics.counters;
    assert!(counters.from_remote > 0 && counters.written_back > 0 && counters.evicted > 0, "{counters:?}");
    assert!(counters.prefetched > 0 && counters.prefetched_used > 0, "{counters:?}");
}

#[test]
fn threads_read_what_they_wrote_under_every_policy() {
    for policy in ["runs", "unimem", "kona", "lru", "w-tinylfu", "s3-fifo", "arc", "runs-single"] {
        let common = Common::new();
        let late = Delayed::new(common.clone(), Nanos::from_micros(20));
        used_by_threads(Box::new(late), Box::new(common), policy, 2_000);
    }
}

#[test]
fn threads_read_what_they_wrote_over_tcp() {
    over_tcp(|[remote, other]| used_by_threads(remote, other, "runs", 4_000));
}

#[test]
fn threads_read_what_they_wrote_over_clio() {
    board::with_board(REGION_BYTES, |place| {
        // Both clients join the process that is offered to all.
        let [(remote, _held), (other, _other_held)] =
            [(); 2].map(|()| open(Way::CLIO, place.clone(), shape()).unwrap());
        used_by_threads(remote, other, "runs", 2_000);
    });
}

/// A way that says only when writes have left is made certain.
#[test]
fn a_way_without_ends_of_writes_is_read_back() {
    let common = Common::new();
    let abilities = Abilities { writes: Written::Sent, ..common.abilities.clone() };
    let sent = Common { abilities, ..common.clone() };
    used_by_threads(Box::new(sent), Box::new(common), "runs", 500);
}

#[test]
fn what_was_flushed_is_there_for_the_next_region() {
    over_tcp(|[first, second]| {
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

/// Waits for a condition that another thread brings about.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = clock::now() + Nanos::from_secs(60);
    while !is_so() {
        assert!(clock::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends threads that would go on for ever, however the test ends.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A server that is killed: its connections end in the middle.
#[test]
fn a_lost_server_is_an_error_for_every_thread_and_for_good() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let (served, end) = (Served::new(vec![0u8; REGION_BYTES as usize], false), Waker::new().unwrap());
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Attachment::at(
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
        let progress = &[const { AtomicU64::new(0) }; THREADS as usize];
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|threads| {
            let _ends = Ends(is_over);
            let goes_on = move |thread: u64, step: u64| {
                progress[thread as usize].store(step, Ordering::Relaxed);
                !is_over.load(Ordering::Relaxed)
            };
            let run =
                |thread| move || stripes(region, thread, (0..).take_while(|step| goes_on(thread, *step)));
            let all: Vec<_> = (0..THREADS).map(|thread| threads.spawn(run(thread))).collect();
            wait_until("each thread is in the middle of its accesses", || {
                progress.iter().all(|steps| steps.load(Ordering::Relaxed) >= 500)
            });
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
        // A server that has started again at the address has none of the bytes.
        front.set_nonblocking(true).unwrap();
        assert!(front.accept().is_err(), "the way connects again");
    });
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
    // A memory node of EDM does not say how long its region is.
    let common = Common::new();
    let abilities = Abilities { region_bytes: u64::MAX, ..common.abilities.clone() };
    let endless = RemoteRegion::new(Box::new(Common { abilities, ..common }), &config("lru")).unwrap_err();
    let expected = "region_bytes: 18446744073709551615; expected at most 549755813376 with blocks of 512";
    assert!(endless.to_string().starts_with(expected), "{endless}");
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

#[test]
fn a_region_that_closes_leaves_all_writes_and_gives_its_way_to_the_next() {
    for policy in ["runs", "lru", "kona"] {
        over_tcp(|[way, mut other]| {
            let region = RemoteRegion::new(way, &config(policy)).unwrap();
            for at in (0..REGION_BYTES).step_by(4_096) {
                region.write(at, &at.to_le_bytes()).unwrap();
            }
            // Blocks that are still on their way belong to nothing afterwards.
            region.prefetch(REGION_BYTES / 2, 64 << 10).unwrap();
            let way = region.close().unwrap();
            other.submit(1, Operation::Read { at: 8_192, bytes: 8 }).unwrap();
            let mut found = Vec::new();
            while found.is_empty() {
                let until = clock::now() + Nanos::from_secs(1);
                other
                    .poll(until, &mut |_, outcome| {
                        found.push(outcome == Outcome::Read(&8_192_u64.to_le_bytes()))
                    })
                    .unwrap();
            }
            assert_eq!(found, [true]);
            let region = RemoteRegion::new(way, &config(policy)).unwrap();
            assert_eq!(region.counters().accesses(), 0);
            for at in (0..REGION_BYTES).step_by(4_096) {
                let mut bytes = [0; 8];
                region.read(at, &mut bytes).unwrap();
                assert_eq!(u64::from_le_bytes(bytes), at, "{policy}");
            }
        });
    }
}
