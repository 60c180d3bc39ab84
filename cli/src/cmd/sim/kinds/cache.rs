//! Policies of a cache of remote memory: presentation of their results.

use super::{beside_papers, cell};
use crate::cmd::sim::shown::{Page, Shown, Table, figure};
use p4rack_report::text::count;
use p4rack_sim::{CacheExperiment, CacheOutcome, Latency, RackOutcome};
use serde_json::Value;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("load", "/outcome/load"),
    ("seed", "/outcome/seed"),
    ("scheme", "/outcome/scheme"),
    ("profile", "/outcome/profile"),
    ("local_percent", "/outcome/local_percent"),
    ("block_bytes", "/outcome/block_bytes"),
    ("amat_ns", "/outcome/amat_ns"),
    ("miss_share", "/outcome/miss_share"),
    ("host_share", "/outcome/host_share"),
    ("amplification", "/outcome/amplification"),
    ("write_amplification", "/outcome/write_amplification"),
    ("used_share", "/outcome/used_share"),
    ("tables_share", "/outcome/tables_share"),
    ("way", "/outcome/rack/way"),
    ("compute_nodes", "/outcome/rack/compute_nodes"),
    ("rate_gbps", "/outcome/rack/rate_gbps"),
    ("fixed_amat_ns", "/outcome/rack/fixed_amat_ns"),
    ("unloaded_ns", "/outcome/rack/unloaded_ns"),
    ("miss_mean_ns", "/outcome/rack/misses_ns/mean"),
    ("miss_p50_ns", "/outcome/rack/misses_ns/p50"),
    ("miss_p99_ns", "/outcome/rack/misses_ns/p99"),
    ("miss_p999_ns", "/outcome/rack/misses_ns/p999"),
    ("late", "/outcome/rack/late"),
    ("access_p99_ns", "/outcome/rack/accesses_ns/p99"),
    ("access_p999_ns", "/outcome/rack/accesses_ns/p999"),
    ("to_pool", "/outcome/rack/to_pool"),
    ("from_pool", "/outcome/rack/from_pool"),
    ("under_way", "/outcome/rack/under_way"),
    ("waiting_max", "/outcome/rack/waiting_max"),
    ("waits", "/outcome/rack/waits"),
    ("queue_max_bytes", "/outcome/rack/queue_max_bytes"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "A policy of a cache of remote memory behind a CPU. AMAT is the mean time of the CPU’s misses; fetched and written are \
            bytes for each byte of the lines that were touched or dirtied; used is the share of the fetched bytes whose line was accessed \
            before its block left. With profile rack, misses are requests of compute nodes that share a pool; “without queues” is the AMAT \
            if each took as long as alone.",
    columns: &[
        figure("AMAT", "µs", "/amat_ns", 1e3),
        figure("misses", "%", "/miss_share", 0.01),
        figure("from the host", "%", "/host_share", 0.01),
        figure("fetched", "", "/amplification", 1.0),
        figure("written", "", "/write_amplification", 1.0),
        figure("used", "%", "/used_share", 0.01),
        figure("tables", "%", "/tables_share", 0.01),
        figure("pages moved", "", "/promoted", 1.0),
        figure("without queues", "µs", "/rack/fixed_amat_ns", 1e3),
        figure("access p99", "µs", "/rack/accesses_ns/p99", 1e3),
        figure("access p99.9", "µs", "/rack/accesses_ns/p999", 1e3),
        figure("miss", "µs", "/rack/misses_ns/mean", 1e3),
        figure("miss p50", "µs", "/rack/misses_ns/p50", 1e3),
        figure("miss p99", "µs", "/rack/misses_ns/p99", 1e3),
        figure("miss p99.9", "µs", "/rack/misses_ns/p999", 1e3),
        figure("link to the pool", "%", "/rack/to_pool", 0.01),
        figure("link from the pool", "%", "/rack/from_pool", 0.01),
        figure("requests under way", "", "/rack/under_way", 1.0),
        figure("waiting max", "", "/rack/waiting_max", 1.0),
        figure("waits for room", "", "/rack/waits", 1.0),
        figure("switch queue max", "KB", "/rack/queue_max_bytes", 1e3),
    ],
    drawn: &[
        figure("AMAT", "µs", "/amat_ns", 1e3),
        figure("99th percentile of accesses", "µs", "/rack/accesses_ns/p99", 1e3),
        figure("99th percentile of misses", "µs", "/rack/misses_ns/p99", 1e3),
        figure("Link from the pool", "%", "/rack/from_pool", 0.01),
        figure("Bytes fetched for each touched one", "", "/amplification", 1.0),
        figure("Misses", "%", "/miss_share", 0.01),
        figure("Used share of the fetched bytes", "%", "/used_share", 0.01),
    ],
    tail: Some(figure("Misses that took longer", "µs", "/rack/misses_ns", 1e3)),
    series: None,
    tenths: None,
    parts: &[],
    notes: &[],
};

