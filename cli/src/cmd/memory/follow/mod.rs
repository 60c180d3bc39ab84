//! `p4rack memory follow`: a memory operation on its way through captures.
//!
//! Each module reads the frames of one kind of service: `bytes` those of servers of bytes, `edm` those of nodes, `rdma` those of
//! pools, and `rings` those of pools and Cowbird's engines.

mod bytes;
mod clio;
mod edm;
mod operation;
mod rdma;
mod rings;

use super::{SchemeArgs, described, in_words};
use operation::{Operation, Seen};
use p4rack_codegen::Rack;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_fabric::remote::{Service, Way};
use p4rack_lab::rows::Rows;
use p4rack_report::text;
use p4rack_wire::MacAddr;
use p4rack_wire::pcap::Reader;
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Default of the maximum operations in the list.
const LIST: usize = 50;

/// Arguments of `p4rack memory follow`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description
    rack: PathBuf,
    /// Captures in pcap format, or folders of them, of any number of links; clocks must agree
    #[arg(required = true)]
    captures: Vec<PathBuf>,
    /// Show this operation of the list, frame by frame
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<usize>)]
    operation: Option<usize>,
    /// Only operations of this host
    #[arg(long, value_name = "HOST")]
    from: Option<String>,
    /// Only operations whose bytes begin at this address, decimal or 0x…
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    address: Option<u64>,
    /// Only operations whose last byte was not seen on its receiver's link
    #[arg(long)]
    incomplete: bool,
    /// Maximum operations in the list
    #[arg(long, value_name = "N", default_value_t = LIST, value_parser = crate::numbers::number::<usize>)]
    most: usize,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    let rack = described(&args.rack, &args.scheme)?;
    let way = p4rack_memory::way(&rack, args.scheme.way).map_err(in_words)?;
    if let Some(name) = &args.from {
        p4rack_memory::node(&rack, name).map_err(in_words)?;
    }
    let mut captures = Vec::new();
    for path in files(&args.captures)? {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        captures.push((path, bytes));
    }
    let mut seen = Vec::new();
    for (path, bytes) in &captures {
        let at = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        for record in Reader::new(bytes).map_err(|error| format!("{} {error}", path.display()))? {
            let record = record.map_err(|error| format!("{} {error}", path.display()))?;
            seen.push(Seen { time: record.time, at, frame: record.frame });
        }
    }
    let frames = seen.len();
    let (all, whose) = operations(&rack, way, seen)?;
    if all.is_empty() {
        return Err(format!(
            "none of the {frames} frames is {whose}; capture with `p4rack up RACK --pcap DIR`"
        ));
    }
    let wanted = |operation: &&Operation| {
        args.operation.is_none_or(|number| operation.number == number)
            && args.from.as_ref().is_none_or(|name| name_of(&rack, operation.from) == *name)
            && args.address.is_none_or(|address| operation.address == Some(address))
            && !(args.incomplete && operation.complete)
    };
    let found: Vec<&Operation> = all.iter().filter(wanted).collect();
    if found.is_empty() && args.incomplete && !args.json {
        println!(
            "all operations that were asked for are complete: their last bytes were seen on their receivers' links"
        );
        return Ok(());
    }
    if found.is_empty() && !args.json {
        return Err(format!("none of the {} operations is like that; leave out an option", all.len()));
    }
    match (args.json, args.operation) {
        (true, _) => println!("{}", json!(found)),
        (false, Some(_)) => found.iter().for_each(|operation| print!("{}", timeline(&rack, operation))),
        (false, None) => print!("{}", list(&rack, &found, args.most)),
    }
    Ok(())
}

