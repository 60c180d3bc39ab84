//! Packets on their way to another pass through ingress, where that takes time ([`crate::Config::pass_delay`]).

use super::queued;
use crate::pool::PacketId;
use crate::stats::DropReason;
use crate::switch::Switch;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

struct One {
    due: Nanos,
    id: PacketId,
    /// The field list whose metadata it keeps, and how many words that is.
    list: u16,
    words: usize,
}

/// In the order in which they arrive, as all take the same time.
#[derive(Default)]
pub(crate) struct Returning {
    packets: VecDeque<One>,
    /// The metadata that they keep, one behind the other.
    words: VecDeque<u64>,
}

impl Returning {
    /// When the first one is back.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        Some(self.packets.front()?.due)
    }
}

impl Switch {
    /// Puts a packet off whose next pass begins later, with the metadata that is in `for_pass`. Returns false if it begins now.
    pub(crate) fn returns(&mut self, id: PacketId, list: u16, now: Nanos) -> bool {
        let delay = self.config.pass_delay;
        if delay == Nanos::ZERO {
            return false;
        }
        let Switch { returning, for_pass, .. } = self;
        returning.packets.push_back(One { due: now + delay, id, list, words: for_pass.len() });
        returning.words.extend(&*for_pass);
        true
    }

    /// Begins the passes of those that are back.
    #[cold]
    pub(crate) fn come_back(&mut self, now: Nanos) {
        while self.returning.due().is_some_and(|due| due <= now) {
            let Some(One { id, list, words, .. }) = self.returning.packets.pop_front() else { return };
            self.pool.go_on(id);
            self.for_pass.clear();
            self.for_pass.extend(self.returning.words.drain(..words));
            queued::ingress(self, id, Some(list), now);
            if self.manager.cpu_waits {
                self.serve_cpu(now);
            }
        }
    }

    /// Drops those of a program that is replaced.
    pub(crate) fn drop_returning(&mut self) {
        for One { id, .. } in std::mem::take(&mut self.returning).packets {
            self.end(id, DropReason::ProgramReplaced, None);
        }
    }
}
