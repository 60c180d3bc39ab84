//! From TOML to the checked model.

use super::limits::{self, Refusal};
use super::reader::{At, RackError, Section, Sink};
use super::units::{parse_rate, parse_size, show_rate};
use super::workload::read_workload;
use super::*;
use p4rack_wire::pl2::LANES_MAX;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use toml::de::DeTable;

/// The widest port number of the architecture (`bit<9>`).
const PORT_MAX: u64 = 511;
/// Number of the first link that is slower than its port, behind all ports.
const FIRST_BREAKOUT_LINK: u16 = PORT_MAX as u16 + 1;
/// The paper's K.
const K: u64 = 4;
/// PL2's first VLAN, unless the description says otherwise.
const VID: u64 = 100;
/// Highest VLAN of frames.
const VID_MAX: u64 = 4094;
/// Most cells in all: what a switch with room for them keeps is some 100 MB.
const CELLS_MAX: u64 = 1 << 22;
/// Part of the buffer that best effort frames can't take, percent.
const RESERVED_PERCENT: u64 = 25;

const RATE_HELP: &str = "write a rate such as \"100 Mb/s\" or \"25 Gb/s\"";
const NAME_HELP: &str = "write letters, digits and -, starting with a letter, at most 32 characters";

pub(super) fn parse(text: &str, file: &str) -> Result<Rack, RackError> {
    let mut sink = Sink::new(text, file);
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().replace('\n', ", ");
        sink.error(&span, "", message, "the file must be TOML (https://toml.io)");
    }
    if !sink.is_empty() {
        return Err(sink.into_error());
    }
    let rack = read_rack(&mut sink, Section::root(&root));
    match rack {
        Some(rack) if sink.is_empty() => Ok(rack),
        _ => Err(sink.into_error()),
    }
}

/// A host as far as it could be read.
pub(super) struct Draft {
    pub(super) name: Option<At<String>>,
    port: Option<At<u64>>,
    mac: Option<At<MacAddr>>,
    ip: Option<At<(Ipv4Addr, u8)>>,
    rate_bps: u64,
    rate_at: (std::ops::Range<usize>, String),
    /// Rate of a port that others may share.
    port_rate: Option<At<u64>>,
    foreign_percent: Option<u32>,
}

impl Draft {
    fn port_rate_bps(&self) -> u64 {
        self.port_rate.as_ref().map_or(self.rate_bps, |rate| rate.value)
    }
}

