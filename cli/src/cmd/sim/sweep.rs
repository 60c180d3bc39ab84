//! `p4rack sim sweep`: many runs, on all cores or several machines.

use super::files::{read_json, result_path, write};
use super::hostile;
use super::network::Shared;
use super::read;
use super::shown::{Shown, Table};
use crate::cmd::settings::Settings;
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use p4rack_lab::rows::Rows;
use p4rack_sim::{Sweep, TaskResult};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arguments of `p4rack sim sweep`.
#[derive(clap::Args, Debug)]
pub struct SweepArgs {
    /// The sweep (docs/sim.md shows one)
    pub file: PathBuf,
    #[command(flatten)]
    settings: Settings,
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
    /// Maximum tasks in parallel [default: all cores]
    #[arg(long, value_parser = crate::numbers::number::<usize>)]
    jobs: Option<usize>,
    /// Print JSON: with --list the tasks, else the tasks that ran, and all existing results
    #[arg(long)]
    json: bool,
}

/// Runs the tasks without a result of a sweep of experiments of one kind, whose text was read from the file, and prints a
/// table of all results. Returns whether all checks passed.
pub fn sweep_kind<E: Shown>(args: &SweepArgs, text: &str, name: &str) -> Result<bool, String> {
    let mut sweep: Sweep<E> = Sweep::parse(text, name, &args.settings.set, base_beside(&args.file))
        .map_err(|error| error.to_string())?;
    // Experiments name files beside themselves, also if the sweep stands elsewhere.
    let base = base_path(&args.file, text);
    let mut shared = Shared::default();
    for task in &mut sweep.tasks {
        task.experiment = task.experiment.clone().complete(&base, &mut shared)?;
    }
    let items: Vec<Item<'_>> = sweep.tasks.iter().map(|task| Item::of(&task.id, &task.settings)).collect();
    let work = |nth: usize| {
        let task = &sweep.tasks[nth];
        let mut outcome = task.experiment.run().map_err(|error| format!("{}: {error}", task.id))?;
        let result = TaskResult {
            kind: E::NAME,
            id: &task.id,
            sweep: &sweep.name,
            settings: &task.settings,
            ratios: sweep.ratios_of(task),
            outcome: &outcome,
        };
        let text = serde_json::to_string_pretty(&result).expect("structs of numbers and names are JSON");
        write(&result_path(&args.out_dir, &task.id), text.as_bytes())?;
        Ok(E::problems(&mut outcome).is_empty())
    };
    if args.list {
        list(&items, args.json);
        return Ok(true);
    }
    let ran = run_all(args, E::NAME, &items, work)?;
    let compared = hostile::compare(&sweep, &args.out_dir)?;
    if args.json {
        let results = sweep.tasks.iter().map(|task| result_path(&args.out_dir, &task.id));
        let results = results.filter(|path| path.exists()).map(|path| read_json(&path));
        let results = results.collect::<Result<Vec<Value>, _>>()?;
        println!(
            "{:#}",
            json!({
                "sweep": sweep.name, "run": ran.run, "done_before": ran.done_before, "failed": ran.failed,
                "attacks": compared.json, "results": results,
            })
        );
    } else {
        let (dir, Ran { run, done_before, failed }) = (args.out_dir.display(), &ran);
        println!(
            "{}: {run} tasks run, {done_before} were done before, {failed} failed a check; next: p4rack sim report {dir}",
            sweep.name
        );
        if let Some(table) = E::TABLE {
            println!("\n{}", rows(&sweep, table, &args.out_dir)?.text());
        }
        print!("{}", compared.text);
    }
    Ok(ran.failed == 0 && compared.kept)
}

/// A row for each task with a result.
fn rows<E: Shown>(sweep: &Sweep<E>, table: Table, dir: &Path) -> Result<Rows, String> {
    let mut rows = Rows::new(table.header);
    for task in &sweep.tasks {
        let path = result_path(dir, &task.id);
        // Not chosen, or left to another machine.
        if !path.exists() {
            continue;
        }
        let row = (table.row)(sweep.label(task), &read_json(&path)?["outcome"]);
        rows.push(row.map_err(|error| {
            format!("{}: outcome: {error}; delete the file and run it again", path.display())
        })?);
    }
    Ok(rows)
}

/// Path of the experiment that a sweep varies; the sweep's folder if its text names none.
pub(super) fn base_path(sweep: &Path, text: &str) -> PathBuf {
    sweep.parent().unwrap_or(Path::new("")).join(p4rack_sim::base_of(text).unwrap_or_default())
}

/// Returns a reader of the experiment that a sweep names, in the sweep's folder: text and name.
fn base_beside(sweep: &Path) -> impl FnOnce(&str) -> Result<(String, String), String> {
    let folder = sweep.parent().unwrap_or(Path::new("")).to_owned();
    move |base| {
        let path = folder.join(base);
        read(&path, "give the path of the experiment that the sweep varies")
    }
}

/// The settings that distinguish a task.
struct Item<'a> {
    id: String,
    settings: String,
    values: &'a BTreeMap<String, String>,
}

impl<'a> Item<'a> {
    /// A task with this id and these settings.
    fn of(id: &str, values: &'a BTreeMap<String, String>) -> Item<'a> {
        let settings: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Item { id: id.to_owned(), settings: settings.join(" "), values }
    }
}

/// Prints the tasks.
fn list(items: &[Item<'_>], as_json: bool) {
    if as_json {
        let tasks: Vec<Value> =
            items.iter().map(|item| json!({ "id": item.id, "settings": item.values })).collect();
        println!("{:#}", json!({ "tasks": tasks }));
        return;
    }
    // Fields for other programs: with tabs, and whole.
    for (number, item) in items.iter().enumerate() {
        println!("{number}\t{}\t{}", item.id, item.settings);
    }
}

/// Numbers of tasks.
struct Ran {
    run: usize,
    done_before: usize,
    /// Of those that were run, how many failed a check.
    failed: usize,
}

/// Runs the tasks without a result, several in parallel: `work` runs the task at a position, and returns whether its checks passed.
fn run_all(
    args: &SweepArgs,
    kind: &str,
    items: &[Item<'_>],
    work: impl Fn(usize) -> Result<bool, String> + Sync,
) -> Result<Ran, String> {
    let chosen = chosen(args, items)?;
    output::folder("--out-dir", &args.out_dir)?;
    let (done, open): (Vec<usize>, Vec<usize>) =
        chosen.into_iter().partition(|nth| is_done(&args.out_dir, kind, &items[*nth].id));
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
                            // A failure of one task, such as a full disk, would hit all.
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
    Ok(Ran { run: open.len(), done_before: done.len(), failed: failed.into_inner() })
}

fn chosen(args: &SweepArgs, items: &[Item<'_>]) -> Result<Vec<usize>, String> {
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
fn is_done(dir: &Path, kind: &str, id: &str) -> bool {
    let is_whole =
        |result: Value| result["kind"] == kind && result["id"] == id && result["outcome"].is_object();
    read_json(&result_path(dir, id)).is_ok_and(is_whole)
}
