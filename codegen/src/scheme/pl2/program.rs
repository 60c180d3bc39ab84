//! PL2's part of the P4 text.

use super::check::WAITS_MAX;
use super::{Clocks, DEMOTED, EARLY_SLOTS, Mode, Pl2, REFUSED};
use super::{PRIORITY_CONTROL, PRIORITY_SCHEDULED};
use crate::arch::Arch;
use crate::rack::{Rack, loops, pipes};
use crate::scheme::Header;
use crate::scheme::parts::{declarations, index_constants, templates};
use p4rack_wire::HeaderDesc;
use p4rack_wire::ethernet::overhead;
use p4rack_wire::pl2::{Control, Kind, Management, NOT_NOW, Side, VERSION};
use serde_json::{Value, json};

/// PL2's templates.
pub(super) const TEMPLATES: &[(&str, &str)] = templates![
    "pl2/banner",
    "pl2/constants",
    "pl2/classes",
    "pl2/meters",
    "pl2/objects",
    "pl2/schedule",
    // Parts of its controls.
    "pl2/counters",
    "pl2/answers",
    "pl2/lanes_doc",
    // Where statements change registers.
    "pl2/registers/constants",
    "pl2/registers/metadata",
    "pl2/registers/states",
    "pl2/registers/accept_parameters",
    "pl2/registers/accept",
    "pl2/registers/forward_parameters",
    "pl2/registers/forward",
    "pl2/registers/controls",
    "pl2/registers/steers",
    "pl2/registers/admit",
    "pl2/registers/egress",
    "pl2/registers/apply",
    "pl2/registers/lanes",
    "pl2/registers/claim",
    "pl2/registers/occupied",
    "pl2/registers/counter",
    "pl2/registers/clock",
    "pl2/registers/calendar",
    "pl2/registers/schedule_calendar",
    // Where stateful ALUs do.
    "pl2/alu/constants",
    "pl2/alu/metadata",
    "pl2/alu/parsed",
    "pl2/alu/came",
    "pl2/alu/came_before",
    "pl2/alu/containers",
    "pl2/alu/vlans",
    "pl2/alu/states",
    "pl2/alu/accept_parameters",
    "pl2/alu/accept",
    "pl2/alu/forward_parameters",
    "pl2/alu/forward",
    "pl2/alu/controls",
    "pl2/alu/durations",
    "pl2/alu/source",
    "pl2/alu/pass_fields",
    "pl2/alu/pass_values",
    "pl2/alu/pass_taken",
    "pl2/alu/pipes",
    "pl2/alu/begin",
    "pl2/alu/controller",
    "pl2/alu/requests",
    "pl2/alu/claims",
    "pl2/alu/accepted",
    "pl2/alu/refused",
    "pl2/alu/best_effort",
    "pl2/alu/verdict",
    "pl2/alu/refusal_keys",
    "pl2/alu/refusal_entries",
    "pl2/alu/refusable",
    "pl2/alu/egress_objects",
    "pl2/alu/egress",
    "pl2/alu/egress_states",
    "pl2/alu/frames",
    "pl2/alu/past_egress",
    "pl2/alu/apply",
    "pl2/alu/count",
    "pl2/alu/counter",
    "pl2/alu/clock",
    "pl2/alu/verdicts",
];

/// PL2's registers.
pub(super) const REGISTERS: &[(&str, &str)] = declarations![
    "pl2/registers/lanes",
    "pl2/registers/counter",
    "pl2/registers/clock",
    "pl2/registers/calendar",
    "pl2/alu/lanes",
    "pl2/alu/counter",
    "pl2/alu/clock",
];