/// The operations that frames show, and whose frames these are.
fn operations(rack: &Rack, way: Way, mut seen: Vec<Seen<'_>>) -> Result<(Vec<Operation>, String), String> {
    seen.sort_by_key(|seen| seen.time);
    Ok(match way.definition().service {
        Service::Node => {
            let ether_type = p4rack_memory::edm(rack).map_err(in_words)?.ether_type;
            let all = edm::operations(&seen, ether_type, rack.switch.time_unit_ns);
            (all, format!("EDM's (EtherType {ether_type})"))
        }
        Service::Pool if way.definition().engine.is_some() => {
            (rings::operations(&seen), "of an engine that serves Cowbird's rings".to_owned())
        }
        Service::Pool => (rdma::operations(&seen), "RDMA's".to_owned()),
        Service::Board => {
            let described = rack.protocol::<Clio>().map(|clio| clio.udp_port);
            let udp_port = described.unwrap_or(p4rack_wire::clio::UDP_PORT);
            (clio::operations(&seen, udp_port), format!("Clio's (UDP port {udp_port})"))
        }
        Service::Bytes => (
            bytes::operations(&seen),
            "of a connection to a server of bytes, from its first one on".to_owned(),
        ),
        Service::None => {
            return Err(format!("--way {way}: that memory is each program's own, and no frame reaches it"));
        }
    })
}

/// The files among these paths, and those in folders whose names end in `.pcap`.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            inside.push(entry.map_err(failed)?.path());
        }
        inside.retain(|file| is_of_link(file));
        if inside.is_empty() {
            return Err(format!(
                "{}: has no captures of links; `up --pcap DIR` writes DIR/SCHEME/NAME.pcap",
                path.display()
            ));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// Whether a file may be a capture of a link. That of the control channel has no frames of hosts.
fn is_of_link(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "pcap")
        && file.file_stem().is_some_and(|stem| stem != "control")
}

fn name_of(rack: &Rack, mac: MacAddr) -> String {
    let host = rack.hosts.iter().find(|host| host.mac == mac);
    host.map_or_else(|| mac.to_string(), |host| host.name.clone())
}

fn sentence(rack: &Rack, operation: &Operation) -> String {
    let what = operation.what.map_or("part", |what| what.name());
    let bytes = operation.bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
    let address = operation.address.map_or_else(String::new, |address| format!(" at {address:#x}"));
    let (from, to) = (name_of(rack, operation.from), name_of(rack, operation.to));
    format!("{what}{bytes}{address} of {to}, asked by {from}")
}

/// How it ended, as far as the captures show.
fn end(operation: &Operation) -> String {
    match &operation.refused {
        Some(why) => why.clone(),
        None if operation.complete => "complete".to_owned(),
        None => match &operation.last_at {
            Some(at) => format!("last byte seen at {at} alone"),
            None => "not complete".to_owned(),
        },
    }
}

fn list(rack: &Rack, found: &[&Operation], most: usize) -> String {
    let mut rows = Rows::new(&[">number", ">begins", ">takes", ">frames", "operation"]);
    let start_ns =
        found.iter().filter_map(|operation| operation.events.first()).map(|event| event.time_ns).min();
    for operation in found.iter().take(most) {
        let begins_ns = operation.events.first().map_or(0, |event| event.time_ns) - start_ns.unwrap_or(0);
        rows.push(vec![
            operation.number.to_string(),
            text::micros(begins_ns as f64 / 1e3),
            text::micros(operation.took_ns() as f64 / 1e3),
            operation.events.len().to_string(),
            format!("{}: {}", sentence(rack, operation), end(operation)),
        ]);
    }
    let mut out = rows.text();
    if found.len() > most {
        let _ = writeln!(
            out,
            "… and {} more; --most shows them, --from and --address choose",
            found.len() - most
        );
    }
    out
}

fn timeline(rack: &Rack, operation: &Operation) -> String {
    let took = text::micros(operation.took_ns() as f64 / 1e3);
    let mut out = format!(
        "operation {}, id {}: {}: {} after {took}\n",
        operation.number,
        operation.id,
        sentence(rack, operation),
        end(operation)
    );
    let start_ns = operation.events.first().map_or(0, |event| event.time_ns);
    let mut rows = Rows::new(&[">after", "at", "frame", ""]);
    for event in &operation.events {
        let after = text::micros((event.time_ns - start_ns) as f64 / 1e3);
        rows.push(vec![after, event.at.clone(), event.kind.to_owned(), event.says.clone()]);
    }
    out += &rows.text();
    out
}
