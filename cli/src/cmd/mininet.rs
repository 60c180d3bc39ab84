//! `p4rack mininet`.

use p4rack_codegen::{Rack, Scheme};
use p4rack_lab::process::on_path;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The network itself, in Python because Mininet belongs to the system's Python.
const SCRIPT: &str = include_str!("mininet.py");
const PYTHON: &str = "/usr/bin/python3";
const GET_MININET: &str = "sudo apt-get install --no-install-recommends mininet";

/// Arguments of `p4rack mininet`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Rack description
    rack: PathBuf,
    /// Kind of switch [default: the description's target]
    #[arg(long, value_parser = ["embedded", "bmv2"])]
    switch: Option<String>,
    #[arg(long, help = super::schemes::help("as described"))]
    scheme: Option<Scheme>,
    /// Instead of Mininet's prompt, ping between all hosts and run an incast; exit code 1 on failure
    #[arg(long)]
    test: bool,
    /// Duration of the test's incast, seconds
    #[arg(long = "duration", value_name = "S", default_value_t = 3, value_parser = crate::numbers::within::<u32>(1..=600))]
    duration_s: u32,
}

/// Runs it: this process becomes Mininet's.
pub fn run(args: Args) -> ExitCode {
    match prepare(&args) {
        Ok(config) => {
            let error = Command::new(PYTHON).arg("-c").arg(SCRIPT).arg(config.to_string()).exec();
            eprintln!("error: {PYTHON} did not start: {error}; get it by: sudo apt-get install python3");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(args: &Args) -> Result<Value, String> {
    let rack = Rack::load(&args.rack).map_err(|error| error.to_string())?;
    rack.with_one_switch("`p4rack mininet`").map_err(|error| format!("error: {error}"))?;
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    let kind = args.switch.as_deref().unwrap_or(rack.switch.target.name());
    needs(Path::new(PYTHON), "sudo apt-get install python3")?;
    let imported = Command::new(PYTHON)
        .args(["-c", "import mininet.net"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !imported.is_ok_and(|status| status.success()) {
        return Err(format!("error: {PYTHON} has no Mininet; get it by: {GET_MININET}"));
    }
    if kind == "bmv2" && on_path("simple_switch_grpc").is_none() {
        return Err("error: needs simple_switch_grpc on PATH; `p4rack doctor` tells how to get it".into());
    }
    let absolute =
        |path: &Path| path.canonicalize().map_err(|error| format!("error: {}: {error}", path.display()));
    let binary = std::env::current_exe().map_err(|error| format!("error: where this program is: {error}"))?;
    Ok(config(&rack, scheme, kind, args, (&binary, &absolute(&args.rack)?)))
}

fn needs(file: &Path, get_it_by: &str) -> Result<(), String> {
    let missing = || format!("error: needs {}, get it by: {get_it_by}", file.display());
    if file.exists() { Ok(()) } else { Err(missing()) }
}

/// Configuration passed to the script.
fn config(rack: &Rack, scheme: Scheme, kind: &str, args: &Args, (binary, file): (&Path, &Path)) -> Value {
    let hosts: Vec<Value> = rack
        .hosts
        .iter()
        .map(|host| {
            json!({
                "name": host.name, "port": host.port, "mac": host.mac.to_string(), "ip": host.ip.to_string(),
                "rate_bps": host.rate_bps,
            })
        })
        .collect();
    json!({
        "binary": binary, "rack": file, "scheme": scheme, "kind": kind, "test": args.test,
        "duration_s": args.duration_s, "hosts": hosts, "switch": rack.switch, "workload": workload(rack),
    })
}

/// An incast of the workload's hosts, or of all to the first.
fn workload(rack: &Rack) -> Value {
    match &rack.workload {
        Some(workload) if workload.store.is_none() => {
            let (one, many) = workload.ends();
            json!({ "receiver": one, "senders": many, "load_percent": workload.load_percent })
        }
        _ => {
            let mut names = rack.hosts.iter().map(|host| host.name.as_str());
            json!({ "receiver": names.next(), "senders": names.collect::<Vec<_>>() })
        }
    }
}
