//! The gRPC side: calls and streams.

use super::DEVICE;
use super::clients::Clients;
use super::loaded::Loaded;
use super::outcome::overall;
use super::programs::Programs;
use super::{read, write};
use crate::p4runtime::{
    Charge, Connection, Device, LARGE_BYTES, Outbox, Refusals, SMALL_UPDATES, Stored, UPDATE_BYTES,
    charge_of, connection_of, fitting, status,
};
use p4rack_p4rt::bfrt_proto::bf_runtime_server::BfRuntime;
use p4rack_p4rt::bfrt_proto::{
    GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamMessageRequest,
    StreamMessageResponse, Subscribe, WriteRequest, WriteResponse, entity, stream_message_request,
    stream_message_response,
};
use p4rack_p4rt::google::rpc::{self, Code};
use prost::Message;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Maximum messages of a Read, 32 KiB each, that wait to be sent.
const READ_AHEAD: usize = 4;
/// Memory per update in addition to P4Runtime's share, because it exists in both forms.
const TRANSLATED_BYTES: usize = 2 * UPDATE_BYTES;

/// The handlers of all calls.
#[derive(Clone, Debug)]
pub struct Service {
    device: Arc<Device>,
    clients: Clients,
    programs: Programs,
    stopping: watch::Receiver<bool>,
    refusals: Refusals,
}

impl Service {
    /// The handlers for a device.
    pub fn new(device: Arc<Device>, stopping: watch::Receiver<bool>) -> Service {
        let clients = Clients::default();
        let programs = Programs::new(device.clone(), clients.clone());
        Service { device, clients, programs, stopping, refusals: Refusals::default() }
    }

    /// The program for which a request is meant.
    async fn program(&self, p4_name: &str) -> Result<Arc<Loaded>, Status> {
        self.programs.check_steady()?;
        let loaded = self.programs.loaded().await?;
        let own = &loaded.program.name;
        if p4_name.is_empty() || p4_name == own {
            return Ok(loaded);
        }
        Err(status(Code::NotFound, format!("there is no program `{p4_name}`; `{own}` runs")))
    }

    async fn make(
        &self,
        request: WriteRequest,
        connection: &Connection,
        charge: &Charge,
    ) -> Result<(), Status> {
        let loaded = self.program(&request.p4_name).await?;
        self.clients.authorise(request.client_id, &loaded.program)?;
        let updates = request.updates.len();
        connection.check_count("updates", updates)?;
        if updates > SMALL_UPDATES {
            charge.add(TRANSLATED_BYTES * updates)?;
        }
        let is_large = request.encoded_len() >= LARGE_BYTES;
        let _place = if is_large { Some(connection.large_write().await) } else { None };
        connection.drained().await?;
        let (job, isolation) = if is_large {
            let loaded = loaded.clone();
            self.device.aside(move || write::ready(&loaded, &request)).await??
        } else {
            write::ready(&loaded, &request)?
        };
        // No other program is installed before the last change is made.
        let held = self.device.hold().await;
        if !held.runs(&loaded.program) {
            return Err(status(Code::Aborted, "another program was installed meanwhile; bind anew"));
        }
        let outcomes = match is_large {
            true => self.device.handle().in_turns(isolation, job).await?,
            false => self.device.make_small(job, isolation, updates).await?,
        };
        drop(held);
        overall(&outcomes)
    }
}

