//! A node of EDM as a way to another node's memory.

use super::{Abilities, Attachment, Held, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape};
use super::{Opcode, Status, Window, WordOrder, Written};
use crate::memory::{self, Client, Error};
use p4rack_fabric::edm::host::compute::Request;
use p4rack_wire::Nanos;

/// EDM's answer to an operation.
#[derive(Clone, Copy, Debug)]
pub enum EdmAnswer {
    /// The bytes that were read.
    Bytes,
    /// Nothing: the write has been sent.
    Nothing,
    /// The old word.
    Word,
}

impl EdmAnswer {
    /// An operation as a request to the memory node: its address, the request, and the answer to it. Errors: EDM has no such
    /// operation.
    pub fn ask(operation: Operation<'_>) -> Result<(u64, Request, EdmAnswer), Status> {
        match operation {
            Operation::Read { at, bytes } => Ok((at, Request::Read(bytes), EdmAnswer::Bytes)),
            Operation::Write { at, bytes } => Ok((at, Request::Write(bytes.to_vec()), EdmAnswer::Nothing)),
            Operation::Gather { .. } | Operation::Scatter { .. } => Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands } => {
                Ok((at, Request::Modify(opcode, operands), EdmAnswer::Word))
            }
        }
    }

    /// The outcome of an operation with this result.
    pub fn outcome(self, result: &Result<Vec<u8>, Error>) -> Outcome<'_> {
        match (result, self) {
            (Ok(bytes), EdmAnswer::Bytes) => Outcome::Read(bytes),
            (Ok(_), EdmAnswer::Nothing) => Outcome::Written,
            (Ok(bytes), EdmAnswer::Word) => match bytes.first_chunk() {
                Some(word) => Outcome::Word(u64::from_be_bytes(*word)),
                None => Outcome::Failed(Status::Unknown),
            },
            (Err(error), _) => Outcome::Failed(Status::from(error)),
        }
    }
}

impl Abilities {
    /// Those of a region in EDM's memory, for messages and chunks of at most this many bytes.
    pub fn of_edm(
        region_bytes: u64,
        message_bytes_max: u32,
        chunk_bytes: u32,
        under_way_max: usize,
    ) -> Abilities {
        Abilities {
            region_bytes,
            read_bytes_max: message_bytes_max,
            write_bytes_max: message_bytes_max,
            whole_bytes: chunk_bytes,
            edge_bytes: u64::MAX,
            pieces_max: 0,
            under_way_max,
            atomics: &Opcode::ALL,
            words: WordOrder::BigEndian,
            writes: Written::Sent,
            order: Order::SameBytes,
        }
    }
}

/// A region of a memory node, from address 0.
#[derive(Debug)]
pub struct Edm {
    client: Client,
    remote: memory::Remote,
    abilities: Abilities,
    /// Tags by ticket, with the expected answer.
    tags: Window<(u64, EdmAnswer)>,
}

impl Edm {
    /// Uses `region_bytes` bytes of a node's memory.
    pub fn new(client: Client, remote: memory::Remote, region_bytes: u64) -> Edm {
        let node = client.config();
        let abilities =
            Abilities::of_edm(region_bytes, node.message_bytes_max, node.chunk_bytes, node.waiting_max);
        Edm { client, remote, abilities, tags: Window::default() }
    }
}

impl Remote for Edm {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let (address, request, answer) = EdmAnswer::ask(operation)?;
        let operation = memory::Operation { remote: self.remote, address, request };
        self.client.accept(operation).map_err(|error| Status::from(&error))?;
        // Tickets count all operations of this node, and all are accepted here.
        self.tags.push((tag, answer));
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.client.look(until)?;
        while let Some((ticket, done)) = self.client.take_done() {
            let Some((tag, answer)) = self.tags.take(ticket.number()) else { continue };
            ended(tag, answer.outcome(&done));
        }
        Ok(())
    }

    fn losses(&self) -> u64 {
        self.client.counters().sessions_lost
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Status {
        match error {
            Error::Unknown => Status::Unknown,
            Error::OutOfBounds => Status::OutOfBounds,
            Error::WrongKey => Status::WrongKey,
            Error::NotPermitted => Status::NotPermitted,
            Error::BadLength => Status::BadLength,
            Error::BadOperation => Status::BadOperation,
            Error::Busy => Status::Busy,
            Error::Full => Status::Full,
            Error::NoSuchNode(_) => Status::NoSuchNode,
            Error::Port(_) => Status::Gone,
        }
    }
}

/// Runs a node on the link that uses another node's memory.
pub(super) fn open(attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let node = attachment
        .node
        .ok_or_else(|| RemoteError::Lacks("a rack with EDM, and a memory node of it".into()))?;
    // The memory node knows the location of its region.
    let region_bytes = if shape.region_bytes == 0 { u64::MAX } else { shape.region_bytes };
    let edm = Edm::new(Client::open(node.0)?, node.1, region_bytes);
    Ok((Box::new(edm), Held(None)))
}
