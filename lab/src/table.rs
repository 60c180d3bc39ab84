//! The result table in the terminal.

use crate::results::{CacheResult, MixResult, Results, SchemeResult, StoreResult, Takeover, TorKill};
use crate::rows::Rows;
use crate::worlds;
use p4rack_codegen::rack::WorkloadKind;
use p4rack_report::text;

/// Figures of all schemes, one column each, as wide as standard output takes them.
pub fn render(results: &Results) -> String {
    let columns = results.columns();
    let names = columns.iter().map(|(name, _)| format!(">{name}"));
    let mut table = Rows::new(&std::iter::once(String::new()).chain(names).collect::<Vec<_>>());
    for (label, figure) in rows(results) {
        let cells = columns.iter().map(|(_, scheme)| figure(scheme));
        table.push(std::iter::once(label).chain(cells).collect());
    }
    let mut out = format!("{}\n", table.text());
    for skipped in &results.skipped {
        out.push_str(&format!("{}\n", skipped.sentence()));
    }
    if !results.skipped.is_empty() {
        let all = results.schemes.len() + results.skipped.len();
        out.push_str(&format!("{} of {all} runs skipped\n", results.skipped.len()));
    }
    out.push_str(&format!("{}\n", results.context()));
    let waiting = results.schemes.iter().flat_map(|scheme| &scheme.rpc).any(|value| value.unfinished > 0);
    if waiting {
        out.push_str(&format!(
            "a request that was still waiting at the end counts with the time it had waited, at least with the whole window of {} s\n",
            results.duration_s
        ));
    }
    for agreement in worlds::agreements(results) {
        let how = if agreement.holds { "the same" } else { "NOT the same" };
        out.push_str(&format!("{}: {how} order of schemes, real and simulated\n", agreement.figure));
    }
    let kept = results.promises.iter().filter(|promise| promise.holds).count();
    out.push_str(&format!("{kept} of {} promises kept\n", results.promises.len()));
    for promise in results.promises.iter().filter(|promise| !promise.holds) {
        out.push_str(&format!("  not kept: {}\n", promise.sentence()));
    }
    out
}

type Figure<'a> = Box<dyn Fn(&SchemeResult) -> String + 'a>;

/// Rows of figures with their names, the same for the terminal and the report.
pub(crate) fn rows(results: &Results) -> Vec<(String, Figure<'_>)> {
    if results.setting.kind == WorkloadKind::Store {
        return store_rows(results);
    }
    let frame_bytes = results.setting.mtu_frame_bytes;
    let mut rows: Vec<(String, Figure)> = vec![
        ("offered".into(), Box::new(|s| text::rate(s.offered_bps as f64))),
        ("goodput".into(), Box::new(|s| text::rate(s.goodput_bps as f64))),
        ("goodput, ceiling".into(), Box::new(|s| text::rate(s.goodput_ceiling_bps as f64))),
        ("frames lost in the fabric".into(), Box::new(|s| text::count(s.fabric_drops))),
        ("unsolicited over t or T".into(), Box::new(|s| text::count(s.unsolicited_drops))),
        ("frames lost in hosts".into(), Box::new(|s| text::count(s.host_drops))),
        ("congested queue, p99.9".into(), Box::new(move |s| text::depth(s.queue_p999_bytes, frame_bytes))),
        ("congested queue, max".into(), Box::new(move |s| text::depth(s.queue_max_bytes, frame_bytes))),
    ];
    let sizes = results.schemes.first().map(|s| s.rpc.iter().map(|v| v.value_bytes).collect::<Vec<_>>());
    for size in sizes.unwrap_or_default() {
        let name = text::bytes(u64::from(size));
        let of = move |s: &SchemeResult, get: fn(&crate::workload::rpc::ValueReport) -> String| {
            s.rpc_of(size).map_or_else(|| "–".to_owned(), get)
        };
        rows.push((
            format!("{name} requests answered"),
            Box::new(move |s| of(s, |v| text::count(v.completed))),
        ));
        rows.push((
            format!("{name} requests still waiting"),
            Box::new(move |s| of(s, |v| text::count(v.unfinished))),
        ));
        rows.push((format!("{name} requests, p50"), Box::new(move |s| of(s, |v| text::micros(v.p50_us)))));
        rows.push((format!("{name} requests, p99"), Box::new(move |s| of(s, |v| text::micros(v.p99_us)))));
    }
    if let Some(kill) = results.schemes.iter().find_map(|scheme| scheme.host_kill.as_ref()) {
        let host = &kill.host;
        let of = |s: &SchemeResult, get: fn(&crate::results::HostKill) -> String| {
            s.host_kill.as_ref().map_or_else(|| "–".to_owned(), get)
        };
        rows.push((
            format!("others before {host} is killed"),
            Box::new(move |s| of(s, |k| text::rate(k.others_before_bps as f64))),
        ));
        rows.push((
            format!("others after {host} is killed, lowest"),
            Box::new(move |s| of(s, |k| text::rate(k.others_min_bps as f64))),
        ));
        rows.push((
            "back at 80 % after the reset".into(),
            Box::new(move |s| {
                of(s, |k| match (k.reset_after_ms, k.recovered_after_ms) {
                    (None, _) => "no reset needed".to_owned(),
                    (Some(_), Some(ms)) => format!("{ms} ms"),
                    (Some(_), None) => "never".to_owned(),
                })
            }),
        ));
    }
    rows.extend(tor_rows(results, "between two frames of a sender"));
    rows
}

