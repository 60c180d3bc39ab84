//! Checks experiments for mistakes.

use super::{Arrivals, Pattern, SchemeKind, Spec, TrafficSpec, host_index};
use crate::random::{Between, Distribution};
use crate::transport::Transport;
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use toml::de::{DeTable, DeValue};

/// Collects mistakes.
pub(crate) struct Check<'a> {
    pub text: &'a str,
    pub file: &'a str,
    pub problems: Vec<String>,
}

/// Where the `nth` table with this name begins in the text, and its key, in bytes. A table is written with a head of its own, as
/// part of a line, or by keys with dots.
fn places(text: &str, table: &str, nth: usize, key: &str) -> (usize, Option<usize>) {
    let Ok(root) = DeTable::parse(text) else { return (0, None) };
    let (mut here, mut at) = (root.get_ref(), 0);
    let find = |here: &'_ DeTable<'_>, name: &str| {
        let found = here.iter().find(|(key, _)| key.get_ref() == name);
        found.map(|(key, _)| key.span().start)
    };
    for name in table.split('.').filter(|name| !name.is_empty()) {
        let (Some(start), Some(value)) = (find(here, name), here.get(name)) else { return (at, None) };
        at = start;
        let value = match value.get_ref() {
            DeValue::Array(tables) => tables.get(nth),
            _ => Some(value),
        };
        let Some((value, inner)) = value.and_then(|value| Some((value, value.get_ref().as_table()?))) else {
            return (at, None);
        };
        // A table of keys with dots has no place of its own.
        at = if value.span().is_empty() { at } else { value.span().start };
        here = inner;
    }
    (at, find(here, key))
}

