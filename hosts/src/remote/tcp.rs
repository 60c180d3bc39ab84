//! A server of bytes over TCP, and its client: remote memory over the kernel's transport.
//!
//! ```text
//! hello:   "p4rackB1" | bytes of the region (8)                          server to client, first message
//! request: what (1) | opcode (1) | 0 (2) | bytes (4) | at (8) | data     data: a write's bytes, two operands (8 each), or pieces:
//!                                                                        at (8), bytes (4) of each, `at` of them, and a scatter's bytes
//! answer:  status (1) | 0 (3) | bytes (4) | data                         data: a read's bytes, or the word before
//! ```
//!
//! Numbers are big-endian. Answers are in the order of requests; a status of 0 is success. Each request takes effect in one step.

use super::{Abilities, Held, Opened, Operation, Order, Outcome, Place, Remote, RemoteError, Shape};
use super::{Opcode, Piece, Status, WordOrder, Written};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a server begins.
pub const MAGIC: [u8; 8] = *b"p4rackB1";
/// Bytes with which it begins.
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
/// Maximum connections; further ones are closed immediately and counted.
const CONNECTIONS_MAX: usize = 256;
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

/// What a request asks for.
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
    /// What it asks for.
    pub kind: Kind,
    /// Address of the first byte, of one piece.
    pub address: Option<u64>,
    /// Bytes, of one piece.
    pub bytes: Option<u32>,
    /// Bytes of the request with its data.
    pub length: usize,
}

/// The request at the start of a client's stream, whose data may be incomplete. `None`: its head is incomplete, or malformed.
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

