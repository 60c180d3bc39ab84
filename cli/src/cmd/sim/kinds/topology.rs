//! Topologies with scripted hosts: presentation of their results.

mod text;

use super::{cell, latency_cell};
use crate::cmd::sim::files::write;
use crate::cmd::sim::network::Shared;
use crate::cmd::sim::run::{RunArgs, run_parsed};
use crate::cmd::sim::shown::{Page, Parts, RunOptions, Shown, Table, figure};
use crate::cmd::sim::threads;
use crate::output;
use p4rack_netdev::process;
use p4rack_sim::{ExperimentKind, HostCapture, LoadTime, Took, TopologyExperiment, TopologyOutcome};
use p4rack_wire::Nanos;
use p4rack_wire::pcap::Writer;
use serde_json::Value;
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
            title: "Operations on remote memory",
            path: "/operations",
            name: "name",
            least: 1,
            figures: &[
                figure("p50", "µs", "/latency_ns/p50", 1e3),
                figure("p99", "µs", "/latency_ns/p99", 1e3),
                figure("p99.9", "µs", "/latency_ns/p999", 1e3),
                figure("done", "", "/done", 1.0),
                figure("refused", "", "/refused", 1.0),
                figure("no answer", "", "/unknown", 1.0),
                figure("open", "", "/open", 1.0),
                figure("written again", "", "/again", 1.0),
                figure("checked", "KB", "/checked_bytes", 1e3),
                figure("wrong", "bytes", "/wrong_bytes", 1.0),
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

    fn complete(self, file: &Path, shared: &mut Shared) -> Result<TopologyExperiment, String> {
        shared.complete(self, file)
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
        let before = Instant::now();
        let run = self
            .start(options.threads as usize, &options.pcap)
            .map_err(|error| format!("{file}: {error}"))?;
        let mut load_time = self.network().map_or(LoadTime::default(), |network| network.load_time);
        load_time.compile_s += before.elapsed().as_secs_f64();
        let (before, cpu_before) = (Instant::now(), cpu()?);
        let (mut outcome, captures) = threads::with(options.threads, |crew| run.finish(crew));
        outcome.took = Some(Took {
            load_time,
            run_s: before.elapsed().as_secs_f64(),
            run_cpu_s: cpu()?.saturating_sub(cpu_before).as_secs_f64(),
            threads: options.threads,
        });
        captures.iter().try_for_each(|capture| keep(capture, &options.out_dir))?;
        Ok(outcome)
    }

    fn text(outcome: &TopologyOutcome) -> String {
        text::text(outcome)
    }
}

/// Processor time of this process.
fn cpu() -> Result<Nanos, String> {
    process::cpu(std::process::id()).map_err(|error| format!("this process's time can't be read: {error}"))
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
    let first = &outcome["traffic"][0];
    let frames = |path: &str| cell(outcome, path, 1.0, 0);
    vec![
        settings,
        cell(outcome, "/goodput_gbps", 1.0, 3),
        latency_cell(first, "/latency_ns/p50"),
        latency_cell(first, "/latency_ns/p99"),
        frames("/balance/sent"),
        frames("/balance/received"),
        frames("/balance/dropped"),
        frames("/balance/lost"),
        frames("/switch_hops"),
    ]
}
