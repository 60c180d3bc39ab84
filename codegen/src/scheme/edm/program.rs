//! EDM's part of the P4 text.

use super::times::{HEADERS, UNIT_BYTES};
use super::{CLASS_CONTROL, CLASS_DATA, DEMOTED, Edm, Mode, alu, calendar};
use crate::rack::Rack;
use crate::scheme::Header;
use crate::scheme::parts::{declarations, index_constants, templates};
use p4rack_wire::HeaderDesc;
use p4rack_wire::edm::{Control, Kind, Management, Message, Target, VERSION, WORD_BYTES};
use p4rack_wire::ethernet::overhead;
use serde_json::{Value, json};

/// EDM's templates.
pub(super) const TEMPLATES: &[(&str, &str)] = templates![
    "edm/banner",
    "edm/classes",
    "edm/constants",
    "edm/metadata",
    "edm/meters",
    "edm/objects",
    "edm/accept_parameters",
    "edm/accept",
    "edm/forward_parameters",
    "edm/forward",
    "edm/schedule",
    // Parts of its control.
    "edm/counters",
    "edm/scheduler",
    "edm/turn_around",
    "edm/grant",
    "edm/reply",
    "edm/flow_counters",
    "edm/calendar_constants",
    "edm/calendar_metadata",
    "edm/calendar_controls",
    // For architectures whose statements change registers.
    "edm/registers/constants",
    "edm/registers/metadata",
    "edm/registers/states",
    "edm/registers/steers",
    "edm/registers/admit",
    "edm/registers/controls",
    "edm/registers/egress",
    "edm/registers/apply",
    "edm/registers/shares_look",
    "edm/registers/length",
    "edm/registers/copy",
    "edm/registers/matched_begin",
    "edm/registers/matched_controls",
    "edm/registers/matched_look",
    "edm/registers/matched_schedule",
    "edm/registers/matched_waits",
    "edm/registers/calendar_begin",
    "edm/registers/calendar_controls",
    "edm/registers/calendar_look",
    "edm/registers/calendar_schedule",
    // For architectures with stateful ALUs.
    "edm/alu/accept_parameters",
    "edm/alu/accept",
    "edm/alu/forward_parameters",
    "edm/alu/forward",
    "edm/alu/constants",
    "edm/alu/metadata",
    "edm/alu/parsed",
    "edm/alu/came",
    "edm/alu/came_before",
    "edm/alu/containers",
    "edm/alu/later_fields",
    "edm/alu/later_first",
    "edm/alu/states",
    "edm/alu/controls",
    "edm/alu/begin",
    "edm/alu/requests",
    "edm/alu/accepted",
    "edm/alu/refused",
    "edm/alu/verdict",
    "edm/alu/head_fields",
    "edm/alu/head_values",
    "edm/alu/egress_states",
    "edm/alu/egress_objects",
    "edm/alu/egress",
    "edm/alu/past_egress",
    "edm/alu/pass_fields",
    "edm/alu/pass_values",
    "edm/alu/pass_taken",
    "edm/alu/stays",
    "edm/alu/apply",
    "edm/alu/metered",
    "edm/alu/replies",
    "edm/alu/pipes",
    "edm/alu/pipes_verdicts",
    "edm/alu/crossing_mark",
    "edm/alu/calendar_controls",
    "edm/alu/calendar_schedule",
    "edm/alu/matched_controls",
    "edm/alu/matched_decisions",
    "edm/alu/matched_schedule",
];

