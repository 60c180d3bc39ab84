//! Names of a board's offloads.

use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_p4rt::transport::{Share, Tenant};

/// Loaded offloads, of all tenants.
pub(super) const LOADED_MAX: u64 = 32;
/// Maximum characters of an offload's name.
pub(super) const NAME_CHARS: usize = 64;

/// An offload with its name.
#[derive(Debug)]
pub(super) struct Named {
    pub name: String,
    pub number: u64,
    pub credentials: Credentials,
    /// Bytes of its module, and of its own memory.
    pub bytes: [u64; 2],
    /// The tenant that has loaded it, with its shares for this: of offloads and of bytes. `None`: it is the
    /// board's own.
    pub owner: Option<(Tenant, [Share<Tenant>; 2])>,
}

/// Names of a board's offloads.
#[derive(Debug, Default)]
pub(super) struct Names(pub Vec<Named>);

impl Names {
    /// Adds an offload of the board's own.
    pub fn add_own(&mut self, name: &str, number: u64, credentials: Credentials, bytes: u64) {
        self.0.push(Named { name: name.to_owned(), number, credentials, bytes: [0, bytes], owner: None });
    }

    /// The name of the offload with this process.
    pub fn of(&self, space: Space) -> Option<&str> {
        let is_it =
            |named: &&Named| (named.credentials.pid, named.credentials.epoch) == (space.pid, space.epoch);
        self.0.iter().find(is_it).map(|named| named.name.as_str())
    }
}
