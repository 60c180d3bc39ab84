//! A server of bytes over TCP, and its client: remote memory over the kernel's transport.
//!
//! ```text
//! hello:   "p4rackB2" | bytes of the region (8)                          server to client, first message
//! hello:   "p4rackB2"                                                    client to server, first message
//! request: what (1) | opcode (1) | 0 (2) | bytes (4) | at (8) | data     data: a write's bytes, two operands (8 each), or pieces:
//!                                                                        at (8), bytes (4) of each, `at` of them, and a scatter's bytes
//! answer:  status (1) | 0 (3) | bytes (4) | data                         data: a read's bytes, or the word before
//! ```
//!
//! Numbers are big-endian. Answers are in the order of requests; a status of 0 is success. Each request takes effect in one step.

mod served;

pub use served::Served;

use super::{Abilities, Attachment, Held, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape};
use super::{Opcode, Piece, Status, WordOrder, Written};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How a server begins, and a client.
pub const MAGIC: [u8; 8] = *b"p4rackB2";
/// Bytes with which a server begins.
pub const HELLO_BYTES: usize = 16;
const REQUEST_BYTES: usize = 16;
const ANSWER_BYTES: usize = 8;
const READ: u8 = 0;
const WRITE: u8 = 1;
const MODIFY: u8 = 2;
const GATHER: u8 = 3;
const SCATTER: u8 = 4;
/// Bytes of a piece in a request.
const PIECE_BYTES: usize = 12;
/// Maximum pieces of an operation.
const PIECES_MAX: usize = 256;
/// Maximum bytes of an operation.
const BYTES_MAX: u32 = 1 << 24;
/// Maximum operations of a client in flight.
const UNDER_WAY_MAX: usize = 4_096;
/// Buffers of a connection.
const BUFFER_BYTES: usize = 64 << 10;
/// Time limit for the server to start and to send its hello.
const START: Duration = Duration::from_secs(20);
/// Pause before requests are written again to a full socket.
const AGAIN: Nanos = Nanos::from_millis(1);

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut all = [0; N];
    all.copy_from_slice(&bytes[at..at + N]);
    all
}

/// A piece's encoding in requests.
fn encoded(piece: Piece) -> [u8; PIECE_BYTES] {
    let mut all = [0; PIECE_BYTES];
    all[..8].copy_from_slice(&piece.at.to_be_bytes());
    all[8..].copy_from_slice(&piece.bytes.to_be_bytes());
    all
}

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic operation.
    Modify,
    /// Several reads.
    Gather,
    /// Several writes.
    Scatter,
}

/// A request in a captured stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// Address of the first byte, of one piece.
    pub address: Option<u64>,
    /// Bytes, of one piece.
    pub bytes: Option<u32>,
    /// Bytes of the request with its data.
    pub length: usize,
}

/// The request at the start of a client's stream, behind the hello, whose data may be incomplete. `None`: its head is incomplete, or malformed.
pub fn request(stream: &[u8]) -> Option<Request> {
    let head: &[u8; REQUEST_BYTES] = stream.first_chunk()?;
    let (bytes, at) = (u32::from_be_bytes(array(head, 4)), u64::from_be_bytes(array(head, 8)));
    let (kind, carried) = match head[0] {
        READ => (Kind::Read, 0),
        WRITE => (Kind::Write, bytes),
        MODIFY => (Kind::Modify, 16),
        GATHER => (Kind::Gather, bytes),
        SCATTER => (Kind::Scatter, bytes),
        _ => return None,
    };
    let is_one = !matches!(kind, Kind::Gather | Kind::Scatter);
    let (address, bytes) = (is_one.then_some(at), is_one.then_some(bytes));
    Some(Request { kind, address, bytes, length: REQUEST_BYTES + carried as usize })
}

/// The answer at the start of a server's stream, behind the hello: its status, 0 for success, and its length.
pub fn answer(stream: &[u8]) -> Option<(u8, usize)> {
    let head: &[u8; ANSWER_BYTES] = stream.first_chunk()?;
    Some((head[0], ANSWER_BYTES + u32::from_be_bytes(array(head, 4)) as usize))
}

/// A client of a server of bytes.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    poller: Poller,
    abilities: Abilities,
    /// Tags and kinds of requests without an answer.
    asked: VecDeque<(u64, u8)>,
    /// Requests; the socket has those before `sent`.
    out: Vec<u8>,
    sent: usize,
    /// Answers; those before `taken` were delivered.
    input: Vec<u8>,
    taken: usize,
}

