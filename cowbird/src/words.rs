//! Bytes in atomic words: a thread and an engine read and write their shared memory word by word.

use crate::sync::{AtomicU64, Ordering};

/// Bytes of a word.
pub const BYTES: usize = 8;

/// Writes whole words from word `at` on, the last one padded with zeros. The caller owns these words exclusively until it
/// publishes them.
#[inline]
pub(crate) fn put(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<BYTES>();
    let (to, last) = words[at..].split_at(whole.len());
    for (word, bytes) in to.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        last[0].store(u64::from_ne_bytes(padded(rest)), Ordering::Relaxed);
    }
}

/// Reads bytes from word `at` on. They have been published to the caller.
#[inline]
pub(crate) fn get(words: &[AtomicU64], at: usize, into: &mut [u8]) {
    let (whole, rest) = into.as_chunks_mut::<BYTES>();
    let (from, last) = words[at..].split_at(whole.len());
    for (word, bytes) in from.iter().zip(whole) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if !rest.is_empty() {
        let word = last[0].load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&word[..rest.len()]);
    }
}

/// At most a word's bytes, then zeros.
fn padded(bytes: &[u8]) -> [u8; BYTES] {
    let mut word = [0; BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    word
}

/// Reads bytes from any offset, as a responder does for an RDMA READ: words in ascending order, so that a reader of the
/// lowest word also sees everything that it publishes. `None` if not all bytes exist.
pub fn read(words: &[AtomicU64], at: usize, into: &mut [u8]) -> Option<()> {
    let end = at.checked_add(into.len())?;
    let first = at / BYTES;
    let mut from = at % BYTES;
    let words = words.get(first..end.div_ceil(BYTES))?;
    let mut into = into;
    for word in words {
        let length = (BYTES - from).min(into.len());
        let (now, later) = into.split_at_mut(length);
        now.copy_from_slice(&word.load(Ordering::Acquire).to_ne_bytes()[from..from + length]);
        (into, from) = (later, 0);
    }
    Some(())
}

/// Writes bytes from any offset, as a responder does for an RDMA WRITE: a thread that sees a word sees all earlier writes.
/// Neighbouring bytes of a word keep their value, even under concurrent changes. `None`, and nothing is written, if not all
/// of the bytes exist.
pub fn write(words: &[AtomicU64], at: usize, bytes: &[u8]) -> Option<()> {
    let end = at.checked_add(bytes.len())?;
    let first = at / BYTES;
    let mut from = at % BYTES;
    let words = words.get(first..end.div_ceil(BYTES))?;
    let mut bytes = bytes;
    for word in words {
        let (now, later) = bytes.split_at((BYTES - from).min(bytes.len()));
        match <[u8; BYTES]>::try_from(now) {
            Ok(whole) => word.store(u64::from_ne_bytes(whole), Ordering::Release),
            Err(_) => {
                let merge = |old: u64| {
                    let mut new = old.to_ne_bytes();
                    new[from..from + now.len()].copy_from_slice(now);
                    Some(u64::from_ne_bytes(new))
                };
                // It never gives up: the closure always has a new word.
                let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, merge);
            }
        }
        (bytes, from) = (later, 0);
    }
    Some(())
}
