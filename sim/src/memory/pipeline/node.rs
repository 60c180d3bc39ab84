//! A host: its machines of compute and memory node.

use super::{KEY, Params};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_fabric::hostile::edm::Machine;
use p4rack_wire::Nanos;

#[derive(Debug)]
pub(super) struct Node {
    pub compute: compute::Node,
    pub memory: memory::Node,
    /// Its role instead of both.
    pub hostile: Option<Machine>,
    /// When its link is free.
    pub free_ps: u64,
    /// When it is asked next; other polls are out of date.
    pub poll_ps: u64,
    /// Messages by the machine's numbers.
    pub tokens: Vec<u32>,
}

impl Node {
    /// A host that has had messages with all others before: an experiment begins in a steady state.
    pub fn new(params: &Params, timeout: Nanos, bytes: usize) -> Result<Node, String> {
        let compute = compute::Config {
            active_per_pair: params.demands as u16,
            waiting_max: params.pending_max,
            chunk_bytes: params.chunk_bytes,
            window: params.window,
            timeout,
            // Addresses name messages here, they are no places.
            keep_order: false,
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
            (compute::Node::new(compute, 1), memory::Node::new(memory, vec![region])?);
        for with in 0..params.nodes {
            compute.begin_session(with, 1);
            memory.begin_session(with, 1);
        }
        Ok(Node { compute, memory, hostile: None, free_ps: 0, poll_ps: u64::MAX, tokens: Vec::new() })
    }

    /// When one of its machines has something to send.
    pub fn next(&self) -> Option<Nanos> {
        if let Some(hostile) = &self.hostile {
            return Some(hostile.next_timeout());
        }
        let both = [self.compute.next_message(), self.memory.next_message()];
        both.into_iter().flatten().min()
    }

    /// The next message, of the machine whose turn comes first, and the node that it is for.
    pub fn message(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        let first = |at: Option<Nanos>| at.unwrap_or(Nanos::MAX);
        if first(self.memory.next_message()) < first(self.compute.next_message()) {
            self.memory.poll_message(now, out).or_else(|| self.compute.poll_message(now, out))
        } else {
            self.compute.poll_message(now, out).or_else(|| self.memory.poll_message(now, out))
        }
    }
}
