//! A region of remote memory with a cache in front: byte-addressable, for several threads, over any way.
//!
//! ```text
//!  threads ─ read, write, view ─▶ RemoteRegion ─ Shared ─┬─ Local: a lock, the residency (policy), frames of blocks
//!                                                        └─ Transport: the way, driven by one of the threads that wait
//! ```
//!
//! - **A hit** takes the lock, and copies. A view takes it when it is opened and closed; in between its bytes are plain memory.
//! - **A miss** queues a request. One of the threads that wait drives the way: it submits all that is queued, and waits for ends, for
//!   itself and the others. Then another one does. So the requests of several threads leave together, and a miss needs no other
//!   thread. What is under way when no thread waits is ended by a keeper, a thread of the region.
//! - **Writes** are local. Blocks are written back when the policy drops them, and by [`RemoteRegion::flush`]. Dropping a region
//!   flushes nothing.
//! - **A loss** ends the region: every later access is an error. Writes that were not flushed are gone, so what remote memory has is no
//!   state that the program has seen.
//! - **Other users** of the same remote bytes are not seen, and do not see unflushed writes.
//!
//! Each block's part of an access takes effect in one step; an access to several blocks does not.

mod error;
mod fresh;
mod guard;
mod local;
mod parts;
mod shared;
mod way;

pub use error::RegionError;
pub use guard::{View, ViewMut};
pub use p4rack_cache::region::Counters;

use crate::remote::{Certain, Piece, Remote, Written};
use fresh::Fresh;
use guard::Pinned;
use local::{Cause, Local, Tried, Unpinned};
use p4rack_cache::FOOTPRINT_MAX;
use p4rack_cache::region::{Frame, Limits, Mode, Residency, Room};
use parts::{Bytes, Part, Parts};
use shared::{Look, PATIENCE, Shared};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use way::Transport;

/// Blocks of an access that wait at the same time.
const WINDOW: usize = 16;
/// Bytes that one fetch asks for at most.
const FETCH_BYTES: u32 = 32 << 10;

/// How a region uses local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionConfig {
    /// Bytes of local memory: blocks and all tables. The buffers of the way are not counted.
    pub local_bytes: u64,
    /// Name of the policy; `p4rack cache policies` lists them.
    pub policy: String,
    /// Whether the region begins as zeros, whatever remote memory contains: blocks that were never written back need no fetch. Remote
    /// memory never gets the zeros of a block that was not written. Takes a bit of local memory for each block.
    pub starts_zeroed: bool,
    /// Bytes of a block, a power of two from 64 to 4096; `None`: the policy's.
    pub block_bytes: Option<u32>,
    /// Views open at the same time; `None`: blocks of a 64th of local memory, but of 16 KiB if that is more, and of 256 KiB at most. In
    /// less than 256 KiB of local memory, blocks of a sixteenth of it, and at least one.
    pub guards: Option<u16>,
}

impl RegionConfig {
    /// Our policy with this much local memory.
    pub fn new(local_bytes: u64) -> RegionConfig {
        RegionConfig {
            local_bytes,
            policy: "runs".to_owned(),
            starts_zeroed: false,
            block_bytes: None,
            guards: None,
        }
    }
}

/// Sizes of a region, and what has happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of local memory: blocks and tables.
    pub local_bytes: u64,
    /// Of them, tables.
    pub tables_bytes: u64,
    /// Accesses by tier, and blocks that moved.
    pub counters: Counters,
    /// Of the fetched blocks, those that were zeros, without a fetch.
    pub zeroed: u64,
    /// Threads that sleep now, until a view closes or remote memory answers.
    pub sleeping: u32,
    /// Accesses that could go on and were not woken: they found out when their wait of 20 s ended. 0, unless this module is wrong.
    pub late: u64,
}

impl Statistics {
    /// Bytes that were fetched.
    pub fn fetched_bytes(&self) -> u64 {
        (self.counters.fetched - self.zeroed) * u64::from(self.block_bytes)
    }

    /// Bytes that were written back.
    pub fn written_bytes(&self) -> u64 {
        self.counters.written_back * u64::from(self.block_bytes)
    }
}

/// A cached region of remote memory. See the [module](self).
pub struct RemoteRegion {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
    /// One flush at a time.
    flush: Mutex<()>,
    region_bytes: u64,
    /// Bytes of a block, as a power of two.
    shift: u32,
    guards: u16,
    /// Bytes of what says which blocks are zeros.
    fresh_bytes: u64,
}

