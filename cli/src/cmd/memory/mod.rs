//! `p4rack memory`.

mod bench;
mod follow;
mod operations;

use super::adapter::Telling;
use super::connect::kept_rack_hint;
use super::values::{Bytes, dump, hex, in_hex, opcode};
use crate::output::{self, OutputFile};
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_codegen::rack::{Host, Rack, Run};
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_fabric::remote::{Service, Way};
use p4rack_hosts::memory::{Client, Error, PortError, Remote, Server, ServerConfig, ServerError};
use p4rack_hosts::remote::tcp::Served;
use p4rack_netdev::Pages;
use p4rack_netdev::signal::Signals;
use p4rack_wire::edm::Opcode;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `p4rack memory`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Offer memory of this host to the rack: fresh memory or a file
    ///
    /// Prints a line "ready …" when others can use it. Ends on SIGTERM or SIGINT. What others write to a file is in the file.
    Serve(ServeArgs),
    /// Read bytes of another host's memory
    Read(ReadArgs),
    /// Write bytes to another host's memory and read them back
    Write(WriteArgs),
    /// Change a word of another host's memory atomically and print the old one
    Modify(ModifyArgs),
    /// Swap a word of another host's memory if it is the expected one; prints the word before
    Cas {
        #[command(flatten)]
        there: There,
        /// The word that is expected, decimal or 0x…
        #[arg(value_parser = crate::numbers::number::<u64>)]
        expected: u64,
        /// The new word
        #[arg(value_parser = crate::numbers::number::<u64>)]
        new: u64,
    },
    /// Add to a word of another host's memory, modulo 2^64; prints the word before
    Add {
        #[command(flatten)]
        there: There,
        /// What to add, decimal or 0x…
        #[arg(value_parser = crate::numbers::number::<u64>)]
        operand: u64,
    },
    /// Measure remote memory: latency of one operation at a time, operations a second of several
    ///
    /// Without --name it builds the rack on this machine, serves memory on the first memory node, measures it from the first
    /// other host, and measures bare UDP ping-pongs beside it: over one veth pair, and through a thread that only forwards.
    /// With --name it measures from the host on which it runs, and overwrites bytes of the region.
    Bench(bench::Args),
    /// Follow memory operations through captures of links, such as those of `up --pcap`
    ///
    /// Lists the operations that the captures show; --operation N shows one as a timeline of its frames on all links.
    Follow(follow::Args),
}

/// The host on which the command runs.
#[derive(clap::Args, Debug)]
struct Here {
    /// Rack description with an [edm] table
    rack: PathBuf,
    /// Name of this host in the description
    #[arg(long)]
    name: String,
    /// Interface to the switch: it has the host's MAC address, or its agent uses it as well
    #[arg(long, default_value = "eth0")]
    interface: String,
    #[command(flatten)]
    scheme: SchemeArgs,
}

#[derive(clap::Args, Debug)]
struct SchemeArgs {
    #[arg(long, help = crate::cmd::schemes::help("as described; it needs EDM"))]
    scheme: Option<Scheme>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
}

#[derive(clap::Args, Debug)]
struct ServeArgs {
    #[command(flatten)]
    here: Here,
    /// How others reach it: tcp, to the host's address, or a mode of EDM [default: the scheme's]
    #[arg(long, value_name = "WAY")]
    way: Option<Way>,
    /// Size, e.g. "64 MiB": of fresh memory, or of a file to be made
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, required_unless_present = "file")]
    bytes: Option<u64>,
    /// Offer the contents of this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Key that gives access
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>)]
    key: u32,
    /// Address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Permit reads only
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    telling: Telling,
}

/// Whose memory, and where in it.
#[derive(clap::Args, Debug)]
struct There {
    #[command(flatten)]
    here: Here,
    /// Host with the memory
    #[arg(long, value_name = "HOST")]
    at: String,
    /// Key of the region
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>)]
    key: u32,
    /// Address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct ReadArgs {
    #[command(flatten)]
    there: There,
    /// How many bytes, e.g. 64 or "4 KiB"
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// Write them to this file (`-` for standard output) instead of showing them
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
struct WriteArgs {
    #[command(flatten)]
    there: There,
    /// These characters
    #[arg(long, group = "what")]
    text: Option<String>,
    /// These bytes, e.g. 00ff10
    #[arg(long, group = "what", value_parser = hex)]
    hex: Option<Bytes>,
    /// The contents of this file
    #[arg(long, group = "what", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Do not read them back: EDM's writes are not answered, so whether they arrived stays unknown
    #[arg(long)]
    unchecked: bool,
}

