//! Frames that arrive on an interface and leave it, by every kind of I/O, in namespaces that vanish with the test.

#![allow(clippy::unwrap_used)]

use p4rack_netdev::link::VethEnd;
use p4rack_netdev::netns::NetNs;
use p4rack_netdev::packet::{self, Frames, Io, Options};
use p4rack_netdev::{Links, PacketSocket, Poller, checksum, clock};
use p4rack_wire::{EtherType, MacAddr, Nanos, ipv4};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

/// Kinds that the kernel gives; says once which others there are.
static KINDS: LazyLock<Vec<Io>> = LazyLock::new(|| {
    let refused = |io: &Io| match packet::probe(*io) {
        Ok(()) => true,
        Err(error) => {
            let why = error.to_string().replace('\n', " ");
            // Past the harness, which hides a passing test's output, and in one write.
            let said = format!("skipped: needs --io {io}, get it by root and a kernel with it ({why})\n");
            let _ = std::io::stderr().write_all(said.as_bytes());
            false
        }
    };
    Io::ALL.into_iter().filter(refused).collect()
});

/// Runs a test over each kind: in two namespaces joined by a veth pair `left` – `right`, plain pipes.
fn each(test: impl Fn(Io, &NetNs, &NetNs)) {
    for io in KINDS.iter().copied() {
        let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let mac = Some(MacAddr([2, 0, 0, 0, 0, 1]));
        Links::add_veth(VethEnd { name: "left", ns: &a, mac }, VethEnd { name: "right", ns: &b, mac: None })
            .unwrap();
        for (ns, name) in [(&a, "left"), (&b, "right")] {
            let stayed = ns.run(|| Links::open().unwrap().make_pipe(name, 1530).unwrap()).unwrap();
            assert!(stayed.is_empty(), "{name}: {stayed:?} stayed on");
        }
        test(io, &a, &b);
    }
}

fn open_with(ns: &NetNs, name: &str, options: Options) -> PacketSocket {
    ns.run(|| PacketSocket::open(name, &options)).unwrap().unwrap()
}

fn open(ns: &NetNs, name: &str, io: Io) -> PacketSocket {
    open_with(ns, name, Options { io, ..Options::default() })
}

/// Frames that arrive until there are `count` or a second has passed.
fn collect(socket: &mut PacketSocket, count: usize) -> Vec<(Vec<u8>, Nanos)> {
    let mut frames = Vec::new();
    let mut poller = Poller::new();
    poller.add(&*socket).unwrap();
    let end = clock::now() + Nanos::from_secs(1);
    while frames.len() < count && clock::now() < end {
        poller.wait(Some(end)).unwrap();
        socket.receive(|frame, at| frames.push((frame.to_vec(), at))).unwrap();
    }
    frames
}

fn frame(tag: Option<u16>, ether_type: u16, filler: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if let Some(tci) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.resize(length, filler);
    frame
}

#[test]
fn frames_arrive_byte_for_byte_with_all_bits_of_the_tag() {
    each(|io, a, b| {
        let (mut left, mut right) = (open(a, "left", io), open(b, "right", io));
        // PCP 7, DEI set, VID 5; then priority only; then the longest frame of the racks; then no tag.
        let sent = [
            frame(Some(0xf005), 0x88b5, 1, 64),
            frame(Some(0xa000), 0x0800, 2, 60),
            frame(Some(0x1fff), 0x88b5, 3, 1530 + 18),
            frame(None, 0x88b5, 4, 60),
        ];
        for frame in &sent {
            left.send(&mut frame.clone());
        }
        left.flush();
        let got: Vec<_> = collect(&mut right, sent.len()).into_iter().map(|(frame, _)| frame).collect();
        assert_eq!(got, sent, "{io}");
        assert_eq!((left.stats().sent, left.stats().send_refused), (4, 0), "{io}");
        assert_eq!(right.stats().received, 4, "{io}");
        // A socket does not hear itself.
        assert_eq!(left.receive(|_, _| panic!("heard itself")).unwrap(), 0, "{io}");
    });
}

