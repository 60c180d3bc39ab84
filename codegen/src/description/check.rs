//! Checks the parts of a rack, whether they were read or built.

use super::tors;
use super::workload::{check_schemes, check_workload};
use crate::rack::limits::{self, Refusal};
use crate::rack::units::show_rate;
use crate::rack::{Host, Protocol, Rack, Sink, Switch, TOGETHER, Workload};
use p4rack_wire::MacAddr;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Maximum port number of the architecture (`bit<9>`).
pub(super) const PORT_MAX: u64 = 511;
/// Number of the first link that is slower than its port; these follow all port numbers.
const FIRST_BREAKOUT_LINK: u16 = PORT_MAX as u16 + 1;
/// Range, in percent, of the share that ports to other racks may leave to them.
pub(super) const FOREIGN_PERCENT: (u64, u64) = (1, 90);

/// A host as far as it could be read: a field with a mistake is `None`.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Name of its table.
    pub(super) field: String,
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) mac: Option<MacAddr>,
    pub(super) ip: Option<(Ipv4Addr, u8)>,
    /// Rate of its link; `None` is the rate of the switch's ports.
    pub(super) rate_bps: Option<u64>,
    /// Rate of a port that several hosts may share.
    pub(super) port_rate_bps: Option<u64>,
    pub(super) foreign_percent: Option<u32>,
}

impl Draft {
    fn field(&self, key: &str) -> String {
        format!("{}.{key}", self.field)
    }

    /// The host, if the draft is complete.
    fn host(&self, switch: &Switch, links: &mut impl Iterator<Item = u16>) -> Option<Host> {
        let rate_bps = self.rate_bps.unwrap_or(switch.port_rate_bps);
        let port_rate_bps = self.port_rate_bps.unwrap_or(rate_bps);
        let port = self.port?;
        let link = if rate_bps < port_rate_bps { links.next() } else { None };
        let (ip, prefix) = self.ip?;
        Some(Host {
            name: self.name.clone()?,
            port,
            mac: self.mac?,
            ip,
            prefix,
            rate_bps,
            port_rate_bps,
            link: link.unwrap_or(port),
            foreign_percent: self.foreign_percent,
        })
    }
}

/// Checks each value on its own, with the same rules and messages as reading.
pub(super) fn values(name: &str, switch: &Switch, drafts: &[Draft], sink: &mut Sink<'_>) {
    let mut refuse = |field: &str, refused: Result<(), String>, help: &str| {
        if let Err(message) = refused {
            sink.refuse(&[field], message, help);
        }
    };
    refuse("name", check_name(name), NAME_HELP);
    refuse("switch.port_rate", check_rate(switch.port_rate_bps), RATE_HELP);
    for (field, value, range) in [
        ("switch.cpu_port", u64::from(switch.cpu_port), limits::SPECIAL_PORTS),
        ("switch.drop_port", switch.drop_port.into(), limits::SPECIAL_PORTS),
        ("switch.time_unit_ns", switch.time_unit_ns, limits::TIME_UNIT_NS),
        ("switch.tors", switch.tors.into(), limits::TORS),
    ] {
        refuse(field, check_range(value, range), "write a number within the range");
    }
    for draft in drafts {
        let field = |key| draft.field(key);
        refuse(&field("name"), draft.name.as_deref().map_or(Ok(()), check_name), NAME_HELP);
        let port = draft.port.map_or(Ok(()), |port| check_range(port.into(), (1, PORT_MAX)));
        refuse(&field("port"), port, "write a number within the range");
        refuse(&field("mac"), draft.mac.map_or(Ok(()), check_mac), MAC_HELP);
        refuse(&field("ip"), draft.ip.map_or(Ok(()), |(ip, prefix)| check_ip(ip, prefix)), IP_HELP);
        refuse(&field("rate"), draft.rate_bps.map_or(Ok(()), check_rate), RATE_HELP);
        refuse(&field("port_rate"), draft.port_rate_bps.map_or(Ok(()), check_rate), RATE_HELP);
        let foreign =
            draft.foreign_percent.map_or(Ok(()), |percent| check_range(percent.into(), FOREIGN_PERCENT));
        refuse(&field("foreign_percent"), foreign, "write a number within the range");
    }
}

