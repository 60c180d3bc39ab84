//! Reads the P4 tutorials' `topology.json` into drafts for the checks.
//!
//! ```text
//! {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}},
//!  "switches": {"s1": {"runtime_json": "pod-topo/s1-runtime.json", "program": "build/firewall.json", "cpu_port": 510}},
//!  "links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", latency_ms, rate_mbps]]}
//! ```
//!
//! Its files name compiled programs: `build/basic.json`. That stands for `basic.p4` in the same exercise, or its solution; without
//! such a text the JSON itself is taken, if it exists.

use super::Topology;
use super::check;
use super::drafts::{Drafts, EndDraft, HostDraft, LinkDraft, NO_NUL, SwitchDraft};
use super::links::DELAY_MAX;
use super::positions::{positions, start_of_line};
use crate::description::{MAC_HELP, check_mac};
use crate::rack::units::{parse_rate, parse_time};
use crate::rack::{RackError, Sink, Target, limits};
use p4rack_wire::{MacAddr, Nanos};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// P4Runtime's port of the first switch, as controllers of the tutorials expect.
const FIRST_GRPC_PORT: u16 = 50_051;
/// Folder of an exercise's solution.
const SOLUTION: &str = "solution";

/// Which programs the switches of an exercise run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exercise {
    /// Files of the solution take precedence over those to be completed.
    pub solution: bool,
    /// Programs instead of those that the files name: of one switch, or of all.
    pub programs: Vec<(Option<String>, PathBuf)>,
}

pub(super) fn parse(text: &str, file: &str, path: &Path, exercise: &Exercise) -> Result<Topology, RackError> {
    let mut sink = Sink::new(text, file);
    let root = match serde_json::from_str(text) {
        Ok(Value::Object(root)) => {
            sink.have_read(positions(text));
            root
        }
        Ok(_) => {
            sink.refuse(&[], "is no object".to_owned(), "a topology has hosts, switches, links");
            return Err(sink.into_error());
        }
        Err(error) => {
            let help = "give a topology.json of the P4 tutorials, with hosts, switches and links";
            if text.trim().is_empty() {
                sink.refuse(&[], "is empty".to_owned(), help);
            } else {
                let start = start_of_line(text, error.line());
                sink.error(&(start..start), "", format!("is no JSON: {error}"), help);
            }
            return Err(sink.into_error());
        }
    };
    let files = Files::new(path, exercise);
    if root.get("switches").and_then(Value::as_object).is_some_and(Map::is_empty) {
        sink.refuse(&["switches"], "has none".to_owned(), "add a member for each switch, such as \"s1\": {}");
    }
    let mut nodes = |key: &str| named(&mut sink, &root, key);
    let (switches, hosts) = (nodes("switches"), nodes("hosts"));
    for (only, _) in &exercise.programs {
        if let Some(name) = only.as_ref().filter(|name| switches.iter().all(|(known, _)| known != *name)) {
            let known: Vec<&str> = switches.iter().map(|(name, _)| name.as_str()).collect();
            sink.refuse(&["switches"], format!("has no {name}"), format!("there are {}", known.join(", ")));
        }
    }
    let switches = switches
        .into_iter()
        .enumerate()
        .map(|(n, (name, value))| read_switch(&mut sink, name, value, n, &files))
        .collect();
    let hosts = hosts.into_iter().map(|(name, value)| read_host(&mut sink, name, value)).collect();
    let links = match root.get("links") {
        Some(Value::Array(links)) => {
            links.iter().enumerate().map(|(n, link)| read_link(&mut sink, n, link)).collect()
        }
        other => {
            expected(&mut sink, "links", other, "a list such as [[\"h1\", \"s1-p1\"]]");
            Vec::new()
        }
    };
    // Without switches, all else would be said to be wrong with them.
    if sink.reported("switches") {
        return Err(sink.into_error());
    }
    let name = Some(files.name());
    check::finish(
        sink,
        Drafts {
            name,
            switches,
            hosts,
            links,
            workload: None,
            first_grpc_port: FIRST_GRPC_PORT,
            is_json: true,
        },
    )
}

/// Where an exercise's files are: paths in them are relative to its folder, which is that of the topology or the one
/// above.
struct Files<'a> {
    folders: Vec<PathBuf>,
    exercise: &'a Exercise,
}

