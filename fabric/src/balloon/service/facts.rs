//! The service's state, for operators.

use super::{Balloon, State};
use crate::balloon::{Extent, Place, Quota, Session};
use p4rack_wire::Nanos;
use std::ops::Bound;

/// A memory node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its number.
    pub number: u16,
    /// Whether it has joined, and answers.
    pub is_there: bool,
    /// The number under which the node has already joined, if it is another one. The node is then
    /// left out under this number.
    pub same_as: Option<u16>,
    /// Whether it is to go offline.
    pub leaves: bool,
    /// Its memory; `None`: it has not joined yet.
    pub memory: Option<MemoryFacts>,
}

/// The memory of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// Its bytes of the pool.
    pub bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Bytes of the longest free range.
    pub longest_bytes: u64,
    /// Number of free ranges.
    pub ranges: usize,
    /// Bytes that are lent, or being granted.
    pub lent_bytes: u64,
    /// Bytes that are being fenced: out of use until the node has answered.
    pub fencing_bytes: u64,
    /// Bytes that are being zeroed.
    pub zeroing_bytes: u64,
}

/// A compute node with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderFacts {
    /// Its session.
    pub session: Session,
    /// Time until the session ends, unless it is renewed.
    pub left: Nanos,
    /// Bytes that it holds.
    pub held_bytes: u64,
    /// Number of its extents.
    pub extents: usize,
    /// Its quota.
    pub quota: Quota,
}

/// An extent that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentFacts {
    /// The extent. Its epoch is that of the grant, or of the fence.
    pub extent: Extent,
    /// Its state.
    pub state: State,
    /// Its holder, or the last one; `None` if that is not known.
    pub session: Option<Session>,
    /// Whether its holder uses it.
    pub is_online: bool,
    /// Commands sent to its node since the state began.
    pub sent: u32,
}

impl Balloon {
    /// The memory nodes, by number.
    pub fn nodes(&self) -> Vec<NodeFacts> {
        let facts = |(number, node): (usize, &super::MemoryNode)| NodeFacts {
            number: number as u16,
            is_there: node.instance.is_some() && node.unanswered <= self.config.silent_probes,
            same_as: node.same_as,
            leaves: node.leaves,
            memory: node.joined.map(|_| MemoryFacts {
                bytes: node.bytes,
                free_bytes: node.free.bytes(),
                longest_bytes: node.free.longest_bytes(),
                ranges: node.free.ranges(),
                ..MemoryFacts::default()
            }),
        };
        let mut nodes: Vec<NodeFacts> = self.nodes.iter().enumerate().map(facts).collect();
        for (place, record) in &self.records {
            let Some(memory) = &mut nodes[usize::from(place.node)].memory else { continue };
            match record.state {
                State::Found | State::Granting | State::Lent => memory.lent_bytes += record.bytes,
                State::Fencing => memory.fencing_bytes += record.bytes,
                State::Zeroing => memory.zeroing_bytes += record.bytes,
            }
        }
        nodes
    }

    /// The compute nodes that have sessions, by number.
    pub fn holders(&self) -> Vec<HolderFacts> {
        let facts = |(holder, entry): (&u32, &super::Holder)| {
            Some(HolderFacts {
                session: Session { holder: *holder, instance: entry.instance },
                left: entry.until?.saturating_sub(self.now),
                held_bytes: entry.held_bytes,
                extents: entry.places.len(),
                quota: self.quota(*holder),
            })
        };
        self.holders.iter().filter_map(facts).collect()
    }

    /// The extents that are not free, by node and start.
    pub fn extents(&self) -> impl Iterator<Item = ExtentFacts> {
        self.extents_after(None)
    }

    /// Those of them behind a place.
    pub fn extents_after(&self, after: Option<Place>) -> impl Iterator<Item = ExtentFacts> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.records.range((first, Bound::Unbounded)).map(|(place, record)| ExtentFacts {
            extent: record.extent(*place),
            state: record.state,
            session: record.session,
            is_online: record.is_online,
            sent: record.sent,
        })
    }
}
