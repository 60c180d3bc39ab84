//! `p4rack cowbird store`.

use super::NO_ICRC;
use super::in_switch::InSwitch;
use crate::cmd::adapter::text;
use p4rack_codegen::rack::Mix;
use p4rack_fabric::remote::Way;
use p4rack_lab::log_store::{self, MixFigures, Setup};
use p4rack_lab::rows::Rows;
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
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = crate::numbers::within::<u32>(100..=10_000_000))]
    records: u32,
    /// Local memory in percent of the records' room; the rest of the log is in remote memory
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = crate::numbers::within::<u32>(1..=100))]
    memory_percent: u32,
    /// Operations under way, for ways that permit more than one
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = crate::numbers::within::<u16>(1..=128))]
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
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn value(text: &str) -> Result<u32, String> {
    match crate::numbers::number::<u32>(text) {
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
    for way in Way::OF_COWBIRD.iter().copied().filter(|way| args.switch || *way != Way::COWBIRD_P4) {
        eprintln!("measuring {}", way.name());
        let figures = match way {
            way if way == Way::COWBIRD_P4 => in_switch(&setup),
            _ => log_store::run(way, &setup).map_err(text),
        };
        let figures = figures.map_err(|error| format!("{}: {error}", way.name()))?;
        all.extend(figures);
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&all).expect("numbers and names are JSON")),
        false => println!("{}{NO_ICRC}", table(&all)),
    }
    let sum = |of: fn(&MixFigures) -> u64| all.iter().map(of).sum::<u64>();
    match (sum(|figures| figures.mix.lost), sum(|figures| figures.mix.wrong)) {
        (0, 0) => Ok(()),
        (lost, wrong) => Err(format!("{lost} operations or records were lost, {wrong} values were wrong")),
    }
}

fn in_switch(setup: &Setup) -> Result<Vec<MixFigures>, String> {
    log_store::run_in_switch(InSwitch::between_two()?, setup).map_err(text)
}

fn table(all: &[MixFigures]) -> String {
    let head = [
        "way",
        "mix",
        ">operations/s",
        ">p50, µs",
        ">p99, µs",
        ">cold %",
        ">thread, µs each",
        ">adapter",
        ">engine",
        ">pool",
    ];
    let mut rows = Rows::new(&head);
    for figures in all {
        let us = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.2}", ns / 1e3));
        let mix = &figures.mix;
        rows.push(vec![
            figures.scheme.name().to_owned(),
            mix.mix.clone(),
            format!("{:.0}", mix.ops_per_s),
            format!("{:.1}", mix.p50_us),
            format!("{:.1}", mix.p99_us),
            mix.cold_share.map_or("–".to_owned(), |share| format!("{:.1}", 100.0 * share)),
            us(mix.thread_cpu_ns),
            us(figures.adapter_cpu_ns),
            us(figures.engine_cpu_ns),
            us(figures.pool_cpu_ns),
        ]);
    }
    rows.text()
}
