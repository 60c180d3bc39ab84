//! Planted bugs, which the checks have to find.

use p4rack_wire::edm::{Kind, Message};
use std::collections::BTreeMap;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Memory nodes execute atomic operations twice.
    AtomicTwice,
    /// Memory nodes apply writes a second time, later.
    WriteTwice,
    /// Memory nodes repeat old answers.
    StaleRead,
    /// Memory nodes apply half of each chunk.
    TornWrite,
    /// Memory nodes ignore writes.
    LostWrite,
    /// Memory nodes apply only the first chunk of each write.
    FirstChunkOnly,
    /// Memory nodes ignore writes of a word with every fourth id.
    SomeLost,
    /// Memory nodes apply a write of a word after the same host's next write.
    WritesSwapped,
    /// Compute nodes swap a write with the next one.
    AskedSwapped,
    /// The switch loses all grants after the end of the faults.
    NoGrants,
}

impl Plant {
    /// All.
    pub const ALL: [Plant; 10] = [
        Plant::AtomicTwice,
        Plant::WriteTwice,
        Plant::StaleRead,
        Plant::TornWrite,
        Plant::LostWrite,
        Plant::FirstChunkOnly,
        Plant::SomeLost,
        Plant::WritesSwapped,
        Plant::AskedSwapped,
        Plant::NoGrants,
    ];
}

/// State of the planted bug, or none.
#[derive(Debug)]
pub(super) struct Planted {
    plant: Option<Plant>,
    /// The last answer on a link.
    answered: Vec<u8>,
    /// Writes held back until the next one, by memory node and host.
    held: BTreeMap<(u16, u16), Vec<u8>>,
}

/// Effect of a bug on an arriving message, beyond changing it.
#[derive(Debug)]
pub(super) enum Effect {
    None,
    /// The message is lost.
    Lost,
    /// The memory node handles this message before it.
    Before(Vec<u8>),
    /// The memory node handles this message after it.
    After(Vec<u8>),
    /// This message arrives later.
    Later(Vec<u8>),
}

impl Planted {
    pub fn new(plant: Option<Plant>) -> Planted {
        Planted { plant, answered: Vec::new(), held: BTreeMap::new() }
    }

    /// Whether links lose messages of this kind.
    pub fn loses(&self, kind: Option<Kind>, faults_are_over: bool) -> bool {
        self.plant == Some(Plant::NoGrants) && kind == Some(Kind::Grant) && faults_are_over
    }

    /// Whether compute nodes swap their writes.
    pub fn swaps(&self) -> bool {
        self.plant == Some(Plant::AskedSwapped)
    }

    /// Handles a message from one node to another, and may change it.
    pub fn arrives(&mut self, (from, at): (u16, u16), kind: Option<Kind>, payload: &mut [u8]) -> Effect {
        let part =
            |payload: &[u8]| Message::parse(payload).map_or((0, 0, 0), |of| (of.id, of.total, of.offset));
        // The same message under another id is no duplicate.
        let renamed = |payload: &[u8]| {
            let mut again = payload.to_vec();
            again[2] ^= 0x40;
            again
        };
        match (self.plant, kind) {
            (Some(Plant::AtomicTwice), Some(Kind::Rmwreq)) => return Effect::Before(renamed(payload)),
            (Some(Plant::WriteTwice), Some(Kind::Wreq)) if payload[2] & 0x40 == 0 => {
                return Effect::Later(renamed(payload));
            }
            (Some(Plant::LostWrite), Some(Kind::Wreq)) => return Effect::Lost,
            (Some(Plant::FirstChunkOnly), Some(Kind::Wreq)) if part(payload).2 > 0 => return Effect::Lost,
            (Some(Plant::SomeLost), Some(Kind::Wreq)) if part(payload).1 == 8 && part(payload).0 % 4 == 1 => {
                return Effect::Lost;
            }
            (Some(Plant::WritesSwapped), Some(Kind::Wreq)) if part(payload).1 == 8 => {
                match self.held.remove(&(at, from)) {
                    Some(held) => return Effect::After(held),
                    None => self.held.insert((at, from), payload.to_vec()),
                };
                return Effect::Lost;
            }
            (Some(Plant::StaleRead), Some(Kind::Rres)) => {
                let now = payload[Message::BYTES..].to_vec();
                if now.len() == self.answered.len() {
                    payload[Message::BYTES..].copy_from_slice(&self.answered);
                }
                self.answered = now;
            }
            (Some(Plant::TornWrite), Some(Kind::Wreq)) => {
                let half = (payload.len() + Message::BYTES) / 2;
                payload[half..].fill(0);
            }
            _ => {}
        }
        Effect::None
    }
}
