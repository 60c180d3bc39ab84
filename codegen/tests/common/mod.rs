//! A generated program on the embedded switch, driven frame by frame.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part

use num_bigint::BigUint;
use p4rack_codegen::rack::{Host, Rack, Scheme};
use p4rack_codegen::{Arch, drop_reasons, generate};
use p4rack_p4::ir::{ActionCall, InstanceId, Matcher, TableId};
use p4rack_p4::{Compiled, Options, compile};
use p4rack_p4rt::p4::v1::{
    Entity, MeterEntry, MulticastGroupEntry, TableEntry, WriteRequest, entity::Entity as Kind, field_match,
    packet_replication_engine_entry::Type, replica::PortKind, table_action,
};
use p4rack_p4rt::text;
use p4rack_switch::{Config, MeterConfig, Pipeline, PortConfig, Replica, Switch};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{self, Control, Management, Target};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::fmt::Write;
use std::sync::Arc;

/// A rack of hosts on ports 1 up, one rate each. `pl2` is the body of its `[pl2]` table.
pub fn rack(rates: &[&str], pl2: &str) -> Rack {
    let mut text = format!("name = \"test\"\n[switch]\nport_rate = \"100 Mb/s\"\n[pl2]\n{pl2}\n");
    for (i, rate) in rates.iter().enumerate() {
        let n = i + 1;
        let _ = write!(
            text,
            "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\nrate = \"{rate}\"\n"
        );
    }
    Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// A generated program, compiled once, with its entries.
#[derive(Clone)]
pub struct Built {
    pub rack: Rack,
    pub scheme: Scheme,
    compiled: Arc<Compiled>,
    entries: Arc<WriteRequest>,
    /// Names that the front end gave objects, by index: from the program as generated.
    names: Arc<Names>,
}

struct Names {
    tables: Vec<String>,
    instances: Vec<String>,
    table_ids: Vec<u32>,
    action_ids: Vec<u32>,
    instance_ids: Vec<u32>,
}

impl Built {
    pub fn new(rack: Rack, scheme: Scheme) -> Built {
        let artefacts = generate(&rack, scheme, Arch::V1model).unwrap_or_else(|error| panic!("{error}"));
        let compiled = compile_text(&artefacts.p4);
        let program = &compiled.program;
        let names = Names {
            tables: program.tables.iter().map(|table| table.named.name.clone()).collect(),
            instances: program.instances.iter().map(|instance| instance.named.name.clone()).collect(),
            table_ids: compiled.ids.tables.clone(),
            action_ids: compiled.ids.actions.clone(),
            instance_ids: compiled.ids.instances.clone(),
        };
        let entries = text::parse(&artefacts.entries).unwrap_or_else(|error| panic!("{error}"));
        Built {
            rack,
            scheme,
            compiled: Arc::new(compiled),
            entries: Arc::new(entries),
            names: Arc::new(names),
        }
    }

    /// The same with another text for the program. Objects keep their places, so the entries still fit.
    pub fn with_text(&self, p4: &str) -> Built {
        Built { compiled: Arc::new(compile_text(p4)), ..self.clone() }
    }

    pub fn p4(&self) -> String {
        p4rack_codegen::render_p4(&self.rack, self.scheme, Arch::V1model).unwrap()
    }
}

fn compile_text(p4: &str) -> Compiled {
    compile(p4, "test.p4", &Options::default())
        .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(false)))
}

/// A switch that runs the program, and a clock.
pub struct Rig {
    pub built: Built,
    pub switch: Switch,
    pub now: Nanos,
}

impl Rig {
    /// Ports without rate limits: what goes in comes out at once.
    pub fn new(built: &Built) -> Rig {
        Rig::with_config(built, |_| {})
    }

    pub fn with_config(built: &Built, change: impl FnOnce(&mut Config)) -> Rig {
        let rack = &built.rack;
        let mut config = Config {
            ports: rack.hosts.iter().map(|host| PortConfig::new(host.port, 0)).collect(),
            buffer_bytes: rack.switch.buffer_bytes,
            cpu_port: Some(rack.switch.cpu_port),
            drop_port: rack.switch.drop_port,
            time_unit_ns: rack.switch.time_unit_ns,
            ..Config::default()
        };
        change(&mut config);
        let mut switch = Switch::new(config);
        switch.load(Pipeline::compile(&built.compiled.program).unwrap_or_else(|error| panic!("{error}")));
        let mut rig = Rig { built: built.clone(), switch, now: Nanos(1_000_000) };
        for update in &built.entries.clone().updates {
            let Some(Entity { entity: Some(entity) }) = &update.entity else { panic!("empty update") };
            rig.write(entity);
        }
        rig
    }

