//! `p4rack cowbird engine`.

use crate::cmd::adapter::{Adapter, GrpcServer, Peers, Telling, Tls, runtime, text};
use crate::output::Events;
use p4rack_fabric::cowbird::Config;
use p4rack_hosts::cowbird::{Service, Spot, SpotConfig, serve};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::{Server, Station};
use p4rack_netdev::clock;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_wire::Nanos;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where compute nodes connect unless another address is given.
const SETUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9562);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pool: String,
    #[command(flatten)]
    tls: Tls,
    #[command(flatten)]
    setup: GrpcServer,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    telling: Telling,
    /// Responses that are sent to the compute node together: the paper's BATCH_SIZE
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = crate::numbers::within::<u16>(1..=1_024))]
    batch: u16,
    /// Entries that are read together with a probe of idle rings; 0: none
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = crate::numbers::within::<u16>(0..=64))]
    guess_entries: u16,
    /// Maximum probes of a set under way
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u16>(1..=16))]
    probes: u16,
    /// Microseconds between two probes of busy rings
    #[arg(long, value_name = "US", default_value_t = 20.0, value_parser = crate::cmd::finite)]
    probe_min_us: f64,
    /// Maximum microseconds between two probes of idle rings: the interval doubles up to it
    #[arg(long, value_name = "US", default_value_t = 1_000.0, value_parser = crate::cmd::finite)]
    probe_max_us: f64,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

fn nanos(us: f64) -> Nanos {
    // A wait of a second is longer than any sensible one.
    Nanos((us.clamp(0.001, 1e6) * 1e3) as u64)
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let (addr, tls) = args.setup.check(SETUP, "can have rings served")?;
    let members = args.peers.members()?;
    let mut outlet = args.telling.open()?;
    let signals = Signals::take().map_err(text)?;
    let config = Config {
        batch_reads: args.batch.into(),
        guess_entries: args.guess_entries.into(),
        probes_max: args.probes.into(),
        probe_min: nanos(args.probe_min_us),
        probe_max: nanos(args.probe_max_us.max(args.probe_min_us)),
        ..Config::default()
    };
    let config = match args.peers.rate_bps {
        Some(rate_bps) => config.on_link(rate_bps),
        None => config,
    };
    let (interface, adapter) = (&args.adapter.interface, args.adapter.config());
    let ip = args.adapter.ip;
    let mut spot = Spot::open(interface, ip, adapter.clone(), config, args.adapter.loss()).map_err(text)?;
    if let Some(rate_bps) = args.peers.rate_bps {
        spot.pace(rate_bps);
    }
    let station = Station { mac: spot.mac(), ip };
    let pool = Server { addr: args.pool, tls: args.tls.files() };
    let service = Service::new(spot.handle(), SpotConfig { station, adapter, pool, members });
    let desk = service.desk();
    let runtime = runtime()?;
    let listener = runtime.block_on(pool::bind(addr)).map_err(text)?;
    let bound = listener.local_addr().map_err(text)?;
    let mut serving = runtime.spawn(async move { serve(listener, service, tls.as_ref()).await });
    let events = Events::new(args.json);
    events.report(
        "ready",
        json!({ "ip": ip, "interface": interface, "setup": bound }),
        format_args!("ready {ip} on {interface} set-up {bound}"),
    );
    let ending = spot.watch(&signals).map_err(text)?;
    let ended = loop {
        spot.turn(Some(clock::now() + Nanos::from_millis(100))).map_err(text)?;
        outlet.update(clock::now(), || spot.counts().of("entrance", desk.counts()).exposition("cowbird"));
        match spot.ready(ending).then(|| signals.next()).flatten() {
            Some(Signal::Report) => {
                outlet.write(|| spot.counts().of("entrance", desk.counts())).map_err(text)?
            }
            Some(Signal::End) => break Ok(()),
            None => {}
        }
        if serving.is_finished() {
            break runtime.block_on(&mut serving).map_err(text).and_then(|served| served.map_err(text));
        }
    };
    let counts = spot.counts().of("entrance", desk.counts());
    let (counters, engine) = (spot.counters(), spot.engine_counters());
    events.report(
        "end",
        &counts,
        format_args!(
            "{} compute nodes, {} probes of which {} found something, {} reads in {} batches, {} writes, {} red blocks, {} \
             failed queue pairs\n{counts}",
            counters.tenants,
            engine.probes,
            engine.probes_useful,
            engine.reads,
            engine.batches,
            engine.writes,
            engine.reds,
            counters.failed_pairs
        ),
    );
    let told = outlet.write(|| counts).map_err(text);
    ended.and(told)
}
