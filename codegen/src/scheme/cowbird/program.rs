//! The engine's part of the P4 text.

use super::{BUSY_TURNS, CLASS_PROBE, Cowbird, HEADERS, alu};
use crate::rack::Rack;
use crate::scheme::Header;
use crate::scheme::parts::{declarations, templates};
use p4rack_fabric::cowbird::Corruption;
use p4rack_wire::cowbird::{ENTRIES_AT, Entry, Kind, Management, Phase, RED_AT, Red, Tail, opcode};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ipv4::{DONT_FRAGMENT, Ipv4, UDP, Udp};
use p4rack_wire::roce::{Aeth, Bth, DEFAULT_PARTITION, Opcode, Reth, UDP_PORT};
use serde_json::{Value, json};

/// The engine's templates.
pub(super) const TEMPLATES: &[(&str, &str)] = templates![
    "cowbird/banner",
    "cowbird/classes",
    "cowbird/constants",
    "cowbird/states",
    "cowbird/objects",
    "cowbird/own_frames",
    "cowbird/own",
    "cowbird/registers/constants",
    "cowbird/registers/metadata",
    "cowbird/registers/controls",
    "cowbird/registers/engine",
    "cowbird/alu/constants",
    "cowbird/alu/metadata",
    "cowbird/alu/parsed",
    "cowbird/alu/foreseen",
    "cowbird/alu/pass_fields",
    "cowbird/alu/pass_values",
    "cowbird/alu/pass_taken",
    "cowbird/alu/pass_named",
    "cowbird/alu/states",
    "cowbird/alu/controls",
    "cowbird/alu/dispatch",
    "cowbird/alu/done",
    "cowbird/alu/begun",
    "cowbird/alu/judged",
    "cowbird/alu/steps",
    "cowbird/alu/steps_behind",
    "cowbird/alu/outcome",
    "cowbird/alu/kept",
    "cowbird/alu/carried_types",
    "cowbird/alu/sum_header",
    "cowbird/alu/egress_metadata",
    "cowbird/alu/egress_states",
    "cowbird/alu/egress_objects",
    "cowbird/alu/egress",
    "cowbird/alu/completed",
];

/// The engine's terms.
pub(super) const TERMS: &str = include_str!("../../../../p4src/cowbird/terms.toml");

/// The engine's registers.
pub(super) const REGISTERS: &[(&str, &str)] = declarations![
    "cowbird/registers/instances",
    "cowbird/alu/frames",
    "cowbird/alu/done",
    "cowbird/alu/told",
    "cowbird/alu/begun",
    "cowbird/alu/judged",
    "cowbird/alu/slots",
    "cowbird/alu/ends",
    "cowbird/alu/highs",
];

/// Time to live of sent packets.
pub(super) const TTL: u8 = 64;
/// Bytes of a speculative READ of an entry: the entry and the next word, so that its response is longer than the response to a
/// READ of a known entry.
const GUESS_BYTES: usize = Entry::BYTES + Tail::BYTES;
/// Header of frames from the controller.
const PACKET_OUT_BYTES: usize = 2;

pub(super) fn headers() -> Vec<Header> {
    let header = |desc, name| Header { desc, instance: Some(name) };
    vec![
        header(Ipv4::DESC, "cowbird_ipv4"),
        header(Udp::DESC, "cowbird_udp"),
        header(Bth::DESC, "cowbird_bth"),
        header(Aeth::DESC, "cowbird_aeth"),
        header(Reth::DESC, "cowbird_reth"),
        header(Management::DESC, "cowbird_management"),
        header(Red::DESC, "cowbird_red"),
        header(Entry::DESC, "cowbird_entry"),
        header(Tail::DESC, "cowbird_tail"),
    ]
}

impl Cowbird {
    /// Slots for the requests of a side: those in flight and the last completed one.
    pub(super) fn slots(&self) -> u32 {
        2 * self.in_flight
    }
}

