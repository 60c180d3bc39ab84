//! Racks of hosts that send frames: presentation of their results.

use crate::cmd::sim::files::write;
use crate::cmd::sim::shown::{Page, Parts, RunOptions, Shown, figure};
use crate::cmd::sim::threads;
use crate::output;
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_sim::{Experiment, Latency, Outcome, Point, Recorder, Sight};
use p4rack_wire::pcap::Writer;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("goodput_gbps", "/outcome/goodput_gbps"),
    ("messages", "/outcome/traffic/0/done"),
    ("mean_ns", "/outcome/traffic/0/latency_ns/mean"),
    ("p50_ns", "/outcome/traffic/0/latency_ns/p50"),
    ("p99_ns", "/outcome/traffic/0/latency_ns/p99"),
    ("p999_ns", "/outcome/traffic/0/latency_ns/p999"),
    ("retransmissions", "/outcome/traffic/0/retransmissions"),
    ("frames_dropped", "/outcome/frames_dropped"),
    ("queue_max_bytes", "/outcome/switch/queue_max_bytes"),
    ("queue_p999_bytes", "/outcome/switch/queue_p999_bytes"),
    ("overlapping_grants", "/outcome/checks/overlapping_grants"),
    ("leaked_amount", "/outcome/checks/leaked_amount"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
pub const PAGE: Page = Page {
    about: "The switch ran the generated P4 text, and the hosts ran the machines that real hosts run. Latencies belong to \
            each experiment’s first traffic; goodput counts payload bits.",
    columns: &[
        figure("goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("messages", "", "/traffic/0/done", 1.0),
        figure("mean", "µs", "/traffic/0/latency_ns/mean", 1e3),
        figure("p50", "µs", "/traffic/0/latency_ns/p50", 1e3),
        figure("p99", "µs", "/traffic/0/latency_ns/p99", 1e3),
        figure("p99.9", "µs", "/traffic/0/latency_ns/p999", 1e3),
        figure("queue max", "KB", "/switch/queue_max_bytes", 1e3),
        figure("queue p99.9", "KB", "/switch/queue_p999_bytes", 1e3),
        figure("frames dropped", "", "/frames_dropped", 1.0),
        figure("sent again", "", "/traffic/*/retransmissions", 1.0),
        figure("overlapping grants", "%", "/checks/overlapping_grants / /checks/grants", 0.01),
    ],
    drawn: &[
        figure("Goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("99th percentile of latency", "µs", "/traffic/0/latency_ns/p99", 1e3),
    ],
    tail: Some(figure("Messages that took longer", "µs", "/traffic/0/latency_ns", 1e3)),
    series: Some(figure("Fullest queue of the switch", "KB", "/switch/queue_series", 1e3)),
    tenths: Some("/traffic/0/deciles"),
    parts: &[Parts {
        title: "By traffic",
        path: "/traffic",
        name: "name",
        least: 2,
        figures: &[
            figure("goodput", "Gb/s", "/goodput_gbps", 1.0),
            figure("messages", "", "/done", 1.0),
            figure("lost", "", "/lost", 1.0),
            figure("p50", "µs", "/latency_ns/p50", 1e3),
            figure("p99", "µs", "/latency_ns/p99", 1e3),
        ],
    }],
    notes: &[],
};

impl Shown for Experiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;

    fn check_options(&self, options: &RunOptions) -> Result<(), String> {
        match recorder(options, self)? {
            Some(_) => output::folder("--out-dir", &options.out_dir),
            None => Ok(()),
        }
    }

    /// With captures and traces, and on several threads.
    fn run_for(&self, options: &RunOptions, file: &str) -> Result<Outcome, String> {
        let recorder = recorder(options, self)?;
        let ran = threads::run(self, recorder, options.threads);
        let (outcome, recorder) = ran.map_err(|error| format!("{file}: {error}"))?;
        if let Some(recorder) = recorder {
            keep(options, &recorder)?;
        }
        Ok(outcome)
    }

    fn text(outcome: &Outcome) -> String {
        text(outcome)
    }
}

fn recorder(options: &RunOptions, experiment: &Experiment) -> Result<Option<Recorder>, String> {
    if options.pcap.is_empty() && options.trace_message.is_none() {
        return Ok(None);
    }
    let host = |name: &String| {
        let last = experiment.spec.rack.hosts;
        experiment.host(name).ok_or_else(|| format!("--pcap {name}: is no host; there are h1 to h{last}"))
    };
    let links = options.pcap.iter().map(host).collect::<Result<Vec<_>, _>>()?;
    let shim = experiment.spec.scheme.shim;
    Ok(Some(Recorder::new(links, options.trace_message, shim)))
}

/// Writes captures and the trace.
fn keep(options: &RunOptions, recorder: &Recorder) -> Result<(), String> {
    for &host in &recorder.links {
        let mut writer = Writer::default();
        let of_host =
            |sight: &&Sight| matches!(sight.point, Point::HostOut(h) | Point::HostIn(h) if h == host);
        for sight in recorder.frames.iter().filter(of_host) {
            writer.add(sight.time, &sight.frame);
        }
        write(&options.out_dir.join(format!("h{}.pcap", host + 1)), writer.bytes())?;
    }
    if let Some(id) = options.trace_message {
        write(&options.out_dir.join(format!("message-{id}.trace.json")), recorder.chrome().as_bytes())?;
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
        count(outcome.frame_hops)
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
        text += &format!("  pauses       {}\n", count(switch.pauses));
    }
    for (what, counts) in [
        ("dropped", &switch.drops),
        ("by program", &switch.program_drops),
        ("demoted", &switch.demoted),
        ("not now", &switch.refused),
        ("by hosts", &outcome.host_drops),
    ] {
        for (reason, frames) in counts {
            text += &format!("  {what:<12} {} {reason}\n", count(*frames));
        }
    }
    let (mut rows, mut notes) = (Rows::new(&LATENCIES), String::new());
    for traffic in &outcome.traffic {
        let rates = (traffic.lost.to_string(), format!("{:.2}", traffic.goodput_gbps));
        let mut whole = row(traffic.name.clone(), rates, &traffic.latency_ns);
        whole[1] = traffic.done.to_string();
        rows.push(whole);
        for decile in &traffic.deciles {
            let size =
                decile.up_to_bytes.map_or("larger".to_owned(), |bytes| format!("to {} B", count(bytes)));
            rows.push(row(format!("  {size}"), Default::default(), &decile.latency_ns));
        }
        let name = &traffic.name;
        if traffic.retransmissions > 0 {
            let (frames, timeouts) = (count(traffic.retransmissions), count(traffic.timeouts));
            notes += &format!("{name}: {frames} frames sent again, {timeouts} timeouts\n");
        }
        if traffic.refused > 0 {
            notes +=
                &format!("{name}: {} messages rejected: too many were waiting\n", count(traffic.refused));
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
        count(checks.overlapping_grants),
        count(checks.grants),
        outcome.digest
    );
    text
}
