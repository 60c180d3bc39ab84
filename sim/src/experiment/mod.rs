//! Experiment files: Experiments in TOML. `docs/sim.md` documents the fields.

mod check;
mod hostile;
mod link;
#[cfg(test)]
mod refused_tests;
mod scheme;
mod traffic;

pub use hostile::{HostileSpec, NO_ATTACK};
pub use link::LinkSpec;
pub use scheme::{SchemeKind, SchemeSpec};
pub use traffic::{Arrivals, LoadIn, Pattern, SizeSpec, TimedFrom, TrafficSpec, Ycsb};

use crate::link::Faults;
use crate::trace::Trace;
use crate::transport::{Transport, TransportSpec};
pub(crate) use check::Check;
use p4rack_codegen::Scheme;
use p4rack_codegen::kind::Kind;
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use p4rack_codegen::rack::{Link, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::setting::{self, Setting};
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The file's contents.
    pub spec: Spec,
    /// The rack that it describes.
    pub rack: Rack,
    /// PL2's parameters. Plain switching has them too: loads can be given in slots under any scheme.
    pub pl2: Pl2,
    /// The scheme that switch and hosts run.
    pub scheme: Scheme,
    /// The rack with only this scheme's protocols.
    pub runs: Rack,
    /// Trace of each `[[traffic]]`, if it has one.
    pub traces: Vec<Option<Trace>>,
}

/// The file's fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name in results.
    pub name: String,
    /// Seed of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long sources send, from time 0.
    pub duration_us: u64,
    /// Start of the measured time.
    #[serde(default)]
    pub warmup_us: u64,
    /// Time for frames to arrive after the sources have stopped.
    #[serde(default = "drain")]
    pub drain_us: u64,
    /// Interval of queue samples.
    #[serde(default = "ten")]
    pub sample_us: u64,
    /// Hosts, rates, buffer.
    pub rack: RackSpec,
    /// Scheme and its parameters.
    pub scheme: SchemeSpec,
    /// Hosts' network cards.
    #[serde(default)]
    pub nic: NicSpec,
    /// Links.
    #[serde(default)]
    pub link: LinkSpec,
    /// Parameters of the transports.
    #[serde(default)]
    pub transport: TransportSpec,
    /// Messages to send.
    pub traffic: Vec<TrafficSpec>,
    /// Hosts that fall silent.
    #[serde(default)]
    pub fail: Vec<FailSpec>,
    /// Hosts that break the rules.
    #[serde(default)]
    pub hostile: Vec<HostileSpec>,
    /// A paper's figures, shown next to the simulated ones.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// `[rack]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RackSpec {
    /// Number of hosts; their names are h1, h2, …
    pub hosts: usize,
    /// Rate of all links.
    #[serde(default = "hundred_gig")]
    pub rate: String,
    /// Rates of single hosts' links, by name.
    #[serde(default)]
    pub rates: BTreeMap<String, String>,
    /// Hosts that share a switch port of rate `rate`, per port. Their own links are the lanes of a break-out cable, or lead
    /// to hosts on one card.
    #[serde(default)]
    pub shared: Vec<Vec<String>>,
    /// Buffer between a shared port and each of its lanes, in both directions.
    #[serde(default = "lane_buffer")]
    pub lane_buffer: String,
    /// Ports to other racks by host name, with the percentage of each port's rate that is left to their traffic.
    #[serde(default)]
    pub foreign: BTreeMap<String, u32>,
    /// The switch's shared buffer.
    #[serde(default = "two_mib")]
    pub buffer: String,
    /// Dynamic thresholds: a queue may hold this percentage of the free buffer.
    pub dynamic_percent: Option<u32>,
    /// Priority flow control: a host is paused once more than this many bytes of its frames wait in the switch, until half
    /// of that is left.
    pub pfc_bytes: Option<u64>,
    /// Delay of the switch's pipeline as quantiles: pairs of probability and nanoseconds.
    #[serde(default = "switch_delay")]
    pub pipeline_ns: Vec<(f64, f64)>,
}

/// `[nic]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicSpec {
    /// Where PL2's machine runs.
    pub place: MachineLocation,
    /// Delay between host memory and wire, each way, as quantiles.
    pub dma_ns: Vec<(f64, f64)>,
}

impl Default for NicSpec {
    fn default() -> NicSpec {
        NicSpec { place: MachineLocation::Nic, dma_ns: DMA_NS.to_vec() }
    }
}

/// Where PL2's machine runs.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MachineLocation {
    /// In the network card, so only data crosses the bus.
    Nic,
    /// In the host, so RSVs and GRTs cross the bus too.
    Host,
}

/// `[[fail]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FailSpec {
    /// Name of the host.
    pub host: String,
    /// When it falls silent.
    pub at_us: u64,
}

