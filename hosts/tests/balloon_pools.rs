//! The balloon with an RDMA pool as memory node, on links between namespaces: keys that are revoked while requests are under way, and
//! regions over extents of both kinds of memory nodes.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::{key, with_board};
use p4rack_fabric::balloon::{Config, Lent};
use p4rack_fabric::remote::Way;
use p4rack_fabric::roce::{self, Regions};
use p4rack_hosts::balloon::service::{Service, serve};
use p4rack_hosts::balloon::{Listed, Phase, Tenancy, granted, leave, list, release, serve_pool};
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::{Attachment, Granted, Movable, Opened, Operation, Outcome, Remote as _, Status};
use p4rack_hosts::roce::pool::{self, PoolConfig, Service as Pool};
use p4rack_hosts::roce::setup::{Server, Station};
use p4rack_hosts::roce::star::{FRAMES, Star};
use p4rack_hosts::roce::{Loss, RocePort};
use p4rack_netdev::clock;
use p4rack_netdev::wait::Waker;
use p4rack_wire::Nanos;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Long enough for a machine that other tests keep busy.
const LIMIT: Duration = Duration::from_secs(60);
const EXTENT: u64 = 2 << 20;
const PORT: u16 = 9_561;
/// Hosts of the pool and of compute nodes.
const POOL: u8 = 0;
const ONE: u8 = 1;
const TWO: u8 = 2;

fn adapter() -> roce::Config {
    // Processes that share a machine wake late.
    roce::Config { timeout: Nanos::from_millis(50), retries_max: u8::MAX, ..roce::Config::default() }
}

