//! Another host's memory as ordinary memory of the process, its pages fetched when they are used. docs/far.md explains it.

pub use p4rack_hosts::paging::{
    Faults, Mapping, MappingConfig, MappingError, MappingStatistics, PAGE_BYTES, PageCounters,
    check_privileges, split, with_signals_blocked,
};

use crate::open::connect;
use crate::{Access, OpenError};
use p4rack_codegen::Rack;
use p4rack_fabric::remote::Way;
use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::Held;
use std::fmt;
use std::ops::Deref;
use std::sync::Mutex;

/// A mapping of another host's memory. Dropping it writes nothing back, and ends the range: nothing may use it after that.
pub struct Mapped {
    mapping: Mapping,
    way: Way,
    // Last: the lease ends after the way is closed. The lock makes it shareable; nothing takes it.
    _held: Mutex<Held>,
}

impl Mapped {
    /// The way to it.
    pub fn way(&self) -> Way {
        self.way
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("way", &self.way).finish_non_exhaustive()
    }
}

impl Deref for Mapped {
    type Target = Mapping;
    fn deref(&self) -> &Mapping {
        &self.mapping
    }
}

/// Opens another host's memory as a mapping, from the calling thread's network namespace, with a region of `region` behind its pages.
/// [`split`] divides local memory between the two. `rack` is under the scheme that runs. Errors: the memory can't be opened, the process
/// may not map it, or one of the configurations does not suit it.
pub fn open(
    rack: &Rack,
    access: &Access<'_>,
    region: &RegionConfig,
    config: &MappingConfig,
) -> Result<Mapped, OpenError> {
    // Threads of the way and of the region must not run the program's signal handlers.
    with_signals_blocked(|| {
        let (way, remote, held) = connect(rack, access)?;
        let region = Box::new(RemoteRegion::new(remote, region)?);
        Ok(Mapped { mapping: Mapping::new(region, config)?, way, _held: Mutex::new(held) })
    })
}
