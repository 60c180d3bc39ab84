//! Windows that the clients of one compute node share: threads of a program that each have a client (§4.4).
//!
//! ```text
//!   client of a thread ──┐               ┌── of board A: congestion window, delay, packets under way
//!   client of a thread ──┼─ NodeWindows ─┼── of board B
//!   client of a thread ──┘               └── of the node: bytes of expected responses
//! ```
//!
//! A client looks at the windows when it is called. Nothing calls it when another one has made room, so each may have a packet under way
//! and a response expected, whatever the others have: its answer is the next look. So clients may exceed a window by a packet each.

use super::client::Client;
use super::config::Config;
use super::window::Flow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Windows of a compute node, of which clones are the same. `B` names a board.
#[derive(Clone, Debug)]
pub struct NodeWindows<B> {
    /// Bytes of responses that its clients expect.
    expected: Arc<AtomicU64>,
    /// Congestion windows of boards that have clients.
    boards: Arc<Mutex<BTreeMap<B, Weak<Mutex<Flow>>>>>,
}

impl<B> Default for NodeWindows<B> {
    fn default() -> NodeWindows<B> {
        NodeWindows { expected: Arc::default(), boards: Arc::default() }
    }
}

impl<B: Ord> NodeWindows<B> {
    /// The congestion window of a board: the clients', or a new one with these parameters if it has none.
    fn of(&self, board: B, config: &Config) -> Arc<Mutex<Flow>> {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|_, flow| flow.strong_count() > 0);
        if let Some(flow) = boards.get(&board).and_then(Weak::upgrade) {
            return flow;
        }
        let flow = Arc::new(Mutex::new(Flow::new(config)));
        boards.insert(board, Arc::downgrade(&flow));
        flow
    }
}

impl Client {
    /// Shares its windows with other clients of the node, which name its boards by the same names. The order of operations remains each
    /// client's.
    pub fn share<B: Ord>(&mut self, node: &NodeWindows<B>, names: impl IntoIterator<Item = B>) {
        for (board, name) in self.boards.iter_mut().zip(names) {
            board.window.share(node.of(name, &self.config));
        }
        self.incast.share(Arc::clone(&node.expected));
    }
}
