//! Fences, and the requests that wait for them (paper §4.5).
//!
//! A fence completes when all earlier requests of its process have: reads are answered, calls of the slow path are done. Other
//! requests take effect as they arrive. Later requests of the process wait until the fence has completed; there is a limit for these, of
//! each process and of all.

use super::entry::Space;
use super::slow::PeerRequest;
use std::collections::VecDeque;

/// A fence that has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence<P> {
    pub space: Space,
    pub asked: PeerRequest<P>,
    /// It orders the requests of all processes.
    pub all: bool,
}

/// A request that waits.
#[derive(Clone, Debug)]
pub(super) struct Held<P> {
    pub space: Space,
    pub peer: P,
    pub bytes: Vec<u8>,
}

/// Fences in the order of their arrival, and requests in theirs.
#[derive(Clone, Debug)]
pub(super) struct Fences<P> {
    waiting: Vec<Fence<P>>,
    held: VecDeque<Held<P>>,
    /// Buffers for later requests.
    spare: Vec<Vec<u8>>,
    /// Requests of each process and of all.
    max: [usize; 2],
}

impl<P: Copy> Fences<P> {
    pub fn new(max: [usize; 2]) -> Fences<P> {
        Fences { waiting: Vec::new(), held: VecDeque::new(), spare: Vec::new(), max }
    }

    /// Whether no fence and no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty()
    }

    /// Whether requests of this process wait.
    pub fn blocks(&self, space: Space) -> bool {
        self.waiting.iter().any(|fence| fence.all || fence.space == space)
    }

    pub fn add(&mut self, fence: Fence<P>) {
        self.waiting.push(fence);
    }

    /// Takes out the first fence for which `is_over` holds.
    pub fn poll(&mut self, is_over: impl Fn(&Fence<P>) -> bool) -> Option<Fence<P>> {
        let at = self.waiting.iter().position(is_over)?;
        Some(self.waiting.remove(at))
    }

    /// Keeps a request that waits. Returns whether there was room.
    pub fn hold(&mut self, space: Space, peer: P, bytes: &[u8]) -> bool {
        let own = self.held.iter().filter(|held| held.space == space).count();
        // There is always room for one request of a process.
        let has_room = own < self.max[0] && (own == 0 || self.held.len() < self.max[1]);
        if has_room {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(bytes);
            self.held.push_back(Held { space, peer, bytes: buffer });
        }
        has_room
    }

    /// Takes out the first request that no longer waits. Those of each process stay in order.
    pub fn poll_held(&mut self) -> Option<Held<P>> {
        let at = (0..self.held.len()).find(|at| !self.blocks(self.held[*at].space))?;
        self.held.remove(at)
    }

    /// Takes a buffer back.
    pub fn reuse(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// Drops fences and requests of a process that has ended. Returns how many.
    pub fn forget(&mut self, space: Space) -> usize {
        let before = self.waiting.len() + self.held.len();
        self.waiting.retain(|fence| fence.space != space);
        self.held.retain(|held| held.space != space);
        before - self.waiting.len() - self.held.len()
    }
}