impl Tcp {
    /// Connects, and retries while the server may be starting. Errors: another program answers, or its region is smaller than
    /// `region_bytes`.
    pub fn connect(to: &str, region_bytes: u64) -> Result<Tcp, RemoteError> {
        let start = Instant::now();
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{to}: {error}"));
        let mut stream = loop {
            match TcpStream::connect(to) {
                Ok(stream) => break stream,
                Err(_) if start.elapsed() < START => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(failed(error).into()),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(START))?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => RemoteError::Broken(format!("{to}: the server of bytes has ended")),
            _ => failed(error).into(),
        })?;
        if hello[..8] != MAGIC {
            return Err(RemoteError::Broken(format!("{to} is no server of bytes")));
        }
        let has = u64::from_be_bytes(array(&hello, 8));
        if has < region_bytes {
            let why = format!("{to} offers {has} bytes, and {region_bytes} are needed");
            return Err(RemoteError::Broken(why));
        }
        // An empty buffer takes this much.
        stream.write_all(&MAGIC).map_err(failed)?;
        stream.set_nonblocking(true)?;
        let mut poller = Poller::new();
        poller.add(&stream)?;
        let abilities = Abilities {
            region_bytes: has,
            read_bytes_max: BYTES_MAX,
            write_bytes_max: BYTES_MAX,
            whole_bytes: BYTES_MAX,
            edge_bytes: u64::MAX,
            pieces_max: PIECES_MAX,
            under_way_max: UNDER_WAY_MAX,
            atomics: &Opcode::ALL,
            words: WordOrder::BigEndian,
            writes: Written::There,
            order: Order::Program,
        };
        let (out, input) = (Vec::with_capacity(BUFFER_BYTES), Vec::with_capacity(BUFFER_BYTES));
        Ok(Tcp { stream, poller, abilities, asked: VecDeque::new(), out, sent: 0, input, taken: 0 })
    }

    /// Writes requests to the socket until it is full.
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads from the socket and delivers complete answers. Returns whether there were any.
    fn receive(&mut self, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<bool, RemoteError> {
        let (mut piece, mut any) = ([0; BUFFER_BYTES], false);
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(RemoteError::Broken("the server of bytes has ended".into())),
                Ok(bytes) => self.input.extend_from_slice(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            any |= self.hand_over(ended)?;
        }
        Ok(any)
    }

    fn hand_over(&mut self, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<bool, RemoteError> {
        let before = self.asked.len();
        while let Some(head) = self.input.get(self.taken..self.taken + ANSWER_BYTES) {
            let (status, bytes) = (head[0], u32::from_be_bytes(array(head, 4)) as usize);
            let start = self.taken + ANSWER_BYTES;
            let Some(data) = self.input.get(start..start + bytes) else { break };
            let Some((tag, what)) = self.asked.pop_front() else {
                return Err(RemoteError::Broken("the server of bytes answers without a request".into()));
            };
            let outcome = match (status, what) {
                (0, READ | GATHER) => Outcome::Read(data),
                (0, WRITE | SCATTER) => Outcome::Written,
                (0, _) if bytes == 8 => Outcome::Word(u64::from_be_bytes(array(data, 0))),
                (status, _) => Outcome::Failed(Status::of(status).unwrap_or(Status::Unknown)),
            };
            ended(tag, outcome);
            self.taken = start + bytes;
        }
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        } else if self.taken >= BUFFER_BYTES {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        Ok(self.asked.len() < before)
    }
}

impl Remote for Tcp {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let carried = match operation {
            Operation::Gather { pieces } => pieces.iter().map(|piece| u64::from(piece.bytes)).sum(),
            Operation::Scatter { pieces, bytes } => (pieces.len() * PIECE_BYTES + bytes.len()) as u64,
            _ => 0,
        };
        if carried > BYTES_MAX.into() {
            return Err(Status::BadLength);
        }
        if self.asked.len() >= UNDER_WAY_MAX {
            return Err(Status::Full);
        }
        let mut head = |what: u8, opcode: u8, bytes: u32, at: u64| {
            self.out.extend_from_slice(&[what, opcode, 0, 0]);
            self.out.extend_from_slice(&bytes.to_be_bytes());
            self.out.extend_from_slice(&at.to_be_bytes());
            self.asked.push_back((tag, what));
        };
        match operation {
            Operation::Read { at, bytes } => head(READ, 0, bytes, at),
            Operation::Write { at, bytes } => {
                head(WRITE, 0, bytes.len() as u32, at);
                self.out.extend_from_slice(bytes);
            }
            Operation::Gather { pieces } => {
                head(GATHER, 0, (pieces.len() * PIECE_BYTES) as u32, pieces.len() as u64);
                pieces.iter().for_each(|piece| self.out.extend_from_slice(&encoded(*piece)));
            }
            Operation::Scatter { pieces, bytes } => {
                let carried = pieces.len() * PIECE_BYTES + bytes.len();
                head(SCATTER, 0, carried as u32, pieces.len() as u64);
                pieces.iter().for_each(|piece| self.out.extend_from_slice(&encoded(*piece)));
                self.out.extend_from_slice(bytes);
            }
            Operation::Modify { at, opcode, operands } => {
                head(MODIFY, opcode as u8, 8, at);
                operands.iter().for_each(|operand| self.out.extend_from_slice(&operand.to_be_bytes()));
            }
        }
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.send()?;
        if self.receive(ended)? {
            return Ok(());
        }
        let again = (!self.out.is_empty()).then(|| clock::now() + AGAIN);
        self.poller.wait(Some(until.min(again.unwrap_or(Nanos::MAX))))?;
        self.send()?;
        self.receive(ended).map(drop)
    }
}

/// Connects to a server of bytes.
pub(super) fn open(attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let server = attachment.memory("a server of bytes")?;
    Ok((Box::new(Tcp::connect(&server.addr, shape.region_bytes)?), Held(None)))
}

#[cfg(test)]
mod tests;
