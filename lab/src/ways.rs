//! Ways to remote memory on a running rack: servers of the memory, and access of a client's process.

use crate::edm::{self, REGION_KEY};
use crate::error::LabError;
use crate::network::{HOST_INTERFACE, host_interfaces, setup_ip, switch_setup_ip};
use crate::process::{Process, START};
use crate::running::Running;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_fabric::hostile::cowbird::Attack;
use p4rack_fabric::remote::{Engine, Service, Way};
use p4rack_hosts::memory::Remote as EdmRemote;
use p4rack_hosts::remote::{self, Attachment, Opened, Shape};
use p4rack_memory::POOL_PORT;
use p4rack_wire::roce::Mtu;
use std::net::Ipv4Addr;

/// Port of the engine's set-up service.
const ENGINE_PORT: u16 = 9_562;

/// Whose memory clients use on a running rack, and by which way.
pub(crate) struct Reach<'a> {
    /// The rack.
    pub(crate) running: &'a Running<'a>,
    /// The way.
    pub(crate) way: Way,
    /// Host with the memory.
    pub(crate) server: &'a str,
}

impl Reach<'_> {
    /// Starts a server of `bytes` bytes, to all clients or to one that reserves them, and an engine if the way has one.
    pub(crate) fn serve(&self, bytes: u64, shared: bool) -> Result<Vec<Process>, LabError> {
        match self.way.definition().service {
            Service::None => Ok(Vec::new()),
            Service::Node => {
                let args = edm::serve_args(self.running, self.server, bytes);
                Ok(vec![self.start("the memory node", self.server, args)?])
            }
            service @ (Service::Bytes | Service::Board) => {
                let path = self.running.path.display().to_string();
                let mut args = words(&["memory", "serve", &path, "--name", self.server, "--way"]);
                args.extend([self.way.name().to_owned(), "--insecure".to_owned()]);
                // A described board has the memory of the description.
                if service != Service::Board || self.running.rack.protocol::<Clio>().is_none() {
                    args.extend(["--bytes".to_owned(), format!("{bytes} B")]);
                }
                // All clients are the rack's, and one of them may need all of it.
                if service == Service::Board {
                    args.extend(words(&["--tenants", "1"]));
                }
                let what = if service == Service::Board { "the board" } else { "the server of bytes" };
                Ok(vec![self.start(what, self.server, args)?])
            }
            Service::Pool => {
                let mut serving = vec![self.pool(bytes, shared)?];
                serving.extend(self.engine()?);
                Ok(serving)
            }
        }
    }

    fn pool(&self, bytes: u64, shared: bool) -> Result<Process, LabError> {
        let mut args = words(&["roce", "serve", "--memory"]);
        match shared {
            true => args.push(format!("{bytes} B")),
            // Half of what can be reserved is kept for other hosts.
            false => {
                args.extend(["4 KiB".to_owned(), "--reserve".to_owned(), format!("{} B", 2 * bytes)]);
            }
        }
        args.extend(adapter(self.running, self.server)?);
        args.extend(self.peers(self.server)?);
        args.extend(listen(setup_ip(self.running.index(self.server)?), POOL_PORT));
        self.start("the pool", self.server, args)
    }

    /// Starts a pool that lends all of its `bytes` bytes, as the key in a file permits.
    pub(crate) fn lending_pool(&self, bytes: u64, key: &str) -> Result<Process, LabError> {
        let mut args = words(&["roce", "serve", "--memory", "4 KiB", "--tenants", "1", "--lend", key]);
        args.extend(["--reserve".to_owned(), format!("{bytes} B")]);
        args.extend(adapter(self.running, self.server)?);
        args.extend(self.peers(self.server)?);
        args.extend(listen(setup_ip(self.running.index(self.server)?), POOL_PORT));
        self.start("the pool", self.server, args)
    }

    fn engine(&self) -> Result<Option<Process>, LabError> {
        let pool = at(setup_ip(self.running.index(self.server)?), POOL_PORT);
        match (self.way.definition().engine, self.spare()) {
            (Some(Engine::Host), Some(host)) => {
                let mut args = words(&["cowbird", "engine", "--pool", &pool]);
                args.extend(adapter(self.running, host)?);
                args.extend(self.peers(host)?);
                args.extend(listen(setup_ip(self.running.index(host)?), ENGINE_PORT));
                self.start("the engine", host, args).map(Some)
            }
            (Some(Engine::Switch), _) => {
                let path = self.running.path.display().to_string();
                let mut args = words(&["cowbird", "switch", &path, "--pool", &pool]);
                args.extend(["--scheme".to_owned(), self.running.scheme.name()]);
                args.extend(["--arch".to_owned(), self.running.rack.switch.arch.name().to_owned()]);
                args.extend(listen(switch_setup_ip(), ENGINE_PORT));
                let name = "the controller of the engine in the switch";
                ready(Process::start(name, &self.running.network.switch, args)?).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The hosts that may be peers of a host's pool or engine, and the rate of its link.
    fn peers(&self, host: &str) -> Result<Vec<String>, LabError> {
        let path = self.running.path.display().to_string();
        let rate = format!("{} b/s", self.running.rack.hosts[self.running.index(host)?].rate_bps);
        Ok(words(&["--rack", &path, "--setup-first", &setup_ip(0).to_string(), "--rate", &rate]))
    }

    /// Arguments of the program that attacks from a host.
    pub(crate) fn attacker(&self, host: &str, attack: Attack) -> Result<Vec<String>, LabError> {
        let mut args = words(&["hostile", &self.running.path.display().to_string(), "--name", host]);
        args.extend(words(&["--interface", HOST_INTERFACE, "--attack", attack.name(), "--scheme"]));
        args.push(self.running.scheme.name());
        args.extend(self.services()?);
        Ok(args)
    }

    /// The spare host for an engine.
    fn spare(&self) -> Option<&str> {
        self.running.rack.engine()
    }

    /// Options of a client's process on a host, as [`End`] has them.
    pub(crate) fn client(&self, host: &str) -> Result<Vec<String>, LabError> {
        let mut args = client(self.running, host)?;
        args.extend(["--way".to_owned(), self.way.name().to_owned()]);
        args.extend(self.services()?);
        Ok(args)
    }

    /// Options that say where the memory and an engine are.
    pub(crate) fn services(&self) -> Result<Vec<String>, LabError> {
        let (server, mut args) = (self.running.index(self.server)?, Vec::new());
        match self.way.definition().service {
            Service::Pool => args.extend(["--memory".to_owned(), at(setup_ip(server), POOL_PORT)]),
            service @ (Service::Bytes | Service::Board) => {
                let ip = self.running.rack.hosts[server].ip;
                let is_board = service == Service::Board;
                let port = if is_board { p4rack_memory::BOARD_PORT } else { p4rack_memory::BYTES_PORT };
                args.extend(["--memory".to_owned(), at(ip, port)]);
            }
            Service::None | Service::Node => {}
        }
        let engine = match (self.way.definition().engine, self.spare()) {
            (Some(Engine::Host), Some(host)) => Some(setup_ip(self.running.index(host)?)),
            (Some(Engine::Switch), _) => Some(switch_setup_ip()),
            _ => None,
        };
        args.extend(engine.into_iter().flat_map(|ip| ["--engine".to_owned(), at(ip, ENGINE_PORT)]));
        Ok(args)
    }

    /// Starts a process on a host, and waits until it is ready.
    fn start(&self, what: &str, host: &str, args: Vec<String>) -> Result<Process, LabError> {
        ready(Process::start(&format!("{what} on {host}"), self.running.namespace(host)?, args)?)
    }
}

/// Options of a client's process on a host, whatever its way.
pub(crate) fn client(running: &Running<'_>, host: &str) -> Result<Vec<String>, LabError> {
    let mut args = words(&["--name", host, "--arch", running.rack.switch.arch.name(), "--scheme"]);
    args.push(running.scheme.name());
    args.extend(adapter(running, host)?);
    Ok(args)
}

/// Options of a host's adapter.
fn adapter(running: &Running<'_>, host: &str) -> Result<Vec<String>, LabError> {
    let ip = running.rack.hosts[running.index(host)?].ip;
    let mtu = mtu(running.rack);
    let interfaces = host_interfaces(running.rack).join(",");
    let mut options = words(&["--interface", &interfaces, "--ip", &ip.to_string()]);
    // A switch that rewrites packets can't compute iCRCs. So that ways can be compared, none checks them.
    options.extend(["--mtu".to_owned(), mtu.bytes().to_string(), "--ignore-icrc".to_owned()]);
    Ok(options)
}

/// Payload of a packet of RDMA on a rack.
pub(crate) fn mtu(rack: &Rack) -> Mtu {
    rack.protocol::<Cowbird>().map_or(Mtu::B1024, |cowbird| cowbird.mtu)
}

fn ready(mut process: Process) -> Result<Process, LabError> {
    process.wait_for_line("ready", START)?;
    Ok(process)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn at(ip: Ipv4Addr, port: u16) -> String {
    format!("{ip}:{port}")
}

/// Where a set-up service listens. Only the rack's processes reach it.
fn listen(ip: Ipv4Addr, port: u16) -> Vec<String> {
    words(&["--insecure", "--grpc-server-addr", &at(ip, port)])
}

/// A client's end of a way, as passed to its process.
#[derive(Clone, Debug)]
pub struct End {
    /// The way.
    pub way: Way,
    /// Scheme of the switch.
    pub scheme: Scheme,
    /// Architecture of the switch's program.
    pub arch: Arch,
    /// Name of the client's host.
    pub name: String,
    /// Its attachment, except for a node of EDM.
    pub attachment: Attachment,
}

impl End {
    /// Opens it, for the memory of the server of the description's workload.
    pub(crate) fn open(self, rack: &Rack, shape: Shape) -> Result<Opened, LabError> {
        self.open_at(rack, rack.workload.as_ref().map_or("", |workload| workload.ends().0), shape)
    }

    /// Opens it, for the memory of a server.
    pub(crate) fn open_at(self, rack: &Rack, server: &str, shape: Shape) -> Result<Opened, LabError> {
        let mut attachment = self.attachment;
        if self.way.definition().service == Service::Board {
            attachment.patience = p4rack_memory::patience(rack);
        }
        if self.way.definition().service == Service::Node {
            let rack = rack.on(self.arch).under(self.scheme);
            let rack = rack.map_err(|error| LabError::Unfit(error.to_string()))?;
            let remote = EdmRemote { node: p4rack_memory::memory_node(&rack, server)?, key: REGION_KEY };
            let own = &rack.hosts[usize::from(p4rack_memory::node(&rack, &self.name)?)];
            attachment.node = Some((p4rack_memory::client(&rack, own, &attachment.interface)?, remote));
        }
        remote::open(self.way, attachment, shape)
            .map_err(|error| LabError::measurement(format!("{} on {}", self.way, self.name), error))
    }
}
