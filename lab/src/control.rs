//! What the switch says of itself, asked from within its namespace.

use crate::error::LabError;
use crate::running::Running;
use std::collections::BTreeMap;

/// One port.
#[derive(Clone, Debug, Default)]
pub struct PortStats {
    /// Frames taken in.
    pub rx_frames: u64,
    /// Frames given out.
    pub tx_frames: u64,
    /// Most bytes that waited for it.
    pub queue_max_bytes: u64,
    /// How long its queue was how deep: bytes, nanoseconds.
    pub depth_times: Vec<(u64, u64)>,
    /// The queue over time: the switch's clock, bytes.
    pub samples: Vec<(u64, u64)>,
}

/// The switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchStats {
    /// By number.
    pub ports: BTreeMap<u16, PortStats>,
    /// Dropped frames by reason.
    pub drops: BTreeMap<String, u64>,
}

/// The switch's statistics.
pub fn stats(_running: &Running<'_>, _reset: bool) -> Result<SwitchStats, LabError> {
    Ok(SwitchStats::default())
}

/// Frames that the program dropped, by the names of its counter's cells.
pub fn program_drops(_running: &Running<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    Ok(BTreeMap::new())
}