/// Checks what is known, and builds a rack if everything is.
pub(super) fn finish(
    sink: &mut Sink<'_>,
    name: Option<String>,
    switch: Option<Switch>,
    drafts: Vec<Draft>,
    protocols: Vec<Arc<dyn Protocol>>,
    workload: Option<Workload>,
) -> Option<Rack> {
    if let Some(switch) = &switch {
        check_switch(sink, switch, &drafts);
    }
    check_unique(sink, &drafts);
    check_subnet(sink, &drafts);
    if let Some(workload) = &workload {
        let names: Vec<&str> = drafts.iter().filter_map(|draft| draft.name.as_deref()).collect();
        check_workload(sink, workload, &names);
    }
    let switch = switch?;
    let mut links = FIRST_BREAKOUT_LINK..;
    let hosts = drafts.iter().map(|draft| draft.host(&switch, &mut links)).collect::<Option<Vec<Host>>>()?;
    if hosts.is_empty() {
        sink.refuse(&["host"], "is missing".to_owned(), "add one [[host]] table for each host");
        return None;
    }
    let mut rack = Rack { name: name?, switch, hosts, protocols, workload };
    check_claims(sink, &rack.protocols);
    for protocol in &rack.protocols {
        protocol.check(&rack, sink);
    }
    tors::check(sink, &rack);
    if sink.is_empty() {
        check_schemes(sink, &mut rack);
    }
    Some(rack)
}

/// Checks that frames belong to a single protocol.
fn check_claims(sink: &mut Sink<'_>, protocols: &[Arc<dyn Protocol>]) {
    if protocols.len() > TOGETHER {
        let message =
            format!("is one of {} protocols, but {TOGETHER} share a pipeline at most", protocols.len());
        let section = protocols[TOGETHER].definition().section();
        sink.refuse(&[section], message, "remove its table, or another's");
    }
    let claims = |protocol: &Arc<dyn Protocol>| protocol.claims();
    for (n, protocol) in protocols.iter().enumerate() {
        for (field, claim) in claims(protocol) {
            let earlier = protocols[..n].iter().flat_map(claims);
            if let Some((first, theirs)) = earlier.into_iter().find(|(_, other)| claim.meets(*other)) {
                let message = format!("{claim} belongs to {first} ({theirs}) already");
                sink.refuse(&[field], message, format!("give {field} and {first} different ones"));
            }
        }
    }
}

fn check_switch(sink: &mut Sink<'_>, switch: &Switch, drafts: &[Draft]) {
    let (cpu_port, drop_port) = (switch.cpu_port, switch.drop_port);
    for (field, refused) in [
        ("switch.buffer", limits::buffer(switch.buffer_bytes)),
        ("switch.cpu_port", limits::cpu_port(cpu_port.into(), drop_port.into())),
    ] {
        if let Err(Refusal { message, help }) = refused {
            sink.refuse(&[field], message, help);
        }
    }
    for draft in drafts {
        for (taken, what) in [(cpu_port, "the CPU port"), (drop_port, "the drop port")] {
            if draft.port == Some(taken) {
                let message = format!("{taken} is {what}");
                sink.refuse(&[&draft.field("port")], message, "take another number from 1 up");
            }
        }
        let rate_bps = draft.rate_bps.unwrap_or(switch.port_rate_bps);
        if let Some(port_rate_bps) = draft.port_rate_bps.filter(|port| *port < rate_bps) {
            let rates = (show_rate(port_rate_bps), show_rate(rate_bps));
            let message = format!("{} is less than the host's own {}", rates.0, rates.1);
            let help = "write the rate of the switch port that the hosts share";
            sink.refuse(&[&draft.field("port_rate")], message, help);
        }
    }
}

