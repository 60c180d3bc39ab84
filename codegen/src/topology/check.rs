//! Checks nodes of a topology, whichever file they come from.

use super::drafts::{Drafts, HostDraft, SwitchDraft};
use super::links::{self, Nodes};
use super::{Host, Places, Runs, Switch, Target, Topology};
use crate::description::{check_ip, check_name};
use crate::rack::limits::{self, Refusal};
use crate::rack::{BUFFER_BYTES, CPU_PORT, DROP_PORT, Rack, RackError, Sink};
use p4rack_wire::MacAddr;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// Longest name of a switch: its interfaces are called NAME-ethPORT, and the kernel keeps 15 bytes.
const SWITCH_NAME_MAX: usize = 8;

/// Checks everything that was read, and builds the topology if there is no mistake.
pub(super) fn finish(mut sink: Sink<'_>, drafts: Drafts) -> Result<Topology, RackError> {
    let mut places = Places {
        switches: drafts.switches.iter().map(|draft| draft.field.clone()).collect(),
        links: drafts.links.iter().map(|draft| draft.field.clone()).collect(),
        ..Places::default()
    };
    let topology = build(&mut sink, drafts);
    match topology {
        Some(topology) if sink.is_empty() => {
            (places.file, places.lines) = sink.into_lines();
            Ok(Topology { places, ..topology })
        }
        _ => Err(sink.into_error()),
    }
}

fn build(sink: &mut Sink<'_>, drafts: Drafts) -> Option<Topology> {
    let Drafts { name, switches, hosts, links, workload, first_grpc_port, is_json } = drafts;
    if switches.is_empty() {
        sink.refuse(&["switch"], "is missing".to_owned(), "add one [[switch]] table for each switch");
    }
    unique_nodes(sink, &switches, &hosts);
    let runs: Vec<Option<Runs>> = switches.iter().map(|draft| runs(sink, draft, is_json)).collect();
    let nodes = Nodes {
        switches: switches.iter().map(|draft| draft.name.as_deref()).collect(),
        hosts: hosts.iter().map(|draft| draft.name.as_deref()).collect(),
    };
    let resolved = links::resolve(sink, &nodes, &links);
    let mut complete = Vec::new();
    for (position, draft) in hosts.iter().enumerate() {
        let at = resolved.iter().flatten().find(|link| link.joins_host(position));
        if at.is_none() && draft.name.is_some() && resolved.iter().all(Option::is_some) {
            let name = draft.name.as_deref().unwrap_or("h1");
            let help = match is_json {
                true => format!("add [\"{name}\", \"s1-p1\"] to \"links\""),
                false => format!("add a [[link]] with ends = [\"{name}\", \"s1:1\"]"),
            };
            sink.refuse(&[&draft.field], "has no link".to_owned(), help);
        }
        complete.push(host(sink, draft, position, links::rack_host(at, &runs)));
    }
    unique_addresses(sink, &hosts, &complete);
    for (position, (runs, draft)) in runs.iter().zip(&switches).enumerate() {
        if let Some(Runs::Rack(_, rack)) = runs {
            links::check_rack(sink, &draft.field, rack, position, (&resolved, &hosts));
        }
    }
    let drafts_of: Vec<String> = switches.iter().map(|draft| draft.field.clone()).collect();
    let mut built = Vec::new();
    for (position, (draft, runs)) in switches.into_iter().zip(runs).enumerate() {
        built.push(switch(sink, draft, runs, first_grpc_port.saturating_add(position as u16)));
    }
    unique_servers(sink, &drafts_of, &built);
    links::check_ports(sink, &built, &links, &resolved);
    Some(Topology {
        name: name?,
        switches: built.into_iter().collect::<Option<_>>()?,
        hosts: complete.into_iter().collect::<Option<_>>()?,
        links: resolved.into_iter().collect::<Option<_>>()?,
        workload,
        places: Places::default(),
    })
}

