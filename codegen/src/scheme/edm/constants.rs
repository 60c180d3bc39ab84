//! EDM's constants that P4, Rust and Python share.

use super::{
    CLASS_CONTROL, CLASS_DATA, CONTROL_METER, DATA_COUNTER, DEMANDS_COUNTER, DEMOTED, DEMOTED_COUNTER,
    DESTINATION_BEGIN, DESTINATION_FREE, Edm, Mode, RIGHTS, SOURCE_BEGIN, SOURCE_FREE, TOO_LONG_COUNTER,
};
use crate::rack::Rack;
use p4rack_wire::edm::{Kind, Target, VERSION};
use serde_json::{Map, Value, json};

pub(super) fn add(edm: &Edm, rack: &Rack, constants: &mut Value) {
    constants["meters"]["edm_control"] = json!(CONTROL_METER);
    constants["priorities"]["edm_control"] = json!(CLASS_CONTROL);
    constants["priorities"]["edm_data"] = json!(CLASS_DATA);
    let kinds: Map<String, Value> =
        Kind::ALL.iter().map(|(kind, name)| ((*name).to_owned(), json!(*kind as u8))).collect();
    let mut registers = json!({ "destination": DESTINATION_FREE, "rights": RIGHTS });
    match edm.mode {
        Mode::TimedDst | Mode::Matched => {}
        Mode::Timed => registers["source"] = json!(SOURCE_FREE),
        Mode::Calendar => {
            registers["source"] = json!(SOURCE_BEGIN);
            registers["destination"] = json!(DESTINATION_BEGIN);
        }
    }
    constants["edm"] = json!({
        "mode": edm.mode,
        "version": VERSION,
        "ether_type": edm.ether_type.0,
        "memory": edm.memory,
        "chunk_bytes": edm.chunk_bytes,
        "window_bytes": edm.window_bytes(),
        "message_bytes_max": edm.message_bytes_max,
        "demands": edm.demands,
        "lanes": edm.lanes(),
        "expiry_ns": edm.expiry(rack).0,
        "horizon_units": edm.horizon_units(rack),
        "kinds": kinds,
        "targets": {
            "source": Target::Source as u8,
            "destination": Target::Destination as u8,
            "rights": Target::Rights as u8,
        },
        "registers": registers,
        "demoted_counter": DEMOTED_COUNTER,
        "demoted_reasons": DEMOTED.map(|reason| reason.name),
        "demands_counter": DEMANDS_COUNTER,
        "data_counter": DATA_COUNTER,
    });
    if rack.switch.arch.is_tofino() {
        // Egress drops what another architecture's program demotes: ingress does not know how long a frame is.
        constants["edm"]["too_long_counter"] = json!(TOO_LONG_COUNTER);
    }
}

pub(super) fn add_host(edm: &Edm, rack: &Rack, position: usize, constants: &mut Value) {
    let host = &rack.hosts[position];
    constants["edm_asks_cells"] = json!(edm.asks_cells(position));
    if let Some(asked) = edm.asked_cells(host) {
        constants["edm_asked_cells"] = json!(asked);
    }
    if host.link != host.port {
        constants["link"] = json!(host.link);
    }
}
