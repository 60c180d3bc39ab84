//! What a program's successor can hold of its entities: objects, keys, actions and parameters are found by name.
//!
//! An entity fits if everything that it names is there, in the same width and matched the same way. What refers to a member
//! or group that doesn't fit does not fit, either.

use crate::client;
use crate::normal::{Key, key, normal};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::action_ref::Scope;
use p4rack_p4rt::p4::config::v1::table::IdleTimeoutBehavior;
use p4rack_p4rt::p4::config::v1::{MatchField, P4NamedType, Table};
use p4rack_p4rt::p4::v1::{Action, Entity, FieldMatch, TableEntry, table_action};
use p4rack_p4rt::schema::{Schema, id_of, match_type, name_of};
use std::collections::{BTreeMap, HashMap, HashSet};

/// An entity that the successor can't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The entity, in words.
    pub what: String,
    /// Why it does not fit.
    pub why: String,
}

/// The entities of a program for its successor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// Those that fit, with the successor's ids, and their positions among the given ones.
    pub kept: Vec<(usize, Entity)>,
    /// Entries that the successor's text gives as constant ones, the same way.
    pub given: Vec<(usize, Entity)>,
    /// The others, with their positions.
    pub dropped: Vec<(usize, Dropped)>,
    /// Whether all fit as they are, with the ids that they have.
    pub is_whole: bool,
}

/// Maps entities, in an order in which they can be written, from the program `old` to `new`, whose text gives the `constants`
/// in normal form. Constant entries are the programs' own and left out.
pub fn carry(old: &Schema, new: &Schema, entities: &[Entity], constants: &BTreeMap<Key, Entity>) -> Carried {
    let mut migration = Migration {
        old,
        new,
        constants,
        tables: HashMap::new(),
        actions: HashMap::new(),
        there: HashSet::new(),
        sizes: HashMap::new(),
    };
    let mut carried = Carried { is_whole: true, ..Carried::default() };
    let mut ordered: Vec<(usize, &Entity)> = entities.iter().enumerate().collect();
    ordered.sort_by_key(|(_, entity)| match &entity.entity {
        Some(EntityKind::ActionProfileMember(_)) => 0,
        Some(EntityKind::ActionProfileGroup(_)) => 1,
        _ => 2,
    });
    for (at, entity) in ordered {
        if matches!(&entity.entity, Some(EntityKind::TableEntry(TableEntry { is_const: true, .. }))) {
            continue;
        }
        let Some(kind) = entity.entity.clone() else { continue };
        let mapped = migration.entity(kind).map(|kind| Entity { entity: Some(kind) });
        match mapped.and_then(|new| Ok((migration.place(&new)?, new))) {
            Ok((is_given, new)) => {
                carried.is_whole = carried.is_whole && normal(new.clone()) == normal(entity.clone());
                let list = if is_given { &mut carried.given } else { &mut carried.kept };
                list.push((at, new));
            }
            Err(why) => {
                carried.is_whole = false;
                carried.dropped.push((at, Dropped { what: client::name(old, entity), why }));
            }
        }
    }
    carried
}

/// Whether an entry is the given one with its key; `None` if none is given.
pub fn given(entries: &BTreeMap<Key, Entity>, entity: &Entity) -> Option<bool> {
    // Most programs have none.
    if entries.is_empty() {
        return None;
    }
    let entity = normal(entity.clone());
    entries.get(&key(&entity)).map(|given| *given == entity)
}

/// Ids by the old ones.
type Ids = HashMap<u32, u32>;
/// Id of an action, and those of its parameters.
type Call = (u32, Ids);
/// Id of a table, and those of its keys if they are the same.
type Keyed = (u32, Result<Ids, String>);

struct Migration<'s> {
    old: &'s Schema,
    new: &'s Schema,
    constants: &'s BTreeMap<Key, Entity>,
    tables: HashMap<u32, Result<Keyed, String>>,
    actions: HashMap<u32, Result<Call, String>>,
    /// Members and groups that were kept: new profile, whether it is a group, id.
    there: HashSet<(u32, bool, u32)>,
    /// Entries kept so far, by table.
    sizes: HashMap<u32, i64>,
}

