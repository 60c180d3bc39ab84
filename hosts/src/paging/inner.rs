//! State that threads share: pages behind a lock, their memory, the region; and the execution of works.

use super::config::PAGE_BYTES;
use super::error::MappingError;
use super::memory::Memory;
use super::pages::{BATCH, Bytes, Op, Pages, Step, Work};
use super::table::{Buffer, Page};
use super::twin::{self, Changed, PageBytes};
use crate::region::RemoteRegion;
use crate::remote::Piece;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Message of a failed check.
const UNANSWERED: &str =
    "its faults can't be answered any more, as after the program closed the descriptor of userfaultfd";

/// Works that are carried out together.
pub(super) type Batch = [Option<Work>; BATCH];

/// State behind the lock.
pub(super) struct Locked {
    pub pages: Pages,
    /// Threads that wait for a change.
    sleepers: u32,
    /// Whether the reclaimer waits until room is short.
    pub(super) reclaimer_rests: bool,
    pub(super) is_closing: bool,
    lost: Option<String>,
    /// How often pages have left together.
    pub(super) leavings: u32,
}

/// See the [module](self).
///
/// No thread touches the range while it holds a lock of this value or of the region, and none of their threads run handlers of signals
/// that the program has. So a thread that faults holds none of them, and may take them in its handler.
pub(super) struct Inner {
    pub memory: Memory,
    region: Box<dyn Deref<Target = RemoteRegion> + Send + Sync>,
    block_bytes: u32,
    locked: Mutex<Locked>,
    changed: Condvar,
    /// Wakes the reclaimer.
    pub(super) short: Condvar,
    /// Whether operations begin late, so that other threads meet a planted mistake.
    #[cfg(test)]
    pub pauses: std::sync::atomic::AtomicBool,
}

impl Inner {
    pub fn new(
        memory: Memory,
        region: Box<dyn Deref<Target = RemoteRegion> + Send + Sync>,
        pages: Pages,
    ) -> Inner {
        let block_bytes = region.statistics().block_bytes;
        let locked =
            Locked { pages, sleepers: 0, reclaimer_rests: false, is_closing: false, lost: None, leavings: 0 };
        let (changed, short) = (Condvar::new(), Condvar::new());
        Inner {
            memory,
            region,
            block_bytes,
            locked: Mutex::new(locked),
            changed,
            short,
            #[cfg(test)]
            pauses: false.into(),
        }
    }

    pub fn region(&self) -> &RemoteRegion {
        &self.region
    }

