//! The experiment file: what is simulated, as TOML. `docs/sim.md` documents it.

use crate::link::Faults;
use crate::random::{Between, Quantiles};
use crate::sizes;
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use p4rack_codegen::rack::{Rack, RackError, Scheme};
use p4rack_wire::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// As written.
    pub spec: Spec,
    /// The rack that it describes.
    pub rack: Rack,
    /// What runs on switch and hosts.
    pub scheme: Scheme,
}

/// The file's fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name, for results.
    pub name: String,
    /// Seed of everything random.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long sources run, from time 0.
    pub duration_us: u64,
    /// From here on it is measured.
    #[serde(default)]
    pub warmup_us: u64,
    /// What is under way when the sources stop gets so long to arrive.
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
    /// What is sent.
    pub traffic: Vec<TrafficSpec>,
    /// Hosts that fall silent.
    #[serde(default)]
    pub fail: Vec<FailSpec>,
    /// Figures that a paper states, to be set beside the measured ones.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// `[rack]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RackSpec {
    /// How many hosts; they are named h1, h2, …
    pub hosts: usize,
    /// Rate of all links.
    #[serde(default = "hundred_gig")]
    pub rate: String,
    /// Rates of single hosts' links, by name.
    #[serde(default)]
    pub rates: BTreeMap<String, String>,
    /// The switch's shared buffer.
    #[serde(default = "two_mib")]
    pub buffer: String,
    /// Delay of the switch's pipeline: quantiles, pairs of probability and nanoseconds.
    #[serde(default = "switch_delay")]
    pub pipeline_ns: Vec<(f64, f64)>,
}

/// `[scheme]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// What it is.
    pub kind: Kind,
    /// K: most slots a reservation.
    #[serde(default = "k")]
    pub k: u8,
    /// t: below it bursts go unsolicited; 0 never.
    #[serde(default = "t")]
    pub t: u32,
    /// T: unsolicited frames are dropped over it; 8 t if not given.
    pub drop_threshold: Option<u32>,
    /// Reservations in flight a destination.
    #[serde(default = "one_usize")]
    pub in_flight: usize,
    /// How much longer than a full frame a slot is.
    #[serde(default)]
    pub slot_headroom_percent: f64,
    /// Sequence numbers, by which receivers remove duplicates.
    #[serde(default = "yes")]
    pub shim: bool,
    /// How long a grant says something about its destination.
    pub fresh_ns: Option<u64>,
    /// An RSV without grant is repeated after this.
    #[serde(default = "grt_timeout")]
    pub grt_timeout_us: u64,
}

/// Schemes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Plain switching with tail drop, hosts send as fast as they can.
    Ethernet,
    /// PL2, Algorithm 1.
    Pl2Counter,
    /// PL2 with clocks.
    Pl2Clock,
}

/// `[nic]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicSpec {
    /// Where the protocol's machine runs.
    pub place: Place,
    /// Delay between host memory and wire, each way: quantiles.
    pub dma_ns: Vec<(f64, f64)>,
}

impl Default for NicSpec {
    fn default() -> NicSpec {
        NicSpec { place: Place::Nic, dma_ns: DMA_NS.to_vec() }
    }
}

/// Where the protocol's machine runs.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the network card: only data crosses the bus.
    Nic,
    /// In the host: each RSV and GRT crosses the bus as well.
    Host,
}

/// `[link]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Delay from one end to the other beyond serialisation: quantiles.
    pub delay_ns: Vec<(f64, f64)>,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame arrives with a wrong FCS.
    pub corruption: f64,
    /// Probability that a frame comes twice.
    pub duplication: f64,
    /// Probability that a frame is held up by `reorder_ns`.
    pub reordering: f64,
    /// See `reordering`.
    pub reorder_ns: u64,
    /// Hosts whose links these faults concern; all if empty.
    pub hosts: Vec<String>,
    /// When those links are down: from, to, in microseconds.
    pub down_us: Vec<(u64, u64)>,
}

impl Default for LinkSpec {
    fn default() -> LinkSpec {
        LinkSpec {
            delay_ns: WIRE_NS.to_vec(),
            loss: 0.0,
            corruption: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_ns: 2_000,
            hosts: Vec::new(),
            down_us: Vec::new(),
        }
    }
}

