//! Nodes and their rack, in order of time.

use super::node::CachingNode;
use crate::requests::{Ask, Requests, Transfer};

/// No request takes longer.
const LIMIT_PS: u64 = 1_000_000_000_000;
/// Reads of which the unloaded latency is the mean: ways that poll take longer at some moments than at others.
const PROBES: u64 = 64;
/// Interval of probes: as often as a program misses, and no multiple of the ways' polling intervals.
const PROBE_PS: u64 = 1_137_000;

/// Runs all nodes until their traces are over and nothing is under way. Returns when that was. Errors: the rack refuses or loses a request.
pub(super) fn conduct(nodes: &mut [CachingNode<'_>], requests: &mut dyn Requests) -> Result<u64, String> {
    let mut now_ps = requests.start_ps();
    nodes.iter_mut().for_each(|node| node.due_ps = now_ps);
    loop {
        let due_ps = nodes.iter().map(|node| node.due_ps).min().unwrap_or(u64::MAX);
        if due_ps == u64::MAX && nodes.iter().all(|node| node.is_over() && node.channel.is_empty()) {
            return Ok(now_ps);
        }
        let until_ps = if due_ps == u64::MAX { now_ps + LIMIT_PS } else { due_ps };
        match requests.next(until_ps) {
            Some(ended) => {
                now_ps = ended.at_ps;
                nodes[usize::from(ended.node)].ended(&ended, requests)?;
            }
            None if due_ps == u64::MAX => {
                return Err("no request of the rack has ended for a second".to_owned());
            }
            None => {
                now_ps = due_ps;
                for node in nodes.iter_mut().filter(|node| node.due_ps == due_ps) {
                    node.go_on(due_ps, requests)?;
                }
            }
        }
    }
}

/// Mean latency of reads of these sizes, which rise, one at a time, on a rack with one node, nanoseconds. Errors: the rack refuses one.
pub(super) fn unloaded(requests: &mut dyn Requests, sizes: &[u32]) -> Result<Vec<(u32, u64)>, String> {
    let mut now_ps = requests.start_ps();
    let mut found: Vec<(u32, u64)> = Vec::new();
    for bytes in sizes {
        let mut sum_ps = 0;
        for tag in 0..PROBES {
            // Nothing but the rack's own turns happens until then.
            while requests.next(now_ps).is_some() {}
            requests.ask(Ask { node: 0, tag, address: 0, what: Transfer::Read(*bytes) }, now_ps)?;
            let ended = requests.next(now_ps + LIMIT_PS).filter(|ended| ended.bytes.is_some());
            let ended = ended.ok_or_else(|| format!("a read of {bytes} bytes alone does not end"))?;
            sum_ps += ended.at_ps - now_ps;
            now_ps = ended.at_ps + PROBE_PS;
        }
        // Where a way polls, a longer read may seem faster by its moments.
        let before_ns = found.last().map_or(0, |(_, ns)| *ns);
        found.push((*bytes, (sum_ps / PROBES / 1_000).max(before_ns)));
    }
    Ok(found)
}