impl fmt::Debug for RemoteRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteRegion").field("region_bytes", &self.region_bytes).finish_non_exhaustive()
    }
}

impl Drop for RemoteRegion {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(keeper) = self.keeper.take() {
            // A keeper that has panicked has ended too.
            let _ = keeper.join();
        }
    }
}

impl RemoteRegion {
    /// A region over a way that nothing else uses. Errors: an unknown policy, a bad size, too little local memory for the policy.
    pub fn new(remote: Box<dyn Remote>, config: &RegionConfig) -> Result<RemoteRegion, RegionError> {
        let definition = p4rack_cache::find(&config.policy);
        let definition = definition.ok_or_else(|| RegionError::Policy { name: config.policy.clone() })?;
        let block_bytes = config.block_bytes.unwrap_or(definition.block_bytes);
        if !block_bytes.is_power_of_two() || !(64..=4_096).contains(&block_bytes) {
            return Err(RegionError::Block(block_bytes));
        }
        // A block that was written back may be fetched again, so the end of a write has to mean that it is there.
        let remote: Box<dyn Remote> = match remote.abilities().writes {
            Written::There => remote,
            Written::Sent => Box::new(Certain::new(remote)),
        };
        let abilities = remote.abilities();
        let longest = abilities.read_bytes_max.min(abilities.write_bytes_max).max(1);
        let operations = u64::from(block_bytes.div_ceil(longest));
        if operations > abilities.under_way_max as u64 {
            return Err(RegionError::Way { bytes: block_bytes, operations, most: abilities.under_way_max });
        }
        let region_bytes = abilities.region_bytes;
        let most_bytes = u64::from(FOOTPRINT_MAX) * u64::from(block_bytes);
        if region_bytes > most_bytes {
            return Err(RegionError::Long { bytes: region_bytes, block_bytes, most_bytes });
        }
        let footprint = region_bytes.div_ceil(block_bytes.into()) as u32;
        let aside = (aside_bytes(config.local_bytes) / u64::from(block_bytes)).max(1) as u16;
        let guards = config.guards.unwrap_or(aside);
        let fetch = (abilities.read_bytes_max.min(FETCH_BYTES) / block_bytes).max(1);
        let limits = Limits { guards, claims: aside, prefetched: aside, fetch };
        let fresh = config.starts_zeroed.then(|| Fresh::new(footprint));
        let fresh_bytes = if fresh.is_some() { Fresh::bytes(footprint) } else { 0 };
        let room = Room::Bytes(config.local_bytes.saturating_sub(fresh_bytes));
        let residency = Residency::new(definition, (footprint, block_bytes), room, limits)?;
        let (local, transport) =
            (Local::new(residency, block_bytes), Transport::new(remote, block_bytes, fresh));
        let shared = Arc::new(Shared::new(local, transport));
        let kept = Arc::clone(&shared);
        let keeper = std::thread::Builder::new().name("region".to_owned()).spawn(move || kept.keep());
        let keeper = keeper.map_err(|error| RegionError::Thread(error.to_string()))?;
        Ok(RemoteRegion {
            shared,
            keeper: Some(keeper),
            flush: Mutex::new(()),
            region_bytes,
            shift: block_bytes.trailing_zeros(),
            guards,
            fresh_bytes,
        })
    }