/// Rows of a run in which one of two switches was killed. `what` is the progress without which time passes.
fn tor_rows<'a>(results: &Results, what: &str) -> Vec<(String, Figure<'a>)> {
    let Some(tor) = results.schemes.iter().find_map(|scheme| Some(scheme.tor_kill.as_ref()?.tor)) else {
        return Vec::new();
    };
    let of = |show: fn(&TorKill) -> String| -> Figure<'a> {
        Box::new(move |scheme| scheme.tor_kill.as_ref().map_or_else(|| "–".to_owned(), show))
    };
    vec![
        (format!("switch {tor} killed after"), of(|kill| format!("{} ms", kill.after_ms))),
        (format!("longest time {what}"), of(|kill| text::micros(kill.longest_ms * 1e3))),
        (
            "frames delivered twice".to_owned(),
            of(|kill| kill.doubled.map_or_else(|| "–".to_owned(), text::count)),
        ),
    ]
}

/// Rows of a store.
fn store_rows(results: &Results) -> Vec<(String, Figure<'_>)> {
    fn of<'a, T: 'a>(found: Option<T>, show: impl Fn(T) -> String) -> String {
        found.map_or_else(|| "–".to_owned(), show)
    }
    let frame_bytes = results.setting.mtu_frame_bytes;
    let mut rows: Vec<(String, Figure)> = Vec::new();
    let first = results.schemes.iter().find_map(|scheme| scheme.store.as_ref());
    for mix in first.map(|store| store.mixes.as_slice()).unwrap_or_default() {
        let name = mix.label();
        let figure = |show: fn(&MixResult) -> String| -> Figure<'_> {
            let name = name.clone();
            Box::new(move |s| of(s.mix_of(&name), show))
        };
        rows.push((format!("{name}: operations a second"), figure(|mix| text::count(mix.ops_per_s as u64))));
        rows.push((format!("{name}: p50"), figure(|mix| text::micros(mix.p50_us))));
        rows.push((format!("{name}: p99"), figure(|mix| text::micros(mix.p99_us))));
        rows.push((format!("{name}: p99.9"), figure(|mix| text::micros(mix.p999_us))));
        if mix.thread_cpu_ns.is_some() {
            let cpu = |mix: &MixResult| of(mix.thread_cpu_ns, |ns| text::micros(ns / 1e3));
            rows.push((format!("{name}: processor time of the client for each"), figure(cpu)));
        }
        if mix.cache.is_some() {
            let hits = |cache: &CacheResult| format!("{:.2} %", 100.0 * cache.hit_share);
            let moved = |cache: &CacheResult| text::bytes(cache.moved_bytes as u64);
            let local = |cache: &CacheResult| text::bytes(cache.local_bytes);
            rows.push((format!("{name}: uses of blocks that were local"), cache_figure(&name, hits)));
            rows.push((format!("{name}: moved for each operation"), cache_figure(&name, moved)));
            rows.push((format!("{name}: local memory of a client"), cache_figure(&name, local)));
        }
    }
    let of_store =
        |show: fn(&StoreResult) -> String| -> Figure<'_> { Box::new(move |s| of(s.store.as_ref(), show)) };
    if results.setting.log.is_some() {
        let share = |store: &StoreResult| of(store.cold_share, |share| format!("{:.1} %", 100.0 * share));
        rows.push(("operations that read remote memory".into(), of_store(share)));
    }
    if let Some(bulk) = &results.setting.bulk {
        let rate = |store: &StoreResult| of(store.bulk_bps, |bps| text::rate(bps as f64));
        rows.push((format!("{} wrote beside them", bulk.host), of_store(rate)));
    }
    if results.schemes.iter().any(|scheme| scheme.store.as_ref().is_some_and(|s| s.server_cpu_ns.is_some())) {
        let cpu = |store: &StoreResult| of(store.server_cpu_ns, |ns| text::micros(ns / 1e3));
        rows.push(("processor time of the server for each operation".into(), of_store(cpu)));
        let memory = |store: &StoreResult| of(store.server_resident_bytes, |[_, end]| text::bytes(end));
        rows.push(("memory of the server's process".into(), of_store(memory)));
    }
    if let Some(takeover) = results.schemes.iter().find_map(|scheme| scheme.store.as_ref()?.takeover.as_ref())
    {
        let name = format!("{}’s memory at {} after a kill", takeover.host, takeover.by);
        let after = |store: &StoreResult| of(store.takeover.as_ref(), shown_takeover);
        rows.push((name, of_store(after)));
    }
    rows.push(("operations lost".into(), of_store(|store| text::count(store.lost))));
    rows.push(("wrong answers".into(), of_store(|store| text::count(store.wrong))));
    let dropped =
        if results.setting.tors > 1 { "copies dropped by a switch" } else { "frames lost in the fabric" };
    rows.push((dropped.into(), Box::new(|s| text::count(s.fabric_drops))));
    rows.push((
        "the server's queue, max".into(),
        Box::new(move |s| text::depth(s.queue_max_bytes, frame_bytes)),
    ));
    rows.extend(tor_rows(results, "of an operation"));
    rows
}

