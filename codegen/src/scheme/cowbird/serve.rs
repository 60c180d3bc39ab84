//! Entries with which a controller adds a set to the engine, and the frames that it sends.

use super::program::TTL;
use super::{COWBIRD, Cowbird};
use crate::arch::Arch;
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::MacAddr;
use p4rack_wire::cowbird::{self as wire, ENTRIES_AT, Layout, Management, Phase, opcode};
use p4rack_wire::ipv4::{self, Ipv4};
use p4rack_wire::roce::frame::{self, BTH_AT, Extension, Path};
use p4rack_wire::roce::{Bth, Opcode, UDP_PORT, psn};
use std::net::Ipv4Addr;
use std::ops::Range;

/// Offset of the management header in a frame.
const MANAGEMENT_AT: usize = BTH_AT + Bth::BYTES;

/// Consecutively numbered queue pairs between the engine and a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The host's port at the switch.
    pub port: u16,
    /// The host's MAC address.
    pub mac: MacAddr,
    /// The host's IP address.
    pub ip: Ipv4Addr,
    /// The engine's first number.
    pub own_qpn: u32,
    /// The host's first number.
    pub peer_qpn: u32,
    /// Sequence number of the engine's first packet on each of them.
    pub psn: u32,
    /// UDP port from which the engine sends.
    pub udp_port: u16,
}

/// Remote memory of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its key.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Progress of a set, as in its red block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Reads done.
    pub reads: u64,
    /// Writes done.
    pub writes: u64,
    /// Bytes of response data that have arrived.
    pub response_data_tail: u64,
    /// Bytes of request data that the engine has consumed.
    pub request_data_head: u64,
}

/// A set for the engine to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its number in the switch.
    pub number: u32,
    /// Queue pairs to the compute node: one for each of [`Phase::COMPUTE`].
    pub compute: Connection,
    /// Queue pairs to the pool: one for each of [`Phase::POOL`].
    pub pool: Connection,
    /// Key of the rings' memory.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Sizes of the rings.
    pub layout: Layout,
    /// Remote memory, by number of the region.
    pub regions: Vec<Pool>,
    /// Initial progress.
    pub start: Start,
}

/// Insertions that add a set, in two parts. Send [`Cowbird::begin_frames`] between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Inserts {
    /// Location of its rings.
    pub rings: Vec<Update>,
    /// Entries that activate the set.
    pub others: Vec<Update>,
}

impl Inserts {
    /// All insertions, in order.
    pub fn all(self) -> Vec<Update> {
        [self.rings, self.others].concat()
    }
}

/// Tables that a controller fills for each set, with their full names.
pub(super) fn tables(arch: Arch) -> Vec<(&'static str, String)> {
    let mut tables: Vec<_> =
        ["pairs", "instances", "regions"].into_iter().map(|name| (name, table(name))).collect();
    match arch.is_tofino() {
        true => tables.extend([
            ("rings", table("rings")),
            ("ports", table("ports")),
            ("peers", in_egress("peers")),
            ("sets", in_egress("sets")),
        ]),
        false => tables.push(("peers", table("peers"))),
    }
    tables
}

/// Full name of ingress's table or action.
fn table(name: &str) -> String {
    format!("RackIngress.{COWBIRD}.{name}")
}

/// Full name of egress's table or action: on Tofino, egress completes outgoing frames.
fn in_egress(name: &str) -> String {
    format!("RackEgress.{COWBIRD}.{name}")
}

