//! The device: arbitration, the program, and the order in which requests reach the switch.

use super::arbitration::{Arbitration, ClientId, Notice, Refusal};
use super::limits::{Charge, Connection, SMALL_UPDATES, UPDATE_BYTES, UPDATES};
use super::outbox::Outbox;
use super::pipeline::{Candidate, Program};
use super::plain::{Plans, Request};
use super::roles::Access;
use super::writing::Reading;
use super::{Refused, digests, plain, preserve, refuse, tables, writing};
use crate::core::{Gone, Handle};
use p4rack_p4::ir::TableId;
use p4rack_p4rt::errors::{UpdateError, pack};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{
    DigestListAck, ForwardingPipelineConfig, MasterArbitrationUpdate, PacketOut, ReadRequest, ReadResponse,
    Role, SetForwardingPipelineConfigRequest, StreamMessageResponse, Uint128, stream_message_response,
};
use p4rack_p4rt::{google::rpc, p4::v1};
use p4rack_switch::{DigestMessage, Pipeline, Switch, TableEntry, TraceFilter};
use p4rack_wire::Nanos;
use prost::Message;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{RwLock, Semaphore, SemaphorePermit, mpsc};
use tonic::Status;

/// Controllers that may be connected in one role, and roles.
const CONTROLLERS: usize = 64;

/// Large Writes, and parts of Reads, that are made at once; others wait, so that a small Write has few before it.
const AT_ONCE: usize = 4;
/// A Write of so many bytes is large: it has a hundred updates, about.
const LARGE_BYTES: usize = 4 << 10;
/// Bytes in one message of a Read, about.
const BYTES_A_MESSAGE: usize = 32 << 10;
/// Turns of the data plane in the first part of a Read. Each further one is twice as long as the one before, so none is
/// much larger than all that the client has taken.
const FIRST_PART: usize = 16;
/// Turns in a part at most.
const LONGEST_PART: usize = 64;
/// A Read of which the client takes nothing for so long is ended.
const STALLED: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Clients {
    arbitration: Arbitration,
    outboxes: HashMap<ClientId, Outbox>,
    next: ClientId,
}

/// What the switch runs, and what was saved to run later.
#[derive(Debug, Default)]
struct Programs {
    running: Option<Arc<Program>>,
    saved: Option<Candidate>,
}

/// As whom a request was sent.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The device that is meant.
    pub device_id: u64,
    /// The sender's role; empty is the default one.
    pub role: &'a str,
    /// The sender's election id.
    pub election_id: Option<&'a Uint128>,
}

/// The device.
#[derive(Debug)]
pub struct Device {
    handle: Handle,
    id: u64,
    cpu_port: Option<u16>,
    clients: Mutex<Clients>,
    programs: RwLock<Programs>,
    /// Places of large Writes.
    writes: Semaphore,
    /// Places of parts of Reads.
    parts: Semaphore,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        status(refusal.code, refusal.message)
    }
}

impl From<Gone> for Status {
    fn from(gone: Gone) -> Status {
        Status::unavailable(gone.to_string())
    }
}

/// A gRPC status with this code.
pub fn status(code: Code, message: impl Into<String>) -> Status {
    Status::new(tonic::Code::from(code as i32), message)
}

fn election(id: Option<&Uint128>) -> Option<u128> {
    id.map(|id| u128::from(id.high) << 64 | u128::from(id.low))
}

/// The status of a Write or Read of which parts may have failed.
fn overall(outcomes: &[Refused<()>]) -> Result<(), Status> {
    match pack(outcomes) {
        None => Ok(()),
        Some(failed) => {
            let details = failed.encode_to_vec().into();
            Err(Status::with_details(tonic::Code::Unknown, failed.message, details))
        }
    }
}

