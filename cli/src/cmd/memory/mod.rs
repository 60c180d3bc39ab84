//! `p4rack memory`.

mod bench;
mod beside;
mod cached;
mod extent;
mod follow;
mod operate;
mod serve;

use super::adapter::Tls;
use super::connect::kept_rack_hint;
use super::settings::Settings;
use super::values::{Bytes, hex, opcode};
use super::way::ways;
pub(super) use cached::online;
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::remote::{Link, Way};
use p4rack_hosts::memory::NotHere;
use p4rack_hosts::remote::{Own, RemoteError, Status};
use p4rack_memory::{Access, Memory, OpenError};
use p4rack_wire::edm::Opcode;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    /// Prints a line "ready …" when others can use it. Ends on SIGTERM or SIGINT. Others' writes to a file are in the
    /// file.
    Serve(Box<serve::Args>),
    /// Read bytes of another host's memory
    Read(Box<ReadArgs>),
    /// Write bytes to another host's memory and read them back
    Write(Box<WriteArgs>),
    /// Change a word of another host's memory atomically and print the old one
    Modify(Box<ModifyArgs>),
    /// Swap a word of another host's memory if it is the expected one; prints the word before
    Cas {
        #[command(flatten)]
        there: Box<There>,
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
        there: Box<There>,
        /// Number to add, decimal or 0x…
        #[arg(value_parser = crate::numbers::number::<u64>)]
        operand: u64,
    },
    /// Measure remote memory: latency of one operation at a time, operations a second of several
    ///
    /// Without --name it builds the rack on this machine, serves memory on one host, measures it from another one, and measures bare UDP ping-pongs beside it: over one veth pair, and through a thread that only forwards.
    /// With --name it measures from the host on which it runs, and overwrites bytes of the region. With --local too it
    /// measures a region with a cache in local memory: it makes a trace's accesses and checks them.
    Bench(Box<bench::Args>),
    /// Follow memory operations through captures of links, such as those of `up --pcap`
    ///
    /// Lists the operations that the captures show; --operation N shows one as a timeline of its frames on all links. By TCP these are the
    /// requests of connections that begin in the captures. By Cowbird these are the requests in rings, each with the
    /// engine's operations for it; with --way rdma the same captures show all of the engine's own operations.
    Follow(Box<follow::Args>),
}

/// The host on which the command runs, and the way to the memory.
#[derive(clap::Args, Debug)]
struct Here {
    /// Rack description
    rack: PathBuf,
    /// Name of this host in the description
    #[arg(long)]
    name: String,
    /// Interface to the rack; with two switches the names of both, with a comma between [default: the one that has this
    /// host's address]
    #[arg(long)]
    interface: Option<String>,
    #[command(flatten)]
    scheme: SchemeArgs,
}

#[derive(clap::Args, Debug)]
pub(super) struct SchemeArgs {
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Way to the memory [default: the scheme's mode of EDM, or Clio]
    #[arg(long, value_parser = ways())]
    pub(super) way: Option<Way>,
    #[arg(long, help = crate::cmd::schemes::help("the way's, or as described"))]
    scheme: Option<Scheme>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
}

/// The memory's host, and an address in it.
#[derive(clap::Args, Debug)]
struct There {
    #[command(flatten)]
    here: Here,
    /// Host with the memory; by Clio several with commas in between, whose ranges follow each other
    #[arg(long, value_name = "HOST")]
    at: String,
    #[command(flatten)]
    services: Services,
    /// By RDMA or Clio: use an extent of a balloon, instead of what is offered to all; the file has the output of
    /// `p4rack balloon reserve --json`, which runs as long as the extent is used. It names way and key; --at only names its host in
    /// messages
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reserve", "way", "key", "engine"])]
    extent: Option<PathBuf>,
    /// EDM: key of the region
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>)]
    key: u32,
    /// Address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The service that offers the memory, if a way has one of its own.
#[derive(clap::Args, Debug)]
pub(super) struct Services {
    /// Address of the server of bytes, or of the set-up service of a pool or a board, HOST:PORT; of several boards, one for each host of
    /// --at with commas in between [default: the host with the memory]
    #[arg(long, value_name = "ADDR")]
    pub(super) memory: Option<String>,
    /// Cowbird: address of the engine's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pub(super) engine: Option<String>,
    /// Bytes to reserve in a pool for this command, e.g. "1 MiB", instead of using the memory that it offers to all
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(super) reserve: Option<u64>,
    #[command(flatten)]
    pub(super) tls: Tls,
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
    /// Do not read them back: by EDM, which does not answer writes, it stays unknown whether they arrived
    #[arg(long)]
    unchecked: bool,
}

