//! A node of EDM as a way to another node's memory.

use super::{Abilities, Attachment, Held, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape};
use super::{Opcode, Status, Window, WordOrder, Written};
use crate::memory::{self, Client, Error};
use p4rack_fabric::edm::host::compute::Request;
use p4rack_wire::Nanos;

/// Kind of an operation's result.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
    Modify,
}

/// A region of a memory node, from address 0.
#[derive(Debug)]
pub struct Edm {
    client: Client,
    remote: memory::Remote,
    abilities: Abilities,
    /// Tags by ticket, with the kind of the result.
    tags: Window<(u64, Kind)>,
}

impl Edm {
    /// Uses `region_bytes` bytes of a node's memory.
    pub fn new(client: Client, remote: memory::Remote, region_bytes: u64) -> Edm {
        let node = client.config();
        let abilities = Abilities {
            region_bytes,
            read_bytes_max: node.message_bytes_max,
            write_bytes_max: node.message_bytes_max,
            whole_bytes: node.chunk_bytes,
            edge_bytes: u64::MAX,
            pieces_max: 0,
            under_way_max: node.waiting_max,
            atomics: &Opcode::ALL,
            words: WordOrder::BigEndian,
            writes: Written::Sent,
            order: Order::SameBytes,
        };
        Edm { client, remote, abilities, tags: Window::default() }
    }
}

impl Remote for Edm {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let (address, request, kind) = match operation {
            Operation::Read { at, bytes } => (at, Request::Read(bytes), Kind::Read),
            Operation::Write { at, bytes } => (at, Request::Write(bytes.to_vec()), Kind::Write),
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands } => {
                (at, Request::Modify(opcode, operands), Kind::Modify)
            }
        };
        let operation = memory::Operation { remote: self.remote, address, request };
        self.client.accept(operation).map_err(|error| Status::from(&error))?;
        // Tickets count all operations of this node, and all are accepted here.
        self.tags.push((tag, kind));
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.client.look(until)?;
        while let Some((ticket, done)) = self.client.take_done() {
            let Some((tag, kind)) = self.tags.take(ticket.number()) else { continue };
            let outcome = match (&done, kind) {
                (Ok(bytes), Kind::Read) => Outcome::Read(bytes),
                (Ok(_), Kind::Write) => Outcome::Written,
                (Ok(bytes), Kind::Modify) => match bytes.first_chunk() {
                    Some(word) => Outcome::Word(u64::from_be_bytes(*word)),
                    None => Outcome::Failed(Status::Unknown),
                },
                (Err(error), _) => Outcome::Failed(Status::from(error)),
            };
            ended(tag, outcome);
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
