//! Client for traces of single packets on a switch.

use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use p4rack_p4rt::p4rack::trace::v1::trace_client::TraceClient;
use p4rack_p4rt::p4rack::trace::v1::{Event, Filter, WatchRequest, WatchResponse};
use tonic::Streaming;

/// An active trace, which ends when dropped. It needs no session, but the primary's election id.
#[derive(Debug)]
pub struct Watch {
    responses: Streaming<WatchResponse>,
}

impl Watch {
    /// Connects and starts a trace of the next `frames` frames, 1 to 1000; it is active when this returns.
    /// Errors: there is a primary with another election id, or another trace is active.
    pub async fn start(target: &ConnectOptions, filter: Filter, frames: u32) -> Result<Watch, CtrlError> {
        let ConnectOptions { device_id, role, .. } = target.clone();
        let election_id = Some(target.election());
        let request = WatchRequest { filter: Some(filter), frames, device_id, election_id, role };
        let mut client = TraceClient::new(target.channel().await?);
        let mut responses = client.watch(request).await.map_err(refused("asking for a trace"))?.into_inner();
        responses.message().await.map_err(refused("waiting for the trace to begin"))?;
        Ok(Watch { responses })
    }

    /// Further events; `None` at the end of the trace.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, CtrlError> {
        let response = self.responses.message().await.map_err(refused("tracing"))?;
        Ok(response.map(|response| response.events))
    }
}
