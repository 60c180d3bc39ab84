//! The constants that P4, Rust and Python share, as JSON.

use super::program::program_name;
use super::{MULTICAST_GROUP, PRIORITY_BEST_EFFORT};
use crate::rack::Rack;
use crate::scheme::l2;
use p4rack_wire::ethernet::overhead;
use serde_json::{Value, json};

pub(super) fn constants(rack: &Rack) -> Value {
    let reasons: Vec<&str> = rack.drop_reasons().iter().map(|reason| reason.name).collect();
    let mut value = json!({
        "version": 1,
        "rack": rack.name,
        "scheme": rack.scheme(),
        "program": program_name(rack.scheme()),
        "device_id": rack.switch.device_id,
        "cpu_port": rack.switch.cpu_port,
        "drop_port": rack.switch.drop_port,
        "time_unit_ns": rack.switch.time_unit_ns,
        "multicast_group": MULTICAST_GROUP,
        "tables": { "guard": l2::SOURCE_GUARD, "forward": l2::L2_FORWARD },
        "drop_counter": l2::DROPS,
        "drop_reasons": reasons,
        "meters": { "best_effort": l2::BEST_EFFORT_METER },
        "priorities": { "best_effort": PRIORITY_BEST_EFFORT },
        "hosts": (0..rack.hosts.len()).map(|position| host(rack, position)).collect::<Vec<Value>>(),
    });
    if rack.switch.arch.is_tofino() {
        value["arch"] = json!(rack.switch.arch);
        // Its counters and meters of bytes include the FCS.
        value["counted_fcs_bytes"] = json!(overhead::FCS);
    }
    for protocol in &rack.protocols {
        protocol.constants(rack, &mut value);
    }
    value
}

fn host(rack: &Rack, position: usize) -> Value {
    let host = &rack.hosts[position];
    let mut value = json!({
        "name": host.name,
        "port": host.port,
        "mac": host.mac.to_string(),
        "ip": format!("{}/{}", host.ip, host.prefix),
        "rate_bps": host.rate_bps,
    });
    for protocol in &rack.protocols {
        protocol.host_constants(rack, position, &mut value);
    }
    value
}
