//! A switch over each kind of I/O, between two hosts in namespaces.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, have, p4rack, skip, wait_until};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::packet::{self, Io, Options};
use p4rack_netdev::{Links, NetNs, PacketSocket, ethtool};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Frames that come in at one port leave by the other.
const CROSS: &str = r#"
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct metadata_t { }
parser ThisParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control Checks(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Sums(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Cross(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 3 - sm.ingress_port; }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control ThisDeparser(packet_out packet, in headers_t hdr) { apply { } }
V1Switch(ThisParser(), Checks(), Cross(), Leave(), Sums(), ThisDeparser()) main;
"#;
/// Frames go to a port without an interface. There egress recirculates those of type 0x88b5, which then leave by port 2.
const NOWHERE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers_t { eth_t eth; }
struct metadata_t { }
parser ThisParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.eth); transition accept; }
}
control Checks(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Sums(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Choose(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 4) { sm.egress_spec = 2; hdr.eth.kind = 0x88b6; } else { sm.egress_spec = 500; }
    }
}
control Return(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 500 && hdr.eth.kind == 0x88b5) { recirculate_preserving_field_list(0); }
    }
}
control ThisDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.eth); } }
V1Switch(ThisParser(), Checks(), Choose(), Return(), Sums(), ThisDeparser()) main;
"#;
const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// A switch with two ports in a namespace, and a host in a namespace at each of them.
struct Setup {
    middle: NetNs,
    a: NetNs,
    b: NetNs,
}

impl Setup {
    fn new() -> Setup {
        let setup = Setup {
            middle: NetNs::create().unwrap(),
            a: NetNs::create().unwrap(),
            b: NetNs::create().unwrap(),
        };
        for (port, host, address) in [("p1", &setup.a, A), ("p2", &setup.b, B)] {
            Links::add_veth(
                VethEnd { name: port, ns: &setup.middle, mac: None },
                VethEnd { name: "h", ns: host, mac: None },
            )
            .unwrap();
            let mut links = Links::open_in(host).unwrap();
            links.set_up("h").unwrap();
            links.add_address("h", address, 24).unwrap();
        }
        setup
    }

    fn switch(&self, program: &Path, io: Io, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
        let mut command = p4rack();
        command.args(["switch", "run", "-i", "1@p1", "-i", "2@p2", "--stats", "-", "--io", io.name()]);
        command.args(more).arg(program).stdout(Stdio::piped());
        self.middle.command(&mut command, true).unwrap();
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"), "{io}: {line}");
        (child, output)
    }

    /// Whether a program of XDP is on a port.
    fn has_xdp(&self) -> bool {
        let mut command = Command::new("ip");
        self.middle.command(command.args(["link", "show"]), false).unwrap();
        String::from_utf8_lossy(&command.output().unwrap().stdout).contains("xdp")
    }

    /// Datagrams there and back, whose checksums the hosts leave to their interfaces.
    fn ask_and_answer(&self, io: Io) {
        let (asks, answers) = (udp(&self.a, A), udp(&self.b, B));
        let mut buffer = [0; 2000];
        for length in [1, 100, 1472] {
            let sent = vec![length as u8; length];
            let answered = wait_until(Duration::from_secs(5), || {
                asks.send_to(&sent, (B, 7)).unwrap();
                let Ok((got, from)) = answers.recv_from(&mut buffer) else { return false };
                answers.send_to(&buffer[..got], from).unwrap();
                asks.recv(&mut buffer).is_ok_and(|got| buffer[..got] == sent)
            });
            assert!(answered, "{io}: no answer of {length} bytes");
        }
    }

    fn tagged_frames(&self, io: Io) {
        let open = || PacketSocket::open("h", &Options::default());
        let (mut from, mut to) = (self.a.run(open).unwrap().unwrap(), self.b.run(open).unwrap().unwrap());
        let mut sent = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xf0, 5, 0x88, 0xb5];
        sent.resize(64, 7);
        from.send(&mut sent.clone());
        from.flush();
        let mut got = Vec::new();
        wait_until(Duration::from_secs(2), || {
            to.receive(|frame, _| got.extend((frame[12..14] == sent[12..14]).then(|| frame.to_vec())))
                .unwrap();
            !got.is_empty()
        });
        assert_eq!(got, [sent], "{io}");
    }

    /// Sends full frames for a while, one each `every` or as fast as it goes; how many and for how long, and how many came.
    fn pour(&self, every: Option<Duration>) -> (u64, Duration, u64) {
        let open = || PacketSocket::open("h", &Options::default());
        let (mut from, mut to) = (self.a.run(open).unwrap().unwrap(), self.b.run(open).unwrap().unwrap());
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        frame.resize(1514, 7);
        let ours = |frame: &[u8]| frame[12..14] == [0x88, 0xb5];
        let (mut sent, mut came, start) = (0, 0, Instant::now());
        let mut next = start;
        while start.elapsed() < Duration::from_millis(500) {
            if let Some(every) = every {
                while Instant::now() < next {
                    std::hint::spin_loop();
                }
                // As a host's NIC, it makes up for one frame.
                next = (next + every).max(Instant::now());
            }
            from.send(&mut frame.clone());
            from.flush();
            sent += 1;
            to.receive(|frame, _| came += u64::from(ours(frame))).unwrap();
        }
        let took = start.elapsed();
        wait_until(Duration::from_millis(300), || {
            to.receive(|frame, _| came += u64::from(ours(frame))).unwrap();
            false
        });
        (sent, took, came)
    }

    fn bulk(&self, io: Io) {
        // Else the host gives its interface segments of 64 KiB to cut, and a veth cuts nothing.
        for host in [&self.a, &self.b] {
            host.run(|| ethtool::offloads_off("h")).unwrap().unwrap();
        }
        const BYTES: usize = 8 << 20;
        let listener = self.b.run(|| TcpListener::bind((B, 9))).unwrap().unwrap();
        let sender = self.a.run(|| TcpStream::connect((B, 9))).unwrap().unwrap();
        let sums = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let bytes: Vec<u8> = (0..BYTES).map(|i| (i * i / 7) as u8).collect();
                (&sender).write_all(&bytes).unwrap();
                sender.shutdown(std::net::Shutdown::Write).unwrap();
                bytes
            });
            let mut got = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
            (sending.join().unwrap(), got)
        });
        assert!(sums.0 == sums.1, "{io}: {} of {BYTES} bytes came, or others", sums.1.len());
    }
}

