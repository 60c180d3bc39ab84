//! Compute and memory nodes on real links, with a plain granting switch between them.

#![allow(clippy::unwrap_used)]

use crate::pieces;

use p4rack_fabric::edm::host::compute::{self, Request};
use p4rack_fabric::edm::host::memory::{self, Region, Rights};
use p4rack_hosts::memory::{
    Client, ClientConfig, EdmPortError, Error, Handle, NodeAddress, Operation, PortConfig, Remote, Server,
    ServerConfig, ServerError, ServerReport,
};
use p4rack_hosts::remote;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::signal::Signals;
use p4rack_netdev::{Links, NetNs, PacketSocket, Poller, clock, packet};
use p4rack_wire::edm::{Control, Kind, Message, Opcode, VERSION};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

const ETHER_TYPE: EtherType = EtherType(0x88b6);
const CHUNK: u32 = 512;
const WINDOW: u32 = 2;
const HEADERS: usize = Ethernet::BYTES + Vlan::BYTES;
/// Nodes: one that asks, one that has memory, one that does not exist.
const MEMORY: u16 = 1;
const NOBODY: u16 = 2;
const KEY: u32 = 77;
const START: u64 = 0x1_0000;
const BYTES: usize = 1 << 16;
const REMOTE: Remote = Remote { node: MEMORY, key: KEY };

fn mac(node: u16) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, node as u8 + 1])
}

fn node(number: u16) -> NodeAddress {
    NodeAddress { name: format!("h{}", number + 1), mac: mac(number) }
}

fn port(own: u16) -> PortConfig {
    PortConfig {
        interfaces: vec!["eth0".to_owned()],
        ether_type: ETHER_TYPE,
        rate_bps: 1_000_000_000,
        nodes: (0..3).map(node).collect(),
        own,
    }
}

fn client_config() -> ClientConfig {
    let timeout = Nanos::from_millis(200);
    let node = compute::Config { chunk_bytes: CHUNK, window: WINDOW, timeout, ..compute::Config::default() };
    ClientConfig { port: port(0), node }
}

/// A switch that grants everything immediately and may lose frames.
struct Switch {
    sockets: [PacketSocket; 2],
    loses: fn(Kind, u64) -> bool,
    seen: u64,
}

impl Switch {
    fn run(mut self, stop: &AtomicBool) {
        let mut poller = Poller::new();
        self.sockets.iter().for_each(|socket| _ = poller.add(socket).unwrap());
        while !stop.load(Ordering::Relaxed) {
            poller.wait(Some(clock::now() + Nanos::from_millis(20))).unwrap();
            for from in 0..2 {
                let mut frames = Vec::new();
                let _ = self.sockets[from].receive(|frame, _| frames.push(frame.to_vec()));
                frames.into_iter().for_each(|frame| self.handle(from, frame));
            }
            self.sockets.iter_mut().for_each(PacketSocket::flush);
        }
    }

    fn handle(&mut self, from: usize, mut frame: Vec<u8>) {
        let tag = frame.get(Ethernet::BYTES..).and_then(|rest| Vlan::parse(rest).ok());
        let Some(Ok(kind)) = tag.and_then(|_| frame.get(HEADERS)).map(|first| Kind::of(*first)) else {
            return;
        };
        self.seen += 1;
        if (self.loses)(kind, self.seen) {
            return;
        }
        let data = &frame[HEADERS..];
        if kind == Kind::Notify {
            let notify = Control::parse(data).unwrap();
            let bytes = notify.bytes.min(WINDOW * CHUNK);
            return self.grant(from, &frame, Control { kind: Kind::Grant as u8, bytes, ..notify });
        }
        let message = Message::parse(data).unwrap();
        let next = message.offset + WINDOW * CHUNK;
        if matches!(kind, Kind::Wreq | Kind::Rres) && next < message.total {
            let (kind, answer) = (Kind::Grant as u8, u8::from(kind == Kind::Rres));
            let (id, bytes) = (message.id, CHUNK.min(message.total - next));
            let wait = 20_000;
            let grant = Control { version: VERSION, kind, answer, id, offset: next, bytes, wait };
            self.grant(from, &frame, grant);
        }
        if kind == Kind::Rreq {
            Message { offset: 300_000, ..message }.emit(&mut frame[HEADERS..]);
        }
        self.sockets[1 - from].send(&mut frame);
    }

    /// Answers with a grant, in the name of the other node.
    fn grant(&mut self, to: usize, frame: &[u8], grant: Control) {
        let ethernet = Ethernet::parse(frame).unwrap();
        let mut answer = vec![0; 60];
        Ethernet { dst: ethernet.src, src: ethernet.dst, ether_type: EtherType::VLAN }.emit(&mut answer);
        Vlan { pcp: 7, dei: false, vid: 0, ether_type: ETHER_TYPE }.emit(&mut answer[Ethernet::BYTES..]);
        grant.emit(&mut answer[HEADERS..]);
        self.sockets[to].send(&mut answer);
    }
}

