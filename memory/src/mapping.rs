//! Another host's memory as ordinary memory of the process, its pages fetched when they are used. docs/far.md explains it.

pub use p4rack_hosts::paging::{
    Faults, Mapping, MappingConfig, MappingError, MappingStatistics, PAGE_BYTES, PageCounters,
    check_privileges, split, with_signals_blocked,
};

use crate::{Access, OpenError, region};
use p4rack_codegen::Rack;
use p4rack_hosts::region::RegionConfig;

/// Opens another host's memory as a mapping, from the calling thread's network namespace, with `region` as the cache behind its pages.
/// [`split`] divides local memory between the two. `rack` is under the scheme that runs. Errors: as [`region::open`]; the process may
/// not map it, or `config` does not suit it.
pub fn open(
    rack: &Rack,
    access: &Access<'_>,
    region: &RegionConfig,
    config: &MappingConfig,
) -> Result<Mapping, OpenError> {
    let region = with_signals_blocked(|| region::open(rack, access, region))?;
    Ok(Mapping::new(region, config)?)
}
