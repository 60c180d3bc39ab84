//! `p4rack bench programs`: what a frame costs in the generated programs, for v1model and for TNA beside each other.

use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Rack, Scheme, program};
use p4rack_entities::{Candidate, accepted, write};
use p4rack_netdev::clock;
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{self, Control, Kind};
use p4rack_wire::{EtherType, Nanos};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Rounds of each measurement; the median is reported.
const ROUNDS: usize = 5;

/// Arguments of `p4rack bench programs`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, TOML; it needs two hosts
    rack: PathBuf,
    /// Frames of each round
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a frame costs, in ns of CPU time of one thread.
#[derive(Debug, Serialize)]
struct Cost {
    scheme: String,
    /// Which frames: `plain` ones, or PL2's, an RSV and the burst that it reserves.
    frames: &'static str,
    v1model_ns: f64,
    tna_ns: f64,
    /// TNA's beside v1model's.
    ratio: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match costs(args) {
        Ok(costs) if args.json => println!("{}", serde_json::json!({ "programs": costs })),
        Ok(costs) => print(&costs),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print(costs: &[Cost]) {
    println!("{:<14}{:<10}{:>14}{:>10}{:>8}", "scheme", "frames", "v1model ns", "tna ns", "ratio");
    for cost in costs {
        let Cost { scheme, frames, v1model_ns, tna_ns, ratio } = cost;
        println!("{scheme:<14}{frames:<10}{v1model_ns:>14.1}{tna_ns:>10.1}{ratio:>8.2}");
    }
}

fn costs(args: &Args) -> Result<Vec<Cost>, String> {
    let rack = Rack::load(&args.rack).map_err(|error| error.to_string())?;
    let [from, to] = [0, 1].map(|at| rack.hosts.get(at));
    let (Some(from), Some(to)) = (from, to) else {
        return Err(format!("rack {} has one host: describe two", rack.name));
    };
    let plain = vec![plain(from, to)];
    let mut cases = vec![(Scheme::L2, "plain", plain.clone())];
    for scheme in [Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
        if rack.under(scheme).is_ok()
            && let Some(pl2) = rack.protocol::<Pl2>()
        {
            cases.push((scheme, "plain", plain.clone()));
            cases.push((scheme, "pl2", burst(pl2, from, to)));
        }
    }
    let mut costs = Vec::new();
    for (scheme, name, frames) in cases {
        let of = |arch| Bench::new(&rack, scheme, arch, [from, to]);
        let (mut v1model, mut tna) = (of(Arch::V1model)?, of(Arch::Tna)?);
        // In turns, so that a busy machine is busy for both.
        for _ in 0..ROUNDS {
            v1model.round(&frames, args.frames)?;
            tna.round(&frames, args.frames)?;
        }
        let (v1model_ns, tna_ns) = (v1model.median_ns(args.frames), tna.median_ns(args.frames));
        let ratio = tna_ns / v1model_ns;
        costs.push(Cost { scheme: scheme.to_string(), frames: name, v1model_ns, tna_ns, ratio });
    }
    Ok(costs)
}

/// A program on a switch of its own, and what its rounds took.
struct Bench {
    name: String,
    switch: Switch,
    port: u16,
    now: Nanos,
    /// From one frame to the next: slowly enough for reservations at both ends.
    step: Nanos,
    rounds: Vec<Nanos>,
}

impl Bench {
    fn new(rack: &Rack, scheme: Scheme, arch: Arch, hosts: [&Host; 2]) -> Result<Bench, String> {
        let rack = rack.on(arch);
        let made = program(&rack, scheme, arch).map_err(|error| error.to_string())?;
        // Links without rates: what counts is the program.
        let mut switch = Switch::new(Config {
            ports: rack.ports().map(|host| PortConfig::new(host.port, 0)).collect(),
            cpu_port: Some(rack.switch.cpu_port),
            drop_port: rack.switch.drop_port,
            ..Config::default()
        });
        let candidate = Candidate::new(&made.p4, made.compiled)?;
        let installed = candidate.load(None, &mut switch);
        let updates = made.entries.into_iter().map(|(_, update)| update);
        // Meters would drop what is sent without a pause.
        let updates = updates.filter(|update| !is_meter(update)).collect();
        let request = WriteRequest { updates, ..WriteRequest::default() };
        let now = Nanos(1_000_000);
        accepted(write(&installed, &request, &mut switch, now)).map_err(|error| format!("{error:?}"))?;
        let slot = |pl2: &Pl2| hosts.map(|host| pl2.slot(&rack, host)).into_iter().max();
        let step = rack.protocol::<Pl2>().and_then(slot).unwrap_or(Nanos(1_000));
        let name = format!("{scheme} on {arch}");
        Ok(Bench { name, switch, port: hosts[0].port, now, step, rounds: Vec::new() })
    }

    /// Sends these frames again and again. Errors: one did not leave the switch.
    fn round(&mut self, frames: &[Vec<u8>], count: u32) -> Result<(), String> {
        let (mut out, mut sent) = (Vec::new(), 0);
        let begun = clock::thread_cpu();
        for frame in frames.iter().cycle().take(count as usize) {
            self.now += self.step;
            if self.switch.forward_frame(self.port, frame, self.now, &mut out).is_some() {
                sent += 1;
            }
            while self.switch.poll_transmit(self.now, &mut out).is_some() {
                sent += 1;
            }
        }
        self.rounds.push(clock::thread_cpu() - begun);
        match sent == count {
            true => Ok(()),
            false => Err(format!("{}: {sent} of {count} frames left the switch", self.name)),
        }
    }

    fn median_ns(&mut self, count: u32) -> f64 {
        self.rounds.sort();
        self.rounds[self.rounds.len() / 2].0 as f64 / f64::from(count)
    }
}

fn is_meter(update: &p4rack_p4rt::p4::v1::Update) -> bool {
    use p4rack_p4rt::EntityKind;
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    matches!(entity, Some(EntityKind::MeterEntry(_)))
}

/// A frame of 64 bytes with FCS.
fn plain(from: &Host, to: &Host) -> Vec<u8> {
    let mut frame = vec![0; 60];
    Ethernet { dst: to.mac, src: from.mac, ether_type: EtherType::IPV4 }.emit(&mut frame);
    frame
}

/// An RSV for as many slots as one may ask for, and the frames that fill them.
fn burst(pl2: &Pl2, from: &Host, to: &Host) -> Vec<Vec<u8>> {
    let tagged = |tag: Vlan| {
        let mut frame = vec![0; 60];
        Ethernet { dst: to.mac, src: from.mac, ether_type: EtherType::VLAN }.emit(&mut frame);
        tag.emit(&mut frame[Ethernet::BYTES..]);
        frame
    };
    let request = Control {
        version: pl2::VERSION,
        kind: Kind::Rsv as u8,
        demand: pl2.k,
        cell: 0,
        unsolicited: 0,
        reserved: 0,
        id: 1,
        send_wait: 0,
        recv_wait: 0,
    };
    let vlan = |pcp, ether_type| Vlan { pcp, dei: false, vid: pl2.vid, ether_type };
    let mut rsv = tagged(vlan(pl2::PCP_CONTROL, pl2.ether_type));
    request.emit(&mut rsv[Ethernet::BYTES + Vlan::BYTES..]);
    let data = tagged(vlan(pl2::PCP_SCHEDULED, EtherType::IPV4));
    std::iter::once(rsv).chain(std::iter::repeat_n(data, usize::from(pl2.k))).collect()
}
