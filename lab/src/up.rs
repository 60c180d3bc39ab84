//! `p4rack up`: builds a rack from its description, runs its workload under each scheme, and reports.

use crate::cached;
use crate::described::Described;
use crate::error::LabError;
use crate::log_store;
use crate::measure::{self, Plan, WARM_UP_NS};
use crate::network::{Access, Network};
use crate::progress::Progress;
use crate::promises;
use crate::results::{Bulk, Machine, Results, Setting, Skipped, VERSION};
use crate::running::Running;
use crate::store;
use crate::store::servers;
use crate::sys;
use crate::tors;
use crate::ways;
use p4rack_codegen::rack::{Run, StoreParameters, Target, Workload};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_fabric::remote::Link;
use p4rack_netdev::netns::{self, Privilege};
use p4rack_report::text;
use p4rack_wire::ethernet::overhead;
use p4rack_wire::roce::Mtu;
use std::path::PathBuf;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the description.
    pub path: PathBuf,
    /// Keys of the description that are set, whatever it says.
    pub settings: Vec<p4rack_codegen::setting::Setting>,
    /// Schemes to run; empty means those that the description lists.
    pub schemes: Vec<Run>,
    /// Architecture of the switch's program; `None` is the description's.
    pub arch: Option<Arch>,
    /// Duration of the measured window; `None` is the description's.
    pub duration_s: Option<f64>,
    /// Seed; `None` is the description's.
    pub seed: Option<u64>,
    /// Folder for captures of the rack's links, with a subfolder per scheme.
    pub captures: Option<PathBuf>,
    /// Whether to hide progress.
    pub quiet: bool,
}

/// Runs everything. Call this on the main thread before other threads are started.
pub fn run(options: &Options) -> Result<Results, LabError> {
    sys::catch_interrupts();
    let progress = Progress::new(options.quiet);
    let (described, rack, runs) = progress.step(
        "reading the description",
        || {
            let described = Described::load(&options.path, &options.settings)?;
            let rack = described.rack.on(options.arch.unwrap_or(described.rack.switch.arch));
            let runs = runs(&rack, &options.schemes)?;
            Ok((described, rack, runs))
        },
        |(_, rack, _)| {
            format!(
                "{}: {} hosts, {}",
                rack.name,
                rack.hosts.len(),
                text::rate(rack.switch.port_rate_bps as f64)
            )
        },
    )?;
    let workload = rack.workload.as_ref().ok_or_else(|| {
        LabError::Unfit(format!(
            "{} has no [workload]: add one, or leave the rack running with `p4rack up --keep {}`",
            options.path.display(),
            options.path.display()
        ))
    })?;
    let duration_s = options.duration_s.unwrap_or(workload.duration_s);
    let plan =
        Plan { workload, window_ns: (duration_s * 1e9) as u64, seed: options.seed.unwrap_or(workload.seed) };
    let (runs, skipped) = possible(runs, &progress)?;
    let machine = Machine::here();
    let mtu = ways::mtu(&rack);
    let (mut results, mut tcp) = (Vec::new(), String::new());
    let (path, captures) = (described.path(), options.captures.as_deref());
    for &run in &runs {
        let rack = rack_during(&rack, run)?;
        // Each has links of its own, so none meets what another one has left there.
        let network = create_network(&rack, access(&rack, run, mtu), &progress)?;
        let mut running = match network.access {
            Access::Agent => Running::start(&rack, path, &network, run.scheme, captures, &progress)?,
            _ => Running::without_agents(&rack, path, &network, run, captures, &progress)?,
        };
        running.watched = tors::watched(workload);
        let result = match (&workload.store, run.way) {
            (Some(StoreParameters { cache: Some(_), .. }), Some(way)) => {
                cached::rack::run(&mut running, way, plan, &progress)?
            }
            (Some(StoreParameters { log: Some(_), .. }), Some(way)) => {
                log_store::rack::run(&mut running, way, plan, None, &progress)?
            }
            (Some(store), _) => {
                let beside = store::run::described_bulk(store);
                store::run::run(&mut running, run, store, beside, plan, &progress)?
            }
            (None, _) => measure::run(&mut running, plan, None, &progress)?,
        };
        // A store's frames at two switches have copies, of which one may be dropped.
        let what = match result.store.is_some() && rack.switch.tors > 1 {
            true => "copies dropped by a switch",
            false => "frames lost in the fabric",
        };
        let lost = format!("{} {what}", text::count(result.fabric_drops));
        progress.line(&match &result.store {
            Some(store) => {
                format!("✓ {run}: {} operations a second, {lost}", text::count(store.ops_per_s as u64))
            }
            None => format!("✓ {run}: goodput {}, {lost}", text::rate(result.goodput_bps as f64)),
        });
        running.stop()?;
        results.push(result);
        tcp = network.tcp;
    }

    let mut results = Results {
        version: VERSION,
        rack: rack.name.clone(),
        seed: plan.seed,
        duration_s,
        tcp,
        schemes: results,
        skipped,
        simulated: Vec::new(),
        failures: Vec::new(),
        promises: Vec::new(),
        setting: setting(&rack, workload, &runs)?,
        machine: machine.after(),
        command: command(options, duration_s, plan.seed),
    };
    results.promises = promises::judge(&results);
    results.failures = results.promises.iter().filter(|p| !p.holds).map(|p| p.sentence()).collect();
    Ok(results)
}

