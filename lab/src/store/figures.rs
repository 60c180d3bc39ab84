//! Combined results of a store's clients, live and at the end.

use super::bulk::BulkReport;
use crate::control::SwitchStats;
use crate::error::LabError;
use crate::measure::{self, Plan, Times};
use crate::process::Process;
use crate::progress::Progress;
use crate::results::{CacheResult, MixResult, SchemeResult, StoreResult};
use crate::running::Running;
use crate::stats::cdf;
use crate::sys;
use crate::tors;
use crate::workload::Span;
use crate::ycsb::{ClientReport, Contents, MixReport, SoFar};
use p4rack_codegen::rack::StoreParameters;
use p4rack_history::Effects;
use p4rack_report::text;
use p4rack_wire::{Histogram, Nanos};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time limit for clients to check their last writes.
const FINISH: Duration = Duration::from_secs(60);

/// Measurements of a store under one scheme.
pub(crate) struct Measured<'a> {
    /// Reports of the clients.
    pub(crate) reports: &'a [ClientReport],
    /// Totals of all records at the end.
    pub(crate) contents: Contents,
    /// Time span of the clients' operations.
    pub(crate) window: Span,
    /// Counters of the regions, mix by mix, for stores in cached regions.
    pub(crate) caches: Vec<CacheResult>,
    /// Bulk writes during the clients' operations, if any.
    pub(crate) bulk: Option<BulkReport>,
    /// Usage of the servers over the window, if there are any.
    pub(crate) server: Option<Served>,
    /// Statistics of the switch: at their reset, at the end of the window, and after the last operation.
    pub(crate) switch: [SwitchStats; 3],
}

/// Resources that a store's servers have used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Processor time over the window.
    pub(crate) cpu: Nanos,
    /// Resident memory after the first quarter of the window, and at its end.
    pub(crate) resident_bytes: [u64; 2],
}

/// Shows the clients' progress until the end of the window. Returns what the servers used in it. Fails if a client fails or
/// another party of the rack exits.
pub(crate) fn watch(
    progress: &Progress,
    running: &mut Running<'_>,
    store: &StoreParameters,
    window: Span,
    clients: &mut [Process],
) -> Result<Option<Served>, LabError> {
    let part_ns = (window.duration_ns / store.mixes.len().max(1) as u64).max(1);
    let mut live = Live { at_ns: window.start_ns, operations: 0, per_s: 0 };
    let before = running.serving_usage()?;
    // By then the board's memory of executed requests has reached its full size.
    let warm_ns = window.start_ns + window.duration_ns / 4;
    let mut warm = None;
    progress.watch(window.end_ns(), || {
        running.check()?;
        if warm.is_none() && sys::monotonic_ns() >= warm_ns {
            warm = running.serving_usage()?;
        }
        clients.iter_mut().try_for_each(Process::check_not_failed)?;
        let now_ns = sys::monotonic_ns();
        let nth = (now_ns.saturating_sub(window.start_ns) / part_ns) as usize;
        let mix = store.mixes.get(nth).map_or("", |mix| mix.name());
        let so_far: Vec<SoFar> =
            clients.iter().filter_map(|process| SoFar::latest(&process.output())).collect();
        Ok(format!("{}, mix {mix}: {}", running.name, live.line(&so_far, now_ns)))
    })?;
    let after = running.serving_usage()?;
    // The last look was at the end of the window, so only a rack without servers has none.
    Ok(before.zip(warm).zip(after).map(|((before, warm), after)| Served {
        cpu: after.cpu.saturating_sub(before.cpu),
        resident_bytes: [warm.resident_bytes, after.resident_bytes],
    }))
}

