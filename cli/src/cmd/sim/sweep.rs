//! `p4rack sim sweep` and `merge`: many runs, on all cores or several machines.

use super::files::{read_json, result_path, results, with_traces, write};
use super::hostile;
use crate::output::{self, OutputFile};
use indicatif::{ProgressBar, ProgressStyle};
use p4rack_sim::{Sweep, Task, TaskResult};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arguments of `p4rack sim sweep`.
#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    /// The sweep (docs/sim.md shows one)
    file: PathBuf,
    /// Folder for results, one file per task; a task with a result is not run again
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// Print the ids and settings of tasks without running them
    #[arg(long)]
    list: bool,
    /// Only run this task: an id, or its number in the list from 0; may be repeated
    #[arg(long, value_name = "ID")]
    task: Vec<String>,
    /// Maximum tasks at once [default: all cores]
    #[arg(long)]
    jobs: Option<usize>,
}

/// Arguments of `p4rack sim merge`.
#[derive(clap::Args, Debug)]
pub struct MergeArgs {
    /// Folder of results
    dir: PathBuf,
    /// CSV file to write [default: DIR/results.csv]
    #[arg(long, value_name = "CSV")]
    csv: Option<PathBuf>,
}

/// Runs tasks without a result. Returns whether all checks passed.
pub fn sweep(args: &SweepArgs) -> Result<bool, String> {
    let sweep = load(&args.file)?;
    if args.list {
        for (number, task) in sweep.tasks.iter().enumerate() {
            println!("{number}\t{}\t{}", task.id, settings(task));
        }
        return Ok(true);
    }
    let chosen = chosen(args, &sweep)?;
    output::folder("--out-dir", &args.out_dir)?;
    let (done, open): (Vec<&Task>, Vec<&Task>) =
        chosen.into_iter().partition(|task| is_done(&result_path(&args.out_dir, task), task));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let jobs = args.jobs.unwrap_or(cores).clamp(1, 1_024).min(open.len().max(1));
    let bar = ProgressBar::new(open.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left  {msg}") {
        bar.set_style(style);
    }
    let (next, failed, errors) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(task) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bar.set_message(settings(task));
                    match run(&sweep, task, &args.out_dir) {
                        Ok(true) => {}
                        Ok(false) => _ = failed.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            let mut errors = errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                            errors.push(error);
                            // What failed for one task, such as a full disk, fails for all.
                            next.store(open.len(), Ordering::Relaxed);
                        }
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let errors = errors.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(error) = errors.first() {
        return Err(format!("{error}; finished tasks are kept, run the same command again to resume"));
    }
    let failed = failed.into_inner();
    println!(
        "{}: {} tasks run, {} were done before, {failed} failed a check; next: p4rack sim report {}",
        sweep.name,
        open.len(),
        done.len(),
        args.out_dir.display()
    );
    let compared = hostile::compare(&sweep, &args.out_dir)?;
    Ok(failed == 0 && compared)
}

fn load(path: &Path) -> Result<Sweep, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: can't be read: {error}"))?;
    let read = |base: &str| {
        let path = path.parent().unwrap_or(Path::new("")).join(base);
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("{name}: can't be read: {error}"))?;
        Ok((text, name))
    };
    let mut sweep = Sweep::parse(&text, &name, read).map_err(|error| error.to_string())?;
    for task in &mut sweep.tasks {
        if task.experiment.spec.traffic.iter().any(|traffic| traffic.trace.is_some()) {
            task.experiment = with_traces(task.experiment.clone(), path)?;
        }
    }
    Ok(sweep)
}

fn chosen<'a>(args: &SweepArgs, sweep: &'a Sweep) -> Result<Vec<&'a Task>, String> {
    if args.task.is_empty() {
        return Ok(sweep.tasks.iter().collect());
    }
    let find = |wanted: &String| {
        let by_id = sweep.tasks.iter().find(|task| task.id == *wanted);
        let by_number = || wanted.parse::<usize>().ok().and_then(|number| sweep.tasks.get(number));
        by_id.or_else(by_number).ok_or_else(|| format!("--task {wanted}: no such task; --list shows all"))
    };
    args.task.iter().map(find).collect()
}

fn settings(task: &Task) -> String {
    let settings: Vec<String> = task.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    settings.join(" ")
}

/// Whether the file is this task's complete result.
fn is_done(path: &Path, task: &Task) -> bool {
    read_json(path).is_ok_and(|result| result["id"] == task.id.as_str() && result["outcome"].is_object())
}

fn run(sweep: &Sweep, task: &Task, dir: &Path) -> Result<bool, String> {
    let (outcome, _) =
        p4rack_sim::run(&task.experiment, None).map_err(|error| format!("{}: {error}", task.id))?;
    let result = TaskResult {
        id: &task.id,
        sweep: &sweep.name,
        settings: &task.settings,
        ratios: sweep.ratios_of(task),
        outcome: &outcome,
    };
    let text = serde_json::to_string_pretty(&result).expect("structs of numbers and names are JSON");
    write(&result_path(dir, task), text.as_bytes())?;
    Ok(outcome.problems.is_empty())
}

/// Columns of the CSV: name, and path in a result.
const COLUMNS: [(&str, &str); 17] = [
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("goodput_gbps", "/outcome/goodput_gbps"),
    ("messages", "/outcome/traffic/0/done"),
    ("mean_ns", "/outcome/traffic/0/latency_ns/mean"),
    ("p50_ns", "/outcome/traffic/0/latency_ns/p50"),
    ("p99_ns", "/outcome/traffic/0/latency_ns/p99"),
    ("p999_ns", "/outcome/traffic/0/latency_ns/p999"),
    ("retransmissions", "/outcome/traffic/0/retransmissions"),
    ("frames_dropped", "/outcome/frames_dropped"),
    ("queue_max_bytes", "/outcome/switch/queue_max_bytes"),
    ("queue_p999_bytes", "/outcome/switch/queue_p999_bytes"),
    ("overlapping_grants", "/outcome/checks/overlapping_grants"),
    ("leaked_amount", "/outcome/checks/leaked_amount"),
    ("problems", "/outcome/problems"),
];

/// Merges all results into one table.
pub fn merge(args: &MergeArgs) -> Result<bool, String> {
    let path = args.csv.clone().unwrap_or_else(|| args.dir.join("results.csv"));
    let output = OutputFile::open("--csv", &path)?;
    let results = results(&args.dir)?;
    let mut keys: Vec<String> = Vec::new();
    for result in &results {
        for key in result["settings"].as_object().into_iter().flat_map(|settings| settings.keys()) {
            if key != "seed" && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
    }
    let mut csv = COLUMNS.map(|(name, _)| name.to_owned()).join(",");
    keys.iter().for_each(|key| csv += &format!(",{}", cell(key)));
    csv.push('\n');
    for result in &results {
        let value = |value: Option<&serde_json::Value>| match value {
            Some(serde_json::Value::String(text)) => cell(text),
            Some(serde_json::Value::Array(items)) => cell(
                &items.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join("; "),
            ),
            Some(other) if !other.is_null() => other.to_string(),
            _ => String::new(),
        };
        let mut row: Vec<String> = COLUMNS.iter().map(|(_, path)| value(result.pointer(path))).collect();
        row.extend(keys.iter().map(|key| value(result["settings"].get(key))));
        csv += &row.join(",");
        csv.push('\n');
    }
    output.write(csv.as_bytes())?;
    println!("{}: {} results", path.display(), results.len());
    Ok(true)
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