/// A figure of a store's regions under the mix with this label.
fn cache_figure<'a>(label: &str, show: fn(&CacheResult) -> String) -> Figure<'a> {
    let label = label.to_owned();
    Box::new(move |scheme| {
        let cache = scheme.mix_of(&label).and_then(|mix| mix.cache.as_ref());
        cache.map_or_else(|| "–".to_owned(), show)
    })
}

/// When a killed client's memory was another one's, beside the lease.
fn shown_takeover(takeover: &Takeover) -> String {
    let lease = takeover.lease_ms;
    match takeover.after_ms {
        Some(ms) => format!("{ms} ms, lease {lease} ms"),
        None => "never".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::results::tests::good_results;

    #[test]
    fn the_table_shows_each_scheme_and_each_broken_promise() {
        let mut results = good_results();
        results.schemes[2].fabric_drops = 7;
        results.promises = crate::promises::judge(&results);
        let text = super::render(&results);
        assert!(!text.contains("still waiting at the end"));
        let context = "shared 2 cores; load average 0.5 before, 3.2 after; release build";
        for expected in
            ["l2", "pl2-counter", "pl2-clock", "92 Mb/s", "1 KiB requests, p99", "16 of 17 promises", context]
        {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(text.contains("not kept: pl2-clock: frames lost in the fabric: measured 7, promised 0"));
        results.schemes[0].rpc[0].unfinished = 1;
        assert!(
            super::render(&results).contains("still waiting at the end counts with the time it had waited")
        );
    }

    #[test]
    fn stores_in_regions_have_rows_for_each_percentage() {
        let text = super::render(&crate::results::tests::good_cached());
        for expected in [
            "B, 100 %: operations a second",
            "B, 10 %: uses of blocks that were local",
            "90.00 %",
            "B, 10 %: moved for each operation",
            "c1’s memory at c2 after a kill",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
    }

    #[test]
    fn a_store_has_rows_of_its_own() {
        let text = super::render(&crate::results::tests::good_store());
        for expected in ["A: operations a second", "C: p99.9", "300 µs", "operations lost", "wrong answers"]
        {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(!text.contains("goodput"), "{text}");
    }
}
