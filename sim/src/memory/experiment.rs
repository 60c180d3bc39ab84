//! Experiments on memory racks, checked.

use super::exact::Params;
use super::hostile::attackers;
use super::latency::{Modules, STACKS};
use super::message::{Message, Operation};
use super::packets::{Headers, Packets, Scheme};
use super::pipeline;
use super::spec::{FramingSpec, Latencies, MemoryScheme, MemorySpec, PolicySpec};
use super::workload::{AFTER, BYTES_MAX, Generator, generator, parse_trace};
use crate::experiment::{Check, ExperimentError, LinkSpec, parse_toml};
use p4rack_codegen::rack::units::parse_rate;
use p4rack_fabric::edm::blocks::Framing;
use p4rack_fabric::edm::scheduler::{Config, Policy};
use std::collections::BTreeMap;

/// `kind` of such a file.
pub const KIND: &str = "memory";
/// Range of the links' rate: a block takes whole picoseconds, and far less than a run.
const RATE_MIN_BPS: u64 = 1_000_000;
const RATE_MAX_BPS: u64 = 10_000_000_000_000;
/// Maximum of the times in a file: a second.
const TIME_MAX_PS: u64 = 1_000_000_000_000;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct MemoryExperiment {
    /// As in the file.
    pub spec: MemorySpec,
    /// Rate of the links.
    pub rate_bps: u64,
    generator: Option<Generator>,
    trace: Option<Vec<Message>>,
}

