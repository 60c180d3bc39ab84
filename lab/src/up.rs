//! `p4rack up`: builds a rack from its description, runs its workload under each scheme, and reports.

use crate::error::LabError;
use crate::measure::{self, Plan, WARM_UP_NS};
use crate::network::Network;
use crate::progress::Progress;
use crate::promises;
use crate::results::{Machine, Results, Setting, VERSION};
use crate::running::Running;
use crate::store;
use crate::sys;
use crate::text;
use p4rack_codegen::rack::{Target, Workload};
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_netdev::netns::{self, Privilege};
use p4rack_wire::ethernet::overhead;
use std::path::PathBuf;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the description.
    pub path: PathBuf,
    /// Schemes; empty means the description's.
    pub schemes: Vec<Scheme>,
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
    let (rack, schemes) = progress.step(
        "reading the description",
        || {
            let rack = Rack::load(&options.path)?;
            let rack = rack.on(options.arch.unwrap_or(rack.switch.arch));
            let schemes = schemes(&rack, &options.schemes)?;
            Ok((rack, schemes))
        },
        |(rack, _)| {
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
    let network = create_network(&rack, &progress)?;

    let mut results = Vec::new();
    for &scheme in &schemes {
        let rack = rack_under(&rack, scheme)?;
        let mut running =
            Running::start(&rack, &options.path, &network, scheme, options.captures.as_deref(), &progress)?;
        let result = match &workload.store {
            Some(store) => store::run::run(&mut running, store, plan, &progress)?,
            None => measure::run(&mut running, plan, None, &progress)?,
        };
        let lost = format!("{} frames lost in the fabric", text::count(result.fabric_drops));
        progress.line(&match &result.store {
            Some(store) => {
                format!("✓ {scheme}: {} operations a second, {lost}", text::count(store.ops_per_s as u64))
            }
            None => format!("✓ {scheme}: goodput {}, {lost}", text::rate(result.goodput_bps as f64)),
        });
        running.stop();
        results.push(result);
    }

    let mut results = Results {
        version: VERSION,
        rack: rack.name.clone(),
        seed: plan.seed,
        duration_s,
        tcp: network.tcp.clone(),
        schemes: results,
        simulated: Vec::new(),
        failures: Vec::new(),
        promises: Vec::new(),
        setting: setting(&rack, workload, &schemes)?,
        machine: Machine::here(),
        command: command(options, duration_s, plan.seed),
    };
    results.promises = promises::judge(&results);
    results.failures = results.promises.iter().filter(|p| !p.holds).map(|p| p.sentence()).collect();
    Ok(results)
}

/// Creates namespaces and links, with the privileges they need.
pub(crate) fn create_network(rack: &Rack, progress: &Progress) -> Result<Network, LabError> {
    progress
        .step(
            "creating namespaces and links",
            || {
                let privilege = netns::acquire()?;
                Ok((Network::create(rack)?, privilege))
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

/// The schemes to run: those asked for, or the description's. Each must suit the rack and its workload.
fn schemes(rack: &Rack, asked: &[Scheme]) -> Result<Vec<Scheme>, LabError> {
    let listed = || rack.workload.as_ref().map_or_else(|| vec![rack.scheme()], |w| w.schemes.clone());
    let schemes = if asked.is_empty() { listed() } else { asked.to_vec() };
    for &scheme in &schemes {
        let runs = rack_under(rack, scheme)?;
        if let Some(workload) = rack.workload.as_ref().filter(|_| p4rack_memory::runs(&runs))
            && let Some(store) = &workload.store
        {
            store::run::check(&runs, store, workload.ends().0)?;
        }
    }
    Ok(schemes)
}

/// Returns the rack under a scheme, or an error if it does not support the scheme.
pub(crate) fn rack_under(rack: &Rack, scheme: Scheme) -> Result<Rack, LabError> {
    if rack.switch.target != Target::Embedded {
        let target = rack.switch.target.name();
        return Err(LabError::Unfit(format!(
            "{}'s target is {target}, and racks are built with the embedded switch: try `p4rack mininet --switch {target}`",
            rack.name
        )));
    }
    rack.under(scheme).map_err(|error| LabError::Unfit(error.to_string()))
}

fn setting(rack: &Rack, workload: &Workload, schemes: &[Scheme]) -> Result<Setting, LabError> {
    let mut longest = 0;
    for scheme in schemes {
        longest = rack_under(rack, *scheme)?.wire_bytes().max(longest);
    }
    let (one, many) = workload.ends();
    let shared = rack.host(one);
    Ok(Setting {
        kind: workload.kind,
        port_rate_bps: shared.map_or(rack.switch.port_rate_bps, |host| host.rate_bps),
        // Preamble and gap take time on the wire but no space in a queue.
        mtu_frame_bytes: longest.saturating_sub(overhead::PREAMBLE_GAP),
        buffer_bytes: rack.switch.buffer_bytes,
        k: rack.protocol::<Pl2>().map_or(0, |pl2| u32::from(pl2.k)),
        one: one.to_owned(),
        many: many.to_vec(),
        client: workload.rpc.as_ref().map(|rpc| rpc.client.clone()),
        load_percent: workload.load_percent,
        // A store has its records loaded before the window.
        warm_up_s: if workload.store.is_some() { 0.0 } else { WARM_UP_NS as f64 / 1e9 },
    })
}

/// The command that repeats the run.
fn command(options: &Options, duration_s: f64, seed: u64) -> String {
    let mut words = vec!["p4rack up".to_owned(), options.path.display().to_string()];
    words.extend(options.schemes.iter().map(|scheme| format!("--scheme {scheme}")));
    words.push(format!("--duration {duration_s} --seed {seed}"));
    words.join(" ")
}
