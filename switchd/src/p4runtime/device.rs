//! The device that controllers address: its primary, its program, and the order in which requests reach the switch.

#[cfg(test)]
mod charge_tests;
mod programs;
mod requests;
mod shared;

use super::arbitration::{Arbitration, ClientId, Notice};
use super::outbox::Outbox;
use super::preserve::ReplaceError;
use super::roles::{Access, Refusal};
use super::{Checked, refuse};
use crate::core::{Gone, Handle};
use p4rack_entities::{Candidate, Program, digest_list, idle_message};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::describe;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{
    DigestListAck, MasterArbitrationUpdate, PacketOut, Role, StreamMessageResponse, Uint128,
    stream_message_response,
};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::{google::rpc, p4::v1};
use p4rack_switch::{DigestMessage, IdleEntry, Pipeline, Switch, TraceFilter};
use p4rack_wire::Nanos;
use programs::Programs;
pub(crate) use programs::Watch;
pub(crate) use shared::Held;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockWriteGuard, Semaphore};
use tonic::Status;

/// Maximum controllers per role, and maximum roles.
const CONTROLLERS: usize = 64;

/// Maximum large Writes in progress: while one is applied, others are decoded and answered.
const WRITES_AT_ONCE: usize = 4;
/// Maximum parts of Reads in progress; others wait, so that a Write waits for few of them.
const PARTS_AT_ONCE: usize = 2;
/// From this size in bytes on, a Write is large: about a hundred updates.
pub const LARGE_BYTES: usize = 4 << 10;

#[derive(Debug)]
struct Clients {
    arbitration: Arbitration,
    outboxes: HashMap<ClientId, Outbox<StreamMessageResponse>>,
    next: ClientId,
}

/// The claimed sender of a request.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The device that the request is for.
    pub device_id: u64,
    /// Role of the sender; the default role has an empty name.
    pub role: &'a str,
    /// Election id of the sender.
    pub election_id: Option<&'a Uint128>,
}

/// Why entries were not written.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The first update that is refused, and the reason.
    #[error("{0}")]
    Refused(String),
    /// The data plane has stopped.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// A switch and its controllers.
#[derive(Debug)]
pub struct Device {
    handle: Handle,
    id: u64,
    cpu_port: Option<u16>,
    clients: Mutex<Clients>,
    programs: Arc<RwLock<Programs>>,
    /// Permits of large Writes.
    writes: Semaphore,
    /// Permits of parts of Reads.
    parts: Semaphore,
    /// Permit of long work outside of the threads that serve calls.
    aside: Arc<Semaphore>,
    /// Permit of a compilation.
    compiler: Arc<Semaphore>,
    /// Permit of a trace.
    tracing: Arc<Semaphore>,
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

impl From<ReplaceError> for Status {
    fn from(error: ReplaceError) -> Status {
        match error {
            ReplaceError::Refused(error) => status(error.code, error.message),
            ReplaceError::Gone(gone) => gone.into(),
        }
    }
}

/// A gRPC status with this code.
pub fn status(code: Code, message: impl Into<String>) -> Status {
    Status::new(tonic::Code::from(code as i32), message)
}

/// Does long work outside of the threads that serve calls, so that small calls don't wait for it. The permit is held
/// until the work ends, even if the caller has left.
async fn beside<R: Send + 'static>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Status> {
    // The semaphore is never closed.
    let permit = permits.clone().acquire_owned().await.ok();
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.map_err(|_| {
        status(
            Code::Internal,
            "the switch failed on this request; please report it together with the request",
        )
    })
}

fn election(id: Option<&Uint128>) -> Option<u128> {
    id.map(|id| u128::from(id.high) << 64 | u128::from(id.low))
}

impl Device {
    /// A device for the switch that `handle` reaches.
    pub fn new(handle: Handle, id: u64, cpu_port: Option<u16>) -> Device {
        let clients =
            Clients { arbitration: Arbitration::new(CONTROLLERS), outboxes: HashMap::new(), next: 0 };
        Device {
            handle,
            id,
            cpu_port,
            clients: Mutex::new(clients),
            programs: Arc::default(),
            writes: Semaphore::new(WRITES_AT_ONCE),
            parts: Semaphore::new(PARTS_AT_ONCE),
            aside: Arc::new(Semaphore::new(1)),
            compiler: Arc::new(Semaphore::new(1)),
            tracing: Arc::new(Semaphore::new(1)),
        }
    }

    /// Traces all packets, for a log, of this program and all after it.
    pub async fn log_packets(&self) {
        self.programs.write().await.is_logged = true;
    }

    /// Installs a program without a controller asking for it.
    pub async fn install(&self, candidate: Candidate) -> Result<(), Gone> {
        self.programs.write().await.commit(&self.handle, candidate).await
    }

