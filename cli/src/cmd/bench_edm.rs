//! `p4rack bench edm`: cost of simulating a message of EDM.

use p4rack_lab::rows::Rows;
use p4rack_netdev::clock;
use p4rack_sim::{MemoryExperiment, run_memory};
use serde::Serialize;
use std::process::ExitCode;

/// Arguments of `p4rack bench edm`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Measured messages of each run; a warm-up of half as many precedes them
    #[arg(long, default_value_t = 2000, value_parser = crate::numbers::within::<u64>(100..=100_000))]
    messages: u64,
    /// Runs of each kind; the fastest, least disturbed one is reported
    #[arg(long, default_value_t = 3, value_parser = crate::numbers::within::<u64>(1..=20))]
    rounds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Speed of one scheme.
#[derive(Debug, Serialize)]
struct Speed {
    scheme: &'static str,
    messages: usize,
    /// Processor time, with the program's translation and each message alone.
    cpu_s: f64,
    messages_per_s: f64,
    /// How many times as fast as the authors' simulator, compiled with `-O3`.
    times_published: f64,
    /// Maximum resident memory during the runs. `None`: the system does not tell, or does not let a process reset it.
    peak_bytes: Option<u64>,
}

/// Messages that the authors' simulator runs in a second of processor time, compiled with `-O3` (2000 of their trace of Hadoop in
/// 37 s; as its Makefile compiles it, without optimisation, in 71 s), and its memory.
const PUBLISHED_PER_S: f64 = 54.0;
const PUBLISHED_BYTES: f64 = 1.38e9;

/// Measured schemes: the name, and the description's text.
const SCHEMES: [(&str, &str); 6] = [
    ("exact", "scheme = \"edm\"\nlatency = \"cable\"\nedm.policy = \"srpt\""),
    (
        "exact, frames",
        "scheme = \"edm\"\nlatency = \"pipeline\"\nedm.framing = \"ethernet\"\nedm.chunk = 1024",
    ),
    ("timed-dst", "scheme = \"edm-timed-dst\"\nedm.chunk = 1024"),
    ("timed", "scheme = \"edm-timed\"\nedm.chunk = 1024"),
    ("calendar", "scheme = \"edm-calendar\"\nedm.chunk = 1024"),
    ("matched", "scheme = \"edm-matched\"\nedm.chunk = 1024"),
];

/// Runs the command.
pub fn run_bench(args: &Args) -> ExitCode {
    let speeds: Result<Vec<Speed>, String> = SCHEMES.iter().map(|one| measure(args, one)).collect();
    let speeds = match speeds {
        Ok(speeds) => speeds,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&speeds).expect("a list of numbers is JSON"));
    } else {
        print!("{}", text(&speeds));
    }
    ExitCode::SUCCESS
}

fn measure(args: &Args, (scheme, says): &(&'static str, &str)) -> Result<Speed, String> {
    let text = format!(
        "name = \"bench\"\nkind = \"memory\"\n{says}\n[workload]\nsize = \"EDM-hadoop\"\nload = 0.4\nmessages = {}\n",
        args.messages
    );
    let experiment = MemoryExperiment::parse(&text, "bench").map_err(|error| error.to_string())?;
    // Where that is not permitted, the peak is that of all runs so far: no figure of these.
    let is_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let (mut cpu_s, mut messages) = (f64::MAX, 0);
    for _ in 0..args.rounds {
        let before = clock::thread_cpu();
        let outcome = run_memory(&experiment);
        cpu_s = cpu_s.min((clock::thread_cpu() - before).as_secs_f64());
        messages = outcome.messages;
        if !outcome.problems.is_empty() {
            return Err(format!("{scheme}: {}", outcome.problems.join("; ")));
        }
    }
    let messages_per_s = messages as f64 / cpu_s;
    let times_published = messages_per_s / PUBLISHED_PER_S;
    Ok(Speed {
        scheme,
        messages,
        cpu_s,
        messages_per_s,
        times_published,
        peak_bytes: is_reset.then(super::bench_sim::peak_bytes).flatten(),
    })
}

fn text(speeds: &[Speed]) -> String {
    let head = [
        "scheme",
        ">messages",
        ">cpu s",
        ">messages/s",
        ">÷ published 54/s",
        ">peak MB",
        ">published ÷ peak",
    ];
    let mut rows = Rows::new(&head);
    for one in speeds {
        let peak = one.peak_bytes.map_or(("–".into(), "–".into()), |bytes| {
            (format!("{:.0}", bytes as f64 / 1e6), format!("{:.1}", PUBLISHED_BYTES / bytes as f64))
        });
        rows.push(vec![
            one.scheme.to_string(),
            one.messages.to_string(),
            format!("{:.2}", one.cpu_s),
            format!("{:.0}", one.messages_per_s),
            format!("{:.1}", one.times_published),
            peak.0,
            peak.1,
        ]);
    }
    rows.text()
}
