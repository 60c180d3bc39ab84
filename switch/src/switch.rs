//! The switch.

use crate::config::Config;
use crate::error::{CompileError, ControlError};
use crate::stats::Stats;
use p4rack_p4::ir::Program;
use p4rack_wire::Nanos;

/// A program ready to run.
#[derive(Debug)]
pub struct Pipeline {}

impl Pipeline {
    /// Translates a program; refuses what this switch can't do, naming it.
    pub fn compile(program: &Program) -> Result<Pipeline, CompileError> {
        let _ = program;
        Ok(Pipeline {})
    }
}

/// A switch.
#[derive(Debug)]
pub struct Switch {
    config: Config,
    pipeline: Option<Pipeline>,
}

impl Switch {
    /// A switch without a program: drops everything.
    pub fn new(config: Config) -> Switch {
        Switch { config, pipeline: None }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether a program is loaded.
    pub fn is_loaded(&self) -> bool {
        self.pipeline.is_some()
    }

    /// Replaces the program. Tables, registers, groups … start as the program says; frames in queues are dropped.
    pub fn load(&mut self, pipeline: Pipeline) {
        self.pipeline = Some(pipeline);
    }

    /// Changes the rate of a port.
    pub fn set_port_rate(&mut self, port: u16, rate_bps: u64) -> Result<(), ControlError> {
        let _ = rate_bps;
        Err(ControlError::NotFound(format!("port {port}")))
    }

    /// Takes a frame (without FCS) in. From the CPU port it is a packet-out.
    pub fn handle_frame(&mut self, port: u16, frame: &[u8], now: Nanos) {
        let _ = (port, frame, now);
    }

    /// The next frame to put on a wire now; call until `None`.
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let _ = (now, out);
        None
    }

    /// The next frame for the controller.
    pub fn poll_cpu(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// When [`Switch::poll_transmit`] is to be called again.
    pub fn next_timeout(&self) -> Option<Nanos> {
        None
    }

    /// Counters of the switch, as of `now`.
    pub fn stats(&self, now: Nanos) -> Stats {
        let _ = now;
        Stats::default()
    }

    /// Sets the counters to zero; depths start from what is queued.
    pub fn reset_stats(&mut self, now: Nanos) {
        let _ = now;
    }
}