impl MemoryExperiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<MemoryExperiment, ExperimentError> {
        MemoryExperiment::of(parse_toml(text, file, "docs/edm.md lists the fields")?, text, file)
    }

    /// Checks the fields of an experiment.
    pub fn of(spec: MemorySpec, text: &str, file: &str) -> Result<MemoryExperiment, ExperimentError> {
        let mut check = Check { text, file, problems: Vec::new() };
        if spec.kind != KIND {
            check.problem("", 0, "kind", format!("`{}`: write \"{KIND}\"", spec.kind));
        }
        if !(2..=512).contains(&spec.nodes) {
            check.problem("", 0, "nodes", format!("{} is out of range; write 2 to 512", spec.nodes));
        }
        let rate_bps = parse_rate(&spec.rate).unwrap_or_else(|error| {
            check.problem("", 0, "rate", error);
            RATE_MIN_BPS
        });
        if !(RATE_MIN_BPS..=RATE_MAX_BPS).contains(&rate_bps) {
            check.problem("", 0, "rate", format!("{} is out of range; write 1 Mb/s to 10 Tb/s", spec.rate));
        }
        for (key, value, most) in [
            ("chunk", u64::from(spec.edm.chunk), BYTES_MAX),
            ("mega_bytes", u64::from(spec.edm.mega_bytes), BYTES_MAX),
            ("cycle_ps", spec.edm.cycle_ps, TIME_MAX_PS),
            ("lookahead_ps", spec.edm.lookahead_ps, TIME_MAX_PS),
        ] {
            if value > most {
                check.problem("edm", 0, key, format!("{value} is out of range; write {most} at most"));
            }
        }
        if let Some(problem) = params(&spec, rate_bps).scheduler.problem() {
            let (key, what) = problem.split_once(": ").unwrap_or(("x", problem));
            match key {
                // The number of nodes was checked above.
                "ports" => {}
                "active_per_pair" => check.problem("edm", 0, "x", what),
                "chunk_bytes" => check.problem("edm", 0, "chunk", what),
                key => check.problem("edm", 0, key, what),
            }
        }
        if spec.edm.pending_max == 0 {
            check.problem("edm", 0, "pending_max", "is 0; write 1 or more");
        }
        if spec.scheme == MemoryScheme::EdmPublished
            && (rate_bps, spec.workload.trace.is_none()) != (100_000_000_000, false)
        {
            check.problem(
                "",
                0,
                "scheme",
                "edm-published models 100 Gb/s and traces; write that rate and workload.trace",
            );
        }
        if spec.scheme.mode().is_some() && spec.latency == Some(Latencies::Testbed) {
            let what = "testbed: its switch knows blocks, and no frames; write \"pipeline\" or \"cable\"";
            check.problem("", 0, "latency", what);
        }
        let is_edm = spec.scheme.of_packets().is_none();
        if is_edm && spec.latency.is_some_and(Latencies::is_other_stack) {
            let what =
                "that stack knows no grants; write \"testbed\", \"cable\" or \"pipeline\", or another scheme";
            check.problem("", 0, "latency", what);
        }
        if is_edm && spec.edm.framing == FramingSpec::Rocev2 {
            let what =
                "rocev2: has no grants; write \"payload\", \"blocks\" or \"ethernet\", or another scheme";
            check.problem("edm", 0, "framing", what);
        }
        if spec.memory_ns > TIME_MAX_PS / 1_000 {
            let what = format!("{} is out of range; write {} at most", spec.memory_ns, TIME_MAX_PS / 1_000);
            check.problem("", 0, "memory_ns", what);
        }
        if spec.memory_ns > 0 && spec.scheme == MemoryScheme::EdmPublished {
            check.problem("", 0, "memory_ns", "edm-published has memory that takes no time; leave it out");
        }
        if spec.edm.pass_ns > TIME_MAX_PS / 1_000 {
            let what = format!("{} is out of range; write {} at most", spec.edm.pass_ns, TIME_MAX_PS / 1_000);
            check.problem("edm", 0, "pass_ns", what);
        }
        let packets = &spec.packets;
        let buffer = packets.buffer.unwrap_or(u64::MAX);
        let endless = [MemoryScheme::PfcDcqcn, MemoryScheme::Ird, MemoryScheme::Fastpass];
        if packets.buffer.is_some() && endless.contains(&spec.scheme) {
            let what = format!("{} has queues without a limit; leave it out", spec.scheme.name());
            check.problem("packets", 0, "buffer", what);
        }
        if packets.again_us > TIME_MAX_PS / 1_000_000 {
            let what = format!("{} is out of range; write 1000000 at most", packets.again_us);
            check.problem("packets", 0, "again_us", what);
        }
        if packets.packet == 0 || packets.packet > 9_000 {
            check.problem(
                "packets",
                0,
                "packet",
                format!("{} is out of range; write 1 to 9000", packets.packet),
            );
        }
        if buffer < u64::from(packets.packet) {
            check.problem("packets", 0, "buffer", "does not hold one packet; write more, or smaller packets");
        }
        if packets.window == 0 || packets.pause < 2 * u64::from(packets.packet) {
            check.problem(
                "packets",
                0,
                "pause",
                "window must not be 0, and pause has to be two packets or more",
            );
        }
        check_links(&spec, &mut check);
        super::hostile::check(&spec, &mut check);
        let generator = generator(&spec.workload, spec.nodes, rate_bps, &mut check);
        match check.problems.is_empty() {
            true => Ok(MemoryExperiment { spec, rate_bps, generator, trace: None }),
            false => Err(ExperimentError(check.problems)),
        }
    }

    /// Reads its trace; `read` returns a file's text.
    pub fn read_trace(
        mut self,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<MemoryExperiment, String> {
        if let Some(path) = &self.spec.workload.trace {
            self.trace = Some(parse_trace(&read(path)?, path, self.spec.nodes)?);
        }
        Ok(self)
    }

    /// Its messages, and the range of those that are measured.
    pub fn messages(&self) -> (Vec<Message>, std::ops::Range<usize>) {
        if let Some(trace) = &self.trace {
            return (trace.clone(), 0..trace.len());
        }
        let Some(generator) = &self.generator else { return (Vec::new(), 0..0) };
        let measured = self.spec.workload.messages.unwrap_or(0);
        let before = (measured as f64 * self.spec.workload.warmup) as usize;
        let after = (measured as f64 * AFTER) as usize;
        (generator.messages(before + measured + after, self.spec.seed), before..before + measured)
    }

    /// Parameters of the exact scheduler's run with `nodes` nodes.
    pub(super) fn params(&self, nodes: u16) -> Params {
        let mut params = params(&self.spec, self.rate_bps);
        params.scheduler.ports = nodes;
        params
    }

    /// Parameters of the scheme of packets with `nodes` nodes; `None` for other schemes.
    pub(super) fn packets(&self, nodes: u16) -> Option<Packets> {
        let (spec, scheme) = (&self.spec.packets, self.spec.scheme.of_packets()?);
        let Params { modules, memory_ps, .. } = self.params(nodes);
        let buffer = match scheme {
            Scheme::Pfabric => 36_000,
            Scheme::Cxl => 16_384,
            _ => 1_000_000,
        };
        Some(Packets {
            scheme,
            nodes,
            rate_bps: self.rate_bps,
            modules,
            headers: match self.spec.edm.framing {
                FramingSpec::Payload => Headers::None,
                FramingSpec::Blocks => Headers::Transport,
                FramingSpec::Ethernet => Headers::Edm,
                FramingSpec::Rocev2 => Headers::Rocev2,
            },
            memory_ps,
            packet: spec.packet,
            window: spec.window,
            mark: spec.mark,
            buffer: spec.buffer.unwrap_or(buffer),
            pause: spec.pause,
            again_ps: spec.again_us * 1_000_000,
        })
    }

    /// Parameters of the generated program's run with `nodes` nodes; `None` for other schemes. If a message is alone, links have
    /// their least delay and no faults.
    pub(super) fn pipeline(&self, nodes: u16, is_alone: bool) -> Option<pipeline::Params> {
        let (mode, edm) = (self.spec.scheme.mode()?, &self.spec.edm);
        let (link, dma_ns) = match is_alone {
            true => {
                let least = |points: &Vec<(f64, f64)>| {
                    points.first().map(|(_, least)| vec![(0.0, *least), (1.0, *least)])
                };
                let delay_ns = self.spec.link.delay_ns.as_ref().and_then(least);
                let dma_ns = self.spec.nic.dma_ns.as_ref().and_then(least);
                (LinkSpec { delay_ns, ..LinkSpec::default() }, dma_ns)
            }
            false => (self.spec.link.clone(), self.spec.nic.dma_ns.clone()),
        };
        Some(pipeline::Params {
            mode,
            nodes,
            rate_bps: self.rate_bps,
            modules: if self.spec.latency == Some(Latencies::Cable) {
                Modules::CABLE_ONLY
            } else {
                Modules::PIPELINE
            },
            memory_ps: self.params(nodes).memory_ps,
            chunk_bytes: edm.chunk,
            window: edm.window,
            demands: edm.x.into(),
            headroom_percent: edm.headroom_percent,
            classes: edm.classes,
            ahead: edm.ahead,
            arch: edm.arch,
            shares: edm.shares,
            attackers: if is_alone { Vec::new() } else { attackers(&self.spec) },
            pass_ns: edm.pass_ns,
            pending_max: edm.pending_max,
            link,
            dma_ns,
            seed: self.spec.seed,
        })
    }

    /// Whether delays are those of a pipeline.
    pub fn is_pipeline(&self) -> bool {
        let otherwise =
            if self.spec.scheme.mode().is_some() { Latencies::Pipeline } else { Latencies::Testbed };
        self.spec.latency.unwrap_or(otherwise) == Latencies::Pipeline
    }

    /// Whether messages come from a trace.
    pub fn is_trace(&self) -> bool {
        self.spec.workload.trace.is_some()
    }
}

