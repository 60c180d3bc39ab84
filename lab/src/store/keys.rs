//! The store in a key-value offload beside the memory. The offload compares whole keys, changes values in one step, and counts the
//! changes of each: its version.
//!
//! ```text
//!  get  Read ───────────▶ found
//!  put  Create ─────────▶ wrote        a key that this client has not seen yet
//!         │ exists
//!         ▼
//!       Update ─────────▶ wrote        whatever is there: one exchange
//!       UpdateVersion ──▶ wrote        in place of what was read
//!         └─ not found ─▶ changed
//! ```
//!
//! An update does not say which version it leaves. It is at least one more than the newest that the client knew of when it asked,
//! because each update counts; at the end, all records together have as many versions as there were writes.

use crate::ycsb::{Ended, Error, Store};
use p4rack_history::{fill, version_of};
use p4rack_hosts::clio::{Kv, KvOutcome, KvRequest, block_bytes};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;

/// Bytes of a key.
const KEY_BYTES: u64 = 4;
/// Bits of a value's stamp for the number of its client.
const OWN_SHIFT: u32 = 40;

/// A request to an offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask<'a> {
    /// A value and its version.
    Read,
    /// A new key.
    Create(&'a [u8]),
    /// Another value.
    Update(&'a [u8]),
    /// Another value, if the key has this version.
    UpdateVersion(u64, &'a [u8]),
}

/// The offload's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// A version, and the value.
    Value(u64, &'a [u8]),
    /// It was done.
    Done,
    /// The key to create exists.
    Exists,
    /// There is no such key, or it has another version.
    NotFound,
    /// The outcome is unknown, or another error.
    Failed,
}

/// A client of an offload with keys and values.
pub(super) trait Keys {
    /// Asks for something about a key, under a tag.
    fn ask(&mut self, tag: u64, key: &[u8], ask: Ask<'_>) -> Result<(), Error>;

    /// Delivers answers with their tags. If there are none, waits for one, at most until `until`.
    fn poll(&mut self, until: Nanos, came: &mut dyn FnMut(u64, Answer<'_>)) -> Result<(), Error>;

    /// The time.
    fn now(&self) -> Nanos;
}

/// A request about a key, as an offload takes it.
pub(super) fn request_of<'a>(key: &'a [u8], ask: Ask<'a>) -> KvRequest<'a> {
    match ask {
        Ask::Read => KvRequest::GetVersion(key),
        Ask::Create(value) => KvRequest::Create(key, value),
        Ask::Update(value) => KvRequest::Update(key, value),
        Ask::UpdateVersion(version, value) => KvRequest::UpdateVersion(key, version, value),
    }
}

/// The answer that an outcome is.
pub(super) fn answer_of(outcome: KvOutcome<'_>) -> Answer<'_> {
    match outcome {
        KvOutcome::Versioned(version, value) => Answer::Value(version, value),
        KvOutcome::Done => Answer::Done,
        KvOutcome::Exists => Answer::Exists,
        KvOutcome::NotFound => Answer::NotFound,
        KvOutcome::Value(_) | KvOutcome::Unknown | KvOutcome::Failed(_) => Answer::Failed,
    }
}

impl Keys for Kv {
    fn ask(&mut self, tag: u64, key: &[u8], ask: Ask<'_>) -> Result<(), Error> {
        self.submit(tag, request_of(key, ask)).map_err(Error::gone)
    }

    fn poll(&mut self, until: Nanos, came: &mut dyn FnMut(u64, Answer<'_>)) -> Result<(), Error> {
        Kv::poll(self, until, &mut |tag, outcome| came(tag, answer_of(outcome))).map_err(Error::gone)
    }

    fn now(&self) -> Nanos {
        clock::now()
    }
}

/// Bytes that a store has to have for records with values of this size: blocks are powers of two, and buckets take a sixteenth.
pub(super) fn store_bytes(records: u32, value_bytes: usize, under_way: usize) -> u64 {
    let blocks = block_bytes(KEY_BYTES, value_bytes as u64) * (u64::from(records) + under_way as u64);
    blocks + blocks / 8 + (64 << 10)
}

/// Request of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyRequest {
    Read,
    Create,
    /// With the newest version that was known.
    Update(u64),
    /// In place of this version.
    UpdateVersion(u64),
}

/// A client of the store.
#[derive(Debug)]
pub(super) struct KeyStore<K> {
    keys: K,
    /// Number of this client, from 1, in the stamps of its values.
    own: u64,
    /// Its writes so far, of which values are made.
    writes: u64,
    /// Newest known versions, by key.
    known: Vec<u64>,
    /// Operations in flight, by token: key, and request.
    under_way: Vec<Option<(u32, KeyRequest)>>,
    value: Vec<u8>,
    /// Answers by token; kept to reuse its memory.
    came: Vec<(usize, Came)>,
}

/// An answer to an operation, without the value.
#[derive(Clone, Copy, Debug)]
enum Came {
    /// A version, and whether its value is one of the key's.
    Value(u64, bool),
    Done,
    Exists,
    NotFound,
    Failed,
}

impl<K: Keys> KeyStore<K> {
    /// A client with this number, from 1. Values have a multiple of 8 bytes.
    pub(super) fn new(keys: K, value_bytes: usize, own: u16, records: u32) -> KeyStore<K> {
        KeyStore {
            keys,
            own: own.into(),
            writes: 0,
            known: vec![0; records as usize],
            under_way: Vec::new(),
            value: vec![0; value_bytes],
            came: Vec::new(),
        }
    }

    fn ask(&mut self, token: usize, key: u32, asked: KeyRequest) -> Result<Option<Ended>, Error> {
        if self.under_way.len() <= token {
            self.under_way.resize(token + 1, None);
        }
        self.under_way[token] = Some((key, asked));
        if asked != KeyRequest::Read {
            self.writes += 1;
            fill(key.into(), self.own << OWN_SHIFT | self.writes, &mut self.value);
        }
        let ask = match asked {
            KeyRequest::Read => Ask::Read,
            KeyRequest::Create => Ask::Create(&self.value),
            KeyRequest::Update(_) => Ask::Update(&self.value),
            KeyRequest::UpdateVersion(version) => Ask::UpdateVersion(version, &self.value),
        };
        self.keys.ask(token as u64, &key.to_be_bytes(), ask)?;
        Ok(None)
    }

    /// An operation goes on, or ends.
    fn go_on(&mut self, token: usize, came: Came) -> Result<Option<Ended>, Error> {
        let operation = self.under_way.get(token).copied().flatten();
        let Some((key, asked)) = operation else { return Err(Error::Unasked) };
        let known = self.known[key as usize];
        let ended = match (asked, came) {
            (KeyRequest::Create, Came::Exists) => return self.ask(token, key, KeyRequest::Update(known)),
            (KeyRequest::Read, Came::Value(version, true)) => Ended::Found(version),
            (KeyRequest::Create, Came::Done) => Ended::Wrote(1),
            (KeyRequest::Update(version) | KeyRequest::UpdateVersion(version), Came::Done) => {
                Ended::Wrote(version + 1)
            }
            (KeyRequest::UpdateVersion(_), Came::NotFound) => Ended::Changed,
            (_, Came::Failed) => Ended::Lost,
            // A value of no write, a key that is gone, an answer to something else.
            _ => Ended::Wrong,
        };
        if let Ended::Found(version) | Ended::Wrote(version) = ended {
            self.known[key as usize] = known.max(version);
        }
        self.under_way[token] = None;
        Ok(Some(ended))
    }
}

impl<K: Keys> Store for KeyStore<K> {
    fn get(&mut self, token: usize, key: u32, _until: Nanos) -> Result<Option<Ended>, Error> {
        self.ask(token, key, KeyRequest::Read)
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        _until: Nanos,
    ) -> Result<Option<Ended>, Error> {
        let asked = match (expected, self.known[key as usize]) {
            (Some(version), _) => KeyRequest::UpdateVersion(version),
            (None, 0) => KeyRequest::Create,
            (None, known) => KeyRequest::Update(known),
        };
        self.ask(token, key, asked)
    }

    fn wait(&mut self, until: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        let (under_way, came) = (&self.under_way, &mut self.came);
        self.keys.poll(until, &mut |tag, answer| {
            let token = usize::try_from(tag).unwrap_or(usize::MAX);
            let key = under_way.get(token).copied().flatten().map_or(0, |(key, _)| key);
            let what = match answer {
                Answer::Value(version, value) => {
                    Came::Value(version, version_of(key.into(), value).is_some_and(|stamp| stamp > 0))
                }
                Answer::Done => Came::Done,
                Answer::Exists => Came::Exists,
                Answer::NotFound => Came::NotFound,
                Answer::Failed => Came::Failed,
            };
            came.push((token, what));
        })?;
        let mut came = std::mem::take(&mut self.came);
        let any = !came.is_empty();
        for (token, what) in came.drain(..) {
            if let Some(how) = self.go_on(token, what)? {
                ended(token, how);
            }
        }
        self.came = came;
        Ok(any)
    }

    fn now(&self) -> Nanos {
        self.keys.now()
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
