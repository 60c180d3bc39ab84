//! Bugs that are planted, to see that they are found.

use p4rack_wire::edm::{Kind, Message};

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Memory nodes do atomic operations twice.
    AtomicTwice,
    /// Memory nodes apply writes a second time, later.
    WriteTwice,
    /// Memory nodes answer what they answered before.
    StaleRead,
    /// Memory nodes apply half of each chunk.
    TornWrite,
    /// Memory nodes apply no writes.
    LostWrite,
    /// The switch loses all grants once the faults are over.
    NoGrants,
}

impl Plant {
    /// All.
    pub const ALL: [Plant; 6] = [
        Plant::AtomicTwice,
        Plant::WriteTwice,
        Plant::StaleRead,
        Plant::TornWrite,
        Plant::LostWrite,
        Plant::NoGrants,
    ];
}

/// A bug at work, or none.
#[derive(Debug)]
pub(super) struct Planted {
    plant: Option<Plant>,
    /// The last answer that passed.
    answered: Vec<u8>,
}

/// What a bug does to a message that arrives, beside changing it.
#[derive(Debug)]
pub(super) enum Effect {
    None,
    /// Nobody takes it.
    Lost,
    /// The memory node takes this one before it.
    Before(Vec<u8>),
    /// This one arrives later.
    Later(Vec<u8>),
}

impl Planted {
    pub fn new(plant: Option<Plant>) -> Planted {
        Planted { plant, answered: Vec::new() }
    }

    /// Whether links lose messages of this kind.
    pub fn loses(&self, kind: Option<Kind>, faults_are_over: bool) -> bool {
        self.plant == Some(Plant::NoGrants) && kind == Some(Kind::Grant) && faults_are_over
    }

    /// Takes a message that arrives at a node, and perhaps changes it.
    pub fn arrives(&mut self, kind: Option<Kind>, payload: &mut [u8]) -> Effect {
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
