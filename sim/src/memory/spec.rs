//! Experiments on memory racks: the fields of the file.

use super::exact::paper;
use super::packets::Scheme;
use super::workload::WorkloadSpec;
use crate::experiment::{LinkSpec, PaperSpec};
use p4rack_codegen::Arch;
use p4rack_codegen::scheme::edm::{Edm, Mode};
use p4rack_fabric::edm::scheduler::Config;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fields of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySpec {
    /// Name of the experiment.
    pub name: String,
    /// `memory`.
    pub kind: String,
    /// The scheme, which decides when a node may send.
    #[serde(default)]
    pub scheme: MemoryScheme,
    /// Seed of the messages.
    #[serde(default = "one")]
    pub seed: u64,
    /// Nodes, each with one port.
    #[serde(default = "nodes")]
    pub nodes: u16,
    /// Rate of the links.
    #[serde(default = "rate")]
    pub rate: String,
    /// Model of delays other than transmission; by default `pipeline` for generated programs, otherwise `testbed`.
    pub latency: Option<Latencies>,
    /// Time of a memory access, local or remote, in nanoseconds.
    #[serde(default)]
    pub memory_ns: u64,
    /// Delays and faults of links, for generated programs.
    #[serde(default, skip_serializing_if = "LinkSpec::is_plain")]
    pub link: LinkSpec,
    /// Hosts' network cards, for generated programs.
    #[serde(default, skip_serializing_if = "MemoryNicSpec::is_plain")]
    pub nic: MemoryNicSpec,
    /// Parameters of EDM's scheduler and hosts.
    #[serde(default)]
    pub edm: EdmSpec,
    /// Parameters of the schemes of packets.
    #[serde(default)]
    pub packets: PacketsSpec,
    /// Messages of the nodes.
    pub workload: WorkloadSpec,
    /// Hostile nodes, or nodes that serve as their baseline. The results then include the effect on the others.
    #[serde(default)]
    pub hostile: Vec<HostileNodeSpec>,
    /// Published figures of schemes under this workload, by scheme: the authors' normalisation.
    #[serde(default)]
    pub golden: BTreeMap<String, f64>,
    /// The paper's figures.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// Schemes of memory racks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryScheme {
    /// EDM's exact scheduler.
    #[default]
    Edm,
    /// The generated program with clocks of destinations.
    EdmTimedDst,
    /// The generated program with clocks of sources and destinations.
    EdmTimed,
    /// The generated program with calendars.
    EdmCalendar,
    /// The generated program with rings of demands that wait.
    EdmMatched,
    /// EDM as the authors' simulator models it.
    EdmPublished,
    /// Idealised receiver-driven.
    Ird,
    /// DCTCP.
    Dctcp,
    /// pFabric.
    Pfabric,
    /// Pauses and DCQCN.
    PfcDcqcn,
    /// CXL's credits.
    Cxl,
    /// Fastpass.
    Fastpass,
}

impl MemoryScheme {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryScheme::Edm => "edm",
            MemoryScheme::EdmTimedDst => "edm-timed-dst",
            MemoryScheme::EdmTimed => "edm-timed",
            MemoryScheme::EdmCalendar => "edm-calendar",
            MemoryScheme::EdmMatched => "edm-matched",
            MemoryScheme::EdmPublished => "edm-published",
            MemoryScheme::Ird => "ird",
            MemoryScheme::Dctcp => "dctcp",
            MemoryScheme::Pfabric => "pfabric",
            MemoryScheme::PfcDcqcn => "pfc-dcqcn",
            MemoryScheme::Cxl => "cxl",
            MemoryScheme::Fastpass => "fastpass",
        }
    }

    /// Its column in the published table.
    pub const fn published_name(self) -> &'static str {
        match self {
            MemoryScheme::EdmPublished => "edm",
            MemoryScheme::PfcDcqcn => "pfc",
            other => other.name(),
        }
    }

    /// The mode of the generated program, if it is one.
    pub(super) const fn mode(self) -> Option<Mode> {
        match self {
            MemoryScheme::EdmTimedDst => Some(Mode::TimedDst),
            MemoryScheme::EdmTimed => Some(Mode::Timed),
            MemoryScheme::EdmCalendar => Some(Mode::Calendar),
            MemoryScheme::EdmMatched => Some(Mode::Matched),
            _ => None,
        }
    }

    /// The scheme of packets, if it is one.
    pub(super) const fn of_packets(self) -> Option<Scheme> {
        Some(match self {
            MemoryScheme::Edm
            | MemoryScheme::EdmTimedDst
            | MemoryScheme::EdmTimed
            | MemoryScheme::EdmCalendar
            | MemoryScheme::EdmMatched
            | MemoryScheme::EdmPublished => return None,
            MemoryScheme::Ird => Scheme::Ird,
            MemoryScheme::Dctcp => Scheme::Dctcp,
            MemoryScheme::Pfabric => Scheme::Pfabric,
            MemoryScheme::PfcDcqcn => Scheme::PfcDcqcn,
            MemoryScheme::Cxl => Scheme::Cxl,
            MemoryScheme::Fastpass => Scheme::Fastpass,
        })
    }
}

