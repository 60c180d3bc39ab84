//! Topologies with scripted hosts: presentation of their results.

use crate::cmd::sim::files::{place, write};
use crate::cmd::sim::network;
use crate::cmd::sim::run::{RunArgs, run_parsed};
use crate::cmd::sim::shown::{Page, Parts, RunOptions, Shown, Table, figure};
use crate::cmd::sim::threads;
use crate::output;
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_sim::{ExperimentKind, HostCapture, TopologyExperiment, TopologyOutcome};
use p4rack_wire::pcap::Writer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("topology", "/outcome/topology"),
    ("seed", "/outcome/seed"),
    ("goodput_gbps", "/outcome/goodput_gbps"),
    ("sent", "/outcome/balance/sent"),
    ("received", "/outcome/balance/received"),
    ("dropped", "/outcome/balance/dropped"),
    ("lost", "/outcome/balance/lost"),
    ("mean_ns", "/outcome/traffic/0/latency_ns/mean"),
    ("p50_ns", "/outcome/traffic/0/latency_ns/p50"),
    ("p99_ns", "/outcome/traffic/0/latency_ns/p99"),
    ("p999_ns", "/outcome/traffic/0/latency_ns/p999"),
    ("retransmissions", "/outcome/traffic/0/retransmissions"),
    ("switch_hops", "/outcome/switch_hops"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "Switches ran their own programs on the embedded switch’s core, hosts were scripted. Latencies belong to each \
            experiment’s first traffic; goodput counts payload bits that arrived.",
    columns: &[
        figure("goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("mean", "µs", "/traffic/0/latency_ns/mean", 1e3),
        figure("p50", "µs", "/traffic/0/latency_ns/p50", 1e3),
        figure("p99", "µs", "/traffic/0/latency_ns/p99", 1e3),
        figure("p99.9", "µs", "/traffic/0/latency_ns/p999", 1e3),
        figure("sent", "frames", "/balance/sent", 1.0),
        figure("received", "frames", "/balance/received", 1.0),
        figure("dropped", "frames", "/balance/dropped", 1.0),
        figure("lost", "frames", "/balance/lost", 1.0),
        figure("sent again", "", "/traffic/*/retransmissions", 1.0),
        figure("switch hops", "", "/switch_hops", 1.0),
    ],
    drawn: &[
        figure("Goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("99th percentile of latency", "µs", "/traffic/0/latency_ns/p99", 1e3),
    ],
    tail: Some(figure("Frames that took longer", "µs", "/traffic/0/latency_ns", 1e3)),
    series: None,
    tenths: None,
    parts: &[
        Parts {
            title: "By traffic",
            path: "/traffic",
            name: "name",
            least: 1,
            figures: &[
                figure("goodput", "Gb/s", "/goodput_gbps", 1.0),
                figure("sent", "frames", "/sent", 1.0),
                figure("lost", "frames", "/lost", 1.0),
                figure("p50", "µs", "/latency_ns/p50", 1e3),
                figure("p99", "µs", "/latency_ns/p99", 1e3),
                figure("failed", "", "/failed", 1.0),
            ],
        },
        Parts {
            title: "By flow",
            path: "/flows",
            name: "name",
            least: 2,
            figures: &[
                figure("goodput", "Mb/s", "/goodput_mbps", 1.0),
                figure("sent", "frames", "/sent", 1.0),
                figure("received", "frames", "/received", 1.0),
                figure("p50", "µs", "/latency_ns/p50", 1e3),
                figure("p99", "µs", "/latency_ns/p99", 1e3),
            ],
        },
        Parts {
            title: "By link",
            path: "/links",
            name: "name",
            least: 1,
            figures: &[
                figure("utilisation", "%", "/utilisation", 0.01),
                figure("frames", "", "/frames", 1.0),
                figure("lost", "", "/lost", 1.0),
                figure("dropped", "", "/dropped", 1.0),
                figure("queue max", "KB", "/queue_max_bytes", 1e3),
                figure("queue p99.9", "KB", "/queue_p999_bytes", 1e3),
            ],
        },
        Parts {
            title: "By switch",
            path: "/switches",
            name: "name",
            least: 1,
            figures: &[
                figure("hops", "", "/hops", 1.0),
                figure("to its controller", "", "/to_controller", 1.0),
                figure("clones", "", "/clones", 1.0),
                figure("replicas", "", "/replicas", 1.0),
                figure("further passes", "", "/passes", 1.0),
                figure("buffer max", "KB", "/buffer_max_bytes", 1e3),
            ],
        },
    ],
    notes: &[],
};

/// Rows of a table of links or switches; the JSON has all.
const ROWS_MAX: usize = 12;

impl Shown for TopologyExperiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;
    const TABLE: Option<Table> = Some(Table {
        header: &[
            "settings",
            ">Gb/s",
            ">p50 µs",
            ">p99 µs",
            ">sent",
            ">received",
            ">dropped",
            ">lost",
            ">hops",
        ],
        row: |settings, outcome| Ok(row(settings, outcome)),
    });

    fn complete(self, file: &Path) -> Result<TopologyExperiment, String> {
        let topology = place(file)(&self.spec.topology);
        network::complete(self, &topology)?.read_captures(&place(file))
    }

    fn check_options(&self, options: &RunOptions) -> Result<(), String> {
        if options.trace_message.is_some() {
            let kind = <Self as ExperimentKind>::NAME;
            return Err(format!(
                "experiments of kind \"{kind}\" trace no messages; leave out --trace-message"
            ));
        }
        match options.pcap.is_empty() {
            true => Ok(()),
            false => output::folder("--out-dir", &options.out_dir),
        }
    }

    fn run_for(&self, options: &RunOptions, file: &str) -> Result<TopologyOutcome, String> {
        let run = self
            .start(options.threads as usize, &options.pcap)
            .map_err(|error| format!("{file}: {error}"))?;
        let before = Instant::now();
        let (mut outcome, captures) = threads::with(options.threads, |crew| run.finish(crew));
        outcome.took = Some((before.elapsed().as_secs_f64(), options.threads));
        captures.iter().try_for_each(|capture| keep(capture, &options.out_dir))?;
        Ok(outcome)
    }

    fn text(outcome: &TopologyOutcome) -> String {
        text(outcome)
    }
}

/// Tries a topology that was given instead of an experiment: each host sends requests to each other one.
pub fn pings(args: &RunArgs, name: &str) -> Result<bool, String> {
    if !args.settings.set.is_empty() {
        return Err(format!(
            "{name}: is a topology, and --set is for experiments; write one with kind = \"topology\" (docs/sim.md)"
        ));
    }
    let path = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let experiment = TopologyExperiment::of_pings(&stem, &path).map_err(|error| error.to_string())?;
    run_parsed(args, experiment, name)
}

fn keep(capture: &HostCapture, folder: &Path) -> Result<(), String> {
    let mut writer = Writer::default();
    capture.frames.iter().for_each(|(time, frame)| writer.add(*time, frame));
    if capture.lost > 0 {
        let (host, lost) = (&capture.host, capture.lost);
        eprintln!(
            "warning: {lost} frames of {host} are beyond those that are captured; simulate a shorter time"
        );
    }
    write(&folder.join(format!("{}.pcap", capture.host)), writer.bytes())
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path: &str, scale: f64, decimals: usize| match outcome.pointer(path).and_then(Value::as_f64)
    {
        Some(value) => format!("{:.decimals$}", value * scale),
        None => "–".to_owned(),
    };
    vec![
        settings,
        number("/goodput_gbps", 1.0, 3),
        number("/traffic/0/latency_ns/p50", 1e-3, 2),
        number("/traffic/0/latency_ns/p99", 1e-3, 2),
        number("/balance/sent", 1.0, 0),
        number("/balance/received", 1.0, 0),
        number("/balance/dropped", 1.0, 0),
        number("/balance/lost", 1.0, 0),
        number("/switch_hops", 1.0, 0),
    ]
}

fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

fn text(outcome: &TopologyOutcome) -> String {
    let mut text = format!(
        "{}: topology {}, {} switches, seed {}, {} ms measured\n",
        outcome.name,
        outcome.topology,
        outcome.switches.len(),
        outcome.seed,
        outcome.measured_s * 1e3
    );
    text += &format!("goodput        {:.3} Gb/s\n", outcome.goodput_gbps);
    text += &format!("switch hops    {}", count(outcome.switch_hops));
    if let Some((seconds, threads)) = outcome.took {
        let rate = outcome.switch_hops as f64 / seconds.max(1e-9) / 1e6;
        text += &format!(" in {seconds:.2} s, {rate:.2} million/s; threads: {threads}");
    }
    text += "\n\n";
    text += &traffic(outcome).text();
    text += &notes(outcome);
    text += &links(outcome);
    text += &switches(outcome);
    let mut papers = Rows::new(&["figure", ">paper", ">here", "source"]);
    for compared in &outcome.paper {
        let ours = compared.ours.map_or("none".to_owned(), |ours| format!("{ours:.3}"));
        papers.push(vec![compared.figure.clone(), compared.paper.to_string(), ours, compared.source.clone()]);
    }
    if !papers.is_empty() {
        text += &format!("\n{}", papers.text());
    }
    let balance = &outcome.balance;
    text += &format!(
        "\nframes: {} sent, {} copies; {} received, {} dropped by switches, {} by hosts, {} lost on links, {} to controllers, \
         {} still under way\n",
        count(balance.sent),
        balance.copies,
        count(balance.received),
        count(balance.dropped),
        count(balance.queue_full),
        count(balance.lost + balance.link_full),
        count(balance.to_controller),
        count(balance.queued + balance.in_flight)
    );
    let verdict = if outcome.problems.is_empty() { "all passed" } else { "FAILED" };
    text += &format!("checks: {verdict}; digest {}\n", outcome.digest);
    text
}

fn traffic(outcome: &TopologyOutcome) -> Rows {
    let mut rows = Rows::new(&[
        "traffic", "sent as", ">flows", ">sent", ">lost", ">Gb/s", ">min µs", ">p50", ">p99", ">p99.9",
        ">max",
    ]);
    for traffic in &outcome.traffic {
        let latency = &traffic.latency_ns;
        let of = [latency.min, latency.p50, latency.p99, latency.p999, latency.max];
        let of = of.map(|ns| if latency.count == 0 { "–".to_owned() } else { us(ns) });
        let lost = traffic.lost.map_or("–".to_owned(), |lost| lost.to_string());
        let first = [
            traffic.name.clone(),
            traffic.send.to_owned(),
            traffic.flows.to_string(),
            traffic.sent.to_string(),
            lost,
            format!("{:.3}", traffic.goodput_gbps),
        ];
        rows.push([&first[..], &of[..]].concat());
    }
    rows
}

/// What tables have no column for.
fn notes(outcome: &TopologyOutcome) -> String {
    let mut notes = String::new();
    for traffic in &outcome.traffic {
        let name = &traffic.name;
        let what = match traffic.of {
            "message" => "messages found no room",
            _ => "requests had no answer in time",
        };
        for (number, what) in [
            (traffic.failed, what),
            (traffic.twice, "frames arrived again"),
            (traffic.reordered, "frames arrived after a later one"),
            (traffic.damaged, "frames arrived changed behind their headers"),
            (traffic.retransmissions, "segments were sent again"),
            (traffic.timeouts, "timeouts"),
        ] {
            if number > 0 {
                notes += &format!("{name}: {} {what}\n", count(number));
            }
        }
    }
    let silent = |flow: &&p4rack_sim::FlowOutcome| flow.sent > 0 && flow.received == 0;
    let without: Vec<&str> = outcome.flows.iter().filter(silent).map(|flow| flow.name.as_str()).collect();
    if !without.is_empty() {
        let more = without.len().saturating_sub(ROWS_MAX);
        let listed = without[..without.len() - more].join(", ");
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        notes += &format!("nothing arrived of {listed}{rest}\n");
    }
    notes
}

/// The fullest links.
fn links(outcome: &TopologyOutcome) -> String {
    let mut links: Vec<&p4rack_sim::LinkOutcome> =
        outcome.links.iter().filter(|link| link.frames > 0).collect();
    links.sort_by(|a, b| b.utilisation.unwrap_or(0.0).total_cmp(&a.utilisation.unwrap_or(0.0)));
    let mut rows =
        Rows::new(&["link", ">% used", ">frames", ">lost", ">dropped", ">queue max KB", ">queue p99.9 KB"]);
    for link in links.iter().take(ROWS_MAX) {
        rows.push(vec![
            link.name.clone(),
            link.utilisation.map_or("–".to_owned(), |share| format!("{:.1}", share * 100.0)),
            link.frames.to_string(),
            link.lost.to_string(),
            link.dropped.to_string(),
            format!("{:.1}", link.queue_max_bytes as f64 / 1e3),
            format!("{:.1}", link.queue_p999_bytes as f64 / 1e3),
        ]);
    }
    table("links", rows, links.len())
}

/// The busiest switches, and what all have dropped.
fn switches(outcome: &TopologyOutcome) -> String {
    let mut switches: Vec<&p4rack_sim::SwitchNodeOutcome> = outcome.switches.iter().collect();
    switches.sort_by_key(|switch| std::cmp::Reverse(switch.hops));
    let mut rows = Rows::new(&[
        "switch",
        ">hops",
        ">to controller",
        ">clones",
        ">replicas",
        ">passes",
        ">buffer max KB",
        ">dropped",
    ]);
    for switch in switches.iter().take(ROWS_MAX) {
        rows.push(vec![
            switch.name.clone(),
            switch.hops.to_string(),
            switch.to_controller.to_string(),
            switch.clones.to_string(),
            switch.replicas.to_string(),
            switch.passes.to_string(),
            format!("{:.1}", switch.buffer_max_bytes as f64 / 1e3),
            switch.drops.values().sum::<u64>().to_string(),
        ]);
    }
    let mut drops = BTreeMap::new();
    for (reason, frames) in switches.iter().flat_map(|switch| &switch.drops) {
        *drops.entry(reason.as_str()).or_insert(0) += frames;
    }
    let drops: String = drops
        .into_iter()
        .map(|(reason, frames)| format!("dropped        {} {reason}\n", count(frames)))
        .collect();
    table("switches", rows, switches.len()) + &drops
}

/// A table of some of these, and how many there are.
fn table(what: &str, rows: Rows, all: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rest = match all > ROWS_MAX {
        true => format!("{ROWS_MAX} of {all} {what}; --json shows all\n"),
        false => String::new(),
    };
    format!("\n{}{rest}", rows.text())
}
