//! Handles of a table's entries: numbers by which BMv2's commands name them.

use p4rack_p4rt::p4::v1::{FieldMatch, TableEntry};
use prost::Message;
use std::collections::{BTreeMap, HashMap};

/// What identifies an entry in its table: keys and priority, serialised.
type Key = Vec<u8>;

/// Handles of a table.
#[derive(Debug, Default)]
pub(super) struct Handles {
    next: u32,
    by_key: HashMap<Key, u32>,
    entries: BTreeMap<u32, TableEntry>,
}

fn key(entry: &TableEntry) -> Key {
    let mut matches: Vec<&FieldMatch> = entry.r#match.iter().collect();
    matches.sort_by_key(|field| field.field_id);
    let only = TableEntry {
        r#match: matches.into_iter().cloned().collect(),
        priority: entry.priority,
        ..Default::default()
    };
    only.encode_to_vec()
}

/// An entry without counts and times, to name it in other requests.
pub(super) fn named(entry: &TableEntry) -> TableEntry {
    TableEntry {
        table_id: entry.table_id,
        r#match: entry.r#match.clone(),
        priority: entry.priority,
        ..Default::default()
    }
}

impl Handles {
    /// Gives a new entry a handle.
    pub fn add(&mut self, entry: &TableEntry) -> u32 {
        let handle = self.next;
        self.next += 1;
        self.by_key.insert(key(entry), handle);
        self.entries.insert(handle, entry.clone());
        handle
    }

    /// The entries of the table are these: they keep their handles, new ones get one, others lose theirs.
    pub fn are(&mut self, found: Vec<TableEntry>) {
        if found.is_empty() {
            // Numbers of an empty table start over, as scripts expect.
            *self = Handles::default();
            return;
        }
        let before = std::mem::take(&mut self.by_key);
        self.entries.clear();
        let mut new = Vec::new();
        for entry in found {
            match before.get(&key(&entry)) {
                Some(handle) => {
                    self.by_key.insert(key(&entry), *handle);
                    self.entries.insert(*handle, entry);
                }
                None => new.push(entry),
            }
        }
        for entry in new {
            self.add(&entry);
        }
    }

    /// The entry with a handle.
    pub fn get(&self, handle: u32) -> Option<&TableEntry> {
        self.entries.get(&handle)
    }

    /// The handle of an entry.
    pub fn of(&self, entry: &TableEntry) -> Option<u32> {
        self.by_key.get(&key(entry)).copied()
    }

    /// All entries, by handle.
    pub fn all(&self) -> impl Iterator<Item = (u32, &TableEntry)> {
        self.entries.iter().map(|(handle, entry)| (*handle, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType};

    fn entry(value: u8) -> TableEntry {
        let field = FieldMatchType::Exact(Exact { value: vec![value] });
        let r#match = vec![FieldMatch { field_id: 1, field_match_type: Some(field) }];
        TableEntry { table_id: 7, r#match, ..Default::default() }
    }

    #[test]
    fn handles_stay_with_their_entries() {
        let mut handles = Handles::default();
        assert_eq!((handles.add(&entry(1)), handles.add(&entry(2))), (0, 1));
        // 1 is gone, 3 is a controller's.
        handles.are(vec![entry(3), entry(2)]);
        assert_eq!(
            (handles.of(&entry(1)), handles.of(&entry(2)), handles.of(&entry(3))),
            (None, Some(1), Some(2))
        );
        assert_eq!(handles.get(0), None);
        assert_eq!(handles.all().map(|(handle, _)| handle).collect::<Vec<_>>(), [1, 2]);
        handles.are(Vec::new());
        assert_eq!(handles.add(&entry(9)), 0, "an empty table starts over");
    }
}