/// `[[paper]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSpec {
    /// Path of the simulated figure in the results, e.g. `goodput_gbps`, or a quotient of two: `PATH / PATH`.
    pub figure: String,
    /// The paper's figure.
    pub says: f64,
    /// Whether the paper's figure is a bound: less agrees with it.
    #[serde(default)]
    pub at_most: bool,
    /// Whether it is a bound from below: more agrees with it.
    #[serde(default)]
    pub at_least: bool,
    /// How far the simulated figure may be from the paper's and still be the same, as a share of that. Default: 0.1.
    pub within: Option<f64>,
    /// Place in the paper, quoted.
    pub source: String,
    /// Why the simulated figure differs, if it does.
    pub why: Option<String>,
    /// Schemes to which the figure applies, by the start of their names. Default: all.
    pub scheme: Option<String>,
    /// Transport to which the figure applies: that of the first traffic. Default: any.
    pub transport: Option<Transport>,
    /// Settings to which the figure applies: paths into the experiment, each with one of several values. Default: any.
    #[serde(default)]
    pub at: BTreeMap<String, Vec<toml::Value>>,
}

/// Delay of the switch's pipeline. Minimum, median and 99.99 % are from the PL2 paper (§5); the other points keep the
/// standard deviation of 3 ns that it states.
const PIPELINE_NS: [(f64, f64); 6] =
    [(0.0, 346.0), (0.5, 347.0), (0.99, 349.0), (0.999, 353.0), (0.9999, 508.0), (1.0, 600.0)];
/// Delay from host memory to wire, one way: half of the difference between software and hardware timestamps in §5
/// (1.98 / 2.05 / 22.25 and 1 / 1.06 / 14 µs).
const DMA_NS: [(f64, f64); 5] =
    [(0.0, 490.0), (0.5, 495.0), (0.99, 600.0), (0.9999, 1_500.0), (1.0, 4_125.0)];

fn one() -> u64 {
    1
}
fn ten() -> u64 {
    10
}
fn drain() -> u64 {
    20_000
}
fn one_usize() -> usize {
    1
}
fn hundred_gig() -> String {
    "100 Gb/s".into()
}
fn lane_buffer() -> String {
    "64 KiB".into()
}
fn two_mib() -> String {
    "2 MiB".into()
}
fn switch_delay() -> Vec<(f64, f64)> {
    PIPELINE_NS.to_vec()
}

/// Why an experiment can't run: one line per mistake, with file, line, field and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ExperimentError(pub Vec<String>);

/// Errors of a text that settings changed: names the line's content instead of its number, which differs from the
/// file's.
pub(crate) fn without_lines(
    error: ExperimentError,
    changed: &str,
    file: &str,
    settings: &[Setting],
) -> ExperimentError {
    let with = format!("{file} with {}", setting::words(settings));
    let rewritten = error.0.iter().map(|message| {
        let at_line = message.strip_prefix(file).and_then(|rest| rest.strip_prefix(':')?.split_once(": "));
        let Some((number, what)) = at_line.and_then(|(line, what)| Some((line.parse::<usize>().ok()?, what)))
        else {
            return format!("{with}: {message}");
        };
        let line = changed.lines().nth(number.saturating_sub(1)).unwrap_or_default().trim();
        let what = numbered(what, changed, number);
        match line.split_once(" = ") {
            Some((key, _)) if !what.contains(key) => format!("{with}: `{line}`: {what}"),
            _ => format!("{with}: {what}"),
        }
    });
    ExperimentError(rewritten.collect())
}

/// A mistake of a table that there are several of, with its number as in `--set`: `[traffic.1]`.
fn numbered(what: &str, changed: &str, line: usize) -> String {
    let Some((table, rest)) = what.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return what.to_owned();
    };
    let head = format!("[[{table}]]");
    match changed.lines().take(line).filter(|line| line.trim() == head).count() {
        0 => what.to_owned(),
        count => format!("[{table}.{}]{rest}", count - 1),
    }
}

/// Reads the TOML file of an experiment; an error names file and line, and ends with what to do, `help`.
pub(crate) fn parse_toml<T: serde::de::DeserializeOwned>(
    text: &str,
    file: &str,
    help: &str,
) -> Result<T, ExperimentError> {
    parse_file(text, file, Kind::Experiment, help)
}

/// The same for a file of the `wanted` kind.
pub(crate) fn parse_file<T: serde::de::DeserializeOwned>(
    text: &str,
    file: &str,
    wanted: Kind,
    help: &str,
) -> Result<T, ExperimentError> {
    toml::from_str(text).map_err(|error| {
        if let Some(mistaken) = Kind::mistaken(text, file, wanted) {
            return ExperimentError(vec![mistaken]);
        }
        let before = error.span().and_then(|span| text.as_bytes().get(..span.start)).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = error.message().replace('\n', ", ");
        ExperimentError(vec![format!("{file}:{line}: {message}; {help}")])
    })
}

