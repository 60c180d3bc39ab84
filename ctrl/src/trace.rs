//! Traces of single packets on a switch.

use crate::error::{CtrlError, refused};
use crate::target::ConnectOptions;
use p4rack_p4rt::p4rack::trace::v1::trace_client::TraceClient;
use p4rack_p4rt::p4rack::trace::v1::{Event, Filter, WatchRequest, WatchResponse};
use tonic::Streaming;

/// A trace that is on; it ends when this is dropped. Needs no session, but the election id of who is primary.
#[derive(Debug)]
pub struct Watch {
    responses: Streaming<WatchResponse>,
}

impl Watch {
    /// Connects to the target's address and asks for a trace of so many frames, 1 to 1000; it is on when this returns.
    /// Errors: there is a primary of another election id; another trace is on.
    pub async fn start(target: &ConnectOptions, filter: Filter, frames: u32) -> Result<Watch, CtrlError> {
        let ConnectOptions { device_id, role, .. } = target.clone();
        let election_id = Some(target.election());
        let request = WatchRequest { filter: Some(filter), frames, device_id, election_id, role };
        let mut client = TraceClient::new(target.channel().await?);
        let mut responses = client.watch(request).await.map_err(refused("asking for a trace"))?.into_inner();
        responses.message().await.map_err(refused("waiting for the trace to begin"))?;
        Ok(Watch { responses })
    }

    /// What happened since; `None` at the end of the trace.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, CtrlError> {
        let response = self.responses.message().await.map_err(refused("tracing"))?;
        Ok(response.map(|response| response.events))
    }
}
