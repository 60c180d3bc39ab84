//! Slots: places in a program where protocols have their parts.

use crate::rack::Rack;
use crate::scheme::Protocol;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The slots, each with the separator between the parts of two protocols. A part that needs an empty line before it
/// begins with one.
pub(super) const SLOTS: &[(&str, &str)] = &[
    // The protocol's sentences in the program's first lines.
    ("banner", LINE),
    // Constants and types.
    ("constants", LINE),
    // Constants of queues above best effort.
    ("classes", LINE),
    // The parser: its first assignments, its look-ahead before Ethernet's header is read (`transition select …`, all
    // but the default), VLANs with a state of their own, further states.
    ("parsed", LINE),
    ("foreseen", LINE),
    ("vlans", LINE),
    ("states", LINE),
    // Controls of the protocol, in front of the switch's own, which apply them.
    ("controls", "\n\n"),
    // Declarations of ingress for a protocol: meters, and then instances of its controls.
    ("meters", LINE),
    ("objects", LINE),
    // The action for accepted sources: its parameters, its statements.
    ("accept_parameters", PARAMETER),
    ("accept", LINE),
    // The same of the one for known destinations.
    ("forward_parameters", PARAMETER),
    ("forward", LINE),
    // Frames that a protocol handles alone: a condition, and the statements for them.
    ("own_frames", " || "),
    ("own", LINE),
    // Statements of ingress for all other frames, before and after their destination is known; and which frames need no
    // destination, because the controller or the switch itself sends them to a protocol.
    ("admit", LINE),
    ("schedule", LINE),
    ("steers", CONDITION),
    // Where statements are tables of a pipeline, they are branches of one condition instead: statements that come
    // first; for frames of the controller, for accepted frames before their destination is looked up (`if … else`), for
    // those that have one (`} else if …`); further statements at each refusal, and for an accepted frame; which frames
    // to one host need not pass egress (`&& …`). Which frames have a part in `schedule`, as the parser sees it: where
    // each protocol says so, a frame passes one of them alone. Behind `schedule`: which frames are best effort, and the
    // statements for the others.
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
    // Egress: states of its parser, its declarations for a protocol, its statements; the IPv4 header whose checksum it
    // computes.
    ("egress_states", LINE),
    ("egress_objects", LINE),
    ("egress", LINE),
    ("sum_header", ""),
    // Where a frame's head returns as a copy behind a header: that header's fields, and their values.
    (HEAD, LINE),
    ("head_values", ", "),
    // The first byte of a head that crosses to another pipe of a chip as it is: the pass that it comes in for.
    ("crossing_mark", ""),
    // Types of headers that frames carry from ingress to egress (`Protocol::carried`).
    ("carried_types", LINE),
    // The parser again: its notes on a frame's arrival time, in this pass or before another one.
    ("came", LINE),
    ("came_before", LINE),
    // Fields that a chip's compiler is to keep apart.
    ("containers", LINE),
    // State that a frame carries to its next pass: the fields, their values, and how the parser reads them; and the
    // field in which a protocol has the number of the pass.
    ("pass_fields", LINE),
    ("pass_values", ", "),
    ("pass_taken", LINE),
    // Further conditions on frames that leave the switch for good, beside the one that no other pass follows (`&& …`).
    ("stays", ""),
    (PASS_NAMED, LINE),
    // State carried between the third and later passes: the fields, and their initial values.
    ("later_fields", LINE),
    ("later_first", LINE),
];
/// The slots with the fields of a struct for each protocol: in `metadata_t` of ingress and in `egress_metadata_t`, by the
/// protocol's section.
pub(super) const METADATA: &[&str] = &["metadata", "egress_metadata"];
/// The slot with a part for a protocol's own frames alone, and the one with the condition that says which these are.
const BRANCHES: &str = "schedule";
const FRAMES: &str = "frames";
/// Header of a returning head, in front of the frame's own; egress knows one such header.
const HEAD: &str = "head_fields";
/// The slot for a protocol that has the number of a frame's pass in a field of its own. Passes of another one would have none.
const PASS_NAMED: &str = "pass_named";
/// Slots for one protocol: two parts would be meaningless.
const SOLE: &[&str] = &["sum_header"];
/// The slot with a key per line.
pub(super) const REFUSAL_KEYS: &str = "refusal_keys";
pub(super) const LINE: &str = "\n";
const CONDITION: &str = " ||\n            ";
const PARAMETER: &str = ",\n        ";

/// Names parts that several protocols have although a program can have only one; continues a sentence about the
/// program.
pub(super) fn shared(rack: &Rack, parts: &BTreeMap<&'static str, Vec<Part>>) -> Option<String> {
    let arch = rack.switch.arch;
    let filled = |slot: &str, section: &str| parts[slot].iter().any(|(whose, _)| *whose == section);
    let of = |has: &dyn Fn(&dyn Protocol, &str) -> bool| -> Vec<&'static str> {
        let having = rack.protocols.iter().filter(|one| has(one.as_ref(), one.definition().section()));
        having.map(|one| one.definition().section()).collect()
    };
    let carries = || format!("headers that a frame carries to egress (`Protocol::carried`, slot `{HEAD}`)");
    let sole =
        SOLE.iter().map(|slot| (format!("a part for the slot `{slot}`"), of(&|_, own| filled(slot, own))));
    let carried = of(&|one, _| !one.carried(arch).is_empty());
    let heads = of(&|_, own| filled(HEAD, own));
    let passes = of(&|one, own| {
        filled(PASS_NAMED, own) || !parts[PASS_NAMED].is_empty() && one.pass_bits(rack).is_some()
    });
    let all = sole.chain([
        (carries(), carried),
        (carries(), heads),
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
/// different sides of a condition share stages. `None` if they don't form such branches.
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

/// A protocol's part in a slot, with the protocol's section.
pub(super) type Part = (&'static str, String);