#[derive(clap::Args, Debug)]
struct ModifyArgs {
    #[command(flatten)]
    there: There,
    /// What to do with the word: cas, fetch-add, swap, and, or, xor, min or max
    #[arg(long, value_parser = opcode)]
    operation: Opcode,
    /// Operand, decimal or 0x…; of cas the new word
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    operand: u64,
    /// The word that cas replaces
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    expected: Option<u64>,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => serve(args),
        Command::Read(args) => read(args),
        Command::Write(args) => write(args),
        Command::Modify(args) => modify(args),
        Command::Cas { there, expected, new } => {
            modify(ModifyArgs { there, operation: Opcode::Cas, operand: new, expected: Some(expected) })
        }
        Command::Add { there, operand } => {
            modify(ModifyArgs { there, operation: Opcode::FetchAdd, operand, expected: None })
        }
        Command::Bench(args) => bench::run(args),
        Command::Follow(args) => follow::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The rack under the scheme.
fn described(path: &Path, args: &SchemeArgs) -> Result<Rack, String> {
    let rack = Rack::load(path).map_err(in_words)?;
    let rack = rack.on(args.arch.unwrap_or(rack.switch.arch));
    rack.under(args.scheme.unwrap_or_else(|| rack.scheme())).map_err(in_words)
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Why a node did not start; in the wrong place with the command for the right one, if a rack that was left running has it.
fn not_opened(error: &PortError) -> String {
    let hint = match error {
        PortError::NotHere(place) => kept_rack_hint(&place.host),
        _ => None,
    };
    hint.map_or_else(|| error.to_string(), |hint| format!("{error}\n{hint}"))
}

impl Here {
    fn rack(&self) -> Result<Rack, String> {
        described(&self.rack, &self.scheme)
    }

    fn host<'a>(&self, rack: &'a Rack) -> Result<&'a Host, String> {
        p4rack_memory::node(rack, &self.name).map_err(in_words).map(|number| &rack.hosts[usize::from(number)])
    }
}

/// The memory that is offered.
fn pages(args: &ServeArgs) -> Result<Pages, String> {
    match &args.file {
        Some(path) => Pages::file(path, args.bytes),
        None => Pages::fresh(args.bytes.unwrap_or(0)),
    }
    .map_err(in_words)
}

/// Offers memory over TCP, from address 0 on.
fn serve_bytes(args: &ServeArgs) -> Result<(), String> {
    let rack = Rack::load(&args.here.rack).map_err(in_words)?;
    let at = SocketAddr::from((args.here.host(&rack)?.ip, p4rack_memory::BYTES_PORT));
    let bytes = pages(args)?;
    let (size, served) = (bytes.as_ref().len() as u64, Served::new(bytes, args.read_only));
    let signals = Signals::take().map_err(in_words)?;
    let listener = TcpListener::bind(at)
        .map_err(|error| format!("{at}: {error}; does this run on {}?", args.here.name))?;
    output::announce(&format!("ready {}: {} at {at}", args.here.name, show_size(size)));
    served.serve(&listener, &signals).map_err(in_words)
}

fn serve(mut args: ServeArgs) -> Result<(), String> {
    match args.way.map(|way| (way, way.definition().service)) {
        Some((_, Service::Bytes)) => return serve_bytes(&args),
        Some((way, Service::Node)) => args.here.scheme.scheme = Some(Run::by(way).scheme),
        Some((way, _)) => {
            return Err(format!("--way {way}: `p4rack roce serve` offers memory to RDMA adapters"));
        }
        None => {}
    }
    let rack = args.here.rack()?;
    let host = args.here.host(&rack)?;
    let (port, node) = p4rack_memory::server(&rack, host, &args.here.interface).map_err(in_words)?;
    args.telling.check()?;
    let bytes = pages(&args)?;
    let size = bytes.as_ref().len() as u64;
    let rights = Rights { read: true, write: !args.read_only };
    let region = Region { start: args.address, bytes, key: args.key, rights };
    let config = ServerConfig {
        name: args.here.name.clone(),
        port,
        node,
        stats_file: args.telling.stats,
        metrics_addr: args.telling.metrics_addr,
    };
    let signals = Signals::take().map_err(in_words)?;
    let server = Server::open(config, vec![region]).map_err(|error| match &error {
        ServerError::Port(port) => not_opened(port),
        _ => error.to_string(),
    })?;
    output::announce(&format!(
        "ready {}: {} at {:#x} with key {} on {}",
        args.here.name,
        show_size(size),
        args.address,
        args.key,
        args.here.interface
    ));
    server.run(&signals).map_err(in_words)
}

/// A client on this host and the memory that the options name.
fn client(there: &There) -> Result<(Client, Remote, usize), String> {
    let rack = there.here.rack()?;
    let node = p4rack_memory::memory_node(&rack, &there.at).map_err(in_words)?;
    let config =
        p4rack_memory::client(&rack, there.here.host(&rack)?, &there.here.interface).map_err(in_words)?;
    let most = p4rack_memory::edm(&rack).map_err(in_words)?.message_bytes_max;
    let client = Client::open(config).map_err(|error| not_opened(&error))?;
    Ok((client, Remote { node, key: there.key }, most as usize))
}

impl There {
    /// What was written can't be read back: writes have no answer, so this is how a refusal shows.
    fn not_read_back(&self, bytes: usize, error: &Error) -> String {
        match error {
            Error::OutOfBounds | Error::WrongKey => {
                self.says("writing", bytes, " was refused, as reading back shows", error)
            }
            _ => self.failed("reading back", bytes, error),
        }
    }