#[test]
fn many_more_frames_than_a_ring_has_slots_pass_in_order() {
    each(|io, a, b| {
        let (mut left, mut right) = (open(a, "left", io), open(b, "right", io));
        let (mut next, mut got) = (0u32, 0u32);
        let mut poller = Poller::new();
        poller.add(&right).unwrap();
        while got < 10_000 {
            for _ in 0..50 {
                let mut sent = frame(None, 0x88b5, 0, 60 + next as usize % 1400);
                sent[14..18].copy_from_slice(&next.to_be_bytes());
                left.send(&mut sent);
                next += 1;
            }
            left.flush();
            let end = clock::now() + Nanos::from_secs(1);
            while got < next {
                poller.wait(Some(end)).unwrap();
                assert!(clock::now() < end, "{io}: {got} of {next} came: {:?}", right.stats());
                right
                    .receive(|frame, _| {
                        assert_eq!(frame[14..18], got.to_be_bytes(), "{io}");
                        assert_eq!(frame.len(), 60 + got as usize % 1400, "{io}");
                        got += 1;
                    })
                    .unwrap();
            }
        }
    });
}

#[test]
fn time_stamps_are_the_kernels_and_go_forward() {
    each(|io, a, b| {
        if io == Io::Xdp {
            // It has none: the time of reading.
            return;
        }
        let (mut left, mut right) = (open(a, "left", io), open(b, "right", io));
        let before = clock::now();
        for i in 0..100 {
            left.send(&mut frame(None, 0x88b5, i, 60));
        }
        left.flush();
        let sent = clock::now();
        // Read much later: the stamps must be of the arrival, not of the reading.
        std::thread::sleep(Duration::from_millis(30));
        let frames = collect(&mut right, 100);
        assert_eq!(frames.len(), 100);
        let slack = Nanos::from_millis(10);
        assert!(frames.windows(2).all(|w| w[0].1.0 <= w[1].1.0 + 20_000), "stamps go back");
        assert!(frames[0].1 + Nanos::from_micros(100) >= before, "{} < {before}", frames[0].1);
        assert!(frames[99].1 < sent + slack, "stamped when read");
    });
}

#[test]
fn kernel_drops_are_counted() {
    each(|io, a, b| {
        let mut left = open(a, "left", io);
        let small = Options { io, receive_buffer_bytes: 4096, ..Options::default() };
        let mut right = open_with(b, "right", small);
        for _ in 0..200 {
            left.send(&mut frame(None, 0x88b5, 0, 1000));
        }
        left.flush();
        std::thread::sleep(Duration::from_millis(50));
        let got = collect(&mut right, 200).len() as u64;
        assert!(got < 200, "{io}");
        assert_eq!(right.stats().kernel_drops, 200 - got, "{io}");
        assert_eq!(right.stats().kernel_drops, 200 - got, "{io}: a second look adds nothing");
        // There is room again.
        left.send(&mut frame(None, 0x88b5, 9, 60));
        left.flush();
        assert_eq!(collect(&mut right, 1).len(), 1, "{io}");
    });
}

#[test]
fn frames_beyond_the_mtu_are_refused_and_counted_and_the_others_pass() {
    each(|io, a, b| {
        let (mut left, mut right) = (open(a, "left", io), open(b, "right", io));
        // The last is as long as one with a tag, and has none.
        for length in [60, 1700, 61, 1530 + 18] {
            left.send(&mut frame(None, 0x88b5, 0, length));
        }
        left.flush();
        let got: Vec<_> = collect(&mut right, 2).iter().map(|(frame, _)| frame.len()).collect();
        assert_eq!(got, [60, 61], "{io}");
        assert_eq!((left.stats().sent, left.stats().send_refused), (2, 2), "{io}");
    });
}

