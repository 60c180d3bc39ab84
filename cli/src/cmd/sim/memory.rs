//! `p4rack sim run` and `sweep` for racks of compute and memory nodes.

use super::files::{read_json, result_path, write};
use super::hostile;
use super::run::RunArgs;
use super::sweep::{self, Item, SweepArgs, run_all};
use crate::output::OutputFile;
use p4rack_lab::rows::Rows;
use p4rack_sim::{MemoryExperiment, MemoryOutcome, Sweep, Table1, TaskResult, run_memory};
use serde_json::json;
use std::path::Path;

/// Runs the file if it describes such a rack. Returns whether all checks passed.
pub fn run(args: &RunArgs) -> Result<Option<bool>, String> {
    let name = args.file.display().to_string();
    // What can't be read is reported by whoever reads it next.
    let text = std::fs::read_to_string(&args.file).unwrap_or_default();
    let (table, experiment) = (Table1::is_one(&text), MemoryExperiment::is_one(&text));
    if !table && !experiment {
        return Ok(None);
    }
    if args.trace_message.is_some() || !args.pcap.is_empty() {
        return Err(format!(
            "{name}: memory racks have no frames to capture; leave out --pcap and --trace-message"
        ));
    }
    if args.threads > 1 || table && (args.seed.is_some() || args.twice) {
        return Err(format!(
            "{name}: runs on one thread, and a table has no seed; leave out --threads, --seed and --twice"
        ));
    }
    let json = match &args.json {
        Some(Some(path)) => Some(OutputFile::open("--json", path)?),
        _ => None,
    };
    let (text, value, problems) = if table {
        let table = Table1::parse(&text, &name).map_err(|error| error.to_string())?;
        (table_text(&table), json!(table), table.problems)
    } else {
        let mut experiment = MemoryExperiment::parse(&text, &name).map_err(|error| error.to_string())?;
        if let Some(seed) = args.seed {
            experiment.spec.seed = seed;
        }
        let experiment = with_trace(experiment, &args.file)?;
        let mut outcome = run_memory(&experiment);
        if args.twice && json!(run_memory(&experiment)) != json!(outcome) {
            outcome.problems.push("a second run differs".to_owned());
        }
        (outcome_text(&outcome), json!(outcome), outcome.problems)
    };
    let pretty = format!("{value:#}");
    if let Some(file) = json {
        file.write(pretty.as_bytes())?;
    }
    match &args.json {
        Some(None) => println!("{pretty}"),
        Some(Some(_)) => {}
        None => print!("{text}"),
    }
    for problem in &problems {
        eprintln!("check failed: {problem}");
    }
    Ok(Some(problems.is_empty()))
}

fn with_trace(experiment: MemoryExperiment, beside: &Path) -> Result<MemoryExperiment, String> {
    let folder = beside.parent().unwrap_or(Path::new(""));
    experiment.read_trace(|name| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| {
            format!("{}: can't be read: {error}; the trace must be beside the experiment", path.display())
        })
    })
}

/// Runs tasks without a result, and prints a table of all, if the sweep's base is such a rack. Returns whether all checks
/// passed.
pub fn sweep(args: &SweepArgs) -> Result<Option<bool>, String> {
    if !sweep::base_of(&args.file).is_some_and(|base| MemoryExperiment::is_one(&base)) {
        return Ok(None);
    }
    let mut sweep: Sweep<MemoryExperiment> = sweep::read(&args.file)?;
    for task in &mut sweep.tasks {
        task.experiment = with_trace(task.experiment.clone(), &args.file)?;
    }
    let items: Vec<Item> = sweep.tasks.iter().map(|task| Item::of(&task.id, &task.settings)).collect();
    let work = |nth: usize| {
        let task = &sweep.tasks[nth];
        let outcome = run_memory(&task.experiment);
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
        ">published",
        ">golden",
        ">off",
        ">÷ alone",
        ">p99",
        ">alone ns",
        ">mean ns",
        ">p99 ns",
        ">added ns",
        ">±",
        ">queue B",
        ">carried",
        ">Mops",
        "",
    ]);
    for task in &sweep.tasks {
        let path = result_path(&args.out_dir, &task.id);
        // Not chosen, or left to another machine.
        if !path.exists() {
            continue;
        }
        let outcome: MemoryOutcome =
            serde_json::from_value(read_json(&path)?["outcome"].clone()).map_err(|error| {
                format!("{}: outcome: {error}; delete the file and run it again", path.display())
            })?;
        rows.push(row(sweep.label(task), &outcome));
    }
    println!("\n{}", rows.text());
    let kept = hostile::compare(&sweep, &args.out_dir)?;
    Ok(Some(failed == 0 && kept))
}

