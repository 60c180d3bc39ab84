//! EDM's part of the P4 text.

use super::times::{HEADERS, UNIT_BYTES};
use super::{CLASS_CONTROL, CLASS_DATA, DEMOTED, Edm, Mode};
use crate::rack::Rack;
use crate::scheme::Header;
use crate::scheme::parts::{index_constants, templates};
use p4rack_wire::HeaderDesc;
use p4rack_wire::edm::{Control, Kind, Management, Message, Target, VERSION, WORD_BYTES};
use p4rack_wire::ethernet::overhead;
use serde_json::{Value, json};

/// EDM's templates.
pub(super) const TEMPLATES: &[(&str, &str)] = templates![
    "edm/banner",
    "edm/classes",
    "edm/constants",
    "edm/time_constants",
    "edm/metadata",
    "edm/states",
    "edm/counters",
    "edm/accept_parameters",
    "edm/accept",
    "edm/forward_parameters",
    "edm/forward",
    "edm/controls",
    "edm/begin",
    "edm/admit",
    "edm/schedule",
    "edm/registers/mode_constants",
    "edm/registers/mode_metadata",
    "edm/registers/length",
    "edm/registers/copy",
    "edm/registers/manage",
    "edm/registers/egress",
];

/// The fields that all EDM frames begin with.
const START: HeaderDesc = HeaderDesc {
    p4_name: "edm_start_t",
    name: "Start",
    doc: "What every EDM frame starts with.",
    fields: Control::DESC.fields.split_at(2).0,
};

pub(super) fn headers() -> Vec<Header> {
    vec![
        Header { desc: START, instance: None },
        Header { desc: Control::DESC, instance: Some("edm_control") },
        Header { desc: Message::DESC, instance: Some("edm_message") },
        Header { desc: Management::DESC, instance: Some("edm_management") },
    ]
}

pub(super) fn context(edm: &Edm, rack: &Rack) -> Value {
    let source_clock = edm.mode == Mode::Timed;
    let rates = edm.rates(rack).len() as u64;
    let units = u64::from(edm.window_bytes()).div_ceil(UNIT_BYTES);
    let entries = units * if source_clock { rates * rates } else { rates };
    let breakout = rack.breakout_links() > 0;
    let links = if breakout { "EDM_LINK_COUNT" } else { "PORT_COUNT" };
    let clock = |side: &str, earliest, time| {
        json!({
            "links": links,
            "register": format!("edm_{side}_free"),
            "reserve": format!("edm_reserve_{side}"),
            "look_at": format!("edm_look_at_{side}"),
            "write": format!("edm_write_{side}"),
            "earliest": earliest,
            "time": time,
        })
    };
    let source = source_clock.then(|| clock("source", "edm_now", "edm_from_time"));
    let clocks: Vec<Value> =
        source.into_iter().chain([clock("destination", "edm_earliest", "edm_to_time")]).collect();
    json!({
        "source_clock": source_clock,
        "clocks": clocks,
        "breakout": breakout,
        "breakout_links": rack.breakout_links(),
        "links": links,
        "class_control": CLASS_CONTROL,
        "class_data": CLASS_DATA,
        "kind_constants": kind_constants(),
        "demoted_constants": index_constants("EDM_DEMOTED", &DEMOTED, rack.switch.arch),
        "target_source": Target::Source as u8,
        "target_destination": Target::Destination as u8,
        "target_rights": Target::Rights as u8,
        "chunk": edm.chunk_bytes,
        "window": edm.window_bytes(),
        "message": edm.message_bytes_max,
        "word": WORD_BYTES,
        "cell_count": edm.cell_count(rack),
        "demands": edm.demands,
        "lanes_unused": edm.demands < edm.lanes(),
        "lane_bits": edm.lanes().ilog2(),
        "lane_high": edm.lanes().ilog2() - 1,
        "horizon": edm.horizon_units(rack),
        "expiry": edm.expiry_units(rack),
        "unit": UNIT_BYTES,
        "unit_rest": UNIT_BYTES - 1,
        "unit_low": UNIT_BYTES.ilog2(),
        "unit_high": 15,
        "times": entries.next_power_of_two().max(1024),
        "frame_min": overhead::MIN_FRAME,
        "frame_headers": HEADERS,
    })
}

fn kind_constants() -> String {
    let kinds = Kind::ALL.iter().map(|(kind, name)| (*name, *kind as u8));
    let rows: Vec<(&str, u8)> = std::iter::once(("EDM_VERSION", VERSION)).chain(kinds).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<4> {name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
