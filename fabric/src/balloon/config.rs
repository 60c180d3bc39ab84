//! Parameters of the service.

use crate::common::ConfigError;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Limits on the bytes that a compute node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Free bytes that are kept for it, whatever others ask for. They need not be contiguous.
    pub reserved_bytes: u64,
    /// Maximum bytes that it holds.
    pub limit_bytes: u64,
}

impl Default for Quota {
    /// Nothing is kept, and everything may be had.
    fn default() -> Quota {
        Quota { reserved_bytes: 0, limit_bytes: u64::MAX }
    }
}

/// Parameters of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of memory nodes.
    pub nodes: u16,
    /// How long a compute node holds its extents after it has renewed.
    pub lease: Nanos,
    /// Time without an answer after which a command is sent again.
    pub retry: Nanos,
    /// Interval between two probes of a node.
    pub probe: Nanos,
    /// Questions without an answer after which nothing more is taken from a node.
    pub silent_probes: u32,
    /// Times that a grant is sent before its node is given up, and another one is asked.
    pub grants_max: u32,
    /// Times that a request is granted again, at another place or in another epoch, before it is
    /// refused.
    pub moves_max: u32,
    /// Longest time for which a service that starts waits for the nodes' reports.
    pub grace: Nanos,
    /// Maximum extents, those that are being cleaned included.
    pub extents_max: usize,
    /// Maximum extents of one compute node: the reply to Renew has all of them.
    pub held_max: usize,
    /// Maximum compute nodes.
    pub holders_max: usize,
    /// Numbers of past Reserves that are remembered of each compute node.
    pub numbers_max: usize,
    /// Maximum replies that wait for the driver. Requests beyond are dropped.
    pub replies_max: usize,
    /// Quotas by compute node.
    pub quotas: BTreeMap<u32, Quota>,
    /// Quota of all other compute nodes.
    pub quota: Quota,
}

impl Config {
    /// Defaults for this many memory nodes.
    pub fn new(nodes: u16) -> Config {
        Config {
            nodes,
            lease: Nanos::from_secs(10),
            retry: Nanos::from_millis(200),
            probe: Nanos::from_secs(1),
            silent_probes: 3,
            grants_max: 5,
            moves_max: 8,
            grace: Nanos::from_secs(10),
            extents_max: 65_536,
            held_max: 4_096,
            holders_max: 1_024,
            numbers_max: 256,
            replies_max: 4_096,
            quotas: BTreeMap::new(),
            quota: Quota::default(),
        }
    }

    /// Whether the service can work with it. The error names the wrong field and what to do about it.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |field, problem| Err(ConfigError { scheme: "balloon", field, problem });
        let is_zero = [
            ("nodes", self.nodes == 0),
            ("silent_probes", self.silent_probes == 0),
            ("grants_max", self.grants_max == 0),
            ("extents_max", self.extents_max == 0),
            ("held_max", self.held_max == 0),
            ("holders_max", self.holders_max == 0),
            ("numbers_max", self.numbers_max == 0),
            ("replies_max", self.replies_max == 0),
            ("lease", self.lease == Nanos::ZERO),
            ("retry", self.retry == Nanos::ZERO),
            ("probe", self.probe == Nanos::ZERO),
        ];
        if let Some((field, _)) = is_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return fail(field, "is 0; write at least 1");
        }
        let mut quotas = self.quotas.values().chain([&self.quota]);
        if quotas.any(|quota| quota.reserved_bytes > quota.limit_bytes) {
            return fail("quotas", "keep more bytes for a compute node than its limit; raise the limit");
        }
        if self.quota.reserved_bytes > 0 {
            return fail("quota", "keeps bytes for compute nodes that are not named; name them in quotas");
        }
        Ok(())
    }
}
