//! A generated program on the embedded switch, driven frame by frame.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part

pub mod any_edm;
pub mod any_pl2;
pub mod edm;
pub mod random;

use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::scheme::pl2::{DEMOTED, Mode, Pl2, REFUSED};
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_entities::{Candidate, Program, accepted, refusal, write};
use p4rack_p4::ir::InstanceId;
use p4rack_p4::p4info::Ids;
use p4rack_p4::{Compiled, Options, compile};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, Update, WriteRequest, table_action};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;
use p4rack_reference::Demoted;
use p4rack_switch::{Config, CounterData, Pipeline, Pipes, PortConfig, Switch};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{self, Control, Management, Side};
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

/// The same with its hosts at these ports.
pub fn at_ports(mut rack: Rack, ports: &[u16]) -> Rack {
    assert!(ports.len() >= rack.hosts.len());
    for (host, port) in rack.hosts.iter_mut().zip(ports) {
        (host.port, host.link) = (*port, *port);
    }
    rack
}

/// Fate of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves in the class of reservations.
    Scheduled,
    /// It leaves as best effort, for this reason.
    Demoted(&'static str),
    /// It does not leave.
    Dropped,
}

/// The counter's name for the reference's reason.
pub fn name_of(reason: Demoted) -> &'static str {
    match reason {
        Demoted::Uncovered => "uncovered",
        Demoted::UncoveredUnsolicited => "uncovered_unsolicited",
        Demoted::Early => "early",
        Demoted::Late => "late",
    }
}

/// A generated program, compiled once, with its entries.
#[derive(Clone)]
pub struct Built {
    pub rack: Rack,
    pub scheme: Scheme,
    compiled: Arc<Compiled>,
    pipeline: Pipeline,
    entries: Arc<WriteRequest>,
    /// Names that the front end gave objects with cells, by index: from the program as generated.
    instances: Arc<Vec<String>>,
}

impl Built {
    pub fn new(rack: Rack, scheme: Scheme) -> Built {
        Built::on(rack, scheme, Arch::V1model)
    }

    /// The program for an architecture.
    pub fn on(rack: Rack, scheme: Scheme, arch: Arch) -> Built {
        let rack = rack.on(arch);
        let artefacts = generate(&rack, scheme, arch).unwrap_or_else(|error| panic!("{error}"));
        let compiled = compile_text(&artefacts.p4);
        let instances = compiled.program.instances.iter().map(|instance| instance.named.name.clone());
        let entries = text::parse(&artefacts.entries).unwrap_or_else(|error| panic!("{error}"));
        Built {
            rack,
            scheme,
            instances: Arc::new(instances.collect()),
            pipeline: translated(&compiled),
            compiled: Arc::new(compiled),
            entries: Arc::new(entries),
        }
    }

    /// The same with another text for the program. Objects keep their places, so the entries still fit: they get the
    /// ids that objects in these places have.
    pub fn with_text(&self, p4: &str) -> Built {
        let compiled = compile_text(p4);
        let mut entries = WriteRequest::clone(&self.entries);
        for update in &mut entries.updates {
            let Some(Entity { entity: Some(entity) }) = &mut update.entity else { panic!("empty update") };
            renumber(entity, &self.compiled.ids, &compiled.ids);
        }
        let pipeline = translated(&compiled);
        Built { compiled: Arc::new(compiled), pipeline, entries: Arc::new(entries), ..self.clone() }
    }

    /// The program with this instead of that, in text without indentation and columns, which depend on other declarations.
    pub fn changed(&self, changes: &[(&str, &str)]) -> Built {
        let in_words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut text = self.p4().lines().map(in_words).collect::<Vec<_>>().join("\n");
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        self.with_text(&text)
    }

    /// The rack under the scheme.
    pub fn runs(&self) -> Rack {
        self.rack.under(self.scheme).unwrap()
    }

    pub fn schema(&self) -> Schema {
        Schema::new(self.compiled.p4info.clone()).unwrap()
    }

    pub fn pl2(&self) -> &Pl2 {
        self.rack.protocol().unwrap()
    }

    /// The slot of the first host at a port.
    pub fn slot(&self, port: u16) -> Nanos {
        self.pl2().slot(&self.rack, host(&self.rack, port))
    }

    /// Whether a reservation is a right to a number of frames of any length; else to bytes.
    pub fn counts_frames(&self) -> bool {
        let counts = |pl2: &Pl2| pl2.mode == Mode::Counter;
        self.rack.switch.arch.is_tofino() || self.runs().protocol().is_some_and(counts)
    }

    pub fn p4(&self) -> String {
        p4rack_codegen::render_p4(&self.rack, self.scheme, self.rack.switch.arch).unwrap()
    }
}