/// Ends the switch; returns its report.
fn end(switch: &mut Child, output: &mut impl Read) -> serde_json::Value {
    assert!(Command::new("kill").arg(switch.id().to_string()).status().unwrap().success());
    let mut report = String::new();
    output.read_to_string(&mut report).unwrap();
    assert!(switch.wait().unwrap().success());
    serde_json::from_str(&report).unwrap()
}

fn udp(host: &NetNs, address: Ipv4Addr) -> UdpSocket {
    let socket = host.run(|| UdpSocket::bind((address, 7))).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

#[test]
fn a_switch_forwards_over_each_kind_and_leaves_the_interfaces_as_they_were() {
    if !can_make_namespaces() || !have("ip", "iproute2") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("cross.p4");
    std::fs::write(&program, CROSS).unwrap();
    for io in Io::ALL {
        if let Err(error) = packet::probe(io) {
            skip(&format!("--io {io} ({error})"), "root, and a kernel with AF_XDP");
            continue;
        }
        let setup = Setup::new();
        let (mut switch, mut output) = setup.switch(&program, io, &[]);
        assert_eq!(setup.has_xdp(), io == Io::Xdp, "{io}");
        setup.ask_and_answer(io);
        setup.tagged_frames(io);
        setup.bulk(io);

        let report = end(&mut switch, &mut output);
        let port = &report["ports"][0];
        assert_eq!(port["io"], io.name());
        assert!(port["socket"]["received"].as_u64().unwrap() > 5_000, "{io}: {port}");
        assert!(!setup.has_xdp(), "{io}: left behind");

        // Ended without a chance to tidy up.
        let (mut switch, _output) = setup.switch(&program, io, &[]);
        switch.kill().unwrap();
        switch.wait().unwrap();
        assert!(wait_until(Duration::from_secs(2), || !setup.has_xdp()), "{io}: left behind");
    }
}

/// A veth carries gigabits a second, a port only its rate.
#[test]
fn what_comes_in_faster_than_the_ports_rate_is_dropped_and_counted() {
    if !can_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("cross.p4");
    std::fs::write(&program, CROSS).unwrap();
    // A full frame is 1538 bytes on the wire.
    let frame_time = Duration::from_nanos(1_538 * 80);
    for io in [Io::Packet, Io::Ring] {
        for (every, floods) in [(None, true), (Some(frame_time), false)] {
            let setup = Setup::new();
            // The port that it leaves by has no limit.
            let (mut switch, mut output) = setup.switch(&program, io, &["--port-rate", "1=100 Mb/s"]);
            let (sent, took, came) = setup.pour(every);
            let report = end(&mut switch, &mut output);
            let over = report["drops"]["over_rate"].as_u64().unwrap_or(0);
            assert_eq!(over > 0, floods, "{io}: {sent} in {took:?}, {came} came, {over} over the rate");
            let carries = (took + Duration::from_millis(10)).as_nanos() / frame_time.as_nanos();
            assert!(u128::from(came) <= carries + 2, "{io}: {came} in {took:?}, {carries} fit");
            // The count depends on the machine's other load, but every frame within the rate is forwarded.
            let count = |port: usize, what: &str| report["ports"][port]["socket"][what].as_u64().unwrap();
            let all = |what: &str| count(0, what) + count(1, what);
            let drops: u64 =
                report["drops"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
            assert_eq!(all("received"), all("sent") + drops, "{io}: {report}");
            assert!(count(1, "sent") >= 80, "{io}: {report}");
        }
    }
}

/// Programs for BMv2 give frames a made-up port to have them pass egress.
#[test]
fn frames_for_a_port_without_interface_pass_egress_as_on_bmv2() {
    if !can_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("nowhere.p4");
    std::fs::write(&program, NOWHERE).unwrap();
    let setup = Setup::new();
    let (mut switch, mut output) = setup.switch(&program, Io::Packet, &["--like", "bmv2"]);
    let open = || PacketSocket::open("h", &Options::default());
    let (mut from, mut to) = (setup.a.run(open).unwrap().unwrap(), setup.b.run(open).unwrap().unwrap());
    // The first one ends at the port; those of the kernel, for example of IPv6, do too.
    let frame = |kind: u16| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        frame.extend(kind.to_be_bytes());
        frame.resize(60, 7);
        frame
    };
    for kind in [0x88b7, 0x88b5] {
        from.send(&mut frame(kind));
    }
    from.flush();
    let mut came = Vec::new();
    let ours = |frame: &[u8]| (0x88b5..=0x88b7).contains(&u16::from_be_bytes([frame[12], frame[13]]));
    wait_until(Duration::from_secs(10), || {
        to.receive(|frame, _| came.extend(ours(frame).then(|| frame.to_vec()))).unwrap();
        !came.is_empty()
    });
    assert_eq!(came, [frame(0x88b6)]);
    let report = end(&mut switch, &mut output);
    assert!(report["drops"]["no_such_port"].as_u64() >= Some(1), "{report}");
}
