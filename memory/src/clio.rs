//! Clio's interface: allocation, locks, fences, the key-value store, offloads. [`open`](crate::open) opens a board's memory like any
//! other host's.
//!
//! A [`Session`] is a client of a process on a board. Its operations are those of the paper's interface (§3.1): [`Session::submit`] and
//! [`Session::poll`] for asynchronous ones, [`Session::ask`] for synchronous ones.

pub use p4rack_fabric::clio::lib::{Change, Operation, Outcome, Refused};
pub use p4rack_hosts::clio::{
    AskError, CHASE, ClioError, KEY_BYTES_MAX, KV, Kv, KvError, KvOutcome, KvRefused, KvRequest, KvShape,
    Patience, Reply, Session, Wanted,
};
pub use p4rack_offload::{Chase, VALUE_BYTES_MAX};
pub use p4rack_wire::clio::{PageSize, Rights, Status};

use crate::open::routed_here;
use crate::{Access, BOARD_PORT, NoMemory, OpenError, node, patience};
use p4rack_codegen::Rack;
use p4rack_hosts::remote::RemoteError;
use p4rack_hosts::roce::setup::Server;

/// The set-up service of a host's board. Of `access`, the way, the key and the engine mean nothing here. Errors: the rack has no such
/// host.
pub fn board(rack: &Rack, access: &Access<'_>) -> Result<Server, NoMemory> {
    let there = &rack.hosts[usize::from(node(rack, access.at)?)];
    let addr = access.memory.map_or_else(|| format!("{}:{BOARD_PORT}", there.ip), str::to_owned);
    Ok(Server { addr, tls: access.tls.clone() })
}

/// The board's service for a client on `access.host`. Errors: the rack has no such host, or no service is named and this is another host.
fn reached(rack: &Rack, access: &Access<'_>) -> Result<Server, OpenError> {
    routed_here(rack, access)?;
    Ok(board(rack, access)?)
}

/// Becomes a client of a host's board: of a process of one's own with `access.reserve_bytes` bytes, or if that is 0 of the one whose
/// memory is offered to all. Errors: the rack has no such host, this is another, or its board can't be reached, or refuses.
pub fn open(rack: &Rack, access: &Access<'_>) -> Result<Session, OpenError> {
    let server = reached(rack, access)?;
    Ok(Session::open(&server, access.reserve_bytes, patience(rack)).map_err(RemoteError::from)?)
}

/// The same with `wanted` instead of `access.reserve_bytes`.
pub fn open_wanted(rack: &Rack, access: &Access<'_>, wanted: Wanted) -> Result<Session, OpenError> {
    let server = reached(rack, access)?;
    Ok(Session::open_as(&server, wanted, None, patience(rack)).map_err(RemoteError::from)?)
}

/// Becomes a client of the key-value store on a host's board. Errors: the rack has no such host, this is another, or its board can't be reached, or
/// refuses.
pub fn open_kv(rack: &Rack, access: &Access<'_>, shape: KvShape) -> Result<Kv, OpenError> {
    let server = reached(rack, access)?;
    Ok(Kv::open(&server, shape, patience(rack)).map_err(RemoteError::from)?)
}
