//! Context of EDM's templates for stateful ALUs.

use super::times::UNIT_BYTES;
use super::{Edm, Mode, calendar};
use crate::rack::{Rack, loops, pipes};
use serde_json::{Value, json};

/// Values of a port's number: `PORT_COUNT` of the P4 text.
const PORTS: usize = 512;
/// Bits that a frame carries to its next pass: the fields of the slot `pass_fields`.
pub(super) const PASS_BITS: u32 = 56;
/// Bits carried between the third and later passes: the fields of the slot `later_fields`.
pub(super) const LATER_PASS_BITS: u32 = 80;
/// Bits of the number of a ring of a link.
const CLASS_BITS: u32 = 3;

/// Adds the context that only the templates for stateful ALUs need.
pub(super) fn add(edm: &Edm, rack: &Rack, context: &mut Value) {
    let (cells, lanes) = (edm.cell_count(rack), edm.lanes());
    let cell_bits = cells.next_power_of_two().ilog2();
    let lane_bits = lanes.ilog2();
    context["cell_type"] = json!(format!("bit<{cell_bits}>"));
    context["cell_index"] = json!(format!(
        "meta.edm.cell[{}:{}] ++ meta.edm.answer ++ meta.edm.id[{}:0]",
        cell_bits - 1,
        lane_bits + 1,
        lane_bits - 1
    ));
    context["free_lanes"] = json!((edm.demands..lanes).collect::<Vec<u32>>());
    context["lane_mask"] = json!(lanes - 1);
    context["parts"] = json!([
        { "name": "write", "op": "EDM_OP_WRITE", "answer": false },
        { "name": "answer", "op": "EDM_OP_ANSWER", "answer": true },
    ]);
    context["requests"] = json!([
        { "name": "read", "ranges": [{ "totals": "1 .. EDM_MESSAGE", "state": "parse_edm_good_request" }] },
        { "name": "modify", "ranges": [{ "totals": "EDM_WORD        ", "state": "parse_edm_good_request" }] },
    ]);
    let (chunk, window) = (u64::from(edm.chunk_bytes), u64::from(edm.window_bytes()));
    context["chunk_and_units"] = json!(format!("32w{}", chunk + UNIT_BYTES - 1));
    context["window_and_units"] = json!(format!("32w{}", window + UNIT_BYTES - 1));
    context["behind_but_units"] = json!(window + 1 - UNIT_BYTES);
    context["behind_and_one"] = json!(window + 1);
    context["behind_bytes"] = json!("EDM_WINDOW");
    context["window_high"] = json!(window.ilog2() - 1);
    context["link_index"] = json!("meta.edm.to[15:0]");
    let last_link = (PORTS + rack.breakout_links() - 1) as u64;
    let managed = |name: &str, last: u64| {
        let upper = name.to_uppercase();
        json!({
            "name": name,
            "target": format!("EDM_TARGET_{upper}"),
            "last": last,
            "read_op": format!("EDM_OP_READ_{upper}"),
            "write_op": format!("EDM_OP_WRITE_{upper}"),
        })
    };
    // A reset writes nothing.
    context["ways"] = json!([
        { "way": "read", "op": "read", "values": false },
        { "way": "write", "op": "write", "values": true },
        { "way": "reset", "op": "write", "values": false },
    ]);
    let source = edm.mode.looks_at_sources().then(|| managed("source", last_link));
    let others = [managed("destination", last_link), managed("rights", cells - 1)];
    context["managed"] = json!(source.into_iter().chain(others).collect::<Vec<Value>>());
    // Clocks one after the other answer with times: a wait would have to be added before the next one.
    let chained = edm.mode == Mode::Timed;
    context["chained"] = json!(chained);
    for clock in context["clocks"].as_array_mut().into_iter().flatten() {
        let is_source = clock["side"] == "source";
        let (of, side) = if is_source { ("from", "SOURCE") } else { ("to", "DESTINATION") };
        clock["index"] = json!(format!("meta.edm.{of}[15:0]"));
        clock["wait"] = json!(format!("meta.edm.{of}_wait"));
        clock["chained"] = json!(chained);
        clock["answer"] = json!(match (chained, is_source) {
            (false, _) => format!("meta.edm.{of}_wait ="),
            (true, true) => "meta.edm.earliest = (bit<32>)".to_owned(),
            (true, false) => "meta.edm.begins = (bit<32>)".to_owned(),
        });
        clock["read_op"] = json!(format!("EDM_OP_READ_{side}"));
        clock["write_op"] = json!(format!("EDM_OP_WRITE_{side}"));
    }
    if edm.claims(rack) {
        add_claims(edm, rack, context);
    }
    // Whether a demand may take another pass.
    let is_late = edm.mode.asks_by_window() || edm.claims(rack);
    context["passes_demands"] = json!(is_late || pipes::are_several(rack));
    if pipes::are_several(rack) {
        context["pending"] = json!(edm.claims(rack));
        // Bits of `step`, as the P4 text numbers them.
        for (name, condition) in [
            ("lane_here", "[1:1] == 0"),
            ("lane_elsewhere", "[1:1] == 1"),
            ("clock_here", "[2:2] == 0"),
            ("settles", "[3:3] == 1"),
            ("settles_nothing", "[3:3] == 0"),
        ] {
            context[name] = json!(format!("meta.edm.step{condition}"));
        }
        let home = loops::way_to(rack, pipes::pipe_of(rack.switch.cpu_port));
        context["controller_home"] = json!(home);
        context["owned_lanes"] = json!(edm.pair_lanes(rack).next_power_of_two().max(1024));
    }
    match edm.mode {
        Mode::TimedDst | Mode::Timed => {}
        Mode::Calendar => calendar::add_tables(edm, rack, context),
        Mode::Matched => add_rings(edm, rack, context),
    }
}

