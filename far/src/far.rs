//! Far memory of this process: a mapping of remote memory, and which of its pages are in use.

use crate::extents::Extents;
use crate::keeper::{self, Job};
use crate::threads::Inside;
use crate::{near, process};
use p4rack_memory::far::{FarMemory, Figures, Full, PAGE_BYTES};
use p4rack_memory::mapping::{Mapping, with_signals_blocked};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Start of far memory: read by every call that frees memory. An empty range until it is open.
static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Allocations of this size or more go far; `usize::MAX` until far memory is open, and in a forked child.
static MIN_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether this process has left far memory to its parent.
static LEFT: AtomicBool = AtomicBool::new(false);
static FAR: OnceLock<Far> = OnceLock::new();

/// Far memory.
pub struct Far {
    memory: FarMemory,
    start: usize,
    extents: Mutex<Extents>,
    /// For each page, the pages of the heap object that begins there; 0: none does. Every `free` of another allocator's object in
    /// far memory looks here, so there is no lock.
    objects: Box<[AtomicU32]>,
    full: Full,
    counts: Counts,
}

/// Counts of the program's requests; see [`Figures`].
#[derive(Debug, Default)]
struct Counts {
    objects: AtomicU64,
    mappings: AtomicU64,
    refused: AtomicU64,
    near: AtomicU64,
    /// Pages in use, and the most that ever were.
    in_use: AtomicU32,
    in_use_max: AtomicU32,
}

/// Purpose of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `malloc` and its relatives.
    Object,
    /// `mmap`.
    Mapping,
}

/// Why an allocation is not in far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFar {
    /// It belongs in near memory.
    Near,
    /// Far memory is full, and the program is refused.
    Refused,
}

/// Publishes far memory: from here on the program uses it.
pub fn publish(memory: FarMemory, min_bytes: usize, full: Full) {
    let mapping: &Mapping = &memory;
    let start = mapping.start().as_ptr() as usize;
    let pages = u32::try_from(mapping.bytes() / PAGE_BYTES).unwrap_or(u32::MAX);
    let extents = Mutex::new(Extents::new(pages, start as u64 / PAGE_BYTES));
    // Zeroed without being touched: most pages begin no object.
    let objects = Box::<[AtomicU32]>::new_zeroed_slice(pages as usize);
    // SAFETY: an atomic number may be all zeros.
    let objects = unsafe { objects.assume_init() };
    FAR.get_or_init(|| Far { memory, start, extents, objects, full, counts: Counts::default() });
    START.store(start, Ordering::Relaxed);
    BYTES.store(pages as usize * PAGE_BYTES as usize, Ordering::Relaxed);
    MIN_BYTES.store(min_bytes, Ordering::Release);
}

/// Whether this process was forked from the one with far memory: it has none.
#[inline]
pub fn is_forked() -> bool {
    let is_child = process::is_child();
    if is_child && !LEFT.load(Ordering::Relaxed) {
        leave();
    }
    is_child
}

/// Leaves far memory to the parent process. There is a hole in the child's address space, in which the kernel would put the child's own
/// mappings: it is filled, because what the child does to addresses there has no effect.
#[cold]
fn leave() {
    if LEFT.swap(true, Ordering::Relaxed) {
        return;
    }
    MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
    let (start, bytes) = (START.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces nothing.
    let filled = unsafe { near::mmap(start as *mut libc::c_void, bytes, libc::PROT_NONE, flags, -1, 0) };
    if bytes > 0 && filled as usize != start {
        crate::say(
            "a child has memory of its own where its parent has far memory: ",
            "use fork in place of clone",
        );
        std::process::abort();
    }
}

/// The figures of far memory, without process and time; `None` before it is open.
pub fn figures() -> Option<Figures> {
    FAR.get().map(Far::figures)
}

/// Whether an allocation of this size may go far.
#[inline]
pub fn is_large(bytes: usize) -> bool {
    bytes >= MIN_BYTES.load(Ordering::Relaxed)
}

/// Whether an address is in far memory.
#[inline]
pub fn is_far(at: usize) -> bool {
    at.wrapping_sub(START.load(Ordering::Relaxed)) < BYTES.load(Ordering::Relaxed)
}

/// Far memory, if a heap object of the library begins at this address. Other allocators' objects may be in far memory
/// too.
#[inline]
pub fn owner(at: usize) -> Option<&'static Far> {
    if !is_far(at) || !(at as u64).is_multiple_of(PAGE_BYTES) {
        return None;
    }
    FAR.get().filter(|far| far.object_bytes(at).is_some())
}

