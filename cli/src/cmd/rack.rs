//! `p4rack rack`.

use super::fat_tree::{self, FatTreeArgs};
use super::settings::Settings;
use super::topology;
use crate::output::OutputFile;
use p4rack_codegen::description::import::{self, import};
use p4rack_codegen::rack::Rack;
use p4rack_codegen::setting::Setting;
use p4rack_codegen::text as files;
use p4rack_ctrl::runtime_json;
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4::v1::{Uint128, WriteRequest};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `p4rack rack`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Check a rack description and show what follows from it: slots, goodput ceilings; or a topology, with its programs and entries
    Check {
        /// The rack description or topology, TOML
        file: PathBuf,
        #[command(flatten)]
        settings: Settings,
        /// Print JSON: the checked model, or the errors
        #[arg(long)]
        json: bool,
    },
    /// Convert a topology.json of the P4 tutorials to a description
    ///
    /// Omits and lists parts that a rack does not have. The rack runs its own program; for entries
    /// of the tutorial's program, use `import-entries`.
    Import(ImportArgs),
    /// Convert a sN-runtime.json of the P4 tutorials to a text-format WriteRequest
    ImportEntries {
        /// The entries, JSON
        entries: PathBuf,
        /// P4Info of the entries' program, text format (`p4rack p4 info FILE.p4`)
        #[arg(long, value_name = "FILE")]
        p4info: PathBuf,
        /// Output file for the request
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// P4Runtime device id of the request
        #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
        device_id: u64,
    },
    /// Explain every field of a rack description
    Schema,
    /// Write the topology of a fat tree with its routes, and an experiment that loads it
    FatTree(FatTreeArgs),
}

#[derive(clap::Args, Debug)]
struct ImportArgs {
    /// The topology, JSON
    topology: PathBuf,
    /// Output file for the description
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Name of the rack [default: that of the output file]
    #[arg(long)]
    name: Option<String>,
    /// Name of the switch, if the topology has several
    #[arg(long, value_name = "SWITCH")]
    switch_name: Option<String>,
    /// Prefix length of all hosts' addresses, to put them into one subnet
    #[arg(long, value_name = "BITS", value_parser = crate::numbers::within::<u8>(1..=30))]
    prefix: Option<u8>,
    /// Rate of links without one
    #[arg(long, value_name = "RATE", default_value = "100 Mb/s")]
    port_rate: String,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Check { file, settings, json }
            if settings.set.is_empty() && topology::is_topology(&file) =>
        {
            topology::check(&file, json)
        }
        Command::Check { file, settings, json } => check(&file, &settings.set, json),
        Command::Import(args) => done(import_topology(&args)),
        Command::ImportEntries { entries, p4info, output, device_id } => {
            done(import_entries(&entries, &p4info, &output, device_id))
        }
        Command::FatTree(args) => done(fat_tree::run(&args)),
        Command::Schema => {
            print!("{}", p4rack_codegen::description::SCHEMA);
            ExitCode::SUCCESS
        }
    }
}

fn check(file: &Path, settings: &[Setting], as_json: bool) -> ExitCode {
    match Rack::load_set(file, settings) {
        Ok(rack) if as_json => println!("{:#}", rack.to_json()),
        Ok(rack) => {
            let summary = rack.summary();
            let (header, hosts) = summary.hosts;
            let mut rows = Rows::new(&header);
            hosts.into_iter().for_each(|host| rows.push(host));
            print!("{}\n{}\n{}", summary.rack, rows.text(), summary.workload);
        }
        Err(error) => {
            if as_json {
                println!("{:#}", json!({ "errors": error.errors }));
            } else {
                eprintln!("{error}");
            }
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

fn done(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let wanted = "JSON, or protobuf's text format";
    files::read(file).map_err(|error| format!("{}: {}", file.display(), files::fault(&error, wanted)))
}

fn import_entries(entries: &Path, p4info: &Path, output: &Path, device_id: u64) -> Result<(), String> {
    let written = OutputFile::open("--output", output)?;
    let info = text::parse(&read(p4info)?).map_err(|error| format!("{}: {error}", p4info.display()))?;
    let schema = Schema::new(info).map_err(|error| format!("{}: {error}", p4info.display()))?;
    let updates = runtime_json::updates(&read(entries)?, &schema)
        .map_err(|error| format!("{}: {error}", entries.display()))?;
    let count = updates.len();
    let election_id = Some(Uint128 { high: 0, low: 1 });
    let request = WriteRequest { device_id, election_id, updates, ..Default::default() };
    written.write(text::print(&request).as_bytes())?;
    println!("wrote {}: {count} updates", output.display());
    Ok(())
}

fn import_topology(args: &ImportArgs) -> Result<(), String> {
    let file = args.topology.display();
    let output = OutputFile::open("--output", &args.output)?;
    let text = read(&args.topology)?;
    let stem = args.output.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let options = import::Options {
        name: args.name.clone().or(stem).unwrap_or_else(|| "rack".into()),
        switch: args.switch_name.clone(),
        prefix: args.prefix,
        port_rate: args.port_rate.clone(),
    };
    let imported = import(&text, &options).map_err(|error| format!("{file}: {error}"))?;
    output.write(imported.toml.as_bytes())?;
    for what in imported.left_out {
        eprintln!("left out: {what}");
    }
    println!("wrote {}; check it with `p4rack rack check {0}`", args.output.display());
    Ok(())
}
