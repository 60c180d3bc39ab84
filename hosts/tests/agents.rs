//! Two agents, back to back, with real applications' sockets on their TAPs.

#![allow(clippy::unwrap_used)]

use p4rack_fabric::{Config, ethernet, pl2};
use p4rack_hosts::{Agent, AgentConfig, AgentError};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::signal::Signals;
use p4rack_netdev::{Links, NetNs, PacketSocket, packet};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{Control, Kind, PCP_CONTROL, VERSION};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn config(host: u8, other: u8, stats_file: Option<PathBuf>) -> AgentConfig {
    AgentConfig {
        name: format!("h{host}"),
        interfaces: vec!["eth0".to_owned()],
        sequence_ether_type: EtherType::PL2_DEFAULT,
        tap: "app0".to_owned(),
        address: (ip(host), 24),
        neighbours: vec![(ip(other), mac(other))],
        endpoint: Config::Ethernet(ethernet::Config::new(mac(host), 100_000_000)),
        spoken_beside: None,
        seed: u64::from(host),
        stats_file,
        metrics_addr: None,
        silent: None,
    }
}

#[test]
fn applications_talk_through_two_agents_and_the_figures_are_written() {
    let (Ok(a), Ok(b)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    Links::add_veth(VethEnd { name: "eth0", ns: &a, mac: None }, VethEnd { name: "eth0", ns: &b, mac: None })
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("h1.json");
    let start =
        |ns: &NetNs, config| ns.run(|| Agent::start(config, Signals::take().unwrap())).unwrap().unwrap();
    let first = start(&a, config(1, 2, Some(stats.clone())));
    let second = start(&b, config(2, 1, None));

    std::thread::scope(|scope| {
        let agents = [scope.spawn(|| first.run()), scope.spawn(|| second.run())];
        let echo = b.run(|| UdpSocket::bind((ip(2), 7)).unwrap()).unwrap();
        let client = a.run(|| UdpSocket::bind((ip(1), 7)).unwrap()).unwrap();
        for socket in [&echo, &client] {
            socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        }
        let mut buffer = [0; 2000];
        for length in [1, 100, 1472] {
            client.send_to(&vec![7; length], (ip(2), 7)).unwrap();
            let (got, from) = echo.recv_from(&mut buffer).unwrap();
            echo.send_to(&buffer[..got], from).unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), length);
        }

        // TCP, over more than the link's queues hold.
        let listener = b.run(|| TcpListener::bind((ip(2), 9)).unwrap()).unwrap();
        let sender = scope.spawn(|| {
            let mut stream = a.run(|| TcpStream::connect((ip(2), 9)).unwrap()).unwrap();
            stream.write_all(&vec![5; 1 << 20]).unwrap();
        });
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 1 << 20);
        sender.join().unwrap();

        Links::open_in(&a).unwrap().delete("eth0").unwrap();
        for agent in agents {
            let ended = agent.join().unwrap();
            assert!(matches!(&ended, Err(AgentError::LinkGone(name)) if name == "eth0"), "{ended:?}");
        }
    });

    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert_eq!((&report["host"], &report["scheme"]), (&"h1".into(), &"l2".into()));
    let counters = &report["endpoint"]["counters"];
    // 3 datagrams and at least 700 segments.
    assert!(counters["app_in"].as_u64().unwrap() > 700, "{report:#}");
    // Frames after the link's end were refused.
    let socket = &report["link"]["socket"];
    let given = ["sent", "send_full", "send_refused"].map(|name| socket[name].as_u64().unwrap());
    assert_eq!(counters["link_out"].as_u64().unwrap(), given.iter().sum::<u64>());
    assert_eq!(report["tap"]["refused"], 0);
    assert_eq!(report["link"]["socket"]["kernel_drops"], 0);
    assert!(!folder.path().join("h1.json.tmp").exists());
}

