//! `p4rack generate`.

use super::settings::Settings;
use crate::output::{self, OutputFile};
use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_lab::rows::Rows;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack generate`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, TOML
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
    let rack = Rack::load_set(&args.file, &args.settings.set)?;
    let (scheme, arch) =
        (args.scheme.unwrap_or_else(|| rack.scheme()), args.arch.unwrap_or(rack.switch.arch));
    // Of a scheme that the rack can't run, the error below says more.
    let runs = rack.on(arch).under(scheme).unwrap_or_else(|_| rack.clone());
    runs.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    output::folder("--output", &args.output)?;
    let artefacts = generate(&rack, scheme, arch)?;
    let mut written = Vec::new();
    for (name, contents) in artefacts.files() {
        let path = args.output.join(name);
        OutputFile::open("--output", &path)?.write(contents.as_bytes())?;
        written.push((path, contents.len()));
    }
    if args.json {
        let files: Vec<_> = written
            .iter()
            .map(|(path, bytes)| json!({ "path": path.display().to_string(), "bytes": bytes }))
            .collect();
        println!("{:#}", json!({ "rack": rack.name, "scheme": scheme, "files": files }));
    } else {
        let mut rows = Rows::new(&[">bytes", "file"]);
        written
            .iter()
            .for_each(|(path, bytes)| rows.push(vec![bytes.to_string(), path.display().to_string()]));
        print!("{}", rows.text());
    }
    Ok(())
}
