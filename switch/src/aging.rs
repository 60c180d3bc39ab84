//! Idle timeouts: finds entries that no packet has hit for the duration of their timeout.
//!
//! Each entry with a timeout has one alarm. A hit only records its time, and only in tables with
//! `support_timeout`. When the alarm goes off, that time tells whether the entry is idle or when to check
//! again. The timeout of an idle entry restarts once it is reported.

use crate::objects::TableEntry;
use crate::switch::{Running, Switch};
use p4rack_p4::ir::TableId;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Minimum timeout; shorter ones are extended to it.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// Alarms processed before packets get a turn.
const ALARMS_A_TURN: usize = 64;
/// Maximum idle entries that wait for [`Switch::poll_idle`]; further ones are not reported this time.
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
    lost: u64,
}

impl Aging {
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

impl Switch {
    /// Starts or ends an entry's timeout.
    pub(crate) fn start_aging(&mut self, table: TableId, row: u32, timeout_ns: u64) {
        let now = self.now;
        if let Some(running) = &mut self.running {
            let at = (timeout_ns != 0).then(|| after(now, timeout_ns));
            running.state.aging.set(table.0, row, at);
        }
    }

    /// Checks the entries whose alarms are due.
    pub(crate) fn age(&mut self, now: Nanos) {
        let Some(Running { pipeline, state }) = &mut self.running else { return };
        for _ in 0..ALARMS_A_TURN {
            let Some(&(at, table, row)) = state.aging.alarms.first().filter(|(at, ..)| *at <= now) else {
                return;
            };
            let entries = pipeline.tables.get(table as usize).zip(state.tables.get(table as usize));
            let found = entries.and_then(|(shape, entries)| {
                let hit = entries.last_hit.get(row as usize).copied().unwrap_or(0);
                Some((hit, entries.idle_timeout_ns(row)?, shape, entries))
            });
            let Some((hit, timeout_ns, shape, entries)) = found else {
                state.aging.set(table, row, None);
                continue;
            };
            let due = after(Nanos(hit), timeout_ns);
            if due > now {
                state.aging.set(table, row, Some(due));
                continue;
            }
            if state.aging.idle.len() >= IDLE_LIMIT {
                state.aging.lost += 1;
            } else if let Some(entry) = entries.entry(shape, row) {
                state.aging.idle.push_back((TableId(table), entry));
            }
            state.aging.set(table, row, Some(after(now.max(at), timeout_ns)));
        }
    }

    /// The next idle entry, and its table.
    pub fn poll_idle(&mut self) -> Option<(TableId, TableEntry)> {
        self.running.as_mut()?.state.aging.idle.pop_front()
    }

    /// Number of idle entries that were not reported because too many waited.
    pub fn idle_lost(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.state.aging.lost)
    }
}

fn after(from: Nanos, timeout_ns: u64) -> Nanos {
    Nanos(from.0.saturating_add(timeout_ns.max(SHORTEST.0)))
}