impl Check<'_> {
    /// Records a mistake in the `nth` table headed `table`.
    pub(crate) fn problem(&mut self, table: &str, nth: usize, key: &str, message: impl std::fmt::Display) {
        let line = self.line_of(table, nth, key);
        let place = if table.is_empty() { String::new() } else { format!("[{table}] ") };
        self.problems.push(format!("{}:{line}: {place}{key}: {message}", self.file));
    }

    /// Records a mistake that the check of the rack found, at the experiment's own line.
    pub fn refused(&mut self, field: &str, message: &str) {
        let last = field.rsplit('.').next().unwrap_or(field);
        let (table, key) = match (field.split_once(['.', '[']).map_or(field, |(head, _)| head), last) {
            ("pl2", "reservations_in_flight") => ("scheme", "in_flight"),
            ("pl2", key) => ("scheme", key),
            ("switch", "buffer") => ("rack", "buffer"),
            ("host", "rate") => ("rack", "rates"),
            ("host", "port_rate") => ("rack", "shared"),
            ("host", "foreign_percent") => ("rack", "foreign"),
            _ => ("rack", "rate"),
        };
        self.problem(table, 0, key, message);
    }

    /// Line of the key; of its table if the key is missing; 1 if that is missing too.
    fn line_of(&self, table: &str, nth: usize, key: &str) -> usize {
        let (of_table, of_key) = places(self.text, table, nth, key);
        let before = self.text.as_bytes().get(..of_key.unwrap_or(of_table)).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Whether the table has the key.
    fn has(&self, table: &str, nth: usize, key: &str) -> bool {
        places(self.text, table, nth, key).1.is_some()
    }

    pub fn spec(&mut self, spec: &Spec) {
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
        let k = scheme.k_slots();
        if k == 0 {
            let key = if scheme.backlog() { "k_max" } else { "k" };
            self.problem("scheme", 0, key, "is 0; a burst has at least one frame");
        }
        if scheme.k_max.is_some() && !scheme.backlog() {
            self.problem("scheme", 0, "k_max", "bounds what waits; write k = \"backlog\", or take it out");
        }
        if scheme.slot_parts == 0 || k.checked_mul(scheme.slot_parts).is_none() {
            let most = 255 / k.max(1);
            let message = format!("{} is out of range with K = {k}; write 1 to {most}", scheme.slot_parts);
            self.problem("scheme", 0, "slot_parts", message);
        } else if scheme.slot_parts > 1 && scheme.kind == SchemeKind::Pl2Counter {
            self.problem(
                "scheme",
                0,
                "slot_parts",
                "pl2-counter counts frames, not parts of a slot; remove it, or use kind = \"pl2-clock\"",
            );
        }
        if !(1..=64).contains(&scheme.in_flight()) {
            self.problem(
                "scheme",
                0,
                "in_flight",
                format!("{} is out of range; write 1 to 64", scheme.in_flight()),
            );
        }
        for (key, value) in
            [("silent_after_us", scheme.silent_after_us), ("controller_us", scheme.controller_us)]
        {
            if !(1..=1_000_000).contains(&value) {
                self.problem("scheme", 0, key, format!("{value} is out of range; write 1 to 1000000"));
            }
        }
        if !(0.0..=100.0).contains(&scheme.slot_headroom_percent) {
            self.problem("scheme", 0, "slot_headroom_percent", "is out of range; write 0 to 100");
        }
        if !scheme.shim && scheme.t > 0 && scheme.kind != SchemeKind::L2 {
            self.problem(
                "scheme",
                0,
                "shim",
                "without it duplicates of unsolicited frames can't be removed; set shim = true or t = 0",
            );
        }
        self.distribution("nic", "dma_ns", &spec.nic.dma_ns);
        self.link(&spec.link, 1.0, |name| unknown_host(spec, name));
        for (nth, fail) in spec.fail.iter().enumerate() {
            self.known_host(spec, "fail", nth, "host", &fail.host);
        }
        self.hostile(spec);
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
        let rate_of = |name: &str| parse_rate(rack.rates.get(name).unwrap_or(&rack.rate)).unwrap_or(0);
        let mixed = || (2..=rack.hosts).any(|n| rate_of(&format!("h{n}")) != rate_of("h1"));
        if spec.scheme.kind == SchemeKind::Pl2Counter && mixed() {
            self.problem(
                "rack",
                0,
                "rates",
                "pl2-counter counts one slot for all hosts; use kind = \"pl2-clock\"",
            );
        }
        match parse_size(&rack.lane_buffer) {
            Err(error) => self.problem("rack", 0, "lane_buffer", format!("{error}; write \"64 KiB\"")),
            Ok(bytes) if bytes < 3_200 => {
                self.problem("rack", 0, "lane_buffer", "is under two frames; write 3200 B or more");
            }
            Ok(_) => {}
        }
        for (name, percent) in &rack.foreign {
            self.known_host(spec, "rack", 0, "foreign", name);
            if !(1..=90).contains(percent) {
                self.problem(
                    "rack",
                    0,
                    "foreign",
                    format!("{percent} % for `{name}` is out of range; write 1 to 90"),
                );
            }
        }
        if rack.foreign.values().fold(0, |sum: u32, percent| sum.saturating_add(*percent)) > 90 {
            self.problem("rack", 0, "foreign", "leaves less than 10 % to this rack; write less");
        }
        let shared: Vec<&String> = rack.shared.iter().flatten().collect();
        for (n, name) in shared.iter().enumerate() {
            self.known_host(spec, "rack", 0, "shared", name);
            if shared[..n].contains(name) {
                self.problem("rack", 0, "shared", format!("`{name}` is listed twice; a host has one port"));
            }
            let rate = |text: &String| parse_rate(text).unwrap_or(0);
            if rack.rates.get(*name).is_some_and(|own| rate(own) > rate(&rack.rate)) {
                self.problem("rack", 0, "shared", format!("`{name}` is faster than the port it shares"));
            }
        }
        for group in &rack.shared {
            let slower = |name: &String| rate_of(name) < rate_of("");
            let together = group.iter().fold(0, |sum: u64, name| sum.saturating_add(rate_of(name)));
            if spec.scheme.kind != SchemeKind::L2 && group.iter().any(slower) && together > rate_of("") {
                self.problem(
                    "rack",
                    0,
                    "shared",
                    format!("lanes {} together ask for more than their port has; slower lanes' rates must fit into it", group.join(", ")),
                );
            }
        }
        if rack.shared.iter().any(|group| group.len() < 2) {
            self.problem("rack", 0, "shared", "has a port of one host alone; name two or more");
        }
        if !rack.foreign.is_empty() && spec.scheme.kind == SchemeKind::L2 {
            self.problem("rack", 0, "foreign", "is what PL2 leaves to other racks; take it out");
        }
        if rack.dynamic_percent.is_some_and(|percent| !(1..=10_000).contains(&percent)) {
            self.problem("rack", 0, "dynamic_percent", "is out of range; write 1 to 10000");
        }
        if rack.pfc_bytes.is_some() && spec.scheme.kind != SchemeKind::L2 {
            self.problem("rack", 0, "pfc_bytes", "is for kind = \"l2\"; PL2 has no pauses");
        }
        if rack.pfc_bytes.is_some_and(|bytes| bytes < 3_200) {
            self.problem("rack", 0, "pfc_bytes", "is under two frames; write 3200 or more");
        }
        self.distribution("rack", "pipeline_ns", &rack.pipeline_ns);
    }

    pub(crate) fn distribution(&mut self, table: &str, key: &str, points: &[(f64, f64)]) {
        if let Err(error) = Distribution::new(points, Between::Linear) {
            self.problem(table, 0, key, format!("{error}; write e.g. [[0, 320], [0.5, 349], [1, 6820]]"));
        }
    }

    pub(super) fn known_host(&mut self, spec: &Spec, table: &str, nth: usize, key: &str, name: &str) {
        if let Some(problem) = unknown_host(spec, name) {
            self.problem(table, nth, key, problem);
        }
    }

    fn traffic(&mut self, spec: &Spec, nth: usize, traffic: &TrafficSpec) {
        for (key, names) in [("senders", &traffic.senders), ("receivers", &traffic.receivers)] {
            for name in names.iter().flatten() {
                self.known_host(spec, "traffic", nth, key, name);
            }
        }
        self.sizes(nth, traffic);
        self.transport(spec, nth, traffic);
        if !(1..=1_000).contains(&traffic.flows) {
            self.problem(
                "traffic",
                nth,
                "flows",
                format!("{} is out of range; write 1 to 1000", traffic.flows),
            );
        }
        if traffic.stagger_us > 0 && traffic.arrivals != Arrivals::Saturate {
            self.problem("traffic", nth, "stagger_us", "is for arrivals = \"saturate\"; take it out");
        }
        if traffic.stagger_us >= spec.duration_us {
            self.problem(
                "traffic",
                nth,
                "stagger_us",
                "is no less than duration_us; flows would never begin",
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
            (Arrivals::Poisson, Some(load)) if load > 1.0 && !self.has("traffic", nth, "queue_limit") => {
                self.problem("traffic", nth, "load", format!(
                    "{load} is more than the link carries: say with queue_limit how many messages may wait in a flow before further ones are dropped"
                ));
            }
            (Arrivals::Saturate | Arrivals::Rpc | Arrivals::Rounds | Arrivals::Trace, Some(_)) => {
                self.problem("traffic", nth, "load", "is for poisson arrivals only; take it out");
            }
            _ => {}
        }
    }

    fn sizes(&mut self, nth: usize, traffic: &TrafficSpec) {
        let is_trace = traffic.arrivals == Arrivals::Trace;
        if traffic.size.is_layers() {
            if traffic.arrivals != Arrivals::Rounds {
                self.problem("traffic", nth, "size", "VGG16 is sent in rounds; set arrivals = \"rounds\"");
            }
            if !(traffic.scale > 0.0 && traffic.scale <= 10.0) {
                self.problem(
                    "traffic",
                    nth,
                    "scale",
                    format!("{} is out of range; 1 is the whole network", traffic.scale),
                );
            }
        } else if let Err(error) = traffic.size.quantiles() {
            self.problem("traffic", nth, "size", error);
        }
        if is_trace != (traffic.pattern == Pattern::Trace) {
            self.problem(
                "traffic",
                nth,
                "pattern",
                "a trace says who sends and when; set pattern and arrivals to \"trace\"",
            );
        }
        if is_trace != traffic.trace.is_some() {
            self.problem(
                "traffic",
                nth,
                "trace",
                "names the CSV file of arrivals = \"trace\"; give both or none",
            );
        }
        if traffic.ycsb.is_some() {
            if traffic.arrivals != Arrivals::Rpc {
                self.problem("traffic", nth, "ycsb", "is a mix of requests; set arrivals = \"rpc\"");
            }
            if !(1..=10_000_000).contains(&traffic.keys) {
                self.problem(
                    "traffic",
                    nth,
                    "keys",
                    format!("{} is out of range; write 1 to 10000000", traffic.keys),
                );
            }
            if !(0.0..1.0).contains(&traffic.zipf) {
                self.problem(
                    "traffic",
                    nth,
                    "zipf",
                    format!("{} is out of range; write 0 (all alike) to 0.999", traffic.zipf),
                );
            }
        }
    }

    fn transport(&mut self, spec: &Spec, nth: usize, traffic: &TrafficSpec) {
        let marks = traffic.transport == Transport::Dctcp;
        if marks && spec.scheme.kind != SchemeKind::L2 {
            self.problem(
                "traffic",
                nth,
                "transport",
                "the switch marks under kind = \"l2\" only; use tcp or cubic over PL2",
            );
        }
        let parameters = &spec.transport;
        if traffic.transport.is_tcp() && parameters.window_bytes < 3_000 {
            self.problem("transport", 0, "window_bytes", "is under two frames; write 3000 or more");
        }
        if traffic.transport == Transport::Rds
            && (parameters.rds_blind_bytes < 1_500 || parameters.rds_timeout_us == 0)
        {
            self.problem(
                "transport",
                0,
                "rds_blind_bytes",
                "is under a frame, or rds_timeout_us is 0; PL2's are 62464 and 1000",
            );
        }
    }
}

/// The problem of a host's name, if there is one.
fn unknown_host(spec: &Spec, name: &str) -> Option<String> {
    let last = spec.rack.hosts;
    host_index(name, last).is_none().then(|| format!("`{name}` is no host; there are h1 to h{last}"))
}