/// Figures of a store under a scheme, also by mix.
pub(crate) fn result(
    running: &Running<'_>,
    store: &StoreParameters,
    plan: Plan<'_>,
    measured: Measured<'_>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let Measured { reports, contents, caches, window, switch: [early, windowed, last], bulk, server: served } =
        measured;
    let counts = measure::switch_counts(running, &early, &last)?;
    let servers = plan.workload.receivers.iter().map(|host| running.index(host));
    let servers: Vec<usize> = servers.collect::<Result<_, _>>()?;
    let mut figures = together(store, reports, contents);
    for (mix, cache) in figures.mixes.iter_mut().zip(caches) {
        mix.cache = Some(cache);
    }
    if let Some(served) = served {
        let mixes = reports.iter().flat_map(|report| &report.mixes);
        let operations: u64 = mixes.map(|mix| mix.operations + mix.lost + mix.wrong).sum();
        figures.server_cpu_ns = Some(served.cpu.0 as f64 / operations.max(1) as f64);
        figures.server_resident_bytes = Some(served.resident_bytes);
    }
    figures.bulk_bps = bulk.map(|bulk| bulk_bps(&[bulk], window.duration_ns));
    for mix in &figures.mixes {
        progress.line(&format!(
            "✓ {}, mix {}: {} operations a second, p50 {}, p99 {}",
            running.name,
            mix.label(),
            text::count(mix.ops_per_s as u64),
            text::micros(mix.p50_us),
            text::micros(mix.p99_us)
        ));
    }
    let span_ns = whole_ns(reports);
    let values_bps = |of: &[ClientReport]| values_bps(store, of, span_ns);
    let clients = plan.workload.ends().1.iter().zip(reports);
    let by_client = clients.map(|(host, report)| (host.clone(), values_bps(std::slice::from_ref(report))));
    let by_client: BTreeMap<String, u64> = by_client.collect();
    let values_bps = values_bps(reports);
    let ceilings = servers.iter().map(|server| &running.rack.hosts[*server]);
    let ceiling_bps = ceilings.map(|host| running.rack.goodput_ceiling_bps(host)).min();
    let mut result = SchemeResult {
        name: running.name.clone(),
        offered_bps: values_bps,
        goodput_bps: values_bps,
        goodput_ceiling_bps: ceiling_bps.unwrap_or(0),
        fabric_drops: counts.lost.values().sum(),
        unsolicited_drops: counts.unsolicited.values().sum(),
        drops: counts.lost,
        store: Some(figures),
        goodput_by_host_bps: by_client,
        ..SchemeResult::default()
    };
    let longest_ns = |report: &ClientReport| {
        let operations = report.mixes.iter().flat_map(|mix| &mix.latencies);
        operations.map(|(ns, _)| *ns).max()
    };
    // Each client has to have measured some.
    let longest_ns = reports.iter().map(longest_ns).collect::<Option<Vec<u64>>>();
    let longest_ns = longest_ns.and_then(|each| each.into_iter().max());
    result.tor_kill = tors::effects(running.death, longest_ns, None)?;
    result.crossings = measure::crossings(running, &last)?;
    let times = Times { traffic: window, window };
    measure::fill_queue(&mut result, running, [&windowed, &last], &servers, times)?;
    Ok(result)
}

/// Span of a mix: that of the slowest client.
fn span_ns(reports: &[ClientReport], nth: usize) -> u64 {
    let each = reports.iter().filter_map(|report| report.mixes.get(nth));
    each.map(|report| report.elapsed_ns).max().unwrap_or(0)
}

/// Span of all mixes.
pub(super) fn whole_ns(reports: &[ClientReport]) -> u64 {
    let mixes = reports.iter().map(|report| report.mixes.len()).max().unwrap_or(0);
    (0..mixes).map(|nth| span_ns(reports, nth)).sum()
}

/// Values that were read or written, in bits per second.
pub(super) fn values_bps(store: &StoreParameters, reports: &[ClientReport], span_ns: u64) -> u64 {
    let values: u64 = reports.iter().flat_map(|report| &report.mixes).map(|mix| mix.values).sum();
    let bits = u128::from(values) * u128::from(store.value_bytes) * 8;
    (bits * 1_000_000_000 / u128::from(span_ns.max(1))) as u64
}

/// Rate at which bulk traffic left its host.
pub(super) fn bulk_bps(reports: &[BulkReport], span_ns: u64) -> u64 {
    let bytes: u64 = reports.iter().map(|report| report.bytes).sum();
    (u128::from(bytes) * 8_000_000_000 / u128::from(span_ns.max(1))) as u64
}

