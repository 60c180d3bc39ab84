//! Reads a topology for the simulator: its file, programs and entries.

use p4rack_codegen::topology::{Exercise, Topology};
use p4rack_ctrl::provision;
use p4rack_sim::{Network, SwitchProgram, TopologyExperiment};
use std::path::Path;

/// The experiment with the network that it names; `place` is the topology's path. All mistakes of programs and entries are
/// reported together.
pub fn complete(experiment: TopologyExperiment, place: &Path) -> Result<TopologyExperiment, String> {
    let exercise = Exercise { solution: experiment.spec.solution, ..Exercise::default() };
    let topology = Topology::load_exercise(place, &exercise).map_err(|error| error.to_string())?;
    let (mut programs, mut mistakes) = (Vec::new(), Vec::new());
    for made in provision::desired_of_all(&topology) {
        let desired = match made {
            Ok(desired) => desired,
            Err(error) => {
                mistakes.push(error.to_string());
                continue;
            }
        };
        // The simulator refuses a switch without a program by name.
        let (text, updates) = desired.map_or_else(Default::default, |desired| {
            (desired.config.p4_device_config.clone(), provision::updates(&desired))
        });
        programs.push(SwitchProgram { text: String::from_utf8_lossy(&text).into_owned(), updates });
    }
    match mistakes.is_empty() {
        true => experiment.on(Network { topology, programs }).map_err(|error| error.to_string()),
        false => Err(mistakes.join("\n")),
    }
}
