//! The gRPC side: calls and streams.

use super::DEVICE;
use super::clients::Clients;
use super::digests::Lists;
use super::loaded::Loaded;
use super::outcome::{Options, answer, overall};
use super::programs::Programs;
use super::read::ReadQuery;
use super::settings::EntryKey;
use super::weigh::{Entities, Weighed};
use super::write::Ready;
use super::{read, write};
use crate::p4runtime::{
    Charge, Connection, Device, LARGE_BYTES, Outbox, Refusals, Stored, connection_of, fitting, status,
};
use p4rack_entities::{Checked, Program};
use p4rack_p4::ir::TableId;
use p4rack_p4rt::bfrt_proto;
use p4rack_p4rt::bfrt_proto::bf_runtime_server::BfRuntime;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::{
    Entity, GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, ReadRequest,
    ReadResponse, SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse,
    StreamMessageRequest, StreamMessageResponse, Subscribe, WriteRequest, WriteResponse, entity,
    stream_message_request, stream_message_response,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::{self, Code};
use p4rack_switch::{Pipes, TableEntry};
use p4rack_wire::Nanos;
use prost::Message;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Maximum messages of a Read, 32 KiB each, that wait to be sent.
const READ_AHEAD: usize = 4;
/// The answers of a Read, serialised.
pub type Answers = ReceiverStream<Result<Bytes, Status>>;

/// The handlers of all calls.
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) device: Arc<Device>,
    pub(super) clients: Clients,
    pub(super) programs: Programs,
    stopping: watch::Receiver<bool>,
    refusals: Refusals,
    /// Entries that were reported as idle.
    watched: Arc<Mutex<HashMap<EntryKey, Watched>>>,
    /// Digests that wait for others.
    pub(super) lists: Arc<Mutex<Lists>>,
    /// Wakes the sending task.
    pub(super) sooner: Arc<Notify>,
}

impl Service {
    /// For a device.
    pub async fn new(device: Arc<Device>, stopping: watch::Receiver<bool>) -> Service {
        let clients = Clients::default();
        device.watch(Arc::new(clients.clone())).await;
        let programs = Programs::new(device.clone(), clients.clone());
        Service {
            device,
            clients,
            programs,
            stopping,
            refusals: Refusals::default(),
            watched: Arc::default(),
            lists: Arc::default(),
            sooner: Arc::default(),
        }
    }

    pub(super) fn watched(&self) -> MutexGuard<'_, HashMap<EntryKey, Watched>> {
        // Every change is a single insertion or removal.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program that a request addresses.
    async fn program(&self, p4_name: &str) -> Result<Arc<Loaded>, Status> {
        let loaded = self.programs.meant().await?;
        let own = &loaded.program.name;
        if p4_name.is_empty() || p4_name == own {
            return Ok(loaded);
        }
        Err(status(Code::NotFound, format!("there is no program `{p4_name}`; `{own}` runs")))
    }

