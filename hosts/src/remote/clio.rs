//! A range of a Clio board's memory as a way, over a UDP socket of the thread's own.

use super::{Abilities, Held, Lease, Opened, Operation, Order, Outcome, Place, Remote, RemoteError, Shape};
use super::{Opcode, Status, WordOrder, Written};
use crate::clio::link::Link;
use crate::clio::{Attached, Wanted, attach};
use crate::runtime::runtime;
use p4rack_fabric::clio::lib::{self, Change, Credentials, Refused};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status as Said;
use tokio::runtime::Runtime;

struct Clio {
    link: Link,
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
        self.link.submit(tag, operation).map_err(|refused| match refused {
            Refused::Full => Status::Full,
            Refused::BadLength => Status::BadLength,
            Refused::BadAddress | Refused::NoSuchEnd => Status::OutOfBounds,
            Refused::Unaligned => Status::BadOperation,
        })
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.link.poll(until, &mut |tag, outcome| ended(tag, outcome_of(outcome)))?;
        Ok(())
    }
}

/// Guard of a client: the board ends its process when this is dropped.
struct ClioLease {
    _attached: Attached,
    _runtime: Runtime,
}

impl Lease for ClioLease {}

/// Becomes a client of a board.
pub(super) fn open(place: Place, shape: Shape) -> Result<Opened, RemoteError> {
    let runtime = runtime()?;
    let reserve_bytes = if place.shared { 0 } else { shape.region_bytes };
    let attached = runtime.block_on(attach(place.memory("a board")?, Wanted::bytes(reserve_bytes)))?;
    let (_, region_bytes) = attached.range;
    if region_bytes < shape.region_bytes {
        let needed = shape.region_bytes;
        let why = format!("the board offers {region_bytes} bytes, and {needed} are needed");
        return Err(RemoteError::Broken(why));
    }
    opened(&place, attached, runtime)
}

/// Becomes a client of a process whose rights were handed on, with this range.
pub(super) fn open_granted(
    place: &Place,
    credentials: Credentials,
    range: (u64, u64),
) -> Result<Opened, RemoteError> {
    let runtime = runtime()?;
    let attached = runtime.block_on(attach(place.memory("a board")?, Wanted::default()))?;
    let attached = attached.granted(credentials, range).map_err(RemoteError::Broken)?;
    opened(place, attached, runtime)
}

fn opened(place: &Place, attached: Attached, runtime: Runtime) -> Result<Opened, RemoteError> {
    let (start, region_bytes) = attached.range;
    let link = Link::open(place.memory("a board")?, &attached, None, place.patience)?;
    let config = link.config();
    let abilities = Abilities {
        region_bytes,
        read_bytes_max: config.request_bytes_max,
        write_bytes_max: config.request_bytes_max,
        whole_bytes: attached.mtu_bytes,
        edge_bytes: attached.page_size.bytes(),
        pieces_max: 0,
        under_way_max: config.requests_max.into(),
        atomics: &[Opcode::Cas, Opcode::FetchAdd, Opcode::Swap],
        words: WordOrder::LittleEndian,
        writes: Written::There,
        order: Order::Dependent,
    };
    let clio = Clio { link, abilities, start };
    let lease = ClioLease { _attached: attached, _runtime: runtime };
    Ok((Box::new(clio), Held(Some(Box::new(lease)))))
}
