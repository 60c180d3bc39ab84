//! Key-value servers of other projects, in place of the store's own: their start, and their limits.

use super::memcached::Memcached;
use super::piped::PipedStore;
use super::redis::Redis;
use crate::error::LabError;
use crate::process::{self, Process};
use crate::results::Skipped;
use crate::running::Running;
use crate::ycsb::Store;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{KvServer, StoreParameters};
use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Memory of a server that holds no records.
const EMPTY_BYTES: u64 = 64 << 20;
/// Bytes that a server may need for a record beside its value: keys, heads, pointers, the number of its writes.
const RECORD_BYTES: u64 = 256;

/// The reason if a server can't run on this machine.
pub(crate) fn missing(server: KvServer) -> Option<Skipped> {
    let needs = program(server);
    process::on_path(needs).is_none().then(|| Skipped {
        name: server.name().to_owned(),
        needs: needs.to_owned(),
        // Debian's packages have the names of their programs.
        get_it_by: format!("sudo apt-get install {needs}"),
    })
}

const fn program(server: KvServer) -> &'static str {
    match server {
        KvServer::Redis => "redis-server",
        KvServer::Memcached => "memcached",
    }
}

/// Checks that such a server can have the store's records.
pub(crate) fn check(rack: &Rack, server: KvServer, store: &StoreParameters) -> Result<(), LabError> {
    let refuse = |what: &str| Err(LabError::Unfit(format!("rack {}: {server} {what}", rack.name)));
    if !store.value_bytes.is_multiple_of(8) {
        return refuse("needs values that can be checked: set workload.value_bytes to a multiple of 8");
    }
    if store.bulk.is_some() {
        return refuse("takes no bulk traffic beside its clients: remove workload.bulk");
    }
    Ok(())
}

/// Bytes that a server may use, twice what the records take. Beyond them it refuses to write.
fn memory_bytes(store: &StoreParameters) -> u64 {
    EMPTY_BYTES + 2 * u64::from(store.records) * (u64::from(store.value_bytes) + RECORD_BYTES)
}

/// Starts a server on a host. It writes nothing to disk, and listens at the host's address in its namespace alone. Clients connect once
/// it is ready.
pub(super) fn start(
    running: &Running<'_>,
    server: KvServer,
    host: &str,
    at: SocketAddr,
    store: &StoreParameters,
) -> Result<Process, LabError> {
    let (ip, port, bytes) = (at.ip().to_string(), at.port().to_string(), memory_bytes(store));
    let found = process::on_path(program(server)).unwrap_or_else(|| program(server).into());
    let mut command = Command::new(found);
    command.stdin(Stdio::null());
    match server {
        KvServer::Redis => {
            command.args(["--bind", &ip, "--port", &port, "--protected-mode", "no"]);
            command.args(["--save", "", "--appendonly", "no"]);
            command.args(["--maxmemory", &bytes.to_string(), "--maxmemory-policy", "noeviction"]);
        }
        KvServer::Memcached => {
            // Another user would not be in the user namespace of a rack without root.
            command.args(["-u", "root", "-l", &ip, "-p", &port, "-U", "0"]);
            // One thread, as Redis has: a node of a rack shares its machine's cores with all others.
            command.args(["-t", "1", "-M", "-m", &bytes.div_ceil(1 << 20).to_string()]);
        }
    }
    let name = format!("{} on {host}", program(server));
    Process::start_program(&name, running.namespace(host)?, command)
}

/// Connects to a server. `seed` is the seed of the client's values.
pub(super) fn connect(
    server: KvServer,
    at: SocketAddr,
    value_bytes: usize,
    seed: u64,
) -> io::Result<Box<dyn Store>> {
    Ok(match server {
        KvServer::Redis => Box::new(PipedStore::connect(at, Redis::new(value_bytes, seed))?),
        KvServer::Memcached => Box::new(PipedStore::connect(at, Memcached::new(value_bytes, seed))?),
    })
}
