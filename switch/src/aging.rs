//! Idle timeouts: finds entries that no packet has hit for the duration of their timeout.
//!
//! Each entry with a timeout has one alarm. A hit only records its time, and only in tables with
//! `support_timeout`. When the alarm goes off, that time tells whether the entry is idle or when to check
//! again. The timeout of an idle entry restarts once it is reported.

use crate::objects::TableEntry;
use crate::shape::TableShape;
use crate::table::TableState;
use p4rack_p4::ir::TableId;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Minimum timeout; shorter ones are extended to it.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// Alarms processed before packets get a turn.
const ALARMS_A_TURN: usize = 64;
/// Maximum idle entries that wait for [`crate::Switch::poll_idle`]; further ones are not reported this time.
const IDLE_LIMIT: usize = 4096;

/// The alarms, and the idle entries they found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aging {
    /// Alarms by time: time, table, row.
    alarms: BTreeSet<(Nanos, u32, u32)>,
    /// Time of the alarm of a table's row.
    set: BTreeMap<(u32, u32), Nanos>,
    /// Time of the first alarm, which is checked after every frame.
    next: Option<Nanos>,
    idle: VecDeque<(TableId, TableEntry)>,
    /// Idle entries that were not reported because too many waited.
    pub lost: u64,
}

impl Aging {
    /// Starts an entry's timeout; 0 ends it.
    pub fn start(&mut self, table: u32, row: u32, timeout_ns: u64, now: Nanos) {
        let at = (timeout_ns != 0).then(|| after(now, timeout_ns));
        self.set(table, row, at);
    }

    /// Checks the entries whose alarms are due.
    pub fn check(&mut self, shapes: &[TableShape], tables: &[TableState], now: Nanos) {
        for _ in 0..ALARMS_A_TURN {
            let Some(&(at, table, row)) = self.alarms.first().filter(|(at, ..)| *at <= now) else {
                return;
            };
            let entries = shapes.get(table as usize).zip(tables.get(table as usize));
            let found = entries.and_then(|(shape, entries)| {
                let hit = entries.last_hit.get(row as usize).copied().unwrap_or(0);
                Some((hit, entries.idle_timeout_ns(row)?, shape, entries))
            });
            let Some((hit, timeout_ns, shape, entries)) = found else {
                self.set(table, row, None);
                continue;
            };
            let due = after(Nanos(hit), timeout_ns);
            if due > now {
                self.set(table, row, Some(due));
                continue;
            }
            if self.idle.len() >= IDLE_LIMIT {
                self.lost += 1;
            } else if let Some(entry) = entries.entry(shape, row) {
                self.idle.push_back((TableId(table), entry));
            }
            self.set(table, row, Some(after(now.max(at), timeout_ns)));
        }
    }

    /// Removes the idle entry that has waited longest, and its table.
    pub fn pop(&mut self) -> Option<(TableId, TableEntry)> {
        self.idle.pop_front()
    }

    /// Sets or removes the alarm of a row.
    fn set(&mut self, table: u32, row: u32, at: Option<Nanos>) {
        let before = match at {
            Some(at) => self.set.insert((table, row), at),
            None => self.set.remove(&(table, row)),
        };
        if let Some(before) = before {
            self.alarms.remove(&(before, table, row));
        }
        if let Some(at) = at {
            self.alarms.insert((at, table, row));
        }
        self.next = self.alarms.first().map(|(at, ..)| *at);
    }

    /// Time of the next alarm.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.next
    }
}

fn after(from: Nanos, timeout_ns: u64) -> Nanos {
    Nanos(from.0.saturating_add(timeout_ns.max(SHORTEST.0)))
}
