//! The server: accepts connections within limits, and carries out requests.
//!
//! ```text
//!  accept ─ share of connections, per address ─ hello ─▶ request ─ share of long requests, per address ─▶ answer
//!                                                 └───────┴── limit for silence ──┴───────────────────────┘
//! ```
//!
//! Between two requests a client may be silent. It holds one connection of its address's share then, and no buffer for data.

use super::{ANSWER_BYTES, BUFFER_BYTES, BYTES_MAX, GATHER, MAGIC, MODIFY, PIECE_BYTES, PIECES_MAX};
use super::{Opcode, READ, REQUEST_BYTES, SCATTER, Status, WRITE, array};
use p4rack_netdev::Poller;
use p4rack_p4rt::transport::{Share, Shares, Tenant, handles_max};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum connections, if the process may have as many sockets; further ones are closed immediately and counted.
const CONNECTIONS_MAX: usize = 256;
/// Addresses for which connections and room for long requests are kept.
const TENANTS: u64 = 8;
/// Bytes of all long requests and answers together. Each address has room for one of the longest.
const LONG_BYTES_MAX: u64 = 2 * TENANTS * BYTES_MAX as u64;
/// A client that stops in the middle of a hello, a request or an answer loses its connection after this time.
const SILENT: Duration = Duration::from_secs(60);
/// A client has to transfer long data within that time plus the time for the data at this many bits per second.
const LEAST_BPS: u64 = 8 << 20;
/// Pause before a long request looks for room again.
const AGAIN: Duration = Duration::from_millis(10);

/// A server's region.
#[derive(Debug)]
pub struct Served<B> {
    bytes: Mutex<B>,
    read_only: bool,
    silent: Duration,
    connections: Arc<Shares<Tenant>>,
    long: Arc<Shares<Tenant>>,
    ended: AtomicU64,
}

/// A request's fixed part.
struct Head {
    what: u8,
    opcode: u8,
    /// Bytes that it asks for, or that follow.
    bytes: u32,
    at: u64,
}

impl Head {
    fn of(request: &[u8; REQUEST_BYTES]) -> Head {
        let (bytes, at) = (u32::from_be_bytes(array(request, 4)), u64::from_be_bytes(array(request, 8)));
        Head { what: request[0], opcode: request[1], bytes, at }
    }

    /// Bytes that follow. Errors: more than a request has.
    fn carried(&self) -> io::Result<usize> {
        let (carried, max) = match self.what {
            READ => (0, 0),
            WRITE | SCATTER => (self.bytes as usize, BYTES_MAX as usize),
            GATHER => (self.bytes as usize, PIECES_MAX * PIECE_BYTES),
            MODIFY => (16, 16),
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        if carried > max { Err(ErrorKind::InvalidData.into()) } else { Ok(carried) }
    }

    /// Bytes of the answer's data, if the request is valid.
    fn answered(&self, carried: &[u8]) -> u64 {
        let of_piece = |piece: &[u8]| u64::from(u32::from_be_bytes(array(piece, 8)));
        match self.what {
            READ => self.bytes.into(),
            GATHER => carried.chunks_exact(PIECE_BYTES).map(of_piece).sum(),
            _ => 0,
        }
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + Send + 'static> Served<B> {
    /// A region.
    pub fn new(bytes: B, read_only: bool) -> Arc<Served<B>> {
        Served::patient(bytes, read_only, SILENT)
    }

    /// A region whose clients may be silent for this time in the middle of something.
    pub fn patient(bytes: B, read_only: bool, silent: Duration) -> Arc<Served<B>> {
        let connections = CONNECTIONS_MAX.min(handles_max() / 2) as u64;
        Arc::new(Served {
            bytes: Mutex::new(bytes),
            read_only,
            silent,
            connections: Shares::new("connections", connections, TENANTS),
            long: Shares::new("bytes of long requests", LONG_BYTES_MAX, TENANTS),
            ended: AtomicU64::new(0),
        })
    }

    /// Connections closed because their addresses had too many.
    pub fn refused(&self) -> u64 {
        self.connections.refused()
    }

    /// Connections closed because their clients were silent in the middle of something, or waited too long for room.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
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
                Ok((stream, peer)) => self.admit(stream, peer),
                // The peer has left.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // Out of descriptors: that does not end the service.
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let tenant = Tenant::Address(peer.ip());
        let share = match self.connections.take(&tenant, 1) {
            Ok(share) => share,
            Err(full) => {
                tracing::warn!(%peer, %full, "a connection was closed");
                return;
            }
        };
        let served = Arc::clone(self);
        let started = std::thread::Builder::new().spawn(move || {
            // The client is gone, silent or speaks another protocol; either way the connection is closed.
            let done = served.answer_all(&stream, &tenant);
            if done.is_err_and(|error| is_late(&error)) {
                served.ended.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%peer, "a connection was closed: its client is silent or slow, or its address has too many long requests");
            }
            drop((stream, share));
        });
        // Out of threads: that does not end the service either.
        if let Err(error) = started {
            tracing::warn!(%peer, %error, "a connection was closed");
        }
    }

