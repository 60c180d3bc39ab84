//! A client of Clio-KV, the key-value store of a board.
//!
//! ```text
//!   Put, fits a packet ───────────────────────────────▶ CALL ─▶ end
//!   Put, longer ─▶ WRITE to memory of this client ─▶ CALL ─▶ end
//! ```

use super::session::Session;
use super::{ClioError, KV, Patience};
use crate::roce::SetupError;
use crate::roce::setup::Server;
use p4rack_fabric::clio::lib::{Operation, Outcome, Refused};
use p4rack_netdev::clock;
use p4rack_offload::{KEY_BYTES_MAX, KvArguments, KvFunction, VALUE_BYTES_MAX, VERSION_BYTES};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status as Said;
use std::time::Duration;

const READ: u8 = KvFunction::Read as u8;
const READ_VERSION: u8 = KvFunction::ReadVersion as u8;
/// Time after which a call that waits looks again, and for which it waits for places.
const TURN: Nanos = Nanos::from_secs(1);
/// Time between attempts to get places for long values.
const RENEWAL: Nanos = Nanos::from_millis(20);

/// Sizes for which a client of a store needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Maximum bytes of a value that is read, at most 64 KB.
    pub value_bytes_max: u32,
    /// Maximum bytes of a value that is written, at most 64 KB; 0 if none is. Values that don't fit a packet take memory of the board on
    /// their way.
    pub written_bytes_max: u32,
    /// Maximum requests under way.
    pub under_way_max: u16,
}

