//! Parameters of a run.

use crate::experiment::LinkSpec;
use crate::memory::latency::Modules;
use p4rack_codegen::Arch;
use p4rack_codegen::scheme::edm::Mode;
use p4rack_fabric::hostile::edm::Attack;

/// Parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// The mode.
    pub mode: Mode,
    /// Nodes, each with one port.
    pub nodes: u16,
    /// Rate of a link.
    pub rate_bps: u64,
    /// Delays of hosts, links and the pipeline.
    pub modules: Modules,
    /// Time of a memory access: of a read when its request arrives, of a store when data arrives. Data of a write is fetched while
    /// the write waits for its grant.
    pub memory_ps: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Chunks of a window.
    pub window: u32,
    /// Maximum demands of a pair: the paper's X.
    pub demands: u32,
    /// Headroom of a grant over its frames' time, in percent.
    pub headroom_percent: u32,
    /// Rings of a destination's waiting demands (`matched`).
    pub classes: u32,
    /// Windows granted ahead before demands wait (`matched`).
    pub ahead: u32,
    /// Architecture of the program.
    pub arch: Arch,
    /// Whether links are shared between messages.
    pub shares: bool,
    /// Nodes that run an attack: number, attack, victim.
    pub attackers: Vec<(u16, Attack, u16)>,
    /// Delay before the next pass of a resubmitted or recirculated frame.
    pub pass_ns: u64,
    /// Maximum messages that wait in a host for one other host; more are refused.
    pub pending_max: usize,
    /// Delays and faults of links.
    pub link: LinkSpec,
    /// Delay between hosts' machines and their links, as quantiles.
    pub dma_ns: Option<Vec<(f64, f64)>>,
    /// Seed of these delays and faults.
    pub seed: u64,
}
