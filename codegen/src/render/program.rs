//! The P4 text: handlebars templates over the rack's model.

use super::arch::{Arch, Supply};
use super::{
    GenerateError, MULTICAST_GROUP, PRIORITY_BEST_EFFORT, PRIORITY_CONTROL, PRIORITY_SCHEDULED, pl2_of,
};
use crate::drops::{DEMOTED, DropReason, REFUSED, drop_reasons};
use crate::rack::{Clocks, EARLY_SLOTS, HORIZON_UNITS, Rack, Scheme};
use handlebars::Handlebars;
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};
use p4rack_wire::pl2::{Control, Kind, Management, NOT_NOW, Side, VERSION};
use p4rack_wire::{HeaderDesc, render::p4_header};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[ $( ($name, include_str!(concat!("../../../p4src/", $name, ".p4.hbs"))) ),* ]
    };
}

pub(super) use templates;

/// The templates of all architectures.
const TEMPLATES: &[(&str, &str)] = templates![
    "shared/banner",
    "shared/constants",
    "shared/headers",
    "shared/parser",
    "shared/ingress",
    "shared/deparser",
    "l2/tables",
    "l2/best_effort",
    "l2/best_effort_meter",
    "pl2/constants",
    "pl2/accept_source",
    "pl2/forward",
    "pl2/lanes",
    "pl2/claim",
    "pl2/occupied",
    "pl2/counter",
    "pl2/clock",
    "pl2/calendar",
    "pl2/schedule_calendar",
    "pl2/answers",
    "pl2/manage",
    "pl2/admit",
    "pl2/schedule",
];

/// PL2's terms.
const PL2_TERMS: &str = include_str!("../../../p4src/pl2/terms.toml");

/// What every PL2 frame starts with, whatever follows.
const START: HeaderDesc = HeaderDesc {
    p4_name: "pl2_start_t",
    name: "Start",
    doc: "What every PL2 frame starts with.",
    fields: Control::DESC.fields.split_at(2).0,
};

/// Renders the P4 program alone, unchecked.
pub fn render_p4(rack: &Rack, scheme: Scheme, arch: Arch) -> Result<String, GenerateError> {
    render(arch, arch.supply().main, &context(rack, scheme)?)
}

/// What `arch` calls one of the things that it supplies a term for.
pub(super) fn term(arch: Arch, name: &str) -> Result<String, GenerateError> {
    render(arch, name, &Value::Null)
}

fn render(arch: Arch, template: &str, context: &Value) -> Result<String, GenerateError> {
    let parsed = match arch {
        Arch::V1model => &*V1MODEL,
    };
    let templates = parsed.as_ref().map_err(|problem| GenerateError::Program(problem.clone()))?;
    templates.render(template, context).map_err(|error| GenerateError::Template(Box::new(error)))
}

/// Parsed once: parsing all templates takes longer than rendering one program.
static V1MODEL: LazyLock<Result<Handlebars<'static>, String>> =
    LazyLock::new(|| parse(&Arch::V1model.supply()));

/// Parses all templates, with one architecture's.
fn parse(supply: &Supply) -> Result<Handlebars<'static>, String> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    let files =
        TEMPLATES.iter().chain(supply.templates).map(|&(name, text)| (name.to_owned(), text.to_owned()));
    for (name, text) in files.chain(terms(supply.terms)?).chain(terms(PL2_TERMS)?) {
        handlebars.register_partial(&name, text).map_err(|error| format!("template {name}: {error}"))?;
    }
    Ok(handlebars)
}

/// The partials of a file of terms, by name.
fn terms(text: &str) -> Result<BTreeMap<String, String>, String> {
    toml::from_str(text).map_err(|error| format!("terms: {error}"))
}

