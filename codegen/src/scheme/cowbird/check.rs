//! Checks the engine's parameters and their requirements on the rack.

use super::Cowbird;
use crate::rack::{Rack, Sink};
use std::collections::BTreeSet;

/// Range of a number.
pub(super) fn range(key: &str) -> (u64, u64) {
    match key {
        "instances" => (1, 4_096),
        "regions" => (1, 1 << 16),
        "mtu" => (256, 4_096),
        "in_flight" => (1, 256),
        "message_bytes_max" => (8, 1 << 20),
        // Packet generators count nanoseconds. A probe's answer takes longer than this minimum.
        "probe_ns" => (100, 1_000_000_000),
        "rest_turns" => (1, 1 << 14),
        _ => (1, 10_000_000),
    }
}

pub(super) fn check(cowbird: &Cowbird, rack: &Rack, sink: &mut Sink<'_>) {
    for (key, value) in [
        ("instances", cowbird.instances.into()),
        ("regions", cowbird.regions.into()),
        ("in_flight", cowbird.in_flight.into()),
        ("message_bytes_max", cowbird.message_bytes_max.into()),
        ("probe_ns", cowbird.probe.0),
        ("rest_turns", cowbird.rest_turns.into()),
        ("timeout_us", cowbird.timeout.0 / 1_000),
    ] {
        let (least, most): (u64, u64) = range(key);
        if !(least..=most).contains(&value) {
            let help = format!("write an integer from {least} to {most}");
            sink.refuse(&[&format!("cowbird.{key}")], format!("{value} is out of range"), help);
        }
    }
    for (key, value) in [("in_flight", cowbird.in_flight), ("rest_turns", cowbird.rest_turns)] {
        if !value.is_power_of_two() {
            let help = format!("write {} or {}", value.next_power_of_two() / 2, value.next_power_of_two());
            sink.refuse(&[&format!("cowbird.{key}")], format!("{value} is no power of two"), help);
        }
    }
    check_address(cowbird, rack, sink);
    check_hosts("compute", &cowbird.compute, rack, sink);
    check_hosts("pool", &cowbird.pool, rack, sink);
}

fn check_address(cowbird: &Cowbird, rack: &Rack, sink: &mut Sink<'_>) {
    if let Some(host) = rack.hosts.iter().find(|host| host.mac == cowbird.mac) {
        let message = format!("{} is the address of {}", cowbird.mac, host.name);
        sink.refuse(&["cowbird.mac"], message, "write an address that no host has");
    }
    if cowbird.mac.0[0] & 1 == 1 {
        let message = format!("{} is a group's address", cowbird.mac);
        sink.refuse(&["cowbird.mac"], message, "write an address of one station, such as 02:c0:b1:d0:00:01");
    }
    if let Some(host) = rack.hosts.iter().find(|host| host.ip == cowbird.ip) {
        let message = format!("{} is the address of {}", cowbird.ip, host.name);
        sink.refuse(&["cowbird.ip"], message, "write an address that no host has");
    }
}

fn check_hosts(key: &str, names: &[String], rack: &Rack, sink: &mut Sink<'_>) {
    let field = format!("cowbird.{key}");
    if names.is_empty() {
        sink.refuse(&[&field], "is empty".to_owned(), "name at least one host");
    }
    let mut seen = BTreeSet::new();
    for (n, name) in names.iter().enumerate() {
        let fields = [&*format!("{field}[{n}]"), &field];
        if !rack.hosts.iter().any(|host| host.name == *name) {
            let known: Vec<&str> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
            sink.refuse(&fields, format!("`{name}` is no host"), format!("there are {}", known.join(", ")));
        } else if !seen.insert(name) {
            sink.refuse(&fields, format!("`{name}` is named twice"), "name each host once");
        }
    }
}