fn read_rack(sink: &mut Sink<'_>, mut root: Section<'_, '_>) -> Option<Rack> {
    let name = root.parsed(sink, "name", NAME_HELP, check_name);
    if name.is_none() && !root.has("name") {
        root.missing(sink, "name", "\"my-rack\"");
    }
    let switch = match root.section(sink, "switch") {
        Some(section) => read_switch(sink, section),
        None if root.has("switch") => None,
        None => {
            let message = "is missing".to_owned();
            sink.error(&(0..0), "switch", message, "add a [switch] table with port_rate = \"100 Mb/s\"");
            None
        }
    };
    let port_rate = switch.as_ref().map(|(switch, at)| (switch.port_rate_bps, at.clone()));
    let mut drafts: Vec<Draft> = Vec::new();
    for section in root.sections(sink, "host") {
        drafts.push(read_host(sink, section, port_rate.clone()));
    }
    if drafts.is_empty() && !root.has("host") {
        sink.error(&(0..0), "host", "is missing".to_owned(), "add one [[host]] table for each host");
    }
    let pl2 = root.section(sink, "pl2").map(|section| read_pl2(sink, section, drafts.len()));
    let workload = root.section(sink, "workload");
    let workload_wanted = workload.is_some();
    check_unique(sink, &drafts, switch.as_ref().map(|(switch, _)| switch));
    check_subnet(sink, &drafts);
    let mixed = mixed_rates(&drafts);
    if let (Some((span, field, why)), Some(Some(Pl2 { mode: Mode::Counter, .. }))) = (&mixed, &pl2) {
        sink.error(span, field, why.clone(), "use mode = \"clock\", which gives each port its own slot");
    }
    let workload = workload.and_then(|section| {
        let default_schemes = match pl2.as_ref() {
            None => vec![Scheme::L2],
            Some(Some(Pl2 { mode: Mode::Counter, .. })) => vec![Scheme::L2, Scheme::Pl2Counter],
            Some(_) => vec![Scheme::L2, Scheme::Pl2Clock],
        };
        let parts = pl2.iter().flatten().any(|pl2| pl2.slot_parts > 1);
        read_workload(sink, section, &drafts, pl2.is_some(), mixed.is_some(), parts, default_schemes)
    });
    let (switch, _) = switch?;
    let pl2 = match pl2 {
        Some(pl2) => Some(pl2?),
        None => None,
    };
    let runs_clock = workload.as_ref().is_some_and(|workload| workload.schemes.contains(&Scheme::Pl2Clock));
    check_slots(sink, &drafts, &switch, pl2.as_ref(), runs_clock);
    if pl2.is_some() {
        check_breakouts(sink, &drafts);
    }
    root.finish(sink);
    if workload_wanted && workload.is_none() {
        return None;
    }
    let mut rack = Rack { name: name?.value, switch, hosts: Vec::new(), pl2, workload };
    let foreign_percent = foreign_percent(&drafts);
    let mut links = FIRST_BREAKOUT_LINK..;
    for draft in drafts {
        let port_rate_bps = draft.port_rate_bps();
        let port = draft.port.as_ref()?.value as u16;
        let link = if draft.rate_bps < port_rate_bps { links.next() } else { None };
        let (ip, prefix) = draft.ip?.value;
        rack.hosts.push(Host {
            name: draft.name?.value,
            port,
            mac: draft.mac?.value,
            ip,
            prefix,
            rate_bps: draft.rate_bps,
            port_rate_bps,
            link: link.unwrap_or(port),
            foreign_percent: draft.foreign_percent,
            slot: slot(&rack.switch, rack.pl2.as_ref(), draft.rate_bps, foreign_percent),
        });
    }
    (!rack.hosts.is_empty()).then_some(rack)
}

type Place = (std::ops::Range<usize>, String);

fn read_switch(sink: &mut Sink<'_>, mut section: Section<'_, '_>) -> Option<(Switch, Place)> {
    let target = section.parsed(sink, "target", "write \"embedded\" or \"bmv2\"", |text| match text {
        "embedded" => Ok(Target::Embedded),
        "bmv2" => Ok(Target::Bmv2),
        _ => Err(format!("`{text}` is no target")),
    });
    let device_id = section.integer(sink, "device_id", (0, i64::MAX as u64));
    let rate = section.parsed(sink, "port_rate", RATE_HELP, parse_rate);
    if rate.is_none() && !section.has("port_rate") {
        section.missing(sink, "port_rate", "\"100 Mb/s\"");
    }
    let buffer = section.parsed(sink, "buffer", "write a size such as \"256 KiB\"", parse_size);
    if let Some(buffer) = &buffer
        && let Err(Refusal { message, help }) = limits::buffer(buffer.value)
    {
        sink.error(&buffer.span, &buffer.field, message, help);
    }
    let reserved = section.integer(sink, "reserved_percent", (0, 90));
    let cpu_port = section.integer(sink, "cpu_port", limits::SPECIAL_PORTS);
    let drop_port = section.integer(sink, "drop_port", limits::SPECIAL_PORTS);
    if let Some(cpu) = &cpu_port
        && let Err(Refusal { message, help }) =
            limits::cpu_port(cpu.value, drop_port.as_ref().map_or(511, |port| port.value))
    {
        sink.error(&cpu.span, &cpu.field, message, help);
    }
    let help = "write an address and port such as \"127.0.0.1:9559\"";
    let grpc_addr = section.parsed(sink, "grpc_addr", help, |text| {
        text.parse().map_err(|_| format!("`{text}` is no address with a port"))
    });
    let time_unit = section.integer(sink, "time_unit_ns", limits::TIME_UNIT_NS);
    section.finish(sink);
    let rate = rate?;
    let target = target.map_or(Target::Embedded, |target| target.value);
    let buffer_bytes = buffer.map_or(256 << 10, |size| size.value);
    let switch = Switch {
        target,
        device_id: device_id.map_or(target.device_id(), |id| id.value),
        port_rate_bps: rate.value,
        buffer_bytes,
        reserved_bytes: buffer_bytes * reserved.map_or(RESERVED_PERCENT, |percent| percent.value) / 100,
        cpu_port: cpu_port.map_or(510, |port| port.value as u16),
        drop_port: drop_port.map_or(511, |port| port.value as u16),
        grpc_addr: grpc_addr
            .map_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9559), |addr| addr.value),
        time_unit_ns: time_unit.map_or(target.time_unit_ns(), |unit| unit.value),
    };
    Some((switch, (rate.span, rate.field)))
}

