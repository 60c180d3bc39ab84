//! Local memory of a region: its frames' bytes, with the state that decides who may use them.
//!
//! **Safety.** All bytes are in one allocation, a frame of `block_bytes` after the other. A frame's bytes are used
//!
//! - by methods of [`Local`], which the region's lock makes exclusive among each other, and
//! - outside of the lock by guards, which have pinned the frame.
//!
//! [`Residency`] keeps the two apart: it returns [`Found::Here`] for a write only if no guard has the frame, and for a read only if no
//! guard writes it; it pins a frame for a guard by the same rule; a frame with a pin is neither freed nor filled by a fetch; and it asks for a
//! write-back of a frame only while no guard writes it. Its tests hold it to that in random orders.

use super::parts::{Bytes, Part};
use p4rack_cache::region::{Found, Frame, Mode, Residency};
use std::ptr::NonNull;

/// What is behind a region's lock.
pub(super) struct Local {
    pub residency: Residency,
    bytes: NonNull<u8>,
    bytes_len: usize,
    block_bytes: usize,
    /// Whether a thread drives the way.
    pub is_driven: bool,
    /// Whether the keeper sleeps until something is under way.
    pub keeper_rests: bool,
    pub is_closing: bool,
    /// Threads that sleep until something changes.
    pub sleepers: u32,
    /// Accesses that could go on, and were not woken for it.
    pub late: u64,
    /// Requests that were taken and have not ended.
    pub under_way: u32,
    /// Blocks that were asked for and are zeros, without a fetch.
    pub zeroed: u64,
    /// Why remote memory is lost.
    pub lost: Option<String>,
}

// SAFETY: the pointer is to an allocation that this value owns; see the module for its use.
unsafe impl Send for Local {}

/// Why an access waits. Of several causes the least one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// For remote memory, or for other accesses that do.
    Remote,
    /// For views of this block.
    View(u32),
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Done,
    /// Try again after a change.
    Waits(Cause),
    Lost,
}

impl Local {
    pub fn new(residency: Residency, block_bytes: u32) -> Local {
        let block_bytes = block_bytes as usize;
        let bytes_len = residency.frame_count() as usize * block_bytes;
        // The system gives a page of zeros when it is used first.
        let bytes = Box::into_raw(vec![0u8; bytes_len].into_boxed_slice());
        let bytes = NonNull::new(bytes.cast()).unwrap_or(NonNull::dangling());
        Local {
            residency,
            bytes,
            bytes_len,
            block_bytes,
            is_driven: false,
            keeper_rests: false,
            is_closing: false,
            sleepers: 0,
            late: 0,
            under_way: 0,
            zeroed: 0,
            lost: None,
        }
    }

    /// Whether the way has something to do.
    pub fn is_busy(&self) -> bool {
        !self.residency.has_failed() && (self.under_way > 0 || self.residency.has_requests())
    }

    /// The region is lost. The first reason stays.
    pub fn lose(&mut self, why: String) {
        self.lost.get_or_insert(why);
        self.residency.fail();
    }

    /// One try at a part: its bytes are copied if the block is here.
    #[inline]
    pub fn try_copy(&mut self, part: &mut Part, bytes: &mut Bytes<'_>) -> Tried {
        let mode = bytes.mode();
        let is_claimed = part.is_claimed;
        let is_whole = part.len as usize == self.block_bytes;
        let found = match is_claimed {
            false if is_whole && mode == Mode::Write => self.residency.overwrite(part.block),
            false => self.residency.access(part.block, mode),
            true => self.residency.claimed(part.block, mode),
        };
        match found {
            Found::Here(frame) => {
                // SAFETY: the residency has just named the frame for this mode, and nothing was called since; see the module.
                unsafe { self.copy(frame, part, bytes) };
                if is_claimed {
                    self.residency.unpin(frame, mode);
                }
                Tried::Done
            }
            Found::Failed => Tried::Lost,
            found => Tried::Waits(waits(found, part)),
        }
    }

