//! A cached region over EDM on a real link, whose memory node starts again.

#![allow(clippy::unwrap_used)]

use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::compute;
use p4rack_fabric::edm::host::memory::{Config, MemoryNode, Region, Rights};
use p4rack_hosts::memory::{Client, ClientConfig, NodeAddress, PortConfig, Remote};
use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::Edm;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs, PacketSocket, Poller, clock, packet};
use p4rack_wire::edm::{Control, Kind};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::io::Write;
use std::sync::atomic::{AtomicU16, Ordering};

const ETHER_TYPE: EtherType = EtherType(0x88b6);
const HEADERS: usize = Ethernet::BYTES + Vlan::BYTES;
const KEY: u32 = 77;
/// Numbers of the nodes.
const COMPUTE: u16 = 0;
const MEMORY: u16 = 1;
const REGION_BYTES: u64 = 256 << 10;

fn mac(node: u16) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, node as u8 + 1])
}

fn client_config() -> ClientConfig {
    let port = PortConfig {
        interfaces: vec!["eth0".to_owned()],
        ether_type: ETHER_TYPE,
        rate_bps: 1_000_000_000,
        nodes: [COMPUTE, MEMORY].map(|node| NodeAddress { name: format!("h{node}"), mac: mac(node) }).into(),
        own: COMPUTE,
    };
    let timeout = Nanos::from_millis(200);
    ClientConfig { port, node: compute::Config { chunk_bytes: 512, timeout, ..compute::Config::default() } }
}

/// A memory node of zeros, by the number of its start.
fn memory_node(start: u16) -> MemoryNode {
    let rights = Rights { read: true, write: true };
    let region = Region { start: 0, bytes: vec![0; REGION_BYTES as usize], key: KEY, rights };
    // Sessions of a start are others than those of earlier ones.
    let config = Config { chunk_bytes: 512, first_session: 1_000 * start, ..Config::default() };
    MemoryNode::new(config, vec![region]).unwrap()
}

/// The switch and the memory node behind it: grants all, and starts the node again when `start` rises. Ends at `u16::MAX`.
fn serve(mut socket: PacketSocket, start: &AtomicU16) {
    let (mut poller, mut out) = (Poller::new(), Vec::new());
    poller.add(&socket).unwrap();
    let mut current = start.load(Ordering::Relaxed);
    let mut node = memory_node(current);
    loop {
        poller.wait(Some(clock::now() + Nanos::from_millis(5))).unwrap();
        let mut frames = Vec::new();
        let _ = socket.receive(|frame, _| frames.push(frame.to_vec()));
        match start.load(Ordering::Relaxed) {
            u16::MAX => return,
            wanted if wanted != current => (current, node) = (wanted, memory_node(wanted)),
            _ => {}
        }
        let now = clock::now();
        for frame in frames {
            let Some(data) = frame.get(HEADERS..) else { continue };
            match data.first().map(|first| Kind::of(*first)) {
                Some(Ok(Kind::Notify)) => {
                    let notify = Control::parse(data).unwrap();
                    out.resize(Control::BYTES, 0);
                    Control { kind: Kind::Grant as u8, ..notify }.emit(&mut out);
                    send(&mut socket, &out);
                }
                Some(Ok(_)) => node.handle_link((COMPUTE, data), now, now),
                _ => {}
            }
        }
        while node.poll_link(clock::now(), &mut out).is_some() {
            send(&mut socket, &out);
        }
        socket.flush();
    }
}

/// Sends a message in the memory node's name.
fn send(socket: &mut PacketSocket, message: &[u8]) {
    let mut frame = vec![0; HEADERS];
    Ethernet { dst: mac(COMPUTE), src: mac(MEMORY), ether_type: EtherType::VLAN }.emit(&mut frame);
    Vlan { pcp: 7, dei: false, vid: 0, ether_type: ETHER_TYPE }.emit(&mut frame[Ethernet::BYTES..]);
    frame.extend_from_slice(message);
    frame.resize(frame.len().max(60), 0);
    socket.send(&mut frame);
}

/// Ends the memory node, whether or not the test fails.
struct Ends<'a>(&'a AtomicU16);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(u16::MAX, Ordering::Relaxed);
    }
}

/// The client connects again, and the bytes there are zeros then: the region must not pass them on.
#[test]
fn a_memory_node_that_starts_again_loses_the_region() {
    let (Ok(client), Ok(switch)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    let end = VethEnd { name: "eth0", ns: &client, mac: Some(mac(COMPUTE)) };
    Links::add_veth(end, VethEnd { name: "port0", ns: &switch, mac: None }).unwrap();
    for (ns, name) in [(&client, "eth0"), (&switch, "port0")] {
        ns.run(|| Links::open().unwrap().make_pipe(name, 1_600).map(drop)).unwrap().unwrap();
    }
    let open = || PacketSocket::open("port0", &packet::Options::default()).unwrap();
    let (socket, start) = (switch.run(open).unwrap(), AtomicU16::new(1));
    std::thread::scope(|scope| {
        scope.spawn(|| serve(socket, &start));
        let _ends = Ends(&start);
        let node = client.run(|| Client::open(client_config())).unwrap().unwrap();
        let edm = Edm::new(node, Remote { node: MEMORY, key: KEY }, REGION_BYTES);
        let config = RegionConfig { policy: "lru".to_owned(), ..RegionConfig::new(64 << 10) };
        let region = RemoteRegion::new(Box::new(edm), &config).unwrap();
        region.write(0, &vec![7; REGION_BYTES as usize]).unwrap();
        region.flush().unwrap();
        let mut bytes = vec![0; REGION_BYTES as usize];
        region.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7), "it works before");
        start.store(2, Ordering::Relaxed);
        let lost = (0..REGION_BYTES).step_by(512).find_map(|at| {
            let mut byte = [1];
            let read = region.read(at, &mut byte);
            assert!(read.is_err() || byte == [7], "byte {at} is {byte:?}");
            read.err()
        });
        let Some(RegionError::Lost(why)) = lost else { panic!("nothing was lost: {lost:?}") };
        assert!(why.contains("may have started again"), "{why}");
        assert!(matches!(region.flush(), Err(RegionError::Lost(_))));
    });
}
