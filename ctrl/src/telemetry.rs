//! Statistics of a switch.

use crate::error::{CtrlError, refused};
use crate::target::Target;
use p4rack_p4rt::p4rack::telemetry::v1::telemetry_client::TelemetryClient;
use p4rack_p4rt::p4rack::telemetry::v1::{GetStatsRequest, GetStatsResponse};
use tonic::transport::Channel;

/// Reads a switch's statistics; needs no session.
#[derive(Clone, Debug)]
pub struct Telemetry {
    client: TelemetryClient<Channel>,
}

impl Telemetry {
    /// Connects to the target's address.
    pub async fn connect(target: &Target) -> Result<Telemetry, CtrlError> {
        let client = TelemetryClient::new(target.channel().await?).max_decoding_message_size(128 << 20);
        Ok(Telemetry { client })
    }

    /// The statistics; with `reset`, new ones start after this answer.
    pub async fn stats(&mut self, reset: bool) -> Result<GetStatsResponse, CtrlError> {
        let answer = self.client.get_stats(GetStatsRequest { reset }).await;
        answer.map(tonic::Response::into_inner).map_err(|status| match status.code() {
            tonic::Code::Unimplemented => CtrlError::Program(
                "this switch has no statistics beyond P4Runtime, p4rack's own has; \
                 `p4rack counter watch` shows what its program counts"
                    .into(),
            ),
            _ => refused("reading statistics")(status),
        })
    }
}