    /// # Safety
    /// The frame may be used in the mode of `bytes`.
    #[inline]
    unsafe fn copy(&mut self, frame: Frame, part: &Part, bytes: &mut Bytes<'_>) {
        let place = part.offset as usize..part.offset as usize + part.len as usize;
        let buffer = part.start..part.start + part.len as usize;
        match bytes {
            Bytes::Into(into) => {
                // SAFETY: the caller promises it.
                let block = unsafe { self.block(frame) };
                into[buffer].copy_from_slice(&block[place]);
            }
            Bytes::From(from) => {
                // SAFETY: the caller promises it.
                let block = unsafe { self.block_mut(frame) };
                block[place].copy_from_slice(&from[buffer]);
            }
        }
    }

    /// # Safety
    /// Nothing writes the frame.
    #[inline]
    unsafe fn block(&self, frame: Frame) -> &[u8] {
        // SAFETY: the frame is one of the allocation's; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start_of(frame).as_ptr(), self.block_bytes) }
    }

    /// # Safety
    /// Nothing else uses the frame.
    #[inline]
    unsafe fn block_mut(&mut self, frame: Frame) -> &mut [u8] {
        // SAFETY: the frame is one of the allocation's; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start_of(frame).as_ptr(), self.block_bytes) }
    }

    #[inline]
    fn start_of(&self, frame: Frame) -> NonNull<u8> {
        let start = frame as usize * self.block_bytes;
        assert!(start < self.bytes_len, "the residency has no more frames");
        // SAFETY: it lies in the allocation.
        unsafe { self.bytes.add(start) }
    }

    /// One try at a guard of a part.
    pub fn try_pin(&mut self, part: &mut Part, mode: Mode) -> Result<NonNull<u8>, Unpinned> {
        let is_claimed = part.is_claimed;
        let found = match is_claimed {
            false => self.residency.access(part.block, mode),
            true => self.residency.claimed(part.block, mode),
        };
        match found {
            Found::Here(frame) => {
                let is_kept = match is_claimed {
                    false => self.residency.pin(frame, mode),
                    true => self.residency.keep(frame, mode),
                };
                part.frame = frame;
                let start = self.start_of(frame);
                // SAFETY: the part lies in its block, and so in the allocation.
                is_kept.then(|| unsafe { start.add(part.offset as usize) }).ok_or(Unpinned::Full)
            }
            Found::Failed => Err(Unpinned::Lost),
            found => Err(Unpinned::Waits(waits(found, part))),
        }
    }

    /// Puts bytes of a fetch into the frames that wait for them. `at` is their offset in the region.
    pub fn land(&mut self, at: u64, mut bytes: &[u8]) {
        let (mut block, mut offset) =
            ((at / self.block_bytes as u64) as u32, (at % self.block_bytes as u64) as usize);
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(self.block_bytes - offset));
            if let Some(frame) = self.residency.frame_of(block) {
                // SAFETY: a frame whose fetch has not ended is used by the fetch alone.
                let block = unsafe { self.block_mut(frame) };
                block[offset..offset + part.len()].copy_from_slice(part);
            }
            (block, offset, bytes) = (block + 1, 0, rest);
        }
    }

    /// Puts zeros into the frames that wait for blocks.
    pub fn land_zeros(&mut self, blocks: std::ops::Range<u32>) {
        self.zeroed += blocks.len() as u64;
        for block in blocks {
            if let Some(frame) = self.residency.frame_of(block) {
                // SAFETY: a frame whose fetch has not ended is used by the fetch alone.
                unsafe { self.block_mut(frame) }.fill(0);
            }
        }
    }

    /// The bytes of a frame that the residency has just asked to write back.
    pub fn outgoing(&self, frame: Frame) -> &[u8] {
        // SAFETY: no guard writes the frame, and the borrow keeps others from the lock.
        unsafe { self.block(frame) }
    }
}

/// Why there is no guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpinned {
    /// Try again after a change.
    Waits(Cause),
    Full,
    Lost,
}

/// Why a part is not served yet. Notes in it whether it has a claim.
fn waits(found: Found, part: &mut Part) -> Cause {
    part.is_claimed = found == Found::Wait;
    match found {
        Found::Held => Cause::View(part.block),
        _ => Cause::Remote,
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let bytes = std::ptr::slice_from_raw_parts_mut(self.bytes.as_ptr(), self.bytes_len);
        // SAFETY: the allocation is of `new`, and guards borrow the region that has it.
        drop(unsafe { Box::from_raw(bytes) });
    }
}