fn compile_text(p4: &str) -> Compiled {
    compile(p4, "test.p4", &Options::default())
        .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(false)))
}

fn translated(compiled: &Compiled) -> Pipeline {
    Pipeline::compile(&compiled.program).unwrap_or_else(|error| panic!("{}", refusal(&error, compiled)))
}

/// Replaces the ids of one program by those of another with the same objects in the same order.
fn renumber(entity: &mut EntityKind, from: &Ids, to: &Ids) {
    let other = |id: u32, from: &[u32], to: &[u32]| {
        let place = from.iter().position(|known| *known == id).unwrap_or_else(|| panic!("no id {id:#x}"));
        to[place]
    };
    match entity {
        EntityKind::TableEntry(entry) => {
            entry.table_id = other(entry.table_id, &from.tables, &to.tables);
            match entry.action.as_mut().and_then(|action| action.r#type.as_mut()) {
                Some(table_action::Type::Action(action)) => {
                    action.action_id = other(action.action_id, &from.actions, &to.actions);
                }
                unexpected => panic!("{unexpected:?}"),
            }
        }
        EntityKind::MeterEntry(meter) => {
            meter.meter_id = other(meter.meter_id, &from.instances, &to.instances)
        }
        EntityKind::PacketReplicationEngineEntry(_) => {}
        unexpected => panic!("{unexpected:?}"),
    }
}

/// A switch that runs the program, and a clock.
pub struct Rig {
    pub built: Built,
    pub switch: Switch,
    pub now: Nanos,
    program: Arc<Program>,
    /// Names of the program's reasons to drop a frame, in the order of their counters.
    drop_reasons: Vec<&'static str>,
}

