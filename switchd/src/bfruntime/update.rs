//! Translates updates to changes of the switch.
//!
//! ```text
//!  INSERT, DELETE, MODIFY of whole entries ─▶ P4Runtime's update     takes P4Runtime's path, without messages
//!  all others ─▶ a step:  reads the entry, or all of the table, then writes
//!  fixed tables ─▶ a step
//! ```

use super::fixed::{PORTS, Step};
use super::flags::Flags;
use super::loaded::Loaded;
use super::lookup::Target;
use super::noted::{found, noted};
use super::outcome::{Existing, invalid};
use super::prepared::Prepared;
use super::settings::{Scope, Scopes};
use num_bigint::BigUint;
use p4rack_bfrt::Table;
use p4rack_entities::{
    Change, Checked, Program, Snapshot, Undo, change, control, query, query_keyed, refuse, snapshot,
};
use p4rack_p4::ir::{InstanceId, InstanceKind, TableId};
use p4rack_p4rt::bfrt_proto::{
    self as bfrt, DataField, DynKeyMask, TableAttribute, TableData, TableEntry, TableOperation, entity,
    table_attribute, table_entry, update,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use p4rack_switch::{Indirect, Pipes, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Checks an update; `target` is the request's, `at` its place in that, `is_whole` says whether it is part of a transaction.
pub fn prepare(
    loaded: &Arc<Loaded>,
    (target, is_whole): (Target, bool),
    update: &bfrt::Update,
    at: usize,
    existing: &Existing,
) -> Checked<(Prepared, Option<Pipes>)> {
    let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else {
        return invalid("the update's entity is not set");
    };
    let kind = match update::Type::try_from(update.r#type) {
        Ok(kind) => kind,
        Err(_) => return invalid(format!("there is no update type {}", update.r#type)),
    };
    match entity {
        entity::Entity::TableEntry(entry) => {
            let pipes = target.or(entry.entry_tgt.as_ref())?.written(loaded, entry.table_id)?;
            if kind == update::Type::Unspecified {
                return invalid("the update's type is not set");
            }
            if kind == update::Type::Reset {
                return refuse(
                    Code::Unimplemented,
                    "no table takes RESET; MODIFY the entry, or DELETE without a key to reset all of a table",
                );
            }
            if loaded.fixed.has(entry.table_id) {
                if pipes.is_none() && loaded.fixed.needs_pipe(entry) {
                    return invalid("a queue's row is in one pipe; name that, not all, as pipe_id");
                }
                let change = loaded.fixed.step(kind, entry, is_whole)?;
                return Ok((Prepared::Step(Step { snapshot: None, change }), pipes));
            }
            if loaded.own.has(entry.table_id) {
                return Ok((Prepared::Step(loaded.own.step(kind, entry)?), pipes));
            }
            let writes = kind != update::Type::Delete;
            let flags = Flags::of(kind, entry);
            let entry = &*flags.meant(loaded, kind, entry);
            let prepared = table_entry(loaded, kind, entry, (at, existing))?;
            let prepared = if writes { with_profile(loaded, entry, prepared)? } else { prepared };
            let prepared = flags.with_ttl(loaded, kind, entry, prepared)?;
            let prepared = noted(loaded, kind, entry, prepared)?;
            match writes && loaded.extras.has(entry.table_id) {
                true => Ok((with_extras(loaded, entry, prepared)?, pipes)),
                false => Ok((prepared, pipes)),
            }
        }
        entity::Entity::TableAttribute(attribute) => {
            let target = target.or(None)?;
            if let Some(table_attribute::Attribute::ByteCountAdj(adjust)) = &attribute.attribute {
                let step = adjust_bytes(loaded, attribute.table_id, target, adjust.byte_count_adjust)?;
                return Ok((Prepared::Step(step), target.read()));
            }
            Ok((Prepared::Step(set_attribute(loaded, attribute)?), None))
        }
        entity::Entity::TableOperation(operation) => Ok((Prepared::Step(operate(loaded, operation)?), None)),
        entity::Entity::TableUsage(_) | entity::Entity::ObjectId(_) | entity::Entity::Handle(_) => {
            invalid("usage, object ids and handles can only be read")
        }
    }
}

/// Checks an update's reference into an action profile as clients expect: a default entry may refer to one, and a
/// group must have a member to choose.
fn with_profile(loaded: &Loaded, entry: &TableEntry, prepared: Prepared) -> Checked<Prepared> {
    let Prepared::Plain(update) = &prepared else { return Ok(prepared) };
    let Some(v1::entity::Entity::TableEntry(found)) =
        update.entity.as_ref().and_then(|entity| entity.entity.as_ref())
    else {
        return Ok(prepared);
    };
    let indirect = match found.action.as_ref().and_then(|action| action.r#type.as_ref()) {
        Some(v1::table_action::Type::ActionProfileMemberId(member)) => Indirect::Member(*member),
        Some(v1::table_action::Type::ActionProfileGroupId(group)) => Indirect::Group(*group),
        _ => return Ok(prepared),
    };
    let table = loaded.table(entry.table_id)?;
    let all = &loaded.program.ir.tables;
    let Some(at) = all.iter().position(|found| table.is_named(&found.named.name)) else {
        return Ok(prepared);
    };
    let (id, profile) = (TableId(at as u32), all[at].implementation);
    let is_default = entry.is_default_entry;
    if !is_default && matches!(indirect, Indirect::Member(_)) {
        return Ok(prepared);
    }
    let (saved, rest) = match is_default {
        true => {
            let wanted = loaded.translation.request(entry)?;
            (snapshot(&loaded.program, &v1::Update { r#type: 0, entity: Some(wanted) })?, None)
        }
        false => (snapshot(&loaded.program, update)?, Some(change(&loaded.program, update)?)),
    };
    let change: Change = Box::new(move |switch, now| {
        if let (Indirect::Group(group), Some(profile)) = (&indirect, profile) {
            let shares = control(switch.group(profile, *group))?;
            if shares.is_some_and(|shares| !shares.iter().any(|(_, share)| share.is_active)) {
                return invalid(format!("group {group} has no active member"));
            }
        }
        match rest {
            Some(rest) => rest(switch, now),
            None => control(switch.set_default_indirect(id, indirect)),
        }
    });
    Ok(Prepared::Step(Step { snapshot: Some(saved), change }))
}

/// Adds the update's effect on fields that P4Runtime does not have.
fn with_extras(loaded: &Loaded, entry: &TableEntry, prepared: Prepared) -> Checked<Prepared> {
    let wanted = loaded.translation.request(entry)?;
    let Some(v1::entity::Entity::TableEntry(keyed)) = &wanted.entity else { return Ok(prepared) };
    let Some(extra) = loaded.extras.step(entry, loaded.extras.place(keyed)?)? else { return Ok(prepared) };
    let rest = match prepared {
        Prepared::Plain(update) => Step {
            snapshot: Some(snapshot(&loaded.program, &update)?),
            change: change(&loaded.program, &update)?,
        },
        Prepared::Step(step) => step,
    };
    // Saved where the update is made, since it may have to be undone there.
    let saved = snapshot(&loaded.program, &v1::Update { r#type: 0, entity: Some(wanted.clone()) })?;
    let snapshot: Snapshot = Box::new(move |switch| {
        let undos = [rest.snapshot, extra.snapshot].map(|snapshot| snapshot.map(|saved| saved(switch)));
        Box::new(move |switch| undos.into_iter().flatten().for_each(|undo| undo(switch)))
    });
    let change: Change = Box::new(move |switch, now| {
        let undo = saved(switch);
        (rest.change)(switch, now)?;
        (extra.change)(switch, now).inspect_err(|_| undo(switch))
    });
    Ok(Prepared::Step(Step { snapshot: Some(snapshot), change }))
}

fn table_entry(
    loaded: &Arc<Loaded>,
    kind: update::Type,
    entry: &TableEntry,
    (at, existing): (usize, &Existing),
) -> Checked<Prepared> {
    use update::Type;
    let translation = &loaded.translation;
    let wrap = |kind: v1::update::Type, entity| v1::Update { r#type: kind as i32, entity: Some(entity) };
    let plain = |kind, entity| Ok(Prepared::Plain(Box::new(wrap(kind, entity))));
    let unnamed = match &entry.value {
        None => true,
        // All fields of a table's key may match anything; a number can't.
        Some(table_entry::Value::Key(key)) => key.fields.is_empty() && !translation.has_keys(entry.table_id),
        Some(table_entry::Value::HandleId(_)) => false,
    };
    let keyless = unnamed && !entry.is_default_entry;
    if translation.has_cells(entry.table_id) {
        return match kind {
            Type::ModifyInc => {
                refuse(Code::Unimplemented, "MODIFY_INC of cells is not offered by this switch")
            }
            Type::Delete if translation.is_register(entry.table_id) => {
                Ok(Prepared::Step(initial(loaded, entry)?))
            }
            Type::Delete => plain(v1::update::Type::Modify, zeroed(loaded, entry)?),
            _ if unnamed => invalid("the key of the cell is not set"),
            _ if translation.is_whole(entry) => plain(v1::update::Type::Modify, translation.entity(entry)?),
            _ => Ok(Prepared::Step(merge(loaded, entry)?)),
        };
    }
    match kind {
        Type::Insert | Type::Modify | Type::InsertOrModify if keyless => {
            invalid("the entry's key is not set")
        }
        Type::ModifyInc => refuse(Code::Unimplemented, "MODIFY_INC is not offered for this table"),
        Type::Insert if entry.is_default_entry => invalid("the default entry is always there; modify it"),
        // Nothing can have changed it.
        Type::Delete if entry.is_default_entry && loaded.table(entry.table_id)?.has_const_default_action => {
            Ok(Prepared::Step(nothing()))
        }
        Type::Delete if entry.is_default_entry => {
            let reset = TableEntry { data: None, ..entry.clone() };
            plain(v1::update::Type::Modify, translation.entity(&reset)?)
        }
        Type::Delete if keyless => Ok(Prepared::Step(clear(loaded, entry)?)),
        Type::Delete => {
            plain(v1::update::Type::Delete, translation.entity(&TableEntry { data: None, ..entry.clone() })?)
        }
        Type::Insert => plain(v1::update::Type::Insert, translation.entity(entry)?),
        Type::Modify if entry.is_default_entry => plain(v1::update::Type::Modify, translation.entity(entry)?),
        Type::Modify if translation.is_whole(entry) => {
            plain(v1::update::Type::Modify, translation.entity(entry)?)
        }
        Type::Modify => Ok(Prepared::Step(merge(loaded, entry)?)),
        Type::InsertOrModify if entry.is_default_entry => {
            plain(v1::update::Type::Modify, translation.entity(entry)?)
        }
        Type::InsertOrModify => {
            let program = &loaded.program;
            let inserted = wrap(v1::update::Type::Insert, translation.entity(entry)?);
            let (insert, saved) = (change(program, &inserted)?, snapshot(program, &inserted)?);
            let modify = merge(loaded, entry)?.change;
            let existing = existing.clone();
            let change: Change = Box::new(move |switch, now| match insert(switch, now) {
                Err(UpdateError { code: Code::AlreadyExists, .. }) => {
                    modify(switch, now).inspect(|()| existing.add(at))
                }
                done => done,
            });
            Ok(Prepared::Step(Step { snapshot: Some(saved), change }))
        }
        Type::Reset | Type::Unspecified => invalid("the update's type is not set"),
    }
}

/// Resets a register's cell, or all of its cells, to the program's initial values.
fn initial(loaded: &Loaded, entry: &TableEntry) -> Checked<Step> {
    let table = loaded.table(entry.table_id)?;
    let entity = loaded.translation.request(entry)?;
    let index = match &entity.entity {
        Some(v1::entity::Entity::RegisterEntry(cell)) => cell.index.as_ref().map(|index| index.index),
        _ => None,
    };
    let named =
        loaded.program.ir.instances.iter().enumerate().find_map(|(at, instance)| match &instance.kind {
            InstanceKind::Register { size, initial, .. } if table.is_named(&instance.named.name) => {
                Some((InstanceId(at as u32), *size, initial.clone()))
            }
            _ => None,
        });
    let Some((instance, size, value)) = named else {
        return invalid(format!("table `{}` is no register", table.name));
    };
    let cells = match index {
        None => 0..size,
        Some(index) => {
            let at = u64::try_from(index).ok().filter(|at| *at < size);
            let Some(at) = at else {
                return refuse(
                    Code::OutOfRange,
                    format!("table `{}` has {size} cells, no {index}", table.name),
                );
            };
            at..at + 1
        }
    };
    let saved = cells.clone();
    let snapshot: Snapshot = Box::new(move |switch| {
        let before: Vec<_> = saved.map(|at| (at, switch.register_read(instance, at))).collect();
        Box::new(move |switch| {
            for (at, value) in before {
                let _ = value.and_then(|value| switch.register_write(instance, at, &value));
            }
        })
    });
    let change: Change = Box::new(move |switch, _| {
        let mut cells = cells;
        cells.try_for_each(|at| control(switch.register_write(instance, at, &value)))
    });
    Ok(Step { snapshot: Some(snapshot), change })
}

/// Resets a counter's or meter's cell, or all cells.
fn zeroed(loaded: &Loaded, entry: &TableEntry) -> Checked<v1::Entity> {
    let mut entity = loaded.translation.entity(&TableEntry { data: None, ..entry.clone() })?;
    if let Some(v1::entity::Entity::CounterEntry(counter)) = &mut entity.entity {
        counter.data = Some(v1::CounterData::default());
    }
    Ok(entity)
}

/// Changes some fields of an entry and keeps the others.
fn merge(loaded: &Arc<Loaded>, entry: &TableEntry) -> Checked<Step> {
    let program = &loaded.program;
    let wanted = loaded.translation.request(entry)?;
    let saved = snapshot(program, &v1::Update { r#type: 0, entity: Some(wanted.clone()) })?;
    let (loaded, entry) = (loaded.clone(), entry.clone());
    let change: Change = Box::new(move |switch, now| {
        let there = found(query_keyed(&loaded.program, &wanted)?, switch, now)?;
        let Some(there) = there.first() else {
            return refuse(Code::NotFound, "there is no such entry");
        };
        let mut there = there.clone();
        if let Some(v1::entity::Entity::TableEntry(entry)) = &mut there.entity {
            // The whole time to live stays, not the remainder.
            entry.time_since_last_hit = None;
        }
        let there = loaded.translation.entry(&there)?;
        let merged = TableEntry { data: Some(merged(there.data, entry.data.clone())), ..entry };
        let update = v1::Update {
            r#type: v1::update::Type::Modify as i32,
            entity: Some(loaded.translation.entity(&merged)?),
        };
        change(&loaded.program, &update)?(switch, now)
    });
    Ok(Step { snapshot: Some(saved), change })
}

fn merged(there: Option<TableData>, given: Option<TableData>) -> TableData {
    let (there, given) = (there.unwrap_or_default(), given.unwrap_or_default());
    let action_id = if given.action_id == 0 { there.action_id } else { given.action_id };
    let named = |field: &DataField| given.fields.iter().any(|given| given.field_id == field.field_id);
    // The parameters of another action have other ids, and all of them are given.
    let same = action_id == there.action_id;
    let kept = there.fields.into_iter().filter(|field| (same || field.field_id >= COMMON) && !named(field));
    let mut fields: Vec<DataField> = kept.collect();
    fields.extend(given.fields.iter().cloned());
    TableData { action_id, fields }
}

/// The attribute of tables that has settings of replication.
const PRE_CONFIG: &str = "pre_device_config";
/// Ids from this one on are fields of the table, not parameters of an action.
const COMMON: u32 = 1 << 16;

/// Whether all entries of a table are the program's.
fn is_const(loaded: &Loaded, table_id: u32) -> Checked<bool> {
    let table = loaded.table(table_id)?;
    let is_it = |own: &p4rack_p4rt::p4::config::v1::Table| {
        own.preamble.as_ref().is_some_and(|preamble| table.is_named(&preamble.name))
    };
    Ok(loaded.program.info.tables.iter().any(|own| own.is_const_table && is_it(own)))
}

/// The update that gives a match-action table the program's default entry again, if clients may change it.
fn default_reset(loaded: &Loaded, wanted: &v1::Entity, table_id: u32) -> Checked<Option<v1::Update>> {
    let is_table = matches!(&wanted.entity, Some(v1::entity::Entity::TableEntry(_)));
    if !is_table || loaded.table(table_id)?.has_const_default_action || is_const(loaded, table_id)? {
        return Ok(None);
    }
    let default = TableEntry { table_id, is_default_entry: true, ..Default::default() };
    let entity = Some(loaded.translation.entity(&default)?);
    Ok(Some(v1::Update { r#type: v1::update::Type::Modify as i32, entity }))
}

/// Removes all entries of a table, or none if one can't be removed, and resets its default entry.
fn clear(loaded: &Arc<Loaded>, entry: &TableEntry) -> Checked<Step> {
    let wanted = loaded.translation.request(entry)?;
    // Checks that the table exists.
    query(&loaded.program, &wanted)?;
    let deletions = |program: &Arc<Program>, wanted: &v1::Entity, switch: &Switch, now| {
        let is_own = |entity: &v1::Entity| !matches!(&entity.entity, Some(v1::entity::Entity::TableEntry(e)) if e.is_const);
        let delete = |mut entity: v1::Entity| {
            if let Some(v1::entity::Entity::TableEntry(entry)) = &mut entity.entity {
                (entry.counter_data, entry.meter_config) = (None, None);
                entry.time_since_last_hit = None;
            }
            v1::Update { r#type: v1::update::Type::Delete as i32, entity: Some(entity) }
        };
        let found = found(query(program, wanted)?, switch, now)?;
        Ok::<Vec<v1::Update>, UpdateError>(found.into_iter().filter(is_own).map(delete).collect())
    };
    let reset = default_reset(loaded, &wanted, entry.table_id)?;
    let (program, saved, saved_reset) = (loaded.program.clone(), wanted.clone(), reset.clone());
    let saved: Snapshot = Box::new(move |switch| {
        let mut updates = deletions(&program, &saved, switch, Nanos(0)).unwrap_or_default();
        updates.extend(saved_reset);
        let one = |update: &v1::Update| Some(snapshot(&program, update).ok()?(switch));
        let undos: Vec<Undo> = updates.iter().filter_map(one).collect();
        Box::new(move |switch| undos.into_iter().for_each(|undo| undo(switch)))
    });
    let program = loaded.program.clone();
    let change: Change = Box::new(move |switch, now| {
        let mut undos: Vec<Undo> = Vec::new();
        for update in deletions(&program, &wanted, switch, now)?.into_iter().chain(reset) {
            let undo = snapshot(&program, &update)?(switch);
            if let Err(error) = change(&program, &update).and_then(|change| change(switch, now)) {
                undos.into_iter().rev().for_each(|undo| undo(switch));
                return Err(error);
            }
            undos.push(undo);
        }
        Ok(())
    });
    Ok(Step { snapshot: Some(saved), change })
}

/// All entries of a table, to be read.
fn all_of(table_id: u32) -> TableEntry {
    TableEntry { table_id, ..Default::default() }
}

/// Checks whether a table has no entries but the program's.
type Emptiness = Box<dyn FnOnce(&Switch, Nanos) -> Checked<bool> + Send>;

fn emptiness(loaded: &Loaded, table_id: u32) -> Checked<Emptiness> {
    if loaded.own.has(table_id) {
        let lookup = loaded.own.lookup(&all_of(table_id), 0)?;
        return Ok(Box::new(move |switch, _| Ok(lookup(switch)?.0.is_empty())));
    }
    let queries = query(&loaded.program, &loaded.translation.request(&all_of(table_id))?)?;
    let is_own = |entity: &v1::Entity| !matches!(&entity.entity, Some(v1::entity::Entity::TableEntry(e)) if e.is_const);
    Ok(Box::new(move |switch, now| Ok(!found(queries, switch, now)?.iter().any(is_own))))
}

fn nothing() -> Step {
    Step { snapshot: None, change: Box::new(|_, _| Ok(())) }
}

/// Elements of direct registers are read from the switch directly, so there is nothing to synchronise.
fn operate(loaded: &Arc<Loaded>, operation: &TableOperation) -> Checked<Step> {
    let table = loaded.table(operation.table_id)?;
    let name = &operation.table_operations_type;
    // Drivers know the operation under both names.
    let known = |listed: &String| listed == name || listed == "Sync" && name.starts_with("Sync");
    if table.operations.iter().any(known) {
        let (loaded, table_id) = (loaded.clone(), table.id);
        return match name.as_str() {
            "UpdateHitState" => {
                let change: Change = Box::new(move |_, now| {
                    loaded.extras.update_hits(table_id, now);
                    Ok(())
                });
                Ok(Step { snapshot: None, change })
            }
            "Sync" | "SyncCounters" if loaded.shadows.has(table_id) => {
                let change: Change = Box::new(move |switch, now| loaded.sync(table_id, switch, now));
                Ok(Step { snapshot: None, change })
            }
            _ => Ok(nothing()),
        };
    }
    let offered = if table.operations.is_empty() { "none".into() } else { table.operations.join(", ") };
    invalid(format!("table `{}` has no operation `{name}`; it has {offered}", table.name))
}

/// Lets a meter, or the meters of a table's entries, add to the length of each packet.
fn adjust_bytes(loaded: &Arc<Loaded>, table_id: u32, target: Target, bytes: i32) -> Checked<Step> {
    let table = loaded.table(table_id)?;
    let Some(meters) = loaded.meters(table) else {
        return invalid(format!("table `{}` has no meters", table.name));
    };
    let (saved, changed, pipes) = (loaded.clone(), loaded.clone(), loaded.pipes);
    let all = move || (0..pipes).filter(move |pipe| target.pipe().is_none_or(|own| own == *pipe));
    let snapshot: Snapshot = Box::new(move |_| {
        let before: Vec<i32> = all().map(|pipe| saved.settings.adjustment(table_id, pipe)).collect();
        Box::new(move |switch| {
            for (pipe, bytes) in all().zip(before) {
                saved.settings.set_adjustment(table_id, pipe, bytes);
                let _ = switch.within(Pipes::of([pipe as usize]), |switch| meters.adjust(switch, bytes));
            }
        })
    });
    let change: Change = Box::new(move |switch, _| {
        meters.adjust(switch, bytes)?;
        all().for_each(|pipe| changed.settings.set_adjustment(table_id, pipe, bytes));
        Ok(())
    });
    Ok(Step { snapshot: Some(snapshot), change })
}

/// Sets which bits of a table's exact keys count.
fn key_mask(loaded: &Loaded, table: &Table, given: &DynKeyMask) -> Checked<Step> {
    let id = loaded.masked(table)?;
    let mut masks = Vec::new();
    for key in table.keys.iter() {
        // A field that is left out counts whole.
        let mask = given.fields.iter().find(|field| field.field_id == key.id).map(|field| &field.mask[..]);
        let ones = (BigUint::from(1u8) << key.kind.width().unwrap_or(0)) - 1u8;
        masks.push(mask.map_or(ones, BigUint::from_bytes_be));
    }
    if let Some(other) =
        given.fields.iter().find(|field| !table.keys.iter().any(|key| key.id == field.field_id))
    {
        return invalid(format!("table `{}` has no key with id {}", table.name, other.field_id));
    }
    let snapshot: Snapshot = Box::new(move |switch| {
        let before = switch.key_mask(id);
        Box::new(move |switch| drop(before.and_then(|before| switch.key_mask_set(id, &before))))
    });
    let change: Change = Box::new(move |switch, _| control(switch.key_mask_set(id, &masks)));
    Ok(Step { snapshot: Some(snapshot), change })
}

fn set_attribute(loaded: &Arc<Loaded>, given: &TableAttribute) -> Checked<Step> {
    use table_attribute::Attribute;
    let table = loaded.table(given.table_id)?;
    let not_offered = |what: &str| {
        refuse(Code::Unimplemented, format!("table `{}`: {what} is not offered by this switch", table.name))
    };
    match &given.attribute {
        None => invalid(format!("table `{}`: the attribute is not set", table.name)),
        Some(Attribute::EntryScope(scope)) => {
            let has_members = loaded.own.has_members(given.table_id);
            for part in [&scope.gress_scope, &scope.prsr_scope] {
                if Scope::read(part.as_ref())? != Scope::All && !has_members {
                    return not_offered("an entry scope of directions or parsers other than ALL");
                }
            }
            let pipes = Scope::read(scope.pipe_scope.as_ref())?;
            let has_cells = loaded.translation.has_cells(given.table_id);
            if !loaded.translation.has_keys(given.table_id) && !has_cells && !has_members {
                return if pipes == Scope::All {
                    Ok(nothing())
                } else {
                    not_offered("an entry scope other than ALL")
                };
            }
            let (table, scopes) = (given.table_id, Scopes { pipes, given: *scope });
            let is_empty = emptiness(loaded, table)?;
            let (saved, changed) = (loaded.clone(), loaded.clone());
            let snapshot: Snapshot = Box::new(move |_| {
                let before = saved.settings.scopes(table);
                Box::new(move |_| saved.settings.set_scopes(table, before))
            });
            let change: Change = Box::new(move |switch, now| {
                let is_same = changed.settings.scope(table) == pipes;
                // Cells are always there.
                if !is_same && !has_cells && !is_empty(switch, now)? {
                    return invalid(
                        "the entry scope can't change while the table has entries; delete them first",
                    );
                }
                changed.settings.set_scopes(table, scopes);
                Ok(())
            });
            Ok(Step { snapshot: Some(snapshot), change })
        }
        // Has been handled: it is the only one that a single pipe may have.
        Some(Attribute::ByteCountAdj(_)) => Ok(nothing()),
        Some(Attribute::IdleTable(idle)) if table.attributes.iter().any(|name| name == "IdleTimeout") => {
            let (changed, saved, table, idle) = (loaded.clone(), loaded.clone(), given.table_id, *idle);
            let snapshot: Snapshot = Box::new(move |_| {
                let before = saved.settings.idle(table);
                Box::new(move |_| saved.settings.set_idle(table, before))
            });
            let change: Change = Box::new(move |_, _| {
                changed.settings.set_idle(table, idle);
                Ok(())
            });
            Ok(Step { snapshot: Some(snapshot), change })
        }
        Some(Attribute::IdleTable(_)) => invalid(format!("table `{}` has no idle timeout", table.name)),
        Some(Attribute::DynKeyMask(given)) => key_mask(loaded, table, given),
        Some(Attribute::DynHashing(_)) => not_offered("the choice of a hash"),
        Some(Attribute::PortStatusNotify(given)) if table.name == PORTS => {
            Ok(Step { snapshot: None, change: loaded.fixed.ports().notify_change(given.enable) })
        }
        Some(Attribute::PortStatusNotify(_)) => invalid(format!("table `{}` has no ports", table.name)),
        Some(Attribute::IntvlMs(interval)) if interval.intvl_val == 0 => Ok(nothing()),
        Some(Attribute::IntvlMs(_)) => not_offered("an interval: state is read when it is asked for"),
        Some(Attribute::PreDeviceConfig(config))
            if table.attributes.iter().any(|name| name == PRE_CONFIG) =>
        {
            Ok(Step { snapshot: None, change: loaded.fixed.replication_config(config)? })
        }
        Some(Attribute::PreDeviceConfig(_)) => not_offered("a setting of the replication engine"),
        Some(Attribute::SelectorUpdateNotify(_)) => not_offered("notification of selectors"),
    }
}
