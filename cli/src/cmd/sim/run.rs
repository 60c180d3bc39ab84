//! `p4rack sim run`: runs one experiment.

use super::files::{with_traces, write};
use super::threads;
use crate::output::{self, OutputFile};
use p4rack_codegen::kind::Kind;
use p4rack_lab::rows::Rows;
use p4rack_sim::{Experiment, Latency, Outcome, Point, Recorder, Sight};
use p4rack_stf::pcap::Writer;
use std::path::{Path, PathBuf};

/// Arguments of `p4rack sim run`.
#[derive(clap::Args, Debug)]
pub struct RunArgs {
    /// The experiment (docs/sim.md lists its fields)
    pub file: PathBuf,
    /// Print the results as JSON, or write them to a file
    #[arg(long, value_name = "OUT", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Seed that overrides the file's
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    pub seed: Option<u64>,
    /// Run twice and compare everything that happened
    #[arg(long)]
    pub twice: bool,
    /// Threads that share the work on this run; the results are the same for any number. Useful for large
    /// racks on an otherwise idle machine. Runs with rounds, captures or traces use one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u64>(1..=threads::THREADS_MAX))]
    pub threads: u64,
    /// Capture a host's link in both directions as DIR/NAME.pcap; may be repeated
    #[arg(long, value_name = "HOST")]
    pub pcap: Vec<String>,
    /// Folder for captures and traces
    #[arg(long, value_name = "DIR", default_value = ".")]
    out_dir: PathBuf,
    /// Trace one message, counted from 0 in the order of creation; also written as DIR/message-ID.trace.json
    /// for chrome://tracing and Perfetto
    #[arg(long, value_name = "ID", value_parser = crate::numbers::number::<u64>)]
    pub trace_message: Option<u64>,
}

/// Runs it. Returns whether all checks passed.
pub fn run(args: &RunArgs) -> Result<bool, String> {
    let mut experiment = load(&args.file)?;
    if let Some(seed) = args.seed {
        experiment.spec.seed = seed;
    }
    let recorder = recorder(args, &experiment)?;
    if recorder.is_some() {
        output::folder("--out-dir", &args.out_dir)?;
    }
    let json = match &args.json {
        Some(Some(path)) => Some(OutputFile::open("--json", path)?),
        _ => None,
    };
    let (mut outcome, recorder) = threads::run(&experiment, recorder, args.threads)?;
    if args.twice {
        let (again, _) = p4rack_sim::run(&experiment, None).map_err(|error| error.to_string())?;
        if again.digest != outcome.digest {
            outcome.problems.push(format!("a second run differs: {} and {}", outcome.digest, again.digest));
        }
    }
    if let Some(recorder) = recorder {
        keep(args, &recorder)?;
    }
    if let Some(file) = json {
        file.write(as_json(&outcome).as_bytes())?;
    }
    match &args.json {
        Some(None) => println!("{}", as_json(&outcome)),
        Some(Some(_)) => {}
        None => print!("{}", text(&outcome)),
    }
    for problem in &outcome.problems {
        eprintln!("check failed: {problem}");
    }
    Ok(outcome.problems.is_empty())
}

/// Reads an experiment.
fn load(path: &Path) -> Result<Experiment, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("{name}: can't be read: {error}; give the path of an experiment, e.g. examples/paper/pl2/fig9-incast.toml")
    })?;
    let experiment = Experiment::parse(&text, &name).map_err(|error| match Kind::of(&text) {
        Some(kind @ Kind::Sweep) => format!("{name}: is {kind}: {}", kind.command(&name)),
        _ => error.to_string(),
    })?;
    with_traces(experiment, path)
}

fn recorder(args: &RunArgs, experiment: &Experiment) -> Result<Option<Recorder>, String> {
    if args.pcap.is_empty() && args.trace_message.is_none() {
        return Ok(None);
    }
    let host = |name: &String| {
        let last = experiment.spec.rack.hosts;
        experiment.host(name).ok_or_else(|| format!("--pcap {name}: is no host; there are h1 to h{last}"))
    };
    let links = args.pcap.iter().map(host).collect::<Result<Vec<_>, _>>()?;
    let shim = experiment.spec.scheme.shim;
    Ok(Some(Recorder::new(links, args.trace_message, shim)))
}

/// Writes captures and the trace.
fn keep(args: &RunArgs, recorder: &Recorder) -> Result<(), String> {
    for &host in &recorder.links {
        let mut writer = Writer::default();
        let of_host =
            |sight: &&Sight| matches!(sight.point, Point::HostOut(h) | Point::HostIn(h) if h == host);
        for sight in recorder.frames.iter().filter(of_host) {
            writer.add(sight.time, &sight.frame);
        }
        write(&args.out_dir.join(format!("h{}.pcap", host + 1)), writer.bytes())?;
    }
    if let Some(id) = args.trace_message {
        write(&args.out_dir.join(format!("message-{id}.trace.json")), recorder.chrome().as_bytes())?;
        println!("message {id}, {}\n", recorder.timeline());
    }
    if recorder.lost > 0 {
        eprintln!(
            "warning: {} frames or steps beyond the {} that are recorded; simulate a shorter time",
            recorder.lost,
            p4rack_sim::FRAMES_MAX
        );
    }
    Ok(())
}

