//! Hosts of EDM around a generated program: demands, data, what becomes of them.

use super::{Built, Rig, mac, plain, tagged};
use p4rack_codegen::scheme::edm::{DEMOTED_COUNTER, Edm};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::edm::{self, Control, Kind, Management, Message};
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::{MacAddr, Nanos};

/// Hosts 1 to 4; 3 and 4 have memory.
pub fn rack_of(mode: &str, edm: &str, more: &str) -> Rack {
    let hosts: String = (1..=4)
        .map(|n| {
            format!("[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n")
        })
        .collect();
    let text = format!(
        "name = \"test\"\n[switch]\nport_rate = \"100 Mb/s\"\n[edm]\nmode = \"{mode}\"\nmemory = [\"h3\", \"h4\"]\n\
         chunk_bytes = 256\nwindow = 2\n{edm}\n{more}\n{hosts}"
    );
    Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

pub const CHUNK: u32 = 256;
pub const WINDOW: u32 = 512;
/// X.
pub const DEMANDS: u16 = 3;
pub const UNMETERED: &str = "control_percent = 100";

pub fn built(scheme: Scheme, edm: &str) -> Vec<Built> {
    let on = |arch| {
        let edm = format!("{UNMETERED}\n{edm}");
        Built::on(rack_of("timed-dst", &edm, ""), scheme, arch)
    };
    Arch::ALL.into_iter().map(on).collect()
}

pub fn edm_of(built: &Built) -> Edm {
    built.runs().protocol::<Edm>().unwrap().clone()
}

/// A grant, as the host at `port` gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub port: u16,
    /// The port of the node with which it shares the message.
    pub peer: u16,
    pub answer: bool,
    pub id: u16,
    pub offset: u32,
    pub bytes: u32,
    pub wait: u32,
}

/// Fate of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub grants: Vec<Grant>,
    /// Requests and data that arrived: the port, and the wait in a request.
    pub arrived: Vec<(u16, u32)>,
    /// The bytes of a chunk that each of these says it has or, of an answer, grants.
    pub bytes: Vec<u16>,
}

pub struct Net {
    pub rig: Rig,
}

impl Net {
    pub fn new(built: &Built) -> Net {
        Net { rig: Rig::new(built) }
    }

    pub fn frame(&self, from: u16, to: u16, pcp: u8, bytes: &[u8]) -> Vec<u8> {
        let rack = &self.rig.built.rack;
        let ether_type = rack.protocol::<Edm>().unwrap().ether_type;
        tagged(mac(rack, from), mac(rack, to), Vlan { pcp, dei: false, vid: 0, ether_type }, bytes)
    }

    pub fn send(&mut self, port: u16, frame: &[u8]) -> Seen {
        let mut seen = Seen::default();
        for (port, frame) in self.rig.send(port, frame) {
            assert!(frame.len() >= 60, "{} bytes", frame.len());
            let ethernet = Ethernet::parse(&frame).unwrap();
            let vlan = Vlan::parse(&frame[14..]).unwrap();
            assert_eq!(ethernet.dst, mac(&self.rig.built.rack, port));
            match Kind::of(frame[18]).unwrap() {
                Kind::Grant => {
                    let grant = Control::parse(&frame[18..]).unwrap();
                    assert_eq!(vlan.pcp, edm::PCP_CONTROL);
                    let peer =
                        self.rig.built.rack.hosts.iter().find(|host| host.mac == ethernet.src).unwrap();
                    seen.grants.push(Grant {
                        port,
                        peer: peer.port,
                        answer: grant.answer == 1,
                        id: grant.id,
                        offset: grant.offset,
                        bytes: grant.bytes,
                        wait: grant.wait,
                    });
                }
                Kind::Notify => panic!("a notification arrived"),
                _ => {
                    let message = Message::parse(&frame[18..]).unwrap();
                    seen.arrived.push((port, message.offset));
                    seen.bytes.push(message.bytes);
                }
            }
        }
        // Ports come in any order.
        seen.grants.sort_by_key(|grant| grant.wait);
        seen
    }

    pub fn notify(&mut self, from: u16, to: u16, id: u16, bytes: u32) -> Option<Grant> {
        let frame = self.frame(from, to, edm::PCP_CONTROL, &notification(id, bytes));
        let mut seen = self.send(from, &frame);
        assert_eq!(seen.arrived, []);
        assert!(seen.grants.len() <= 1);
        let grant = seen.grants.pop()?;
        assert_eq!((grant.port, grant.peer, grant.answer, grant.id, grant.offset), (from, to, false, id, 0));
        Some(grant)
    }