fn read_host(sink: &mut Sink<'_>, mut section: Section<'_, '_>, port_rate: Option<(u64, Place)>) -> Draft {
    let name = section.parsed(sink, "name", NAME_HELP, check_name);
    let port = section.integer(sink, "port", (1, PORT_MAX));
    let mac =
        section.parsed(sink, "mac", "write a unicast MAC address such as \"02:00:00:00:00:01\"", |text| {
            match text.parse::<MacAddr>() {
                Ok(mac) if mac.is_group() => {
                    Err(format!("`{text}` is a group address (its first byte is odd)"))
                }
                Ok(MacAddr([0, 0, 0, 0, 0, 0])) => Err("all zeros is nobody's address".to_owned()),
                other => other,
            }
        });
    let ip = section.parsed(
        sink,
        "ip",
        "write the host's own address and the subnet's prefix, such as \"10.0.0.1/24\"",
        parse_cidr,
    );
    let rate = section.parsed(sink, "rate", RATE_HELP, parse_rate);
    for (key, absent, example) in [
        ("name", name.is_none(), "\"h1\""),
        ("port", port.is_none(), "1"),
        ("mac", mac.is_none(), "\"02:00:00:00:00:01\""),
        ("ip", ip.is_none(), "\"10.0.0.1/24\""),
    ] {
        if absent && !section.has(key) {
            section.missing(sink, key, example);
        }
    }
    let (rate_bps, rate_at) = match (rate, port_rate) {
        (Some(rate), _) => (rate.value, (rate.span, rate.field)),
        (None, Some((rate_bps, at))) => (rate_bps, at),
        // The switch's rate is missing, which has been said.
        (None, None) => (100_000_000, (section.span.clone(), section.field("rate"))),
    };
    let port_rate = section.parsed(sink, "port_rate", RATE_HELP, parse_rate);
    if let Some(at) = port_rate.as_ref().filter(|at| at.value < rate_bps) {
        let message = format!("{} is less than the host's own {}", show_rate(at.value), show_rate(rate_bps));
        sink.error(&at.span, &at.field, message, "write the rate of the switch port that the hosts share");
    }
    let foreign_percent = section.integer(sink, "foreign_percent", (1, 90)).map(|at| at.value as u32);
    section.finish(sink);
    Draft { name, port, mac, ip, rate_bps, rate_at, port_rate, foreign_percent }
}

