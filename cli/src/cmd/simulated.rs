//! A rack's workload in virtual time, for the figures that `p4rack up --simulate` shows beside the real ones.

use p4rack_codegen::rack::{Rack, Target, Workload, WorkloadKind};
use p4rack_codegen::scheme::Cost;
use p4rack_codegen::scheme::endpoint_config;
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::setting::Setting;
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::Config;
use p4rack_lab::results::{Results, SchemeResult};
use p4rack_lab::store;
use p4rack_lab::workload::rpc::{REQUEST_BYTES, ValueReport};
use p4rack_lab::workload::{rate_bps, seed, udp};
use p4rack_sim::{Entry, Experiment, Outcome, Trace, TrafficOutcome};
use p4rack_wire::Nanos;
use std::fmt::Write;
use std::path::Path;

/// Checks before a run that the rack can be simulated after it.
pub fn check(path: &Path, settings: &[Setting]) -> Result<(), String> {
    let rack = Rack::load_set(path, settings).map_err(|error| error.to_string())?;
    rack.with_one_switch("--simulate")
}

/// The rack of `path`, with these keys set, under each scheme of `results`: v1model's program, the same machines, and
/// the load that the workload's programs would offer if none were ever late. Nothing is killed.
pub fn simulate(path: &Path, settings: &[Setting], results: &Results) -> Result<Vec<SchemeResult>, String> {
    let file = path.display().to_string();
    let rack = Rack::load_set(path, settings).map_err(|error| error.to_string())?;
    let workload = rack.workload.as_ref().ok_or_else(|| format!("{file}: has no [workload]: add one"))?;
    if workload.store.as_ref().is_some_and(|store| store.log.is_some()) {
        eprintln!(
            "{file}: ways to a log store are not run in virtual time by `up`: `p4rack sim run` has racks of its own for Cowbird"
        );
        return Ok(Vec::new());
    }
    if rack.cache().is_some() {
        eprintln!(
            "{file}: stores in cached regions are not run in virtual time: `p4rack cache run` simulates policies"
        );
        return Ok(Vec::new());
    }
    let simulable = rack.switch.target == Target::Embedded
        && rack
            .hosts
            .iter()
            .all(|host| host.port_rate_bps == host.rate_bps && host.foreign_percent.is_none());
    if !simulable {
        return Err(format!(
            "{file}: --simulate is for racks of the embedded switch, with a port for each host and none to other racks"
        ));
    }
    if results.setting.arch != Arch::V1model {
        eprintln!(
            "{file}: in virtual time the switch runs v1model's program, not {}'s",
            results.setting.arch
        );
    }
    let mut all = Vec::new();
    for real in &results.schemes {
        let Ok(scheme) = real.name.parse::<Scheme>() else {
            eprintln!(
                "{file}: {} is not run in virtual time: only stores in EDM's memory and in a board's offload are",
                real.name
            );
            continue;
        };
        if let Some(store) = &workload.store {
            let runs = rack.under(scheme).map_err(|error| error.to_string())?;
            // A server and its TCP are programs of the system's.
            if let Some(why) = store::simulated::lacks(&runs, workload, store) {
                eprintln!("{file}: {scheme} is not run in virtual time: {why}");
                continue;
            }
            let window_ns = (results.duration_s * 1e9) as u64;
            let result = store::simulated::run(&runs, workload, store, results.seed, window_ns);
            all.push(result.map_err(|error| format!("{file}: {scheme} in virtual time: {error}"))?);
            continue;
        }
        let experiment = experiment(&rack, workload, scheme, results)
            .map_err(|error| format!("{file}: {scheme} in virtual time: {error}"))?;
        let (outcome, _) = p4rack_sim::run(&experiment, None).map_err(|error| error.to_string())?;
        if let Some(problem) = outcome.problems.first() {
            return Err(format!("{file}: {scheme} in virtual time failed a check: {problem}"));
        }
        all.push(result(&outcome, &rack, workload, results.duration_s, scheme));
    }
    Ok(all)
}

