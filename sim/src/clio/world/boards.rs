//! Boards, and memory nodes of baselines.

use super::{AHEAD, BOARD_PORT, ClioWorld, Event, MemoryNode, Parcel};
use crate::clio::rack::{self, CLOCK, End, HEADERS};
use p4rack_fabric::{HostMachine as _, Machine as _};

impl ClioWorld<'_> {
    pub(super) fn at_board(&mut self, board: usize, parcel: Parcel, now_ps: u64) {
        if let MemoryNode::Board(node) = &mut self.nodes[board] {
            let at_ps = node.enter(now_ps, parcel.packet());
            return self.agenda.add(at_ps, Event::Entered(board as u16, parcel));
        }
        self.entered(board, parcel, now_ps);
    }

    pub(super) fn entered(&mut self, board: usize, parcel: Parcel, now_ps: u64) {
        let host = self.experiment.spec.compute_nodes + board as u16;
        match &mut self.nodes[board] {
            MemoryNode::Board(node) => {
                if let Some((at_ps, finished)) = node.take(parcel.from, parcel.packet(), now_ps) {
                    self.agenda.add(at_ps, Event::Finished(board as u16, Box::new(finished)));
                }
            }
            MemoryNode::Modelled(node) => {
                let (agenda, frames, crossing) =
                    (&mut self.agenda, &mut self.frames, &mut self.crossing[board]);
                let ends = (End { host, port: BOARD_PORT }, parcel.from);
                node.take(parcel.from, parcel.packet(), now_ps, |at_ps, packet| {
                    let mut frame = frames.take(packet.len() < 200);
                    frame.clear();
                    frame.resize(HEADERS, 0);
                    frame.extend_from_slice(packet);
                    rack::address(&mut frame, ends.0, ends.1);
                    *crossing += 1;
                    agenda.add(at_ps, Event::Handed(host, frame));
                });
            }
        }
        self.frames.release(parcel.frame);
        self.pump_board(board, now_ps);
    }

    /// Takes a board's answers as far as its link has room, and plans its clock.
    pub(super) fn pump_board(&mut self, board: usize, now_ps: u64) {
        let host = self.computes.len() + board;
        loop {
            let backlog = self.links.get(host).map_or(0, |link| link.backlog_frames()) as u32;
            let MemoryNode::Board(node) = &mut self.nodes[board] else { return };
            if self.crossing[board] + backlog >= AHEAD {
                break;
            }
            let mut frame = self.frames.take(true);
            let Some((to, at_ps)) = node.poll(now_ps, HEADERS, &mut frame) else {
                self.frames.release(frame);
                break;
            };
            rack::address(&mut frame, End { host: host as u16, port: BOARD_PORT }, to);
            self.crossing[board] += 1;
            self.agenda.add(at_ps, Event::Handed(host as u16, frame));
        }
        self.plan_board(board, now_ps);
    }

    pub(super) fn plan_board(&mut self, board: usize, now_ps: u64) {
        if let MemoryNode::Board(node) = &mut self.nodes[board]
            && let Some(at) = node.machine.next_timeout()
            && let Some(at_ps) = node.due.plan(CLOCK.ticks(at), now_ps)
        {
            self.agenda.add(at_ps, Event::Board(board as u16));
        }
    }
}