fn read_pl2(sink: &mut Sink<'_>, mut section: Section<'_, '_>, hosts: usize) -> Option<Pl2> {
    let mode = section.parsed(sink, "mode", "write \"clock\" or \"counter\"", |text| match text {
        "counter" => Ok(Mode::Counter),
        "clock" => Ok(Mode::Clock),
        _ => Err(format!("`{text}` is no mode")),
    });
    if mode.is_none() && !section.has("mode") {
        section.missing(sink, "mode", "\"clock\"");
    }
    let clocks = section.parsed(
        sink,
        "clocks",
        "write \"pair\", \"chain\", \"dst\" or \"calendar\"",
        |text| match text {
            "pair" => Ok(Clocks::Pair),
            "chain" => Ok(Clocks::Chain),
            "dst" => Ok(Clocks::Dst),
            "calendar" => Ok(Clocks::Calendar),
            _ => Err(format!("`{text}` is no way to keep clocks")),
        },
    );
    let k = section.integer(sink, "k", (1, 255));
    let parts = section.integer(sink, "slot_parts", (1, 255));
    check_parts(
        sink,
        parts.as_ref(),
        k.as_ref().map_or(K, |k| k.value),
        mode.as_ref().map(|mode| mode.value),
    );
    let t_slots = section.integer(sink, "t", (0, 1 << 16));
    let threshold = section.integer(sink, "drop_threshold", (1, 1 << 20));
    section.refuse(sink, "T", "is unknown", "the switch's threshold is called drop_threshold, the hosts' t");
    let t = t_slots.as_ref().map_or(15, |t| t.value);
    let drop_threshold = threshold.as_ref().map_or((8 * t).max(1), |threshold| threshold.value);
    if let Some(threshold) = threshold.as_ref().filter(|threshold| threshold.value < t) {
        let message = format!("{} slots are less than t = {t}", threshold.value);
        let help = "the switch would drop what hosts may send: write several times t, or leave it out";
        sink.error(&threshold.span, &threshold.field, message, help);
    }
    let ether_type = section.integer(sink, "ether_type", (0x0600, 0xffff));
    if let Some(at) = &ether_type
        && [0x0800, 0x0806, 0x8100, 0x86dd, 0x88a8].contains(&at.value)
    {
        let message = format!("0x{:04x} belongs to another protocol", at.value);
        sink.error(&at.span, &at.field, message, "write 0x88B5, or another that nothing here uses");
    }
    let vid = section.integer(sink, "vid", (1, 4094));
    let shim = section.boolean(sink, "shim");
    let in_flight = section.integer(sink, "reservations_in_flight", (1, LANES_MAX.into()));
    let lanes = section.integer(sink, "lanes", (1, LANES_MAX.into()));
    let (field, span) = (section.field("lanes"), section.span.clone());
    let lanes = check_lanes(sink, lanes, in_flight.as_ref(), vid.as_ref(), hosts, (span, field));
    let headroom = section.number(sink, "slot_headroom_percent", (0.0, 100.0));
    let fresh = section.integer(sink, "fresh_us", (0, 10_000_000));
    let notify = section.boolean(sink, "notify_receiver");
    let control = section.integer(sink, "control_per_slot", (0, 1000));
    let best_effort = section.integer(sink, "best_effort_percent", (1, 100));
    section.finish(sink);
    let mode = mode?;
    let value = |at: Option<At<u64>>, default: u64| at.map_or(default, |at| at.value);
    Some(Pl2 {
        mode: mode.value,
        clocks: clocks.map_or(Clocks::default(), |clocks| clocks.value),
        k: value(k, K) as u8,
        slot_parts: value(parts, 1) as u8,
        t_slots: t as u32,
        drop_threshold_slots: drop_threshold as u32,
        ether_type: EtherType(value(ether_type, EtherType::PL2_DEFAULT.0.into()) as u16),
        vid: value(vid, VID) as u16,
        shim: shim.is_none_or(|shim| shim.value),
        reservations_in_flight: value(in_flight, 1) as u32,
        lanes,
        slot_headroom_percent: headroom.map_or(3.0, |headroom| headroom.value),
        fresh: fresh.map(|fresh| Nanos::from_micros(fresh.value)),
        notify_receiver: notify.is_some_and(|notify| notify.value),
        control_per_slot: value(control, 4) as u32,
        best_effort_percent: value(best_effort, 5) as u32,
    })
}

/// How many lanes there are. Hosts use no more, each of their cells has a VLAN, and the switch has room for all pairs'.
fn check_lanes(
    sink: &mut Sink<'_>,
    lanes: Option<At<u64>>,
    in_flight: Option<&At<u64>>,
    vid: Option<&At<u64>>,
    hosts: usize,
    table: (std::ops::Range<usize>, String),
) -> u8 {
    let used = in_flight.map_or(1, |at| at.value);
    let count = lanes.as_ref().map_or(used, |at| at.value);
    let (span, field) = [&lanes, &in_flight.cloned()]
        .into_iter()
        .flatten()
        .next()
        .map_or(table, |at| (at.span.clone(), at.field.clone()));
    if count < used {
        let message = format!("{count} are fewer than the {used} reservations_in_flight of the hosts");
        sink.error(&span, &field, message, format!("write {used} or more, or leave it out"));
    }
    let first = vid.map_or(VID, |at| at.value);
    let last = first + 2 * count - 1;
    if last > VID_MAX {
        let (span, field) = vid.map_or((&span, &field), |at| (&at.span, &at.field));
        let message = format!("{count} lanes need the VLANs {first} to {last}, but {VID_MAX} is the last");
        sink.error(
            span,
            field,
            message,
            format!("write a vid of {} or less, or fewer lanes", VID_MAX + 1 - 2 * count),
        );
    }
    let cells = cell_count(hosts, 2 * count as u8);
    if cells > CELLS_MAX {
        let message =
            format!("{count} lanes between {hosts} hosts need {cells} cells, more than {CELLS_MAX}");
        sink.error(
            &span,
            &field,
            message,
            "write fewer lanes (reservations_in_flight, unless lanes is given)",
        );
    }
    count as u8
}