/// Of two links one may vanish: the agent goes on over the other one, and ends with the last.
#[test]
fn an_agent_outlives_one_of_its_links() {
    let (Ok(a), Ok(b)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    for name in ["eth0", "eth1"] {
        Links::add_veth(VethEnd { name, ns: &a, mac: None }, VethEnd { name, ns: &b, mac: None }).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("h1.json");
    let start = |ns: &NetNs, config: AgentConfig| {
        let interfaces = vec!["eth0".to_owned(), "eth1".to_owned()];
        let config = AgentConfig { interfaces, ..config };
        ns.run(|| Agent::start(config, Signals::take().unwrap())).unwrap().unwrap()
    };
    let first = start(&a, config(1, 2, Some(stats.clone())));
    let second = start(&b, config(2, 1, None));
    std::thread::scope(|scope| {
        let agents = [scope.spawn(|| first.run()), scope.spawn(|| second.run())];
        let [here, there] = [(&a, 1), (&b, 2)].map(|(ns, host)| {
            let socket = ns.run(|| UdpSocket::bind((ip(host), 7)).unwrap()).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket
        });
        let mut links = Links::open_in(&a).unwrap();
        for gone in ["eth1", "eth0"] {
            for n in 0..200u8 {
                here.send_to(&[n], (ip(2), 7)).unwrap();
                let mut buffer = [0; 10];
                assert_eq!(there.recv(&mut buffer).unwrap(), 1, "{n}");
                assert_eq!(buffer[0], n, "before {gone} goes: each comes once");
            }
            links.delete(gone).unwrap();
        }
        for agent in agents {
            let ended = agent.join().unwrap();
            assert!(matches!(&ended, Err(AgentError::LinkGone(name)) if name == "eth0"), "{ended:?}");
        }
    });
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
    assert_eq!(report["links_gone"], 2, "{report:#}");
    let copies = &report["copies"];
    assert_eq!(copies["numbered"], 400, "{copies}");
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let Ok(ns) = NetNs::create() else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    let refused = |config: AgentConfig| {
        ns.run(|| Agent::start(config, Signals::take().unwrap())).unwrap().unwrap_err().to_string()
    };
    assert!(refused(config(1, 2, None)).contains("`eth0`"));
    let mut bad = config(1, 2, None);
    let endpoint = pl2::Config::new(mac(1), pl2::Mode::Clock, 100_000_000);
    bad.endpoint = Config::Pl2(pl2::Config { vid: 5000, ..endpoint });
    assert!(refused(bad).contains("vid"));
}

/// A copied grant announces four frames that never come.
#[test]
fn a_sender_that_falls_silent_is_told() {
    let (Ok(a), Ok(b)) = (NetNs::create(), NetNs::create()) else {
        // Past the harness, which hides what a passing test prints.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
        return;
    };
    Links::add_veth(VethEnd { name: "eth0", ns: &a, mac: None }, VethEnd { name: "eth0", ns: &b, mac: None })
        .unwrap();
    let (told, silent) = std::sync::mpsc::channel();
    let mut config = config(1, 2, None);
    let endpoint = pl2::Config::new(mac(1), pl2::Mode::Clock, 100_000_000);
    config.endpoint = Config::Pl2(pl2::Config {
        peers: vec![pl2::Peer { mac: mac(2), slot: endpoint.slot, far: false }],
        notify_patience: Some(Nanos::from_millis(5)),
        ..endpoint
    });
    config.silent = Some(told);
    let agent = a.run(|| Agent::start(config, Signals::take().unwrap())).unwrap().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| agent.run());
        let socket = b.run(|| {
            Links::open().unwrap().set_up("eth0").unwrap();
            PacketSocket::open("eth0", &packet::Options::default()).unwrap()
        });
        let mut socket = socket.unwrap();
        let mut copy = vec![0; 60];
        Ethernet { dst: mac(1), src: mac(2), ether_type: EtherType::VLAN }.emit(&mut copy);
        let vlan = Vlan { pcp: PCP_CONTROL, dei: false, vid: 2, ether_type: EtherType::PL2_DEFAULT };
        vlan.emit(&mut copy[Ethernet::BYTES..]);
        let control = Control {
            version: VERSION,
            kind: Kind::Notify as u8,
            demand: 4,
            cell: 0,
            unsolicited: 0,
            reserved: 0,
            id: 1,
            send_wait: 0,
            recv_wait: 0,
        };
        control.emit(&mut copy[Ethernet::BYTES + Vlan::BYTES..]);
        socket.send(&mut copy);
        socket.flush();
        assert_eq!(silent.recv_timeout(Duration::from_secs(5)), Ok(mac(2)));
        Links::open_in(&a).unwrap().delete("eth0").unwrap();
        assert!(matches!(running.join().unwrap(), Err(AgentError::LinkGone(_))));
    });
}
