//! `p4rack generate`.

use super::settings::Settings;
use crate::output::{self, OutputFile};
use p4rack_codegen::topology::{Runs, Switch, Topology};
use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_ctrl::provision::{self, Desired};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_p4rt::text::print as print_text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `p4rack generate`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, TOML; or a topology, whose switches each get a folder
    file: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Folder for NAME.p4, NAME.entries.txtpb, NAME.p4info.txtpb, NAME.json, NAME_layers.py (Scapy), NAME.lua
    /// (Wireshark) and, for tna and t2na, NAME.bf-rt.json and files for Tofino's SDE: NAME.switchd.conf,
    /// NAME.ports.json, NAME.ports.py, NAME.model.json
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Architecture of the program: v1model, tna (Tofino) or t2na (Tofino 2) [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
    #[arg(long, help = super::schemes::help("as described"))]
    scheme: Option<Scheme>,
    /// Print the written files as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match write(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

fn write(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    if super::topology::is_topology(&args.file) {
        return write_topology(args);
    }
    let rack = Rack::load_set(&args.file, &args.settings.set)?;
    let (scheme, arch) =
        (args.scheme.unwrap_or_else(|| rack.scheme()), args.arch.unwrap_or(rack.switch.arch));
    // Of a scheme that the rack can't run, the error below says more.
    let runs = rack.on(arch).under(scheme).unwrap_or_else(|_| rack.clone());
    runs.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let artefacts = generate(&rack, scheme, arch)?;
    let written = keep(&args.output, &artefacts.files())?;
    match args.json {
        true => println!("{:#}", json!({ "rack": rack.name, "scheme": scheme, "files": as_json(&written) })),
        false => print!("{}", as_text(&written)),
    }
    Ok(())
}

/// Writes what each switch of a topology gets into a folder of its own, once all of it has been made.
fn write_topology(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    for (option, is_given) in [
        ("--scheme", args.scheme.is_some()),
        ("--arch", args.arch.is_some()),
        ("--set", !args.settings.set.is_empty()),
    ] {
        if is_given {
            let file = args.file.display();
            return Err(
                format!("error: {option} is for racks, and {file} is a topology: leave it out").into()
            );
        }
    }
    let topology = Topology::load(&args.file)?;
    let (mut all, mut mistakes) = (Vec::new(), Vec::new());
    for (switch, desired) in topology.switches.iter().zip(provision::desired_of_all(&topology)) {
        match desired.map_err(|error| error.to_string()).and_then(|desired| files_of(switch, desired)) {
            Ok(files) => all.push((switch, files)),
            Err(error) => mistakes.push(error),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes.join("\n").into());
    }
    let mut switches = Vec::new();
    for (switch, files) in &all {
        switches.push((&switch.name, keep(&args.output.join(&switch.name), files)?));
    }
    if args.json {
        let switches =
            switches.iter().map(|(name, written)| json!({ "name": name, "files": as_json(written) }));
        let switches: Vec<Value> = switches.collect();
        println!("{:#}", json!({ "topology": topology.name, "switches": switches }));
    } else {
        print!("{}", as_text(&switches.into_iter().flat_map(|(_, written)| written).collect::<Vec<_>>()));
    }
    Ok(())
}

/// Names and contents of a switch's files; none if a controller brings its program.
fn files_of(switch: &Switch, desired: Option<Desired>) -> Result<Vec<(String, String)>, String> {
    if let Runs::Rack(_, rack) = &switch.runs {
        let made = generate(rack, rack.scheme(), rack.switch.arch).map_err(|error| error.to_string())?;
        return Ok(made.files());
    }
    let Some(desired) = desired else { return Ok(Vec::new()) };
    let text = String::from_utf8_lossy(&desired.config.p4_device_config).into_owned();
    let kind = if p4rack_bmv2::is_json(&text) { "json" } else { "p4" };
    let info = desired.config.p4info.as_ref().map(print_text).unwrap_or_default();
    let request = WriteRequest {
        device_id: switch.device_id,
        updates: provision::updates(&desired),
        ..WriteRequest::default()
    };
    let named = |ending: &str| format!("{}.{ending}", switch.name);
    let files =
        [(named(kind), text), (named("p4info.txtpb"), info), (named("entries.txtpb"), print_text(&request))];
    Ok(files.into())
}

/// Writes files into a folder. Returns their paths and sizes.
fn keep(
    folder: &Path,
    files: &[(String, String)],
) -> Result<Vec<(PathBuf, usize)>, Box<dyn std::error::Error>> {
    output::folder("--output", folder)?;
    let mut written = Vec::new();
    for (name, contents) in files {
        let path = folder.join(name);
        OutputFile::open("--output", &path)?.write(contents.as_bytes())?;
        written.push((path, contents.len()));
    }
    Ok(written)
}

fn as_json(written: &[(PathBuf, usize)]) -> Vec<Value> {
    let file =
        |(path, bytes): &(PathBuf, usize)| json!({ "path": path.display().to_string(), "bytes": bytes });
    written.iter().map(file).collect()
}

fn as_text(written: &[(PathBuf, usize)]) -> String {
    let mut rows = Rows::new(&[">bytes", "file"]);
    written.iter().for_each(|(path, bytes)| rows.push(vec![bytes.to_string(), path.display().to_string()]));
    rows.text()
}
