//! Kills a host with unused grants and measures the effect on the others.

use crate::error::LabError;
use crate::process::Process;
use crate::progress::Progress;
use crate::promises::KILL_SHARE;
use crate::results::{HostKill, Series};
use crate::running::Running;
use crate::stats::moving_mean;
use crate::sys;
use crate::workload::{BUCKET_NS, Span, Timeline};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// Traffic after the window, for the kill, the reset, and the recovery after each.
pub(crate) const TAIL_NS: u64 = 3_600_000_000;
/// From the window's end to the kill; the figures are read in between.
const KILL_AFTER_NS: u64 = 300_000_000;
/// From the kill to the reset.
const RESET_AFTER_NS: u64 = 1_000_000_000;
/// Span before the kill over which the others' goodput is averaged.
const BEFORE_NS: u64 = 2_000_000_000;
/// Buckets over which a momentary rate is averaged: 300 ms.
const SMOOTH_BUCKETS: usize = 3;
/// How long the reset may take.
const RESET_LIMIT: Duration = Duration::from_secs(5);

/// A kill and its reset.
#[derive(Debug)]
pub(crate) struct Killed {
    pub(crate) host: String,
    pub(crate) kill_ns: u64,
    pub(crate) reset_ns: Option<u64>,
}

/// Kills the host's agent in the middle of its work. In counter mode, takes back its reservations a second
/// later. The sending program keeps running to no effect, so its offered load still counts.
pub(crate) fn run(
    running: &mut Running<'_>,
    host: &str,
    window: Span,
    progress: &Progress,
) -> Result<Killed, LabError> {
    let scheme = running.scheme;
    let index = running.index(host)?;
    progress.wait_until(&format!("{scheme}: measured"), window.end_ns() + KILL_AFTER_NS, &mut || {
        running.check()
    })?;
    running.agents[index].kill();
    running.gone = Some(index);
    let kill_ns = sys::monotonic_ns();
    progress.line(&format!("✓ {scheme}: killed {host} while it sent"));
    let mut reset_ns = None;
    if let Some(command) = running.rack.protocols.iter().find_map(|protocol| protocol.forget_command()) {
        progress.wait_until(&format!("{scheme}: {host} is dead"), kill_ns + RESET_AFTER_NS, &mut || {
            running.check()
        })?;
        reset(running, command, host)?;
        reset_ns = Some(sys::monotonic_ns());
        progress.line(&format!("✓ {scheme}: took back what {host} had reserved, by a management frame"));
    }
    Ok(Killed { host: host.to_owned(), kill_ns, reset_ns })
}

/// Makes the switch take back the dead host's reservations towards the receiver.
fn reset(running: &Running<'_>, command: &[&str], host: &str) -> Result<(), LabError> {
    let receiver = running.rack.workload.as_ref().map_or("", |workload| workload.ends().0);
    let mut args: Vec<OsString> = command.iter().map(OsString::from).collect();
    args.push(running.path.into());
    let arch = running.rack.switch.arch.name();
    args.extend(["--host", host, "--to", receiver, "--arch", arch].map(OsString::from));
    let name = format!("p4rack {}", command.join(" "));
    Process::start(&name, &running.network.switch, args)?.finish(RESET_LIMIT).map(drop)
}

/// The others' figures, from the frames that each of them delivered.
pub(crate) fn judge(killed: &Killed, series: &Series, drops: BTreeMap<String, u64>) -> HostKill {
    let others =
        Timeline::sum(series.goodput.iter().filter(|(host, _)| **host != killed.host).map(|(_, line)| line));
    let kill_ns = series.kill_ns.unwrap_or(0);
    let end_ns = others.bytes.len() as u64 * BUCKET_NS;
    let before_bps = others.rate_bps(kill_ns.saturating_sub(BEFORE_NS), kill_ns);
    let until_ns = series.reset_ns.unwrap_or(end_ns);
    let min_bps = momentary(&others, kill_ns, until_ns).into_iter().fold(f64::INFINITY, f64::min);
    let recovered_after_ms = series.reset_ns.and_then(|reset_ns| {
        let rates = momentary(&others, reset_ns, end_ns);
        let first = rates.iter().position(|rate| *rate >= before_bps * KILL_SHARE)?;
        let seen_at_ns = (reset_ns.div_ceil(BUCKET_NS) + (first + SMOOTH_BUCKETS) as u64) * BUCKET_NS;
        Some((seen_at_ns - reset_ns) / 1_000_000)
    });
    HostKill {
        host: killed.host.clone(),
        others_before_bps: before_bps as u64,
        others_after_bps: others.rate_bps(kill_ns, end_ns) as u64,
        others_min_bps: if min_bps.is_finite() { min_bps as u64 } else { 0 },
        reset_after_ms: series.reset_ns.map(|reset_ns| reset_ns.saturating_sub(kill_ns) / 1_000_000),
        recovered_after_ms,
        fabric_drops: drops.values().sum(),
        drops,
    }
}

