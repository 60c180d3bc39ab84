//! A P4Runtime server before another one. It passes everything on, until the connection or the primary's role is to be lost
//! between a new program and its entries.

use crate::common::switch::free_addr;
use p4rack_ctrl::{ConnectOptions, Session};
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4rack_p4rt::p4::v1::*;
use std::sync::{Arc, Mutex};
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

/// What happens after the next program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// All further calls fail.
    Cut,
    /// Another controller, with election id 9, is primary.
    Stolen,
}

#[derive(Default)]
struct State {
    armed: Fault,
    is_cut: bool,
    thief: Option<Session>,
}

/// The server in between.
pub struct Between {
    /// Its address.
    pub addr: String,
    state: Arc<Mutex<State>>,
    _runtime: tokio::runtime::Runtime,
}

impl Between {
    /// Starts one before the switch at an address.
    pub fn before(switch: &str) -> Between {
        let (addr, state) = (free_addr(), Arc::new(Mutex::new(State::default())));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let client =
            runtime.block_on(P4RuntimeClient::connect(format!("http://{switch}"))).expect("it answers");
        let service = Service { client, switch: switch.to_owned(), state: state.clone() };
        let at = addr.parse().expect("an address");
        runtime.spawn(Server::builder().add_service(P4RuntimeServer::new(service)).serve(at));
        Between { addr, state, _runtime: runtime }
    }

    /// Sets what happens after the next program.
    pub fn arm(&self, fault: Fault) {
        self.state.lock().expect("no panic").armed = fault;
    }

    /// Ends the fault.
    pub fn mend(&self) {
        *self.state.lock().expect("no panic") = State::default();
    }
}

struct Service {
    client: P4RuntimeClient<Channel>,
    switch: String,
    state: Arc<Mutex<State>>,
}

impl Service {
    /// The way to the switch.
    fn way(&self) -> Result<P4RuntimeClient<Channel>, Status> {
        match self.state.lock().expect("no panic").is_cut {
            true => Err(Status::unavailable("the line is cut")),
            false => Ok(self.client.clone()),
        }
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl P4Runtime for Service {
    type ReadStream = Streaming<ReadResponse>;
    type StreamChannelStream = Streaming<StreamMessageResponse>;

    async fn capabilities(&self, request: Request<CapabilitiesRequest>) -> Answer<CapabilitiesResponse> {
        self.way()?.capabilities(request.into_inner()).await
    }

    async fn write(&self, request: Request<WriteRequest>) -> Answer<WriteResponse> {
        self.way()?.write(request.into_inner()).await
    }

    async fn read(&self, request: Request<ReadRequest>) -> Answer<Self::ReadStream> {
        self.way()?.read(request.into_inner()).await
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Answer<SetForwardingPipelineConfigResponse> {
        let done = self.way()?.set_forwarding_pipeline_config(request.into_inner()).await?;
        let armed = std::mem::take(&mut self.state.lock().expect("no panic").armed);
        if armed == Fault::Stolen {
            let other = ConnectOptions { election_id: 9, ..ConnectOptions::new(self.switch.clone(), 1) };
            let thief = Session::connect(other).await.map_err(|error| Status::internal(error.to_string()))?;
            self.state.lock().expect("no panic").thief = Some(thief);
        }
        self.state.lock().expect("no panic").is_cut |= armed == Fault::Cut;
        Ok(done)
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Answer<GetForwardingPipelineConfigResponse> {
        self.way()?.get_forwarding_pipeline_config(request.into_inner()).await
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Answer<Self::StreamChannelStream> {
        let messages = request.into_inner().map_while(Result::ok);
        self.way()?.stream_channel(messages).await
    }
}