impl Cowbird {
    /// Insertions that add a set. It is served once it has turns ([`Cowbird::ticks`]).
    pub fn serve(&self, instance: &Instance, schema: &Schema) -> Result<Inserts, EntityError> {
        let (number, layout, start) = (instance.number, &instance.layout, &instance.start);
        let completes = in_egress("peers");
        let completed_in_egress = schema.table(&completes).is_ok();
        let serve = Entry::of(&table("instances")).exact("instance", number).action(&table("serve"));
        let serve = serve.param("entries", layout.entries);
        let response = (layout.response_data_at(), layout.response_bytes);
        let request = (layout.request_data_at(), layout.request_bytes);
        let rings = match completed_in_egress {
            true => {
                let ring = |(kind, (at, bytes)): (u32, (u64, u64))| {
                    let ring = Entry::of(&table("rings")).exact("instance", number).exact("kind", kind);
                    let ring = ring.action(&table("ring")).param("at", at).param("bytes", bytes);
                    ring.param("half", bytes / 2).param("mask", bytes.saturating_sub(8))
                };
                let rings = (0..).zip([response, request]).map(ring);
                std::iter::once(serve).chain(rings).collect()
            }
            false => vec![
                serve
                    .param("request_at", request.0)
                    .param("request_bytes", request.1)
                    .param("response_at", response.0)
                    .param("response_bytes", response.1)
                    .param("key", instance.key)
                    .param("address", instance.address)
                    .param("reads", start.reads as u32 & psn::MAX)
                    .param("writes", start.writes as u32 & psn::MAX),
            ],
        };
        let mut entries = Vec::new();
        if completed_in_egress {
            let set = Entry::of(&in_egress("sets")).exact("instance", number);
            let set = set.action(&in_egress("set")).param("key", instance.key);
            let ring = instance.address + ENTRIES_AT;
            let mask = (layout.entries - 1) * wire::Entry::BYTES as u64;
            entries.push(set.param("address", instance.address).param("ring", ring).param("mask", mask));
        }
        for (region, pool) in instance.regions.iter().enumerate() {
            let entry = Entry::of(&table("regions")).exact("instance", number).exact("region", region as u64);
            let entry = entry.action(&table("region")).param("key", pool.key);
            entries.push(entry.param("address", pool.address).param("length", pool.bytes));
        }
        let sides = [(&instance.compute, &Phase::COMPUTE[..]), (&instance.pool, &Phase::POOL[..])];
        for (connection, phases) in sides {
            for (nth, phase) in phases.iter().enumerate() {
                // Entries are numbered from the set's creation on.
                let before = if *phase == Phase::Entry { start.reads + start.writes } else { 0 };
                let first = connection.psn.wrapping_sub(before as u32) & psn::MAX;
                let Connection { port, mac, ip, .. } = *connection;
                let (own, peer) = (connection.own_qpn + nth as u32, connection.peer_qpn + nth as u32);
                let of_phase = |entry: Entry| entry.exact("instance", number).exact("phase", *phase as u8);
                let sends = match completed_in_egress {
                    true => Entry::of(&completes),
                    false => Entry::of(&table("peers")),
                };
                let sends = match completed_in_egress {
                    true => of_phase(sends).action(&in_egress("peer")),
                    false => of_phase(sends).action(&table("peer")),
                };
                let sends = sends.param("mac", mac.0).param("ip", u32::from(ip));
                let sends =
                    sends.param("udp_port", connection.udp_port).param("qpn", peer).param("first", first);
                if completed_in_egress {
                    let leaves = of_phase(Entry::of(&table("ports"))).action(&table("leave_by"));
                    entries.extend([sends, leaves.param("port", port)]);
                } else {
                    entries.push(sends.param("port", port).param("checksum", self.checksum(ip)));
                }
                let hears = pair(port, mac, ip, own).action(&table("pair")).param("instance", number);
                entries.push(hears.param("phase", *phase as u8).param("first", first));
            }
        }
        let updates = |entries: Vec<Entry>| {
            entries.into_iter().map(|entry| entry.update(schema)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Inserts { rings: updates(rings)?, others: updates(entries)? })
    }

    /// Gives some instances of a host turns, by frames that arrive on a port ([`Cowbird::tick_frame`]). No two such entries begin with
    /// the same instance.
    pub fn ticks(
        &self,
        port: u16,
        qpn: u32,
        instances: &Range<u32>,
        schema: &Schema,
    ) -> Result<Update, EntityError> {
        let entry = pair(port, self.mac, self.ip, qpn).action(&table("tick"));
        entry.param("begin", instances.start).param("end", instances.end).update(schema)
    }

    /// Sum of the words of IPv4's header that don't depend on the frame.
    fn checksum(&self, to: Ipv4Addr) -> u16 {
        let mut header = [0; Ipv4::BYTES];
        Ipv4 {
            version: 4,
            ihl: 5,
            dscp: 0,
            ecn: 0,
            total_length: 0,
            identification: 0,
            flags: ipv4::DONT_FRAGMENT,
            fragment_offset: 0,
            ttl: TTL,
            protocol: ipv4::UDP,
            checksum: 0,
            src: self.ip,
            dst: to,
        }
        .emit(&mut header);
        !ipv4::checksum(&header)
    }

    /// The frame that a packet generator injects for a turn.
    pub fn tick_frame(&self, qpn: u32) -> Vec<u8> {
        self.frame(opcode::TICK, qpn, &[])
    }

    /// Frames by which the controller sets both sides of an instance.
    pub fn begin_frames(&self, number: u32, start: &Start) -> [Vec<u8>; 2] {
        let sides = [(start.reads, start.response_data_tail), (start.writes, start.request_data_head)];
        let head = start.reads + start.writes;
        [0, 1].map(|side| {
            let (done, end) = sides[usize::from(side)];
            self.manage(opcode::SET, Management { instance: number, side, reserved: 0, done, end, head })
        })
    }

    /// A frame that queries the progress of a side of an instance: 0 its reads, 1 its writes.
    pub fn look_frame(&self, number: u32, side: u8) -> Vec<u8> {
        let asks = Management { instance: number, side, reserved: 0, done: 0, end: 0, head: 0 };
        self.manage(opcode::READ, asks)
    }

    fn manage(&self, code: u8, management: Management) -> Vec<u8> {
        let mut bytes = [0; Management::BYTES];
        management.emit(&mut bytes);
        let mut frame = vec![0, 0];
        frame.extend(self.frame(code, 0, &bytes));
        frame
    }

    /// Parses a reply, a frame without the header for the controller. `None`: it is no reply.
    pub fn reply(frame: &[u8]) -> Option<Management> {
        let bth = Bth::parse(frame.get(BTH_AT..)?).ok()?;
        let management = Management::parse(frame.get(MANAGEMENT_AT..)?).ok()?;
        (bth.opcode == opcode::REPLY).then_some(management)
    }

    fn frame(&self, code: u8, qpn: u32, payload: &[u8]) -> Vec<u8> {
        let path = Path {
            src_mac: self.mac,
            dst_mac: self.mac,
            src_ip: self.ip,
            dst_ip: self.ip,
            src_port: UDP_PORT,
            dscp: 0,
        };
        let bth = Bth { opcode: code, ..Bth::new(Opcode::ReadRequest, qpn, 0) };
        let mut frame = Vec::new();
        frame::compose(&path, bth, &Extension::None, payload, &mut frame);
        frame
    }
}

fn pair(port: u16, mac: MacAddr, ip: Ipv4Addr, qpn: u32) -> Entry {
    Entry::of(&table("pairs"))
        .exact("port", port)
        .exact("hdr.ethernet.srcAddr", mac.0)
        .exact("hdr.cowbird_ipv4.srcAddr", u32::from(ip))
        .exact("hdr.cowbird_bth.destQp", qpn)
}