impl Device {
    /// A device whose switch is behind `handle`.
    pub fn new(handle: Handle, id: u64, cpu_port: Option<u16>) -> Device {
        let clients =
            Clients { arbitration: Arbitration::new(CONTROLLERS), outboxes: HashMap::new(), next: 0 };
        Device {
            handle,
            id,
            cpu_port,
            clients: Mutex::new(clients),
            programs: RwLock::default(),
            writes: Semaphore::new(AT_ONCE),
            parts: Semaphore::new(AT_ONCE),
        }
    }

    /// Loads a program without any controller.
    pub async fn install(&self, candidate: Candidate) -> Result<(), Gone> {
        let mut programs = self.programs.write().await;
        self.commit(&mut programs, candidate).await
    }

    /// Has the switch trace the next frames that fit; gives the trace's number.
    pub async fn trace(&self, filter: TraceFilter, frames: u32) -> Result<u32, Status> {
        // No other program comes meanwhile.
        let programs = self.programs.read().await;
        let program = programs.running.clone().ok_or_else(|| {
            status(Code::FailedPrecondition, "there is no program to trace; install one first")
        })?;
        let traced = tokio::task::spawn_blocking(move || Pipeline::compile_traced(&program.ir)).await;
        let traced = traced
            .map_err(|error| status(Code::Internal, error.to_string()))?
            .map_err(|error| status(Code::FailedPrecondition, error.to_string()))?;
        let started = self.handle.call(move |switch, _| switch.trace_start(traced, filter, frames)).await?;
        started.map_err(|error| status(Code::FailedPrecondition, error.to_string()))
    }

    async fn commit(&self, programs: &mut Programs, candidate: Candidate) -> Result<(), Gone> {
        let Candidate { program, pipeline } = candidate;
        self.handle.call(move |switch, _| switch.load(pipeline)).await?;
        programs.running = Some(Arc::new(program));
        Ok(())
    }

    /// Refuses requests for other devices.
    pub fn check_id(&self, id: u64) -> Result<(), Status> {
        if id == self.id {
            return Ok(());
        }
        Err(status(Code::NotFound, format!("there is no device {id} here; this is device {}", self.id)))
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        // Nothing in the critical sections can panic half-way through a change.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn authorise(&self, role: &str, id: Option<&Uint128>) -> Result<Option<Arc<Access>>, Status> {
        Ok(self.clients().arbitration.authorise(role, election(id))?)
    }

    // ---- Streams

    /// A stream was opened.
    pub fn enter(&self, outbox: Outbox) -> ClientId {
        let mut clients = self.clients();
        let client = clients.next;
        clients.next += 1;
        clients.outboxes.insert(client, outbox);
        client
    }

    /// A stream has ended.
    pub async fn leave(&self, client: ClientId) {
        {
            // Nobody takes over from a client that is primary of nothing, so no Write has to end first; and if it
            // had to, whoever comes and goes would hold up everybody's.
            let mut clients = self.clients();
            if clients.arbitration.primary_access(client).is_none() {
                clients.outboxes.remove(&client);
                let notices = clients.arbitration.leave(client);
                return self.tell(&clients, notices);
            }
        }
        // A Write that has begun ends before anybody else can take over.
        let _programs = self.programs.write().await;
        let mut clients = self.clients();
        clients.outboxes.remove(&client);
        let notices = clients.arbitration.leave(client);
        self.tell(&clients, notices);
    }

    /// A stream asks to be primary.
    pub async fn arbitrate(
        &self,
        client: ClientId,
        request: &MasterArbitrationUpdate,
        known: bool,
    ) -> Result<(), Status> {
        match self.check_id(request.device_id) {
            Err(refused) if known => return Err(status(Code::FailedPrecondition, refused.message())),
            result => result?,
        }
        let role = request.role.as_ref();
        #[allow(deprecated)]
        if role.is_some_and(|role| role.id != 0 && role.name.is_empty()) {
            return Err(status(Code::InvalidArgument, "role.id has been replaced; name the role"));
        }
        let access = Access::of(role)?;
        let _programs = self.programs.write().await;
        let mut clients = self.clients();
        let name = role.map_or("", |role| &role.name);
        if let Some(access) = &access {
            clients.arbitration.check_access(name, access)?;
        }
        let notices = clients.arbitration.update(client, name, election(request.election_id.as_ref()))?;
        clients.arbitration.set_access(client, access.map(Arc::new));
        self.tell(&clients, notices);
        Ok(())
    }

