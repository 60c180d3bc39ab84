//! The parts of racks: switches, hosts, and links between them.

use super::check::{self, Draft};
use super::{Rack, RackError, Sink, Switch, Workload};
use crate::scheme::Protocol;
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Switches, hosts and links as plain values, which anybody may create; [`Rack::build`] checks them.
///
/// What a switch runs follows from its surroundings: [`generate`](crate::generate) makes the program and
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

    fn has(&self, end: impl Fn(&End) -> bool) -> bool {
        self.ends.iter().any(end)
    }
}

impl Rack {
    /// Checks a topology and builds a rack. The error names fields like a description's.
    pub fn build(topology: Topology) -> Result<Rack, RackError> {
        let mut sink = Sink::of_values();
        let rack = one_switch(&topology, &mut sink).and_then(|(switch, drafts)| {
            check::values(&topology.name, &switch, &drafts, &mut sink);
            if !sink.is_empty() {
                return None;
            }
            let Topology { name, protocols, workload, .. } = topology;
            check::finish(&mut sink, Some(name), Some(switch), drafts, protocols, workload)
        });
        match rack {
            Some(rack) if sink.is_empty() => Ok(rack),
            _ => Err(sink.into_error()),
        }
    }

    /// The rack as a topology.
    pub fn topology(&self) -> Topology {
        let link = |(position, host): (usize, &super::Host)| Link {
            rate_bps: Some(host.rate_bps),
            port_rate_bps: (host.port_rate_bps != host.rate_bps || self.shares(host))
                .then_some(host.port_rate_bps),
            ..Link::to_port(position, host.port)
        };
        let station = |host: &super::Host| Station {
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
    fn shares(&self, host: &super::Host) -> bool {
        self.hosts.iter().filter(|other| other.port == host.port).count() > 1
    }
}

/// The topology's only switch and the hosts at its ports. Everything that is generated, run, simulated or
/// controlled today is a rack with one switch; larger topologies are rejected here, and only here.
fn one_switch(topology: &Topology, sink: &mut Sink<'_>) -> Option<(Switch, Vec<Draft>)> {
    let switch = match topology.switches.as_slice() {
        [switch] => switch.clone(),
        switches => {
            let message =
                format!("are {}, but racks of one switch are all that is supported", switches.len());
            sink.refuse(&["switches"], message, "describe one switch and the hosts on it");
            return None;
        }
    };
    let mut drafts: Vec<Option<Draft>> = vec![None; topology.hosts.len()];
    for (n, link) in topology.links.iter().enumerate() {
        let field = format!("links[{n}]");
        if link.delay != Nanos::ZERO {
            let message = format!("of {} is not supported: links take what their medium takes", link.delay);
            sink.refuse(&[&format!("{field}.delay")], message, "write 0");
        }
        let (host, port) = match link.ends {
            [End::Host(host), End::Port(0, port)] | [End::Port(0, port), End::Host(host)] => (host, port),
            _ if link.has(|end| matches!(end, End::Port(switch, _) if *switch > 0)) => {
                sink.refuse(
                    &[&field],
                    "names a switch that is not there".to_owned(),
                    "write End::Port(0, …)",
                );
                continue;
            }
            _ => {
                let message = "does not connect a host with the switch".to_owned();
                sink.refuse(&[&field], message, "give it one end of each kind");
                continue;
            }
        };
        match (topology.hosts.get(host), drafts.get_mut(host)) {
            (Some(station), Some(place @ None)) => *place = Some(draft(host, station, port, link)),
            (Some(station), _) => {
                let message =
                    format!("is a second one of {}, but hosts have one link to the switch", station.name);
                sink.refuse(&[&field], message, "remove one of its links");
            }
            (None, _) => {
                let message = format!("names host {host}, but there are {}", topology.hosts.len());
                sink.refuse(&[&field], message, "name one of the hosts, from 0");
            }
        }
    }
    for (n, _) in drafts.iter().enumerate().filter(|(_, draft)| draft.is_none()) {
        sink.refuse(&[&format!("host[{n}]")], "hangs on no switch".to_owned(), "add a link");
    }
    drafts.into_iter().collect::<Option<Vec<Draft>>>().map(|drafts| (switch, drafts))
}

fn draft(position: usize, station: &Station, port: u16, link: &Link) -> Draft {
    Draft {
        field: format!("host[{position}]"),
        name: Some(station.name.clone()),
        port: Some(port),
        mac: Some(station.mac),
        ip: Some((station.ip, station.prefix)),
        rate_bps: link.rate_bps,
        port_rate_bps: link.port_rate_bps,
        foreign_percent: station.foreign_percent,
    }
}
