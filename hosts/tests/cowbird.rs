//! An engine on real links: who may have what served, and what is left when they go.

#![allow(clippy::unwrap_used)]

use p4rack_cowbird::Layout;
use p4rack_fabric::cowbird::{self, Corruption, State};
use p4rack_fabric::roce::{Config, Regions};
use p4rack_hosts::Handle;
use p4rack_hosts::cowbird::verify::{self, Plan};
use p4rack_hosts::cowbird::{Node, NodeConfig, NodeState, Service, Spot, SpotConfig, serve};
use p4rack_hosts::roce::pool::{self, PoolConfig};
use p4rack_hosts::roce::setup::{Server, Station, numbers};
use p4rack_hosts::roce::star::{FRAMES, Star};
use p4rack_hosts::roce::{Loss, Port};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_client::CowbirdClient;
use p4rack_p4rt::p4rack::cowbird::v1::{ServeRequest, Set};
use p4rack_p4rt::p4rack::roce::v1::End;
use p4rack_wire::Nanos;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::Code;

const POOL: &str = "192.168.9.1:9561";
const ENGINE: &str = "192.168.9.2:9562";
const LAYOUT: Layout = Layout { entries: 64, request_bytes: 4_096, response_bytes: 4_096 };
const REGION_BYTES: u64 = 4_096;