impl Rig {
    /// Ports without rate limits: frames leave as soon as they come.
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
        let compiled = Compiled::clone(&built.compiled);
        let program = Candidate::translated("", compiled, built.pipeline.clone()).load(None, &mut switch);
        let now = Nanos(1_000_000);
        accepted(write(&program, &built.entries, &mut switch, now)).unwrap();
        let drop_reasons = built.runs().drop_reasons().iter().map(|reason| reason.name).collect();
        Rig { built: built.clone(), switch, now, program, drop_reasons }
    }

    /// Writes entries, as a controller does.
    pub fn write(&mut self, updates: Vec<Update>) {
        let request = WriteRequest { updates, ..Default::default() };
        accepted(write(&self.program, &request, &mut self.switch, self.now)).unwrap();
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

    /// Sends an RSV for cell 0; the GRT that comes back to the same port, with both waits.
    pub fn reserve(&mut self, from: u16, to: u16, demand: u8) -> Option<(u32, u32)> {
        self.reserve_cell(from, to, demand, 0)
    }

    /// As [`Rig::reserve`], for any cell.
    pub fn reserve_cell(&mut self, from: u16, to: u16, demand: u8, cell: u8) -> Option<(u32, u32)> {
        self.ask_for(from, to, request(demand, cell))
    }

    /// As [`Rig::reserve_cell`], for a burst that follows unsolicited.
    pub fn announce(&mut self, from: u16, to: u16, demand: u8, cell: u8) -> Option<(u32, u32)> {
        self.ask_for(from, to, Control { unsolicited: 1, ..request(demand, cell) })
    }

    fn ask_for(&mut self, from: u16, to: u16, rsv: Control) -> Option<(u32, u32)> {
        let (demand, cell) = (rsv.demand, rsv.cell);
        let frame = control(&self.built.rack, from, mac(&self.built.rack, to), rsv);
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
        assert_eq!(control.cell, cell);
        Some((control.send_wait, control.recv_wait))
    }

    /// Sends a data frame of the reservation in cell 0 (or an unsolicited one); whether it arrived.
    pub fn data(&mut self, from: u16, to: u16, unsolicited: bool) -> bool {
        self.fate(from, to, 0, unsolicited) != Fate::Dropped
    }

    /// Fate of a data frame of 118 bytes that claims this cell.
    pub fn fate(&mut self, from: u16, to: u16, cell: u8, unsolicited: bool) -> Fate {
        let frame = data(&self.built.rack, from, to, cell, unsolicited, 100);
        self.fate_of(from, to, &frame)
    }

    /// Fate of this data frame.
    pub fn fate_of(&mut self, from: u16, to: u16, frame: &[u8]) -> Fate {
        let before = self.demoted();
        let sent = self.send(from, frame);
        match sent.as_slice() {
            [] => return Fate::Dropped,
            [(port, arrived)] => {
                assert_eq!((*port, arrived.as_slice()), (to, frame), "data arrives as it was sent")
            }
            more => panic!("one frame expected: {more:?}"),
        }
        let after = self.demoted();
        let counted: Vec<usize> = (0..DEMOTED.len()).filter(|n| after[*n] > before[*n]).collect();
        match counted.as_slice() {
            [] => Fate::Scheduled,
            [reason] if after[*reason] == before[*reason] + 1 => Fate::Demoted(DEMOTED[*reason].name),
            more => panic!("one reason expected: {more:?}"),
        }
    }

    /// A cell of a counter.
    pub fn counter(&self, name: &str, at: u64) -> CounterData {
        self.switch.counter_read(self.instance(name), at).unwrap()
    }

    /// Frames demoted, by reason.
    pub fn demoted(&self) -> [u64; DEMOTED.len()] {
        self.counts("RackIngress.pl2.demoted")
    }

    /// RSVs answered "not now", by reason.
    pub fn refused(&self) -> [u64; REFUSED.len()] {
        self.counts("RackIngress.pl2.refused")
    }

    /// Zeros under plain switching, which has no such counters.
    fn counts<const N: usize>(&self, counter: &str) -> [u64; N] {
        if self.built.scheme == Scheme::L2 {
            return [0; N];
        }
        let counter = self.instance(counter);
        std::array::from_fn(|n| self.switch.counter_read(counter, n as u64).unwrap().packets)
    }

    /// A register's cell of the pair's `cell`, raw.
    pub fn of_cell(&self, name: &str, from: u16, to: u16, cell: u8) -> u64 {
        let (rack, pl2) = (&self.built.rack, self.built.pl2());
        let number = pl2.cell_number(rack, position_of(rack, from), position_of(rack, to), cell);
        let at = pl2.cell_index(rack, number);
        let at = if name == "lane_lock" { at / 2 } else { at };
        let control = if name == "lane_lock" && rack.switch.arch.is_tofino() { "pl2_lanes" } else { "pl2" };
        let register = self.instance(&format!("RackIngress.{control}.{name}"));
        let value = self.switch.register_read(register, at).unwrap();
        let value: u64 = value.try_into().unwrap();
        // On Tofino a lock names the cell, beside two bits: that it is held, and that it is so for sure.
        if name == "lane_lock" && rack.switch.arch.is_tofino() && value != 0 {
            return (1 + (value & 1)) | ((value >> 6 & 1) << 2);
        }
        value
    }

    /// Takes back the content of a pair's cell, and returns it.
    pub fn forget(&mut self, from: u16, to: u16, cell: u8) -> Option<u32> {
        let rack = &self.built.rack;
        let request = Management {
            kind: pl2::Kind::MgmtForget as u8,
            index: host(rack, from).link,
            destination: host(rack, to).link,
            cell: self.built.pl2().cell_number(rack, position_of(rack, from), position_of(rack, to), cell),
            ..MANAGEMENT
        };
        self.ask(request)
    }

    /// Sends a management frame from the CPU port; the value in the reply.
    pub fn manage(&mut self, kind: pl2::Kind, target: Side, index: u16, value: u32) -> Option<u32> {
        self.ask(Management { kind: kind as u8, target: target as u8, index, value, ..MANAGEMENT })
    }

    /// Sends this management frame; the value in the reply.
    pub fn ask(&mut self, request: Management) -> Option<u32> {
        let frame = management_frame(&self.built.rack, request);
        let mut packet_out = vec![0, 0];
        packet_out.extend(&frame);
        let cpu_port = self.built.rack.switch.cpu_port;
        assert_eq!(self.send(cpu_port, &packet_out), [], "nothing may reach the hosts");
        let mut reply = Vec::new();
        if !self.switch.poll_cpu(&mut reply) {
            return None;
        }
        assert_eq!(u16::from_be_bytes([reply[0], reply[1]]), cpu_port);
        let answer = Management::parse(&reply[16..]).unwrap();
        assert_eq!(answer.kind, pl2::Kind::MgmtReply as u8);
        assert_eq!((answer.target, answer.index, answer.token), (request.target, request.index, 99));
        Some(answer.value)
    }

    /// Frames that the program dropped for this reason.
    pub fn drops(&self, reason: &str) -> u64 {
        let index = self.drop_reasons.iter().position(|known| *known == reason).unwrap();
        let drops = self.instance("RackIngress.drops");
        self.switch.counter_read(drops, index as u64).unwrap().packets
    }

    /// Everything that was demoted, refused or dropped, by reason, in a line for a snapshot.
    pub fn reasons(&self) -> String {
        let demoted = DEMOTED.iter().map(|reason| reason.name).zip(self.demoted());
        let refused = REFUSED.iter().map(|reason| reason.name).zip(self.refused());
        let occurred = |(_, count): &(&str, u64)| *count > 0;
        let (demoted, refused): (Vec<_>, Vec<_>) =
            (demoted.filter(occurred).collect(), refused.filter(occurred).collect());
        format!("demoted {demoted:?}, refused {refused:?}, dropped {:?}", self.all_drops())
    }

    /// All reasons that occurred, with their counts.
    pub fn all_drops(&self) -> Vec<(&'static str, u64)> {
        let reasons = self.drop_reasons.iter().map(|reason| (*reason, self.drops(reason)));
        reasons.filter(|(_, count)| *count > 0).collect()
    }

    /// A register's cell, raw.
    pub fn register(&self, name: &str, port: u16) -> u64 {
        let value = self.switch.register_read(self.instance(name), u64::from(port)).unwrap();
        value.try_into().unwrap()
    }

    /// The same in one pipe.
    pub fn register_in(&mut self, pipe: usize, name: &str, port: u16) -> u64 {
        let (register, at) = (self.instance(name), u64::from(port));
        let read = |switch: &mut Switch| switch.register_read(register, at).unwrap();
        self.switch.within(Pipes::of([pipe]), read).unwrap().try_into().unwrap()
    }

    /// Sets a register's cell in a pipe.
    pub fn set_register_in(&mut self, pipe: usize, name: &str, port: u16, value: u64) {
        let (register, at) = (self.instance(name), u64::from(port));
        let write = |switch: &mut Switch| switch.register_write(register, at, &value.into()).unwrap();
        self.switch.within(Pipes::of([pipe]), write).unwrap();
    }

    /// A port's reservations as a source and as a destination, from the registers or calendars.
    pub fn register_or_cells(&self, port: u16) -> (u64, u64) {
        let calendar = self.built.instances.iter().any(|name| name == "RackIngress.pl2.in_cells");
        let names = if calendar { ["in_cells", "out_cells"] } else { ["in_reservation", "out_reservation"] };
        let [inward, outward] = names.map(|name| self.register(&format!("RackIngress.pl2.{name}"), port));
        (inward, outward)
    }

    fn instance(&self, name: &str) -> InstanceId {
        let found = self.built.instances.iter().position(|known| known == name);
        InstanceId(found.unwrap_or_else(|| panic!("no {name}")) as u32)
    }
}

