//! The switch as it is installed: the generated program on the embedded switch's core.

#[cfg(test)]
#[path = "p4_tests.rs"]
mod tests;

use super::{Counted, Model};
use p4rack_codegen::rack::{self, Rack};
use p4rack_codegen::scheme::{Denied, ReasonCounter, l2};
use p4rack_codegen::{Arch, DropReason, GenerateError, Program as Generated, Scheme, program};
use p4rack_entities::{Candidate, Outcomes, Program, accepted, write};
use p4rack_p4::ir::InstanceId;
use p4rack_p4rt::p4::v1::{Update, WriteRequest};
use p4rack_p4rt::schema::Schema;
use p4rack_switch::{Config, PortConfig, Queueing, Stats, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Why there is no switch.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The rack can't be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The generated program or its entries were refused: a fault of p4rack's.
    #[error("generated program: {0}")]
    Program(String),
}

/// The header of packet-ins and packet-outs, before a frame of the CPU port.
const CPU_HEADER_BYTES: usize = 2;

/// The switch and its program.
pub(crate) struct P4 {
    switch: Switch,
    scheme: Scheme,
    drop_reasons: Vec<DropReason>,
    /// Counters of the program beside drops.
    counters: Vec<ReasonCounter>,
    program: Arc<Program>,
    managed: u64,
}

impl std::fmt::Debug for P4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("P4").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl P4 {
    /// Generates `rack`'s program for `scheme`, loads it and writes its entries. `change` may alter the switch's
    /// configuration.
    pub fn new(rack: &Rack, scheme: Scheme, change: impl FnOnce(&mut Config)) -> Result<P4, SwitchError> {
        P4::edited(rack, scheme, None, change)
    }

    /// The same with the program of an architecture.
    pub fn on(
        rack: &Rack,
        scheme: Scheme,
        arch: Arch,
        change: impl FnOnce(&mut Config),
    ) -> Result<P4, SwitchError> {
        P4::made(&rack.on(arch), scheme, arch, None, change)
    }

