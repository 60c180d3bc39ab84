//! Checks links of a topology: their ends, ports, and what a rack expects at its own.

use super::drafts::{EndDraft, HostDraft, LinkDraft};
use super::{Link, Runs, Switch};
use crate::rack::{End, Host, Rack, Sink};
use p4rack_p4rt::nearest::nearest;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Longest delay of a link.
pub(super) const DELAY_MAX: Nanos = Nanos::from_secs(10);
/// Largest port number of an architecture (`bit<9>`).
const PORT_MAX: u16 = 511;

/// Names of the nodes, by position; `None` could not be read.
#[derive(Debug)]
pub(super) struct Nodes<'a> {
    pub(super) switches: Vec<Option<&'a str>>,
    pub(super) hosts: Vec<Option<&'a str>>,
}

impl Nodes<'_> {
    fn end(&self, end: &EndDraft) -> Result<End, (String, String)> {
        let at = |names: &[Option<&str>]| names.iter().position(|name| *name == Some(end.node.as_str()));
        match (at(&self.switches), at(&self.hosts), end.port) {
            (Some(switch), _, Some(port)) if (1..=PORT_MAX).contains(&port) => Ok(End::Port(switch, port)),
            (Some(_), _, Some(port)) => Err((
                format!("{port} is no port number from 1 to {PORT_MAX}"),
                "write another one".to_owned(),
            )),
            (Some(_), _, None) => Err((
                format!("`{}` is a switch, and names no port", end.node),
                format!("write \"{}:1\" for its port 1", end.node),
            )),
            (None, Some(host), None) => Ok(End::Host(host)),
            (None, Some(_), Some(_)) => Err((
                format!("`{}` is a host, which has no port numbers", end.node),
                format!("write \"{}\"", end.node),
            )),
            (None, None, _) => {
                let known = self.switches.iter().chain(&self.hosts).flatten().copied();
                let help = match nearest(&end.node, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "write the name of a switch or a host".to_owned(),
                };
                Err((format!("`{}` is neither a switch nor a host", end.node), help))
            }
        }
    }
}

impl Link {
    /// Whether one of its ends is this host.
    pub(super) fn joins_host(&self, host: usize) -> bool {
        self.ends.contains(&End::Host(host))
    }
}

/// Links with known ends, in the drafts' order; `None` for those with mistakes.
pub(super) fn resolve(sink: &mut Sink<'_>, nodes: &Nodes<'_>, drafts: &[LinkDraft]) -> Vec<Option<Link>> {
    let mut taken: BTreeMap<(bool, usize, u16), &str> = BTreeMap::new();
    let mut links = Vec::new();
    for draft in drafts {
        let Some(ends) = &draft.ends else {
            links.push(None);
            continue;
        };
        let [a, b] = ends.each_ref().map(|end| match nodes.end(end) {
            Ok(found) => Some(found),
            Err((message, help)) => {
                sink.refuse(&[&end.field], message, help);
                None
            }
        });
        let (Some(a), Some(b)) = (a, b) else {
            links.push(None);
            continue;
        };
        let mut is_new = true;
        for (end, known) in ends.iter().zip([a, b]) {
            let (key, what) = match known {
                End::Host(host) => ((true, host, 0), format!("host {}", end.node)),
                End::Port(switch, port) => ((false, switch, port), format!("port {port} of {}", end.node)),
            };
            if let Some(first) = taken.get(&key).filter(|_| a != b) {
                let message = format!("{what} is {first}'s already");
                sink.refuse(&[&end.field], message, "a port and a host have one link each");
                is_new = false;
            }
            taken.insert(key, &draft.field);
        }
        let ordered = match (a, b) {
            (End::Host(_), End::Host(_)) => {
                let message = "connects two hosts".to_owned();
                sink.refuse(&[&draft.field], message, "hosts connect to switches: put one between them");
                None
            }
            (End::Port(one, _), End::Port(other, _)) if one == other => {
                let name = &ends[0].node;
                let message = format!("connects {name} with itself");
                sink.refuse(
                    &[&draft.field],
                    message,
                    "a loop can't be here: connect two switches, or a host",
                );
                None
            }
            (host @ End::Host(_), port) => Some([port, host]),
            (port, other) => Some([port, other]),
        };
        links.push(ordered.filter(|_| is_new).map(|ends| Link {
            ends,
            rate_bps: draft.rate_bps,
            delay: draft.delay,
            loss_ppm: draft.loss_ppm,
        }));
    }
    links
}

/// What a rack says of the host at this link, if the switch there runs a rack's program.
pub(super) fn rack_host<'r>(link: Option<&Link>, runs: &'r [Option<Runs>]) -> Option<&'r Host> {
    let [End::Port(switch, port), End::Host(_)] = link?.ends else { return None };
    match runs.get(switch)? {
        Some(Runs::Rack(_, rack)) => rack.hosts.iter().find(|host| host.port == port),
        _ => None,
    }
}

/// Checks that a rack's hosts are at their ports, and nothing else is.
pub(super) fn check_rack(
    sink: &mut Sink<'_>,
    field: &str,
    rack: &Rack,
    switch: usize,
    (links, hosts): (&[Option<Link>], &[HostDraft]),
) {
    let ends: BTreeMap<u16, End> = links.iter().flatten().flat_map(|link| link.from_switch(switch)).collect();
    let field = format!("{field}.rack");
    for host in &rack.hosts {
        let (name, port) = (&host.name, host.port);
        match ends.get(&port) {
            Some(End::Host(at)) if hosts.get(*at).and_then(|draft| draft.name.as_ref()) == Some(name) => {}
            Some(End::Port(..)) if host.foreign_percent.is_some() => {}
            Some(End::Port(..)) => {
                let message = format!("has {name} at port {port}, and a switch is there");
                sink.refuse(
                    &[&field],
                    message,
                    format!("give {name} a foreign_percent in the rack, or another link"),
                );
            }
            Some(End::Host(_)) => {
                let message = format!("has {name} at port {port}, and another host is there");
                sink.refuse(&[&field], message, format!("connect host {name} to that port"));
            }
            // Links with mistakes may be the ones that are missing.
            None if links.iter().any(Option::is_none) => {}
            None => {
                let message = format!("has {name} at port {port}, and no link is there");
                sink.refuse(&[&field], message, format!("add a [[link]] from {name} to port {port}"));
            }
        }
    }
    for (port, _) in ends.iter().filter(|(port, _)| rack.hosts.iter().all(|host| host.port != **port)) {
        let message = format!("knows no port {port}, and a link is there");
        sink.refuse(&[&field], message, "describe a host at that port in the rack, or remove the link");
    }
}

/// Checks that no link uses the CPU port or the drop port of its switch.
pub(super) fn check_ports(
    sink: &mut Sink<'_>,
    switches: &[Option<Switch>],
    drafts: &[LinkDraft],
    links: &[Option<Link>],
) {
    for (draft, link) in drafts.iter().zip(links) {
        let Some((link, ends)) = link.as_ref().zip(draft.ends.as_ref()) else { continue };
        for end in link.ends {
            let End::Port(at, port) = end else { continue };
            let Some(Some(switch)) = switches.get(at) else { continue };
            let special = [(switch.cpu_port, "CPU port"), (switch.drop_port(), "drop port")];
            if let Some((_, what)) = special.iter().find(|(special, _)| *special == port) {
                let named = ends.iter().find(|end| end.node == switch.name && end.port == Some(port));
                let field = named.map_or(draft.field.as_str(), |end| &end.field);
                let message = format!("{port} is the {what} of {}", switch.name);
                sink.refuse(&[field], message, "take another port");
            }
        }
    }
}
