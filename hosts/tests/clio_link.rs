//! A board on a socket and on an interface's frames, between namespaces: clients see no difference, and Wireshark finds nothing wrong.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::{KEEP, Setting, with_board_as};
use p4rack_fabric::clio::board::{Config, Pool};
use p4rack_fabric::clio::lib::{Change, Operation};
use p4rack_hosts::clio::server::{At, Server as Board};
use p4rack_hosts::clio::{Kv, KvShape, Session, Wanted};
use p4rack_hosts::remote::Attachment;
use p4rack_hosts::roce::Loss;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::packet::Options;
use p4rack_netdev::{Links, NetNs, PacketSocket};
use p4rack_wire::clio::packet::{self as wire, Packet};
use p4rack_wire::clio::{self, Kind, PageSize, Rights, UDP_PORT};
use p4rack_wire::dissector::script;
use p4rack_wire::pcap::Writer;
use p4rack_wire::{Nanos, udp};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

const CLIENT_IP: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 1);
const BOARD_IP: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 2);

fn skipped(needs: &str) {
    // Past the harness, which hides what a passing test prints.
    let said = format!("skipped: needs {needs}\n");
    let _ = std::io::stderr().write_all(said.as_bytes());
}

/// Namespaces of a client and a board, with a link between them.
fn namespaces() -> Option<[NetNs; 2]> {
    let (Ok(client), Ok(board)) = (NetNs::create(), NetNs::create()) else {
        skipped("root or user namespaces, get it by `unshare -rn cargo test`");
        return None;
    };
    let end = |ns| VethEnd { name: "clio0", ns, mac: None };
    Links::add_veth(end(&client), end(&board)).unwrap();
    for (ns, ip) in [(&client, CLIENT_IP), (&board, BOARD_IP)] {
        let mut links = Links::open_in(ns).unwrap();
        links.add_address("clio0", ip, 24).unwrap();
        links.set_up("clio0").unwrap();
    }
    Some([client, board])
}

fn places() -> [At; 2] {
    let addr = SocketAddr::from((BOARD_IP, UDP_PORT));
    [At::Udp(addr), At::Packet(addr, None)]
}

/// Operations of all kinds. Returns their results.
fn mix(place: &Attachment, mut after_each: impl FnMut()) -> Vec<Vec<u8>> {
    let (server, mut results) = (place.memory.as_ref().unwrap(), Vec::new());
    let mut session = Session::open_as(server, Wanted::bytes(1 << 20), None, place.patience).unwrap();
    let start = session.range().0;
    for nth in 0..20u64 {
        // One byte, a word, an odd number, packets, pages.
        for bytes in [1, 8, 777, 5_000, 70_001] {
            let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + nth) as u8).collect();
            session.write(start + nth * 31, &data).unwrap();
            results.push(session.read(start + nth * 31, bytes as u32).unwrap());
            assert!(results.last() == Some(&data), "{bytes} bytes, {nth}");
            after_each();
        }
        let change = Change::FetchAdd(nth);
        let word = session.ask(Operation::Modify { address: start, change }).unwrap();
        results.push(format!("{word:?}").into_bytes());
        let lock = start + (1 << 20) - 8;
        for operation in [Operation::Lock { address: lock }, Operation::Unlock { address: lock }] {
            session.ask(operation).unwrap();
        }
        session.fence(false).unwrap();
        let more = session.alloc(9_000, Rights::ALL).unwrap();
        session.free(more, 9_000).unwrap();
        after_each();
    }
    let shape = KvShape { value_bytes_max: 9_000, written_bytes_max: 9_000, under_way_max: 1 };
    let mut kv = Kv::open(server, shape, place.patience).unwrap();
    for (nth, bytes) in [0usize, 9, 1_000, 9_000].into_iter().enumerate() {
        kv.put(&[nth as u8], &vec![nth as u8; bytes]).unwrap();
        results.push(kv.get(&[nth as u8]).unwrap().unwrap());
        after_each();
    }
    assert_eq!(kv.get(b"absent").unwrap(), None);
    results
}

/// Runs the mix over a link, and gives what was seen of the packets at both ends.
fn run([client, board]: &[NetNs; 2], packets: At, per_mille: u16) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let setting = Setting {
        packets,
        set_up: SocketAddr::from((BOARD_IP, 9_563)),
        bytes: 4 << 20,
        store_bytes: 1 << 20,
        loss: Loss { per_mille, seed: 5 },
        retry_keep: KEEP,
    };
    let tap = |ns: &NetNs| ns.run(|| PacketSocket::open("clio0", &Options::default())).unwrap().unwrap();
    // Each end sees what arrives there.
    let mut taps = [tap(client), tap(board)];
    let (mut results, mut frames) = (Vec::new(), Vec::new());
    let mut collect = || {
        for tap in &mut taps {
            while tap.receive(|frame, _| frames.push(frame.to_vec())).unwrap() > 0 {}
        }
    };
    board
        .run(|| {
            with_board_as(&setting, |place, _| {
                results = client.run(|| mix(place, &mut collect)).unwrap();
            });
        })
        .unwrap();
    collect();
    assert!(taps.iter_mut().all(|tap| tap.stats().kernel_drops == 0), "the taps saw everything");
    (results, frames)
}

