//! PL2's part of the P4 text.

use super::{Clocks, DEMOTED, EARLY_SLOTS, HORIZON_UNITS, Mode, Pl2, REFUSED};
use super::{PRIORITY_CONTROL, PRIORITY_SCHEDULED};
use crate::rack::Rack;
use crate::scheme::Header;
use crate::scheme::parts::{index_constants, templates};
use p4rack_wire::HeaderDesc;
use p4rack_wire::ethernet::overhead;
use p4rack_wire::pl2::{Control, Kind, Management, NOT_NOW, Side, VERSION};
use serde_json::{Value, json};

/// PL2's templates.
pub(super) const TEMPLATES: &[(&str, &str)] = templates![
    "pl2/banner",
    "pl2/constants",
    "pl2/time_constants",
    "pl2/mode_constants",
    "pl2/classes",
    "pl2/metadata",
    "pl2/mode_metadata",
    "pl2/states",
    "pl2/counters",
    "pl2/accept_doc",
    "pl2/accept_parameters",
    "pl2/accept",
    "pl2/forward_parameters",
    "pl2/forward",
    "pl2/controls",
    "pl2/begin",
    "pl2/manage",
    "pl2/controller",
    "pl2/admit",
    "pl2/schedule",
    "pl2/egress",
    // Parts of these.
    "pl2/lanes",
    "pl2/claim",
    "pl2/occupied",
    "pl2/counter",
    "pl2/clock",
    "pl2/calendar",
    "pl2/schedule_calendar",
    "pl2/answers",
];

/// PL2's terms.
pub(super) const TERMS: &str = include_str!("../../../../p4src/pl2/terms.toml");

/// The fields that all PL2 frames begin with.
const START: HeaderDesc = HeaderDesc {
    p4_name: "pl2_start_t",
    name: "Start",
    doc: "What every PL2 frame starts with.",
    fields: Control::DESC.fields.split_at(2).0,
};

pub(super) fn headers() -> Vec<Header> {
    vec![
        Header { desc: START, instance: None },
        Header { desc: Control::DESC, instance: Some("pl2_control") },
        Header { desc: Management::DESC, instance: Some("pl2_management") },
    ]
}

pub(super) fn context(pl2: &Pl2, rack: &Rack) -> Value {
    let (cell_shift, cells) = pl2.calendar_cells(rack);
    let clock = pl2.mode == Mode::Clock;
    let parts = pl2.slot_parts();
    let full_frame = pl2.frame_wire_bytes() - overhead::FCS - overhead::PREAMBLE_GAP;
    json!({
        "counter": !clock,
        "clock": clock,
        "calendar": clock && pl2.clocks == Clocks::Calendar,
        "chain": pl2.clocks == Clocks::Chain,
        "dst": pl2.clocks == Clocks::Dst,
        "notify": pl2.notify_receiver,
        "breakout": rack.breakout_links() > 0,
        "breakout_links": rack.breakout_links(),
        "priority_control": PRIORITY_CONTROL,
        "priority_scheduled": PRIORITY_SCHEDULED,
        "demoted_constants": index_constants("DEMOTED", &DEMOTED),
        "refused_constants": index_constants("REFUSED", &REFUSED),
        "kind_constants": kind_constants(),
        "target_in": Side::In as u8,
        "target_out": Side::Out as u8,
        "calendars": ["in", "out"],
        "not_now": format!("0x{NOT_NOW:08X}"),
        "cell_shift": cell_shift,
        "runs": (1..cells).collect::<Vec<u64>>(),
        "halvings": [32, 16, 8, 4, 2, 1],
        "k": pl2.k.saturating_mul(pl2.slot_parts),
        "parts": pl2.slot_parts > 1,
        "slots": pl2.k,
        "slot_parts": pl2.slot_parts,
        "vid": pl2.vid,
        "cells": pl2.cells_a_pair(),
        "cell_count": pl2.cell_count(rack),
        "lane_count": pl2.cell_count(rack) / 2,
        "t": u64::from(pl2.t_slots) * parts,
        "early": EARLY_SLOTS * parts,
        "late": pl2.late_slots() * parts,
        "horizon_log2": HORIZON_UNITS.ilog2(),
        "part_wire_bytes": pl2.part_wire_bytes(),
        "full_frame": full_frame,
        "frame_min": overhead::MIN_FRAME,
        "frame_overhead": overhead::FCS + overhead::PREAMBLE_GAP,
        "drop_threshold": pl2.drop_threshold_slots,
    })
}

fn kind_constants() -> String {
    let kinds = Kind::ALL.iter().map(|(kind, name)| (*name, *kind as u8));
    let rows: Vec<(&str, u8)> = std::iter::once(("PL2_VERSION", VERSION)).chain(kinds).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<4> {name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