/// A request to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRequest<'a> {
    /// Adds a key with its value. Ends as [`Exists`](KvOutcome::Exists) if it exists already.
    Create(&'a [u8], &'a [u8]),
    /// Returns the value of a key.
    Get(&'a [u8]),
    /// Changes the value of an existing key.
    Update(&'a [u8], &'a [u8]),
    /// Creates or updates a key.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
    /// Returns the value of a key and its version, which is 1 when the key is created and counts its changes.
    GetVersion(&'a [u8]),
    /// Changes the value of a key that has this version; if it has another one, ends as [`NotFound`](KvOutcome::NotFound).
    UpdateVersion(&'a [u8], u64, &'a [u8]),
}

impl<'a> KvRequest<'a> {
    /// Writes the arguments of the call that this is over `out`, the value among them. Returns the function. Errors: the key has no bytes,
    /// or too many.
    pub fn arguments(self, out: &mut Vec<u8>) -> Result<u8, KvRefused> {
        let function = self.compose(0, out)?;
        out.extend_from_slice(self.parts().2);
        Ok(function)
    }

    /// The same without the value, which is at `value_address` in the caller's memory, or comes next.
    fn compose(self, value_address: u64, out: &mut Vec<u8>) -> Result<u8, KvRefused> {
        let (function, key, value) = self.parts();
        let key_bytes = u8::try_from(key.len()).ok().filter(|bytes| *bytes > 0);
        let key_bytes = key_bytes.ok_or(KvRefused::Key(key.len()))?;
        let value_bytes = value.len() as u32;
        out.clear();
        out.resize(KvArguments::BYTES, 0);
        KvArguments { value_address, value_bytes, key_bytes, reserved: 0 }.emit(out);
        out.extend_from_slice(key);
        if let Some(version) = self.version() {
            out.extend_from_slice(&version.to_le_bytes());
        }
        Ok(function as u8)
    }

    fn parts(self) -> (KvFunction, &'a [u8], &'a [u8]) {
        match self {
            KvRequest::Create(key, value) => (KvFunction::Create, key, value),
            KvRequest::Get(key) => (KvFunction::Read, key, &[]),
            KvRequest::Update(key, value) => (KvFunction::Update, key, value),
            KvRequest::Put(key, value) => (KvFunction::Put, key, value),
            KvRequest::Delete(key) => (KvFunction::Delete, key, &[]),
            KvRequest::GetVersion(key) => (KvFunction::ReadVersion, key, &[]),
            KvRequest::UpdateVersion(key, _, value) => (KvFunction::UpdateVersion, key, value),
        }
    }

    /// The version that the key has to have.
    fn version(self) -> Option<u64> {
        match self {
            KvRequest::UpdateVersion(_, version, _) => Some(version),
            _ => None,
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvOutcome<'a> {
    /// The key was created, changed or removed.
    Done,
    /// The value.
    Value(&'a [u8]),
    /// The version and the value.
    Versioned(u64, &'a [u8]),
    /// There is no such key, or it has another version.
    NotFound,
    /// The key exists already.
    Exists,
    /// No answer to any attempt: it was executed once, will be, or never is.
    Unknown,
    /// The board refused it, and nothing has changed: [`NoMemory`](Said::NoMemory) if the store is full.
    Failed(Said),
}

impl<'a> KvOutcome<'a> {
    /// How a call of a function of the store ended.
    pub fn of(function: u8, outcome: Outcome<'a>) -> KvOutcome<'a> {
        match outcome {
            Outcome::Results(bytes) if function == READ => KvOutcome::Value(bytes),
            Outcome::Results(bytes) if function == READ_VERSION => match bytes.split_first_chunk() {
                Some((version, value)) => KvOutcome::Versioned(u64::from_le_bytes(*version), value),
                // Boards don't answer that.
                None => KvOutcome::Failed(Said::OffloadFailed),
            },
            Outcome::Results(_) => KvOutcome::Done,
            Outcome::Refused(Said::NotFound) => KvOutcome::NotFound,
            Outcome::Refused(Said::Exists) => KvOutcome::Exists,
            Outcome::Refused(status) => KvOutcome::Failed(status),
            // The others are no outcomes of a call, nor failures of a write.
            _ => KvOutcome::Unknown,
        }
    }
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvRefused {
    /// The key has no bytes, or more than 255.
    #[error("a key has 1 to 255 bytes, this one has {0}")]
    Key(usize),
    /// The value to write is longer than the client was opened for.
    #[error("a value has at most {1} bytes here, this one has {0}")]
    Value(usize, u32),
    /// The board had no memory for values that don't fit a packet, when this client last asked for it. It asks again, in `poll`.
    #[error("the board has no memory for long values now; try again later, or give it more memory")]
    NoPlace,
    /// As many requests as allowed are under way.
    #[error("as many requests as allowed are under way: poll for their ends first")]
    Full,
    /// The client library refuses it.
    #[error(transparent)]
    Library(#[from] Refused),
}

/// Why a call that waits has no result.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// The request is not accepted.
    #[error(transparent)]
    Refused(#[from] KvRefused),
    /// Other requests are under way.
    #[error("requests are under way: poll for their ends first")]
    UnderWay,
    /// The socket failed.
    #[error(transparent)]
    Link(#[from] ClioError),
    /// No answer to any attempt.
    #[error("no answer to any attempt: the request may have been executed; is the board running?")]
    Unknown,
    /// The board refused it, and nothing has changed.
    #[error("the board refuses: {}", .0.name().replace('_', " "))]
    Failed(Said),
}

/// A request under way.
#[derive(Clone, Debug, Default)]
struct Slot {
    tag: u64,
    function: u8,
    /// Its value has a place in the board's memory.
    is_placed: bool,
    /// Its value is being written; the call comes next, with these arguments.
    is_staging: bool,
    arguments: Vec<u8>,
}

/// A client of a store. One thread at a time uses it.
///
/// Requests under way have no order: a program waits for the end of a request before it sends another one that depends on it.
pub struct Kv {
    server: Server,
    patience: Patience,
    session: Session,
    shape: KvShape,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Slots whose place a request may still use that ended as unknown. A new process frees them.
    lost: usize,
    /// Whether values may not fit a packet.
    stages: bool,
    /// Where such values are written first: a place for each slot. `None` without, or while there is no process with such places.
    staging: Option<u64>,
    /// Slots whose long value is in the board's memory: their calls are next.
    staged: Vec<u16>,
    /// When to ask for places again.
    renews_at: Nanos,
}

impl Kv {
    /// Becomes a client of the store on a board. Errors: the board can't be reached, or refuses; the shape is out of range.
    pub fn open(server: &Server, shape: KvShape, patience: Patience) -> Result<Kv, ClioError> {
        let KvShape { value_bytes_max, written_bytes_max, under_way_max } = shape;
        if value_bytes_max.max(written_bytes_max) > VALUE_BYTES_MAX || under_way_max == 0 {
            let why =
                format!("a value has at most {VALUE_BYTES_MAX} bytes, and at least 1 request is under way");
            return Err(ClioError::Broken(why));
        }
        let mut session = Session::open(server, 0, patience)?;
        let most = usize::from(under_way_max).min(session.under_way_max()) as u16;
        let shape = KvShape { under_way_max: most, ..shape };
        let longest =
            (KvArguments::BYTES + KEY_BYTES_MAX + VERSION_BYTES) as u64 + u64::from(written_bytes_max);
        let stages = longest > session.packet_bytes().into();
        let staging = if stages {
            session = Session::open(server, staging_bytes(shape), patience)?;
            Some(session.range().0)
        } else {
            None
        };
        let slots = vec![Slot::default(); if stages { places(shape) } else { most.into() }];
        let (free, staged) = ((0..slots.len() as u16).rev().collect(), Vec::with_capacity(most.into()));
        let server = server.clone();
        Ok(Kv {
            server,
            patience,
            session,
            shape,
            slots,
            free,
            lost: 0,
            stages,
            staging,
            staged,
            renews_at: Nanos::ZERO,
        })
    }

    /// The sizes for which it has room.
    pub fn shape(&self) -> KvShape {
        self.shape
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len() - self.lost
    }

    /// Accepts a request, which ends under this tag; key and value are copied. It leaves with the next [`poll`](Self::poll). Errors: it
    /// is refused and has no end.
    pub fn submit(&mut self, tag: u64, request: KvRequest<'_>) -> Result<(), KvRefused> {
        let (_, key, value) = request.parts();
        if value.len() > self.shape.written_bytes_max as usize {
            return Err(KvRefused::Value(value.len(), self.shape.written_bytes_max));
        }
        if self.under_way() >= self.shape.under_way_max.into() {
            return Err(KvRefused::Full);
        }
        let nth = *self.free.last().ok_or(KvRefused::Full)?;
        let version_bytes = request.version().map_or(0, |_| VERSION_BYTES);
        let longest = self.session.packet_bytes() as usize;
        let staging = match KvArguments::BYTES + key.len() + version_bytes + value.len() <= longest {
            true => None,
            false => Some(self.staging.ok_or(KvRefused::NoPlace)?),
        };
        let staging = staging.map(|start| start + u64::from(nth) * u64::from(self.shape.written_bytes_max));
        let slot = &mut self.slots[usize::from(nth)];
        slot.function = request.compose(staging.unwrap_or(0), &mut slot.arguments)?;
        slot.tag = tag;
        (slot.is_placed, slot.is_staging) = (staging.is_some(), staging.is_some());
        match staging {
            Some(address) => self.session.submit(nth.into(), Operation::Write { address, bytes: value })?,
            None => {
                slot.arguments.extend_from_slice(value);
                self.call(nth)?;
            }
        }
        self.free.pop();
        Ok(())
    }

    fn call(&mut self, nth: u16) -> Result<(), Refused> {
        let slot = &self.slots[usize::from(nth)];
        let results_bytes_max = results_bytes_max(slot.function, self.shape.value_bytes_max);
        let call = Operation::Call {
            offload: KV,
            function: slot.function,
            arguments: &slot.arguments,
            results_bytes_max,
            is_ordered: false,
        };
        self.session.submit(nth.into(), call)
    }

    /// Delivers ended requests with their tags. If there are none, waits for one, at most until `until` (of `p4rack_netdev::clock`); if
    /// places for long values are lost, and nothing is under way, it first asks the set-up service for others. Errors: the socket
    /// failed, or the service can't be reached.
    pub fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, KvOutcome<'_>)) -> Result<(), ClioError> {
        loop {
            if self.deliver(until, ended)? || clock::now() >= until {
                return Ok(());
            }
        }
    }

    fn deliver(
        &mut self,
        until: Nanos,
        ended: &mut dyn FnMut(u64, KvOutcome<'_>),
    ) -> Result<bool, ClioError> {
        self.renew()?;
        let Kv { session, slots, free, lost, staged, .. } = self;
        let mut any = false;
        session.poll(until, &mut |nth, outcome| {
            let (nth, slot) = (nth as u16, &mut slots[nth as usize]);
            if std::mem::take(&mut slot.is_staging) && outcome == Outcome::Done {
                return staged.push(nth);
            }
            if slot.is_placed && outcome == Outcome::Unknown {
                *lost += 1;
            } else {
                free.push(nth);
            }
            any = true;
            ended(slot.tag, KvOutcome::of(slot.function, outcome));
        })?;
        // Their values are in the board's memory.
        while let Some(nth) = self.staged.pop() {
            if self.call(nth).is_err() {
                self.free.push(nth);
                any = true;
                ended(self.slots[usize::from(nth)].tag, KvOutcome::Failed(Said::Busy));
            }
        }
        Ok(any)
    }

    /// Becomes another process once nothing is under way and places can't be used again: late packets of the former process are refused,
    /// so none can put another request's bytes into a value. If the board has no room, values that don't fit a packet are refused until
    /// it has. Errors: the board can't be reached.
    fn renew(&mut self) -> Result<(), ClioError> {
        let is_whole = self.lost == 0 && self.staging.is_some() == self.stages;
        if is_whole || self.under_way() > 0 || clock::now() < self.renews_at {
            return Ok(());
        }
        // The former process ends first: its memory may be all that this client can get.
        if self.lost > 0 {
            self.session = Session::open(&self.server, 0, self.patience)?;
            (self.lost, self.staging) = (0, None);
            self.free = (0..self.slots.len() as u16).rev().collect();
        }
        match Session::open(&self.server, staging_bytes(self.shape), self.patience) {
            Ok(session) => (self.staging, self.session) = (Some(session.range().0), session),
            // The board frees memory in steps.
            Err(ClioError::Setup(SetupError::Refused { reason, .. })) => {
                tracing::debug!(%reason, "no places for long values");
                self.renews_at = clock::now() + RENEWAL;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds a key, and waits for the end. Returns whether it was new; if not, nothing has changed.
    pub fn create(&mut self, key: &[u8], value: &[u8]) -> Result<bool, KvError> {
        Ok(self.wait(KvRequest::Create(key, value), |_| ())? == Ended::Done)
    }

    /// The value of a key, or `None` if there is no such key.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, KvError> {
        let mut value = Vec::new();
        let ended = self.wait(KvRequest::Get(key), |bytes| value.extend_from_slice(bytes))?;
        Ok((ended == Ended::Done).then_some(value))
    }

    /// Creates or changes a key, and waits for the end.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        self.wait(KvRequest::Put(key, value), |_| ()).map(|_| ())
    }

    /// Changes the value of a key, and waits for the end. Returns whether the key exists.
    pub fn update(&mut self, key: &[u8], value: &[u8]) -> Result<bool, KvError> {
        Ok(self.wait(KvRequest::Update(key, value), |_| ())? == Ended::Done)
    }

    /// Removes a key, and waits for the end. Returns whether it existed.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, KvError> {
        Ok(self.wait(KvRequest::Delete(key), |_| ())? == Ended::Done)
    }

    fn wait(&mut self, request: KvRequest<'_>, mut value: impl FnMut(&[u8])) -> Result<Ended, KvError> {
        if self.under_way() > 0 {
            return Err(KvError::UnderWay);
        }
        let until = clock::now() + TURN;
        loop {
            self.renew()?;
            match self.submit(0, request) {
                Err(KvRefused::NoPlace) if clock::now() < until => {
                    std::thread::sleep(Duration::from_nanos(RENEWAL.0));
                }
                submitted => break submitted?,
            }
        }
        let mut end = None;
        // The client library ends every request.
        while end.is_none() {
            self.poll(clock::now() + TURN, &mut |_, outcome| {
                end = Some(match outcome {
                    KvOutcome::Done => Ok(Ended::Done),
                    KvOutcome::Value(bytes) | KvOutcome::Versioned(_, bytes) => {
                        value(bytes);
                        Ok(Ended::Done)
                    }
                    KvOutcome::NotFound | KvOutcome::Exists => Ok(Ended::Not),
                    KvOutcome::Unknown => Err(KvError::Unknown),
                    KvOutcome::Failed(status) => Err(KvError::Failed(status)),
                });
            })?;
        }
        end.unwrap_or(Err(KvError::Unknown))
    }
}

/// Maximum bytes of the results of a function, with values of at most `value_bytes_max`.
pub fn results_bytes_max(function: u8, value_bytes_max: u32) -> u32 {
    match function {
        READ => value_bytes_max,
        READ_VERSION => value_bytes_max + VERSION_BYTES as u32,
        _ => 0,
    }
}

/// Places of long values: as many again as requests under way, because some may be lost.
fn places(shape: KvShape) -> usize {
    2 * usize::from(shape.under_way_max)
}

fn staging_bytes(shape: KvShape) -> u64 {
    u64::from(shape.written_bytes_max) * places(shape) as u64
}

/// Whether a request had an effect, or found a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Not,
}
