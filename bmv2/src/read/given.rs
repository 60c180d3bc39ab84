//! What the P4Info says that the JSON does not: ids, names of parts, types that controllers see, headers of packets
//! from and to the controller.

use super::Reader;
use p4rack_p4::ir::{ControllerHeader, DataTy, InstanceKind, MatchKind, Named, NewType, Ty, Unit};
use p4rack_p4rt::p4::config::v1 as pb;
use pb::action_ref::Scope;
use pb::counter_spec::Unit as CounterUnit;
use pb::p4_new_type_translation::SdnType;
use std::collections::{BTreeMap, BTreeSet};

/// Ids by name.
fn ids<'i>(preambles: impl Iterator<Item = Option<&'i pb::Preamble>>) -> BTreeMap<&'i str, u32> {
    preambles.flatten().map(|preamble| (preamble.name.as_str(), preamble.id)).collect()
}

/// Takes over the id of a name; an object without one is not the control plane's.
fn set(named: &mut Named, ids: &BTreeMap<&str, u32>) {
    match ids.get(named.name.as_str()) {
        Some(id) => named.id = Some(*id),
        None => named.hidden = true,
    }
}

impl Reader<'_> {
    /// Completes the program with the P4Info, if there is one.
    pub(super) fn apply_info(&mut self) {
        let Some(info) = self.info else { return };
        macro_rules! ids {
            ($list:ident) => {
                ids(info.$list.iter().map(|object| object.preamble.as_ref()))
            };
        }
        self.info_types(info);
        let (tables, actions) = (ids!(tables), ids!(actions));
        for table in &mut self.program.tables {
            set(&mut table.named, &tables);
            let Some(known) =
                info.tables.iter().find(|known| name_of(known.preamble.as_ref()) == table.named.name)
            else {
                continue;
            };
            for (key, field) in table.keys.iter_mut().zip(&known.match_fields) {
                key.named.id = Some(field.id);
                key.named.name.clone_from(&field.name);
                key.type_name = field.type_name.as_ref().map(|ty| ty.name.clone());
                // The file's word for both is `ternary`.
                if key.kind == MatchKind::Ternary && is_optional(field) {
                    key.kind = MatchKind::Optional;
                }
            }
        }
        for table in &mut self.program.tables {
            let known = info.tables.iter().find(|known| name_of(known.preamble.as_ref()) == table.named.name);
            let Some(known) = known else { continue };
            // The file's number is that of the entries.
            if table.entries_const {
                table.size = u64::try_from(known.size).unwrap_or(table.size);
            }
            for listed in &mut table.actions {
                let id = actions.get(self.program.actions[listed.action.0 as usize].named.name.as_str());
                let scope =
                    known.action_refs.iter().find(|known| Some(&known.id) == id).map(|known| known.scope());
                listed.table_only = scope == Some(Scope::TableOnly);
                listed.default_only = scope == Some(Scope::DefaultOnly);
            }
        }
        for action in &mut self.program.actions {
            set(&mut action.named, &actions);
            let Some(known) =
                info.actions.iter().find(|known| name_of(known.preamble.as_ref()) == action.named.name)
            else {
                continue;
            };
            for (param, field) in action.params.iter_mut().zip(&known.params) {
                param.named.id = Some(field.id);
                param.named.name.clone_from(&field.name);
                param.type_name = field.type_name.as_ref().map(|ty| ty.name.clone());
            }
        }
        for instance in &mut self.program.instances {
            let known = match &mut instance.kind {
                InstanceKind::Counter { unit, .. } => {
                    *unit = counter_unit(info.counters.iter().find_map(|counter| {
                        (name_of(counter.preamble.as_ref()) == instance.named.name).then_some(counter.spec?)
                    }));
                    ids!(counters)
                }
                InstanceKind::DirectCounter { unit, .. } => {
                    *unit = counter_unit(info.direct_counters.iter().find_map(|counter| {
                        (name_of(counter.preamble.as_ref()) == instance.named.name).then_some(counter.spec?)
                    }));
                    ids!(direct_counters)
                }
                InstanceKind::Meter { .. } => ids!(meters),
                InstanceKind::DirectMeter { .. } => ids!(direct_meters),
                InstanceKind::ActionProfile { .. } => ids!(action_profiles),
                InstanceKind::ActionSelector { max_group_size, .. } => {
                    let known = info
                        .action_profiles
                        .iter()
                        .find(|profile| name_of(profile.preamble.as_ref()) == instance.named.name);
                    *max_group_size =
                        known.map_or(0, |known| u64::try_from(known.max_group_size).unwrap_or(0));
                    ids!(action_profiles)
                }
                _ => ids!(registers),
            };
            set(&mut instance.named, &known);
        }
        let (sets, digests) = (ids!(value_sets), ids!(digests));
        self.program.value_sets.iter_mut().for_each(|value_set| set(&mut value_set.named, &sets));
        self.program.digests.iter_mut().for_each(|digest| set(&mut digest.named, &digests));
        if let Some(package) = &info.pkg_info
            && !package.name.is_empty()
        {
            self.program.name.clone_from(&package.name);
        }
        self.program.controller_headers =
            info.controller_packet_metadata.iter().map(controller_header).collect();
    }

    /// Types that controllers see in another form.
    fn info_types(&mut self, info: &pb::P4Info) {
        let Some(types) = &info.type_info else { return };
        for (name, ty) in &types.new_types {
            use pb::p4_new_type_spec::Representation;
            let (ty, translation) = match &ty.representation {
                Some(Representation::TranslatedType(translated)) => {
                    let width = match &translated.sdn_type {
                        Some(SdnType::SdnBitwidth(width)) => u32::try_from(*width).ok(),
                        _ => None,
                    };
                    let ty = Ty::Bit(self.stored_width(info, name).or(width).unwrap_or(32));
                    (ty, Some((translated.uri.clone(), width)))
                }
                _ => (Ty::Bit(self.stored_width(info, name).unwrap_or(32)), None),
            };
            self.program.new_types.push(NewType {
                name: name.clone(),
                ty,
                inner: DataTy::Scalar(ty),
                annotations: Vec::new(),
                translation,
                mappings: Vec::new(),
            });
        }
    }

    /// The width in which the program stores a translated type: that of a key or parameter.
    fn stored_width(&self, info: &pb::P4Info, name: &str) -> Option<u32> {
        let is = |ty: &Option<pb::P4NamedType>| ty.as_ref().is_some_and(|ty| ty.name == name);
        for table in &info.tables {
            let Some(at) = table.match_fields.iter().position(|field| is(&field.type_name)) else { continue };
            let own =
                self.program.tables.iter().find(|own| own.named.name == name_of(table.preamble.as_ref()));
            if let Some(key) = own.and_then(|own| own.keys.get(at)) {
                return Some(key.ty.width());
            }
        }
        for action in &info.actions {
            let Some(at) = action.params.iter().position(|param| is(&param.type_name)) else { continue };
            let own =
                self.program.actions.iter().find(|own| own.named.name == name_of(action.preamble.as_ref()));
            if let Some(param) = own.and_then(|own| own.params.get(at)) {
                return Some(param.ty.width());
            }
        }
        None
    }
}

