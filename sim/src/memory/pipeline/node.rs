//! A host: its machines for both roles, compute and memory node.

use super::{CLOCK, KEY, Params};
use crate::kernel::Uplink;
use crate::memory::host::EdmHost;
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_fabric::hostile::edm::Machine;
use p4rack_wire::Nanos;

#[derive(Debug)]
pub(super) struct PipelineHost {
    pub machines: EdmHost,
    pub uplink: Uplink,
    /// Its role instead of both.
    pub hostile: Option<Machine>,
    /// Messages by the machine's numbers.
    pub tokens: Vec<u32>,
}

impl PipelineHost {
    /// A host with open sessions to all others, because an experiment begins in a steady state.
    pub fn new(params: &Params, timeout: Nanos, bytes: usize) -> Result<PipelineHost, String> {
        let compute = compute::Config {
            active_per_pair: params.demands as u16,
            waiting_max: params.pending_max,
            chunk_bytes: params.chunk_bytes,
            window: params.window,
            timeout,
            // Here addresses identify messages; there is no memory behind them.
            keep_order: false,
            // The program repeats a lost operation as a whole.
            retries: if params.link.has_faults() { 0 } else { compute::Config::default().retries },
            ..compute::Config::default()
        };
        let memory = memory::Config {
            chunk_bytes: params.chunk_bytes as u16,
            window: params.window,
            answer_bytes_max: usize::MAX,
            ..memory::Config::default()
        };
        let rights = memory::Rights { read: true, write: true };
        let region = memory::Region { start: 0, bytes: vec![0; bytes], key: KEY, rights };
        let (mut compute, mut memory) =
            (compute::ComputeNode::new(compute, 1), memory::MemoryNode::new(memory, vec![region])?);
        for with in 0..params.nodes {
            compute.begin_session(with, 1);
            memory.begin_session(with, 1);
        }
        let machines = EdmHost { compute, memory: Some(memory) };
        let uplink = Uplink::new(params.rate_bps, CLOCK);
        Ok(PipelineHost { machines, uplink, hostile: None, tokens: Vec::new() })
    }

    /// Writes that its memory has whole.
    pub fn writes(&self) -> u64 {
        self.machines.memory.as_ref().map_or(0, |memory| memory.counters().writes)
    }

    /// When one of its machines has a frame to send.
    pub fn next(&self) -> Option<Nanos> {
        if let Some(hostile) = &self.hostile {
            return hostile.next_timeout();
        }
        self.machines.next_link()
    }
}