/// A server's region.
#[derive(Debug)]
pub struct Served<B> {
    bytes: Mutex<B>,
    read_only: bool,
    open: AtomicUsize,
    refused: AtomicUsize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Served<B> {
    /// A region.
    pub fn new(bytes: B, read_only: bool) -> Arc<Served<B>> {
        let (open, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Served { bytes: Mutex::new(bytes), read_only, open, refused })
    }

    /// Connections closed because there were too many.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Serves until `end` has input, with a thread for each connection. Errors: the system can't wait for connections.
    pub fn serve(self: &Arc<Self>, listener: &TcpListener, end: impl AsFd) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let mut poller = Poller::new();
        poller.add(listener)?;
        let ends = poller.add(end)?;
        loop {
            poller.wait(None)?;
            if poller.ready(ends) {
                return Ok(());
            }
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                // The peer has left.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // Out of descriptors: that does not end the service.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream) {
        if self.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            self.open.fetch_sub(1, Ordering::Relaxed);
            self.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(CONNECTIONS_MAX, "a connection was closed: there are as many as may be");
            return;
        }
        let served = Arc::clone(self);
        std::thread::spawn(move || {
            // The client is gone or speaks another protocol; either way the connection is closed.
            let _ = served.answer_all(stream);
            served.open.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn answer_all(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, stream.try_clone()?);
        let mut output = BufWriter::with_capacity(BUFFER_BYTES, stream);
        let len = self.lock().as_ref().len() as u64;
        output.write_all(&MAGIC)?;
        output.write_all(&len.to_be_bytes())?;
        let (mut request, mut data) = ([0; REQUEST_BYTES], Vec::new());
        loop {
            if input.buffer().len() < REQUEST_BYTES {
                output.flush()?;
            }
            input.read_exact(&mut request)?;
            let bytes = u32::from_be_bytes(array(&request, 4));
            let carried = match request[0] {
                READ => 0,
                WRITE | GATHER | SCATTER => bytes,
                MODIFY => 16,
                _ => return Err(ErrorKind::InvalidData.into()),
            };
            if carried > BYTES_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            data.resize(carried as usize, 0);
            input.read_exact(&mut data)?;
            let status = self.carry_out(&request, bytes, &mut data);
            let mut answer = [0; ANSWER_BYTES];
            answer[0] = status.map_or(0, |status| status as u8);
            answer[4..].copy_from_slice(&(data.len() as u32).to_be_bytes());
            output.write_all(&answer)?;
            output.write_all(&data)?;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, B> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a request. Its data buffer becomes that of the answer.
    fn carry_out(&self, request: &[u8], bytes: u32, data: &mut Vec<u8>) -> Option<Status> {
        let at = u64::from_be_bytes(array(request, 8));
        let carried = std::mem::take(data);
        if matches!(request[0], GATHER | SCATTER) {
            return self.carry_out_pieces(request[0] == SCATTER, &carried, at, data);
        }
        let length = if request[0] == MODIFY { 8 } else { bytes };
        if length == 0 || length > BYTES_MAX {
            return Some(Status::BadLength);
        }
        if self.read_only && request[0] != READ {
            return Some(Status::NotPermitted);
        }
        let mut region = self.lock();
        let place = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(length as usize)?));
        let Some(there) = place.and_then(|place| region.as_mut().get_mut(place)) else {
            return Some(Status::OutOfBounds);
        };
        match request[0] {
            READ => data.extend_from_slice(there),
            WRITE => there.copy_from_slice(&carried),
            _ => {
                let Some(opcode) = Opcode::of(request[1]).filter(|_| at.is_multiple_of(8)) else {
                    return Some(Status::BadOperation);
                };
                let operands = [0, 8].map(|at| u64::from_be_bytes(array(&carried, at)));
                let old = u64::from_be_bytes(array(there, 0));
                there.copy_from_slice(&opcode.apply(old, operands).to_be_bytes());
                data.extend_from_slice(&old.to_be_bytes());
            }
        }
        None
    }

    /// Carries out a gather or a scatter in one step, or nothing of it.
    fn carry_out_pieces(
        &self,
        writes: bool,
        carried: &[u8],
        count: u64,
        data: &mut Vec<u8>,
    ) -> Option<Status> {
        let count = usize::try_from(count).ok().filter(|count| (1..=PIECES_MAX).contains(count));
        let Some((pieces, mut bytes)) = count.and_then(|count| carried.split_at_checked(count * PIECE_BYTES))
        else {
            return Some(Status::BadLength);
        };
        if self.read_only && writes {
            return Some(Status::NotPermitted);
        }
        let pieces = || {
            pieces.chunks_exact(PIECE_BYTES).map(|piece| {
                let (at, bytes) = (u64::from_be_bytes(array(piece, 0)), u32::from_be_bytes(array(piece, 8)));
                let at = usize::try_from(at).ok()?;
                Some(at..at.checked_add(bytes as usize)?)
            })
        };
        let mut region = self.lock();
        let mut total = 0;
        for piece in pieces() {
            let Some(there) = piece.and_then(|piece| region.as_ref().get(piece)) else {
                return Some(Status::OutOfBounds);
            };
            total += there.len();
        }
        if total == 0 || total > BYTES_MAX as usize || (writes && total != bytes.len()) {
            return Some(Status::BadLength);
        }
        for piece in pieces().flatten() {
            if writes {
                let (one, rest) = bytes.split_at(piece.len());
                region.as_mut()[piece].copy_from_slice(one);
                bytes = rest;
            } else {
                data.extend_from_slice(&region.as_ref()[piece]);
            }
        }
        None
    }
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
        let mut stream = loop {
            match TcpStream::connect(to) {
                Ok(stream) => break stream,
                Err(_) if start.elapsed() < START => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(error.into()),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(START))?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello)?;
        if hello[..8] != MAGIC {
            return Err(RemoteError::Broken(format!("{to} is no server of bytes")));
        }
        let has = u64::from_be_bytes(array(&hello, 8));
        if has < region_bytes {
            let why = format!("{to} offers {has} bytes, and {region_bytes} are needed");
            return Err(RemoteError::Broken(why));
        }
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
pub(super) fn open(place: Place, shape: Shape) -> Result<Opened, RemoteError> {
    let server = place.memory("a server of bytes")?;
    Ok((Box::new(Tcp::connect(&server.addr, shape.region_bytes)?), Held(None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_netdev::wait::Waker;

    fn with_server(read_only: bool, test: impl FnOnce(&str)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, served) =
            (listener.local_addr().unwrap().to_string(), Served::new(vec![0u8; 1 << 20], read_only));
        let end = Waker::new().unwrap();
        std::thread::scope(|scope| {
            let ends = end.try_clone().unwrap();
            scope.spawn(move || served.serve(&listener, &ends).unwrap());
            let _wakes = Wakes(&end);
            test(&address);
        });
    }

    /// Ends the server, however the test ends.
    struct Wakes<'a>(&'a Waker);

    impl Drop for Wakes<'_> {
        fn drop(&mut self) {
            self.0.wake();
        }
    }

    fn finish(tcp: &mut Tcp, count: usize) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        while all.len() < count {
            let until = clock::now() + Nanos::from_secs(20);
            tcp.poll(until, &mut |tag, outcome| all.push((tag, format!("{outcome:?}")))).unwrap();
            assert!(clock::now() < until, "no answer");
        }
        all
    }

    #[test]
    fn a_batch_takes_effect_in_order_and_is_answered_in_order() {
        with_server(false, |address| {
            let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
            let write = |at, bytes| Operation::Write { at, bytes };
            tcp.submit(1, write(8, &7u64.to_be_bytes())).unwrap();
            tcp.submit(2, Operation::cas(8, 7, 9)).unwrap();
            tcp.submit(3, Operation::cas(8, 7, 10)).unwrap();
            tcp.submit(4, Operation::Read { at: 14, bytes: 2 }).unwrap();
            assert_eq!(tcp.submit(5, Operation::cas(4, 0, 1)), Err(Status::BadOperation));
            assert_eq!(tcp.submit(5, Operation::Read { at: 1 << 20, bytes: 1 }), Err(Status::OutOfBounds));
            let expected = ["Written", "Word(7)", "Word(9)", "Read([0, 9])"];
            let ended = finish(&mut tcp, 4);
            assert_eq!(ended, (1..5).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
        });
    }

    /// More than all buffers of a connection hold, both ways: the two ends must not deadlock.
    #[test]
    fn many_long_operations_do_not_block_each_other() {
        with_server(false, |address| {
            let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
            let long = vec![3; 512 << 10];
            for nth in 0..64 {
                tcp.submit(2 * nth, Operation::Write { at: nth, bytes: &long }).unwrap();
                tcp.submit(2 * nth + 1, Operation::Read { at: nth, bytes: long.len() as u32 }).unwrap();
            }
            let (mut ended, mut bytes) = (0, 0);
            let until = clock::now() + Nanos::from_secs(60);
            while ended < 128 {
                tcp.poll(until, &mut |tag, outcome| {
                    assert_eq!(tag, ended);
                    ended += 1;
                    if let Outcome::Read(read) = outcome {
                        assert!(read.iter().all(|byte| *byte == 3));
                        bytes += read.len();
                    }
                })
                .unwrap();
                assert!(clock::now() < until, "no answer");
            }
            assert_eq!(bytes, 64 * long.len());
        });
    }

    #[test]
    fn what_a_region_does_not_permit_is_refused() {
        with_server(true, |address| {
            assert!(Tcp::connect(address, 2 << 20).unwrap_err().to_string().contains("are needed"));
            let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
            tcp.submit(1, Operation::Write { at: 0, bytes: &[1] }).unwrap();
            tcp.submit(2, Operation::Read { at: 0, bytes: 1 }).unwrap();
            let ended = finish(&mut tcp, 2);
            assert_eq!(ended[0].1, "Failed(NotPermitted)");
            assert_eq!(ended[1].1, "Read([0])");
        });
    }
}
