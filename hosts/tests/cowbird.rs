//! An engine on real links: which rings it may serve for a caller, and what remains when the caller
//! goes.

#![allow(clippy::unwrap_used)]

use crate::silent;

use p4rack_cowbird::Layout;
use p4rack_fabric::cowbird::{self, Corruption, State};
use p4rack_fabric::roce::Config;
use p4rack_hosts::Handle;
use p4rack_hosts::cowbird::node::ThreadClient;
use p4rack_hosts::cowbird::rack::{HOSTS, Rack, RackError};
use p4rack_hosts::cowbird::verify::{self, News, Plan};
use p4rack_hosts::cowbird::{CowbirdNode, NodeConfig, NodeState, Spot};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::{Reserved, numbers};
use p4rack_hosts::roce::star::{FRAMES, Star};
use p4rack_hosts::roce::{Loss, SetupError};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_client::CowbirdClient;
use p4rack_p4rt::p4rack::cowbird::v1::{ServeRequest, Set};
use p4rack_p4rt::p4rack::roce::v1::End;
use p4rack_wire::Nanos;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Runtime;
use tonic::Code;

const LAYOUT: Layout = Layout { entries: 64, request_bytes: 4_096, response_bytes: 4_096 };
const REGION_BYTES: u64 = 4_096;
/// Bytes that both compute nodes may reserve.
const POOL_BYTES: u64 = 8 * REGION_BYTES;

fn config() -> Config {
    Config { timeout: Nanos::from_millis(20), ..Config::default() }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Runs `test` beside a pool and an engine.
fn beside_engine(test: impl FnOnce(&Rack, &Handle<Spot>)) {
    let engine = cowbird::Config {
        probe_min: Nanos::from_micros(50),
        probe_max: Nanos::from_millis(1),
        ..cowbird::Config::default()
    };
    match Rack::start(2, &config(), engine, POOL_BYTES) {
        Ok(rack) => test(&rack, &rack.spot),
        Err(RackError::Device(_)) => {
            // Past the harness, which hides what a passing test prints.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
            );
        }
        Err(error) => panic!("{error}"),
    }
}

/// Starts a compute node.
fn start(rack: &Rack, number: u8, threads: usize) -> (CowbirdNode, Vec<ThreadClient>) {
    let (ns, ip) = rack.compute_node(number);
    ns.run(|| CowbirdNode::start(node_config(ip, threads))).unwrap().unwrap()
}

/// Reserves memory of the pool.
fn reserve(rack: &Rack, bytes: u64) -> Result<Reserved, SetupError> {
    let (ns, _) = rack.compute_node(1);
    ns.run(|| runtime().block_on(Rack::pool_server().reserve(vec![bytes]))).unwrap()
}

