//! When bursts go out together with their reservations (§4.4).

use p4rack_fabric::pl2::{Config, Endpoint, Mode, Peer};
use p4rack_fabric::{HostMachine, Machine};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::Kind;
use p4rack_wire::{EtherType, MacAddr, Nanos};

/// 1 bit a nanosecond: a full frame takes some 12 µs.
const RATE: u64 = 1_000_000_000;
const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const NEAR: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const FAR: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
/// Where a tagged frame says whether it goes unsolicited.
const DEI: u8 = 0x10;

struct Host {
    endpoint: Endpoint,
    now: Nanos,
}

impl Host {
    fn new(paced: bool) -> Host {
        Host::with(paced, false)
    }

    /// With a peer in another pipe of the switch, if `far`.
    fn with(paced: bool, far: bool) -> Host {
        let mut config = Config::new(OWN, Mode::Clock, RATE);
        let peer = |mac| Peer { mac, slot: config.slot, far: far && mac == FAR };
        config.peers = [NEAR, FAR].map(peer).to_vec();
        config.pace_unsolicited = paced;
        config.fresh = Some(Nanos::from_millis(1));
        Host { endpoint: Endpoint::new(config, 1, Nanos::ZERO), now: Nanos::ZERO }
    }

    fn give(&mut self, to: MacAddr, frames: usize) {
        let mut frame = [0; 1_514];
        Ethernet { dst: to, src: OWN, ether_type: EtherType::IPV4 }.emit(&mut frame);
        (0..frames).for_each(|_| self.endpoint.handle_app(&frame, self.now));
    }

    /// All that leaves within `span`: destination, and whether it is data that goes unsolicited.
    fn leaves(&mut self, span: Nanos) -> Vec<(MacAddr, bool, Vec<u8>)> {
        let (until, mut left) = (self.now + span, Vec::new());
        loop {
            let mut out = Vec::new();
            while self.endpoint.poll_link(self.now, &mut out).is_some() {
                let to = Ethernet::parse(&out).map_or(MacAddr::BROADCAST, |ethernet| ethernet.dst);
                left.push((to, out.len() > 1_000 && out[14] & DEI != 0, out.clone()));
            }
            match self.endpoint.next_timeout().filter(|due| *due <= until) {
                Some(due) => self.now = self.now.max(due),
                None => break,
            }
            self.endpoint.handle_timeout(self.now);
        }
        self.now = until;
        left
    }

    /// The switch's answer to an RSV: send immediately.
    fn granted(&mut self, rsv: &[u8]) {
        let mut grant = rsv.to_vec();
        let (dst, src) = grant[..12].split_at_mut(6);
        dst.swap_with_slice(src);
        grant[18] = grant[18] & 0xf0 | Kind::Grt as u8;
        self.endpoint.handle_link(&grant, self.now, self.now);
    }

    /// Sends a frame to a peer in a reserved slot, so that the peer is known to be free.
    fn learn(&mut self, peer: MacAddr) {
        self.give(peer, 1);
        let asked = self.leaves(Nanos(1_000));
        assert_eq!(asked.len(), 1, "an RSV");
        self.granted(&asked[0].2);
        assert_eq!(self.leaves(Nanos::from_micros(50)).len(), 1, "its frame");
    }
}

fn unsolicited(left: &[(MacAddr, bool, Vec<u8>)], to: MacAddr) -> usize {
    left.iter().filter(|(dst, unsolicited, _)| *dst == to && *unsolicited).count()
}

#[test]
fn a_free_peer_gets_its_frames_with_the_reservation() {
    let mut host = Host::new(true);
    host.learn(FAR);
    host.give(FAR, 3);
    assert_eq!(unsolicited(&host.leaves(Nanos::from_micros(50)), FAR), 3);
}

/// Behind other frames in the NIC nothing is gained by not waiting for the grant, and they might delay bursts whose time it is.
#[test]
fn what_would_wait_in_the_nic_waits_for_its_grant() {
    for (paced, expected) in [(true, 0), (false, 3)] {
        let mut host = Host::new(paced);
        host.learn(FAR);
        host.give(NEAR, 4);
        let asked = host.leaves(Nanos(1_000));
        host.granted(&asked[0].2);
        // The first of four is on the wire.
        host.leaves(Nanos(1_000));
        host.give(FAR, 3);
        let left = host.leaves(Nanos::from_micros(100));
        // The three frames from before, the RSV, and the frames sent with it.
        assert_eq!((left.len(), unsolicited(&left, FAR)), (4 + expected, expected), "paced: {paced}");
    }
}

/// The switch would know too late whether such a burst may pass.
#[test]
fn a_peer_in_another_pipe_gets_its_frames_in_slots() {
    for (far, expected) in [(false, 3), (true, 0)] {
        let mut host = Host::with(true, far);
        host.learn(FAR);
        host.give(FAR, 3);
        assert_eq!(unsolicited(&host.leaves(Nanos::from_micros(50)), FAR), expected, "far: {far}");
    }
}

/// Its waits alone would say that the burst has arrived.
#[test]
fn a_burst_whose_grant_kept_slots_is_sent_in_these() {
    let mut host = Host::new(true);
    host.learn(FAR);
    host.give(FAR, 3);
    let mut left = host.leaves(Nanos::from_micros(50));
    assert_eq!(unsolicited(&left, FAR), 3);
    let rsv = &mut left[0].2;
    rsv[21] &= 0x7f;
    host.granted(rsv);
    let again = host.leaves(Nanos::from_micros(50));
    assert_eq!((again.len(), unsolicited(&again, FAR)), (3, 0));
}

/// The way of a grant is part of its wait: of each kind of peer the shortest that was seen.
#[test]
fn grants_of_another_pipe_have_a_delay_of_their_own() {
    const WAIT: u32 = 20_000;
    let mut host = Host::with(true, true);
    for (peer, delay) in [(NEAR, 1_000), (FAR, 3_000)] {
        host.give(peer, 1);
        let mut asked = host.leaves(Nanos(delay));
        assert_eq!(asked.len(), 1, "an RSV");
        let rsv = &mut asked[0].2;
        rsv[30..34].copy_from_slice(&WAIT.to_be_bytes());
        host.granted(rsv);
        // It is to be at the switch as long after its RSV as the grant says.
        assert_eq!(host.leaves(Nanos(u64::from(WAIT) - delay - 1)), [], "delay {delay}");
        assert_eq!(host.leaves(Nanos(1_000)).len(), 1, "delay {delay}");
        host.leaves(Nanos::from_micros(50));
    }
}
