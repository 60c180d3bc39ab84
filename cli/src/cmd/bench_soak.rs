//! `p4rack bench soak`.

use super::bench_p4runtime::{program, start};
use super::connect;
use p4rack_ctrl::bench::soak::{self, Sample, Soak};
use p4rack_lab::rows::Live;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `p4rack bench soak`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    target: connect::Args,
    /// Duration in minutes
    #[arg(long, default_value_t = 10.0, value_parser = super::finite)]
    minutes: f64,
    /// Seed of the random operations
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Process id of the server, to measure its memory [default: the switch that this command starts]
    #[arg(long, value_parser = crate::numbers::number::<u32>)]
    pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match soaked(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn soaked(args: &Args) -> Result<bool, String> {
    let mut target = args.target.for_switch(None);
    let mut own = None;
    if !args.target.names_a_server() {
        let (switch, addr) = start()?;
        target.addr = addr;
        own = Some(switch);
    }
    let soak = Soak {
        target,
        config: program()?,
        pid: args.pid.or(own.as_ref().map(|switch| switch.pid())),
        span: Duration::from_secs_f64((args.minutes * 60.0).clamp(1.0, 1e6)),
        seed: args.seed,
    };
    let live = Live::new(
        &[
            ">seconds",
            ">memory MB",
            ">updates",
            ">refused",
            ">entries read",
            ">sessions",
            ">packets",
            ">errors",
        ],
        &["100000.0", "10000.0", "1000000000", "1000000", "1000000000", "100000", "10000000", "1000"],
    );
    if !args.json {
        println!("seed {}", args.seed);
        println!("{}", live.header());
    }
    let mut done = |sample: &Sample| {
        if !args.json {
            let Sample { seconds, resident_mb, updates, refused, read, sessions, packets, errors } = sample;
            let mut row = vec![format!("{seconds:.1}"), format!("{resident_mb:.1}")];
            row.extend([updates, refused, read, sessions, packets, errors].map(ToString::to_string));
            println!("{}", live.line(row));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("starting threads: {error}"))?;
    let samples = runtime.block_on(soak::run(&soak, &mut done)).map_err(|error| error.to_string())?;
    let (grew, before, after) = soak::growth(&samples);
    let errors = samples.last().map_or(0, |sample| sample.errors);
    if args.json {
        let report = serde_json::json!({
            "seed": args.seed, "samples": samples, "memory_mb": [before, after], "grew": grew, "errors": errors,
        });
        println!("{report:#}");
    } else {
        let verdict = if grew { "grew" } else { "did not grow" };
        println!(
            "memory {verdict}: {before:.1} MB in the second quarter, {after:.1} MB in the last; {errors} errors"
        );
    }
    Ok(!grew && errors == 0)
}
