//! `p4rack roce`: commands specific to RDMA. Its operations are those of remote memory, by the way `rdma`.

use super::adapter::{Adapter, GrpcServer, Peers, Telling, Tls, runtime, text};
use super::by_hand::ByHand;
use crate::output::Events;
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_fabric::roce::{Region, Regions, Rights};
use p4rack_hosts::balloon::{Key, serve_pool};
use p4rack_hosts::roce::RocePort;
use p4rack_hosts::roce::bench::{self, Kind, Rate};
use p4rack_hosts::roce::latency::{self, Load};
use p4rack_hosts::roce::pool::{self, PoolConfig, Service};
use p4rack_hosts::roce::setup::{Connected, Offer, Server, Station, numbers};
use p4rack_lab::rows::Rows;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{clock, netns};
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Where peers connect unless another address is given.
const SETUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9561);
/// Address of a pool's first byte: any will do, peers learn it.
const START: u64 = 1 << 32;

/// Arguments of `p4rack roce`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Offer memory to peers: the responder of a memory pool
    ///
    /// Prints a line "ready …" when peers can connect, and its counters when SIGTERM or SIGINT ends it.
    Serve(Box<ServeArgs>),
    /// Measure latencies of writes, reads and atomic operations on a pool's memory, which they overwrite
    Latency {
        #[command(flatten)]
        peer: Box<Peer>,
        /// By hand: how many bytes, from --address on, may be overwritten, e.g. "1 MiB"
        #[arg(long, value_name = "SIZE", requires = "peer_mac", value_parser = parse_bytes)]
        length: Option<u64>,
        /// Bytes of a write or read
        #[arg(long, default_value_t = 1024, value_parser = crate::numbers::within::<u32>(1..=1_048_576))]
        bytes: u32,
        /// Requests under way
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u16>(1..=256))]
        under_way: u16,
        /// Duration of one measurement
        #[arg(long, default_value_t = 1.0, value_parser = super::finite)]
        seconds: f64,
        /// Begin this time after connecting, e.g. when other traffic flows
        #[arg(long, value_name = "SECONDS", value_parser = super::finite)]
        after: Option<f64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure messages per second between two adapters over a veth of this machine, and the processor time of each end
    Bench {
        /// Bytes of a message
        #[arg(long, default_value_t = 64, value_parser = crate::numbers::within::<u32>(1..=65_536))]
        bytes: u32,
        /// Duration of one measurement
        #[arg(long, default_value_t = 2.0, value_parser = super::finite)]
        seconds: f64,
        /// Lose this many frames of a thousand on purpose, at both ends and in both directions
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::numbers::within::<u16>(0..=500))]
        lose_per_mille: u16,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args, Debug)]
