//! `p4rack clio offload`.

use super::Board;
use crate::cmd::adapter::runtime;
use crate::cmd::complete;
use crate::cmd::connect::block_on;
use crate::cmd::values::{Bytes, hex, in_hex};
use crate::output::write_bytes;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_hosts::clio::{AskError, Session, list_offloads, load_offload, remove_offload};
use p4rack_hosts::roce::SetupError;
use p4rack_hosts::roce::setup::Server;
use p4rack_lab::rows::Rows;
use p4rack_offload::wasm::{Limits, Program};
use p4rack_p4rt::p4rack::clio::v1::OffloadFacts;
use p4rack_wire::clio::Status;
use serde_json::json;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[derive(clap::Subcommand, Debug)]
pub(super) enum Command {
    /// Load a WebAssembly module, with memory of its own
    ///
    /// It exports its memory, and a function `call` that gets the number of a function and the length of the arguments. It imports what it
    /// needs from `clio`: arguments, read, write, result, own_start, own_bytes. docs/clio.md shows one step by step.
    Load(LoadArgs),
    /// List the board's offloads, with their calls and the reason for the last failure
    List(ListArgs),
    /// Call an offload, and print its results
    Call(CallArgs),
    /// Remove an offload that these commands have loaded, and free its memory
    Remove(RemoveArgs),
}

#[derive(clap::Args, Debug)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    board: Board,
    /// The module: .wasm, or .wat in text form
    file: PathBuf,
    /// Name in the board's list [default: the file's name]
    #[arg(long)]
    name: Option<String>,
    /// Memory of its own, which lasts between calls
    #[arg(long, value_name = "SIZE", default_value = "1 MiB", value_parser = parse_bytes)]
    memory: u64,
}

#[derive(clap::Args, Debug)]
pub(super) struct ListArgs {
    #[command(flatten)]
    board: Board,
}

#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what"))]
pub(super) struct CallArgs {
    #[command(flatten)]
    board: Board,
    /// The offload
    #[arg(add = ArgValueCompleter::new(names))]
    name: String,
    /// Number of its function
    #[arg(default_value_t = 0, value_parser = crate::numbers::number::<u8>)]
    function: u8,
    /// Arguments: these bytes, e.g. 00ff10
    #[arg(long, group = "what", value_parser = hex)]
    hex: Option<Bytes>,
    /// Arguments: these characters
    #[arg(long, group = "what")]
    text: Option<String>,
    /// Write the raw results to standard output
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    board: Board,
    /// The offload
    #[arg(add = ArgValueCompleter::new(names))]
    name: String,
}

/// Runs the command.
pub(super) fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Load(args) => load(&args),
        Command::List(args) => list(&args),
        Command::Call(args) => call(args),
        Command::Remove(args) => remove(&args),
    }
}

/// The module, if the board would take it: a file that is refused need not be sent.
fn module(path: &Path) -> Result<Vec<u8>, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let limits = Limits::default();
    let bytes = std::fs::metadata(path).map_err(|error| said(&error))?.len();
    if bytes > limits.module_bytes as u64 {
        let most = limits.module_bytes;
        return Err(said(&format!(
            "the module has {bytes} bytes, and a board takes {most}: build it for size"
        )));
    }
    let mut module = std::fs::read(path).map_err(|error| said(&error))?;
    if path.extension().is_some_and(|ending| ending == "wat") {
        module = wat::parse_bytes(&module).map_err(|error| said(&error))?.into_owned();
    }
    Program::new(&module, limits).map_err(|error| said(&error))?;
    Ok(module)
}

fn load(args: &LoadArgs) -> Result<(), String> {
    let module = module(&args.file)?;
    let stem = args.file.file_stem().and_then(|stem| stem.to_str());
    let name = args.name.as_deref().or(stem).ok_or("give it a name with --name")?;
    let (server, bytes) = (args.board.server(), module.len());
    let loaded = runtime()?.block_on(load_offload(&server, name, module, args.memory));
    let number = loaded.map_err(|error| args.board.said(error))?;
    if args.board.json {
        println!("{}", json!({ "name": name, "number": number, "module_bytes": bytes }));
    } else {
        println!("loaded {name}: offload {number}, {bytes} bytes, {} of its own", show_size(args.memory));
    }
    Ok(())
}

fn offloads(board: &Board) -> Result<Vec<OffloadFacts>, String> {
    let listed: Result<_, SetupError> = runtime()?.block_on(list_offloads(&board.server()));
    listed.map_err(|error| board.said(error))
}

fn list(args: &ListArgs) -> Result<(), String> {
    let all = offloads(&args.board)?;
    if args.board.json {
        let values = all.iter().map(|one| {
            json!({
                "number": one.number,
                "name": one.name,
                "pid": one.pid,
                "module_bytes": one.module_bytes,
                "memory_bytes": one.memory_bytes,
                "calls": one.calls,
                "failed": one.failed,
                "failure": one.failure,
            })
        });
        println!("{}", serde_json::Value::from_iter(values));
        return Ok(());
    }
    let mut rows =
        Rows::new(&[">number", "name", ">pid", ">module", ">memory", ">calls", ">failed", "last failure"]);
    for one in all {
        let module =
            if one.module_bytes == 0 { "the board's".to_owned() } else { show_size(one.module_bytes) };
        rows.push(vec![
            one.number.to_string(),
            one.name,
            one.pid.to_string(),
            module,
            show_size(one.memory_bytes),
            one.calls.to_string(),
            one.failed.to_string(),
            one.failure,
        ]);
    }
    print!("{}", rows.text());
    Ok(())
}

fn call(args: CallArgs) -> Result<(), String> {
    let (board, name, function) = (&args.board, &args.name, args.function);
    let all = offloads(board)?;
    let found = all.iter().find(|one| one.name == *name);
    let number = found.map(|one| one.number).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
        format!("the board has no offload `{name}`; it has {}", names.join(", "))
    })?;
    let arguments = match (args.hex, args.text) {
        (Some(Bytes(bytes)), _) => bytes,
        (None, Some(text)) => text.into_bytes(),
        (None, None) => Vec::new(),
    };
    let mut session: Session = board.session(None)?;
    let results = session.call(number, function, &arguments).map_err(|error| {
        let help = match error {
            AskError::Failed(Status::OffloadFailed) => "; `p4rack clio offload list` has the reason",
            AskError::Failed(Status::NoSuchOffload) => "; it has no such function, or was removed",
            _ => "",
        };
        format!("calling function {function} of {name}: {error}{help}")
    })?;
    match () {
        () if args.raw => write_bytes(&results),
        () if board.json => println!("{}", json!({ "bytes": results.len(), "hex": in_hex(&results) })),
        () if results.is_empty() => println!("done"),
        () => println!("{}", in_hex(&results)),
    }
    Ok(())
}

fn remove(args: &RemoveArgs) -> Result<(), String> {
    let removed = runtime()?.block_on(remove_offload(&args.board.server(), &args.name));
    removed.map_err(|error| args.board.said(error))?;
    if args.board.json {
        println!("{}", json!({ "name": args.name, "removed": true }));
    } else {
        println!("removed {}", args.name);
    }
    Ok(())
}

/// Names of the offloads of the board at --board that match the current word.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let server = Server { addr: complete::option("--board").unwrap_or_default(), tls: None };
    let asked = async { tokio::time::timeout(complete::PATIENCE, list_offloads(&server)).await.ok()?.ok() };
    let all = block_on(asked).unwrap_or_default();
    complete::matching(current, all.into_iter().map(|offload| offload.name))
}