    pub fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change.
    pub fn wait<'a>(&self, mut locked: MutexGuard<'a, Locked>) -> MutexGuard<'a, Locked> {
        locked.sleepers += 1;
        let mut locked = self.changed.wait(locked).unwrap_or_else(PoisonError::into_inner);
        locked.sleepers -= 1;
        locked
    }

    /// Gives back the memory of a free buffer.
    pub fn release(&self, locked: &mut Locked, buffer: Buffer) {
        match self.memory.release(buffer) {
            Ok(()) => locked.pages.released(buffer),
            Err(error) => self.lose(locked, &format!("giving back memory: {error}")),
        }
    }

    /// Ends the reclaimer.
    pub fn close(&self) {
        self.lock().is_closing = true;
        self.short.notify_one();
        self.changed.notify_all();
    }

    /// Carries out works without the lock, each operation for all of them before the next. Leaves the batch empty.
    pub fn carry_out<'a>(
        &'a self,
        locked: MutexGuard<'a, Locked>,
        batch: &mut Batch,
    ) -> MutexGuard<'a, Locked> {
        if batch[0].is_none() {
            return locked;
        }
        drop(locked);
        let mut changed = [Changed::default(); BATCH];
        let mut done = Ok(());
        for number in 0..3 {
            done = done.and_then(|()| self.operations(batch, number, &mut changed));
        }
        let mut locked = self.lock();
        match done {
            Ok(()) => {
                for (work, changed) in batch.iter().flatten().zip(changed) {
                    locked.pages.done(work, changed);
                }
            }
            Err(error) => {
                batch.iter().flatten().for_each(|work| locked.pages.failed(work));
                self.lose(&mut locked, &error.to_string());
            }
        }
        batch.fill(None);
        self.changed_now(&locked);
        locked
    }

    /// A work on its own.
    pub fn carry_out_one<'a>(&'a self, locked: MutexGuard<'a, Locked>, work: Work) -> MutexGuard<'a, Locked> {
        drop(locked);
        let mut ops = work.ops.iter().flatten();
        let done = ops.try_fold(Changed::default(), |changed, op| {
            if *op == Op::Drop {
                self.lock().pages.dropping(&work);
            }
            Ok::<_, MappingError>(self.operation(&work, *op)?.unwrap_or(changed))
        });
        let mut locked = self.lock();
        match done {
            Ok(changed) => locked.pages.done(&work, changed),
            Err(error) => {
                locked.pages.failed(&work);
                self.lose(&mut locked, &error.to_string());
            }
        }
        self.changed_now(&locked);
        locked
    }

    fn changed_now(&self, locked: &Locked) {
        if locked.sleepers > 0 {
            self.changed.notify_all();
        }
        if locked.reclaimer_rests && locked.pages.is_short() && !locked.pages.leave_alone() {
            self.short.notify_one();
        }
    }

    /// The operation of this number of all works.
    fn operations(
        &self,
        batch: &Batch,
        number: usize,
        changed: &mut [Changed; BATCH],
    ) -> Result<(), MappingError> {
        let (mut protected, mut dropped) = (Few::default(), Few::default());
        for (work, changed) in batch.iter().flatten().zip(changed) {
            match work.ops[number] {
                Some(Op::Protect) => protected.push(work.page),
                Some(Op::Drop) => dropped.push(work.page),
                Some(op) => *changed = self.operation(work, op)?.unwrap_or(*changed),
                None => {}
            }
        }
        #[cfg(test)]
        self.pause();
        if dropped.count > 0 {
            let mut locked = self.lock();
            batch.iter().flatten().for_each(|work| locked.pages.dropping(work));
        }
        let protect = |(first, count)| self.memory.protect(first, count);
        protected.runs().try_for_each(protect).map_err(failed("protecting pages"))?;
        self.memory.drop_pages(dropped.as_slice()).map_err(failed("dropping pages"))
    }

    /// An operation on a page, of the thread that has its work. See [`super::memory`] for why buffers and pages in place are its own.
    /// Returns the pieces that it wrote to the region.
    fn operation(&self, work: &Work, op: Op) -> Result<Option<Changed>, MappingError> {
        #[cfg(test)]
        self.pause();
        let page = work.page;
        match op {
            Op::Protect => self.memory.protect(page, 1).map_err(failed("protecting a page"))?,
            Op::Unprotect => self.memory.unprotect(page).map_err(failed("ending a page's protection"))?,
            Op::Drop => self.memory.drop_pages(&[page]).map_err(failed("dropping a page"))?,
            Op::Save(buffer) => {
                // SAFETY: the page is in place and protected, and the buffer this work's.
                let (from, to) = unsafe { (self.memory.placed(page), self.memory.buffer(buffer)) };
                to.copy_from_slice(from);
            }
            Op::Fetch(buffer) => {
                // SAFETY: the buffer is this work's.
                self.fetch(work, unsafe { self.memory.buffer(buffer) })?;
            }
            Op::FetchInPlace => {
                let mut bytes = [0; PAGE_BYTES];
                self.fetch(work, &mut bytes)?;
                self.memory.fill(page, &bytes, true).map_err(failed("filling a page"))?;
            }
            Op::Fill { from, protected } => {
                let filled = self.memory.fill(page, self.bytes(work, from), protected);
                filled.map_err(failed("filling a page"))?;
            }
            Op::WriteBack { now, twin } => {
                if now == Bytes::Place {
                    self.memory.confirm(page).map_err(failed("copying a page"))?;
                }
                let (now, twin) = (self.bytes(work, now), self.bytes(work, twin));
                let changed = twin::changed(now, twin, self.block_bytes);
                for block in twin::blocks(changed.pieces, self.block_bytes) {
                    let at = u64::from(page) * PAGE_BYTES as u64 + block.start as u64;
                    self.region.write(at, &now[block])?;
                }
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }

    #[cfg(test)]
    fn pause(&self) {
        if self.pauses.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }

    fn bytes(&self, work: &Work, from: Bytes) -> &PageBytes {
        match from {
            // SAFETY: the buffer is this work's.
            Bytes::Buffer(buffer) => unsafe { self.memory.buffer(buffer) },
            // SAFETY: the page is in place and protected.
            Bytes::Place => unsafe { self.memory.placed(work.page) },
            Bytes::Zeros => Memory::zeros(),
        }
    }

    /// Fetches the page from the region. Its missing blocks are fetched together.
    fn fetch(&self, work: &Work, into: &mut PageBytes) -> Result<(), MappingError> {
        let at = u64::from(work.page) * PAGE_BYTES as u64;
        if work.content == u8::MAX {
            return Ok(self.region.read(at, into)?);
        }
        let mut pieces = [Piece { at: 0, bytes: 0 }; 4];
        let (mut count, mut total) = (0, 0);
        for (piece, (start, bytes)) in pieces.iter_mut().zip(twin::runs(work.content)) {
            *piece = Piece { at: at + start as u64, bytes: bytes as u32 };
            (count, total) = (count + 1, total + bytes);
        }
        self.region.gather(&pieces[..count], &mut into[..total])?;
        twin::spread(into, work.content);
        Ok(())
    }

    /// Remote memory is lost, or the kernel refuses a necessary operation. Says so once. If faults can't be answered
    /// either, the whole range becomes inaccessible: accesses would wait without end.
    pub fn lose(&self, locked: &mut Locked, why: &str) {
        // The first reason is the cause of others.
        let changed = self.memory.uffd().check_changed().err().map(|changed| changed.to_string());
        let why = changed.as_deref().unwrap_or(why);
        match self.memory.check() {
            Ok(()) => self.note_loss(locked, why, "Accesses to its absent pages end in SIGBUS"),
            Err(error) => self.lose_all(locked, &format!("{why}, {error}")),
        }
    }

    /// No thread is left to answer faults: the whole range becomes inaccessible, also if remote memory was lost before.
    /// Says so once, and before that, as the program may end with it.
    pub fn lose_all(&self, locked: &mut Locked, why: &str) {
        self.note_loss(locked, &format!("{UNANSWERED}: {why}"), "All accesses to it end in SIGSEGV");
        if let Err(error) = self.memory.deny_all() {
            say(&format!(
                "p4rack: protecting it failed: {error}. Accesses to absent pages never end: end the program.\n"
            ));
        }
    }

    fn note_loss(&self, locked: &mut Locked, why: &str, end: &str) {
        if locked.lost.is_none() {
            say(&format!("p4rack: a mapping of remote memory is lost: {why}. {end}.\n"));
            locked.lost = Some(why.to_owned());
        }
        locked.pages.lose();
        self.changed.notify_all();
    }

    /// Why the mapping is lost.
    pub fn lost(&self, locked: &Locked) -> MappingError {
        MappingError::Lost(locked.lost.clone().unwrap_or_default())
    }

    /// Serves a fault on a page that was absent or protected. Returns whether nothing had to be done: then a thread that waits for the page may have to be woken. Errors: the
    /// mapping is lost.
    pub fn serve(&self, page: Page, writes: bool, is_absent: bool) -> Result<bool, MappingError> {
        let mut locked = self.lock();
        match writes {
            true => locked.pages.counters.write_faults += 1,
            false => locked.pages.counters.read_faults += 1,
        }
        loop {
            // Most often the fault is late, and another one has brought the page. It can't leave while the lock is held.
            if is_absent
                && locked.pages.is_in_place(page)
                && let Err(error) = self.memory.confirm(page)
            {
                locked.pages.stick(page);
                self.lose(&mut locked, &error.to_string());
                return Err(self.lost(&locked));
            }
            match locked.pages.fault(page, writes) {
                Step::Ready => return Ok(true),
                Step::Wait => {
                    locked.pages.counters.joined += 1;
                    locked = self.wait(locked);
                }
                Step::Room => locked = self.make_room(locked),
                Step::Release(buffer) => self.release(&mut locked, buffer),
                Step::Work(work) => {
                    locked = self.carry_out_one(locked, work);
                    // After a loss, the next answer says whether the page came into place.
                    if !locked.pages.is_lost() {
                        return Ok(false);
                    }
                }
                Step::Lost => return Err(self.lost(&locked)),
            }
        }
    }
}

/// Writes to standard error without its lock, which the thread that faults may hold.
fn say(text: &str) {
    if let Ok(fd) = io::stderr().as_fd().try_clone_to_owned() {
        // There is no other place to report to.
        let _ = File::from(fd).write_all(text.as_bytes());
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> MappingError {
    move |source| MappingError::System { what, source }
}

/// Numbers of up to [`BATCH`] pages.
#[derive(Default)]
struct Few {
    pages: [Page; BATCH],
    count: usize,
}

impl Few {
    fn push(&mut self, page: Page) {
        self.pages[self.count] = page;
        self.count += 1;
    }

    fn as_slice(&self) -> &[Page] {
        &self.pages[..self.count]
    }

    /// Runs of neighbours: the first page of each, and how many.
    fn runs(&mut self) -> impl Iterator<Item = (Page, u32)> + '_ {
        let pages = &mut self.pages[..self.count];
        pages.sort_unstable();
        pages.chunk_by(|one, next| one + 1 == *next).map(|run| (run[0], run.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_protected_with_one_call() {
        let mut few = Few::default();
        [9, 3, 4, 8, 1, 5].into_iter().for_each(|page| few.push(page));
        assert_eq!(few.runs().collect::<Vec<_>>(), [(1, 1), (3, 3), (8, 2)]);
    }
}