/// Checks links and network cards.
fn check_links(spec: &MemorySpec, check: &mut Check<'_>) {
    check.link(&spec.link, 0.1, |name| {
        let is_known = name.parse::<u16>().is_ok_and(|node| node < spec.nodes);
        (!is_known).then(|| format!("`{name}` is no node; there are 0 to {}", spec.nodes - 1))
    });
    if let Some(points) = &spec.nic.dma_ns {
        check.distribution("nic", "dma_ns", points);
    }
    let is_plain = spec.link.is_plain() && spec.nic.dma_ns.is_none();
    if !is_plain && spec.scheme.mode().is_none() {
        let what = format!(
            "{} has no frames, but intervals on ideal links; take it out, or write a generated program's scheme",
            spec.scheme.name()
        );
        let (table, key) = if spec.link.is_plain() { ("nic", "dma_ns") } else { ("link", "loss") };
        check.problem(table, 0, key, what);
    }
}

fn params(spec: &MemorySpec, rate_bps: u64) -> Params {
    let edm = &spec.edm;
    let scheduler = Config {
        active_per_pair: edm.x,
        chunk_bytes: edm.chunk,
        policy: if edm.policy == PolicySpec::Srpt { Policy::Srpt } else { Policy::Fcfs },
        cycle_ps: edm.cycle_ps,
        lookahead_ps: edm.lookahead_ps,
        room_for_short: edm.room_for_short,
        framing: match edm.framing {
            FramingSpec::Payload => Framing::Payload,
            FramingSpec::Blocks => Framing::Blocks,
            FramingSpec::Ethernet | FramingSpec::Rocev2 => Framing::Ethernet,
        },
        ..Config::new(spec.nodes, rate_bps)
    };
    Params {
        modules: match spec.latency.unwrap_or_default() {
            Latencies::Testbed => Modules::testbed(edm.cycle_ps),
            Latencies::Cable => Modules::CABLE_ONLY,
            Latencies::Pipeline => Modules::PIPELINE,
            Latencies::Tcp => Modules::of_stack(STACKS[0]),
            Latencies::Rocev2 => Modules::of_stack(STACKS[1]),
            Latencies::Ethernet => Modules::of_stack(STACKS[2]),
            Latencies::Cxl => Modules::CXL,
        },
        scheduler,
        rate_bps,
        memory_ps: spec.memory_ns.saturating_mul(1_000),
        mega_bytes: edm.mega_bytes,
        pending_max: edm.pending_max,
    }
}

/// Duration of a run of one operation alone, by operation, bytes, and whether it is local.
#[derive(Debug, Default)]
pub struct Isolated(BTreeMap<(Operation, u32, bool), u64>);

/// Properties on which the time of a message alone depends.
pub(super) fn kind_of(message: &Message) -> (Operation, u32, bool) {
    (message.operation, message.bytes, message.is_local())
}

impl FromIterator<(Message, Option<u64>)> for Isolated {
    fn from_iter<I: IntoIterator<Item = (Message, Option<u64>)>>(times: I) -> Isolated {
        let known = |(message, time): (Message, Option<u64>)| Some((kind_of(&message), time?));
        Isolated(times.into_iter().filter_map(known).collect())
    }
}

impl Isolated {
    /// Time of such a message when it is alone. `measure` determines it once per size, from node 0 to 1.
    pub fn of(&mut self, message: &Message, measure: impl FnOnce(&[Message]) -> Option<u64>) -> Option<u64> {
        let key = kind_of(message);
        if let Some(known) = self.0.get(&key) {
            return Some(*known);
        }
        let time =
            measure(&[Message { at_ps: 0, compute: 0, memory: u16::from(!message.is_local()), ..*message }])?;
        self.0.insert(key, time);
        Some(time)
    }
}
