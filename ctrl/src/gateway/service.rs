//! P4Runtime's calls.

use super::arbitration::{Arbitration, Message};
use super::behind::{Behind, Known};
use super::{SendFrame, lock};
use p4rack_p4rt::API_VERSION;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4rack_p4rt::p4::v1::p4_runtime_server::P4Runtime;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, PacketOut, PacketOutError, ReadRequest, ReadResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamError,
    StreamMessageRequest, StreamMessageResponse, StreamOtherError, WriteRequest, WriteResponse,
    stream_error::Details, stream_message_request, stream_message_response,
};
use p4rack_p4rt::transport::{Shares, Tenant, Visitor};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Messages that wait for a controller. Packet-ins beyond are lost.
const WAITING: usize = 1024;
/// Maximum of open streams, and the tenants that share them. Further ones are refused.
const STREAMS: u64 = 64;
const TENANTS: u64 = 8;
/// How long a stream may last before its controller takes part in the arbitration.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// Entities of one message of a Read's answer.
const PORTION: usize = 1000;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The way of packet-outs.
#[derive(Clone)]
pub(super) struct Packets {
    pub(super) layouts: Known,
    /// `None` without a CPU port.
    pub(super) send: Option<Arc<SendFrame>>,
}

impl Packets {
    fn send(&self, packet: &PacketOut) -> Result<(), (Code, String)> {
        let Some(send) = &self.send else {
            let help = "start the gateway with --cpu-interface, since BFRuntime carries no packets";
            return Err((Code::Unimplemented, help.into()));
        };
        let frame = lock(&self.layouts).as_ref().map(|layouts| layouts.frame(packet));
        let unknown = "the gateway does not know the program's headers: install the program through it";
        let frame = frame.ok_or_else(|| (Code::FailedPrecondition, unknown.to_owned()))?;
        send(frame.map_err(|error| (Code::InvalidArgument, error))?)
            .map_err(|error| (Code::Unavailable, error))
    }
}

/// The handlers of P4Runtime's calls.
pub(super) struct Service {
    device_id: u64,
    arbitration: Arc<Mutex<Arbitration>>,
    behind: Arc<tokio::sync::Mutex<Behind>>,
    packets: Packets,
    stopping: watch::Receiver<bool>,
    streams: Arc<Shares<Tenant>>,
}

impl Service {
    pub(super) fn new(
        device_id: u64,
        arbitration: Arc<Mutex<Arbitration>>,
        behind: Arc<tokio::sync::Mutex<Behind>>,
        packets: Packets,
        stopping: watch::Receiver<bool>,
    ) -> Service {
        let streams = Shares::new("streams of controllers", STREAMS, TENANTS);
        Service { device_id, arbitration, behind, packets, stopping, streams }
    }

