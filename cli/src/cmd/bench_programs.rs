//! `p4rack bench programs`: what a frame costs in the generated programs, for v1model and for TNA beside each other.

use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Rack, Scheme, program};
use p4rack_entities::{Candidate, accepted, write};
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{self, Control, Kind};
use p4rack_wire::{EtherType, Nanos};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Rounds of each measurement; the median is reported.
const ROUNDS: usize = 5;

/// Arguments of `p4rack bench programs`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, TOML; it needs two hosts
    rack: PathBuf,
    /// Frames of each round
    #[arg(long, default_value_t = 500_000)]
    frames: usize,
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
        let of = |arch| cost(&rack, scheme, arch, from.port, &frames, args.frames);
        let (v1model_ns, tna_ns) = (of(Arch::V1model)?, of(Arch::Tna)?);
        let ratio = tna_ns / v1model_ns;
        costs.push(Cost { scheme: scheme.to_string(), frames: name, v1model_ns, tna_ns, ratio });
    }
    Ok(costs)
}

/// The median of what a frame costs, with these again and again, slowly enough for their reservations.
fn cost(
    rack: &Rack,
    scheme: Scheme,
    arch: Arch,
    port: u16,
    frames: &[Vec<u8>],
    count: usize,
) -> Result<f64, String> {
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
    let mut now = Nanos(1_000_000);
    accepted(write(&installed, &request, &mut switch, now)).map_err(|error| format!("{error:?}"))?;
    let step = rack.protocol::<Pl2>().map_or(Nanos(1_000), |pl2| pl2.slot(&rack, &rack.hosts[0]));
    let mut out = Vec::new();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (begun, mut sent) = (Instant::now(), 0);
        for frame in frames.iter().cycle().take(count) {
            now += step;
            if switch.forward_frame(port, frame, now, &mut out).is_some() {
                sent += 1;
            }
            while switch.poll_transmit(now, &mut out).is_some() {
                sent += 1;
            }
        }
        if sent != count {
            return Err(format!("{scheme} on {arch}: {sent} of {count} frames left the switch"));
        }
        rounds.push(begun.elapsed());
    }
    rounds.sort();
    Ok(per_frame(rounds[ROUNDS / 2], count))
}

fn is_meter(update: &p4rack_p4rt::p4::v1::Update) -> bool {
    use p4rack_p4rt::EntityKind;
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    matches!(entity, Some(EntityKind::MeterEntry(_)))
}

fn per_frame(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e9 / count.max(1) as f64
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
