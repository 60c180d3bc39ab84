//! Servers of the memory of all clients on a running rack: memory nodes, or boards or RDMA pools with a service that lends
//! their extents.

use super::setup::Setup;
use crate::error::LabError;
use crate::network::setup_ip;
use crate::process::{Process, START};
use crate::running::Running;
use crate::sys;
use crate::ways::Reach;
use p4rack_fabric::remote::{Service, Way};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

/// Port of the pool's service.
const SERVICE_PORT: u16 = 9_564;
/// Bytes of the key that boards and service share.
const KEY_BYTES: usize = 32;

/// The servers, in the order in which they were started.
pub(super) struct Serving {
    pub processes: Vec<Process>,
    /// Address of the service that lends extents, if one does.
    pub lends: Option<String>,
}

/// Starts all of it.
pub(super) fn serve(
    running: &Running<'_>,
    way: Way,
    setup: &Setup<'_>,
    clients: usize,
) -> Result<Serving, LabError> {
    if way.lends_extents() {
        return lend(running, way, setup, clients);
    }
    let mut processes = Vec::new();
    for server in &setup.cache.pool.memory {
        let bytes = setup.regions_at(way, server, clients) * setup.layout.region_bytes();
        if bytes > 0 {
            processes.extend(Reach { running, way, server }.serve(bytes, false)?);
        }
    }
    Ok(Serving { processes, lends: None })
}

/// Starts boards or pools, and the service at the first one's host.
fn lend(running: &Running<'_>, way: Way, setup: &Setup<'_>, clients: usize) -> Result<Serving, LabError> {
    // All of them have read it when they are ready.
    let (_key, path) = key()?;
    let bytes = setup.board_bytes(clients);
    let is_pool = way.definition().service == Service::Pool;
    // A pool's adapter may have the interface of the rack for itself.
    let ip = |host: &str| if is_pool { Ok(setup_ip(running.index(host)?)) } else { ip(running, host) };
    let (mut processes, mut nodes) = (Vec::new(), Vec::new());
    for host in &setup.cache.pool.memory {
        if is_pool {
            processes.push(Reach { running, way, server: host }.lending_pool(bytes, &path)?);
            nodes.extend(["--node".to_owned(), format!("{}:{}", ip(host)?, p4rack_memory::POOL_PORT)]);
            continue;
        }
        let at = format!("{}:{}", ip(host)?, p4rack_memory::BOARD_PORT);
        let words = ["clio", "serve", "--lend", &path, "--store", "0", "--insecure", "--grpc-server-addr"];
        let mut args: Vec<String> = words.map(str::to_owned).into();
        args.extend([at.clone(), "--bytes".to_owned(), format!("{bytes} B")]);
        args.extend(["--tenants", "1"].map(str::to_owned));
        processes.push(start(running, "the board", host, args)?);
        nodes.extend(["--node".to_owned(), at]);
    }
    let host = setup.cache.pool.memory.first().map_or("", String::as_str);
    let at = format!("{}:{SERVICE_PORT}", ip(host)?);
    let lease = setup.cache.pool.lease_s.to_string();
    let words =
        ["balloon", "serve", "--key", &path, "--lease", &lease, "--insecure", "--grpc-server-addr", &at];
    let args = words.map(str::to_owned).into_iter().chain(nodes).collect();
    processes.push(start(running, "the service of the pool", host, args)?);
    Ok(Serving { processes, lends: Some(at) })
}

/// A random key in memory, and the path under which the processes of the rack find it.
fn key() -> Result<(File, String), LabError> {
    let drawn = || {
        let mut bytes = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let mut file = sys::memory_file("p4rack-pool-key")?;
        file.write_all(&bytes)?;
        Ok(file)
    };
    let file: File = drawn().map_err(LabError::system("drawing the pool's key"))?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, path))
}

fn ip(running: &Running<'_>, host: &str) -> Result<Ipv4Addr, LabError> {
    Ok(running.rack.hosts[running.index(host)?].ip)
}

fn start(running: &Running<'_>, what: &str, host: &str, args: Vec<String>) -> Result<Process, LabError> {
    let mut process = Process::start(&format!("{what} on {host}"), running.namespace(host)?, args)?;
    process.wait_for_line("ready", START)?;
    Ok(process)
}
