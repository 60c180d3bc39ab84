//! `p4rack memory`.

mod follow;
mod operations;

use crate::output::{self, OutputFile};
use p4rack_codegen::rack::units::{parse_size, show_size};
use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_hosts::memory::{Client, Error, Remote, Server, ServerConfig};
use p4rack_lab::memory::{self, Benchmark, LatencyFigures, Load, MemoryFigures};
use p4rack_lab::text;
use p4rack_netdev::Pages;
use p4rack_netdev::signal::Signals;
use p4rack_wire::edm::Opcode;
use serde_json::json;
use std::fmt::Write as _;
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
    /// Measure remote memory: latency of one operation at a time, operations a second of several
    ///
    /// Without --name it builds the rack on this machine, serves memory on the first memory node, measures it from the first
    /// other host, and measures bare UDP ping-pongs beside it: over one veth pair, and through a thread that only forwards.
    /// With --name it measures from the host on which it runs, and overwrites bytes of the region.
    Bench(BenchArgs),
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
    /// Interface to the switch; the host's agent may use it as well
    #[arg(long, default_value = "eth0")]
    interface: String,
    #[command(flatten)]
    scheme: SchemeArgs,
}

#[derive(clap::Args, Debug)]
struct SchemeArgs {
    /// Scheme of the rack, with EDM [default: as described]
    #[arg(long)]
    scheme: Option<Scheme>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
}

#[derive(clap::Args, Debug)]
struct ServeArgs {
    #[command(flatten)]
    here: Here,
    /// Size, e.g. "64 MiB": of fresh memory, or of a file to be made
    #[arg(long, value_name = "SIZE", value_parser = size, required_unless_present = "file")]
    bytes: Option<u64>,
    /// Offer the contents of this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Key that gives access
    #[arg(long, default_value_t = 1)]
    key: u32,
    /// Address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = number)]
    address: u64,
    /// Permit reads only
    #[arg(long)]
    read_only: bool,
    /// Write statistics as JSON to this file (`-` for standard output) at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDR")]
    metrics_addr: Option<std::net::SocketAddr>,
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
    #[arg(long, default_value_t = 1)]
    key: u32,
    /// Address of the first byte, decimal or 0x…
    #[arg(long, default_value = "0", value_parser = number)]
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
    #[arg(long, value_name = "SIZE", value_parser = size)]
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
    #[arg(long, value_parser = number)]
    operand: u64,
    /// The word that cas replaces
    #[arg(long, value_parser = number)]
    expected: Option<u64>,
}

#[derive(clap::Args, Debug)]
struct BenchArgs {
    /// Rack description with an [edm] table
    rack: PathBuf,
    /// Measure from this host, on which the command runs, instead of building the rack
    #[arg(long, requires = "at")]
    name: Option<String>,
    /// With --name: interface to the switch
    #[arg(long, default_value = "eth0", requires = "name")]
    interface: String,
    /// With --name: host with the memory
    #[arg(long, value_name = "HOST", requires = "name")]
    at: Option<String>,
    /// With --name: key of the region
    #[arg(long, default_value_t = 1, requires = "name")]
    key: u32,
    /// With --name: address of bytes that may be overwritten, a multiple of eight
    #[arg(long, default_value = "0", value_parser = number, requires = "name")]
    address: u64,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// Bytes per read and write
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_400))]
    bytes: u32,
    /// Time for each figure, seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = super::finite)]
    each: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => serve(args),
        Command::Read(args) => read(args),
        Command::Write(args) => write(args),
        Command::Modify(args) => modify(args),
        Command::Bench(args) => bench(args),
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

impl Here {
    fn rack(&self) -> Result<Rack, String> {
        described(&self.rack, &self.scheme)
    }

    fn host<'a>(&self, rack: &'a Rack) -> Result<&'a Host, String> {
        p4rack_memory::node(rack, &self.name).map_err(in_words).map(|number| &rack.hosts[usize::from(number)])
    }
}

