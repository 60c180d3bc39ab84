//! `p4rack bench sim`: cost of a frame's way through the simulated rack.

use p4rack_netdev::clock;
use p4rack_sim::{Experiment, run};
use serde::Serialize;
use std::process::ExitCode;

/// Arguments of `p4rack bench sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Simulated time of each speed measurement, milliseconds
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    simulated_ms: u64,
    /// Measurements of each kind; reports the median and the best, which is the least disturbed
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Simulation speed of one scheme.
#[derive(Debug, Serialize)]
struct Speed {
    scheme: &'static str,
    /// Frames that passed through the switch.
    frame_hops: u64,
    /// Median processor time, including translation of the program and all checks.
    cpu_s: f64,
    hops_per_s: f64,
    ns_per_hop: f64,
    /// Frame-hops per second of the fastest measurement.
    best_hops_per_s: f64,
}

#[derive(Debug, Serialize)]
struct Results {
    speed: Vec<Speed>,
    /// Processor time of the incast of 6 KB bursts for 10 ms, from parsing to results.
    incast_10_ms_cpu_s: f64,
    /// Maximum resident memory after a tenth of the simulated time, and after all of it.
    short_run_peak_bytes: Option<u64>,
    long_run_peak_bytes: Option<u64>,
}

/// Runs the command.
pub fn run_bench(args: &Args) -> ExitCode {
    match measure(args) {
        Ok(results) if args.json => {
            println!("{}", serde_json::to_string_pretty(&results).expect("a struct of numbers is JSON"));
            ExitCode::SUCCESS
        }
        Ok(results) => {
            println!("{}", text(args, &results));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Four of six hosts send bursts of 6000 bytes to a fifth as fast as they can.
fn incast(kind: &str, simulated_ms: u64) -> Result<Experiment, String> {
    let duration_us = simulated_ms * 1_000;
    let text = format!(
        "name = \"bench\"\nduration_us = {duration_us}\nwarmup_us = 1000\nsample_us = 1000\n[rack]\nhosts = 6\n\
         [scheme]\nkind = \"{kind}\"\nin_flight = 3\n[[traffic]]\nname = \"incast\"\npattern = \"incast\"\n\
         senders = [\"h2\", \"h3\", \"h4\", \"h5\"]\nsize = 6000\narrivals = \"saturate\"\nflows = 12\n"
    );
    Experiment::parse(&text, "bench").map_err(|error| error.to_string())
}

/// Processor time of a run in seconds, and its frame-hops.
fn timed(experiment: &Experiment) -> Result<(f64, u64), String> {
    let before = clock::thread_cpu();
    let (outcome, _) = run(experiment, None).map_err(|error| error.to_string())?;
    if let Some(problem) = outcome.problems.first() {
        return Err(format!("a check failed: {problem}"));
    }
    Ok(((clock::thread_cpu() - before).as_secs_f64(), outcome.frame_hops))
}

fn measure(args: &Args) -> Result<Results, String> {
    let short = incast("pl2-clock", (args.simulated_ms / 10).max(2))?;
    timed(&short)?;
    let short_run_peak_bytes = peak_bytes();
    let mut speed = Vec::new();
    for scheme in ["pl2-clock", "pl2-counter"] {
        let experiment = incast(scheme, args.simulated_ms)?;
        let mut rounds = (0..args.rounds).map(|_| timed(&experiment)).collect::<Result<Vec<_>, _>>()?;
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (cpu_s, frame_hops) = rounds[rounds.len() / 2];
        let hops_per_s = frame_hops as f64 / cpu_s;
        let best_hops_per_s = rounds[0].1 as f64 / rounds[0].0;
        let ns_per_hop = 1e9 / hops_per_s;
        speed.push(Speed { scheme, frame_hops, cpu_s, hops_per_s, ns_per_hop, best_hops_per_s });
    }
    let long_run_peak_bytes = peak_bytes();
    let incast_10_ms_cpu_s = timed(&incast("pl2-clock", 10)?)?.0;
    Ok(Results { speed, incast_10_ms_cpu_s, short_run_peak_bytes, long_run_peak_bytes })
}

fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn text(args: &Args, results: &Results) -> String {
    let mut text = format!(
        "{:<14}{:>14}{:>16}{:>10}{:>16}\n",
        "scheme", "frame-hops", "frame-hops/s", "ns/hop", "best, hops/s"
    );
    for one in &results.speed {
        text += &format!(
            "{:<14}{:>14}{:>16.0}{:>10.0}{:>16.0}\n",
            one.scheme, one.frame_hops, one.hops_per_s, one.ns_per_hop, one.best_hops_per_s
        );
    }
    let mb = |bytes: Option<u64>| bytes.map_or("?".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
    text += &format!(
        "\nincast of 6 KB bursts, 10 ms at 100 Gb/s: {:.2} s from text to results\n\
         memory: {} MB at most after {} ms simulated, {} MB after {} ms\n\
         (6 hosts, four to one; processor time of one thread, program's translation and all checks included; median of {})",
        results.incast_10_ms_cpu_s,
        mb(results.short_run_peak_bytes),
        (args.simulated_ms / 10).max(2),
        mb(results.long_run_peak_bytes),
        args.simulated_ms,
        args.rounds
    );
    text
}
