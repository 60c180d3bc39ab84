//! Policies of a cache of remote memory: what is shown of their results.

use crate::cmd::sim::shown::{Page, Shown, Table, figure};
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_sim::{CacheExperiment, CacheOutcome};
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
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "A policy of a cache of remote memory behind a CPU. AMAT is the mean time of the CPU’s misses; fetched and written are \
            bytes for each byte of the lines that were touched or dirtied; used is the share of the fetched bytes whose line was accessed \
            before its block left.",
    columns: &[
        figure("AMAT", "µs", "/amat_ns", 1e3),
        figure("misses", "%", "/miss_share", 0.01),
        figure("from the host", "%", "/host_share", 0.01),
        figure("fetched", "", "/amplification", 1.0),
        figure("written", "", "/write_amplification", 1.0),
        figure("used", "%", "/used_share", 0.01),
        figure("tables", "%", "/tables_share", 0.01),
        figure("pages moved", "", "/promoted", 1.0),
    ],
    drawn: &[
        figure("AMAT", "µs", "/amat_ns", 1e3),
        figure("Bytes fetched for each touched one", "", "/amplification", 1.0),
        figure("Misses", "%", "/miss_share", 0.01),
        figure("Used share of the fetched bytes", "%", "/used_share", 0.01),
    ],
    tail: None,
    series: None,
    tenths: None,
    parts: None,
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
        ],
        row: |settings, outcome| Ok(row(settings, outcome)),
    });

    fn text(outcome: &CacheOutcome) -> String {
        text_of(outcome)
    }
}

fn row(settings: String, outcome: &Value) -> Vec<String> {
    let number = |path: &str, scale: f64, decimals: usize| match outcome.pointer(path).and_then(Value::as_f64)
    {
        Some(value) => format!("{:.decimals$}", value * scale),
        None => "–".to_owned(),
    };
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
    ]
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
    text +=
        &format!("used     {} of the fetched bytes before their block left\n", percent(counts.used_share));
    text += &format!("tables   {} of local memory\n", percent(outcome.tables_share));
    let mut papers = Rows::new(&["figure", ">paper", ">here", "source"]);
    for compared in &outcome.paper {
        let ours = compared.ours.map_or("none".to_owned(), |ours| format!("{ours:.3}"));
        papers.push(vec![compared.figure.clone(), compared.paper.to_string(), ours, compared.source.clone()]);
    }
    if !papers.is_empty() {
        text += &format!("\n{}", papers.text());
    }
    text
}