/// Bits that a pass leaves for the next one where an RSV takes its time at the source first: when that begins.
pub(super) const SOURCE_BITS: u32 = 32;
/// Values of a port's number: `PORT_COUNT` of the P4 text.
const PORTS: usize = 512;

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
    let alu = rack.switch.arch.is_tofino();
    let breakout = rack.breakout_links() > 0;
    // A compiler warns of constants without a use.
    let refused = index_constants("REFUSED", &REFUSED, rack.switch.arch);
    let calendar = clock && pl2.clocks == Clocks::Calendar;
    let refused = refused.lines().filter(|line| calendar || !line.contains("REFUSED_CALENDAR"));
    let full_frame = pl2.frame_wire_bytes() - overhead::FCS - overhead::PREAMBLE_GAP;
    let mut context = json!({
        "counter": !clock,
        "clock": clock,
        "calendar": calendar,
        "chain": pl2.clocks == Clocks::Chain,
        "dst": pl2.clocks == Clocks::Dst,
        "notify": pl2.notify_receiver,
        "alu": alu,
        "bytes": clock && !alu,
        "frames": !clock && !alu,
        "breakout": breakout,
        "links": if breakout { "LINK_COUNT" } else { "PORT_COUNT" },
        "breakout_links": rack.breakout_links(),
        "priority_control": PRIORITY_CONTROL,
        "priority_scheduled": PRIORITY_SCHEDULED,
        "demoted_constants": index_constants("DEMOTED", &DEMOTED, rack.switch.arch),
        "refused_constants": refused.collect::<Vec<_>>().join("\n"),
        "kind_constants": kind_constants(pl2.notify_receiver),
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
        "horizon_log2": pl2.horizon_units(rack).ilog2(),
        "part_wire_bytes": pl2.part_wire_bytes(),
        "full_frame": full_frame,
        "frame_min": overhead::MIN_FRAME,
        "frame_overhead": overhead::FCS + overhead::PREAMBLE_GAP,
        "drop_threshold": pl2.drop_threshold_slots,
    });
    context["source_links"] = json!(breakout && pl2.reserves_at_source());
    context["slots_type"] = json!("bit<32>");
    context["sides"] = json!([{ "side": "in", "does": "source" }, { "side": "out", "does": "destination" }]);
    if alu {
        add_alu(pl2, rack, &mut context);
    }
    context
}