/// Ends switch and memory node, whether or not the test fails.
struct End<'a> {
    stop: &'a AtomicBool,
    server: &'a NetNs,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = Links::open_in(self.server).and_then(|mut links| links.delete("eth0"));
    }
}

/// Two hosts at a switch, one of which serves its memory while `test` runs.
fn with_rack(loses: fn(Kind, u64) -> bool, stats: Option<PathBuf>, test: impl FnOnce(&NetNs)) {
    let (Ok(client), Ok(server), Ok(switch)) = (NetNs::create(), NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    for (ns, name, own) in [(&client, "port0", 0), (&server, "port1", MEMORY)] {
        let end = VethEnd { name: "eth0", ns, mac: Some(mac(own)) };
        Links::add_veth(end, VethEnd { name, ns: &switch, mac: None }).unwrap();
        let pipe =
            |ns: &NetNs, name: &str| ns.run(|| Links::open().unwrap().make_pipe(name, 1_600).map(drop));
        pipe(ns, "eth0").unwrap().unwrap();
        pipe(&switch, name).unwrap().unwrap();
    }
    let open = |name| PacketSocket::open(name, &packet::Options::default()).unwrap();
    let sockets = switch.run(|| ["port0", "port1"].map(open)).unwrap();
    let rights = Rights { read: true, write: true };
    let regions = vec![
        Region { start: START, bytes: vec![0; BYTES], key: KEY, rights },
        Region { start: 0, bytes: vec![9; 64], key: 1, rights: Rights { read: true, write: false } },
    ];
    let node = memory::Config { chunk_bytes: CHUNK as u16, window: WINDOW, ..memory::Config::default() };
    let config = ServerConfig {
        name: "h2".to_owned(),
        port: port(MEMORY),
        node,
        stats_file: stats,
        metrics_addr: None,
    };
    let (signals, memory) =
        server.run(|| (Signals::take().unwrap(), Server::open(config, regions).unwrap())).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| Switch { sockets, loses, seen: 0 }.run(&stop));
        let serving = scope.spawn(|| memory.run(&signals));
        let end = End { stop: &stop, server: &server };
        test(&client);
        drop(end);
        let ended = serving.join().unwrap();
        assert!(
            matches!(&ended, Err(ServerError::Port(EdmPortError::Gone(name))) if name == "eth0"),
            "{ended:?}"
        );
    });
}

fn never(_: Kind, _: u64) -> bool {
    false
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + n / 256) as u8).collect()
}

#[test]
fn pieces_of_another_hosts_memory_are_gathered_and_scattered() {
    with_rack(never, None, |ns| {
        let client = ns.run(|| Client::open(client_config())).unwrap().unwrap();
        let edm = remote::Edm::new(client, REMOTE, START + BYTES as u64);
        pieces::gathers_and_scatters(&mut remote::Pieces::new(edm), START);
    });
}

#[test]
fn programs_read_write_and_modify_the_memory_of_another_host() {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("h2.json");
    with_rack(never, Some(stats.clone()), |ns| {
        ns.run(|| {
            let mut client = Client::open(client_config()).unwrap();
            for bytes in [1, 511, 512, 513, 1_024, 1_025, 5_000] {
                client.write(REMOTE, START + 8, pattern(bytes)).unwrap();
                let asked = clock::now();
                assert_eq!(client.read(REMOTE, START + 8, bytes as u32).unwrap(), pattern(bytes));
                let took = clock::now() - asked;
                assert!(took >= Nanos(300_000), "the switch makes each answer wait, but took {took:?}");
            }
            assert_eq!(client.swap(REMOTE, START, 5).unwrap(), 0);
            assert_eq!(client.cas(REMOTE, START, 5, 9).unwrap(), 5);
            assert_eq!(client.cas(REMOTE, START, 5, 1).unwrap(), 9);
            assert_eq!(client.fetch_add(REMOTE, START, 3).unwrap(), 9);
            for (opcode, operand, old) in
                [(Opcode::And, 4, 12), (Opcode::Or, 3, 4), (Opcode::Xor, 1, 7), (Opcode::Min, 2, 6)]
            {
                assert_eq!(client.modify(REMOTE, START, opcode, operand).unwrap(), old);
            }
            assert_eq!(client.modify(REMOTE, START, Opcode::Max, 8).unwrap(), 2);
            // More operations than may be active together; results come in the order of the operations.
            let adds = (0..50).map(|_| Operation::modify(REMOTE, START, Opcode::FetchAdd, 1));
            let olds: Vec<u64> = client
                .batch(adds)
                .into_iter()
                .map(|old| u64::from_be_bytes(old.unwrap().try_into().unwrap()))
                .collect();
            assert_eq!(olds, (8..58).collect::<Vec<u64>>());
            assert_eq!((client.open_operations(), client.poll(None).unwrap().is_none()), (0, true));
            let stats = client.port_stats();
            assert_eq!((stats.foreign, stats.malformed, stats.socket.kernel_drops), (0, 0, 0));
        })
        .unwrap();
    });
    if stats.exists() {
        let report: ServerReport = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        assert_eq!((report.counters["writes"], report.counters["reads"]), (7, 7));
        assert_eq!((report.counters["modifies"], report.refused.values().sum::<u64>()), (59, 0));
    }
}

