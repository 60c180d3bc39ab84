//! `p4rack sim faults`: EDM and Clio under faults, seed by seed.

use p4rack_codegen::scheme::edm::Mode;
use p4rack_lab::rows::Rows;
use p4rack_report::text;
use p4rack_sim::{FaultsOutcome, FaultsRack, run_clio_faults};
use p4rack_wire::Nanos;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Seeds that failed, as far as they are shown.
const SHOWN: usize = 10;

/// Arguments of `p4rack sim faults`.
#[derive(clap::Args, Debug)]
pub struct FaultsArgs {
    /// Subject of the faults
    #[arg(long, value_enum, default_value_t = Kind::Edm)]
    kind: Kind,
    /// The first seed
    #[arg(long, default_value_t = 0, value_parser = crate::numbers::number::<u64>)]
    first: u64,
    /// Number of seeds, each under every mode of EDM
    #[arg(long, default_value_t = 200, value_parser = crate::numbers::within::<u64>(1..=10_000_000))]
    seeds: u64,
    /// EDM: only this scheme, such as edm-matched
    #[arg(long)]
    scheme: Option<String>,
    /// EDM: delay of a resubmitted or recirculated frame until its next pass begins, in nanoseconds
    #[arg(long, default_value_t = 0, value_parser = crate::numbers::within::<u64>(..=1_000_000))]
    pass_ns: u64,
    /// EDM: links are granted without shares
    #[arg(long)]
    no_shares: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Subject of the faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Compute nodes, memory nodes and switches of EDM
    Edm,
    /// Compute nodes and boards of Clio
    Clio,
}

/// A scheme's name, and the function that runs a seed of it.
type Subject = (String, Box<dyn Fn(u64) -> FaultsOutcome + Sync>);

/// Sums over all seeds of a scheme.
#[derive(Default)]
struct Sum {
    runs: u64,
    operations: u64,
    unknown: u64,
    counters: BTreeMap<&'static str, u64>,
    failed: Vec<(u64, String)>,
}

/// The subjects that the options name.
fn subjects(args: &FaultsArgs) -> Result<Vec<Subject>, String> {
    if args.kind == Kind::Clio {
        if args.scheme.is_some() || args.pass_ns > 0 || args.no_shares {
            return Err("--kind clio: --scheme, --pass-ns and --no-shares are EDM's: leave them out".into());
        }
        return Ok(vec![("clio".to_owned(), Box::new(|seed| run_clio_faults(seed, None)))]);
    }
    let chosen = |mode: &Mode| args.scheme.as_ref().is_none_or(|scheme| mode.scheme().name() == *scheme);
    let modes: Vec<Mode> = Mode::ALL.into_iter().filter(chosen).collect();
    if modes.is_empty() {
        let known: Vec<String> = Mode::ALL.iter().map(|mode| mode.scheme().name().to_string()).collect();
        return Err(format!("--scheme: write one of {}", known.join(", ")));
    }
    let subject = |mode: Mode| -> Result<Subject, String> {
        let rack = if args.no_shares { FaultsRack::without_shares(mode) } else { FaultsRack::new(mode) };
        let rack =
            rack?.with_pass_delay(Nanos(args.pass_ns)).map_err(|error| format!("--pass-ns: {error}"))?;
        Ok((mode.scheme().name().to_string(), Box::new(move |seed| rack.run(seed, None))))
    };
    modes.into_iter().map(subject).collect()
}

/// Runs the seeds on all cores. Returns whether none failed.
pub fn faults(args: &FaultsArgs) -> Result<bool, String> {
    let subjects = subjects(args)?;
    let mut rows = Rows::new(&["scheme", ">seeds", ">operations", ">unknown", ">failed", "what happened"]);
    let (mut passed, mut sums) = (true, Vec::new());
    for (name, seed) in &subjects {
        let sum = run(seed, args);
        passed &= sum.failed.is_empty();
        sums.push(json!({
            "scheme": name, "seeds": sum.runs, "operations": sum.operations, "unknown": sum.unknown,
            "counters": sum.counters,
            "failed": sum.failed.iter().map(|(seed, why)| json!({ "seed": seed, "problem": why })).collect::<Vec<_>>(),
        }));
        let happened: Vec<String> = sum
            .counters
            .iter()
            .map(|(name, count)| format!("{} {}", text::count(*count), name.replace('_', " ")))
            .collect();
        rows.push(vec![
            name.clone(),
            sum.runs.to_string(),
            sum.operations.to_string(),
            sum.unknown.to_string(),
            sum.failed.len().to_string(),
            happened.join(", "),
        ]);
        for (seed, problem) in sum.failed.iter().take(SHOWN) {
            eprintln!("check failed: {name}, seed {seed}: {problem}");
        }
    }
    match args.json {
        true => println!("{:#}", json!({ "passed": passed, "schemes": sums })),
        false => print!("{}", rows.text()),
    }
    Ok(passed)
}

fn run(subject: &(dyn Fn(u64) -> FaultsOutcome + Sync), args: &FaultsArgs) -> Sum {
    let (next, threads) = (AtomicU64::new(0), thread::available_parallelism().map_or(1, usize::from));
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (next, done) = (&next, done.clone());
            scope.spawn(move || {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= args.seeds {
                        return;
                    }
                    let seed = args.first.wrapping_add(nth);
                    // The receiver outlives this scope.
                    let _ = done.send((seed, subject(seed)));
                }
            });
        }
        drop(done);
        let mut sum = Sum::default();
        for (seed, outcome) in results {
            sum.runs += 1;
            sum.operations += outcome.operations;
            sum.unknown += outcome.unknown;
            for (name, count) in outcome.counters {
                *sum.counters.entry(name).or_default() += count;
            }
            sum.failed.extend(outcome.problems.into_iter().next().map(|problem| (seed, problem)));
        }
        sum.failed.sort_unstable();
        sum
    })
}
