//! Results of topologies as text.

use crate::cmd::sim::kinds::beside_papers;
use p4rack_lab::rows::Rows;
use p4rack_report::text::count;
use p4rack_sim::{FlowOutcome, Latency, LinkOutcome, LoadTime, SwitchNodeOutcome, Took, TopologyOutcome};
use std::collections::BTreeMap;

/// Rows of a table of links or switches; the JSON has all.
const ROWS_MAX: usize = 12;

fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

/// Results as text.
pub(super) fn text(outcome: &TopologyOutcome) -> String {
    let mut text = format!(
        "{}: topology {}, {} switches, seed {}, {} ms measured\n",
        outcome.name,
        outcome.topology,
        outcome.switches.len(),
        outcome.seed,
        outcome.measured_s * 1e3
    );
    text += &format!("goodput        {:.3} Gb/s\n", outcome.goodput_gbps);
    text += &format!("switch hops    {}\n", count(outcome.switch_hops));
    text += &outcome.took.map_or_else(String::new, |took| speed(outcome, &took));
    text += "\n";
    text += &traffic(outcome).text();
    text += &operations(outcome);
    text += &notes(outcome);
    text += &links(outcome);
    text += &switches(outcome);
    text += &beside_papers(&outcome.paper);
    let balance = &outcome.balance;
    text += &format!(
        "\nframes: {} sent, {} copies; {} received, {} dropped by switches, {} by hosts, {} lost on links, {} to controllers, \
         {} still under way\n",
        count(balance.sent),
        balance.copies,
        count(balance.received),
        count(balance.dropped + balance.looped),
        count(balance.queue_full + balance.agents_dropped),
        count(balance.lost + balance.link_full),
        count(balance.to_controller),
        count(balance.queued + balance.in_flight + balance.agents_waiting)
    );
    if !outcome.agents.is_empty() {
        let counted = outcome.agents.iter().map(|(name, number)| format!("{name} {}", count(*number)));
        text += &format!("agents: {}\n", counted.collect::<Vec<_>>().join(", "));
    }
    if !outcome.machines.is_empty() {
        let counted = outcome.machines.iter().map(|(name, number)| format!("{name} {}", count(*number)));
        text += &format!("memory: {}\n", counted.collect::<Vec<_>>().join(", "));
    }
    if !outcome.agents_drops.is_empty() {
        let dropped =
            outcome.agents_drops.iter().map(|(reason, number)| format!("{} {reason}", count(*number)));
        text += &format!("dropped by agents: {}\n", dropped.collect::<Vec<_>>().join(", "));
    }
    if balance.unchecked_switches > 0 {
        let unchecked = balance.unchecked_switches;
        text += &format!("not checked: whether frames vanish in {unchecked} switches with TNA's programs\n");
    }
    let verdict = if outcome.problems.is_empty() { "all passed" } else { "FAILED" };
    text += &format!("checks: {verdict}; digest {}\n", outcome.digest);
    text
}

/// What the run took, and how fast it was.
fn speed(outcome: &TopologyOutcome, took: &Took) -> String {
    let LoadTime { read_s, compile_s } = took.load_time;
    let rate = |seconds: f64| outcome.switch_hops as f64 / seconds.max(1e-9) / 1e6;
    format!(
        "took           {read_s:.2} s to read, {compile_s:.2} s to compile, {:.2} s to run, {:.2} s of processors' time in that; \
         threads: {}\n\
         speed          {:.2} million hops/s, {:.2} million/s of a processor's time\n",
        took.run_s,
        took.run_cpu_s,
        took.threads,
        rate(took.run_s),
        rate(took.run_cpu_s),
    )
}

fn traffic(outcome: &TopologyOutcome) -> Rows {
    let mut rows = Rows::new(&[
        "traffic", "sent as", ">flows", ">sent", ">lost", ">Gb/s", ">min µs", ">p50", ">p99", ">p99.9",
        ">max",
    ]);
    for traffic in &outcome.traffic {
        let of = quantiles(&traffic.latency_ns);
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

/// The columns of a latency: min, p50, p99, p99.9, max.
fn quantiles(latency: &Latency) -> [String; 5] {
    let of = [latency.min, latency.p50, latency.p99, latency.p999, latency.max];
    of.map(|ns| if latency.count == 0 { "–".to_owned() } else { us(ns) })
}

/// Reads and writes of remote memory.
fn operations(outcome: &TopologyOutcome) -> String {
    let mut rows = Rows::new(&[
        "operations",
        "way",
        ">done",
        ">refused",
        ">no answer",
        ">open",
        ">bytes checked",
        ">min µs",
        ">p50",
        ">p99",
        ">p99.9",
        ">max",
    ]);
    for one in &outcome.operations {
        let counts = [one.done, one.refused, one.unknown, one.open, one.checked_bytes];
        let first = [one.name.clone(), one.way.clone()];
        rows.push(
            [&first[..], &counts.map(|number| number.to_string()), &quantiles(&one.latency_ns)].concat(),
        );
    }
    if rows.is_empty() { String::new() } else { format!("\n{}", rows.text()) }
}

/// What tables have no column for.
fn notes(outcome: &TopologyOutcome) -> String {
    let mut notes = String::new();
    for traffic in &outcome.traffic {
        let name = &traffic.name;
        let what = match traffic.of {
            "message" => "messages found no room",
            "operation" => "operations were refused, had no answer, or had not ended",
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
    let silent = |flow: &&FlowOutcome| flow.sent > 0 && flow.received == 0;
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
    let mut links: Vec<&LinkOutcome> = outcome.links.iter().filter(|link| link.frames > 0).collect();
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
    let mut switches: Vec<&SwitchNodeOutcome> = outcome.switches.iter().collect();
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