fn runs(sink: &mut Sink<'_>, draft: &SwitchDraft, is_json: bool) -> Option<Runs> {
    let field = |key: &str| format!("{}.{key}", draft.field);
    match (&draft.program, &draft.rack) {
        (Some(_), Some(_)) => {
            let message = "is a second program beside `program`".to_owned();
            sink.refuse(&[&field("rack")], message, "a switch runs one: remove `program` or `rack`");
            None
        }
        (program, None) => {
            if program.is_none() && draft.entries.is_some() {
                let message = "belong to no program".to_owned();
                let keys = ["entries", "runtime_json"].map(field);
                sink.refuse(&[&keys[usize::from(is_json)]], message, "name the program that they are for");
            }
            Some(program.clone().map_or(Runs::Nothing, Runs::Program))
        }
        (None, Some(path)) => {
            if draft.entries.is_some() {
                let message = "are a second set: a rack's program has its own".to_owned();
                sink.refuse(&[&field("entries")], message, "remove `entries`");
            }
            // Its program, entries and reserves are made for them.
            for (key, is_given) in [
                ("cpu_port", draft.cpu_port.is_some()),
                ("buffer", draft.buffer_bytes.is_some()),
                ("time_unit_ns", draft.time_unit_ns.is_some()),
            ] {
                if is_given {
                    let message = "can't be set beside `rack`, whose description has it".to_owned();
                    sink.refuse(&[&field(key)], message, "remove it; set it in the rack's description");
                }
            }
            match Rack::load(path) {
                Ok(rack) if rack.switch.tors > 1 => {
                    let message = format!("describes a rack with {} switches", rack.switch.tors);
                    let help = "set its switch.tors to 1, or run it alone: p4rack up RACK";
                    sink.refuse(&[&field("rack")], message, help);
                    None
                }
                Ok(rack) => Some(Runs::Rack(path.clone(), Box::new(rack))),
                // A file that is not there has been reported.
                Err(_) if sink.reported(&field("rack")) => None,
                Err(error) => {
                    sink.refuse(
                        &[&field("rack")],
                        format!("is not a valid rack description:\n{error}"),
                        "correct the rack description",
                    );
                    None
                }
            }
        }
    }
}

fn switch(sink: &mut Sink<'_>, draft: SwitchDraft, runs: Option<Runs>, grpc_port: u16) -> Option<Switch> {
    let refuse = |sink: &mut Sink<'_>, key: &str, Refusal { message, help }: Refusal| {
        sink.refuse(&[&format!("{}.{key}", draft.field)], message, help);
    };
    if let Some(name) = draft.name.as_deref().filter(|name| name.len() > SWITCH_NAME_MAX) {
        let message = format!("`{name}` is longer than {SWITCH_NAME_MAX} characters");
        refuse(sink, "name", Refusal { message, help: "shorten it: its interfaces are NAME-ethPORT" });
    }
    let of_rack = match &runs {
        Some(Runs::Rack(_, rack)) => Some(&rack.switch),
        _ => None,
    };
    let cpu_port = draft.cpu_port.or(of_rack.map(|switch| switch.cpu_port)).unwrap_or(CPU_PORT);
    let drop_port = of_rack.map_or(DROP_PORT, |switch| switch.drop_port);
    if let Err(refusal) = limits::cpu_port(cpu_port.into(), drop_port.into()) {
        refuse(sink, "cpu_port", refusal);
    }
    let buffer_bytes =
        draft.buffer_bytes.or(of_rack.map(|switch| switch.buffer_bytes)).unwrap_or(BUFFER_BYTES);
    if let Err(refusal) = limits::buffer(buffer_bytes) {
        refuse(sink, "buffer", refusal);
    }
    let time_unit_ns = of_rack.map(|switch| switch.time_unit_ns).or(draft.time_unit_ns).unwrap_or(1);
    Some(Switch {
        name: draft.name?,
        runs: runs?,
        entries: draft.entries,
        target: draft.target.unwrap_or(Target::Embedded),
        grpc_addr: draft.grpc_addr.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, grpc_port))),
        device_id: draft.device_id,
        cpu_port,
        buffer_bytes,
        time_unit_ns,
    })
}

/// A host, if its draft is complete. A rack's host has the addresses of its description.
fn host(
    sink: &mut Sink<'_>,
    draft: &HostDraft,
    position: usize,
    of_rack: Option<&crate::rack::Host>,
) -> Option<Host> {
    let field = |key: &str| format!("{}.{key}", draft.field);
    if let Some(rack_host) = of_rack {
        let theirs = (rack_host.ip, rack_host.prefix);
        if let Some((ip, prefix)) = draft.ip.filter(|ip| *ip != theirs) {
            let message = format!("{ip}/{prefix} is not {}/{}, its address in its rack", theirs.0, theirs.1);
            sink.refuse(&[&field("ip")], message, "write the same, or leave it out");
        }
        if let Some(mac) = draft.mac.filter(|mac| *mac != rack_host.mac) {
            let message = format!("{mac} is not {}, its address in its rack", rack_host.mac);
            sink.refuse(&[&field("mac")], message, "write the same, or leave it out");
        }
    }
    if draft.ip.is_none() && of_rack.is_none() && !sink.reported(&field("ip")) {
        sink.refuse(&[&draft.field], "has no ip".to_owned(), "add ip = \"10.0.1.1/24\"");
    }
    let (ip, prefix) = draft.ip.or(of_rack.map(|host| (host.ip, host.prefix)))?;
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    if let Some(gateway) = draft.gateway {
        if gateway.to_bits() & mask != ip.to_bits() & mask {
            let message = format!("{gateway} is not in the subnet of {ip}/{prefix}");
            sink.refuse(&[&field("gateway")], message, "write an address of the host's subnet");
        } else if gateway == ip {
            let message = format!("{gateway} is the host itself");
            sink.refuse(&[&field("gateway")], message, "write the address of its router");
        }
    } else if draft.gateway_mac.is_some() {
        sink.refuse(&[&field("gateway_mac")], "has no gateway".to_owned(), "add gateway = \"10.0.1.254\"");
    }
    Some(Host {
        name: draft.name.clone()?,
        mac: draft.mac.or(of_rack.map(|host| host.mac)).unwrap_or_else(|| default_mac(position)),
        ip,
        prefix,
        gateway: draft.gateway,
        gateway_mac: draft.gateway_mac,
        commands: draft.commands.clone(),
    })
}