fn is_optional(field: &pb::MatchField) -> bool {
    use pb::match_field::{Match, MatchType};
    field.r#match == Some(Match::MatchType(MatchType::Optional.into()))
}

fn name_of(preamble: Option<&pb::Preamble>) -> &str {
    preamble.map_or("", |preamble| preamble.name.as_str())
}

fn counter_unit(spec: Option<pb::CounterSpec>) -> Unit {
    match spec.map(|spec| spec.unit()) {
        Some(CounterUnit::Packets) => Unit::Packets,
        Some(CounterUnit::Bytes) => Unit::Bytes,
        _ => Unit::Both,
    }
}

fn controller_header(header: &pb::ControllerPacketMetadata) -> ControllerHeader {
    let preamble = header.preamble.clone().unwrap_or_default();
    let named = |name: &str, id: u32| Named { name: name.to_owned(), id: Some(id), ..Named::default() };
    let field = |field: &pb::controller_packet_metadata::Metadata| {
        let ty = Ty::Bit(u32::try_from(field.bitwidth).unwrap_or(0));
        (named(&field.name, field.id), ty, field.type_name.as_ref().map(|ty| ty.name.clone()))
    };
    ControllerHeader {
        named: named(&preamble.name, preamble.id),
        fields: header.metadata.iter().map(field).collect(),
        type_name: preamble.name,
    }
}

