//! `p4rack cache compare`: one policy against all others, on many traces.

use super::{block_bytes, in_parallel, load, names, ratio};
use p4rack_cache::simulate::{Load, Local, Outcome, PROFILES, Profile, Setup, simulate};
use p4rack_cache::{Definition, PARTS, POLICIES, find};
use p4rack_lab::rows::Rows;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `p4rack cache compare`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Traces, or recipes of synthetic ones (.toml)
    #[arg(required = true, value_name = "TRACE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    front: load::Front,
    /// The policy that is compared with the others
    #[arg(long, default_value = "runs", value_parser = names(POLICIES.iter().map(|one| one.name)))]
    policy: String,
    /// Another policy; may be repeated [default: all but those that know the future]
    #[arg(long = "with", value_name = "POLICY", value_parser = names(all().map(|one| one.name)))]
    others: Vec<String>,
    /// Compare `runs` with itself without each of its parts
    #[arg(long, conflicts_with_all = ["policy", "others"])]
    parts: bool,
    /// Local memory in percent of the touched pages, the policy's tables included; may be repeated
    #[arg(long, value_name = "PERCENT", default_values_t = [100, 75, 50, 25, 10],
        value_parser = crate::numbers::within::<u32>(1..=100))]
    local: Vec<u32>,
    /// Bytes of a block, a power of two from 64 to 4096 [default: each policy's own]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes)]
    block: Option<u32>,
    /// Run the others with blocks of these bytes, whatever their own; may be repeated: each policy with each size
    #[arg(long = "other-block", value_name = "BYTES", value_parser = block_bytes, conflicts_with_all = ["block", "parts"])]
    other_blocks: Vec<u32>,
    /// Latencies; may be repeated [default: all]
    #[arg(long = "profile", value_parser = names(PROFILES.iter().map(|one| one.name)))]
    profiles: Vec<String>,
    /// The host's share of local memory, for policies with two tiers
    #[arg(long, default_value_t = 30, value_parser = crate::numbers::within::<u32>(0..=90))]
    host_percent: u32,
    /// Host and device are one memory with the host's latency; `runs` chooses the split from the given one on
    #[arg(long)]
    one_memory: bool,
    /// Print JSON: all outcomes
    #[arg(long)]
    json: bool,
}

/// All policies, and ours without its parts.
fn all() -> impl Iterator<Item = &'static Definition> {
    POLICIES.iter().chain(PARTS)
}

/// The outcomes of all policies in one setting; the policy that is compared is the first.
#[derive(Debug, Serialize)]
struct Cell {
    profile: &'static str,
    trace: String,
    local_percent: u32,
    outcomes: Vec<Of>,
}

#[derive(Debug, Serialize)]
struct Of {
    policy: &'static str,
    block_bytes: u32,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Of {
    /// Its name, with the block's bytes if they are not the policy's own.
    fn label(&self) -> String {
        let own = find(self.policy).is_some_and(|policy| policy.block_bytes == self.block_bytes);
        if own { self.policy.to_owned() } else { format!("{}, {} B", self.policy, self.block_bytes) }
    }
}

/// Cells in which another policy is better by more than this are listed.
const NOTABLE: f64 = 1.1;

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let policies = policies(args);
    let loads = args.files.iter().map(|file| {
        let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Ok((name, args.front.load(file)?))
    });
    let loads: Vec<(String, Load)> = loads.collect::<Result<_, String>>()?;
    let chosen =
        |one: &&Profile| args.profiles.is_empty() || args.profiles.iter().any(|name| *name == one.name);
    let profiles: Vec<&Profile> = PROFILES.iter().filter(chosen).collect();
    let settings: Vec<(&Profile, &(String, Load), u32)> = profiles
        .iter()
        .flat_map(|profile| loads.iter().map(move |load| (*profile, load)))
        .flat_map(|(profile, load)| args.local.iter().map(move |percent| (profile, load, *percent)))
        .collect();
    let cells = in_parallel(&settings, |(profile, (trace, load), local_percent)| {
        let outcomes = policies.iter().map(|(policy, block_bytes)| {
            let block_bytes = *block_bytes;
            let setup = Setup {
                block_bytes,
                local: Local::Percent(*local_percent),
                host_percent: args.host_percent,
                one_memory: args.one_memory,
                pairs: 1,
            };
            let outcome = simulate(policy, load, &setup, profile)
                .map_err(|refused| format!("{trace}, policy {}: {refused}", policy.name))?;
            Ok(Of { policy: policy.name, block_bytes, outcome })
        });
        let (profile, trace, local_percent) = (profile.name, trace.clone(), *local_percent);
        Ok(Cell { profile, trace, local_percent, outcomes: outcomes.collect::<Result<_, String>>()? })
    });
    let cells: Vec<Cell> = cells.into_iter().collect::<Result<_, String>>()?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&cells).expect("structs of numbers are JSON"));
        return Ok(());
    }
    for profile in profiles {
        let of: Vec<&Cell> = cells.iter().filter(|cell| cell.profile == profile.name).collect();
        println!("latencies `{}`\n\n{}\n\n{}", profile.name, all_cells(&of), means(&of));
        println!("{}", better(&of));
    }
    Ok(())
}

