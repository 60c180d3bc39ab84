//! Resources that a process of a rack has used so far.

use crate::error::LabError;
use p4rack_netdev::process;
use p4rack_wire::Nanos;

/// Processor time and memory of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Processor time, the kernel's for it included.
    pub(crate) cpu: Nanos,
    /// Resident memory.
    pub(crate) resident_bytes: u64,
}

impl Usage {
    /// Usage of a process. Errors: it is gone.
    pub(crate) fn of(pid: u32) -> Result<Usage, LabError> {
        let failed = |error: std::io::Error| {
            LabError::measurement(format!("processor time and memory of process {pid}"), error.to_string())
        };
        let cpu = process::cpu(pid).map_err(failed)?;
        Ok(Usage { cpu, resident_bytes: process::resident_bytes(pid).map_err(failed)? })
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), |sum, one| Usage {
            cpu: sum.cpu + one.cpu,
            resident_bytes: sum.resident_bytes + one.resident_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_processes_adds_up_and_of_one_that_is_gone_is_an_error() {
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.cpu > Nanos::ZERO && own.resident_bytes > 1 << 20, "{own:?}");
        let twice: Usage = [own, own].into_iter().sum();
        assert_eq!((twice.cpu, twice.resident_bytes), (own.cpu + own.cpu, 2 * own.resident_bytes));
        // Larger than any process id.
        assert!(Usage::of(u32::MAX).is_err());
    }
}
