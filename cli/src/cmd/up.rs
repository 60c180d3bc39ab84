//! `p4rack up`, `exec` and `down`.

use super::refused;
use super::settings::Settings;
use super::simulated;
use crate::output::{self, OutputFile};
use p4rack_codegen::Arch;
use p4rack_codegen::rack::Run;
use p4rack_codegen::topology::Exercise;
use p4rack_lab::keep::{self, Down, KeepOptions};
use p4rack_lab::results::Results;
use p4rack_lab::up::{self, Options};
use p4rack_lab::{report, table, topology};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `p4rack up`.
#[derive(clap::Args, Debug)]
pub struct UpArgs {
    /// Rack description, e.g. examples/pl2-incast.toml; several run one after the other. Or a topology, e.g.
    /// examples/pod/pod.toml
    #[arg(required = true)]
    rack: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Write the figures as JSON to a file, or without =FILE to standard output in place of the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write a self-contained HTML report with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Build the rack or topology and leave it running without its workload; see `p4rack exec` and `p4rack down`
    #[arg(long, conflicts_with_all = ["json", "html", "duration_s", "seed"])]
    keep: bool,
    #[arg(long, value_name = "SCHEME", help = super::schemes::help_of_runs("as described; with --keep, the rack's protocols"))]
    scheme: Vec<Run>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
    /// Run the same racks and workloads in virtual time too, and show both
    #[arg(long, conflicts_with = "keep")]
    simulate: bool,
    /// Duration of the measured part of each scheme, seconds [default: as described]
    #[arg(long = "duration", value_name = "S", value_parser = duration)]
    duration_s: Option<f64>,
    /// Seed of the workload [default: as described]
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u64>)]
    seed: Option<u64>,
    /// Of a topology: after the hosts' commands, run the lines of a file as `p4rack lab` takes them
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["keep", "simulate", "scheme", "arch", "duration_s", "seed", "html"])]
    test: Option<PathBuf>,
    /// Write captures of the rack's links and of the control channel to a folder per scheme
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `p4rack exec`.
#[derive(clap::Args, Debug)]
pub struct ExecArgs {
    /// Name of the host, or `switch`; of a topology, that of a host or switch
    host: String,
    /// Name of the rack, if several are running
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Arguments of `p4rack down`.
#[derive(clap::Args, Debug)]
pub struct DownArgs {
    /// Name of the rack, if several are running
    name: Option<String>,
    /// End all of your racks, including those that are starting or have lost their file
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

fn duration(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// Runs the command.
pub fn up(args: UpArgs) -> ExitCode {
    if let Some(topology) = args.rack.iter().find(|path| super::topology::is_topology(path)).cloned() {
        return up_topology(args, topology);
    }
    if let Some(script) = &args.test {
        return refused(format!(
            "--test {}: scripts test topologies, and this is a rack: leave the option out",
            script.display()
        ));
    }
    if args.keep {
        return keep_running(args);
    }
    let outputs = match Outputs::open(args.json.as_deref(), args.html, args.pcap.as_deref()) {
        Ok(outputs) => outputs,
        Err(error) => return refused(error),
    };
    let several = args.rack.len() > 1;
    let one = |path: &PathBuf| {
        // Racks may have links and hosts of the same names.
        let of_rack = |folder: &PathBuf| match several {
            true => folder.join(path.file_stem().unwrap_or_default()),
            false => folder.clone(),
        };
        let options = Options {
            path: path.clone(),
            settings: args.settings.set.clone(),
            schemes: args.scheme.clone(),
            arch: args.arch,
            duration_s: args.duration_s,
            seed: args.seed,
            captures: args.pcap.as_ref().map(of_rack),
            quiet: args.quiet,
        };
        if args.simulate {
            simulated::check(path, &args.settings.set)?;
        }
        let mut results = up::run(&options).map_err(|error| error.to_string())?;
        if args.simulate {
            results.simulated = simulated::simulate(path, &args.settings.set, &results)?;
        }
        Ok(results)
    };
    let done: Result<Vec<Results>, String> = args.rack.iter().map(one).collect();
    match done.and_then(|results| outputs.write(&results)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => refused(error),
    }
}

/// Runs the command for a topology, which has neither workload nor schemes.
fn up_topology(args: UpArgs, path: PathBuf) -> ExitCode {
    let settings = !args.settings.set.is_empty();
    let given = [
        ("--set", settings),
        ("--scheme", !args.scheme.is_empty()),
        ("--arch", args.arch.is_some()),
        ("--simulate", args.simulate),
        ("--duration", args.duration_s.is_some()),
        ("--seed", args.seed.is_some()),
        ("--html", args.html.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return refused(format!("{option} is for racks, and {} is a topology: leave it out", path.display()));
    }
    if args.rack.len() > 1 {
        return refused("a topology runs alone: give one file");
    }
    if let Err(error) = args.pcap.as_deref().map_or(Ok(()), |folder| output::folder("--pcap", folder)) {
        return refused(error);
    }
    if args.keep {
        return keep_running(args);
    }
    let as_json = match args.json.as_deref() {
        None => false,
        Some(file) if file == Path::new("-") => true,
        Some(_) => return refused("--json of a topology goes to standard output: leave out =FILE"),
    };
    let options = topology::Options {
        path,
        exercise: Exercise::default(),
        commands_may_fail: false,
        captures: args.pcap,
        quiet: args.quiet,
    };
    super::topology::up(&options, args.test, as_json)
}

/// Files for the figures, opened before the run.
struct Outputs {
    json: Option<Json>,
    html: Option<(PathBuf, OutputFile)>,
}

enum Json {
    StandardOutput,
    File(OutputFile),
}

impl Outputs {
    fn open(json: Option<&Path>, html: Option<PathBuf>, pcap: Option<&Path>) -> Result<Outputs, String> {
        let json = match json {
            Some(path) if path == Path::new("-") => Some(Json::StandardOutput),
            other => other.map(|path| OutputFile::open("--json", path).map(Json::File)).transpose()?,
        };
        let html = html.map(|path| Ok::<_, String>((path.clone(), OutputFile::open("--html", &path)?)));
        pcap.map_or(Ok(()), |folder| output::folder("--pcap", folder))?;
        Ok(Outputs { json, html: html.transpose()? })
    }

    /// Writes files first, then a table or JSON to standard output. Returns whether all promises were kept.
    fn write(self, results: &[Results]) -> Result<bool, String> {
        let json = match results {
            [one] => format!("{}\n", one.to_json()),
            all => format!("[{}]\n", all.iter().map(Results::to_json).collect::<Vec<_>>().join(",\n")),
        };
        let json_on_output = match self.json {
            Some(Json::File(file)) => {
                file.write(json.as_bytes())?;
                false
            }
            Some(Json::StandardOutput) => true,
            None => false,
        };
        if let Some((path, file)) = self.html {
            file.write(report::html(results).as_bytes())?;
            eprintln!("report: {}", path.display());
        }
        let table = results.iter().map(table::render).collect::<Vec<_>>().join("\n");
        if json_on_output {
            eprint!("{table}");
            print!("{json}");
        } else {
            print!("{table}");
        }
        Ok(results.iter().all(|results| results.failures.is_empty()))
    }
}

fn keep_running(args: UpArgs) -> ExitCode {
    if args.scheme.len() > 1 {
        return refused("--keep runs one scheme: give --scheme once");
    }
    let [path] = args.rack.as_slice() else {
        return refused("--keep leaves one rack running: give one description");
    };
    if let Some(run) = args.scheme.iter().find(|run| run.way.is_some() || run.server.is_some()) {
        let what = if run.server.is_some() { "server" } else { "way" };
        return refused(format!(
            "--keep runs no workload, and {run} is a {what} of one: give a scheme such as {}",
            run.scheme
        ));
    }
    let options = KeepOptions {
        path: path.clone(),
        settings: args.settings.set,
        scheme: args.scheme.first().map(|run| run.scheme),
        arch: args.arch,
        captures: args.pcap,
        quiet: args.quiet,
    };
    let started = options.captures.as_deref().map_or(Ok(()), |folder| output::folder("--pcap", folder));
    let is_topology = super::topology::is_topology(&options.path);
    let keep = || if is_topology { topology::keep(&options) } else { keep::keep(&options) };
    match started.and_then(|()| keep().map_err(|error| error.to_string())) {
        Ok(rack) => {
            println!("{}", keep::welcome(&rack));
            ExitCode::SUCCESS
        }
        Err(error) => refused(error),
    }
}

/// Runs the command.
pub fn exec(args: ExecArgs) -> ExitCode {
    refused(keep::exec(args.rack.as_deref(), &args.host, &args.command))
}

/// Runs the command.
pub fn down(args: DownArgs) -> ExitCode {
    let ended =
        if args.all { keep::down_all() } else { keep::down(args.name.as_deref()).map(|down| vec![down]) };
    match ended {
        Ok(all) if all.is_empty() => {
            println!("no rack is running");
            ExitCode::SUCCESS
        }
        Ok(all) => {
            let mut code = ExitCode::SUCCESS;
            for Down { name, word } in &all {
                println!("{name} is down");
                if let Some(word) = word {
                    code = refused(format!("{name}: {word}"));
                }
            }
            code
        }
        Err(error) => refused(error),
    }
}