/// How hosts use their links in a run, with the rack as it is then. An agent runs a protocol; without a protocol it
/// would only add delay.
pub(crate) fn access(rack: &Rack, run: Run, mtu: Mtu) -> Access {
    // The kernel drops no copies from two switches.
    let has_agents = rack.switch.tors > 1 || rack.protocols.iter().any(|protocol| protocol.needs_agents());
    match run.way.map(|way| way.definition().link) {
        Some(Link::Adapter) => Access::Adapter(mtu),
        Some(Link::Agent) => Access::Agent,
        Some(Link::Kernel) | None if has_agents => Access::Agent,
        Some(Link::Kernel) | None => Access::Kernel,
    }
}

/// Creates namespaces and links, with the privileges they need.
pub(crate) fn create_network(rack: &Rack, access: Access, progress: &Progress) -> Result<Network, LabError> {
    progress
        .step(
            "creating namespaces and links",
            || {
                let privilege = netns::acquire()?;
                Ok((Network::create(rack, access)?, privilege))
            },
            |(network, privilege)| {
                let how = match privilege {
                    Privilege::Granted => "",
                    Privilege::UserNamespace => ", in a user namespace",
                };
                format!("{} namespaces and their links{how}; TCP {}", network.hosts.len() + 1, network.tcp)
            },
        )
        .map(|(network, _)| network)
}

/// The runs that can take place, and the others, whose programs are missing.
fn possible(runs: Vec<Run>, progress: &Progress) -> Result<(Vec<Run>, Vec<Skipped>), LabError> {
    let mut skipped = Vec::new();
    let lacks = |run: &Run| run.server.and_then(servers::missing);
    let possible: Vec<Run> =
        runs.into_iter().filter(|run| lacks(run).map(|what| skipped.push(what)).is_none()).collect();
    match skipped.first() {
        Some(first) if possible.is_empty() => return Err(LabError::Unfit(first.sentence())),
        _ => skipped.iter().for_each(|one| progress.line(&format!("– {}", one.sentence()))),
    }
    Ok((possible, skipped))
}

