//! The constants that P4, Rust and Python share, as JSON.

use super::program::program_name;
use super::{MULTICAST_GROUP, PRIORITY_BEST_EFFORT, PRIORITY_CONTROL, PRIORITY_SCHEDULED};
use crate::drops::{DEMOTED, REFUSED, drop_reasons};
use crate::rack::{EARLY_SLOTS, HORIZON_UNITS, Pl2, Rack, Scheme};
use p4rack_wire::pl2::{Kind, NOT_NOW, Side, VERSION};
use serde_json::{Map, Value, json};

pub(super) fn constants(rack: &Rack, scheme: Scheme) -> Value {
    let pl2 = rack.pl2.as_ref().filter(|_| scheme != Scheme::L2);
    let reasons: Vec<&str> = drop_reasons(scheme).iter().map(|reason| reason.name).collect();
    let mut value = json!({
        "version": 1,
        "rack": rack.name,
        "scheme": scheme,
        "program": program_name(scheme),
        "device_id": rack.switch.device_id,
        "cpu_port": rack.switch.cpu_port,
        "drop_port": rack.switch.drop_port,
        "time_unit_ns": rack.switch.time_unit_ns,
        "multicast_group": MULTICAST_GROUP,
        "tables": { "guard": "RackIngress.source_guard", "forward": "RackIngress.l2_forward" },
        "drop_counter": "RackIngress.drops",
        "drop_reasons": reasons,
        "meters": { "best_effort": "RackIngress.best_effort_meter" },
        "priorities": { "best_effort": PRIORITY_BEST_EFFORT },
        "hosts": hosts(rack, pl2),
    });
    if let Some(pl2) = pl2 {
        value["meters"]["control"] = json!("RackIngress.control_meter");
        value["priorities"]["control"] = json!(PRIORITY_CONTROL);
        value["priorities"]["scheduled"] = json!(PRIORITY_SCHEDULED);
        value["pl2"] = pl2_constants(rack, pl2, scheme);
    }
    value
}

fn pl2_constants(rack: &Rack, pl2: &Pl2, scheme: Scheme) -> Value {
    let kinds: Map<String, Value> =
        Kind::ALL.iter().map(|(kind, name)| ((*name).to_owned(), json!(*kind as u8))).collect();
    json!({
        "mode": if scheme == Scheme::Pl2Counter { "counter" } else { "clock" },
        "version": VERSION,
        "ether_type": pl2.ether_type.0,
        "vid": pl2.vid,
        "lanes": pl2.lanes,
        "early_slots": EARLY_SLOTS,
        "late_slots": rack.late_slots(),
        "horizon_units": HORIZON_UNITS,
        "part_wire_bytes": rack.part_wire_bytes(),
        "not_now": NOT_NOW,
        "demoted_counter": "RackIngress.demoted",
        "demoted_reasons": DEMOTED.map(|reason| reason.name),
        "refused_counter": "RackIngress.refused",
        "refused_reasons": REFUSED.map(|reason| reason.name),
        "shim": pl2.shim,
        "k": pl2.k,
        "slot_parts": pl2.slot_parts,
        "t_slots": pl2.t_slots,
        "drop_threshold_slots": pl2.drop_threshold_slots,
        "kinds": kinds,
        "targets": { "in": Side::In as u8, "out": Side::Out as u8 },
        "registers": { "in": "RackIngress.in_reservation", "out": "RackIngress.out_reservation" },
        "unit": if scheme == Scheme::Pl2Counter { "slots" } else { "time units" },
    })
}

fn hosts(rack: &Rack, pl2: Option<&Pl2>) -> Vec<Value> {
    let mut hosts = Vec::new();
    for (position, host) in rack.hosts.iter().enumerate() {
        let mut value = json!({
            "name": host.name,
            "port": host.port,
            "mac": host.mac.to_string(),
            "ip": format!("{}/{}", host.ip, host.prefix),
            "rate_bps": host.rate_bps,
        });
        if pl2.is_some() {
            value["slot_ns"] = json!(host.slot.0);
            value["slot_units"] = json!(rack.slot_units(host));
            value["source_cells"] = json!(rack.source_cells(position));
            value["destination_cells"] = json!(rack.destination_cells(position));
            if host.link != host.port {
                value["link"] = json!(host.link);
            }
        }
        hosts.push(value);
    }
    hosts
}
