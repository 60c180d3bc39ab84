//! The entities that a switch should hold after an installation, by origin.

use super::before::{Before, Own};
use super::{Dropped, Rules};
use crate::carry::carry;
use crate::client;
use crate::desired::Desired;
use crate::error::UpdateFailure;
use crate::link::is_same;
use crate::normal::{Key, key, normal};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, TableEntry, Update, update};
use p4rack_p4rt::schema::{Schema, id_of};
use std::collections::{HashMap, HashSet};

/// Maximum entries that the switch refuses before the installation is given up.
const REFUSED: usize = 64;

/// The identity of an entity.
pub fn key_of(entity: &Entity) -> Key {
    key(&normal(entity.clone()))
}

/// Identities of entities.
pub fn keys<'e>(entities: impl IntoIterator<Item = &'e Entity>) -> HashSet<Key> {
    entities.into_iter().map(key_of).collect()
}

/// Entries for which tables have room besides those that are there.
struct Room {
    /// Size and number of entries, by table.
    tables: HashMap<u32, (i64, i64)>,
    there: HashSet<Key>,
}

impl Room {
    fn of<'e>(schema: &Schema, there: impl IntoIterator<Item = &'e Entity>) -> Room {
        let tables = schema.info().tables.iter();
        let tables = tables.map(|table| (id_of(table.preamble.as_ref()), (table.size, 0))).collect();
        let mut room = Room { tables, there: HashSet::new() };
        for entity in there {
            if let Some(entry) = entry_of(entity)
                && room.there.insert(key_of(entity))
                && let Some((_, used)) = room.tables.get_mut(&entry.table_id)
            {
                *used += 1;
            }
        }
        room
    }

    /// Takes the place of an entry.
    fn take(&mut self, entity: &Entity) -> Result<(), String> {
        let Some(entry) = entry_of(entity) else { return Ok(()) };
        let Some((size, used)) = self.tables.get_mut(&entry.table_id) else { return Ok(()) };
        let key = key_of(entity);
        if self.there.contains(&key) {
            return Ok(());
        }
        if *used >= *size {
            return Err(format!("the table has room for {size} entries, and others come first"));
        }
        *used += 1;
        self.there.insert(key);
        Ok(())
    }
}

/// A table entry that takes room.
fn entry_of(entity: &Entity) -> Option<&TableEntry> {
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if !entry.is_default_action => Some(entry),
        _ => None,
    }
}

/// What the switch should hold.
#[derive(Debug)]
pub struct Plan {
    /// Whether the program runs already.
    pub is_same: bool,
    /// Whether the new program can hold everything as it is.
    pub is_whole: bool,
    /// The desired entities, then the kept ones.
    entities: Vec<Entity>,
    /// Number of the desired ones, and their keys.
    first_kept: usize,
    /// Number of entries of the old program that the new one's text gives as constant ones.
    given: usize,
    asked: HashSet<Key>,
    /// Keys of both.
    there: HashSet<Key>,
    /// Entries of the new program's text.
    pub own: Vec<Entity>,
    /// Entities that don't fit.
    pub dropped: Vec<Dropped>,
    /// Number of entities that the switch has refused.
    refused: usize,
}

impl Plan {
    /// Keeps the switch's entities, and those from before interrupted installations, as far as the new program and the rules permit.
    /// Entities that the switch has now take precedence.
    pub fn new(
        now: Option<&Before>,
        earlier: &[Before],
        (wanted, own): (&Desired, &Own),
        rules: Rules<'_>,
    ) -> Plan {
        let asked = keys(&wanted.entities);
        let entities: Vec<Entity> =
            wanted.entities.iter().filter(|entity| !own.has(entity)).cloned().collect();
        let mut plan = Plan {
            is_same: now.is_some_and(|now| is_same(&now.config, wanted)),
            is_whole: true,
            first_kept: entities.len(),
            entities,
            given: 0,
            there: asked.clone(),
            asked,
            own: Vec::new(),
            dropped: Vec::new(),
            refused: 0,
        };
        // Entries of the text that a controller has deleted stay deleted, as long as the program is the same.
        let left = now.filter(|_| plan.is_same && !rules.clear).map(|now| keys(&now.all()));
        let stays = |entity: &&Entity| left.as_ref().is_none_or(|left| left.contains(&key_of(entity)));
        plan.own = own.entries().filter(stays).cloned().collect();
        let there = plan.entities.iter().chain(&plan.own).chain(own.constants().values());
        let mut room = Room::of(&wanted.schema, there);
        if let Some(now) = now {
            plan.is_whole = plan.keep(now, (wanted, own), rules, &mut room);
        }
        for before in earlier {
            plan.keep(before, (wanted, own), rules, &mut room);
        }
        if !earlier.is_empty() {
            let mut known = HashSet::new();
            plan.dropped.retain(|dropped| known.insert(dropped.what.clone()));
        }
        plan
    }

