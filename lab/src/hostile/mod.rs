//! Effect of a hostile host on the others, on a rack of real processes: runs the rack's workload with one
//! sender honest, then with that sender running each attack.

mod log_store;

use crate::described::Described;
use crate::ends;
use crate::error::LabError;
use crate::measure::{self, Plan};
use crate::network::{Access, HOST_INTERFACE, Network};
use crate::process::{Process, START};
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::store;
use crate::store::bulk::Load;
use crate::store::run::Beside as BesideClients;
use crate::sys;
use crate::up::{create_network, rack_under};
use crate::workload::rpc::ValueReport;
use p4rack_codegen::rack::{Run, Workload};
use p4rack_codegen::setting::Setting;
use p4rack_codegen::{Rack, Scheme};
use p4rack_fabric::hostile::{Attack, Fared, edm};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a read or write of a host that behaves.
const HONEST_BYTES: usize = 1 << 10;

/// Parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the description.
    pub path: PathBuf,
    /// Keys that override the description's.
    pub settings: Vec<Setting>,
    /// Schemes; empty means both of PL2's that the rack supports, those of EDM that the store is used under, or the log store's
    /// ways to remote memory.
    pub schemes: Vec<Run>,
    /// The hostile sender, or client of the store; `None` is the workload's last.
    pub host: Option<String>,
    /// Names of the attacks; empty means all.
    pub attacks: Vec<String>,
    /// Duration of a measured window.
    pub window_s: f64,
    /// Whether to hide progress.
    pub quiet: bool,
}

/// Results of the other hosts under one attack, compared with an honest run.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the attack.
    pub attack: String,
    /// The figures, separate for each size of requests.
    #[serde(flatten)]
    pub fared: Fared,
    /// Frames of the hostile host that its port dropped because they exceeded its rate.
    pub excess_frames: u64,
}

/// Figures of one run.
pub(crate) struct Figures {
    pub(crate) result: SchemeResult,
    pub(crate) frames_lost: u64,
}

/// Runs everything. Call this on the main thread before other threads are started.
pub fn run(options: &Options, mut done: impl FnMut(&Beside)) -> Result<Vec<Beside>, LabError> {
    sys::catch_interrupts();
    let progress = Progress::new(options.quiet);
    let described = Described::load(&options.path, &options.settings)?;
    let rack = &described.rack;
    rack.with_one_switch("a hostile host").map_err(LabError::Unfit)?;
    let unfit = |what: String| LabError::Unfit(format!("{}: {what}", options.path.display()));
    let workload = rack.workload.as_ref().ok_or_else(|| unfit("has no [workload]: add one".into()))?;
    if rack.log().is_some() {
        return log_store::run(options, (&described, workload), &progress, done);
    }
    let clients = workload.ends().1;
    let host = match &options.host {
        Some(host) => host.clone(),
        None => clients.last().cloned().unwrap_or_default(),
    };
    if !clients.contains(&host) || clients.len() < 2 {
        return Err(unfit(format!(
            "`{host}` is not one of two senders or more of [workload], or of its store's clients: name one of them"
        )));
    }
    if let Some(bulk) = workload.store.as_ref().and_then(|store| store.bulk.as_deref()) {
        return Err(unfit(format!("`{bulk}` loads its store's server too: remove workload.bulk")));
    }
    let asked = schemes(options, rack, workload);
    if asked.is_empty() {
        return Err(unfit(
            "its store is used under none of EDM's schemes: add one to workload.schemes".into(),
        ));
    }
    let attacks = attacks(options, workload).map_err(unfit)?;
    let racks = asked.iter().map(|scheme| rack_under(rack, *scheme)).collect::<Result<Vec<Rack>, _>>()?;
    let network = create_network(rack, Access::Agent, &progress)?;
    let mut all = Vec::new();
    for (rack, &scheme) in racks.iter().zip(&asked) {
        let one = |attack| {
            one(options, (rack, described.path(), &network, scheme), workload, &host, attack, &progress)
        };
        let honest = one(None)?;
        for attack in &attacks {
            let hostile = one(Some(attack))?;
            let beside = Beside {
                scheme: scheme.name(),
                attack: attack.clone(),
                fared: compare(&host, &hostile, &honest),
                excess_frames: hostile.result.drops.get("switch.over_rate").copied().unwrap_or(0),
            };
            done(&beside);
            all.push(beside);
        }
    }
    Ok(all)
}

/// The schemes that were asked for, or those that the workload is for.
fn schemes(options: &Options, rack: &Rack, workload: &Workload) -> Vec<Scheme> {
    match (options.schemes.as_slice(), &workload.store) {
        ([], Some(_)) => {
            let is_edm =
                |scheme: &Scheme| rack_under(rack, *scheme).is_ok_and(|rack| p4rack_memory::runs(&rack));
            workload.schemes.iter().map(|run| run.scheme).filter(is_edm).collect()
        }
        ([], None) => {
            [Scheme::PL2_CLOCK, Scheme::PL2_COUNTER][..2 - usize::from(rack.has_mixed_rates())].to_vec()
        }
        (asked, _) => asked.iter().map(|run| run.scheme).collect(),
    }
}

/// The attacks that were asked for, or all on the protocol that the workload is for.
fn attacks(options: &Options, workload: &Workload) -> Result<Vec<String>, String> {
    let all: Vec<&str> = match workload.store {
        Some(_) => edm::Attack::ALL.map(edm::Attack::name).to_vec(),
        None => Attack::ALL.map(Attack::name).to_vec(),
    };
    if let Some(unknown) = options.attacks.iter().find(|asked| !all.contains(&asked.as_str())) {
        return Err(format!("`{unknown}` is no attack on its workload; there are {}", all.join(", ")));
    }
    match options.attacks.as_slice() {
        [] => Ok(all.into_iter().map(str::to_owned).collect()),
        asked => Ok(asked.to_vec()),
    }
}

