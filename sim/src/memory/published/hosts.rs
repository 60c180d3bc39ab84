//! The model's hosts: transmissions and arrivals per slot.

use super::figure::Kind;
use super::{BLOCK_BYTES, Block, Flow, HOP_SLOTS, Published, State, due};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// Flows that may send, except the current one.
    pub ready: Vec<usize>,
    pub current: Option<usize>,
    /// On the link to the switch, with the slot of arrival.
    pub up: VecDeque<(u64, Block)>,
    /// In the switch, for this host.
    pub queue: VecDeque<Block>,
    /// On the link from the switch.
    pub down: VecDeque<(u64, Block)>,
    /// The source that locks this host as a destination.
    pub locked_by: Option<usize>,
    /// Bytes granted towards it that have not left the switch.
    pub in_flight: i64,
}

impl Published<'_> {
    /// A host: chooses a flow and sends one block of it.
    pub(super) fn send(&mut self, nth: usize) -> bool {
        let key = |flow: &Flow| {
            let remaining = if flow.kind == Kind::Request { -1 } else { flow.bytes - flow.sent };
            (flow.state, remaining, flow.slot)
        };
        let host = &mut self.hosts[nth];
        let best = (0..host.ready.len()).min_by_key(|at| key(&self.flows[host.ready[*at]]));
        if host.current.is_some_and(|flow| self.flows[flow].state == State::Waiting) {
            host.current = None;
        }
        if host.current.is_none() {
            host.current = best.map(|at| host.ready.remove(at));
        }
        let Some(number) = host.current else { return false };
        let (flow, arrives) = (&mut self.flows[number], self.slot + HOP_SLOTS);
        if flow.state == State::ToNotify && flow.kind != Kind::Request {
            flow.state = State::Waiting;
            host.up.push_back((arrives, Block::Notification(number)));
            return true;
        }
        if flow.state == State::Waiting || flow.quota <= 0 {
            return false;
        }
        let first = flow.sent == 0;
        host.up.push_back((
            arrives,
            match flow.kind {
                Kind::Request => Block::Request { flow: number, first },
                _ => Block::Data(number),
            },
        ));
        if first {
            self.started += 1;
            if flow.kind == Kind::Request {
                flow.state = State::Granted;
            }
        }
        flow.sent += BLOCK_BYTES;
        flow.quota -= BLOCK_BYTES;
        if flow.sent >= flow.bytes {
            host.current = None;
        } else if flow.quota < BLOCK_BYTES && flow.kind != Kind::Request {
            flow.state = State::Waiting;
            host.current = None;
        }
        true
    }

    pub(super) fn receive(&mut self, nth: usize) {
        let Some(block) = due(&mut self.hosts[nth].down, self.slot) else { return };
        match block {
            Block::Data(flow) | Block::Request { flow, .. } => self.received(flow),
            Block::Grant { flow, bytes } if self.flows[flow].kind == Kind::Write => {
                self.granted(nth, flow, bytes)
            }
            Block::Grant { flow, bytes } => match self.flows[flow].response {
                Some(response) => self.granted(nth, response, bytes),
                None => {
                    let request = &self.flows[flow];
                    let response = Flow {
                        kind: Kind::Response,
                        state: State::Granted,
                        source: nth,
                        destination: request.source,
                        bytes: request.asked,
                        quota: bytes,
                        sent: 0,
                        slot: self.slot + 1,
                        ..request.clone()
                    };
                    self.flows[flow].response = Some(self.flows.len());
                    self.starting.push_front(self.flows.len());
                    self.flows.push(Flow { received: 0, finished: None, ..response });
                    self.received(flow);
                }
            },
            Block::Notification(_) => {}
        }
    }

    fn granted(&mut self, host: usize, flow: usize, bytes: i64) {
        if self.flows[flow].state == State::Waiting && self.hosts[host].current != Some(flow) {
            self.hosts[host].ready.push(flow);
        }
        (self.flows[flow].state, self.flows[flow].quota) = (State::Granted, bytes);
    }

    fn received(&mut self, flow: usize) {
        let flow = &mut self.flows[flow];
        flow.received += BLOCK_BYTES;
        if flow.finished.is_none() && flow.received >= flow.bytes {
            flow.finished = Some(self.slot);
        }
    }
}
