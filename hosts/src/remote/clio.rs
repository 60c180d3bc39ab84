//! A range of a Clio board's memory as a way, over a UDP socket of the thread's own.

use super::{Abilities, Held, Opened, Operation, Order, Outcome, Place, Remote, RemoteError, Shape};
use super::{Opcode, Status, WordOrder, Written};
use crate::clio::Session;
use p4rack_fabric::clio::lib::{self, Change, Credentials, Refused};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status as Said;

/// The range of a session's process, from offset 0.
pub struct Clio {
    session: Session,
    abilities: Abilities,
    /// Address of the range's first byte.
    start: u64,
}

fn outcome_of(outcome: lib::Outcome<'_>) -> Outcome<'_> {
    match outcome {
        lib::Outcome::Done => Outcome::Written,
        lib::Outcome::Read(bytes) => Outcome::Read(bytes),
        lib::Outcome::Word(word) => Outcome::Word(word),
        lib::Outcome::Unknown => Outcome::Failed(Status::Unknown),
        lib::Outcome::Refused(why) => Outcome::Failed(status(why)),
        // None of them is asked for.
        lib::Outcome::Address(_) | lib::Outcome::Held(_) | lib::Outcome::Results(_) => {
            Outcome::Failed(Status::BadOperation)
        }
    }
}

fn status(why: Said) -> Status {
    match why {
        Said::NoSuchAddress | Said::Closing => Status::OutOfBounds,
        Said::NotPermitted => Status::NotPermitted,
        Said::BadLength => Status::BadLength,
        Said::Busy | Said::NoPageYet | Said::NoMemory => Status::Busy,
        _ => Status::BadOperation,
    }
}

impl Remote for Clio {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let operation = match operation {
            Operation::Read { at, bytes } => lib::Operation::Read { address: self.start + at, bytes },
            Operation::Write { at, bytes } => lib::Operation::Write { address: self.start + at, bytes },
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands: [first, second] } => {
                let change = match opcode {
                    Opcode::Cas => Change::CompareSwap(first, second),
                    Opcode::FetchAdd => Change::FetchAdd(first),
                    Opcode::Swap => Change::Swap(first),
                    _ => return Err(Status::BadOperation),
                };
                lib::Operation::Modify { address: self.start + at, change }
            }
        };
        self.session.submit(tag, operation).map_err(|refused| match refused {
            Refused::Full => Status::Full,
            Refused::BadLength => Status::BadLength,
            Refused::BadAddress | Refused::NoSuchEnd => Status::OutOfBounds,
            Refused::Unaligned => Status::BadOperation,
        })
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.session.poll(until, &mut |tag, outcome| ended(tag, outcome_of(outcome)))?;
        Ok(())
    }
}

impl Clio {
    /// Over a session, for example of an extent that is lent.
    pub fn new(session: Session) -> Clio {
        let ((start, region_bytes), config) = (session.range(), session.config());
        let abilities = Abilities {
            region_bytes,
            read_bytes_max: config.request_bytes_max,
            write_bytes_max: config.request_bytes_max,
            whole_bytes: session.packet_bytes(),
            edge_bytes: session.page_size().bytes(),
            pieces_max: 0,
            under_way_max: config.requests_max.into(),
            atomics: &[Opcode::Cas, Opcode::FetchAdd, Opcode::Swap],
            words: WordOrder::LittleEndian,
            writes: Written::There,
            order: Order::Dependent,
        };
        Clio { session, abilities, start }
    }
}

/// Becomes a client of a board, whose process ends when the way is dropped.
pub(super) fn open(place: Place, shape: Shape) -> Result<Opened, RemoteError> {
    let server = place.memory("a board")?;
    let reserve_bytes = if place.shared { 0 } else { shape.region_bytes };
    let clio = Clio::new(Session::open(server, reserve_bytes, place.patience)?);
    let (offered, needed) = (clio.abilities.region_bytes, shape.region_bytes);
    if offered < needed {
        let why = format!("the board offers {offered} bytes, and {needed} are needed");
        return Err(RemoteError::Broken(why));
    }
    Ok((Box::new(clio), Held(None)))
}

/// Becomes a client of a process whose rights were handed on, with this range.
pub(super) fn open_granted(
    place: &Place,
    credentials: Credentials,
    range: (u64, u64),
) -> Result<Opened, RemoteError> {
    let session = Session::open_granted(place.memory("a board")?, credentials, range, place.patience)?;
    Ok((Box::new(Clio::new(session)), Held(None)))
}
