//! Racks with remote memory behind an offload engine: presentation of their results.

use super::{beside_papers, cell, latency_cell};
use crate::cmd::sim::shown::{Page, Parts, Shown, Table, figure};
use p4rack_report::text::count;
use p4rack_sim::{CowbirdExperiment, CowbirdOutcome};
use serde_json::Value;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("threads", "/outcome/threads"),
    ("record_bytes", "/outcome/record_bytes"),
    ("mops", "/outcome/mops"),
    ("p50_ns", "/outcome/latency_ns/p50"),
    ("p99_ns", "/outcome/latency_ns/p99"),
    ("communication_share", "/outcome/communication_share"),
    ("waiting_share", "/outcome/waiting_share"),
    ("communication_ns", "/outcome/communication_ns"),
    ("engine_share", "/outcome/engine_share"),
    ("remote_gbps", "/outcome/remote_gbps"),
    ("wrong", "/outcome/wrong"),
    ("lost", "/outcome/lost"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "Threads of a compute node look records up, some of them in a memory pool. “In calls” is the share of the threads’ \
            time that they spend in calls for remote memory.",
    columns: &[
        figure("probes", "million/s", "/mops", 1.0),
        figure("p50", "µs", "/latency_ns/p50", 1e3),
        figure("p99", "µs", "/latency_ns/p99", 1e3),
        figure("in calls", "%", "/communication_share", 0.01),
        figure("waiting", "%", "/waiting_share", 0.01),
        figure("a record’s calls", "µs", "/communication_ns", 1e3),
        figure("engine’s cores", "%", "/engine_share", 0.01),
        figure("fullest link", "%", "/fullest_link", 0.01),
        figure("remote records", "Gb/s", "/remote_gbps", 1.0),
        figure("competing TCP", "Gb/s", "/competing_gbps", 1.0),
        figure("queue max", "KB", "/queue_max_bytes", 1e3),
        figure("frames lost", "", "/lost_frames", 1.0),
        figure("sent again", "", "/repeated", 1.0),
        figure("wrong", "", "/wrong", 1.0),
        figure("lost", "", "/lost", 1.0),
        figure("failed", "", "/failed", 1.0),
    ],
    drawn: &[
        figure("Probes", "million/s", "/mops", 1.0),
        figure("99th percentile of latency", "µs", "/latency_ns/p99", 1e3),
        figure("Time in calls for remote memory", "%", "/communication_share", 0.01),
        figure("Fullest link", "%", "/fullest_link", 0.01),
    ],
    tail: Some(figure("Remote records that took longer", "µs", "/latency_ns", 1e3)),
    series: None,
    tenths: None,
    parts: &[Parts {
        title: "Links, by host",
        path: "/links",
        name: "",
        least: 1,
        figures: &[figure("sent", "%", "/sent", 0.01), figure("received", "%", "/received", 0.01)],
    }],
    notes: &[],
};

impl Shown for CowbirdExperiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;
    const TABLE: Option<Table> = Some(Table {
        header: &[
            "settings",
            "scheme",
            ">Mops",
            ">p50 µs",
            ">p99 µs",
            ">calls %",
            ">µs a record",
            ">engine %",
            ">fullest link %",
            ">TCP Gb/s",
            ">wrong",
            ">lost",
        ],
        row: |settings, outcome| Ok(row(settings, outcome)),
    });

    fn text(outcome: &CowbirdOutcome) -> String {
        text_of(outcome)
    }
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path, scale, decimals| cell(outcome, path, scale, decimals);
    let latency = |path| latency_cell(outcome, path);
    vec![
        settings,
        outcome["scheme"].as_str().unwrap_or_default().to_owned(),
        number("/mops", 1.0, 2),
        latency("/latency_ns/p50"),
        latency("/latency_ns/p99"),
        number("/communication_share", 100.0, 0),
        number("/communication_ns", 1e-3, 3),
        number("/engine_share", 100.0, 0),
        number("/fullest_link", 100.0, 0),
        number("/competing_gbps", 1.0, 2),
        number("/wrong", 1.0, 0),
        number("/lost", 1.0, 0),
    ]
}

fn text_of(outcome: &CowbirdOutcome) -> String {
    let mut text = format!(
        "{}: {}, {} threads, records of {} B, seed {}, {:.3} ms measured, {} frame-hops\n",
        outcome.name,
        outcome.scheme,
        outcome.threads,
        outcome.record_bytes,
        outcome.seed,
        outcome.measured_s * 1e3,
        count(outcome.frame_hops)
    );
    text += &format!(
        "probes         {:.2} million/s, {} in all, {} of remote records\n",
        outcome.mops,
        count(outcome.probes),
        count(outcome.remote)
    );
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    text += &format!(
        "threads' time  {} in calls for remote memory, of that {} waiting\n",
        percent(outcome.communication_share),
        percent(outcome.waiting_share)
    );
    if let Some(ns) = outcome.communication_ns {
        let us = |ns: u64| ns as f64 / 1e3;
        let latency = &outcome.latency_ns;
        text += &format!("  a record     {:.3} µs in calls\n", ns / 1e3);
        text += &format!(
            "latency µs     min {:.2}, p50 {:.2}, p99 {:.2}, max {:.2}\n",
            us(latency.min),
            us(latency.p50),
            us(latency.p99),
            us(latency.max)
        );
    }
    for (host, share) in &outcome.links {
        text +=
            &format!("link of {host}: {} sent, {} received\n", percent(share.sent), percent(share.received));
    }
    if let Some(gbps) = outcome.competing_gbps {
        text += &format!("competing TCP  {gbps:.2} Gb/s\n");
    }
    if let Some(share) = outcome.engine_share {
        text += &format!("engine         {} of its cores' time\n", percent(share));
    }
    text += &format!(
        "checks         {} wrong, {} lost, {} failed; links lost {} frames, {} packets sent again\n",
        count(outcome.wrong),
        count(outcome.lost),
        count(outcome.failed),
        count(outcome.lost_frames),
        count(outcome.repeated)
    );
    for (reason, frames) in &outcome.drops {
        text += &format!("  dropped      {} {reason}\n", count(*frames));
    }
    text += &beside_papers(&outcome.paper);
    text += &format!("digest {}\n", outcome.digest);
    text
}