/// Schemes to run: those requested, or those that the description lists. Each must suit the rack and its workload.
fn runs(rack: &Rack, asked: &[Run]) -> Result<Vec<Run>, LabError> {
    let listed = || rack.workload.as_ref().map_or_else(|| vec![rack.scheme().into()], |w| w.schemes.clone());
    let all = if asked.is_empty() { listed() } else { asked.to_vec() };
    let all: Vec<Run> = all.into_iter().map(|run| rack.meant(run)).collect();
    for &run in &all {
        let during = rack_during(rack, run)?;
        let workload = rack.workload.as_ref();
        let store = workload.and_then(|workload| Some((workload, workload.store.as_ref()?)));
        match (store, run.way) {
            (Some((_, StoreParameters { cache: Some(_), .. })), Some(way)) => {
                cached::rack::check(&during, way)?
            }
            (Some((_, StoreParameters { log: Some(_), .. })), Some(way)) => {
                log_store::rack::check(&during, way)?
            }
            (Some((workload, store)), Some(way)) => {
                store::run::check(&during, way, store, workload.ends().0)?;
            }
            (Some((_, store)), None) => {
                run.server.map_or(Ok(()), |server| servers::check(rack, server, store))?;
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Returns the rack as it is during a run, or an error if it does not support it.
pub(crate) fn rack_during(rack: &Rack, run: Run) -> Result<Rack, LabError> {
    need_embedded(rack)?;
    rack.during(run).map_err(|problem| LabError::Unfit(format!("rack {}: {run} {problem}", rack.name)))
}

/// Returns the rack under a scheme, or an error if it does not support the scheme.
pub(crate) fn rack_under(rack: &Rack, scheme: Scheme) -> Result<Rack, LabError> {
    need_embedded(rack)?;
    rack.under(scheme).map_err(|error| LabError::Unfit(error.to_string()))
}

fn need_embedded(rack: &Rack) -> Result<(), LabError> {
    if rack.switch.target == Target::Embedded {
        return Ok(());
    }
    let target = rack.switch.target.name();
    Err(LabError::Unfit(format!(
        "{}'s target is {target}, and racks are built with the embedded switch: try `p4rack mininet --switch {target}`",
        rack.name
    )))
}

fn setting(rack: &Rack, workload: &Workload, runs: &[Run]) -> Result<Setting, LabError> {
    let mut longest = 0;
    for run in runs {
        longest = rack_during(rack, *run)?.wire_bytes().max(longest);
    }
    let (one, many) = workload.ends();
    let shared = rack.host(one);
    Ok(Setting {
        kind: workload.kind,
        port_rate_bps: shared.map_or(rack.switch.port_rate_bps, |host| host.rate_bps),
        // Preamble and gap take time on the wire but no space in a queue.
        mtu_frame_bytes: longest.saturating_sub(overhead::PREAMBLE_GAP),
        buffer_bytes: rack.switch.buffer_bytes,
        arch: rack.switch.arch,
        k: rack.protocols.iter().filter_map(|protocol| protocol.burst_frames()).max().unwrap_or(0),
        one: one.to_owned(),
        many: many.to_vec(),
        bulk: workload
            .store
            .as_ref()
            .and_then(|store| Some((store.bulk.clone()?, many.len() * store.depth as usize)))
            .map(|(host, clients)| Bulk {
                host,
                frames_under_way: (clients + store::bulk::UNDER_WAY) as u64,
            }),
        client: workload.rpc.as_ref().map(|rpc| rpc.client.clone()),
        load_percent: workload.load_percent,
        // A store has its records loaded before the window.
        warm_up_s: if workload.store.is_some() { 0.0 } else { WARM_UP_NS as f64 / 1e9 },
        icrc_ignored: runs
            .iter()
            .any(|run| run.way.is_some_and(|way| way.definition().link == Link::Adapter)),
        depth: workload.store.as_ref().map(|store| store.depth),
        log: rack.log().cloned(),
        cache: rack.cache().cloned(),
        tors: rack.switch.tors,
    })
}

/// The command that repeats the run.
fn command(options: &Options, duration_s: f64, seed: u64) -> String {
    let mut words = vec!["p4rack up".to_owned(), options.path.display().to_string()];
    words.extend(options.settings.iter().map(|setting| setting.word()));
    words.extend(options.schemes.iter().map(|scheme| format!("--scheme {scheme}")));
    words.extend(options.arch.map(|arch| format!("--arch {arch}")));
    words.push(format!("--duration {duration_s} --seed {seed}"));
    words.join(" ")
}
