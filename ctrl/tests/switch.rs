//! The control plane against the embedded switch, over gRPC on localhost.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::deploy::{Step, deploy};
use p4rack_ctrl::mgmt::{Manager, Operation, Register};
use p4rack_ctrl::telemetry::Telemetry;
use p4rack_ctrl::{CtrlError, Session, Target};
use p4rack_netdev::{clock, wait::Poller};
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::schema::Schema;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_switchd::core::{self, Event};
use p4rack_switchd::p4runtime::{ServerConfig, bind, serve_on};
use p4rack_wire::{EtherType, Nanos, pl2};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the data plane when dropped; the server follows.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A switch for the rack; every `lose`th packet-in is lost (0: none).
async fn start(rack: &Rack, lose: usize) -> (Running, Target) {
    let (handle, mut jobs, events, from_plane) = core::channel().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let config = Config {
        ports: rack.hosts.iter().map(|host| PortConfig::new(host.port, host.rate_bps)).collect(),
        cpu_port: Some(rack.switch.cpu_port),
        ..Config::default()
    };
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let (mut switch, mut poller, mut frame) = (Switch::new(config), Poller::new(), Vec::new());
        poller.add(&jobs).unwrap();
        let mut count = 0;
        while !stopped.load(Ordering::Relaxed) {
            poller.wait(Some(clock::now() + Nanos::from_millis(1))).unwrap();
            jobs.run_pending(&mut switch, clock::now());
            while switch.poll_transmit(clock::now(), &mut frame).is_some() {}
            while switch.poll_cpu(&mut frame) {
                count += 1;
                if lose == 0 || count % lose != 0 {
                    events.send(Event::PacketIn { frame: frame.clone() });
                }
            }
        }
    });
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let device_id = rack.switch.device_id;
    let server = ServerConfig { addr, device_id, cpu_port: Some(rack.switch.cpu_port), program: None };
    let gone = handle.clone();
    tokio::spawn(serve_on(listener, handle, from_plane, server, async move { gone.gone().await }));
    let target = Target { addr: addr.to_string(), device_id, election_id: 1, role: String::new() };
    (Running(stop), target)
}

fn rack() -> Rack {
    Rack::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pl2-incast.toml")).unwrap()
}

fn registers(rack: &Rack) -> Vec<Register> {
    let both = [pl2::Target::In, pl2::Target::Out];
    let of = |port| both.map(|target| Register { target, port });
    rack.hosts.iter().flat_map(|host| of(host.port)).collect()
}

#[tokio::test]
async fn every_scheme_is_deployed_and_verified() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    for scheme in Scheme::ALL {
        let mut steps = Vec::new();
        deploy(&rack, scheme, target.clone(), |step| steps.push(step)).await.unwrap();
        assert_eq!(steps.len(), 5, "{steps:?}");
        let Step::Verified { updates } = steps[4] else { panic!("{steps:?}") };
        assert!(updates > 2 * rack.hosts.len(), "an entry in two tables a host, and the group: {updates}");
    }
}

#[tokio::test]
async fn reservations_are_read_written_and_reset() {
    for scheme in [Scheme::Pl2Counter, Scheme::Pl2Clock] {
        let rack = rack();
        let (_running, target) = start(&rack, 0).await;
        deploy(&rack, scheme, target.clone(), |_| {}).await.unwrap();
        let mut session = Session::connect(target).await.unwrap();
        let ether_type = rack.pl2.as_ref().unwrap().ether_type;
        let mut manager = Manager::new(&mut session, ether_type).await.unwrap();
        assert!(rack.hosts.iter().all(|host| host.port < manager.ports()));
        let registers = registers(&rack);
        let zeros = vec![0; registers.len()];
        assert_eq!(manager.exchange(Operation::Read, &registers).await.unwrap(), zeros);
        const VALUE: u32 = 900_000_000;
        let before = manager.exchange(Operation::Write(VALUE), &registers[..1]).await.unwrap();
        assert_eq!(before, [0]);
        let read = manager.exchange(Operation::Read, &registers).await.unwrap();
        assert_eq!(read[1..], zeros[1..], "the others are as they were");
        match scheme {
            Scheme::Pl2Counter => assert_eq!(read[0], VALUE),
            // Time has passed since.
            _ => assert!(read[0] <= VALUE && read[0] > VALUE / 2, "{}", read[0]),
        }
        let before = manager.exchange(Operation::Reset, &registers).await.unwrap();
        assert!(before[0] > 0);
        assert_eq!(manager.exchange(Operation::Read, &registers).await.unwrap(), zeros);
    }
}