/// The datagrams of a board among frames.
fn datagrams(frames: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    // By bytes alone: one that the parser refuses has to fail the test.
    let is_ours = |frame: &[u8]| {
        let port = |at: usize| frame.get(at..at + 2) == Some(&UDP_PORT.to_be_bytes()[..]);
        frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&17) && (port(34) || port(36))
    };
    frames.iter().filter(|frame| is_ours(frame)).collect()
}

fn packet(frame: &[u8]) -> Packet<'_> {
    wire::parse(udp::parse(frame).unwrap().data).unwrap()
}

#[test]
fn clients_see_no_difference_between_a_socket_and_frames() {
    let Some(namespaces) = namespaces() else { return };
    let [socket, frames] = places().map(|place| run(&namespaces, place, 0).0);
    assert!(socket == frames);
}

#[test]
fn wireshark_finds_nothing_wrong_in_a_run_with_losses() {
    let Some(namespaces) = namespaces() else { return };
    for place in places() {
        let (_, frames) = run(&namespaces, place.clone(), 20);
        let frames = datagrams(&frames);
        let packets: Vec<Packet<'_>> = frames.iter().map(|frame| packet(frame)).collect();
        let kinds: BTreeSet<u8> = packets.iter().map(|packet| packet.kind as u8).collect();
        for kind in
            [Kind::Read, Kind::Write, Kind::Atomic, Kind::Fence, Kind::Manage, Kind::Call, Kind::Answer]
        {
            assert!(kinds.contains(&(kind as u8)), "{kind:?} is not in the mix over {place:?}");
        }
        assert!(packets.iter().any(|packet| packet.header.attempt > 0), "packets were lost");
        assert!(packets.iter().any(|packet| packet.header.packets > 1), "long operations");

        let fields =
            ["clio.kind", "udp.checksum.status", "ip.checksum.status", "_ws.malformed", "_ws.expert"];
        let mut capture = Writer::default();
        frames.iter().for_each(|frame| capture.add(Nanos::ZERO, frame));
        let folder = tempfile::tempdir().unwrap();
        let [lua, pcap] = ["clio.lua", "run.pcap"].map(|name| folder.path().join(name));
        std::fs::write(&lua, script("clio", &[clio::dissector(UDP_PORT)])).unwrap();
        std::fs::write(&pcap, capture.bytes()).unwrap();
        let mut tshark = Command::new("tshark");
        tshark.args(["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-X"]);
        tshark.arg(format!("lua_script:{}", lua.display())).arg("-r").arg(&pcap);
        tshark.args(fields.iter().flat_map(|field| ["-e", field]));
        let Ok(output) = tshark.output() else {
            return skipped("`tshark`, get it by `apt install tshark`");
        };
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
        assert_eq!(text.lines().count(), frames.len(), "{errors}");
        for (packet, line) in packets.iter().zip(text.lines()) {
            // 1: a checksum is right.
            let wanted = [&(packet.kind as u8).to_string(), "1", "1", "", ""].map(str::to_owned);
            assert_eq!(line.split('\t').collect::<Vec<_>>(), wanted, "{place:?}: {:?}", packet.header);
        }
    }
}

#[test]
fn what_is_wrong_with_an_interface_is_said() {
    let Some([_client, board]) = namespaces() else { return };
    let open_at = |ip: Ipv4Addr, port: u16, interface: Option<&str>| {
        let pool = Pool { size: PageSize::K4, frames: 16, ready: 16 };
        let at = At::Packet(SocketAddr::from((ip, port)), interface.map(str::to_owned));
        board
            .run(|| Board::open_at(&at, Config::new(vec![pool]), 0).map(drop).map_err(|e| e.to_string()))
            .unwrap()
    };
    let open = |ip, interface| open_at(ip, UDP_PORT, interface);
    assert_eq!(open(BOARD_IP, None), Ok(()));
    // An address beside another one is as good.
    let second = Ipv4Addr::new(10, 9, 8, 2);
    board.run(|| Links::open().unwrap().add_address("clio0", second, 24).unwrap()).unwrap();
    for opened in [open(second, None), open(second, Some("clio0")), open(BOARD_IP, None)] {
        assert_eq!(opened, Ok(()));
    }
    let absent = open(BOARD_IP, Some("absent0")).unwrap_err();
    assert!(absent.contains("absent0"), "{absent}");
    for ip in [CLIENT_IP, Ipv4Addr::LOCALHOST] {
        let none = open(ip, None).unwrap_err();
        assert!(none.contains("no interface that carries frames has the address"), "{none}");
    }
    let other = open(BOARD_IP, Some("lo")).unwrap_err();
    assert!(other.contains("interface `lo`") && other.contains("--interface"), "{other}");
    let any = open_at(BOARD_IP, 0, None).unwrap_err();
    assert!(any.contains("other than 0"), "{any}");
    board.run(|| Links::open().unwrap().set_mtu("clio0", 1_000).unwrap()).unwrap();
    let narrow = open(BOARD_IP, None).unwrap_err();
    assert!(narrow.contains("MTU of 1000 bytes"), "{narrow}");
}