/// The experiment that is the workload under a scheme.
fn experiment(
    rack: &Rack,
    workload: &Workload,
    scheme: Scheme,
    results: &Results,
) -> Result<Experiment, String> {
    if ![Scheme::L2, Scheme::PL2_COUNTER, Scheme::PL2_CLOCK].contains(&scheme) {
        return Err("only l2, pl2-counter and pl2-clock are simulated".to_owned());
    }
    let runs = rack.under(scheme).map_err(|error| error.to_string())?;
    let told = endpoint_config(&runs, &rack.hosts[0], scheme).map_err(|error| error.to_string())?;
    let position = |name: &str| {
        let found = rack.hosts.iter().position(|host| host.name == name);
        found.ok_or_else(|| format!("no host is called `{name}`"))
    };
    let us = |seconds: f64| (seconds * 1e6) as u64;
    let (warmup_us, window_us) = (us(results.setting.warm_up_s), us(results.duration_s));
    let rates = rack.hosts.iter().enumerate();
    let rates: Vec<String> =
        rates.map(|(n, host)| format!("h{} = \"{} b/s\"", n + 1, host.rate_bps)).collect();
    // Writing to a string cannot fail, so the results are ignored.
    let mut text = format!(
        "name = \"{}\"\nseed = {}\nduration_us = {}\nwarmup_us = {warmup_us}\ndrain_us = 1000000\nsample_us = 1000\n\
         [rack]\nhosts = {}\nrate = \"{} b/s\"\nrates = {{ {} }}\nbuffer = \"{} B\"\n\
         [nic]\nplace = \"host\"\n[scheme]\nkind = \"{scheme}\"\n",
        rack.name,
        results.seed,
        warmup_us + window_us,
        rack.hosts.len(),
        rack.switch.port_rate_bps,
        rates.join(", "),
        rack.switch.buffer_bytes,
    );
    if let (Some(pl2), Config::Pl2(told)) = (runs.protocol::<Pl2>(), &told) {
        let _ = write!(
            text,
            "k = {}\nslot_parts = {}\nt = {}\ndrop_threshold = {}\nin_flight = {}\nlanes = {}\nby_thread = {}\n\
             pace_unsolicited = {}\nnotify_receiver = {}\nshim = {}\ncontrol_per_slot = {}\n\
             slot_headroom_percent = {:?}\ngrt_timeout_us = {}\n",
            pl2.k,
            pl2.slot_parts,
            pl2.t_slots,
            pl2.drop_threshold_slots,
            pl2.reservations_in_flight,
            pl2.lanes,
            pl2.by_flow,
            pl2.pace_unsolicited,
            pl2.notify_receiver,
            pl2.shim,
            pl2.control_per_slot,
            pl2.slot_headroom_percent,
            told.grt_timeout_min.0 / 1_000,
        );
    }
    let _ = write!(
        text,
        "[[traffic]]\nname = \"{}\"\npattern = \"trace\"\narrivals = \"trace\"\ntrace = \"offered\"\nqueue_limit = {}\n",
        workload.kind.name(),
        told.station().queue_limit_frames,
    );
    if let Some(rpc) = &workload.rpc {
        let (client, server) = (position(&rpc.client)? + 1, position(&rpc.server)? + 1);
        for bytes in &rpc.value_bytes {
            let _ = write!(
                text,
                "[[traffic]]\nname = \"{bytes}\"\npattern = \"shuffle\"\nsenders = [\"h{client}\"]\n\
                 receivers = [\"h{server}\"]\narrivals = \"rpc\"\nsize = {bytes}\nrequest_bytes = {REQUEST_BYTES}\n\
                 transport = \"cubic\"\n",
            );
        }
    }
    let refused = |error: p4rack_sim::ExperimentError| error.to_string();
    let mut experiment =
        Experiment::parse(&text, "its experiment").map_err(refused)?.on(rack).map_err(refused)?;
    experiment.traces[0] = Some(offered(rack, workload, results, position)?);
    Ok(experiment)
}

