//! `p4rack deploy`.

use super::target;
use p4rack_codegen::{Rack, Scheme};
use p4rack_ctrl::deploy::{Step, deploy};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `p4rack deploy`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack's description, TOML
    rack: PathBuf,
    /// l2, pl2-counter or pl2-clock instead of what the description asks for
    #[arg(long)]
    scheme: Option<Scheme>,
    /// Kind of switch: embedded
    #[arg(long, default_value = "embedded", value_parser = ["embedded"])]
    to: String,
    #[command(flatten)]
    target: target::Args,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: Args) -> ExitCode {
    let rack = match Rack::load(&args.rack) {
        Ok(rack) => rack,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    let target = args.target.for_switch(Some(&rack.switch));
    let (addr, device_id) = (target.addr.clone(), target.device_id);
    let started = Instant::now();
    let mut verified = 0;
    let done = |step: Step| {
        let ms = started.elapsed().as_millis();
        let line = match step {
            Step::Generated { program_bytes, updates } => {
                format!(
                    "generated {scheme} for {}: {program_bytes} bytes of P4, {updates} entries",
                    rack.name
                )
            }
            Step::Connected => format!("connected to device {device_id} at {addr} as its primary"),
            Step::Installed => "installed the program".into(),
            Step::Written { updates } => format!("wrote {updates} entries"),
            Step::Verified { updates } => {
                verified = updates;
                format!("read {updates} entries back: the same")
            }
        };
        if !args.json {
            println!("✓ {line} ({ms} ms)");
        }
    };
    match target::block_on(deploy(&rack, scheme, target, done)) {
        Ok(()) => {
            if args.json {
                let ms = started.elapsed().as_millis() as u64;
                let report = json!({
                    "rack": rack.name, "scheme": scheme, "grpc_addr": addr, "device_id": device_id,
                    "entries": verified, "elapsed_ms": ms,
                });
                println!("{report:#}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => target::fail(&error, args.json),
    }
}
