//! The parts of racks: switches, hosts, and links between them.

use super::{Host, Protocol, Rack, Switch, Workload};
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Switches, hosts and links as plain values, which any caller may create; [`Rack::build`] checks them.
///
/// A switch's program follows from its surroundings: [`generate`](crate::generate) makes the program and
/// entries of a rack's switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Name of the rack and of the generated files.
    pub name: String,
    /// Switches of the rack.
    pub switches: Vec<Switch>,
    /// Hosts of the rack.
    pub hosts: Vec<Station>,
    /// Links between nodes; a host may have links to several switches.
    pub links: Vec<Link>,
    /// Protocols that run beside plain switching, in the order of the pipeline.
    pub protocols: Vec<Arc<dyn Protocol>>,
    /// The workload of `p4rack up`.
    pub workload: Option<Workload>,
}

/// A host, independent of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Name of the host.
    pub name: String,
    /// MAC address of its interface.
    pub mac: MacAddr,
    /// IP address of the host.
    pub ip: Ipv4Addr,
    /// Prefix length of the subnet.
    pub prefix: u8,
    /// For a link to other racks: share of the ports' rate, in percent, left to traffic from there.
    pub foreign_percent: Option<u32>,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Both ends of the link.
    pub ends: [End; 2],
    /// Rate in bits per second; `None` is the rate of the switch's ports.
    pub rate_bps: Option<u64>,
    /// Rate of the switch port, if several hosts share it through a break-out or one card.
    pub port_rate_bps: Option<u64>,
    /// Delay from one end to the other; 0 is the medium's default.
    pub delay: Nanos,
}

/// An end of a link. Nodes are identified by their positions in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A host.
    Host(usize),
    /// A switch and its port.
    Port(usize, u16),
}

impl Link {
    /// A link from a host to a port of the first switch, at the rate of its ports.
    pub fn to_port(host: usize, port: u16) -> Link {
        let ends = [End::Host(host), End::Port(0, port)];
        Link { ends, rate_bps: None, port_rate_bps: None, delay: Nanos::ZERO }
    }

    /// Whether one of its ends is like this.
    pub(crate) fn has(&self, end: impl Fn(&End) -> bool) -> bool {
        self.ends.iter().any(end)
    }
}

impl Rack {
    /// The rack as a topology.
    pub fn topology(&self) -> Topology {
        let link = |(position, host): (usize, &Host)| Link {
            rate_bps: Some(host.rate_bps),
            port_rate_bps: (host.port_rate_bps != host.rate_bps || self.shares(host))
                .then_some(host.port_rate_bps),
            ..Link::to_port(position, host.port)
        };
        let station = |host: &Host| Station {
            name: host.name.clone(),
            mac: host.mac,
            ip: host.ip,
            prefix: host.prefix,
            foreign_percent: host.foreign_percent,
        };
        Topology {
            name: self.name.clone(),
            switches: vec![self.switch.clone()],
            hosts: self.hosts.iter().map(station).collect(),
            links: self.hosts.iter().enumerate().map(link).collect(),
            protocols: self.protocols.clone(),
            workload: self.workload.clone(),
        }
    }

    /// Whether another host uses the same port.
    fn shares(&self, host: &Host) -> bool {
        self.hosts.iter().filter(|other| other.port == host.port).count() > 1
    }
}
