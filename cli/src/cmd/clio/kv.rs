//! `p4rack clio kv`.

use super::Board;
use crate::cmd::values::in_hex;
use crate::output::{OutputFile, write_bytes};
use p4rack_hosts::clio::{Kv, KvError, KvShape, Patience};
use p4rack_offload::VALUE_BYTES_MAX;
use p4rack_wire::clio::Status;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Subcommand, Debug)]
pub(super) enum Command {
    /// Print the value of a key
    Get(GetArgs),
    /// Create a key, or change its value
    Put(PutArgs),
    /// Remove a key
    Delete(KeyArgs),
}

#[derive(clap::Args, Debug)]
pub(super) struct KeyArgs {
    #[command(flatten)]
    board: Board,
    /// The key: 1 to 255 bytes
    key: String,
}

#[derive(clap::Args, Debug)]
pub(super) struct GetArgs {
    #[command(flatten)]
    at: KeyArgs,
    /// Write the value to this file (`-` for standard output) instead of showing it
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct PutArgs {
    #[command(flatten)]
    at: KeyArgs,
    /// The value: at most 64 KB
    #[arg(group = "what")]
    value: Option<String>,
    /// The value is the contents of this file
    #[arg(long, group = "what", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Get(args) => get(&args),
        Command::Put(args) => put(args),
        Command::Delete(args) => delete(&args),
    }
}

impl KeyArgs {
    /// A client that reads values of at most `value_bytes_max` bytes and writes values of at most
    /// `written_bytes_max`.
    fn open(&self, value_bytes_max: u32, written_bytes_max: u32) -> Result<Kv, String> {
        let shape = KvShape { value_bytes_max, written_bytes_max, under_way_max: 1 };
        Kv::open(&self.board.server(), shape, Patience::default()).map_err(|error| self.board.said(error))
    }

    fn said(&self, error: &KvError) -> String {
        let help = match error {
            KvError::Failed(Status::NoSuchOffload) => {
                "; the board has no store: start it with --store above 0"
            }
            KvError::Failed(Status::NoMemory) => {
                "; the store is full: delete keys, or start the board with a larger --store"
            }
            _ => "",
        };
        format!("key `{}`: {error}{help}", self.key)
    }

    fn absent(&self) -> String {
        format!("key `{}`: there is no such key", self.key)
    }
}

fn get(args: &GetArgs) -> Result<(), String> {
    let at = &args.at;
    let file = match &args.output {
        Some(path) if path != Path::new("-") => Some(OutputFile::open("--output", path)?),
        _ => None,
    };
    let mut kv = at.open(VALUE_BYTES_MAX, 0)?;
    let value = kv.get(at.key.as_bytes()).map_err(|error| at.said(&error))?;
    let value = value.ok_or_else(|| at.absent())?;
    let shown = std::str::from_utf8(&value).ok().filter(|text| !text.chars().any(char::is_control));
    match (file, &args.output) {
        (Some(file), _) => file.write(&value)?,
        (None, Some(_)) => write_bytes(&value),
        (None, None) if at.board.json => {
            let value = json!({ "key": at.key, "bytes": value.len(), "hex": in_hex(&value), "text": shown });
            println!("{value}");
        }
        (None, None) => match shown {
            Some(text) => println!("{text}"),
            None => println!("{}", in_hex(&value)),
        },
    }
    Ok(())
}

fn put(args: PutArgs) -> Result<(), String> {
    let at = &args.at;
    let value = match (args.value, &args.file) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(path)) => {
            std::fs::read(path).map_err(|error| format!("--file: {}: {error}", path.display()))?
        }
        (None, None) => Vec::new(),
    };
    let bytes = u32::try_from(value.len()).ok().filter(|bytes| *bytes <= VALUE_BYTES_MAX);
    let bytes = bytes.ok_or_else(|| {
        format!("a value has at most {VALUE_BYTES_MAX} bytes, this one has {}", value.len())
    })?;
    let mut kv = at.open(0, bytes)?;
    kv.put(at.key.as_bytes(), &value).map_err(|error| at.said(&error))?;
    if at.board.json {
        println!("{}", json!({ "key": at.key, "bytes": bytes }));
    } else {
        println!("put {bytes} bytes at key `{}`", at.key);
    }
    Ok(())
}

fn delete(args: &KeyArgs) -> Result<(), String> {
    let mut kv = args.open(0, 0)?;
    if !kv.delete(args.key.as_bytes()).map_err(|error| args.said(&error))? {
        return Err(args.absent());
    }
    if args.board.json {
        println!("{}", json!({ "key": args.key, "deleted": true }));
    } else {
        println!("deleted key `{}`", args.key);
    }
    Ok(())
}
