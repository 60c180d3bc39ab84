//! Client for a switch's statistics.

use crate::client::Client;
use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use p4rack_p4rt::p4rack::telemetry::v1::GetStatsRequest;
use p4rack_p4rt::p4rack::telemetry::v1::telemetry_client::TelemetryClient;
use tonic::transport::Channel;

pub use p4rack_p4rt::p4rack::telemetry::v1::GetStatsResponse;

/// Maximum message accepted.
const RECEIVE_LIMIT: usize = 128 << 20;

/// Reads a switch's statistics.
#[derive(Clone, Debug)]
pub struct Telemetry {
    client: TelemetryClient<Channel>,
    target: ConnectOptions,
}

impl Telemetry {
    /// Connects. Without a session, statistics can only be read.
    pub async fn connect(target: &ConnectOptions) -> Result<Telemetry, CtrlError> {
        Ok(Telemetry::over(target.channel().await?, target))
    }

    /// Uses an existing connection. Only the primary of the default role may reset statistics.
    pub fn of(client: &Client) -> Telemetry {
        Telemetry::over(client.channel.clone(), client.target())
    }

    fn over(channel: Channel, target: &ConnectOptions) -> Telemetry {
        let client = TelemetryClient::new(channel).max_decoding_message_size(RECEIVE_LIMIT);
        Telemetry { client, target: target.clone() }
    }

    /// The current statistics.
    pub async fn stats(&mut self) -> Result<GetStatsResponse, CtrlError> {
        self.ask(GetStatsRequest::default()).await
    }

    /// Whether the server has statistics: it is an embedded switch then.
    pub async fn is_served(&mut self) -> Result<bool, CtrlError> {
        match self.client.get_stats(GetStatsRequest::default()).await {
            Ok(_) => Ok(true),
            Err(status) if status.code() == tonic::Code::Unimplemented => Ok(false),
            Err(status) => Err(refused("asking for the kind of switch")(status)),
        }
    }

    /// The current statistics, which restart after this response.
    pub async fn start_anew(&mut self) -> Result<GetStatsResponse, CtrlError> {
        let ConnectOptions { device_id, role, .. } = self.target.clone();
        let election_id = Some(self.target.election());
        self.ask(GetStatsRequest { reset: true, device_id, election_id, role }).await
    }

    async fn ask(&mut self, request: GetStatsRequest) -> Result<GetStatsResponse, CtrlError> {
        let answer = self.client.get_stats(request).await;
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
