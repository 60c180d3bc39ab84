//! Reads TOML into drafts for the checks.

use super::Topology;
use super::check;
use super::drafts::{Drafts, EndDraft, HostDraft, LinkDraft, NO_NUL, SwitchDraft};
use super::links::DELAY_MAX;
use super::workload;
use crate::description::{IP_HELP, MAC_HELP, NAME_HELP, RATE_HELP, check_mac, check_name};
use crate::rack::reader::as_string;
use crate::rack::units::{parse_rate, parse_size, parse_time};
use crate::rack::{At, RackError, Section, Sink, limits};
use p4rack_wire::MacAddr;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use toml::de::DeTable;

/// First address of P4Runtime; the switches' ports count up from it.
const FIRST_GRPC_PORT: u16 = 9559;
/// P4Runtime device id of each switch.
const DEVICE_ID: u64 = 1;
/// What `program` says if a controller brings it.
const NO_PROGRAM: &str = "none";

pub(super) fn parse(text: &str, file: &str, folder: &Path) -> Result<Topology, RackError> {
    let mut sink = Sink::new(text, file);
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let message = error.message().replace('\n', ", ");
        sink.error(&error.span().unwrap_or(0..0), "", message, "the file must be TOML (https://toml.io)");
    }
    if !sink.is_empty() {
        return Err(sink.into_error());
    }
    let mut root = Section::root(&root);
    let name = root.parsed(&mut sink, "name", NAME_HELP, parse_name);
    if name.is_none() && !root.has("name") {
        root.missing(&mut sink, "name", "\"my-topology\"");
    }
    let sections = root.sections(&mut sink, "switch").into_iter().enumerate();
    let switches = sections.map(|(n, section)| read_switch(&mut sink, section, n, folder)).collect();
    let sections = root.sections(&mut sink, "host").into_iter().enumerate();
    let hosts: Vec<_> = sections.map(|(n, section)| read_host(&mut sink, section, n)).collect();
    let sections = root.sections(&mut sink, "link").into_iter().enumerate();
    let links = sections.map(|(n, section)| read_link(&mut sink, section, n)).collect();
    let names: Vec<Option<&str>> = hosts.iter().map(|host| host.name.as_deref()).collect();
    let workload = root.section(&mut sink, "workload");
    let workload = workload.map(|section| workload::read(&mut sink, section, &names));
    root.finish(&mut sink);
    let name = name.map(|name| name.value);
    let first_grpc_port = FIRST_GRPC_PORT;
    check::finish(sink, Drafts { name, switches, hosts, links, workload, first_grpc_port, is_json: false })
}

fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

fn value<T>(at: Option<At<T>>) -> Option<T> {
    at.map(|at| at.value)
}

fn read_switch(sink: &mut Sink<'_>, mut section: Section<'_, '_>, n: usize, folder: &Path) -> SwitchDraft {
    let name = value(section.parsed(sink, "name", NAME_HELP, parse_name));
    if name.is_none() && !section.has("name") {
        section.missing(sink, "name", "\"s1\"");
    }
    let mut path = |sink: &mut Sink<'_>, key, wanted| {
        let text =
            section.string(sink, key, wanted).filter(|text| text.value != NO_PROGRAM || key != "program")?;
        let path = folder.join(&text.value);
        if let Err(message) = is_file(&path) {
            sink.error(&text.span, &text.field, message, "give its path from the topology's folder");
        }
        Some(path)
    };
    let program = path(sink, "program", "the path of a P4 program");
    let rack = path(sink, "rack", "the path of a rack description");
    let entries = path(sink, "entries", "the path of a file with entries");
    let field = format!("switch[{n}]");
    let gives_one = section.has("program") || section.has("rack");
    if !gives_one {
        let help =
            "add program = \"x.p4\" or rack = \"rack.toml\"; program = \"none\" leaves it to a controller";
        sink.refuse(&[&field], "runs nothing".to_owned(), help);
    }
    let help = "write \"embedded\", \"bmv2\" or \"tofino\"";
    let target = value(section.parsed(sink, "target", help, str::parse));
    let help = "write an address and port such as \"127.0.0.1:9559\"";
    let grpc_addr = value(section.parsed(sink, "grpc_addr", help, |text| {
        text.parse().map_err(|_| format!("`{text}` is no address with a port"))
    }));
    let device_id = value(section.integer(sink, "device_id", (0, i64::MAX as u64)));
    let cpu_port = value(section.integer(sink, "cpu_port", limits::SPECIAL_PORTS)).map(|port| port as u16);
    let buffer_bytes = value(section.parsed(sink, "buffer", "write a size such as \"256 KiB\"", parse_size));
    let time_unit_ns = value(section.integer(sink, "time_unit_ns", limits::TIME_UNIT_NS));
    section.finish(sink);
    SwitchDraft {
        field,
        name,
        program,
        rack,
        entries,
        target,
        grpc_addr,
        device_id: device_id.unwrap_or(DEVICE_ID),
        cpu_port,
        buffer_bytes,
        time_unit_ns,
    }
}

