//! A range of a Clio board's memory as a way, or one range on each of several boards, over UDP sockets of the thread's own.

use super::cut::Cut;
use super::{Abilities, Attachment, Held, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape};
use super::{Opcode, Status, WordOrder, Written};
use crate::clio::{Session, Wanted};
use p4rack_fabric::clio::lib::{self, Change, Credentials, Refused};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status as Said;

/// The ranges of a session's processes, one after the other, from offset 0.
pub struct Clio {
    session: Session,
    abilities: Abilities,
    parts: Vec<Part>,
}

/// A range of a board.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Offset of its end.
    end: u64,
    /// Address of its first byte.
    address: u64,
    bytes: u64,
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
            Operation::Read { at, bytes } => {
                lib::Operation::Read { address: self.address(at, bytes.into())?, bytes }
            }
            Operation::Write { at, bytes } => {
                lib::Operation::Write { address: self.address(at, bytes.len() as u64)?, bytes }
            }
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands: [first, second] } => {
                let change = match opcode {
                    Opcode::Cas => Change::CompareSwap(first, second),
                    Opcode::FetchAdd => Change::FetchAdd(first),
                    Opcode::Swap => Change::Swap(first),
                    _ => return Err(Status::BadOperation),
                };
                lib::Operation::Modify { address: self.address(at, 8)?, change }
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
    /// Over a session, for example of an extent that is lent. Of several boards, an operation that crosses the edge between two ranges is
    /// refused: [`over`](Self::over) cuts it.
    pub fn new(session: Session) -> Clio {
        let (mut parts, mut end) = (Vec::new(), 0);
        let count = session.ranges().count();
        for (nth, (address, bytes)) in session.ranges().enumerate() {
            // A word crosses no edge.
            let bytes = if nth + 1 < count { bytes & !7 } else { bytes };
            end += bytes;
            parts.push(Part { end, address, bytes });
        }
        let config = session.config();
        // Edges of pages, and of ranges that end within one.
        let inner = parts.iter().take(count.saturating_sub(1));
        let edges = inner.fold(session.page_bytes_min(), |edges, part| edges | part.end);
        // A piece crosses one edge at most.
        let shortest = parts.iter().map(|part| part.bytes).min().filter(|_| count > 1).unwrap_or(u64::MAX);
        let longest = u32::try_from(shortest).unwrap_or(u32::MAX).min(config.request_bytes_max);
        let abilities = Abilities {
            region_bytes: end,
            read_bytes_max: longest,
            write_bytes_max: longest,
            whole_bytes: session.packet_bytes(),
            edge_bytes: 1 << edges.trailing_zeros(),
            pieces_max: 0,
            under_way_max: config.requests_max.into(),
            atomics: &[Opcode::Cas, Opcode::FetchAdd, Opcode::Swap],
            words: WordOrder::LittleEndian,
            writes: Written::There,
            order: Order::Dependent,
        };
        Clio { session, abilities, parts }
    }

    /// Over a session, as one region however many boards it has.
    pub fn over(session: Session) -> Box<dyn Remote> {
        let clio = Clio::new(session);
        match clio.parts.as_slice() {
            [inner @ .., _] if !inner.is_empty() => {
                let edges = inner.iter().map(|part| part.end).collect();
                Box::new(Cut::new(clio, edges))
            }
            _ => Box::new(clio),
        }
    }

    /// The address of bytes that are all in one range.
    fn address(&self, at: u64, bytes: u64) -> Result<u64, Status> {
        let nth = self.parts.partition_point(|part| part.end <= at);
        let part = self.parts.get(nth).filter(|part| at + bytes <= part.end).ok_or(Status::OutOfBounds)?;
        Ok(part.address + (at - (part.end - part.bytes)))
    }
}

/// Becomes a client of a board, or of several, whose processes end when the way is dropped.
pub(super) fn open(attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let first = attachment.memory("a board")?;
    let servers: Vec<_> = std::iter::once(first).chain(&attachment.more_boards).cloned().collect();
    let wanted = Wanted::bytes(if attachment.shared { 0 } else { shape.region_bytes });
    let clio = Clio::over(Session::open_over(&servers, wanted, None, attachment.patience)?);
    let (offered, needed) = (clio.abilities().region_bytes, shape.region_bytes);
    if offered < needed {
        let what = if servers.len() > 1 { "the boards offer" } else { "the board offers" };
        let why = format!("{what} {offered} bytes, and {needed} are needed");
        return Err(RemoteError::Broken(why));
    }
    Ok((clio, Held(None)))
}

/// Becomes a client of a process whose rights were handed on, with this range.
pub(super) fn open_granted(
    attachment: &Attachment,
    credentials: Credentials,
    range: (u64, u64),
) -> Result<Opened, RemoteError> {
    let session =
        Session::open_granted(attachment.memory("a board")?, credentials, range, attachment.patience)?;
    Ok((Box::new(Clio::new(session)), Held(None)))
}
