//! `p4rack bench sim`: cost of a frame's way through the simulated rack.

use super::sim::threads;
use p4rack_lab::rows::Rows;
use p4rack_netdev::clock;
use p4rack_sim::{Experiment, run};
use p4rack_wire::quantiles;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `p4rack bench sim`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Simulated time of each speed measurement, milliseconds
    #[arg(long, default_value_t = 100, value_parser = crate::numbers::within::<u64>(2..=10_000))]
    simulated_ms: u64,
    /// Measurements of each kind; reports the median and the best, least disturbed one
    #[arg(long, default_value_t = 9, value_parser = crate::numbers::within::<u64>(1..=100))]
    rounds: u64,
    /// Also compare runs of large racks on one thread with the same runs on N threads, by elapsed time; needs N
    /// idle processors
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u64>(2..=threads::THREADS_MAX))]
    threads: Option<u64>,
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

/// One rack on one thread and on several.
#[derive(Debug, Serialize)]
struct Together {
    hosts: u64,
    traffic: &'static str,
    frame_hops: u64,
    /// Time that passed, the best of all rounds: on one thread and on all.
    one_thread_s: f64,
    all_threads_s: f64,
    /// How many times as fast.
    speedup: f64,
}

#[derive(Debug, Serialize)]
struct Results {
    speed: Vec<Speed>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    together: Vec<Together>,
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

/// Racks of 64 hosts and more, on one thread and on `threads`, in turns.
fn together(args: &Args, threads: u64) -> Result<Vec<Together>, String> {
    const KINDS: [(&str, &str); 2] = [
        ("permutation", "pattern = \"permutation\"\narrivals = \"saturate\"\nflows = 2"),
        ("all to all", "pattern = \"all-to-all\"\narrivals = \"poisson\"\nload = 0.5"),
    ];
    let mut results = Vec::new();
    for (hosts, (traffic, pattern)) in
        [64, 128, 256].into_iter().flat_map(|hosts| KINDS.map(|kind| (hosts, kind)))
    {
        // As many frames whatever the number of hosts.
        let duration_us = args.simulated_ms * 5_000 / hosts;
        let text = format!(
            "name = \"bench\"\nduration_us = {duration_us}\ndrain_us = 500\n[rack]\nhosts = {hosts}\nbuffer = \"32 MiB\"\n\
             [scheme]\nkind = \"pl2-clock\"\nin_flight = 3\nslot_headroom_percent = 2\n\
             [[traffic]]\nname = \"all\"\nsize = 6000\n{pattern}\n"
        );
        let experiment = Experiment::parse(&text, "bench").map_err(|error| error.to_string())?;
        let (mut one_thread_s, mut all_threads_s) = (f64::MAX, f64::MAX);
        let mut frame_hops = 0;
        for _ in 0..args.rounds.div_ceil(3) {
            let (alone_s, alone) = passed(&experiment, 1)?;
            let (together_s, digest) = passed(&experiment, threads)?;
            if alone != digest {
                return Err(format!(
                    "{hosts} hosts, {traffic}: {threads} threads show something else than one"
                ));
            }
            frame_hops = alone.1;
            one_thread_s = alone_s.min(one_thread_s);
            all_threads_s = together_s.min(all_threads_s);
        }
        let speedup = one_thread_s / all_threads_s;
        results.push(Together { hosts, traffic, frame_hops, one_thread_s, all_threads_s, speedup });
    }
    Ok(results)
}

/// Time that passes during a run, in seconds; its digest and frame-hops.
fn passed(experiment: &Experiment, threads: u64) -> Result<(f64, (String, u64)), String> {
    let before = Instant::now();
    let (outcome, _) = threads::run(experiment, None, threads)?;
    let passed_s = before.elapsed().as_secs_f64();
    match outcome.problems.first() {
        Some(problem) => Err(format!("{}: a check failed: {problem}", experiment.spec.name)),
        None => Ok((passed_s, (outcome.digest, outcome.frame_hops))),
    }
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
        let (cpu_s, frame_hops) = quantiles::of_sorted(&rounds, 0.5).ok_or("no round was measured")?;
        let hops_per_s = frame_hops as f64 / cpu_s;
        let best_hops_per_s = rounds[0].1 as f64 / rounds[0].0;
        let ns_per_hop = 1e9 / hops_per_s;
        speed.push(Speed { scheme, frame_hops, cpu_s, hops_per_s, ns_per_hop, best_hops_per_s });
    }
    let long_run_peak_bytes = peak_bytes();
    let incast_10_ms_cpu_s = timed(&incast("pl2-clock", 10)?)?.0;
    let together = args.threads.map_or(Ok(Vec::new()), |threads| together(args, threads))?;
    Ok(Results { speed, together, incast_10_ms_cpu_s, short_run_peak_bytes, long_run_peak_bytes })
}

/// Maximum resident memory of this process.
pub(super) fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn text(args: &Args, results: &Results) -> String {
    let mut speed = Rows::new(&["scheme", ">frame-hops", ">frame-hops/s", ">ns/hop", ">best, hops/s"]);
    for one in &results.speed {
        let figures =
            [one.hops_per_s, one.ns_per_hop, one.best_hops_per_s].map(|figure| format!("{figure:.0}"));
        speed.push([&[one.scheme.to_string(), one.frame_hops.to_string()][..], &figures[..]].concat());
    }
    let mut text = speed.text();
    if let Some(threads) = args.threads {
        let all = format!(">{threads} threads");
        let mut together =
            Rows::new(&[">hosts", "traffic", ">frame-hops", ">1 thread, hops/s", &all, ">speed-up"]);
        for one in &results.together {
            let hops = one.frame_hops as f64;
            together.push(vec![
                one.hosts.to_string(),
                one.traffic.to_string(),
                one.frame_hops.to_string(),
                format!("{:.0}", hops / one.one_thread_s),
                format!("{:.0}", hops / one.all_threads_s),
                format!("{:.2}", one.speedup),
            ]);
        }
        text += &format!("\n{}", together.text());
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
