//! `p4rack sim run` and `sweep` for Cowbird racks.

use super::files::{read_json, result_path, write};
use super::run::RunArgs;
use super::sweep::{self, Item, SweepArgs, run_all};
use crate::output::OutputFile;
use p4rack_lab::rows::Rows;
use p4rack_sim::{CowbirdExperiment, CowbirdOutcome, Sweep, TaskResult, run_cowbird};
use serde_json::{Value, json};

/// Runs the file if it describes such a rack. Returns whether all checks passed.
pub fn run(args: &RunArgs) -> Result<Option<bool>, String> {
    let name = args.file.display().to_string();
    // What can't be read is reported by whoever reads it next.
    let text = std::fs::read_to_string(&args.file).unwrap_or_default();
    if !CowbirdExperiment::is_one(&text) {
        return Ok(None);
    }
    if args.trace_message.is_some() || !args.pcap.is_empty() || args.threads > 1 {
        return Err(format!(
            "{name}: Cowbird racks run on one thread and are not captured; leave out --threads, --pcap and --trace-message"
        ));
    }
    let json = match &args.json {
        Some(Some(path)) => Some(OutputFile::open("--json", path)?),
        _ => None,
    };
    let mut experiment = CowbirdExperiment::parse(&text, &name).map_err(|error| error.to_string())?;
    if let Some(seed) = args.seed {
        experiment.spec.seed = seed;
    }
    let ran = |experiment| run_cowbird(experiment).map_err(|error| format!("{name}: {error}"));
    let mut outcome = ran(&experiment)?;
    if args.twice {
        let again = ran(&experiment)?;
        if json!(again) != json!(outcome) {
            outcome.problems.push(format!("a second run differs: {} and {}", outcome.digest, again.digest));
        }
    }
    let pretty = format!("{:#}", json!(outcome));
    if let Some(file) = json {
        file.write(pretty.as_bytes())?;
    }
    match &args.json {
        Some(None) => println!("{pretty}"),
        Some(Some(_)) => {}
        None => print!("{}", text_of(&outcome)),
    }
    for problem in &outcome.problems {
        eprintln!("check failed: {problem}");
    }
    Ok(Some(outcome.problems.is_empty()))
}

/// Runs tasks without a result, and prints a table of all, if the sweep's base is such a rack. Returns whether all checks
/// passed.
pub fn sweep(args: &SweepArgs) -> Result<Option<bool>, String> {
    if !sweep::base_of(&args.file).is_some_and(|base| CowbirdExperiment::is_one(&base)) {
        return Ok(None);
    }
    let sweep: Sweep<CowbirdExperiment> = sweep::read(&args.file)?;
    let items: Vec<Item> = sweep.tasks.iter().map(|task| Item::of(&task.id, &task.settings)).collect();
    let work = |nth: usize| {
        let task = &sweep.tasks[nth];
        let outcome = run_cowbird(&task.experiment).map_err(|error| format!("{}: {error}", task.id))?;
        let result = TaskResult {
            id: &task.id,
            sweep: &sweep.name,
            settings: &task.settings,
            ratios: sweep.ratios_of(task),
            outcome: &outcome,
        };
        write(&result_path(&args.out_dir, &task.id), format!("{:#}", json!(result)).as_bytes())?;
        Ok(outcome.problems.is_empty())
    };
    let Some(failed) = run_all(args, (&sweep.name, "report"), &items, work)? else { return Ok(Some(true)) };
    let mut rows = Rows::new(&[
        "settings",
        "scheme",
        ">Mops",
        ">p50 µs",
        ">p99 µs",
        ">calls %",
        ">ns a record",
        ">engine %",
        ">fullest link %",
        ">TCP Gb/s",
        ">wrong",
        ">lost",
    ]);
    for task in &sweep.tasks {
        let path = result_path(&args.out_dir, &task.id);
        // Not chosen, or left to another machine.
        if !path.exists() {
            continue;
        }
        rows.push(row(sweep.label(task), &read_json(&path)?["outcome"]));
    }
    println!("\n{}", rows.text());
    Ok(Some(failed == 0))
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path: &str, scale: f64, decimals: usize| match outcome.pointer(path).and_then(Value::as_f64)
    {
        Some(value) => format!("{:.decimals$}", value * scale),
        None => "–".to_owned(),
    };
    // Of no request there is no latency.
    let latency = |path: &str| match outcome.pointer("/latency_ns/count").and_then(Value::as_u64) {
        Some(0) | None => "–".to_owned(),
        _ => number(path, 1e-3, 2),
    };
    vec![
        settings,
        outcome["scheme"].as_str().unwrap_or_default().to_owned(),
        number("/mops", 1.0, 2),
        latency("/latency_ns/p50"),
        latency("/latency_ns/p99"),
        number("/communication_share", 100.0, 0),
        number("/communication_ns", 1.0, 0),
        number("/engine_share", 100.0, 0),
        number("/fullest_link", 100.0, 0),
        number("/competing_gbps", 1.0, 2),
        number("/wrong", 1.0, 0),
        number("/lost", 1.0, 0),
    ]
}

fn text_of(outcome: &CowbirdOutcome) -> String {
    let mut text = format!(
        "{}: {}, {} threads, records of {} B, seed {}, {:.3} ms measured, {} frame-hops\n",
        outcome.name,
        outcome.scheme,
        outcome.threads,
        outcome.record_bytes,
        outcome.seed,
        outcome.measured_s * 1e3,
        outcome.frame_hops
    );
    text += &format!(
        "probes         {:.2} million/s, {} in all, {} of remote records\n",
        outcome.mops, outcome.probes, outcome.remote
    );
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    text += &format!(
        "threads' time  {} in calls for remote memory, of that {} waiting\n",
        percent(outcome.communication_share),
        percent(outcome.waiting_share)
    );
    if let Some(ns) = outcome.communication_ns {
        let us = |ns: u64| ns as f64 / 1e3;
        let latency = &outcome.latency_ns;
        text += &format!("  a record     {ns:.1} ns in calls\n");
        text += &format!(
            "latency µs     min {:.2}, p50 {:.2}, p99 {:.2}, max {:.2}\n",
            us(latency.min),
            us(latency.p50),
            us(latency.p99),
            us(latency.max)
        );
    }
    for (host, share) in &outcome.links {
        text +=
            &format!("link of {host:<8}{} sent, {} received\n", percent(share.sent), percent(share.received));
    }
    if let Some(gbps) = outcome.competing_gbps {
        text += &format!("competing TCP  {gbps:.2} Gb/s\n");
    }
    if let Some(share) = outcome.engine_share {
        text += &format!("engine         {} of its cores' time\n", percent(share));
    }
    text += &format!(
        "checks         {} wrong, {} lost, {} failed; links lost {} frames, {} packets sent again\n",
        outcome.wrong, outcome.lost, outcome.failed, outcome.lost_frames, outcome.repeated
    );
    for (reason, count) in &outcome.drops {
        text += &format!("  dropped      {count} {reason}\n");
    }
    let mut papers = Rows::new(&["figure", ">paper", ">here", "source"]);
    for compared in &outcome.paper {
        let ours = compared.ours.map_or("none".to_owned(), |ours| format!("{ours:.3}"));
        let (figure, source) = (compared.figure.clone(), compared.source.clone());
        papers.push(vec![figure, compared.paper.to_string(), ours, source]);
    }
    if !papers.is_empty() {
        text += &format!("\n{}", papers.text());
    }
    text += &format!("digest {}\n", outcome.digest);
    text
}
