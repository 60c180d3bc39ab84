//! The engine's table in a description.

use super::Cowbird;
use super::check::range;
use crate::rack::reader::as_string;
use crate::rack::{At, Section, Sink};
use p4rack_wire::roce::Mtu;
use p4rack_wire::{MacAddr, Nanos};
use std::net::Ipv4Addr;

const HOSTS: &str = "a list of names of hosts, such as [\"h3\"]";

pub(super) fn read(mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Cowbird> {
    let ip = section.parsed(sink, "ip", "write an IPv4 address such as \"10.0.0.254\"", |text| {
        text.parse::<Ipv4Addr>().map_err(|_| format!("`{text}` is no IPv4 address"))
    });
    if ip.is_none() && !section.has("ip") {
        section.missing(sink, "ip", "\"10.0.0.254\", an address that no host has");
    }
    let mac = section.parsed(sink, "mac", "write a MAC address such as \"02:c0:b1:d0:00:01\"", |text| {
        text.parse::<MacAddr>().map_err(|error| error.to_string())
    });
    let mut hosts = |key, sink: &mut Sink<'_>| {
        let list = section.list(sink, key, HOSTS, as_string);
        if list.is_none() && !section.has(key) {
            section.missing(sink, key, "[\"h1\"], names of hosts");
        }
        list.map(|list| list.value.into_iter().map(|name| name.value).collect::<Vec<String>>())
    };
    let (compute, pool) = (hosts("compute", sink), hosts("pool", sink));
    let mut number = |key| section.integer(sink, key, range(key));
    let (instances, regions, in_flight) = (number("instances"), number("regions"), number("in_flight"));
    let (mtu, message) = (number("mtu"), number("message_bytes_max"));
    let (probe, rest, timeout) = (number("probe_ns"), number("rest_turns"), number("timeout_us"));
    let mtu = mtu.and_then(|at| {
        let found = Mtu::ALL.into_iter().find(|mtu| u64::from(mtu.bytes()) == at.value);
        if found.is_none() {
            let help = "write 256, 512, 1024, 2048 or 4096";
            sink.error(&at.span, &at.field, format!("{} is no MTU of RoCE", at.value), help);
        }
        found
    });
    section.finish(sink);
    let default = Cowbird::new(ip?.value, compute?, pool?);
    let value = |at: Option<At<u64>>, default: u32| at.map_or(default, |at| at.value as u32);
    Some(Cowbird {
        mac: mac.map_or(default.mac, |at| at.value),
        instances: value(instances, default.instances),
        regions: value(regions, default.regions),
        in_flight: value(in_flight, default.in_flight),
        mtu: mtu.unwrap_or(default.mtu),
        message_bytes_max: value(message, default.message_bytes_max),
        rest_turns: value(rest, default.rest_turns),
        probe: probe.map_or(default.probe, |at| Nanos(at.value)),
        timeout: timeout.map_or(default.timeout, |at| Nanos::from_micros(at.value)),
        ..default
    })
}
