//! Bytes that outlive or exceed a vector: a file's contents, or fresh pages that are taken when they are touched.

use crate::Error;
use crate::error::Context;
use crate::mapping::Mapping;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

/// Mapped bytes, readable and writable.
///
/// Pages of a file are shared with it: writes to them are in the file, for other processes as well, whether or not
/// this process ends in order. The file is locked against other p4rack processes for as long. The file must not be
/// truncated in that time.
#[derive(Debug)]
pub struct Pages {
    mapping: Mapping,
    /// Holds the lock.
    _file: Option<File>,
}

impl Pages {
    /// Fresh pages, filled with zeros. Errors: none, or more than the system has.
    pub fn fresh(bytes: u64) -> Result<Pages, Error> {
        let what = || format!("taking {bytes} bytes of memory");
        let mapping = Mapping::on_demand(None, length(bytes).context(what)?).context(what)?;
        Ok(Pages { mapping, _file: None })
    }

    /// The contents of a file. If there is none, one of `create_bytes` zeros is made.
    ///
    /// Errors: it is neither there nor to be made, has another length than `create_bytes`, is empty, or is locked.
    pub fn file(path: &Path, create_bytes: Option<u64>) -> Result<Pages, Error> {
        let what = || format!("opening {}", path.display());
        let wrong = |why: String, help: &str| {
            Err(Error::new(what(), io::Error::new(io::ErrorKind::InvalidInput, why)).help(help))
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options.create(create_bytes.is_some()).open(path).context(what).map_err(|error| {
            match error.source.kind() {
                io::ErrorKind::NotFound if create_bytes.is_none() => error.help("give its size to make it"),
                _ => error,
            }
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return wrong("another process serves it".to_owned(), "end that one, or name another file");
            }
            Err(TryLockError::Error(error)) => return Err(error).context(what),
        }
        let there = file.metadata().context(what)?.len();
        let bytes = match create_bytes {
            Some(bytes) if there == 0 => {
                file.set_len(bytes).context(what)?;
                bytes
            }
            Some(bytes) if there != bytes => {
                let why = format!("it has {there} bytes, not {bytes}");
                return wrong(why, "leave the size away to take the file as it is");
            }
            _ => there,
        };
        let mapping = Mapping::on_demand(Some(file.as_fd()), length(bytes).context(what)?).context(what)?;
        Ok(Pages { mapping, _file: Some(file) })
    }
}

/// Bytes of a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// Has the system keep memory of this process in huge pages from now on, as far as whole ones fit, so that random accesses need fewer
/// entries of the processor's TLB. Returns whether the system has accepted the advice; it may still have no huge pages free. Where it
/// hasn't, the memory is as before.
pub fn prefer_huge(memory: Range<*const u8>) -> bool {
    let is_taken = advise(&memory, libc::MADV_HUGEPAGE);
    // Moves what is there already. Before Linux 6.1, a thread of the kernel does it later.
    advise(&memory, libc::MADV_COLLAPSE);
    is_taken
}

/// Has the system back this memory with ordinary pages alone where nothing is touched yet, to compare with. Returns whether the system has
/// accepted the advice.
pub fn prefer_small(memory: Range<*const u8>) -> bool {
    advise(&memory, libc::MADV_NOHUGEPAGE)
}

/// Gives advice on the whole huge pages of a range. Returns whether it is accepted, and there is one.
fn advise(memory: &Range<*const u8>, advice: libc::c_int) -> bool {
    let start = (memory.start as usize).next_multiple_of(HUGE_BYTES);
    let end = memory.end as usize / HUGE_BYTES * HUGE_BYTES;
    let Some(bytes) = end.checked_sub(start).filter(|bytes| *bytes > 0) else { return false };
    // SAFETY: advice on huge pages does not change what the memory holds, whether it is mapped, or how it may be accessed; the kernel
    // refuses addresses that are not mapped.
    unsafe { libc::madvise(start as *mut libc::c_void, bytes, advice) == 0 }
}

/// Bytes that the processor loads together.
const LINE_BYTES: usize = 64;

/// Has the processor load memory into its cache while it goes on. Nothing is read: any range will do, even one that is not mapped.
#[inline]
pub fn prefetch(memory: Range<*const u8>) {
    let mut line = memory.start.map_addr(|at| at / LINE_BYTES * LINE_BYTES);
    while line < memory.end {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it is a hint, and no address is a wrong one.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
        }
        line = line.wrapping_add(LINE_BYTES);
    }
}