/// Of two links one may vanish: the node goes on over the other one, and ends with the last.
#[test]
fn a_node_outlives_one_of_its_links() {
    with_rack(never, None, |ns| {
        let end = |name| VethEnd { name, ns, mac: None };
        Links::add_veth(end("eth1"), end("away")).unwrap();
        ns.run(|| {
            let mut links = Links::open().unwrap();
            ["eth1", "away"].iter().for_each(|name| links.set_up(name).unwrap());
            let mut config = client_config();
            config.port.interfaces.push("eth1".to_owned());
            let mut client = Client::open(config).unwrap();
            client.write(REMOTE, START, pattern(5_000)).unwrap();
            links.delete("eth1").unwrap();
            for _ in 0..20 {
                assert_eq!(client.read(REMOTE, START, 5_000).unwrap(), pattern(5_000));
            }
            assert_eq!(client.port_stats().links_gone, 1);
            links.delete("eth0").unwrap();
            let error = client.read(REMOTE, START, 8).unwrap_err().to_string();
            assert!(error.contains("`eth0` vanished"), "{error}");
        })
        .unwrap();
    });
}

#[test]
fn every_failure_has_its_error() {
    with_rack(never, None, |ns| {
        ns.run(|| {
            let mut client = Client::open(client_config()).unwrap();
            let end = START + BYTES as u64;
            let read_only = Remote { node: MEMORY, key: 1 };
            assert!(matches!(client.read(REMOTE, end - 8, 9), Err(Error::OutOfBounds)));
            assert!(matches!(client.read(read_only, START, 8), Err(Error::WrongKey)));
            assert!(matches!(client.swap(read_only, 0, 1), Err(Error::NotPermitted)));
            assert!(matches!(client.swap(REMOTE, START + 4, 1), Err(Error::BadOperation)));
            assert!(matches!(client.read(REMOTE, START, 0), Err(Error::BadLength)));
            assert!(matches!(client.read(REMOTE, START, u32::MAX), Err(Error::BadLength)));
            for node in [0, 3] {
                let nobody = Remote { node, ..REMOTE };
                assert!(matches!(client.read(nobody, START, 8), Err(Error::NoSuchNode(n)) if n == node));
            }
            let nobody = Remote { node: NOBODY, ..REMOTE };
            assert!(matches!(client.fetch_add(nobody, START, 1), Err(Error::Unknown)));
            // A write has no answer: memory is unchanged.
            client.write(read_only, 0, vec![1; 8]).unwrap();
            thread::sleep(Duration::from_millis(50));
            assert_eq!(client.read(read_only, 0, 8).unwrap(), [9; 8]);
            let second = Client::open(client_config()).unwrap_err().to_string();
            assert!(second.contains("`eth0`") && second.contains("another"), "{second}");
            let waiting = client.submit(Operation::read(nobody, START, 8)).unwrap();
            Links::open().unwrap().delete("eth0").unwrap();
            assert!(matches!(client.wait(waiting), Err(Error::Port(_))));
        })
        .unwrap();
    });
}

