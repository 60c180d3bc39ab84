//! `p4rack memory serve`.

use super::{Here, in_words, not_opened};
use crate::cmd::adapter::{ENCRYPT_OR_CONFIRM, Encryption, GrpcServer, Telling};
use crate::cmd::clio::serve::{Link as Packets, Offered, serve};
use crate::cmd::roce;
use crate::output::Events;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_codegen::scheme::clio::Clio;
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_fabric::remote::{Link, Service as Offers, Way};
use p4rack_hosts::balloon::Key;
use p4rack_hosts::memory::{EdmPortError, Server, ServerConfig, ServerError};
use p4rack_hosts::remote::tcp::Served;
use p4rack_hosts::roce::{Loss, pool};
use p4rack_netdev::Pages;
use p4rack_netdev::signal::Signals;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    here: Here,
    /// Size, e.g. "64 MiB": of fresh memory, or of a file to be made [default of a board: as described]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: Option<u64>,
    /// Offer the contents of this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// EDM: key that gives access
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>)]
    key: u32,
    /// EDM: address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Clio: bytes of the key-value store, beside the memory; 0 for none [default: as described, or half of --bytes]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    store: Option<u64>,
    /// Clio: what brings packets [default: udp]
    #[arg(long, value_enum)]
    link: Option<Packets>,
    /// Permit reads only
    #[arg(long)]
    read_only: bool,
    /// By RDMA, Cowbird or Clio: lend the memory in extents, as a memory node of a `p4rack balloon serve` with the same key file: 16 to
    /// 1 024 bytes, random; a pool then offers none to all
    #[arg(long, value_name = "FILE")]
    lend: Option<PathBuf>,
    /// RDMA, Cowbird, Clio: hosts that share the pool or board: half of its queue pairs or processes, and of the memory where they
    /// reserve it, is kept for them, in equal parts. Of 8, one may reserve 9/16, of 1 all [default: 8]
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u64>(1..=65_536))]
    tenants: Option<u64>,
    /// By TCP, RDMA or Clio: serve every host that reaches this one, in plain text
    #[arg(long, conflicts_with = "grpc_server_ssl")]
    insecure: bool,
    #[command(flatten)]
    encryption: Encryption,
    /// Address of the service [default: this host's address in the description]
    #[arg(long, value_name = "IP")]
    bind: Option<Ipv4Addr>,
    #[command(flatten)]
    telling: Telling,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let rack = args.here.rack()?;
    let way = p4rack_memory::way(&rack, args.here.scheme.way).map_err(in_words)?;
    if args.store.is_some() && way != Way::CLIO {
        return Err(format!("--store: only boards of Clio have a store, and this is --way {way}"));
    }
    if args.link.is_some() && way != Way::CLIO {
        return Err(format!("--link: only boards of Clio take packets in two ways, and this is --way {way}"));
    }
    let service = way.definition().service;
    if args.encryption.is_on() && !matches!(service, Offers::Pool | Offers::Board) {
        return Err(format!("--grpc-server-ssl: --way {way} has no set-up to encrypt"));
    }
    if args.lend.is_some() && !matches!(service, Offers::Pool | Offers::Board) {
        return Err(format!("--lend: boards of Clio and RDMA pools lend, and this is --way {way}"));
    }
    if args.tenants.is_some() && !matches!(service, Offers::Pool | Offers::Board) {
        return Err(format!("--tenants: hosts share RDMA pools and boards of Clio, and this is --way {way}"));
    }
    match service {
        Offers::Node => serve_node(args, &rack, way),
        Offers::Bytes => serve_bytes(args, &rack, way),
        Offers::Pool => serve_pool(args, &rack, way),
        Offers::Board => serve_board(args, &rack, way),
        Offers::None => Err(format!("--way {way}: that memory is each program's own, and nothing serves it")),
    }
}

/// The memory that is offered.
fn pages(args: &Args) -> Result<Pages, String> {
    match (&args.file, args.bytes) {
        (Some(path), bytes) => Pages::file(path, bytes),
        (None, Some(bytes)) => Pages::fresh(bytes),
        (None, None) => return Err("what memory? Give --bytes SIZE or --file FILE".to_owned()),
    }
    .map_err(in_words)
}

/// Where a service listens. Fails if it would serve every host in plain text, and `--insecure` is missing.
fn address(args: &Args, rack: &Rack, way: Way, port: u16) -> Result<SocketAddr, String> {
    let ip = args.bind.map_or_else(|| args.here.host(rack).map(|host| host.ip), Ok)?;
    if args.insecure || args.encryption.is_on() || ip.is_loopback() {
        return Ok((ip, port).into());
    }
    let help = match way.definition().service {
        Offers::Pool | Offers::Board => ENCRYPT_OR_CONFIRM,
        _ => "confirm with --insecure",
    };
    Err(format!("--way {way}: every host that reaches {ip} has all of the memory: {help}"))
}