    fn answer_all(&self, stream: &TcpStream, tenant: &Tenant) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.silent))?;
        stream.set_write_timeout(Some(self.silent))?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut output = BufWriter::with_capacity(BUFFER_BYTES, stream);
        let done = self.answer_each(tenant, stream, &mut input, &mut output);
        if done.is_err() {
            // Otherwise the buffer writes again when it is dropped, and waits as long again.
            let _ = stream.shutdown(Shutdown::Both);
        }
        done
    }

    fn answer_each(
        &self,
        tenant: &Tenant,
        stream: &TcpStream,
        input: &mut BufReader<&TcpStream>,
        output: &mut BufWriter<&TcpStream>,
    ) -> io::Result<()> {
        let len = self.lock().as_ref().len() as u64;
        output.write_all(&MAGIC)?;
        output.write_all(&len.to_be_bytes())?;
        output.flush()?;
        let mut hello = [0; MAGIC.len()];
        input.read_exact(&mut hello)?;
        if hello != MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let (mut request, mut data) = ([0; REQUEST_BYTES], Vec::new());
        loop {
            if input.buffer().len() < REQUEST_BYTES {
                output.flush()?;
            }
            if !has_more(input)? {
                return Ok(());
            }
            input.read_exact(&mut request)?;
            let head = Head::of(&request);
            let carried = head.carried()?;
            // Only one of the two is long. Earlier answers do not wait for its room.
            if is_long(carried as u64) {
                output.flush()?;
            }
            let _asked = self.room(tenant, carried as u64)?;
            fill(&mut data, input, carried, self.until(carried))?;
            let answered = head.answered(&data);
            if is_long(answered) {
                output.flush()?;
            }
            let _told = self.room(tenant, answered)?;
            let status = self.carry_out(&head, &mut data);
            let mut answer = [0; ANSWER_BYTES];
            answer[0] = status.map_or(0, |status| status as u8);
            answer[4..].copy_from_slice(&(data.len() as u32).to_be_bytes());
            output.write_all(&answer)?;
            if is_long(data.len() as u64) {
                output.flush()?;
                give(stream, &data, self.until(data.len()))?;
            } else {
                output.write_all(&data)?;
            }
            give_back(&mut data);
        }
    }

    /// When a client has to have sent or taken data.
    fn until(&self, bytes: usize) -> Instant {
        Instant::now() + self.silent + Duration::from_micros(bytes as u64 * 8_000_000 / LEAST_BPS)
    }

    /// Room for the data of a long request or answer. Waits while its address has none. Errors: that takes too long.
    fn room(&self, tenant: &Tenant, bytes: u64) -> io::Result<Option<Share<Tenant>>> {
        if !is_long(bytes) {
            return Ok(None);
        }
        let until = Instant::now() + self.silent;
        loop {
            match self.long.take(tenant, bytes) {
                Ok(share) => return Ok(Some(share)),
                Err(_) if Instant::now() >= until => return Err(ErrorKind::TimedOut.into()),
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, B> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a request. Its data buffer becomes that of the answer.
    fn carry_out(&self, head: &Head, data: &mut Vec<u8>) -> Option<Status> {
        let carried = std::mem::take(data);
        if matches!(head.what, GATHER | SCATTER) {
            return self.carry_out_pieces(head.what == SCATTER, &carried, head.at, data);
        }
        let length = if head.what == MODIFY { 8 } else { head.bytes };
        if length == 0 || length > BYTES_MAX {
            return Some(Status::BadLength);
        }
        if self.read_only && head.what != READ {
            return Some(Status::NotPermitted);
        }
        let mut region = self.lock();
        let place = usize::try_from(head.at).ok().and_then(|at| Some(at..at.checked_add(length as usize)?));
        let Some(there) = place.and_then(|place| region.as_mut().get_mut(place)) else {
            return Some(Status::OutOfBounds);
        };
        match head.what {
            READ => data.extend_from_slice(there),
            WRITE => there.copy_from_slice(&carried),
            _ => {
                let Some(opcode) = Opcode::of(head.opcode).filter(|_| head.at.is_multiple_of(8)) else {
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
        // Of a gather nothing follows the pieces.
        let follows = if writes { total } else { 0 };
        if total == 0 || total > BYTES_MAX as usize || follows != bytes.len() {
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

/// Whether data needs room of its own. Longer requests are refused without data.
fn is_long(bytes: u64) -> bool {
    bytes > BUFFER_BYTES as u64 && bytes <= BYTES_MAX.into()
}

/// Whether a timeout of the socket, of [`Served::room`] or of long data has expired.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Waits for a request, however long that takes. Returns false at the end of the stream.
fn has_more(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        match input.fill_buf() {
            Err(error) if is_late(&error) || error.kind() == ErrorKind::Interrupted => {}
            filled => return filled.map(|bytes| !bytes.is_empty()),
        }
    }
}

/// Reads data of this length. Memory grows with the bytes that arrive, not with the announced length. Errors: it takes
/// too long.
fn fill(data: &mut Vec<u8>, input: &mut impl Read, bytes: usize, until: Instant) -> io::Result<()> {
    data.clear();
    let mut at = 0;
    while at < bytes {
        if at == data.len() {
            data.resize(bytes.min(at + BUFFER_BYTES), 0);
        }
        match input.read(&mut data[at..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => at += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if at < bytes {
            check(until)?;
        }
    }
    Ok(())
}

/// Writes long data. Errors: it takes too long.
fn give(mut output: impl Write, mut data: &[u8], until: Instant) -> io::Result<()> {
    while !data.is_empty() {
        match output.write(data) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(more) => data = &data[more..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !data.is_empty() {
            check(until)?;
        }
    }
    Ok(())
}

/// A client that is never silent may be slow.
fn check(until: Instant) -> io::Result<()> {
    if Instant::now() > until { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
}

/// Frees a long request's buffer. Short ones keep theirs.
fn give_back(data: &mut Vec<u8>) {
    if data.capacity() > BUFFER_BYTES {
        *data = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_what_arrives_and_is_given_back() {
        let mut data = Vec::new();
        let announced = BYTES_MAX as usize;
        let until = Instant::now() + SILENT;
        assert!(fill(&mut data, &mut &[1; 100][..], announced, until).is_err());
        assert!(data.capacity() <= 2 * BUFFER_BYTES, "{}", data.capacity());
        let long = vec![2; 3 * BUFFER_BYTES];
        fill(&mut data, &mut &long[..], long.len(), until).unwrap();
        assert_eq!(data, long);
        give_back(&mut data);
        assert_eq!(data.capacity(), 0);
        fill(&mut data, &mut &long[..], 100, until).unwrap();
        give_back(&mut data);
        assert!(data.len() == 100);
    }

    /// One byte for each look.
    struct Slow;

    impl Read for Slow {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            bytes[0] = 1;
            Ok(1)
        }
    }

    impl Write for Slow {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_that_is_never_silent_may_be_too_slow() {
        let (now, mut data) = (Instant::now(), Vec::new());
        let late = |done: io::Result<()>| done.is_err_and(|error| is_late(&error));
        assert!(late(fill(&mut data, &mut Slow, 3, now)) && late(give(Slow, &[0; 3], now)));
        let until = now + SILENT;
        assert!(fill(&mut data, &mut Slow, 3, until).is_ok() && give(Slow, &[0; 3], until).is_ok());
        let served = Served::patient(Vec::new(), false, SILENT);
        let short = served.until(0);
        assert!(served.until(16 << 20) - short >= Duration::from_secs(16));
    }

    #[test]
    fn long_requests_of_one_address_leave_room_for_one_of_each_other() {
        let served = Served::patient(Vec::new(), false, Duration::ZERO);
        let [one, other] = [1, 2].map(|n| Tenant::Address([127, 0, 0, n].into()));
        let longest = || served.room(&one, BYTES_MAX.into());
        let held: Vec<_> = std::iter::from_fn(|| longest().ok()).collect();
        assert_eq!(held.len(), 9);
        assert!(served.room(&other, BYTES_MAX.into()).is_ok_and(|share| share.is_some()));
        assert!(served.room(&one, BUFFER_BYTES as u64).is_ok_and(|share| share.is_none()));
    }
}