    /// Bytes of the region.
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// Reads bytes.
    #[inline]
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), RegionError> {
        self.check(at, into.len() as u64)?;
        let spans = std::iter::once((at, into.len() as u64));
        self.copy(Parts::new(spans, self.shift), Bytes::Into(into))
    }

    /// Writes bytes.
    #[inline]
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), RegionError> {
        self.check(at, bytes.len() as u64)?;
        let spans = std::iter::once((at, bytes.len() as u64));
        self.copy(Parts::new(spans, self.shift), Bytes::From(bytes))
    }

    /// Reads pieces into a buffer that has room for exactly all of them, in their order. Their fetches are under way together.
    pub fn gather(&self, pieces: &[Piece], into: &mut [u8]) -> Result<(), RegionError> {
        self.copy_pieces(pieces, Bytes::Into(into))
    }

    /// Writes pieces from a buffer that has the bytes of all of them, in their order.
    pub fn scatter(&self, pieces: &[Piece], bytes: &[u8]) -> Result<(), RegionError> {
        self.copy_pieces(pieces, Bytes::From(bytes))
    }

    fn copy_pieces(&self, pieces: &[Piece], bytes: Bytes<'_>) -> Result<(), RegionError> {
        let mut total = 0;
        for piece in pieces {
            self.check(piece.at, piece.bytes.into())?;
            total += u64::from(piece.bytes);
        }
        if total != bytes.len() as u64 {
            return Err(RegionError::Length { pieces: total, buffer: bytes.len() as u64 });
        }
        let spans = pieces.iter().map(|piece| (piece.at, piece.bytes.into()));
        self.copy(Parts::new(spans, self.shift), bytes)
    }

    /// Opens a view of bytes from `at` on: of at most `len`, and not beyond the end of their block. Iterate for more. Errors: as many
    /// views are open as may be; a view that writes the same block was open whenever this one was tried, for 20 s.
    ///
    /// If remote memory is lost, views that are open keep their bytes, as they were read or written here. These are no state of remote
    /// memory then.
    pub fn view(&self, at: u64, len: usize) -> Result<View<'_>, RegionError> {
        self.pin(at, len, Mode::Read).map(View)
    }

    /// The same for writing, which excludes all other accesses to the block. A thread must not use the block otherwise as long as it has
    /// this. What is written after a loss, or was not flushed before it, stays here and is gone with the view.
    pub fn view_mut(&self, at: u64, len: usize) -> Result<ViewMut<'_>, RegionError> {
        self.pin(at, len, Mode::Write).map(ViewMut)
    }

    /// Begins to fetch bytes that are not local, as far as there is room for prefetched blocks. The policy counts no use. Returns the number of
    /// blocks that were begun.
    pub fn prefetch(&self, at: u64, bytes: u64) -> Result<u32, RegionError> {
        self.check(at, bytes)?;
        if bytes == 0 {
            return Ok(0);
        }
        let (first, last) = (at >> self.shift, (at + bytes - 1) >> self.shift);
        self.shared.change(|local| match local.residency.has_failed() {
            true => Err(lost(local)),
            false => Ok(local.residency.prefetch(first as u32, (last - first + 1) as u32)),
        })
    }

    /// Waits until all writes that returned before are in remote memory. A view that writes has to be closed first.
    pub fn flush(&self) -> Result<(), RegionError> {
        let _one = self.flush.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has_begun = false;
        let flushed = self.shared.look(|local| {
            if local.residency.has_failed() {
                return Look::Done(Err(lost(local)));
            }
            if !has_begun {
                local.residency.begin_flush();
                has_begun = true;
            }
            match local.residency.is_flushed() {
                true => Look::Done(Ok(())),
                false => Look::Waits(local.residency.held_flush().map_or(Cause::Remote, Cause::View)),
            }
        });
        flushed.unwrap_or_else(|cause| Err(too_long(cause)))
    }

    /// Ends the region: flushes, and returns the way, on which nothing is under way. Another region over it finds all that was written
    /// here. Errors: as those of [`flush`](Self::flush).
    pub fn close(self) -> Result<Box<dyn Remote>, RegionError> {
        self.flush()?;
        // Blocks that were fetched ahead may still come.
        let quiet = self.shared.look(|local| match (local.residency.has_failed(), local.is_busy()) {
            (true, _) => Look::Done(Err(lost(local))),
            (false, true) => Look::Waits(Cause::Remote),
            (false, false) => Look::Done(Ok(())),
        });
        quiet.unwrap_or_else(|cause| Err(too_long(cause)))?;
        let shared = Arc::clone(&self.shared);
        // The keeper ends with it, and nothing else has a share.
        drop(self);
        let shared = Arc::into_inner(shared);
        shared.map(Shared::into_way).ok_or_else(|| RegionError::Lost("its thread has not ended".to_owned()))
    }

    /// Sizes, and what has happened so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.change(|local| {
            let tables_bytes = local.residency.tables_bytes() + self.fresh_bytes;
            let frames = u64::from(local.residency.frame_count()) << self.shift;
            Statistics {
                block_bytes: 1 << self.shift,
                local_bytes: frames + tables_bytes,
                tables_bytes,
                counters: *local.residency.counters(),
                zeroed: local.zeroed,
                sleeping: local.sleepers,
                late: local.late,
            }
        })
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.shared.change(|local| *local.residency.counters())
    }

    #[inline]
    fn check(&self, at: u64, bytes: u64) -> Result<(), RegionError> {
        match at.checked_add(bytes) {
            Some(end) if end <= self.region_bytes => Ok(()),
            _ => {
                let (end, region_bytes) = (at.saturating_add(bytes), self.region_bytes);
                Err(RegionError::OutOfBounds { at, end, region_bytes })
            }
        }
    }

    #[inline]
    fn copy(
        &self,
        mut parts: Parts<impl Iterator<Item = (u64, u64)>>,
        mut bytes: Bytes<'_>,
    ) -> Result<(), RegionError> {
        let mut late: Option<Window> = None;
        let copied = self.shared.look(|local| {
            if let Some(window) = &mut late {
                return copy_late(local, window, &mut parts, &mut bytes);
            }
            while let Some(mut part) = parts.next() {
                match local.try_copy(&mut part, &mut bytes) {
                    Tried::Done => {}
                    Tried::Waits(_) => {
                        let window = late.insert([None; WINDOW]);
                        window[0] = Some(part);
                        return copy_late(local, window, &mut parts, &mut bytes);
                    }
                    Tried::Lost => return Look::Done(Err(lost(local))),
                }
            }
            Look::Done(Ok(()))
        });
        copied.unwrap_or_else(|cause| {
            self.shared.change(|local| give_up(local, late.iter().flatten().flatten()));
            Err(too_long(cause))
        })
    }

    fn pin(&self, at: u64, len: usize, mode: Mode) -> Result<Pinned<'_>, RegionError> {
        self.check(at, len as u64)?;
        let Some(mut part) = Parts::new(std::iter::once((at, len as u64)), self.shift).next() else {
            return Err(RegionError::Empty);
        };
        let pinned = self.shared.look(|local| match local.try_pin(&mut part, mode) {
            Ok(bytes) => Look::Done(Ok(bytes)),
            Err(Unpinned::Full) => Look::Done(Err(RegionError::Guards(self.guards))),
            Err(Unpinned::Lost) => Look::Done(Err(lost(local))),
            Err(Unpinned::Waits(cause)) => Look::Waits(cause),
        });
        let bytes = pinned.unwrap_or_else(|cause| {
            self.shared.change(|local| give_up(local, [&part]));
            Err(too_long(cause))
        })?;
        Ok(Pinned { region: self, frame: part.frame, mode, bytes, len: part.len as usize })
    }

    fn unpin(&self, frame: Frame, mode: Mode) {
        self.shared.change(|local| local.residency.release(frame, mode));
    }
}

