//! `p4rack bench`.

use super::bmv2;
use p4rack_netdev::netns;
use p4rack_netdev::packet::{self, Io};
use p4rack_switchd::bench::forward::{self, Beside, Forward, Rate};
use p4rack_switchd::bench::timers::{self, Lateness};
use p4rack_switchd::driver::IoChoice;
use p4rack_wire::Nanos;
use std::process::ExitCode;

/// Arguments of `p4rack bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Frames of 64 and of 1500 bytes a second through the embedded switch, beside an empty loop over the same sockets
    ///
    /// For each kind of I/O that `p4rack switch run --io` knows and the kernel gives.
    Forward {
        /// Only this kind of I/O: packet, ring or xdp
        #[arg(long, value_name = "KIND")]
        io: Option<Io>,
        /// Length of one measurement
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Measurements of each kind; the median counts
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Measure BMv2's simple_switch_grpc as well, which must be on PATH as p4c-bm2-ss must, in the same run
        #[arg(long)]
        beside_bmv2: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// How fast a P4Runtime server takes and returns entries, seen by a client
    ///
    /// Starts an embedded switch without ports, or measures the one at --grpc-addr, whose state is cleared.
    #[command(name = "p4runtime")]
    P4runtime(Box<super::bench_p4runtime::Args>),
    /// Random writes, reads, reconnects and packets for a long time: does memory grow, does anything fail?
    ///
    /// Starts an embedded switch without ports, or takes the one at --grpc-addr, whose state is cleared. Exit code 1
    /// if memory grew or something failed that the load did not mean to.
    Soak(Box<super::bench_soak::Args>),
    /// A thousand connections that misbehave beside one that writes: the server's memory, the good one's waiting
    ///
    /// A quarter reads large answers a few bytes at a time, a quarter takes no errors of what it sends on streams, a
    /// quarter takes none of batches that fail, a quarter stops in the handshake. Starts an embedded switch without
    /// ports, or takes the one at --grpc-addr, whose state is cleared. Exit code 1 if a bound was not kept.
    HostileClients(Box<super::bench_hostile::Args>),
    /// What a hostile host takes from the others: every attack on a rack of real processes, beside the same host honest
    ///
    /// Exit code 1 if a promise was broken: others keep 90 % of their goodput, lose no frame, and wait at most twice as long.
    Hostile(super::hostile::Args),
    /// Frame-hops a second of the rack in virtual time, and its memory
    Sim(super::bench_sim::Args),
    /// How late sleeping threads are woken: the shortest slot that this machine can keep
    Timers {
        /// Sleep this long each time
        #[arg(long, default_value_t = 123)]
        interval_us: u64,
        /// Length of each of the four measurements
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs it.
pub fn run(args: Args) -> ExitCode {
    let printed = match args.command {
        Command::Forward { io, seconds, rounds, beside_bmv2, json } => {
            forward_all(io, seconds, rounds, beside_bmv2, json)
        }
        Command::P4runtime(args) => return super::bench_p4runtime::run(*args),
        Command::Soak(args) => return super::bench_soak::run(*args),
        Command::HostileClients(args) => return super::bench_hostile::run(&args),
        Command::Hostile(args) => return super::hostile::bench(args),
        Command::Sim(args) => return super::bench_sim::run_bench(&args),
        Command::Timers { interval_us, seconds, json } => {
            let span = Nanos((seconds.clamp(0.01, 60.0) * 1e9) as u64);
            timers::run(Nanos::from_micros(interval_us.clamp(1, 1_000_000)), span)
                .map(|result| if json { as_json(&result) } else { timers_text(&result) })
                .map_err(|error| error.to_string())
        }
    };
    match printed {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn as_json(result: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(result).expect("structs of numbers and names are JSON")
}

fn forward_all(
    only: Option<Io>,
    seconds: f64,
    rounds: usize,
    beside_bmv2: bool,
    json: bool,
) -> Result<String, String> {
    netns::acquire().map_err(|error| error.to_string())?;
    let (mut results, mut skipped) = (Vec::new(), Vec::new());
    for io in Io::ALL.into_iter().filter(|io| only.is_none_or(|only| only == *io)) {
        if let Err(error) = packet::probe(io) {
            let why = error.source;
            skipped.push(format!(
                "{io} skipped: needs rights or a kernel that has it ({why}); see `p4rack doctor`"
            ));
            continue;
        }
        for bytes in forward::LENGTHS {
            results.push(forward::run(io, bytes, seconds, rounds).map_err(|error| error.to_string())?);
        }
    }
    let beside = if beside_bmv2 { forward_beside_bmv2(only, seconds, rounds)? } else { Vec::new() };
    if json {
        let all = serde_json::json!({ "forward": results, "beside_bmv2": beside, "skipped": skipped });
        return Ok(as_json(&all));
    }
    let others = beside.iter().map(beside_text);
    Ok(results.iter().map(forward_text).chain(others).chain(skipped).collect::<Vec<String>>().join("\n\n"))
}

/// The same program and frames through BMv2, which has only one kind of I/O, and at its best pace through the switch.
fn forward_beside_bmv2(only: Option<Io>, seconds: f64, rounds: usize) -> Result<Vec<Beside>, String> {
    let program = p4rack_ctrl::bmv2::compile_text("bench", forward::PROGRAM);
    let folder = bmv2::private_folder()?;
    let json = folder.path().join("program.json");
    let other = bmv2::forwarder(&json)?;
    std::fs::write(&json, program.map_err(|error| error.to_string())?)
        .map_err(|error| format!("{}: {error}", json.display()))?;
    let io = only.map_or(IoChoice::Auto, IoChoice::Only);
    let both = forward::LENGTHS.map(|bytes| forward::run_beside(&other, io, bytes, seconds, rounds));
    both.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn rate_head(kind: &str) -> String {
    format!("{kind:<12}{:>12}{:>14}{:>16}\n", "frames/s", "offered/s", "CPU ns/frame")
}

fn rate_line(name: &str, rate: &Rate) -> String {
    let Rate { frames_per_s, cpu_ns_per_frame, offered_per_s } = rate;
    let limit = if rate.sender_was_limit() { "  (the sender was the limit)" } else { "" };
    format!("{name:<12}{frames_per_s:>12.0}{offered_per_s:>14.0}{cpu_ns_per_frame:>16.0}{limit}\n")
}

fn forward_text(result: &Forward) -> String {
    format!(
        "{}{}{}ratio {:.2}, by CPU time {:.2} ({}-byte frames, {} s a round, median round)",
        rate_head(&result.io.to_string()),
        rate_line("switch", &result.switch),
        rate_line("empty loop", &result.empty_loop),
        result.ratio,
        result.cpu_ratio,
        result.frame_bytes,
        result.seconds,
    )
}

fn beside_text(Beside { frame_bytes, other, switch }: &Beside) -> String {
    format!(
        "{}{}{}({frame_bytes}-byte frames, at the pace at which BMv2 forwards most)",
        rate_head("beside BMv2"),
        rate_line("switch", switch),
        rate_line("BMv2", other),
    )
}

fn timers_text(results: &[Lateness]) -> String {
    let mut text = format!(
        "{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}   (late by, µs)",
        "scheduling", "spinning", "p50", "p99", "p99.9", "max"
    );
    for r in results {
        let scheduling = match r.scheduling.map(|granted| granted.fifo_priority) {
            Some(Some(priority)) => format!("FIFO {priority}"),
            Some(None) => "FIFO refused".to_owned(),
            None => "ordinary".to_owned(),
        };
        let [p50, p99, p999, max] = [r.p50_ns, r.p99_ns, r.p999_ns, r.max_ns].map(|ns| ns as f64 / 1e3);
        text += &format!(
            "\n{scheduling:<14}{:>10}{p50:>10.1}{p99:>10.1}{p999:>10.1}{max:>10.1}",
            r.spinning_threads
        );
    }
    text
}