fn config() -> Config {
    Config { timeout: Nanos::from_millis(20), ..Config::default() }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn server(addr: &str) -> Server {
    Server { addr: addr.to_owned(), tls: None }
}

/// A pool at host 0 until `over`.
fn run_pool(star: &Star, ready: &mpsc::Sender<()>, over: &AtomicBool) {
    star.host(0).enter().unwrap();
    let mut port = Port::open(FRAMES, config(), Regions::default(), Loss::default()).unwrap();
    let station = Station { mac: port.mac(), ip: Star::ip(0) };
    let reserve_bytes_max = 4 * REGION_BYTES;
    let service = pool::Service::new(
        port.handle(),
        PoolConfig { station, adapter: config(), offers: Vec::new(), reserve_bytes_max },
    );
    let runtime = runtime();
    let listener = runtime.block_on(pool::bind(POOL.parse().unwrap())).unwrap();
    runtime.spawn(async move { pool::serve(listener, service, None).await });
    ready.send(()).unwrap();
    while !over.load(Ordering::Relaxed) {
        port.turn(Some(clock::now() + Nanos::from_millis(5))).unwrap();
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
}

/// An engine at host 1 until `over`.
fn run_engine(star: &Star, ready: &mpsc::Sender<Handle<Spot>>, over: &AtomicBool) {
    star.host(1).enter().unwrap();
    let engine = cowbird::Config {
        probe_min: Nanos::from_micros(50),
        probe_max: Nanos::from_millis(1),
        ..cowbird::Config::default()
    };
    let mut spot = Spot::open(FRAMES, config(), engine, Loss::default()).unwrap();
    let station = Station { mac: spot.mac(), ip: Star::ip(1) };
    let service = Service::new(spot.handle(), SpotConfig { station, adapter: config(), pool: server(POOL) });
    let runtime = runtime();
    let listener = runtime.block_on(pool::bind(ENGINE.parse().unwrap())).unwrap();
    runtime.spawn(async move { serve(listener, service, None).await });
    ready.send(spot.handle()).unwrap();
    while !over.load(Ordering::Relaxed) {
        spot.turn(Some(clock::now() + Nanos::from_millis(5))).unwrap();
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
}

/// Runs `test` beside a pool and an engine.
fn beside_engine(test: impl FnOnce(&Star, &Handle<Spot>) + Send) {
    let Ok(star) = Star::create(4) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    let (over, (pool_ready, pool), (engine_ready, engine)) =
        (AtomicBool::new(false), mpsc::channel(), mpsc::channel());
    let star = &star;
    std::thread::scope(|scope| {
        scope.spawn(|| run_pool(star, &pool_ready, &over));
        pool.recv_timeout(Duration::from_secs(10)).unwrap();
        scope.spawn(|| run_engine(star, &engine_ready, &over));
        let spot = engine.recv_timeout(Duration::from_secs(10)).unwrap();
        // The others end even if the test panics.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(star, &spot)));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

fn node_config(host: u8, threads: usize) -> NodeConfig {
    NodeConfig {
        interface: FRAMES.to_owned(),
        ip: Star::ip(host),
        adapter: config(),
        loss: Loss::default(),
        pool: server(POOL),
        engines: vec![server(ENGINE)],
        layout: LAYOUT,
        threads,
        region_bytes: vec![REGION_BYTES; threads],
    }
}

/// Work in a half of a region.
fn plan(region: u16, half: u64) -> Plan {
    let (bytes, patience) = (REGION_BYTES / 2, Duration::from_secs(10));
    Plan { region, start: half * bytes, bytes, record_bytes: 64, operations: 500, seed: 7, patience }
}

fn states(spot: &Handle<Spot>) -> Vec<State> {
    runtime().block_on(spot.call(|spot| spot.states())).unwrap()
}

fn instances(spot: &Handle<Spot>) -> usize {
    runtime().block_on(spot.call(|spot| spot.instances())).unwrap()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let end = clock::now() + Nanos::from_secs(5);
    while !condition() {
        assert!(clock::now() < end, "not within five seconds: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn who_ruins_its_rings_loses_them_alone_and_who_goes_is_probed_no_more() {
    beside_engine(|star, spot| {
        let begin =
            |host: u8, threads| star.host(host).run(|| Node::start(node_config(host, threads))).unwrap();
        let (good, mut good_clients) = begin(2, 2).unwrap();
        let (bad, mut bad_clients) = begin(3, 2).unwrap();
        let run =
            |client: &mut _, region, half| verify::run(client, plan(region, half), &AtomicBool::new(false));
        run(&mut bad_clients[0], 0, 0).unwrap();
        // A region that is not theirs, and a tail that is nowhere near.
        bad_clients[1].words()[0].store(1_000_000u64.to_be(), Ordering::Release);
        until("the set is refused", || states(spot).contains(&State::Corrupt(Corruption::Tail)));
        assert!(run(&mut bad_clients[1], 1, 0).is_err());
        for (region, client) in good_clients.iter_mut().enumerate() {
            run(client, region as u16, 0).unwrap();
        }
        assert_eq!(states(spot).len(), 4);
        assert_eq!((good.served(), good.state()), (1, NodeState::Served(ENGINE.to_owned())));
        // The pool has no room for a third; when the second has gone, it has.
        let refused = star.host(3).run(|| runtime().block_on(server(POOL).reserve(vec![1]))).unwrap();
        assert!(refused.unwrap_err().to_string().contains("0 bytes left"));
        drop(bad);
        until("its sets are gone", || instances(spot) == 2);
        let again =
            || star.host(3).run(|| runtime().block_on(server(POOL).reserve(vec![2 * REGION_BYTES]))).unwrap();
        until("its memory is free", || again().is_ok());
        run(&mut good_clients[0], 0, 1).unwrap();
        drop(good);
        until("no set is left", || instances(spot) == 0);
        let counters = runtime().block_on(spot.call(|spot| spot.counters())).unwrap();
        assert_eq!((counters.tenants, counters.failed_pairs, counters.refused_requests), (2, 0, 0));
    });
}

#[test]
fn a_compute_node_that_falls_silent_is_probed_no_more() {
    beside_engine(|star, spot| {
        let (node, _clients) = star.host(2).run(|| Node::start(node_config(2, 1))).unwrap().unwrap();
        // Its gRPC connection lives, its adapter is cut off.
        let mut links = p4rack_netdev::Links::open_in(star.host(2)).unwrap();
        links.delete(FRAMES).unwrap();
        until("its sets are gone", || instances(spot) == 0);
        until("it knows", || !matches!(node.state(), NodeState::Served(_)));
    });
}

#[test]
fn calls_that_make_no_sense_are_refused_by_their_fields() {
    beside_engine(|star, spot| {
        let refused = |change: &dyn Fn(&mut ServeRequest)| {
            let (runtime, mut random) = (runtime(), numbers());
            let reserved = runtime.block_on(server(POOL).reserve(vec![64])).unwrap();
            let end = End {
                mac: vec![2, 0, 0, 0, 0, 9],
                ip: Star::ip(2).octets().to_vec(),
                udp_port: 50_000,
                qpn: 2 + random.next() as u32 % 1_000,
                psn: 5,
            };
            let Layout { entries, request_bytes, response_bytes } = LAYOUT;
            let set = |nth: u64| Set { key: 1, address: nth << 16, entries, request_bytes, response_bytes };
            let mut request = ServeRequest {
                end: Some(end),
                mtu_bytes: 1_024,
                reads_max: 16,
                token: reserved.token.bytes().to_vec(),
                sets: vec![set(0), set(1)],
            };
            change(&mut request);
            let status = runtime.block_on(async {
                let mut client = CowbirdClient::connect(format!("http://{ENGINE}")).await.unwrap();
                client.serve(request).await.map(|_| ()).err()
            });
            status.map(|status| (status.code(), status.message().to_owned()))
        };
        let says = |change: &dyn Fn(&mut ServeRequest), code: Code, words: &str| {
            let (found, message) = refused(change).unwrap();
            assert!(found == code && message.contains(words), "{found:?}: {message}");
            until("nothing of it is left", || instances(spot) == 0);
        };
        star.host(2)
            .run(|| {
                says(&|request| request.end = None, Code::InvalidArgument, "end is missing");
                says(&|request| request.reads_max = 3, Code::FailedPrecondition, "reads_max is 3 there");
                says(&|request| request.token.truncate(3), Code::InvalidArgument, "token has 3 bytes");
                says(&|request| request.token = vec![0; 16], Code::FailedPrecondition, "no reservation");
                says(&|request| request.sets.clear(), Code::InvalidArgument, "sets has 0");
                says(&|request| request.sets[1].entries = u64::MAX, Code::InvalidArgument, "set 1: entries");
                says(
                    &|request| request.sets[1].response_bytes = 1 << 32,
                    Code::InvalidArgument,
                    "longest message",
                );
                says(
                    &|request| request.sets[1].address = u64::MAX,
                    Code::InvalidArgument,
                    "beyond the last address",
                );
                says(
                    &|request| request.sets[1].address = 8,
                    Code::AlreadyExists,
                    "set 1 has bytes of another",
                );
                let own = Star::ip(1).octets().to_vec();
                says(
                    &move |request| request.end.as_mut().unwrap().ip = own.clone(),
                    Code::InvalidArgument,
                    "the engine's own",
                );
                assert_eq!(refused(&|_| ()), None);
                until("what was right is gone with its call", || instances(spot) == 0);
            })
            .unwrap();
    });
}