/// A wrong name or a wrong place is refused before a frame is sent: at the switch it would count as spoofed.
#[test]
fn a_node_opens_the_link_of_its_own_host_alone() {
    with_rack(never, None, |ns| {
        let frames_sent = |interface: &str| Links::open().unwrap().get(interface).unwrap().tx_frames;
        let refused = |own: u16, interface: &str| {
            let port = PortConfig { interfaces: vec![interface.to_owned()], ..port(own) };
            let error = Client::open(ClientConfig { port, ..client_config() }).unwrap_err();
            assert!(matches!(error, EdmPortError::NotHere(_)), "{error}");
            error.to_string()
        };
        let add_pair = |ns: &NetNs| {
            let end = |name| VethEnd { name, ns, mac: None };
            Links::add_veth(end("own0"), end("own1")).unwrap();
            let mut links = Links::open_in(ns).unwrap();
            ["own0", "own1"].into_iter().for_each(|name| links.set_up(name).unwrap());
            links.add_address("own0", [198, 51, 100, 1].into(), 24).unwrap();
        };
        add_pair(ns);
        ns.run(|| {
            let before = ["eth0", "own0"].map(frames_sent);
            let said = refused(MEMORY, "eth0");
            assert!(said.contains("not h2's link") && said.contains("this is h1"), "{said}");
            assert!(
                said.contains("`p4rack exec h2 -- COMMAND`") && said.contains("give h1 as the name"),
                "{said}"
            );
            let said = refused(0, "own0");
            assert!(
                said.contains("with the address 198.51.100.1") && said.contains("name its interface"),
                "{said}"
            );
            assert_eq!(["eth0", "own0"].map(frames_sent), before);
            // Beside an agent, whose TAP interface has the host's address, its link has any.
            let mut links = Links::open().unwrap();
            links.set_mac("eth0", MacAddr([2, 9, 9, 9, 9, 9])).unwrap();
            links.set_mac("own1", mac(0)).unwrap();
            drop(Client::open(client_config()).unwrap());
        })
        .unwrap();
        let elsewhere = NetNs::create().unwrap();
        add_pair(&elsewhere);
        elsewhere
            .run(|| {
                let before = frames_sent("own1");
                let said = refused(0, "own1");
                assert!(said.contains("no interface here has h1's MAC address 02:00:00:00:00:01"), "{said}");
                assert_eq!(frames_sent("own1"), before);
                // The missing interface is not what is wrong.
                assert!(refused(0, "eth0").contains("`p4rack exec h1"));
            })
            .unwrap();
    });
}

/// Lost grants and notifications cost time, not writes; a lost answer is an unknown operation, done once.
#[test]
fn losses_are_made_up_for_or_told() {
    let loses = |kind, nth: u64| {
        let one_in = |n| (nth.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(n);
        match kind {
            Kind::Notify => one_in(3),
            Kind::Rres => one_in(6),
            _ => false,
        }
    };
    with_rack(loses, None, |ns| {
        ns.run(|| {
            let mut config = client_config();
            config.node.timeout = Nanos::from_millis(5);
            config.node.retries = 9;
            let mut client = Client::open(config).unwrap();
            for n in 0..20 {
                client.write(REMOTE, START + 64 * n, vec![n as u8 + 1; 64]).unwrap();
            }
            let (mut done, mut unknown) = (0, 0);
            for _ in 0..100 {
                match client.fetch_add(REMOTE, START + 4_096, 1) {
                    Ok(_) => done += 1,
                    Err(Error::Unknown) => unknown += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(unknown > 0 && client.counters().again > 0, "nothing was lost");
            let word = |bytes: Vec<u8>| u64::from_be_bytes(bytes.try_into().unwrap());
            let mut read = |address, bytes| loop {
                match client.read(REMOTE, address, bytes) {
                    Err(Error::Unknown) => {}
                    other => break other.unwrap(),
                }
            };
            let sum = word(read(START + 4_096, 8));
            assert!((done..=done + unknown).contains(&sum), "{done} done, {unknown} unknown, {sum} there");
            for n in 0..20 {
                assert_eq!(read(START + 64 * n, 64), vec![n as u8 + 1; 64]);
            }
        })
        .unwrap();
    });
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn threads_and_tasks_share_a_node() {
    with_rack(never, None, |ns| {
        let handle = ns.run(|| Handle::open(client_config()).unwrap()).unwrap();
        thread::scope(|scope| {
            for n in 0..4u64 {
                let handle = handle.clone();
                scope.spawn(move || {
                    block_on(async {
                        let at = START + 1_024 * n;
                        handle.write(REMOTE, at, pattern(1_000)).await.unwrap();
                        assert_eq!(handle.read(REMOTE, at, 1_000).await.unwrap(), pattern(1_000));
                        for _ in 0..25 {
                            handle.fetch_add(REMOTE, START + 8_192, 1).await.unwrap();
                        }
                    });
                });
            }
        });
        let read = |address, bytes| Operation { remote: REMOTE, address, request: Request::Read(bytes) };
        let mut both = handle.batch([read(START + 8_192, 8), read(0, 8)]).into_iter();
        let mut next = || both.next().unwrap().unwrap().wait();
        assert_eq!(next().unwrap(), 100u64.to_be_bytes());
        assert!(matches!(next(), Err(Error::WrongKey)));
        let last = handle.submit(read(START, 8)).unwrap();
        drop(handle);
        assert_eq!(last.wait().unwrap().len(), 8, "what was asked is still answered");
    });
}
