//! `p4rack far top`.

use super::view::{Look, View};
use crate::output::{self, plain};
use p4rack_lab::state::Runtime;
use p4rack_memory::far;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `p4rack far top`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Show this one alone: the process of the program or of its `far run`, or the program's name
    #[arg(long, value_name = "PID|NAME")]
    pid: Option<String>,
    /// Interval in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
    every: f64,
    /// Measure once, over one interval, print a table and exit; the default if the output is not a terminal
    #[arg(long)]
    once: bool,
    /// Print JSON; includes --once
    #[arg(long)]
    json: bool,
}

/// Ending of the files' names.
const ENDING: &str = "far";

/// The file of a command's program.
pub(super) fn file(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.{ENDING}"))
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), String> {
    let runtime = Runtime::locate();
    let live = io::stdout().is_terminal() && !args.once && !args.json;
    let pause = Duration::from_secs_f64(args.every.clamp(0.05, 3600.0));
    if runtime.folder().exists() {
        // Files of another user would not be figures to trust.
        runtime.prepare().map_err(|error| error.to_string())?;
    }
    let mut skipped = BTreeSet::new();
    let mut look = || looks(runtime.folder(), args.pid.as_deref(), &mut skipped);
    let mut before = look()?;
    loop {
        std::thread::sleep(pause);
        let now = look()?;
        if let Some(wanted) = args.pid.as_deref().filter(|_| now.is_empty()) {
            return Err(format!("--pid: no program with far memory has process or name {wanted}"));
        }
        let view = View::new(&before, &now);
        if args.json {
            println!("{}", serde_json::to_string_pretty(&view).map_err(|error| error.to_string())?);
            return Ok(());
        }
        if !live {
            print!("{}", view.text());
            return Ok(());
        }
        print!("\x1b[2J\x1b[H{}\nCtrl-C ends\n", view.text());
        output::flush();
        before = now;
    }
}

/// The figures of all programs that run, by process. Removes files that a killed command has left, and names each file that it skips once.
fn looks(folder: &Path, wanted: Option<&str>, skipped: &mut BTreeSet<PathBuf>) -> Result<Vec<Look>, String> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| format!("{}: {error}", folder.display()))?,
    };
    let mut looks = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if is_left(&path) {
            // Another look may have removed it.
            let _ = std::fs::remove_file(&path);
        }
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        match one(&path) {
            Ok(Some(look)) if wanted.is_none_or(|wanted| look.is(wanted)) => looks.push(look),
            Ok(_) => {}
            // It may have ended since the folder was read.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let words = format!("warning: {}: {error}; skipped", path.display());
                if skipped.insert(path) {
                    eprintln!("{}", plain(&words));
                }
            }
        }
    }
    looks.sort_by_key(|look| look.about.pid);
    Ok(looks)
}

/// Whether this is a file without its name yet, of a command that has ended.
fn is_left(path: &Path) -> bool {
    let of_command = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
    of_command.is_some_and(|pid| far::unnamed(path) == path && !Path::new(&format!("/proc/{pid}")).exists())
}

fn one(path: &Path) -> io::Result<Option<Look>> {
    if !far::is_held(path)? {
        std::fs::remove_file(path)?;
        return Ok(None);
    }
    let (about, figures) = far::read(path)?;
    // Without figures the program has not begun.
    Ok((figures.at_ns > 0).then_some(Look { about, figures }))
}
