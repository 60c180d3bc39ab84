//! Racks with boards of Clio: tables and plots of their results.

use super::{beside_papers, cell, latency_cell};
use crate::cmd::sim::shown::{Page, Parts, Shown, Table, figure};
use p4rack_report::text::count;
use p4rack_sim::{ClioExperiment, ClioOutcome};
use serde_json::Value;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("profile", "/outcome/profile"),
    ("seed", "/outcome/seed"),
    ("operations", "/outcome/operations"),
    ("failed", "/outcome/failed"),
    ("mean_ns", "/outcome/mean_ns"),
    ("p50_ns", "/outcome/latency_ns/p50"),
    ("p99_ns", "/outcome/latency_ns/p99"),
    ("mops", "/outcome/mops"),
    ("goodput_gbps", "/outcome/goodput_gbps"),
    ("goodput_share", "/outcome/goodput_share"),
    ("retries", "/outcome/retries"),
    ("lost_frames", "/outcome/lost_frames"),
    ("fill_retries", "/outcome/fill/retries"),
    ("table_percent", "/outcome/table/percent"),
    ("wrong", "/outcome/wrong"),
    ("refused", "/outcome/refused"),
    ("unknown", "/outcome/unknown"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "Threads of compute nodes use memory of boards. The boards, the client library and the switch’s program are the real \
            ones; RDMA, and the times of stages, are modelled. Retries of allocations are sums over a board that fills.",
    columns: &[
        figure("mean", "µs", "/mean_ns", 1e3),
        figure("p50", "µs", "/latency_ns/p50", 1e3),
        figure("p99", "µs", "/latency_ns/p99", 1e3),
        figure("operations", "million/s", "/mops", 1.0),
        figure("goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("of the links", "%", "/goodput_share", 0.01),
        figure("TLB misses", "", "/translations/misses", 1.0),
        figure("page faults", "", "/translations/faults", 1.0),
        figure("queue max", "KB", "/queue_max_bytes", 1e3),
        figure("frames lost", "", "/lost_frames", 1.0),
        figure("sent again", "", "/retries", 1.0),
        figure("retries of allocations", "", "/fill/retries", 1.0),
        figure("of one, mean", "", "/fill/mean", 1.0),
        figure("while ranges change", "", "/fill/churn_mean", 1.0),
        figure("page table", "%", "/table/percent", 1.0),
        figure("wrong", "", "/wrong", 1.0),
        figure("refused", "", "/refused", 1.0),
        figure("unknown", "", "/unknown", 1.0),
    ],
    drawn: &[
        figure("Mean latency", "µs", "/mean_ns", 1e3),
        figure("99th percentile of latency", "µs", "/latency_ns/p99", 1e3),
        figure("Goodput", "Gb/s", "/goodput_gbps", 1.0),
        figure("Retries of allocations", "", "/fill/retries", 1.0),
    ],
    tail: Some(figure("Operations that took longer", "µs", "/latency_ns", 1e3)),
    series: None,
    tenths: None,
    parts: &[Parts {
        title: "By stage, mean of an operation",
        path: "/stages_ns",
        name: "",
        least: 1,
        figures: &[figure("time", "ns", "", 1.0)],
    }],
    notes: &[
        ("/wrong", "some reads had a wrong content"),
        ("/refused", "some operations were refused"),
        ("/unknown", "some operations had no answer"),
    ],
};

impl Shown for ClioExperiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;
    const TABLE: Option<Table> = Some(Table {
        header: &[
            "settings",
            "scheme",
            ">mean, µs",
            ">p50, µs",
            ">p99, µs",
            ">Mops",
            ">Gb/s",
            ">links %",
            ">lost",
            ">again",
            ">retries",
            ">table %",
            ">wrong",
            ">refused",
            ">unknown",
        ],
        row: |settings, outcome| Ok(row(settings, outcome)),
    });

    fn text(outcome: &ClioOutcome) -> String {
        text_of(outcome)
    }
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path, scale, decimals| cell(outcome, path, scale, decimals);
    let latency = |path| latency_cell(outcome, path);
    vec![
        settings,
        outcome["scheme"].as_str().unwrap_or_default().to_owned(),
        number("/mean_ns", 1e-3, 2),
        latency("/latency_ns/p50"),
        latency("/latency_ns/p99"),
        number("/mops", 1.0, 3),
        number("/goodput_gbps", 1.0, 2),
        number("/goodput_share", 100.0, 0),
        number("/lost_frames", 1.0, 0),
        number("/retries", 1.0, 0),
        number("/fill/retries", 1.0, 1),
        number("/table/percent", 1.0, 4),
        number("/wrong", 1.0, 0),
        number("/refused", 1.0, 0),
        number("/unknown", 1.0, 0),
    ]
}

