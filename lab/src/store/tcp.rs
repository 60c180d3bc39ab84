//! The store over TCP: a server that holds the slots, and its protocol.
//!
//! ```text
//! GET: 0 | key (4) | 0 (8)                   → slot
//! PUT: 1 | key (4) | expected version (8) | value → version (8), all ones if another one is there
//! bulk: 2 | 0 (4) | 0 (8) | bytes until the stream ends, which are thrown away
//! ```

use super::piped::{Next, PendingRequest, Protocol, Purpose, Values};
use super::slot::{self, Slot};
use crate::ycsb::Ended;
use p4rack_hosts::remote::WordOrder;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// As expected version: any.
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

/// The protocol of this server. Its slots say which key they are of.
#[derive(Debug)]
pub(super) struct Slots(Values);

impl Slots {
    /// `seed` is the seed of its values.
    pub(super) fn new(value_bytes: usize, seed: u64) -> Slots {
        Slots(Values::new(value_bytes, seed))
    }
}

impl Protocol for Slots {
    fn ask(&mut self, asked: PendingRequest, out: &mut Vec<u8>) {
        let (kind, expected) = match asked.what {
            Purpose::Put(expected) => (PUT, expected.unwrap_or(ANY)),
            Purpose::Get | Purpose::Count => (GET, 0),
        };
        out.extend_from_slice(&[kind, 0, 0, 0]);
        out.extend_from_slice(&asked.key.to_be_bytes());
        out.extend_from_slice(&expected.to_be_bytes());
        if kind == PUT {
            self.0.append(asked.key, out);
        }
    }

    fn answer(&mut self, asked: PendingRequest, input: &[u8]) -> io::Result<Option<(Next, usize)>> {
        let is_put = matches!(asked.what, Purpose::Put(_));
        let bytes = if is_put { 8 } else { self.answer_bytes_max() };
        let Some(answer) = input.get(..bytes) else { return Ok(None) };
        let how = match (is_put, answer.first_chunk()) {
            (true, Some(version)) => match u64::from_be_bytes(*version) {
                CONFLICT => Ended::Changed,
                version => Ended::Wrote(version),
            },
            _ => match Slot::decode(answer, WordOrder::BigEndian) {
                Some(slot) if slot.key == u64::from(asked.key) => Ended::Found(slot.version),
                _ => Ended::Wrong,
            },
        };
        Ok(Some((Next::Ended(how), bytes)))
    }

    fn answer_bytes_max(&self) -> usize {
        slot::HEADER_BYTES + self.0.bytes()
    }
}
