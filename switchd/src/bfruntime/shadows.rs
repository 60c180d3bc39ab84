//! Counters and registers as a driver knows them: as software wrote them, or as they were at the last Sync. Reads show this,
//! unless they are `from_hw`; those show the switch.
//!
//! ```text
//!  a write of a cell, or of an entry with counts ─▶ noted: the switch's values just after it
//!  Sync, SyncCounters ────────────────────────────▶ noted: all of the table
//!  an entry is inserted without counts, or goes ──▶ forgotten: nothing was counted
//! ```

use super::settings::ALL_PIPES;
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::Translation;
use p4rack_entities::Program;
use p4rack_p4::ir::InstanceKind;
use p4rack_p4rt::bfrt_proto::{DataField, TableEntry, table_entry};
use p4rack_p4rt::p4::v1::{self, p4_data};
use prost::Message;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Identity of an entry in its table: whether it is the default entry, its pipe, and its serialised key.
type ValueKey = (bool, u32, Vec<u8>);

/// Values of a program's counters and registers that differ from the initial ones.
#[derive(Debug, Default)]
pub struct Shadows {
    /// Fields that packets change, with their initial values, by table.
    initial: HashMap<u32, Vec<DataField>>,
    /// Other values, by table, pipe and key. All pipes together, and the sums of their counters, are another pipe.
    held: Mutex<HashMap<u32, HashMap<ValueKey, Vec<DataField>>>>,
}

/// The first cell of a table with its initial value; `None` if packets change none of its fields.
fn first(
    table_id: u32,
    name: impl Fn(&str) -> bool,
    program: &Program,
    translation: &Translation,
) -> Option<v1::Entity> {
    let asked = TableEntry { table_id, ..Default::default() };
    let mut entity = translation.request(&asked).ok()?;
    let index = Some(v1::Index { index: 0 });
    match &mut entity.entity {
        Some(v1::entity::Entity::CounterEntry(cell)) => {
            (cell.index, cell.data) = (index, Some(v1::CounterData::default()));
        }
        Some(v1::entity::Entity::RegisterEntry(cell)) => {
            let initial = program.ir.instances.iter().find_map(|instance| match &instance.kind {
                InstanceKind::Register { initial, .. } if name(&instance.named.name) => Some(initial),
                _ => None,
            })?;
            let data = Some(p4_data::Data::Bitstring(initial.to_bytes_be()));
            (cell.index, cell.data) = (index, Some(v1::P4Data { data }));
        }
        _ => return None,
    }
    Some(entity)
}

fn place(pipe: u32, entry: &TableEntry) -> ValueKey {
    let key = match &entry.value {
        Some(table_entry::Value::Key(key)) => key.encode_to_vec(),
        _ => Vec::new(),
    };
    (entry.is_default_entry, pipe, key)
}

impl Shadows {
    /// The shadows of a program that has just started.
    pub fn new(schema: &Schema, program: &Program, translation: &Translation) -> Shadows {
        let fields = |table: &p4rack_bfrt::Table| {
            let of_entries = translation.zero_counters(table.id);
            if !of_entries.is_empty() {
                return Some(of_entries);
            }
            let first = first(table.id, |name| table.is_named(name), program, translation)?;
            Some(translation.entry(&first).ok()?.data?.fields)
        };
        let initial = schema.tables().iter().filter_map(|table| Some((table.id, fields(table)?))).collect();
        Shadows { initial, held: Mutex::default() }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<u32, HashMap<ValueKey, Vec<DataField>>>> {
        // Every change is a single insertion or removal.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether packets change fields of a table.
    pub fn has(&self, table_id: u32) -> bool {
        self.initial.contains_key(&table_id)
    }

    /// Whether packets change a field.
    pub(super) fn owns(&self, table_id: u32, field_id: u32) -> bool {
        self.initial.get(&table_id).is_some_and(|own| own.iter().any(|field| field.field_id == field_id))
    }

    /// Whether all values of a table are initial ones.
    pub fn is_initial(&self, table_id: u32) -> bool {
        !self.held().contains_key(&table_id)
    }

    /// Gives an entry that was read the values that software knows.
    pub fn show(&self, pipe: Option<u32>, entry: &mut TableEntry) {
        let Some(initial) = self.initial.get(&entry.table_id) else { return };
        let held = self.held();
        let place = place(pipe.unwrap_or(ALL_PIPES), entry);
        let known = held.get(&entry.table_id).and_then(|table| table.get(&place)).unwrap_or(initial);
        for field in entry.data.iter_mut().flat_map(|data| &mut data.fields) {
            if let Some(own) = known.iter().find(|own| own.field_id == field.field_id) {
                field.value.clone_from(&own.value);
            }
        }
    }

    pub(super) fn put(&self, pipe: u32, entry: &TableEntry) {
        let Some(initial) = self.initial.get(&entry.table_id) else { return };
        let given = entry.data.iter().flat_map(|data| &data.fields);
        let is_own = |field: &&DataField| initial.iter().any(|own| own.field_id == field.field_id);
        let values: Vec<DataField> = given.filter(is_own).cloned().collect();
        if values == *initial {
            return self.remove(pipe, entry);
        }
        self.held().entry(entry.table_id).or_default().insert(place(pipe, entry), values);
    }

    pub(super) fn remove(&self, pipe: u32, entry: &TableEntry) {
        let mut held = self.held();
        let Some(table) = held.get_mut(&entry.table_id) else { return };
        table.remove(&place(pipe, entry));
        if table.is_empty() {
            held.remove(&entry.table_id);
        }
    }
}