/// Context of a host's share of a link: a register of claimed time, in front of those of rights.
fn add_claims(edm: &Edm, rack: &Rack, context: &mut Value) {
    let (chunk, window) = (u64::from(edm.chunk_bytes), u64::from(edm.window_bytes()));
    let claim = |side: &str, of: &str| {
        json!({
            "side": side,
            "claim": format!("claim_{side}"),
            "index": format!("meta.edm.{of}[15:0]"),
            "time": format!("{of}_claim"),
            "flag": format!("{of}_unclaimed"),
            "unclaimed": format!("meta.edm.{of}_unclaimed"),
        })
    };
    let source = (edm.mode == Mode::Timed).then(|| claim("source", "from"));
    let claims: Vec<Value> = source.into_iter().chain([claim("destination", "to")]).collect();
    // Data leaves in the frame's direction, or returns.
    let way = |what: &str, way: &str| {
        let side = |side: &Value| match (way, side == "source") {
            ("on", true) | ("back", false) => "source",
            _ => "destination",
        };
        let time = |claim: &Value| json!({ "time": claim["time"], "side": side(&claim["side"]) });
        let shift = if what == "window" { format!(" << {}", edm.window.ilog2()) } else { String::new() };
        let times: Vec<Value> = claims.iter().map(time).collect();
        json!({ "what": what, "way": way, "times": times, "shift": shift })
    };
    context["claim_ways"] =
        json!([way("chunk", "on"), way("window", "on"), way("chunk", "back"), way("window", "back")]);
    // Passes in another pipe have the flag in a bit of their number.
    let bit = if pipes::are_several(rack) { "[0:0]" } else { "" };
    let unclaimed = claims
        .iter()
        .map(|claim| format!("meta.edm.{}{bit} == 1", claim["flag"].as_str().unwrap_or_default()));
    context["unclaimed"] = json!(unclaimed.collect::<Vec<String>>().join(" && "));
    context["claims"] = json!(claims);
    // What of a frame `due` compares, and what it keeps: two values together.
    let (due_from, due_at) = match edm.mode == Mode::Timed {
        true => ("now", "(int<32>) meta.edm.begins"),
        false => ("earliest", "(int<32>) meta.edm.earliest + meta.edm.to_wait"),
    };
    context["due_from"] = json!(due_from);
    context["due_at"] = json!(due_at);
    context["behind"] = json!("chunk");
    context["behind_but_units"] = json!(chunk + 1 - UNIT_BYTES);
    context["behind_and_one"] = json!(chunk + 1);
    context["behind_bytes"] = json!("EDM_CHUNK");
    context["two_chunks"] = json!(2 * chunk);
    context["window_more"] = json!(chunk as i64 - window as i64);
    context["last_offset"] = json!(window - chunk);
    let short = "parse_edm_short_request";
    context["requests"] = json!([
        { "name": "read", "ranges": [
            { "totals": "1 .. EDM_CHUNK  ", "state": short },
            { "totals": "1 .. EDM_MESSAGE", "state": "parse_edm_good_request" },
        ] },
        { "name": "modify", "ranges": [{ "totals": "EDM_WORD        ", "state": short }] },
    ]);
}

/// The same of `matched`.
fn add_rings(edm: &Edm, rack: &Rack, context: &mut Value) {
    let most = edm.class_limits();
    for (n, class) in context["classes"].as_array_mut().into_iter().flatten().enumerate() {
        class["mark"] = json!(1 << n);
        class["most"] = match n + 1 == most.len() {
            true => json!("_"),
            false => json!(format!("0 &&& 0x{:08X}", u32::MAX << most[n].ilog2().min(31))),
        };
    }
    let (link_bits, ring_bits) = (edm.ring_links(rack).ilog2(), edm.ring_demands(rack).ilog2());
    let ring = format!("hdr.came.edm_class[{}:0] ++ meta.edm.to_rings[{}:0]", CLASS_BITS - 1, link_bits - 1);
    context["place_index"] = json!(format!("{ring} ++ meta.edm.at[{}:0]", ring_bits - 1));
    context["ring_index"] = json!(ring);
    context["ring_type"] = json!(format!("bit<{}>", CLASS_BITS + link_bits));
    context["place_type"] = json!(format!("bit<{}>", CLASS_BITS + link_bits + ring_bits));
    context["ring_ends"] = json!([
        { "end": "tail", "moves": "goes in", "writer": "demands that wait" },
        { "end": "head", "moves": "comes out", "writer": "frames that serve demands" },
    ]);
    let word = |word: &str, field: &str, doc: &str| {
        json!({
            "word": word,
            "put": format!("put_{word}"),
            "take": format!("take_{word}"),
            "field": field,
            "doc": doc,
            "result": format!("meta.edm.{field}"),
        })
    };
    context["ring_words"] = json!([
        word("demand", "demand", "its hosts and its id"),
        word("offset", "next", "where in its message the window begins"),
        word("bytes", "bytes", "the window's bytes")
    ]);
    let slowest = edm.rates(rack).first().copied().unwrap_or(1);
    let window = edm.grant_units(rack, edm.window_bytes().into(), slowest);
    context["ahead"] = json!(window * u64::from(edm.ahead));
}
