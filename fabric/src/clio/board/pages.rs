//! Physical memory: frames, and those that are zeroed ahead for page faults (paper §4.3).
//!
//! ```text
//!   free ──▶ zeroed in steps ──▶ ready ──▶ taken by a page fault ──▶ free
//!            slow path           FIFO      constant work
//! ```
//!
//! A frame is always zeroed between two pages: no process sees what another one has left.
//!
//! Reserved frames are promised: faults of other processes take neither the last ones, nor the last ones that are ready.

use super::config::Pool;
use super::memory::PhysicalMemory;
use p4rack_wire::clio::{PAGE_SIZES, PageSize, Status};
use std::collections::VecDeque;

/// All frames, by size.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pools: [Option<Frames>; PAGE_SIZES],
    /// The pool whose turn it is in the next step.
    next: usize,
    zeroed_bytes: u64,
    taken_bytes: u64,
}

/// Frames of one size.
#[derive(Clone, Debug)]
struct Frames {
    size: PageSize,
    /// Address of frame 0.
    start: u64,
    count: u32,
    /// Frames from here on have never been used.
    unused: u32,
    /// Frames that were used and are free.
    free: Vec<u32>,
    /// Frames that are zeroed.
    ready: VecDeque<u32>,
    /// Ready frames for all processes, and again for those to which frames are promised.
    ready_max: usize,
    /// How often each frame was freed.
    lives: Vec<u32>,
    /// A frame that is being zeroed, and how many of its bytes are.
    zeroing: Option<(u32, u64)>,
    taken: u32,
    /// Frames that are reserved and not taken yet.
    promised: u32,
}

impl Frames {
    fn needs_zeroing(&self) -> bool {
        let has_free = self.unused < self.count || !self.free.is_empty();
        self.zeroing.is_some() || (self.ready.len() < self.ready_max + self.kept() && has_free)
    }

    /// Ready frames that are only for promised ones.
    fn kept(&self) -> usize {
        self.ready_max.min(self.promised as usize)
    }

    /// Zeroes up to `bytes` bytes. Returns how many.
    fn zero<M: PhysicalMemory>(&mut self, memory: &mut M, bytes: u64) -> u64 {
        let mut left = bytes;
        while left > 0 && self.needs_zeroing() {
            let (frame, done) = self.zeroing.take().unwrap_or_else(|| {
                let frame = self.free.pop().unwrap_or(self.unused);
                self.unused += u32::from(frame == self.unused);
                (frame, 0)
            });
            let part = left.min(self.size.bytes() - done);
            let at = self.start + u64::from(frame) * self.size.bytes() + done;
            memory.zero(at..at + part);
            left -= part;
            match done + part == self.size.bytes() {
                true => self.ready.push_back(frame),
                false => self.zeroing = Some((frame, done + part)),
            }
        }
        bytes - left
    }
}

/// A board's use of one page size, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All frames.
    pub frames: u32,
    /// Frames that hold pages.
    pub taken: u32,
    /// Frames that are zeroed and free.
    pub ready: u32,
    /// Frames that are reserved for processes which have not used them yet.
    pub promised: u32,
}

impl Pages {
    /// All frames are free.
    pub fn new(pools: &[Pool]) -> Pages {
        let (mut all, mut start) = ([const { None }; PAGE_SIZES], 0);
        for pool in pools {
            let ready_max = pool.ready.min(pool.frames) as usize;
            all[pool.size as usize] = Some(Frames {
                size: pool.size,
                start,
                count: pool.frames,
                unused: 0,
                free: Vec::new(),
                ready: VecDeque::with_capacity(2 * ready_max),
                ready_max,
                lives: vec![0; pool.frames as usize],
                zeroing: None,
                taken: 0,
                promised: 0,
            });
            start += pool.bytes();
        }
        Pages { pools: all, next: 0, zeroed_bytes: 0, taken_bytes: 0 }
    }

    /// Whether there are pages of this size.
    pub fn has(&self, size: PageSize) -> bool {
        self.pools[size as usize].is_some()
    }

    /// Usage of this page size.
    pub fn usage(&self, size: PageSize) -> Usage {
        self.pools[size as usize].as_ref().map_or(Usage::default(), |pool| Usage {
            frames: pool.count,
            taken: pool.taken,
            ready: pool.ready.len() as u32,
            promised: pool.promised,
        })
    }

    /// Bytes that were zeroed so far.
    pub fn zeroed_bytes(&self) -> u64 {
        self.zeroed_bytes
    }

    /// Bytes of all frames that were taken so far.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Address of a frame of this size.
    #[inline]
    pub fn address_of(&self, size: PageSize, frame: u32) -> u64 {
        self.pools[size as usize].as_ref().map_or(0, |pool| pool.start + u64::from(frame) * size.bytes())
    }

    /// How often a frame was freed: its contents belong to the same page as long as this number stays.
    pub fn life(&self, size: PageSize, frame: u32) -> u32 {
        let pool = self.pools[size as usize].as_ref();
        pool.and_then(|pool| pool.lives.get(frame as usize)).copied().unwrap_or_default()
    }

    /// Promises frames. Returns whether there are as many that are neither taken nor promised.
    pub fn promise(&mut self, size: PageSize, frames: u32) -> bool {
        let Some(pool) = &mut self.pools[size as usize] else { return frames == 0 };
        let has_room =
            u64::from(pool.taken) + u64::from(pool.promised) + u64::from(frames) <= pool.count.into();
        pool.promised += if has_room { frames } else { 0 };
        has_room
    }

