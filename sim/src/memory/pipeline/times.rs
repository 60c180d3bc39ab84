//! The message of each frame, and the times of messages.

use super::{ADDRESSES, CLOCK, Event, Pipeline};
use p4rack_fabric::edm::host::compute;
use p4rack_wire::edm::{self, Kind};

impl Pipeline<'_> {
    /// The message of this pair that begins at an address.
    fn message_at(&self, address: u64, (compute, memory): (u16, u16)) -> Option<usize> {
        let newest = u64::from(self.created.checked_sub(1)?);
        let nth = newest.checked_sub(newest.wrapping_sub(address) % u64::from(ADDRESSES))? as usize;
        let message = self.messages.all.get(nth)?;
        ((message.compute, message.memory) == (compute, memory)).then_some(nth)
    }

    fn lane(&self, (compute, memory): (u16, u16), id: u16) -> usize {
        let pair = usize::from(compute) * usize::from(self.params.nodes) + usize::from(memory);
        pair * self.edm.lanes() as usize + usize::from(id) % self.edm.lanes() as usize
    }

    /// Records the times of frames that leave a host.
    pub(super) fn sent(&mut self, from: u16, to: u16, payload: &[u8], now_ps: u64) {
        let Ok(header) = edm::Message::parse(payload) else { return };
        match Kind::of(payload[0]) {
            Ok(Kind::Rreq) => {
                if let Some(nth) = self.message_at(header.address, (from, to)) {
                    let lane = self.lane((from, to), header.id);
                    self.reads[lane] = nth as u32;
                    self.messages.shown.times[nth].asked_ps.get_or_insert(now_ps);
                }
            }
            Ok(Kind::Wreq) => {
                if let Some(nth) = self.message_at(header.address, (from, to)) {
                    self.messages.shown.times[nth].sent_ps.get_or_insert(now_ps);
                }
            }
            Ok(Kind::Rres) => {
                let nth = self.reads[self.lane((to, from), header.id)];
                if let Some(times) = self.messages.shown.times.get_mut(nth as usize) {
                    times.sent_ps.get_or_insert(now_ps);
                }
            }
            _ => {}
        }
    }

    /// Records the times of frames that a memory node receives. `is_whole`: this one completes a write.
    pub(super) fn received(&mut self, nth: u16, from: u16, payload: &[u8], is_whole: bool, now_ps: u64) {
        let Ok(header) = edm::Message::parse(payload) else { return };
        let kind = Kind::of(payload[0]);
        if !matches!(kind, Ok(Kind::Rreq | Kind::Wreq)) {
            return;
        }
        let Some(message) = self.message_at(header.address, (from, nth)) else {
            self.messages.shown.strays += u64::from(self.is_orderly());
            return;
        };
        if kind == Ok(Kind::Rreq) {
            self.messages.shown.times[message].reached_ps = Some(now_ps);
            return;
        }
        // A repeated write may have arrived already.
        if is_whole && !self.ended[message] {
            self.stored(message as u32, now_ps);
        }
    }

    /// Records the completed reads of a host.
    pub(super) fn completed(&mut self, nth: u16, now_ps: u64) {
        while let Some((token, outcome)) = self.nodes[usize::from(nth)].machines.compute.poll_completion() {
            let message = self.nodes[usize::from(nth)].tokens[token as usize];
            match outcome {
                compute::Outcome::Answer(_) => self.stored(message, now_ps),
                // A write is complete when the memory node has it.
                compute::Outcome::Sent if self.again.is_empty() => {}
                compute::Outcome::Sent => {
                    self.agenda.add(now_ps + CLOCK.ticks(self.timeout), Event::Look(message))
                }
                compute::Outcome::Refused(_) | compute::Outcome::Null if self.ended[message as usize] => {}
                compute::Outcome::Refused(_) => self.ended(message, now_ps),
                compute::Outcome::Null => self.ask_again(message, now_ps),
            }
        }
    }

    /// Ends a message whose last byte has arrived and goes to memory.
    pub(super) fn stored(&mut self, nth: u32, now_ps: u64) {
        let next = self.messages.stored(nth, now_ps);
        self.follows(nth, next);
    }

    /// Ends a message in any other way.
    pub(super) fn ended(&mut self, nth: u32, at_ps: u64) {
        let next = self.messages.ended(nth, at_ps);
        self.follows(nth, next);
    }

    /// Counts an ended message, and plans the next one that it permits.
    fn follows(&mut self, nth: u32, next: Option<(u64, u32)>) {
        if !std::mem::replace(&mut self.ended[nth as usize], true) {
            self.left -= 1;
        }
        self.agenda.extend(next.map(|(at_ps, next)| (at_ps, Event::Message(next))));
    }
}
