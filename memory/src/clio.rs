//! Clio's interface: allocation, locks, fences, the key-value store, offloads. [`open`](crate::open) opens a board's memory like any
//! other host's.
//!
//! A [`Session`] is a client of a process on a board. Its operations are those of the paper's interface (§3.1): [`Session::submit`] and
//! [`Session::poll`] for asynchronous ones, [`Session::ask`] for synchronous ones.

pub use p4rack_fabric::clio::lib::{Change, Operation, Outcome, Refused};
pub use p4rack_hosts::clio::{
    AskError, CHASE, ClioError, KEY_BYTES_MAX, KV, Kv, KvError, KvOutcome, KvRefused, KvRequest, KvShape,
    Patience, Reply, Session, Wanted, at_board, of_board,
};
pub use p4rack_offload::{Chase, VALUE_BYTES_MAX};
pub use p4rack_wire::clio::{PageSize, Rights, Status};

use crate::open::routed_here;
use crate::{Access, NoMemory, OpenError, patience};
use p4rack_codegen::Rack;
use p4rack_hosts::remote::RemoteError;
use p4rack_hosts::roce::setup::Server;

/// The set-up services of the boards of hosts. Of `access`, the way, the key and the engine mean nothing here. Errors: the rack has no
/// such host, the host has no board, or is named twice.
pub fn boards(rack: &Rack, access: &Access<'_>) -> Result<Vec<Server>, NoMemory> {
    crate::open::boards(rack, access)
}

/// The boards for a client on `access.host`. Errors: the rack has no such host, or no service is named and this is another host.
fn reached(rack: &Rack, access: &Access<'_>) -> Result<Vec<Server>, OpenError> {
    routed_here(rack, access)?;
    Ok(boards(rack, access)?)
}

/// Becomes a client of the boards of hosts: of a process of one's own on each, together with `access.reserve_bytes` bytes, or if that is 0
/// of those whose memory is offered to all. Errors: the rack has no such host, this is another, or its board can't be reached, or refuses.
pub fn open(rack: &Rack, access: &Access<'_>) -> Result<Session, OpenError> {
    open_wanted(rack, access, Wanted::bytes(access.reserve_bytes))
}

/// The same with `wanted` instead of `access.reserve_bytes`.
pub fn open_wanted(rack: &Rack, access: &Access<'_>, wanted: Wanted) -> Result<Session, OpenError> {
    let servers = reached(rack, access)?;
    Ok(Session::open_over(&servers, wanted, None, patience(rack)).map_err(RemoteError::from)?)
}

/// Becomes a client of the key-value store on a host's board, of several boards the first one's. Errors: the rack has no such host, or its
/// board can't be reached, or refuses.
pub fn open_kv(rack: &Rack, access: &Access<'_>, shape: KvShape) -> Result<Kv, OpenError> {
    let servers = reached(rack, access)?;
    let first = servers.first().ok_or_else(|| NoMemory("no host with a board is named".to_owned()))?;
    Ok(Kv::open(first, shape, patience(rack)).map_err(RemoteError::from)?)
}
