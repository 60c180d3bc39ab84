//! Computes the changes that bring a switch to its desired state: a pure function of both.
//!
//! A Write's updates may be carried out in any order, so changes that need one another are in different
//! phases, and each phase is written when the one before has ended:
//!
//! ```text
//!  1 delete table entries        what they refer to is free then, and full tables have room
//!  2 insert, modify members
//!  3 insert, modify groups, multicast groups, clone sessions, value sets, digests, meters
//!  4 insert, modify table entries
//!  5 delete groups, multicast groups, clone sessions, digests
//!  6 delete members
//! ```

use crate::normal::{Key, key, key_entity, normal};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, TableEntry, Update, update::Type};
use std::collections::HashMap;

/// Number of phases of a plan.
const PHASES: usize = 6;

/// A minimal set of changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Updates by phase, to be written one phase after the other.
    pub phases: [Vec<Update>; PHASES],
}

impl Changes {
    /// All changes, in an order in which they can be applied.
    pub fn iter(&self) -> impl Iterator<Item = &Update> {
        self.phases.iter().flatten()
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.phases.iter().map(Vec::len).sum()
    }

    /// Whether nothing has to change.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, kind: Type, entity: Entity) {
        let phase = match (kind, &entity.entity) {
            (Type::Delete, Some(EntityKind::TableEntry(_))) => 0,
            (Type::Delete, Some(EntityKind::ActionProfileMember(_))) => 5,
            (Type::Delete, _) => 4,
            (_, Some(EntityKind::ActionProfileMember(_))) => 1,
            (_, Some(EntityKind::TableEntry(_))) => 3,
            _ => 2,
        };
        self.phases[phase].push(Update { r#type: kind as i32, entity: Some(entity) });
    }
}

/// How entities of a kind are created and changed.
enum Life {
    /// They are inserted and deleted.
    Comes,
    /// They always exist and can only be modified and reset.
    Stays,
    /// The data plane changes them, so they are not compared.
    Lives,
}

fn life(entity: &Entity) -> Life {
    match &entity.entity {
        Some(EntityKind::TableEntry(TableEntry { is_default_action: true, .. })) => Life::Stays,
        Some(EntityKind::MeterEntry(_) | EntityKind::DirectMeterEntry(_) | EntityKind::ValueSetEntry(_)) => {
            Life::Stays
        }
        Some(
            EntityKind::CounterEntry(_) | EntityKind::DirectCounterEntry(_) | EntityKind::RegisterEntry(_),
        ) => Life::Lives,
        Some(EntityKind::ExternEntry(_)) | None => Life::Lives,
        Some(_) => Life::Comes,
    }
}

/// A request to read or delete exactly this entity.
pub fn key_of(entity: &Entity) -> Entity {
    key_entity(&normal(entity.clone()))
}

/// The changes that turn `actual` into `desired`. Counters and registers belong to the data plane and are not
/// compared; nor are constant entries.
pub fn changes(desired: &[Entity], actual: Vec<Entity>) -> Changes {
    let mut there: HashMap<Key, Entity> = HashMap::with_capacity(actual.len());
    for entity in actual {
        if !matches!(&entity.entity, Some(EntityKind::TableEntry(TableEntry { is_const: true, .. }))) {
            let entity = normal(entity);
            there.insert(key(&entity), entity);
        }
    }
    let mut changes = Changes::default();
    for entity in desired {
        let life = life(entity);
        if matches!(life, Life::Lives) {
            continue;
        }
        let wanted = normal(entity.clone());
        match there.remove(&key(&wanted)) {
            Some(found) => {
                if !same(&wanted, found) {
                    changes.push(Type::Modify, wanted);
                }
            }
            None if matches!(life, Life::Stays) => changes.push(Type::Modify, wanted),
            None => changes.push(Type::Insert, wanted),
        }
    }
    let mut rest: Vec<(Key, Entity)> = there.into_iter().collect();
    rest.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    for (_, entity) in rest {
        match life(&entity) {
            Life::Comes => changes.push(Type::Delete, key_entity(&entity)),
            Life::Stays if is_set(&entity) => changes.push(Type::Modify, key_entity(&entity)),
            Life::Stays | Life::Lives => {}
        }
    }
    changes
}

/// Whether a controller has written this entity: it is no constant entry, differs from its initial state, and is not changed
/// by the data plane.
pub fn is_written(entity: &Entity) -> bool {
    match &entity.entity {
        Some(EntityKind::TableEntry(TableEntry { is_const: true, .. })) => false,
        _ => match life(entity) {
            Life::Comes => true,
            Life::Stays => is_set(entity),
            Life::Lives => false,
        },
    }
}

/// Whether both are equivalent. Ignores a direct meter that the wanted entry does not mention.
fn same(wanted: &Entity, mut found: Entity) -> bool {
    if let (Some(EntityKind::TableEntry(wanted)), Some(EntityKind::TableEntry(found))) =
        (&wanted.entity, &mut found.entity)
        && wanted.meter_config.is_none()
    {
        found.meter_config = None;
    }
    *wanted == found
}

/// Whether an entity that always exists differs from its initial state.
fn is_set(entity: &Entity) -> bool {
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) => entry.action.is_some(),
        Some(EntityKind::MeterEntry(meter)) => meter.config.is_some(),
        Some(EntityKind::DirectMeterEntry(meter)) => meter.config.is_some(),
        Some(EntityKind::ValueSetEntry(set)) => !set.members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
