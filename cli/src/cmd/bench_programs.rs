//! `p4rack bench programs`: cost of a frame in the generated programs, for v1model and TNA side by side.

use super::settings::Settings;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Rack, Scheme, program};
use p4rack_entities::{Candidate, accepted, write};
use p4rack_lab::rows::Rows;
use p4rack_netdev::clock;
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::edm;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{self, Control, Kind};
use p4rack_wire::{EtherType, Nanos, quantiles};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack bench programs`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, TOML; it needs two hosts
    rack: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Frames of each round
    #[arg(long, default_value_t = 500_000, value_parser = crate::numbers::within::<u32>(1..))]
    frames: u32,
    /// Measurements of each program; reports the median
    #[arg(long, default_value_t = 5, value_parser = crate::numbers::within::<usize>(1..=100))]
    rounds: usize,
    #[arg(long, help = super::schemes::help("all that the rack has"))]
    scheme: Option<Scheme>,
    /// Only these frames: plain, pl2 or edm
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Cost of a frame, in ns of CPU time of one thread.
#[derive(Debug, Serialize)]
struct Cost {
    scheme: String,
    /// Which frames: `plain` ones; `pl2`, an RSV and the burst that it reserves; or `edm`, a write in chunks, and the
    /// notification of it.
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
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print(costs: &[Cost]) {
    let mut rows = Rows::new(&["scheme", "frames", ">v1model ns", ">tna ns", ">ratio"]);
    for cost in costs {
        let Cost { scheme, frames, v1model_ns, tna_ns, ratio } = cost;
        let ns = [v1model_ns, tna_ns].map(|ns| format!("{ns:.1}"));
        rows.push(
            [&[scheme.to_string(), frames.to_string()][..], &ns[..], &[format!("{ratio:.2}")]].concat(),
        );
    }
    print!("{}", rows.text());
}

fn costs(args: &Args) -> Result<Vec<Cost>, String> {
    let rack = Rack::load_set(&args.rack, &args.settings.set).map_err(|error| error.to_string())?;
    let [from, to] = [0, 1].map(|at| rack.hosts.get(at));
    let (Some(from), Some(to)) = (from, to) else {
        return Err(format!("rack {} has one host: describe two", rack.name));
    };
    let plain = Load { hosts: [from, to], frames: vec![(plain(from, to), [1, 1])], step: Nanos(1_000) };
    let mut cases = vec![(Scheme::L2, "plain", plain.clone())];
    for scheme in [Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
        if rack.under(scheme).is_ok()
            && let Some(pl2) = rack.protocol::<Pl2>()
        {
            cases.push((scheme, "plain", plain.clone()));
            cases.push((scheme, "pl2", burst(&rack, pl2, [from, to])));
        }
    }
    for scheme in [Scheme::EDM_TIMED_DST, Scheme::EDM_TIMED] {
        if let Ok(under) = rack.under(scheme)
            && let Some(edm) = under.protocol::<Edm>()
        {
            cases.push((scheme, "plain", plain.clone()));
            cases.push((scheme, "edm", message(&rack, edm)?));
        }
    }
    cases.retain(|(scheme, name, _)| {
        args.scheme.is_none_or(|only| only == *scheme) && args.load.as_ref().is_none_or(|only| only == name)
    });
    if cases.is_empty() {
        return Err(
            "nothing to measure: the rack has no such scheme, or the scheme no such frames".to_owned()
        );
    }
    let mut costs = Vec::new();
    for (scheme, name, load) in cases {
        let of = |arch, calls| Bench::new(&rack, scheme, arch, &load, calls);
        let mut v1model = of(Arch::V1model, [v1model_first, v1model_next])?;
        let mut tna = of(Arch::Tna, [tna_first, tna_next])?;
        // A load that is cut short would leave reservations.
        let length = load.frames.len() as u32;
        let frames = args.frames.div_ceil(length).saturating_mul(length);
        // In turns, so that a busy machine is busy for both.
        for _ in 0..args.rounds {
            v1model.round(frames)?;
            tna.round(frames)?;
        }
        let (v1model_ns, tna_ns) = (v1model.median_ns(frames), tna.median_ns(frames));
        let ratio = tna_ns / v1model_ns;
        costs.push(Cost { scheme: scheme.to_string(), frames: name, v1model_ns, tna_ns, ratio });
    }
    Ok(costs)
}

/// Frames that one host sends to another repeatedly.
#[derive(Clone)]
struct Load<'r> {
    hosts: [&'r Host; 2],
    /// Frames, and how many leave the switch for each, at least and at most.
    frames: Vec<(Vec<u8>, [u32; 2])>,
    /// Interval of frames: long enough for the reservations at both ends.
    step: Nanos,
}

/// Sends a frame into a port; how many frames leave.
type Call = fn(&mut Switch, u16, &[u8], Nanos, &mut Vec<u8>) -> u32;

/// Separate functions per architecture, for the first frame of a load and for the others, so that callgrind reports
/// each.
macro_rules! calls {
    ($($name:ident)*) => {$(
        #[inline(never)]
        fn $name(switch: &mut Switch, port: u16, frame: &[u8], now: Nanos, out: &mut Vec<u8>) -> u32 {
            let mut sent = u32::from(switch.forward_frame(port, frame, now, out).is_some());
            while switch.poll_transmit(now, out).is_some() {
                sent += 1;
            }
            // Functions that do the same must not become one.
            std::hint::black_box(stringify!($name));
            sent
        }
    )*};
}

calls!(v1model_first v1model_next tna_first tna_next);

/// A program on a switch of its own, and the times of its rounds.
struct Bench<'r> {
    name: String,
    switch: Switch,
    load: &'r Load<'r>,
    /// For the first frame, and for the others.
    calls: [Call; 2],
    now: Nanos,
    rounds: Vec<Nanos>,
}

impl<'r> Bench<'r> {
    fn new(
        rack: &Rack,
        scheme: Scheme,
        arch: Arch,
        load: &'r Load<'r>,
        calls: [Call; 2],
    ) -> Result<Bench<'r>, String> {
        let rack = rack.on(arch);
        let made = program(&rack, scheme, arch).map_err(|error| error.to_string())?;
        // Links without rates: only the program is measured.
        let mut switch = Switch::new(Config {
            ports: rack.ports().map(|host| PortConfig::new(host.port, 0)).collect(),
            cpu_port: Some(rack.switch.cpu_port),
            drop_port: rack.switch.drop_port,
            ..Config::default()
        });
        let candidate = Candidate::new(&made.p4, made.compiled)?;
        let installed = candidate.load(None, &mut switch);
        let updates = made.entries.into_iter().map(|(_, update)| update);
        // Meters would drop frames sent without a pause.
        let updates = updates.filter(|update| !is_meter(update)).collect();
        let request = WriteRequest { updates, ..WriteRequest::default() };
        let now = Nanos(1_000_000);
        accepted(write(&installed, &request, &mut switch, now)).map_err(|error| format!("{error:?}"))?;
        Ok(Bench { name: format!("{scheme} on {arch}"), switch, load, calls, now, rounds: Vec::new() })
    }

    /// Sends `count` frames of the load. Fails if fewer or more frames left the switch than expected.
    fn round(&mut self, count: u32) -> Result<(), String> {
        let Load { hosts: [from, _], frames, step } = self.load;
        let (mut out, mut sent, mut expected) = (Vec::new(), 0, [0, 0]);
        let begun = clock::thread_cpu();
        for (at, (frame, leave)) in frames.iter().enumerate().cycle().take(count as usize) {
            self.now += *step;
            expected = [expected[0] + leave[0], expected[1] + leave[1]];
            sent += self.calls[usize::from(at > 0)](&mut self.switch, from.port, frame, self.now, &mut out);
        }
        self.rounds.push(clock::thread_cpu() - begun);
        let [least, most] = expected;
        match (least..=most).contains(&sent) {
            true => Ok(()),
            false => Err(format!("{}: {sent} frames left the switch, not {least} to {most}", self.name)),
        }
    }

    fn median_ns(&mut self, count: u32) -> f64 {
        self.rounds.sort();
        quantiles::of_sorted(&self.rounds, 0.5).map_or(f64::NAN, |round| round.0 as f64 / f64::from(count))
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
fn burst<'r>(rack: &Rack, pl2: &Pl2, hosts: [&'r Host; 2]) -> Load<'r> {
    let tagged = |tag| tagged(hosts, tag, 60);
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
    request.emit(&mut rsv[TAGGED..]);
    let data = tagged(vlan(pl2::PCP_SCHEDULED, EtherType::IPV4));
    let frames = std::iter::once(rsv).chain(std::iter::repeat_n(data, usize::from(pl2.k)));
    let slots = hosts.map(|host| pl2.slot(rack, host));
    Load { hosts, frames: frames.map(|frame| (frame, [1, 1])).collect(), step: slots[0].max(slots[1]) }
}

/// A notification, and the chunks of the write that it is about. Two of them bring about grants, unless shares of the link
/// leave that to one of them.
fn message<'r>(rack: &'r Rack, edm: &Edm) -> Result<Load<'r>, String> {
    let (with, without): (Vec<&Host>, Vec<&Host>) =
        rack.hosts.iter().partition(|host| edm.memory.contains(&host.name));
    let ([to, ..], [from, ..]) = (&with[..], &without[..]) else {
        return Err(format!("rack {} has no host with memory, or none without: describe both", rack.name));
    };
    let hosts = [*from, *to];
    let tag = |pcp| Vlan { pcp, dei: false, vid: 0, ether_type: edm.ether_type };
    let chunks = edm.window + 2;
    let total = edm.chunk_bytes * chunks;
    let (version, id) = (edm::VERSION, 1);
    let mut notification = tagged(hosts, tag(edm::PCP_CONTROL), 60);
    let kind = edm::Kind::Notify as u8;
    edm::Control { version, kind, answer: 0, id, offset: 0, bytes: total, wait: 0 }
        .emit(&mut notification[TAGGED..]);
    let kind = edm::Kind::Wreq as u8;
    let mut frames = vec![(notification, [1, 1])];
    for chunk in 0..chunks {
        let (offset, bytes) = (chunk * edm.chunk_bytes, edm.chunk_bytes as u16);
        let mut frame = tagged(hosts, tag(edm::PCP_DATA), TAGGED + edm::Message::BYTES + usize::from(bytes));
        edm::Message { version, kind, code: 0, id, key: 0, address: 0, total, offset, bytes, start: 1 }
            .emit(&mut frame[TAGGED..]);
        frames.push((frame, [1, 1 + u32::from(chunk + edm.window < chunks)]));
    }
    let slowest_bps = hosts.map(|host| host.rate_bps).into_iter().min().unwrap_or(1);
    // Twice as long as a chunk takes.
    let units = 2 * edm.grant_units(rack, edm.chunk_bytes.into(), slowest_bps);
    Ok(Load { hosts, frames, step: Nanos(units * rack.switch.time_unit_ns) })
}

/// Bytes of Ethernet's header and a tag.
const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;

/// A frame with a tag, otherwise zero.
fn tagged([from, to]: [&Host; 2], tag: Vlan, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes.max(60)];
    Ethernet { dst: to.mac, src: from.mac, ether_type: EtherType::VLAN }.emit(&mut frame);
    tag.emit(&mut frame[Ethernet::BYTES..]);
    frame
}
