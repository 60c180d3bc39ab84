//! Reads what experiments with topologies name: topologies with programs and entries, and captures. Experiments of a sweep share it.

use super::files::place;
use p4rack_codegen::kind::Kind;
use p4rack_codegen::text;
use p4rack_codegen::topology::{Exercise, Topology};
use p4rack_ctrl::provision;
use p4rack_sim::{Capture, LoadTime, Network, Programs, SwitchProgram, TopologyExperiment, read_capture};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Files that have been read, and programs that have been compiled.
#[derive(Default)]
pub struct Shared {
    programs: Programs,
    /// By path, and whether the programs are an exercise's solution.
    networks: BTreeMap<(PathBuf, bool), Arc<Network>>,
    captures: BTreeMap<PathBuf, Capture>,
}

impl Shared {
    /// The experiment with the files that it names; paths are relative to the folder of `file`. All mistakes of programs and entries
    /// are reported together.
    pub fn complete(
        &mut self,
        experiment: TopologyExperiment,
        file: &Path,
    ) -> Result<TopologyExperiment, String> {
        let place = place(file);
        let topology = place(&experiment.spec.topology);
        if experiment.spec.solution && is_toml(&topology) {
            let message = "is for a topology.json of the P4 tutorials; change `program` of the topology's switches instead";
            return Err(experiment.mistake("solution", message).to_string());
        }
        let network = self.network(topology, experiment.spec.solution)?;
        let experiment = experiment.on(network).map_err(|error| error.to_string())?;
        experiment.read_captures(&mut |name| self.capture(place(name)))
    }

    fn network(&mut self, path: PathBuf, solution: bool) -> Result<Arc<Network>, String> {
        let key = (path, solution);
        if let Some(known) = self.networks.get(&key) {
            return Ok(known.clone());
        }
        let before = Instant::now();
        let exercise = Exercise { solution, ..Exercise::default() };
        let topology = Topology::load_exercise(&key.0, &exercise).map_err(|error| error.to_string())?;
        let switches = programs_of(&topology)?;
        let read_s = before.elapsed().as_secs_f64();
        let before = Instant::now();
        let mut network = Network::new(topology, switches, &mut self.programs)?;
        network.load_time = LoadTime { read_s, compile_s: before.elapsed().as_secs_f64() };
        let network = Arc::new(network);
        self.networks.insert(key, network.clone());
        Ok(network)
    }

    fn capture(&mut self, path: PathBuf) -> Result<Capture, String> {
        if let Some(known) = self.captures.get(&path) {
            return Ok(known.clone());
        }
        let capture = read_capture(&path)?;
        self.captures.insert(path, capture.clone());
        Ok(capture)
    }
}

/// Whether the file is a topology in TOML. One that can't be read is reported where it is read.
fn is_toml(path: &Path) -> bool {
    text::read(path).is_ok_and(|text| Kind::of_file(&text, path) == Some(Kind::Topology))
}

/// What each switch runs. The simulator refuses those without a program by name.
fn programs_of(topology: &Topology) -> Result<Vec<SwitchProgram>, String> {
    let (mut programs, mut mistakes) = (Vec::new(), Vec::new());
    for made in provision::desired_of_all(topology) {
        match made {
            Ok(None) => programs.push(SwitchProgram::default()),
            Ok(Some(desired)) => programs.push(SwitchProgram {
                text: String::from_utf8_lossy(&desired.config.p4_device_config).into_owned(),
                p4info: desired.config.p4info.clone().unwrap_or_default(),
                updates: provision::updates(&desired),
            }),
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    match mistakes.is_empty() {
        true => Ok(programs),
        false => Err(mistakes.join("\n")),
    }
}
