//! Writes and Reads.
//!
//! ```text
//!  Write, small ─ head ─ authorise ─ decode ────────────────────▶ applied between the turns of large Writes
//!  Write, large ─ head ─ authorise ─ permit ─ decode elsewhere ─▶ applied in turns ─ errors encoded elsewhere
//!                                      └─ short, plain: decode ─▶        └─ no errors: done
//!  Read ─ decode ─▶ a part, in one turn ─ encode elsewhere ─ sent ─▶ the next part
//!
//!  elsewhere: outside of the threads that serve calls
//! ```

use super::{Access, Code, Device, LARGE_BYTES, Program, Programs, beside, no_program, status};
use crate::core::{Gone, Isolation};
use crate::p4runtime::limits::{Charge, Connection, SMALL_UPDATES, UPDATE_BYTES};
use crate::p4runtime::writing::{self, Admitted};
use p4rack_entities::{Outcomes, ReadResults, Reading, UPDATES_A_TURN, plain};
use p4rack_p4rt::errors::{pack, pack_read};
use p4rack_p4rt::google::rpc;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{Entity, ReadRequest, ReadResponse, WriteRequest};
use prost::Message;
use prost::bytes::Bytes;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{SemaphorePermit, mpsc};
use tonic::Status;

/// Up to this size, the head of a request is decoded in place, and so are plain updates while no other connection has
/// large Writes: handing the work to another thread costs more than other calls lose by waiting.
const QUICK_BYTES: usize = 64 << 10;
/// Approximate bytes per message of a Read.
const BYTES_A_MESSAGE: usize = 32 << 10;
/// Turns of the data plane per part of a Read. It bounds the wait of a Write, and the memory of a Read whose client
/// reads nothing.
const TURNS_A_PART: usize = 16;
/// A Read is ended if its client reads nothing for this long.
const STALLED: Duration = Duration::from_secs(30);

/// The status of a whole request.
fn overall(packed: Option<rpc::Status>) -> Result<(), Status> {
    match packed {
        None => Ok(()),
        Some(failed) => {
            let details = failed.encode_to_vec().into();
            Err(Status::with_details(tonic::Code::Unknown, failed.message, details))
        }
    }
}

impl Device {
    /// Applies updates in order. `charge` covers their memory. Call it for a large request from a task of its own,
    /// because it must not be cancelled with its caller.
    pub async fn write(
        &self,
        request: Bytes,
        connection: &Connection,
        charge: &Charge,
    ) -> Result<(), Status> {
        let is_large = request.len() >= LARGE_BYTES;
        let own_permit = if is_large { Some(connection.large_write().await) } else { None };
        let (head, updates) = self.head(&request).await?;
        connection.check_count("updates", updates)?;
        let _permit = if is_large {
            // A sender that may not write is refused without waiting.
            self.admit(&*self.programs.read().await, &head)?;
            self.large_write(connection).await?
        } else {
            connection.drained().await?;
            None
        };
        // Until the last update is applied, no other client becomes primary and no program is installed.
        let programs = self.programs.read().await;
        let admitted = self.admit(&programs, &head)?;
        if updates > SMALL_UPDATES {
            charge.add(UPDATE_BYTES * updates)?;
        }
        let malformed = |error: prost::DecodeError| Status::internal(error.to_string());
        if let Some(write) = &own_permit {
            let at_once = request.len() <= QUICK_BYTES && write.is_alone();
            let (job, isolation) = match at_once.then(|| writing::ready_plain(&request, &admitted)).flatten()
            {
                Some(ready) => ready,
                None => {
                    let ready = beside(&self.aside, move || writing::ready(request, &admitted)).await?;
                    ready.map_err(malformed)?
                }
            };
            let outcomes = self.handle.in_turns(isolation, job).await?;
            drop(programs);
            if outcomes.iter().all(Result::is_ok) {
                return Ok(());
            }
            return beside(&self.aside, move || overall(pack(&outcomes))).await?;
        }
        let (job, isolation) = writing::ready(request, &admitted).map_err(malformed)?;
        overall(pack(&self.make_small(job, isolation, updates).await?))
    }

    /// Makes a Write of few updates.
    pub(crate) async fn make_small(
        &self,
        mut job: writing::Job,
        isolation: Isolation,
        updates: usize,
    ) -> Result<Outcomes, Gone> {
        let is_open = isolation == Isolation::Open;
        let in_one_turn = is_open && updates <= UPDATES_A_TURN;
        match in_one_turn.then(|| self.handle.here(&mut job)).flatten() {
            Some(ControlFlow::Break(outcomes)) => Ok(outcomes),
            _ if is_open => self.handle.short(job).await,
            _ => self.handle.in_turns(isolation, job).await,
        }
    }

    /// A Write without its updates, and their number. Errors: it is malformed.
    async fn head(&self, request: &Bytes) -> Result<(WriteRequest, usize), Status> {
        let head = if request.len() <= QUICK_BYTES {
            plain::head(request)
        } else {
            let request = request.clone();
            beside(&self.aside, move || plain::head(&request)).await?
        };
        head.map_err(|error| Status::internal(error.to_string()))
    }