/// 02:00:00:00:00:01 for the first host.
fn default_mac(position: usize) -> MacAddr {
    let [.., high, low] = (position as u64 + 1).to_be_bytes();
    MacAddr([2, 0, 0, 0, high, low])
}

/// `10.0.1.1/24`. Prefixes up to 32 are accepted: topologies route.
pub(super) fn parse_cidr(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let (ip, prefix) = text.split_once('/').ok_or_else(|| format!("`{text}` has no prefix length"))?;
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("`{ip}` is no IPv4 address"))?;
    let prefix: u8 = prefix.parse().map_err(|_| format!("`/{prefix}` is no prefix length from 1 to 32"))?;
    match prefix {
        1..=30 => check_ip(ip, prefix)?,
        31 | 32 if !ip.is_multicast() && !ip.is_loopback() && !ip.is_unspecified() => {}
        31 | 32 => return Err(format!("`{text}` is no host's address")),
        _ => return Err(format!("`/{prefix}` is no prefix length from 1 to 32")),
    }
    Ok((ip, prefix))
}

/// Names of switches and hosts share one space, because links, `exec` and the prompt name both.
fn unique_nodes(sink: &mut Sink<'_>, switches: &[SwitchDraft], hosts: &[HostDraft]) {
    let switches = switches.iter().map(|draft| (&draft.field, &draft.name));
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (field, name) in switches.chain(hosts.iter().map(|draft| (&draft.field, &draft.name))) {
        let Some(name) = name.as_deref() else { continue };
        if let Err(message) = check_name(name) {
            sink.refuse(&[&format!("{field}.name")], message, crate::description::NAME_HELP);
        }
        if let Some(first) = seen.insert(name, field) {
            let message = format!("`{name}` is {first}'s already");
            sink.refuse(&[&format!("{field}.name")], message, "give each node its own name");
        }
    }
}

/// Two servers share no address and port; a wildcard address is all of them.
fn unique_servers(sink: &mut Sink<'_>, fields: &[String], switches: &[Option<Switch>]) {
    let addr = |at: usize| switches[at].as_ref().map(|switch| switch.grpc_addr);
    for (n, own) in (0..switches.len()).filter_map(|n| Some((n, addr(n)?))) {
        let field = format!("{}.grpc_addr", fields[n]);
        let clashes = |at: &usize| {
            addr(*at).is_some_and(|other| {
                let (one, two) = (own.ip(), other.ip());
                own.port() == other.port() && (one == two || one.is_unspecified() || two.is_unspecified())
            })
        };
        if own.port() == 0 {
            let message =
                "has port 0, which is any that is free, so that no controller would know it".to_owned();
            sink.refuse(&[&field], message, "write a port such as 9559");
        } else if let Some(first) = (0..n).find(clashes) {
            let message = format!("is {}'s already", fields[first]);
            sink.refuse(&[&field], message, "give each switch its own address");
        }
    }
}

fn unique_addresses(sink: &mut Sink<'_>, drafts: &[HostDraft], hosts: &[Option<Host>]) {
    let named = || drafts.iter().zip(hosts).filter_map(|(draft, host)| Some((&draft.field, host.as_ref()?)));
    let mut macs: BTreeMap<MacAddr, &str> = BTreeMap::new();
    let mut ips: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
    for (field, host) in named() {
        if let Some(first) = macs.insert(host.mac, field) {
            let message = format!("{} is {first}'s already", host.mac);
            sink.refuse(&[&format!("{field}.mac")], message, "give each host its own address");
        }
        if let Some(first) = ips.insert(host.ip, field) {
            let message = format!("{} is {first}'s already", host.ip);
            sink.refuse(&[&format!("{field}.ip")], message, "give each host its own address");
        }
    }
}