    /// Does work with a request: beside the threads that serve calls, if the request is large.
    async fn beside<R: Send + 'static>(
        &self,
        request: &Bytes,
        work: impl FnOnce(Bytes) -> R + Send + 'static,
    ) -> Result<R, Status> {
        let own = request.clone();
        match request.len() >= LARGE_BYTES {
            true => self.device.aside(move || work(own)).await,
            false => Ok(work(own)),
        }
    }

    async fn make(
        &self,
        request: Bytes,
        options: Options,
        connection: &Connection,
        charge: &Charge,
    ) -> Result<Bytes, Status> {
        let is_large = request.len() >= LARGE_BYTES;
        let _place = if is_large { Some(connection.large_write().await) } else { None };
        let weighed = self.beside(&request, |request| Weighed::<WriteRequest>::write(&request)).await??;
        let loaded = self.program(&weighed.head.p4_name).await?;
        let client = weighed.head.client_id;
        let is_named = !weighed.head.p4_name.is_empty();
        let binding = self.clients.authorise(client, &loaded.program, is_named)?;
        let is_whole = weighed.head.atomicity == Atomicity::RollbackOnError as i32;
        let _transaction = is_whole.then(|| self.clients.transaction(client)).transpose()?;
        connection.check_count("updates", weighed.count)?;
        weighed.charge(charge)?;
        let updates = weighed.count;
        let _permit = if is_large {
            self.device.large_write(connection).await?
        } else {
            connection.drained().await?;
            None
        };
        let (own, head) = (loaded.clone(), weighed.head);
        let options = Options { hears_of_ports: self.clients.hears_of_ports(client), ..options };
        let prepare = move |request: Bytes| match write::direct(&own, &request, &head, options) {
            Some(ready) => Ok(ready),
            None => write::ready(&own, &decoded(request)?, options),
        };
        let ready: Ready = self.beside(&request, prepare).await??;
        drop(request);
        if ready.saved_bytes > 0 {
            charge.add(ready.saved_bytes)?;
        }
        // No program is installed and no other client bound before the last change is made.
        let held = loaded.hold(&self.device).await?;
        if self.clients.authorise(client, &loaded.program, is_named)? != binding {
            return Err(status(Code::Aborted, "the client that sent the request has left"));
        }
        let Ready { job, isolation, is_of_device, is_apart, deletes, existing, .. } = ready;
        if is_apart {
            held.set_apart(&loaded.program);
        }
        let mut outcomes = match (is_of_device, is_large) {
            (true, true) => self.device.handle().in_turns(isolation, job).await?,
            (true, false) => self.device.make_small(job, isolation, updates).await?,
            (false, true) => loaded.in_turns(&self.device, isolation, job).await?,
            (false, false) => loaded.make_small(&self.device, job, isolation, updates).await?,
        };
        drop(held);
        if is_of_device && loaded.fixed.ports().take_changed() {
            self.ports().await;
        }
        let is_missing = |at: usize, outcome: &Checked<()>| {
            let missing = matches!(outcome, Err(UpdateError { code: Code::NotFound, .. }));
            options.ignores_missing && missing && deletes.binary_search(&at).is_ok()
        };
        let mut missing = Vec::new();
        for (at, outcome) in outcomes.iter_mut().enumerate() {
            if is_missing(at, outcome) {
                *outcome = Ok(());
                missing.push(at);
            }
        }
        overall(&outcomes)?;
        if !options.errors_in_answer && !options.ignores_missing {
            // A `WriteResponse` without statuses has no bytes.
            return Ok(Bytes::new());
        }
        let answer = answer(outcomes.len(), &missing, &existing.list());
        connection.answer(answer.encoded_len())?;
        Ok(answer.encode_to_vec().into())
    }

    /// A Write, serialised. `charge` covers its memory.
    pub async fn write_bytes(
        &self,
        request: Bytes,
        options: Options,
        connection: &Arc<Connection>,
        charge: Arc<Charge>,
    ) -> Result<Bytes, Status> {
        let made = if request.len() < LARGE_BYTES {
            self.make(request, options, connection, &charge).await
        } else {
            // Its memory is charged to its end, even if its sender has gone.
            let (service, own) = (self.clone(), connection.clone());
            let write = tokio::spawn(async move { service.make(request, options, &own, &charge).await });
            write.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
        };
        self.refusals.log("BFRuntime Write", made.as_ref().err());
        made.map_err(|error| fitting(error, connection))
    }

    /// A Read, with request and answers serialised. `charge` covers its memory.
    pub async fn read_bytes(
        &self,
        request: Bytes,
        options: Options,
        connection: &Arc<Connection>,
        charge: Arc<Charge>,
    ) -> Result<Answers, Status> {
        let begun = async {
            let weighed = self.beside(&request, |request| Weighed::<ReadRequest>::read(&request)).await??;
            let (client, is_named) = (weighed.head.client_id, !weighed.head.p4_name.is_empty());
            if !is_named {
                self.clients.known(client)?;
            }
            // Errors in an answer are charged one by one.
            if !options.errors_in_answer {
                connection.check_count("entities", weighed.count)?;
            }
            weighed.charge_chunk(&charge)?;
            let loaded = self.program(&weighed.head.p4_name).await?;
            // Clients look at the device before they bind.
            if let Err(unbound) = self.clients.authorise(client, &loaded.program, is_named) {
                let fixed = loaded.fixed.clone();
                let of_device = move |entity: Result<(Entity, usize), Status>| match entity {
                    Ok((Entity { entity: Some(entity::Entity::TableEntry(entry)) }, _)) => {
                        fixed.has(entry.table_id)
                    }
                    _ => false,
                };
                if !self.beside(&request, |request| Entities::of(request).all(of_device)).await? {
                    return Err(unbound);
                }
            }
            let asked = ReadQuery { target: weighed.head.target, entities: Entities::of(request), options };
            Ok((asked, loaded, connection.read()?))
        };
        let (request, loaded, place) =
            begun.await.inspect_err(|error| self.refusals.log("BFRuntime Read", Some(error)))?;
        let (device, refusals, connection) = (self.device.clone(), self.refusals.clone(), connection.clone());
        let (sender, answers) = mpsc::channel(READ_AHEAD);
        tokio::spawn(async move {
            let result = read::read(&device, &loaded, request, &sender, &charge).await;
            if let Err(error) = result {
                if error.code() != tonic::Code::Cancelled {
                    refusals.log("BFRuntime Read", Some(&error));
                }
                let _ = sender.send(Err(fitting(error, &connection))).await;
            }
            drop((place, charge));
        });
        Ok(ReceiverStream::new(answers))
    }

    /// A SetForwardingPipelineConfig, serialised. `charge` covers its memory.
    pub async fn set_bytes(&self, request: Bytes, charge: Arc<Charge>) -> Result<Bytes, Status> {
        let made = async {
            Weighed::<SetForwardingPipelineConfigRequest>::programs(&request)?;
            let request: SetForwardingPipelineConfigRequest = decoded(request)?;
            tracing::debug!(action = request.action().as_str_name(), "BFRuntime SetForwardingPipelineConfig");
            self.programs.set(request, charge).await
        };
        let set = made.await;
        self.refusals.log("BFRuntime SetForwardingPipelineConfig", set.as_ref().err());
        set.map(|answer| answer.encode_to_vec().into())
    }
}

