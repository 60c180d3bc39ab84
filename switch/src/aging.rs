//! Idle timeouts: finds entries that no packet has hit for the duration of their timeout.
//!
//! Each entry with a timeout has one alarm. A hit only records its time, and only in tables with
//! `support_timeout`. When the alarm goes off, that time decides whether the entry is idle or when to check again.
//! The timeout of an idle entry restarts once it is reported.

use crate::objects::{IdleEntry, Pipes};
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

/// Where an entry is: table, pipe and row.
pub(crate) type Place = (u32, usize, u32);

/// The alarms, and the idle entries they found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aging {
    /// Alarms by time.
    alarms: BTreeSet<(Nanos, Place)>,
    /// Time of the alarm of an entry, and the pipes that have it.
    set: BTreeMap<Place, (Nanos, Pipes)>,
    /// Time of the first alarm, which is checked after every frame.
    next: Option<Nanos>,
    idle: VecDeque<IdleEntry>,
    /// Idle entries that were not reported because too many waited.
    pub lost: u64,
}

impl Aging {
    /// Starts an entry's timeout; 0 ends it.
    pub fn start(&mut self, place: Place, pipes: Pipes, timeout_ns: u64, now: Nanos) {
        let at = (timeout_ns != 0).then(|| (after(now, timeout_ns), pipes));
        self.set(place, at);
    }

    /// Checks the entries whose alarms are due. `table` gives a pipe's table, `last_hit` the time of an entry's last
    /// hit in any of the pipes that have it.
    pub fn check<'a>(
        &mut self,
        shapes: &[TableShape],
        table: impl Fn(u32, usize) -> Option<&'a TableState>,
        last_hit: impl Fn(Place, Pipes) -> u64,
        now: Nanos,
    ) {
        for _ in 0..ALARMS_A_TURN {
            let Some(&(at, place)) = self.alarms.first().filter(|(at, _)| *at <= now) else {
                return;
            };
            let (number, pipe, row) = place;
            let pipes = self.set.get(&place).map_or(Pipes::ALL, |(_, pipes)| *pipes);
            let entries = shapes.get(number as usize).zip(table(number, pipe));
            let found =
                entries.and_then(|(shape, entries)| Some((entries.idle_timeout_ns(row)?, shape, entries)));
            let Some((timeout_ns, shape, entries)) = found else {
                self.set(place, None);
                continue;
            };
            let last_hit = Nanos(last_hit(place, pipes));
            let due = after(last_hit, timeout_ns);
            if due > now {
                self.set(place, Some((due, pipes)));
                continue;
            }
            if self.idle.len() >= IDLE_LIMIT {
                self.lost += 1;
            } else if let Some(entry) = entries.entry(shape, row) {
                self.idle.push_back(IdleEntry { table: TableId(number), pipe, pipes, last_hit, entry });
            }
            self.set(place, Some((after(now.max(at), timeout_ns), pipes)));
        }
    }

    /// Removes the idle entry that has waited longest.
    pub fn pop(&mut self) -> Option<IdleEntry> {
        self.idle.pop_front()
    }

    /// Sets or removes the alarm of an entry.
    fn set(&mut self, place: Place, at: Option<(Nanos, Pipes)>) {
        let before = match at {
            Some(at) => self.set.insert(place, at),
            None => self.set.remove(&place),
        };
        if let Some((before, _)) = before {
            self.alarms.remove(&(before, place));
        }
        if let Some((at, _)) = at {
            self.alarms.insert((at, place));
        }
        self.next = self.alarms.first().map(|(at, _)| *at);
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
