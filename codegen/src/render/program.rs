//! The P4 text: handlebars templates over the rack's model.
//!
//! `p4src/shared` and `p4src/l2` are part of every program, and have slots for protocols. A protocol fills a slot with
//! the template of that name in its own folder, or in the one below it for the way in which the architecture changes
//! registers. Its templates see only its own context, so protocols need to agree
//! on nothing but the names in the P4 text.

use super::supply::supply;
use super::{GenerateError, MULTICAST_GROUP, PRIORITY_BEST_EFFORT, layout, registers};
use crate::arch::Arch;
use crate::rack::{Rack, loops};
use crate::scheme::parts::{index_constants, templates};
use crate::scheme::{Carried, Claim, Definition, EtherTypeState, PROTOCOLS, Protocol, Scheme};
use handlebars::Handlebars;
use p4rack_wire::EtherType;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::render::p4_header;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The templates of all architectures and schemes.
const TEMPLATES: &[(&str, &str)] = templates![
    "shared/banner",
    "shared/constants",
    "shared/headers",
    "shared/parser",
    "shared/deparser",
    "l2/tables",
    "l2/best_effort_meter",
];

/// The slots, each with the separator between the parts of two protocols. A part that needs an empty line before it
/// begins with one.
pub(crate) const SLOTS: &[(&str, &str)] = &[
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
    // What ingress declares for a protocol: instances of its controls, and meters.
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
    // first; for accepted frames before their destination is looked at (`if … else`), for those that have one
    // (`} else if …`); what is done beside each refusal, and once a frame is accepted; which frames to one host need not
    // pass egress (`&& …`). Which frames have a part in `schedule`, as the parser sees it: where each protocol says so, a frame
    // passes one of them alone. Behind `schedule`: which frames are best effort, and what becomes of the others.
    ("begin", LINE),
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
    ("head_fields", LINE),
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
    ("pass_named", LINE),
    // What only passes behind the second one leave for each other: the fields, and what stands in them before.
    ("later_fields", LINE),
    ("later_first", LINE),
];
/// The slots with the fields of a struct for each protocol: in `metadata_t` of ingress and in `egress_metadata_t`, by the
/// protocol's section.
const METADATA: &[&str] = &["metadata", "egress_metadata"];
/// The slot with a part for a protocol's own frames alone, and the one with the condition that says which these are.
const BRANCHES: &str = "schedule";
const FRAMES: &str = "frames";
/// The slot with a key per line.
const REFUSAL_KEYS: &str = "refusal_keys";
const LINE: &str = "\n";
const CONDITION: &str = " ||\n            ";
const PARAMETER: &str = ",\n        ";

/// Renders the P4 program alone, unchecked.
pub fn render_p4(rack: &Rack, scheme: Scheme, arch: Arch) -> Result<String, GenerateError> {
    render_rack(&rack.on(arch).under(scheme)?)
}

/// The program of a rack where all of its protocols run.
pub(super) fn render_rack(rack: &Rack) -> Result<String, GenerateError> {
    let arch = rack.switch.arch;
    let templates = templates_of(rack, arch)?;
    let mut context = context(rack);
    context["arch"] = json!(arch.name());
    let mut parts = parts(rack, &templates, &context)?;
    for name in METADATA {
        let structs = parts.remove(name).unwrap_or_default().into_iter();
        let structs = structs.map(|(section, fields)| json!({ "section": section, "fields": fields }));
        context[*name] = structs.collect();
    }
    let keys = parts[REFUSAL_KEYS].iter().flat_map(|(_, text)| text.lines());
    context["refusal_any"] = json!(", _".repeat(keys.count()));
    context["slots"] = slots(&parts);
    Ok(layout::indented(&render(&templates, supply(arch).main, &context)?))
}

/// The term that `arch` supplies for a concept.
pub(super) fn term(arch: Arch, name: &str) -> Result<String, GenerateError> {
    render(parsed(arch)?, name, &Value::Null)
}

fn render(templates: &Handlebars<'_>, name: &str, context: &Value) -> Result<String, GenerateError> {
    templates.render(name, context).map_err(|error| GenerateError::Template(Box::new(error)))
}

fn parsed(arch: Arch) -> Result<&'static Handlebars<'static>, GenerateError> {
    let parsed = match arch {
        Arch::V1model => &*V1MODEL,
        Arch::Tna | Arch::T2na => &*TNA,
    };
    parsed.as_ref().map_err(|problem| GenerateError::Program(problem.clone()))
}

/// Parsed once: parsing all templates takes longer than rendering one program.
static V1MODEL: LazyLock<Result<Handlebars<'static>, String>> = LazyLock::new(|| parse(Arch::V1model));
static TNA: LazyLock<Result<Handlebars<'static>, String>> = LazyLock::new(|| parse(Arch::Tna));

