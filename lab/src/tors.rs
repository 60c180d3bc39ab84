//! Racks with two switches, of which one may die.

use crate::error::LabError;
use crate::process::Process;
use crate::results::TorKill;
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

/// Effects of the kill that a workload asked for. `longest_ns` is the longest time without progress. Errors: the kill has not taken place,
/// or nothing was measured.
pub(crate) fn effects(
    death: Option<Death>,
    longest_ns: Option<u64>,
    doubled: Option<u64>,
) -> Result<Option<TorKill>, LabError> {
    let Some(death) = death else { return Ok(None) };
    let tor = death.tor as u16 + 1;
    let missing = |why: &str| LabError::measurement(format!("the kill of switch {tor}"), why);
    let after_ms = death.after_ms().ok_or_else(|| missing("the workload ended before its time"))?;
    let longest_ns = longest_ns.ok_or_else(|| missing("no operation was measured in the run"))?;
    Ok(Some(TorKill { tor, after_ms, longest_ms: longest_ns as f64 / 1e6, doubled }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_without_a_measurement_is_an_error() {
        let killed =
            |killed_ns| Some(Death { tor: 1, window_start_ns: 1_000_000, at_ns: 2_000_000, killed_ns });
        let words = |death, longest_ns| effects(death, longest_ns, None).unwrap_err().to_string();
        assert!(words(killed(None), Some(5)).contains("the kill of switch 2: the workload ended"));
        assert!(words(killed(Some(3_000_000)), None).contains("no operation was measured"));
        let kill = effects(killed(Some(3_000_000)), Some(5_000_000), Some(1)).unwrap();
        assert_eq!(kill, Some(TorKill { tor: 2, after_ms: 2, longest_ms: 5.0, doubled: Some(1) }));
        assert_eq!(effects(None, None, None).unwrap(), None);
    }
}