/// Parts of an access that wait.
type Window = [Option<Part>; WINDOW];

/// Copies what has arrived of parts that had to wait. Those behind them are asked for in the meantime.
#[cold]
fn copy_late(
    local: &mut Local,
    window: &mut Window,
    parts: &mut impl Iterator<Item = Part>,
    bytes: &mut Bytes<'_>,
) -> Look<Result<(), RegionError>> {
    loop {
        let (mut any, mut waits) = (false, None);
        for place in window.iter_mut() {
            let Some(mut part) = place.take().or_else(|| parts.next()) else { continue };
            match local.try_copy(&mut part, bytes) {
                Tried::Done => any = true,
                Tried::Waits(cause) => {
                    *place = Some(part);
                    waits = Some(waits.map_or(cause, |other| cause.min(other)));
                }
                Tried::Lost => {
                    give_up(local, window.iter().flatten());
                    return Look::Done(Err(lost(local)));
                }
            }
        }
        match waits {
            _ if any => {}
            Some(cause) => return Look::Waits(cause),
            None => return Look::Done(Ok(())),
        }
    }
}

/// Gives up claims.
fn give_up<'p>(local: &mut Local, parts: impl IntoIterator<Item = &'p Part>) {
    for part in parts.into_iter().filter(|part| part.is_claimed) {
        local.residency.give_up(part.block);
    }
}

#[cold]
fn lost(local: &Local) -> RegionError {
    RegionError::Lost(local.lost.clone().unwrap_or_default())
}

#[cold]
fn too_long(cause: Cause) -> RegionError {
    let s = PATIENCE.0 / 1_000_000_000;
    match cause {
        Cause::View(_) => RegionError::Held(s),
        Cause::Remote => RegionError::Crowded(s),
    }
}

/// Bytes of the blocks of views, of those of accesses that wait, and of prefetched ones. They depend on neither policy nor block, so
/// that all policies have the same local memory.
fn aside_bytes(local_bytes: u64) -> u64 {
    (local_bytes / 64).clamp(16 << 10, 256 << 10).min(local_bytes / 16)
}
