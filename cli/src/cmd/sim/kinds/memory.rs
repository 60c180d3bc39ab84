//! Racks of compute and memory nodes: presentation of their results.

use crate::cmd::sim::shown::{Page, Parts, Shown, Table, figure};
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_sim::{MemoryExperiment, MemoryOutcome, TimesNs};
use serde_json::Value;

/// Columns of a merged table: name, and path in a result.
const MERGED: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("measured", "/outcome/measured"),
    ("lost", "/outcome/lost"),
    ("offered_load", "/outcome/offered_load"),
    ("grows", "/outcome/grows"),
    ("published_slowdown", "/outcome/published_slowdown"),
    ("golden", "/outcome/golden"),
    ("slowdown", "/outcome/slowdown/mean"),
    ("slowdown_within", "/outcome/slowdown/within"),
    ("slowdown_p99", "/outcome/slowdown_p99"),
    ("latency_mean_ns", "/outcome/latency_ns/mean/mean"),
    ("latency_p99_ns", "/outcome/latency_ns/p99"),
    ("added_mean_ns", "/outcome/added_ns/mean/mean"),
    ("added_within_ns", "/outcome/added_ns/mean/within"),
    ("added_p99_ns", "/outcome/added_ns/p99"),
    ("queue_max_bytes", "/outcome/queue_max_bytes"),
    ("carried_load", "/outcome/carried_load"),
    ("mops", "/outcome/mops"),
    ("published_mops", "/outcome/published_mops"),
    ("problems", "/outcome/problems"),
];

/// How the report shows them.
const PAGE: Page = Page {
    about: "Compute nodes read and write memory of other nodes. “÷ alone” is the time of an operation, divided by what the \
            same operation takes on an idle rack; the mean of all.",
    columns: &[
        figure("messages", "", "/measured", 1.0),
        figure("offered load", "", "/offered_load", 1.0),
        figure("carried load", "", "/carried_load", 1.0),
        figure("operations", "million/s", "/mops", 1.0),
        figure("÷ alone", "", "/slowdown/mean", 1.0),
        figure("p99 of ÷ alone", "", "/slowdown_p99", 1.0),
        figure("published measure", "", "/published_slowdown", 1.0),
        figure("published", "", "/golden", 1.0),
        figure("mean", "µs", "/latency_ns/mean/mean", 1e3),
        figure("p50", "µs", "/latency_ns/p50", 1e3),
        figure("p99", "µs", "/latency_ns/p99", 1e3),
        figure("added", "µs", "/added_ns/mean/mean", 1e3),
        figure("queue max", "B", "/queue_max_bytes", 1.0),
        figure("dropped", "", "/dropped", 1.0),
        figure("lost", "", "/lost", 1.0),
        figure("refused", "", "/refused", 1.0),
    ],
    drawn: &[
        figure("Completion ÷ alone, mean", "", "/slowdown/mean", 1.0),
        figure("99th percentile of completion", "µs", "/latency_ns/p99", 1e3),
        figure("Added to being alone, mean", "µs", "/added_ns/mean/mean", 1e3),
        figure("Operations", "million/s", "/mops", 1.0),
    ],
    tail: Some(figure("Messages that took longer", "µs", "/latency_ns", 1e3)),
    series: None,
    tenths: None,
    parts: &[Parts {
        title: "By operation",
        path: "/operations",
        name: "",
        least: 2,
        figures: &[
            figure("messages", "", "/measured", 1.0),
            figure("÷ alone", "", "/slowdown/mean", 1.0),
            figure("mean", "µs", "/latency_ns/mean/mean", 1e3),
            figure("p99", "µs", "/latency_ns/p99", 1e3),
            figure("added", "µs", "/added_ns/mean/mean", 1e3),
        ],
    }],
    notes: &[
        ("/grows", "latency grows along the run: the load is not carried"),
        ("/lost", "some messages never completed"),
    ],
};

impl Shown for MemoryExperiment {
    const PAGE: Page = PAGE;
    const MERGED: &'static [(&'static str, &'static str)] = MERGED;
    const TABLE: Option<Table> = Some(Table {
        header: &[
            "settings",
            "scheme",
            ">published",
            ">golden",
            ">off",
            ">÷ alone",
            ">p99",
            ">alone µs",
            ">mean µs",
            ">p99 µs",
            ">added µs",
            ">±",
            ">queue B",
            ">carried",
            ">Mops",
            "",
        ],
        row: |settings, outcome| Ok(row(settings, &read(outcome)?)),
    });

