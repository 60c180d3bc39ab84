//! `p4rack roce`.

use crate::output;
use p4rack_codegen::rack::units::parse_size;
use p4rack_fabric::roce::{Completion, Config, Outcome, Region, Regions, Request, Rights};
use p4rack_hosts::roce::bench::{self, Kind, Rate};
use p4rack_hosts::roce::pool::{self, PoolConfig, Service};
use p4rack_hosts::roce::setup::{Connected, Offer, Server, Station, numbers};
use p4rack_hosts::roce::tls::{ClientTls, ServerTls};
use p4rack_hosts::roce::{Loss, Port};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{clock, netns};
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Address of a pool's first byte: any will do, peers learn it.
const START: u64 = 1 << 32;
/// How long a single operation may take, repetitions included.
const PATIENCE: Nanos = Nanos::from_secs(10);

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
    /// Prints a line "ready …" when peers can connect. Ends on SIGTERM or SIGINT.
    Serve(Box<ServeArgs>),
    /// Read memory of a pool and print it
    Read {
        #[command(flatten)]
        peer: Box<Peer>,
        /// First byte, from the start of the pool
        offset: u64,
        /// How many bytes
        bytes: u32,
    },
    /// Write text to memory of a pool
    Write {
        #[command(flatten)]
        peer: Box<Peer>,
        /// First byte, from the start of the pool
        offset: u64,
        /// What to write
        text: String,
    },
    /// Swap a word of eight bytes if it is the expected one; prints the word before
    Cas {
        #[command(flatten)]
        peer: Box<Peer>,
        /// First byte, from the start of the pool; a multiple of 8
        offset: u64,
        /// The word that is expected
        compare: u64,
        /// The new word
        swap: u64,
    },
    /// Add to a word of eight bytes, modulo 2^64; prints the word before
    Add {
        #[command(flatten)]
        peer: Box<Peer>,
        /// First byte, from the start of the pool; a multiple of 8
        offset: u64,
        /// What to add
        add: u64,
    },
    /// Messages a second between two adapters over a veth of this machine, and the processor time of each end
    Bench {
        /// Bytes of a message
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
        bytes: u32,
        /// Duration of one measurement
        #[arg(long, default_value_t = 2.0, value_parser = super::finite)]
        seconds: f64,
        /// Lose so many frames of a thousand on purpose, at both ends and in both directions
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=500))]
        lose_per_mille: u16,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// An adapter of ours.
#[derive(clap::Args, Debug)]
struct Adapter {
    /// Interface of the link; the adapter takes exclusive use of it (offloads and ARP off, no address)
    #[arg(long)]
    interface: String,
    /// IPv4 address of the adapter; the system must not have it
    #[arg(long)]
    ip: Ipv4Addr,
    /// Bytes of a packet's payload: 256, 512, 1024, 2048 or 4096; both ends need the same
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = mtu)]
    mtu: Mtu,
    /// Lose so many frames of a thousand on purpose, in both directions
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=500))]
    lose_per_mille: u16,
}

#[derive(clap::Args, Debug)]
struct ServeArgs {
    #[command(flatten)]
    adapter: Adapter,
    /// Memory to offer, e.g. "64 MiB"
    #[arg(long, value_name = "SIZE", default_value = "16 MiB", value_parser = parse_size)]
    memory: u64,
    /// Address at which peers connect
    #[arg(long, default_value = "127.0.0.1:9561")]
    grpc_server_addr: SocketAddr,
    /// Encrypt the set-up; peers then connect with --ssl
    #[arg(long, requires = "grpc_server_cert", requires = "grpc_server_key")]
    grpc_server_ssl: bool,
    /// Certificate of the server, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_key: Option<PathBuf>,
    /// Only accept peers with a certificate of this authority, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_cacert: Option<PathBuf>,
    /// Serve in plain text at an address other than loopback: anyone who reaches it has all of the memory
    #[arg(long, conflicts_with = "grpc_server_ssl")]
    insecure: bool,
}

