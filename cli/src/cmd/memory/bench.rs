//! `p4rack memory bench`: how fast remote memory is.

use super::beside;
use super::cached::{self, Cache};
use super::{Here, SchemeArgs, Services, There, described, in_words, open, ways};
use p4rack_fabric::remote::Way;
use p4rack_lab::described::Described;
use p4rack_lab::memory::{self, Benchmark, LatencyFigures, Load, MemoryFigures};
use p4rack_lab::rows::Rows;
use p4rack_report::text;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `p4rack memory bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description
    rack: PathBuf,
    /// Measure from this host, on which the command runs, instead of building the rack
    #[arg(long, requires = "at")]
    name: Option<String>,
    /// With --name: interface to the rack [default: the one that has the host's address]
    #[arg(long, requires = "name")]
    interface: Option<String>,
    /// With --name: host with the memory
    #[arg(long, value_name = "HOST", requires = "name")]
    at: Option<String>,
    #[command(flatten)]
    services: Services,
    /// With --name, by EDM: key of the region
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>, requires = "name")]
    key: u32,
    /// With --name: address of bytes that may be overwritten, a multiple of eight
    #[arg(long, default_value = "0", value_parser = crate::numbers::number::<u64>, requires = "name")]
    address: u64,
    #[command(flatten)]
    scheme: SchemeArgs,
    #[command(flatten)]
    cache: Cache,
    /// Bytes per read and write
    #[arg(long, default_value_t = 64, value_parser = crate::numbers::within::<u32>(1..=1_400))]
    bytes: u32,
    /// Time for each figure, seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = crate::cmd::finite)]
    each: f64,
    /// Reads alone, one at a time
    #[arg(long)]
    reads: bool,
    /// Compare reads, one at a time, with those by this way, in turns; several times for several
    #[arg(long, value_name = "WAY", value_parser = ways(), conflicts_with_all = ["name", "scheme"])]
    beside: Vec<Way>,
    /// With --beside: turns, whose medians count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = crate::numbers::within::<u16>(1..=1_000))]
    rounds: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let each = Duration::try_from_secs_f64(args.each).map_err(|error| format!("--each: {error}"))?;
    if let (Some(name), Some(at)) = (args.name, args.at) {
        let here = Here { rack: args.rack, name, interface: args.interface, scheme: args.scheme };
        let (services, key, address, json) = (args.services, args.key, args.address, args.json);
        let there = There { here, at, services, key, address, extent: None, json };
        if let Some(local_bytes) = args.cache.local {
            return cached::run(&there, &args.cache, local_bytes);
        }
        let mut opened = open(&there)?;
        let load = Load { address: there.address, bytes: args.bytes, each, reads_only: args.reads };
        let figures = memory::measure(&mut opened, load)
            .map_err(|error| there.failed("using", args.bytes as usize, &error))?;
        match args.json {
            true => println!("{}", json!(figures)),
            false => print!("{}", table(&figures, &[])),
        }
        return Ok(());
    }
    let load =
        Load { address: 0, bytes: args.bytes, each, reads_only: args.reads || !args.beside.is_empty() };
    let rack = described(&args.rack, &args.scheme)?;
    let way = p4rack_memory::way(&rack, args.scheme.way).map_err(in_words)?;
    let file = Described::load(&args.rack, &args.scheme.settings.set).map_err(in_words)?;
    if !args.beside.is_empty() {
        let mut runs = vec![(way, rack)];
        for way in args.beside {
            let scheme = SchemeArgs {
                settings: args.scheme.settings.clone(),
                way: Some(way),
                scheme: None,
                arch: args.scheme.arch,
            };
            runs.push((way, described(&args.rack, &scheme)?));
        }
        return beside::run(&runs, file.path(), (load, args.rounds), args.quiet, args.json);
    }
    let run = (rack.scheme(), way);
    let done = memory::bench(&rack, file.path(), run, load, args.quiet).map_err(in_words)?;
    if args.json {
        println!("{}", json!(done));
        return Ok(());
    }
    let Benchmark { rack, way, client, server, rate_bps, memory, ping_pongs, .. } = &done;
    println!(
        "{rack}, {way}: {client} uses the memory of {server} through the embedded switch, links of {}\n",
        text::rate(*rate_bps as f64)
    );
    print!("{}", table(memory, ping_pongs));
    Ok(())
}

/// Figures of memory, and ping-pongs with how many times as long memory takes.
fn table(figures: &MemoryFigures, ping_pongs: &[LatencyFigures]) -> String {
    let first = format!("{} bytes", figures.bytes);
    let head = [first.as_str(), ">times", ">min", ">p50", ">p99", ">p99.9", ">unknown"];
    let ratios = ping_pongs.iter().map(|ping_pong| format!(">× {}", ping_pong.what));
    let mut rows = Rows::new(&head.map(str::to_owned).into_iter().chain(ratios).collect::<Vec<_>>());
    for one in figures.latencies.iter().chain(ping_pongs) {
        let mut row = vec![one.what.to_string(), one.operations.to_string()];
        row.extend([one.min_us, one.p50_us, one.p99_us, one.p999_us].map(text::micros));
        row.push(one.unknown.to_string());
        row.extend(ping_pongs.iter().map(|ping_pong| format!("{:.2}", one.p50_us / ping_pong.p50_us)));
        rows.push(row);
    }
    let mut rates = Rows::new(&["", ">a second", ">at a time", ">unknown"]);
    for rate in &figures.rates {
        let per_s = text::count(rate.per_s as u64);
        rates.push(vec![rate.what.to_string(), per_s, rate.at_once.to_string(), rate.unknown.to_string()]);
    }
    format!("{}\n{}", rows.text(), rates.text())
}
