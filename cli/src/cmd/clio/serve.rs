//! `p4rack clio serve`, and parts shared with `p4rack memory serve --way clio`.

use crate::cmd::adapter::{GrpcServer, Telling, runtime, text};
use crate::output::Events;
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_codegen::scheme::clio::{Clio, page_size};
use p4rack_fabric::clio::board::{Config, Index};
use p4rack_hosts::balloon::{Key, serve_board};
use p4rack_hosts::clio::server::{At, BoardError, Server};
use p4rack_hosts::clio::service::{self, Service};
use p4rack_hosts::outlet::{Counts, Outlet};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::tls::ServerTls;
use p4rack_hosts::roce::{Desk, Loss};
use p4rack_netdev::clock;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PageSize, UDP_PORT};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Longest time between two looks at the set-up service of a board.
const TURN: Nanos = Nanos::from_millis(100);
/// Where clients join.
const SETUP: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), p4rack_memory::BOARD_PORT);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Bytes of the board's memory, e.g. "64 MiB"; the system gives them when they are first used
    #[arg(long, value_name = "SIZE", default_value = "64 MiB", value_parser = parse_bytes)]
    bytes: u64,
    /// Bytes of the key-value store, beside the memory; 0 for none [default: half of --bytes]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    store: Option<u64>,
    /// Size of the memory's pages: "4 KiB", "64 KiB", "2 MiB", "4 MiB", "16 MiB", "64 MiB" or "1 GiB" [default: by --bytes, 4 KiB below
    /// 1 MiB, 64 KiB below 256 MiB, else 2 MiB]
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    /// Slots of a bucket of the page table: 4, 8 or 16
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = slots)]
    slots: u32,
    /// Slots of the page table beyond one for each page, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = crate::numbers::within::<u32>(0..=100))]
    spare_percent: u32,
    /// Choice of a page's bucket: "salted", or the paper's "mixed"
    #[arg(long, default_value = "salted", value_parser = index)]
    index: Index,
    /// Maximum processes that clients reserve
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = crate::numbers::within::<u32>(1..=65_536))]
    processes: u32,
    /// Hosts that share the board: half of its processes, bytes and offloads is kept for them, in equal parts. A host is an address, or a
    /// certificate where one is demanded. Of 8, one may reserve 9/16 of the bytes, of 1 all
    #[arg(long, value_name = "N", default_value_t = pool::TENANTS, value_parser = crate::numbers::within::<u64>(1..=65_536))]
    tenants: u64,
    /// Permit fences that delay the requests of all processes, as in the paper
    #[arg(long)]
    fence_all: bool,
    /// Address at which the board takes packets [default: the one of the set-up service, port 1234]
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    udp_addr: Option<SocketAddr>,
    /// What brings packets: a UDP socket, or a ring of frames of an interface, which needs root; the system keeps the interface and its
    /// address. A ring does not hear clients of the board's own machine
    #[arg(long, value_enum, default_value_t = Link::Udp)]
    link: Link,
    /// With --link packet: the interface [default: the one that has the address]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Lose this many packets of a thousand on purpose, in both directions
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::numbers::within::<u16>(0..=500))]
    lose_per_mille: u16,
    /// Also lend the memory in extents, as a memory node of a `p4rack balloon serve` with the same key file: 16 to 1 024 bytes,
    /// random
    #[arg(long, value_name = "FILE")]
    lend: Option<PathBuf>,
    #[command(flatten)]
    setup: GrpcServer,
    #[command(flatten)]
    telling: Telling,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// What brings a board's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cmd) enum Link {
    /// A UDP socket
    Udp,
    /// Frames of an interface
    Packet,
}

impl Link {
    /// Where a board takes packets for an address. Errors: an interface is named that nothing uses.
    pub(in crate::cmd) fn at(self, addr: SocketAddr, interface: Option<String>) -> Result<At, String> {
        match (self, interface) {
            (Link::Udp, None) => Ok(At::Udp(addr)),
            (Link::Udp, Some(_)) => Err("--interface: a UDP socket has none; add --link packet".to_owned()),
            (Link::Packet, interface) => Ok(At::Packet(addr, interface)),
        }
    }
}

/// Slots of a bucket.
fn slots(text: &str) -> Result<u32, String> {
    let known = text.parse().ok().filter(|slots| [4, 8, 16].contains(slots));
    known.ok_or_else(|| "write 4, 8 or 16".to_owned())
}