/// Cells of all pairs, the controller's frames among the sources.
pub(crate) fn cell_count(hosts: usize, cells_a_pair: u8) -> u64 {
    (hosts as u64 + 1) * hosts as u64 * u64::from(cells_a_pair)
}

/// A reservation states its parts in a byte, and counters count frames.
fn check_parts(sink: &mut Sink<'_>, parts: Option<&At<u64>>, k: u64, mode: Option<Mode>) {
    let Some(parts) = parts.filter(|parts| parts.value > 1) else { return };
    if mode == Some(Mode::Counter) {
        let message = "counter mode counts frames, not parts of a slot".to_owned();
        sink.error(&parts.span, &parts.field, message, "remove it, or use mode = \"clock\"");
    } else if parts.value * k > 255 {
        let message =
            format!("{k} slots of {} parts are more than the 255 that an RSV can ask for", parts.value);
        sink.error(
            &parts.span,
            &parts.field,
            message,
            format!("write {} or less, or a smaller k", 255 / k.max(1)),
        );
    }
}

/// Names, ports and addresses belong to one host each.
fn check_unique(sink: &mut Sink<'_>, drafts: &[Draft], switch: Option<&Switch>) {
    fn once<T: Ord + Clone>(
        sink: &mut Sink<'_>,
        values: impl Iterator<Item = At<T>>,
        help: &str,
        show: impl Fn(&T) -> String,
    ) {
        let mut seen: BTreeMap<T, String> = BTreeMap::new();
        for at in values {
            match seen.get(&at.value) {
                Some(first) => {
                    let message = format!("{} is {first}'s already", show(&at.value));
                    sink.error(&at.span, &at.field, message, help);
                }
                None => {
                    let owner =
                        at.field.rsplit_once('.').map_or(at.field.clone(), |(owner, _)| owner.to_owned());
                    seen.insert(at.value, owner);
                }
            }
        }
    }
    once(sink, drafts.iter().flat_map(|d| d.name.clone()), "give each host its own name", |name| {
        format!("`{name}`")
    });
    let alone = drafts.iter().filter(|d| d.port_rate.is_none()).flat_map(|d| d.port.clone());
    let help = "give each host its own port; hosts that share one all state its port_rate";
    once(sink, alone, help, |port| format!("port {port}"));
    for (n, draft) in drafts.iter().enumerate() {
        let (Some(port), Some(rate)) = (&draft.port, &draft.port_rate) else { continue };
        let shares = |other: &&Draft| other.port.as_ref().is_some_and(|other| other.value == port.value);
        if let Some(other) = drafts[..n].iter().find(|other| {
            shares(other) && other.port_rate.as_ref().map(|rate| rate.value) != Some(rate.value)
        }) {
            let of = other.port.as_ref().map_or(String::new(), |at| at.field.clone());
            let message = format!("is not what {of} says of the same port");
            sink.error(&rate.span, &rate.field, message, "give all hosts of a port the same port_rate");
        }
    }
    once(sink, drafts.iter().flat_map(|d| d.mac.clone()), "give each host its own address", |mac| {
        mac.to_string()
    });
    let ips = drafts.iter().flat_map(|d| d.ip.clone());
    let ips = ips.map(|at| At { value: at.value.0, span: at.span, field: at.field });
    once(sink, ips, "give each host its own address", |ip| ip.to_string());
    let Some(switch) = switch else { return };
    for port in drafts.iter().flat_map(|d| &d.port) {
        for (taken, what) in [(switch.cpu_port, "the CPU port"), (switch.drop_port, "the drop port")] {
            if port.value == u64::from(taken) {
                sink.error(
                    &port.span,
                    &port.field,
                    format!("{taken} is {what}"),
                    "take another number from 1 up",
                );
            }
        }
    }
}

