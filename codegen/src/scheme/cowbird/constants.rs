//! The engine's constants that P4, Rust and Python share.

use super::{Cowbird, SENT_COUNTER};
use p4rack_wire::cowbird::Phase;
use serde_json::{Map, Value, json};

pub(super) fn add(cowbird: &Cowbird, constants: &mut Value) {
    let phases: Map<String, Value> =
        Phase::ALL.iter().map(|(phase, name)| (name.to_lowercase(), json!(*phase as u8))).collect();
    constants["cowbird"] = json!({
        "mac": cowbird.mac.to_string(),
        "ip": cowbird.ip,
        "compute": cowbird.compute,
        "pool": cowbird.pool,
        "instances": cowbird.instances,
        "in_flight": cowbird.in_flight,
        "mtu": cowbird.mtu.bytes(),
        "message_bytes_max": cowbird.message_bytes_max,
        "phases": phases,
        "sent_counter": SENT_COUNTER,
    });
}