#[derive(clap::Args, Debug)]
struct ModifyArgs {
    #[command(flatten)]
    there: There,
    /// Operation on the word: cas, fetch-add, swap, and, or, xor, min or max
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
        Command::Serve(args) => serve::run(*args),
        Command::Read(args) => operate::read(&args),
        Command::Write(args) => operate::write(*args),
        Command::Modify(args) => operate::modify(&args),
        Command::Cas { there, expected, new } => operate::modify(&ModifyArgs {
            there: *there,
            operation: Opcode::Cas,
            operand: new,
            expected: Some(expected),
        }),
        Command::Add { there, operand } => {
            let (operation, expected) = (Opcode::FetchAdd, None);
            operate::modify(&ModifyArgs { there: *there, operation, operand, expected })
        }
        Command::Bench(args) => bench::run(*args),
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

/// The rack under the scheme that runs.
pub(super) fn described(path: &Path, args: &SchemeArgs) -> Result<Rack, String> {
    let rack = Rack::load_set(path, &args.settings.set).map_err(in_words)?;
    let rack = rack.on(args.arch.unwrap_or(rack.switch.arch));
    let own = rack.scheme();
    let scheme = match (args.scheme, args.way) {
        (Some(scheme), _) => scheme,
        (None, Some(way)) if own.way() != Some(way) => rack.by(way).scheme,
        (None, _) => own,
    };
    rack.under(scheme).map_err(in_words)
}

pub(super) fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Why an end of a way did not open; in the wrong place with the command for the right one, if a rack that was left running has it.
pub(super) fn not_opened(error: &impl std::fmt::Display, not_here: Option<&NotHere>) -> String {
    let hint = not_here.and_then(|place| kept_rack_hint(&place.host));
    hint.map_or_else(|| error.to_string(), |hint| format!("{error}\n{hint}"))
}

impl Here {
    fn rack(&self) -> Result<Rack, String> {
        described(&self.rack, &self.scheme)
    }

    fn host<'a>(&self, rack: &'a Rack) -> Result<&'a Host, String> {
        p4rack_memory::node(rack, &self.name).map_err(in_words).map(|number| &rack.hosts[usize::from(number)])
    }

    /// The interface of this host's link.
    fn interface(&self, rack: &Rack, host: &Host, way: Link) -> Result<String, String> {
        let own = Own { name: &host.name, mac: host.mac, ip: host.ip, links: rack.switch.tors.into() };
        own.interface(way, self.interface.as_deref()).map_err(|place| not_opened(&place, Some(&place)))
    }
}

/// The memory that the options name.
fn open(there: &There) -> Result<Memory, String> {
    let rack = there.here.rack()?;
    if let Some(path) = &there.extent {
        return extent::open(there, &rack, path);
    }
    p4rack_memory::open(&rack, &there.access())
        .map_err(|error: OpenError| not_opened(&error, error.not_here()))
}

impl There {
    fn access(&self) -> Access<'_> {
        Access {
            host: &self.here.name,
            interface: self.here.interface.as_deref(),
            at: &self.at,
            way: self.here.scheme.way,
            key: self.key,
            memory: self.services.memory.as_deref(),
            engine: self.services.engine.as_deref(),
            tls: self.services.tls.files(),
            reserve_bytes: self.services.reserve.unwrap_or(0),
        }
    }

    /// Error if written bytes can't be read back: some ways don't answer writes, so a refusal shows only here.
    fn not_read_back(&self, bytes: usize, error: &RemoteError) -> String {
        match error {
            RemoteError::Failed(Status::OutOfBounds | Status::WrongKey) => {
                self.says("writing", bytes, " was refused, as reading back shows", error)
            }
            _ => self.failed("reading back", bytes, error),
        }
    }

    /// An error of an operation, with its object.
    fn failed(&self, doing: &str, bytes: usize, error: &RemoteError) -> String {
        self.says(doing, bytes, "", error)
    }

    fn says(&self, doing: &str, bytes: usize, how: &str, error: &RemoteError) -> String {
        let help = match error {
            RemoteError::Failed(Status::Unknown) => {
                "; does `p4rack memory serve` run there, and the switch under the way's scheme?"
            }
            RemoteError::Failed(Status::WrongKey) => "; give it with --key",
            RemoteError::Failed(Status::OutOfBounds) => "; `p4rack memory serve` says where its region is",
            _ => "",
        };
        format!("{doing} {bytes} bytes at {:#x} of {}{how}: {error}{help}", self.address, self.at)
    }
}
