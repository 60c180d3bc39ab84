//! Single operations on a pool's memory, by hand.

use super::{Pair, Peer, pair};
use crate::cmd::adapter::text;
use crate::cmd::values::{Bytes, dump, hex, in_hex, opcode};
use crate::output::{self, OutputFile};
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_fabric::roce::{Completion, Failure, Outcome, Request, Rights};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use p4rack_wire::edm::Opcode;
use serde_json::json;
use std::path::{Path, PathBuf};

/// How long a single operation may take, repetitions included.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Bytes of a word of atomic operations.
const WORD: u64 = 8;

/// Which bytes of a pool.
#[derive(clap::Args, Debug)]
struct There {
    #[command(flatten)]
    peer: Peer,
    /// First byte, from the start of the pool, decimal or 0x…; a multiple of 8 for words
    #[arg(value_parser = crate::numbers::number::<u64>)]
    offset: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `p4rack roce read`.
#[derive(clap::Args, Debug)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    there: There,
    /// How many bytes, e.g. 64, 0x40 or "4 KiB"
    #[arg(value_parser = parse_bytes)]
    bytes: u64,
    /// Write them to this file (`-` for standard output) instead of showing them
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
}

/// Arguments of `p4rack roce write`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct WriteArgs {
    #[command(flatten)]
    there: There,
    /// These characters
    #[arg(group = "what")]
    text: Option<String>,
    /// These bytes, e.g. 00ff10
    #[arg(long, group = "what", value_parser = hex)]
    hex: Option<Bytes>,
    /// The contents of this file
    #[arg(long, group = "what", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments of `p4rack roce modify`.
#[derive(clap::Args, Debug)]
pub(super) struct ModifyArgs {
    #[command(flatten)]
    there: There,
    /// What to do with the word: cas or fetch-add
    #[arg(long, value_parser = operation)]
    operation: Opcode,
    /// Operand, decimal or 0x…; of cas the new word
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    operand: u64,
    /// The word that cas replaces
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    expected: Option<u64>,
}

/// Arguments of `p4rack roce cas`.
#[derive(clap::Args, Debug)]
pub(super) struct CasArgs {
    #[command(flatten)]
    there: There,
    /// The word that is expected, decimal or 0x…
    #[arg(value_parser = crate::numbers::number::<u64>)]
    expected: u64,
    /// The new word
    #[arg(value_parser = crate::numbers::number::<u64>)]
    new: u64,
}

/// Arguments of `p4rack roce add`.
#[derive(clap::Args, Debug)]
pub(super) struct AddArgs {
    #[command(flatten)]
    there: There,
    /// What to add, decimal or 0x…
    #[arg(value_parser = crate::numbers::number::<u64>)]
    operand: u64,
}

fn operation(text: &str) -> Result<Opcode, String> {
    match opcode(text) {
        Ok(known @ (Opcode::Cas | Opcode::FetchAdd)) => Ok(known),
        _ => Err("RDMA has cas and fetch-add".to_owned()),
    }
}

impl ReadArgs {
    pub(super) fn run(self) -> Result<(), String> {
        let file = match &self.output {
            Some(path) if path != Path::new("-") => Some(OutputFile::open("--output", path)?),
            _ => None,
        };
        let wanted = u32::try_from(self.bytes).ok().filter(|bytes| *bytes > 0);
        let bytes = wanted.ok_or("write 1 to 4294967295 as the number of bytes")?;
        let read = self.there.operate("reading", self.bytes, |key, address| Request::Read {
            key,
            address,
            bytes,
        })?;
        let Outcome::Read(read) = read else { return Ok(()) };
        let offset = self.there.offset;
        match (file, self.output) {
            (Some(file), _) => file.write(&read)?,
            (None, Some(_)) => output::write_bytes(&read),
            (None, None) if self.there.json => {
                println!("{}", json!({ "offset": offset, "bytes": read.len(), "hex": in_hex(&read) }));
            }
            (None, None) => print!("{}", dump(offset, &read)),
        }
        Ok(())
    }
}

