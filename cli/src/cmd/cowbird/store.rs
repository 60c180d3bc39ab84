//! `p4rack cowbird store`.

use super::in_switch::InSwitch;
use crate::cmd::adapter::text;
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Way;
use p4rack_lab::log_store::{self, MixFigures, Setup};
use p4rack_netdev::netns;
use p4rack_wire::Nanos;

/// Bytes of a value at most: some fit into a page.
const VALUE_BYTES_MAX: u32 = 4_096;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Bytes of a value, a multiple of 8
    #[arg(long, value_name = "BYTES", default_value = "248", value_parser = value)]
    value_bytes: u32,
    /// Records
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    records: u32,
    /// Part of the records' room that local memory has, in per cent; the rest of the log is in remote memory
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    memory_percent: u32,
    /// Operations under way, where more than one may be
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=128))]
    depth: u16,
    /// Measure Cowbird with the engine in the embedded switch, too
    #[arg(long)]
    switch: bool,
    /// YCSB's mix, A, B, C or F; may be repeated [default: all]
    #[arg(long, value_name = "MIX")]
    mix: Vec<Mix>,
    /// Duration of each mix
    #[arg(long, default_value_t = 1.0, value_parser = crate::cmd::finite)]
    seconds: f64,
    /// Seed of keys and operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn value(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if (8..=VALUE_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(8) => Ok(bytes),
        _ => Err(format!("write a multiple of 8, up to {VALUE_BYTES_MAX}")),
    }
}

/// Runs the command. Errors: nothing could be measured, or an operation was lost or its answer wrong.
pub(super) fn run(args: &Args) -> Result<(), String> {
    netns::acquire().map_err(text)?;
    let setup = Setup {
        records: args.records,
        value_bytes: args.value_bytes as usize,
        memory_percent: args.memory_percent.into(),
        depth: args.depth.into(),
        mixes: if args.mix.is_empty() { Mix::ALL.to_vec() } else { args.mix.clone() },
        each: Nanos((args.seconds.clamp(0.01, 600.0) * 1e9) as u64),
        seed: args.seed,
    };
    let mut all = Vec::new();
    for way in Way::ALL.into_iter().filter(|way| args.switch || *way != Way::CowbirdP4) {
        let figures = match way {
            Way::CowbirdP4 => in_switch(&setup),
            _ => log_store::run(way, &setup).map_err(text),
        };
        let figures = figures.map_err(|error| format!("{}: {error}", way.title()))?;
        if !args.json {
            figures.iter().for_each(show);
        }
        all.extend(figures);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&all).expect("numbers and names are JSON"));
    }
    let sum = |of: fn(&MixFigures) -> u64| all.iter().map(of).sum::<u64>();
    match (sum(|figures| figures.lost), sum(|figures| figures.wrong)) {
        (0, 0) => Ok(()),
        (lost, wrong) => Err(format!("{lost} operations or records were lost, {wrong} values were wrong")),
    }
}

fn in_switch(setup: &Setup) -> Result<Vec<MixFigures>, String> {
    log_store::run_in_switch(InSwitch::between_two()?, setup).map_err(text)
}

fn show(figures: &MixFigures) {
    print!(
        "{:<18} {}  {:>9.0} operations/s  p50 {:>7.1} µs  p99 {:>8.1} µs  cold {:>4.1} %  CPU each: thread {:>6.0} ns",
        figures.scheme.title(),
        figures.mix,
        figures.ops_per_s,
        figures.p50_us,
        figures.p99_us,
        100.0 * figures.cold_share,
        figures.thread_cpu_ns
    );
    let others = [
        ("adapter", figures.adapter_cpu_ns),
        ("engine", figures.engine_cpu_ns),
        ("pool", figures.pool_cpu_ns),
    ];
    for (name, ns) in others {
        if let Some(ns) = ns {
            print!(", {name} {ns:.0} ns");
        }
    }
    println!();
}