impl Shown for CacheExperiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;
    const TABLE: Option<Table> = Some(Table {
        header: &[
            "settings",
            "policy",
            ">local %",
            ">block B",
            ">AMAT µs",
            ">misses %",
            ">host %",
            ">fetched",
            ">written",
            ">used %",
            ">tables %",
            ">miss µs",
            ">p99",
            ">p99.9",
            ">link %",
        ],
        row: |settings, outcome| Ok(row(settings, outcome)),
    });

    fn text(outcome: &CacheOutcome) -> String {
        text_of(outcome)
    }
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path, scale, decimals| cell(outcome, path, scale, decimals);
    vec![
        settings,
        outcome["scheme"].as_str().unwrap_or_default().to_owned(),
        number("/local_percent", 1.0, 0),
        number("/block_bytes", 1.0, 0),
        number("/amat_ns", 1e-3, 3),
        number("/miss_share", 100.0, 1),
        number("/host_share", 100.0, 1),
        number("/amplification", 1.0, 2),
        number("/write_amplification", 1.0, 2),
        number("/used_share", 100.0, 1),
        number("/tables_share", 100.0, 1),
        number("/rack/misses_ns/mean", 1e-3, 2),
        number("/rack/misses_ns/p99", 1e-3, 2),
        number("/rack/misses_ns/p999", 1e-3, 2),
        number("/rack/from_pool", 100.0, 0),
    ]
}

fn text_of_rack(rack: &RackOutcome) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    let quantiles = |one: &Latency| {
        format!("{:.2}, {:.2}, {:.2} µs (p50, p99, p99.9)", us(one.p50), us(one.p99), us(one.p999))
    };
    format!(
        "rack     {} compute nodes over {}, {} Gb/s; AMAT without queues {:.3} µs, a block alone {:.2} µs\n\
         accesses {}\n\
         misses   {}; {} waited for a block that was on its way\n\
         link     {:.1} % to the pool, {:.1} % from it; {:.1} requests under way, {} waited at most, {} waits for room\n",
        rack.compute_nodes,
        rack.way,
        rack.rate_gbps,
        rack.fixed_amat_ns / 1e3,
        us(rack.unloaded_ns),
        quantiles(&rack.accesses_ns),
        quantiles(&rack.misses_ns),
        count(rack.late),
        rack.to_pool * 100.0,
        rack.from_pool * 100.0,
        rack.under_way,
        count(rack.waiting_max as u64),
        count(rack.waits),
    )
}

fn text_of(outcome: &CacheOutcome) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let counts = &outcome.counts;
    let mut text = format!(
        "{}: {} on {}{}, {} % local, blocks of {} B, latencies `{}`, {:.1} MB of touched pages\n",
        outcome.name,
        outcome.scheme,
        outcome.load,
        outcome.seed.map_or_else(String::new, |seed| format!(" with seed {seed}")),
        outcome.local_percent,
        outcome.block_bytes,
        outcome.profile,
        outcome.footprint_bytes as f64 / 1e6
    );
    text += &format!("AMAT     {:.3} µs over {} accesses\n", counts.amat_ns / 1e3, count(outcome.fills));
    text += &format!(
        "served   {} by the host, {} by remote memory, the others by the device\n",
        percent(outcome.host_share),
        percent(outcome.miss_share)
    );
    text += &format!(
        "moved    {:.2} bytes fetched for each touched one, {}, {} pages to the host\n",
        counts.amplification,
        counts
            .write_amplification
            .map_or("none dirtied".into(), |ratio| format!("{ratio:.2} written for each dirtied one")),
        count(counts.promoted)
    );
    let used = counts.used_share.map_or_else(|| "none".to_owned(), percent);
    text += &format!("used     {used} of the fetched bytes before their block left\n");
    text += &format!("tables   {} of local memory\n", percent(outcome.tables_share));
    text += &outcome.rack.as_ref().map_or_else(String::new, text_of_rack);
    text += &beside_papers(&outcome.paper);
    text
}
