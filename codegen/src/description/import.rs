//! The P4 tutorials' `topology.json` as a rack description.
//!
//! ```text
//! {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}},
//!  "switches": {"s1": {"runtime_json": "s1-runtime.json"}},
//!  "links": [["h1", "s1-p1"], ["s1-p2", "h2", latency_ms, rate_mbps]]}
//! ```
//!
//! A rack is one switch with its hosts in one subnet, so one switch's surroundings are imported.

use crate::rack::Rack;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Values that the description needs beyond the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Name of the rack.
    pub name: String,
    /// Name of the switch to import, if there are several.
    pub switch: Option<String>,
    /// Prefix length of the subnet, if the hosts' own prefixes would not put them into one.
    pub prefix: Option<u8>,
    /// Rate of links without one, e.g. "100 Mb/s".
    pub port_rate: String,
}

/// A description, and the parts of the file that it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The description as TOML, already checked.
    pub toml: String,
    /// Things in the file that a rack does not have, one line each.
    pub left_out: Vec<String>,
}

/// A link between a host and the switch.
struct Link {
    host: String,
    port: u16,
    rate_mbps: Option<f64>,
}

/// Converts a topology to a description. The error names the field, the expected value and what to do.
pub fn import(text: &str, options: &Options) -> Result<Imported, String> {
    let topology: Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}; give a topology.json"))?;
    let hosts = object(&topology, "hosts")?;
    let switch = the_switch(object(&topology, "switches")?, options)?;
    let mut left_out = Vec::new();
    let links = links(&topology, hosts, &switch, &mut left_out)?;
    if links.is_empty() {
        return Err(format!("links: no host is linked to {switch}; choose another --switch-name"));
    }
    let mut toml = format!(
        "# Imported from a topology of the P4 tutorials, switch {switch}.\nname = {:?}\n\n[switch]\nport_rate = {:?}\n",
        options.name, options.port_rate
    );
    for link in &links {
        host(&mut toml, link, hosts, options, &mut left_out)?;
    }
    let unlinked = hosts.keys().filter(|name| !links.iter().any(|link| link.host == **name));
    left_out.extend(unlinked.map(|name| format!("host {name}: not linked to {switch}")));
    Rack::parse(&toml, "the imported description").map_err(|error| {
        format!("{error}\nhosts of a rack share a subnet: --prefix 16 (or less) may put them together")
    })?;
    Ok(Imported { toml, left_out })
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, String> {
    let found =
        value.get(key).ok_or_else(|| format!("{key}: missing; a topology has hosts, switches, links"))?;
    found.as_object().ok_or_else(|| format!("{key}: expected an object, found {found}"))
}

fn the_switch(switches: &Map<String, Value>, options: &Options) -> Result<String, String> {
    let names = || switches.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match (&options.switch, switches.len()) {
        (Some(name), _) if switches.contains_key(name) => Ok(name.clone()),
        (Some(name), _) => Err(format!("switches: no {name}; there are {}", names())),
        (None, 1) => Ok(names()),
        (None, 0) => Err("switches: empty; a rack has one".to_owned()),
        (None, count) => {
            Err(format!("switches: {count}, and a rack has one: choose with --switch-name from {}", names()))
        }
    }
}

/// Links between hosts and the switch.
fn links(
    topology: &Value,
    hosts: &Map<String, Value>,
    switch: &str,
    left_out: &mut Vec<String>,
) -> Result<Vec<Link>, String> {
    let list = topology.get("links").and_then(Value::as_array);
    let list = list.ok_or("links: missing; expected a list such as [[\"h1\", \"s1-p1\"]]")?;
    let mut links = Vec::new();
    for (index, link) in list.iter().enumerate() {
        let field = format!("links[{index}]");
        let ends = (link.get(0).and_then(Value::as_str), link.get(1).and_then(Value::as_str));
        let (Some(a), Some(b)) = ends else {
            return Err(format!("{field}: expected [\"h1\", \"s1-p1\"], found {link}"));
        };
        // Either end may come first; `h1-eth0` is the host's own interface.
        let host_of = |end: &str| {
            let name = end.split_once("-eth").map_or(end, |(name, _)| name);
            hosts.contains_key(name).then(|| name.to_owned())
        };
        let (host, other) = match (host_of(a), host_of(b)) {
            (Some(host), None) => (host, b),
            (None, Some(host)) => (host, a),
            (Some(_), Some(_)) => return Err(format!("{field}: {a} and {b} are both hosts")),
            (None, None) => {
                left_out.push(format!("{field}: {a} to {b}, between switches"));
                continue;
            }
        };
        let Some((at, port)) = other.rsplit_once("-p") else {
            return Err(format!("{field}: {other} is no switch port; expected one such as \"s1-p1\""));
        };
        if at != switch {
            continue;
        }
        let port = port.parse().map_err(|_| format!("{field}: {port} is no port number from 1 to 511"))?;
        if link.get(2).is_some_and(|latency| !matches!(latency.as_f64(), Some(0.0)) && !latency.is_null()) {
            left_out.push(format!("{field}: its latency; links of a rack have none of their own"));
        }
        let rate = link.get(3).filter(|rate| !rate.is_null());
        let rate_mbps = rate
            .map(|rate| {
                rate.as_f64().filter(|rate| *rate > 0.0).ok_or(format!("{field}: {rate} is no rate in Mb/s"))
            })
            .transpose()?;
        links.push(Link { host, port, rate_mbps });
    }
    links.sort_by_key(|link| link.port);
    Ok(links)
}