/// The index with this name.
fn index(text: &str) -> Result<Index, String> {
    let known = Index::ALL.iter().find(|(_, name)| *name == text).map(|(index, _)| *index);
    known.ok_or_else(|| "write salted or mixed".to_owned())
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let (at, tls) = args.setup.check(SETUP, "has all of the memory")?;
    let udp = args.udp_addr.unwrap_or(SocketAddr::new(at.ip(), UDP_PORT));
    let store_bytes = args.store.unwrap_or(args.bytes / 2);
    if args.bytes == 0 {
        return Err("--bytes: 0 bytes are no memory; write at least \"1 B\"".to_owned());
    }
    let lend = args.lend.as_deref().map(Key::read).transpose().map_err(|error| format!("--lend: {error}"))?;
    let default = Clio::new(Vec::new(), args.bytes);
    let clio = Clio {
        page_sizes: args.page_size.map_or(default.page_sizes, |size| vec![size]),
        slots: args.slots,
        spare_percent: args.spare_percent,
        index: args.index,
        processes_max: args.processes,
        ..default
    };
    let board = Config { fence_all: args.fence_all, ..clio.board(args.bytes) };
    let loss = Loss { per_mille: args.lose_per_mille, seed: clock::wall_ns() };
    let offered = Offered {
        board,
        bytes: args.bytes,
        store_bytes,
        sizes: "--bytes, --store, --page-size",
        packets: args.link.at(udp, args.interface)?,
        at,
        tls,
        loss,
        lend,
        tenants: args.tenants,
    };
    serve(offered, args.telling.open()?, Events::new(args.json), &json!({}), "")
}

/// A board's offer, and its address.
pub(in crate::cmd) struct Offered {
    /// Its parameters.
    pub(in crate::cmd) board: Config,
    pub(in crate::cmd) bytes: u64,
    pub(in crate::cmd) store_bytes: u64,
    /// Where a user writes these.
    pub(in crate::cmd) sizes: &'static str,
    /// Where it takes packets.
    pub(in crate::cmd) packets: At,
    /// Where clients join.
    pub(in crate::cmd) at: SocketAddr,
    pub(in crate::cmd) tls: Option<ServerTls>,
    /// Packets that it loses on purpose.
    pub(in crate::cmd) loss: Loss,
    /// Key of the services to which the memory is lent in extents, too.
    pub(in crate::cmd) lend: Option<Key>,
    /// Hosts that share it.
    pub(in crate::cmd) tenants: u64,
}

/// Serves a board until a signal ends it. `fields` of the event "ready" and `name` are the caller's.
pub(in crate::cmd) fn serve(
    offered: Offered,
    mut outlet: Outlet,
    events: Events,
    fields: &Value,
    name: &str,
) -> Result<(), String> {
    let Offered { board, bytes, store_bytes, sizes, packets, at, tls, loss, lend, tenants } = offered;
    let signals = Signals::take().map_err(text)?;
    let mut server = Server::open_at(&packets, board, store_bytes).map_err(|error| match error {
        BoardError::Config(_) => format!("{sizes}: {error}"),
        error => error.to_string(),
    })?;
    server.lose(loss);
    let ends = server.watch(&signals).map_err(text)?;
    let offer = server.offer().map_err(text)?;
    let udp_port = offer.udp_port;
    let service = Service::new(server.handle(), offer, tenants);
    let desk = service.desk();
    let runtime = runtime()?;
    let listener = runtime.block_on(pool::bind(at)).map_err(text)?;
    let bound = listener.local_addr().map_err(text)?;
    let mut serving = runtime.spawn(async move {
        match lend {
            Some(key) => serve_board(listener, service, key, tls.as_ref()).await,
            None => service::serve(listener, service, tls.as_ref()).await,
        }
    });
    let mut ready = fields.clone();
    ready["bytes"] = bytes.into();
    ready["store_bytes"] = store_bytes.into();
    ready["listens"] = bound.to_string().into();
    ready["udp_port"] = udp_port.into();
    let name = if name.is_empty() { String::new() } else { format!(" {name}:") };
    events.report(
        "ready",
        ready,
        format_args!("ready{name} {} at {bound}, packets at port {udp_port}", show_size(bytes)),
    );
    let ended = loop {
        server.turn(Some(clock::now() + TURN)).map_err(text)?;
        outlet.update(clock::now(), || counts(&mut server, &desk).exposition("clio"));
        match server.ready(ends).then(|| signals.next()).flatten() {
            Some(Signal::Report) => outlet.write(|| counts(&mut server, &desk)).map_err(text)?,
            Some(Signal::End) => break Ok(()),
            None => {}
        }
        if serving.is_finished() {
            break runtime.block_on(&mut serving).map_err(text).and_then(|served| served.map_err(text));
        }
    };
    let told = outlet.write(|| counts(&mut server, &desk)).map_err(text);
    ended.and(told)
}

fn counts(server: &mut Server, desk: &Desk) -> Counts {
    server.counts().of("entrance", desk.counts())
}