fn text_of(outcome: &ClioOutcome) -> String {
    let mut text = format!(
        "{}: {}, {}, seed {}, {:.3} ms measured, {} frame-hops\n",
        outcome.name,
        outcome.scheme,
        outcome.profile,
        outcome.seed,
        outcome.measured_s * 1e3,
        count(outcome.frame_hops)
    );
    let latency = &outcome.latency_ns;
    let us = |ns: u64| ns as f64 / 1e3;
    if let Some(mean_ns) = outcome.mean_ns {
        text += &format!(
            "latency µs     mean {:.2}, min {:.2}, p50 {:.2}, p99 {:.2}, max {:.2}\n",
            mean_ns / 1e3,
            us(latency.min),
            us(latency.p50),
            us(latency.p99),
            us(latency.max)
        );
    }
    if outcome.failed > 0 {
        let measured = outcome.operations + outcome.failed;
        let (failed, measured) = (count(outcome.failed), count(measured));
        text += &format!("failed         {failed} of {measured} operations, which no figure contains\n");
    }
    if outcome.measured_s > 0.0 {
        text += &format!(
            "throughput     {:.3} million operations/s, {:.2} Gb/s of data, {:.0} % of what the links carry\n",
            outcome.mops,
            outcome.goodput_gbps,
            outcome.goodput_share * 100.0
        );
    }
    let stages = outcome.stages_ns.iter().map(|(name, ns)| format!("{name} {:.2}", ns / 1e3));
    let stages: Vec<String> = stages.collect();
    if !stages.is_empty() {
        text += &format!("stages µs      {}\n", stages.join(", "));
    }
    let translations = &outcome.translations;
    text += &format!(
        "translations   {} hits, {} misses, {} page faults",
        count(translations.hits),
        count(translations.misses),
        count(translations.faults)
    );
    text += &format!(
        "; baseline: {} cache misses, {} page faults\n",
        count(outcome.cache_misses),
        count(outcome.page_faults)
    );
    if let Some(table) = &outcome.table {
        text += &format!(
            "page table     {:.1} bytes for each page of {} KB, {:.4} % of the memory\n",
            table.bytes_per_page,
            count(table.page_bytes / 1024),
            table.percent
        );
    }
    if let Some(fill) = &outcome.fill {
        text += &fill_text(fill);
    }
    text += &format!(
        "checks         {} wrong, {} refused, {} unknown; {} frames lost, {} packets sent again\n",
        count(outcome.wrong),
        count(outcome.refused),
        count(outcome.unknown),
        count(outcome.lost_frames),
        count(outcome.retries)
    );
    for (reason, frames) in &outcome.drops {
        text += &format!("  dropped      {} {reason}\n", count(*frames));
    }
    text += &beside_papers(&outcome.paper);
    text += &format!("digest {}\n", outcome.digest);
    text
}

fn fill_text(fill: &p4rack_sim::FillOutcome) -> String {
    let mut text = format!(
        "filled         {:.1} % of {} frames by {:.0} allocations of {} pages, {} slots; {} failed\n",
        fill.filled_percent,
        count(fill.frames.into()),
        fill.allocations,
        fill.pages,
        count(fill.slots),
        count(fill.failed)
    );
    text += &format!(
        "retries        {:.1} in all, {:.3} of an allocation, at most {}; the first at {} % of the slots\n",
        fill.retries,
        fill.mean,
        fill.most,
        fill.first_percent.map_or("–".to_owned(), |percent| percent.to_string())
    );
    let used = fill.by_percent.iter().enumerate().filter(|(_, retries)| **retries > 0.0);
    let used: Vec<String> = used.map(|(percent, retries)| format!("{percent}: {retries:.1}")).collect();
    if !used.is_empty() {
        text += &format!("  by percent   {}\n", used.join(", "));
    }
    if let (Some(mean), Some(most)) = (fill.churn_mean, fill.churn_most) {
        text += &format!("  churn        {mean:.3} of an allocation, at most {most}\n");
    }
    text
}
