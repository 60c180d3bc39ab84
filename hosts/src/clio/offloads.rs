//! Offloads of a board: its own, and those that clients load.

use super::error::BoardError;
use super::names::{NAME_CHARS, Named};
use super::server::Host;
use p4rack_fabric::clio::board::Space;
use p4rack_offload::Facts;
use p4rack_offload::wasm::{Program, Wasm};
use p4rack_p4rt::transport::{Share, Tenant};

/// Why an offload is not loaded or removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum OffloadError {
    #[error(
        "name: `{0}`; write 1 to {NAME_CHARS} letters, digits, '-', '_' and '.', but not `all` or `client`"
    )]
    Name(String),
    #[error("name: the board has an offload `{0}` already; remove it first, or choose another name")]
    Taken(String),
    #[error("name: the board has no offload `{0}`; it has {1}")]
    Unknown(String, String),
    #[error("name: `{0}` is the board's own, or another client's: only what loaded an offload removes it")]
    NotOwner(String),
    #[error(transparent)]
    Board(#[from] BoardError),
}

/// An offload, as lists show it.
#[derive(Debug)]
pub(super) struct Described {
    pub name: String,
    pub bytes: [u64; 2],
    pub facts: Facts,
}

/// Whether an offload may have this name.
fn check(name: &str) -> Result<(), OffloadError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match name.len() {
        // Lists of processes mean others by these.
        1..=NAME_CHARS if name.bytes().all(is_known) && !["all", "client"].contains(&name) => Ok(()),
        _ => Err(OffloadError::Name(name.chars().take(NAME_CHARS).collect())),
    }
}

impl Host {
    /// Loads a program as an offload. Returns its number.
    pub(super) fn load(
        &mut self,
        name: String,
        program: Program,
        bytes: [u64; 2],
        owner: (Tenant, [Share<Tenant>; 2]),
    ) -> Result<u64, OffloadError> {
        check(&name)?;
        if self.names.0.iter().any(|named| named.name == name) {
            return Err(OffloadError::Taken(name));
        }
        let (credentials, range) = self.create(bytes[1], false)?;
        let own = Space { pid: credentials.pid, epoch: credentials.epoch };
        let wasm = Wasm::new(program, own, (range.address, range.bytes));
        let number = self.offloads.add(own, Box::new(wasm));
        self.names.0.push(Named { name, number, credentials, bytes, owner: Some(owner) });
        Ok(number)
    }

    /// Removes an offload that this tenant has loaded, and frees its memory.
    pub(super) fn unload(&mut self, name: &str, tenant: &Tenant) -> Result<(), OffloadError> {
        let Some(at) = self.names.0.iter().position(|named| named.name == name) else {
            let names: Vec<_> = self.names.0.iter().map(|named| named.name.as_str()).collect();
            let shown = name.chars().take(NAME_CHARS).collect();
            return Err(OffloadError::Unknown(shown, names.join(", ")));
        };
        let is_owner = self.names.0[at].owner.as_ref().is_some_and(|(owner, _)| owner == tenant);
        if !is_owner {
            return Err(OffloadError::NotOwner(name.to_owned()));
        }
        let named = self.names.0.remove(at);
        self.offloads.remove(named.number);
        self.destroy(named.credentials);
        Ok(())
    }

    /// All offloads, in the order of their numbers.
    pub(super) fn described(&self) -> Vec<Described> {
        let describe = |named: &Named| {
            let facts = self.offloads.facts(named.number)?;
            Some(Described { name: named.name.clone(), bytes: named.bytes, facts })
        };
        let mut all: Vec<_> = self.names.0.iter().filter_map(describe).collect();
        all.sort_by_key(|described| described.facts.number);
        all
    }
}