fn row(settings: String, outcome: &MemoryOutcome) -> Vec<String> {
    let maybe = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let off = outcome.published_slowdown.zip(outcome.golden).map(|(ours, golden)| ours / golden - 1.0);
    vec![
        settings,
        outcome.scheme.clone(),
        maybe(outcome.published_slowdown),
        maybe(outcome.golden),
        off.map_or(String::new(), |off| format!("{:+.1} %", off * 100.0)),
        format!("{:.3}", outcome.slowdown.mean),
        format!("{:.2}", outcome.slowdown_p99),
        format!("{:.1}", outcome.alone_ns),
        format!("{:.1}", outcome.latency_ns.mean.mean),
        format!("{:.1}", outcome.latency_ns.p99),
        format!("{:.1}", outcome.added_ns.mean.mean),
        maybe(outcome.added_ns.mean.within),
        outcome.queue_max_bytes.to_string(),
        or_dash(outcome.carried_load),
        or_dash(outcome.mops),
        match (outcome.lost, outcome.grows) {
            (0, false) => String::new(),
            (0, true) => "grows".to_owned(),
            (lost, _) => format!("{lost} lost"),
        },
    ]
}

/// A figure that every run should have, or that it is missing.
fn or_dash(figure: Option<f64>) -> String {
    figure.map_or("–".to_owned(), |figure| format!("{figure:.3}"))
}

fn table_text(table: &Table1) -> String {
    let mut rows = Rows::new(&["figure", ">paper", ">here", ">ratio", "source"]);
    for row in &table.rows {
        let (paper, ratio) = match row.paper_ns {
            Some(paper) => (format!("{paper:.2} ns"), format!("{:.3}", row.ours_ns / paper)),
            None => Default::default(),
        };
        let source = row.source.clone().unwrap_or_default();
        rows.push(vec![row.figure.clone(), paper, format!("{:.2} ns", row.ours_ns), ratio, source]);
    }
    let whys = table.rows.iter().filter_map(|row| Some(format!("{}: {}\n", row.figure, row.why.as_ref()?)));
    format!("{}\n\n{}{}", table.name, rows.text(), whys.collect::<String>())
}

fn outcome_text(outcome: &MemoryOutcome) -> String {
    let mut text = format!(
        "{}: {}, seed {}, {} of {} messages measured, {} lost, {} refused, offered load {:.3}{}\n",
        outcome.name,
        outcome.scheme,
        outcome.seed,
        outcome.measured,
        outcome.messages,
        outcome.lost,
        outcome.refused,
        outcome.offered_load,
        if outcome.grows { ", latency grows along the run" } else { "" }
    );
    if let Some(slowdown) = outcome.published_slowdown {
        let golden = outcome.golden.map_or(String::new(), |golden| format!(", published as {golden}"));
        text += &format!("published normalisation       {slowdown:.3}{golden}\n");
    }
    let within = |within: Option<f64>| within.map_or(String::new(), |within| format!(" ± {within:.3}"));
    text += &format!(
        "completion ÷ alone            {:.3}{}, p99 {:.2}\n",
        outcome.slowdown.mean,
        within(outcome.slowdown.within),
        outcome.slowdown_p99
    );
    let mut rows = Rows::new(&["ns", ">messages", ">mean", ">±", ">p50", ">p99", ">p99.9", ">max"]);
    let mut push = |name: String, measured: usize, times: &p4rack_sim::TimesNs| {
        let number = |value: f64| format!("{value:.1}");
        rows.push(vec![
            name,
            measured.to_string(),
            number(times.mean.mean),
            times.mean.within.map_or(String::new(), number),
            number(times.p50),
            number(times.p99),
            number(times.p999),
            number(times.max),
        ]);
    };
    push("completion".into(), outcome.measured, &outcome.latency_ns);
    push("  added to being alone".into(), outcome.measured, &outcome.added_ns);
    for (name, operation) in &outcome.operations {
        push(name.clone(), operation.measured, &operation.latency_ns);
        push("  added to being alone".into(), operation.measured, &operation.added_ns);
    }
    text += &format!("\n{}\n", rows.text());
    text += &format!("switch queue   {} B at most\n", outcome.queue_max_bytes);
    text += &format!("carried load   {}\n", or_dash(outcome.carried_load));
    text += &format!("operations     {} million per second\n", or_dash(outcome.mops));
    for paper in &outcome.paper {
        let bound = if paper.at_most { "at most " } else { "" };
        text +=
            &format!("{}: the paper {bound}{}, here {}\n", paper.figure, paper.paper, or_dash(paper.ours));
    }
    for (name, count) in &outcome.counters {
        text += &format!("  {name:<24}{count:>12}\n");
    }
    text
}
