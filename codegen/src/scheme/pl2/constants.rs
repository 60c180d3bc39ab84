//! PL2's constants that P4, Rust and Python share.

use super::{
    CONTROL_METER, DEMOTED, DEMOTED_COUNTER, EARLY_SLOTS, IN_RESERVATION, Mode, OUT_RESERVATION,
    PRIORITY_CONTROL, PRIORITY_SCHEDULED, Pl2, REFUSED, REFUSED_COUNTER,
};
use crate::rack::Rack;
use p4rack_wire::pl2::{Kind, NOT_NOW, Side, VERSION};
use serde_json::{Map, Value, json};

pub(super) fn add(pl2: &Pl2, rack: &Rack, constants: &mut Value) {
    constants["meters"]["control"] = json!(CONTROL_METER);
    constants["priorities"]["control"] = json!(PRIORITY_CONTROL);
    constants["priorities"]["scheduled"] = json!(PRIORITY_SCHEDULED);
    let kinds: Map<String, Value> =
        Kind::ALL.iter().map(|(kind, name)| ((*name).to_owned(), json!(*kind as u8))).collect();
    constants["pl2"] = json!({
        "mode": pl2.mode,
        "version": VERSION,
        "ether_type": pl2.ether_type.0,
        "vid": pl2.vid,
        "lanes": pl2.lanes,
        "early_slots": EARLY_SLOTS,
        "late_slots": pl2.late_slots(),
        "horizon_units": pl2.horizon_units(rack),
        "part_wire_bytes": pl2.part_wire_bytes(),
        "not_now": NOT_NOW,
        "demoted_counter": DEMOTED_COUNTER,
        "demoted_reasons": DEMOTED.map(|reason| reason.name),
        "refused_counter": REFUSED_COUNTER,
        "refused_reasons": REFUSED.map(|reason| reason.name),
        "shim": pl2.shim,
        "k": pl2.k,
        "slot_parts": pl2.slot_parts,
        "t_slots": pl2.t_slots,
        "drop_threshold_slots": pl2.drop_threshold_slots,
        "kinds": kinds,
        "targets": { "in": Side::In as u8, "out": Side::Out as u8 },
        "registers": { "in": IN_RESERVATION, "out": OUT_RESERVATION },
        "unit": if pl2.mode == Mode::Counter { "slots" } else { "time units" },
    });
}

pub(super) fn add_host(pl2: &Pl2, rack: &Rack, position: usize, constants: &mut Value) {
    let host = &rack.hosts[position];
    constants["slot_ns"] = json!(pl2.slot(rack, host).0);
    constants["slot_units"] = json!(pl2.slot_units(rack, host));
    constants["source_cells"] = json!(pl2.source_cells(rack, position));
    constants["destination_cells"] = json!(pl2.destination_cells(rack, position));
    if host.link != host.port {
        constants["link"] = json!(host.link);
    }
}
