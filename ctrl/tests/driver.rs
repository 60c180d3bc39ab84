//! Controllers against what the embedded switch does not do and a driver does: a server in front of it refuses calls in passing,
//! and accepts programs that it does not install.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{rack, start_both};
use p4rack_codegen::Scheme;
use p4rack_ctrl::bfrt::Link;
use p4rack_ctrl::deploy::{Desired, Extent, Step};
use p4rack_ctrl::items::{Item, MulticastItem, PlaceItem, ReplicaItem};
use p4rack_ctrl::watch::{Change, watch};
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::bf_runtime_server::{BfRuntime, BfRuntimeServer};
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use prost::Message;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};

/// Largest message: programs with their schemas.
const MESSAGE: usize = 64 << 20;

/// What the server does beside passing calls on.
#[derive(Debug, Default)]
struct Faults {
    /// Refuses every such call once; 0: none.
    busy: AtomicUsize,
    calls: AtomicUsize,
    /// Refuses the first update of every Write once.
    locks: AtomicBool,
    /// Accepts installations and begins none.
    is_broken: AtomicBool,
    /// Installations that clients began.
    begins: AtomicUsize,
    /// Ids of clients.
    ids: Mutex<Vec<u32>>,
}

impl Faults {
    fn call(&self, client_id: u32) -> Result<(), Status> {
        self.ids.lock().unwrap().push(client_id);
        let (busy, call) = (self.busy.load(Ordering::Relaxed), self.calls.fetch_add(1, Ordering::Relaxed));
        match busy > 0 && call % busy == 0 {
            true => Err(Status::unavailable(format!("Failed to acquire read lock for client {client_id}"))),
            false => Ok(()),
        }
    }
}

#[derive(Clone)]
struct Front {
    behind: BfRuntimeClient<Channel>,
    faults: Arc<Faults>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl BfRuntime for Front {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        self.faults.call(request.get_ref().client_id)?;
        let call = self.faults.calls.load(Ordering::Relaxed);
        if self.faults.locks.load(Ordering::Relaxed) && call.is_multiple_of(2) {
            let mut request = request.into_inner();
            let is_whole = request.atomicity == write_request::Atomicity::RollbackOnError as i32;
            if !is_whole {
                request.updates.remove(0);
                self.behind.clone().write(request).await?;
            }
            let error = Error {
                canonical_code: rpc::Code::Unavailable as i32,
                message: "Table Add failed table:t Resource held by another session".into(),
                ..Default::default()
            };
            let any = prost_types::Any { type_url: String::new(), value: error.encode_to_vec() };
            let status = rpc::Status { code: Code::Unknown as i32, details: vec![any], ..Default::default() };
            return Err(Status::with_details(Code::Unknown, "Write failed", status.encode_to_vec().into()));
        }
        self.behind.clone().write(request.into_inner()).await
    }

    type ReadStream = Answers<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.faults.call(request.get_ref().client_id)?;
        let answers = self.behind.clone().read(request.into_inner()).await?;
        Ok(Response::new(Box::pin(answers.into_inner())))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        self.faults.call(request.get_ref().client_id)?;
        let begins = request.get_ref().action() == Action::VerifyAndWarmInitBegin;
        self.faults.begins.fetch_add(usize::from(begins), Ordering::Relaxed);
        if begins && self.faults.is_broken.load(Ordering::Relaxed) {
            return Ok(Response::new(SetForwardingPipelineConfigResponse::default()));
        }
        self.behind.clone().set_forwarding_pipeline_config(request.into_inner()).await
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        self.faults.call(request.get_ref().client_id)?;
        let mut answer = self.behind.clone().get_forwarding_pipeline_config(request.into_inner()).await?;
        if answer.get_ref().config.is_empty() {
            // A driver without a program names its own tables.
            let config = ForwardingPipelineConfig { p4_name: "$SHARED".into(), ..Default::default() };
            answer.get_mut().config.push(config);
        }
        Ok(answer)
    }

    type StreamChannelStream = Answers<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let faults = self.faults.clone();
        let own = request.into_inner().filter_map(Result::ok);
        let own = own.map(move |message: StreamMessageRequest| {
            faults.ids.lock().unwrap().push(message.client_id);
            message
        });
        let answers = self.behind.clone().stream_channel(own).await?;
        Ok(Response::new(Box::pin(answers.into_inner())))
    }
}