impl<'s> Migration<'s> {
    fn entity(&mut self, mut kind: EntityKind) -> Result<EntityKind, String> {
        match &mut kind {
            EntityKind::TableEntry(entry) => self.entry(entry)?,
            EntityKind::ActionProfileMember(member) => {
                member.action_profile_id = self.profile(member.action_profile_id, false)?;
                let tables = self.tables_of(member.action_profile_id);
                if let Some(action) = &mut member.action {
                    self.action(action, &tables, false)?;
                }
                self.there.insert((member.action_profile_id, false, member.member_id));
            }
            EntityKind::ActionProfileGroup(group) => {
                group.action_profile_id = self.profile(group.action_profile_id, true)?;
                let missing = |id: u32| !self.there.contains(&(group.action_profile_id, false, id));
                if let Some(member) = group.members.iter().find(|member| missing(member.member_id)) {
                    return Err(format!("its member {} does not fit", member.member_id));
                }
                self.there.insert((group.action_profile_id, true, group.group_id));
            }
            EntityKind::MeterEntry(meter) => {
                let old = self.old.meter_by_id(meter.meter_id).map_err(|error| error.to_string())?;
                let name = name_of(old.preamble.as_ref());
                let new = named(
                    self.new.meter(name).ok(),
                    |meter| name_of(meter.preamble.as_ref()),
                    name,
                    "meter",
                )?;
                if new.spec.map(|spec| spec.unit) != old.spec.map(|spec| spec.unit) {
                    return Err("the meter measures another unit now".into());
                }
                if meter.index.as_ref().is_some_and(|index| index.index >= new.size) {
                    return Err(format!("the meter has {} cells now", new.size));
                }
                meter.meter_id = id_of(new.preamble.as_ref());
            }
            EntityKind::ValueSetEntry(set) => {
                let old = self.old.value_set_by_id(set.value_set_id).map_err(|error| error.to_string())?;
                let name = name_of(old.preamble.as_ref());
                let new = named(
                    self.new.value_set(name).ok(),
                    |set| name_of(set.preamble.as_ref()),
                    name,
                    "value set",
                )?;
                let fields = fields(&old.r#match, &new.r#match)?;
                for member in &mut set.members {
                    renumber(&mut member.r#match, &fields)?;
                }
                if set.members.len() as i64 > i64::from(new.size) {
                    return Err(format!("the value set has room for {} members now", new.size));
                }
                set.value_set_id = id_of(new.preamble.as_ref());
            }
            EntityKind::DigestEntry(digest) => {
                let old = self.old.digest_by_id(digest.digest_id).map_err(|error| error.to_string())?;
                let name = name_of(old.preamble.as_ref());
                let new =
                    named(self.new.digest(name).ok(), |new| name_of(new.preamble.as_ref()), name, "digest")?;
                digest.digest_id = id_of(new.preamble.as_ref());
            }
            EntityKind::PacketReplicationEngineEntry(_) => {}
            _ => return Err("it belongs to the data plane".into()),
        }
        Ok(kind)
    }

    fn entry(&mut self, entry: &mut TableEntry) -> Result<(), String> {
        let (id, fields) = self.table(entry.table_id)?;
        if !entry.is_default_action {
            renumber(&mut entry.r#match, &fields?)?;
        }
        let new = self.new;
        let table = new.table_by_id(id).map_err(|error| error.to_string())?;
        if entry.is_default_action && table.const_default_action_id != 0 {
            return Err("the table's default action is constant now".into());
        }
        if entry.idle_timeout_ns != 0 && table.idle_timeout_behavior() == IdleTimeoutBehavior::NoTimeout {
            return Err("the table has no idle timeouts now".into());
        }
        if entry.meter_config.is_some() {
            let meter = |schema: &'s Schema, table: u32| {
                let mut all = schema.info().direct_meters.iter();
                all.find(|meter| meter.direct_table_id == table)
            };
            let Some(now) = meter(new, id) else {
                return Err("the table has no direct meter now, and the entry has rates".into());
            };
            let before = meter(self.old, entry.table_id).and_then(|meter| meter.spec);
            if now.spec.map(|spec| spec.unit) != before.map(|spec| spec.unit) {
                return Err("the table's direct meter measures another unit now".into());
            }
        }
        let tables = [table];
        let profile = table.implementation_id;
        match entry.action.as_mut().and_then(|action| action.r#type.as_mut()) {
            Some(table_action::Type::Action(action)) if profile == 0 || entry.is_default_action => {
                self.action(action, &tables, entry.is_default_action)?;
            }
            Some(table_action::Type::Action(_)) => return Err("the table has an action profile now".into()),
            Some(table_action::Type::ActionProfileActionSet(set)) => {
                if !self.new.profile_by_id(profile).is_ok_and(|profile| profile.with_selector) {
                    return Err("the table has no action selector now".into());
                }
                for one in &mut set.action_profile_actions {
                    if let Some(action) = &mut one.action {
                        self.action(action, &tables, false)?;
                    }
                }
            }
            Some(table_action::Type::ActionProfileMemberId(member))
                if !self.there.contains(&(profile, false, *member)) =>
            {
                return Err(format!("its member {member} does not fit"));
            }
            Some(table_action::Type::ActionProfileGroupId(group))
                if !self.there.contains(&(profile, true, *group)) =>
            {
                return Err(format!("its group {group} does not fit"));
            }
            _ => {}
        }
        entry.table_id = id;
        Ok(())
    }

    /// Whether the new text gives a mapped entity. One that it does not give takes the room that it needs.
    fn place(&mut self, entity: &Entity) -> Result<bool, String> {
        let Some(EntityKind::TableEntry(TableEntry { table_id, is_default_action: false, .. })) =
            &entity.entity
        else {
            return Ok(false);
        };
        let table = self.new.table_by_id(*table_id).map_err(|error| error.to_string())?;
        match given(self.constants, entity) {
            Some(true) => return Ok(true),
            Some(false) => return Err("the program has another, constant entry with this key now".into()),
            None if table.is_const_table => return Err("the table's entries are constant now".into()),
            None => {}
        }
        let size = self.sizes.entry(*table_id).or_default();
        if *size >= table.size {
            return Err(format!("the table has room for {} entries now", table.size));
        }
        *size += 1;
        Ok(false)
    }

    fn table(&mut self, id: u32) -> Result<Keyed, String> {
        let (old, new) = (self.old, self.new);
        let find = || {
            let old = old.table_by_id(id).map_err(|error| error.to_string())?;
            let name = name_of(old.preamble.as_ref());
            let new = named(new.table(name).ok(), |table| name_of(table.preamble.as_ref()), name, "table")?;
            Ok((id_of(new.preamble.as_ref()), fields(&old.match_fields, &new.match_fields)))
        };
        self.tables.entry(id).or_insert_with(find).clone()
    }

    fn profile(&self, id: u32, is_selected: bool) -> Result<u32, String> {
        let old = self.old.profile_by_id(id).map_err(|error| error.to_string())?;
        let name = name_of(old.preamble.as_ref());
        let new =
            named(self.new.profile(name).ok(), |new| name_of(new.preamble.as_ref()), name, "action profile")?;
        if is_selected && !new.with_selector {
            return Err("the action profile has no selector now".into());
        }
        Ok(id_of(new.preamble.as_ref()))
    }

    /// The new program's tables that use a profile.
    fn tables_of(&self, profile: u32) -> Vec<&'s Table> {
        let new = self.new;
        let ids = new.profile_by_id(profile).map_or(&[][..], |profile| &profile.table_ids);
        ids.iter().filter_map(|id| new.table_by_id(*id).ok()).collect()
    }

    /// Maps a call of an action that one of these tables lists.
    fn action(&mut self, call: &mut Action, tables: &[&Table], is_default: bool) -> Result<(), String> {
        let (old, new) = (self.old, self.new);
        let id = call.action_id;
        let find = || {
            let old = old.action_by_id(id).map_err(|error| error.to_string())?;
            let name = name_of(old.preamble.as_ref());
            let new =
                named(new.action(name).ok(), |action| name_of(action.preamble.as_ref()), name, "action")?;
            let mut params = HashMap::new();
            for param in &new.params {
                let before = old.params.iter().find(|before| before.name == param.name);
                let before =
                    before.ok_or_else(|| format!("action {name} has a parameter {} now", param.name))?;
                let is_same = before.bitwidth == param.bitwidth && before.type_name == param.type_name;
                if !is_same {
                    return Err(changed(
                        &format!("parameter {} of action {name}", param.name),
                        (before.bitwidth, &before.type_name),
                        (param.bitwidth, &param.type_name),
                    ));
                }
                params.insert(before.id, param.id);
            }
            if let Some(gone) = old.params.iter().find(|param| !params.contains_key(&param.id)) {
                return Err(format!("action {name} has no parameter {} now", gone.name));
            }
            Ok((id_of(new.preamble.as_ref()), params))
        };
        let (action, params) = self.actions.entry(id).or_insert_with(find).clone()?;
        let wrong = if is_default { Scope::TableOnly } else { Scope::DefaultOnly };
        let lists = |table: &&Table| {
            table.action_refs.iter().any(|reference| reference.id == action && reference.scope() != wrong)
        };
        if !tables.iter().any(lists) {
            let name = self.new.action_by_id(action).map_or("?", |action| name_of(action.preamble.as_ref()));
            return Err(match is_default {
                true => format!("action {name} can't be the table's default now"),
                false => format!("the table does not offer action {name} now"),
            });
        }
        call.action_id = action;
        for param in &mut call.params {
            param.param_id = *params
                .get(&param.param_id)
                .ok_or_else(|| format!("it has no parameter {}", param.param_id))?;
        }
        call.params.sort_by_key(|param| param.param_id);
        Ok(())
    }
}

/// The object with exactly this name: an alias would find others.
fn named<'s, T>(
    found: Option<&'s T>,
    name_of: impl Fn(&T) -> &str,
    name: &str,
    kind: &str,
) -> Result<&'s T, String> {
    found.filter(|found| name_of(found) == name).ok_or_else(|| format!("there is no {kind} {name} now"))
}

