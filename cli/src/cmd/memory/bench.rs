//! `p4rack memory bench`: how fast remote memory is.

use super::values::number;
use super::{Here, SchemeArgs, There, client, in_words};
use p4rack_codegen::Rack;
use p4rack_lab::memory::{self, Benchmark, LatencyFigures, Load, MemoryFigures};
use p4rack_lab::text;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `p4rack memory bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description with an [edm] table
    rack: PathBuf,
    /// Measure from this host, on which the command runs, instead of building the rack
    #[arg(long, requires = "at")]
    name: Option<String>,
    /// With --name: interface to the switch
    #[arg(long, default_value = "eth0", requires = "name")]
    interface: String,
    /// With --name: host with the memory
    #[arg(long, value_name = "HOST", requires = "name")]
    at: Option<String>,
    /// With --name: key of the region
    #[arg(long, default_value_t = 1, requires = "name")]
    key: u32,
    /// With --name: address of bytes that may be overwritten, a multiple of eight
    #[arg(long, default_value = "0", value_parser = number, requires = "name")]
    address: u64,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// Bytes per read and write
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_400))]
    bytes: u32,
    /// Time for each figure, seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = crate::cmd::finite)]
    each: f64,
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
        let there = There { here, at, key: args.key, address: args.address, json: args.json };
        let (mut client, remote, _) = client(&there)?;
        let load = Load { remote, address: there.address, bytes: args.bytes, each };
        let figures = memory::measure(&mut client, load)
            .map_err(|error| there.failed("using", args.bytes as usize, &error))?;
        match args.json {
            true => println!("{}", json!(figures)),
            false => print!("{}", table(&figures, &[])),
        }
        return Ok(());
    }
    let rack = Rack::load(&args.rack).map_err(in_words)?;
    let rack = rack.on(args.scheme.arch.unwrap_or(rack.switch.arch));
    let scheme = args.scheme.scheme.unwrap_or_else(|| rack.scheme());
    let done = memory::bench(&rack, &args.rack, scheme, args.bytes, each, args.quiet).map_err(in_words)?;
    if args.json {
        println!("{}", json!(done));
        return Ok(());
    }
    let Benchmark { rack, scheme, client, server, rate_bps, memory, ping_pongs } = &done;
    println!(
        "{rack}, {scheme}: {client} uses the memory of {server} through the embedded switch, links of {}\n",
        text::rate(*rate_bps as f64)
    );
    print!("{}", table(memory, ping_pongs));
    Ok(())
}

/// Figures of memory, and ping-pongs with how many times as long memory takes.
fn table(figures: &MemoryFigures, ping_pongs: &[LatencyFigures]) -> String {
    let mut out = format!(
        "{:<16}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9}",
        format!("{} bytes", figures.bytes),
        "times",
        "min",
        "p50",
        "p99",
        "p99.9",
        "unknown"
    );
    // Writing to a string cannot fail.
    for ping_pong in ping_pongs {
        let _ = write!(out, "  × {}", ping_pong.what);
    }
    for one in figures.latencies.iter().chain(ping_pongs) {
        let [min, p50, p99, p999] = [one.min_us, one.p50_us, one.p99_us, one.p999_us].map(text::micros);
        let _ = write!(
            out,
            "\n{:<16}{:>10}{min:>12}{p50:>12}{p99:>12}{p999:>12}{:>9}",
            one.what, one.operations, one.unknown
        );
        for ping_pong in ping_pongs {
            let _ =
                write!(out, "{:>width$.2}", one.p50_us / ping_pong.p50_us, width = ping_pong.what.len() + 4);
        }
    }
    out.push('\n');
    for rate in &figures.rates {
        let per_s = text::count(rate.per_s as u64);
        let _ = writeln!(
            out,
            "{:<16}{per_s:>10} a second, {} at a time, {} unknown",
            rate.what, rate.at_once, rate.unknown
        );
    }
    out
}
