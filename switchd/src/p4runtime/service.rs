//! The gRPC side: services, streams, shutdown.

use super::device::{Device, LARGE_BYTES, status};
use super::limits::{Charge, Connection, SMALL_UPDATES, UPDATE_BYTES, charge_of, connection_of};
use super::outbox::{Outbox, Stored};
use super::refusals::Refusals;
use p4rack_entities::plain::count_entities;
use p4rack_p4rt::API_VERSION;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use p4rack_p4rt::p4::v1::p4_runtime_server::P4Runtime;
use p4rack_p4rt::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, DigestListAckError, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, PacketOutError, ReadRequest,
    ReadResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamError,
    StreamMessageRequest, StreamMessageResponse, StreamOtherError, WriteRequest, WriteResponse,
    stream_error::Details, stream_message_request, stream_message_response,
};
use prost::Message;
use prost::bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Maximum messages of a Read, of 32 KiB each, that wait to be sent.
const READ_AHEAD: usize = 4;
/// Details of an error below this size, in bytes, are not charged: they are those of a few updates.
const SMALL_DETAILS: usize = 4 << 10;
/// The response to a Read: its messages, then its status.
#[derive(Debug)]
pub struct Answers {
    messages: mpsc::Receiver<Bytes>,
    end: Option<oneshot::Receiver<Result<(), Status>>>,
}

impl Stream for Answers {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(message) = ready!(self.messages.poll_recv(context)) {
            return Poll::Ready(Some(Ok(message)));
        }
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        let ended = ready!(Pin::new(end).poll(context));
        self.end = None;
        let lost = |_| Err(Status::internal("the read ended without a status; please report it"));
        Poll::Ready(ended.unwrap_or_else(lost).err().map(Err))
    }
}

/// The handlers of P4Runtime's calls.
#[derive(Clone, Debug)]
pub struct Service {
    device: Arc<Device>,
    stopping: watch::Receiver<bool>,
    refusals: Refusals,
}

impl Service {
    /// Serves a device. Streams end when `stopping` becomes true.
    pub fn new(device: Arc<Device>, stopping: watch::Receiver<bool>) -> Service {
        Service { device, stopping, refusals: Refusals::default() }
    }

    /// A Read, with request and response serialised. `charge` covers its memory.
    pub async fn read_bytes(
        &self,
        request: Bytes,
        connection: &Arc<Connection>,
        charge: Arc<Charge>,
    ) -> Result<Answers, Status> {
        let entities = count_entities(&request);
        tracing::debug!(entities, "Read");
        let begun = async {
            connection.check_count("entities", entities)?;
            if entities > SMALL_UPDATES {
                charge.add(UPDATE_BYTES * entities)?;
            }
            Ok((self.device.read_request(request).await?, connection.read()?))
        };
        let (request, permit) = begun.await.inspect_err(|error| self.refusals.log("Read", Some(error)))?;
        let (device, refusals, connection) = (self.device.clone(), self.refusals.clone(), connection.clone());
        let (sender, messages) = mpsc::channel(READ_AHEAD);
        let (ended, end) = oneshot::channel();
        tokio::spawn(async move {
            let result = device.read(request, &sender).await;
            // A cancelled Read is no refusal: its client has left.
            refusals
                .log("Read", result.as_ref().err().filter(|error| error.code() != tonic::Code::Cancelled));
            let _ = ended.send(result.map_err(|error| fitting(error, &connection)));
            drop((permit, charge));
        });
        Ok(Answers { messages, end: Some(end) })
    }

    /// A Write, serialised. `charge` covers its memory.
    pub async fn write_bytes(
        &self,
        request: Bytes,
        connection: &Arc<Connection>,
        charge: Arc<Charge>,
    ) -> Result<(), Status> {
        let written = if request.len() < LARGE_BYTES {
            self.device.write(request, connection, &charge).await
        } else {
            // A task of its own runs to its end even if the client leaves: only then is its memory returned, and only
            // then may another client become primary.
            let (device, connection) = (self.device.clone(), connection.clone());
            let write = tokio::spawn(async move { device.write(request, &connection, &charge).await });
            write.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
        };
        self.refusals.log("Write", written.as_ref().err());
        written.map_err(|error| fitting(error, connection))
    }
}

/// Charges the details of an error until they are sent; omits them if there is no memory for them.
pub(crate) fn fitting(error: Status, connection: &Connection) -> Status {
    // gRPC encodes details in base64.
    let bytes = error.details().len() / 3 * 4;
    if bytes < SMALL_DETAILS || connection.answered(bytes) {
        return error;
    }
    Status::new(
        error.code(),
        format!(
            "{}; its details are omitted because unread responses use all memory: read them first",
            error.message()
        ),
    )
}