    fn check_device(&self, device_id: u64) -> Result<(), Status> {
        let own = self.device_id;
        match device_id == own {
            true => Ok(()),
            false => Err(Status::not_found(format!("there is no device {device_id}, only {own}"))),
        }
    }
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role(&request.role)?;
        if request.atomicity() != Atomicity::ContinueOnError {
            return Err(Status::unimplemented(
                "over BFRuntime, updates are written each for itself: CONTINUE_ON_ERROR",
            ));
        }
        let mut behind = self.behind.lock().await;
        lock(&self.arbitration).check_primary(request.election_id)?;
        behind.write(&request.updates).await?;
        Ok(Response::new(WriteResponse {}))
    }

    type ReadStream = Answers<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role(&request.role)?;
        let mut left = self.behind.lock().await.read(request.entities).await?;
        let mut portions = Vec::new();
        while left.len() > PORTION {
            let rest = left.split_off(PORTION);
            portions.push(Ok(ReadResponse { entities: std::mem::replace(&mut left, rest) }));
        }
        portions.push(Ok(ReadResponse { entities: left }));
        Ok(Response::new(Box::pin(tokio_stream::iter(portions))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        check_role(&request.role)?;
        let action = request.action();
        if !matches!(action, Action::Verify | Action::VerifyAndCommit) {
            return Err(Status::unimplemented(format!(
                "over BFRuntime, programs are installed by VERIFY_AND_COMMIT, not {}",
                action.as_str_name()
            )));
        }
        let config = request.config.ok_or_else(|| Status::invalid_argument("config is not set"))?;
        let mut behind = self.behind.lock().await;
        lock(&self.arbitration).check_primary(request.election_id)?;
        match action {
            Action::Verify => behind.check(&config).map(drop)?,
            _ => behind.install(config).await?,
        }
        Ok(Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        self.check_device(request.device_id)?;
        let config = self.behind.lock().await.program().await?;
        let ForwardingPipelineConfig { p4info, p4_device_config, cookie } = config;
        let none = ForwardingPipelineConfig { cookie, ..Default::default() };
        let config = match request.response_type() {
            ResponseType::All => ForwardingPipelineConfig { p4info, p4_device_config, cookie },
            ResponseType::CookieOnly => none,
            ResponseType::P4infoAndCookie => ForwardingPipelineConfig { p4info, ..none },
            ResponseType::DeviceConfigAndCookie => ForwardingPipelineConfig { p4_device_config, ..none },
        };
        Ok(Response::new(GetForwardingPipelineConfigResponse { config: Some(config) }))
    }

    type StreamChannelStream = Answers<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let tenant = Visitor::of(&request)?.tenant();
        let permit = self.streams.take(&tenant, 1);
        let permit = permit.map_err(|full| Status::resource_exhausted(full.to_string()))?;
        let mut incoming = request.into_inner();
        let (sender, answers) = mpsc::channel::<Message>(WAITING);
        let mut stopping = self.stopping.clone();
        let mut conversation = Conversation {
            number: None,
            sender,
            dismissed: Arc::new(Notify::new()),
            arbitration: self.arbitration.clone(),
            packets: self.packets.clone(),
        };
        let dismissed = conversation.dismissed.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let introduced = Instant::now() + INTRODUCTION;
            loop {
                let is_stranger = conversation.number.is_none();
                let message = tokio::select! {
                    () = tokio::time::sleep_until(introduced), if is_stranger => {
                        let status = Status::deadline_exceeded("take part in the arbitration first");
                        let _ = conversation.sender.try_send(Err(status));
                        break;
                    }
                    _ = stopping.wait_for(|stop| *stop) => break,
                    () = dismissed.notified() => break,
                    () = conversation.sender.closed() => break,
                    message = incoming.next() => message,
                };
                let Some(Ok(message)) = message else { break };
                if let Err(status) = conversation.take(message) {
                    let _ = conversation.sender.send(Err(status)).await;
                    break;
                }
            }
            if let Some(number) = conversation.number {
                lock(&conversation.arbitration).leave(number);
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn capabilities(
        &self,
        _: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let p4runtime_api_version = API_VERSION.into();
        Ok(Response::new(CapabilitiesResponse { p4runtime_api_version, ..Default::default() }))
    }
}

fn check_role(role: &str) -> Result<(), Status> {
    match role.is_empty() {
        true => Ok(()),
        false => Err(Status::unimplemented("roles don't exist over BFRuntime; leave the role out")),
    }
}

/// Messages of one controller on its stream.
struct Conversation {
    /// Of its stream, once it took part in the arbitration.
    number: Option<u64>,
    sender: mpsc::Sender<Message>,
    /// Ends it.
    dismissed: Arc<Notify>,
    arbitration: Arc<Mutex<Arbitration>>,
    packets: Packets,
}

impl Conversation {
    /// Takes a message. Errors end the stream.
    fn take(&mut self, message: StreamMessageRequest) -> Result<(), Status> {
        use stream_message_request::Update;
        let (code, what, details) = match message.update {
            Some(Update::Arbitration(claim)) => {
                let mut arbitration = lock(&self.arbitration);
                match self.number {
                    Some(number) => arbitration.claim(number, &claim)?,
                    None => {
                        self.number =
                            Some(arbitration.enter(&claim, self.sender.clone(), self.dismissed.clone())?)
                    }
                }
                return Ok(());
            }
            Some(Update::Packet(packet)) => match self.packet_out(&packet) {
                Ok(()) => return Ok(()),
                Err((code, what)) => {
                    (code, what, Details::PacketOut(PacketOutError { packet_out: Some(packet) }))
                }
            },
            other => {
                let message = StreamMessageRequest { update: other };
                let other = StreamOtherError::default();
                let what = format!("over BFRuntime there are packets only, not {message:?}");
                (Code::Unimplemented, what, Details::Other(other))
            }
        };
        let error = StreamError {
            canonical_code: code as i32,
            message: what,
            details: Some(details),
            ..Default::default()
        };
        let update = Some(stream_message_response::Update::Error(error));
        // Errors are news that may be lost, as everything here but arbitration.
        let _ = self.sender.try_send(Ok(StreamMessageResponse { update }));
        Ok(())
    }

    fn packet_out(&self, packet: &PacketOut) -> Result<(), (Code, String)> {
        let is_primary = self.number.is_some_and(|number| lock(&self.arbitration).is_primary(number));
        match is_primary {
            true => self.packets.send(packet),
            false => Err((Code::PermissionDenied, "only the primary sends packets".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::Layouts;
    use super::*;

    #[test]
    fn packets_wait_for_a_program_that_is_known() {
        let (sent, frames) = std::sync::mpsc::channel();
        let send: SendFrame = Box::new(move |frame| sent.send(frame).map_err(|error| error.to_string()));
        let packets = Packets { layouts: Known::default(), send: Some(Arc::new(send)) };
        let packet = PacketOut { payload: vec![1, 2, 3], ..Default::default() };
        assert_eq!(packets.send(&packet).map_err(|(code, _)| code), Err(Code::FailedPrecondition));
        assert!(frames.try_recv().is_err());
        // Its header has no fields.
        *lock(&packets.layouts) = Some(Layouts::default());
        assert_eq!(packets.send(&packet), Ok(()));
        assert_eq!(frames.try_recv(), Ok(vec![1, 2, 3]));
        let without = Packets { send: None, ..packets };
        assert_eq!(without.send(&packet).map_err(|(code, _)| code), Err(Code::Unimplemented));
    }
}
