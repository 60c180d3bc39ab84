//! `p4rack bench hostile-clients`.

use super::bench_p4runtime::{program, start};
use super::connect;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use p4rack_ctrl::bench::hostile::{self, Behaviour, Hostile};
use p4rack_report::text::count;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `p4rack bench hostile-clients`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    target: connect::Args,
    /// Number of concurrent hostile connections
    #[arg(long, default_value_t = 1000, value_parser = crate::numbers::number::<usize>)]
    connections: usize,
    /// Their behaviours, in equal parts [default: all]
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = kinds())]
    only: Vec<Behaviour>,
    /// Duration in seconds
    #[arg(long, default_value_t = 20.0, value_parser = super::finite)]
    seconds: f64,
    /// Limit of the server's resident memory, MB
    #[arg(long, default_value_t = 1000.0)]
    most_mb: f64,
    /// Limit of the 99th percentile of the good client's write latency, ms
    #[arg(long, default_value_t = 10.0)]
    p99_ms: f64,
    /// Process id of the server, to measure its memory; required with --grpc-addr
    #[arg(long, requires = "grpc_addr", value_parser = crate::numbers::number::<u32>)]
    pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn kinds() -> impl TypedValueParser<Value = Behaviour> {
    let names = PossibleValuesParser::new(Behaviour::ALL.map(Behaviour::name));
    names.try_map(|name| Behaviour::ALL.into_iter().find(|kind| kind.name() == name).ok_or("no such kind"))
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match measured(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measured(args: &Args) -> Result<bool, String> {
    let mut target = args.target.for_switch(None);
    if target.tls.is_some() {
        return Err("hostile clients support plain text only: omit --ssl".into());
    }
    let mut own = None;
    let pid = match (args.target.names_a_server(), args.pid) {
        (true, Some(pid)) => pid,
        (true, None) => {
            return Err("--grpc-addr requires --pid, the server's process id, to measure its memory".into());
        }
        (false, _) => {
            let (switch, addr) = start()?;
            target.addr = addr;
            own.insert(switch).pid()
        }
    };
    let span = Duration::from_secs_f64(args.seconds.clamp(1.0, 3600.0));
    let kinds = if args.only.is_empty() { Behaviour::ALL.to_vec() } else { args.only.clone() };
    let connections = args.connections.min(20_000);
    let plan = Hostile { target, config: program()?, pid, connections, kinds, span };
    let seen = hostile::run(&plan).map_err(|error| error.to_string())?;
    let kept = [
        ("resident memory", seen.most_mb, args.most_mb, "MB"),
        ("99th percentile of writes", seen.p99_ms, args.p99_ms, "ms"),
    ];
    if args.json {
        println!("{:#}", serde_json::json!({ "seen": seen, "most_mb": args.most_mb, "p99_ms": args.p99_ms }));
    } else {
        println!(
            "{} hostile connections at a time, {} in {:.0} s, which sent {:.1} MB",
            count(plan.connections as u64),
            count(seen.connections),
            span.as_secs_f64(),
            seen.sent_bytes as f64 / 1e6
        );
        println!(
            "{} writes of the good client: p50 {:.2} ms, p99 {:.2} ms (alone {:.2} ms), slowest {:.1} ms",
            count(seen.writes as u64),
            seen.p50_ms,
            seen.p99_ms,
            seen.alone_p99_ms,
            seen.max_ms
        );
        println!("resident memory: {:.0} MB before, {:.0} MB at most", seen.before_mb, seen.most_mb);
        for (what, value, most, unit) in kept {
            let verdict = if value <= most { "kept" } else { "NOT KEPT" };
            println!("{what}: {value:.2} {unit}, {most} {unit} allowed: {verdict}");
        }
    }
    Ok(kept.iter().all(|(_, value, most, _)| value <= most))
}
