//! The engine's constants that P4, Rust and Python share.

use super::{BAD_LENGTH_COUNTER, Cowbird, SENT_COUNTER, serve};
use crate::arch::Arch;
use p4rack_fabric::cowbird::Corruption;
use p4rack_wire::cowbird::{ENTRIES_AT, Phase, RED_AT, opcode};
use serde_json::{Map, Value, json};

pub(super) fn add(cowbird: &Cowbird, arch: Arch, constants: &mut Value) {
    let phases: Map<String, Value> =
        Phase::ALL.iter().map(|(phase, name)| (name.to_lowercase(), json!(*phase as u8))).collect();
    let refusals: Map<String, Value> =
        Corruption::ALL.iter().map(|one| (format!("{one:?}").to_lowercase(), json!(*one as u64))).collect();
    let tables: Map<String, Value> =
        serve::tables(arch).into_iter().map(|(name, full)| (name.to_owned(), json!(full))).collect();
    constants["cowbird"] = json!({
        "mac": cowbird.mac.to_string(),
        "ip": cowbird.ip,
        "compute": cowbird.compute,
        "pool": cowbird.pool,
        "instances": cowbird.instances,
        "in_flight": cowbird.in_flight,
        "mtu": cowbird.mtu.bytes(),
        "message_bytes_max": cowbird.message_bytes_max,
        "tables": tables,
        "timeout_ns": cowbird.timeout.0,
        "red_at": RED_AT,
        "entries_at": ENTRIES_AT,
        "phases": phases,
        "refusals": refusals,
        "opcodes": { "tick": opcode::TICK, "read": opcode::READ, "set": opcode::SET, "reply": opcode::REPLY },
        "sent_counter": SENT_COUNTER,
    });
    if arch.is_tofino() {
        constants["cowbird"]["bad_length_counter"] = json!(BAD_LENGTH_COUNTER);
    }
}