#[tonic::async_trait]
impl P4Runtime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let connection = connection_of(&request)?;
        let (request, charge) = (request.into_inner().encode_to_vec().into(), connection.charge());
        self.write_bytes(request, &connection, Arc::new(charge))
            .await
            .map(|()| Response::new(WriteResponse {}))
    }

    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let connection = connection_of(&request)?;
        let (request, charge) = (request.into_inner().encode_to_vec().into(), connection.charge());
        let answers = self.read_bytes(request, &connection, Arc::new(charge)).await?;
        let message = |bytes: Result<Bytes, Status>| {
            ReadResponse::decode(bytes?).map_err(|error| Status::internal(error.to_string()))
        };
        Ok(Response::new(Box::pin(answers.map(message))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let charge = charge_of(&request)?;
        let request = request.into_inner();
        tracing::debug!(action = request.action().as_str_name(), "SetForwardingPipelineConfig");
        let set = self.device.set_config(request, charge).await;
        self.refusals.log("SetForwardingPipelineConfig", set.as_ref().err());
        set.map(|()| Response::new(SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let connection = connection_of(&request)?;
        let request = request.into_inner();
        self.device.check_id(request.device_id)?;
        let (p4info, device_config) = match request.response_type() {
            ResponseType::All => (true, true),
            ResponseType::CookieOnly => (false, false),
            ResponseType::P4infoAndCookie => (true, false),
            ResponseType::DeviceConfigAndCookie => (false, true),
        };
        let running = self.device.running().await;
        let config = running.as_ref().map(|program| &program.config);
        if let Some(config) = config.filter(|_| p4info || device_config) {
            // Each response holds a whole config until the client has read it.
            connection.answer(config.encoded_len())?;
        }
        let config = config.map(|config| ForwardingPipelineConfig {
            p4info: config.p4info.clone().filter(|_| p4info),
            p4_device_config: if device_config { config.p4_device_config.clone() } else { Vec::new() },
            cookie: config.cookie,
        });
        Ok(Response::new(GetForwardingPipelineConfigResponse { config }))
    }

    type StreamChannelStream = Stored<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let permit = Arc::new(connection_of(&request)?.stream()?);
        let (outbox, stored) = Outbox::new(permit.clone());
        let (device, mut stopping) = (self.device.clone(), self.stopping.clone());
        let refusals = self.refusals.clone();
        let mut inbound = request.into_inner();
        tokio::spawn(async move {
            let client = device.enter(outbox.clone());
            let mut arbitrated = false;
            let end = loop {
                let message = tokio::select! {
                    message = inbound.message() => message,
                    _ = stopping.wait_for(|stop| *stop) => {
                        break Some(Status::unavailable("the switch is shutting down"));
                    }
                };
                // A broken stream can't be sent an error.
                let Ok(Some(message)) = message else { break None };
                if let Err(end) =
                    stream_message(&device, client, message, &mut arbitrated, &outbox, &refusals).await
                {
                    refusals.log("StreamChannel", Some(&end));
                    break Some(end);
                }
            };
            device.leave(client).await;
            if let Some(end) = end {
                outbox.send(Err(end));
            }
            drop(permit);
        });
        Ok(Response::new(stored))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        let device_id = request.into_inner().device_id;
        if device_id != 0 {
            self.device.check_id(device_id)?;
        }
        Ok(Response::new(CapabilitiesResponse {
            p4runtime_api_version: API_VERSION.into(),
            experimental: None,
        }))
    }
}

/// Handles one message; an error ends the stream.
async fn stream_message(
    device: &Device,
    client: u64,
    message: StreamMessageRequest,
    arbitrated: &mut bool,
    outbox: &Outbox<StreamMessageResponse>,
    refusals: &Refusals,
) -> Result<(), Status> {
    use stream_message_request::Update;
    let (error, details) = match message.update {
        Some(Update::Arbitration(request)) => {
            device.arbitrate(client, &request, *arbitrated).await?;
            *arbitrated = true;
            return Ok(());
        }
        Some(Update::Packet(packet)) => match device.packet_out(client, &packet).await {
            Ok(()) => return Ok(()),
            Err(error) => (error, Details::PacketOut(PacketOutError { packet_out: Some(packet) })),
        },
        Some(Update::DigestAck(ack)) => match device.digest_ack(client, &ack).await {
            Ok(()) => return Ok(()),
            Err(error) => (error, Details::DigestListAck(DigestListAckError { digest_list_ack: Some(ack) })),
        },
        Some(Update::Other(other)) => {
            let error = UpdateError::new(Code::Unimplemented, format!("unknown message {}", other.type_url));
            (error, Details::Other(StreamOtherError { other: Some(other) }))
        }
        None => return Err(status(Code::InvalidArgument, "the stream message's update is not set")),
    };
    refusals.log("stream", Some(&status(error.code, &error.message)));
    let error = StreamError {
        canonical_code: error.code as i32,
        message: error.message,
        details: Some(details),
        ..Default::default()
    };
    let update = stream_message_response::Update::Error(error);
    outbox.offer_error(StreamMessageResponse { update: Some(update) });
    Ok(())
}