fn changed(what: &str, before: (i32, &Option<P4NamedType>), now: (i32, &Option<P4NamedType>)) -> String {
    let kind = |(bitwidth, named): (i32, &Option<P4NamedType>)| match named {
        Some(named) => format!("of type {}", named.name),
        None => format!("of {bitwidth} bits"),
    };
    format!("{what} was {} and is {} now", kind(before), kind(now))
}

/// Ids of keys by their old ids. Errors: a key is new, gone or of another kind.
fn fields(old: &[MatchField], new: &[MatchField]) -> Result<Ids, String> {
    let mut ids = HashMap::new();
    for field in new {
        let before = old.iter().find(|before| before.name == field.name);
        let before = before.ok_or_else(|| format!("there is a key {} now", field.name))?;
        if before.bitwidth != field.bitwidth || before.type_name != field.type_name {
            return Err(changed(
                &format!("key {}", field.name),
                (before.bitwidth, &before.type_name),
                (field.bitwidth, &field.type_name),
            ));
        }
        if before.r#match != field.r#match {
            let kind = |field| match_type(field).as_str_name().to_lowercase();
            return Err(format!("key {} was {} and is {} now", field.name, kind(before), kind(field)));
        }
        ids.insert(before.id, field.id);
    }
    match old.iter().find(|field| !ids.contains_key(&field.id)) {
        Some(gone) => Err(format!("there is no key {} now", gone.name)),
        None => Ok(ids),
    }
}

fn renumber(keys: &mut [FieldMatch], ids: &Ids) -> Result<(), String> {
    for key in keys.iter_mut() {
        key.field_id = *ids.get(&key.field_id).ok_or_else(|| format!("it has no key {}", key.field_id))?;
    }
    keys.sort_by_key(|key| key.field_id);
    Ok(())
}

#[cfg(test)]
#[path = "carry_tests.rs"]
mod tests;