fn server(host: u8) -> Server {
    Server { addr: SocketAddr::from((Star::setup_ip(host), PORT)).to_string(), tls: None }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Ends the pool's thread, however the test ends.
struct Wakes<'a>(&'a Waker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Runs a test in the namespace of the first compute node, beside a pool that lends `bytes` bytes.
fn beside_pool(bytes: u64, test: impl FnOnce(&Star) + Send) {
    beside_pools(&[POOL], bytes, test);
}

/// The same beside pools of these hosts.
fn beside_pools(pools: &[u8], bytes: u64, test: impl FnOnce(&Star) + Send) {
    let Ok(star) = Star::create(3) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    let ends: Vec<Waker> = pools.iter().map(|_| Waker::new().unwrap()).collect();
    std::thread::scope(|scope| {
        let star = &star;
        let _wakes: Vec<Wakes<'_>> = ends.iter().map(Wakes).collect();
        for (host, end) in pools.iter().zip(&ends) {
            let (end, (told, ready)) = (end.try_clone().unwrap(), mpsc::channel());
            scope.spawn(move || serve_one(star, *host, bytes, &end, &told));
            ready.recv().unwrap();
        }
        star.host(ONE).run(|| test(star)).unwrap();
    });
}

/// A pool, until its end.
fn serve_one(star: &Star, host: u8, bytes: u64, end: &Waker, told: &mpsc::Sender<()>) {
    star.host(host).enter().unwrap();
    let open = RocePort::open(FRAMES, Star::ip(host), adapter(), Regions::default(), Loss::default());
    let mut port = open.unwrap();
    let config = PoolConfig {
        station: Station { mac: port.mac(), ip: Star::ip(host) },
        adapter: adapter(),
        members: None,
        offers: Vec::new(),
        reserve_bytes_max: bytes,
        tenants: 1,
    };
    let pool = Pool::new(port.handle(), config);
    let runtime = runtime();
    let at = server(host).addr.parse().unwrap();
    let listener = runtime.block_on(pool::bind(at)).unwrap();
    runtime.spawn(serve_pool(listener, pool, key(), None));
    let ends = port.watch(end).unwrap();
    told.send(()).unwrap();
    while !port.ready(ends) {
        port.turn(None).unwrap();
    }
}

/// A service for these memory nodes.
struct Rig {
    runtime: Runtime,
    server: Server,
}

impl Rig {
    fn new(nodes: Vec<Server>) -> Rig {
        let runtime = runtime();
        let lease = Nanos::from_secs(60);
        let config = Config { lease, retry: Nanos::from_millis(50), ..Config::new(nodes.len() as u16) };
        let server = runtime.block_on(async {
            let service = Service::start(nodes, &key(), config).unwrap();
            let listener = pool::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
            let server = Server { addr: listener.local_addr().unwrap().to_string(), tls: None };
            tokio::spawn(async move { serve(listener, service, None).await });
            server
        });
        Rig { runtime, server }
    }

    fn open(&self, holder: u32) -> Tenancy {
        self.runtime.block_on(Tenancy::open(self.server.clone(), holder, LIMIT)).unwrap()
    }

    fn reserve(&self, tenancy: &mut Tenancy) -> (Lent, String) {
        self.runtime.block_on(tenancy.reserve(EXTENT)).unwrap()
    }

    fn until(&self, mut is_so: impl FnMut(&Listed) -> bool) {
        let end = clock::now() + Nanos(LIMIT.as_nanos() as u64);
        loop {
            let listed = self.runtime.block_on(list(&self.server)).unwrap();
            if is_so(&listed) {
                return;
            }
            assert!(clock::now() < end, "{listed:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn until_free(&self, bytes: u64) {
        self.until(|listed| {
            let free: Option<u64> = listed.nodes.iter().map(|node| Some(node.facts.memory?.free_bytes)).sum();
            listed.phase == Phase::Serving && free == Some(bytes)
        });
    }
}

/// Opens an extent from a host in whose namespace the caller is.
fn open_extent(host: u8, (lent, addr): &(Lent, String)) -> Opened {
    let memory = Server { addr: addr.clone(), tls: None };
    Tenancy::open_extent(lent, Attachment::at(FRAMES, Star::ip(host), adapter(), memory)).unwrap()
}

/// The words at both ends of an extent, after `word` was written there.
fn words(opened: &mut Opened, word: Option<u64>) -> [u64; 2] {
    let mut found = [0; 2];
    for (found, at) in found.iter_mut().zip([0, EXTENT - 8]) {
        if let Some(word) = word {
            assert_eq!(one(opened, Operation::Write { at, bytes: &word.to_le_bytes() }), Ok(Vec::new()));
        }
        let bytes = one(opened, Operation::Read { at, bytes: 8 }).unwrap();
        *found = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    found
}

/// The end of an operation.
fn one((remote, _): &mut Opened, operation: Operation<'_>) -> Result<Vec<u8>, Status> {
    remote.submit(1, operation)?;
    let (end, mut ended) = (clock::now() + Nanos(LIMIT.as_nanos() as u64), None);
    while ended.is_none() {
        assert!(clock::now() < end, "it does not end");
        let told = &mut |_, outcome: Outcome<'_>| {
            ended = Some(match outcome {
                Outcome::Read(bytes) => Ok(bytes.to_vec()),
                Outcome::Written | Outcome::Word(_) => Ok(Vec::new()),
                Outcome::Failed(status) => Err(status),
            });
        };
        remote.poll(end, told).unwrap();
    }
    ended.unwrap()
}

#[test]
fn an_extent_of_a_pool_is_fenced_and_zeroed_before_another_gets_it() {
    beside_pool(2 * EXTENT, |star| {
        let rig = Rig::new(vec![server(POOL)]);
        let (mut one_node, mut other_node) = (rig.open(1), rig.open(2));
        let lent = rig.reserve(&mut one_node);
        let mut opened = open_extent(ONE, &lent);
        assert_eq!(words(&mut opened, None), [0, 0]);
        assert_eq!(words(&mut opened, Some(77)), [77, 77]);
        rig.runtime.block_on(one_node.give_back(lent.0.extent)).unwrap();
        rig.until_free(2 * EXTENT);
        let again = [rig.reserve(&mut other_node), rig.reserve(&mut other_node)];
        assert_eq!(again[0].0.extent.place, lent.0.extent.place);
        let late = one(&mut opened, Operation::Write { at: 0, bytes: &[78; 8] });
        assert_eq!(late, Err(Status::NotPermitted), "the key is revoked");
        star.host(TWO)
            .run(|| {
                for lent in &again {
                    assert_eq!(
                        words(&mut open_extent(TWO, lent), None),
                        [0, 0],
                        "no word of the former holder"
                    );
                }
            })
            .unwrap();
        // Neither the former token nor the former key with another token.
        drop(opened);
        let memory = || Attachment::at(FRAMES, Star::ip(ONE), adapter(), server(POOL));
        let refused = Tenancy::open_extent(&lent.0, memory()).err().unwrap().to_string();
        assert!(refused.contains("no reservation has this token"), "{refused}");
        let of = |lent: &Lent| granted(lent.access.bytes(), EXTENT).unwrap();
        let (Granted::Region { key, address, .. }, Granted::Region { token, .. }) =
            (of(&lent.0), of(&again[0].0))
        else {
            panic!("pools lend regions")
        };
        let mixed = Granted::Region { token, key, address, bytes: EXTENT };
        let refused = mixed.open(memory()).err().unwrap().to_string();
        assert!(refused.contains("no region"), "{refused}");
        let full = rig.runtime.block_on(other_node.reserve(EXTENT)).unwrap_err().to_string();
        assert!(full.contains("no memory node has a free range"), "{full}");
        assert_eq!(rig.runtime.block_on(release(&rig.server, 2)).unwrap(), 2);
        rig.until_free(2 * EXTENT);
    });
}

/// A compute node writes all the time, while its session ends: its writes are refused from then on, and the next holder sees none.
#[test]
fn writes_under_way_are_refused_when_their_key_is_revoked() {
    beside_pool(EXTENT, |star| {
        let rig = Rig::new(vec![server(POOL)]);
        let (mut first, mut next) = (rig.open(1), rig.open(2));
        let lent = rig.reserve(&mut first);
        let (told, wrote) = mpsc::channel();
        std::thread::scope(|scope| {
            let lent = &lent;
            let writer = scope.spawn(move || refused_at_last(open_extent(ONE, lent), &told));
            wrote.recv_timeout(LIMIT).unwrap();
            assert_eq!(rig.runtime.block_on(release(&rig.server, 1)).unwrap(), 1);
            rig.until_free(EXTENT);
            let again = rig.reserve(&mut next);
            star.host(TWO).run(|| assert_eq!(words(&mut open_extent(TWO, &again), None), [0, 0])).unwrap();
            assert_eq!(writer.join().unwrap(), Status::NotPermitted);
        });
    });
}

/// Writes until a write is refused, with several messages of many packets under way. Says when the first ones have ended.
fn refused_at_last((mut remote, _held): Opened, told: &mpsc::Sender<()>) -> Status {
    let bytes = vec![0xee; 64 << 10];
    let (mut ended, mut refused, mut number) = (0, None, 0);
    let end = clock::now() + Nanos(LIMIT.as_nanos() as u64);
    loop {
        assert!(clock::now() < end, "no write is refused");
        while number < ended + 4 && refused.is_none() {
            remote.submit(number, Operation::Write { at: number % 8 * (64 << 10), bytes: &bytes }).unwrap();
            number += 1;
        }
        let count = &mut |_, outcome: Outcome<'_>| {
            ended += 1;
            if let Outcome::Failed(status) = outcome {
                // Those behind it end without an answer.
                refused = refused.or(Some(status));
            }
        };
        remote.poll(clock::now() + Nanos::from_millis(100), count).unwrap();
        if let Some(status) = refused {
            return status;
        }
        if ended > 0 {
            // The other end may have heard enough.
            let _ = told.send(());
        }
    }
}

/// Two extents over one interface are queue pairs of one adapter, whichever thread waits for frames.
#[test]
fn threads_of_a_process_use_extents_over_one_interface() {
    beside_pool(2 * EXTENT, |_| {
        let rig = Rig::new(vec![server(POOL)]);
        let mut tenancy = rig.open(1);
        let lents = [rig.reserve(&mut tenancy), rig.reserve(&mut tenancy)];
        std::thread::scope(|scope| {
            for (lent, own) in lents.iter().zip(1u64..) {
                scope.spawn(move || {
                    let mut opened = open_extent(ONE, lent);
                    for step in 0..300 {
                        let word = own << 32 | step;
                        assert_eq!(words(&mut opened, Some(word)), [word; 2]);
                    }
                });
            }
        });
        // One thread with both of them, of which one goes first.
        let [mut first, mut second] = [0, 1].map(|nth| open_extent(ONE, &lents[nth]));
        assert_eq!(
            [words(&mut first, None), words(&mut second, None)],
            [[1 << 32 | 299; 2], [2 << 32 | 299; 2]]
        );
        drop(first);
        assert_eq!(words(&mut second, Some(5)), [5; 2]);
    });
}

#[test]
fn an_extent_moves_to_another_pool_while_it_is_used() {
    beside_pools(&[POOL, TWO], EXTENT, |_| {
        let rig = Rig::new(vec![server(POOL), server(TWO)]);
        rig.until_free(2 * EXTENT);
        let mut tenancy = rig.open(1);
        let lent = rig.reserve(&mut tenancy);
        assert_eq!(lent.0.extent.place.node, 0);
        let (remote, held) = open_extent(ONE, &lent);
        let (movable, mover) = Movable::new(remote);
        // Far more bytes are used than local memory holds.
        let region = RemoteRegion::new(Box::new(movable), &RegionConfig::new(128 << 10)).unwrap();
        let (steps, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (region, steps, is_over) = (&region, &steps, &is_over);
            let user = scope.spawn(move || {
                let mut written = vec![0u64; 256];
                for step in 0.. {
                    let nth = step as usize * 37 % written.len();
                    let (at, mut bytes) = (nth as u64 * 8_192, [0; 8]);
                    region.read(at, &mut bytes).unwrap();
                    assert_eq!(u64::from_le_bytes(bytes), written[nth], "step {step}");
                    written[nth] = step + 1;
                    region.write(at, &written[nth].to_le_bytes()).unwrap();
                    steps.fetch_add(1, Ordering::Relaxed);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let go_on = |more: u64| {
                let (from, end) =
                    (steps.load(Ordering::Relaxed), clock::now() + Nanos(LIMIT.as_nanos() as u64));
                while steps.load(Ordering::Relaxed) < from + more && !user.is_finished() {
                    assert!(clock::now() < end, "it makes no progress");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            go_on(300);
            rig.runtime.block_on(leave(&rig.server, 0, true)).unwrap();
            let (told, keeps) = mpsc::channel();
            let carry = move |new: Lent, addr: String| {
                let (remote, held) = open_extent(ONE, &(new, addr));
                mover.move_to(remote)?;
                told.send(held).unwrap();
                Ok(())
            };
            let moved = rig.runtime.block_on(tenancy.move_away(&lent.0, carry)).unwrap();
            drop(held);
            let _held = keeps.recv().unwrap();
            assert_eq!(moved.extent.place.node, 1);
            go_on(300);
            rig.until(|listed| {
                let first = &listed.nodes[0].facts;
                first.leaves && first.memory.is_some_and(|memory| memory.free_bytes == EXTENT)
            });
            is_over.store(true, Ordering::Relaxed);
            user.join().unwrap();
        });
    });
}

#[test]
fn regions_lie_over_extents_of_pools_and_of_boards_alike() {
    beside_pool(EXTENT, |_| {
        with_board(EXTENT, |board| {
            let nodes = vec![server(POOL), board.memory.clone().unwrap()];
            let rig = Rig::new(nodes);
            rig.until_free(2 * EXTENT);
            let mut tenancy = rig.open(1);
            let lents = [rig.reserve(&mut tenancy), rig.reserve(&mut tenancy)];
            let ways = [0, 1].map(|nth: usize| granted(lents[nth].0.access.bytes(), EXTENT).unwrap().way());
            assert_eq!(ways, [Way::RDMA, Way::CLIO]);
            let config = RegionConfig::new(128 << 10);
            let mut all = Vec::new();
            for (lent, number) in lents.iter().zip(1..) {
                let (remote, held) = open_extent(ONE, lent);
                let region = RemoteRegion::new(remote, &config).unwrap();
                region.write(0, &[number; 100]).unwrap();
                region.write(EXTENT - 100, &[number; 100]).unwrap();
                region.flush().unwrap();
                all.push((region, held));
            }
            // Far more bytes pass than local memory holds, so these come back from the extents.
            let mut bytes = vec![0; 512 << 10];
            for ((region, _), number) in all.iter().zip(1..) {
                region.read(512 << 10, &mut bytes).unwrap();
                assert!(bytes.iter().all(|byte| *byte == 0));
                for at in [0, EXTENT - 100] {
                    let mut back = [0; 100];
                    region.read(at, &mut back).unwrap();
                    assert_eq!(back, [number; 100]);
                }
            }
            // An extent that is taken back ends its region.
            rig.runtime.block_on(tenancy.close()).unwrap();
            rig.until_free(2 * EXTENT);
            for (region, _) in &all {
                let mut at = 0;
                let lost = loop {
                    match region.read(at, &mut bytes[..4_096]) {
                        Ok(()) => at += 4_096,
                        Err(lost) => break lost,
                    }
                    assert!(at < EXTENT, "all of it is local");
                };
                assert!(matches!(lost, RegionError::Lost(_)), "{lost}");
            }
        });
    });
}

#[test]
fn what_a_pool_has_lent_outlasts_the_service_and_each_connection() {
    beside_pool(EXTENT, |_| {
        let rig = Rig::new(vec![server(POOL)]);
        let mut tenancy = rig.open(1);
        let lent = rig.reserve(&mut tenancy);
        let mut opened = open_extent(ONE, &lent);
        assert_eq!(words(&mut opened, Some(5)), [5, 5]);
        let next = Rig::new(vec![server(POOL)]);
        next.until_free(0);
        tenancy.ask_at(next.server.clone());
        let held = next.runtime.block_on(tenancy.renew()).unwrap();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].0.access, lent.0.access, "its rights are the same");
        assert_eq!(words(&mut opened, None), [5, 5]);
        drop(opened);
        // Another queue pair, after the first has gone.
        assert_eq!(words(&mut open_extent(ONE, &held[0]), None), [5, 5]);
        next.runtime.block_on(tenancy.close()).unwrap();
        next.until_free(EXTENT);
    });
}
