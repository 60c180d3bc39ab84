//! The machines of a host that has memory for others, or uses theirs beside its agent.

use super::board::BoardNode;
use super::node::EdmNode;
use p4rack_fabric::edm::host::compute::{Outcome, Request};
use p4rack_wire::Nanos;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::topology) struct Machines {
    /// It sends frames beside the agent.
    pub(super) node: Option<EdmNode>,
    pub(super) board: Option<BoardNode>,
    packet: Vec<u8>,
}

impl Machines {
    /// Takes a frame from the link. Returns whether it is for machines beside the agent.
    #[inline]
    pub fn take_frame(&mut self, frame: &[u8], received_at: Nanos, now: Nanos) -> bool {
        self.node.as_mut().is_some_and(|node| node.take(frame, received_at, now))
    }

    /// Takes a packet of a flow that uses this host's memory. Returns whether there is such memory.
    pub fn take_packet(&mut self, flow: u16, packet: &[u8], now: Nanos) -> bool {
        self.board.as_mut().map(|board| board.take(flow, packet, now)).is_some()
    }

    /// Handles timeouts.
    pub fn wake(&mut self, now: Nanos) {
        if let Some(board) = &mut self.board {
            board.wake(now);
        }
    }

    /// Asks for something in the memory of another node, as [`EdmNode::ask`].
    pub(super) fn ask(
        &mut self,
        node: (u16, u32),
        address: u64,
        request: Request,
        asker: (u32, u16),
        now: Nanos,
    ) -> bool {
        self.node.as_mut().is_some_and(|own| own.ask(node, address, request, asker, now))
    }

    /// A request that has ended: the flow among its host's, its slot, and its result.
    pub fn poll_end(&mut self) -> Option<(u32, u16, Outcome)> {
        self.node.as_mut()?.poll_end()
    }

    /// Writes the next frame that goes to the link beside the agent over `frame`. Returns whether there is one.
    pub fn poll_frame(&mut self, now: Nanos, frame: &mut Vec<u8>) -> bool {
        self.node.as_mut().is_some_and(|node| node.poll(now, frame))
    }

    /// The next packet for a flow that uses this host's memory.
    pub fn poll_packet(&mut self, now: Nanos) -> Option<(u16, &[u8])> {
        let flow = self.board.as_mut()?.poll(now, &mut self.packet)?;
        Some((flow, &self.packet))
    }

    /// Their counters: the machine's name, and the counter's.
    pub fn counters(&self, add: &mut dyn FnMut(&'static str, &'static str, u64)) {
        self.node.iter().for_each(|node| node.counters(add));
        self.board.iter().for_each(|board| board.counters(add));
    }

    /// When they have work to do. Valid once the polls have given nothing.
    pub fn due(&self) -> Nanos {
        let (node, board) = (self.node.as_ref().map(EdmNode::due), self.board.as_ref().map(BoardNode::due));
        node.into_iter().chain(board).min().unwrap_or(Nanos::MAX)
    }
}
