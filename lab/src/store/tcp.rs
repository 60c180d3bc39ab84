//! The store over TCP: a server that holds the slots, and its client.
//!
//! ```text
//! GET: 0 | key (4) | 0 (8)                   → slot
//! PUT: 1 | key (4) | expected version (8) | value → version (8), all ones if another one is there
//! bulk: 2 | 0 (4) | 0 (8) | bytes until the stream ends, which are thrown away
//! ```

use super::slot::{self, Slot};
use crate::workload::rpc::connect;
use crate::ycsb::{Ended, Error, Store};
use p4rack_history::fill;
use p4rack_hosts::remote::WordOrder;
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// As expected version: whichever is there.
const ANY: u64 = u64::MAX;
/// Bytes of a request before the value.
const REQUEST_BYTES: usize = 16;
const GET: u8 = 0;
const PUT: u8 = 1;
const BULK: u8 = 2;
/// The request in front of bulk traffic.
pub const BULK_REQUEST: [u8; REQUEST_BYTES] = {
    let mut request = [0; REQUEST_BYTES];
    request[0] = BULK;
    request
};
/// The answer of a PUT that found another version.
const CONFLICT: u64 = u64::MAX;
/// Maximum connections; further ones are closed immediately.
const CONNECTIONS_MAX: usize = 256;
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Pause before requests are given again to a socket that was full.
const AGAIN: Nanos = Nanos::from_millis(1);