impl<'a> Files<'a> {
    fn new(topology: &Path, exercise: &'a Exercise) -> Files<'a> {
        let own = topology.parent().filter(|folder| !folder.as_os_str().is_empty());
        let own = own.unwrap_or(Path::new(".")).to_owned();
        Files { folders: vec![own.clone(), own.join("..")], exercise }
    }

    /// The exercise's name: that of the first folder with a P4 program, or of the topology's.
    fn name(&self) -> String {
        let has_program = |folder: &&PathBuf| {
            let files = std::fs::read_dir(folder);
            files.into_iter().flatten().flatten().any(|file| is_p4(&file.path()))
        };
        let folder = self.folders.iter().find(has_program).or(self.folders.first());
        let whole = folder.and_then(|folder| folder.canonicalize().ok());
        let name = whole.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = name.unwrap_or_default().chars().map(kept).take(32).collect();
        match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => name,
            false => "topology".to_owned(),
        }
    }

    /// An existing file of the exercise.
    fn find(&self, file: &str) -> Option<PathBuf> {
        let candidates = self.folders.iter().flat_map(|folder| {
            let name = Path::new(file).file_name().filter(|_| self.exercise.solution);
            let solved = name.map(|name| folder.join(SOLUTION).join(name));
            solved.into_iter().chain([folder.join(file)])
        });
        let mut files = candidates.filter(|path| path.is_file());
        files.next()
    }

    /// The program for what a compiler made of it: `basic.p4` for `build/basic.json`, or without it the JSON.
    fn source(&self, compiled: &str) -> Result<PathBuf, String> {
        let stem = Path::new(compiled).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = format!("{stem}.p4");
        self.find(&file).or_else(|| self.find(compiled)).ok_or(file)
    }

    fn chosen(&self, switch: &str) -> Option<&PathBuf> {
        let programs = &self.exercise.programs;
        let of = |wanted: Option<&str>| programs.iter().rev().find(|(only, _)| only.as_deref() == wanted);
        of(Some(switch)).or_else(|| of(None)).map(|(_, path)| path)
    }
}

fn is_p4(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "p4")
}

fn expected(sink: &mut Sink<'_>, field: &str, found: Option<&Value>, wanted: &str) {
    let message = match found {
        None => "is missing".to_owned(),
        Some(value) => format!("is {value}"),
    };
    sink.refuse(&[field], message, format!("write {wanted}"));
}

/// The objects below a key, in the order in which people count: s2 before s10.
fn named(sink: &mut Sink<'_>, root: &Map<String, Value>, key: &str) -> Vec<(String, Map<String, Value>)> {
    let Some(Value::Object(all)) = root.get(key) else {
        expected(sink, key, root.get(key), "an object with one member for each");
        return Vec::new();
    };
    let mut objects = Vec::new();
    for (name, value) in all {
        match value {
            Value::Object(value) => objects.push((name.clone(), value.clone())),
            other => expected(sink, &format!("{key}.{name}"), Some(other), "an object"),
        }
    }
    objects.sort_by(|(a, _), (b, _)| natural(a, b));
    objects
}

fn natural(a: &str, b: &str) -> Ordering {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        (stem.to_owned(), name[stem.len()..].parse::<u64>().unwrap_or(0))
    };
    split(a).cmp(&split(b))
}

fn text<'v>(sink: &mut Sink<'_>, object: &'v Map<String, Value>, field: &str, key: &str) -> Option<&'v str> {
    let found = object.get(key)?;
    if found.as_str().is_none() {
        expected(sink, &format!("{field}.{key}"), Some(found), "a string");
    }
    found.as_str()
}

fn read_switch(
    sink: &mut Sink<'_>,
    name: String,
    object: Map<String, Value>,
    n: usize,
    files: &Files<'_>,
) -> SwitchDraft {
    let field = format!("switches.{name}");
    if object.contains_key("cli_input") {
        let help = "write the entries as a runtime_json, or run the commands once the switches run: p4rack compat simple_switch_CLI";
        sink.refuse(&[&format!("{field}.cli_input")], "is for BMv2's own command line".to_owned(), help);
    }
    let cpu_port = object.get("cpu_port").and_then(|value| {
        // It is a string in some exercises.
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let (least, most) = limits::SPECIAL_PORTS;
        let port = number.filter(|port| (least..=most).contains(port)).map(|port| port as u16);
        if port.is_none() {
            expected(sink, &format!("{field}.cpu_port"), Some(value), "a number from 1 to 511");
        }
        port
    });
    let entries = text(sink, &object, &field, "runtime_json").and_then(|file| {
        let found = files.find(file);
        if found.is_none() {
            let help = "give the path from the topology's folder, or from the one above";
            sink.refuse(&[&format!("{field}.runtime_json")], format!("{file}: no such file"), help);
        }
        found
    });
    let compiled = text(sink, &object, &field, "program").map(str::to_owned);
    let compiled = compiled.or_else(|| compiled_of(entries.as_deref()?));
    let program = files.chosen(&name).cloned().or_else(|| {
        let compiled = compiled?;
        let source = files.source(&compiled);
        if let Err(file) = &source {
            let message = format!("runs {compiled}, and there is no {file}");
            let help = format!("name the program: --program {name}=FILE.p4");
            sink.refuse(&[&format!("{field}.program"), &field], message, help);
        }
        source.ok()
    });
    SwitchDraft {
        field,
        name: Some(name),
        program,
        rack: None,
        entries,
        target: None,
        grpc_addr: None,
        device_id: n as u64,
        cpu_port,
        buffer_bytes: None,
        time_unit_ns: Some(Target::Bmv2.time_unit_ns()),
    }
}