/// The result of a client, after its progress lines. Fails early if another process of the rack ends.
pub(crate) fn report<T: DeserializeOwned>(
    process: &mut Process,
    running: &mut Running<'_>,
) -> Result<T, LabError> {
    let output = process.finish_beside(FINISH, &mut || running.check())?;
    let line = output.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line).map_err(|error| process.failure(&format!("wrote no result: {error}")))
}

/// The live view: current totals of all clients.
struct Live {
    at_ns: u64,
    operations: u64,
    per_s: u64,
}

impl Live {
    fn line(&mut self, clients: &[SoFar], now_ns: u64) -> String {
        let operations: u64 = clients.iter().map(|so_far| so_far.operations).sum();
        if operations > self.operations {
            let took_ns = now_ns.saturating_sub(self.at_ns).max(1);
            let more = u128::from(operations - self.operations);
            self.per_s = (more * 1_000_000_000 / u128::from(took_ns)) as u64;
            (self.operations, self.at_ns) = (operations, now_ns);
        }
        let worst = |of: fn(&SoFar) -> u64| text::micros(clients.iter().map(of).max().unwrap_or(0) as f64);
        format!(
            "{} operations, {} a second, slowest client p50 {}, p99 {}",
            text::count(operations),
            text::count(self.per_s),
            worst(|so_far| so_far.p50_us),
            worst(|so_far| so_far.p99_us)
        )
    }
}

/// Figures of all clients together. Records were written once before them.
pub(super) fn together(store: &StoreParameters, reports: &[ClientReport], contents: Contents) -> StoreResult {
    let of = |nth: usize| reports.iter().filter_map(move |report| report.mixes.get(nth));
    let mixes: Vec<MixResult> = store
        .mixes
        .iter()
        .enumerate()
        .map(|(nth, mix)| mix_figures(mix.name(), &of(nth).collect::<Vec<_>>(), span_ns(reports, nth)))
        .collect();
    let all: Vec<&MixReport> = reports.iter().flat_map(|report| &report.mixes).collect();
    let whole = mix_figures("", &all, whole_ns(reports));
    let sum = |of: fn(&ClientReport) -> u64| reports.iter().map(of).sum::<u64>();
    // Each confirmed write is a version of its own. Lost operations may or may not have written.
    let readable = u64::from(store.records).saturating_sub(contents.lost + contents.wrong);
    let writes = Effects { known: sum(|report| report.writes), unknown: whole.lost };
    let there = contents.versions.saturating_sub(readable);
    let unreadable = contents.lost + contents.wrong > 0;
    let overwritten = if unreadable { 0 } else { writes.missing(there) };
    let invented = writes.invented(there);
    StoreResult {
        ops_per_s: whole.ops_per_s,
        p50_us: whole.p50_us,
        p99_us: whole.p99_us,
        p999_us: whole.p999_us,
        cold_share: whole.cold_share,
        thread_cpu_ns: whole.thread_cpu_ns,
        server_cpu_ns: None,
        server_resident_bytes: None,
        bulk_bps: None,
        takeover: None,
        lost: whole.lost + sum(|report| report.lost_writes) + contents.lost + overwritten,
        wrong: whole.wrong + contents.wrong + invented,
        mixes,
    }
}