    /// Rejects a Write before its updates are decoded.
    fn admit(&self, programs: &Programs, head: &WriteRequest) -> Result<Admitted, Status> {
        self.check_id(head.device_id)?;
        let access = self.authorise(&head.role, head.election_id.as_ref())?;
        let program = programs.running.clone().ok_or_else(no_program)?;
        if programs.saved.is_some() {
            let message = "a config is saved but not committed, so Writes would be for that; COMMIT it first";
            return Err(status(Code::Unimplemented, message));
        }
        let atomicity = Atomicity::try_from(head.atomicity)
            .map_err(|_| status(Code::InvalidArgument, "there is no such atomicity"))?;
        Ok(Admitted { program, access, atomicity })
    }

    /// A permit for a large Write, once its client has read its earlier errors.
    pub(crate) async fn large_write(
        &self,
        connection: &Connection,
    ) -> Result<Option<SemaphorePermit<'_>>, Status> {
        loop {
            connection.drained().await?;
            // The semaphore is never closed.
            let permit = self.writes.acquire().await.ok();
            // Other Writes of the client may have been answered in the meantime.
            if connection.is_drained() {
                return Ok(permit);
            }
        }
    }

    /// Decodes a Read. Errors: it is malformed, or cannot be answered at all.
    pub async fn read_request(&self, bytes: Bytes) -> Result<ReadRequest, Status> {
        let request = if bytes.len() <= LARGE_BYTES {
            ReadRequest::decode(bytes)
        } else {
            beside(&self.aside, move || ReadRequest::decode(bytes)).await?
        };
        let request = request.map_err(|error| Status::internal(error.to_string()))?;
        self.check_id(request.device_id)?;
        self.programs.read().await.running.as_ref().ok_or_else(no_program)?;
        Ok(request)
    }

    /// Reads entities. Sends fields of `ReadResponse`s to `answers`; the result says whether all requested entities could
    /// be read. Reads in parts, each after the previous one was sent, so that other clients don't wait for this one.
    pub async fn read(&self, request: ReadRequest, answers: &mpsc::Sender<Bytes>) -> Result<(), Status> {
        let program = self.programs.read().await.running.clone().ok_or_else(no_program)?;
        let access = self.clients().arbitration.access(&request.role).cloned();
        let role = access.clone();
        let allowed = move |entity: &Entity| {
            role.as_ref().map_or(Ok(()), |access| access.check_entity(entity.entity.as_ref()))
        };
        let mut reading = Reading::new(program.clone(), request, Box::new(allowed));
        let mut fields = Vec::new();
        loop {
            if let Some(outcomes) = reading.outcomes() {
                if !fields.is_empty() {
                    give(answers, fields.into()).await?;
                }
                return overall(pack_read(outcomes));
            }
            // For a client that reads nothing, at most one part is kept in memory.
            drop(room(answers, answers.max_capacity()).await?);
            let messages = {
                let _permit = self.parts.acquire().await;
                let found;
                (reading, found) = self.read_part(&program, reading).await?;
                let is_long = found.len() > 1;
                let access = access.clone();
                let encode = move || encoded(found, access.as_deref(), fields);
                let messages;
                (messages, fields) = if is_long { beside(&self.aside, encode).await? } else { encode() };
                messages
            };
            for message in messages {
                give(answers, message).await?;
            }
        }
    }

    async fn read_part(
        &self,
        program: &Arc<Program>,
        reading: Reading,
    ) -> Result<(Reading, Vec<ReadResults>), Status> {
        // Holding this lock, no program is installed while the data plane reads.
        let programs = self.programs.read().await;
        if !programs.running.as_ref().is_some_and(|running| Arc::ptr_eq(running, program)) {
            let message = "another program was installed during the Read; read again";
            return Err(status(Code::Aborted, message));
        }
        Ok(self.handle.in_turns(Isolation::Whole, reading.part(TURNS_A_PART)).await?)
    }
}

/// Encodes results as messages of [`BYTES_A_MESSAGE`] or more. `fields` is the beginning of the first message; returns
/// the beginning of the next one as well.
fn encoded(found: Vec<ReadResults>, access: Option<&Access>, mut fields: Vec<u8>) -> (Vec<Bytes>, Vec<u8>) {
    let mut messages = Vec::new();
    for found in found {
        fields.extend(match access {
            None => found.encoded(),
            Some(access) => {
                let mut entities = found.messages();
                entities.retain(|found| access.check_entity(found.entity.as_ref()).is_ok());
                ReadResponse { entities }.encode_to_vec()
            }
        });
        if fields.len() >= BYTES_A_MESSAGE {
            // Without spare capacity: many messages may wait for their clients.
            messages.push(std::mem::take(&mut fields).into_boxed_slice().into());
        }
    }
    (messages, fields)
}

/// Waits until the queue has room for this many messages. Errors: the client has left, or reads nothing.
async fn room(
    answers: &mpsc::Sender<Bytes>,
    messages: usize,
) -> Result<mpsc::PermitIterator<'_, Bytes>, Status> {
    match tokio::time::timeout(STALLED, answers.reserve_many(messages)).await {
        Ok(room) => room.map_err(|_| Status::cancelled("the client has left")),
        Err(_) => {
            let seconds = STALLED.as_secs();
            let message = format!("the client has read nothing of the response for {seconds} s; read again");
            Err(status(Code::DeadlineExceeded, message))
        }
    }
}

/// Sends a message when the queue has room. Errors: the client has left, or reads nothing.
async fn give(answers: &mpsc::Sender<Bytes>, message: Bytes) -> Result<(), Status> {
    if let Some(room) = room(answers, 1).await?.next() {
        room.send(message);
    }
    Ok(())
}