/// How to reach a pool.
#[derive(clap::Args, Debug)]
struct Peer {
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9561")]
    grpc_addr: String,
    /// Encrypt the set-up
    #[arg(long, requires = "cacert")]
    ssl: bool,
    /// Certificate authority of the pool, PEM
    #[arg(long, value_name = "FILE", requires = "ssl")]
    cacert: Option<PathBuf>,
    /// Our certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "private_key"])]
    cert: Option<PathBuf>,
    /// Key of our certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "cert"])]
    private_key: Option<PathBuf>,
    /// Name in the pool's certificate, if it differs from the address
    #[arg(long, value_name = "NAME", requires = "ssl")]
    server_name: Option<String>,
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let found = Mtu::ALL.into_iter().find(|mtu| mtu.bytes().to_string() == text);
    found.ok_or_else(|| "write 256, 512, 1024, 2048 or 4096".to_owned())
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => serve(*args),
        Command::Read { peer, offset, bytes } => {
            operate(&peer, offset, |key, address| Request::Read { key, address, bytes })
        }
        Command::Write { peer, offset, text } => operate(&peer, offset, |key, address| Request::Write {
            key,
            address,
            bytes: text.into_bytes(),
            immediate: None,
        }),
        Command::Cas { peer, offset, compare, swap } => {
            operate(&peer, offset, |key, address| Request::CompareSwap { key, address, compare, swap })
        }
        Command::Add { peer, offset, add } => {
            operate(&peer, offset, |key, address| Request::FetchAdd { key, address, add })
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

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Adapter {
    fn config(&self) -> Config {
        // Processes wait for their turn much longer than a rack's hardware would.
        Config { mtu: self.mtu, timeout: Nanos::from_millis(20), ..Config::default() }
    }

    fn open(&self, memory: Regions) -> Result<Port<Regions>, String> {
        let loss = Loss { per_mille: self.lose_per_mille, seed: clock::wall_ns() };
        Port::open(&self.interface, self.config(), memory, loss).map_err(text)
    }

    fn station(&self, port: &Port<Regions>) -> Station {
        Station { mac: port.mac(), ip: self.ip }
    }
}

/// A runtime whose thread answers pings while this one drives the adapter.
fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(text)
}

fn serve(args: ServeArgs) -> Result<(), String> {
    let addr = args.grpc_server_addr;
    if !(args.grpc_server_ssl || args.insecure || addr.ip().is_loopback()) {
        return Err(format!(
            "--grpc-server-addr {addr} is reached from other machines, and everyone who connects has all of the memory: \
             encrypt with --grpc-server-ssl, or confirm with --insecure"
        ));
    }
    let files = args.grpc_server_cert.zip(args.grpc_server_key);
    let tls =
        files.map(|(certificate, key)| ServerTls { certificate, key, client_ca: args.grpc_server_cacert });
    let signals = Signals::take().map_err(text)?;
    let bytes = usize::try_from(args.memory).map_err(text)?;
    let key = numbers().next() as u32;
    let mut memory = Regions::default();
    memory
        .register(Region {
            domain: pool::DOMAIN,
            key,
            start: START,
            bytes: vec![0; bytes],
            rights: Rights::ALL,
        })
        .map_err(|error| format!("--memory: {error}"))?;
    let mut port = args.adapter.open(memory)?;
    let station = args.adapter.station(&port);
    let offers = vec![Offer { key, address: START, bytes: args.memory, rights: Rights::ALL }];
    let config = PoolConfig { station, adapter: args.adapter.config(), offers };
    let service = Service::new(port.handle(), config);
    let runtime = runtime()?;
    let listener = runtime.block_on(pool::bind(addr)).map_err(text)?;
    let bound = listener.local_addr().map_err(text)?;
    let mut serving = runtime.spawn(async move { pool::serve(listener, service, tls.as_ref()).await });
    output::announce(&format!("ready {} on {} set-up {bound}", station.ip, args.adapter.interface));
    let ending = port.watch(&signals).map_err(text)?;
    loop {
        port.turn(Some(clock::now() + Nanos::from_millis(100))).map_err(text)?;
        while port.adapter().poll_completion().is_some() {}
        if port.ready(ending) && matches!(signals.next(), Some(Signal::End)) {
            return Ok(());
        }
        if serving.is_finished() {
            return runtime.block_on(&mut serving).map_err(text)?.map_err(text);
        }
    }
}

/// Does one thing to a pool's memory and prints what came back.
fn operate(peer: &Peer, offset: u64, request: impl FnOnce(u32, u64) -> Request) -> Result<(), String> {
    let mut port = peer.adapter.open(Regions::default())?;
    let station = peer.adapter.station(&port);
    let identity = peer.cert.clone().zip(peer.private_key.clone());
    let tls = peer.cacert.clone().map(|ca| ClientTls { ca, identity, server_name: peer.server_name.clone() });
    let server = Server { addr: peer.grpc_addr.clone(), tls };
    let runtime = runtime()?;
    let (config, mut random) = (peer.adapter.config(), numbers());
    let connecting = server.connect(station, &config, &mut random);
    let connected: Connected = runtime.block_on(connecting).map_err(text)?;
    let offer = connected.offers.first().ok_or("the pool offers no memory")?;
    port.adapter().add_pair(connected.qpn, connected.connection).map_err(text)?;
    let request = request(offer.key, offer.address.wrapping_add(offset));
    port.adapter()
        .handle_request(connected.qpn, request)
        .map_err(|refused| format!("the adapter refuses the request: {refused:?}"))?;
    let until = clock::now() + PATIENCE;
    let outcome = loop {
        port.turn(Some(until)).map_err(text)?;
        if let Some((_, Completion::Request(_, outcome))) = port.adapter().poll_completion() {
            break outcome;
        }
        if clock::now() >= until {
            return Err(format!("no answer within {} s", PATIENCE.as_secs_f64()));
        }
    };
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Read(bytes) => {
            output::write_bytes(&bytes);
            Ok(())
        }
        Outcome::Word(word) => {
            println!("{word}");
            Ok(())
        }
        Outcome::Failed(failure) => Err(format!(
            "{failure:?}; the pool has {} bytes from offset 0, and words start at multiples of 8",
            offer.bytes
        )),
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
    for rate in &rates {
        let kind = format!("{:?}", rate.kind).to_lowercase();
        println!(
            "{kind:>5} {:>5} B  {:>9.0} messages/s  responder {:>6.0} ns a message = {:>9.0}/s a core  requester {:>6.0} ns  \
             {} packets repeated",
            rate.bytes,
            rate.messages_per_s,
            rate.responder_cpu_ns,
            rate.responder_messages_per_core_s,
            rate.requester_cpu_ns,
            rate.repeated
        );
    }
    Ok(())
}
