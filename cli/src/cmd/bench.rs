//! `p4rack bench`.

use super::bmv2;
use p4rack_codegen::Arch;
use p4rack_lab::rows::Rows;
use p4rack_netdev::netns;
use p4rack_netdev::packet::{self, Io};
use p4rack_report::text::count;
use p4rack_switchd::bench::forward::{self, Beside, Forward, Load, Rate};
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
    /// Forwarding rate of the embedded switch for frames of 64 and 1500 bytes, compared with an empty loop
    /// over the same sockets
    ///
    /// Measures each kind of I/O that `p4rack switch run --io` supports and the kernel permits.
    Forward {
        /// Only this kind of I/O: packet, ring or xdp
        #[arg(long, value_name = "KIND")]
        io: Option<Io>,
        /// Architecture of the program: v1model or tna
        #[arg(long, default_value = "v1model", conflicts_with = "beside_bmv2")]
        arch: Arch,
        /// Duration of one measurement
        #[arg(long, default_value_t = 2.0, value_parser = crate::cmd::finite)]
        seconds: f64,
        /// Measurements of each kind; reports the median
        #[arg(long, default_value_t = 3, value_parser = crate::numbers::within::<usize>(1..=100))]
        rounds: usize,
        /// Number of switches in a row, separated by commas, for example 1,2,4; with more than one, eight paces are
        /// offered, and the one at which the switch forwards most counts
        #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1",
              value_parser = clap::value_parser!(u8).range(1..=forward::HOPS_MAX as i64))]
        hops: Vec<u8>,
        /// Also measure BMv2's simple_switch_grpc in the same run; it and p4c-bm2-ss must be on PATH
        #[arg(long)]
        beside_bmv2: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure a frame's cost in a rack's generated programs, for v1model and for TNA side by side
    ///
    /// Runs them in one thread, without sockets.
    Programs(super::bench_programs::Args),
    /// Rate at which a P4Runtime server writes and reads entries, from a client's point of view
    ///
    /// Starts an embedded switch without ports, or measures the one at --grpc-addr, whose state it clears.
    #[command(name = "p4runtime")]
    P4runtime(Box<super::bench_p4runtime::Args>),
    /// Rate at which a BFRuntime server writes entries, from a client's point of view
    ///
    /// Starts an embedded switch without ports, or measures the one at --bfrt-addr, whose state it clears.
    Bfrt(Box<super::bench_bfrt::Args>),
    /// Soak test: random writes, reads, reconnects and packets for a long time; checks memory growth and
    /// failures
    ///
    /// Starts an embedded switch without ports, or uses the one at --grpc-addr, whose state it clears. Exit
    /// code 1 if memory grew or something failed unexpectedly.
    Soak(Box<super::bench_soak::Args>),
    /// A thousand hostile clients beside one that writes: memory of the server, latency of the good client
    ///
    /// A quarter reads large responses a few bytes at a time, a quarter ignores errors on streams, a quarter
    /// ignores responses to failing batches, and a quarter stops during the handshake. Starts an embedded
    /// switch without ports, or uses the one at --grpc-addr, whose state it clears. Exit code 1 if a limit
    /// was exceeded.
    HostileClients(Box<super::bench_hostile::Args>),
    /// Effect of a hostile host on the others: every attack on a rack of real processes, compared with an
    /// honest host
    ///
    /// Exit code 1 if a promise is broken: the others keep 90 % of their goodput, lose no frame, and wait at
    /// most twice as long.
    Hostile(super::hostile::Args),
    /// Speed of the simulator in frame-hops per second, and its memory
    Sim(super::bench_sim::Args),
    /// Messages of EDM that the simulator runs per second, exact and with generated programs, and its memory
    Edm(super::bench_edm::Args),
    /// Time until topologies run, time to take them down, and their memory
    ///
    /// Builds leaves and spines that route between the hosts, by `p4rack up --keep` and `p4rack down`.
    Start(super::bench_start::Args),
    /// Timer latency of sleeping threads, which limits the slot length on this machine
    Timers {
        /// Duration of each sleep
        #[arg(long, default_value_t = 123, value_parser = crate::numbers::number::<u64>)]
        interval_us: u64,
        /// Duration of each of the four measurements
        #[arg(long, default_value_t = 2.0, value_parser = crate::cmd::finite)]
        seconds: f64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let printed = match args.command {
        Command::Forward { io, arch, seconds, rounds, hops, beside_bmv2, json } => {
            forward_all(io, arch, &loads(&hops, seconds, rounds), beside_bmv2, json)
        }
        Command::Programs(args) => return super::bench_programs::run(&args),
        Command::P4runtime(args) => return super::bench_p4runtime::run(*args),
        Command::Bfrt(args) => return super::bench_bfrt::run(&args),
        Command::Soak(args) => return super::bench_soak::run(*args),
        Command::HostileClients(args) => return super::bench_hostile::run(&args),
        Command::Hostile(args) => return super::hostile::bench(args),
        Command::Sim(args) => return super::bench_sim::run_bench(&args),
        Command::Edm(args) => return super::bench_edm::run_bench(&args),
        Command::Start(args) => return super::bench_start::run(&args),
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

/// Each number of switches with each length of frames. Rows that stand beside each other are measured alike.
fn loads(hops: &[u8], seconds: f64, rounds: usize) -> Vec<Load> {
    let finds_pace = hops.iter().any(|hops| *hops > 1);
    let load = |(hops, frame_bytes): (&u8, usize)| {
        let hops = usize::from(*hops);
        Load { hops, frame_bytes, seconds, rounds, finds_pace }
    };
    hops.iter().flat_map(|hops| forward::LENGTHS.map(|bytes| (hops, bytes))).map(load).collect()
}

fn forward_all(
    only: Option<Io>,
    arch: Arch,
    loads: &[Load],
    beside_bmv2: bool,
    json: bool,
) -> Result<String, String> {
    let program = match arch {
        Arch::V1model => forward::PROGRAM,
        Arch::Tna => forward::TNA_PROGRAM,
        Arch::T2na => return Err("there is no program for t2na: use --arch tna".to_owned()),
    };
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
        for load in loads {
            let result = forward::run(program, io, *load);
            results.push(result.map_err(|error| error.to_string())?);
        }
    }
    let beside = if beside_bmv2 { forward_beside_bmv2(only, loads)? } else { Vec::new() };
    if json {
        let all = serde_json::json!({ "forward": results, "beside_bmv2": beside, "skipped": skipped });
        return Ok(as_json(&all));
    }
    let others = beside.iter().map(beside_text);
    Ok(results.iter().map(forward_text).chain(others).chain(skipped).collect::<Vec<String>>().join("\n\n"))
}

/// Sends the same frames through the same program on BMv2, which has only one kind of I/O, and at BMv2's best
/// pace through the switch.
fn forward_beside_bmv2(only: Option<Io>, loads: &[Load]) -> Result<Vec<Beside>, String> {
    let program = p4rack_ctrl::bmv2::compile_text("bench", forward::PROGRAM);
    let folder = bmv2::private_folder()?;
    let json = folder.path().join("program.json");
    let other = bmv2::forwarder(&json)?;
    std::fs::write(&json, program.map_err(|error| error.to_string())?)
        .map_err(|error| format!("{}: {error}", json.display()))?;
    let io = only.map_or(IoChoice::Auto, IoChoice::Only);
    let both = loads.iter().map(|load| forward::run_beside(&other, io, *load));
    both.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// Two rates below each other.
fn rates(kind: &str, pace: Option<u64>, both: [(&str, &Rate); 2]) -> String {
    let mut rows = Rows::new(&[kind, ">frames/s", ">offered/s", ">CPU ns/frame", ""]);
    for (name, rate) in both {
        let Rate { frames_per_s, cpu_ns_per_frame, offered_per_s } = rate;
        let figures = [*frames_per_s, *offered_per_s, *cpu_ns_per_frame].map(|figure| format!("{figure:.0}"));
        // At a pace of ours, nearly all frames should arrive.
        let is_limit = pace.is_none() && rate.sender_was_limit();
        let limit = if is_limit { "(the sender was the limit)" } else { "" };
        rows.push([&[name.to_owned()][..], &figures[..], &[limit.to_owned()]].concat());
    }
    rows.text()
}

fn hops_text(hops: usize) -> String {
    match hops {
        1 => "one switch".to_owned(),
        _ => format!("{hops} switches in a row"),
    }
}

fn forward_text(result: &Forward) -> String {
    format!(
        "{}ratio {:.2}, by CPU time {:.2} ({}-byte frames, {}, {}, {} s a round, median round)",
        rates(
            &result.io.to_string(),
            result.pace,
            [("switch", &result.switch), ("empty loop", &result.empty_loop)]
        ),
        result.ratio,
        result.cpu_ratio,
        result.frame_bytes,
        hops_text(result.hops),
        result.pace.map_or("full load".to_owned(), |pace| format!("{} frames/s offered", count(pace))),
        result.seconds,
    )
}

fn beside_text(Beside { hops, frame_bytes, other, switch }: &Beside) -> String {
    format!(
        "{}({frame_bytes}-byte frames, {}, at the pace at which BMv2 forwards most)",
        rates("beside BMv2", None, [("switch", switch), ("BMv2", other)]),
        hops_text(*hops),
    )
}

fn timers_text(results: &[Lateness]) -> String {
    let mut rows = Rows::new(&["scheduling", ">spinning", ">p50", ">p99", ">p99.9", ">max", "(late by, µs)"]);
    for r in results {
        let scheduling = match r.scheduling.map(|granted| granted.fifo_priority) {
            Some(Some(priority)) => format!("FIFO {priority}"),
            Some(None) => "FIFO refused".to_owned(),
            None => "ordinary".to_owned(),
        };
        let late = [r.p50_ns, r.p99_ns, r.p999_ns, r.max_ns].map(|ns| format!("{:.1}", ns as f64 / 1e3));
        rows.push([&[scheduling, r.spinning_threads.to_string()][..], &late[..]].concat());
    }
    rows.text().trim_end().to_owned()
}