/// What the entries' program is compiled to. A file that is no JSON is reported when its entries are read.
fn compiled_of(entries: &Path) -> Option<String> {
    let text = crate::text::read(entries).ok()?;
    let file: Value = serde_json::from_str(&text).ok()?;
    file.get("bmv2_json")?.as_str().map(str::to_owned)
}

fn read_host(sink: &mut Sink<'_>, name: String, object: Map<String, Value>) -> HostDraft {
    let field = format!("hosts.{name}");
    let mac = text(sink, &object, &field, "mac").and_then(|mac| {
        let parsed = mac.parse::<MacAddr>().and_then(|mac| check_mac(mac).map(|()| mac));
        parsed.map_err(|message| sink.refuse(&[&format!("{field}.mac")], message, MAC_HELP)).ok()
    });
    let ip = text(sink, &object, &field, "ip").and_then(|ip| {
        let refuse = |message| {
            let help = "write the address and its subnet's prefix, such as \"10.0.1.1/24\"";
            sink.refuse(&[&format!("{field}.ip")], message, help);
        };
        check::parse_cidr(ip).map_err(refuse).ok()
    });
    let mut commands = Vec::new();
    match object.get("commands") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            commands.extend(list.iter().filter_map(|command| command.as_str().map(str::to_owned)));
            if commands.iter().any(|command| command.contains('\0')) {
                sink.refuse(&[&format!("{field}.commands")], "has a NUL character".to_owned(), NO_NUL);
            }
        }
        other => expected(sink, &format!("{field}.commands"), other, "a list of strings"),
    }
    HostDraft { field, name: Some(name), mac, ip, gateway: None, gateway_mac: None, commands }
}

fn read_link(sink: &mut Sink<'_>, n: usize, link: &Value) -> LinkDraft {
    let field = format!("links[{n}]");
    let end = |at: usize| link.get(at).and_then(Value::as_str);
    let ends = match (end(0), end(1)) {
        (Some(a), Some(b)) => [a, b].map(|text| parse_end(text, &field)).into(),
        _ => {
            expected(sink, &field, Some(link), "[\"h1\", \"s1-p1\"]");
            None
        }
    };
    let delay = match link.get(2) {
        None | Some(Value::Null) => Some(Nanos::ZERO),
        Some(Value::Number(ms)) => ms.as_f64().filter(|ms| *ms >= 0.0).map(|ms| Nanos((ms * 1e6) as u64)),
        // Without a unit, Mininet's traffic control takes microseconds.
        Some(Value::String(text)) => match text.parse::<u64>() {
            Ok(us) => us.checked_mul(1_000).map(Nanos),
            Err(_) => parse_time(text).ok(),
        },
        Some(_) => None,
    };
    let delay = delay.filter(|delay| *delay <= DELAY_MAX);
    if delay.is_none() {
        expected(sink, &field, link.get(2), "the latency in ms, or such as \"5ms\", up to 10 s");
    }
    let rate_bps = match link.get(3) {
        None | Some(Value::Null) => None,
        Some(rate) => {
            let rate_bps = rate.as_f64().and_then(|mbps| parse_rate(&format!("{mbps} Mb/s")).ok());
            if rate_bps.is_none() {
                expected(sink, &field, Some(rate), "the bandwidth in Mb/s");
            }
            rate_bps
        }
    };
    LinkDraft { field, ends, rate_bps, delay: delay.unwrap_or_default(), loss_ppm: 0 }
}

/// `s1-p2` is a port; everything else, a host, or `h1-eth0`, its interface.
fn parse_end(text: &str, field: &str) -> EndDraft {
    let port = text.rsplit_once("-p").and_then(|(node, port)| Some((node, port.parse::<u16>().ok()?)));
    let (node, port) = match port {
        Some((node, port)) => (node, Some(port)),
        None => (text.split_once("-eth").map_or(text, |(node, _)| node), None),
    };
    EndDraft { field: field.to_owned(), node: node.to_owned(), port }
}
