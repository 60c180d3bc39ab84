//! Adapters on real links, between namespaces: requests of applications complete, whatever frames are lost on the way.

#![allow(clippy::unwrap_used)]

use crate::certificates;
use crate::silent;
use certificates::{Certificates, VALID};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{
    Adapter, Completion, Config, Failure, Outcome, Region, Regions, Request, RequesterCounters, Rights,
};
use p4rack_hosts::Handle;
use p4rack_hosts::roce::pool::{self, DOMAIN, PoolConfig, Service};
use p4rack_hosts::roce::setup::{Connected, Offer, Server, Station, Token, draw_token, numbers};
use p4rack_hosts::roce::tls::{ClientTls, ServerTls};
use p4rack_hosts::roce::{Loss, RocePort, RocePortError, SetupError};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs, clock};
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::collections::VecDeque;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const KEY: u32 = 0x77;
const START: u64 = 1 << 32;
const BYTES: usize = 64 << 10;
/// Bytes that may be reserved.
const RESERVE: u64 = 16 << 10;
/// Addresses of the adapters.
const CLIENT_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const POOL_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Where the service listens: on a link of its own.
const SETUP: &str = "192.168.9.2:9561";

fn config() -> Config {
    // At these rates of loss, seven losses in a row do happen.
    Config { retries_max: u8::MAX, timeout: Nanos::from_millis(2), ..Config::default() }
}

/// Two namespaces with a link for frames and one for the set-up.
fn namespaces() -> Option<(NetNs, NetNs)> {
    let (Ok(a), Ok(b)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return None;
    };
    for name in ["roce0", "setup0"] {
        Links::add_veth(VethEnd { name, ns: &a, mac: None }, VethEnd { name, ns: &b, mac: None }).unwrap();
    }
    for (ns, host) in [(&a, 1), (&b, 2)] {
        let mut links = Links::open_in(ns).unwrap();
        links.add_address("setup0", Ipv4Addr::new(192, 168, 9, host), 24).unwrap();
        links.set_up("setup0").unwrap();
    }
    Some((a, b))
}

fn region() -> Region {
    Region { domain: DOMAIN, key: KEY, start: START, bytes: vec![0; BYTES], rights: Rights::ALL }
}

/// Runs a pool in `ns` until `over`. Sends its handle once it can be reached.
fn pool(
    ns: &NetNs,
    config: Config,
    loss: Loss,
    tls: Option<ServerTls>,
    told: &mpsc::Sender<Handle<Adapter<Regions>>>,
    over: &AtomicBool,
) {
    ns.enter().unwrap();
    let mut memory = Regions::default();
    memory.register(region()).unwrap();
    let mut port = RocePort::open("roce0", POOL_IP, config.clone(), memory, loss).unwrap();
    let station = Station { mac: port.mac(), ip: POOL_IP };
    let offers = vec![Offer { key: KEY, address: START, bytes: BYTES as u64, rights: Rights::ALL }];
    let service = Service::new(
        port.handle(),
        PoolConfig {
            station,
            adapter: config,
            members: None,
            offers,
            reserve_bytes_max: RESERVE,
            tenants: pool::TENANTS,
        },
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(pool::bind(SETUP.parse().unwrap())).unwrap();
    runtime.spawn(async move { pool::serve(listener, service, tls.as_ref()).await });
    told.send(port.handle()).unwrap();
    while !over.load(Ordering::Relaxed) {
        port.turn(Some(clock::now() + Nanos::from_millis(5))).unwrap();
    }
    runtime.shutdown_timeout(Duration::from_millis(100));
}

/// A client in the calling thread's namespace.
struct Client {
    port: RocePort<Regions>,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    fn new(config: Config, loss: Loss) -> Client {
        let port = RocePort::open("roce0", CLIENT_IP, config, Regions::default(), loss).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Client { port, runtime }
    }

    fn connect(&mut self, config: &Config, tls: Option<ClientTls>) -> Result<Connected, SetupError> {
        let station = Station { mac: self.port.mac(), ip: CLIENT_IP };
        let server = Server { addr: SETUP.to_owned(), tls };
        let connected = self.runtime.block_on(server.connect(station, config, None, &mut numbers()))?;
        self.port.adapter().add_pair(connected.qpn, connected.connection).unwrap();
        Ok(connected)
    }

    /// Waits for the next outcome.
    fn outcome(&mut self) -> Outcome {
        let until = clock::now() + Nanos::from_secs(10);
        while clock::now() < until {
            if let Some((_, Completion::Request(_, outcome))) = self.port.adapter().poll_completion() {
                return outcome;
            }
            self.port.turn(Some(until)).unwrap();
        }
        panic!("no outcome within ten seconds");
    }

    fn one(&mut self, qpn: u32, request: Request) -> Outcome {
        self.port.adapter().handle_request(qpn, request).unwrap();
        self.outcome()
    }
}

/// Runs `client` in one namespace beside a pool in the other.
fn beside_pool(
    config: Config,
    loss: Loss,
    tls: Option<ServerTls>,
    client: impl FnOnce(Handle<Adapter<Regions>>) + Send,
) {
    let Some((a, b)) = namespaces() else { return };
    let (over, (told, handle)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| pool(&b, config, loss, tls, &told, &over));
        let handle = handle.recv_timeout(Duration::from_secs(10)).unwrap();
        // The pool ends even if the client panics.
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| a.run(|| client(handle)).unwrap()));
        over.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn silent_connections_keep_nobody_out() {
    beside_pool(config(), Loss::default(), None, |_| {
        let mut client = Client::new(config(), Loss::default());
        let silent = silent::connect(SETUP);
        let connected = client.connect(&config(), None).unwrap();
        let read = Request::Read { key: KEY, address: START, bytes: 8 };
        assert_eq!(client.one(connected.qpn, read), Outcome::Read(vec![0; 8]));
        silent::until_surplus_is_closed(&silent);
    });
}