pub fn host(rack: &Rack, port: u16) -> &Host {
    rack.hosts.iter().find(|host| host.port == port).unwrap()
}

/// The place of the port's host in the rack.
pub fn position_of(rack: &Rack, port: u16) -> usize {
    rack.hosts.iter().position(|host| host.port == port).unwrap()
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
    let pl2 = rack.protocol::<Pl2>().unwrap();
    let mut bytes = vec![0; Control::BYTES];
    control.emit(&mut bytes);
    let tag = Vlan { pcp: pl2::PCP_CONTROL, dei: false, vid: pl2.vid, ether_type: pl2.ether_type };
    tagged(mac(rack, from), dst, tag, &bytes)
}

pub fn request(demand: u8, cell: u8) -> Control {
    Control {
        version: pl2::VERSION,
        kind: pl2::Kind::Rsv as u8,
        demand,
        cell,
        unsolicited: 0,
        reserved: 0,
        id: 7,
        send_wait: 0,
        recv_wait: 0,
    }
}

pub fn rsv(rack: &Rack, from: u16, to: u16, demand: u8, cell: u8) -> Vec<u8> {
    control(rack, from, mac(rack, to), request(demand, cell))
}

/// A data frame that claims this cell, with `payload` bytes.
pub fn data(rack: &Rack, from: u16, to: u16, cell: u8, unsolicited: bool, payload: usize) -> Vec<u8> {
    let vid = pl2::vid_of(rack.protocol::<Pl2>().unwrap().vid, cell);
    let tag = Vlan { pcp: pl2::PCP_SCHEDULED, dei: unsolicited, vid, ether_type: EtherType::IPV4 };
    tagged(mac(rack, from), mac(rack, to), tag, &vec![0x45; payload])
}

/// A request of nothing, to fill in.
pub const MANAGEMENT: Management = Management {
    version: pl2::VERSION,
    kind: 0,
    target: 0,
    index: 0,
    token: 99,
    value: 0,
    destination: 0,
    reserved: 0,
    cell: 0,
};

pub fn management(rack: &Rack, kind: u8, target: u8, index: u16, value: u32) -> Vec<u8> {
    management_frame(rack, Management { kind, target, index, value, ..MANAGEMENT })
}

pub fn management_frame(rack: &Rack, request: Management) -> Vec<u8> {
    let mut bytes = vec![0; Management::BYTES];
    request.emit(&mut bytes);
    let ether_type = rack.protocol::<Pl2>().unwrap().ether_type;
    plain(MacAddr([2, 0, 0, 0, 0, 0xfe]), MacAddr([2, 0, 0, 0, 0, 0xff]), ether_type, &bytes)
}