    /// An error of an operation, with what it was about.
    fn failed(&self, doing: &str, bytes: usize, error: &Error) -> String {
        self.says(doing, bytes, "", error)
    }

    fn says(&self, doing: &str, bytes: usize, how: &str, error: &Error) -> String {
        let help = match error {
            Error::Unknown => {
                "; does `p4rack memory serve` run there, and the switch under a scheme with EDM?"
            }
            Error::WrongKey => "; give it with --key",
            Error::OutOfBounds => "; `p4rack memory serve` says where its region is",
            _ => "",
        };
        format!("{doing} {bytes} bytes at {:#x} of {}{how}: {error}{help}", self.address, self.at)
    }
}

/// Parts of `bytes` bytes from an address on, none larger than a message may be.
fn parts(address: u64, bytes: usize, most: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let part = move |from: usize| (address.wrapping_add(from as u64), from..bytes.min(from + most));
    (0..bytes).step_by(most.max(1)).map(part)
}

fn read_all(
    client: &mut Client,
    remote: Remote,
    there: &There,
    bytes: usize,
    most: usize,
) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    for (address, part) in parts(there.address, bytes, most) {
        all.extend(client.read(remote, address, part.len() as u32)?);
    }
    Ok(all)
}

fn read(args: ReadArgs) -> Result<(), String> {
    let file = match &args.output {
        Some(path) if path != Path::new("-") => Some(OutputFile::open("--output", path)?),
        _ => None,
    };
    let there = &args.there;
    if args.bytes == 0 {
        return Err(there.failed("reading", 0, &Error::BadLength));
    }
    let (mut client, remote, most) = client(there)?;
    let bytes = args.bytes as usize;
    let read = read_all(&mut client, remote, there, bytes, most);
    let bytes = read.map_err(|error| there.failed("reading", bytes, &error))?;
    match (file, &args.output) {
        (Some(file), _) => file.write(&bytes)?,
        (None, Some(_)) => output::write_bytes(&bytes),
        (None, None) if there.json => {
            let value = json!({ "address": there.address, "bytes": bytes.len(), "hex": in_hex(&bytes) });
            println!("{value}");
        }
        (None, None) => print!("{}", dump(there.address, &bytes)),
    }
    Ok(())
}

fn write(args: WriteArgs) -> Result<(), String> {
    let there = &args.there;
    let bytes = match (&args.text, args.hex, &args.file) {
        (Some(text), ..) => text.clone().into_bytes(),
        (_, Some(Bytes(bytes)), _) => bytes,
        (.., Some(path)) => {
            std::fs::read(path).map_err(|error| format!("--file: {}: {error}", path.display()))?
        }
        _ => Vec::new(),
    };
    if bytes.is_empty() {
        return Err(there.failed("writing", 0, &Error::BadLength));
    }
    let (mut client, remote, most) = client(there)?;
    for (address, part) in parts(there.address, bytes.len(), most) {
        let written = client.write(remote, address, bytes[part].to_vec());
        written.map_err(|error| there.failed("writing", bytes.len(), &error))?;
    }
    if !args.unchecked {
        // A read may overtake what was written, so look again before giving up.
        let mut tries = 0;
        loop {
            let read = read_all(&mut client, remote, there, bytes.len(), most);
            if read.map_err(|error| there.not_read_back(bytes.len(), &error))? == bytes {
                break;
            }
            tries += 1;
            if tries == 10 {
                let what =
                    "the bytes there are others: the region may be read only, or someone else writes too";
                return Err(format!(
                    "writing {} bytes at {:#x} of {}: {what}",
                    bytes.len(),
                    there.address,
                    there.at
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    if there.json {
        let value = json!({ "address": there.address, "bytes": bytes.len(), "read_back": !args.unchecked });
        println!("{value}");
    } else {
        let read_back = if args.unchecked { "" } else { ", and read them back" };
        println!("wrote {} bytes at {:#x} of {}{read_back}", bytes.len(), there.address, there.at);
    }
    Ok(())
}

fn modify(args: ModifyArgs) -> Result<(), String> {
    let there = &args.there;
    let is_cas = args.operation == Opcode::Cas;
    if is_cas != args.expected.is_some() {
        return Err("--expected belongs to --operation cas, and cas needs it".to_owned());
    }
    let (mut client, remote, _) = client(there)?;
    let done = match args.expected {
        Some(expected) => client.cas(remote, there.address, expected, args.operand),
        None => client.modify(remote, there.address, args.operation, args.operand),
    };
    let old = done.map_err(|error| there.failed("changing", 8, &error))?;
    if there.json {
        println!("{}", json!({ "address": there.address, "old": old }));
    } else {
        println!("{old} ({old:#x}) was at {:#x} of {}", there.address, there.at);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_transfers_have_parts_of_a_message() {
        let of = |bytes, most| parts(100, bytes, most).collect::<Vec<_>>();
        assert_eq!(of(0, 4), []);
        assert_eq!(of(9, 4), [(100, 0..4), (104, 4..8), (108, 8..9)]);
    }
}