#[test]
fn an_interface_that_is_down_refuses_and_comes_back() {
    each(|io, a, b| {
        let (mut left, mut right) = (open(a, "left", io), open(b, "right", io));
        let ip = |state: &str| {
            let mut command = Command::new("ip");
            a.command(command.args(["link", "set", "left", state]), false).unwrap();
            command.status().is_ok_and(|status| status.success())
        };
        if !ip("down") {
            let _ = writeln!(std::io::stderr(), "skipped: needs `ip`, get it by `apt install iproute2`");
            return;
        }
        for filler in 0..3 {
            left.send(&mut frame(None, 0x88b5, filler, 60));
        }
        left.flush();
        assert_eq!((left.stats().sent, left.stats().send_refused), (0, 3), "{io}");
        // A reader gets the error at most once, and then sleeps.
        let told = (0..3).filter(|_| left.receive(|_, _| panic!("{io}: a frame")).is_err()).count();
        assert!(told <= 1, "{io}: told {told} times");
        let mut poller = Poller::new();
        poller.add(&left).unwrap();
        poller.wait(Some(clock::now())).unwrap();
        assert!(!poller.ready(0), "{io}: stays ready");

        assert!(ip("up"));
        left.send(&mut frame(None, 0x88b5, 7, 60));
        left.flush();
        let fillers = |frames: Vec<(Vec<u8>, Nanos)>| frames.iter().map(|(f, _)| f[14]).collect::<Vec<_>>();
        assert_eq!(fillers(collect(&mut right, 1)), [7], "{io}: {:?}", left.stats());
        right.send(&mut frame(None, 0x88b5, 8, 60));
        right.flush();
        assert_eq!(fillers(collect(&mut left, 1)), [8], "{io}: {:?}", right.stats());
    });
}

