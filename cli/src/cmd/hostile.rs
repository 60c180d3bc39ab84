//! `p4rack bench hostile`, and the program that it runs on the hostile host.

use super::adapter::text;
use super::settings::Settings;
use crate::output;
use p4rack_codegen::rack::{Host, Run};
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Rack, Scheme};
use p4rack_fabric::Machine as _;
use p4rack_fabric::hostile::{Attack, Config, Fared, Hostile, edm};
use p4rack_fabric::roce;
use p4rack_hosts::cowbird::hostile::{HostileConfig, HostileNode};
use p4rack_hosts::roce::setup::{Server, Station};
use p4rack_lab::hostile::{self, Beside, Options};
use p4rack_lab::rows::Rows;
use p4rack_netdev::packet::Options as SocketOptions;
use p4rack_netdev::{Links, PacketSocket, Poller, clock};
use p4rack_wire::Nanos;
use std::path::PathBuf;
use std::process::ExitCode;

/// How much lost time the program makes up for after sleeping, and its maximum sleep.
const CATCH_UP: Nanos = Nanos::from_millis(2);
const NAP: Nanos = Nanos::from_micros(500);
/// Bytes of the longest message of an attack on a memory pool: the limit of an engine on a spare host.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;

/// Arguments of `p4rack bench hostile`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description with a [workload], one of whose senders, or clients of its store, becomes hostile; for a store whose older
    /// records are remote, a host that has no part in it
    rack: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// The hostile host [default: the workload's last sender or client, or the last host that has no part in a store with remote
    /// records]
    #[arg(long)]
    host: Option<String>,
    #[arg(long, help = super::schemes::help_of_runs("pl2-clock and pl2-counter; a store's: those of EDM, or ways to remote memory, that the workload names"))]
    scheme: Vec<Run>,
    /// Only this attack (see docs/hostile.md); may be repeated
    #[arg(long)]
    attack: Vec<String>,
    /// Duration of the measured part of each run
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs it. Succeeds if all promises were kept.
pub fn bench(args: Args) -> ExitCode {
    let options = Options {
        path: args.rack,
        settings: args.settings.set,
        schemes: args.scheme,
        host: args.host,
        attacks: args.attack,
        window_s: args.seconds.clamp(0.5, 600.0),
        quiet: args.quiet,
    };
    let progress = |beside: &Beside| {
        if !args.quiet {
            eprintln!("{} {}: {}", beside.scheme, beside.attack, verdict(&beside.fared));
        }
    };
    match hostile::run(&options, progress) {
        Ok(all) => {
            let text = if args.json { as_json(&all) } else { table(&all) };
            print!("{text}");
            match all.iter().all(|beside| beside.fared.broken().is_empty()) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Result of the promises.
pub fn verdict(fared: &Fared) -> String {
    let broken = fared.broken();
    if broken.is_empty() { "kept".to_owned() } else { broken.join(", ") }
}

/// The 99th percentile, as a cell of a table.
pub fn times(p99_times: Option<f64>) -> String {
    p99_times.map_or("-".into(), |times| format!("{times:.2} x"))
}

fn as_json(all: &[Beside]) -> String {
    let mut text = serde_json::to_string_pretty(all).expect("numbers and names are JSON");
    text.push('\n');
    text
}

fn table(all: &[Beside]) -> String {
    let mut rows = Rows::new(&[
        "scheme",
        "attack",
        ">others' goodput",
        ">frames lost",
        ">p99",
        ">over rate",
        "promises",
    ]);
    for Beside { scheme, attack, fared, excess_frames } in all {
        rows.push(vec![
            scheme.clone(),
            attack.clone(),
            format!("{:.1} %", 100.0 * fared.goodput_share),
            fared.frames_lost.to_string(),
            times(fared.p99_times),
            excess_frames.to_string(),
            verdict(fared),
        ]);
    }
    rows.text()
}

/// Arguments of the program on the hostile host.
#[derive(clap::Args, Debug)]
pub struct AttackArgs {
    /// Rack description
    rack: PathBuf,
    /// Name of the hostile host
    #[arg(long)]
    name: String,
    /// Interface of its link
    #[arg(long)]
    interface: String,
    /// Scheme of the rack
    #[arg(long)]
    scheme: Scheme,
    /// Attack to run
    #[arg(long)]
    attack: String,
    /// Key of the memory that is attacked
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u32>)]
    key: u32,
    /// Address of the set-up service of the pool that is attacked, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    memory: Option<String>,
    /// Address of the set-up service of an engine, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    engine: Option<String>,
}

/// Attacks until it is stopped.
pub fn attack(args: AttackArgs) -> Result<(), String> {
    let rack = Rack::load(&args.rack).map_err(|error| error.to_string())?;
    let host = rack.host(&args.name).ok_or_else(|| format!("no host is called `{}`", args.name))?;
    let link =
        Links::open().and_then(|mut links| links.get(&args.interface)).map_err(|error| error.to_string())?;
    // The Ethernet header and the tag are added.
    let frame_max = link.mtu as usize + 14 + 4;
    let mut machine = machine(&rack, host, &args, frame_max)?;
    let mut socket =
        PacketSocket::open(&args.interface, &SocketOptions::default()).map_err(|error| error.to_string())?;
    let mut poller = Poller::new();
    poller.add(&socket).map_err(|error| error.to_string())?;
    let mut frame = Vec::with_capacity(2048);
    output::announce("ready");
    loop {
        let now = clock::now();
        while machine.poll_link(now, &mut frame).is_some() {
            socket.send(&mut frame);
        }
        socket.flush();
        // Not immediately: other processes need the processor too.
        let nap = machine.next_timeout().map_or(Nanos::MAX, |due| due.max(now + NAP));
        poller.wait(Some(nap)).map_err(|error| error.to_string())?;
        let heard = clock::now();
        socket
            .receive(|frame, _| machine.handle_link(frame, heard, heard))
            .map_err(|error| error.to_string())?;
    }
}

/// Of whichever protocol the scheme is.
enum Machine {
    Pl2(Box<Hostile>),
    Edm(Box<edm::Machine>),
    Cowbird(Box<HostileNode>),
}

impl p4rack_fabric::Machine for Machine {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Machine::Pl2(machine) => machine.poll_link(now, out),
            Machine::Edm(machine) => machine.poll_link(now, out),
            Machine::Cowbird(node) => node.machine.poll_link(now, out),
        }
    }

    fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Machine::Pl2(machine) => machine.next_timeout(),
            Machine::Edm(machine) => machine.next_timeout(),
            Machine::Cowbird(node) => node.machine.next_timeout(),
        }
    }

    fn handle_link(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) {
        match self {
            Machine::Pl2(machine) => machine.handle_link(frame, received_at, now),
            Machine::Edm(machine) => machine.handle_link(frame, received_at, now),
            Machine::Cowbird(node) => node.machine.handle_link(frame, received_at, now),
        }
    }
}

