//! Looks up P4Info objects by name and by id.
//!
//! A name is the full control-plane name or, if unique, the alias.

use crate::nearest::nearest;
use crate::p4::config::v1::{
    Action, ActionProfile, ControllerPacketMetadata, Counter, Digest, DirectCounter, DirectMeter, MatchField,
    Meter, P4Info, Preamble, Register, Table, ValueSet, action, controller_packet_metadata::Metadata,
    match_field,
};
use std::collections::HashMap;
use thiserror::Error;

/// Why something was not found in a P4Info.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// There is no object with this name.
    #[error("there is no {kind} `{name}`{hint}")]
    NoName {
        /// Kind of object: table, action, ….
        kind: &'static str,
        /// The name requested.
        name: String,
        /// Similar names, or all there are.
        hint: String,
    },
    /// There is no object with this id.
    #[error("there is no {kind} with id {id} (0x{id:08x})")]
    NoId {
        /// Kind of object: table, action, ….
        kind: &'static str,
        /// The id requested.
        id: u32,
    },
    /// An object has no preamble, or two share a name or id.
    #[error("malformed P4Info: {0}")]
    Malformed(String),
}

/// Ids and names of one kind of object.
#[derive(Clone, Debug, Default)]
struct Index {
    by_name: HashMap<String, usize>,
    by_id: HashMap<u32, usize>,
    names: Vec<String>,
}

impl Index {
    fn of<'a>(
        kind: &'static str,
        preambles: impl Iterator<Item = Option<&'a Preamble>>,
    ) -> Result<Index, SchemaError> {
        let mut index = Index::default();
        let mut aliases = Vec::new();
        for (position, preamble) in preambles.enumerate() {
            let preamble = preamble
                .ok_or_else(|| SchemaError::Malformed(format!("{kind} number {position} has no preamble")))?;
            if index.by_name.insert(preamble.name.clone(), position).is_some() {
                return Err(SchemaError::Malformed(format!(
                    "two of kind {kind} are named `{}`",
                    preamble.name
                )));
            }
            if index.by_id.insert(preamble.id, position).is_some() {
                return Err(SchemaError::Malformed(format!("two of kind {kind} have id {}", preamble.id)));
            }
            index.names.push(preamble.name.clone());
            aliases.push(preamble.alias.clone());
        }
        for (position, alias) in aliases.into_iter().enumerate() {
            index.by_name.entry(alias).or_insert(position);
        }
        Ok(index)
    }

    fn named(&self, kind: &'static str, name: &str) -> Result<usize, SchemaError> {
        let miss = || SchemaError::NoName { kind, name: name.into(), hint: hint(name, &self.names) };
        self.by_name.get(name).copied().ok_or_else(miss)
    }

    fn with_id(&self, kind: &'static str, id: u32) -> Result<usize, SchemaError> {
        self.by_id.get(&id).copied().ok_or(SchemaError::NoId { kind, id })
    }
}

/// What to write instead of a name that fits none of these, or several: `; did you mean …?` or `; there are: …`.
pub fn hint(wanted: &str, names: &[String]) -> String {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let close: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| last(name).contains(&last(wanted)) || last(wanted).contains(&last(name)))
        .collect();
    if !close.is_empty() {
        return format!("; did you mean {}?", close.join(" or "));
    }
    // By the last part, which people write.
    let near = nearest(&last(wanted), names.iter().map(|name| name.rsplit('.').next().unwrap_or_default()));
    let meant = near.and_then(|near| names.iter().find(|name| last(name) == near.to_lowercase()));
    match meant {
        Some(name) => format!("; did you mean {name}?"),
        None if names.is_empty() => String::new(),
        None => format!("; there are: {}", names.join(", ")),
    }
}

/// A P4Info with lookups by name and id.
#[derive(Clone, Debug)]
pub struct Schema {
    info: P4Info,
    tables: Index,
    actions: Index,
    counters: Index,
    direct_counters: Index,
    meters: Index,
    direct_meters: Index,
    registers: Index,
    headers: Index,
    profiles: Index,
    digests: Index,
    value_sets: Index,
}

macro_rules! lookups {
    ($($by_name:ident, $by_id:ident: $list:ident / $index:ident -> $type:ty = $kind:literal;)*) => {
        $(
            #[doc = concat!("The ", $kind, " of this name or alias.")]
            pub fn $by_name(&self, name: &str) -> Result<&$type, SchemaError> {
                Ok(&self.info.$list[self.$index.named($kind, name)?])
            }

            #[doc = concat!("The ", $kind, " with this id.")]
            pub fn $by_id(&self, id: u32) -> Result<&$type, SchemaError> {
                Ok(&self.info.$list[self.$index.with_id($kind, id)?])
            }
        )*
    };
}