    /// The wait with which a request arrives.
    pub fn request(&mut self, from: u16, to: u16, id: u16, total: u32) -> Option<u32> {
        let frame = self.frame(from, to, edm::PCP_CONTROL, &message(Kind::Rreq, id, total, 0, 0));
        let seen = self.send(from, &frame);
        assert_eq!(seen.grants, []);
        let (port, wait) = *seen.arrived.first()?;
        assert_eq!(port, to);
        Some(wait)
    }

    pub fn chunk(
        &mut self,
        kind: Kind,
        way: (u16, u16),
        id: u16,
        total: u32,
        offset: u32,
        bytes: u16,
    ) -> Fate {
        let frame = self.frame(way.0, way.1, edm::PCP_DATA, &message(kind, id, total, offset, bytes));
        self.fate(way, &frame)
    }

    pub fn fate(&mut self, way: (u16, u16), frame: &[u8]) -> Fate {
        let before = self.demoted();
        let seen = self.send(way.0, frame);
        assert_eq!(seen.arrived.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [way.1]);
        let after = self.demoted();
        match (0..2).find(|n| after[*n] > before[*n]) {
            Some(reason) => {
                assert_eq!(seen.grants, [], "what is demoted grants nothing");
                Fate::Demoted(["uncovered", "too_long"][reason])
            }
            None => Fate::Scheduled(seen.grants.first().cloned()),
        }
    }

    pub fn write(&mut self, from: u16, to: u16, id: u16, total: u32, offset: u32, bytes: u16) -> Fate {
        self.chunk(Kind::Wreq, (from, to), id, total, offset, bytes)
    }

    pub fn demoted(&self) -> [u64; 2] {
        [0, 1].map(|reason| self.rig.counter(DEMOTED_COUNTER, reason).packets)
    }

    pub fn time(&self, bytes: u64) -> u64 {
        edm_of(&self.rig.built).grant_units(&self.rig.built.rack, bytes, 100_000_000)
    }

    pub fn manage(&mut self, kind: Kind, target: u8, index: u32, value: u32) -> Option<u32> {
        let mut bytes = vec![0; Management::BYTES];
        let (version, kind) = (edm::VERSION, kind as u8);
        Management { version, kind, target, token: 99, index, value }.emit(&mut bytes);
        let ether_type = self.rig.built.rack.protocol::<Edm>().unwrap().ether_type;
        let (src, dst) = (MacAddr([2, 0, 0, 0, 0, 0xfe]), MacAddr([2, 0, 0, 0, 0, 0xff]));
        let mut packet_out = vec![0, 0];
        packet_out.extend(plain(src, dst, ether_type, &bytes));
        let cpu_port = self.rig.built.rack.switch.cpu_port;
        assert_eq!(self.rig.send(cpu_port, &packet_out), []);
        let mut reply = Vec::new();
        self.rig.switch.poll_cpu(&mut reply).then(|| {
            let answer = Management::parse(&reply[16..]).unwrap();
            assert_eq!((answer.kind, answer.token, answer.index), (Kind::MgmtReply as u8, 99, index));
            answer.value
        })
    }

    pub fn wait(&mut self, time: u64) {
        self.rig.now = Nanos(self.rig.now.0 + time);
    }
}

/// Fate of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passed in its class, and brought about this grant.
    Scheduled(Option<Grant>),
    Demoted(&'static str),
}

pub fn notification(id: u16, bytes: u32) -> Vec<u8> {
    let mut out = vec![0; Control::BYTES];
    let (version, kind) = (edm::VERSION, Kind::Notify as u8);
    Control { version, kind, answer: 0, id, offset: 0, bytes, wait: 0 }.emit(&mut out);
    out
}

pub fn message(kind: Kind, id: u16, total: u32, offset: u32, bytes: u16) -> Vec<u8> {
    let mut out = vec![0; Message::BYTES];
    let (version, kind) = (edm::VERSION, kind as u8);
    Message { version, kind, code: 0, id, key: 7, address: 64, total, offset, bytes, start: 1 }
        .emit(&mut out);
    out.resize(out.len() + usize::from(bytes), 0xda);
    out
}

/// The grants that a write's chunk brings about, to whomever.
pub fn chunk(net: &mut Net, way: (u16, u16), id: u16, total: u32, offset: u32) -> Vec<Grant> {
    let bytes = CHUNK.min(total - offset) as u16;
    let frame = net.frame(way.0, way.1, edm::PCP_DATA, &message(Kind::Wreq, id, total, offset, bytes));
    let seen = net.send(way.0, &frame);
    assert_eq!(seen.arrived.len(), 1);
    seen.grants
}
