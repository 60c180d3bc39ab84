//! Remote memory for programs, as a rack's description defines it: the hosts with memory, and the configuration of EDM's nodes on
//! them. [`clio`] has Clio's interface, [`region`] regions with a cache in local memory. [`c`] has the same for C, and Cowbird's
//! client; the headers in `include/` declare them. [`mapping`] has regions as ordinary memory, [`far`] the parts that
//! programs with far memory need.

pub mod c;
pub mod clio;
pub mod far;
pub mod mapping;
mod open;
pub mod region;

pub use open::{Access, Memory, OpenError, board, open, open_extent, patience, way};
pub use p4rack_hosts::remote::Granted;

use p4rack_codegen::Rack;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_fabric::edm::host::memory;
use p4rack_hosts::memory::{ClientConfig, NodeAddress, PortConfig};
use p4rack_wire::Nanos;

/// Minimum timeout of a node, if the switch remembers demands for less than half of it: processes that share a machine wake late.
const TIMEOUT_MIN: Nanos = Nanos::from_millis(50);

/// Port at which hosts offer bytes over TCP.
pub const BYTES_PORT: u16 = 7_004;

/// Port of the set-up service of a host's pool.
pub const POOL_PORT: u16 = 9_561;

/// Port of the set-up service of a host's board of Clio.
pub const BOARD_PORT: u16 = 9_563;

/// Why a rack has no such memory. The message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoMemory(String);

/// Whether EDM runs on this rack.
pub fn runs(rack: &Rack) -> bool {
    rack.protocol::<Edm>().is_some()
}

/// The rack's EDM. Error: it has none.
pub fn edm(rack: &Rack) -> Result<&Edm, NoMemory> {
    rack.protocol::<Edm>().ok_or_else(|| {
        let what = "has no EDM under this scheme: add an [edm] table, or choose a scheme with EDM";
        NoMemory(format!("rack {}: {what}", rack.name))
    })
}

/// Number of a host as a node: its position in the rack.
pub fn node(rack: &Rack, name: &str) -> Result<u16, NoMemory> {
    let position = rack.hosts.iter().position(|host| host.name == name);
    position.and_then(|position| u16::try_from(position).ok()).ok_or_else(|| {
        let names: Vec<_> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
        NoMemory(format!("no host is called `{name}`; there are {}", names.join(", ")))
    })
}

/// Number of a host that has memory. Error: it has none.
pub fn memory_node(rack: &Rack, name: &str) -> Result<u16, NoMemory> {
    let number = node(rack, name)?;
    let with_memory = &edm(rack)?.memory;
    if !with_memory.iter().any(|host| host == name) {
        return Err(NoMemory(format!("{name} is no memory node: edm.memory has {}", with_memory.join(", "))));
    }
    Ok(number)
}

/// `interface`: names of a host's interfaces, one for each switch, with commas between.
fn port(rack: &Rack, host: &Host, interface: &str) -> Result<PortConfig, NoMemory> {
    let interfaces = interfaces(rack, interface).map_err(NoMemory)?;
    Ok(PortConfig {
        interfaces,
        ether_type: edm(rack)?.ether_type,
        rate_bps: host.rate_bps,
        nodes: rack.hosts.iter().map(|host| NodeAddress { name: host.name.clone(), mac: host.mac }).collect(),
        own: node(rack, &host.name)?,
    })
}

/// The interfaces that a text names, with commas between. Error: there are not as many as switches, or one is named twice.
pub fn interfaces(rack: &Rack, named: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = named.split(',').map(|name| name.trim().to_owned()).collect();
    let tors = usize::from(rack.switch.tors);
    if let Some(twice) =
        names.iter().enumerate().find_map(|(nth, name)| names[..nth].contains(name).then_some(name))
    {
        return Err(format!("`{named}` names `{twice}` twice: write the interface to each switch once"));
    }
    if names.len() == tors && names.iter().all(|name| !name.is_empty()) {
        return Ok(names);
    }
    let example: Vec<String> = (0..tors).map(|nth| format!("eth{nth}")).collect();
    Err(format!(
        "`{named}` is not the name of one interface for each switch, and rack {} has {tors}: write {}",
        rack.name,
        example.join(",")
    ))
}

/// Configuration of a compute node on a host.
pub fn client(rack: &Rack, host: &Host, interface: &str) -> Result<ClientConfig, NoMemory> {
    let edm = edm(rack)?;
    let node = edm.compute_node(rack, TIMEOUT_MIN.max(edm.patience(rack)));
    Ok(ClientConfig { port: port(rack, host, interface)?, node })
}

/// Link and configuration of a memory node on a host. Error: the host has no memory.
pub fn server(rack: &Rack, host: &Host, interface: &str) -> Result<(PortConfig, memory::Config), NoMemory> {
    memory_node(rack, &host.name)?;
    Ok((port(rack, host, interface)?, edm(rack)?.memory_node(rack)))
}
