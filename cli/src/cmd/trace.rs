//! `p4rack trace`: traces of memory accesses.

use super::cache::load::{Reading, cpu};
use super::cache::names;
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_trace::formats::{lackey, oracle, own};
use p4rack_trace::{Access, LINE_BYTES, MODELS, Memory, Summary, Watcher};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};

/// Arguments of `p4rack trace`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run a program under valgrind's Lackey and keep its accesses to data
    Record {
        /// File that gets the trace
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// The program and its arguments; its standard input is empty
        #[arg(required = true, last = true, value_name = "PROGRAM")]
        program: Vec<String>,
    },
    /// Footprint, density, reuse distances and lengths of runs
    Show {
        /// Trace, or recipe of a synthetic one (.toml)
        trace: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a trace in another format
    Convert {
        /// Trace, or recipe of a synthetic one (.toml)
        from: PathBuf,
        /// File that gets the result
        to: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Format of the result: ours, or libCacheSim's, which numbers units and holds all of them in memory
        #[arg(long = "as", value_name = "FORMAT", default_value = "p4rack", value_parser = ["p4rack", "oracleGeneral"])]
        to_format: String,
        /// Keep only accesses that reach memory behind these caches of a CPU
        #[arg(long, value_parser = names(MODELS.iter().map(|model| model.name)))]
        cpu: Option<String>,
    },
    /// Make a synthetic trace of a recipe (.toml)
    Synth {
        /// Recipe
        recipe: PathBuf,
        /// File that gets the trace
        out: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Record { out, program } => record(&out, &program),
        Command::Show { trace, reading, json } => show(&trace, &reading, json),
        Command::Convert { from, to, reading, to_format, cpu } => {
            convert(&from, &to, &reading, &to_format, cpu.as_deref())
        }
        Command::Synth { recipe, out } => synth(&recipe, &out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Writer = own::Writer<BufWriter<File>>;

fn writer(path: &Path) -> Result<Writer, String> {
    let file = File::create(path).map(BufWriter::new).and_then(own::Writer::new);
    file.map_err(|error| in_file(path, &error))
}

fn in_file(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn record(out: &Path, program: &[String]) -> Result<(), String> {
    let present = Process::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !present.is_ok_and(|status| status.success()) {
        return Err("needs valgrind, get it by: sudo apt-get install valgrind".into());
    }
    let mut writer = writer(out)?;
    let (trace, end) = io::pipe().map_err(|error| format!("a pipe: {error}"))?;
    // Lackey's lines and the program's output have ways of their own: the shell moves the pipe from descriptor 0 to 9.
    let script =
        "exec valgrind --tool=lackey --basic-counts=no --trace-mem=yes --log-fd=9 \"$@\" 9>&0 0</dev/null";
    let mut child = Process::new("sh")
        .args(["-c", script, "sh"])
        .args(program)
        .stdin(Stdio::from(end))
        .spawn()
        .map_err(|error| format!("sh: {error}"))?;
    let mut accesses = 0u64;
    let mut copied = Ok(());
    for access in lackey::Reader::new(BufReader::new(trace), &program[0]) {
        copied = access.map_err(|error| error.to_string()).and_then(|access| {
            accesses += 1;
            writer.add(access).map_err(|error| in_file(out, &error))
        });
        if copied.is_err() {
            break;
        }
    }
    let ended = child.wait().map_err(|error| format!("valgrind: {error}"))?;
    if accesses == 0 {
        return Err(format!("{}: made no accesses under valgrind, which ended with {ended}", program[0]));
    }
    copied?;
    writer.finish().map_err(|error| in_file(out, &error))?;
    println!("{} accesses in {}; the program ended with {ended}", count(accesses), out.display());
    Ok(())
}

fn synth(recipe: &Path, out: &Path) -> Result<(), String> {
    if recipe.extension().is_none_or(|extension| extension != "toml") {
        return Err(format!("{}: expected a recipe in TOML, whose name ends in .toml", recipe.display()));
    }
    let reading = Reading::default();
    let accesses = copy(recipe, out, &reading, None)?;
    println!("{} accesses in {}", count(accesses), out.display());
    Ok(())
}

/// Gives each access, or each line that reaches memory behind a CPU's caches, to `take`.
fn behind(
    from: &Path,
    reading: &Reading,
    name: Option<&str>,
    take: &mut dyn FnMut(Access) -> bool,
) -> Result<(), String> {
    let mut caches = name.map(cpu).transpose()?;
    let mut wanted = true;
    reading.each(from, &mut |access| {
        let Some(caches) = &mut caches else { return take(access) };
        caches.access(&access, &mut |memory| {
            let (line, write) = match memory {
                Memory::Fill { line, write } => (line, write),
                Memory::WriteBack { line } => (line, true),
            };
            let (address, bytes) = (line * LINE_BYTES, LINE_BYTES as u32);
            wanted = wanted && take(Access { address, bytes, write, thread: access.thread });
        });
        wanted
    })
}

/// Writes a trace in our format: how many accesses.
fn copy(from: &Path, to: &Path, reading: &Reading, name: Option<&str>) -> Result<u64, String> {
    let mut writer = writer(to)?;
    let (mut accesses, mut written) = (0, Ok(()));
    behind(from, reading, name, &mut |access| {
        accesses += 1;
        written = writer.add(access);
        written.is_ok()
    })?;
    written.and_then(|()| writer.finish().map(drop)).map_err(|error| in_file(to, &error))?;
    Ok(accesses)
}

fn convert(
    from: &Path,
    to: &Path,
    reading: &Reading,
    to_format: &str,
    name: Option<&str>,
) -> Result<(), String> {
    if to_format == "p4rack" {
        let accesses = copy(from, to, reading, name)?;
        println!("{} accesses in {}", count(accesses), to.display());
        return Ok(());
    }
    let unit = reading.unit_bytes();
    let (mut requests, mut fit) = (oracle::Requests::new(unit), true);
    behind(from, reading, name, &mut |access| {
        fit = requests.add(&access);
        fit
    })?;
    if !fit {
        return Err(format!(
            "{}: has more than {} requests for units of {unit} B; expected as many as memory holds: keep those behind a CPU's \
             caches by --cpu, use larger units by --unit, or write our format, which needs no memory",
            from.display(),
            count(oracle::REQUESTS_MAX as u64)
        ));
    }
    let objects = requests.objects();
    let write = || {
        let mut out = BufWriter::new(File::create(to)?);
        oracle::write(objects, &mut out)?;
        out.flush()
    };
    write().map_err(|error| in_file(to, &error))?;
    println!("{} requests for units of {unit} B in {}", count(objects.len() as u64), to.display());
    Ok(())
}

fn show(trace: &Path, reading: &Reading, json: bool) -> Result<(), String> {
    let mut watcher = Watcher::default();
    reading.each(trace, &mut |access| {
        watcher.add(&access);
        true
    })?;
    let summary = watcher.finish();
    if summary.accesses == 0 {
        return Err(format!("{}: has no accesses; expected at least one", trace.display()));
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&summary).expect("a struct of numbers is JSON"));
    } else {
        println!("{}", text(&summary));
    }
    Ok(())
}

fn text(summary: &Summary) -> String {
    let megabytes = |bytes: u64| format!("{:.2} MB", bytes as f64 / 1e6);
    let percent = |part: u64, whole: u64| format!("{:.1}", part as f64 * 100.0 / whole.max(1) as f64);
    let mut facts = Rows::new(&["", ">"]);
    for (name, value) in [
        ("accesses", summary.accesses.to_string()),
        ("of these writes", percent(summary.writes, summary.accesses) + " %"),
        ("threads", summary.threads.to_string()),
        ("touched lines of 64 B", megabytes(summary.lines_bytes)),
        ("touched blocks of 512 B", megabytes(summary.blocks_bytes)),
        ("touched pages of 4 KB", megabytes(summary.pages_bytes)),
        (
            "lines of a touched page that are touched",
            percent(summary.lines_bytes, summary.pages_bytes) + " %",
        ),
        ("blocks of 512 B touched a page", format!("{:.2} of 8", summary.blocks_per_page)),
        ("first touches of a block", summary.first_touches.to_string()),
    ] {
        facts.push(vec![name.into(), value]);
    }
    let histogram = |title: &str, counts: &[u64]| {
        let mut rows = Rows::new(&[title, ">times", ">%"]);
        let whole: u64 = counts.iter().sum();
        for (power, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let from = 1u64 << power;
            let range = if power == 0 { "1".to_owned() } else { format!("{from} to {}", from * 2 - 1) };
            rows.push(vec![range, count.to_string(), percent(*count, whole)]);
        }
        rows.text()
    };
    format!(
        "{}\n\n{}\n\n{}",
        facts.text(),
        histogram("place of a used block in an LRU list of blocks of 512 B", &summary.reuse),
        histogram("adjacent lines in a run", &summary.runs)
    )
}
