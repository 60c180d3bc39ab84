//! Fastpass: a server on a port of its own assigns each packet a time at which both ends are free. It decides in no time, but its
//! link has to carry a message per flow and one per packet.

use super::{Kind, Packet, Run};

/// Blocks of a message to the server or from it: a frame of 64 bytes, at least.
const FRAME_BLOCKS: u64 = 8;

/// The server's assignments.
#[derive(Clone, Debug)]
pub struct Central {
    /// By node: end of its outgoing and of its incoming data.
    free_ps: Vec<(u64, u64)>,
}

impl Central {
    /// A server for this many nodes.
    pub fn new(nodes: usize) -> Central {
        Central { free_ps: vec![(0, 0); nodes] }
    }
}

impl Run<'_> {
    /// A source announces a flow to the server.
    pub(super) fn ask_centre(&mut self, nth: u32, now_ps: u64) {
        let (from, to) = (self.flows[nth as usize].source, self.params.nodes);
        let packet = Packet {
            flow: nth,
            kind: Kind::Ask,
            bytes: 0,
            marked: false,
            from,
            to,
            blocks: self.frame_blocks(),
            rank: 0,
        };
        self.control(packet, now_ps);
    }

    fn frame_blocks(&self) -> u64 {
        self.params.headers.control_blocks().max(FRAME_BLOCKS)
    }

    /// The server assigns times to all packets of a flow.
    pub(super) fn asked(&mut self, nth: u32, now_ps: u64) {
        let flow = &self.flows[nth as usize];
        let (source, destination, mut left) = (flow.source, flow.destination, flow.bytes);
        let modules = &self.params.modules;
        // Not before the answer can arrive.
        let way_ps = 2 * modules.link_ps + modules.identify_ps + modules.forward_ps + modules.data_in_ps;
        let mut from_ps = now_ps + way_ps + self.frame_blocks() * self.block_ps;
        while left > 0 {
            let bytes = left.min(self.params.packet);
            left -= bytes;
            let [sends, receives] = [source, destination].map(usize::from);
            from_ps = from_ps.max(self.central.free_ps[sends].0).max(self.central.free_ps[receives].1);
            let until_ps = from_ps + self.blocks(&self.flows[nth as usize], bytes) * self.block_ps;
            (self.central.free_ps[sends].0, self.central.free_ps[receives].1) = (until_ps, until_ps);
            let kind = Kind::Credit { from_ps };
            let (from, to, blocks) = (self.params.nodes, source, self.frame_blocks());
            self.control(Packet { flow: nth, kind, bytes, marked: false, from, to, blocks, rank: 0 }, now_ps);
            from_ps = until_ps;
        }
    }
}
