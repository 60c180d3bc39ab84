//! Resources that processes have used.

use p4rack_wire::Nanos;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Largest id of a process (the kernel's `PID_MAX_LIMIT`). Larger ones would name other clocks.
const PID_MAX: u32 = 1 << 22;

/// Processor time of a process, of its ended threads and the kernel's work for it too. Errors: the process is gone.
pub fn cpu(pid: u32) -> Result<Nanos> {
    if pid > PID_MAX {
        return Err(Error::from_raw_os_error(libc::ESRCH));
    }
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: `clock` is live and exclusive. The call writes it, or returns an error.
    let failed = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if failed != 0 {
        return Err(Error::from_raw_os_error(failed));
    }
    // SAFETY: `time` is a live, exclusive timespec; a clock whose process has ended is an error.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(Error::last_os_error());
    }
    Ok(Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

/// Resident memory of a process, in bytes. Errors: the process is gone.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    memory(pid, "status", "VmRSS")
}

/// Memory of a process, in bytes, of which pages that several processes share count in parts (proportional set size). Errors: the
/// process is gone or another user's.
pub fn proportional_bytes(pid: u32) -> Result<u64> {
    memory(pid, "smaps_rollup", "Pss")
}

/// A line of a file about a process's memory.
fn memory(pid: u32, file: &str, key: &str) -> Result<u64> {
    let path = Path::new("/proc").join(pid.to_string()).join(file);
    let missing = || Error::new(ErrorKind::InvalidData, format!("{} has no {key}", path.display()));
    bytes_of(&std::fs::read_to_string(&path)?, key).ok_or_else(missing)
}

/// From now on the C library maps each new object of `bytes` or more, and unmaps it when it is freed. Otherwise it raises its limit to
/// the largest object that was freed, up to 32 MiB, and keeps memory of objects below for the next ones.
pub fn map_objects_from(bytes: usize) {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes a setting of the allocator, which locks it. An impossible one is ignored.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes.try_into().unwrap_or(i32::MAX));
    }
}

/// The number of kilobytes in the line with this key, in bytes.
fn bytes_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn memory_is_read_from_its_line() {
        let status = "VmPeak:\t  9 kB\nVmRSS:\t     12 kB\nRssAnon: 1 kB\n";
        assert_eq!((bytes_of(status, "VmRSS"), bytes_of(status, "Rss")), (Some(12 << 10), None));
        assert_eq!(bytes_of("VmRSS:\t many kB\n", "VmRSS"), None);
        assert_eq!(bytes_of("VmRSS:\t 18446744073709551615 kB\n", "VmRSS"), None);
        for memory in [resident_bytes, proportional_bytes] {
            assert!(memory(std::process::id()).is_ok_and(|bytes| bytes > 1 << 20));
        }
    }

    /// A thread's use is still counted when it has ended.
    #[test]
    fn ended_threads_count() {
        let before = cpu(std::process::id()).unwrap();
        let worked = std::thread::spawn(|| {
            let start = clock::thread_cpu();
            while clock::thread_cpu().saturating_sub(start) < Nanos::from_millis(5) {
                std::hint::spin_loop();
            }
            clock::thread_cpu().saturating_sub(start)
        });
        let worked = worked.join().unwrap();
        let used = cpu(std::process::id()).unwrap().saturating_sub(before);
        assert!(used >= worked, "{used:?} of {worked:?}");
    }

    #[test]
    fn processes_that_are_gone_are_errors() {
        // The largest id is beyond what systems give out by default; the others are none.
        for pid in [PID_MAX, i32::MAX as u32, u32::MAX] {
            assert_eq!(cpu(pid).unwrap_err().raw_os_error(), Some(libc::ESRCH), "{pid}");
            assert!(resident_bytes(pid).is_err());
        }
    }
}
