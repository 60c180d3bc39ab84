//! Entries that a program's text gives its tables. They come with the program, so that another program does not take over
//! those that nothing has changed.

use p4rack_p4::Compiled;
use p4rack_p4rt::p4::v1::TableEntry;
use prost::Message;
use std::collections::HashMap;

/// The entries of a program's text, by table, keys and priority.
#[derive(Debug, Default)]
pub struct Initial(HashMap<Vec<u8>, TableEntry>);

impl Initial {
    pub(crate) fn of(compiled: &Compiled) -> Initial {
        Initial(compiled.initial_entries().into_iter().map(|entry| (key(&entry), entry)).collect())
    }

    /// The entry with these keys.
    fn get(&self, entry: &TableEntry) -> Option<&TableEntry> {
        // Most programs have none.
        if self.0.is_empty() { None } else { self.0.get(&key(entry)) }
    }

    /// Whether the text gives exactly this entry. Counts of its counter and meter are not compared.
    pub fn gives(&self, entry: &TableEntry) -> bool {
        self.get(entry).is_some_and(|given| {
            let is_const = given.is_const;
            let (counter_data, meter_counter_data, time_since_last_hit) = (None, None, None);
            let bare = entry.clone();
            *given == TableEntry { is_const, counter_data, meter_counter_data, time_since_last_hit, ..bare }
        })
    }

    /// Whether the text gives an entry with these keys that controllers may change.
    pub fn has_changeable(&self, entry: &TableEntry) -> bool {
        self.get(entry).is_some_and(|given| !given.is_const)
    }
}

fn key(entry: &TableEntry) -> Vec<u8> {
    let TableEntry { table_id, r#match, priority, .. } = entry;
    let key = TableEntry {
        table_id: *table_id,
        r#match: r#match.clone(),
        priority: *priority,
        ..TableEntry::default()
    };
    key.encode_to_vec()
}