/// Offers memory over TCP, from address 0 on.
fn serve_bytes(args: Args, rack: &Rack, way: Way) -> Result<(), String> {
    if args.telling.stats.is_some() || args.telling.metrics_addr.is_some() {
        return Err(format!(
            "--way {way}: a server of bytes has no statistics: leave out --stats and --metrics-addr"
        ));
    }
    let at = address(&args, rack, way, p4rack_memory::BYTES_PORT)?;
    let bytes = pages(&args)?;
    let (size, served) = (bytes.as_ref().len() as u64, Served::new(bytes, args.read_only));
    let signals = Signals::take().map_err(in_words)?;
    let listener = TcpListener::bind(at)
        .map_err(|error| format!("{at}: {error}; does this run on {}?", args.here.name))?;
    Events::new(args.json).report(
        "ready",
        json!({ "host": args.here.name, "way": way, "bytes": size, "listens": at.to_string() }),
        format_args!("ready {}: {} at {at}", args.here.name, show_size(size)),
    );
    served.serve(&listener, &signals).map_err(in_words)
}

/// Bytes of fresh memory that all may write. Errors: the options ask for something else.
fn fresh_bytes(args: &Args, way: Way, what: &str) -> Result<u64, String> {
    match (&args.file, args.bytes, args.read_only) {
        (None, Some(bytes), false) => Ok(bytes),
        _ => {
            Err(format!("--way {way}: {what} has fresh memory: give --bytes, without --file and --read-only"))
        }
    }
}

/// Offers fresh memory as a board of Clio: a range of all of it to all clients, and to each that reserves some a process of its own.
fn serve_board(args: Args, rack: &Rack, way: Way) -> Result<(), String> {
    p4rack_memory::board(rack, &args.here.name).map_err(in_words)?;
    let described = rack.protocol::<Clio>();
    let bytes = match described.filter(|_| args.bytes.is_none() && args.file.is_none() && !args.read_only) {
        Some(clio) => clio.memory_bytes,
        None => fresh_bytes(&args, way, "a board")?,
    };
    let name = &args.here.name;
    let clio = described.cloned().unwrap_or_else(|| Clio::new(vec![name.clone()], bytes));
    let store_bytes = args.store.unwrap_or(described.map_or(bytes / 2, |clio| clio.store_bytes));
    let at = address(&args, rack, way, p4rack_memory::BOARD_PORT)?;
    let outlet = args.telling.open()?;
    let udp = SocketAddr::new(at.ip(), clio.udp_port);
    let packets = args.link.unwrap_or(Packets::Udp);
    // A socket needs no interface.
    let interface = match packets {
        Packets::Udp => None,
        Packets::Packet => Some(args.here.interface(rack, args.here.host(rack)?, Link::Adapter)?),
    };
    let lend = args.lend.as_deref().map(Key::read).transpose().map_err(|error| format!("--lend: {error}"))?;
    let tls = args.encryption.files();
    let offered = Offered {
        board: clio.board(bytes),
        bytes,
        store_bytes,
        sizes: "clio.memory, clio.store",
        packets: packets.at(udp, interface)?,
        at,
        tls,
        loss: Loss::default(),
        lend,
        tenants: args.tenants.unwrap_or(pool::TENANTS),
    };
    serve(offered, outlet, Events::new(args.json), &json!({ "host": name, "way": way }), name)
        .map_err(|error| format!("{error}; does this run on {name}?"))
}

/// Offers fresh memory to adapters: to all of them, or where a way reserves it or a balloon lends it, to each its own.
fn serve_pool(args: Args, rack: &Rack, way: Way) -> Result<(), String> {
    let bytes = fresh_bytes(&args, way, "a pool")?;
    let at = address(&args, rack, way, p4rack_memory::POOL_PORT)?;
    let host = args.here.host(rack)?;
    let interface = args.here.interface(rack, host, Link::Adapter)?;
    let reserved = way.definition().engine.is_some() || args.lend.is_some();
    let setup = GrpcServer::confirmed(at, args.encryption);
    roce::serve_memory(
        (interface, host.ip),
        setup,
        (bytes, reserved, args.tenants.unwrap_or(pool::TENANTS)),
        args.lend,
        args.telling,
        Events::new(args.json),
    )
}

/// Offers memory under EDM.
fn serve_node(args: Args, rack: &Rack, way: Way) -> Result<(), String> {
    let host = args.here.host(rack)?;
    p4rack_memory::memory_node(rack, &host.name).map_err(in_words)?;
    args.telling.check()?;
    let bytes = pages(&args)?;
    let interface = args.here.interface(rack, host, Link::Agent)?;
    let (port, node) = p4rack_memory::server(rack, host, &interface).map_err(in_words)?;
    let size = bytes.as_ref().len() as u64;
    let rights = Rights { read: true, write: !args.read_only };
    let region = Region { start: args.address, bytes, key: args.key, rights };
    let config = ServerConfig {
        name: args.here.name.clone(),
        port,
        node,
        stats_file: args.telling.stats,
        metrics_addr: args.telling.metrics_addr,
    };
    let signals = Signals::take().map_err(in_words)?;
    let server = Server::open(config, vec![region]).map_err(|error| match &error {
        ServerError::Port(EdmPortError::NotHere(place)) => not_opened(&error, Some(place)),
        _ => error.to_string(),
    })?;
    let (name, address, key) = (&args.here.name, args.address, args.key);
    Events::new(args.json).report(
        "ready",
        json!({ "host": name, "way": way, "bytes": size, "address": address, "key": key, "interface": interface }),
        format_args!("ready {name}: {} at {address:#x} with key {key} on {interface}", show_size(size)),
    );
    server.run(&signals).map_err(in_words)
}