fn host(
    toml: &mut String,
    link: &Link,
    hosts: &Map<String, Value>,
    options: &Options,
    left_out: &mut Vec<String>,
) -> Result<(), String> {
    let Link { host: name, port, rate_mbps } = link;
    let described = hosts.get(name).unwrap_or(&Value::Null);
    let text = |key: &str| {
        let found = described.get(key).and_then(Value::as_str);
        found.ok_or_else(|| format!("hosts.{name}.{key}: missing; write it as text"))
    };
    let ip = text("ip")?;
    let (address, own_prefix) = ip.split_once('/').unwrap_or((ip, "24"));
    let address: Ipv4Addr = address
        .parse()
        .map_err(|_| format!("hosts.{name}.ip: `{ip}` is no IPv4 address such as 10.0.1.1/24"))?;
    let prefix = options.prefix.map_or(own_prefix.to_owned(), |prefix| prefix.to_string());
    let mac = text("mac")?;
    // Writing to a string cannot fail, so the results are ignored.
    let _ = write!(
        toml,
        "\n[[host]]\nname = {name:?}\nport = {port}\nmac  = {mac:?}\nip   = \"{address}/{prefix}\"\n"
    );
    if let Some(rate) = rate_mbps {
        let _ = writeln!(toml, "rate = \"{rate} Mb/s\"");
    }
    if described.get("commands").and_then(Value::as_array).is_some_and(|commands| !commands.is_empty()) {
        left_out.push(format!("hosts.{name}.commands: agents set addresses and neighbours themselves"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_SWITCH: &str = r#"{
        "hosts": {
            "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:01", "commands": ["route add default gw x"]},
            "h2": {"ip": "10.0.1.2/24", "mac": "08:00:00:00:01:02"}
        },
        "switches": {"s1": {"runtime_json": "s1-runtime.json"}},
        "links": [["s1-p2", "h2", 0, 25.5], ["h1", "s1-p1", "5ms"]]
    }"#;
    const POD: &str = r#"{
        "hosts": {
            "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"},
            "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
            "h3": {"ip": "10.0.3.3/24", "mac": "08:00:00:00:03:33"}
        },
        "switches": {"s1": {}, "s2": {}},
        "links": [["h1", "s1-p1"], ["h2", "s1-p2"], ["s1-p3", "s2-p1"], ["h3", "s2-p2"]]
    }"#;

    fn options() -> Options {
        Options { name: "pod".into(), port_rate: "100 Mb/s".into(), ..Options::default() }
    }

    #[test]
    fn one_switch_with_its_hosts_becomes_a_rack() {
        let imported = import(ONE_SWITCH, &options()).unwrap();
        let rack = Rack::parse(&imported.toml, "pod.toml").unwrap();
        let hosts: Vec<_> = rack.hosts.iter().map(|h| (h.name.as_str(), h.port, h.rate_bps)).collect();
        assert_eq!(hosts, [("h1", 1, 100_000_000), ("h2", 2, 25_500_000)]);
        assert_eq!(rack.hosts[1].mac.to_string(), "08:00:00:00:01:02");
        assert_eq!(
            imported.left_out,
            [
                "links[1]: its latency; links of a rack have none of their own",
                "hosts.h1.commands: agents set addresses and neighbours themselves",
            ]
        );
    }

    #[test]
    fn of_several_switches_one_is_chosen() {
        let error = import(POD, &options()).unwrap_err();
        assert_eq!(error, "switches: 2, and a rack has one: choose with --switch-name from s1, s2");
        let s1 = Options { switch: Some("s1".into()), ..options() };
        let error = import(POD, &s1).unwrap_err();
        assert!(error.contains("--prefix 16"), "{error}");
        let imported = import(POD, &Options { prefix: Some(16), ..s1 }).unwrap();
        assert_eq!(Rack::parse(&imported.toml, "p").unwrap().hosts.len(), 2);
        assert_eq!(
            imported.left_out,
            ["links[2]: s1-p3 to s2-p1, between switches", "host h3: not linked to s1"]
        );
    }

    #[test]
    fn what_cannot_be_imported_is_named() {
        let broken = |from: &str, to: &str| import(&ONE_SWITCH.replace(from, to), &options()).unwrap_err();
        assert!(import("[]", &options()).unwrap_err().starts_with("hosts: missing"));
        assert!(import("nonsense", &options()).unwrap_err().starts_with("not JSON: "));
        assert_eq!(broken("s1-p2", "s1-px"), "links[0]: x is no port number from 1 to 511");
        assert!(broken("\"mac\": \"08:00:00:00:01:02\"", "\"m\": 1").starts_with("hosts.h2.mac: missing"));
        assert!(broken("10.0.1.2/24", "10.0.1").starts_with("hosts.h2.ip: `10.0.1` is no IPv4 address"));
        assert!(broken("25.5", "\"fast\"").starts_with("links[0]: \"fast\" is no rate"));
        assert!(broken("[\"h1\", \"s1-p1\", \"5ms\"]", "7").starts_with("links[1]: expected"));
        assert!(broken("08:00:00:00:01:02", "08:00:00:00:01:01").contains("mac"));
        let none = Options { switch: Some("s9".into()), ..options() };
        assert_eq!(import(ONE_SWITCH, &none).unwrap_err(), "switches: no s9; there are s1");
    }
}
