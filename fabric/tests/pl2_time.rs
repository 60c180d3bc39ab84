//! Times that no real clock shows: an endpoint has to cope with whatever its driver passes.

use p4rack_fabric::pl2::{Config, Endpoint, Mode, Peer};
use p4rack_fabric::{HostMachine, Machine};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::Kind;
use p4rack_wire::{EtherType, MacAddr, Nanos};

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Polls after which an endpoint that still has something to send has it without end.
const ENDLESS: usize = 1_000;

fn send_all(endpoint: &mut Endpoint, now: Nanos) -> Vec<Vec<u8>> {
    let (mut left, mut out) = (Vec::new(), Vec::new());
    while endpoint.poll_link(now, &mut out).is_some() {
        left.push(out.clone());
        assert!(left.len() < ENDLESS, "frames without end");
    }
    left
}

/// A grant that still counts as missing and slots that are still to be given back, when time ends.
#[test]
fn at_the_end_of_time_nothing_is_repeated_for_ever() {
    for granted in [false, true] {
        let mut config = Config::new(OWN, Mode::Counter, 1_000_000_000);
        config.peers = vec![Peer { mac: PEER, slot: config.slot, far: false }];
        let mut endpoint = Endpoint::new(config, 1, Nanos::ZERO);
        let mut frame = [0; 1_514];
        Ethernet { dst: PEER, src: OWN, ether_type: EtherType::IPV4 }.emit(&mut frame);
        endpoint.handle_app(&frame, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let asked = send_all(&mut endpoint, now);
        assert_eq!(asked.len(), 1, "an RSV");
        if granted {
            let mut grant = asked[0].clone();
            let (dst, src) = grant[..12].split_at_mut(6);
            dst.swap_with_slice(src);
            grant[18] = grant[18] & 0xf0 | Kind::Grt as u8;
            now = Nanos(10_000);
            endpoint.handle_link(&grant, now, now);
            endpoint.handle_timeout(now);
            assert_eq!(send_all(&mut endpoint, now).len(), 1, "its frame");
        }
        for _ in 0..3 {
            endpoint.handle_timeout(Nanos::MAX);
            send_all(&mut endpoint, Nanos::MAX);
        }
        assert!(endpoint.next_timeout().is_none_or(|due| due < Nanos::MAX));
    }
}
