//! `p4rack bench p4runtime`.

use super::own_switch::OwnSwitch;
use super::{bmv2, connect};
use crate::output::OutputFile;
use p4rack_ctrl::bench::{self, Figure, Plan, Run};
use p4rack_lab::rows::{Live, Rows};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::ForwardingPipelineConfig;
use p4rack_p4rt::text;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Arguments of `p4rack bench p4runtime`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    target: connect::Args,
    /// P4Info of the benchmark's program, for a switch that takes a compiler's output
    #[arg(long, value_name = "FILE", requires = "device_config")]
    p4info: Option<PathBuf>,
    /// The benchmark's program in the form that the switch takes: P4_16 text, or BMv2's JSON
    #[arg(long, value_name = "FILE", requires = "p4info")]
    device_config: Option<PathBuf>,
    /// Also measure BMv2's simple_switch_grpc in the same run; it and p4c-bm2-ss must be on PATH
    #[arg(long, conflicts_with_all = ["p4info", "pid"])]
    beside_bmv2: bool,
    /// Write the benchmark's P4 program to this file and exit, to compile it for another switch
    #[arg(long, value_name = "FILE")]
    write_program: Option<PathBuf>,
    /// Process id of the server, to measure its memory [default: the switch that this command starts]
    #[arg(long, value_parser = crate::numbers::number::<u32>)]
    pid: Option<u32>,
    /// Number of entries to read
    #[arg(long, default_value_t = 100_000, value_parser = crate::numbers::number::<usize>)]
    read_entries: usize,
    /// Number of entries to write for the measurement of memory
    #[arg(long, default_value_t = 1_000_000, value_parser = crate::numbers::number::<usize>)]
    many_entries: usize,
    /// Number of streams to open
    #[arg(long, default_value_t = 1_000, value_parser = crate::numbers::number::<usize>)]
    streams: usize,
    /// Only measurements whose name contains this: push, unary, bad, batch, read, reconcile, memory, streams,
    /// and of this command's own switch save
    #[arg(long)]
    only: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    if let Some(path) = &args.write_program {
        let file = OutputFile::open("--write-program", path);
        return match file.and_then(|file| file.write(bench::PROGRAM.as_bytes())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match measure_all(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(args: &Args) -> Result<(), String> {
    let own = (!args.target.names_a_server()).then(start).transpose()?;
    let mut target = args.target.for_switch(None);
    if let Some((_, addr)) = &own {
        target.addr = addr.clone();
    }
    let plan = Plan {
        target,
        config: config(args)?,
        pid: args.pid.or(own.as_ref().map(|(switch, _)| switch.pid())),
        read_entries: args.read_entries,
        many_entries: args.many_entries,
        streams: args.streams,
        only: args.only.clone(),
    };
    if !args.beside_bmv2 {
        let mut figures = measure(&plan, args.json)?;
        if own.is_some() && args.only.as_ref().is_none_or(|only| "save".contains(only.as_str())) {
            let figure = super::bench_save::measure(&plan.target.addr)?;
            tell(&figure, args.json);
            figures.push(figure);
        }
        measured(&figures, args.only.as_deref())?;
        if args.json {
            println!("{:#}", json_of(&figures));
        }
        return Ok(());
    }
    let device_config = p4rack_ctrl::bmv2::compile_text("bench", bench::PROGRAM);
    let device_config = device_config.map_err(|error| error.to_string())?;
    let other = bmv2::Bmv2::start(plan.target.device_id)?;
    let mut beside = Plan { pid: Some(other.pid()), ..plan.clone() };
    beside.target.addr = other.addr().into();
    beside.config.p4_device_config = device_config;
    say(args.json, "the switch");
    let ours = measure(&plan, args.json)?;
    measured(&ours, args.only.as_deref())?;
    say(args.json, "\nsimple_switch_grpc");
    let theirs = measure(&beside, args.json)?;
    if args.json {
        println!("{:#}", json!({ "switch": json_of(&ours), "bmv2": json_of(&theirs) }));
    } else {
        print!("\n{}", compared(&ours, &theirs).text());
    }
    Ok(())
}

/// Errors: `--only` names no measurement.
pub(super) fn measured(figures: &[Figure], only: Option<&str>) -> Result<(), String> {
    match only.filter(|_| figures.is_empty()) {
        Some(only) => Err(format!("--only: no measurement has `{only}` in its name; --help lists them")),
        None => Ok(()),
    }
}

fn say(as_json: bool, line: &str) {
    if !as_json {
        println!("{line}");
    }
}

pub(super) fn json_of(figures: &[Figure]) -> Value {
    let row = |figure: &Figure| {
        let Figure { name, value, unit, detail } = figure;
        json!({ "name": name, "value": value, "unit": unit, "detail": detail })
    };
    figures.iter().map(row).collect()
}

/// The figures of both servers side by side.
fn compared(ours: &[Figure], theirs: &[Figure]) -> Rows {
    let mut rows = Rows::new(&["", ">the switch", ">BMv2", "unit", ">ratio"]);
    for figure in ours {
        let Some(other) = theirs.iter().find(|other| other.name == figure.name) else { continue };
        rows.push(vec![
            figure.name.into(),
            show(figure.value),
            show(other.value),
            figure.unit.into(),
            format!("{:.2}", figure.value / other.value),
        ]);
    }
    rows
}

fn show(value: f64) -> String {
    let decimals = if value < 100.0 { 3 } else { 0 };
    format!("{value:.decimals$}")
}

/// Measures one server and prints each figure as it becomes available.
fn measure(plan: &Plan, quiet: bool) -> Result<Vec<Figure>, String> {
    let mut done = |figure: &Figure| tell(figure, quiet);
    on_one_thread(bench::run(plan, &mut done))
}

/// Prints a figure, unless JSON is printed at the end.
pub(super) fn tell(figure: &Figure, quiet: bool) {
    if !quiet {
        let Figure { name, value, unit, detail } = figure;
        let live = Live::new(
            &["figure", ">value", "unit", "how"],
            &["insert of a table entry, one an update", "1000000000", "entries/s", ""],
        );
        println!(
            "{}",
            live.line(vec![(*name).to_owned(), show(*value), (*unit).to_owned(), format!("({detail})")])
        );
    }
}

/// Runs a benchmark on a single thread, so that none has to wake another.
pub(super) fn on_one_thread<T>(run: Run<'_, T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("starting threads: {error}"))?;
    runtime.block_on(run).map_err(|error| error.to_string())
}

fn config(args: &Args) -> Result<ForwardingPipelineConfig, String> {
    if let (Some(p4info), Some(device_config)) = (&args.p4info, &args.device_config) {
        let unreadable = |path: &PathBuf, error| format!("reading {}: {error}", path.display());
        let text = std::fs::read_to_string(p4info).map_err(|error| unreadable(p4info, error))?;
        let info: P4Info = text::parse(&text).map_err(|error| format!("{}:{error}", p4info.display()))?;
        let config = std::fs::read(device_config).map_err(|error| unreadable(device_config, error))?;
        return Ok(ForwardingPipelineConfig { p4info: Some(info), p4_device_config: config, cookie: None });
    }
    program()
}

/// The benchmark's program, for the embedded switch.
pub(super) fn program() -> Result<ForwardingPipelineConfig, String> {
    let compiled = p4rack_p4::compile(bench::PROGRAM, "bench.p4", &p4rack_p4::Options::default())
        .map_err(|diagnostics| diagnostics.render(false))?;
    Ok(ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: bench::PROGRAM.into(),
        cookie: None,
    })
}

/// Starts a switch without ports at a free address.
pub(super) fn start() -> Result<(OwnSwitch, String), String> {
    start_with(&[])
}

/// The same with further options.
pub(super) fn start_with(options: &[&str]) -> Result<(OwnSwitch, String), String> {
    let fail = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let addr = bmv2::free_addr()?;
    let program = std::env::current_exe().map_err(|error| fail("finding this program", error))?;
    let mut child = Command::new(program)
        .args(["switch", "run", "--no-p4", "--grpc-server-addr", &addr])
        .args(options)
        // Warnings provoked by a measurement would hide its figures.
        .env("P4RACK_LOG", std::env::var("P4RACK_LOG").unwrap_or_else(|_| "error".into()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| fail("starting a switch", error))?;
    let stdout = child.stdout.take();
    let switch = OwnSwitch(child);
    let mut line = String::new();
    if let Some(stdout) = stdout {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    match line.starts_with("ready") {
        true => Ok((switch, addr)),
        false => Err("the switch did not start; its message stands above".into()),
    }
}