/// Checks that names, ports and addresses belong to a single host.
fn check_unique(sink: &mut Sink<'_>, drafts: &[Draft]) {
    fn once<T: Ord>(
        sink: &mut Sink<'_>,
        drafts: &[Draft],
        (key, help): (&str, &str),
        value: impl Fn(&Draft) -> Option<T>,
        show: impl Fn(&T) -> String,
    ) {
        let mut seen: BTreeMap<T, &str> = BTreeMap::new();
        for draft in drafts {
            let Some(value) = value(draft) else { continue };
            match seen.get(&value) {
                Some(first) => {
                    let message = format!("{} is {first}'s already", show(&value));
                    sink.refuse(&[&draft.field(key)], message, help);
                }
                None => drop(seen.insert(value, &draft.field)),
            }
        }
    }
    let own_name = ("name", "give each host its own name");
    once(sink, drafts, own_name, |draft| draft.name.clone(), |name| format!("`{name}`"));
    let own_port = ("port", "give each host its own port; hosts that share one all state its port_rate");
    let alone = |draft: &Draft| draft.port.filter(|_| draft.port_rate_bps.is_none());
    once(sink, drafts, own_port, alone, |port| format!("port {port}"));
    for (n, draft) in drafts.iter().enumerate() {
        let (Some(port), Some(rate)) = (draft.port, draft.port_rate_bps) else { continue };
        let differs = |other: &&Draft| other.port == Some(port) && other.port_rate_bps != Some(rate);
        if let Some(other) = drafts[..n].iter().find(differs) {
            let message = format!("is not what {} says of the same port", other.field("port"));
            let help = "give all hosts of a port the same port_rate";
            sink.refuse(&[&draft.field("port_rate")], message, help);
        }
    }
    once(sink, drafts, ("mac", OWN_ADDRESS), |draft| draft.mac, MacAddr::to_string);
    once(sink, drafts, ("ip", OWN_ADDRESS), |draft| draft.ip.map(|(ip, _)| ip), Ipv4Addr::to_string);
}
const OWN_ADDRESS: &str = "give each host its own address";

fn check_subnet(sink: &mut Sink<'_>, drafts: &[Draft]) {
    let subnet = |(ip, prefix): (Ipv4Addr, u8)| (network(ip, prefix), prefix);
    let mut ips = drafts.iter().filter_map(|draft| Some((draft.field("ip"), draft.ip?)));
    let Some((first, of_first)) = ips.next() else { return };
    let (net, prefix) = subnet(of_first);
    for (field, ip) in ips {
        if subnet(ip) != (net, prefix) {
            let message = format!("{}/{} is not in {net}/{prefix} as {first} is", ip.0, ip.1);
            sink.refuse(&[&field], message, "put all hosts in one subnet: the switch doesn't route");
        }
    }
}

pub(crate) const RATE_HELP: &str = "write a rate such as \"100 Mb/s\" or \"25 Gb/s\"";
pub(crate) const NAME_HELP: &str =
    "write letters, digits and -, starting with a letter, at most 32 characters";
pub(crate) const MAC_HELP: &str = "write a unicast MAC address such as \"02:00:00:00:00:01\"";
pub(crate) const IP_HELP: &str =
    "write the host's own address and the subnet's prefix, such as \"10.0.0.1/24\"";

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let good = name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good { Ok(()) } else { Err(format!("`{}` is no name", name.escape_default())) }
}

pub(crate) fn check_mac(mac: MacAddr) -> Result<(), String> {
    if mac.is_group() {
        return Err(format!("`{mac}` is a group address (its first byte is odd)"));
    }
    if mac == MacAddr::default() { Err("all zeros is no host's address".to_owned()) } else { Ok(()) }
}

pub(crate) fn check_ip(ip: Ipv4Addr, prefix: u8) -> Result<(), String> {
    if !(1..=30).contains(&prefix) {
        return Err(format!("`/{prefix}` is no prefix length from 1 to 30"));
    }
    let host_bits = u32::from(ip) & !mask(prefix);
    if host_bits == 0 || host_bits == !mask(prefix) || ip.is_multicast() || ip.is_loopback() {
        return Err(format!("`{ip}/{prefix}` is no host's address"));
    }
    Ok(())
}

fn check_rate(rate_bps: u64) -> Result<(), String> {
    if rate_bps == 0 { Err("is a port that sends nothing".to_owned()) } else { Ok(()) }
}

fn check_range(value: u64, (least, most): (u64, u64)) -> Result<(), String> {
    let fits = (least..=most).contains(&value);
    if fits { Ok(()) } else { Err(format!("{value} is out of range {least} to {most}")) }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX << (32 - u32::from(prefix))
}

fn network(ip: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(ip) & mask(prefix))
}
