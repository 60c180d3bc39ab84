//! Requests of programs outside of the rack.

use crate::requests::Ended;
use std::collections::{BTreeMap, VecDeque};

/// A request that its thread is about to submit.
#[derive(Debug)]
pub(super) struct OutsideRequest {
    pub tag: u64,
    pub address: u64,
    /// Bytes of a read, or none and those that are written.
    pub read: u32,
    pub written: Vec<u8>,
}

/// Requests of programs.
#[derive(Debug)]
pub(super) struct Outside {
    pub asked: Vec<VecDeque<OutsideRequest>>,
    /// The callers' tags, by the library's.
    pub tags: BTreeMap<u64, u64>,
    pub over: VecDeque<Ended>,
}

impl Outside {
    /// Of this many compute nodes.
    pub fn new(nodes: u16) -> Outside {
        let asked = (0..nodes).map(|_| VecDeque::new()).collect();
        Outside { asked, tags: BTreeMap::new(), over: VecDeque::new() }
    }
}
