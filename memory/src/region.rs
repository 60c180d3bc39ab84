//! Another host's memory with a cache in local memory: byte-addressable, for several threads. docs/regions.md explains it.

pub use p4rack_hosts::region::{
    Counters, RegionConfig, RegionError, RemoteRegion, Statistics, View, ViewMut,
};

use crate::open::{connect, connect_extent};
use crate::{Access, Granted, OpenError};
use p4rack_codegen::Rack;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::Held;
use std::fmt;
use std::ops::Deref;

/// A cached region of another host's memory. Dropping it flushes nothing.
pub struct Region {
    region: RemoteRegion,
    way: Way,
    // Last: the lease ends after the way is closed.
    _held: Held,
}

impl Region {
    /// The way to it.
    pub fn way(&self) -> Way {
        self.way
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("way", &self.way).finish_non_exhaustive()
    }
}

impl Deref for Region {
    type Target = RemoteRegion;
    fn deref(&self) -> &RemoteRegion {
        &self.region
    }
}

/// Opens another host's memory as a region, from the calling thread's network namespace. `rack` is under the scheme that runs. Errors: the
/// memory can't be opened, or `config` does not suit it.
pub fn open(rack: &Rack, access: &Access<'_>, config: &RegionConfig) -> Result<Region, OpenError> {
    let (way, remote, held) = connect(rack, access)?;
    Ok(Region { region: RemoteRegion::new(remote, config)?, way, _held: held })
}

/// Opens an extent that a balloon has lent as a region: see [`open_extent`](crate::open_extent). An extent that is taken back is a loss,
/// which ends the region. Errors: the extent can't be opened, or `config` does not suit it.
pub fn open_extent(
    rack: &Rack,
    access: &Access<'_>,
    extent: &Granted,
    config: &RegionConfig,
) -> Result<Region, OpenError> {
    let (remote, held) = connect_extent(rack, access, extent)?;
    Ok(Region { region: RemoteRegion::new(remote, config)?, way: extent.way(), _held: held })
}