/// `[[traffic]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name, for results.
    pub name: String,
    /// Who sends to whom.
    pub pattern: Pattern,
    /// Names of the senders.
    pub senders: Option<Vec<String>>,
    /// Names of the receivers.
    pub receivers: Option<Vec<String>>,
    /// Sizes of messages.
    pub size: SizeSpec,
    /// When they come.
    pub arrivals: Arrivals,
    /// With `poisson`: share of the link's rate.
    pub load: Option<f64>,
    /// The host whose link `load` is a share of.
    pub load_link: Option<String>,
    /// What the load counts.
    #[serde(default)]
    pub load_in: LoadIn,
    /// Sending threads, each sender and receiver.
    #[serde(default = "one_usize")]
    pub flows: usize,
    /// Messages that may wait in a flow; further ones are dropped and counted.
    #[serde(default = "queue_limit")]
    pub queue_limit: usize,
    /// With `rpc`: size of requests.
    #[serde(default = "request_bytes")]
    pub request_bytes: u32,
    /// With `rpc`: time that the server takes.
    #[serde(default)]
    pub service_ns: u64,
    /// With `rpc`: time between an answer and the next request.
    #[serde(default)]
    pub think_ns: u64,
    /// When it starts.
    #[serde(default)]
    pub start_us: u64,
    /// When it stops; at the end if not given.
    pub stop_us: Option<u64>,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All others to the first host.
    Incast,
    /// The first host to all others.
    Outcast,
    /// Every sender to every receiver; the first half to the second if not given.
    Shuffle,
    /// Everybody to everybody else.
    AllToAll,
    /// Everybody to one other, nobody to the same.
    Permutation,
}

/// Sizes of messages.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SizeSpec {
    /// All the same.
    Bytes(u32),
    /// A distribution by name.
    Name(String),
    /// Quantiles.
    Quantiles(Vec<(f64, f64)>),
}

/// When messages come.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each flow has always one more.
    Saturate,
    /// At random, without regard to what is under way.
    Poisson,
    /// A flow sends a request; the receiver answers with a message; then the next request.
    Rpc,
    /// Every flow sends one message; when all have arrived, again.
    Rounds,
}

/// What a load counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LoadIn {
    /// Bytes on the wire.
    #[default]
    Bytes,
    /// Slots: a frame takes one, however short.
    Slots,
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
    /// Which of our figures: a path into the results, e.g. `goodput_gbps`.
    pub figure: String,
    /// What the paper says.
    pub says: f64,
    /// Where, in its words.
    pub source: String,
    /// Why ours differs, if it does.
    pub why: Option<String>,
}

/// Switch's delay: minimum, median and 99.99 % are the PL2 paper's (§5), the rest keeps the standard
/// deviation of 3 ns that it states.
const PIPELINE_NS: [(f64, f64); 6] =
    [(0.0, 346.0), (0.5, 347.0), (0.99, 349.0), (0.999, 353.0), (0.9999, 508.0), (1.0, 600.0)];
/// One way on a link, without serialisation: with the switch's delay, RSV→GRT is 1 µs at the least,
/// 1.06 µs in the median and 14 µs at the most, as the paper's §5 has it; FEC varies by 1–2 µs (§2).
const WIRE_NS: [(f64, f64); 6] =
    [(0.0, 320.0), (0.5, 349.0), (0.99, 400.0), (0.999, 900.0), (0.9999, 1_500.0), (1.0, 6_820.0)];
/// Host memory to wire, one way: half of what software timestamps have over hardware's in §5
/// (1.98 / 2.05 / 22.25 against 1 / 1.06 / 14 µs).
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
fn k() -> u8 {
    4
}
fn t() -> u32 {
    15
}
fn yes() -> bool {
    true
}
fn grt_timeout() -> u64 {
    50
}
fn queue_limit() -> usize {
    10_000
}
fn request_bytes() -> u32 {
    64
}
fn hundred_gig() -> String {
    "100 Gb/s".into()
}
fn two_mib() -> String {
    "2 MiB".into()
}
fn switch_delay() -> Vec<(f64, f64)> {
    PIPELINE_NS.to_vec()
}

