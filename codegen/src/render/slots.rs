//! Slots: places in a program where protocols have their parts.

use crate::rack::Rack;
use crate::scheme::Protocol;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The slots, each with the separator between the parts of two protocols. A part that needs an empty line before it
/// begins with one.
pub(super) const SLOTS: &[(&str, &str)] = &[
    // What is said of it in the first lines.
    ("banner", LINE),
    // Constants and types.
    ("constants", LINE),
    // Constants of queues above best effort.
    ("classes", LINE),
    // The parser: what it sets first, what it looks at before Ethernet's header is read (`transition select …`, all but the
    // default), VLANs with a state of their own, further states.
    ("parsed", LINE),
    ("foreseen", LINE),
    ("vlans", LINE),
    ("states", LINE),
    // Controls of the protocol, in front of the switch's own, which apply them.
    ("controls", "\n\n"),
    // What ingress declares for a protocol: meters, and then instances of its controls.
    ("meters", LINE),
    ("objects", LINE),
    // The action for accepted sources: its parameters, its statements.
    ("accept_parameters", PARAMETER),
    ("accept", LINE),
    // The same of the one for known destinations.
    ("forward_parameters", PARAMETER),
    ("forward", LINE),
    // Frames that a protocol keeps to itself: a condition, and what is done with them.
    ("own_frames", " || "),
    ("own", LINE),
    // Statements of ingress for all other frames, before and after their destination is known; and which frames need no
    // destination, because the controller or the switch itself sends them to a protocol.
    ("admit", LINE),
    ("schedule", LINE),
    ("steers", CONDITION),
    // Where statements are tables of a pipeline, they stand side by side instead, as branches of one condition: what is computed
    // first; for frames of the controller, for accepted frames before their destination is looked at (`if … else`), for those that have one
    // (`} else if …`); what is done beside each refusal, and once a frame is accepted; which frames to one host need not
    // pass egress (`&& …`). Which frames have a part in `schedule`, as the parser sees it: where each protocol says so, a frame
    // passes one of them alone. Behind `schedule`: which frames are best effort, and what becomes of the others.
    ("begin", LINE),
    ("controller", LINE),
    ("requests", LINE),
    ("claims", LINE),
    ("refused", LINE),
    ("accepted", LINE),
    ("past_egress", ""),
    (FRAMES, " || "),
    ("best_effort", LINE),
    ("verdict", LINE),
    // The table of refusals: keys that a protocol adds, entries; whether a frame that has no reason yet is to be looked for
    // (`|| …`), and which of a protocol's own frames are to be dropped.
    (REFUSAL_KEYS, LINE),
    ("refusal_entries", LINE),
    ("refusable", ""),
    ("kept", " && "),
    // Egress: states of its parser, what it declares for a protocol, its statements; the IPv4 header whose checksum it computes.
    ("egress_states", LINE),
    ("egress_objects", LINE),
    ("egress", LINE),
    ("sum_header", ""),
    // Where a frame's head goes back as a copy behind a header: the fields of that, and what stands in them.
    (HEAD, LINE),
    ("head_values", ", "),
    // Types of headers that frames carry from ingress to egress (`Protocol::carried`).
    ("carried_types", LINE),
    // The parser again: what it notes of when a frame came, now or before another pass.
    ("came", LINE),
    ("came_before", LINE),
    // Fields that a chip's compiler is to keep apart.
    ("containers", LINE),
    // What a frame takes along to its next pass: the fields, what stands in them, and how the parser takes it; and where a
    // protocol has the pass in one of its fields.
    ("pass_fields", LINE),
    ("pass_values", ", "),
    ("pass_taken", LINE),
    // What has to hold of frames that leave for good, beside what says of all frames that they make no other pass (`&& …`).
    ("stays", ""),
    (PASS_NAMED, LINE),
    // What only passes behind the second one leave for each other: the fields, and what stands in them before.
    ("later_fields", LINE),
    ("later_first", LINE),
];
/// The slots with the fields of a struct for each protocol: in `metadata_t` of ingress and in `egress_metadata_t`, by the
/// protocol's section.
pub(super) const METADATA: &[&str] = &["metadata", "egress_metadata"];
/// The slot with a part for a protocol's own frames alone, and the one with the condition that says which these are.
const BRANCHES: &str = "schedule";
const FRAMES: &str = "frames";
/// What a frame of one protocol takes to egress before its own headers; egress knows no other beside it.
const HEAD: &str = "head_fields";
/// The slot for a protocol that has the number of a frame's pass in a field of its own. Passes of another one would have none.
const PASS_NAMED: &str = "pass_named";
/// Slots for one protocol: two parts side by side mean nothing.
const SOLE: &[&str] = &["sum_header"];
/// The slot with a key per line.
pub(super) const REFUSAL_KEYS: &str = "refusal_keys";
pub(super) const LINE: &str = "\n";
const CONDITION: &str = " ||\n            ";
const PARAMETER: &str = ",\n        ";

