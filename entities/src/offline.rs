//! P4Runtime writes without a server: to a switch in the same process.

use super::pipeline::Program;
use super::{Candidate, work};
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_switch::{Pipeline, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// A program with the look-ups that writes need.
#[derive(Debug)]
pub struct Offline {
    program: Arc<Program>,
}

impl Offline {
    /// Loads a program into a switch; `pipeline` is its translation, if another than the usual one is to run.
    pub fn load(candidate: Candidate, pipeline: Option<Pipeline>, switch: &mut Switch) -> Offline {
        switch.load(pipeline.unwrap_or(candidate.pipeline));
        Offline { program: Arc::new(candidate.program) }
    }

    /// Makes the updates of a request in order, up to the first that is refused; the error names it.
    pub fn write(&self, request: &WriteRequest, switch: &mut Switch, now: Nanos) -> Result<(), String> {
        for (index, update) in request.updates.iter().enumerate() {
            work::change(&self.program, update)
                .and_then(|change| change(switch, now))
                .map_err(|error| format!("update {}: {}", index + 1, error.message))?;
        }
        Ok(())
    }
}