#[tokio::test]
async fn lost_management_frames_are_sent_again() {
    let rack = rack();
    let (_running, target) = start(&rack, 3).await;
    deploy(&rack, Scheme::Pl2Counter, target.clone(), |_| {}).await.unwrap();
    let mut session = Session::connect(target).await.unwrap();
    let mut manager = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap();
    manager.exchange(Operation::Write(5), &registers(&rack)).await.unwrap();
    let read = manager.exchange(Operation::Read, &registers(&rack)).await.unwrap();
    assert_eq!(read, vec![5; registers(&rack).len()]);
}

#[tokio::test]
async fn a_switch_without_pl2_says_so() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let mut session = Session::connect(target.clone()).await.unwrap();
    let none = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap_err().to_string();
    assert!(none.contains("runs no program"), "{none}");
    drop(session);
    // The switch notices the end of the session a moment later.
    let target = Target { election_id: 2, ..target };
    deploy(&rack, Scheme::L2, target.clone(), |_| {}).await.unwrap();
    let mut session = Session::connect(Target { election_id: 3, ..target }).await.unwrap();
    let other = Manager::new(&mut session, EtherType::PL2_DEFAULT).await.unwrap_err().to_string();
    assert!(other.contains("not one of PL2"), "{other}");
}

#[tokio::test]
async fn refused_entries_are_named() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    deploy(&rack, Scheme::L2, target.clone(), |_| {}).await.unwrap();
    let mut session = Session::connect(Target { election_id: 2, ..target }).await.unwrap();
    let info = session.pipeline().await.unwrap().unwrap().p4info.unwrap();
    let schema = Schema::new(info).unwrap();
    let forward = |mac: [u8; 6]| {
        let entry = Entry::of("RackIngress.l2_forward").exact("hdr.ethernet.dstAddr", mac);
        entry.action("RackIngress.forward").param("port", 1).update(&schema).unwrap()
    };
    let updates = [forward([2, 9, 9, 9, 9, 9]), forward(rack.hosts[0].mac.0)];
    let error = session.write(&schema, &updates).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("entry 2 of 2: table RackIngress.l2_forward key hdr.ethernet.dstAddr=0x02")
            && text.contains("ALREADY_EXISTS"),
        "{text}"
    );
}

#[tokio::test]
async fn another_primary_and_a_missing_switch_are_told_apart() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let _first = Session::connect(Target { election_id: 5, ..target.clone() }).await.unwrap();
    let second = Session::connect(target.clone()).await.unwrap_err();
    assert!(matches!(&second, CtrlError::NotPrimary { highest, .. } if highest == "0,5"), "{second}");
    let nobody = Target { addr: "127.0.0.1:1".into(), ..target };
    let error = Session::connect(nobody).await.unwrap_err().to_string();
    assert!(error.starts_with("no P4Runtime server answers at 127.0.0.1:1: Connection refused"), "{error}");
}

#[tokio::test]
async fn statistics_name_the_ports() {
    let rack = rack();
    let (_running, target) = start(&rack, 0).await;
    let mut telemetry = Telemetry::connect(&target.addr).await.unwrap();
    let stats = telemetry.stats(false).await.unwrap();
    let ports: Vec<u32> = stats.ports.iter().map(|port| port.port).collect();
    assert!(rack.hosts.iter().all(|host| ports.contains(&u32::from(host.port))), "{ports:?}");
    assert_eq!(stats.ports[0].rate_bps, rack.hosts[0].rate_bps);
}