/// What several protocols have of which a program has one; continues a sentence about the program.
pub(super) fn shared(rack: &Rack, parts: &BTreeMap<&'static str, Vec<Part>>) -> Option<String> {
    let arch = rack.switch.arch;
    let filled = |slot: &str, section: &str| parts[slot].iter().any(|(whose, _)| *whose == section);
    let of = |has: &dyn Fn(&dyn Protocol, &str) -> bool| -> Vec<&'static str> {
        let having = rack.protocols.iter().filter(|one| has(one.as_ref(), one.definition().section()));
        having.map(|one| one.definition().section()).collect()
    };
    let sole =
        SOLE.iter().map(|slot| (format!("a part for the slot `{slot}`"), of(&|_, own| filled(slot, own))));
    let carried = of(&|one, own| !one.carried(arch).is_empty() || filled(HEAD, own));
    let passes = of(&|one, own| {
        filled(PASS_NAMED, own) || !parts[PASS_NAMED].is_empty() && one.pass_bits(arch).is_some()
    });
    let all = sole.chain([
        (format!("headers that a frame carries to egress (`Protocol::carried`, slot `{HEAD}`)"), carried),
        (format!("another pass, whose number is in the slot `{PASS_NAMED}`"), passes),
    ]);
    let (what, sections) = all.into_iter().find(|(_, sections)| sections.len() > 1)?;
    Some(format!(
        "{} have {what}, and a program has room for one: use one of them alone",
        sections.join(" and ")
    ))
}

/// The contents of each slot.
pub(super) fn filled(parts: &BTreeMap<&str, Vec<Part>>) -> Value {
    let branches = branches(&parts[BRANCHES], &parts[FRAMES]);
    let joined = SLOTS.iter().map(|(name, between)| {
        let texts: Vec<&str> = parts[name].iter().map(|(_, text)| text.as_str()).collect();
        let text = branches.clone().filter(|_| *name == BRANCHES).unwrap_or_else(|| texts.join(between));
        ((*name).to_owned(), json!(text))
    });
    Value::Object(joined.collect::<Map<String, Value>>())
}

/// Parts of several protocols as branches of one condition; the last one has all frames that are no other's. Tables on
/// different sides of a condition share stages. `None` if that is not how they stand.
fn branches(parts: &[Part], frames: &[Part]) -> Option<String> {
    let ((_, last), others) = parts.split_last()?;
    if others.is_empty() {
        return None;
    }
    let branch = |(section, part): &Part| {
        let (_, frames) = frames.iter().find(|(whose, _)| whose == section)?;
        Some(format!("if ({frames}) {{\n{part}\n        }} else "))
    };
    let others: Option<String> = others.iter().map(branch).collect();
    Some(format!("        {}{{\n{last}\n        }}", others?))
}

/// What a protocol, by its section, has in a slot.
pub(super) type Part = (&'static str, String);
