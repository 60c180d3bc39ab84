//! Racks from values instead of a file.

use super::check::{self, Draft};
use crate::rack::{End, Link, Rack, RackError, Sink, Station, Switch, Topology};
use p4rack_wire::Nanos;

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
        sink.refuse(&[&format!("host[{n}]")], "has no link".to_owned(), "add a link");
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