    fn tell(&self, clients: &Clients, notices: Vec<Notice>) {
        for notice in notices {
            let message = match notice.code {
                Code::Ok => "you are primary",
                Code::AlreadyExists => "there is another primary",
                _ => "there is no primary",
            };
            let config = clients.arbitration.access(&notice.role).map(|access| access.given.clone());
            let role = Role { name: notice.role.clone(), config, ..Default::default() };
            let update = MasterArbitrationUpdate {
                device_id: self.id,
                role: (!notice.role.is_empty()).then_some(role),
                election_id: notice.highest.map(|id| Uint128 { high: (id >> 64) as u64, low: id as u64 }),
                status: Some(rpc::Status {
                    code: notice.code as i32,
                    message: message.into(),
                    details: Vec::new(),
                }),
            };
            let update = stream_message_response::Update::Arbitration(update);
            if let Some(outbox) = clients.outboxes.get(&notice.client) {
                outbox.send(Ok(StreamMessageResponse { update: Some(update) }));
            }
        }
    }

    /// A frame came out of the CPU port: it goes to the primary of every role. Returns whether there
    /// was one and nothing was lost.
    pub async fn packet_in(&self, frame: &[u8]) -> bool {
        let Some(program) = self.programs.read().await.running.clone() else { return false };
        let Some((metadata, payload)) = program.packet_in.split(frame) else { return false };
        let packet = v1::PacketIn { payload: payload.to_vec(), metadata };
        self.tell_primaries(|access| {
            let takes = access.is_none_or(|access| access.takes(&packet.metadata));
            takes.then(|| stream_message_response::Update::Packet(packet.clone()))
        })
    }

    /// No packet has hit these entries for long: the primary of every role is told. Returns as above.
    pub async fn idle(&self, entries: Vec<(TableId, TableEntry)>, at: SystemTime) -> bool {
        let Some(program) = self.programs.read().await.running.clone() else { return false };
        let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let table_entry: Vec<_> = entries
            .iter()
            .filter_map(|(table, entry)| tables::idle_message(&program, *table, entry))
            .collect();
        if table_entry.is_empty() {
            return true;
        }
        let timestamp = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
        self.tell_primaries(|access| {
            let wanted =
                |entry: &&v1::TableEntry| access.is_none_or(|access| access.includes(entry.table_id));
            let table_entry: Vec<_> = table_entry.iter().filter(wanted).cloned().collect();
            let notification = v1::IdleTimeoutNotification { table_entry, timestamp };
            let any = !notification.table_entry.is_empty();
            any.then_some(stream_message_response::Update::IdleTimeoutNotification(notification))
        })
    }

    /// Sends to the primary of every role what there is for it; whether there was one and each has room in its queue.
    fn tell_primaries(
        &self,
        update: impl Fn(Option<&Access>) -> Option<stream_message_response::Update>,
    ) -> bool {
        let clients = self.clients();
        let (mut delivered, mut lost) = (0, 0);
        for (primary, access) in clients.arbitration.primaries() {
            let Some(update) = update(access).map(Some) else { continue };
            let outbox = clients.outboxes.get(&primary);
            let sent = outbox.is_some_and(|outbox| outbox.offer(StreamMessageResponse { update }));
            *if sent { &mut delivered } else { &mut lost } += 1;
        }
        delivered > 0 && lost == 0
    }

    /// The program sent a digest.
    pub async fn digest(&self, message: DigestMessage, now: Nanos) {
        if let Some(program) = self.programs.read().await.running.clone() {
            program.digests().handle_message(message, now);
        }
    }