/// Why an experiment can't run: one line a mistake, each with file, line, field and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ExperimentError(pub Vec<String>);

impl Experiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        let spec: Spec = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.as_bytes().get(..span.start)).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let message = error.message().replace('\n', ", ");
            ExperimentError(vec![format!("{file}:{line}: {message}; docs/sim.md lists the fields")])
        })?;
        Experiment::of(spec, text, file)
    }

    /// Checks one that was read or made.
    pub fn of(spec: Spec, text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        let mut check = Check { text, file, problems: Vec::new() };
        check.spec(&spec);
        if !check.problems.is_empty() {
            return Err(ExperimentError(check.problems));
        }
        let scheme = match spec.scheme.kind {
            Kind::Ethernet => Scheme::L2,
            Kind::Pl2Counter => Scheme::Pl2Counter,
            Kind::Pl2Clock => Scheme::Pl2Clock,
        };
        let rack = rack(&spec).map_err(|error| {
            ExperimentError(
                error
                    .errors
                    .iter()
                    .map(|e| format!("{file}: [rack] {} {}; {}", e.field, e.message, e.help))
                    .collect(),
            )
        })?;
        Ok(Experiment { spec, rack, scheme })
    }

    /// Index of a host's name.
    pub fn host(&self, name: &str) -> Option<usize> {
        host_index(name, self.spec.rack.hosts)
    }

    /// Faults of a host's link.
    pub(crate) fn faults(&self, host: usize) -> Faults {
        let link = &self.spec.link;
        let concerned = link.hosts.is_empty() || link.hosts.iter().any(|name| self.host(name) == Some(host));
        if !concerned {
            return Faults::default();
        }
        let down = |(from, to): &(u64, u64)| (Nanos::from_micros(*from), Nanos::from_micros(*to));
        let mut faults = Faults {
            loss: link.loss,
            corruption: link.corruption,
            duplication: link.duplication,
            reordering: link.reordering,
            reorder_ns: link.reorder_ns,
            down: link.down_us.iter().map(down).collect(),
        };
        if faults.reordering == 0.0 {
            faults.reorder_ns = 0;
        }
        faults
    }

    /// When a host falls silent.
    pub(crate) fn fails_at(&self, host: usize) -> Option<Nanos> {
        let of_host = self.spec.fail.iter().filter(|fail| self.host(&fail.host) == Some(host));
        of_host.map(|fail| Nanos::from_micros(fail.at_us)).min()
    }
}

impl SizeSpec {
    /// The distribution.
    pub fn quantiles(&self) -> Result<Quantiles, String> {
        match self {
            SizeSpec::Bytes(0) => Err("is 0; a message has at least one byte".into()),
            SizeSpec::Bytes(bytes) => Ok(Quantiles::constant(*bytes)),
            SizeSpec::Name(name) => sizes::named(name),
            SizeSpec::Quantiles(points) => Quantiles::new(points, Between::Logarithmic),
        }
    }
}

fn host_index(name: &str, hosts: usize) -> Option<usize> {
    let number: usize = name.strip_prefix('h')?.parse().ok()?;
    (1..=hosts).contains(&number).then(|| number - 1)
}

/// The description that the rack's program is generated from.
fn rack(spec: &Spec) -> Result<Rack, RackError> {
    let (rack, scheme) = (&spec.rack, &spec.scheme);
    let mode = if scheme.kind == Kind::Pl2Counter { "counter" } else { "clock" };
    let threshold = scheme.drop_threshold.unwrap_or(8 * scheme.t).max(1);
    let mut text = format!(
        "name = \"sim\"\n[switch]\nport_rate = \"{}\"\nbuffer = \"{}\"\n[pl2]\nmode = \"{mode}\"\nk = {}\nt = {}\n\
         drop_threshold = {threshold}\nshim = {}\nreservations_in_flight = {}\nslot_headroom_percent = {:?}\n\
         control_per_slot = 0\n",
        rack.rate,
        rack.buffer,
        scheme.k,
        scheme.t,
        scheme.shim,
        scheme.in_flight,
        scheme.slot_headroom_percent
    );
    for host in 0..rack.hosts {
        let (n, mac) = (host + 1, crate::message::mac_of(host));
        let rate = rack.rates.get(&format!("h{n}")).unwrap_or(&rack.rate);
        text += &format!(
            "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"{mac}\"\nip = \"10.0.{}.{}/16\"\nrate = \"{rate}\"\n",
            n >> 8,
            n & 255
        );
    }
    Rack::parse(&text, "")
}

