//! The P4 text: handlebars templates over the rack's model.
//!
//! `p4src/shared` and `p4src/l2` are part of every program, and have slots for protocols. A protocol fills a slot with
//! the template of that name in its own folder, or in the one below it for the way in which the architecture changes
//! registers. Its templates see only its own context, so protocols need to agree
//! on nothing but the names in the P4 text.

use super::slots::{self, LINE, METADATA, Part, REFUSAL_KEYS, SLOTS};
use super::supply::supply;
use super::{GenerateError, MULTICAST_GROUP, PRIORITY_BEST_EFFORT, columns, layout, registers};
use crate::arch::Arch;
use crate::rack::{Rack, loops, pipes};
use crate::scheme::parts::{index_constants, templates};
use crate::scheme::{Carried, Claim, Definition, EtherTypeState, PROTOCOLS, Protocol, Scheme, SchemeError};
use handlebars::Handlebars;
use p4rack_wire::EtherType;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::render::p4_header;
use serde_json::{Value, json};
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
    if let Some(problem) = slots::shared(rack, &parts) {
        let problem = format!("is not generated for {arch}: {problem}");
        return Err(SchemeError { rack: rack.name.clone(), scheme: rack.scheme(), problem }.into());
    }
    for name in METADATA {
        let structs = parts.remove(name).unwrap_or_default().into_iter();
        let structs = structs.map(|(section, fields)| json!({ "section": section, "fields": fields }));
        context[*name] = structs.collect();
    }
    let keys = parts[REFUSAL_KEYS].iter().flat_map(|(_, text)| text.lines());
    context["refusal_any"] = json!(", _".repeat(keys.count()));
    context["slots"] = slots::filled(&parts);
    Ok(columns::aligned(&layout::indented(&render(&templates, supply(arch).main, &context)?)))
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

/// The protocols' parts for each slot, in the protocols' order.
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
    let passes = || rack.protocols.iter().filter_map(|protocol| protocol.pass_bits(rack));
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
    let (left, loop_port) = (loops::left_bits(rack), loops::loop_port(rack).ok().flatten());
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
        "instances": declared(instances.clone()),
        "egress_frame_instances": declared(instances.iter().copied().filter(|(_, name)| *name != "packet_out").collect()),
        "emits": emitted.map(|(_, name)| emit(name)).collect::<Vec<_>>().join(LINE),
        "carries": !carried.is_empty(),
        "carried_instances": of_ingress.iter().map(|(name, what)| instance(name, *what)).collect::<Vec<_>>().join(LINE),
        "carried_emits": of_ingress.iter().map(|(name, _)| emit(name)).collect::<Vec<_>>().join(LINE),
        "egress_instances": declared(of_egress.collect()),
        "egress_emits": leaving.map(emit).collect::<Vec<_>>().join(LINE),
        "ether_type_constants": rows(&constants, |name, number| {
            format!("const bit<16> {name} = 0x{number:04X};")
        }),
        "next_headers": rows(&next, |name, state| format!("            {name} : {state};")),
        "tagged_headers": rows(&tagged, |name, state| format!("            {name} : {state};")),
        "protocols": rack.protocols.iter().any(|one| !one.definition().templates().is_empty()),
        "passes": passes().next().is_some() || pipes::are_several(rack),
        "shared": rack.has_shared_ports(),
        "pass_padding": arch.pass_bits().saturating_sub(left),
        "loop_port": loop_port,
        "joint_passes": passes().count() > 1,
        "strips": loop_port.is_some() && matches!(&*rack.protocols, [sole] if sole.strips_passes(arch)),
        "pipes": pipes::are_several(rack),
        "carried_bits": loops::carried_bits(left + later),
    })
}

/// Declarations of headers, given as types and names.
fn declared(instances: Vec<(&str, &str)>) -> String {
    rows(&instances, |kind, name| format!("    {kind} {name};"))
}

/// The declaration of a header, with its meaning.
fn instance(name: &str, (kind, doc): (&str, &str)) -> String {
    if doc.is_empty() { format!("    {kind} {name};") } else { format!("    {kind} {name}; // {doc}") }
}

/// One line per pair.
fn rows<T: Copy>(pairs: &[(&str, T)], line: impl Fn(&str, T) -> String) -> String {
    pairs.iter().map(|(name, other)| line(name, *other)).collect::<Vec<_>>().join(LINE)
}

/// The program's own name: an identifier, because targets derive paths and symbols from it.
pub(super) fn program_name(scheme: Scheme) -> String {
    scheme.name().replace(['-', '+'], "_")
}