/// EDM's registers.
pub(super) const REGISTERS: &[(&str, &str)] = declarations![
    "edm/lanes",
    "edm/clocks",
    "edm/calendars",
    "edm/registers/rings",
    "edm/alu/claims",
    "edm/alu/calendars",
    "edm/alu/rings",
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
    let both = edm.mode.looks_at_sources();
    let rates = edm.rates(rack).len() as u64;
    let units = u64::from(edm.window_bytes()).div_ceil(UNIT_BYTES) + 1;
    let entries = units * if both { rates * rates } else { rates };
    let breakout = rack.breakout_links() > 0;
    let on_alu = rack.switch.arch.is_tofino();
    // Compilers warn about unused constants.
    let demoted = index_constants("EDM_DEMOTED", &DEMOTED, rack.switch.arch);
    let demoted = demoted.lines().filter(|line| !on_alu || !line.contains("EDM_DEMOTED_TOO_LONG"));
    let links = if breakout { "EDM_LINK_COUNT" } else { "PORT_COUNT" };
    let clock = |side: &str, earliest, time| {
        json!({
            "links": links,
            "link_type": if on_alu { "bit<16>" } else { "bit<32>" },
            "side": side,
            "reserve": format!("reserve_{side}"),
            "look_at": format!("look_at_{side}"),
            "write": format!("write_{side}"),
            "give_back": format!("give_back_{side}"),
            "earliest": earliest,
            "time": time,
        })
    };
    let source = source_clock.then(|| clock("source", "now", "from_time"));
    let destination =
        matches!(edm.mode, Mode::TimedDst | Mode::Timed).then(|| clock("destination", "earliest", "to_time"));
    let clocks: Vec<Value> = source.into_iter().chain(destination).collect();
    let mut context = json!({
        "alu": on_alu,
        "asks_for_all": on_alu && edm.mode.asks_by_window(),
        "cell_type": "bit<32>",
        "link_type": if on_alu { "bit<16>" } else { "bit<32>" },
        "source_clock": source_clock,
        "both": both,
        "stalls": edm.mode.asks_by_window(),
        "timed": matches!(edm.mode, Mode::TimedDst | Mode::Timed),
        // Only statements use the calendar's time at the source: they write the controller's value.
        "from_time": both && !(on_alu && edm.mode == Mode::Calendar),
        "calendar": edm.mode == Mode::Calendar,
        "matched": edm.mode == Mode::Matched,
        "clocks": clocks,
        "breakout": breakout,
        "breakout_links": rack.breakout_links(),
        "links": links,
        "class_control": CLASS_CONTROL,
        "class_data": CLASS_DATA,
        "kind_constants": kind_constants(),
        "demoted_constants": demoted.collect::<Vec<_>>().join("\n"),
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
    });
    // Whether waits are reported behind the verdicts of all protocols, which write the same headers; and whether frames are
    // counted there.
    context["replies"] = json!(on_alu && edm.mode != Mode::Calendar);
    context["counted_late"] = json!(on_alu && edm.mode == Mode::Matched);
    add_shares(edm, rack, &mut context);
    let of_mode = match edm.mode {
        Mode::TimedDst | Mode::Timed => json!({}),
        Mode::Calendar => calendar::context(edm, rack, &context),
        Mode::Matched => rings(edm, rack),
    };
    for (key, value) in of_mode.as_object().into_iter().flatten() {
        context[key] = value.clone();
    }
    if on_alu {
        alu::add(edm, rack, &mut context);
    }
    context
}

/// Context of a host's share of a link.
fn add_shares(edm: &Edm, rack: &Rack, context: &mut Value) {
    let on_alu = rack.switch.arch.is_tofino();
    // A chunk's grant depends on a clock and on rights that it changes: a stateful ALU would have to decide on both in one access.
    let shares = edm.shares && !on_alu;
    context["shares"] = json!(shares);
    // Whether time of links is claimed before rights are checked; on Tofino, registers hold it.
    context["claims"] = json!([]);
    context["behind"] = json!("window");
    // Whether the first chunk of a window asks for the next window; else each chunk asks for the next grant.
    context["windows"] = json!(edm.mode.asks_by_window() && !shares);
    // Whether a short chunk uses up all rights of its message. A stateful ALU that requests a window of several chunks in the same
    // access has no operand left for that.
    context["ends_short"] = json!(!edm.mode.asks_by_window() || shares || edm.grants_chunks(rack));
    // Whether a register in front of the rights has the time at which data is due. Early data gains nothing under `matched`.
    context["keeps_time"] = json!(edm.grants_chunks(rack) && edm.mode == Mode::Calendar);
    let slowest = edm.rates(rack).first().copied().unwrap_or(1);
    let ahead = |bytes: u32| edm.grant_units(rack, bytes.into(), slowest);
    context["chunk_ahead"] = json!(ahead(edm.chunk_bytes));
    context["window_ahead"] = json!(ahead(edm.window_bytes()));
}

/// Context of `matched` alone.
fn rings(edm: &Edm, rack: &Rack) -> Value {
    let most: Vec<u64> = edm.class_limits();
    let class = |(n, limit): (usize, &u64)| {
        let doc = match (n + 1 == most.len(), n) {
            (true, 0) => "of all messages".to_owned(),
            (true, _) => "of longer messages".to_owned(),
            _ => format!("of messages with {limit} bytes left, or less"),
        };
        let begin = match (n, n + 1 == most.len()) {
            (0, true) => "{".to_owned(),
            (_, true) => "} else {".to_owned(),
            (0, _) => format!("if (meta.edm.rest <= {limit}) {{"),
            _ => format!("}} else if (meta.edm.rest <= {limit}) {{"),
        };
        json!({ "n": n, "doc": doc, "begin": begin })
    };
    let (links, ring) = (edm.ring_links(rack), edm.ring_demands(rack));
    json!({
        "classes": most.iter().enumerate().map(class).collect::<Vec<Value>>(),
        "class_count": most.len(),
        "ring": ring,
        "ring_bits": ring.ilog2(),
        "ring_links": links,
        "link_bits": links.ilog2(),
        "rings": links * most.len() as u64,
        "ring_cells": edm.ring_cells(rack),
    })
}

fn kind_constants() -> String {
    let kinds = Kind::ALL.iter().map(|(kind, name)| (*name, *kind as u8));
    let rows: Vec<(&str, u8)> = std::iter::once(("EDM_VERSION", VERSION)).chain(kinds).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<4> {name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
