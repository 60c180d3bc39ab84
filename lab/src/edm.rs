//! EDM's part of a described rack: which hosts have memory, and how nodes on them are configured.

use crate::error::LabError;
use crate::network::HOST_INTERFACE;
use crate::running::Running;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::Host;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_hosts::memory::{ClientConfig, PortConfig};
use p4rack_wire::Nanos;

/// Key of regions that this crate serves.
pub const REGION_KEY: u32 = 1;
/// Timeout of a node where the switch remembers demands for less than half of it: processes of one machine wake late.
const TIMEOUT_MIN: Nanos = Nanos::from_millis(50);

/// Whether EDM runs on this rack.
pub fn runs(rack: &Rack) -> bool {
    rack.protocol::<Edm>().is_some()
}

/// The rack's EDM. Error: it has none.
fn of(rack: &Rack) -> Result<&Edm, LabError> {
    rack.protocol::<Edm>().ok_or_else(|| {
        let what = "has no EDM under this scheme: add an [edm] table, or choose a scheme with EDM";
        LabError::Unfit(format!("rack {}: {what}", rack.name))
    })
}

/// Number of a host as a node: its position in the rack.
pub fn node(rack: &Rack, name: &str) -> Result<u16, LabError> {
    let position = rack.hosts.iter().position(|host| host.name == name);
    position.and_then(|position| u16::try_from(position).ok()).ok_or_else(|| {
        let names: Vec<_> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
        LabError::NotThere(format!("no host is called `{name}`; there are {}", names.join(", ")))
    })
}

/// Number of a host that has memory. Error: it has none.
pub fn memory_node(rack: &Rack, name: &str) -> Result<u16, LabError> {
    let number = node(rack, name)?;
    let with_memory = &of(rack)?.memory;
    if !with_memory.iter().any(|host| host == name) {
        let why = format!("{name} is no memory node: edm.memory has {}", with_memory.join(", "));
        return Err(LabError::Unfit(why));
    }
    Ok(number)
}

/// Names of the hosts with memory.
pub fn memory_hosts(rack: &Rack) -> Result<&[String], LabError> {
    of(rack).map(|edm| edm.memory.as_slice())
}

fn port(rack: &Rack, host: &Host, interface: &str) -> Result<PortConfig, LabError> {
    Ok(PortConfig {
        interface: interface.to_owned(),
        ether_type: of(rack)?.ether_type,
        rate_bps: host.rate_bps,
        nodes: rack.hosts.iter().map(|host| host.mac).collect(),
        own: node(rack, &host.name)?,
    })
}

/// Configuration of a compute node on a host.
pub fn client(rack: &Rack, host: &Host, interface: &str) -> Result<ClientConfig, LabError> {
    let edm = of(rack)?;
    // The switch must have forgotten a demand before the node repeats it.
    let timeout = TIMEOUT_MIN.max(Nanos(edm.expiry(rack).0.saturating_mul(2)));
    let node = compute::Config {
        active_per_pair: edm.demands.try_into().unwrap_or(compute::ACTIVE_MAX),
        chunk_bytes: edm.chunk_bytes,
        window: edm.window,
        wait_unit: Nanos(rack.switch.time_unit_ns),
        message_bytes_max: edm.message_bytes_max,
        timeout,
        ..compute::Config::default()
    };
    Ok(ClientConfig { port: port(rack, host, interface)?, node })
}

/// Link and configuration of a memory node on a host. Error: the host has no memory.
pub fn server(rack: &Rack, host: &Host, interface: &str) -> Result<(PortConfig, memory::Config), LabError> {
    memory_node(rack, &host.name)?;
    let edm = of(rack)?;
    let node = memory::Config {
        chunk_bytes: edm.chunk_bytes.try_into().unwrap_or(u16::MAX),
        window: edm.window,
        wait_unit: Nanos(rack.switch.time_unit_ns),
        message_bytes_max: edm.message_bytes_max,
        ..memory::Config::default()
    };
    Ok((port(rack, host, interface)?, node))
}

/// Bytes that are written at once.
pub fn chunk_bytes(rack: &Rack) -> Result<u32, LabError> {
    of(rack).map(|edm| edm.chunk_bytes)
}

/// Maximum bytes per message.
pub fn message_bytes_max(rack: &Rack) -> Result<u32, LabError> {
    of(rack).map(|edm| edm.message_bytes_max)
}

/// Arguments of `p4rack` that serve fresh memory on a host of a running rack.
pub fn serve_args(running: &Running<'_>, host: &str, bytes: u64) -> Vec<String> {
    let words = ["memory", "serve", &running.path.display().to_string()].map(str::to_owned);
    let options = [
        ("--name", host.to_owned()),
        ("--interface", HOST_INTERFACE.to_owned()),
        ("--scheme", running.scheme.name()),
        ("--arch", running.rack.switch.arch.name().to_owned()),
        ("--bytes", format!("{bytes} B")),
        ("--key", REGION_KEY.to_string()),
    ];
    words.into_iter().chain(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value])).collect()
}