#[test]
fn a_checksum_left_to_the_hardware_is_finished() {
    each(|io, a, b| {
        // The sending kernel believes that its veth computes checksums.
        Links::add_veth(VethEnd { name: "l2", ns: a, mac: None }, VethEnd { name: "r2", ns: b, mac: None })
            .unwrap();
        let to = Ipv4Addr::new(10, 1, 0, 2);
        a.run(|| {
            let mut links = Links::open().unwrap();
            links.set_up("l2").unwrap();
            links.add_address("l2", Ipv4Addr::new(10, 1, 0, 1), 24).unwrap();
            links.add_neighbour("l2", to, MacAddr([2, 0, 0, 0, 0, 9])).unwrap();
        })
        .unwrap();
        b.run(|| Links::open().unwrap().set_up("r2").unwrap()).unwrap();
        let mut right = open(b, "r2", io);
        let mut udp = Vec::new();
        // A link that has just come up may lose the system's first frames.
        for _ in 0..20 {
            a.run(|| UdpSocket::bind("10.1.0.1:7").unwrap().send_to(b"abcd", (to, 9)).unwrap()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            right
                .receive(|f, _| {
                    if f[12..14] == [8, 0] && f[23] == 17 {
                        udp.push(f.to_vec());
                    }
                })
                .unwrap();
            if !udp.is_empty() {
                break;
            }
        }
        assert!(!udp.is_empty(), "{io}: no UDP frame came");
        let mut again = udp[0].clone();
        assert!(checksum::finish(&mut again));
        assert_eq!(again, udp[0], "{io}");
        assert!(right.stats().checksums_finished >= 1, "{io}");
    });
}

#[test]
fn jumbo_frames_pass_or_are_refused_by_name() {
    each(|io, a, b| {
        for (ns, name) in [(a, "left"), (b, "right")] {
            ns.run(|| Links::open().unwrap().set_mtu(name, 9_000).unwrap()).unwrap();
        }
        let opened = a.run(|| PacketSocket::open("left", &Options { io, ..Options::default() })).unwrap();
        if io == Io::Xdp {
            let refused = opened.unwrap_err().to_string();
            assert!(refused.contains("MTU is 9000") && refused.contains("--io ring"), "{refused}");
            return;
        }
        let (mut left, mut right) = (opened.unwrap(), open(b, "right", io));
        let sent = frame(Some(0x2001), 0x88b5, 1, 9_018);
        left.send(&mut sent.clone());
        left.flush();
        assert!(collect(&mut right, 1).iter().map(|(frame, _)| frame).eq([&sent]), "{io}");
    });
}

/// Two programs share an interface: one takes an EtherType, tagged or not, the other one everything else.
#[test]
fn an_ether_type_goes_to_who_asked_for_it_and_to_nobody_else() {
    each(|io, a, b| {
        let only = Options { io, frames: Frames::Only(EtherType(0x88b6)), ..Options::default() };
        if io == Io::Xdp {
            let refused = b.run(|| PacketSocket::open("right", &only).map(drop)).unwrap().unwrap_err();
            assert!(refused.to_string().contains("takes all frames"), "{refused}");
            return;
        }
        let except = Options { frames: Frames::Except(EtherType(0x88b6)), ..only };
        let (mut one, mut rest) = (open_with(b, "right", only), open_with(b, "right", except));
        assert!(b.run(|| PacketSocket::open("right", &only).map(drop)).unwrap().is_err(), "it is taken");
        let mut sender = open(a, "left", io);
        let kinds = [(None, 0x88b6), (Some(0xe000), 0x88b6), (None, 0x88b5), (Some(0xa002), 0x88b5)];
        let frames = kinds.map(|(tag, ether_type)| frame(tag, ether_type, 7, 100));
        frames.iter().for_each(|frame| sender.send(&mut frame.clone()));
        sender.flush();
        let bytes = |socket: &mut PacketSocket| -> Vec<Vec<u8>> {
            collect(socket, 3).into_iter().map(|(frame, _)| frame).collect()
        };
        let untagged = [&frames[1][..12], &frames[1][16..]].concat();
        assert_eq!(bytes(&mut one), [frames[0].clone(), untagged]);
        assert_eq!(bytes(&mut rest), frames[2..]);
    });
}

/// A frame to `mac` with a UDP datagram from 10.9.9.1.
fn datagram(mac: MacAddr, to: Ipv4Addr, port: u16, flags: u16, options: u8) -> Vec<u8> {
    let mut ip = vec![0x45 + options, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 9, 1];
    ip[6..8].copy_from_slice(&flags.to_be_bytes());
    ip.extend(to.octets());
    // Padding of options.
    ip.resize(20 + usize::from(options) * 4, 1);
    let length = ip.len() as u16 + 12;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    let sum = ipv4::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&mac.0[..], &[2, 0, 0, 0, 0, 1, 8, 0], &ip].concat();
    frame.extend([0xc0, 0, (port >> 8) as u8, port as u8, 0, 12, 0, 0, 7, 7, 7, 7]);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Datagrams for one address and port reach the socket that chose them. The system keeps the rest, and does not answer
/// for that port.
#[test]
fn datagrams_go_to_who_asked_for_them_and_the_system_answers_none_of_these() {
    each(|io, a, b| {
        if io == Io::Xdp {
            return;
        }
        let ip = Ipv4Addr::new(10, 9, 9, 2);
        let mut links = Links::open_in(b).unwrap();
        links.add_address("right", ip, 24).unwrap();
        let mac = links.get("right").unwrap().mac;
        let options = Options {
            frames: Frames::Datagrams(SocketAddrV4::new(ip, 4791)),
            promiscuous: false,
            ..Options::default()
        };
        let (mut left, mut right) = (open(a, "left", io), open_with(b, "right", options));
        let taken = b.run(|| PacketSocket::open("right", &options).map(drop)).unwrap().unwrap_err();
        assert!(taken.to_string().contains("already receives these datagrams"), "{taken}");
        let first = datagram(mac, ip, 4791, 0, 0);
        let last = datagram(mac, ip, 4791, 0x4000, 0);
        let others = [
            datagram(mac, ip, 4790, 0, 0),
            datagram(mac, Ipv4Addr::new(10, 9, 9, 3), 4791, 0, 0),
            datagram(mac, ip, 4791, 0x2000, 0),
            datagram(mac, ip, 4791, 0, 1),
            frame(None, 0x88b5, 4, 60),
        ];
        for frame in [&first].into_iter().chain(&others).chain([&last]) {
            left.send(&mut frame.clone());
        }
        left.flush();
        let got: Vec<_> = collect(&mut right, 3).into_iter().map(|(frame, _)| frame).collect();
        assert_eq!(got, [first, last]);
        // One answer, which reports port 4790 unreachable: the datagram it is about begins behind two headers and eight
        // bytes.
        let answers: Vec<_> = collect(&mut left, 2).into_iter().map(|(frame, _)| frame).collect();
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer[23], &answer[14 + 20 + 8 + 22..][..2]), (1, &4790u16.to_be_bytes()[..]));
    });
}