    /// Writes into the running program without a controller asking for it: all updates, or none.
    pub async fn fill(&self, updates: Vec<v1::Update>) -> Result<(), FillError> {
        let Some(program) = self.running().await.filter(|_| !updates.is_empty()) else { return Ok(()) };
        let atomicity = Atomicity::RollbackOnError.into();
        let request = Arc::new(v1::WriteRequest { updates, atomicity, ..Default::default() });
        let (asked, writer) = (request.clone(), program.clone());
        let write = move |switch: &mut Switch, now| p4rack_entities::write(&writer, &asked, switch, now);
        let outcomes = self.handle.call(write).await?;
        let refused = |(at, outcome): (usize, Checked<()>)| {
            // Those that only went back with the others say nothing.
            let error = outcome.err().filter(|error| error.code != Code::Aborted)?;
            let entity = request.updates.get(at).and_then(|update| update.entity.as_ref()?.entity.as_ref());
            let what = match (entity, Schema::new(program.info.clone())) {
                (Some(EntityKind::TableEntry(entry)), Ok(schema)) => describe(&schema, entry),
                _ => format!("entry {}", at + 1),
            };
            Some(format!("{what}: {}", error.message))
        };
        outcomes.into_iter().enumerate().find_map(refused).map_or(Ok(()), |why| Err(FillError::Refused(why)))
    }