    /// Sends the lists of digests that are due to the primary of every role; says when the next is. A list that
    /// reaches nobody is lost, its messages come again once the acknowledgement has timed out.
    pub async fn send_digests(&self, now: Nanos) -> Option<Nanos> {
        let program = self.programs.read().await.running.clone()?;
        let mut digests = program.digests();
        while let Some((digest, number, list)) = digests.poll_list(now) {
            let list = digests::message(&program, digest, number, &list, now);
            self.tell_primaries(|access| {
                let includes = access.is_none_or(|access| access.includes(list.digest_id));
                includes.then(|| stream_message_response::Update::Digest(list.clone()))
            });
        }
        digests.next_timeout()
    }

    /// A controller has received a list of digests.
    pub async fn digest_ack(&self, client: ClientId, ack: &DigestListAck) -> Refused<()> {
        match self.clients().arbitration.primary_access(client) {
            None => return refuse(Code::PermissionDenied, "only the primary may acknowledge digests"),
            Some(Some(access)) if !access.includes(ack.digest_id) => {
                return refuse(Code::PermissionDenied, "the role's config does not name this digest");
            }
            Some(_) => {}
        }
        let Some(program) = self.programs.read().await.running.clone() else {
            return refuse(Code::FailedPrecondition, "no program is installed");
        };
        let digest = program.digest(ack.digest_id)?;
        program.digests().handle_ack(digest, ack.list_id)
    }

    /// Sends a packet-out to the CPU port.
    pub async fn packet_out(&self, client: ClientId, packet: &PacketOut) -> Refused<()> {
        if self.clients().arbitration.primary_access(client).is_none() {
            return refuse(Code::PermissionDenied, "only the primary may send packets");
        }
        let Some(cpu_port) = self.cpu_port else {
            return refuse(Code::FailedPrecondition, "this switch has no CPU port");
        };
        let Some(program) = self.programs.read().await.running.clone() else {
            return refuse(Code::FailedPrecondition, "no program is installed");
        };
        let frame = program.packet_out.prepend(&packet.metadata, &packet.payload)?;
        let sent = self.handle.call(move |switch, now| switch.handle_frame(cpu_port, &frame, now)).await;
        sent.map_err(|gone| UpdateError::new(Code::Unavailable, gone.to_string()))
    }

    // ---- Program

