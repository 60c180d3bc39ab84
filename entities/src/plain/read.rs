//! Reads plain entries: from the table's words directly to the bytes of the response.

use super::{Plan, Plans};
use p4rack_p4::ir::MatchKind;
use p4rack_switch::{FieldLayout, PlainEntry, Switch};

/// Keys of the messages' fields: number and wire type.
const ENTITIES: u8 = 1 << 3 | 2;
const TABLE_ENTRY: u8 = 2 << 3 | 2;
const TABLE_ID: u8 = 1 << 3;
const MATCH: u8 = 2 << 3 | 2;
const TABLE_ACTION: u8 = 3 << 3 | 2;
const PRIORITY: u8 = 4 << 3;
const FIELD_ID: u8 = 1 << 3;
const EXACT: u8 = 2 << 3 | 2;
const TERNARY: u8 = 3 << 3 | 2;
const LPM: u8 = 4 << 3 | 2;
const OPTIONAL: u8 = 7 << 3 | 2;
const VALUE: u8 = 1 << 3 | 2;
const MASK: u8 = 2 << 3 | 2;
const PREFIX_LEN: u8 = 2 << 3;
const ACTION: u8 = 1 << 3 | 2;
const ACTION_ID: u8 = 1 << 3;
const PARAMS: u8 = 4 << 3 | 2;
const PARAM_ID: u8 = 2 << 3;
const PARAM_VALUE: u8 = 3 << 3 | 2;

/// Entries of one table as words: action, rank, key, mask, arguments.
#[derive(Debug)]
pub struct Entries {
    plan: usize,
    words: Vec<u64>,
}

impl Plans {
    /// Up to `most` entries of a table from a position on, and the position after them if there may be more.
    /// `None` if an entry is not plain.
    pub fn read(
        &self,
        info_id: u32,
        switch: &Switch,
        from: u32,
        most: usize,
    ) -> Option<(Entries, Option<u32>)> {
        let number = self.find(u64::from(info_id))?;
        let plan = &self.tables[number];
        let mut words = Vec::with_capacity(most.min(64) * plan.row());
        let next = switch.read_plain(plan.table, from, most, |entry: PlainEntry<'_>| {
            words.extend([u64::from(entry.action), entry.rank as u64]);
            for part in [entry.value, entry.mask, entry.args] {
                words.extend_from_slice(part);
            }
            plan.actions.iter().any(|action| action.position == entry.action)
        })?;
        Some((Entries { plan: number, words }, next))
    }

    /// The fields of a `ReadResponse` with these entries.
    pub fn encode(&self, entries: &Entries, out: &mut Vec<u8>) {
        let Some(plan) = self.tables.get(entries.plan) else { return };
        for row in entries.words.chunks_exact(plan.row()) {
            nested(out, ENTITIES, |out| nested(out, TABLE_ENTRY, |out| plan.encode(row, out)));
        }
    }
}

impl Plan {
    fn masked(&self) -> bool {
        self.layout.needs_priority
    }

    /// Number of words of an entry.
    fn row(&self) -> usize {
        let keys = if self.masked() { 2 } else { 1 };
        2 + keys * self.layout.key_words + self.layout.arg_words
    }

    fn encode(&self, row: &[u64], out: &mut Vec<u8>) {
        let (action, rank) = (row[0] as u32, row[1] as u32);
        let (value, rest) = row[2..].split_at(self.layout.key_words);
        let (mask, args) = rest.split_at(if self.masked() { self.layout.key_words } else { 0 });
        number(out, TABLE_ID, self.info_id);
        for ((kind, place), id) in self.layout.keys.iter().zip(&self.fields) {
            let (value, mask) = (place.of(value), place.of(mask));
            let cares = || mask.iter().any(|word| *word != 0);
            let ones = || mask.iter().map(|word| word.count_ones()).sum();
            match kind {
                MatchKind::Lpm => {
                    let length = if self.masked() { ones() } else { rank };
                    if length > 0 {
                        Plan::matched(out, *id, LPM, |out| {
                            bytes(out, VALUE, value);
                            number(out, PREFIX_LEN, length);
                        });
                    }
                }
                MatchKind::Ternary if cares() => Plan::matched(out, *id, TERNARY, |out| {
                    bytes(out, VALUE, value);
                    bytes(out, MASK, mask);
                }),
                MatchKind::Optional if cares() => {
                    Plan::matched(out, *id, OPTIONAL, |out| bytes(out, VALUE, value))
                }
                MatchKind::Exact => Plan::matched(out, *id, EXACT, |out| bytes(out, VALUE, value)),
                _ => {}
            }
        }
        if let Some(action) = self.actions.iter().find(|found| found.position == action) {
            nested(out, TABLE_ACTION, |out| {
                nested(out, ACTION, |out| {
                    number(out, ACTION_ID, action.id);
                    for (id, place) in &action.params {
                        param(out, *id, place, args);
                    }
                });
            });
        }
        if self.masked() {
            number(out, PRIORITY, rank);
        }
    }

    fn matched(out: &mut Vec<u8>, id: u32, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
        nested(out, MATCH, |out| {
            number(out, FIELD_ID, id);
            nested(out, kind, content);
        });
    }
}

fn param(out: &mut Vec<u8>, id: u32, place: &FieldLayout, args: &[u64]) {
    nested(out, PARAMS, |out| {
        number(out, PARAM_ID, id);
        bytes(out, PARAM_VALUE, place.of(args));
    });
}

/// Appends a number; omits zero.
fn number(out: &mut Vec<u8>, key: u8, value: u32) {
    if value != 0 {
        out.push(key);
        varint(out, value as usize);
    }
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number as the shortest byte string; the lowest word comes first.
fn bytes(out: &mut Vec<u8>, key: u8, words: &[u64]) {
    let used = words.iter().rposition(|word| *word != 0).unwrap_or(0);
    let first = words.get(used).copied().unwrap_or(0);
    let length = (8 - first.leading_zeros() as usize / 8).max(1);
    out.push(key);
    varint(out, length + 8 * used);
    out.extend_from_slice(&first.to_be_bytes()[8 - length..]);
    for word in words.iter().take(used).rev() {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

/// Appends a nested message. Nearly all are so short that their length takes one byte.
#[inline]
fn nested(out: &mut Vec<u8>, key: u8, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[key, 0]);
    let from = out.len();
    content(out);
    let length = out.len() - from;
    if length < 0x80 {
        out[from - 1] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        varint(&mut prefix, length);
        out.splice(from - 1..from, prefix);
    }
}
