//! Entities by name, as P4Info defines them, with values in readable notation.
//!
//! ```text
//!  table     entries, actions
//!  profile   members and groups of action profiles
//!  cells     counters, meters, registers
//!  others    multicast groups, clone sessions, digests, value sets
//! ```

mod cells;
mod data;
mod others;
mod profile;
mod table;

pub use cells::{Colors, CounterItem, MeterItem, RegisterItem, show_data};
pub use data::{Counts, MeterUnit, Rates};
pub use others::{CloneItem, DigestItem, MulticastItem, PlaceItem, ReplicaItem, ValueSetItem};
pub use profile::{GroupItem, GroupMember, MemberItem};
pub use table::{ActionItem, Mode, SizeOf, TableItem};

use crate::error::CtrlError;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::nearest::nearest;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{Entity, PacketReplicationEngineEntry};
use p4rack_p4rt::schema::{Schema, SchemaError};
use serde::{Deserialize, Serialize};

/// An entity of a switch, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Item {
    /// A table entry, or a table's default entry.
    TableEntry(TableItem),
    /// A member of an action profile.
    Member(MemberItem),
    /// A group of an action profile.
    Group(GroupItem),
    /// A cell of a counter, or the counter of a table entry.
    Counter(CounterItem),
    /// A cell of a meter, or the meter of a table entry.
    Meter(MeterItem),
    /// A cell of a register.
    Register(RegisterItem),
    /// A multicast group.
    Multicast(MulticastItem),
    /// A clone session.
    Clone(CloneItem),
    /// Configuration of a digest.
    Digest(DigestItem),
    /// The members of a parser value set.
    ValueSet(ValueSetItem),
}

impl Item {
    /// The P4Runtime message of the item.
    pub fn entity(&self, schema: &Schema) -> Result<Entity, CtrlError> {
        let kind = match self {
            Item::TableEntry(item) => EntityKind::TableEntry(item.message(schema)?),
            Item::Member(item) => EntityKind::ActionProfileMember(item.message(schema)?),
            Item::Group(item) => EntityKind::ActionProfileGroup(item.message(schema)?),
            Item::Counter(item) => item.message(schema)?,
            Item::Meter(item) => item.message(schema)?,
            Item::Register(item) => EntityKind::RegisterEntry(item.message(schema)?),
            Item::Multicast(item) => replication(Type::MulticastGroupEntry(item.message()?)),
            Item::Clone(item) => replication(Type::CloneSessionEntry(item.message()?)),
            Item::Digest(item) => EntityKind::DigestEntry(item.message(schema)?),
            Item::ValueSet(item) => EntityKind::ValueSetEntry(item.message(schema)?),
        };
        Ok(Entity { entity: Some(kind) })
    }

    /// The item of a P4Runtime message. An error means that the P4Info is not the program's.
    pub fn of(schema: &Schema, entity: &Entity) -> Result<Item, CtrlError> {
        Ok(match &entity.entity {
            Some(EntityKind::TableEntry(entry)) => Item::TableEntry(TableItem::of(schema, entry)?),
            Some(EntityKind::ActionProfileMember(member)) => Item::Member(MemberItem::of(schema, member)?),
            Some(EntityKind::ActionProfileGroup(group)) => Item::Group(GroupItem::of(schema, group)?),
            Some(EntityKind::CounterEntry(entry)) => Item::Counter(CounterItem::of(schema, entry)?),
            Some(EntityKind::DirectCounterEntry(entry)) => {
                Item::Counter(CounterItem::of_direct(schema, entry)?)
            }
            Some(EntityKind::MeterEntry(entry)) => Item::Meter(MeterItem::of(schema, entry)?),
            Some(EntityKind::DirectMeterEntry(entry)) => Item::Meter(MeterItem::of_direct(schema, entry)?),
            Some(EntityKind::RegisterEntry(entry)) => Item::Register(RegisterItem::of(schema, entry)?),
            Some(EntityKind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
                Some(Type::MulticastGroupEntry(group)) => Item::Multicast(MulticastItem::of(group)),
                Some(Type::CloneSessionEntry(session)) => Item::Clone(CloneItem::of(session)),
                None => return Err(unknown()),
            },
            Some(EntityKind::DigestEntry(entry)) => Item::Digest(DigestItem::of(schema, entry)?),
            Some(EntityKind::ValueSetEntry(set)) => Item::ValueSet(ValueSetItem::of(schema, set)?),
            Some(EntityKind::ExternEntry(_)) | None => return Err(unknown()),
        })
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::TableEntry(item) => item.fmt(f),
            Item::Member(item) => item.fmt(f),
            Item::Group(item) => item.fmt(f),
            Item::Counter(item) => item.fmt(f),
            Item::Meter(item) => item.fmt(f),
            Item::Register(item) => item.fmt(f),
            Item::Multicast(item) => item.fmt(f),
            Item::Clone(item) => item.fmt(f),
            Item::Digest(item) => item.fmt(f),
            Item::ValueSet(item) => item.fmt(f),
        }
    }
}

fn replication(r#type: Type) -> EntityKind {
    EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(r#type) })
}

fn unknown() -> CtrlError {
    CtrlError::Input("the switch answered with an entity that P4Runtime's v1 does not know".into())
}

impl From<SchemaError> for CtrlError {
    fn from(error: SchemaError) -> CtrlError {
        CtrlError::Input(error.to_string())
    }
}

/// The element with this name, or the only one whose name ends in it: `dstAddr` for `hdr.ethernet.dstAddr`.
fn by_name<'a, T>(
    what: &str,
    wanted: &str,
    list: &'a [T],
    name: impl Fn(&T) -> &str,
) -> Result<&'a T, CtrlError> {
    if let Some(found) = list.iter().find(|item| name(item) == wanted) {
        return Ok(found);
    }
    let ending = format!(".{wanted}");
    let mut close = list.iter().filter(|item| name(item).ends_with(&ending));
    match (close.next(), close.next()) {
        (Some(found), None) => Ok(found),
        _ => {
            let names: Vec<&str> = list.iter().map(&name).collect();
            let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
            let near =
                nearest(&last(wanted), names.iter().map(|name| name.rsplit('.').next().unwrap_or_default()));
            let help = match names.iter().find(|name| Some(last(name)) == near) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "it has none".to_owned(),
                None => format!("there are: {}", names.join(", ")),
            };
            Err(CtrlError::Input(format!("{what} has no `{wanted}`; {help}")))
        }
    }
}

/// ` key=value key=value`, to append to a name.
fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    pairs.into_iter().map(|(name, value)| format!(" {name}={value}")).collect()
}

#[cfg(test)]
mod tests;