fn serve(args: ServeArgs) -> Result<(), String> {
    let rack = args.here.rack()?;
    let host = args.here.host(&rack)?;
    let (port, node) = p4rack_memory::server(&rack, host, &args.here.interface).map_err(in_words)?;
    if let Some(path) = args.stats.as_deref().filter(|path| *path != Path::new("-")) {
        OutputFile::open("--stats", path)?;
    }
    let bytes = match (&args.file, args.bytes) {
        (Some(path), bytes) => Pages::file(path, bytes),
        (None, bytes) => Pages::fresh(bytes.unwrap_or(0)),
    };
    let bytes = bytes.map_err(in_words)?;
    let size = bytes.as_ref().len() as u64;
    let rights = Rights { read: true, write: !args.read_only };
    let region = Region { start: args.address, bytes, key: args.key, rights };
    let config = ServerConfig {
        name: args.here.name.clone(),
        port,
        node,
        stats_file: args.stats,
        metrics_addr: args.metrics_addr,
    };
    let signals = Signals::take().map_err(in_words)?;
    let server = Server::open(config, vec![region]).map_err(in_words)?;
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
    let client = Client::open(config).map_err(in_words)?;
    Ok((client, Remote { node, key: there.key }, most as usize))
}

impl There {
    /// An error of an operation, with what it was about.
    fn failed(&self, doing: &str, bytes: usize, error: &Error) -> String {
        let help = match error {
            Error::Unknown => {
                "; does `p4rack memory serve` run there, and the switch under a scheme with EDM?"
            }
            Error::WrongKey => "; give it with --key",
            Error::OutOfBounds => "; `p4rack memory serve` says where its region is",
            _ => "",
        };
        format!("{doing} {bytes} bytes at {:#x} of {}: {error}{help}", self.address, self.at)
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
) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    for (address, part) in parts(there.address, bytes, most) {
        let read = client.read(remote, address, part.len() as u32);
        all.extend(read.map_err(|error| there.failed("reading", bytes, &error))?);
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
    let bytes = read_all(&mut client, remote, there, args.bytes as usize, most)?;
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
        while read_all(&mut client, remote, there, bytes.len(), most)? != bytes {
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

fn bench(args: BenchArgs) -> Result<(), String> {
    let each = Duration::try_from_secs_f64(args.each).map_err(|error| format!("--each: {error}"))?;
    if let (Some(name), Some(at)) = (args.name, args.at) {
        let here = Here { rack: args.rack, name, interface: args.interface, scheme: args.scheme };
        let there = There { here, at, key: args.key, address: args.address, json: args.json };
        let (mut client, remote, _) = client(&there)?;
        let load = Load { remote, address: there.address, bytes: args.bytes, each };
        let figures = memory::measure(&mut client, load)
            .map_err(|error| there.failed("using", args.bytes as usize, &error))?;
        match args.json {
            true => println!("{}", json!(figures)),
            false => print!("{}", table(&figures, &[])),
        }
        return Ok(());
    }
    let rack = Rack::load(&args.rack).map_err(in_words)?;
    let rack = rack.on(args.scheme.arch.unwrap_or(rack.switch.arch));
    let scheme = args.scheme.scheme.unwrap_or_else(|| rack.scheme());
    let done = memory::bench(&rack, &args.rack, scheme, args.bytes, each, args.quiet).map_err(in_words)?;
    if args.json {
        println!("{}", json!(done));
        return Ok(());
    }
    let Benchmark { rack, scheme, client, server, rate_bps, memory, ping_pongs } = &done;
    println!(
        "{rack}, {scheme}: {client} uses the memory of {server} through the embedded switch, links of {}\n",
        text::rate(*rate_bps as f64)
    );
    print!("{}", table(memory, ping_pongs));
    Ok(())
}

/// Figures of memory, and ping-pongs with how many times as long memory takes.
fn table(figures: &MemoryFigures, ping_pongs: &[LatencyFigures]) -> String {
    let mut out = format!(
        "{:<16}{:>10}{:>12}{:>12}{:>12}{:>12}{:>9}",
        format!("{} bytes", figures.bytes),
        "times",
        "min",
        "p50",
        "p99",
        "p99.9",
        "unknown"
    );
    // Writing to a string cannot fail.
    for ping_pong in ping_pongs {
        let _ = write!(out, "  × {}", ping_pong.what);
    }
    for one in figures.latencies.iter().chain(ping_pongs) {
        let [min, p50, p99, p999] = [one.min_us, one.p50_us, one.p99_us, one.p999_us].map(text::micros);
        let _ = write!(
            out,
            "\n{:<16}{:>10}{min:>12}{p50:>12}{p99:>12}{p999:>12}{:>9}",
            one.what, one.operations, one.unknown
        );
        for ping_pong in ping_pongs {
            let _ =
                write!(out, "{:>width$.2}", one.p50_us / ping_pong.p50_us, width = ping_pong.what.len() + 4);
        }
    }
    out.push('\n');
    for rate in &figures.rates {
        let per_s = text::count(rate.per_s as u64);
        let _ = writeln!(
            out,
            "{:<16}{per_s:>10} a second, {} at a time, {} unknown",
            rate.what, rate.at_once, rate.unknown
        );
    }
    out
}

/// Bytes of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bytes(Vec<u8>);

fn hex(text: &str) -> Result<Bytes, String> {
    let wrong = || "write two hexadecimal digits for each byte, e.g. 00ff10".to_owned();
    if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong());
    (0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>().map(Bytes)
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write a number of 64 bits, decimal or 0x…".to_owned())
}

/// A number of bytes, with a unit or without.
fn size(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| parse_size(text))
}

fn opcode(text: &str) -> Result<Opcode, String> {
    Ok(match text {
        "cas" => Opcode::Cas,
        "fetch-add" => Opcode::FetchAdd,
        "swap" => Opcode::Swap,
        "and" => Opcode::And,
        "or" => Opcode::Or,
        "xor" => Opcode::Xor,
        "min" => Opcode::Min,
        "max" => Opcode::Max,
        _ => return Err("there are cas, fetch-add, swap, and, or, xor, min and max".to_owned()),
    })
}

/// Sixteen bytes a line: address, bytes, characters.
fn dump(address: u64, bytes: &[u8]) -> String {
    let mut out = String::new();
    for (nth, line) in bytes.chunks(16).enumerate() {
        let at = address.wrapping_add(16 * nth as u64);
        let pairs = line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let _ = writeln!(out, "{at:08x}  {pairs:<47}  {}", line.iter().map(shown).collect::<String>());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        assert_eq!(hex("00ff10"), Ok(Bytes(vec![0, 255, 16])));
        assert!(["0", "0x", "zz", "+1", "ä1"].iter().all(|text| hex(text).is_err()));
        assert_eq!(
            (number("0x10"), number("10"), size("10"), size("1 KiB")),
            (Ok(16), Ok(10), Ok(10), Ok(1_024))
        );
        assert!(["", "-1", "0xg", "1.5"].iter().all(|text| number(text).is_err()));
        assert!(opcode("add").is_err());
    }

    #[test]
    fn bytes_are_shown_with_their_addresses() {
        assert_eq!(
            dump(0x10, b"remote memory here\x00"),
            "00000010  72 65 6d 6f 74 65 20 6d 65 6d 6f 72 79 20 68 65  remote memory he\n\
             00000020  72 65 00                                         re.\n"
        );
    }

    #[test]
    fn long_transfers_have_parts_of_a_message() {
        let of = |bytes, most| parts(100, bytes, most).collect::<Vec<_>>();
        assert_eq!(of(0, 4), []);
        assert_eq!(of(9, 4), [(100, 0..4), (104, 4..8), (108, 8..9)]);
    }
}
