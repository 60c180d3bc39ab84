//! Real interfaces in namespaces that vanish with the test.

#![allow(clippy::unwrap_used)]

use p4rack_netdev::link::{self, VethEnd};
use p4rack_netdev::netns::{self, NetNs};
use p4rack_netdev::packet::Options;
use p4rack_netdev::{Links, PacketSocket, Poller, Tap, clock, ethtool};
use p4rack_wire::{MacAddr, Nanos};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two namespaces joined by a veth pair `left` – `right`, plain pipes; `None` (and a line that says so)
/// where namespaces are not to be had.
fn pair() -> Option<(NetNs, NetNs)> {
    let (Ok(a), Ok(b)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides a passing test's output.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return None;
    };
    Links::add_veth(
        VethEnd { name: "left", ns: &a, mac: Some(MacAddr([2, 0, 0, 0, 0, 1])) },
        VethEnd { name: "right", ns: &b, mac: None },
    )
    .unwrap();
    for (ns, name) in [(&a, "left"), (&b, "right")] {
        let stayed = ns.run(|| Links::open().unwrap().make_pipe(name, 1530).unwrap()).unwrap();
        assert!(stayed.is_empty(), "{name}: {stayed:?} stayed on");
    }
    Some((a, b))
}

fn open(ns: &NetNs, name: &str) -> PacketSocket {
    ns.run(|| PacketSocket::open(name, &Options::default())).unwrap().unwrap()
}

#[test]
fn an_interface_can_be_taken_once() {
    let Some((a, _b)) = pair() else { return };
    let first = open(&a, "left");
    let second = a.run(|| PacketSocket::open("left", &Options::default())).unwrap().unwrap_err();
    assert!(second.to_string().contains("another p4rack"), "{second}");
    drop(first);
    // A process that another test starts has the first socket, too, until it becomes another program.
    let again = (0..100).find_map(|_| {
        let again = a.run(|| PacketSocket::open("left", &Options::default())).unwrap();
        again.inspect_err(|_| std::thread::sleep(Duration::from_millis(20))).ok()
    });
    assert!(again.is_some(), "it can be taken again");
    let unknown = a.run(|| PacketSocket::open("nothere", &Options::default())).unwrap().unwrap_err();
    assert!(unknown.to_string().contains("`nothere`"), "{unknown}");
}

#[test]
fn offloads_are_off_even_when_they_were_on() {
    let Some((a, b)) = pair() else { return };
    // A second pair, untouched: a veth starts with offloads on, so the check can fail.
    Links::add_veth(VethEnd { name: "l2", ns: &a, mac: None }, VethEnd { name: "r2", ns: &b, mac: None })
        .unwrap();
    a.run(|| {
        assert!(!ethtool::offloads_on("l2").unwrap().is_empty());
        assert!(ethtool::offloads_off("l2").unwrap().is_empty());
        assert!(ethtool::offloads_on("l2").unwrap().is_empty());
        assert!(ethtool::offloads_off("nothere").is_err());
    })
    .unwrap();
}

#[test]
fn an_interface_that_the_system_uses_is_not_taken() {
    let Some((a, _b)) = pair() else { return };
    a.run(|| {
        let mut links = Links::open().unwrap();
        assert_eq!(link::ipv4_of("left"), None);
        links.add_address("left", Ipv4Addr::new(10, 3, 2, 1), 24).unwrap();
        assert_eq!(link::ipv4_of("left"), Some(Ipv4Addr::new(10, 3, 2, 1)));
        // A second one, of another network.
        links.add_address("left", Ipv4Addr::new(10, 4, 2, 1), 24).unwrap();
        let both = [[10, 3, 2, 1], [10, 4, 2, 1]].map(|ip| ("left".to_owned(), Ipv4Addr::from(ip)));
        let mut all = links.addresses().unwrap();
        all.retain(|(name, _)| name != "lo");
        assert_eq!(all, both);
        let refused = links.make_pipe("left", 1530).unwrap_err().to_string();
        assert!(refused.contains("10.3.2.1") && refused.contains("address flush"), "{refused}");
    })
    .unwrap();
}

