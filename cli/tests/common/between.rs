//! A P4Runtime server before another one. It passes everything on, until the connection or the primary's role is to be lost
//! between a new program and its entries.

use crate::common::switch::free_addr;
use p4rack_ctrl::{ConnectOptions, Session};
use p4rack_p4rt::p4::v1::p4_runtime_client::P4RuntimeClient;
use p4rack_p4rt::p4::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::*;
use std::sync::{Arc, Mutex};
use tokio_stream::StreamExt;
use tonic::transport::server::TcpIncoming;
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
    /// The way back fails: RECONCILE_AND_COMMIT is declined, and all calls after VERIFY_AND_COMMIT fail.
    CutBack,
    /// Further programs are installed, and the answers lost.
    Mute,
    /// As BMv2 with a program that has counters: RECONCILE_AND_COMMIT fails half-way, and no program is taken until COMMIT.
    HalfWay,
    /// As BMv2 with groups and sessions: RECONCILE_AND_COMMIT keeps none.
    Forgetful,
}

#[derive(Default)]
struct State {
    armed: Fault,
    /// Whether a program has come since.
    has_come: bool,
    is_cut: bool,
    is_half_way: bool,
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
        // It listens from here on.
        let incoming = {
            let _within = runtime.enter();
            TcpIncoming::bind(at).expect("a free address")
        };
        let server = Server::builder().add_service(P4RuntimeServer::new(service));
        runtime.spawn(server.serve_with_incoming(incoming));
        Between { addr, state, _runtime: runtime }
    }

    /// Sets what happens after the next program.
    pub fn arm(&self, fault: Fault) {
        *self.state.lock().expect("no panic") = State { armed: fault, ..State::default() };
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
        mut request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Answer<SetForwardingPipelineConfigResponse> {
        let is_reconcile = request.get_ref().action() == Action::ReconcileAndCommit;
        {
            let mut state = self.state.lock().expect("no panic");
            match (state.armed, request.get_ref().action()) {
                (Fault::HalfWay, Action::ReconcileAndCommit) => {
                    state.is_half_way = true;
                    return Err(Status::unknown("Error when reconciling config"));
                }
                (Fault::HalfWay, Action::Commit) if state.is_half_way => {
                    state.is_half_way = false;
                    return Ok(Response::new(SetForwardingPipelineConfigResponse::default()));
                }
                (Fault::HalfWay, _) if state.is_half_way => {
                    return Err(Status::unknown("Error in first phase of device update"));
                }
                (Fault::Forgetful, Action::ReconcileAndCommit) => {
                    request.get_mut().set_action(Action::VerifyAndCommit);
                }
                _ => {}
            }
        }
        let (armed, has_come) = {
            let state = self.state.lock().expect("no panic");
            (state.armed, state.has_come)
        };
        if armed == Fault::CutBack && has_come && is_reconcile {
            return Err(Status::unimplemented("there is no way back between two packets"));
        }
        let done = self.way()?.set_forwarding_pipeline_config(request.into_inner()).await?;
        let thief = match armed {
            Fault::Stolen => {
                let other = ConnectOptions { election_id: 9, ..ConnectOptions::new(self.switch.clone(), 1) };
                Some(Session::connect(other).await.map_err(|error| Status::internal(error.to_string()))?)
            }
            _ => None,
        };
        let mut state = self.state.lock().expect("no panic");
        let is_back = std::mem::replace(&mut state.has_come, true);
        match armed {
            Fault::None | Fault::HalfWay | Fault::Forgetful => {}
            Fault::Cut => state.is_cut = true,
            Fault::Stolen => (state.armed, state.thief) = (Fault::None, thief),
            Fault::CutBack => state.is_cut = is_back,
            Fault::Mute if is_back => return Err(Status::unavailable("the answer is lost")),
            Fault::Mute => {}
        }
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
