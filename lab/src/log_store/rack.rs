//! The store as `up`'s workload: the memory's server, an engine and the client are processes of a rack.

use super::client::{Outcome, READY, setup};
use super::log::MEMORY_PAGES_MIN;
use crate::control;
use crate::error::LabError;
use crate::measure::Plan;
use crate::process::START;
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::store::figures::{self, Measured};
use crate::ways::Reach;
use crate::workload::Span;
use p4rack_codegen::Rack;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_fabric::hostile::cowbird::Attack;
use p4rack_fabric::remote::{Service, Way};
use p4rack_hosts::cowbird::hostile::RESERVED_BYTES;
use p4rack_report::text;
use p4rack_wire::Nanos;
use std::time::Duration;

/// Time limit for writing all records.
const ALL_RECORDS: Duration = Duration::from_secs(60);

/// Checks that the log store of a rack, as it is during a run, needs remote memory, and that an engine in the switch takes its
/// rings.
pub(crate) fn check(rack: &Rack, way: Way) -> Result<(), LabError> {
    let setup = setup(rack, Nanos::ZERO, 0)?;
    let config = setup.config(way);
    if !way.is_remote() {
        return Ok(());
    }
    if !config.has_share(setup.records as usize, setup.memory_percent) {
        let pages = (100 * MEMORY_PAGES_MIN).div_ceil(setup.memory_percent.max(1));
        return Err(LabError::Unfit(format!(
            "local memory has {MEMORY_PAGES_MIN} pages at least, which is more than {} % of {} records: set workload.records to \
             {} or more, or raise workload.log.memory_percent",
            setup.memory_percent,
            setup.records,
            pages * config.page_records
        )));
    }
    if way.definition().service == Service::Node {
        let server = rack.workload.as_ref().map_or("", |workload| workload.ends().0);
        p4rack_memory::memory_node(rack, server)?;
        let most = p4rack_memory::edm(rack)?.message_bytes_max as usize;
        if config.page_bytes() > most {
            return Err(LabError::Unfit(format!(
                "{way}: a page of the log has {} bytes, and edm.message_bytes_max is {most}: raise that, or lower \
                 workload.value_bytes",
                config.page_bytes()
            )));
        }
    }
    let Some(cowbird) = rack.protocol::<Cowbird>() else { return Ok(()) };
    let shape = config.shape();
    let needed = shape.reads.ring_bytes().max(shape.writes.ring_bytes()) / 2;
    if needed > cowbird.message_bytes_max.into() {
        return Err(LabError::Unfit(format!(
            "{way}: rings of {} bytes are needed, and the switch takes twice cowbird.message_bytes_max, which is {}: set that \
             to {needed}, or lower workload.depth or workload.value_bytes",
            2 * needed,
            cowbird.message_bytes_max
        )));
    }
    Ok(())
}

/// Runs the workload.
pub(crate) fn run(
    running: &mut Running<'_>,
    way: Way,
    plan: Plan<'_>,
    second: Option<Second<'_>>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let store = plan.workload.store.as_ref();
    let store = store.ok_or_else(|| LabError::Unfit("the workload is no store".to_owned()))?;
    let config = setup(running.rack, Nanos(plan.window_ns), plan.seed)?.config(way);
    let early = control::start_stats_anew(running)?;
    let (server, clients) = plan.workload.ends();
    let reach = Reach { running, way, server };
    // From here on, the engine's service is the switch's controller.
    let second_bytes = second.map_or(0, |_| config.region_bytes().max(RESERVED_BYTES));
    let serving = reach.serve(config.region_bytes() + second_bytes, false)?;
    let client = |host: &str| {
        let mut args = vec!["log-client".to_owned(), running.path.display().to_string()];
        args.extend(["--duration-ns".to_owned(), plan.window_ns.to_string()]);
        args.extend(["--seed".to_owned(), plan.seed.to_string()]);
        args.extend(reach.client(host)?);
        running.program(host, args)
    };
    let honest = second.filter(|second| second.attack.is_none());
    let mut beside = honest.map(|second| client(second.host)).transpose()?;
    let mut client = client(clients.first().map_or("", String::as_str))?;
    // The attack begins when all records are written.
    let attack = second.and_then(|second| Some((second.host.to_owned(), second.attack?)));
    let attack =
        attack.map(|(host, attack)| Ok::<_, LabError>((reach.attacker(&host, attack)?, host))).transpose()?;
    running.serving = serving;
    let (name, records) = (running.name.clone(), text::count(store.records.into()));
    let start_ns = progress.step(
        &format!("{name}: writing {records} records"),
        || {
            client.wait_for_line_beside(READY, ALL_RECORDS, &mut || running.check())?;
            let output = client.output();
            let start = output.lines().find_map(|line| line.strip_prefix(READY)?.trim().parse().ok());
            start.ok_or_else(|| client.failure("does not say when it begins"))
        },
        |_| format!("{name}: {records} records written"),
    )?;
    if let Some((args, host)) = attack {
        let process = running.program(&host, args)?;
        beside.insert(process).wait_for_line("ready", START)?;
    }
    let window = Span { start_ns, duration_ns: plan.window_ns };
    let mut clients = [client];
    let server = figures::watch(progress, running, store, window, &mut clients)?;
    let windowed = control::stats(running)?;
    let [mut client] = clients;
    let outcome: Outcome = progress.step(
        &format!("{name}: reading {records} records"),
        || figures::report(&mut client, running),
        |_| format!("{name}: {records} records read again"),
    )?;
    running.check()?;
    if let Some(beside) = &mut beside {
        beside.check_not_failed()?;
        beside.kill();
    }
    // Requests that an engine still has in flight count too. It ends before its pool.
    running.end_serving();
    let switch = [early, windowed, control::stats(running)?];
    let Outcome { report, contents } = outcome;
    let caches = Vec::new();
    let measured = Measured { reports: &[report], contents, caches, window, switch, bulk: None, server };
    figures::result(running, store, plan, measured, progress)
}

/// A second compute node beside the measured one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second<'a> {
    /// Its host.
    pub(crate) host: &'a str,
    /// Its attack; `None`: it uses a store of its own.
    pub(crate) attack: Option<Attack>,
}
