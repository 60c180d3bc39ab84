//! `p4rack cowbird hash`.

use super::NO_ICRC;
use super::in_switch::InSwitch;
use crate::cmd::adapter::text;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::hash::{self, Probes, RECORD_BYTES_MAX};
use p4rack_lab::rows::Rows;
use p4rack_netdev::netns;

/// Records that are measured unless others are asked for: the paper's.
const RECORDS: [u32; 4] = [8, 64, 256, 512];

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Bytes of a record, a multiple of 8; may be repeated [default: 8, 64, 256, 512]
    #[arg(long, value_parser = record)]
    bytes: Vec<u32>,
    /// Records; one of 20 is in local memory
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = crate::numbers::within::<u64>(20..=10_000_000))]
    records: u64,
    /// Duration of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = crate::cmd::finite)]
    seconds: f64,
    /// Measure Cowbird with the engine in the embedded switch, too
    #[arg(long)]
    switch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn record(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if (8..=RECORD_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(8) => Ok(bytes),
        _ => Err(format!("write a multiple of 8, up to {RECORD_BYTES_MAX}")),
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    netns::acquire().map_err(text)?;
    let records = if args.bytes.is_empty() { &RECORDS } else { args.bytes.as_slice() };
    let mut all = Vec::new();
    for bytes in records {
        eprintln!("measuring records of {bytes} B");
        for scheme in Way::OF_COWBIRD.iter().copied().filter(|way| *way != Way::COWBIRD_P4) {
            let probes = hash::run(scheme, args.records, *bytes, args.seconds)
                .map_err(|error| format!("{}, {bytes} B: {error}", scheme.name()))?;
            all.push(probes);
        }
        if args.switch {
            let probes = in_switch(args, *bytes)
                .map_err(|error| format!("{}, {bytes} B: {error}", Way::COWBIRD_P4.name()))?;
            all.push(probes);
        }
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&all).expect("numbers and names are JSON")),
        false => println!("{}{NO_ICRC}", table(&all)),
    }
    Ok(())
}

fn in_switch(args: &Args, bytes: u32) -> Result<Probes, String> {
    hash::run_in_switch(InSwitch::between_two()?, args.records, bytes, args.seconds).map_err(text)
}

fn table(all: &[Probes]) -> String {
    let head = [">record", "engine", ">probes/s", ">thread, µs a probe", ">adapter", ">engine", ">pool"];
    let mut rows = Rows::new(&head);
    for probes in all {
        let us = |ns: Option<f64>| ns.map_or("–".to_owned(), |ns| format!("{:.2}", ns / 1e3));
        rows.push(vec![
            format!("{} B", probes.record_bytes),
            probes.scheme.name().to_owned(),
            format!("{:.0}", probes.probes_per_s),
            us(Some(probes.thread_cpu_ns)),
            us(probes.adapter_cpu_ns),
            us(probes.engine_cpu_ns),
            us(probes.pool_cpu_ns),
        ]);
    }
    rows.text()
}