    /// Takes back a promise of frames that were not taken.
    pub fn unpromise(&mut self, size: PageSize, frames: u32) {
        if let Some(pool) = &mut self.pools[size as usize] {
            pool.promised -= frames;
        }
    }

    /// Takes a frame, zeroed. `promised`: it is one of those that were promised. Errors: none is left for this process
    /// ([`NoMemory`](Status::NoMemory)), or none is zeroed yet ([`NoPageYet`](Status::NoPageYet)).
    #[inline]
    pub fn take(&mut self, size: PageSize, promised: bool) -> Result<u32, Status> {
        let pool = self.pools[size as usize].as_mut().ok_or(Status::NoMemory)?;
        if !promised && pool.count - pool.taken <= pool.promised {
            return Err(Status::NoMemory);
        }
        if !promised && pool.ready.len() <= pool.kept() {
            return Err(Status::NoPageYet);
        }
        let frame = pool.ready.pop_front().ok_or(Status::NoPageYet)?;
        pool.taken += 1;
        pool.promised -= u32::from(promised);
        self.taken_bytes += size.bytes();
        Ok(frame)
    }

    /// Takes a frame back. `promised`: it is promised to a process again.
    pub fn give_back(&mut self, size: PageSize, frame: u32, promised: bool) {
        let Some(pool) = &mut self.pools[size as usize] else { return };
        pool.free.push(frame);
        pool.lives[frame as usize] = pool.lives[frame as usize].wrapping_add(1);
        pool.taken -= 1;
        pool.promised += u32::from(promised);
    }

    /// Whether a step has something to zero.
    pub fn needs_zeroing(&self) -> bool {
        self.pools.iter().flatten().any(Frames::needs_zeroing)
    }

    /// Zeroes up to `bytes` bytes of one pool. Pools take turns.
    pub fn zero<M: PhysicalMemory>(&mut self, memory: &mut M, bytes: u64) {
        for _ in 0..PAGE_SIZES {
            self.next = (self.next + 1) % PAGE_SIZES;
            if let Some(pool) = self.pools[self.next].as_mut().filter(|pool| pool.needs_zeroing()) {
                self.zeroed_bytes += pool.zero(memory, bytes);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> (Pages, Vec<u8>) {
        let pools = [(PageSize::K4, 6, 2), (PageSize::K64, 1, 1)];
        let pools = pools.map(|(size, frames, ready)| Pool { size, frames, ready });
        let bytes: u64 = pools.iter().map(Pool::bytes).sum();
        (Pages::new(&pools), vec![0xff; bytes as usize])
    }

    #[test]
    fn frames_are_zeroed_in_steps_before_they_are_ready() {
        let (mut pages, mut memory) = pages();
        assert_eq!(pages.take(PageSize::K4, false), Err(Status::NoPageYet));
        while pages.needs_zeroing() {
            let before = pages.zeroed_bytes();
            pages.zero(&mut memory, 3_000);
            assert!((1..=3_000).contains(&(pages.zeroed_bytes() - before)));
        }
        assert_eq!(pages.zeroed_bytes(), 2 * 4_096 + 65_536);
        let frame = pages.take(PageSize::K4, false).unwrap();
        let at = pages.address_of(PageSize::K4, frame) as usize;
        assert!(memory[at..at + 4_096].iter().all(|byte| *byte == 0));
        assert_eq!(pages.address_of(PageSize::K64, 0), 6 * 4_096);
        // The old page's bytes are zeroed before another page gets the frame.
        memory[at] = 7;
        pages.give_back(PageSize::K4, frame, false);
        let again = std::iter::from_fn(|| {
            pages.zero(&mut memory, 1 << 20);
            pages.take(PageSize::K4, false).ok()
        });
        assert_eq!(again.take(6).filter(|other| *other == frame).count(), 1);
        assert_eq!(memory[at], 0);
    }

    #[test]
    fn promised_frames_are_kept() {
        let (mut pages, mut memory) = pages();
        assert!(pages.promise(PageSize::K4, 4) && !pages.promise(PageSize::K4, 3));
        assert!(pages.promise(PageSize::M2, 0) && !pages.promise(PageSize::M2, 1), "no such pool");
        let mut take = |promised| {
            pages.zero(&mut memory, 1 << 20);
            pages.zero(&mut memory, 1 << 20);
            pages.take(PageSize::K4, promised)
        };
        assert!(take(false).is_ok() && take(false).is_ok());
        assert_eq!(take(false), Err(Status::NoMemory));
        let mine = take(true).unwrap();
        assert_eq!(take(false), Err(Status::NoMemory));
        pages.give_back(PageSize::K4, mine, true);
        let usage = Usage { frames: 6, taken: 2, ready: 3, promised: 4 };
        assert_eq!(pages.usage(PageSize::K4), usage);
        pages.unpromise(PageSize::K4, 4);
        assert!(pages.take(PageSize::K4, false).is_ok());
    }

    #[test]
    fn ready_frames_are_kept_for_promised_ones() {
        let (mut pages, mut memory) = pages();
        assert!(pages.promise(PageSize::K4, 1));
        (0..4).for_each(|_| pages.zero(&mut memory, 1 << 20));
        assert_eq!(pages.usage(PageSize::K4).ready, 3, "two for all, one for what is promised");
        let mut take = |promised| pages.take(PageSize::K4, promised).err();
        assert_eq!([take(false), take(false), take(false)], [None, None, Some(Status::NoPageYet)]);
        assert_eq!([take(true), take(false)], [None, Some(Status::NoPageYet)]);
    }
}
