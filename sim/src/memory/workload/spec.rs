//! `[workload]`: its fields, checked.

use super::{BYTES_MAX, Generator, Part};
use crate::experiment::{Check, SizeSpec};
use crate::memory::message::Operation;
use crate::random::Distribution;
use serde::{Deserialize, Serialize};

/// Messages of a run at most.
const MESSAGES_MAX: usize = 10_000_000;
/// When the last message of a run comes at the latest.
const SPAN_MAX_S: f64 = 100_000.0;
/// Operations of a node under way at most.
const IN_FLIGHT_MAX: u32 = 65_536;
/// Keys of a store at most.
const KEYS_MAX: u32 = 1 << 20;
/// Kinds of operations in a mix at most.
const KINDS_MAX: usize = 64;

/// Messages that follow those that are measured, as a share of them, so that the last ones have company.
pub const AFTER: f64 = 0.1;

/// `[workload]`: either a trace, or operations, a load or a closed loop, and a number of messages.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// A trace of the EDM authors' generator, relative to the file.
    pub trace: Option<String>,
    /// Share of reads, in percent.
    pub read_percent: Option<f64>,
    /// Bytes of a message.
    pub size: Option<SizeSpec>,
    /// Instead of these two: kinds of operations, each with its share and sizes.
    #[serde(default)]
    pub mix: Vec<MixSpec>,
    /// Payload as a share of the links' rate.
    pub load: Option<f64>,
    /// Instead of it: operations that each compute node has under way; it begins with another one when one ends.
    pub in_flight: Option<u32>,
    /// The first nodes that ask, where the others have the memory. Default: all do both.
    pub compute_nodes: Option<u16>,
    /// With `in_flight`: share of operations on a node's own memory, in percent; with `keys`, of keys that are in it.
    #[serde(default)]
    pub local_percent: f64,
    /// With `in_flight`: keys that operations use.
    pub keys: Option<u32>,
    /// Exponent of the keys' popularity.
    #[serde(default = "zipf")]
    pub zipf: f64,
    /// Messages that are measured.
    pub messages: Option<usize>,
    /// As many more come before, as a share of those that are measured.
    #[serde(default = "half")]
    pub warmup: f64,
}

/// One of `workload.mix`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// Kind of the operations.
    pub kind: KindSpec,
    /// Share of all operations, in percent.
    pub percent: f64,
    /// Bytes of a message.
    pub size: SizeSpec,
}

/// Kinds of operations.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum KindSpec {
    /// A read.
    Read,
    /// A write.
    Write,
}

fn zipf() -> f64 {
    0.99
}
fn half() -> f64 {
    0.5
}

/// The generator of an experiment's messages, among this many nodes. `None`: there is a trace, or mistakes, which are then in `check`.
pub fn generator(workload: &WorkloadSpec, nodes: u16, rate_bps: u64, check: &mut Check) -> Option<Generator> {
    let mut problem = |key: &str, what: String| check.problem("workload", 0, key, what);
    if workload.trace.is_some() {
        for (key, given) in [
            ("size", workload.size.is_some()),
            ("read_percent", workload.read_percent.is_some()),
            ("mix", !workload.mix.is_empty()),
            ("load", workload.load.is_some()),
            ("in_flight", workload.in_flight.is_some()),
            ("compute_nodes", workload.compute_nodes.is_some()),
            ("local_percent", workload.local_percent != 0.0),
            ("keys", workload.keys.is_some()),
            ("messages", workload.messages.is_some()),
        ] {
            if given {
                problem(key, "the trace says that; leave it out, or leave out trace".into());
            }
        }
        return None;
    }
    let mix = workload.parts(&mut problem);
    workload.check_pace(&mut problem);
    workload.check_nodes(nodes, &mut problem);
    match workload.messages {
        Some(count) if (100..=MESSAGES_MAX).contains(&count) => {}
        Some(count) => problem("messages", format!("{count} is out of range; write 100 to {MESSAGES_MAX}")),
        None => problem("messages", MISSING.to_owned()),
    }
    if !(0.0..=10.0).contains(&workload.warmup) {
        problem("warmup", format!("{} is out of range; write 0 to 10", workload.warmup));
    }
    let generator = Generator {
        nodes,
        compute_nodes: workload.compute_nodes,
        rate_bps,
        load: workload.load,
        mix: mix?,
        local: workload.local_percent / 100.0,
        keys: workload.keys.map(|count| (count, workload.zipf)),
    };
    if let (Some(load), Some(count)) = (workload.load, workload.messages) {
        let count = count as f64 * (1.0 + AFTER + workload.warmup);
        let span_s = count * generator.mean_bytes() * 8.0 / (rate_bps as f64 * load * f64::from(nodes));
        if span_s > SPAN_MAX_S {
            let what =
                format!("{load} puts the last message at {span_s:.0} s; write more, or fewer messages");
            problem("load", what);
        }
    }
    Some(generator)
}

