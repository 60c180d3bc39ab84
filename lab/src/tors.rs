//! Racks with two switches, of which one may die.

use crate::process::Process;
use crate::sys;
use crate::workload::Span;
use p4rack_codegen::rack::Workload;

/// When a switch is killed, as a share of the window: in the middle of a mix, if there are one, two or four.
const KILLED_AT: (u64, u64) = (3, 8);

/// A switch that is killed while the workload runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// Its position.
    pub(crate) tor: usize,
    window_start_ns: u64,
    at_ns: u64,
    killed_ns: Option<u64>,
}

impl Death {
    /// Time from the start of the window to the kill, if it has taken place.
    pub(crate) fn after_ms(&self) -> Option<u64> {
        self.killed_ns.map(|killed_ns| killed_ns.saturating_sub(self.window_start_ns) / 1_000_000)
    }
}

/// Position of the switch whose statistics count: one that survives the workload.
pub(crate) fn watched(workload: &Workload) -> usize {
    usize::from(workload.kill_tor == Some(1))
}

/// The kill that a workload asks for.
pub(crate) fn plan(workload: &Workload, window: Span) -> Option<Death> {
    workload.kill_tor.map(|tor| Death {
        tor: usize::from(tor) - 1,
        window_start_ns: window.start_ns,
        at_ns: window.start_ns + window.duration_ns / KILLED_AT.1 * KILLED_AT.0,
        killed_ns: None,
    })
}

/// Kills the switch whose time has come.
pub(crate) fn kill_due(death: &mut Option<Death>, switches: &mut [Process]) {
    let Some(death) = death else { return };
    if death.killed_ns.is_none() && sys::monotonic_ns() >= death.at_ns {
        switches[death.tor].kill();
        death.killed_ns = Some(sys::monotonic_ns());
    }
}