/// Widths of fields of packets from and to the controller, and of translated types.
const WIDTH_MAX: i32 = 2048;

/// Checks what the program can't: ids that two objects have, and widths.
pub(super) fn check(info: &pb::P4Info) -> Result<(), String> {
    macro_rules! distinct {
        ($($list:ident),*) => {$(
            let mut seen = BTreeSet::new();
            for preamble in info.$list.iter().filter_map(|object| object.preamble.as_ref()) {
                if !seen.insert(preamble.id) {
                    return Err(format!(
                        "the P4Info has the id {} twice in `{}`, the second time for `{}`",
                        preamble.id, stringify!($list), preamble.name
                    ));
                }
            }
        )*};
    }
    distinct!(tables, actions, action_profiles, counters, direct_counters, meters, direct_meters);
    distinct!(registers, value_sets, digests, controller_packet_metadata);
    let is_width = |width: i32| (1..=WIDTH_MAX).contains(&width);
    for header in &info.controller_packet_metadata {
        let name = name_of(header.preamble.as_ref());
        if let Some(field) = header.metadata.iter().find(|field| !is_width(field.bitwidth)) {
            return Err(format!(
                "the P4Info's field `{name}.{}` has {} bits; expected 1 to {WIDTH_MAX}",
                field.name, field.bitwidth
            ));
        }
    }
    let types = info.type_info.iter().flat_map(|types| &types.new_types);
    for (name, ty) in types {
        if let Some(pb::p4_new_type_spec::Representation::TranslatedType(ty)) = &ty.representation
            && let Some(SdnType::SdnBitwidth(width)) = ty.sdn_type
            && !is_width(width)
        {
            return Err(format!("the P4Info's type `{name}` has {width} bits; expected 1 to {WIDTH_MAX}"));
        }
    }
    Ok(())
}

/// Differences that a message lists.
const DIFFERENCES: usize = 5;

/// Checks that the P4Info is that of the program, as for text. What JSON lacks, the program's has from it.
pub(super) fn compare(info: &pb::P4Info, own: &pb::P4Info) -> Result<(), String> {
    let mut own = own.clone();
    macro_rules! take {
        ($list:ident, $($field:ident),*) => {
            for object in &mut own.$list {
                let known = info.$list.iter().find(|known| {
                    name_of(known.preamble.as_ref()) == name_of(object.preamble.as_ref())
                });
                if let Some(known) = known {
                    $(object.$field.clone_from(&known.$field);)*
                }
            }
        };
    }
    // Keys of type `error` have no width there, and one in the file.
    for table in &mut own.tables {
        let known = info
            .tables
            .iter()
            .find(|known| name_of(known.preamble.as_ref()) == name_of(table.preamble.as_ref()));
        let fields = known.map_or(&[][..], |known| &known.match_fields);
        for (key, field) in table.match_fields.iter_mut().zip(fields).filter(|(_, field)| field.bitwidth == 0)
        {
            key.bitwidth = field.bitwidth;
        }
    }
    take!(registers, type_spec);
    take!(digests, type_spec);
    take!(value_sets, r#match);
    take!(action_profiles, selector_size_semantics, weights_disallowed);
    // A control calls these itself: the file has their statements only.
    let listed: BTreeSet<u32> =
        info.tables.iter().flat_map(|table| &table.action_refs).map(|action| action.id).collect();
    let known: BTreeSet<u32> =
        own.actions.iter().filter_map(|action| Some(action.preamble.as_ref()?.id)).collect();
    let is_called = |action: &&pb::Action| {
        let id = action.preamble.as_ref().map_or(0, |preamble| preamble.id);
        action.params.is_empty() && !listed.contains(&id) && !known.contains(&id)
    };
    own.actions.extend(info.actions.iter().filter(is_called).cloned());
    let found = p4rack_p4rt::diff::differences(info, &own);
    if found.is_empty() {
        return Ok(());
    }
    let more = match found.len().saturating_sub(DIFFERENCES) {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    let shown = found[..found.len().min(DIFFERENCES)].join("\n");
    Err(format!("the P4Info is not the program's:\n{shown}{more}"))
}