/// Parses all templates, with those of one architecture.
fn parse(arch: Arch) -> Result<Handlebars<'static>, String> {
    let supply = supply(arch);
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    register(&mut handlebars, TEMPLATES)?;
    register(&mut handlebars, supply.templates)?;
    for (name, text) in terms(supply.terms)? {
        register(&mut handlebars, &[(&name, &text)])?;
    }
    for protocol in PROTOCOLS {
        add_protocol(&mut handlebars, *protocol, arch)?;
    }
    Ok(handlebars)
}

/// The templates for a rack: those already parsed, and those of its protocols that are not in [`PROTOCOLS`].
fn templates_of(rack: &Rack, arch: Arch) -> Result<Cow<'static, Handlebars<'static>>, GenerateError> {
    let mut templates = Cow::Borrowed(parsed(arch)?);
    let definitions = rack.protocols.iter().map(|protocol| protocol.definition());
    let known = |one: &dyn Definition| PROTOCOLS.iter().any(|known| known.section() == one.section());
    for definition in definitions.filter(|definition| !known(*definition)) {
        add_protocol(templates.to_mut(), definition, arch).map_err(GenerateError::Program)?;
    }
    Ok(templates)
}

fn add_protocol(
    handlebars: &mut Handlebars<'static>,
    protocol: &dyn Definition,
    arch: Arch,
) -> Result<(), String> {
    let section = protocol.section();
    register(handlebars, protocol.templates())?;
    for (name, text) in terms(protocol.terms())? {
        register(handlebars, &[(&format!("{section}/{name}"), &text)])?;
    }
    let folders = [section.to_owned(), format!("{section}/{}", arch.registers())];
    for (path, file) in protocol.registers() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !folders.iter().any(|one| one == folder) {
            continue;
        }
        for (name, values) in registers::declared(file).map_err(|error| format!("{path}: {error}"))? {
            let text = handlebars.render(supply(arch).register, &values);
            let text = text.map_err(|error| format!("{path}: {name}: {error}"))?;
            let partial = format!("{folder}/{name}");
            if handlebars.has_template(&partial) {
                return Err(format!("{path}: {name}: there is a template {partial} already"));
            }
            register(handlebars, &[(&partial, &text)])?;
        }
    }
    Ok(())
}

fn register(handlebars: &mut Handlebars<'static>, templates: &[(&str, &str)]) -> Result<(), String> {
    for (name, text) in templates {
        handlebars.register_partial(name, text).map_err(|error| format!("template {name}: {error}"))?;
    }
    Ok(())
}

/// Partials of a file of terms, by name.
fn terms(text: &str) -> Result<BTreeMap<String, String>, String> {
    toml::from_str(text).map_err(|error| format!("terms: {error}"))
}

/// What the protocols have for each slot, in their order.
fn parts(
    rack: &Rack,
    templates: &Handlebars<'_>,
    context: &Value,
) -> Result<BTreeMap<&'static str, Vec<Part>>, GenerateError> {
    let names = SLOTS.iter().map(|(name, _)| name).chain(METADATA);
    let mut slots: BTreeMap<&str, Vec<Part>> = names.map(|name| (*name, Vec::new())).collect();
    for protocol in &rack.protocols {
        let mut context = context.clone();
        context["others"] = others(rack, protocol.as_ref());
        for (key, value) in protocol.context(rack).as_object().into_iter().flatten() {
            context[key] = value.clone();
        }
        for (name, parts) in &mut slots {
            let section = protocol.definition().section();
            let own = format!("{section}/{}/{name}", rack.switch.arch.registers());
            let template =
                [own, format!("{section}/{name}")].into_iter().find(|one| templates.has_template(one));
            if let Some(template) = template {
                let text = render(templates, &template, &context)?;
                parts
                    .extend(Some((section, text.trim_end().to_owned())).filter(|(_, text)| !text.is_empty()));
            }
        }
    }
    Ok(slots)
}