fn check_subnet(sink: &mut Sink<'_>, drafts: &[Draft]) {
    let subnet = |(ip, prefix): (Ipv4Addr, u8)| (network(ip, prefix), prefix);
    let mut ips = drafts.iter().flat_map(|d| &d.ip);
    let Some(first) = ips.next() else { return };
    let (net, prefix) = subnet(first.value);
    for ip in ips {
        if subnet(ip.value) != (net, prefix) {
            let message =
                format!("{}/{} is not in {net}/{prefix} as {} is", ip.value.0, ip.value.1, first.field);
            sink.error(&ip.span, &ip.field, message, "put all hosts in one subnet: the switch doesn't route");
        }
    }
}

/// The place and the sentence if the hosts' rates differ.
fn mixed_rates(drafts: &[Draft]) -> Option<(std::ops::Range<usize>, String, String)> {
    let first = drafts.first()?;
    let other = drafts.iter().find(|draft| draft.rate_bps != first.rate_bps)?;
    let message = format!(
        "counter mode counts one slot for all ports, but {} and {} differ",
        show_rate(first.rate_bps),
        show_rate(other.rate_bps)
    );
    Some((other.rate_at.0.clone(), other.rate_at.1.clone(), message))
}

/// Links slower than their port have reservations of their own, and the port none: together they must not ask for more than
/// it has.
fn check_breakouts(sink: &mut Sink<'_>, drafts: &[Draft]) {
    for (n, draft) in drafts.iter().enumerate() {
        let (Some(port), Some(port_rate)) = (&draft.port, &draft.port_rate) else { continue };
        let shares = |other: &&Draft| other.port.as_ref().is_some_and(|other| other.value == port.value);
        let slower = |other: &Draft| other.rate_bps < port_rate.value;
        if drafts[..n].iter().any(|other| shares(&other)) || !drafts.iter().filter(shares).any(slower) {
            continue;
        }
        let together: u64 =
            drafts.iter().filter(shares).fold(0, |sum: u64, other| sum.saturating_add(other.rate_bps));
        if together > port_rate.value {
            let message = format!(
                "{} is less than the {} of its links together",
                show_rate(port_rate.value),
                show_rate(together)
            );
            let help = "slower links have reservations of their own: let their rates add up to the port's, or give each host \
                        the port's rate, and they share its reservations";
            sink.error(&port_rate.span, &port_rate.field, message, help);
        }
    }
}

/// What all ports leave to traffic from other racks, in percent.
fn foreign_percent(drafts: &[Draft]) -> u32 {
    drafts.iter().filter_map(|draft| draft.foreign_percent).sum::<u32>().min(90)
}

fn slot(switch: &Switch, pl2: Option<&Pl2>, rate_bps: u64, foreign_percent: u32) -> Nanos {
    let headroom_percent = pl2.map_or(0.0, |pl2| pl2.slot_headroom_percent);
    // Slots so much longer that the rest of a fully reserved port is the share.
    let headroom_percent = (100.0 + headroom_percent) * 100.0 / f64::from(100 - foreign_percent) - 100.0;
    let parts = pl2.map_or(1, |pl2| u64::from(pl2.slot_parts.max(1)));
    slot_of(slot_wire_bytes(pl2), rate_bps, headroom_percent, switch.time_unit_ns, parts)
}

fn slot_wire_bytes(pl2: Option<&Pl2>) -> u64 {
    let shim = pl2.filter(|pl2| pl2.shim).map_or(0, |_| p4rack_wire::pl2::Shim::BYTES as u64);
    overhead::wire_bytes(14 + 4 + shim + overhead::MTU)
}

