//! The rack under faults.

use crate::message::mac_of;
use crate::switch::P4;
use p4rack_codegen::rack::{Link, RESERVED_PERCENT, Rack, Station, Switch, Target, Topology};
use p4rack_codegen::scheme::edm::{Edm, Mode};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_wire::Nanos;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Nodes: 0 to 2 use memory, 2 and 3 have it, 4 is the hostile host of some seeds.
pub(super) const NODES: u16 = 5;
pub(super) const COMPUTES: u16 = 3;
pub(super) const MEMORIES: std::ops::Range<u16> = 2..4;
pub(super) const RATE_BPS: u64 = 10_000_000_000;
pub(super) const CHUNK_BYTES: u32 = 256;
/// Bytes of a memory node.
pub(super) const BYTES: usize = 8_192;
pub(super) const KEY: u32 = 1;
/// Maximum sessions between two starts of a memory node: the distance of their first session numbers.
pub(super) const RESTART_SESSIONS: u16 = 1_000;

/// A rack with one mode's program, for a run per seed.
#[derive(Debug)]
pub struct FaultsRack {
    rack: Rack,
    mode: Mode,
    pub(super) edm: Edm,
    /// Timeout of a compute node for an answer.
    pub(super) timeout: Nanos,
    pub(super) pass_delay: Nanos,
}

impl FaultsRack {
    /// A rack under this mode. Errors: its program can't be generated.
    pub fn new(mode: Mode) -> Result<FaultsRack, String> {
        FaultsRack::build(mode, true)
    }

    /// The same without shares of links: more demands of `matched` wait. Errors: its program can't be generated.
    pub fn without_shares(mode: Mode) -> Result<FaultsRack, String> {
        FaultsRack::build(mode, false)
    }

    fn build(mode: Mode, shares: bool) -> Result<FaultsRack, String> {
        let name = |nth: u16| format!("n{}", nth + 1);
        let station = |nth: u16| Station {
            name: name(nth),
            mac: mac_of(nth.into()),
            ip: Ipv4Addr::new(10, 0, 0, (nth + 1) as u8),
            prefix: 24,
            foreign_percent: None,
        };
        let edm = Edm {
            chunk_bytes: CHUNK_BYTES,
            window: 2,
            message_bytes_max: BYTES as u32,
            control_percent: 100,
            shares,
            ..Edm::new(mode, MEMORIES.map(name).collect())
        };
        let topology = Topology {
            name: "faults".to_owned(),
            switches: vec![Switch::new(Target::Embedded, RATE_BPS).with_buffer(1 << 20, RESERVED_PERCENT)],
            hosts: (0..NODES).map(station).collect(),
            links: (0..NODES).map(|nth| Link::to_port(nth.into(), nth + 1)).collect(),
            protocols: vec![Arc::new(edm.clone())],
            workload: None,
        };
        let rack = Rack::build(topology).map_err(|error| format!("{:?}", error.errors))?;
        let timeout = edm.expiry(&rack) + Nanos::from_micros(50);
        Ok(FaultsRack { rack, mode, edm, timeout, pass_delay: Nanos::ZERO })
    }

    /// The same with a delay before the next pass of a resubmitted or recirculated frame. Errors: messages would lose their lanes
    /// while they wait for passes.
    pub fn with_pass_delay(self, pass_delay: Nanos) -> Result<FaultsRack, String> {
        match self.edm.pass_max(&self.rack) {
            Some(most) if pass_delay > most => Err(format!(
                "passes of {} ns are too long for {}: a message may take so many of them that the switch gives up its lane, \
                 after {} ns; write {} or less, or another scheme",
                pass_delay.0,
                self.mode.scheme().name(),
                self.edm.expiry(&self.rack).0,
                most.0
            )),
            _ => Ok(FaultsRack { pass_delay, ..self }),
        }
    }

    pub(super) fn switch(&self) -> Result<P4, String> {
        P4::new(&self.rack, self.mode.scheme(), |config| config.pass_delay = self.pass_delay)
            .map_err(|error| error.to_string())
    }

    pub(super) fn compute(&self, incarnation: u64) -> compute::ComputeNode {
        let config = compute::Config {
            chunk_bytes: CHUNK_BYTES,
            window: 2,
            timeout: self.timeout,
            confirm: Some(self.timeout),
            ..compute::Config::default()
        };
        compute::ComputeNode::new(config, incarnation)
    }

    /// A memory node with these bytes, whose first session has this number.
    pub(super) fn memory(&self, bytes: Vec<u8>, first_session: u16) -> Result<memory::MemoryNode, String> {
        let config = memory::Config {
            chunk_bytes: CHUNK_BYTES as u16,
            window: 2,
            first_session,
            ..memory::Config::default()
        };
        let rights = memory::Rights { read: true, write: true };
        memory::MemoryNode::new(config, vec![memory::Region { start: 0, bytes, key: KEY, rights }])
    }
}
