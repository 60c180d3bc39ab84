//! Functions that a module may import.

use super::{Limits, MEMORY};
use std::fmt;
use wasmi::errors::{HostError, LinkerError};
use wasmi::{
    Caller, Engine, Error, Extern, Linker, Memory, ResourceLimiter, StoreLimits, StoreLimitsBuilder,
};

/// The imports' module, and their names.
pub(super) const MODULE: &str = "clio";
pub(super) const NAMES: [&str; 6] = ["arguments", "read", "write", "result", "own_start", "own_bytes"];

/// Elements of a module's tables.
const TABLE_ELEMENTS: usize = 4_096;

/// State of a call.
pub(super) struct Host {
    arguments: Vec<u8>,
    pub results: Vec<u8>,
    results_max: usize,
    pub has_written: bool,
    range: (u64, u64),
    limits: StoreLimits,
}

/// An access that ends a part of the module's execution: only the offload has a view of virtual memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    Read(Access),
    Write(Access),
}

/// Bytes of virtual memory, and their place in the module's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub space: u32,
    pub address: u64,
    pub at: u32,
    pub bytes: u32,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an access of virtual memory")
    }
}

impl HostError for Ask {}

impl Host {
    pub fn new(arguments: &[u8], range: (u64, u64), limits: &Limits) -> Host {
        let store = StoreLimitsBuilder::new().memory_size(limits.memory_bytes).table_elements(TABLE_ELEMENTS);
        Host {
            arguments: arguments.to_vec(),
            results: Vec::new(),
            results_max: limits.result_bytes,
            has_written: false,
            range,
            limits: store.instances(1).memories(1).tables(4).build(),
        }
    }

    pub fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.limits
    }
}

/// The memory of the module that calls.
fn memory(caller: &Caller<'_, Host>) -> Result<Memory, Error> {
    let memory = caller.get_export(MEMORY).and_then(Extern::into_memory);
    memory.ok_or_else(|| Error::new("it has no memory"))
}

fn outside(at: u32, bytes: usize) -> Error {
    Error::new(format!("{bytes} bytes at {at:#x} are outside of its memory"))
}

/// All imports.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Host>, LinkerError> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(MODULE, "arguments", |mut caller: Caller<'_, Host>, into: u32| {
        // The copy costs as much as one by the module.
        let (left, cost) = (caller.get_fuel()?, caller.data().arguments.len() as u64 / 8);
        caller.set_fuel(left.saturating_sub(cost))?;
        let (bytes, host) = memory(&caller)?.data_and_store_mut(&mut caller);
        let end = (into as usize).checked_add(host.arguments.len());
        let place = end.and_then(|end| bytes.get_mut(into as usize..end));
        place.ok_or_else(|| outside(into, host.arguments.len()))?.copy_from_slice(&host.arguments);
        Ok(())
    })?;
    linker.func_wrap(MODULE, "result", |mut caller: Caller<'_, Host>, from: u32, bytes: u32| {
        let (memory, host) = memory(&caller)?.data_and_store_mut(&mut caller);
        if host.has_written {
            return Err(Error::new("it has written, so its call must have no results"));
        }
        let end = (from as usize).checked_add(bytes as usize);
        let found = end.and_then(|end| memory.get(from as usize..end));
        let found = found.ok_or_else(|| outside(from, bytes as usize))?;
        if host.results.len() + found.len() > host.results_max {
            return Err(Error::new(format!("its results have more than {} bytes", host.results_max)));
        }
        host.results.extend_from_slice(found);
        Ok(())
    })?;
    linker.func_wrap(MODULE, "own_start", |caller: Caller<'_, Host>| caller.data().range.0)?;
    linker.func_wrap(MODULE, "own_bytes", |caller: Caller<'_, Host>| caller.data().range.1)?;
    linker.func_wrap(
        MODULE,
        "read",
        |_: Caller<'_, Host>, space: u32, address: u64, at: u32, bytes: u32| -> Result<u32, Error> {
            Err(Error::host(Ask::Read(Access { space, address, at, bytes })))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "write",
        |mut caller: Caller<'_, Host>, space: u32, address: u64, at: u32, bytes: u32| -> Result<u32, Error> {
            let host = caller.data_mut();
            if !host.results.is_empty() {
                return Err(Error::new("it has results, so its call must not write"));
            }
            host.has_written = true;
            Err(Error::host(Ask::Write(Access { space, address, at, bytes })))
        },
    )?;
    Ok(linker)
}
