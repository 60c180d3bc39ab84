//! Readings at the edges of the window and behind the traffic.

use crate::control::{self, SwitchStats};
use crate::ends::{self, End};
use crate::error::LabError;
use crate::network::{self, InterfaceCounts};
use crate::process::pause;
use crate::running::Running;
use std::time::Duration;

/// How long counters must not change for all frames to have arrived, and the maximum tries.
const SETTLE: Duration = Duration::from_millis(150);
const SETTLE_TRIES: usize = 20;
/// Readings of the receivers' interfaces at each edge of the window, and the pause after each: a process that a busy machine
/// holds up for some 40 ms catches up within them.
const EDGE_READINGS: usize = 40;
const EDGE_PAUSE: Duration = Duration::from_millis(2);

/// Frames that the receivers' applications had received at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub at_ns: u64,
    pub counts: InterfaceCounts,
}

impl Snapshot {
    /// Of several readings, the one that is least behind a port of `rate_bps`. Frames that the agent delivers
    /// late at the window's edge would otherwise count on the wrong side of it.
    pub fn take(running: &Running<'_>, receivers: &[usize], rate_bps: u64) -> Result<Snapshot, LabError> {
        let mut readings = Vec::with_capacity(EDGE_READINGS);
        for _ in 0..EDGE_READINGS {
            readings.extend(Snapshot::read(running, receivers)?);
            pause(EDGE_PAUSE)?;
        }
        least_behind(&readings, rate_bps)
            .ok_or_else(|| LabError::measurement("counts of the receivers' interfaces", "none was read"))
    }

    /// The counts of all receivers together, one read after the other within microseconds.
    fn read(running: &Running<'_>, receivers: &[usize]) -> Result<Option<Snapshot>, LabError> {
        let mut all: Option<Snapshot> = None;
        for receiver in receivers {
            let network = running.network;
            let interface = network.application_interface();
            let (at_ns, counts) = network::interface_counts(&network.hosts[*receiver], interface)?;
            all = Some(match all {
                None => Snapshot { at_ns, counts },
                Some(sum) => Snapshot { counts: sum.counts + counts, ..sum },
            });
        }
        Ok(all)
    }

    fn payload_bytes(&self) -> u64 {
        const ETHERNET_HEADER: u64 = 14;
        self.counts.rx_bytes.saturating_sub(self.counts.rx_frames * ETHERNET_HEADER)
    }
}

/// The reading with the largest lead over what `rate_bps` gives until its time.
pub(super) fn least_behind(readings: &[Snapshot], rate_bps: u64) -> Option<Snapshot> {
    let start_ns = readings.first()?.at_ns;
    let ahead = |reading: &Snapshot| {
        let due_bytes = u128::from(rate_bps) * u128::from(reading.at_ns - start_ns) / 8_000_000_000;
        i128::from(reading.payload_bytes()) - due_bytes as i128
    };
    readings.iter().copied().max_by_key(ahead)
}

/// Rate of Ethernet payload through the TAP between two times. The first frame had started before, so it does
/// not count.
pub(super) fn goodput_bps(before: &Snapshot, after: &Snapshot) -> u64 {
    let frames = after.counts.rx_frames.saturating_sub(before.counts.rx_frames);
    let bytes = after.payload_bytes().saturating_sub(before.payload_bytes());
    let whole_bytes = u128::from(bytes) * u128::from(frames.saturating_sub(1)) / u128::from(frames.max(1));
    let span_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
    (whole_bytes as f64 * 8e9 / span_ns as f64) as u64
}

/// The counts of the switch and of the hosts once no frame is in flight, so that what one end has sent and the other has
/// received can be compared.
pub(super) fn settled(running: &mut Running<'_>) -> Result<(SwitchStats, Vec<End>), LabError> {
    let frames = |ends: &[End]| -> Vec<(u64, u64)> {
        ends.iter().map(|end| (end.received_frames, end.sent_frames)).collect()
    };
    let before = frames(&ends::read(running)?);
    unchanged(before, || {
        pause(SETTLE)?;
        let stats = control::stats(running)?;
        let ends = ends::read(running)?;
        Ok((frames(&ends), (stats, ends)))
    })
}

/// The first reading that equals the one before it.
pub(super) fn unchanged<T>(
    mut before: Vec<(u64, u64)>,
    mut read: impl FnMut() -> Result<(Vec<(u64, u64)>, T), LabError>,
) -> Result<T, LabError> {
    for _ in 0..SETTLE_TRIES {
        let (after, with) = read()?;
        if after == before {
            return Ok(with);
        }
        before = after;
    }
    let why = format!("they still change after {SETTLE_TRIES} readings, so losses cannot be determined");
    Err(LabError::measurement("the hosts' counts of frames once the traffic has ended", why))
}
