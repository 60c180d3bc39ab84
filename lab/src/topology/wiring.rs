//! Namespaces and links of a topology.

use crate::error::LabError;
use crate::keep;
use crate::network::{HOST_INTERFACE, KernelLink, LINK_MTU, namespace, port_interface};
use p4rack_codegen::rack::End;
use p4rack_codegen::topology::{Host, Topology};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs};

/// Namespaces and links. They disappear with this value, which ends the processes inside.
#[derive(Debug)]
pub(super) struct Wiring {
    /// Namespace of all switches.
    pub(super) switches: NetNs,
    /// Namespaces of the hosts, in the topology's order.
    pub(super) hosts: Vec<NetNs>,
}

impl Wiring {
    /// Creates everything; all links are up.
    pub(super) fn create(topology: &Topology) -> Result<Wiring, LabError> {
        let switches = namespace()?;
        let hosts = topology.hosts.iter().map(|_| namespace()).collect::<Result<Vec<NetNs>, LabError>>()?;
        let end = |end: End| match end {
            End::Port(at, port) => {
                let name = topology.switches.get(at).map_or("", |switch| &switch.name);
                (port_interface(name, port), &switches)
            }
            End::Host(at) => (HOST_INTERFACE.to_owned(), &hosts[at]),
        };
        for link in &topology.links {
            let [(a, a_ns), (b, b_ns)] = link.ends.map(end);
            Links::add_veth(
                VethEnd { name: &a, ns: a_ns, mac: None },
                VethEnd { name: &b, ns: b_ns, mac: None },
            )?;
        }
        // The switches open their ports themselves; before that, both ends have to be up.
        switches.run(|| {
            let mut links = Links::open()?;
            let ports = topology.links.iter().flat_map(|link| link.ends).map(end);
            for (name, _) in ports.filter(|(name, _)| name != HOST_INTERFACE) {
                links.make_pipe(&name, LINK_MTU)?;
            }
            Ok::<_, p4rack_netdev::Error>(())
        })??;
        for (at, (host, ns)) in topology.hosts.iter().zip(&hosts).enumerate() {
            match topology.has_agent(at) {
                true => drop(ns.run(|| Links::open()?.make_pipe(HOST_INTERFACE, LINK_MTU))??),
                false => ns.run(|| give_to_kernel(topology, at, host))??,
            }
        }
        Ok(Wiring { switches, hosts })
    }

    /// All namespaces.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = &NetNs> {
        std::iter::once(&self.switches).chain(&self.hosts)
    }

    /// The namespace of a node.
    pub(super) fn of(&self, topology: &Topology, node: &str) -> Option<&NetNs> {
        match topology.host(node) {
            Some(at) => self.hosts.get(at),
            None => topology.switch(node).map(|_| &self.switches),
        }
    }
}

impl Drop for Wiring {
    fn drop(&mut self) {
        keep::end_residents(|| self.namespaces());
    }
}

/// Gives a host's link to the kernel, with its route.
fn give_to_kernel(topology: &Topology, at: usize, host: &Host) -> Result<(), p4rack_netdev::Error> {
    let Host { mac, ip, prefix, .. } = *host;
    let neighbours = rack_neighbours(topology, at);
    let mut links = KernelLink { mac, ip, prefix, rate_bps: rate_bps(topology, at), neighbours }.set_up()?;
    add_gateway(&mut links, HOST_INTERFACE, host)
}

/// Adds a host's default route, over an interface of the calling thread's namespace.
pub(super) fn add_gateway(
    links: &mut Links,
    interface: &str,
    host: &Host,
) -> Result<(), p4rack_netdev::Error> {
    let Some(gateway) = host.gateway else { return Ok(()) };
    if let Some(mac) = host.gateway_mac {
        links.add_neighbour(interface, gateway, mac)?;
    }
    links.add_default_route(interface, gateway)
}

/// Rate of a host's link.
fn rate_bps(topology: &Topology, host: usize) -> Option<u64> {
    let (link, switch, port) = topology.attachment(host)?;
    topology.rate_bps(switch, port, link)
}

/// The other hosts of a host's rack, which need no ARP.
fn rack_neighbours(topology: &Topology, host: usize) -> Vec<(std::net::Ipv4Addr, p4rack_wire::MacAddr)> {
    let Some((rack, own)) = topology.in_rack(host) else { return Vec::new() };
    let others = rack.hosts.iter().filter(|other| other.mac != own.mac);
    others.map(|other| (other.ip, other.mac)).collect()
}