#[tonic::async_trait]
impl BfRuntime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let (connection, charge) = (connection_of(&request)?, charge_of(&request)?);
        let request = request.into_inner();
        tracing::debug!(updates = request.updates.len(), "Write");
        // Its memory stays charged until its end, even if the client has left.
        let (service, own) = (self.clone(), connection.clone());
        let made = if request.encoded_len() < LARGE_BYTES {
            self.make(request, &connection, &charge).await
        } else {
            let write = tokio::spawn(async move { service.make(request, &own, &charge).await });
            write.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
        };
        self.refusals.log("BFRuntime Write", made.as_ref().err());
        made.map(|()| Response::new(WriteResponse::default())).map_err(|error| fitting(error, &connection))
    }

    type ReadStream = ReceiverStream<Result<ReadResponse, Status>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let (connection, charge) = (connection_of(&request)?, charge_of(&request)?);
        let request = request.into_inner();
        tracing::debug!(entities = request.entities.len(), "Read");
        let begun = async {
            let loaded = self.program(&request.p4_name).await?;
            // Clients read the device's tables before they bind.
            let of_device = |entity: &p4rack_p4rt::bfrt_proto::Entity| matches!(&entity.entity, Some(entity::Entity::TableEntry(entry)) if loaded.fixed.has(entry.table_id));
            match request.entities.iter().all(of_device) {
                true => self.clients.known(request.client_id)?,
                false => self.clients.authorise(request.client_id, &loaded.program)?,
            }
            connection.check_count("entities", request.entities.len())?;
            if request.entities.len() > SMALL_UPDATES {
                charge.add(TRANSLATED_BYTES * request.entities.len())?;
            }
            Ok((loaded, connection.read()?))
        };
        let (loaded, place) =
            begun.await.inspect_err(|error| self.refusals.log("BFRuntime Read", Some(error)))?;
        let (device, refusals) = (self.device.clone(), self.refusals.clone());
        let (sender, answers) = mpsc::channel(READ_AHEAD);
        tokio::spawn(async move {
            let result = read::read(&device, &loaded, &request, &sender).await;
            if let Err(error) = result {
                if error.code() != tonic::Code::Cancelled {
                    refusals.log("BFRuntime Read", Some(&error));
                }
                let _ = sender.send(Err(fitting(error, &connection))).await;
            }
            drop((place, charge));
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let charge = charge_of(&request)?;
        let request = request.into_inner();
        tracing::debug!(action = request.action().as_str_name(), "BFRuntime SetForwardingPipelineConfig");
        let set = self.programs.set(request, charge).await;
        self.refusals.log("BFRuntime SetForwardingPipelineConfig", set.as_ref().err());
        set.map(Response::new)
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        let connection = connection_of(&request)?;
        let request = request.into_inner();
        check_device(request.device_id)?;
        let answer = self.programs.get().await?;
        connection.answer(answer.encoded_len())?;
        Ok(Response::new(answer))
    }

    type StreamChannelStream = Stored<StreamMessageResponse>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let place = Arc::new(connection_of(&request)?.stream()?);
        let (outbox, stored) = Outbox::new(place.clone());
        let (service, mut stopping) = (self.clone(), self.stopping.clone());
        let mut inbound = request.into_inner();
        tokio::spawn(async move {
            let (stream, mut own) = (service.clients.open(), None);
            let end = loop {
                let message = tokio::select! {
                    message = inbound.message() => message,
                    _ = stopping.wait_for(|stop| *stop) => {
                        break Some(Status::unavailable("the switch is shutting down"));
                    }
                };
                // A broken stream needs no answer.
                let Ok(Some(message)) = message else { break None };
                if let Err(end) = service.stream_message(stream, &mut own, message, &outbox) {
                    service.refusals.log("BFRuntime StreamChannel", Some(&end));
                    break Some(end);
                }
            };
            service.clients.close(stream);
            if let Some(own) = own {
                service.programs.leave(own);
            }
            if let Some(end) = end {
                outbox.send(Err(end));
            }
            drop(place);
        });
        Ok(Response::new(stored))
    }
}

impl Service {
    /// Handles one message; an error ends the stream.
    fn stream_message(
        &self,
        stream: u64,
        own: &mut Option<u32>,
        message: StreamMessageRequest,
        outbox: &Outbox<StreamMessageResponse>,
    ) -> Result<(), Status> {
        match message.update {
            Some(stream_message_request::Update::Subscribe(given)) => {
                let subscribed = check_device(given.device_id)
                    .and_then(|()| self.clients.subscribe(stream, message.client_id, *own, outbox));
                let status = match &subscribed {
                    Ok(()) => rpc::Status::default(),
                    Err(refused) => rpc::Status {
                        code: refused.code() as i32,
                        message: refused.message().to_owned(),
                        details: Vec::new(),
                    },
                };
                let answer = Subscribe { status: Some(status), ..given };
                let update = Some(stream_message_response::Update::Subscribe(answer));
                outbox.offer_error(StreamMessageResponse { update });
                subscribed?;
                *own = Some(message.client_id);
                Ok(())
            }
            // This switch sends no digests, so there is nothing to acknowledge.
            Some(stream_message_request::Update::DigestAck(_)) => Ok(()),
            None => Err(status(Code::InvalidArgument, "the stream message's update is not set")),
        }
    }
}

fn check_device(id: u32) -> Result<(), Status> {
    if id == DEVICE {
        return Ok(());
    }
    Err(status(Code::NotFound, format!("there is no device {id}; this is device {DEVICE}")))
}
