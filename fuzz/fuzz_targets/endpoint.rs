//! A host's machine of any scheme under any sequence of frames, timestamps and polls, true and forged grants among
//! them: no panic, bounded queues, and no wake-up time that is requested for ever.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::common::Station;
use p4rack_fabric::pl2::{self, Mode, Peer};
use p4rack_fabric::{Config, Endpoint, HostMachine, Machine, ethernet};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::{Control, Kind};
use p4rack_wire::{EtherType, MacAddr, Nanos};

#[derive(Arbitrary, Debug)]
struct Input {
    scheme: u8,
    k: u8,
    piece: Option<u8>,
    by_flow: bool,
    pace_unsolicited: bool,
    slot_parts: u8,
    t_slots: u8,
    in_flight: u8,
    lanes: u8,
    shim: bool,
    rate_bps: u32,
    fresh: Option<u32>,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// An application's frame to a peer (or to an unknown host).
    App {
        to: u8,
        payload: u16,
    },
    /// Any bytes from the application or the link.
    RawApp(Vec<u8>),
    RawLink(Vec<u8>, u64),
    /// Bytes behind a PL2 tag that is addressed to us.
    Tagged {
        from: u8,
        vid: u8,
        ether_type: bool,
        bytes: Vec<u8>,
    },
    /// An application's frame of a flow that the driver distinguishes.
    Flow {
        to: u8,
        number: u32,
    },
    /// The switch answers the `nth` RSV it has seen.
    Grant {
        nth: u8,
        send_wait: u32,
        recv_wait: u32,
        received_back: u32,
    },
    /// Time advances, or jumps.
    Wait(u32),
    Jump(u64),
    Poll(u8),
}

fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

fuzz_target!(|input: Input| {
    let rate_bps = u64::from(input.rate_bps);
    let station = Station {
        queue_limit_frames: 16,
        total_limit_frames: 24,
        best_effort_limit_frames: 8,
        app_limit_frames: 8,
        ..Station::new(mac(1), rate_bps)
    };
    let pl2 = |mode| pl2::Config {
        station: station.clone(),
        k: input.k,
        piece: input.piece,
        by_flow: input.by_flow,
        pace_unsolicited: input.pace_unsolicited,
        slot_parts: input.slot_parts,
        t_slots: u32::from(input.t_slots),
        in_flight: usize::from(input.in_flight),
        lanes: input.lanes,
        shim: input.shim,
        fresh: input.fresh.map(|ns| Nanos(u64::from(ns))),
        peers: (2..5).map(|host| Peer { mac: mac(host), slot: Nanos(12_000), far: false }).collect(),
        ..pl2::Config::new(mac(1), mode, rate_bps)
    };
    let config = match input.scheme % 3 {
        0 => {
            Config::Ethernet(ethernet::Config { station: station.clone(), peers: (2..5).map(mac).collect() })
        }
        1 => Config::Pl2(pl2(Mode::Counter)),
        _ => Config::Pl2(pl2(Mode::Clock)),
    };
    let mut endpoint = Endpoint::new(config, u64::from(input.rate_bps), Nanos(0));
    let (mut now, mut out, mut rsvs) = (Nanos(0), Vec::new(), Vec::new());
    for step in input.steps {
        match step {
            Step::App { to, payload } => {
                let mut frame = vec![0; 14 + usize::from(payload % 1600)];
                Ethernet { dst: mac(to % 8), src: mac(1), ether_type: EtherType::IPV4 }.emit(&mut frame);
                endpoint.handle_app(&frame, now);
            }
            Step::RawApp(bytes) => endpoint.handle_app(&bytes, now),
            Step::RawLink(bytes, at) => endpoint.handle_link(&bytes, Nanos(at), now),
            Step::Flow { to, number } => {
                let mut frame = vec![0; 100];
                Ethernet { dst: mac(to % 8), src: mac(1), ether_type: EtherType::IPV4 }.emit(&mut frame);
                if let Endpoint::Pl2(endpoint) = &mut endpoint {
                    endpoint.handle_flow(&frame, number, now);
                }
            }
            Step::Tagged { from, vid, ether_type, bytes } => {
                let mut frame = vec![0; 14];
                Ethernet { dst: mac(1), src: mac(from % 8), ether_type: EtherType::VLAN }.emit(&mut frame);
                let inner = if ether_type { EtherType::PL2_DEFAULT } else { EtherType::IPV4 };
                frame.extend([0xe0, vid]);
                frame.extend(inner.0.to_be_bytes());
                frame.extend(&bytes);
                endpoint.handle_link(&frame, now, now);
            }
            Step::Grant { nth, send_wait, recv_wait, received_back } if !rsvs.is_empty() => {
                let mut grant: Vec<u8> = Vec::clone(&rsvs[usize::from(nth) % rsvs.len()]);
                let mut control = Control::parse(&grant[18..]).expect("our own RSV");
                (control.kind, control.send_wait, control.recv_wait) =
                    (Kind::Grt as u8, send_wait, recv_wait);
                control.emit(&mut grant[18..]);
                let (dst, src): ([u8; 6], [u8; 6]) =
                    (grant[..6].try_into().expect("six"), grant[6..12].try_into().expect("six"));
                grant[..6].copy_from_slice(&src);
                grant[6..12].copy_from_slice(&dst);
                endpoint.handle_link(&grant, Nanos(now.0.saturating_sub(u64::from(received_back))), now);
            }
            Step::Grant { .. } => {}
            Step::Wait(ns) => now = now.saturating_add(Nanos(u64::from(ns))),
            Step::Jump(at) => now = Nanos(at),
            Step::Poll(times) => {
                for _ in 0..times {
                    endpoint.handle_timeout(now);
                    if endpoint.poll_link(now, &mut out).is_none() {
                        break;
                    }
                    assert!(out.len() >= 14 && out.len() <= 1526);
                    if out.len() == 60 && out[12..14] == [0x81, 0] && out[16..19] == [0x88, 0xb5, 0x11] {
                        rsvs.push(out.clone());
                    }
                }
                while endpoint.poll_app(&mut out) {}
                while endpoint.poll_event(now).is_some() {}
            }
        }
        assert!(endpoint.backlog_frames() <= 24);
        let backlog: usize = (0..3).map(|position| endpoint.backlog_at(position)).sum();
        assert!(backlog <= endpoint.backlog_frames());
        let _ = (endpoint.next_timeout(), endpoint.next_is_control());
    }
});