/// An entry and when it was last hit in some pipes.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub table: TableId,
    pub entry: TableEntry,
    pub pipes: Pipes,
    pub last_hit: Nanos,
}

/// An entry that was reported as idle.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub program: Weak<Program>,
    pub seen: Seen,
    pub found: bfrt_proto::TableEntry,
    pub pipe: u32,
}

#[tonic::async_trait]
impl BfRuntime for Service {
    async fn write(&self, request: Request<WriteRequest>) -> Result<Response<WriteResponse>, Status> {
        let (connection, charge) = (connection_of(&request)?, Arc::new(connection_of(&request)?.charge()));
        let request = request.into_inner().encode_to_vec().into();
        decoded(self.write_bytes(request, Options::default(), &connection, charge).await?).map(Response::new)
    }

    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let (connection, charge) = (connection_of(&request)?, Arc::new(connection_of(&request)?.charge()));
        let request = request.into_inner().encode_to_vec().into();
        let answers = self.read_bytes(request, Options::default(), &connection, charge).await?;
        Ok(Response::new(Box::pin(answers.map(|bytes| decoded(bytes?)))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        let charge = Arc::new(connection_of(&request)?.charge());
        let request = request.into_inner().encode_to_vec().into();
        decoded(self.set_bytes(request, charge).await?).map(Response::new)
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
            // Only the end of the bound client waits for Writes: they end before another one can be bound.
            let mut alone = None;
            while !service.clients.close(stream, alone.is_some()) {
                alone = Some(service.device.alone().await);
            }
            drop(alone);
            service.programs.leave(stream).await;
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
            // As with the driver, a stream that has a client gets no answer.
            Some(stream_message_request::Update::Subscribe(_)) if own.is_some() => Ok(()),
            Some(stream_message_request::Update::Subscribe(given)) => {
                let subscribed = check_device(given.device_id).and_then(|()| {
                    self.clients.subscribe(
                        stream,
                        message.client_id,
                        given.notifications.unwrap_or_default(),
                        outbox,
                    )
                });
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
            // As with the driver, which acknowledges digests itself.
            Some(stream_message_request::Update::DigestAck(_)) => {
                Err(Status::unimplemented("digests are not acknowledged; the stream ends"))
            }
            None => Err(status(Code::InvalidArgument, "the stream message's update is not set")),
        }
    }
}

fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

fn check_device(id: u32) -> Result<(), Status> {
    if id == DEVICE {
        return Ok(());
    }
    Err(status(Code::NotFound, format!("there is no device {id}; this is device {DEVICE}; ask for that one")))
}