    /// Installs, or checks, a program.
    pub async fn set_config(&self, request: SetForwardingPipelineConfigRequest) -> Result<(), Status> {
        self.check_id(request.device_id)?;
        if self.authorise(&request.role, request.election_id.as_ref())?.is_some_and(|access| !access.installs)
        {
            return Err(status(Code::PermissionDenied, "the role's config does not let it push a pipeline"));
        }
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        match (action, request.config) {
            (Action::Unspecified, _) => Err(status(Code::InvalidArgument, "the action is not set")),
            (Action::Commit, Some(_)) => Err(status(
                Code::InvalidArgument,
                "COMMIT takes the config that was saved; leave config unset",
            )),
            (Action::Commit, None) => {
                let mut programs = self.programs.write().await;
                self.authorise(&request.role, request.election_id.as_ref())?;
                let Some(saved) = programs.saved.take() else {
                    return Err(status(Code::NotFound, "nothing was saved; VERIFY_AND_SAVE first"));
                };
                Ok(self.commit(&mut programs, saved).await?)
            }
            (_, None) => Err(status(Code::InvalidArgument, "config is not set")),
            (action, Some(config)) => {
                let verified = tokio::task::spawn_blocking(|| Candidate::verify(config)).await;
                let candidate = verified
                    .map_err(|_| {
                        status(Code::Internal, "the compiler failed; please report it with the program")
                    })?
                    .map_err(|error| status(error.code, error.message))?;
                let mut programs = self.programs.write().await;
                // The primary may have changed while the program was compiled.
                self.authorise(&request.role, request.election_id.as_ref())?;
                match action {
                    Action::VerifyAndSave => programs.saved = Some(candidate),
                    Action::VerifyAndCommit => {
                        programs.saved = None;
                        self.commit(&mut programs, candidate).await?;
                    }
                    Action::ReconcileAndCommit => {
                        let Some(running) = programs.running.clone() else {
                            programs.saved = None;
                            return Ok(self.commit(&mut programs, candidate).await?);
                        };
                        let program = preserve::replace(&self.handle, &running, candidate).await?;
                        let program = program.map_err(|error| status(error.code, error.message))?;
                        programs.saved = None;
                        programs.running = Some(program);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// What is installed.
    pub async fn config(&self) -> Option<ForwardingPipelineConfig> {
        self.programs.read().await.running.as_ref().map(|program| program.config.clone())
    }

    /// Does work on the switch for the primary of the default role, who stays it until that is done. Errors: another
    /// device is meant, another role asks, the sender is not primary.
    pub async fn as_primary<R: Send + 'static>(
        &self,
        claim: Claim<'_>,
        work: impl FnOnce(&mut Switch, Nanos) -> R + Send + 'static,
    ) -> Result<R, Status> {
        self.check_id(claim.device_id)?;
        if !claim.role.is_empty() {
            let message =
                format!("role `{}` may not do this, only the primary of the default role", claim.role);
            return Err(status(Code::PermissionDenied, message));
        }
        let _programs = self.programs.read().await;
        self.authorise("", claim.election_id)?;
        Ok(self.handle.call(work).await?)
    }

    // ---- Entities

    /// Applies updates in order; what they take of memory is charged.
    pub async fn write(
        &self,
        request: Bytes,
        connection: &Connection,
        charge: &Charge,
    ) -> Result<(), Status> {
        // Fewer bytes can't hold too many.
        if request.len() > 2 * UPDATES {
            connection.check_count("updates", plain::count_updates(&request))?;
        }
        let _place = self.place(request.len(), connection).await;
        // Nobody becomes primary and no program comes before the last change is made; the order among Writes and
        // Reads is that of the data plane's long jobs.
        let programs = self.programs.read().await;
        let none = Plans::default();
        let plans = programs.running.as_ref().map_or(&none, |program| &program.plans);
        let mut request =
            Request::decode(request, plans).map_err(|error| Status::internal(error.to_string()))?;
        if request.steps.len() > SMALL_UPDATES {
            charge.add(UPDATE_BYTES * request.steps.len())?;
        }
        let head = &request.head;
        self.check_id(head.device_id)?;
        let atomicity = Atomicity::try_from(head.atomicity);
        let access = self.authorise(&head.role, head.election_id.as_ref())?;
        let access = access.as_deref();
        let program = programs.running.as_ref().ok_or_else(no_program)?;
        if programs.saved.is_some() {
            let message = "a config is saved and writes would be meant for it; COMMIT it first";
            return Err(status(Code::Unimplemented, message));
        }
        let outcomes = match atomicity {
            Ok(Atomicity::ContinueOnError) => {
                if let Some(access) = access {
                    access.check_request(&mut request, plans);
                }
                let in_one_turn = request.steps.len() <= writing::UPDATES_A_TURN;
                let mut job = writing::each(program, request);
                match in_one_turn.then(|| self.handle.here(&mut job)).flatten() {
                    Some(ControlFlow::Break(outcomes)) => outcomes,
                    _ => self.handle.in_turns(job).await?,
                }
            }
            Ok(Atomicity::RollbackOnError) => {
                let job = writing::all(program, &request.updates(), access, writing::UPDATES_A_TURN);
                self.handle.in_turns(job).await?
            }
            // No packet comes between the updates of one turn.
            Ok(Atomicity::DataplaneAtomic) => {
                self.handle.in_turns(writing::all(program, &request.updates(), access, usize::MAX)).await?
            }
            Err(_) => return Err(status(Code::InvalidArgument, "there is no such atomicity")),
        };
        overall(&outcomes)
    }

    /// A place for a Write whose client has taken its errors; a small one needs none.
    async fn place(&self, bytes: usize, connection: &Connection) -> Option<SemaphorePermit<'_>> {
        loop {
            connection.drained().await;
            if bytes < LARGE_BYTES {
                return None;
            }
            // It is never closed.
            let place = self.writes.acquire().await.ok();
            // Others of its client may have been answered meanwhile.
            if connection.is_drained() {
                return place;
            }
        }
    }

    /// Refuses what can't be answered at all.
    pub async fn check_read(&self, request: &ReadRequest) -> Result<(), Status> {
        self.check_id(request.device_id)?;
        self.programs.read().await.running.as_ref().map(|_| ()).ok_or_else(no_program)
    }

    /// Reads entities: `answers` are given fields of a `ReadResponse`, and the end tells whether that is all that was
    /// asked for. It is read in parts, the next when the client has taken nearly all of the one before; nobody else
    /// waits meanwhile.
    pub async fn read(&self, request: ReadRequest, answers: &mpsc::Sender<Bytes>) -> Result<(), Status> {
        let program = self.programs.read().await.running.clone().ok_or_else(no_program)?;
        let access = self.clients().arbitration.access(&request.role).cloned();
        let access = access.as_deref();
        let mut reading = Reading::new(&program, &request.entities, access);
        let (mut turns, mut fields) = (FIRST_PART, Vec::new());
        loop {
            if let Some(outcomes) = reading.outcomes() {
                if !fields.is_empty() {
                    give(answers, fields.into()).await?;
                }
                return overall(outcomes);
            }
            let (sender, mut found) = mpsc::unbounded_channel();
            let part = async {
                let _place = self.parts.acquire().await;
                // No program comes while the data plane is at it.
                let programs = self.programs.read().await;
                if !programs.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, &program)) {
                    let message = "another program was installed during the read; read again";
                    return Err(status(Code::Aborted, message));
                }
                Ok::<_, Status>(self.handle.in_turns(reading.part(turns, sender)).await?)
            };
            let convert = async {
                while let Some(messages) = found.recv().await {
                    fields.extend(match access {
                        None => messages.encoded(),
                        Some(access) => {
                            let mut entities = messages.messages();
                            entities.retain(|found| access.check_entity(found.entity.as_ref()).is_ok());
                            ReadResponse { entities }.encode_to_vec()
                        }
                    });
                    if fields.len() >= BYTES_A_MESSAGE {
                        give(answers, std::mem::take(&mut fields).into()).await?;
                    }
                }
                Ok::<(), Status>(())
            };
            let (rest, given) = tokio::join!(part, convert);
            given?;
            reading = rest?;
            turns = (2 * turns).min(LONGEST_PART);
        }
    }
}

/// Sends a part of an answer when there is room for it. Errors: the client has left, or takes nothing.
async fn give(answers: &mpsc::Sender<Bytes>, message: Bytes) -> Result<(), Status> {
    match answers.try_send(message) {
        Ok(()) => Ok(()),
        Err(mpsc::error::TrySendError::Full(message)) => {
            match tokio::time::timeout(STALLED, answers.send(message)).await {
                Ok(sent) => sent.map_err(|_| Status::cancelled("the client has left")),
                Err(_) => {
                    let seconds = STALLED.as_secs();
                    let message = format!("nothing of the answer was taken for {seconds} s; read again");
                    Err(status(Code::DeadlineExceeded, message))
                }
            }
        }
        Err(mpsc::error::TrySendError::Closed(_)) => Err(Status::cancelled("the client has left")),
    }
}

fn no_program() -> Status {
    status(Code::FailedPrecondition, "no program is installed; SetForwardingPipelineConfig first")
}