pub(super) fn context(cowbird: &Cowbird, rack: &Rack) -> Value {
    let mac = cowbird.mac.0.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let units = |ns: u64| ns.div_ceil(rack.switch.time_unit_ns);
    let (instances, slots) = (cowbird.instances, cowbird.slots());
    let answer = |bytes: usize| HEADERS + Aeth::BYTES + bytes;
    let roce = json!({
        "port": UDP_PORT,
        "headers": HEADERS,
        "partition": format!("0x{DEFAULT_PARTITION:04X}"),
        "write_first": Opcode::WriteFirst as u8,
        "write_middle": Opcode::WriteMiddle as u8,
        "write_last": Opcode::WriteLast as u8,
        "write_only": Opcode::WriteOnly as u8,
        "read": Opcode::ReadRequest as u8,
        "read_first": Opcode::ReadResponseFirst as u8,
        "read_middle": Opcode::ReadResponseMiddle as u8,
        "read_last": Opcode::ReadResponseLast as u8,
        "read_only": Opcode::ReadResponseOnly as u8,
        "acknowledge": Opcode::Acknowledge as u8,
        "mtu": cowbird.mtu.bytes(),
        "mtu_bits": cowbird.mtu.bytes().ilog2(),
        "reth_bytes": Reth::BYTES,
        "aeth_bytes": Aeth::BYTES,
    });
    let op = json!({
        "tick": format!("0x{:02X}", opcode::TICK),
        "read": format!("0x{:02X}", opcode::READ),
        "set": format!("0x{:02X}", opcode::SET),
        "reply": format!("0x{:02X}", opcode::REPLY),
    });
    let set = json!({
        "red_at": RED_AT,
        "entries_at": ENTRIES_AT,
        "red_bytes": Red::BYTES,
        "entry_bytes": Entry::BYTES,
        "entry_bits": Entry::BYTES.ilog2(),
        "tail_bytes": Tail::BYTES,
        "guess_bytes": GUESS_BYTES,
        "guess_length": answer(GUESS_BYTES),
        "tail_length": answer(Tail::BYTES),
        "entry_length": answer(Entry::BYTES),
        "type_read": Kind::Read as u16,
        "type_write": Kind::Write as u16,
    });
    let ip = json!({
        "address": format!("0x{:08X}", u32::from(cowbird.ip)),
        "bytes": Ipv4::BYTES,
        "udp": UDP,
        "dont_fragment": DONT_FRAGMENT,
        "ttl": TTL,
    });
    let mut context = json!({
        "roce": roce,
        "op": op,
        "set": set,
        "ip": ip,
        "mac": format!("0x{mac:012X}"),
        "class_probe": CLASS_PROBE,
        "phase_constants": phase_constants(),
        "refusal_constants": refusal_constants(),
        "instances": instances,
        "sides": 2 * instances,
        "window": cowbird.in_flight,
        "slots": slots,
        "ends": instances * slots,
        "all_slots": 2 * instances * slots,
        "sent": 8 * instances,
        "busy": BUSY_TURNS,
        "idle_mask": cowbird.rest_turns - 1,
        "timeout": units(cowbird.timeout.0),
        "pairs": (instances as usize * (Phase::ALL.len() + 1)).next_power_of_two(),
        "peers": (instances as usize * Phase::ALL.len()).next_power_of_two(),
        "regions": cowbird.regions,
        "ethernet_bytes": Ethernet::BYTES,
        "ethernet_after_packet_out": PACKET_OUT_BYTES + Ethernet::BYTES,
    });
    if rack.switch.arch.is_tofino() {
        alu::add(cowbird, &mut context);
    }
    context
}

fn phase_constants() -> String {
    let tick = Phase::ALL.len() as u8 + 1;
    let phases = Phase::ALL.iter().map(|(phase, name)| (*name, *phase as u8));
    let rows: Vec<(&str, u8)> =
        std::iter::once(("NOTHING", 0)).chain(phases).chain([("TICK", tick)]).collect();
    lines("COWBIRD_", &rows)
}

fn refusal_constants() -> String {
    let names = Corruption::ALL.map(|one| (format!("{one:?}").to_uppercase(), one as u64 as u8));
    let rows: Vec<(&str, u8)> = names.iter().map(|(name, code)| (name.as_str(), *code)).collect();
    lines("COWBIRD_CORRUPT_", &rows)
}

fn lines(prefix: &str, rows: &[(&str, u8)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<8> {prefix}{name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