#[test]
fn tap_carries_the_systems_frames_both_ways() {
    let Some((a, _b)) = pair() else { return };
    let mac = MacAddr([2, 0, 0, 0, 0, 7]);
    let (ip, other) = (Ipv4Addr::new(10, 2, 0, 1), Ipv4Addr::new(10, 2, 0, 2));
    a.run(|| {
        let tap = Tap::create("app0").unwrap();
        assert!(Tap::create("app0").unwrap_err().to_string().contains("--tap"));
        let mut links = Links::open().unwrap();
        link::set_sysctl("ipv6/conf/app0/disable_ipv6", "1").ok();
        links.set_mac("app0", mac).unwrap();
        links.set_up("app0").unwrap();
        links.add_address("app0", ip, 24).unwrap();
        links.add_neighbour("app0", other, MacAddr([2, 0, 0, 0, 0, 8])).unwrap();
        let info = links.get("app0").unwrap();
        assert_eq!((info.mac, info.mtu, info.up), (mac, 1500, true));

        let socket = UdpSocket::bind((ip, 7)).unwrap();
        socket.send_to(b"there", (other, 7)).unwrap();
        let mut buffer = [0; 2048];
        let mut poller = Poller::new();
        poller.add(&tap).unwrap();
        poller.wait(Some(clock::now() + Nanos::from_secs(1))).unwrap();
        let length = tap.receive(&mut buffer).unwrap().unwrap();
        let frame = &mut buffer[..length];
        assert_eq!(&frame[..12], &[2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 7]);
        assert!(frame.ends_with(b"there"));
        assert!(tap.receive(&mut [0; 64]).unwrap().is_none());

        // Back: the same datagram with both addresses exchanged (checksums do not change).
        let (to, from) = frame[..12].split_at_mut(6);
        to.swap_with_slice(from);
        let (from, to) = frame[26..34].split_at_mut(4);
        from.swap_with_slice(to);
        tap.send(frame).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut answer = [0; 16];
        assert_eq!(socket.recv(&mut answer).unwrap(), 5);
        drop((tap, poller));
        assert!(!links.exists("app0"), "the interface outlived its TAP");
    })
    .unwrap();
}

#[test]
fn congestion_control_says_what_is_in_force() {
    let Some((a, _b)) = pair() else { return };
    a.run(|| {
        let available = link::sysctl("ipv4/tcp_available_congestion_control").unwrap();
        let first = available.split(' ').next().unwrap();
        assert_eq!(link::set_congestion_control(first).unwrap(), first);
        assert_eq!(link::set_congestion_control("nonsense").unwrap(), first);
    })
    .unwrap();
}

#[test]
fn a_process_enters_a_namespace_and_another_finds_it_there() {
    let Some((a, b)) = pair() else { return };
    let mut command = Command::new("sleep");
    command.arg("20").stdin(Stdio::null());
    a.command(&mut command, true).unwrap();
    let mut child = command.spawn().unwrap();
    let found = NetNs::of_process(child.id()).unwrap();
    assert!(found.run(|| Links::open().unwrap().exists("left")).unwrap());
    assert!(!found.run(|| Links::open().unwrap().exists("right")).unwrap());

    // The namespace ends with its last process and descriptor, and both veth ends with it.
    drop((a, found, command));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut links = Links::open_in(&b).unwrap();
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !links.exists("right")
    });
    assert!(gone, "the namespace outlived its processes");
}

#[test]
fn a_namespace_of_another_user_namespace_is_entered_too() {
    let Some(_) = pair() else { return };
    let unshared = Command::new("unshare").args(["-rn", "sleep", "20"]).spawn();
    let Ok(mut holder) = unshared else {
        let _ = writeln!(std::io::stderr(), "skipped: needs `unshare`, get it by `apt install util-linux`");
        return;
    };
    let own = std::fs::read_link("/proc/self/ns/user").unwrap();
    let of = |kind: &str| std::fs::read_link(format!("/proc/{}/ns/{kind}", holder.id())).unwrap();
    let moved = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        of("user") != own && of("net") != std::fs::read_link("/proc/self/ns/net").unwrap()
    });
    let mut command = Command::new("readlink");
    command.args(["/proc/self/ns/net", "/proc/self/ns/user"]);
    NetNs::of_process(holder.id()).unwrap().command(&mut command, false).unwrap();
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let expected = format!("{}\n{}\n", of("net").display(), of("user").display());
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(moved, "unshare did not move");
    assert_eq!(said, expected);
}

#[test]
fn a_child_ends_with_the_thread_that_started_it() {
    let Some((a, _b)) = pair() else { return };
    let mut child = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let mut command = Command::new("sleep");
                command.arg("20");
                a.command(&mut command, true).unwrap();
                command.spawn().unwrap()
            })
            .join()
            .unwrap()
    });
    let ended = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        child.try_wait().unwrap().is_some()
    });
    if !ended {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(ended, "the child outlived its parent");
}

#[test]
fn rights_are_there_or_the_error_says_what_to_do() {
    // The test harness has threads, so an ordinary user cannot move to a user namespace here.
    match netns::acquire() {
        Ok(privilege) => assert_eq!(privilege, netns::Privilege::Granted),
        Err(error) => assert!(error.to_string().contains("as root"), "{error}"),
    }
}