    /// Starts a trace of the next frames that match. Returns the trace's number, and the permit, which only one trace
    /// holds at a time. While the default role has a primary, only the primary may trace.
    pub async fn trace(
        &self,
        claim: Claim<'_>,
        filter: TraceFilter,
        frames: u32,
    ) -> Result<(u32, OwnedSemaphorePermit), Status> {
        self.check_id(claim.device_id)?;
        only_default(claim.role)?;
        if self.clients().arbitration.has_primary("") {
            self.authorise("", claim.election_id)?;
        }
        let program = self.programs.read().await.running.clone().ok_or_else(|| {
            status(
                Code::FailedPrecondition,
                "no program is installed, so there is nothing to trace; install one first",
            )
        })?;
        if self.programs.read().await.is_logged {
            let why = "the switch traces all packets, for its log: look there, or start it without that log";
            return Err(status(Code::FailedPrecondition, why));
        }
        // Taken before the program is compiled, which takes long.
        let only = self.tracing.clone().try_acquire_owned().map_err(|_| {
            status(Code::FailedPrecondition, "another trace is active; try again when it has ended")
        })?;
        let ir = program.clone();
        let traced = beside(&self.compiler, move || Pipeline::compile_traced(&ir.ir)).await?;
        let traced = traced.map_err(|error| status(Code::FailedPrecondition, error.to_string()))?;
        // Holding this lock, no other program is installed between this check and the start.
        let programs = self.programs.read().await;
        if !programs.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, &program)) {
            return Err(status(Code::Aborted, "another program was installed in the meantime; try again"));
        }
        let started = self.handle.call(move |switch, _| switch.trace_start(traced, filter, frames)).await?;
        let number = started.map_err(|error| status(Code::FailedPrecondition, error.to_string()))?;
        Ok((number, only))
    }

    /// Refuses requests for other devices.
    pub fn check_id(&self, id: u64) -> Result<(), Status> {
        if id == self.id {
            return Ok(());
        }
        let own = self.id;
        let message = format!(
            "this is device {own}, not device {id}; ask for device {own} (p4rack: --device-id {own})"
        );
        Err(status(Code::NotFound, message))
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        // No critical section can panic in the middle of a change.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn authorise(&self, role: &str, id: Option<&Uint128>) -> Result<Option<Arc<Access>>, Status> {
        Ok(self.clients().arbitration.authorise(role, election(id))?)
    }

    // ---- Streams

    /// Registers a stream that was opened.
    pub fn enter(&self, outbox: Outbox<StreamMessageResponse>) -> ClientId {
        let mut clients = self.clients();
        let client = clients.next;
        clients.next += 1;
        clients.outboxes.insert(client, outbox);
        client
    }

    /// Removes a stream that has ended.
    pub async fn leave(&self, client: ClientId) {
        {
            // A client that isn't primary leaves nothing to take over, so it need not wait for Writes in progress.
            // Waiting would let any client stall all Writes by connecting and leaving.
            let mut clients = self.clients();
            if clients.arbitration.primary_access(client).is_none() {
                clients.outboxes.remove(&client);
                let notices = clients.arbitration.leave(client);
                return self.notify(&clients, notices);
            }
        }
        // A Write in progress ends before another client can become primary.
        let _programs = self.programs.write().await;
        let mut clients = self.clients();
        clients.outboxes.remove(&client);
        let notices = clients.arbitration.leave(client);
        self.notify(&clients, notices);
    }

    /// Handles a client's arbitration message. `known` says whether it is not its first.
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
            return Err(status(Code::InvalidArgument, "role.id is deprecated; set role.name"));
        }
        let access = Access::of(role)?;
        let name = role.map_or("", |role| &role.name);
        let wanted = election(request.election_id.as_ref());
        let replaces = |clients: &Clients| clients.arbitration.replaces_primary(client, name, wanted);
        let mut writes_ended: Option<RwLockWriteGuard<'_, Programs>> = None;
        let mut clients = loop {
            {
                let clients = self.clients();
                // Only a change of primary waits for Writes: otherwise any client could stall all Writes by asking.
                if writes_ended.is_some() || !replaces(&clients) {
                    break clients;
                }
            }
            // A Write in progress ends before another client can become primary.
            writes_ended = Some(self.programs.write().await);
        };
        if let Some(access) = &access {
            clients.arbitration.check_access(name, access)?;
        }
        let notices = clients.arbitration.update(client, name, wanted)?;
        clients.arbitration.set_access(client, access.map(Arc::new));
        self.notify(&clients, notices);
        Ok(())
    }

    fn notify(&self, clients: &Clients, notices: Vec<Notice>) {
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

    /// Sends a frame from the CPU port to the primary of every role. Returns whether there was one and nothing was
    /// lost.
    pub async fn packet_in(&self, frame: &[u8]) -> bool {
        let Some(program) = self.programs.read().await.running.clone() else { return false };
        let Some((metadata, payload)) = program.packet_in.split(frame) else { return false };
        let packet = v1::PacketIn { payload: payload.to_vec(), metadata };
        self.tell_primaries(|access| {
            let takes = access.is_none_or(|access| access.takes(&packet.metadata));
            takes.then(|| stream_message_response::Update::Packet(packet.clone()))
        })
    }

    /// Notifies the primary of every role of idle entries. Returns whether there was one and nothing was lost.
    pub async fn idle(&self, entries: Vec<IdleEntry>, at: SystemTime) -> bool {
        let Some(program) = self.programs.read().await.running.clone() else { return false };
        let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let table_entry: Vec<_> =
            entries.iter().filter_map(|idle| idle_message(&program, idle.table, &idle.entry)).collect();
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

    /// Sends an update to the primary of every role, as far as `update` has one for its access. Returns whether there was
    /// one and every queue had room.
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

    /// Handles a digest from the program.
    pub async fn digest(&self, message: DigestMessage, now: Nanos) {
        if let Some(program) = self.programs.read().await.running.clone() {
            program.digests().handle_message(message, now);
        }
    }

    /// Sends the digest lists that are due to the primary of every role. Returns when the next one is due. A list
    /// without a receiver is lost; the program's next digests with the same values are sent again after the
    /// acknowledgement has timed out.
    pub async fn send_digests(&self, now: Nanos) -> Option<Nanos> {
        let program = self.programs.read().await.running.clone()?;
        let mut digests = program.digests();
        while let Some((digest, number, list)) = digests.poll_list(now) {
            let list = digest_list(&program, digest, number, &list, now);
            self.tell_primaries(|access| {
                let includes = access.is_none_or(|access| access.includes(list.digest_id));
                includes.then(|| stream_message_response::Update::Digest(list.clone()))
            });
        }
        digests.next_timeout()
    }

    /// Handles a controller's acknowledgement of a digest list.
    pub async fn digest_ack(&self, client: ClientId, ack: &DigestListAck) -> Checked<()> {
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
    pub async fn packet_out(&self, client: ClientId, packet: &PacketOut) -> Checked<()> {
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

    /// The installed program.
    pub async fn running(&self) -> Option<Arc<Program>> {
        self.programs.read().await.running.clone()
    }

    /// Does work on the switch for the primary of the default role, which can't change before the work is done. Errors:
    /// the request is for another device or from another role, or its sender is not primary.
    pub async fn as_primary<R: Send + 'static>(
        &self,
        claim: Claim<'_>,
        work: impl FnOnce(&mut Switch, Nanos) -> R + Send + 'static,
    ) -> Result<R, Status> {
        self.check_id(claim.device_id)?;
        only_default(claim.role)?;
        let _programs = self.programs.read().await;
        self.authorise("", claim.election_id)?;
        Ok(self.handle.call(work).await?)
    }
}

fn only_default(role: &str) -> Result<(), Status> {
    if role.is_empty() {
        return Ok(());
    }
    let message = format!("role `{role}` may not do this; only the primary of the default role may");
    Err(status(Code::PermissionDenied, message))
}

fn no_program() -> Status {
    status(Code::FailedPrecondition, "no program is installed; call SetForwardingPipelineConfig first")
}