fn node_config(ip: Ipv4Addr, threads: usize) -> NodeConfig {
    NodeConfig {
        interface: FRAMES.to_owned(),
        ip,
        adapter: config(),
        loss: Loss::default(),
        pool: Rack::pool_server(),
        engines: vec![Rack::engine_server()],
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
    beside_engine(|rack, spot| {
        let (good, mut good_clients) = start(rack, 0, 2);
        let (bad, mut bad_clients) = start(rack, 1, 2);
        let run = |client: &mut _, region, half| verify::run(client, plan(region, half), &News::default());
        run(&mut bad_clients[0], 0, 0).unwrap();
        // A region that is not theirs, and a tail that is nowhere near.
        bad_clients[1].words()[0].store(1_000_000u64.to_be(), Ordering::Release);
        until("the set is refused", || states(spot).contains(&State::Corrupt(Corruption::Tail)));
        assert!(run(&mut bad_clients[1], 1, 0).is_err());
        for (region, client) in good_clients.iter_mut().enumerate() {
            run(client, region as u16, 0).unwrap();
        }
        assert_eq!(states(spot).len(), 4);
        assert_eq!((good.served(), good.state()), (1, NodeState::Served(Rack::engine_server().addr)));
        // What else there is, but for one region, is kept for others. When the second node has gone, it has room again.
        assert!(reserve(rack, 2 * REGION_BYTES).unwrap_err().to_string().contains("may take 4096:"));
        drop(bad);
        until("its sets are gone", || instances(spot) == 2);
        until("its memory is free", || reserve(rack, 2 * REGION_BYTES).is_ok());
        run(&mut good_clients[0], 0, 1).unwrap();
        drop(good);
        until("no set is left", || instances(spot) == 0);
        let counters = runtime().block_on(spot.call(|spot| spot.counters())).unwrap();
        assert_eq!((counters.tenants, counters.failed_pairs, counters.refused_requests), (2, 0, 0));
    });
}

#[test]
fn silent_connections_keep_no_compute_node_out() {
    beside_engine(|rack, spot| {
        let addr = Rack::engine_server().addr;
        let silent = rack.compute_node(1).0.run(|| silent::connect(&addr)).unwrap();
        let (_node, mut clients) = start(rack, 0, 1);
        verify::run(&mut clients[0], plan(0, 0), &News::default()).unwrap();
        assert_eq!(instances(spot), 1);
        silent::until_surplus_is_closed(&silent);
    });
}

#[test]
fn a_compute_node_that_falls_silent_is_probed_no_more() {
    beside_engine(|rack, spot| {
        let (node, _clients) = start(rack, 0, 1);
        // Its gRPC connection lives, its adapter is cut off.
        let mut links = p4rack_netdev::Links::open_in(rack.compute_node(0).0).unwrap();
        links.delete(FRAMES).unwrap();
        until("its sets are gone", || instances(spot) == 0);
        until("it knows", || !matches!(node.state(), NodeState::Served(_)));
    });
}

/// The part of each of eight tenants is kept: the first takes all the rest, and the second still finds its own.
#[test]
fn one_compute_node_cant_reserve_all_of_a_pool() {
    beside_engine(|rack, _| {
        let reserve = |number, bytes| {
            let reserve = || {
                let runtime = runtime();
                let reserved = runtime.block_on(Rack::pool_server().reserve(vec![bytes]));
                reserved.map(|reserved| (runtime, reserved)).map_err(|error| error.to_string())
            };
            rack.compute_node(number).0.run(reserve).unwrap()
        };
        let part = POOL_BYTES / (2 * pool::TENANTS);
        let most = POOL_BYTES - (pool::TENANTS - 1) * part;
        let greedy = reserve(0, most + 1).unwrap_err();
        assert!(greedy.contains(&format!("of {POOL_BYTES} bytes to reserve")), "{greedy}");
        assert!(greedy.contains(&format!("may take {most}:")) && greedy.contains("--tenants"), "{greedy}");
        let first = reserve(0, most).unwrap();
        assert!(reserve(0, 1).is_err() && reserve(1, part + 1).is_err());
        let second = reserve(1, part).unwrap();
        drop((first, second));
    });
}

#[test]
fn calls_that_make_no_sense_are_refused_by_their_fields() {
    beside_engine(|rack, spot| {
        let refused = |change: &dyn Fn(&mut ServeRequest)| {
            let (runtime, mut random) = (runtime(), numbers());
            let reserved = runtime.block_on(Rack::pool_server().reserve(vec![64])).unwrap();
            let end = End {
                mac: vec![2, 0, 0, 0, 0, 9],
                ip: Star::ip(HOSTS).octets().to_vec(),
                udp_port: 50_000,
                qpn: 2 + random.next() as u32 % 1_000,
                psn: 5,
            };
            let Layout { entries, request_bytes, response_bytes } = LAYOUT;
            let set = |nth: u64| Set {
                key: 1,
                address: nth << 16,
                entries,
                request_bytes,
                response_bytes,
                ..Set::default()
            };
            let mut request = ServeRequest {
                end: Some(end),
                mtu_bytes: 1_024,
                reads_max: 16,
                token: reserved.token.bytes().to_vec(),
                sets: vec![set(0), set(1)],
                ..ServeRequest::default()
            };
            change(&mut request);
            let status = runtime.block_on(async {
                let engine = format!("http://{}", Rack::engine_server().addr);
                let mut client = CowbirdClient::connect(engine).await.unwrap();
                client.serve(request).await.map(|_| ()).err()
            });
            status.map(|status| (status.code(), status.message().to_owned()))
        };
        let says = |change: &dyn Fn(&mut ServeRequest), code: Code, words: &str| {
            let (found, message) = refused(change).unwrap();
            assert!(found == code && message.contains(words), "{found:?}: {message}");
            until("nothing of it is left", || instances(spot) == 0);
        };
        rack.compute_node(0)
            .0
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
                says(
                    &|request| request.sets.iter_mut().for_each(|set| set.refusal = Corruption::Tail as u64),
                    Code::FailedPrecondition,
                    "all sets were refused before",
                );
                assert_eq!(refused(&|_| ()), None);
                // The refused set is left out, so the remaining one overlaps with none.
                let one_left = |request: &mut ServeRequest| {
                    request.sets[1].address = 8;
                    request.sets[1].refusal = Corruption::Tail as u64;
                };
                assert_eq!(refused(&one_left), None);
                until("what was right is gone with its call", || instances(spot) == 0);
            })
            .unwrap();
    });
}
