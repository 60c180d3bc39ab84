//! The store over TCP: a server that holds the slots, and its client.
//!
//! ```text
//! GET: 0 | key (4) | 0 (8)                   → slot
//! PUT: 1 | key (4) | expected version (8) | value → version (8), all ones if another one is there
//! bulk: 2 | 0 (4) | 0 (8) | bytes until the stream ends, which are thrown away
//! ```

use super::slot::{self, Slot};
use super::{ANY, Failure, Store};
use crate::workload::rpc::{connect, read_until};
use p4rack_hosts::remote::WordOrder;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// A client with one connection.
#[derive(Debug)]
pub struct TcpStore {
    to: SocketAddr,
    /// `None` after a timeout: the late answer may still arrive, so the connection is abandoned.
    stream: Option<TcpStream>,
    value_bytes: usize,
}

impl TcpStore {
    /// Connects, and retries while the server may be starting.
    pub fn connect(to: SocketAddr, value_bytes: usize) -> io::Result<TcpStore> {
        let mut store = TcpStore { to, stream: None, value_bytes };
        store.connected()?;
        Ok(store)
    }

    fn connected(&mut self) -> io::Result<&mut TcpStream> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = connect(self.to)?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        Ok(self.stream.insert(stream))
    }

    fn ask(
        &mut self,
        [kind, key, expected]: [u64; 3],
        value: &[u8],
        answer: &mut [u8],
        until_ns: u64,
    ) -> Result<(), Failure> {
        let mut request = vec![kind as u8, 0, 0, 0];
        request.extend_from_slice(&(key as u32).to_be_bytes());
        request.extend_from_slice(&expected.to_be_bytes());
        request.extend_from_slice(value);
        let asked = self.connected().and_then(|stream| {
            stream.write_all(&request)?;
            read_until(stream, answer, until_ns)
        });
        match asked {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.stream = None;
                Err(Failure::Lost)
            }
            Err(error) => Err(Failure::Ended(error.to_string())),
        }
    }
}

impl Store for TcpStore {
    fn get(&mut self, key: u32, until_ns: u64) -> Result<Slot, Failure> {
        let mut bytes = vec![0; slot::HEADER_BYTES + self.value_bytes];
        self.ask([GET.into(), key.into(), 0], &[], &mut bytes, until_ns)?;
        Slot::decode(&bytes, WordOrder::BigEndian).ok_or(Failure::Wrong)
    }

    fn put(&mut self, key: u32, expected: u64, value: &[u8], until_ns: u64) -> Result<Option<u64>, Failure> {
        let mut answer = [0; 8];
        self.ask([PUT.into(), key.into(), expected], value, &mut answer, until_ns)?;
        let version = u64::from_be_bytes(answer);
        Ok((version != CONFLICT).then_some(version))
    }
}