/// The same switch, with these faults.
async fn behind(switch: &ConnectOptions) -> (Arc<Faults>, ConnectOptions) {
    let faults = Arc::new(Faults::default());
    let behind = BfRuntimeClient::connect(format!("http://{}", switch.addr)).await.unwrap();
    let behind = behind.max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE);
    let front = BfRuntimeServer::new(Front { behind, faults: faults.clone() });
    let front = front.max_decoding_message_size(MESSAGE).max_encoding_message_size(MESSAGE);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let incoming = TcpIncoming::from(listener);
    tokio::spawn(tonic::transport::Server::builder().add_service(front).serve_with_incoming(incoming));
    (faults, ConnectOptions { protocol: Protocol::BfRuntime, ..ConnectOptions::new(addr, 0) })
}

async fn deploy(desired: &Desired, target: &ConnectOptions) -> Result<Vec<Step>, CtrlError> {
    let mut steps = Vec::new();
    p4rack_ctrl::deploy::deploy(desired, target.clone(), Extent::All, |step| steps.push(step)).await?;
    Ok(steps)
}

fn desired(scheme: Scheme) -> Desired {
    Desired::for_tofino(&rack(), scheme, None).unwrap()
}

#[tokio::test]
async fn what_a_driver_refuses_in_passing_is_repeated() {
    let (_running, _, switch) = start_both(&rack()).await;
    let (faults, target) = behind(&switch).await;
    faults.busy.store(3, Ordering::Relaxed);
    let wanted = desired(Scheme::L2);
    let steps = deploy(&wanted, &target).await.unwrap();
    assert!(steps.contains(&Step::Verified { entities: wanted.entities.len() }), "{steps:?}");
    assert!(faults.calls.load(Ordering::Relaxed) > 3);
    // Tables that another session holds.
    faults.busy.store(0, Ordering::Relaxed);
    faults.locks.store(true, Ordering::Relaxed);
    let other = desired(Scheme::PL2_COUNTER);
    let steps = deploy(&other, &target).await.unwrap();
    assert!(steps.contains(&Step::Verified { entities: other.entities.len() }), "{steps:?}");
    // A driver finds clients by 24 bits.
    assert!(faults.ids.lock().unwrap().iter().all(|id| id >> 24 == 0));
}

#[tokio::test]
async fn a_driver_that_never_becomes_free_is_given_up() {
    let (_running, _, switch) = start_both(&rack()).await;
    let (faults, target) = behind(&switch).await;
    faults.busy.store(1, Ordering::Relaxed);
    let error = deploy(&desired(Scheme::L2), &target).await.unwrap_err().to_string();
    assert!(error.contains("Failed to acquire read lock"), "{error}");
}

#[tokio::test]
async fn a_program_that_a_driver_accepts_and_does_not_install_is_an_error() {
    let (_running, _, switch) = start_both(&rack()).await;
    let (faults, target) = behind(&switch).await;
    let mut link = Link::connect(target.clone()).await.unwrap();
    let none = link.schema().await.unwrap_err().to_string();
    assert!(none.contains("runs no program"), "{none}");
    drop(link);
    deploy(&desired(Scheme::L2), &target).await.unwrap();
    faults.is_broken.store(true, Ordering::Relaxed);
    let error = deploy(&desired(Scheme::PL2_COUNTER), &target).await.unwrap_err().to_string();
    assert!(error.contains("did not begin to install it"), "{error}");
    assert!(error.contains("`l2`, which ran before, could not be installed again as a whole"), "{error}");
}

#[tokio::test]
async fn who_watches_begins_an_installation_once_and_goes_on_with_it() {
    let (_running, _, switch) = start_both(&rack()).await;
    let (faults, target) = behind(&switch).await;
    deploy(&desired(Scheme::L2), &target).await.unwrap();
    let before = faults.begins.load(Ordering::Relaxed);
    let good = desired(Scheme::PL2_COUNTER);
    let mut bad = good.clone();
    let replica = ReplicaItem { at: PlaceItem { port: 99, instance: 1 }, backups: Vec::new() };
    let group = Item::Multicast(MulticastItem { group: 9, replicas: vec![replica] });
    bad.entities.push(group.entity(&bad.schema).unwrap());
    let (sender, wanted) = tokio::sync::watch::channel(Arc::new(bad));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |change: Change| drop(tell.send(format!("{change:?}")));
    // The client before may still be bound.
    let target = ConnectOptions { election_id: 2, ..target };
    let watching = tokio::spawn(watch(target, wanted, Duration::from_millis(50), tell));
    let mut until = async |text: &str| {
        let heard = async { while !told.recv().await.unwrap().contains(text) {} };
        tokio::time::timeout(Duration::from_secs(60), heard).await.unwrap_or_else(|_| panic!("no {text}"));
    };
    for _ in 0..3 {
        until("no port 99").await;
    }
    sender.send(Arc::new(good)).unwrap();
    until("Verified").await;
    assert_eq!(faults.begins.load(Ordering::Relaxed) - before, 1);
    drop(sender);
    watching.await.unwrap();
}