/// Serves until a signal ends the process. Prints `ready` when clients may connect.
pub fn serve(bind: SocketAddr, records: u32, value_bytes: usize) -> io::Result<()> {
    let listener = TcpListener::bind(bind)?;
    let empty = |key| Slot { key: u64::from(key), version: 0, value: vec![0; value_bytes] };
    let slots: Arc<Vec<Mutex<Slot>>> = Arc::new((0..records).map(|key| Mutex::new(empty(key))).collect());
    let open = Arc::new(AtomicUsize::new(0));
    let mut out = io::stdout();
    writeln!(out, "ready {bind}")?;
    out.flush()?;
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, or the peer has left: neither ends the service.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (count, slots) = (Arc::clone(&open), Arc::clone(&slots));
        std::thread::spawn(move || {
            // The client is gone or speaks another protocol; either way the connection is closed.
            let _ = answer(stream, &slots, value_bytes);
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn answer(mut stream: TcpStream, slots: &[Mutex<Slot>], value_bytes: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; REQUEST_BYTES];
    loop {
        stream.read_exact(&mut request)?;
        let key = u32::from_be_bytes([request[4], request[5], request[6], request[7]]);
        let mut expected = [0; 8];
        expected.copy_from_slice(&request[8..]);
        let expected = u64::from_be_bytes(expected);
        if request[0] == BULK {
            return io::copy(&mut stream, &mut io::sink()).map(drop);
        }
        let slot = slots.get(key as usize).ok_or(ErrorKind::InvalidData)?;
        let lock = || slot.lock().unwrap_or_else(PoisonError::into_inner);
        match request[0] {
            GET => {
                let bytes = lock().encode(WordOrder::BigEndian);
                stream.write_all(&bytes)?;
            }
            PUT => {
                let mut value = vec![0; value_bytes];
                stream.read_exact(&mut value)?;
                let answer = {
                    let mut slot = lock();
                    if expected == ANY || expected == slot.version {
                        slot.version += 1;
                        slot.value = value;
                        slot.version
                    } else {
                        CONFLICT
                    }
                };
                stream.write_all(&answer.to_be_bytes())?;
            }
            _ => return Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    token: usize,
    key: u32,
    writes: bool,
    until: Nanos,
}

/// A client with one connection, whose answers come in the order of its requests.
#[derive(Debug)]
pub struct TcpStore {
    to: SocketAddr,
    stream: TcpStream,
    poller: Poller,
    value_bytes: usize,
    asked: VecDeque<Asked>,
    /// Requests that the socket has not taken.
    out: Vec<u8>,
    /// The beginning of an answer.
    input: Vec<u8>,
    /// Writes so far, which values are made of.
    writes: u64,
}

fn open(to: SocketAddr) -> io::Result<(TcpStream, Poller)> {
    let stream = connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut poller = Poller::new();
    poller.add(&stream)?;
    Ok((stream, poller))
}

impl TcpStore {
    /// Connects, and retries while the server may be starting. `seed` is the seed of its values.
    pub fn connect(to: SocketAddr, value_bytes: usize, seed: u64) -> io::Result<TcpStore> {
        let (stream, poller) = open(to)?;
        let (asked, out, input) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(TcpStore { to, stream, poller, value_bytes, asked, out, input, writes: seed })
    }

    fn ask(&mut self, kind: u8, asked: Asked, expected: u64) -> Result<Option<Ended>, Error> {
        self.out.extend_from_slice(&[kind, 0, 0, 0]);
        self.out.extend_from_slice(&asked.key.to_be_bytes());
        self.out.extend_from_slice(&expected.to_be_bytes());
        if asked.writes {
            self.writes = self.writes.wrapping_add(1);
            let start = self.out.len();
            self.out.resize(start + self.value_bytes, 0);
            fill(asked.key.into(), self.writes, &mut self.out[start..]);
        }
        self.asked.push_back(asked);
        Ok(None)
    }

    /// Gives requests to the socket, as far as it takes them.
    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.drain(..sent);
        Ok(())
    }

    /// Takes what the socket has, and hands over complete answers. Returns whether there were any.
    fn receive(&mut self, ended: &mut dyn FnMut(usize, Ended)) -> io::Result<bool> {
        let before = self.asked.len();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.input.extend_from_slice(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut taken = 0;
        while let Some(Asked { token, key, writes, .. }) = self.asked.front().copied() {
            let bytes = if writes { 8 } else { slot::HEADER_BYTES + self.value_bytes };
            let Some(answer) = self.input.get(taken..taken + bytes) else { break };
            let how = match (writes, answer.first_chunk()) {
                (true, Some(version)) => match u64::from_be_bytes(*version) {
                    CONFLICT => Ended::Changed,
                    version => Ended::Wrote(version),
                },
                _ => match Slot::decode(answer, WordOrder::BigEndian) {
                    Some(slot) if slot.key == u64::from(key) => Ended::Found(slot.version),
                    _ => Ended::Wrong,
                },
            };
            ended(token, how);
            taken += bytes;
            self.asked.pop_front();
        }
        self.input.drain(..taken);
        Ok(self.asked.len() < before)
    }

    /// The oldest answer did not come in time. It may still come, so the connection is given up with all that is under way.
    fn give_up(&mut self, ended: &mut dyn FnMut(usize, Ended)) -> io::Result<()> {
        (self.stream, self.poller) = open(self.to)?;
        self.out.clear();
        self.input.clear();
        self.asked.drain(..).for_each(|asked| ended(asked.token, Ended::Lost));
        Ok(())
    }
}

impl Store for TcpStore {
    fn get(&mut self, token: usize, key: u32, until: Nanos) -> Result<Option<Ended>, Error> {
        self.ask(GET, Asked { token, key, writes: false, until }, 0)
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        until: Nanos,
    ) -> Result<Option<Ended>, Error> {
        self.ask(PUT, Asked { token, key, writes: true, until }, expected.unwrap_or(ANY))
    }

    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        self.send().map_err(Error::gone)?;
        if self.receive(ended).map_err(Error::gone)? {
            return Ok(true);
        }
        let late = self.asked.front().map(|asked| asked.until);
        if late.is_some_and(|until| clock::now() >= until) {
            self.give_up(ended).map_err(Error::gone)?;
            return Ok(true);
        }
        let again = (!self.out.is_empty()).then(|| clock::now() + AGAIN);
        let wakes = [late, again].into_iter().flatten().fold(until, Nanos::min);
        self.poller.wait(Some(wakes)).map_err(Error::gone)?;
        self.send().map_err(Error::gone)?;
        self.receive(ended).map_err(Error::gone)
    }
}