fn length(bytes: u64) -> io::Result<usize> {
    let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0 && *bytes <= isize::MAX as usize);
    fits.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} bytes can't be mapped")))
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        self.mapping.bytes()
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        self.mapping.bytes_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_written_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        let error = Pages::file(&path, None).unwrap_err().to_string();
        assert!(error.contains("region") && error.contains("size"), "{error}");
        let mut pages = Pages::file(&path, Some(5_000)).unwrap();
        assert_eq!(pages.as_ref(), vec![0; 5_000]);
        pages.as_mut()[4_999] = 7;
        assert_eq!(std::fs::read(&path).unwrap()[4_999], 7);
        let error = Pages::file(&path, None).unwrap_err().to_string();
        assert!(error.contains("another process"), "{error}");
        drop(pages);
        let error = Pages::file(&path, Some(4_096)).unwrap_err().to_string();
        assert!(error.contains("5000 bytes, not 4096"), "{error}");
        assert_eq!(Pages::file(&path, None).unwrap().as_ref()[4_999], 7);
        std::fs::write(&path, "").unwrap();
        assert!(Pages::file(&path, None).is_err());
    }

    /// Bytes of this process's mapping at an address that are in huge pages.
    fn huge_bytes_at(address: *const u8) -> Option<u64> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let mut is_here = false;
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next()?;
            if let Some((start, end)) = first.split_once('-') {
                let number = |text| u64::from_str_radix(text, 16).unwrap();
                is_here = (number(start)..number(end)).contains(&(address as u64));
            } else if is_here && first == "AnonHugePages:" {
                return words.next()?.parse::<u64>().ok().map(|kib| kib << 10);
            }
        }
        None
    }

    #[test]
    fn memory_in_huge_pages_has_the_same_content() {
        // A mapping of its own, which smaps lists.
        let mut pages = Pages::fresh(9 << 20).unwrap();
        for (at, byte) in pages.as_mut().iter_mut().enumerate() {
            *byte = (at >> 12) as u8;
        }
        let Range { start, end } = pages.as_ref().as_ptr_range();
        let is_taken = prefer_huge(start..end);
        assert!(pages.as_ref().iter().enumerate().all(|(at, byte)| *byte == (at >> 12) as u8));
        assert!(!prefer_huge(start..start), "no whole page");
        assert!(!prefer_huge(end..start), "an empty range");
        let middle = start.wrapping_add(4 << 20);
        match huge_bytes_at(middle) {
            Some(bytes) if bytes > 0 => assert!(is_taken && bytes % HUGE_BYTES as u64 == 0, "{bytes}"),
            found => {
                let said = format!(
                    "skipped: needs huge pages (AnonHugePages {found:?}), get them by Linux 6.1 or later with `madvise` in \
                     /sys/kernel/mm/transparent_hugepage/enabled and free memory\n"
                );
                // Past the harness, which hides what a passing test prints.
                let _ = std::io::stderr().write_all(said.as_bytes());
            }
        }
    }

    #[test]
    fn memory_in_small_pages_has_no_huge_ones() {
        let mut pages = Pages::fresh(9 << 20).unwrap();
        let Range { start, end } = pages.as_ref().as_ptr_range();
        let is_taken = prefer_small(start..end);
        pages.as_mut().fill(1);
        let found = huge_bytes_at(start.wrapping_add(4 << 20));
        match found.filter(|_| is_taken) {
            Some(bytes) => assert_eq!(bytes, 0),
            None => {
                // Past the harness, which hides what a passing test prints.
                let _ = writeln!(
                    std::io::stderr(),
                    "skipped: needs a kernel with transparent huge pages and /proc/self/smaps, get it by your distribution"
                );
            }
        }
    }

    #[test]
    fn any_range_may_be_loaded_ahead() {
        let bytes = [7u8; 300];
        prefetch(bytes.as_ptr_range());
        let nothing = std::ptr::null::<u8>();
        prefetch(nothing..nothing);
        prefetch(nothing..nothing.wrapping_add(1_000));
        assert_eq!(bytes, [7; 300]);
    }

    #[test]
    fn fresh_pages_are_zero_and_there_are_not_endlessly_many() {
        let mut pages = Pages::fresh(10).unwrap();
        pages.as_mut()[9] = 1;
        assert_eq!(pages.as_ref(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        for bytes in [0, u64::MAX, 1 << 62] {
            let error = Pages::fresh(bytes).unwrap_err().to_string();
            assert!(error.contains(&bytes.to_string()), "{error}");
        }
    }
}