const MISSING: &str = "is missing; write it, or name a trace";

impl WorkloadSpec {
    /// Kinds of operations: those of the mix, or reads and writes of one size.
    fn parts(&self, problem: &mut impl FnMut(&str, String)) -> Option<Vec<Part>> {
        if self.mix.is_empty() {
            let percent = self.read_percent.unwrap_or(0.0);
            if !(0.0..=100.0).contains(&percent) {
                problem("read_percent", format!("{percent} is out of range; write 0 to 100"));
            }
            let Some(size) = &self.size else {
                problem("size", "is missing; write it or mix, or name a trace".into());
                return None;
            };
            let sizes = sizes(size).map_err(|error| problem("size", error)).ok()?;
            let reads = Part { share: percent / 100.0, operation: Operation::Read, sizes: sizes.clone() };
            let writes = Part { share: 1.0 - percent / 100.0, operation: Operation::Write, sizes };
            return Some(if percent > 0.0 { vec![reads, writes] } else { vec![writes] });
        }
        for (key, given) in [("size", self.size.is_some()), ("read_percent", self.read_percent.is_some())] {
            if given {
                problem(key, "mix says that; leave it out, or leave out mix".into());
            }
        }
        if self.mix.len() > KINDS_MAX {
            problem("mix", format!("has {} kinds; write {KINDS_MAX} at most", self.mix.len()));
        }
        let mut parts = Vec::new();
        for (nth, one) in self.mix.iter().enumerate() {
            if !(0.0..=100.0).contains(&one.percent) {
                problem("mix", format!("{nth}.percent: {} is out of range; write 0 to 100", one.percent));
            }
            match sizes(&one.size) {
                Ok(sizes) => {
                    let operation = match one.kind {
                        KindSpec::Read => Operation::Read,
                        KindSpec::Write => Operation::Write,
                    };
                    parts.push(Part { share: one.percent / 100.0, operation, sizes });
                }
                Err(error) => problem("mix", format!("{nth}.size: {error}")),
            }
        }
        let sum: f64 = self.mix.iter().map(|one| one.percent).sum();
        if (sum - 100.0).abs() > 0.01 || sum.is_nan() {
            problem("mix", format!("percent: {sum} in all; write shares that add up to 100"));
        }
        (parts.len() == self.mix.len()).then_some(parts)
    }

    fn check_pace(&self, problem: &mut impl FnMut(&str, String)) {
        match (self.load, self.in_flight) {
            (Some(_), Some(_)) => {
                problem("in_flight", "there is a load; leave one of them out".into());
            }
            (None, None) => problem("load", "is missing; write it or in_flight, or name a trace".into()),
            (Some(load), None) if !(load > 0.0 && load <= 1.0) => {
                problem("load", format!("{load} is out of range; write more than 0, up to 1"));
            }
            (None, Some(count)) if !(1..=IN_FLIGHT_MAX).contains(&count) => {
                problem("in_flight", format!("{count} is out of range; write 1 to {IN_FLIGHT_MAX}"));
            }
            _ => {}
        }
        if !(0.0..=100.0).contains(&self.local_percent) {
            problem("local_percent", format!("{} is out of range; write 0 to 100", self.local_percent));
        }
        if self.in_flight.is_none() && (self.local_percent != 0.0 || self.keys.is_some()) {
            let key = if self.keys.is_some() { "keys" } else { "local_percent" };
            problem(key, "a load is of remote memory; write in_flight instead of load".into());
        }
        if self.keys.is_some_and(|keys| !(1..=KEYS_MAX).contains(&keys)) {
            problem("keys", format!("{} is out of range; write 1 to {KEYS_MAX}", self.keys.unwrap_or(0)));
        }
        if !(0.0..1.0).contains(&self.zipf) {
            problem("zipf", format!("{} is out of range; write 0 to below 1", self.zipf));
        }
    }

    fn check_nodes(&self, nodes: u16, problem: &mut impl FnMut(&str, String)) {
        if let Some(asking) = self.compute_nodes
            && (asking == 0 || asking >= nodes)
        {
            let most = nodes.saturating_sub(1);
            let what = format!("{asking} of {nodes} nodes; write 1 to {most}: the others have the memory");
            problem("compute_nodes", what);
        }
    }
}

fn sizes(size: &SizeSpec) -> Result<Distribution, String> {
    let sizes = size.quantiles()?;
    match sizes.least() >= 1 && sizes.at(1.0) <= BYTES_MAX as f64 {
        true => Ok(sizes),
        false => Err(format!("a message has 1 to {BYTES_MAX} bytes")),
    }
}