    fn text(outcome: &MemoryOutcome) -> String {
        outcome_text(outcome)
    }
}

fn read(outcome: &Value) -> Result<MemoryOutcome, String> {
    serde_json::from_value(outcome.clone()).map_err(|error| error.to_string())
}

fn row(settings: String, outcome: &MemoryOutcome) -> Vec<String> {
    let maybe = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let off = outcome.published_slowdown.zip(outcome.golden).map(|(ours, golden)| ours / golden - 1.0);
    vec![
        settings,
        outcome.scheme.clone(),
        maybe(outcome.published_slowdown),
        maybe(outcome.golden),
        off.map_or(String::new(), |off| format!("{:+.1} %", off * 100.0)),
        format!("{:.3}", outcome.slowdown.mean),
        format!("{:.2}", outcome.slowdown_p99),
        us(outcome.alone_ns),
        us(outcome.latency_ns.mean.mean),
        us(outcome.latency_ns.p99),
        us(outcome.added_ns.mean.mean),
        outcome.added_ns.mean.within.map_or(String::new(), us),
        outcome.queue_max_bytes.to_string(),
        or_dash(outcome.carried_load),
        or_dash(outcome.mops),
        match (outcome.lost, outcome.grows) {
            (0, false) => String::new(),
            (0, true) => "grows".to_owned(),
            (lost, _) => format!("{lost} lost"),
        },
    ]
}

/// A time in microseconds, to a tenth of a nanosecond.
fn us(ns: f64) -> String {
    format!("{:.4}", ns / 1e3)
}

/// A figure that every run should have, or that it is missing.
fn or_dash(figure: Option<f64>) -> String {
    figure.map_or("–".to_owned(), |figure| format!("{figure:.3}"))
}

fn outcome_text(outcome: &MemoryOutcome) -> String {
    let mut text = format!(
        "{}: {}, seed {}, {} of {} messages measured, {} lost, {} refused, offered load {:.3}{}\n",
        outcome.name,
        outcome.scheme,
        outcome.seed,
        count(outcome.measured as u64),
        count(outcome.messages as u64),
        count(outcome.lost as u64),
        count(outcome.refused),
        outcome.offered_load,
        if outcome.grows { ", latency grows along the run" } else { "" }
    );
    if let Some(slowdown) = outcome.published_slowdown {
        let golden = outcome.golden.map_or(String::new(), |golden| format!(", published as {golden}"));
        text += &format!("published normalisation       {slowdown:.3}{golden}\n");
    }
    let within = |within: Option<f64>| within.map_or(String::new(), |within| format!(" ± {within:.3}"));
    text += &format!(
        "completion ÷ alone            {:.3}{}, p99 {:.2}\n",
        outcome.slowdown.mean,
        within(outcome.slowdown.within),
        outcome.slowdown_p99
    );
    let mut rows = Rows::new(&["µs", ">messages", ">mean", ">±", ">p50", ">p99", ">p99.9", ">max"]);
    let mut push = |name: String, measured: usize, times: &TimesNs| {
        rows.push(vec![
            name,
            measured.to_string(),
            us(times.mean.mean),
            times.mean.within.map_or(String::new(), us),
            us(times.p50),
            us(times.p99),
            us(times.p999),
            us(times.max),
        ]);
    };
    push("completion".into(), outcome.measured, &outcome.latency_ns);
    push("  added to being alone".into(), outcome.measured, &outcome.added_ns);
    for (name, operation) in &outcome.operations {
        push(name.clone(), operation.measured, &operation.latency_ns);
        push("  added to being alone".into(), operation.measured, &operation.added_ns);
    }
    text += &format!("\n{}\n", rows.text());
    text += &format!("switch queue   {} B at most\n", count(outcome.queue_max_bytes));
    text += &format!("carried load   {}\n", or_dash(outcome.carried_load));
    text += &format!("operations     {} million per second\n", or_dash(outcome.mops));
    for paper in &outcome.paper {
        let bound = match (paper.at_most, paper.at_least) {
            (true, _) => "at most ",
            (_, true) => "at least ",
            _ => "",
        };
        text +=
            &format!("{}: the paper {bound}{}, here {}\n", paper.figure, paper.paper, or_dash(paper.ours));
    }
    let mut counters = Rows::new(&["counter", ">count"]);
    outcome
        .counters
        .iter()
        .for_each(|(name, count)| counters.push(vec![name.to_string(), count.to_string()]));
    if !counters.is_empty() {
        text += &format!("\n{}", counters.text());
    }
    text
}