/// Values that only the templates for stateful ALUs need.
fn add_alu(pl2: &Pl2, rack: &Rack, context: &mut Value) {
    let counter = pl2.mode == Mode::Counter;
    let chain = !counter && pl2.clocks == Clocks::Chain;
    let source_first = pl2.takes_source_first(rack);
    context["source_first"] = json!(source_first);
    context["source_horizon_log2"] = json!(pl2.source_horizon_units(rack).ilog2());
    context["waits_for_source"] = json!(chain && !source_first);
    for side in context["sides"].as_array_mut().into_iter().flatten() {
        let out = side["side"] == "out";
        side["reserves"] = json!(out || pl2.reserves_at_source());
        side["first"] = json!(source_first && !out);
        let sender = if source_first { "hdr.ethernet.srcAddr" } else { "meta.pl2.rate_in" };
        side["sender"] = json!(if out { "meta.pl2.rate_out" } else { sender });
        side["times"] = json!(pl2.slot_entries(rack, source_first && !out).next_power_of_two().max(1024));
        side["from"] = json!(if chain && out { "earliest" } else { "now" });
        side["chained"] = json!(chain);
    }
    let sides = context["sides"].as_array().into_iter().flatten();
    let (first, later): (Vec<Value>, Vec<Value>) = sides.cloned().partition(|side| side["first"] == true);
    (context["first_sides"], context["later_sides"]) = (json!(first), json!(later));
    let both = pl2.starts_at_both(rack);
    let waits = pl2.waits(rack).into_iter();
    let waits = waits.map(|(side, suffix, wait)| json!({ "side": side, "suffix": suffix, "wait": wait }));
    context["waits"] = waits.collect();
    let sides = |both: bool| if both { &["in", "out"][..] } else { &["out"] };
    context["both"] = json!(both);
    let start = |side: &&str| {
        json!({
            "side": side,
            "set": format!("set_start_{side}"),
            "look": format!("look_at_start_{side}"),
        })
    };
    context["starts"] = json!(sides(both).iter().map(start).collect::<Vec<_>>());
    context["weighed"] = json!(sides(both || chain).iter().map(start).collect::<Vec<_>>());
    context["windows"] = json!(windows(both));
    context["any_window"] = json!(if both { "_, _" } else { "_" });
    let home = || loops::way_to(rack, pipes::pipe_of(rack.switch.cpu_port));
    context["anywhere"] = json!(if pipes::are_several(rack) { ", _" } else { "" });
    context["controller_home"] = json!(pipes::are_several(rack).then(home));
    context["look_again"] = json!(if counter { "look_again()" } else { "pass_again(PASS_AGAIN)" });
    let over = |side: &str| format!("meta.pl2.{}_{side}", if counter { "over" } else { "closes" });
    context["over_in"] = json!(over("in"));
    context["over_out"] = json!(over("out"));
    let named = |name: &str, op: &str| json!({ "name": name, "op": op });
    let mut requests = vec![named("reservation", "OP_RESERVE")];
    if counter {
        requests.push(named("release", "OP_RELEASE"));
    }
    context["requests"] = json!(requests);
    context["managed"] = json!([
        named("read_in", "OP_READ_IN"),
        named("read_out", "OP_READ_OUT"),
        named("write_in", "OP_WRITE_IN"),
        named("write_out", "OP_WRITE_OUT"),
    ]);
    let hosts = rack.hosts.len();
    context["controller"] = json!(hosts);
    // The first generation's parser: a field that it assigns twice has the bits of both values.
    context["merges"] = json!(rack.switch.arch == Arch::Tna);
    context["last_host"] = json!(hosts - 1);
    context["last_link"] = json!(PORTS + rack.breakout_links() - 1);
    context["last_cell"] = json!(pl2.cells_a_pair() - 1);
    context["times"] = json!(pl2.time_entries(rack).next_power_of_two().max(1024));
    let rates = pl2.rates(rack).len();
    context["rate_pairs"] = json!(((rates + 1) * rates).next_power_of_two().max(256));
    let bits = pl2.index_bits(rack);
    context["claim_bits"] = json!(bits.all());
    context["lane_bits"] = json!(bits.all() - 1);
    let pair =
        format!("meta.pl2.source[{}:0] ++ meta.pl2.destination[{}:0]", bits.source - 1, bits.destination - 1);
    context["cell_index"] = json!(format!("{pair} ++ meta.pl2.cell[{}:0]", bits.cell - 1));
    context["lane_index"] = json!(match bits.cell {
        1 => pair,
        more => format!("{pair} ++ meta.pl2.cell[{}:1]", more - 1),
    });
    context["wait_sign"] = json!(if counter { 15 } else { 31 });
    context["wait_zeros"] = json!(if counter { "16w0 ++ " } else { "" });
    if counter {
        // Differences of 16 bits have signs.
        context["most_slots"] = json!(WAITS_MAX - 1);
        context["slots_type"] = json!("bit<16>");
        context["t"] = json!(u64::from(pl2.t_slots).min(WAITS_MAX - 1));
        context["drop_threshold"] = json!(u64::from(pl2.drop_threshold_slots).min(WAITS_MAX - 1));
    }
}

/// Verdicts on a burst by the windows of its reservation's start, as keys of a table in the order of its entries. With
/// a window for each port it is too early if it is for one of them, and too late if it is for both. A burst that is
/// neither in time nor early is late.
fn windows(both: bool) -> Vec<Value> {
    const EARLY: &str = "0 &&& EARLY"; // once what is in time is gone
    let window =
        |window: &str, early: bool, late: bool| json!({ "window": window, "early": early, "late": late });
    if !both {
        return vec![window("IN_TIME", false, false), window(EARLY, true, false), window("_", false, true)];
    }
    let mut windows = vec![window("IN_TIME, IN_TIME", false, false)];
    let mut each_way = |of: &str, other: &str, early: bool| {
        for at in [format!("{of}, {other}"), format!("{other}, {of}")] {
            windows.push(window(&at, early, false));
        }
    };
    each_way("IN_TIME", EARLY, true);
    each_way("IN_TIME", "_", false);
    each_way(EARLY, "_", true);
    windows.push(window("_, _", false, true));
    windows
}

/// Constants of the kinds; that of NOTIFY only if it is used.
fn kind_constants(notify: bool) -> String {
    let kinds = Kind::ALL
        .iter()
        .filter(|(kind, _)| notify || *kind != Kind::Notify)
        .map(|(kind, name)| (*name, *kind as u8));
    let rows: Vec<(&str, u8)> = std::iter::once(("PL2_VERSION", VERSION)).chain(kinds).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<4> {name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