/// Offered load of the workload's senders.
fn offered(
    rack: &Rack,
    workload: &Workload,
    results: &Results,
    position: impl Fn(&str) -> Result<usize, String>,
) -> Result<Trace, String> {
    let (one, many) = workload.ends();
    let one = position(one)?;
    let duration_ns = ((results.setting.warm_up_s + results.duration_s) * 1e9) as u64;
    let (bytes, rate) = (workload.payload_bytes, rate_bps(rack, workload));
    let mut trace = Trace::default();
    for (pair, other) in many.iter().enumerate() {
        let other = position(other)?;
        trace.pairs.push(match workload.kind {
            WorkloadKind::Incast | WorkloadKind::Store => (other, one),
            WorkloadKind::Outcast => (one, other),
        });
        for (at_ns, frames) in udp::schedule(rate, bytes.into(), seed(results.seed, pair), duration_ns) {
            let frame = Entry { time: Nanos(at_ns), pair, bytes };
            trace.entries.extend((0..frames).map(|_| frame));
        }
    }
    trace.entries.sort_by_key(|entry| entry.time);
    Ok(trace)
}

/// The outcome in the words of a real run.
fn result(
    outcome: &Outcome,
    rack: &Rack,
    workload: &Workload,
    window_s: f64,
    scheme: Scheme,
) -> SchemeResult {
    let bps = |gbps: f64| (gbps * 1e9) as u64;
    let (incast, switch) = (workload.kind == WorkloadKind::Incast, &outcome.switch);
    let reasons = rack.drop_reasons();
    let sent_again = reasons.iter().filter(|reason| reason.cost == Cost::SentAgain);
    let unsolicited: u64 = sent_again.filter_map(|reason| switch.program_drops.get(reason.name)).sum();
    let mut drops = std::collections::BTreeMap::new();
    for (place, counts) in
        [("switch", &switch.drops), ("program", &switch.program_drops), ("agent", &outcome.host_drops)]
    {
        drops.extend(counts.iter().map(|(reason, count)| (format!("{place}.{reason}"), *count)));
    }
    let refused: u64 = outcome.traffic.iter().map(|traffic| traffic.refused).sum();
    drops.insert("socket.refused".to_owned(), refused);
    drops.retain(|_, count| *count > 0);
    let one = rack.host(workload.ends().0);
    let named: u64 = switch.program_drops.values().sum();
    let by_manager: u64 = switch.drops.values().sum();
    let rpc = workload.rpc.iter().flat_map(|rpc| &rpc.value_bytes).zip(&outcome.traffic[1..]);
    SchemeResult {
        name: scheme.name(),
        offered_bps: rate_bps(rack, workload) * workload.ends().1.len() as u64,
        goodput_bps: bps(if incast {
            outcome.goodput_max_host_gbps
        } else {
            outcome.traffic[0].goodput_gbps
        }),
        goodput_ceiling_bps: one.map_or(0, |one| match (incast, rack.under(scheme)) {
            (true, Ok(runs)) => runs.goodput_ceiling_bps(one),
            (false, Ok(runs)) => runs.send_ceiling_bps(one),
            (_, Err(_)) => 0,
        }),
        // The switch counts all frames that the program drops, for any reason.
        fabric_drops: by_manager.max(named) - unsolicited + outcome.link_losses,
        unsolicited_drops: unsolicited,
        host_drops: outcome.host_drops.values().sum::<u64>() + refused,
        drops,
        queue_max_bytes: switch.queue_max_bytes,
        queue_p999_bytes: switch.queue_p999_bytes,
        rpc: rpc.map(|(bytes, traffic)| value(*bytes, traffic, window_s * 1e6)).collect(),
        ..SchemeResult::default()
    }
}

/// Requests for values of one size. One without an answer counts with the window's length, as on real racks.
fn value(value_bytes: u32, traffic: &TrafficOutcome, window_us: f64) -> ValueReport {
    let (latency, done) = (&traffic.latency_ns, traffic.done);
    // Requests and answers are made, and one of a pair without the other at most.
    let unfinished = traffic.made.div_ceil(2).saturating_sub(done).max(u64::from(done == 0));
    let us = |ns: u64| ns as f64 / 1e3;
    let quantile = |share: f64, ns: u64| match share * (done + unfinished) as f64 > done as f64 {
        true => window_us,
        false => us(ns),
    };
    ValueReport {
        value_bytes,
        completed: done,
        unfinished,
        p50_us: quantile(0.5, latency.p50),
        p99_us: quantile(0.99, latency.p99),
        p999_us: quantile(0.999, latency.p999),
        cdf: latency.cdf.iter().map(|(ns, share)| (us(*ns), *share)).collect(),
    }
}
