//! Profile `rack`: misses are requests of a simulated rack, in which compute nodes share a pool.
//!
//! ```text
//!  trace ─ CPU caches ─ policy ─▶ channel: fetches, write-backs ─┐
//!  trace ─ CPU caches ─ policy ─▶ channel                        ├─▶ rack with the machines of a way: links, switch, pool
//!  …                                                             ┘
//! ```
//!
//! Each compute node has its own seed, policy and part of the pool. Local memory has the latencies of the profile
//! `paper`. All bytes are real: each fetch is compared with the last write-back.

mod channel;
mod conductor;
mod node;
mod outcome;
mod ways;

pub use channel::CachePlant;
pub use outcome::RackOutcome;
pub(super) use outcome::run;

use crate::experiment::Check;
use crate::requests::Sharing;
use channel::Limits;
use p4rack_codegen::rack::units::parse_rate;
use p4rack_fabric::remote::Way;
use serde::{Deserialize, Serialize};
use ways::RackWay;

/// The value of `profile` in such a file.
pub(super) const PROFILE: &str = "rack";
/// Compute nodes at most.
const NODES_MAX: u16 = 16;
/// Rates of links.
const RATES_BPS: std::ops::RangeInclusive<u64> = 1_000_000_000..=1_000_000_000_000;
/// Bytes of the pool at most: its contents are kept.
const POOL_BYTES_MAX: u64 = 384 << 20;
/// Parts of the pool are whole multiples of this: the largest page of a way.
const PART_BYTES: u64 = 4 << 20;

/// `[rack]`: the rack of profile `rack`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheRackSpec {
    /// How compute nodes reach the pool: a way of the registry.
    pub way: String,
    /// Compute nodes that share the pool, each with a trace of its own seed.
    pub compute_nodes: u16,
    /// Rate of all links.
    pub rate: String,
    /// Requests of a compute node under way at most.
    pub under_way: u16,
    /// Requests of a compute node that wait at most. If a write-back or a fetch ahead finds no room, the program waits.
    pub queue: u32,
}

impl Default for CacheRackSpec {
    fn default() -> CacheRackSpec {
        CacheRackSpec {
            way: Way::RDMA.name().to_owned(),
            compute_nodes: 4,
            rate: "100 Gb/s".into(),
            under_way: 16,
            queue: 64,
        }
    }
}

/// The same, checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    way: RackWay,
    nodes: u16,
    rate_bps: u64,
    limits: Limits,
}

impl Rack {
    /// Checks the table. Mistakes are noted in `check`; then the result is `None`.
    pub fn checked(spec: &CacheRackSpec, check: &mut Check<'_>) -> Option<Rack> {
        let before = check.problems.len();
        let mut problem = |key: &str, what: String| check.problem("rack", 0, key, what);
        let mut within = |key: &str, value: u64, most: u64| {
            if !(1..=most).contains(&value) {
                problem(key, format!("{value} is out of range; write 1 to {most}"));
            }
        };
        within("compute_nodes", spec.compute_nodes.into(), NODES_MAX.into());
        within("under_way", spec.under_way.into(), 64);
        within("queue", spec.queue.into(), 1 << 16);
        let way = RackWay::named(&spec.way).map_err(|error| problem("way", error)).ok();
        let rate_bps = match parse_rate(&spec.rate) {
            Ok(rate_bps) => rate_bps,
            Err(error) => {
                problem("rate", format!("{error}; write 1 Gb/s to 1 Tb/s"));
                *RATES_BPS.start()
            }
        };
        if !RATES_BPS.contains(&rate_bps) {
            problem("rate", format!("{} is out of range; write 1 Gb/s to 1 Tb/s", spec.rate));
        }
        let limits = Limits { window: spec.under_way, queue: spec.queue };
        let rack = Rack { way: way?, nodes: spec.compute_nodes, rate_bps, limits };
        (check.problems.len() == before).then_some(rack)
    }

    /// Compute nodes.
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// How `nodes` of them share a pool, of which each touches this much at most. Errors: that is more than is kept.
    fn sharing(
        &self,
        nodes: u16,
        (touched_bytes, block_bytes): (u64, u32),
        seed: u64,
    ) -> Result<Sharing, String> {
        let part_bytes = touched_bytes.next_multiple_of(PART_BYTES);
        let sharing = Sharing {
            nodes,
            part_bytes,
            // The longest run of a policy: eight blocks.
            request_bytes_max: (8 * block_bytes).max(4_096),
            window: self.limits.window,
            rate_bps: self.rate_bps,
            seed,
        };
        if sharing.pool_bytes() > POOL_BYTES_MAX {
            return Err(format!(
                "rack.compute_nodes: {nodes} parts of {part_bytes} bytes are more than the {POOL_BYTES_MAX} that a simulated pool \
                 keeps; write fewer, or use fewer accesses (first)"
            ));
        }
        Ok(sharing)
    }
}