/// The part of a range that is in far memory; empty if none is.
pub fn part(at: usize, bytes: usize) -> Range<usize> {
    let start = START.load(Ordering::Relaxed);
    let end = start + BYTES.load(Ordering::Relaxed);
    let (from, to) = (at.max(start), at.saturating_add(bytes).min(end));
    if from < to { from..to } else { at..at }
}

/// Far memory for a call of the program, and the guard of that call. `None`: the call belongs elsewhere.
pub fn for_program() -> Option<(&'static Far, Inside)> {
    if is_forked() {
        return None;
    }
    let far = FAR.get()?;
    Some((far, Inside::enter()?))
}

/// Allocates, if this is for far memory: bytes of zeros, page by page. The alignment is a power of two.
#[cold]
pub fn allocate(bytes: usize, align: usize, kind: Kind) -> Result<usize, NotFar> {
    let Some((far, _inside)) = for_program() else { return Err(NotFar::Near) };
    let place = far.take(bytes, align, kind);
    place.ok_or_else(|| {
        let (counter, why) = match far.full {
            Full::Refuse => (&far.counts.refused, NotFar::Refused),
            Full::Near => (&far.counts.near, NotFar::Near),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        why
    })
}

/// Pages that hold this many bytes; `None`: more than any far memory has.
fn pages(bytes: usize) -> Option<u32> {
    u32::try_from((bytes as u64).div_ceil(PAGE_BYTES)).ok()
}

impl Far {
    fn figures(&self) -> Figures {
        let in_use =
            [&self.counts.in_use, &self.counts.in_use_max].map(|pages| pages.load(Ordering::Relaxed));
        let [in_use_bytes, in_use_max_bytes] = in_use.map(|pages| u64::from(pages) * PAGE_BYTES);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            in_use_bytes,
            in_use_max_bytes,
            objects: load(&self.counts.objects),
            mappings: load(&self.counts.mappings),
            refused: load(&self.counts.refused),
            near: load(&self.counts.near),
            ..Figures::of(&self.memory.statistics())
        }
    }

    /// Works on the extents, behind their lock. A handler of the program must not run then: it might end the process, or allocate.
    fn with_extents<T>(&self, work: impl FnOnce(&mut Extents) -> T) -> T {
        with_signals_blocked(|| {
            let mut extents = self.extents.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut extents);
            let (now, most) = extents.in_use();
            self.counts.in_use.store(now, Ordering::Relaxed);
            self.counts.in_use_max.store(most, Ordering::Relaxed);
            done
        })
    }

    fn address(&self, page: u32) -> usize {
        self.start + page as usize * PAGE_BYTES as usize
    }

    /// The page at an address of far memory; `None`: the address is not a page's.
    fn page(&self, at: usize) -> Option<u32> {
        let offset = (at - self.start) as u64;
        offset.is_multiple_of(PAGE_BYTES).then_some((offset / PAGE_BYTES) as u32)
    }

    fn take(&self, bytes: usize, align: usize, kind: Kind) -> Option<usize> {
        let (pages, align) = (pages(bytes)?, pages(align)?);
        let start = self.with_extents(|extents| extents.take(pages, align))?;
        if kind == Kind::Object {
            self.object(start).store(pages, Ordering::Relaxed);
        }
        let counter = if kind == Kind::Object { &self.counts.objects } else { &self.counts.mappings };
        counter.fetch_add(1, Ordering::Relaxed);
        Some(self.address(start))
    }

    /// Takes free pages at an address for a new mapping.
    pub fn map_at(&self, at: usize, bytes: usize) -> bool {
        let is_taken = self.take_at(at, bytes);
        self.counts.mappings.fetch_add(is_taken.into(), Ordering::Relaxed);
        is_taken
    }

    /// Takes free pages at an address, by which a mapping grows.
    pub fn take_at(&self, at: usize, bytes: usize) -> bool {
        let (Some(start), Some(pages)) = (self.page(at), pages(bytes)) else { return false };
        let end = start.checked_add(pages);
        end.is_some_and(|end| self.with_extents(|extents| extents.take_at(start..end)))
    }

    fn object(&self, page: u32) -> &AtomicU32 {
        &self.objects[page as usize]
    }

    /// Bytes of the heap object that begins at an address of far memory; `None`: none does.
    pub fn object_bytes(&self, at: usize) -> Option<usize> {
        let pages = self.object(self.page(at)?).load(Ordering::Relaxed);
        (pages > 0).then_some(pages as usize * PAGE_BYTES as usize)
    }

    /// Frees the heap object at an address. Returns whether there was one.
    pub fn free(&self, at: usize) -> bool {
        let Some(start) = self.page(at) else { return false };
        let pages = self.object(start).swap(0, Ordering::Relaxed);
        self.release_pages(start..start + pages);
        pages > 0
    }

    /// Changes the length of the heap object at an address in place. Returns whether that was possible.
    pub fn resize(&self, at: usize, bytes: usize) -> bool {
        let (Some(start), Some(pages)) = (self.page(at), pages(bytes)) else { return false };
        let old = self.object(start).load(Ordering::Relaxed);
        let end = start.saturating_add(pages);
        if pages > old && !self.with_extents(|extents| extents.take_at(start + old..end)) {
            return false;
        }
        self.object(start).store(pages, Ordering::Relaxed);
        self.release_pages(end..start + old.max(pages));
        true
    }

    /// Frees pages of mappings, which are in far memory.
    pub fn release(&self, range: Range<usize>) {
        self.release_pages(self.whole_pages(range));
    }

    /// Drops the content of pages: the next access reads zeros. They stay in use. Returns whether that was possible; it is not after a
    /// loss.
    pub fn discard(&self, range: Range<usize>) -> bool {
        self.drop_content(self.whole_pages(range))
    }

    /// Replaces pages by those of a new mapping. Returns whether that was possible, as [`discard`](Far::discard) does.
    pub fn replace(&self, range: Range<usize>) -> bool {
        let pages = self.whole_pages(range);
        self.counts.mappings.fetch_add(1, Ordering::Relaxed);
        self.with_extents(|extents| extents.take_rest(pages.clone()));
        self.drop_content(pages)
    }

    /// Pages of a range that begins at a page; its last page counts whole, as the kernel counts.
    fn whole_pages(&self, range: Range<usize>) -> Range<u32> {
        let page_bytes = PAGE_BYTES as usize;
        let (from, to) = (range.start - self.start, range.end - self.start);
        (from / page_bytes) as u32..to.div_ceil(page_bytes) as u32
    }

    /// The lock is held until the content is gone: a page must not be taken again before. After a loss, pages stay taken: old bytes where
    /// the program expects zeros would be worse.
    fn release_pages(&self, range: Range<u32>) {
        if !range.is_empty() {
            self.with_extents(|extents| extents.release(range, |used| self.drop_content(used)));
        }
    }

    fn drop_content(&self, pages: Range<u32>) -> bool {
        let (at, bytes) = (u64::from(pages.start) * PAGE_BYTES, pages.len() as u64 * PAGE_BYTES);
        match is_stack_far() {
            true => with_signals_blocked(|| keeper::ask(Job::Discard(at, bytes))),
            false => self.drop_here(at, bytes),
        }
    }

    /// Drops content, under the mapping's lock. The mapping itself names the cause of a failure.
    fn drop_here(&self, at: u64, bytes: u64) -> bool {
        self.memory.discard(at, bytes).is_ok()
    }
}

/// Drops the content of far memory: an offset and bytes. Call it on a thread of the library.
pub fn discard(at: u64, bytes: u64) -> bool {
    FAR.get().is_some_and(|far| far.drop_here(at, bytes))
}

/// Whether the stack of this thread is in far memory.
pub fn is_stack_far() -> bool {
    let here = std::hint::black_box(0u8);
    is_far(&raw const here as usize)
}