    /// The same as [`P4::new`], with some of the program's lines replaced: each of these has to occur once.
    pub fn edited(
        rack: &Rack,
        scheme: Scheme,
        edits: impl IntoIterator<Item = (&'static str, String)>,
        change: impl FnOnce(&mut Config),
    ) -> Result<P4, SwitchError> {
        P4::made(rack, scheme, Arch::V1model, edits, change)
    }

    fn made(
        rack: &Rack,
        scheme: Scheme,
        arch: Arch,
        edits: impl IntoIterator<Item = (&'static str, String)>,
        change: impl FnOnce(&mut Config),
    ) -> Result<P4, SwitchError> {
        let runs = rack.under(scheme).map_err(GenerateError::from)?;
        let Generated { mut p4, mut compiled, entries } = program(rack, scheme, arch)?;
        for (line, by) in edits {
            if p4.matches(line).count() != 1 {
                return Err(SwitchError::Program(format!("the line `{line}` is not there once")));
            }
            p4 = p4.replace(line, &by);
            compiled = p4rack_p4::compile(&p4, "edited.p4", &p4rack_p4::Options::default())
                .map_err(|diagnostics| SwitchError::Program(diagnostics.render(false)))?;
        }
        let mut config = Config {
            ports: rack.ports().map(|host| PortConfig::new(host.port, host.port_rate_bps)).collect(),
            buffer_bytes: rack.switch.buffer_bytes,
            reserved_bytes: runs.reserved_bytes(),
            queueing: match rack.switch.queueing {
                rack::Queueing::Fifo => Queueing::Fifo,
                rack::Queueing::Fair => Queueing::Fair,
            },
            cpu_port: Some(rack.switch.cpu_port),
            drop_port: rack.switch.drop_port,
            time_unit_ns: rack.switch.time_unit_ns,
            catch_up: Nanos::ZERO,
            // The links limit the rate.
            arrival_burst: Nanos::MAX,
            ..Config::default()
        };
        change(&mut config);
        let candidate = Candidate::new(&p4, compiled).map_err(SwitchError::Program)?;
        let mut model = P4::load(candidate, config, scheme, runs.drop_reasons());
        model.counters = runs.protocols.iter().flat_map(|protocol| protocol.counters()).copied().collect();
        let updates = entries.into_iter().map(|(_, update)| update).collect();
        model.install(updates)?;
        Ok(model)
    }

    /// A switch that runs a program, without entries. The order of the reasons is that of the cells of its drop counter.
    fn load(candidate: Candidate, config: Config, scheme: Scheme, drop_reasons: Vec<DropReason>) -> P4 {
        let mut switch = Switch::new(config);
        let program = candidate.load(None, &mut switch);
        P4 { switch, scheme, drop_reasons, counters: Vec::new(), program, managed: 0 }
    }

    /// The program's tables and actions, to make entries.
    pub fn schema(&self) -> Result<Schema, SwitchError> {
        Schema::new(self.program.info.clone()).map_err(|error| SwitchError::Program(error.to_string()))
    }

    /// Writes more entries before time begins.
    pub fn install(&mut self, updates: Vec<Update>) -> Result<(), SwitchError> {
        let request = WriteRequest { updates, ..WriteRequest::default() };
        accepted(self.write(&request)).map_err(SwitchError::Program)
    }

    /// Executes the updates of a request before time begins; returns the result of each.
    fn write(&mut self, request: &WriteRequest) -> Outcomes {
        write(&self.program, request, &mut self.switch, Nanos::ZERO)
    }

    /// A counter of the program, by reason.
    fn by_reason(&self, name: &str, reasons: &[DropReason]) -> Vec<(&'static str, u64)> {
        let Some(instance) = self.instance(name) else { return Vec::new() };
        let count = |(index, reason): (usize, &DropReason)| {
            let read = self.switch.counter_read(instance, index as u64).ok()?;
            (read.packets > 0).then_some((reason.name, read.packets))
        };
        reasons.iter().enumerate().filter_map(count).collect()
    }

    /// Frames that the program denied something without dropping them, by reason.
    fn denied(&self, what: Denied) -> Vec<(&'static str, u64)> {
        let counters = self.counters.iter().filter(|counter| counter.of == what);
        counters.flat_map(|counter| self.by_reason(counter.name, counter.reasons)).collect()
    }

    fn instance(&self, name: &str) -> Option<InstanceId> {
        let instances = &self.program.ir.instances;
        instances.iter().position(|known| known.named.name == name).map(|at| InstanceId(at as u32))
    }
}

impl Model for P4 {
    #[inline]
    fn forward(&mut self, port: u16, frame: &mut Vec<u8>, now: Nanos) -> Option<u16> {
        self.switch.forward_given(port, frame, now)
    }

    #[inline]
    fn take(&mut self, port: u16, frame: &[u8], now: Nanos) {
        self.switch.handle_frame(port, frame, now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.switch.poll_transmit(now, out)
    }

    #[inline]
    fn due(&self) -> Nanos {
        self.switch.next_timeout().unwrap_or(Nanos::MAX)
    }

    #[inline]
    fn queued_bytes(&self, port: u16) -> u64 {
        self.switch.queued_bytes(port)
    }

    #[inline]
    fn buffered_bytes(&self) -> u64 {
        self.switch.buffered_bytes()
    }

    fn buffer_limit_bytes(&self) -> u64 {
        self.switch.config().buffer_bytes
    }

    fn stats(&self, now: Nanos) -> Stats {
        self.switch.stats(now)
    }

    fn reset_stats(&mut self, now: Nanos) {
        self.switch.reset_stats(now);
    }

    fn counted(&self) -> Counted {
        Counted {
            drops: self.by_reason(l2::DROPS, &self.drop_reasons),
            demoted: self.denied(Denied::Class),
            refused: self.denied(Denied::Request),
        }
    }

    fn manage(&mut self, request: &[u8], now: Nanos) -> Option<Vec<u8>> {
        let cpu_port = self.switch.config().cpu_port?;
        self.managed += 1;
        let mut frame = vec![0; CPU_HEADER_BYTES];
        frame.extend_from_slice(request);
        self.switch.handle_frame(cpu_port, &frame, now);
        let mut reply = Vec::new();
        if !self.switch.poll_cpu(&mut reply) {
            return None;
        }
        reply.drain(..CPU_HEADER_BYTES.min(reply.len()));
        Some(reply)
    }

    fn managed(&self) -> u64 {
        self.managed
    }
}