/// Results as JSON.
fn as_json(outcome: &Outcome) -> String {
    serde_json::to_string_pretty(outcome).expect("structs of numbers and names are JSON")
}

fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

/// Columns of a table of latencies.
const LATENCIES: [&str; 9] = ["µs", ">messages", ">lost", ">Gb/s", ">min", ">p50", ">p99", ">p99.9", ">max"];

/// A row of it; `lost` and `gbps` are empty where they don't apply.
fn row(name: String, (lost, gbps): (String, String), latency: &Latency) -> Vec<String> {
    let of = [latency.min, latency.p50, latency.p99, latency.p999, latency.max];
    let of = of.map(|ns| if latency.count == 0 { "–".to_owned() } else { us(ns) });
    [&[name, latency.count.to_string(), lost, gbps][..], &of[..]].concat()
}

fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "{}: {}, seed {}, {} ms measured, {} frame-hops\n",
        outcome.name,
        outcome.scheme,
        outcome.seed,
        outcome.measured_s * 1e3,
        outcome.frame_hops
    );
    text += &format!(
        "goodput        {:.2} Gb/s in all, {:.2} at the fullest host (a link's ceiling: {:.2} in, {:.2} out)\n",
        outcome.goodput_gbps,
        outcome.goodput_max_host_gbps,
        outcome.ceiling_receive_gbps,
        outcome.ceiling_send_gbps
    );
    let switch = &outcome.switch;
    text += &format!(
        "switch queue   {:.1} KB at most, {:.1} KB 99.9 % of the time\n",
        switch.queue_max_bytes as f64 / 1e3,
        switch.queue_p999_bytes as f64 / 1e3
    );
    if switch.pauses > 0 {
        text += &format!("  pauses       {}\n", switch.pauses);
    }
    for (reason, count) in &switch.drops {
        text += &format!("  dropped      {count} {reason}\n");
    }
    for (reason, count) in &switch.program_drops {
        text += &format!("  by program   {count} {reason}\n");
    }
    for (reason, count) in &switch.demoted {
        text += &format!("  demoted      {count} {reason}\n");
    }
    for (reason, count) in &switch.refused {
        text += &format!("  not now      {count} {reason}\n");
    }
    for (reason, count) in &outcome.host_drops {
        text += &format!("  by hosts     {count} {reason}\n");
    }
    let (mut rows, mut notes) = (Rows::new(&LATENCIES), String::new());
    for traffic in &outcome.traffic {
        let rates = (traffic.lost.to_string(), format!("{:.2}", traffic.goodput_gbps));
        let mut whole = row(traffic.name.clone(), rates, &traffic.latency_ns);
        whole[1] = traffic.done.to_string();
        rows.push(whole);
        for decile in &traffic.deciles {
            let size = decile.up_to_bytes.map_or("larger".to_owned(), |bytes| format!("to {bytes} B"));
            rows.push(row(format!("  {size}"), Default::default(), &decile.latency_ns));
        }
        let name = &traffic.name;
        if traffic.retransmissions > 0 {
            let (frames, timeouts) = (traffic.retransmissions, traffic.timeouts);
            notes += &format!("{name}: {frames} frames sent again, {timeouts} timeouts\n");
        }
        if traffic.refused > 0 {
            notes += &format!("{name}: {} messages rejected: too many were waiting\n", traffic.refused);
        }
    }
    if outcome.rsv_grt_ns.count > 0 {
        rows.push(row("RSV→GRT".to_owned(), Default::default(), &outcome.rsv_grt_ns));
    }
    text += &format!("\n{}{notes}", rows.text());
    let control = &outcome.control;
    if control.sent_per_s > 0.0 {
        text += &format!(
            "control frames {:.2} M/s from hosts, {:.2} % of their links; {:.2} M/s to them, {:.2} %\n",
            control.sent_per_s / 1e6,
            control.sent_share * 100.0,
            control.received_per_s / 1e6,
            control.received_share * 100.0
        );
    }
    let mut papers = Rows::new(&["figure", ">paper", ">here", ">ratio", "source"]);
    let mut whys = String::new();
    for compared in &outcome.paper {
        let ours = compared.ours.map_or("none".to_owned(), |ours| format!("{ours:.2}"));
        let ratio = compared.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let (figure, source) = (compared.figure.clone(), compared.source.clone());
        papers.push(vec![figure, compared.paper.to_string(), ours, ratio, source]);
        if let Some(why) = &compared.why {
            whys += &format!("{}: {why}\n", compared.figure);
        }
    }
    if !papers.is_empty() {
        text += &format!("\n{}{whys}", papers.text());
    }
    let checks = &outcome.checks;
    text += &format!(
        "\nchecks: {}; {} of {} grants overlap another's time; digest {}\n",
        if outcome.problems.is_empty() { "all passed" } else { "FAILED" },
        checks.overlapping_grants,
        checks.grants,
        outcome.digest
    );
    text
}
