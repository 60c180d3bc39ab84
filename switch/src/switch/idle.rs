//! Idle timeouts of entries, from the control plane.

use super::{Running, Switch};
use crate::objects::TableEntry;
use p4rack_p4::ir::TableId;
use p4rack_wire::Nanos;

impl Switch {
    /// Starts or ends an entry's timeout.
    pub(super) fn start_aging(&mut self, table: TableId, row: u32, timeout_ns: u64) {
        let now = self.now;
        if let Some(running) = &mut self.running {
            running.state.aging.start(table.0, row, timeout_ns, now);
        }
    }

    /// Checks the entries whose alarms are due.
    pub(super) fn age(&mut self, now: Nanos) {
        if let Some(Running { pipeline, state }) = &mut self.running {
            state.aging.check(&pipeline.tables, &state.tables, now);
        }
    }

    /// The next idle entry, and its table.
    pub fn poll_idle(&mut self) -> Option<(TableId, TableEntry)> {
        self.running.as_mut()?.state.aging.pop()
    }

    /// Number of idle entries that were not reported because too many waited.
    pub fn idle_lost(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.state.aging.lost)
    }
}