/// A slot, or each of its parts, must be two time units at least, and all that hosts can reserve must begin within the horizon.
fn check_slots(sink: &mut Sink<'_>, drafts: &[Draft], switch: &Switch, pl2: Option<&Pl2>, runs_clock: bool) {
    let Some(pl2) = pl2 else { return };
    let mut said: Vec<&std::ops::Range<usize>> = Vec::new();
    let foreign = foreign_percent(drafts);
    let ports: Vec<u16> = drafts.iter().filter_map(|draft| Some(draft.port.as_ref()?.value as u16)).collect();
    let counter = (pl2.mode == Mode::Counter).then_some(Scheme::Pl2Counter);
    let schemes = [counter, (counter.is_none() || runs_clock).then_some(Scheme::Pl2Clock)];
    for draft in drafts {
        let (span, field) = &draft.rate_at;
        if said.contains(&span) {
            continue;
        }
        // Exact, before rounding up to whole units.
        let parts = f64::from(pl2.slot_parts.max(1));
        let bits =
            slot_wire_bytes(Some(pl2)) as f64 * 8.0 * (1.0 + pl2.slot_headroom_percent / 100.0) / parts;
        let what = if pl2.slot_parts > 1 { "a part of a slot" } else { "a slot" };
        let rate_bps = draft.rate_bps;
        let slot_ns = bits * 1e9 / rate_bps as f64;
        let shortest_ns = 2.0 * switch.time_unit_ns as f64;
        let slot = slot(switch, Some(pl2), rate_bps, foreign);
        if slot_ns < shortest_ns {
            let fits = show_rate((bits * 1e9 / shortest_ns) as u64);
            let rate = show_rate(rate_bps);
            let unit = switch.time_unit_ns;
            let message = format!(
                "{what} at {rate} is {slot_ns:.1} ns, under two of the switch's {unit} ns time units"
            );
            sink.error(
                span,
                field,
                message,
                match pl2.slot_parts {
                    0 | 1 => format!("write a rate of {fits} or less, or a finer time_unit_ns"),
                    _ => format!("write fewer slot_parts, a rate of {fits} or less, or a finer time_unit_ns"),
                },
            );
            said.push(span);
        } else if let Some(scheme) = schemes
            .into_iter()
            .flatten()
            .find(|scheme| beyond_horizon(pl2, *scheme, &ports, slot.0 / switch.time_unit_ns))
        {
            let message = format!(
                "so many slots of {slot} may be reserved that {scheme} can't tell them from the past"
            );
            let help = "write a higher rate, or a smaller k, drop_threshold, lanes or reservations_in_flight";
            sink.error(span, field, message, help);
            said.push(span);
        }
    }
}

/// Whether what may be reserved at one link, or the threshold, reaches the horizon. `ports` are all hosts'.
///
/// Each lane of each pair holds one reservation that begins later than a burst may come early. Hosts that share a link add up there.
/// Counters also hold what the lane's other half has left; where the destination's clock goes on from the source's, both add up.
pub(crate) fn beyond_horizon(pl2: &Pl2, scheme: Scheme, ports: &[u16], slot_units: u64) -> bool {
    let of_port = |port: &u16| ports.iter().filter(|other| *other == port).count();
    let pairs = ports.len() as u64 * ports.iter().map(of_port).max().unwrap_or(1) as u64;
    let k = u64::from(pl2.k);
    let lanes = pairs * u64::from(pl2.lanes) * k;
    let reserved = match scheme {
        Scheme::L2 => return false,
        Scheme::Pl2Counter => 2 * lanes,
        Scheme::Pl2Clock if pl2.clocks == Clocks::Chain => 2 * (lanes + k + EARLY_SLOTS),
        Scheme::Pl2Clock => lanes + k + EARLY_SLOTS,
    };
    let threshold = if scheme == Scheme::Pl2Clock { u64::from(pl2.drop_threshold_slots) } else { 0 };
    reserved.max(threshold).saturating_mul(slot_units) >= HORIZON_UNITS
}

fn check_name(text: &str) -> Result<String, String> {
    let good = text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good { Ok(text.to_owned()) } else { Err(format!("`{}` is no name", text.escape_default())) }
}

fn parse_cidr(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let (ip, prefix) = text.split_once('/').ok_or_else(|| format!("`{text}` has no prefix length"))?;
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("`{ip}` is no IPv4 address"))?;
    let prefix: u8 = prefix
        .parse()
        .ok()
        .filter(|prefix| (1..=30).contains(prefix))
        .ok_or_else(|| format!("`/{prefix}` is no prefix length from 1 to 30"))?;
    let host_bits = u32::from(ip) & !mask(prefix);
    if host_bits == 0 || host_bits == !mask(prefix) || ip.is_multicast() || ip.is_loopback() {
        return Err(format!("`{text}` is no host's address"));
    }
    Ok((ip, prefix))
}

fn mask(prefix: u8) -> u32 {
    u32::MAX << (32 - u32::from(prefix))
}

fn network(ip: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(ip) & mask(prefix))
}
