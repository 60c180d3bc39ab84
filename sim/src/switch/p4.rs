//! The switch that is installed: the generated program on the embedded switch's core.

use super::{Counted, Model};
use num_bigint::BigUint;
use p4rack_codegen::rack::{Rack, Scheme};
use p4rack_codegen::{Arch, DEMOTED, DropReason, Program, REFUSED, drop_reasons, program};
use p4rack_p4::Compiled;
use p4rack_p4::ir::{ActionCall, InstanceId, Matcher, TableId};
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, Entity, MeterEntry, MulticastGroupEntry, TableEntry, entity::Entity as Kind,
    field_match, packet_replication_engine_entry::Type, replica::PortKind, table_action,
};
use p4rack_switch::{CloneSession, Config, MeterConfig, Pipeline, PortConfig, Replica, Stats, Switch};
use p4rack_wire::Nanos;

/// Why there is no switch.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The rack can't be generated.
    #[error(transparent)]
    Generate(#[from] p4rack_codegen::GenerateError),
    /// The generated program or its entries were refused: a fault of p4rack's.
    #[error("generated program: {0}")]
    Program(String),
}

/// The header of packet-ins and packet-outs, before a frame of the CPU port.
const CPU_HEADER_BYTES: usize = 2;

/// The switch and what is known of its program.
pub(crate) struct P4 {
    switch: Switch,
    scheme: Scheme,
    compiled: Compiled,
    managed: u64,
}

impl std::fmt::Debug for P4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("P4").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl P4 {
    /// Generates `rack`'s program for `scheme`, loads it and writes its entries. `change` may alter
    /// what the switch is made with.
    pub fn new(rack: &Rack, scheme: Scheme, change: impl FnOnce(&mut Config)) -> Result<P4, SwitchError> {
        let Program { compiled, entries, .. } = program(rack, scheme, Arch::V1model)?;
        let mut config = Config {
            ports: rack.ports().map(|host| PortConfig::new(host.port, host.port_rate_bps)).collect(),
            buffer_bytes: rack.switch.buffer_bytes,
            reserved_bytes: rack.reserved_bytes(scheme),
            cpu_port: Some(rack.switch.cpu_port),
            drop_port: rack.switch.drop_port,
            time_unit_ns: rack.switch.time_unit_ns,
            catch_up: Nanos::ZERO,
            // Links have their rates.
            arrival_burst: Nanos::MAX,
            ..Config::default()
        };
        change(&mut config);
        let mut switch = Switch::new(config);
        let pipeline =
            Pipeline::compile(&compiled.program).map_err(|error| SwitchError::Program(error.to_string()))?;
        switch.load(pipeline);
        let mut p4 = P4 { switch, scheme, compiled, managed: 0 };
        for (_, update) in &entries {
            p4.write(update.entity.as_ref())
                .ok_or_else(|| SwitchError::Program(format!("entry not understood: {update:?}")))?;
        }
        Ok(p4)
    }

    fn write(&mut self, entity: Option<&Entity>) -> Option<()> {
        match entity?.entity.as_ref()? {
            Kind::TableEntry(entry) => self.write_entry(entry),
            Kind::MeterEntry(meter) => self.write_meter(meter),
            Kind::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
                Type::MulticastGroupEntry(group) => self.write_group(group),
                Type::CloneSessionEntry(session) => self.write_session(session),
            },
            _ => None,
        }
    }

    fn write_entry(&mut self, entry: &TableEntry) -> Option<()> {
        let table = position(&self.compiled.ids.tables, entry.table_id)?;
        let keys = entry.r#match.iter().map(|field| match &field.field_match_type {
            Some(field_match::FieldMatchType::Exact(exact)) => {
                Some(Matcher::Exact(BigUint::from_bytes_be(&exact.value)))
            }
            _ => None,
        });
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let table_action::Type::Action(action) = entry.action.as_ref()?.r#type.as_ref()? else { return None };
        let wanted = position(&self.compiled.ids.actions, action.action_id)?;
        let listed = &self.compiled.program.tables.get(table)?.actions;
        let place = listed.iter().position(|listed| listed.action.0 as usize == wanted)?;
        let args = action.params.iter().map(|param| BigUint::from_bytes_be(&param.value)).collect();
        let call = ActionCall { action: place as u32, args };
        let entry = p4rack_switch::TableEntry::new(keys, call);
        self.switch.insert(TableId(table as u32), entry).ok()
    }

    fn write_meter(&mut self, meter: &MeterEntry) -> Option<()> {
        let instance = InstanceId(position(&self.compiled.ids.instances, meter.meter_id)? as u32);
        let config = meter.config.as_ref()?;
        let config = MeterConfig {
            cir: config.cir as u64,
            cburst: config.cburst as u64,
            pir: config.pir as u64,
            pburst: config.pburst as u64,
        };
        let index = meter.index.as_ref()?.index as u64;
        self.switch.meter_config(instance, index, Some(config)).ok()
    }

    fn write_group(&mut self, group: &MulticastGroupEntry) -> Option<()> {
        let replicas = group.replicas.iter().map(replica).collect::<Option<Vec<_>>>()?;
        self.switch.multicast_group_set(group.multicast_group_id, replicas).ok()
    }

    fn write_session(&mut self, session: &CloneSessionEntry) -> Option<()> {
        let replicas = session.replicas.iter().map(replica).collect::<Option<Vec<_>>>()?;
        let config = CloneSession {
            replicas: replicas.into(),
            class_of_service: session.class_of_service as u8,
            packet_length_bytes: session.packet_length_bytes as u16,
        };
        self.switch.clone_session_set(session.session_id, config).ok()
    }

    /// A counter of the program's, by reason.
    fn by_reason(&self, name: &str, reasons: &'static [DropReason]) -> Vec<(&'static str, u64)> {
        let Some(instance) = self.instance(name) else { return Vec::new() };
        let count = |(index, reason): (usize, &DropReason)| {
            let read = self.switch.counter_read(instance, index as u64).ok()?;
            (read.packets > 0).then_some((reason.name, read.packets))
        };
        reasons.iter().enumerate().filter_map(count).collect()
    }

    fn instance(&self, name: &str) -> Option<InstanceId> {
        let instances = &self.compiled.program.instances;
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
            drops: self.by_reason("RackIngress.drops", drop_reasons(self.scheme)),
            demoted: self.by_reason("RackIngress.demoted", &DEMOTED),
            refused: self.by_reason("RackIngress.refused", &REFUSED),
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

fn replica(replica: &p4rack_p4rt::p4::v1::Replica) -> Option<Replica> {
    #[allow(deprecated)] // what the generated entries use
    match replica.port_kind {
        Some(PortKind::EgressPort(port)) => {
            Some(Replica { port: port as u16, instance: replica.instance as u16 })
        }
        _ => None,
    }
}

fn position(ids: &[u32], id: u32) -> Option<usize> {
    ids.iter().position(|known| *known == id)
}
