//! Idle timeouts of entries, from the control plane.

use super::{Running, Switch};
use crate::aging::Place;
use crate::error::ControlError;
use crate::objects::{IdleEntry, Pipes};
use crate::switch::pipes::table_in;
use p4rack_p4::ir::{Matcher, TableId};
use p4rack_wire::Nanos;

impl Switch {
    /// Starts or ends an entry's timeout; the row is that of the first selected pipe.
    pub(super) fn start_aging(&mut self, table: TableId, row: u32, timeout_ns: u64) {
        let (now, pipe, pipes) = (self.now, self.meant().next().unwrap_or(0), self.meant);
        if let Some(running) = &mut self.running {
            running.state.aging.start((table.0, pipe, row), pipes, timeout_ns, now);
        }
    }

    /// Starts an entry's timeout at `from`, or continues it from its last hit.
    pub fn continue_timeout(
        &mut self,
        table: TableId,
        keys: &[Matcher],
        priority: i32,
        from: Option<Nanos>,
    ) -> Result<(), ControlError> {
        let (row, timeout_ns, hit) = self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let row = state.row(shape, keys, priority)?;
            let timeout_ns = state.idle_timeout_ns(row).unwrap_or(0);
            let hit = state.last_hit.get_mut(row as usize);
            Ok((
                row,
                timeout_ns,
                hit.map_or(0, |hit| std::mem::replace(hit, from.map_or(*hit, |from| from.0))),
            ))
        })?;
        let (pipe, from) = (self.meant().next().unwrap_or(0), from.unwrap_or(Nanos(hit)));
        let pipes = self.meant;
        if let Some(running) = &mut self.running {
            running.state.aging.start((table.0, pipe, row), pipes, timeout_ns, from);
        }
        Ok(())
    }

    /// Checks the entries whose alarms are due.
    pub(super) fn age(&mut self, now: Nanos) {
        let Some(Running { pipeline, state }) = &mut self.running else { return };
        let mut aging = std::mem::take(&mut state.aging);
        let all = &*state;
        let table = |table: u32, pipe: usize| all.of(pipe).tables.get(table as usize);
        let hit = |number: u32, pipe: usize, row: u32| {
            table(number, pipe).and_then(|table| table.last_hit.get(row as usize).copied()).unwrap_or(0)
        };
        let last_hit = |(number, first, row): Place, pipes: Pipes| {
            let last = |row: &dyn Fn(usize) -> Option<u32>| {
                let hits = pipes.below(all.pipes()).filter_map(|pipe| Some(hit(number, pipe, row(pipe)?)));
                hits.max().unwrap_or(0)
            };
            // Pipes with equal entries have them in the same rows.
            if all.apart.get(number as usize) == Some(&false) {
                return last(&|_| Some(row));
            }
            let shape = pipeline.tables.get(number as usize);
            let own = shape.and_then(|shape| Some((shape, table(number, first)?.entry(shape, row)?)));
            last(&|pipe| {
                let (shape, entry) = own.as_ref()?;
                table(number, pipe)?.row(shape, &entry.keys, entry.priority).ok()
            })
        };
        aging.check(&pipeline.tables, table, last_hit, now);
        state.aging = aging;
    }

    /// The next idle entry.
    pub fn poll_idle(&mut self) -> Option<IdleEntry> {
        self.running.as_mut()?.state.aging.pop()
    }

    /// Number of idle entries that were not reported because too many waited.
    pub fn idle_lost(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.state.aging.lost)
    }
}
