//! `p4rack up TOPOLOGY`, `p4rack lab`, and `up --keep` of a topology.

use super::hosts::{self, Done};
use super::prompt;
use super::running::{Plan, Running};
use super::wiring::Wiring;
use super::workload::{self, Traffic};
use crate::error::LabError;
use crate::keep::{self, KeepOptions, Registered};
use crate::progress::Progress;
use crate::state::{KeptRack, Runtime};
use crate::sys;
use p4rack_codegen::text;
use p4rack_codegen::topology::{Exercise, Topology};
use p4rack_netdev::netns::{self, Privilege};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the topology.
    pub path: PathBuf,
    /// Programs of the switches of a `topology.json`.
    pub exercise: Exercise,
    /// Whether a host's command that fails is only shown, as in Mininet: exercises rely on that.
    pub commands_may_fail: bool,
    /// Folder for captures.
    pub captures: Option<PathBuf>,
    /// Whether to hide progress.
    pub quiet: bool,
}

/// Use of a running topology.
#[derive(Clone, Debug)]
pub enum Use {
    /// Run the hosts' commands, which must all succeed, then the workload.
    Commands,
    /// After the hosts' commands, run the prompt's lines from a file.
    Script(PathBuf),
    /// After the hosts' commands, a prompt.
    Prompt,
}

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What ran. Its processes have ended, so only names and addresses are printed.
    #[serde(serialize_with = "names_and_addresses")]
    pub network: KeptRack,
    /// The hosts' commands.
    pub commands: Vec<Done>,
    /// Results of the workload, if there is one and the commands succeeded.
    pub traffic: Option<Traffic>,
    /// Failures, in sentences.
    pub failures: Vec<String>,
}

fn names_and_addresses<S: Serializer>(network: &KeptRack, to: S) -> Result<S::Ok, S::Error> {
    let switches = network.switches.iter().map(
        |switch| json!({ "name": switch.name, "grpc_addr": switch.grpc_addr, "device_id": switch.device_id }),
    );
    let hosts = network.hosts.iter().map(|host| json!({ "name": host.name, "ip": host.ip }));
    let (switches, hosts): (Vec<Value>, Vec<Value>) = (switches.collect(), hosts.collect());
    json!({ "name": network.name, "switches": switches, "hosts": hosts }).serialize(to)
}

/// The lines of `--test`. Errors: there are none.
fn script(path: &Path) -> Result<String, LabError> {
    let wanted = "lines as the prompt takes them, such as h1 ping -c 1 h2";
    let text =
        text::read(path).map_err(|error| text::fault(&error, wanted)).and_then(
            |text| match prompt::has_lines(&text) {
                true => Ok(text),
                false => Err(format!("has no lines to run; write {wanted}")),
            },
        );
    text.map_err(|error| LabError::Unfit(format!("--test {}: {error}", path.display())))
}

impl Options {
    /// Builds the topology, uses it, and takes it down. Call this on the main thread before other threads are started.
    pub fn run(&self, how: &Use) -> Result<Outcome, LabError> {
        sys::catch_interrupts();
        let script = match how {
            Use::Script(path) => Some((path, script(path)?)),
            _ => None,
        };
        let progress = Progress::new(self.quiet);
        let (topology, plan) = self.read(&progress)?;
        let wiring = create(&topology, &progress)?;
        let mut running = Running::start(&topology, &wiring, plan, self.captures.as_deref(), &progress)?;
        let network = running.kept()?;
        let commands = hosts::run_commands(&topology, &wiring, &mut || running.check())?;
        let mut failures = Vec::new();
        for done in commands.iter().filter(|done| !done.is_success()) {
            match self.commands_may_fail {
                true => progress.line(&format!("– {}", done.failure())),
                false => failures.push(done.failure()),
            }
        }
        let mut traffic = None;
        let used = match (how, script) {
            (Use::Commands, _) if failures.is_empty() => match &topology.workload {
                Some(workload) => progress
                    .step(
                        &format!("running the workload for {} s", workload.duration_s),
                        || workload::run(&mut running, workload),
                        |traffic| format!("the workload ran for {} s", traffic.duration_s),
                    )
                    .map(|measured| {
                        traffic = Some(measured);
                        None
                    }),
                None => running.check().map(|()| None),
            },
            (Use::Prompt, _) => prompt::interact(&mut running).map(|()| None),
            (_, Some((path, text))) if failures.is_empty() => prompt::script(&mut running, path, &text),
            _ => running.check().map(|()| None),
        };
        let stopped = running.stop();
        failures.extend(used?);
        stopped?;
        Ok(Outcome { network, commands, traffic, failures })
    }

    /// Reads topology, programs and entries; everything that can be wrong with them is reported here.
    fn read(&self, progress: &Progress) -> Result<(Topology, Plan), LabError> {
        progress.step(
            "reading the topology",
            || {
                let topology = Topology::load_exercise(&self.path, &self.exercise)?;
                let plan = Plan::of(&topology)?;
                Ok((topology, plan))
            },
            |(topology, _)| {
                let (switches, hosts) = (topology.switches.len(), topology.hosts.len());
                format!(
                    "{}: {switches} switches, {hosts} hosts, {} links",
                    topology.name,
                    topology.links.len()
                )
            },
        )
    }
}

fn create(topology: &Topology, progress: &Progress) -> Result<Wiring, LabError> {
    let made = progress.step(
        "creating namespaces and links",
        || {
            let privilege = netns::acquire()?;
            Ok((Wiring::create(topology)?, privilege))
        },
        |(wiring, privilege)| {
            let how = match privilege {
                Privilege::Granted => "",
                Privilege::UserNamespace => ", in a user namespace",
            };
            format!("{} namespaces and their links{how}", wiring.namespaces().count())
        },
    )?;
    Ok(made.0)
}

/// Starts a supervisor and waits until its topology runs.
pub fn keep(options: &KeepOptions) -> Result<KeptRack, LabError> {
    let topology = Topology::load(&options.path)?;
    keep::start(&topology.name, options, &[])
}

/// The supervisor of a topology: builds it, announces it, and runs until it is told to end. Call this on the main thread
/// before other threads are started.
pub fn supervise(options: &KeepOptions, runtime: &Runtime) -> Result<(), LabError> {
    sys::catch_interrupts();
    sys::detach().map_err(LabError::system("leaving the terminal"))?;
    let progress = Progress::new(options.quiet);
    let KeepOptions { path, captures, quiet, .. } = options.clone();
    let exercise = Exercise::default();
    let own = Options { path, exercise, commands_may_fail: false, captures, quiet };
    let (topology, plan) = own.read(&progress)?;
    let _name = runtime.lock(&topology.name)?.ok_or_else(|| keep::taken(&topology.name))?;
    let wiring = create(&topology, &progress)?;
    let mut running = Running::start(&topology, &wiring, plan, own.captures.as_deref(), &progress)?;
    // Before the hosts' commands, so that `down` finds it while they run.
    let registered = Registered::new(runtime, &running.kept()?)?;
    let commands = hosts::run_commands(&topology, &wiring, &mut || running.check())?;
    if let Some(done) = commands.iter().find(|done| !done.is_success()) {
        return Err(LabError::Unfit(done.failure()));
    }
    let stayed = keep::stay(|| running.check());
    drop(registered);
    let stopped = running.stop();
    keep::conclude(runtime, &topology.name, stayed.and(stopped))
}