    /// Keeps entities of a program. Returns whether the new one can hold all of them as they are.
    fn keep(
        &mut self,
        before: &Before,
        (wanted, own): (&Desired, &Own),
        rules: Rules<'_>,
        room: &mut Room,
    ) -> bool {
        let carried = carry(&before.schema, &wanted.schema, &before.entities, own.constants());
        if rules.clear {
            return carried.is_whole;
        }
        let previous = rules.previous.filter(|previous| previous.config.p4info == before.config.p4info);
        let left = previous.map(|previous| keys(&previous.entities)).unwrap_or_default();
        let stays = |at: usize| left.is_empty() || !left.contains(&key_of(&before.entities[at]));
        for (_, entity) in carried.kept.into_iter().filter(|(at, _)| stays(*at)) {
            let key = key_of(&entity);
            if self.there.contains(&key) {
                continue;
            }
            match room.take(&entity) {
                Ok(()) => {
                    self.there.insert(key);
                    self.entities.push(entity);
                }
                Err(why) => self.dropped.push(Dropped { what: client::name(&wanted.schema, &entity), why }),
            }
        }
        for (_, entity) in carried.given.iter().filter(|(at, _)| stays(*at)) {
            self.given += usize::from(self.there.insert(key_of(entity)));
        }
        let dropped = carried.dropped.into_iter().filter(|(at, _)| stays(*at));
        self.dropped.extend(dropped.map(|(_, dropped)| dropped));
        carried.is_whole
    }

    /// Everything that the switch should hold: entries of the text where nothing else has their keys.
    pub fn wanted(&self) -> Vec<Entity> {
        let own = self.own.iter().filter(|entity| !self.there.contains(&key_of(entity)));
        self.entities.iter().chain(own).cloned().collect()
    }

    /// The desired and the kept entities.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The kept entities, whether they are written again or stay in place.
    pub fn kept(&self) -> &[Entity] {
        &self.entities[self.first_kept..]
    }

    /// Number of entities of the old program that the new one holds, also as constant entries.
    pub fn kept_count(&self) -> usize {
        self.kept().len() + self.given
    }

    /// Whether an update is of an entity that is asked for.
    pub fn asks_for(&self, update: &Update) -> bool {
        update.entity.as_ref().is_some_and(|entity| self.asked.contains(&key_of(entity)))
    }

    /// Whether an update brings an entity that is kept.
    pub fn keeps(&self, update: &Update) -> bool {
        let has = |entity: &Entity| self.there.contains(&key_of(entity));
        update.r#type() != update::Type::Delete
            && update.entity.as_ref().is_some_and(has)
            && !self.asks_for(update)
    }

    /// Gives up entities that the switch refuses although they seem to fit. Returns whether that can help: nothing that is
    /// asked for was refused.
    pub fn give_up(&mut self, failures: &[UpdateFailure], updates: &[Update]) -> bool {
        let mut refused = HashSet::new();
        for failure in failures {
            let update = failure.number.checked_sub(1).and_then(|at| updates.get(at));
            let Some(update) = update.filter(|update| update.r#type() != update::Type::Delete) else {
                return false;
            };
            let Some(entity) = &update.entity else { return false };
            if self.asks_for(update) {
                return false;
            }
            refused.insert(key_of(entity));
            self.dropped.push(Dropped { what: failure.what.clone(), why: failure.error.to_string() });
        }
        let before = self.entities.len();
        self.entities.retain(|entity| !refused.contains(&key_of(entity)));
        self.there.retain(|key| !refused.contains(key));
        self.refused += refused.len();
        self.entities.len() < before && self.refused <= REFUSED
    }
}
