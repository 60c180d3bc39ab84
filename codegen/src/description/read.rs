//! Reads TOML into drafts for the checks.

use super::check::{
    self, Draft, FOREIGN_PERCENT, IP_HELP, MAC_HELP, NAME_HELP, PORT_MAX, RATE_HELP, check_ip, check_mac,
    check_name,
};
use super::pool::read_pool;
use super::workload::read_workload;
use crate::kind::Kind;
use crate::rack::units::{parse_rate, parse_size};
use crate::rack::{
    BUFFER_BYTES, Definition, Protocol, Queueing, RESERVED_PERCENT, Rack, RackError, Section, Sink, Switch,
    Target, limits,
};
use p4rack_wire::MacAddr;
use std::net::Ipv4Addr;
use std::sync::Arc;
use toml::de::DeTable;

pub(super) fn parse(text: &str, file: &str, protocols: &[&dyn Definition]) -> Result<Rack, RackError> {
    read(text, file, protocols).map_err(|error| match Kind::of(text) {
        Some(kind) if kind != Kind::Rack => {
            RackError::of_file(file.to_owned(), kind.instead_of(Kind::Rack), kind.command(file))
        }
        _ => error,
    })
}

fn read(text: &str, file: &str, protocols: &[&dyn Definition]) -> Result<Rack, RackError> {
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
    let rack = read_rack(&mut sink, Section::root(&root), protocols);
    match rack {
        Some(rack) if sink.is_empty() => Ok(rack),
        _ => Err(sink.into_error()),
    }
}

fn read_rack(
    sink: &mut Sink<'_>,
    mut root: Section<'_, '_>,
    definitions: &[&dyn Definition],
) -> Option<Rack> {
    let name = root.parsed(sink, "name", NAME_HELP, parse_name);
    if name.is_none() && !root.has("name") {
        root.missing(sink, "name", "\"my-rack\"");
    }
    let described = match root.section(sink, "switch") {
        Some(section) => read_switch(sink, section),
        None if root.has("switch") => None,
        None => {
            let message = "is missing".to_owned();
            sink.error(&(0..0), "switch", message, "add a [switch] table with port_rate = \"100 Mb/s\"");
            None
        }
    };
    let sections = root.sections(sink, "host").into_iter().enumerate();
    let drafts: Vec<Draft> = sections.map(|(n, section)| read_host(sink, section, n)).collect();
    if drafts.is_empty() && !root.has("host") {
        sink.error(&(0..0), "host", "is missing".to_owned(), "add one [[host]] table for each host");
    }
    let mut protocols: Vec<Arc<dyn Protocol>> = Vec::new();
    for definition in definitions {
        let section = root.section(sink, definition.section());
        protocols.extend(section.and_then(|section| definition.read(section, sink)));
    }
    // Where nothing is reserved, a host that sends more would get more.
    let wants_turns = protocols.iter().any(|protocol| protocol.wants_turns());
    let switch = described.map(|(switch, queueing)| {
        let has_turns = wants_turns && switch.target == Target::Embedded;
        let default = if has_turns { Queueing::Fair } else { Queueing::Fifo };
        Switch { queueing: queueing.unwrap_or(default), ..switch }
    });
    let pool = root.section(sink, "pool").map(|section| read_pool(sink, section));
    let workload = root.section(sink, "workload").and_then(|section| read_workload(sink, section, pool));
    root.finish(sink);
    if drafts.is_empty() {
        return None;
    }
    check::finish(sink, name.map(|name| name.value), switch, drafts, protocols, workload)
}

/// The switch, and how its frames take turns if the description says.
fn read_switch(sink: &mut Sink<'_>, mut section: Section<'_, '_>) -> Option<(Switch, Option<Queueing>)> {
    let target = section.parsed(sink, "target", "write \"embedded\" or \"bmv2\"", str::parse);
    let arch = section.parsed(sink, "arch", "write one of these, or leave it out", str::parse);
    let device_id = section.integer(sink, "device_id", (0, i64::MAX as u64));
    let rate = section.parsed(sink, "port_rate", RATE_HELP, parse_rate);
    if rate.is_none() && !section.has("port_rate") {
        section.missing(sink, "port_rate", "\"100 Mb/s\"");
    }
    let buffer = section.parsed(sink, "buffer", "write a size such as \"256 KiB\"", parse_size);
    let reserved = section.integer(sink, "reserved_percent", (0, 90));
    let queueing = section.parsed(sink, "queueing", "write \"fifo\" or \"fair\"", str::parse);
    let cpu_port = section.integer(sink, "cpu_port", limits::SPECIAL_PORTS);
    let drop_port = section.integer(sink, "drop_port", limits::SPECIAL_PORTS);
    let help = "write an address and port such as \"127.0.0.1:9559\"";
    let grpc_addr = section.parsed(sink, "grpc_addr", help, |text| {
        text.parse().map_err(|_| format!("`{text}` is no address with a port"))
    });
    let time_unit = section.integer(sink, "time_unit_ns", limits::TIME_UNIT_NS);
    let tors = section.integer(sink, "tors", limits::TORS);
    section.finish(sink);
    let target = target.map_or(Target::Embedded, |target| target.value);
    let default = Switch::new(target, rate?.value).with_buffer(
        buffer.map_or(BUFFER_BYTES, |size| size.value),
        reserved.map_or(RESERVED_PERCENT, |percent| percent.value),
    );
    let switch = Switch {
        arch: arch.map_or(default.arch, |arch| arch.value),
        device_id: device_id.map_or(default.device_id, |id| id.value),
        cpu_port: cpu_port.map_or(default.cpu_port, |port| port.value as u16),
        drop_port: drop_port.map_or(default.drop_port, |port| port.value as u16),
        grpc_addr: grpc_addr.map_or(default.grpc_addr, |addr| addr.value),
        time_unit_ns: time_unit.map_or(default.time_unit_ns, |unit| unit.value),
        tors: tors.map_or(default.tors, |tors| tors.value as u16),
        ..default
    };
    Some((switch, queueing.map(|queueing| queueing.value)))
}

fn read_host(sink: &mut Sink<'_>, mut section: Section<'_, '_>, position: usize) -> Draft {
    let name = section.parsed(sink, "name", NAME_HELP, parse_name);
    let port = section.integer(sink, "port", (1, PORT_MAX));
    let mac = section.parsed(sink, "mac", MAC_HELP, |text| {
        let mac: MacAddr = text.parse()?;
        check_mac(mac).map(|()| mac)
    });
    let ip = section.parsed(sink, "ip", IP_HELP, parse_cidr);
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
    let port_rate = section.parsed(sink, "port_rate", RATE_HELP, parse_rate);
    let foreign_percent = section.integer(sink, "foreign_percent", FOREIGN_PERCENT);
    section.finish(sink);
    Draft {
        field: format!("host[{position}]"),
        name: name.map(|name| name.value),
        port: port.map(|port| port.value as u16),
        mac: mac.map(|mac| mac.value),
        ip: ip.map(|ip| ip.value),
        rate_bps: rate.map(|rate| rate.value),
        port_rate_bps: port_rate.map(|rate| rate.value),
        foreign_percent: foreign_percent.map(|percent| percent.value as u32),
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

fn parse_cidr(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let (ip, prefix) = text.split_once('/').ok_or_else(|| format!("`{text}` has no prefix length"))?;
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("`{ip}` is no IPv4 address"))?;
    let prefix: u8 = prefix.parse().map_err(|_| format!("`/{prefix}` is no prefix length from 1 to 30"))?;
    check_ip(ip, prefix).map(|()| (ip, prefix))
}
