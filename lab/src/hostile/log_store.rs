//! The log store beside a second compute node: one that has a store of its own, then the same host running each attack.

use super::{Beside, Figures, Options, compare};
use crate::described::Described;
use crate::error::LabError;
use crate::log_store::rack::{self, Second};
use crate::measure::Plan;
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::up::{access, create_network, rack_during};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{Run, Workload};
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_fabric::hostile::cowbird::Attack;
use p4rack_fabric::remote::{Service, Way};
use p4rack_wire::roce::Mtu;
use std::path::Path;

/// Runs all attacks beside all ways to remote memory that were asked for, or that the workload names.
pub(crate) fn run(
    options: &Options,
    (described, workload): (&Described, &Workload),
    progress: &Progress,
    mut done: impl FnMut(&Beside),
) -> Result<Vec<Beside>, LabError> {
    let rack = &described.rack;
    let unfit = |what: String| LabError::Unfit(format!("{}: {what}", options.path.display()));
    let host = second(options, rack, workload).map_err(unfit)?;
    let asked = if options.schemes.is_empty() { &workload.schemes } else { &options.schemes };
    let runs: Vec<Run> = asked
        .iter()
        .map(|run| rack.meant(*run))
        .filter(|run| run.way.is_some_and(|way| way.definition().service == Service::Pool))
        .collect();
    if runs.is_empty() {
        return Err(unfit("no scheme that was asked for reaches a pool of remote memory".into()));
    }
    let attacks =
        options.attacks.iter().map(|name| name.parse()).collect::<Result<Vec<Attack>, _>>().map_err(unfit)?;
    let attacks = if attacks.is_empty() { Attack::ALL.to_vec() } else { attacks };
    let mut all = Vec::new();
    for run in runs {
        let way = run.way.unwrap_or(Way::LOCAL);
        let during = rack_during(rack, run)?;
        rack::check(&during, way)?;
        let one = |attack| {
            one(
                options,
                (&during, described.path(), workload),
                (run, way),
                Second { host: &host, attack },
                progress,
            )
        };
        let honest = one(None)?;
        let has_engine = way.definition().engine.is_some();
        for attack in attacks.iter().copied().filter(|attack| has_engine || !attack.needs_engine()) {
            // A client that fails beside an attacker kept nothing.
            let hostile = one(Some(attack)).or_else(|error| match error {
                LabError::Interrupted => Err(error),
                error => {
                    progress.line(&format!("✗ {}, {attack}: {error}", run.name()));
                    Ok(Figures { result: SchemeResult::default(), frames_lost: 0 })
                }
            })?;
            let beside = Beside {
                scheme: run.name(),
                attack: attack.name().to_owned(),
                fared: compare(&host, &hostile, &honest),
                excess_frames: hostile.result.drops.get("switch.over_rate").copied().unwrap_or(0),
            };
            done(&beside);
            all.push(beside);
        }
    }
    Ok(all)
}

/// The host that becomes hostile: neither the pool nor the client nor the engine.
fn second(options: &Options, rack: &Rack, workload: &Workload) -> Result<String, String> {
    let (server, clients) = workload.ends();
    let engine = rack.log().and_then(|log| log.engine.as_deref());
    let is_free =
        |name: &str| name != server && !clients.iter().any(|client| client == name) && Some(name) != engine;
    match &options.host {
        Some(host) if rack.host(host).is_some() && is_free(host) => Ok(host.clone()),
        Some(host) => {
            Err(format!("`{host}` is no host beside the pool, the client and the engine: name one that is"))
        }
        None => {
            let free = rack.hosts.iter().rev().find(|host| is_free(&host.name));
            free.map(|host| host.name.clone()).ok_or_else(|| {
                "has no host beside the pool, the client and the engine: add one, and name it in cowbird.compute".into()
            })
        }
    }
}

fn one(
    options: &Options,
    (rack, path, workload): (&Rack, &Path, &Workload),
    (run, way): (Run, Way),
    second: Second<'_>,
    progress: &Progress,
) -> Result<Figures, LabError> {
    let mtu = rack.protocol::<Cowbird>().map_or(Mtu::B1024, |cowbird| cowbird.mtu);
    let network = create_network(rack, access(rack, run, mtu), progress)?;
    let mut running = Running::without_agents(rack, path, &network, run, None, progress)?;
    let plan = Plan { workload, window_ns: (options.window_s * 1e9) as u64, seed: workload.seed };
    let result = rack::run(&mut running, way, plan, Some(second), progress)?;
    running.stop()?;
    let frames_lost = result.store.as_ref().map_or(0, |figures| figures.lost + figures.wrong);
    Ok(Figures { result, frames_lost })
}
