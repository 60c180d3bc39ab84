//! The network of an experiment: a topology, and the compiled programs of its switches.

use p4rack_codegen::topology::Topology;
use p4rack_entities::{Candidate, compiled, refusal};
use p4rack_p4::{Compiled, Options};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::Update;
use p4rack_switch::Pipeline;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Program and entries of a switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchProgram {
    /// P4 text, or BMv2's JSON; empty if a controller would bring the program.
    pub text: String,
    /// The interface that its entries use. BMv2's JSON lacks parts of it.
    pub p4info: P4Info,
    /// Its entries, in the order in which they are written.
    pub updates: Vec<Update>,
}

/// A compiled program.
#[derive(Debug)]
struct Ready {
    compiled: Compiled,
    pipeline: Pipeline,
}

/// Programs that have been compiled. Switches share those with the same text, and so do networks that are made with the same
/// programs, as those of a sweep.
#[derive(Debug, Default)]
pub struct Programs(BTreeMap<String, Vec<(P4Info, Arc<Ready>)>>);

impl Programs {
    /// Compiles a program, unless it is known; `name` is its switch, for errors.
    fn ready(&mut self, program: &SwitchProgram, name: &str) -> Result<Arc<Ready>, String> {
        let known = self.0.entry(program.text.clone()).or_default();
        if let Some((_, ready)) = known.iter().find(|(p4info, _)| *p4info == program.p4info) {
            return Ok(ready.clone());
        }
        let compiled = compiled(&program.text, name, &Options::default(), Some(&program.p4info))?;
        let pipeline = Pipeline::compile(&compiled.program).map_err(|error| refusal(&error, &compiled))?;
        let ready = Arc::new(Ready { compiled, pipeline });
        known.push((program.p4info.clone(), ready.clone()));
        Ok(ready)
    }

    /// Number of programs that have been compiled.
    pub fn compiled(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// Seconds that a network took before it could run, if they were measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadTime {
    /// To read the topology, its programs and its entries.
    pub read_s: f64,
    /// To compile the programs for its switches.
    pub compile_s: f64,
}

/// A topology with the programs of its switches.
#[derive(Debug)]
pub struct Network {
    /// The topology.
    pub topology: Topology,
    /// Time that it took to make.
    pub load_time: LoadTime,
    switches: Vec<Loaded>,
}

/// A switch's program, and its entries.
#[derive(Debug)]
struct Loaded {
    text: String,
    ready: Option<Arc<Ready>>,
    updates: Vec<Update>,
}

impl Network {
    /// A network whose switches run these programs, in the topology's order. Errors name the switch, and the place in its program
    /// that can't be compiled.
    pub fn new(
        topology: Topology,
        switches: Vec<SwitchProgram>,
        programs: &mut Programs,
    ) -> Result<Network, String> {
        let mut loaded = Vec::with_capacity(switches.len());
        for (switch, program) in topology.switches.iter().zip(switches) {
            let name = &switch.name;
            let ready = match program.text.is_empty() {
                true => None,
                false => Some(programs.ready(&program, name).map_err(|error| format!("{name}: {error}"))?),
            };
            loaded.push(Loaded { text: program.text, ready, updates: program.updates });
        }
        Ok(Network { topology, load_time: LoadTime::default(), switches: loaded })
    }

    /// The program of the switch at a position, ready to be loaded, and its entries. `None` if it has none.
    pub(super) fn candidate(&self, switch: usize) -> Option<(Candidate, &[Update])> {
        let Loaded { text, ready, updates } = self.switches.get(switch)?;
        let Ready { compiled, pipeline } = &**ready.as_ref()?;
        Some((Candidate::translated(text, compiled.clone(), pipeline.clone()), updates))
    }
}
