//! Machines that break protocols' rules, but not those of drivers.

use super::driver::{Rig, Step, check};
use p4rack_fabric::Machine;
use p4rack_fabric::hostile::{self, cowbird, edm};
use p4rack_fabric::roce::{self, Connection};
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::net::Ipv4Addr;

const RATE_BPS: u64 = 1_000_000_000;

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

/// A hostile machine, whose frames come back to it.
struct Attacks<M>(M);

impl<M: for<'a> Machine<Received<'a> = &'a [u8], Sent = (), Buffer = Vec<u8>>> Rig for Attacks<M> {
    type Machine = M;
    type Mail = Vec<u8>;
    const NAME: &'static str = "hostile machine";
    const RESTS: bool = false;

    fn machine(&mut self) -> &mut M {
        &mut self.0
    }

    fn ask(&mut self, _what: u8, _now: Nanos) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn answer(&mut self, (): (), out: &Vec<u8>, _now: Nanos) -> Vec<Vec<u8>> {
        vec![out.clone()]
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.0.handle_link(&mail, now, now);
    }

    fn collect(&mut self, _now: Nanos) {}
}

/// Holds a machine to its promises for a few milliseconds.
fn hold<M>(name: &str, machine: impl Fn() -> M)
where
    M: for<'a> Machine<Received<'a> = &'a [u8], Sent = (), Buffer = Vec<u8>>,
{
    let held = check(|| Attacks(machine()), &[Step::Ask(0), Step::Wait(300_000), Step::Wait(2_000_000)]);
    assert_eq!(held, Ok(()), "{name}");
}

#[test]
fn attacks_on_pl2() {
    for attack in hostile::Attack::ALL {
        let config = hostile::Config {
            attack,
            mac: mac(9),
            victim: mac(1),
            others: (1..=5).map(mac).collect(),
            ether_type: EtherType::PL2_DEFAULT,
            vid: 5,
            cells: 2,
            k: 4,
            shim: true,
            rate_bps: RATE_BPS,
            wait_unit: Nanos(1),
            frame_max: 1_514,
            catch_up: Nanos::ZERO,
        };
        hold(attack.name(), || hostile::Hostile::new(config.clone(), 1, Nanos::ZERO));
    }
}

#[test]
fn attacks_on_edm() {
    for (attack, session) in
        edm::Attack::ALL.into_iter().flat_map(|attack| [(attack, None), (attack, Some(1))])
    {
        let config = edm::Config {
            attack,
            mac: mac(3),
            victim: mac(1),
            others: vec![mac(1), mac(2)],
            ether_type: EtherType::EDM_DEFAULT,
            lanes: 4,
            demands: 3,
            chunk_bytes: 1_024,
            window: 4,
            key: 1,
            write_key: 5,
            address: 0,
            session,
            wait_unit: Nanos(1),
            patience: Nanos::from_micros(50),
            rate_bps: RATE_BPS,
            catch_up: Nanos::ZERO,
        };
        hold(attack.name(), || edm::Machine::new(config.clone(), 1, Nanos::ZERO));
    }
}

#[test]
fn attacks_on_pools_and_engines() {
    let connection = |qpn| {
        let ip = |host| Ipv4Addr::new(10, 0, 0, host);
        let (src_mac, dst_mac, src_ip, dst_ip) = (mac(3), mac(1), ip(3), ip(1));
        let path = Path { src_mac, dst_mac, src_ip, dst_ip, src_port: 50_000, dscp: 0 };
        Connection { path, peer_qpn: qpn, send_psn: 7, receive_psn: 7, domain: 0 }
    };
    for (attack, pairs) in cowbird::Attack::ALL.into_iter().flat_map(|attack| [(attack, 0), (attack, 4)]) {
        let config = cowbird::Config {
            attack,
            mac: mac(3),
            adapter: roce::Config::default(),
            pool: (60..60 + pairs).map(|qpn| (qpn, connection(qpn))).collect(),
            key: 1,
            address: 4_096,
            bytes: 65_536,
            engine: vec![(50, connection(50))],
            rings: cowbird::Rings::default(),
            others: Vec::new(),
            rate_bps: RATE_BPS,
            catch_up: Nanos::ZERO,
        };
        hold(attack.name(), || cowbird::Machine::new(config.clone(), 1, Nanos::ZERO).unwrap());
    }
}