/// Where mistakes are collected.
struct Check<'a> {
    text: &'a str,
    file: &'a str,
    problems: Vec<String>,
}

impl Check<'_> {
    /// Notes a mistake in the `nth` table headed `table`.
    fn problem(&mut self, table: &str, nth: usize, key: &str, message: impl std::fmt::Display) {
        let line = self.line_of(table, nth, key);
        let place = if table.is_empty() { String::new() } else { format!("[{table}] ") };
        self.problems.push(format!("{}:{line}: {place}{key}: {message}", self.file));
    }

    /// The key's line, or the table's where the key isn't given, or 1.
    fn line_of(&self, table: &str, nth: usize, key: &str) -> usize {
        let is_head = |line: &str| {
            let name = line.trim().trim_start_matches('[').split(']').next().unwrap_or_default();
            line.trim_start().starts_with('[') && name.trim() == table
        };
        let mut lines = self.text.lines().enumerate();
        let mut found = 1;
        if !table.is_empty() {
            match lines.by_ref().filter(|(_, line)| is_head(line)).nth(nth) {
                Some((at, _)) => found = at + 1,
                None => return 1,
            }
        }
        let in_table = lines.take_while(|(_, line)| !line.trim_start().starts_with('['));
        let is_key = |line: &str| line.split('=').next().is_some_and(|name| name.trim() == key);
        in_table.filter(|(_, line)| is_key(line)).map(|(at, _)| at + 1).next().unwrap_or(found)
    }

    fn spec(&mut self, spec: &Spec) {
        if spec.duration_us == 0 || spec.duration_us > 60_000_000 {
            self.problem(
                "",
                0,
                "duration_us",
                format!("{} is out of range; write 1 to 60000000", spec.duration_us),
            );
        }
        if spec.warmup_us >= spec.duration_us {
            self.problem("", 0, "warmup_us", "leaves nothing to measure; make it less than duration_us");
        }
        if spec.sample_us == 0 {
            self.problem("", 0, "sample_us", "is 0; write 1 or more");
        }
        if spec.drain_us > 60_000_000 {
            self.problem("", 0, "drain_us", "is over a minute; write 60000000 or less");
        }
        self.rack(spec);
        let scheme = &spec.scheme;
        if scheme.k == 0 {
            self.problem("scheme", 0, "k", "is 0; a burst has at least one frame");
        }
        if !(1..=64).contains(&scheme.in_flight) {
            self.problem(
                "scheme",
                0,
                "in_flight",
                format!("{} is out of range; write 1 to 64", scheme.in_flight),
            );
        }
        if !(0.0..=100.0).contains(&scheme.slot_headroom_percent) {
            self.problem("scheme", 0, "slot_headroom_percent", "is out of range; write 0 to 100");
        }
        if !scheme.shim && scheme.t > 0 && scheme.kind != Kind::Ethernet {
            self.problem(
                "scheme",
                0,
                "shim",
                "without it duplicates of unsolicited frames can't be removed; set shim = true or t = 0",
            );
        }
        self.distribution("nic", "dma_ns", &spec.nic.dma_ns);
        self.distribution("link", "delay_ns", &spec.link.delay_ns);
        let link = &spec.link;
        for (key, value) in [
            ("loss", link.loss),
            ("corruption", link.corruption),
            ("duplication", link.duplication),
            ("reordering", link.reordering),
        ] {
            if !(0.0..=1.0).contains(&value) {
                self.problem("link", 0, key, format!("{value} is no probability; write 0 to 1"));
            }
        }
        for name in &link.hosts {
            self.known_host(spec, "link", 0, "hosts", name);
        }
        for (from, to) in &link.down_us {
            if from >= to {
                self.problem("link", 0, "down_us", format!("[{from}, {to}] ends before it begins"));
            }
        }
        for (nth, fail) in spec.fail.iter().enumerate() {
            self.known_host(spec, "fail", nth, "host", &fail.host);
        }
        if spec.traffic.is_empty() {
            self.problem("", 0, "traffic", "is empty; add a [[traffic]] table");
        }
        for (nth, traffic) in spec.traffic.iter().enumerate() {
            self.traffic(spec, nth, traffic);
        }
    }

    fn rack(&mut self, spec: &Spec) {
        let rack = &spec.rack;
        if !(2..=256).contains(&rack.hosts) {
            self.problem("rack", 0, "hosts", format!("{} is out of range; write 2 to 256", rack.hosts));
        }
        if let Err(error) = parse_rate(&rack.rate) {
            self.problem("rack", 0, "rate", format!("{error}; write \"100 Gb/s\""));
        }
        if let Err(error) = parse_size(&rack.buffer) {
            self.problem("rack", 0, "buffer", format!("{error}; write \"2 MiB\""));
        }
        for (name, rate) in &rack.rates {
            self.known_host(spec, "rack", 0, "rates", name);
            if let Err(error) = parse_rate(rate) {
                self.problem("rack", 0, "rates", format!("{name}: {error}; write \"25 Gb/s\""));
            }
        }
        if spec.scheme.kind == Kind::Pl2Counter
            && rack.rates.values().any(|rate| parse_rate(rate) != parse_rate(&rack.rate))
        {
            self.problem(
                "rack",
                0,
                "rates",
                "pl2-counter counts one slot for all ports; use kind = \"pl2-clock\"",
            );
        }
        self.distribution("rack", "pipeline_ns", &rack.pipeline_ns);
    }

    fn distribution(&mut self, table: &str, key: &str, points: &[(f64, f64)]) {
        if let Err(error) = Quantiles::new(points, Between::Linear) {
            self.problem(table, 0, key, format!("{error}; write e.g. [[0, 320], [0.5, 349], [1, 6820]]"));
        }
    }

    fn known_host(&mut self, spec: &Spec, table: &str, nth: usize, key: &str, name: &str) {
        if host_index(name, spec.rack.hosts).is_none() {
            let last = spec.rack.hosts;
            self.problem(table, nth, key, format!("`{name}` is no host; there are h1 to h{last}"));
        }
    }

    fn traffic(&mut self, spec: &Spec, nth: usize, traffic: &TrafficSpec) {
        for (key, names) in [("senders", &traffic.senders), ("receivers", &traffic.receivers)] {
            for name in names.iter().flatten() {
                self.known_host(spec, "traffic", nth, key, name);
            }
        }
        if let Err(error) = traffic.size.quantiles() {
            self.problem("traffic", nth, "size", error);
        }
        if !(1..=1_000).contains(&traffic.flows) {
            self.problem(
                "traffic",
                nth,
                "flows",
                format!("{} is out of range; write 1 to 1000", traffic.flows),
            );
        }
        if traffic.queue_limit == 0 {
            self.problem("traffic", nth, "queue_limit", "is 0; write 1 or more");
        }
        if let Some(name) = &traffic.load_link {
            self.known_host(spec, "traffic", nth, "load_link", name);
        }
        if traffic.stop_us.is_some_and(|stop| stop <= traffic.start_us) {
            self.problem("traffic", nth, "stop_us", "is before it starts");
        }
        match (traffic.arrivals, traffic.load) {
            (Arrivals::Poisson, None) => {
                self.problem(
                    "traffic",
                    nth,
                    "load",
                    "is missing; poisson arrivals need a share of a link, e.g. load = 0.8",
                );
            }
            (Arrivals::Poisson, Some(load)) if !(load > 0.0 && load <= 100.0) => {
                self.problem("traffic", nth, "load", format!("{load} is out of range; 0.8 is 80 %"));
            }
            (Arrivals::Poisson, Some(load))
                if load > 1.0
                    && self.line_of("traffic", nth, "queue_limit") == self.line_of("traffic", nth, "") =>
            {
                self.problem("traffic", nth, "load", format!(
                    "{load} is more than the link carries: say with queue_limit how many messages may wait in a flow before further ones are dropped"
                ));
            }
            (Arrivals::Saturate | Arrivals::Rpc | Arrivals::Rounds, Some(_)) => {
                self.problem("traffic", nth, "load", "is for poisson arrivals only; take it out");
            }
            _ => {}
        }
    }
}
