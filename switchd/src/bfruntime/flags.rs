//! Flags of a MODIFY for the entry's counter and its time to live, as in Tofino's driver:
//!
//! ```text
//!  reset_stats   counters that are given are written; a MODIFY that names an action and nothing else sets them to 0
//!  not           they stay, even if they are given
//!  reset_ttl     $ENTRY_TTL, if it is given, starts again
//!  not           the elapsed time counts
//! ```

use super::fixed::Step;
use super::loaded::Loaded;
use super::prepared::Prepared;
use p4rack_entities::{Change, Checked, Snapshot, change, control, snapshot};
use p4rack_p4rt::bfrt_proto::{TableEntry, update::Type};
use p4rack_p4rt::p4::v1;
use std::borrow::Cow;

/// Effect of an update's flags on counters and the time to live.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    stats: bool,
    ttl: bool,
}

impl Flags {
    /// Those of an update. An entry that is inserted begins with both.
    pub fn of(kind: Type, entry: &TableEntry) -> Flags {
        let given = entry.table_flags.unwrap_or_default();
        let inserts = kind != Type::Modify;
        Flags { stats: inserts || given.reset_stats, ttl: inserts || given.reset_ttl }
    }

    /// The fields of the entry that a MODIFY means.
    pub fn meant<'a>(self, loaded: &Loaded, kind: Type, entry: &'a TableEntry) -> Cow<'a, TableEntry> {
        let counters = loaded.translation.zero_counters(entry.table_id);
        let Some(data) = entry.data.as_ref().filter(|_| kind == Type::Modify && !counters.is_empty()) else {
            return Cow::Borrowed(entry);
        };
        if entry.is_default_entry {
            return Cow::Borrowed(entry);
        }
        let is_counter = |id: u32| counters.iter().any(|own| own.field_id == id);
        if !self.stats && data.fields.iter().any(|field| is_counter(field.field_id)) {
            let mut meant = entry.clone();
            let fields = meant.data.iter_mut().flat_map(|data| Some(&mut data.fields));
            fields.for_each(|fields| fields.retain(|field| !is_counter(field.field_id)));
            return Cow::Owned(meant);
        }
        if self.stats && data.fields.is_empty() && data.action_id != 0 {
            let mut meant = entry.clone();
            meant.data.get_or_insert_default().fields = counters;
            return Cow::Owned(meant);
        }
        Cow::Borrowed(entry)
    }

    /// Restarts the time to live that an update gives, or lets it continue.
    pub fn with_ttl(
        self,
        loaded: &Loaded,
        kind: Type,
        entry: &TableEntry,
        prepared: Prepared,
    ) -> Checked<Prepared> {
        let ttl = loaded.translation.ttl_field(entry.table_id);
        let gives =
            |id: u32| entry.data.iter().flat_map(|data| &data.fields).any(|field| field.field_id == id);
        let modifies = matches!(kind, Type::Modify | Type::InsertOrModify) && !entry.is_default_entry;
        if !modifies || !ttl.is_some_and(gives) {
            return Ok(prepared);
        }
        let wanted = loaded.translation.request(entry)?;
        let Some(v1::entity::Entity::TableEntry(keyed)) = &wanted.entity else { return Ok(prepared) };
        let table = loaded.program.table(keyed.table_id)?;
        let (id, keys, priority) = (table.id, table.matchers(&keyed.r#match)?, keyed.priority);
        let rest = match prepared {
            Prepared::Plain(update) => Step {
                snapshot: Some(snapshot(&loaded.program, &update)?),
                change: change(&loaded.program, &update)?,
            },
            Prepared::Step(step) => step,
        };
        let (saved, saved_keys) = (rest.snapshot, keys.clone());
        let snapshot: Snapshot = Box::new(move |switch| {
            let hit = switch.last_hit(id, &saved_keys, priority);
            let undo = saved.map(|saved| saved(switch));
            Box::new(move |switch| {
                undo.into_iter().for_each(|undo| undo(switch));
                let _ = hit.and_then(|hit| switch.continue_timeout(id, &saved_keys, priority, Some(hit)));
            })
        });
        let change: Change = Box::new(move |switch, now| {
            (rest.change)(switch, now)?;
            control(switch.continue_timeout(id, &keys, priority, self.ttl.then_some(now)))
        });
        Ok(Prepared::Step(Step { snapshot: Some(snapshot), change }))
    }
}