/// The policy that is compared, and then the others, with the bytes of their blocks.
fn policies(args: &Args) -> Vec<(&'static Definition, u32)> {
    let others: Vec<&Definition> = if args.parts {
        PARTS.iter().collect()
    } else if args.others.is_empty() {
        POLICIES.iter().filter(|one| one.name != "belady").collect()
    } else {
        all().filter(|one| args.others.iter().any(|name| *name == one.name)).collect()
    };
    let first = POLICIES.iter().filter(|one| one.name == args.policy);
    let own = |one: &'static Definition| (one, args.block.unwrap_or(one.block_bytes));
    let others = others.into_iter().filter(|one| one.name != args.policy);
    if args.other_blocks.is_empty() {
        return first.chain(others).map(own).collect();
    }
    let sizes = |one: &'static Definition| args.other_blocks.iter().map(move |bytes| (one, *bytes));
    first.map(own).chain(others.flat_map(sizes)).collect()
}

fn ns(of: &Of) -> f64 {
    of.outcome.amat_ns
}

/// The best of the others.
fn best(cell: &Cell) -> Option<&Of> {
    cell.outcomes[1..].iter().min_by(|one, other| ns(one).total_cmp(&ns(other)))
}

fn change(ratio: f64) -> String {
    format!("{:+.1}", (ratio - 1.0) * 100.0)
}

fn all_cells(cells: &[&Cell]) -> String {
    let header =
        ["trace", ">local", ">AMAT ns", ">fetched", ">written", ">tables %", "best other", ">AMAT ns"];
    let mut rows = Rows::new(&header);
    for cell in cells {
        let (own, best) = (&cell.outcomes[0], best(cell));
        let local_bytes = own.outcome.local_bytes.max(1) as f64;
        rows.push(vec![
            cell.trace.clone(),
            format!("{} %", cell.local_percent),
            format!("{:.0}", ns(own)),
            format!("{:.2}", own.outcome.amplification),
            ratio(own.outcome.write_amplification),
            format!("{:.2}", own.outcome.tables_bytes as f64 * 100.0 / local_bytes),
            best.map_or_else(|| "–".into(), Of::label),
            best.map_or_else(String::new, |best| format!("{:.0}", ns(best))),
        ]);
    }
    rows.text()
}

/// Mean changes against each of the others.
fn means(cells: &[&Cell]) -> String {
    let first = cells.first().map_or(&[][..], |cell| &cell.outcomes[..]);
    let Some(own) = first.first() else { return String::new() };
    let mut rows = Rows::new(&["against", ">AMAT %", ">fetched %"]);
    for (at, other) in first.iter().enumerate().skip(1) {
        let mean = |figure: fn(&Outcome) -> f64| {
            let ratio = |cell: &&Cell| figure(&cell.outcomes[0].outcome) / figure(&cell.outcomes[at].outcome);
            change(cells.iter().map(ratio).sum::<f64>() / cells.len() as f64)
        };
        rows.push(vec![other.label(), mean(|one| one.amat_ns), mean(|one| one.amplification)]);
    }
    format!("mean changes of `{}` over {} cells\n\n{}", own.policy, cells.len(), rows.text())
}

/// Cells in which another policy is better by more than a tenth.
fn better(cells: &[&Cell]) -> String {
    let lines = cells.iter().filter_map(|cell| {
        let (own, best) = (&cell.outcomes[0], best(cell)?);
        let ratio = ns(own) / ns(best);
        let (trace, local) = (&cell.trace, cell.local_percent);
        (ratio > NOTABLE)
            .then(|| format!("{trace} at {local} %: {} % above {}\n", change(ratio), best.label()))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return "no cell is more than 10 % above the best other policy\n".into();
    }
    format!("cells more than 10 % above the best other policy\n\n{lines}")
}
