//! A client of a server over TCP: one connection, many requests under way, whose answers come in the order of the requests. Each
//! server has its [`Protocol`].

use crate::workload::rpc::connect;
use crate::ycsb::{Ended, Error, Store};
use p4rack_history::{fill, version_of};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Pause before requests are given again to a socket that was full.
const AGAIN: Nanos = Nanos::from_millis(1);

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A record and its version.
    Get,
    /// Another value, in place of this version or of any.
    Put(Option<u64>),
    /// The version that a value has which has just been put, of servers that need a request for that.
    Count,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    pub(super) token: usize,
    pub(super) key: u32,
    pub(super) what: Purpose,
    /// Of the client's operation.
    pub(super) number: u64,
    until: Nanos,
}

/// Next step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The operation has ended.
    Ended(Ended),
    /// It needs another request.
    Ask(Purpose),
}

/// How a server is spoken to.
pub(super) trait Protocol {
    /// Appends a request.
    fn ask(&mut self, asked: PendingRequest, out: &mut Vec<u8>);

    /// The answer to a request at the beginning of `input`, with its bytes; `None` if it is not complete. Errors: it is none of this
    /// protocol, or the server can't go on.
    fn answer(&mut self, asked: PendingRequest, input: &[u8]) -> io::Result<Option<(Next, usize)>>;

    /// Bytes of the longest answer.
    fn answer_bytes_max(&self) -> usize;
}

/// Values of a client, which any client knows again.
#[derive(Debug)]
pub(super) struct Values {
    writes: u64,
    value_bytes: usize,
}

impl Values {
    /// Values with a multiple of 8 bytes, made from a seed that no other client has.
    pub(super) fn new(value_bytes: usize, seed: u64) -> Values {
        Values { writes: seed, value_bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.value_bytes
    }

    /// Appends another value of a key.
    pub(super) fn append(&mut self, key: u32, out: &mut Vec<u8>) {
        self.writes = self.writes.wrapping_add(1);
        let start = out.len();
        out.resize(start + self.value_bytes, 0);
        fill(key.into(), self.writes, &mut out[start..]);
    }

    /// Whether a value is one of a key. Zeros, which a record has before its first write, are none: clients write all records first.
    pub(super) fn is_one(&self, key: u32, value: &[u8]) -> bool {
        value.len() == self.value_bytes && version_of(key.into(), value).is_some_and(|stamp| stamp > 0)
    }
}

/// A client with one connection.
#[derive(Debug)]
pub struct PipedStore<P> {
    to: SocketAddr,
    stream: TcpStream,
    poller: Poller,
    protocol: P,
    asked: VecDeque<PendingRequest>,
    /// The client's operation whose requests come.
    number: u64,
    /// Requests that the socket has not taken.
    out: Vec<u8>,
    /// The beginning of an answer.
    input: Vec<u8>,
    piece: Vec<u8>,
}

fn open(to: SocketAddr) -> io::Result<(TcpStream, Poller)> {
    let stream = connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut poller = Poller::new();
    poller.add(&stream)?;
    Ok((stream, poller))
}

impl<P: Protocol> PipedStore<P> {
    /// Connects, and retries while the server may be starting.
    pub(super) fn connect(to: SocketAddr, protocol: P) -> io::Result<PipedStore<P>> {
        let (stream, poller) = open(to)?;
        let (asked, out, input, piece) = (VecDeque::new(), Vec::new(), Vec::new(), vec![0; PIECE_BYTES]);
        Ok(PipedStore { to, stream, poller, protocol, asked, number: 0, out, input, piece })
    }

    fn give(&mut self, token: usize, key: u32, what: Purpose, until: Nanos) {
        self.ask(PendingRequest { token, key, what, number: self.number, until });
    }

    fn ask(&mut self, asked: PendingRequest) {
        self.protocol.ask(asked, &mut self.out);
        self.asked.push_back(asked);
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

    /// Takes what the socket has, and hands over operations that have ended. Returns whether there were any.
    fn receive(&mut self, ended: &mut dyn FnMut(usize, Ended)) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.stream.read(&mut self.piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.input.extend_from_slice(&self.piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            any |= self.answers(ended)?;
            if self.input.len() > self.protocol.answer_bytes_max() {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "the server answers what it was not asked",
                ));
            }
        }
    }

    /// Takes complete answers. Returns whether an operation has ended.
    fn answers(&mut self, ended: &mut dyn FnMut(usize, Ended)) -> io::Result<bool> {
        let (mut taken, mut any) = (0, false);
        while let Some(asked) = self.asked.front().copied() {
            let Some((next, bytes)) = self.protocol.answer(asked, &self.input[taken..])? else { break };
            taken += bytes;
            self.asked.pop_front();
            match next {
                Next::Ended(how) => {
                    any = true;
                    ended(asked.token, how);
                }
                Next::Ask(what) => self.ask(PendingRequest { what, ..asked }),
            }
        }
        self.input.drain(..taken);
        Ok(any)
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

impl<P: Protocol> Store for PipedStore<P> {
    fn begin(&mut self, number: u64) {
        self.number = number;
    }

    fn get(&mut self, token: usize, key: u32, until: Nanos) -> Result<Option<Ended>, Error> {
        self.give(token, key, Purpose::Get, until);
        Ok(None)
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        until: Nanos,
    ) -> Result<Option<Ended>, Error> {
        self.give(token, key, Purpose::Put(expected), until);
        Ok(None)
    }

    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        self.send().map_err(Error::gone)?;
        if self.receive(ended).map_err(Error::gone)? {
            return Ok(true);
        }
        // An answer may have led to another request.
        self.send().map_err(Error::gone)?;
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

#[cfg(test)]
#[path = "piped_tests.rs"]
mod tests;