fn machine(rack: &Rack, host: &Host, args: &AttackArgs, frame_max: usize) -> Result<Machine, String> {
    let workload = rack.workload.as_ref().ok_or("the description has no [workload]")?;
    let under = rack.under(args.scheme).map_err(|error| error.to_string())?;
    if let Some(pool) = &args.memory {
        let node = HostileNode::start(on_pool(&under, host, args, pool)?).map_err(text)?;
        return Ok(Machine::Cowbird(Box::new(node)));
    }
    if let Some(edm) = under.protocol::<Edm>() {
        let victim = rack.host(workload.ends().0).ok_or("the store's server is no host")?;
        let config = edm.hostile(&under, (host, args.attack.parse()?, victim), args.key);
        let config = edm::Config { catch_up: CATCH_UP, ..config };
        return Ok(Machine::Edm(Box::new(edm::Machine::new(config, 1, clock::now()))));
    }
    let config = config(rack, host, args.scheme, args.attack.parse()?, frame_max)?;
    Ok(Machine::Pl2(Box::new(Hostile::new(config, 1, clock::now()))))
}

/// An attacker of a pool, or of the engine beside it.
fn on_pool(rack: &Rack, host: &Host, args: &AttackArgs, pool: &str) -> Result<HostileConfig, String> {
    let cowbird = rack.protocol::<Cowbird>();
    let server = |addr: &str| Server { addr: addr.to_owned(), tls: None };
    let station = |host: &Host| Station { mac: host.mac, ip: host.ip };
    let default = roce::Config::default();
    let in_switch = cowbird.map(|cowbird| cowbird.message_bytes_max);
    Ok(HostileConfig {
        attack: args.attack.parse()?,
        station: station(host),
        others: rack.hosts.iter().filter(|other| other.name != host.name).map(station).collect(),
        // As those of the rack's other adapters.
        adapter: roce::Config {
            mtu: cowbird.map_or(default.mtu, |cowbird| cowbird.mtu),
            message_bytes_max: MESSAGE_BYTES_MAX,
            icrc_verified: false,
            ..default
        },
        pool: server(pool),
        engine: args.engine.as_deref().map(server),
        message_bytes: in_switch.unwrap_or(MESSAGE_BYTES_MAX),
        rate_bps: host.rate_bps,
        catch_up: CATCH_UP,
    })
}

fn config(
    rack: &Rack,
    host: &Host,
    scheme: Scheme,
    attack: Attack,
    frame_max: usize,
) -> Result<Config, String> {
    let pl2 = rack.protocol::<Pl2>().ok_or("the description has no [pl2]")?;
    let workload = rack.workload.as_ref().ok_or("the description has no [workload]")?;
    let victim = rack.host(workload.ends().0).ok_or("the workload's receiver is no host")?;
    let config = pl2.hostile(rack, scheme, (host, attack, victim));
    Ok(Config { frame_max, catch_up: CATCH_UP, ..config })
}