/// Figures of a mix over a span.
pub(crate) fn mix_figures(mix: &str, reports: &[&MixReport], span_ns: u64) -> MixResult {
    let mut latencies = Histogram::new();
    for (latency_ns, count) in reports.iter().flat_map(|report| &report.latencies) {
        latencies.record_n(*latency_ns, *count);
    }
    let sum = |of: fn(&MixReport) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
    let operations = sum(|report| report.operations + report.lost + report.wrong).max(1) as f64;
    let each = |of: fn(&MixReport) -> Option<u64>| {
        let costs: Option<u64> = reports.iter().map(|report| of(report)).sum();
        costs.map(|costs| costs as f64 / operations)
    };
    let quantile_us = |q: f64| latencies.at(q) as f64 / 1e3;
    MixResult {
        mix: mix.to_owned(),
        ops_per_s: sum(|report| report.operations) as f64 * 1e9 / span_ns.max(1) as f64,
        p50_us: quantile_us(0.5),
        p99_us: quantile_us(0.99),
        p999_us: quantile_us(0.999),
        lost: sum(|report| report.lost),
        wrong: sum(|report| report.wrong),
        cache: None,
        cold_share: each(|report| report.cold_reads),
        thread_cpu_ns: each(|report| report.thread_cpu_ns),
        cdf: cdf(&latencies),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_codegen::rack::Mix;

    fn mix(mix: &str, operations: u64, us: u64) -> MixReport {
        let (mix, latencies) = (mix.to_owned(), vec![(us * 1_000, operations)]);
        MixReport { mix, operations, latencies, elapsed_ns: 1_000_000_000, ..MixReport::default() }
    }

    /// Ten records, two clients with 100 and 200 operations of mix A and 300 of mix C, and 30 and 60 writes.
    fn figures_after(change: impl FnOnce(&mut [ClientReport; 2], &mut Contents)) -> StoreResult {
        let store = StoreParameters {
            records: 10,
            value_bytes: 8,
            mixes: vec![Mix::A, Mix::C],
            depth: 1,
            bulk: None,
            log: None,
            cache: None,
        };
        let client = |n: u64| ClientReport {
            mixes: vec![mix("A", 100 * n, 10 * n), mix("C", 300, 5)],
            writes: 30 * n,
            lost_writes: 0,
        };
        let (mut clients, mut contents) = ([client(1), client(2)], Contents::default());
        contents.versions = 10 + 90;
        change(&mut clients, &mut contents);
        together(&store, &clients, contents)
    }

    #[test]
    fn figures_are_those_of_all_clients_together() {
        let figures = figures_after(|_, _| {});
        assert_eq!((figures.lost, figures.wrong, figures.ops_per_s), (0, 0, 450.0));
        let names: Vec<(&str, f64)> =
            figures.mixes.iter().map(|mix| (mix.mix.as_str(), mix.ops_per_s)).collect();
        assert_eq!(names, [("A", 300.0), ("C", 600.0)]);
        assert!((figures.mixes[0].p50_us - 20.0).abs() < 0.1 && (figures.mixes[1].p99_us - 5.0).abs() < 0.1);
        assert_eq!(figures.mixes[0].cdf.last().map(|point| point.1), Some(1.0));
    }

    #[test]
    fn whatever_is_lost_or_wrong_counts() {
        type Change = fn(&mut [ClientReport; 2], &mut Contents);
        let cases: [(Change, (u64, u64)); 7] = [
            (|clients, _| clients[0].mixes[1].lost = 2, (2, 0)),
            (|clients, _| clients[1].mixes[0].wrong = 3, (0, 3)),
            (|clients, _| clients[1].lost_writes = 1, (1, 0)),
            // Two clients have written the same version.
            (|_, contents| contents.versions -= 1, (1, 0)),
            (|_, contents| contents.versions += 1, (0, 1)),
            // Perhaps the lost operation has written.
            (|clients, contents| (clients[0].mixes[0].lost, contents.versions) = (1, 101), (1, 0)),
            (|_, contents| (contents.wrong, contents.versions) = (1, 60), (0, 1)),
        ];
        for (nth, (change, expected)) in cases.into_iter().enumerate() {
            let figures = figures_after(change);
            assert_eq!((figures.lost, figures.wrong), expected, "case {nth}");
        }
    }

    #[test]
    fn the_live_view_shows_the_rate_since_the_last_look() {
        let mut live = Live { at_ns: 0, operations: 0, per_s: 0 };
        let client = |operations, p99_us| SoFar { operations, p50_us: 40, p99_us };
        let line = live.line(&[client(100, 90), client(150, 80)], 500_000_000);
        assert_eq!(line, "250 operations, 500 a second, slowest client p50 40 µs, p99 90 µs");
        let line = live.line(&[client(100, 90), client(150, 80)], 600_000_000);
        assert!(line.contains("500 a second"), "nothing new was told: {line}");
        assert!(
            live.line(&[client(400, 90), client(150, 80)], 800_000_000).contains("1\u{202f}000 a second")
        );
    }
}
