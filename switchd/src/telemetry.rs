//! The telemetry service: the switch's own counters, next to P4Runtime.

use crate::core::{Gone, Handle};
use crate::p4runtime::{Claim, Device, connection_of};
use crate::wire::{LINK_FULL, LINK_LOSS};
use p4rack_p4rt::p4rack::telemetry::v1::telemetry_server::Telemetry;
use p4rack_p4rt::p4rack::telemetry::v1::{
    DepthSample, DepthTime, GetStatsRequest, GetStatsResponse, PortStats,
};
use p4rack_switch::{self as switch, DropReason};
use p4rack_wire::Nanos;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tonic::{Request, Response, Status};

/// Serves the statistics of a switch.
#[derive(Clone, Debug)]
pub(crate) struct TelemetryService {
    handle: Handle,
    device: Arc<Device>,
}

impl TelemetryService {
    /// A service for the switch behind `handle`. The device knows the primary.
    pub fn new(handle: Handle, device: Arc<Device>) -> TelemetryService {
        TelemetryService { handle, device }
    }
}

#[tonic::async_trait]
impl Telemetry for TelemetryService {
    async fn get_stats(
        &self,
        request: Request<GetStatsRequest>,
    ) -> Result<Response<GetStatsResponse>, Status> {
        let connection = connection_of(&request)?;
        let GetStatsRequest { reset, device_id, election_id, role } = request.into_inner();
        if !reset {
            let answer = read(&self.handle).await?;
            connection.answer(answer.encoded_len())?;
            return Ok(Response::new(answer));
        }
        let claim = Claim { device_id, role: &role, election_id: election_id.as_ref() };
        let handle = self.handle.clone();
        let start_anew = move |switch: &mut switch::Switch, now: Nanos| {
            let answer = with_counts_of(&handle, message(&switch.stats(now), now));
            // Counts are reset only after the caller's answer has room, so none are lost.
            connection.answer(answer.encoded_len())?;
            switch.reset_stats(now);
            handle.wires().reset();
            Ok::<_, Status>(answer)
        };
        self.device.as_primary(claim, start_anew).await?.map(Response::new)
    }
}

/// Reads the statistics of the switch behind a handle.
pub async fn read(handle: &Handle) -> Result<GetStatsResponse, Gone> {
    let (stats, now) = handle.call(|switch, now| (switch.stats(now), now)).await?;
    Ok(with_counts_of(handle, message(&stats, now)))
}

/// Adds the servers' own counts.
fn with_counts_of(handle: &Handle, mut response: GetStatsResponse) -> GetStatsResponse {
    response.packet_ins_lost = handle.events_lost();
    response.connections_turned_away = handle.turned_away().load(Ordering::Relaxed);
    response.calls_refused = handle.calls_refused().load(Ordering::Relaxed);
    for (number, lost, full) in handle.wires().read() {
        for (reason, count) in [(LINK_LOSS, lost), (LINK_FULL, full)] {
            *response.drops.entry(reason.to_owned()).or_default() += count;
            if let Some(port) = response.ports.iter_mut().find(|port| port.port == u32::from(number)) {
                port.drops.insert(reason.to_owned(), count);
            }
        }
    }
    response
}

/// Statistics as a message of the service.
pub fn message(stats: &switch::Stats, now: Nanos) -> GetStatsResponse {
    GetStatsResponse {
        now_ns: now.0,
        ports: stats.ports.iter().map(port).collect(),
        drops: drops(&stats.drops),
        buffer_bytes: stats.buffer_bytes,
        buffer_max_bytes: stats.buffer_max_bytes,
        packet_ins_lost: 0,
        connections_turned_away: 0,
        calls_refused: 0,
    }
}

fn drops(drops: &[(DropReason, u64)]) -> BTreeMap<String, u64> {
    drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect()
}

fn port(port: &switch::PortStats) -> PortStats {
    PortStats {
        port: u32::from(port.port),
        rate_bps: port.rate_bps,
        rx_frames: port.rx_frames,
        rx_bytes: port.rx_bytes,
        tx_frames: port.tx_frames,
        tx_bytes: port.tx_bytes,
        queue_bytes: port.queue_bytes,
        queue_max_bytes: port.queue_max_bytes,
        depth_times: port
            .histogram
            .iter()
            .map(|bin| DepthTime { depth_bytes: bin.depth_bytes, duration_ns: bin.nanos })
            .collect(),
        samples: port
            .samples
            .iter()
            .map(|sample| DepthSample { time_ns: sample.time.0, depth_bytes: sample.depth_bytes })
            .collect(),
        drops: drops(&port.drops),
    }
}