impl WriteArgs {
    pub(super) fn run(self) -> Result<(), String> {
        let bytes = match (self.text, self.hex, &self.file) {
            (Some(text), ..) => text.into_bytes(),
            (_, Some(Bytes(bytes)), _) => bytes,
            (.., Some(path)) => {
                std::fs::read(path).map_err(|error| format!("--file: {}: {error}", path.display()))?
            }
            _ => Vec::new(),
        };
        let length = bytes.len();
        if length == 0 {
            return Err("there is nothing to write: give at least one byte".to_owned());
        }
        let write = |key, address| Request::Write { key, address, bytes, immediate: None };
        self.there.operate("writing", length as u64, write)?;
        let offset = self.there.offset;
        match self.there.json {
            true => println!("{}", json!({ "offset": offset, "bytes": length })),
            false => println!("wrote {length} bytes at offset {offset:#x}"),
        }
        Ok(())
    }
}

impl ModifyArgs {
    pub(super) fn run(self) -> Result<(), String> {
        match (self.operation, self.expected) {
            (Opcode::Cas, Some(expected)) => self.there.cas(expected, self.operand),
            (Opcode::FetchAdd, None) => self.there.add(self.operand),
            _ => Err("--expected belongs to --operation cas, and cas needs it".to_owned()),
        }
    }
}

impl CasArgs {
    pub(super) fn run(self) -> Result<(), String> {
        self.there.cas(self.expected, self.new)
    }
}

impl AddArgs {
    pub(super) fn run(self) -> Result<(), String> {
        self.there.add(self.operand)
    }
}

impl There {
    fn cas(&self, compare: u64, swap: u64) -> Result<(), String> {
        self.change(|key, address| Request::CompareSwap { key, address, compare, swap })
    }

    fn add(&self, add: u64) -> Result<(), String> {
        self.change(|key, address| Request::FetchAdd { key, address, add })
    }

    fn change(&self, request: impl FnOnce(u32, u64) -> Request) -> Result<(), String> {
        let Outcome::Word(old) = self.operate("changing", WORD, request)? else { return Ok(()) };
        match self.json {
            true => println!("{}", json!({ "offset": self.offset, "old": old })),
            false => println!("{old} ({old:#x}) was at offset {:#x}", self.offset),
        }
        Ok(())
    }

    /// Does one thing to the memory.
    fn operate(
        &self,
        doing: &str,
        length: u64,
        request: impl FnOnce(u32, u64) -> Request,
    ) -> Result<Outcome, String> {
        let mut pair = pair(&self.peer)?;
        let what = format!("{doing} {length} bytes at offset {:#x}", self.offset);
        let request = request(pair.key, pair.address.wrapping_add(self.offset));
        let asked = pair.port.adapter().handle_request(pair.qpn, request);
        asked.map_err(|refused| format!("{what}: {refused}"))?;
        let until = clock::now() + PATIENCE;
        loop {
            pair.port.turn(Some(until)).map_err(text)?;
            match pair.port.adapter().poll_completion() {
                Some((_, Completion::Request(_, Outcome::Failed(failure)))) => {
                    let help = self.help(&pair, length, failure);
                    return Err(format!("{what}: {failure}{help}"));
                }
                Some((_, Completion::Request(_, outcome))) => return Ok(outcome),
                _ => {}
            }
            if clock::now() >= until {
                return Err(format!("{what}: no answer within {} s", PATIENCE.as_secs_f64()));
            }
        }
    }

    /// What to do after a failure, as the end of a sentence.
    fn help(&self, pair: &Pair, length: u64, failure: Failure) -> String {
        match (failure, pair.bytes, pair.rights) {
            (Failure::RemoteAccess, Some(bytes), _)
                if self.offset.checked_add(length).is_none_or(|end| end > bytes) =>
            {
                format!("; the pool has {bytes} bytes, from offset 0 to {:#x}", bytes.saturating_sub(1))
            }
            (Failure::RemoteAccess, Some(_), Some(rights)) if rights != Rights::ALL => {
                "; the pool offers its memory without all rights".to_owned()
            }
            (Failure::RemoteAccess, None, _) => {
                "; check --rkey, --address, the length and the region's rights at the other end".to_owned()
            }
            (Failure::RetriesExceeded, ..) => {
                "; does the other end still run, and do both have the same --mtu?".to_owned()
            }
            _ => String::new(),
        }
    }
}
