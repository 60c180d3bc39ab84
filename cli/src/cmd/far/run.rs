//! `p4rack far run`.

use super::source::SourceArgs;
use super::{library, program, report};
use crate::cmd::cache::{block_bytes, names};
use crate::cmd::memory::{not_opened, online};
use crate::output::OutputFile;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_lab::state::{Pid, Runtime};
use p4rack_memory::far::{self, About, Full, Settings, Source};
use p4rack_netdev::signal::{Relay, Relayed};
use program::Program;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

/// Arguments of `p4rack far run`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Local memory for pages, blocks and their tables, e.g. "64 MiB"
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    local: u64,
    /// Policy of the cache of blocks behind the pages
    #[arg(long, default_value = "runs", value_parser = names(online()))]
    policy: String,
    /// Bytes of a block, a power of two from 64 to 4096 [default: the policy's own]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes)]
    block: Option<u32>,
    /// Allocations of this size or more go far
    #[arg(long, value_name = "SIZE", default_value = "128 KiB", value_parser = parse_bytes)]
    min: u64,
    /// When far memory is full: refuse large allocations, or give them near memory, beyond --local
    #[arg(long, default_value = "refuse", value_parser = full())]
    full: Full,
    /// Write the figures at the end as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

fn full() -> impl TypedValueParser<Value = Full> {
    PossibleValuesParser::new(["refuse", "near"])
        .map(|name| if name == "near" { Full::Near } else { Full::Refuse })
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode, String> {
    let (name, arguments) = args.program.split_first().ok_or("name a program")?;
    let program = program::find(name)?;
    let library = library::find()?;
    if args.min < far::PAGE_BYTES {
        return Err(format!("--min: {} bytes; expected at least a page, 4 KiB", args.min));
    }
    let source = args.source.resolve(args.local)?;
    let runtime = Runtime::locate();
    runtime.prepare().map_err(|error| error.to_string())?;
    let page = Page::new(&runtime);
    let settings = Settings {
        source,
        local_bytes: args.local,
        policy: args.policy,
        block_bytes: args.block,
        min_bytes: args.min,
        full: args.full,
        page: page.0.clone(),
    };
    // Opens far memory once and closes it, so that errors show here and not in the program.
    far::open(&settings).map(drop).map_err(|error| {
        let said = not_opened(&error, error.not_here());
        format!("far memory by {}: {said}", place(&settings.source))
    })?;
    // Signals end the command up to here, and are the program's from here on. The threads of the memory have ended.
    let signals = Relay::take().map_err(|error| error.to_string())?;
    let json = args.json.as_deref().map(|path| OutputFile::open("--json", path)).transpose()?;
    let about = About {
        program: program.title(),
        pid: std::process::id(),
        way: settings.source.way.clone(),
        at: settings.source.at.clone(),
        policy: settings.policy.clone(),
    };
    let kept = far::create(&page.0, &about).map_err(|error| page.says(&error))?;
    let child = start(&program, arguments, &library, (&settings, &signals))?;
    let status = wait(child, &signals)?;
    // The program's exit status is the command's, whatever becomes of the figures.
    let reported = far::read(&page.0).map_err(|error| page.says(&error)).and_then(|(about, figures)| {
        report::show(&about, &figures, args.min);
        let text = report::json(&about, &figures, status);
        json.map_or(Ok(()), |json| json.write(text.as_bytes()))
    });
    drop(kept);
    if let Err(error) = reported {
        eprintln!("warning: figures: {error}");
    }
    Ok(code(status))
}

/// The way and where it leads, for errors.
fn place(source: &Source) -> String {
    let at = if source.at.is_empty() { "this process" } else { &source.at };
    format!("{} from {at}", source.way)
}

/// The file of the figures, removed when dropped.
struct Page(PathBuf);

impl Page {
    fn new(runtime: &Runtime) -> Page {
        Page(super::top::file(runtime.folder(), std::process::id()))
    }

    fn says(&self, error: &std::io::Error) -> String {
        format!("{}: {error}", self.0.display())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Absent if it was never made, or if it got its name.
        for path in [&self.0, &far::unnamed(&self.0)] {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn start(
    program: &Program,
    arguments: &[OsString],
    library: &Path,
    (settings, signals): (&Settings, &Relay),
) -> Result<Child, String> {
    let others = std::env::var_os(PRELOAD).filter(|others| !others.is_empty());
    let list = std::iter::once(library.as_os_str().to_owned()).chain(others).collect::<Vec<_>>();
    let mut command = Command::new(&program.file);
    command.arg0(&program.name).args(&program.first).args(arguments);
    command.env(PRELOAD, list.join(OsStr::new(":"))).env(far::VARIABLE, settings.text()?);
    signals.restore_in(&mut command);
    command.spawn().map_err(|error| format!("{}: {error}", program.file.display()))
}

/// The dynamic linker's list of libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// Passes signals on until the program has ended. If that is not possible, the program still runs to its end.
fn wait(mut child: Child, signals: &Relay) -> Result<ExitStatus, String> {
    let failed = |error: std::io::Error| format!("waiting for the program: {error}");
    if let Err(error) = relay(&mut child, signals) {
        eprintln!("warning: signals no longer reach the program: {error}");
    }
    // The status stays if the program was waited for already.
    child.wait().map_err(failed)
}

/// Passes signals on until the program has ended.
fn relay(child: &mut Child, signals: &Relay) -> Result<(), String> {
    let in_words = |error: std::io::Error| error.to_string();
    // Not reaped before `try_wait`, so the number stays the program's.
    let pid = Pid::of(child.id()).map_err(in_words)?;
    loop {
        match signals.wait().map_err(|error| error.to_string())? {
            Relayed::Child => {
                if child.try_wait().map_err(in_words)?.is_some() {
                    return Ok(());
                }
            }
            Relayed::Signal(number) => {
                pid.signal(number).map_err(in_words)?;
            }
        }
    }
}

/// The program's exit code; of one that a signal ended, as shells report it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