impl Schema {
    /// Indexes a P4Info.
    pub fn new(info: P4Info) -> Result<Schema, SchemaError> {
        macro_rules! index {
            ($kind:literal, $list:ident) => {
                Index::of($kind, info.$list.iter().map(|object| object.preamble.as_ref()))?
            };
        }
        Ok(Schema {
            tables: index!("table", tables),
            actions: index!("action", actions),
            counters: index!("counter", counters),
            direct_counters: index!("direct counter", direct_counters),
            meters: index!("meter", meters),
            direct_meters: index!("direct meter", direct_meters),
            registers: index!("register", registers),
            headers: index!("controller header", controller_packet_metadata),
            profiles: index!("action profile", action_profiles),
            digests: index!("digest", digests),
            value_sets: index!("value set", value_sets),
            info,
        })
    }

    /// The P4Info itself.
    pub fn info(&self) -> &P4Info {
        &self.info
    }

    lookups! {
        table, table_by_id: tables / tables -> Table = "table";
        action, action_by_id: actions / actions -> Action = "action";
        counter, counter_by_id: counters / counters -> Counter = "counter";
        direct_counter, direct_counter_by_id: direct_counters / direct_counters -> DirectCounter = "direct counter";
        meter, meter_by_id: meters / meters -> Meter = "meter";
        direct_meter, direct_meter_by_id: direct_meters / direct_meters -> DirectMeter = "direct meter";
        register, register_by_id: registers / registers -> Register = "register";
        profile, profile_by_id: action_profiles / profiles -> ActionProfile = "action profile";
        digest, digest_by_id: digests / digests -> Digest = "digest";
        value_set, value_set_by_id: value_sets / value_sets -> ValueSet = "value set";
        header, header_by_id: controller_packet_metadata / headers -> ControllerPacketMetadata = "controller header";
    }

    /// Fields of `packet_in` or `packet_out`; empty if the program has no such header.
    pub fn header_fields(&self, name: &str) -> &[Metadata] {
        self.header(name).map_or(&[], |header| &header.metadata)
    }
}

/// Name of a program that has none of its own and comes without a file: the message's field that carries it.
pub const NAMELESS: &str = "p4_device_config";

/// A program's own name, `@pkginfo(name = "…")` in its text; `None` if it has none. Characters other than letters,
/// digits and `_` become `_`, as drivers derive paths and symbols from it. All that names programs names them so:
/// BFRuntime's `p4_name`, the driver's configuration, `p4rack deploy` and `p4rack gateway`.
pub fn program_name(info: &P4Info) -> Option<String> {
    let name = &info.pkg_info.as_ref()?.name;
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    (!name.is_empty()).then(|| name.chars().map(fits).collect())
}

/// Full name of the object with this preamble.
pub fn name_of(preamble: Option<&Preamble>) -> &str {
    preamble.map_or("", |preamble| &preamble.name)
}

/// Id of the object with this preamble.
pub fn id_of(preamble: Option<&Preamble>) -> u32 {
    preamble.map_or(0, |preamble| preamble.id)
}

/// The match kind of a key; `Unspecified` for kinds that the standard does not define.
pub fn match_type(field: &MatchField) -> match_field::MatchType {
    match field.r#match {
        Some(match_field::Match::MatchType(kind)) => {
            match_field::MatchType::try_from(kind).unwrap_or(match_field::MatchType::Unspecified)
        }
        _ => match_field::MatchType::Unspecified,
    }
}

/// The key with this name.
pub fn key<'a>(table: &'a Table, name: &str) -> Result<&'a MatchField, SchemaError> {
    table.match_fields.iter().find(|field| field.name == name).ok_or_else(|| {
        let names: Vec<String> = table.match_fields.iter().map(|field| field.name.clone()).collect();
        let hint = hint(name, &names);
        let name = format!("{name}` of table `{}", name_of(table.preamble.as_ref()));
        SchemaError::NoName { kind: "key", hint, name }
    })
}

/// The parameter with this name.
pub fn param<'a>(action: &'a Action, name: &str) -> Result<&'a action::Param, SchemaError> {
    action.params.iter().find(|param| param.name == name).ok_or_else(|| {
        let names: Vec<String> = action.params.iter().map(|param| param.name.clone()).collect();
        let hint = hint(name, &names);
        let name = format!("{name}` of action `{}", name_of(action.preamble.as_ref()));
        SchemaError::NoName { kind: "parameter", hint, name }
    })
}
