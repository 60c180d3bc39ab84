//! The incast experiment: several senders at full rate into one port, with small responses among them.

use crate::{Jitter, Limits, Rack, SwitchConfig};
use p4rack_fabric::pl2::{self, Mode, Peer, full_frame_wire_bytes};
use p4rack_fabric::{Config, HostMachine, ethernet};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::{EtherType, MacAddr, Nanos, quantiles};

/// Parameters of one run.
#[derive(Clone, Debug)]
pub struct Incast {
    /// PL2's mode; `None` is plain Ethernet.
    pub mode: Option<Mode>,
    /// Number of senders, each offering the full rate.
    pub senders: usize,
    /// Rate of all links in bits per second.
    pub rate_bps: u64,
    /// K: maximum slots of a reservation.
    pub k: u8,
    /// t in slots; T is 8 t, at least 32 slots.
    pub t_slots: u32,
    /// See [`pl2::Config::pace_unsolicited`].
    pub pace_unsolicited: bool,
    /// Reservations in flight per destination.
    pub in_flight: usize,
    /// By how many percent a slot is longer than a full frame's wire time.
    pub headroom_percent: u64,
    /// Jitter of links and hosts.
    pub jitter: Jitter,
    /// Buffer of the congested port in bytes.
    pub buffer_bytes: u64,
    /// Duration; the first fifth is not measured.
    pub duration: Nanos,
    /// Seed.
    pub seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Payload that arrived, as a share of the link's rate.
    pub goodput: f64,
    /// Depth of the congested queue not exceeded for 99.9 % of the time, in bytes with FCS.
    pub depth_p999_bytes: u64,
    /// Maximum depth of the congested queue.
    pub depth_max_bytes: u64,
    /// Frames dropped by the switch because of full buffers.
    pub buffer_drops: u64,
    /// Unsolicited frames dropped over T.
    pub unsolicited_drops: u64,
    /// Frames that claimed a reservation which did not cover them, and became best effort.
    pub demoted: u64,
    /// Share of the senders' data frames that went unsolicited.
    pub unsolicited_share: f64,
    /// Frames of the slowest sender, relative to the fair share.
    pub fairness: f64,
    /// Median time of a 4 KiB response (three frames) among the others.
    pub response_p50: Nanos,
    /// 99th percentile of the same time.
    pub response_p99: Nanos,
    /// Digest of all frames on the links.
    pub digest: u64,
}

impl Incast {
    /// Four senders at 100 Mb/s, K = 4; RSV→GRT 50 to 300 µs, hosts up to 100 µs late.
    pub fn new(mode: Option<Mode>) -> Self {
        let half = (Nanos::from_micros(25), Nanos::from_micros(150));
        Incast {
            mode,
            senders: 4,
            rate_bps: 100_000_000,
            k: 4,
            t_slots: 0,
            pace_unsolicited: true,
            in_flight: 1,
            headroom_percent: 0,
            jitter: Jitter { up: half, down: half, wake: (Nanos::ZERO, Nanos::from_micros(100)) },
            buffer_bytes: 256 * 1024,
            duration: Nanos::from_secs(2),
            seed: 1,
        }
    }