    fn write(&mut self, entity: &Kind) {
        match entity {
            Kind::TableEntry(entry) => self.write_entry(entry),
            Kind::MeterEntry(meter) => self.write_meter(meter),
            Kind::PacketReplicationEngineEntry(entry) => match &entry.r#type {
                Some(Type::MulticastGroupEntry(group)) => self.write_group(group),
                other => panic!("unexpected {other:?}"),
            },
            other => panic!("unexpected {other:?}"),
        }
    }

    fn write_entry(&mut self, entry: &TableEntry) {
        let names = self.built.names.clone();
        let index = position(&names.table_ids, entry.table_id);
        let keys = entry.r#match.iter().map(|field| match &field.field_match_type {
            Some(field_match::FieldMatchType::Exact(exact)) => {
                Matcher::Exact(BigUint::from_bytes_be(&exact.value))
            }
            other => panic!("unexpected {other:?}"),
        });
        let Some(table_action::Type::Action(action)) = entry.action.as_ref().and_then(|a| a.r#type.as_ref())
        else {
            panic!("entry without action")
        };
        let table = &self.built.compiled.program.tables[index];
        let wanted = position(&names.action_ids, action.action_id);
        let place = table.actions.iter().position(|listed| listed.action.0 as usize == wanted).unwrap();
        let args = action.params.iter().map(|param| BigUint::from_bytes_be(&param.value)).collect();
        let call = ActionCall { action: place as u32, args };
        let entry = p4rack_switch::TableEntry::new(keys.collect(), call);
        self.switch.insert(TableId(index as u32), entry).unwrap();
    }

    fn write_meter(&mut self, meter: &MeterEntry) {
        let instance = InstanceId(position(&self.built.names.instance_ids, meter.meter_id) as u32);
        let config = meter.config.as_ref().unwrap();
        let config = MeterConfig {
            cir: config.cir as u64,
            cburst: config.cburst as u64,
            pir: config.pir as u64,
            pburst: config.pburst as u64,
        };
        let index = meter.index.as_ref().unwrap().index as u64;
        self.switch.meter_config(instance, index, Some(config)).unwrap();
    }

    fn write_group(&mut self, group: &MulticastGroupEntry) {
        #[allow(deprecated)]
        let replica = |replica: &p4rack_p4rt::p4::v1::Replica| match replica.port_kind {
            Some(PortKind::EgressPort(port)) => {
                Replica { port: port as u16, instance: replica.instance as u16 }
            }
            _ => panic!("a port by number expected"),
        };
        let replicas: Vec<Replica> = group.replicas.iter().map(replica).collect();
        self.switch.multicast_group_set(group.multicast_group_id, replicas).unwrap();
    }

    /// Sends a frame into a port, returns all that comes out: port and frame.
    pub fn send(&mut self, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
        self.switch.handle_frame(port, frame, self.now);
        self.drain()
    }

    pub fn drain(&mut self) -> Vec<(u16, Vec<u8>)> {
        let (mut sent, mut out) = (Vec::new(), Vec::new());
        while let Some(port) = self.switch.poll_transmit(self.now, &mut out) {
            sent.push((port, std::mem::take(&mut out)));
        }
        sent
    }

    /// Sends an RSV; the GRT that comes back to the same port, with both waits.
    pub fn reserve(&mut self, from: u16, to: u16, demand: u8, release: u8) -> Option<(u32, u32)> {
        let frame = rsv(&self.built.rack, from, to, demand, release);
        let sent = self.send(from, &frame);
        let (port, grant) = match sent.as_slice() {
            [] => return None,
            [answer] => answer,
            more => panic!("one answer expected: {more:?}"),
        };
        assert_eq!(*port, from, "a grant goes back where the reservation came from");
        assert_eq!(grant.len(), frame.len());
        let ethernet = Ethernet::parse(grant).unwrap();
        assert_eq!((ethernet.dst, ethernet.src), (mac(&self.built.rack, from), mac(&self.built.rack, to)));
        let control = Control::parse(&grant[18..]).unwrap();
        assert_eq!(control.kind, pl2::Kind::Grt as u8);
        assert_eq!((control.version, control.demand, control.id), (pl2::VERSION, demand, 7));
        Some((control.send_wait, control.recv_wait))
    }

    /// Sends a data frame of a reservation (or an unsolicited one); whether it arrived.
    pub fn data(&mut self, from: u16, to: u16, unsolicited: bool) -> bool {
        let frame = data(&self.built.rack, from, to, unsolicited);
        let sent = self.send(from, &frame);
        match sent.as_slice() {
            [] => false,
            [(port, arrived)] => {
                assert_eq!((*port, arrived), (to, &frame), "data arrives as it was sent");
                true
            }
            more => panic!("one frame expected: {more:?}"),
        }
    }

    /// Sends a management frame from the CPU port; the value in the reply.
    pub fn manage(&mut self, kind: pl2::Kind, target: Target, index: u16, value: u32) -> Option<u32> {
        let request = management(&self.built.rack, kind as u8, target as u8, index, value);
        let mut packet_out = vec![0, 0];
        packet_out.extend(&request);
        let cpu_port = self.built.rack.switch.cpu_port;
        assert_eq!(self.send(cpu_port, &packet_out), [], "nothing may reach the hosts");
        let mut reply = Vec::new();
        if !self.switch.poll_cpu(&mut reply) {
            return None;
        }
        assert_eq!(u16::from_be_bytes([reply[0], reply[1]]), cpu_port);
        let answer = Management::parse(&reply[16..]).unwrap();
        assert_eq!(answer.kind, pl2::Kind::MgmtReply as u8);
        assert_eq!((answer.target, answer.index, answer.token), (target as u8, index, 99));
        Some(answer.value)
    }

    /// Frames that the program dropped for this reason.
    pub fn drops(&self, reason: &str) -> u64 {
        let index = drop_reasons(self.built.scheme).iter().position(|known| known.name == reason).unwrap();
        let drops = self.instance("RackIngress.drops");
        self.switch.counter_read(drops, index as u64).unwrap().packets
    }

    /// All reasons that occurred, with their counts.
    pub fn all_drops(&self) -> Vec<(&'static str, u64)> {
        let reasons =
            drop_reasons(self.built.scheme).iter().map(|reason| (reason.name, self.drops(reason.name)));
        reasons.filter(|(_, count)| *count > 0).collect()
    }

    /// A register's cell, raw.
    pub fn register(&self, name: &str, port: u16) -> u64 {
        let value = self.switch.register_read(self.instance(name), u64::from(port)).unwrap();
        value.try_into().unwrap()
    }

    fn instance(&self, name: &str) -> InstanceId {
        let found = self.built.names.instances.iter().position(|known| known == name);
        InstanceId(found.unwrap_or_else(|| panic!("no {name}")) as u32)
    }
}