struct ServeArgs {
    #[command(flatten)]
    adapter: Adapter,
    /// Memory to offer, e.g. "64 MiB"
    #[arg(long, value_name = "SIZE", default_value = "16 MiB", value_parser = parse_bytes)]
    memory: u64,
    /// Total memory that peers may reserve: only its owner reaches it, and it is freed when the owner leaves
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    reserve: Option<u64>,
    /// Peers that share the pool: half of its queue pairs, regions and bytes to reserve is kept for them, in equal parts. A peer
    /// is an address, or a certificate where one is demanded. Of 8, one may reserve 9/16 of the bytes, of 1 all
    #[arg(long, value_name = "N", default_value_t = pool::TENANTS, value_parser = crate::numbers::within::<u64>(1..=65_536))]
    tenants: u64,
    /// Also lend the memory of --reserve in extents, as a memory node of a `p4rack balloon serve` with the same key file: 16 to 1 024
    /// bytes, random
    #[arg(long, value_name = "FILE", requires = "reserve")]
    lend: Option<PathBuf>,
    #[command(flatten)]
    setup: GrpcServer,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    telling: Telling,
    #[command(flatten)]
    by_hand: ByHand,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// How to reach a pool.
#[derive(clap::Args, Debug)]
struct Peer {
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9561", conflicts_with = "peer_mac")]
    grpc_addr: String,
    #[command(flatten)]
    tls: Tls,
    #[command(flatten)]
    by_hand: ByHand,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => {
            let events = Events::new(args.json);
            serve(*args, events)
        }
        Command::Latency { peer, length, bytes, under_way, seconds, after, json } => {
            let load = |kind| Load { kind, bytes, under_way: under_way.into(), span: span(seconds) };
            latencies(&peer, length, load, span(after.unwrap_or(0.0)), json)
        }
        Command::Bench { bytes, seconds, lose_per_mille, json } => {
            measure(bytes, seconds, lose_per_mille, json)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Offers memory of a rack's host until a signal ends the process: to all peers, or to those of `tenants` that reserve it, and with `lend`, the file of
/// a key, in extents of a balloon. What comes through a switch that rewrites packets has no right iCRC, so none is checked.
pub(super) fn serve_memory(
    (interface, ip): (String, Ipv4Addr),
    setup: GrpcServer,
    (bytes, reserved, tenants): (u64, bool, u64),
    lend: Option<PathBuf>,
    telling: Telling,
    events: Events,
) -> Result<(), String> {
    let args = ServeArgs {
        adapter: Adapter::of(interface, ip),
        memory: if reserved { u64::from(Mtu::B4096.bytes()) } else { bytes },
        reserve: reserved.then_some(bytes),
        tenants,
        lend,
        setup,
        peers: Peers::default(),
        telling,
        by_hand: ByHand::default(),
        json: false,
    };
    serve(args, events)
}

fn serve(args: ServeArgs, events: Events) -> Result<(), String> {
    let (addr, tls) = args.setup.check(SETUP, "has all of the memory")?;
    let members = args.peers.members()?;
    let lend = args.lend.as_deref().map(Key::read).transpose().map_err(|error| format!("--lend: {error}"))?;
    let mut outlet = args.telling.open()?;
    let signals = Signals::take().map_err(text)?;
    let bytes = usize::try_from(args.memory).map_err(text)?;
    let key = args.by_hand.rkey.unwrap_or_else(|| numbers().next() as u32);
    let start = args.by_hand.address.unwrap_or(START);
    let mut memory = Regions::default();
    memory
        .register(Region { domain: pool::DOMAIN, key, start, bytes: vec![0; bytes], rights: Rights::ALL })
        .map_err(|error| format!("--memory: {error}"))?;
    let mut port = args.adapter.open(memory)?;
    if let Some(rate_bps) = args.peers.rate_bps {
        port.pace(rate_bps);
    }
    let station = args.adapter.station(&port);
    if let Some((qpn, connection)) = args.by_hand.connection(station) {
        port.adapter().add_pair(qpn, connection).map_err(text)?;
        let psn = connection.send_psn;
        let Station { mac, ip } = station;
        events.report(
            "by_hand",
            json!({ "mac": mac.to_string(), "ip": ip, "qpn": qpn, "psn": psn, "rkey": key, "address": start }),
            format_args!("by hand: {mac} {ip} qpn {qpn} psn {psn} rkey {key} address {start}"),
        );
    }
    let offers = vec![Offer { key, address: start, bytes: args.memory, rights: Rights::ALL }];
    let config = PoolConfig {
        station,
        adapter: args.adapter.config(),
        members,
        offers,
        reserve_bytes_max: args.reserve.unwrap_or(0),
        tenants: args.tenants,
    };
    let service = Service::new(port.handle(), config);
    let desk = service.desk();
    let runtime = runtime()?;
    let listener = runtime.block_on(pool::bind(addr)).map_err(text)?;
    let bound = listener.local_addr().map_err(text)?;
    let mut serving = runtime.spawn(async move {
        match lend {
            Some(key) => serve_pool(listener, service, key, tls.as_ref()).await,
            None => pool::serve(listener, service, tls.as_ref()).await,
        }
    });
    let (ip, interface) = (station.ip, &args.adapter.interface);
    events.report(
        "ready",
        json!({ "ip": ip, "interface": interface, "setup": bound }),
        format_args!("ready {ip} on {interface} set-up {bound}"),
    );
    let ending = port.watch(&signals).map_err(text)?;
    let ended = loop {
        port.turn(Some(clock::now() + Nanos::from_millis(100))).map_err(text)?;
        while port.adapter().poll_completion().is_some() {}
        outlet.update(clock::now(), || port.counts().of("entrance", desk.counts()).exposition("roce"));
        match port.ready(ending).then(|| signals.next()).flatten() {
            Some(Signal::Report) => {
                outlet.write(|| port.counts().of("entrance", desk.counts())).map_err(text)?
            }
            Some(Signal::End) => break Ok(()),
            None => {}
        }
        if serving.is_finished() {
            break runtime.block_on(&mut serving).map_err(text).and_then(|served| served.map_err(text));
        }
    };
    let counts = port.counts().of("entrance", desk.counts());
    events.report("end", &counts, &counts);
    let told = outlet.write(|| counts).map_err(text);
    ended.and(told)
}

/// A queue pair at a pool.
struct Pair {
    port: RocePort<Regions>,
    qpn: u32,
    /// Key and address of the memory.
    key: u32,
    address: u64,
    /// Its bytes; unknown by hand.
    bytes: Option<u64>,
    // The connection ends with these.
    _runtime: Runtime,
    _call: Option<Connected>,
}

/// Connects with a pool.
fn pair(peer: &Peer) -> Result<Pair, String> {
    let by_hand = peer.by_hand.memory()?;
    if by_hand.is_some() && peer.tls.files().is_some() {
        return Err("--ssl encrypts a set-up, and with values exchanged by hand there is none".to_owned());
    }
    let mut port = peer.adapter.open(Regions::default())?;
    let station = peer.adapter.station(&port);
    let runtime = runtime()?;
    let mut call: Option<Connected> = None;
    let by_hand = by_hand.zip(peer.by_hand.connection(station));
    let (qpn, connection, (key, address), bytes) = match by_hand {
        Some((memory, (qpn, connection))) => (qpn, connection, memory, None),
        None => {
            let server = Server { addr: peer.grpc_addr.clone(), tls: peer.tls.files() };
            let (config, mut random) = (peer.adapter.config(), numbers());
            let connecting = server.connect(station, &config, None, &mut random);
            let connected = call.insert(runtime.block_on(connecting).map_err(text)?);
            let offer = connected.offers.first().copied().ok_or("the pool offers no memory")?;
            (connected.qpn, connected.connection, (offer.key, offer.address), Some(offer.bytes))
        }
    };
    port.adapter().add_pair(qpn, connection).map_err(text)?;
    Ok(Pair { port, qpn, key, address, bytes, _runtime: runtime, _call: call })
}

fn span(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.0, 3_600.0) * 1e9) as u64)
}

