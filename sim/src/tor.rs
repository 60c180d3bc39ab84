//! The rack's switch: the generated program on the embedded switch's core.

use num_bigint::BigUint;
use p4rack_codegen::rack::{Rack, Scheme};
use p4rack_codegen::{Arch, DEMOTED, DropReason, Program, REFUSED, drop_reasons, program};
use p4rack_p4::Compiled;
use p4rack_p4::ir::{ActionCall, InstanceId, Matcher, TableId};
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, Entity, MeterEntry, MulticastGroupEntry, TableEntry, entity::Entity as Kind,
    field_match, packet_replication_engine_entry::Type, replica::PortKind, table_action,
};
use p4rack_switch::{CloneSession, Config, MeterConfig, Pipeline, PortConfig, Replica, Switch};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::pl2::{self, Management, Target};
use p4rack_wire::{MacAddr, Nanos};

/// Why there is no switch.
#[derive(Debug, thiserror::Error)]
pub enum TorError {
    /// The rack can't be generated.
    #[error(transparent)]
    Generate(#[from] p4rack_codegen::GenerateError),
    /// The generated program or its entries were refused: a fault of p4rack's.
    #[error("generated program: {0}")]
    Program(String),
}

/// The switch and what is known of its program.
pub struct Tor {
    /// The switch.
    pub switch: Switch,
    scheme: Scheme,
    cpu_port: u16,
    ether_type: p4rack_wire::EtherType,
    compiled: Compiled,
    /// Management frames that went through it.
    pub managed: u64,
}

impl std::fmt::Debug for Tor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tor").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Tor {
    /// When it has something to send, or to look after; `Nanos::MAX`: never.
    #[inline]
    pub(crate) fn due(&self) -> Nanos {
        self.switch.next_timeout().unwrap_or(Nanos::MAX)
    }

    /// Generates `rack`'s program for `scheme`, loads it and writes its entries. `change` may alter
    /// what the switch is made with.
    pub fn new(rack: &Rack, scheme: Scheme, change: impl FnOnce(&mut Config)) -> Result<Tor, TorError> {
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
            Pipeline::compile(&compiled.program).map_err(|error| TorError::Program(error.to_string()))?;
        switch.load(pipeline);
        let pl2 = rack.pl2.as_ref();
        let ether_type = pl2.map_or(p4rack_wire::EtherType::PL2_DEFAULT, |pl2| pl2.ether_type);
        let mut tor =
            Tor { switch, scheme, cpu_port: rack.switch.cpu_port, ether_type, compiled, managed: 0 };
        for (_, update) in &entries {
            tor.write(update.entity.as_ref())
                .ok_or_else(|| TorError::Program(format!("entry not understood: {update:?}")))?;
        }
        Ok(tor)
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

    /// Drops that the program counted, by reason; only those that occurred.
    pub fn program_drops(&self) -> Vec<(&'static str, u64)> {
        let Some(instance) = self.instance("RackIngress.drops") else { return Vec::new() };
        self.counted(instance, drop_reasons(self.scheme))
    }

    /// Frames that go as best effort since no reservation covers them, by reason; only those that occurred.
    pub fn demoted(&self) -> Vec<(&'static str, u64)> {
        let instance = self.instance("RackIngress.demoted");
        instance.map_or(Vec::new(), |instance| self.counted(instance, &DEMOTED))
    }

    /// RSVs answered with "not now", by reason; only those that occurred.
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let instance = self.instance("RackIngress.refused");
        instance.map_or(Vec::new(), |instance| self.counted(instance, &REFUSED))
    }

    fn counted(&self, instance: InstanceId, reasons: &'static [DropReason]) -> Vec<(&'static str, u64)> {
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

    /// What a port has reserved, read by a management frame as the controller does.
    pub fn reserved(&mut self, target: Target, port: u16, now: Nanos) -> Option<u32> {
        self.manage(
            Management { target: target as u8, index: port, ..self.request(pl2::Kind::MgmtRead) },
            now,
        )
    }

    /// Takes back what a source that died had reserved towards a destination; both by their positions in the rack.
    pub fn forget(&mut self, rack: &Rack, source: usize, destination: usize, now: Nanos) -> Option<()> {
        let link = |host: usize| rack.hosts.get(host).map(|host| host.link);
        let (index, to) = (link(source)?, link(destination)?);
        for cell in 0..rack.cells_a_pair() {
            let cell = rack.cell_number(source, destination, cell);
            let request = self.request(pl2::Kind::MgmtForget);
            self.manage(Management { index, destination: to, cell, ..request }, now)?;
        }
        Some(())
    }

    fn request(&self, kind: pl2::Kind) -> Management {
        Management {
            version: pl2::VERSION,
            kind: kind as u8,
            target: Target::In as u8,
            index: 0,
            token: 1,
            value: 0,
            destination: 0,
            reserved: 0,
            cell: 0,
        }
    }

    fn manage(&mut self, request: Management, now: Nanos) -> Option<u32> {
        self.managed += 1;
        let mut frame = vec![0; 2 + 60];
        let (src, dst) = (MacAddr([2, 0, 0, 0xff, 0, 1]), MacAddr([2, 0, 0, 0xff, 0, 2]));
        Ethernet { dst, src, ether_type: self.ether_type }.emit(&mut frame[2..]);
        request.emit(&mut frame[2 + Ethernet::BYTES..]);
        self.switch.handle_frame(self.cpu_port, &frame, now);
        let mut reply = Vec::new();
        if !self.switch.poll_cpu(&mut reply) {
            return None;
        }
        let answer = Management::parse(reply.get(2 + Ethernet::BYTES..)?).ok()?;
        (answer.kind == pl2::Kind::MgmtReply as u8).then_some(answer.value)
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