fn context(rack: &Rack, scheme: Scheme) -> Result<Value, GenerateError> {
    let mut context = json!({
        "program": program_name(scheme),
        "rack": rack.name,
        "version": env!("CARGO_PKG_VERSION"),
        "cpu_port": rack.switch.cpu_port,
        "group": MULTICAST_GROUP,
        "priority_control": PRIORITY_CONTROL,
        "priority_scheduled": PRIORITY_SCHEDULED,
        "priority_best_effort": PRIORITY_BEST_EFFORT,
        "drop_constants": index_constants("DROP", drop_reasons(scheme)),
        "demoted_constants": index_constants("DEMOTED", &DEMOTED),
        "refused_constants": index_constants("REFUSED", &REFUSED),
        "pl2": false,
        "notify": false,
        "calendar": false,
        "shared": rack.has_shared_ports(),
        "breakout": scheme != Scheme::L2 && rack.breakout_links() > 0,
        "breakout_links": rack.breakout_links(),
        "counter": scheme == Scheme::Pl2Counter,
        "clock": scheme == Scheme::Pl2Clock,
    });
    let mut headers = vec![Ethernet::DESC, Vlan::DESC];
    if let Some(pl2) = pl2_of(rack, scheme)? {
        let (cell_shift, cells) = rack.calendar_cells();
        headers.extend([START, Control::DESC, Management::DESC]);
        for (key, value) in [
            ("pl2", json!(true)),
            ("ether_type", json!(format!("0x{:04X}", pl2.ether_type.0))),
            ("kind_constants", json!(kind_constants())),
            ("target_in", json!(Side::In as u8)),
            ("target_out", json!(Side::Out as u8)),
            ("chain", json!(pl2.clocks == Clocks::Chain)),
            ("dst", json!(pl2.clocks == Clocks::Dst)),
            ("calendar", json!(scheme == Scheme::Pl2Clock && pl2.clocks == Clocks::Calendar)),
            ("calendars", json!(["in", "out"])),
            ("not_now", json!(format!("0x{NOT_NOW:08X}"))),
            ("cell_shift", json!(cell_shift)),
            ("runs", json!((1..cells).collect::<Vec<u64>>())),
            ("halvings", json!([32, 16, 8, 4, 2, 1])),
            ("notify", json!(pl2.notify_receiver)),
            ("k", json!(pl2.k.saturating_mul(pl2.slot_parts))),
            ("parts", json!(pl2.slot_parts > 1)),
            ("slots", json!(pl2.k)),
            ("slot_parts", json!(pl2.slot_parts)),
            ("vid", json!(pl2.vid)),
            ("cells", json!(rack.cells_a_pair())),
            ("cell_count", json!(rack.cell_count())),
            ("lane_count", json!(rack.cell_count() / 2)),
            ("t", json!(u64::from(pl2.t_slots) * rack.slot_parts())),
            ("early", json!(EARLY_SLOTS * rack.slot_parts())),
            ("late", json!(rack.late_slots() * rack.slot_parts())),
            ("horizon_log2", json!(HORIZON_UNITS.ilog2())),
            ("part_wire_bytes", json!(rack.part_wire_bytes())),
            ("full_frame", json!(rack.wire_bytes(scheme) - overhead::FCS - overhead::PREAMBLE_GAP)),
            ("frame_min", json!(overhead::MIN_FRAME)),
            ("frame_overhead", json!(overhead::FCS + overhead::PREAMBLE_GAP)),
            ("drop_threshold", json!(pl2.drop_threshold_slots)),
            ("time_unit_ns", json!(rack.switch.time_unit_ns)),
        ] {
            context[key] = value;
        }
    }
    context["headers"] = headers.iter().map(p4_header).collect();
    Ok(context)
}

/// The name that the program gives itself: an identifier, since targets make paths and symbols of it.
pub(super) fn program_name(scheme: Scheme) -> String {
    scheme.name().replace('-', "_")
}

/// A constant for each reason, its place in a counter, and one for their number.
fn index_constants(prefix: &str, reasons: &[DropReason]) -> String {
    let mut rows: Vec<(String, usize, &str)> = Vec::new();
    for (index, reason) in reasons.iter().enumerate() {
        rows.push((format!("{prefix}_{}", reason.name.to_uppercase()), index, reason.doc));
    }
    rows.push((format!("{prefix}_REASONS"), reasons.len(), "how many there are"));
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, index, doc)| {
        let value = format!("{index};");
        format!("const bit<32> {name:width$} = {value:3} // {doc}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn kind_constants() -> String {
    let kinds = Kind::ALL.iter().map(|(kind, name)| (*name, *kind as u8));
    let rows: Vec<(&str, u8)> = std::iter::once(("PL2_VERSION", VERSION)).chain(kinds).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows.iter().map(|(name, value)| format!("const bit<4> {name:width$} = {value};"));
    lines.collect::<Vec<_>>().join("\n")
}