/// Model of delays other than transmission.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Latencies {
    /// All delays of Table 1.
    #[default]
    Testbed,
    /// Hops of 10 ns, as in the published simulator.
    Cable,
    /// EDM's hosts, and the links and the switch of Table 1's raw Ethernet.
    Pipeline,
    /// Table 1's TCP/IP in hardware.
    Tcp,
    /// Table 1's RDMA.
    Rocev2,
    /// Table 1's raw Ethernet.
    Ethernet,
    /// A CXL switch, as the authors' latency benchmark has it.
    Cxl,
}

impl Latencies {
    /// Whether hosts have another stack than EDM's.
    pub(super) const fn is_other_stack(self) -> bool {
        matches!(self, Latencies::Tcp | Latencies::Rocev2 | Latencies::Ethernet | Latencies::Cxl)
    }
}

/// `[nic]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryNicSpec {
    /// Delay between a host's machines and its link, each way, as quantiles; none unless it is given.
    pub dma_ns: Option<Vec<(f64, f64)>>,
}

impl MemoryNicSpec {
    fn is_plain(&self) -> bool {
        self.dma_ns.is_none()
    }
}

/// `[edm]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EdmSpec {
    /// Bytes of a chunk.
    pub chunk: u32,
    /// Maximum demands of a pair: the paper's X.
    pub x: u8,
    /// Order of messages.
    pub policy: PolicySpec,
    /// A cycle of the scheduler.
    pub cycle_ps: u64,
    /// How long before the end of a chunk its ports may be matched again.
    pub lookahead_ps: u64,
    /// Whether grants leave room for the short messages on their ports' links.
    pub room_for_short: bool,
    /// Bytes that occupy a link.
    pub framing: FramingSpec,
    /// Chunks of a window of a generated program.
    pub window: u32,
    /// Rings of a destination's waiting demands, by remaining bytes.
    pub classes: u32,
    /// Windows granted ahead before demands wait.
    pub ahead: u32,
    /// Architecture of a generated program: `v1model`, `tna` or `t2na`.
    pub arch: Arch,
    /// Whether a generated program shares links between messages.
    pub shares: bool,
    /// Delay before a frame's next pass through a generated program.
    pub pass_ns: u64,
    /// Headroom of its grants over their frames' time, in percent.
    pub headroom_percent: u32,
    /// Maximum bytes of waiting writes that share a notification; 0: none share.
    pub mega_bytes: u32,
    /// Maximum messages that wait in a node for one other node.
    pub pending_max: usize,
}

impl Default for EdmSpec {
    fn default() -> EdmSpec {
        let (config, params) = (Config::new(2, 1), paper(2, 1));
        let edm = Edm::new(Mode::TimedDst, Vec::new());
        EdmSpec {
            chunk: config.chunk_bytes,
            x: config.active_per_pair,
            policy: PolicySpec::Fcfs,
            cycle_ps: config.cycle_ps,
            lookahead_ps: config.lookahead_ps,
            room_for_short: config.room_for_short,
            framing: FramingSpec::Payload,
            window: edm.window,
            classes: edm.classes,
            ahead: edm.ahead,
            arch: Arch::V1model,
            shares: edm.shares,
            pass_ns: 0,
            headroom_percent: edm.headroom_percent,
            mega_bytes: params.mega_bytes,
            pending_max: params.pending_max,
        }
    }
}

/// Orders of messages.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySpec {
    /// First come, first served.
    Fcfs,
    /// Fewest remaining bytes first.
    Srpt,
}

/// Bytes that occupy a link.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FramingSpec {
    /// Whole messages with their headers; for schemes other than EDM packets of Ethernet, IP and a transport.
    Blocks,
    /// Payload alone.
    Payload,
    /// Frames of Ethernet, as generated programs have them, for every scheme.
    Ethernet,
    /// Frames of RoCEv2, for schemes other than EDM.
    Rocev2,
}

/// `[packets]`: schemes other than EDM. Sizes are bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacketsSpec {
    /// Maximum payload of a packet.
    pub packet: u32,
    /// First window of a flow (DCTCP, pFabric).
    pub window: u32,
    /// Queue length from which packets are marked (DCTCP, pFabric, DCQCN).
    pub mark: u64,
    /// Maximum queue of a port (DCTCP 1 MB, pFabric 36 KB), or credits of each buffer (CXL 16 KB). Other schemes have no limit.
    pub buffer: Option<u64>,
    /// A host is paused while the switch holds more than this many of its bytes.
    pub pause: u64,
    /// Retransmission timeout of a lost packet.
    pub again_us: u64,
}

impl Default for PacketsSpec {
    fn default() -> PacketsSpec {
        PacketsSpec { packet: 1_500, window: 15_000, mark: 30_000, buffer: None, pause: 50_000, again_us: 10 }
    }
}

fn one() -> u64 {
    1
}
fn nodes() -> u16 {
    144
}
fn rate() -> String {
    "100 Gb/s".into()
}

/// `[[hostile]]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostileNodeSpec {
    /// Number of the node, from 0.
    pub node: u16,
    /// Name of the attack that it runs instead of its messages, or `none`.
    pub attack: String,
    /// The attacked memory node.
    pub victim: u16,
}
