//! `p4rack cache`: policies of a cache of remote memory, run on a trace.

mod compare;
pub(super) mod load;

use p4rack_cache::simulate::{Local, Outcome, PROFILES, Profile, Setup, simulate};
use p4rack_cache::{ARTIFACT, Definition, POLICIES, simulated};
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use serde::Serialize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Arguments of `p4rack cache`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the policies, the latency profiles and the models of a CPU's caches
    Policies,
    /// Run policies on a trace with equal bytes of local memory, and compare time and bytes moved
    Run(Box<Run>),
    /// Compare one policy with all others on many traces, sizes and latencies: means, and the cells where others are better
    Compare(Box<compare::Args>),
}

#[derive(clap::Args, Debug)]
struct Run {
    #[command(flatten)]
    source: load::Source,
    /// Policy; may be repeated [default: all that have equal bytes]
    #[arg(long = "policy", value_parser = names(simulated().map(|one| one.name)))]
    policies: Vec<String>,
    /// Local memory in percent of the touched pages, the policy's tables included; may be repeated
    #[arg(long, value_name = "PERCENT", default_values_t = [100, 75, 50, 25, 10],
        value_parser = crate::numbers::within::<u32>(1..=100))]
    local: Vec<u32>,
    /// Local memory in blocks without tables, as other simulators count; may be repeated
    #[arg(long, value_name = "BLOCKS", conflicts_with = "local", value_parser = crate::numbers::within::<u32>(1..))]
    blocks: Vec<u32>,
    /// Bytes of a block, a power of two from 64 to 4096 [default: each policy's own]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes)]
    block: Option<u32>,
    /// Latencies
    #[arg(long, default_value = "paper", value_parser = names(PROFILES.iter().map(|one| one.name)))]
    profile: String,
    /// Share of local memory that is the host's, for policies with two tiers
    #[arg(long, default_value_t = 30, value_parser = crate::numbers::within::<u32>(0..=90))]
    host_percent: u32,
    /// Host and device are one memory with the host's latency; `runs` chooses the split from the given one on
    #[arg(long)]
    one_memory: bool,
    /// Pairs of lists of UniMem's filter: 1, 2, 4, … 64
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::within::<u32>(1..=64))]
    pairs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One policy with one size of local memory.
#[derive(Clone, Debug, Serialize)]
struct Row {
    policy: &'static str,
    profile: &'static str,
    block_bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_percent: Option<u32>,
    #[serde(flatten)]
    outcome: Outcome,
}

pub(super) fn names(names: impl Iterator<Item = &'static str>) -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(names)
}

/// Parses the bytes of a block.
pub(super) fn block_bytes(text: &str) -> Result<u32, String> {
    let bytes = crate::numbers::number::<u32>(text)?;
    if bytes.is_power_of_two() && (64..=4096).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{bytes} is not 64, 128, 256, … 4096"))
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Policies => {
            list();
            ExitCode::SUCCESS
        }
        Command::Run(run) => report(run_policies(&run)),
        Command::Compare(args) => report(compare::run(&args)),
    }
}

fn report(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for (heading, policies) in [("policy", POLICIES), ("as in UniMem's artifact", ARTIFACT)] {
        let mut rows = Rows::new(&[heading, ">block", "what it is"]);
        for policy in policies {
            rows.push(vec![policy.name.into(), format!("{} B", policy.block_bytes), policy.about.into()]);
        }
        println!("{}\n", rows.text());
    }
    let mut rows = Rows::new(&["profile", "latencies"]);
    PROFILES.iter().for_each(|one| rows.push(vec![one.name.into(), one.about.into()]));
    println!("{}\n", rows.text());
    let mut rows = Rows::new(&["CPU", "caches"]);
    p4rack_trace::MODELS.iter().for_each(|one| rows.push(vec![one.name.into(), one.about.into()]));
    println!("{}", rows.text());
}

fn run_policies(run: &Run) -> Result<(), String> {
    let load = run.source.load()?;
    let profile = PROFILES.iter().find(|one| one.name == run.profile).ok_or("no such profile")?;
    let policies: Vec<&Definition> = if run.policies.is_empty() {
        POLICIES.iter().collect()
    } else {
        simulated().filter(|policy| run.policies.iter().any(|name| *name == policy.name)).collect()
    };
    let sizes: Vec<(Option<u32>, Local)> = if run.blocks.is_empty() {
        run.local.iter().map(|percent| (Some(*percent), Local::Percent(*percent))).collect()
    } else {
        run.blocks.iter().map(|blocks| (None, Local::Blocks(*blocks))).collect()
    };
    let cells: Vec<(&Definition, Option<u32>, Local)> = sizes
        .iter()
        .flat_map(|(percent, local)| policies.iter().map(move |policy| (*policy, *percent, *local)))
        .collect();
    let rows = in_parallel(&cells, |(policy, local_percent, local)| {
        let block_bytes = run.block.unwrap_or(policy.block_bytes);
        let (host_percent, one_memory, pairs) = (run.host_percent, run.one_memory, run.pairs);
        let setup = Setup { block_bytes, local: *local, host_percent, one_memory, pairs };
        let outcome = simulate(policy, &load, &setup, profile)
            .map_err(|refused| format!("policy {}: {refused}", policy.name))?;
        Ok(Row {
            policy: policy.name,
            profile: profile.name,
            block_bytes,
            local_percent: *local_percent,
            outcome,
        })
    });
    let rows: Vec<Row> = rows.into_iter().collect::<Result<_, String>>()?;
    if run.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("structs of numbers are JSON"));
    } else {
        println!("{}", table(&rows, profile, load.footprint_bytes(), load.fills()));
    }
    Ok(())
}

/// Does the work of all cells, in their order, on all processors.
fn in_parallel<C: Sync, R: Send>(cells: &[C], work: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(cells.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(cells.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { break };
                    let result = work(cell);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A ratio; a dash if there is none.
fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.2}"))
}

fn table(rows: &[Row], profile: &Profile, footprint_bytes: u64, fills: u64) -> String {
    let mut table = Rows::new(&[
        "policy",
        ">local",
        ">block",
        ">AMAT ns",
        ">misses %",
        ">host %",
        ">fetched",
        ">written",
        ">used %",
        ">tables %",
    ]);
    for row in rows {
        let outcome = &row.outcome;
        let percent = |part: u64, whole: u64| format!("{:.1}", part as f64 * 100.0 / whole.max(1) as f64);
        table.push(vec![
            row.policy.into(),
            row.local_percent.map_or_else(|| outcome.capacity.to_string(), |percent| format!("{percent} %")),
            format!("{} B", row.block_bytes),
            format!("{:.0}", outcome.amat_ns),
            percent(outcome.from_remote, fills),
            percent(outcome.from_host, fills),
            format!("{:.2}", outcome.amplification),
            ratio(outcome.write_amplification),
            outcome.used_share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", share * 100.0)),
            percent(outcome.tables_bytes, outcome.local_bytes),
        ]);
    }
    format!(
        "{} accesses behind the CPU's caches, {:.1} MB of touched pages, latencies `{}`\n\
         fetched, written: bytes moved for each byte of the touched or dirtied lines\n\
         used: share of the fetched bytes whose line of 64 B was accessed before its block left\n\n{}",
        count(fills),
        footprint_bytes as f64 / 1e6,
        profile.name,
        table.text()
    )
}
