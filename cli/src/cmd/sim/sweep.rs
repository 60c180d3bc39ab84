//! `p4rack sim sweep` and `merge`: many runs, on all cores or several machines.

use super::files::{check_folder, read_json, result_path, results, with_traces, write};
use super::{columns, hostile};
use crate::output::{self, OutputFile};
use indicatif::{ProgressBar, ProgressStyle};
use p4rack_codegen::kind::Kind;
use p4rack_sim::{Sweep, Task, TaskResult, Varied};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arguments of `p4rack sim sweep`.
#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    /// The sweep (docs/sim.md shows one)
    pub file: PathBuf,
    /// Folder for results, one file per task; a task with a result is not run again
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "list",
        default_value = ".",
        hide_default_value = true
    )]
    pub out_dir: PathBuf,
    /// Print the ids and settings of tasks without running them
    #[arg(long)]
    list: bool,
    /// Only run this task: an id, or its number in the list from 0; may be repeated
    #[arg(long, value_name = "ID")]
    task: Vec<String>,
    /// Maximum tasks at once [default: all cores]
    #[arg(long, value_parser = crate::numbers::number::<usize>)]
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
    let items: Vec<Item> = sweep.tasks.iter().map(|task| Item::of(&task.id, &task.settings)).collect();
    let work = |nth: usize| run(&sweep, &sweep.tasks[nth], &args.out_dir);
    let Some(failed) = run_all(args, (&sweep.name, "report"), &items, work)? else { return Ok(true) };
    let compared = hostile::compare(&sweep, &args.out_dir)?;
    Ok(failed == 0 && compared)
}

/// What distinguishes a task.
pub struct Item {
    id: String,
    settings: String,
}

impl Item {
    /// A task with this id and these settings.
    pub fn of(id: &str, settings: &BTreeMap<String, String>) -> Item {
        let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Item { id: id.to_owned(), settings: settings.join(" ") }
    }
}

/// Lists tasks, or runs those without a result, several at once: `work` runs the task at a position, and returns whether its
/// checks passed. `next` is what to do with the results. Returns how many failed, or `None` if they were only listed.
pub fn run_all(
    args: &SweepArgs,
    (name, next): (&str, &str),
    items: &[Item],
    work: impl Fn(usize) -> Result<bool, String> + Sync,
) -> Result<Option<usize>, String> {
    if args.list {
        for (number, item) in items.iter().enumerate() {
            println!("{number}\t{}\t{}", item.id, item.settings);
        }
        return Ok(None);
    }
    let chosen = chosen(args, items)?;
    output::folder("--out-dir", &args.out_dir)?;
    let (done, open): (Vec<usize>, Vec<usize>) =
        chosen.into_iter().partition(|nth| is_done(&args.out_dir, &items[*nth].id));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let jobs = args.jobs.unwrap_or(cores).clamp(1, 1_024).min(open.len().max(1));
    let bar = ProgressBar::new(open.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left  {msg}") {
        bar.set_style(style);
    }
    let (position, failed, errors) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(nth) = open.get(position.fetch_add(1, Ordering::Relaxed)) {
                    bar.set_message(items[*nth].settings.clone());
                    match work(*nth) {
                        Ok(true) => {}
                        Ok(false) => _ = failed.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            let mut errors = errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                            errors.push(error);
                            // What failed for one task, such as a full disk, fails for all.
                            position.store(open.len(), Ordering::Relaxed);
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
        "{name}: {} tasks run, {} were done before, {failed} failed a check; next: p4rack sim {next} {}",
        open.len(),
        done.len(),
        args.out_dir.display()
    );
    Ok(Some(failed))
}

/// Text of the experiment that a sweep names, if the file is a sweep and both can be read.
pub fn base_of(path: &Path) -> Option<String> {
    let base = p4rack_sim::base_of(&std::fs::read_to_string(path).ok()?)?;
    std::fs::read_to_string(path.parent()?.join(base)).ok()
}

/// Reads a sweep and the experiment that it varies.
pub fn read<E: Varied>(path: &Path) -> Result<Sweep<E>, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: can't be read: {error}"))?;
    let read = |base: &str| {
        let path = path.parent().unwrap_or(Path::new("")).join(base);
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("{name}: can't be read: {error}"))?;
        Ok((text, name))
    };
    Sweep::parse(&text, &name, read).map_err(|error| match Kind::of(&text) {
        Some(kind @ Kind::Experiment) => {
            format!("{name}: {}; {}", kind.instead_of("a sweep"), kind.command(&name))
        }
        _ => error.to_string(),
    })
}

fn load(path: &Path) -> Result<Sweep, String> {
    let mut sweep: Sweep = read(path)?;
    for task in &mut sweep.tasks {
        if task.experiment.spec.traffic.iter().any(|traffic| traffic.trace.is_some()) {
            task.experiment = with_traces(task.experiment.clone(), path)?;
        }
    }
    Ok(sweep)
}

fn chosen(args: &SweepArgs, items: &[Item]) -> Result<Vec<usize>, String> {
    if args.task.is_empty() {
        return Ok((0..items.len()).collect());
    }
    let find = |wanted: &String| {
        let by_id = items.iter().position(|item| item.id == *wanted);
        let by_number = || wanted.parse::<usize>().ok().filter(|number| *number < items.len());
        by_id.or_else(by_number).ok_or_else(|| format!("--task {wanted}: no such task; --list shows all"))
    };
    args.task.iter().map(find).collect()
}

/// Whether a folder holds the task's complete result.
fn is_done(dir: &Path, id: &str) -> bool {
    read_json(&result_path(dir, id)).is_ok_and(|result| result["id"] == id && result["outcome"].is_object())
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
    write(&result_path(dir, &task.id), text.as_bytes())?;
    Ok(outcome.problems.is_empty())
}

/// Merges all results into one table.
pub fn merge(args: &MergeArgs) -> Result<bool, String> {
    check_folder(&args.dir)?;
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
    let columns: &[(&str, &str)] = match () {
        () if results.iter().all(columns::is_of_memory) => columns::OF_MEMORY,
        () if results.iter().all(columns::is_of_cowbird) => columns::OF_COWBIRD,
        () => &columns::OF_FRAMES,
    };
    // A setting that the results repeat under its name is no second column.
    keys.retain(|key| {
        let path = columns.iter().find(|(name, _)| name == key).map(|(_, path)| *path);
        let repeats = |path| {
            results.iter().all(|result| text(result.pointer(path)) == text(result["settings"].get(key)))
        };
        !path.is_some_and(repeats)
    });
    let name = |key: &String| match columns.iter().any(|(name, _)| name == key) {
        true => cell(&format!("settings.{key}")),
        false => cell(key),
    };
    let names = columns.iter().map(|(name, _)| (*name).to_owned()).chain(keys.iter().map(name));
    let mut csv = names.collect::<Vec<_>>().join(",") + "\n";
    for result in &results {
        let columns = columns.iter().map(|(_, path)| text(result.pointer(path)));
        let row: Vec<String> =
            columns.chain(keys.iter().map(|key| text(result["settings"].get(key)))).collect();
        csv += &row.join(",");
        csv.push('\n');
    }
    output.write(csv.as_bytes())?;
    println!("{}: {} results", path.display(), results.len());
    Ok(true)
}

/// A value as a cell.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => cell(text),
        Some(Value::Array(items)) => {
            cell(&items.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join("; "))
        }
        Some(other) if !other.is_null() => other.to_string(),
        _ => String::new(),
    }
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