/// Measures each kind of request after a while. By hand, `length` says how much memory they may overwrite.
fn latencies(
    peer: &Peer,
    length: Option<u64>,
    load: impl Fn(Kind) -> Load,
    after: Nanos,
    json: bool,
) -> Result<(), String> {
    if let Some((_, address)) = peer.by_hand.memory()? {
        let length =
            length.ok_or("say with --length how many bytes, from --address on, may be overwritten")?;
        if address.checked_add(length).is_none() {
            return Err("--length reaches beyond the last address".to_owned());
        }
    }
    let Pair { mut port, qpn, key, address, bytes, _runtime, _call } = pair(peer)?;
    let bytes = bytes.or(length).unwrap_or(0);
    // Atomic operations need a word.
    if u64::from(load(Kind::Write).bytes).max(8) > bytes {
        return Err(format!("--bytes: the memory has {bytes}"));
    }
    let offer = Offer { key, address, bytes, rights: Rights::ALL };
    // Signals that the set-up is over. Results are on standard output.
    eprintln!("ready {} on {}", peer.adapter.ip, peer.adapter.interface);
    let begin = clock::now() + after;
    while clock::now() < begin {
        port.turn(Some(begin)).map_err(text)?;
    }
    let mut all = Vec::new();
    for kind in Kind::ALL {
        all.push(latency::measure(&mut port, qpn, &offer, &load(kind)).map_err(text)?);
        // Its queue pair can no longer be used.
        if all.iter().any(|one| one.failed > 0) {
            break;
        }
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&all).expect("numbers and names are JSON"));
    } else {
        let head = [
            "",
            ">bytes",
            ">requests/s",
            ">p50, µs",
            ">p99, µs",
            ">max, µs",
            ">packets repeated",
            ">timeouts",
        ];
        let mut rows = Rows::new(&head);
        for one in &all {
            let kind = format!("{:?}", one.kind).to_lowercase();
            let figures =
                [one.requests_per_s, one.p50_us, one.p99_us, one.max_us].map(|of| format!("{of:.0}"));
            let counts = [one.repeated.to_string(), one.timeouts.to_string()];
            rows.push([&[kind, one.bytes.to_string()][..], &figures[..], &counts].concat());
        }
        print!("{}", rows.text());
    }
    match all.iter().map(|one| one.failed).sum::<u64>() {
        0 => Ok(()),
        failed => Err(format!("{failed} requests were not done; the figures are of the others")),
    }
}

fn measure(bytes: u32, seconds: f64, lose_per_mille: u16, json: bool) -> Result<(), String> {
    netns::acquire().map_err(text)?;
    let rates: Result<Vec<Rate>, _> =
        Kind::ALL.into_iter().map(|kind| bench::run(kind, bytes, seconds, lose_per_mille)).collect();
    let rates = rates.map_err(text)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rates).expect("numbers and names are JSON"));
        return Ok(());
    }
    let head = [
        "",
        ">bytes",
        ">messages/s",
        ">responder, µs a message",
        ">so on a core of its own, /s",
        ">requester, µs",
        ">packets repeated",
    ];
    let mut rows = Rows::new(&head);
    for rate in &rates {
        let kind = format!("{:?}", rate.kind).to_lowercase();
        let per_s = |messages: f64| format!("{messages:.0}");
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let figures = [
            per_s(rate.messages_per_s),
            us(rate.responder_cpu_ns),
            per_s(rate.responder_messages_per_core_s),
            us(rate.requester_cpu_ns),
        ];
        rows.push([&[kind, rate.bytes.to_string()][..], &figures[..], &[rate.repeated.to_string()]].concat());
    }
    print!("{}", rows.text());
    Ok(())
}