/// Errors: a path leads to no file.
fn is_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(format!("{}: is a folder, not a file", path.display())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("{}: no such file", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn read_host(sink: &mut Sink<'_>, mut section: Section<'_, '_>, n: usize) -> HostDraft {
    let name = value(section.parsed(sink, "name", NAME_HELP, parse_name));
    if name.is_none() && !section.has("name") {
        section.missing(sink, "name", "\"h1\"");
    }
    let mac = |text: &str| {
        let mac: MacAddr = text.parse()?;
        check_mac(mac).map(|()| mac)
    };
    let own_mac = value(section.parsed(sink, "mac", MAC_HELP, mac));
    let ip = value(section.parsed(sink, "ip", IP_HELP, check::parse_cidr));
    let help = "write the router's address, such as \"10.0.1.254\"";
    let gateway = value(section.parsed(sink, "gateway", help, |text| {
        text.parse::<Ipv4Addr>().map_err(|_| format!("`{text}` is no IPv4 address"))
    }));
    let gateway_mac = value(section.parsed(sink, "gateway_mac", MAC_HELP, mac));
    let commands = section.list(sink, "commands", "a list of commands, each a string", as_string);
    for command in commands.iter().flat_map(|list| &list.value).filter(|one| one.value.contains('\0')) {
        sink.error(&command.span, &command.field, "has a NUL character".to_owned(), NO_NUL);
    }
    let commands = commands.map(|list| list.value.into_iter().map(|at| at.value).collect());
    section.finish(sink);
    HostDraft {
        field: format!("host[{n}]"),
        name,
        mac: own_mac,
        ip,
        gateway,
        gateway_mac,
        commands: commands.unwrap_or_default(),
    }
}

fn read_link(sink: &mut Sink<'_>, mut section: Section<'_, '_>, n: usize) -> LinkDraft {
    let field = format!("link[{n}]");
    let ends = section.list(sink, "ends", "two ends, such as [\"h1\", \"s1:1\"]", as_string);
    if ends.is_none() && !section.has("ends") {
        section.missing(sink, "ends", "[\"h1\", \"s1:1\"]");
    }
    let parse = |sink: &mut Sink<'_>, end: At<String>| match parse_end(&end.value) {
        Ok((node, port)) => Some(EndDraft { field: end.field, node, port }),
        Err(message) => {
            sink.error(
                &end.span,
                &end.field,
                message,
                "write a host such as \"h1\", or a port such as \"s1:1\"",
            );
            None
        }
    };
    let ends = ends.and_then(|list| match <[At<String>; 2]>::try_from(list.value) {
        Ok(two) => {
            let [a, b] = two.map(|end| parse(sink, end));
            Some([a?, b?])
        }
        // What is no string has been reported.
        Err(others) if others.len() < 2 => {
            sink.refuse(&[&list.field], "has not two ends".to_owned(), "write [\"h1\", \"s1:1\"]");
            None
        }
        Err(others) => {
            let message = format!("has {} ends", others.len());
            sink.refuse(&[&list.field], message, "write one [[link]] for each pair of ends");
            None
        }
    });
    let rate_bps = value(section.parsed(sink, "rate", RATE_HELP, parse_rate));
    let help = "write a time such as \"5 ms\" or \"20 us\"";
    let delay = value(section.parsed(sink, "delay", help, |text| match parse_time(text)? {
        delay if delay > DELAY_MAX => Err(format!("`{text}` is more than 10 s")),
        delay => Ok(delay),
    }));
    let loss = value(section.number(sink, "loss_percent", (0.0, 100.0)));
    section.finish(sink);
    LinkDraft {
        field,
        ends,
        rate_bps,
        delay: delay.unwrap_or_default(),
        loss_ppm: loss.map_or(0, |percent| (percent * 1e4).round() as u32),
    }
}

/// `h1` or `s1:2`.
fn parse_end(text: &str) -> Result<(String, Option<u16>), String> {
    let Some((node, port)) = text.split_once(':') else { return Ok((text.to_owned(), None)) };
    let port = port.parse().map_err(|_| format!("`{port}` is no port number from 1 to 511"))?;
    Ok((node.to_owned(), Some(port)))
}