    /// Runs it.
    pub fn run(&self) -> Outcome {
        let mac = |host: usize| MacAddr([2, 0, 0, 0, (host >> 8) as u8, host as u8]);
        let wire = Nanos::on_wire(full_frame_wire_bytes(true), self.rate_bps);
        let slot = Nanos(wire.0 * (100 + self.headroom_percent) / 100);
        // Host 0 receives, the last one serves responses.
        let (hosts, server) = (self.senders + 2, self.senders + 1);
        let peers: Vec<Peer> = (0..hosts).map(|host| Peer { mac: mac(host), slot, far: false }).collect();
        let pl2 = |host: usize, mode| pl2::Config {
            t_slots: self.t_slots,
            pace_unsolicited: self.pace_unsolicited,
            k: self.k,
            in_flight: self.in_flight,
            lanes: self.in_flight as u8,
            slot,
            peers: peers.clone(),
            ..pl2::Config::new(mac(host), mode, self.rate_bps)
        };
        let config = |host: usize| match self.mode {
            Some(mode) => Config::Pl2(pl2(host, mode)),
            None => Config::Ethernet(ethernet::Config {
                peers: (0..hosts).map(mac).collect(),
                ..ethernet::Config::new(mac(host), self.rate_bps)
            }),
        };
        let first = pl2(0, Mode::Clock);
        let switch = SwitchConfig {
            mode: self.mode,
            ether_type: first.ether_type,
            vid: first.vid,
            k: self.k,
            limits: Limits::new(first.lanes, self.k, self.t_slots),
            buffer_bytes: self.buffer_bytes,
            time_unit: first.time_unit,
            ports: (0..hosts).map(|host| (mac(host), self.rate_bps, slot)).collect(),
        };
        let mut rack = Rack::new((0..hosts).map(config).collect(), switch, self.jitter, self.seed);
        let frame = |from: usize, payload: usize, stamp: Nanos| {
            let mut frame = vec![0; Ethernet::BYTES + payload];
            Ethernet { dst: mac(0), src: mac(from), ether_type: EtherType::IPV4 }.emit(&mut frame);
            frame[Ethernet::BYTES..][..8].copy_from_slice(&stamp.0.to_be_bytes());
            frame
        };

        let warm = Nanos(self.duration.0 / 5);
        let mut responses = Vec::new();
        let mut received = vec![0u64; hosts];
        let mut sent = vec![Nanos::ZERO; self.senders];
        let (mut at, mut next_response) = (Nanos::ZERO, Nanos::from_millis(3));
        while at < self.duration {
            for (sender, next) in sent.iter_mut().enumerate() {
                while *next <= at {
                    rack.app(sender + 1, frame(sender + 1, 1500, *next), *next);
                    *next += wire;
                }
            }
            if next_response <= at {
                for payload in [1500, 1500, 1096] {
                    rack.app(server, frame(server, payload, next_response), next_response);
                }
                next_response += Nanos::from_micros(4_700);
            }
            if at < warm && warm <= at + wire {
                rack.switch_mut().restart_measuring(at);
            }
            at += wire;
            rack.run_until(at);
            for delivery in rack.deliveries.drain(..).filter(|d| d.host == 0 && d.at > warm) {
                let from = usize::from(delivery.frame[11]);
                received[from] += (delivery.frame.len() - Ethernet::BYTES) as u64;
                if from == server && delivery.frame.len() < 1500 {
                    let mut stamp = [0; 8];
                    stamp.copy_from_slice(&delivery.frame[Ethernet::BYTES..][..8]);
                    responses.push(Nanos(delivery.at.0 - u64::from_be_bytes(stamp)));
                }
            }
        }
        self.sum_up(&rack, &received, responses, warm)
    }

    fn sum_up(&self, rack: &Rack, received: &[u64], mut responses: Vec<Nanos>, warm: Nanos) -> Outcome {
        responses.sort();
        let response = |share| quantiles::of_sorted(&responses, share).unwrap_or(self.duration);
        let bytes: u64 = received.iter().sum();
        let from_senders = &received[1..=self.senders];
        let fair = from_senders.iter().sum::<u64>() as f64 / self.senders as f64;
        let (mut unsolicited, mut scheduled) = (0, 0);
        for host in 1..=self.senders {
            if let Some(endpoint) = rack.endpoint(host) {
                for (name, count) in endpoint.counters() {
                    match name {
                        "unsolicited_out" => unsolicited += count,
                        "scheduled_out" => scheduled += count,
                        _ => {}
                    }
                }
            }
        }
        let port = rack.switch().port(0);
        let dropped = |reason| rack.switch().drops().get(reason).copied().unwrap_or(0);
        let measured = (self.duration - warm).as_secs_f64();
        Outcome {
            goodput: bytes as f64 * 8.0 / measured / self.rate_bps as f64,
            depth_p999_bytes: port.depth_quantile_bytes(0.999),
            depth_max_bytes: port.depth_max_bytes,
            buffer_drops: dropped("buffer_full"),
            unsolicited_drops: dropped("unsolicited_over_threshold"),
            demoted: rack.switch().demoted().values().sum(),
            unsolicited_share: unsolicited as f64 / (unsolicited + scheduled).max(1) as f64,
            fairness: from_senders.iter().min().copied().unwrap_or(0) as f64 / fair.max(1.0),
            response_p50: response(0.5),
            response_p99: response(0.99),
            digest: rack.digest,
        }
    }
}