fn position(ids: &[u32], id: u32) -> usize {
    ids.iter().position(|known| *known == id).unwrap_or_else(|| panic!("no id {id:#x}"))
}

pub fn host(rack: &Rack, port: u16) -> &Host {
    rack.hosts.iter().find(|host| host.port == port).unwrap()
}

pub fn mac(rack: &Rack, port: u16) -> MacAddr {
    host(rack, port).mac
}

/// A frame without tags.
pub fn plain(src: MacAddr, dst: MacAddr, ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; Ethernet::BYTES];
    Ethernet { dst, src, ether_type }.emit(&mut frame);
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A frame with an 802.1Q tag.
pub fn tagged(src: MacAddr, dst: MacAddr, tag: Vlan, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; Ethernet::BYTES + Vlan::BYTES];
    Ethernet { dst, src, ether_type: EtherType::VLAN }.emit(&mut frame);
    tag.emit(&mut frame[Ethernet::BYTES..]);
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

pub fn control(rack: &Rack, from: u16, dst: MacAddr, control: Control) -> Vec<u8> {
    let pl2 = rack.pl2.as_ref().unwrap();
    let mut bytes = vec![0; Control::BYTES];
    control.emit(&mut bytes);
    let tag = Vlan { pcp: pl2::PCP_CONTROL, dei: false, vid: pl2.vid, ether_type: pl2.ether_type };
    tagged(mac(rack, from), dst, tag, &bytes)
}

pub fn request(demand: u8, release: u8) -> Control {
    Control {
        version: pl2::VERSION,
        kind: pl2::Kind::Rsv as u8,
        demand,
        release,
        reserved: 0,
        id: 7,
        send_wait: 0,
        recv_wait: 0,
    }
}

pub fn rsv(rack: &Rack, from: u16, to: u16, demand: u8, release: u8) -> Vec<u8> {
    control(rack, from, mac(rack, to), request(demand, release))
}

pub fn data(rack: &Rack, from: u16, to: u16, unsolicited: bool) -> Vec<u8> {
    let pl2 = rack.pl2.as_ref().unwrap();
    let tag = Vlan { pcp: pl2::PCP_SCHEDULED, dei: unsolicited, vid: pl2.vid, ether_type: EtherType::IPV4 };
    tagged(mac(rack, from), mac(rack, to), tag, &[0x45; 100])
}

pub fn management(rack: &Rack, kind: u8, target: u8, index: u16, value: u32) -> Vec<u8> {
    let mut bytes = vec![0; Management::BYTES];
    Management { version: pl2::VERSION, kind, target, index, token: 99, value }.emit(&mut bytes);
    let ether_type = rack.pl2.as_ref().unwrap().ether_type;
    plain(MacAddr([2, 0, 0, 0, 0, 0xfe]), MacAddr([2, 0, 0, 0, 0, 0xff]), ether_type, &bytes)
}