impl Experiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        Experiment::of(parse_toml(text, file, "docs/sim.md lists the fields")?, text, file)
    }

    /// Checks an experiment. `text` and `file` are for the lines in error messages.
    pub fn of(spec: Spec, text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        let mut check = Check { text, file, problems: Vec::new() };
        check.spec(&spec);
        if !check.problems.is_empty() {
            return Err(ExperimentError(check.problems));
        }
        let scheme = match spec.scheme.kind {
            SchemeKind::L2 => Scheme::L2,
            SchemeKind::Pl2Counter => Scheme::PL2_COUNTER,
            SchemeKind::Pl2Clock => Scheme::PL2_CLOCK,
        };
        let pl2 = scheme::pl2(&spec.scheme);
        let rack = match Rack::build(topology(&spec, &pl2)) {
            Ok(rack) => rack,
            Err(error) => {
                for one in &error.errors {
                    check.refused(&one.field, &format!("{}; {}", one.message, one.help));
                }
                return Err(ExperimentError(check.problems));
            }
        };
        let runs = match rack.under(scheme) {
            Ok(runs) => runs,
            Err(error) => {
                check.refused("pl2.k", &error.to_string());
                return Err(ExperimentError(check.problems));
            }
        };
        let traces = vec![None; spec.traffic.len()];
        Ok(Experiment { spec, rack, pl2, scheme, runs, traces })
    }

    /// Reads the traces that the experiment names; `read` returns a file's text.
    pub fn read_traces(
        mut self,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Experiment, ExperimentError> {
        let hosts = self.spec.rack.hosts;
        for (nth, traffic) in self.spec.traffic.iter().enumerate() {
            let Some(path) = &traffic.trace else { continue };
            let trace = read(path).and_then(|text| Trace::parse(&text, path, |name| host_index(name, hosts)));
            self.traces[nth] = Some(trace.map_err(|error| ExperimentError(vec![error]))?);
        }
        Ok(self)
    }

    /// The same with the switch and the protocols of a rack that was described; hosts, links and traffic stay.
    pub fn on(self, described: &Rack) -> Result<Experiment, ExperimentError> {
        let topology = Topology {
            switches: vec![described.switch.clone()],
            protocols: described.protocols.clone(),
            ..self.rack.topology()
        };
        let refuse = |error: String| ExperimentError(vec![error]);
        let rack = Rack::build(topology).map_err(|error| refuse(error.to_string()))?;
        let runs = rack.under(self.scheme).map_err(|error| refuse(error.to_string()))?;
        let pl2 = runs.protocol::<Pl2>().cloned().unwrap_or(self.pl2);
        Ok(Experiment { rack, runs, pl2, ..self })
    }

    /// Index of a host's name.
    pub fn host(&self, name: &str) -> Option<usize> {
        host_index(name, self.spec.rack.hosts)
    }

    /// Faults of a host's link.
    pub(crate) fn faults(&self, host: usize) -> Faults {
        self.spec.link.faults(|name| self.host(name) == Some(host))
    }

    /// When a host falls silent.
    pub(crate) fn fails_at(&self, host: usize) -> Option<Nanos> {
        let of_host = self.spec.fail.iter().filter(|fail| self.host(&fail.host) == Some(host));
        of_host.map(|fail| Nanos::from_micros(fail.at_us)).min()
    }
}

fn host_index(name: &str, hosts: usize) -> Option<usize> {
    let number: usize = name.strip_prefix('h')?.parse().ok()?;
    (1..=hosts).contains(&number).then(|| number - 1)
}

/// Switch, hosts and links of the rack.
fn topology(spec: &Spec, pl2: &Pl2) -> Topology {
    let rack = &spec.rack;
    // Rates that can't be parsed have been refused.
    let rate = |text: &str| parse_rate(text).unwrap_or(0);
    let switch = Switch::new(Target::Embedded, rate(&rack.rate));
    let (mut hosts, mut links) = (Vec::new(), Vec::new());
    for host in 0..rack.hosts {
        let n = host + 1;
        let name = format!("h{n}");
        let group = rack.shared.iter().find(|group| group.contains(&name));
        // A shared port has the number of its first host.
        let first = group.into_iter().flatten().filter_map(|name| host_index(name, rack.hosts)).min();
        links.push(Link {
            rate_bps: Some(rate(rack.rates.get(&name).unwrap_or(&rack.rate))),
            port_rate_bps: group.map(|_| rate(&rack.rate)),
            ..Link::to_port(host, first.map_or(n, |first| first + 1) as u16)
        });
        hosts.push(Station {
            mac: crate::message::mac_of(host),
            ip: Ipv4Addr::new(10, 0, (n >> 8) as u8, (n & 255) as u8),
            prefix: 16,
            foreign_percent: rack.foreign.get(&name).copied(),
            name,
        });
    }
    Topology {
        name: "sim".to_owned(),
        switches: vec![switch.with_buffer(parse_size(&rack.buffer).unwrap_or(0), RESERVED_PERCENT)],
        hosts,
        links,
        protocols: vec![Arc::new(pl2.clone())],
        workload: None,
    }
}
