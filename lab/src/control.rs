//! What the switch says of itself, asked from within its namespace.

use crate::error::LabError;
use crate::running::Running;
use p4rack_codegen::drop_reasons;
use p4rack_ctrl::telemetry::Telemetry;
use p4rack_ctrl::{CtrlError, Session, Target};
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

/// The program's counter of dropped frames.
const DROPS: &str = "RackIngress.drops";

/// The switch's statistics; with `reset`, new ones start after this answer.
pub fn stats(running: &Running<'_>, reset: bool) -> Result<SwitchStats, LabError> {
    let target = target(running);
    let answer = ask(running, "statistics", async { Telemetry::connect(&target).await?.stats(reset).await })?;
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
    Ok(SwitchStats { ports: ports.collect(), drops: answer.drops.into_iter().collect() })
}

/// Frames that the program dropped, by the names of its counter's cells.
pub fn program_drops(running: &Running<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    let target = target(running);
    let cells = ask(running, "counters", async { Session::connect(target).await?.counter(DROPS).await })?;
    let names = drop_reasons(running.scheme).iter().map(|reason| reason.name.to_owned());
    Ok(names.zip(cells).collect())
}

fn target(running: &Running<'_>) -> Target {
    let switch = &running.rack.switch;
    Target::new(switch.grpc_addr.to_string(), switch.device_id)
}

/// Runs a request on a thread of its own inside the switch's namespace, where its server listens.
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
