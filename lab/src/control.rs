//! Statistics of the switch, requested from within its namespace.

use crate::error::LabError;
use crate::running::Running;
use p4rack_codegen::scheme::l2::DROPS;
use p4rack_ctrl::telemetry::{GetStatsResponse, Telemetry};
use p4rack_ctrl::{Client, ConnectOptions, CtrlError, Session};
use std::collections::BTreeMap;

/// Statistics of a port.
#[derive(Clone, Debug, Default)]
pub struct PortStats {
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Maximum bytes queued for it.
    pub queue_max_bytes: u64,
    /// Histogram of the queue depth: bytes, nanoseconds.
    pub depth_times: Vec<(u64, u64)>,
    /// Queue depth over time: time in the switch's clock, bytes.
    pub samples: Vec<(u64, u64)>,
}

/// Statistics of the switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchStats {
    /// Statistics of ports, by number.
    pub ports: BTreeMap<u16, PortStats>,
    /// Dropped frames by reason.
    pub drops: BTreeMap<String, u64>,
}

impl SwitchStats {
    /// Statistics of a port. Every port of the rack has some.
    pub fn port(&self, number: u16) -> Result<&PortStats, LabError> {
        let port = self.ports.get(&number);
        port.ok_or_else(|| LabError::measurement("the switch's statistics", format!("missing port {number}")))
    }
}

/// Reads the switch's statistics.
pub fn stats(running: &Running<'_>) -> Result<SwitchStats, LabError> {
    let target = target(running);
    ask(running, "statistics", async { Telemetry::connect(&target).await?.stats().await }).map(read)
}

/// Reads the switch's statistics, which restart after this response.
pub fn start_stats_anew(running: &Running<'_>) -> Result<SwitchStats, LabError> {
    let target = target(running);
    let answer = async { Telemetry::of(&*Session::connect(target).await?).start_anew().await };
    ask(running, "new statistics", answer).map(read)
}

fn read(answer: GetStatsResponse) -> SwitchStats {
    let ports = answer.ports.into_iter().map(|port| {
        let stats = PortStats {
            rx_frames: port.rx_frames,
            tx_frames: port.tx_frames,
            queue_max_bytes: port.queue_max_bytes,
            depth_times: port.depth_times.iter().map(|bin| (bin.depth_bytes, bin.duration_ns)).collect(),
            samples: port.samples.iter().map(|sample| (sample.time_ns, sample.depth_bytes)).collect(),
        };
        (port.port as u16, stats)
    });
    SwitchStats { ports: ports.collect(), drops: answer.drops.into_iter().collect() }
}

/// Frames that the program dropped, by the names of its counter's cells.
pub fn program_drops(running: &Running<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    let target = target(running);
    let cells = ask(running, "counters", async { Client::connect(target).await?.counter(DROPS).await })?;
    let reasons = running.rack.drop_reasons();
    by_name(reasons.iter().map(|reason| reason.name).collect(), cells)
}

/// Cells by name. There must be as many cells as names.
fn by_name(names: Vec<&str>, cells: Vec<u64>) -> Result<BTreeMap<String, u64>, LabError> {
    if names.len() != cells.len() {
        let why = format!("{} cells instead of {}", cells.len(), names.len());
        return Err(LabError::measurement(format!("the switch's counter {DROPS}"), why));
    }
    Ok(names.into_iter().map(str::to_owned).zip(cells).collect())
}

fn target(running: &Running<'_>) -> ConnectOptions {
    let switch = &running.rack.switch;
    let addr = switch.grpc_addrs().nth(running.watched).unwrap_or(switch.grpc_addr);
    ConnectOptions::new(addr.to_string(), switch.device_id)
}

/// Runs a request on its own thread inside the switch's namespace, where its server listens.
fn ask<T: Send>(
    running: &Running<'_>,
    what: &'static str,
    request: impl Future<Output = Result<T, CtrlError>> + Send,
) -> Result<T, LabError> {
    let answer = running.network.switch.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(request).map_err(|error| error.to_string())
    })?;
    answer.map_err(|why| LabError::Control { what, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_or_a_cell_that_is_missing_is_an_error_that_names_it() {
        let stats = SwitchStats { ports: [(1, PortStats::default())].into(), ..SwitchStats::default() };
        assert!(stats.port(1).is_ok());
        let error = stats.port(2).unwrap_err().to_string();
        assert_eq!(error, "the switch's statistics: missing port 2");
        assert_eq!(by_name(vec!["a", "b"], vec![1, 2]).unwrap()["b"], 2);
        let error = by_name(vec!["a", "b"], vec![1]).unwrap_err().to_string();
        assert!(error.contains(DROPS) && error.contains("1 cells instead of 2"), "{error}");
    }
}