#[test]
fn one_peer_cant_take_all_queue_pairs_and_regions() {
    beside_pool(config(), Loss::default(), None, |_| {
        let mut client = Client::new(config(), Loss::default());
        let mut connections = Vec::new();
        let refused = loop {
            match client.connect(&config(), None) {
                Ok(connected) => connections.push(connected),
                Err(error) => break error.to_string(),
            }
        };
        // Half of them are reserved for eight tenants, of which seven have none.
        let pairs_max = Config::default().pairs_max;
        assert_eq!(connections.len(), pairs_max - 7 * (pairs_max / 16));
        assert!(refused.contains(&format!("of {pairs_max} queue pairs")), "{refused}");
        drop(connections);
        let server = Server { addr: SETUP.to_owned(), tls: None };
        let mut reserved = Vec::new();
        let refused = loop {
            match client.runtime.block_on(server.reserve(vec![1; 256])) {
                Ok(one) => reserved.push(one),
                Err(error) => break error.to_string(),
            }
        };
        assert!(reserved.len() == 9 && refused.contains("of 4096 regions"), "{} {refused}", reserved.len());
    });
}

#[test]
fn a_pool_does_what_a_peer_asks_and_forgets_it_when_it_leaves() {
    beside_pool(config(), Loss::default(), None, |pool| {
        let mut client = Client::new(config(), Loss::default());
        let connected = client.connect(&config(), None).unwrap();
        let (qpn, offer) = (connected.qpn, connected.offers[0]);
        assert_eq!((offer.key, offer.address, offer.bytes), (KEY, START, BYTES as u64));
        let bytes: Vec<u8> = (0..5_000u32).map(|at| (at * 7) as u8).collect();
        let write = Request::Write { key: KEY, address: START + 100, bytes: bytes.clone(), immediate: None };
        assert_eq!(client.one(qpn, write), Outcome::Done);
        let read = Request::Read { key: KEY, address: START + 100, bytes: 5_000 };
        assert_eq!(client.one(qpn, read), Outcome::Read(bytes));
        assert_eq!(client.one(qpn, Request::FetchAdd { key: KEY, address: START, add: 5 }), Outcome::Word(0));
        let swap = Request::CompareSwap { key: KEY, address: START, compare: 5, swap: 9 };
        assert_eq!(client.one(qpn, swap), Outcome::Word(5));
        let read = Request::Read { key: KEY, address: START, bytes: 8 };
        assert_eq!(client.one(qpn, read), Outcome::Read(9u64.to_le_bytes().to_vec()));

        // A second peer under a wrong key is refused; the first goes on.
        let other = client.connect(&config(), None).unwrap();
        let wrong = Request::Read { key: KEY + 1, address: START, bytes: 8 };
        assert_eq!(client.one(other.qpn, wrong), Outcome::Failed(Failure::RemoteAccess));
        let read = Request::Read { key: KEY, address: START, bytes: 1 };
        assert_eq!(client.one(qpn, read), Outcome::Read(vec![9]));

        // The error names the setting that differs between the two ends.
        let differs = Config { mtu: Mtu::B256, ..config() };
        let error = client.connect(&differs, None).unwrap_err().to_string();
        assert!(error.contains("mtu_bytes is 256 there and 1024 here"), "{error}");

        // The queue pair goes with the call that made it.
        let peer = connected.connection.peer_qpn;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let has = move |runtime: &tokio::runtime::Runtime| {
            runtime.block_on(pool.call(move |adapter| adapter.responder(peer).is_some())).unwrap()
        };
        assert!(has(&runtime));
        drop(connected);
        let until = clock::now() + Nanos::from_secs(5);
        while has(&runtime) {
            assert!(clock::now() < until, "the queue pair is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// Posts many requests together; a model that executes them one after the other predicts the outcomes.
fn storm(loss: &Loss, requests: usize) -> RequesterCounters {
    let mut counters = None;
    let other = Loss { seed: loss.seed + 1, ..*loss };
    beside_pool(config(), other, None, |_| {
        // Where nothing is lost, nothing is late but by a busy machine.
        let timeout = Nanos::from_millis(if loss.per_mille > 0 { 2 } else { 2_000 });
        let mut client = Client::new(Config { timeout, ..config() }, *loss);
        let connected = client.connect(&config(), None).unwrap();
        let (qpn, mut random) = (connected.qpn, SplitMix(loss.seed));
        let (mut memory, mut expected) = (vec![0u8; BYTES], VecDeque::new());
        for _ in 0..requests {
            while expected.len() >= 40 {
                assert_eq!(Some(client.outcome()), expected.pop_front());
            }
            let bytes = (random.next() % 3_000) as usize;
            let at = (random.next() as usize % (BYTES - bytes - 8)) & !7;
            let address = START + at as u64;
            let (request, outcome) = match random.next() % 3 {
                0 => {
                    let content: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
                    memory[at..at + bytes].copy_from_slice(&content);
                    (Request::Write { key: KEY, address, bytes: content, immediate: None }, Outcome::Done)
                }
                1 => {
                    // Reads wait for earlier writes, as the pool reads late.
                    while let Some(outcome) = expected.pop_front() {
                        assert_eq!(client.outcome(), outcome);
                    }
                    let read = client.one(qpn, Request::Read { key: KEY, address, bytes: bytes as u32 });
                    assert_eq!(read, Outcome::Read(memory[at..at + bytes].to_vec()));
                    continue;
                }
                _ => {
                    let word = &mut memory[at..at + 8];
                    let old = u64::from_le_bytes(word.try_into().unwrap());
                    word.copy_from_slice(&old.wrapping_add(3).to_le_bytes());
                    (Request::FetchAdd { key: KEY, address, add: 3 }, Outcome::Word(old))
                }
            };
            client.port.adapter().handle_request(qpn, request).unwrap();
            expected.push_back(outcome);
        }
        while let Some(outcome) = expected.pop_front() {
            assert_eq!(client.outcome(), outcome);
        }
        counters = client.port.adapter().requester(qpn).map(|half| half.counters().clone());
        let lost = client.port.counters();
        assert_eq!(lost.lost_in > 0 && lost.lost_out > 0, loss.per_mille > 0, "{lost:?}");
    });
    counters.unwrap_or_default()
}

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let counters = storm(&Loss::default(), 2_000);
    assert_eq!((counters.repeated_out, counters.gaps), (0, 0), "{counters:?}");
}

#[test]
fn every_request_is_executed_once_however_many_frames_are_lost() {
    let counters = storm(&Loss { per_mille: 20, seed: 3 }, 2_000);
    if counters.requests > 0 {
        assert!(counters.repeated_out > 100 && counters.timeouts > 0, "{counters:?}");
        assert_eq!(counters.failed, 0);
    }
}

#[test]
fn a_link_that_vanishes_ends_the_port() {
    let Some((a, _b)) = namespaces() else { return };
    let mut port = a
        .run(|| RocePort::open("roce0", CLIENT_IP, config(), Regions::default(), Loss::default()))
        .unwrap()
        .unwrap();
    Links::open_in(&a).unwrap().delete("roce0").unwrap();
    let ended = (0..10).find_map(|_| port.turn(Some(clock::now())).err());
    assert!(matches!(&ended, Some(RocePortError::LinkGone(name)) if name == "roce0"), "{ended:?}");
}

#[test]
fn a_set_up_is_encrypted_if_asked_for() {
    let Some(certificates) = Certificates::new() else { return };
    certificates.sign("pool", "ca", "IP:192.168.9.2", VALID);
    let file = |name: &str| certificates.file(name);
    let server = ServerTls { certificate: file("pool.pem"), key: file("pool.key"), client_ca: None };
    beside_pool(config(), Loss::default(), Some(server), |_| {
        let mut client = Client::new(config(), Loss::default());
        let tls = |ca: &str| Some(ClientTls { cacert: Some(file(ca)), identity: None, server_name: None });
        let connected = client.connect(&config(), tls("ca.pem")).unwrap();
        let read = Request::Read { key: KEY, address: START, bytes: 3 };
        assert_eq!(client.one(connected.qpn, read), Outcome::Read(vec![0; 3]));
        for (tls, says) in [(None, ""), (tls("other.pem"), "ertificate"), (tls("missing.pem"), "missing.pem")]
        {
            let error = client.connect(&config(), tls).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    });
}

#[test]
fn reserved_memory_is_reached_with_its_token_alone_and_by_one_queue_pair() {
    beside_pool(config(), Loss::default(), None, |pool| {
        let mut client = Client::new(config(), Loss::default());
        let server = Server { addr: SETUP.to_owned(), tls: None };
        let reserve =
            |client: &Client, bytes: &[u64]| client.runtime.block_on(server.reserve(bytes.to_vec()));
        let mine = reserve(&client, &[4_096, 100]).unwrap();
        let others = reserve(&client, &[64]).unwrap();
        assert!(reserve(&client, &[RESERVE]).unwrap_err().to_string().contains("bytes left to reserve"));
        let attach = |client: &mut Client, token: Option<&Token>| {
            let station = Station { mac: client.port.mac(), ip: CLIENT_IP };
            let connect = async { server.connect(station, &config(), token, &mut numbers()).await };
            let connected = client.runtime.block_on(connect)?;
            client.port.adapter().add_pair(connected.qpn, connected.connection).unwrap();
            Ok::<_, SetupError>(connected)
        };
        let read = |offer: &Offer| Request::Read { key: offer.key, address: offer.address, bytes: 8 };
        let first = attach(&mut client, Some(&mine.token)).unwrap();
        assert_eq!(first.offers, mine.offers);
        let bytes = vec![7; 8];
        let write = Request::Write {
            key: mine.offers[1].key,
            address: mine.offers[1].address,
            bytes: bytes.clone(),
            immediate: None,
        };
        assert_eq!(client.one(first.qpn, write), Outcome::Done);
        assert_eq!(client.one(first.qpn, read(&mine.offers[1])), Outcome::Read(bytes.clone()));
        // Another's memory under its right key: neither a queue pair of another reservation reaches it, nor one
        // without.
        for (token, offer) in [(Some(&others.token), mine.offers[1]), (None, mine.offers[1])] {
            let stranger = attach(&mut client, token).unwrap();
            assert_eq!(client.one(stranger.qpn, read(&offer)), Outcome::Failed(Failure::RemoteAccess));
        }
        let public = Offer { key: KEY, address: START, ..mine.offers[0] };
        let outside = attach(&mut client, Some(&others.token)).unwrap();
        assert_eq!(client.one(outside.qpn, read(&public)), Outcome::Failed(Failure::RemoteAccess));
        let guessed = draw_token().unwrap();
        assert!(attach(&mut client, Some(&guessed)).unwrap_err().to_string().contains("no reservation"));
        // The next queue pair takes the place of the first, whose requests go nowhere from then on.
        let second = attach(&mut client, Some(&mine.token)).unwrap();
        assert_eq!(client.one(second.qpn, read(&mine.offers[1])), Outcome::Read(bytes));
        let (peers, key) = ([first.connection.peer_qpn, second.connection.peer_qpn], mine.offers[1].key);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let there = |pool: &Handle<Adapter<Regions>>| {
            let asked = pool.call(move |adapter| {
                (peers.map(|qpn| adapter.responder(qpn).is_some()), adapter.memory().get(key).is_some())
            });
            runtime.block_on(asked).unwrap()
        };
        assert_eq!(there(&pool), ([false, true], true));
        // A lease that was superseded takes nothing with it; the reservation takes all.
        drop(first);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(there(&pool), ([false, true], true));
        drop(mine);
        let until = clock::now() + Nanos::from_secs(5);
        while there(&pool) != ([false, false], false) {
            assert!(clock::now() < until, "the memory is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(reserve(&client, &[RESERVE / 2]).is_ok());
    });
}