/// Smoothed rates of the full buckets between two times. The last bucket is never full.
fn momentary(line: &Timeline, from_ns: u64, to_ns: u64) -> Vec<f64> {
    let from = from_ns.div_ceil(BUCKET_NS) as usize;
    let to = ((to_ns / BUCKET_NS) as usize).min(line.bytes.len().saturating_sub(1));
    let rates: Vec<f64> = line
        .bytes
        .get(from..to.max(from))
        .unwrap_or_default()
        .iter()
        .map(|bytes| *bytes as f64 * 8e9 / BUCKET_NS as f64)
        .collect();
    moving_mean(&rates, SMOOTH_BUCKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two senders; `h5` dies at 4 s, the other's rate is `after` from then on, and `reset` at 5 s.
    fn series(after: u64, after_reset: u64) -> Series {
        let mut series = Series { kill_ns: Some(4_000_000_000), ..Series::default() };
        let (mut h2, mut h5) = (Timeline::default(), Timeline::default());
        for bucket in 0..70u64 {
            let bytes = if bucket < 40 {
                1_000
            } else if bucket < 50 {
                after
            } else {
                after_reset
            };
            h2.add(bucket * BUCKET_NS, bytes);
            if bucket < 40 {
                h5.add(bucket * BUCKET_NS, 1_000);
            }
        }
        series.goodput = [("h2".to_owned(), h2), ("h5".to_owned(), h5)].into();
        series
    }

    fn killed() -> Killed {
        Killed { host: "h5".to_owned(), kill_ns: 0, reset_ns: None }
    }

    #[test]
    fn only_the_others_count() {
        let kill = judge(&killed(), &series(900, 900), BTreeMap::new());
        assert_eq!(kill.others_before_bps, 80_000);
        assert_eq!(kill.others_min_bps, 72_000);
        assert_eq!(kill.recovered_after_ms, None);
    }

    #[test]
    fn a_dip_shows_and_a_single_late_bucket_is_smoothed() {
        let mut dip = series(1_000, 1_000);
        dip.goodput.get_mut("h2").unwrap().bytes[45] = 0;
        assert_eq!(judge(&killed(), &dip, BTreeMap::new()).others_min_bps, 53_333);
        let mut jitter = series(1_000, 1_000);
        let line = jitter.goodput.get_mut("h2").unwrap();
        (line.bytes[45], line.bytes[46]) = (700, 1_300);
        assert!(judge(&killed(), &jitter, BTreeMap::new()).others_min_bps >= 72_000);
    }

    #[test]
    fn recovery_is_timed_from_the_reset() {
        let mut slow = series(300, 1_000);
        slow.reset_ns = Some(5_000_000_000);
        let kill = judge(&killed(), &slow, [("switch.buffer_full".to_owned(), 2)].into());
        assert_eq!(kill.recovered_after_ms, Some(300));
        assert_eq!(kill.others_min_bps, 24_000);
        assert_eq!((kill.reset_after_ms, kill.fabric_drops), (Some(1_000), 2));
        let mut never = series(300, 300);
        never.reset_ns = Some(5_000_000_000);
        assert_eq!(judge(&killed(), &never, BTreeMap::new()).recovered_after_ms, None);
    }

    #[test]
    fn nothing_received_is_zero_not_infinite() {
        let kill = judge(&killed(), &Series::default(), BTreeMap::new());
        assert_eq!((kill.others_before_bps, kill.others_min_bps), (0, 0));
    }
}
