//! What a process of a rack has used so far.

use crate::error::LabError;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Processor time and memory of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processor time of all threads that still run, kernel included.
    pub(crate) cpu_ns: u64,
    /// Resident memory.
    pub(crate) resident_bytes: u64,
}

impl Usage {
    /// Usage of a process. Errors: it is gone.
    pub(crate) fn of(pid: u32) -> Result<Usage, LabError> {
        let folder = Path::new("/proc").join(pid.to_string());
        let status = folder.join("status");
        let text = fs::read_to_string(&status).map_err(LabError::file(&status))?;
        let missing =
            |what: &str| LabError::measurement(status.display().to_string(), format!("missing {what}"));
        let resident_bytes = resident_bytes(&text).ok_or_else(|| missing("VmRSS"))?;
        let tasks = folder.join("task");
        let mut cpu_ns = 0;
        for task in fs::read_dir(&tasks).map_err(LabError::file(&tasks))? {
            let path = task.map_err(LabError::file(&tasks))?.path().join("schedstat");
            let text = match fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if has_ended(&error) => continue,
                Err(error) => return Err(LabError::file(&path)(error)),
            };
            let missing = || LabError::measurement(path.display().to_string(), "missing its first number");
            cpu_ns += ran_ns(&text).ok_or_else(missing)?;
        }
        Ok(Usage { cpu_ns, resident_bytes })
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), |sum, one| Usage {
            cpu_ns: sum.cpu_ns + one.cpu_ns,
            resident_bytes: sum.resident_bytes + one.resident_bytes,
        })
    }
}

/// Whether a thread's file can't be read because the thread has just ended.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Resident memory in a process's `status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Time on a processor in a thread's `schedstat`: the first of its numbers.
fn ran_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_its_lines() {
        assert_eq!(resident_bytes("VmPeak:\t  9 kB\nVmRSS:\t     12 kB\nRssAnon: 1 kB\n"), Some(12 << 10));
        assert_eq!(resident_bytes("VmRSS:\t many kB\n"), None);
        assert_eq!((ran_ns("1234567 89 10\n"), ran_ns("")), (Some(1_234_567), None));
    }

    #[test]
    fn this_process_has_used_something_and_a_process_that_is_gone_is_an_error() {
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.cpu_ns > 0 && own.resident_bytes > 1 << 20, "{own:?}");
        // Larger than any process id.
        assert!(Usage::of(u32::MAX).is_err());
    }
}