fn one(
    options: &Options,
    (rack, path, network, scheme): (&Rack, &Path, &Network, Scheme),
    workload: &Workload,
    host: &str,
    attack: Option<&str>,
    progress: &Progress,
) -> Result<Figures, LabError> {
    let mut workload = Workload { kill: None, ..workload.clone() };
    let mut running = Running::start(rack, path, network, scheme, None, progress)?;
    let index = running.index(host)?;
    if attack.is_some() || workload.store.is_some() {
        // The others offer the same load as before. A store's clients are its senders here.
        let senders = workload.senders.len() as u32;
        workload.senders.retain(|sender| sender != host);
        workload.load_percent = workload.load_percent * (senders - 1) / senders;
    }
    let mut attacker = None;
    if let Some(attack) = attack {
        running.end_agent(index);
        let program: [OsString; 11] = [
            "workload".into(),
            "hostile".into(),
            path.into(),
            "--name".into(),
            host.into(),
            "--interface".into(),
            HOST_INTERFACE.into(),
            "--scheme".into(),
            scheme.name().into(),
            "--attack".into(),
            attack.into(),
        ];
        let process = Process::start(&format!("the attacker {attack}"), running.namespace(host)?, program)?;
        attacker.insert(process).wait_for_line("ready", START)?;
    }
    let window_ns = (options.window_s * 1e9) as u64;
    let plan = Plan { workload: &workload, window_ns, seed: workload.seed };
    if let Some(store) = &workload.store {
        let by = Run { way: scheme.way(), ..scheme.into() };
        let beside = match attack {
            None => Some(BesideClients { host, load: Some(honest_load(rack)?) }),
            Some(_) => None,
        };
        let result = store::run::run(&mut running, by, store, beside, plan, progress)?;
        if let Some(attacker) = &mut attacker {
            attacker.check_running()?;
            attacker.kill();
        }
        let frames_lost = result.store.as_ref().map_or(0, |figures| figures.lost + figures.wrong);
        running.stop()?;
        return Ok(Figures { result, frames_lost });
    }
    let result = measure::run(&mut running, plan, attacker.as_mut(), progress)?;
    let mut frames_lost = 0;
    for (_, report) in running.agent_reports()? {
        frames_lost += ends::counter(&report, "losses_seen")?;
    }
    running.stop()?;
    Ok(Figures { result, frames_lost })
}

/// Load of an honest host on a store's memory: it has as many reads and writes under way as it may have, as in virtual
/// time (`examples/hostile/edm.toml`). A host with one operation under way at a time would leave the others more than
/// their share.
fn honest_load(rack: &Rack) -> Result<Load, LabError> {
    let demands = p4rack_memory::edm(rack)?.demands as usize;
    Ok(Load { writes: demands, reads: demands, bytes: HONEST_BYTES })
}

/// Compares a hostile run with the honest one. A host or size without a figure in the hostile run kept
/// nothing.
pub(crate) fn compare(host: &str, hostile: &Figures, honest: &Figures) -> Fared {
    let others = honest.result.goodput_by_host_bps.iter().filter(|(other, _)| *other != host);
    let goodput = |(other, before): (&String, &u64)| {
        let left = hostile.result.goodput_by_host_bps.get(other).copied().unwrap_or(0);
        (*before as f64, left as f64)
    };
    let p99 = |before: &ValueReport| {
        let now = hostile.result.rpc_of(before.value_bytes).filter(|now| now.completed > 0);
        (before.p99_us, now.map_or(f64::INFINITY, |now| now.p99_us))
    };
    let of_store = |run: &Figures| run.result.store.as_ref().map(|figures| figures.p99_us);
    let of_stores = of_store(honest).map(|before| (before, of_store(hostile).unwrap_or(f64::INFINITY)));
    let p99s = honest.result.rpc.iter().map(p99).chain(of_stores);
    Fared::new(others.map(goodput), hostile.frames_lost, p99s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(goodput: u64, p99_us: f64, frames_lost: u64) -> Figures {
        let value = ValueReport {
            value_bytes: 64,
            completed: 9,
            unfinished: 0,
            p50_us: 1.0,
            p99_us,
            p999_us: p99_us,
            cdf: Vec::new(),
        };
        let result = SchemeResult {
            goodput_by_host_bps: [("h2".to_owned(), goodput), ("h3".to_owned(), 25)].into(),
            rpc: vec![value],
            ..SchemeResult::default()
        };
        Figures { result, frames_lost }
    }

    #[test]
    fn the_host_and_the_size_that_fare_worst_count() {
        let fared = |hostile: Figures| compare("h4", &hostile, &run(20, 100.0, 0));
        assert_eq!(fared(run(20, 200.0, 0)).broken(), [] as [String; 0]);
        let bad = fared(run(17, 201.0, 3)).broken();
        assert_eq!(bad, ["goodput 85 % of its fair share", "3 frames lost", "p99 2.0 times as long"]);
        // A host without a figure under attack kept nothing.
        let mut silent = run(20, 200.0, 0);
        silent.result.goodput_by_host_bps.remove("h2");
        silent.result.rpc.clear();
        assert_eq!(fared(silent).broken().len(), 2);
    }
}
