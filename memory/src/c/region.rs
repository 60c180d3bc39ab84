//! Cached regions, as `include/p4rack_region.h` declares and explains them.

use super::memory::{CallerAccess, described};
use super::status::Status;
use super::{tell, text};
use crate::region::{Region, RegionConfig, RegionError, open};
use std::ffi::{c_char, c_void};

/// How a region uses local memory; see the header.
#[derive(Debug)]
#[repr(C)]
pub struct CallerConfig {
    /// Bytes of local memory.
    pub local_bytes: u64,
    /// Name of the policy, or null.
    pub policy: *const c_char,
    /// Bytes of a block; 0: the policy's.
    pub block_bytes: u32,
}

/// Sizes of a region and what has happened in it; see the header.
#[derive(Debug, Default)]
#[repr(C)]
pub struct CallerStatistics {
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Bytes of local memory in use: blocks and tables.
    pub local_bytes: u64,
    /// Of them, tables.
    pub tables_bytes: u64,
    /// Accesses to blocks in the host's pages.
    pub from_host: u64,
    /// Accesses to other local blocks.
    pub from_device: u64,
    /// Accesses that waited for a fetch.
    pub from_remote: u64,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// Bytes written back.
    pub written_bytes: u64,
    /// Blocks that were prefetched.
    pub prefetched: u64,
    /// Of them, used.
    pub prefetched_used: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
}

fn status(done: Result<(), RegionError>) -> Status {
    match done {
        Ok(()) => Status::Ok,
        Err(RegionError::OutOfBounds { .. }) => Status::OutOfBounds,
        Err(RegionError::Lost(_)) => Status::Gone,
        Err(RegionError::Held(_) | RegionError::Crowded(_) | RegionError::Guards(_)) => Status::Busy,
        Err(RegionError::Length { .. } | RegionError::Empty) => Status::BadLength,
        Err(
            RegionError::Policy { .. }
            | RegionError::Block(_)
            | RegionError::Room(_)
            | RegionError::Long { .. }
            | RegionError::Thread(_)
            | RegionError::Way { .. },
        ) => Status::BadArgument,
    }
}

/// Opens another host's memory with a cache; see the header.
///
/// # Safety
/// `access` and `config` are one each or null; their texts end with a zero or are null. `error` can be written for `error_length` bytes or is
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_open(
    access: *const CallerAccess,
    config: *const CallerConfig,
    error: *mut c_char,
    error_length: usize,
) -> *mut Region {
    let opened = || -> Result<Region, String> {
        // SAFETY: the caller promises it of both.
        let (named, config) = unsafe { (described(access), config.as_ref()) };
        let (rack, access) = named?;
        let config = config.ok_or("config is NULL")?;
        // SAFETY: the caller promises it.
        let policy = unsafe { text(config.policy) }.transpose()?;
        let mut wanted = RegionConfig::new(config.local_bytes);
        wanted.policy = policy.map_or(wanted.policy, str::to_owned);
        wanted.block_bytes = (config.block_bytes > 0).then_some(config.block_bytes);
        open(&rack, &access, &wanted).map_err(|error| error.to_string())
    };
    match opened() {
        Ok(region) => Box::into_raw(Box::new(region)),
        Err(why) => {
            // SAFETY: the caller promises it.
            unsafe { tell(&why, error, error_length) };
            std::ptr::null_mut()
        }
    }
}

/// Ends a region; see the header.
///
/// # Safety
/// It is null, or of [`p4rack_region_open`], not ended yet, and used by no thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_close(region: *mut Region) {
    if !region.is_null() {
        // SAFETY: the caller promises it.
        drop(unsafe { Box::from_raw(region) });
    }
}

/// Reads bytes; see the header.
///
/// # Safety
/// The region is open or null; `bytes` can be written for `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_read(
    region: *const Region,
    address: u64,
    bytes: *mut c_void,
    length: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(region) = (unsafe { region.as_ref() }) else { return Status::BadArgument };
    if bytes.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let into = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), length) };
    status(region.read(address, into))
}

/// Writes bytes; see the header.
///
/// # Safety
/// The region is open or null; `bytes` can be read for `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_write(
    region: *const Region,
    address: u64,
    bytes: *const c_void,
    length: usize,
) -> Status {
    // SAFETY: the caller promises it.
    let Some(region) = (unsafe { region.as_ref() }) else { return Status::BadArgument };
    if bytes.is_null() {
        return Status::BadArgument;
    }
    // SAFETY: the caller promises it.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), length) };
    status(region.write(address, bytes))
}

/// Begins to fetch bytes; see the header.
///
/// # Safety
/// The region is open or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_prefetch(region: *const Region, address: u64, length: u64) -> Status {
    // SAFETY: the caller promises it.
    let Some(region) = (unsafe { region.as_ref() }) else { return Status::BadArgument };
    status(region.prefetch(address, length).map(drop))
}

/// Waits until all writes are in remote memory; see the header.
///
/// # Safety
/// The region is open or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_flush(region: *const Region) -> Status {
    // SAFETY: the caller promises it.
    let Some(region) = (unsafe { region.as_ref() }) else { return Status::BadArgument };
    status(region.flush())
}

/// Sizes, and what has happened so far; see the header.
///
/// # Safety
/// The region is open or null; `into` can be written or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4rack_region_statistics_of(
    region: *const Region,
    into: *mut CallerStatistics,
) -> Status {
    // SAFETY: the caller promises it of both.
    let Some((region, into)) = (unsafe { region.as_ref().zip(into.as_mut()) }) else {
        return Status::BadArgument;
    };
    let statistics = region.statistics();
    let (counters, block_bytes) = (statistics.counters, statistics.block_bytes);
    *into = CallerStatistics {
        region_bytes: region.region_bytes(),
        local_bytes: statistics.local_bytes,
        tables_bytes: statistics.tables_bytes,
        from_host: counters.from_host,
        from_device: counters.from_device,
        from_remote: counters.waited(),
        fetched_bytes: statistics.fetched_bytes(),
        written_bytes: statistics.written_bytes(),
        prefetched: counters.prefetched,
        prefetched_used: counters.prefetched_used,
        block_bytes,
    };
    Status::Ok
}