/// The contents of each slot.
fn slots(parts: &BTreeMap<&str, Vec<Part>>) -> Value {
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
type Part = (&'static str, String);

/// The EtherTypes by which other protocols' frames are known, whatever VLAN they come in.
fn others(rack: &Rack, protocol: &dyn Protocol) -> Value {
    let section = protocol.definition().section();
    let others = rack.protocols.iter().filter(|other| other.definition().section() != section);
    let claimed = |one: &EtherTypeState, other: &dyn Protocol| {
        other.claims().iter().any(|(_, claim)| *claim == Claim::EtherType(one.value))
    };
    let types = others.flat_map(|other| {
        let types = other.ether_types().into_iter();
        types.filter(|one| claimed(one, other.as_ref())).collect::<Vec<_>>()
    });
    types.map(|one| json!({ "constant": one.constant, "state": one.state })).collect()
}

/// The context of all templates.
fn context(rack: &Rack) -> Value {
    let headers = || rack.protocols.iter().flat_map(|protocol| protocol.headers());
    let descs = [Ethernet::DESC, Vlan::DESC].into_iter().chain(headers().map(|header| header.desc));
    let arch = rack.switch.arch;
    let passes = || rack.protocols.iter().filter_map(|protocol| protocol.pass_bits(arch));
    let own = [("packet_in_t", "packet_in"), ("packet_out_t", "packet_out")];
    let common = [(Ethernet::DESC.p4_name, "ethernet"), (Vlan::DESC.p4_name, "vlan")];
    let theirs = headers().filter_map(|header| Some((header.desc.p4_name, header.instance?)));
    let instances: Vec<(&str, &str)> = own.into_iter().chain(common).chain(theirs).collect();
    // The controller's packets come with one of its headers and leave with the other.
    let emitted = instances.iter().filter(|(_, name)| *name != "packet_out");
    let types: Vec<_> = rack.protocols.iter().flat_map(|protocol| protocol.ether_types()).collect();
    let constants = types.iter().map(|one| (one.constant, one.value));
    let constants: Vec<(&str, u16)> =
        std::iter::once(("ETHERTYPE_VLAN", EtherType::VLAN.0)).chain(constants).collect();
    let states = types.iter().map(|one| (one.constant, one.state));
    let tagged: Vec<(&str, &str)> = states.chain([("default", "accept")]).collect();
    let next: Vec<(&str, &str)> =
        std::iter::once(("ETHERTYPE_VLAN", "parse_vlan")).chain(tagged.iter().copied()).collect();
    let carried: Vec<&Carried> = rack.protocols.iter().flat_map(|protocol| protocol.carried(arch)).collect();
    let of_ingress = carried.iter().filter_map(|one| Some((one.instance, (one.ingress?, one.doc))));
    let of_ingress: Vec<(&str, (&str, &str))> = of_ingress.collect();
    let of_egress = carried.iter().filter_map(|one| Some((one.egress?, one.instance)));
    let leaving = carried.iter().filter(|one| one.leaves).map(|one| one.instance);
    let emit = |name: &str| format!("        packet.emit(hdr.{name});");
    let left = 8 + passes().sum::<u32>();
    let later = rack.protocols.iter().filter_map(|protocol| protocol.later_pass_bits(arch)).sum::<u32>();
    json!({
        "program": program_name(rack.scheme()),
        "rack": rack.name,
        "version": env!("CARGO_PKG_VERSION"),
        "cpu_port": rack.switch.cpu_port,
        "time_unit_ns": rack.switch.time_unit_ns,
        "group": MULTICAST_GROUP,
        "priority_best_effort": PRIORITY_BEST_EFFORT,
        "drop_constants": index_constants("DROP", &rack.drop_reasons(), rack.switch.arch),
        "drop_names": rack.drop_reasons().iter().map(|one| format!("DROP_{}", one.name.to_uppercase())).collect::<Vec<_>>(),
        "headers": descs.map(|desc| p4_header(&desc)).collect::<Vec<String>>(),
        "instances": rows(&instances, |name, width, what| format!("    {name:width$} {what};")),
        "emits": emitted.map(|(_, name)| emit(name)).collect::<Vec<_>>().join(LINE),
        "carries": !carried.is_empty(),
        "carried_instances": of_ingress.iter().map(|(name, what)| instance(name, *what)).collect::<Vec<_>>().join(LINE),
        "carried_emits": of_ingress.iter().map(|(name, _)| emit(name)).collect::<Vec<_>>().join(LINE),
        "egress_instances": rows(&of_egress.collect::<Vec<_>>(), |name, width, what| format!("    {name:width$} {what};")),
        "egress_emits": leaving.map(emit).collect::<Vec<_>>().join(LINE),
        "ether_type_constants": rows(&constants, |name, width, number| {
            format!("const bit<16> {name:width$} = 0x{number:04X};")
        }),
        "next_headers": rows(&next, |name, width, state| format!("            {name:width$} : {state};")),
        "tagged_headers": rows(&tagged, |name, width, state| format!("            {name:width$} : {state};")),
        "protocols": !rack.protocols.is_empty(),
        "passes": passes().next().is_some(),
        "shared": rack.has_shared_ports(),
        "pass_padding": arch.pass_bits().saturating_sub(left),
        "loop_port": loops::loop_port(rack).ok().flatten(),
        "carried_bits": loops::carried_bits(left + later),
    })
}

/// The declaration of a header, with its meaning.
fn instance(name: &str, (kind, doc): (&str, &str)) -> String {
    if doc.is_empty() { format!("    {kind} {name};") } else { format!("    {kind} {name}; // {doc}") }
}

/// One line per pair, with aligned columns.
fn rows<T: Copy>(pairs: &[(&str, T)], line: impl Fn(&str, usize, T) -> String) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    pairs.iter().map(|(name, other)| line(name, width, *other)).collect::<Vec<_>>().join(LINE)
}

/// The program's own name: an identifier, because targets derive paths and symbols from it.
pub(super) fn program_name(scheme: Scheme) -> String {
    scheme.name().replace(['-', '+'], "_")
}
