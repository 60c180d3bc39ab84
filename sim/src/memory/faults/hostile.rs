//! A host that follows no rule: it forges messages and replays others' messages, with its own address and with theirs.

use super::rack::{CHUNK_BYTES, COMPUTES, KEY, MEMORIES};
use crate::message::mac_of;
use crate::random::Random;
use p4rack_wire::EtherType;
use p4rack_wire::edm::{self, Control, Kind, Message, OPEN, SESSION_BYTES, VERSION};

/// Number of the hostile host.
pub(super) const HOSTILE: u16 = 4;
/// Position of the key in a message.
const KEY_AT: std::ops::Range<usize> = 4..8;
/// Maximum messages of others that it keeps.
const HEARD_MAX: usize = 32;

/// The hostile host of a seed that has one.
#[derive(Debug)]
pub(super) struct Hostile {
    random: Random,
    /// Messages of others, with sender and receiver.
    heard: Vec<(u16, u16, Vec<u8>)>,
}

impl Hostile {
    /// The hostile host of this seed. Every other seed has one.
    pub fn new(seed: u64) -> Option<Hostile> {
        (seed % 2 == 1).then(|| Hostile { random: Random::stream(seed, 2), heard: Vec::new() })
    }

    /// Time until its next frame.
    pub fn pause_ns(&mut self) -> u64 {
        200 + self.random.below(3_000)
    }

    /// Learns another host's message, except for the key, which protects the memory.
    pub fn hear(&mut self, from: u16, to: u16, message: &[u8]) {
        if self.heard.len() < HEARD_MAX {
            self.heard.push((from, to, message.to_vec()));
        } else {
            let nth = self.random.below(HEARD_MAX as u64) as usize;
            self.heard[nth] = (from, to, message.to_vec());
        }
    }

    /// Its next frame.
    pub fn frame(&mut self, ether_type: EtherType) -> Vec<u8> {
        let mut source = HOSTILE;
        let memory = MEMORIES.start + self.random.below(MEMORIES.len() as u64) as u16;
        let (to, message) = match self.random.below(8) {
            0 => (memory, self.opening()),
            1 => (memory, self.notification()),
            2..4 => (memory, self.with_wrong_key()),
            4 => (self.random.below(u64::from(COMPUTES)) as u16, self.forged()),
            _ if self.heard.is_empty() => (memory, self.opening()),
            nth => {
                let of = self.random.below(self.heard.len() as u64) as usize;
                let (from, to, mut message) = self.heard[of].clone();
                if nth == 5 {
                    // Unchanged, with its old address: the switch has to refuse it.
                    source = from;
                } else if let Some(key) = message.get_mut(KEY_AT) {
                    key.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                (to, message)
            }
        };
        let mut frame = Vec::new();
        edm::emit_frame(mac_of(to.into()), mac_of(source.into()), ether_type, &message, &mut frame);
        frame
    }

    /// An opening of a session for any start of a node, its own or another one.
    fn opening(&mut self) -> Vec<u8> {
        let address = match self.random.below(2) {
            0 => self.random.next(),
            _ => self.number_heard().map_or(7, |message| message.address),
        };
        let message = self.message(Kind::Rreq, OPEN, SESSION_BYTES);
        bytes(&Message { address, ..message }, 0)
    }

    /// Demands time for a write that never comes.
    fn notification(&mut self) -> Vec<u8> {
        let (kind, id) = (Kind::Notify as u8, self.random.next() as u16);
        let bytes = 1 + self.random.below(u64::from(4 * CHUNK_BYTES)) as u32;
        let mut message = vec![0; Control::BYTES];
        Control { version: VERSION, kind, answer: 0, id, offset: 0, bytes, wait: 0 }.emit(&mut message);
        message
    }

    /// A request or a write for memory whose key it does not know.
    fn with_wrong_key(&mut self) -> Vec<u8> {
        let (kind, code, carried) = match self.random.below(3) {
            0 => (Kind::Rreq, 0, 0),
            1 => (Kind::Rmwreq, edm::Opcode::FetchAdd as u8, 8),
            _ => (Kind::Wreq, 0, 8),
        };
        let message = self.message(kind, code, 8);
        bytes(&Message { bytes: carried, ..message }, usize::from(carried))
    }

    /// An answer or a grant for which there is no request.
    fn forged(&mut self) -> Vec<u8> {
        if self.random.below(2) == 0 {
            let mut grant = self.notification();
            grant[0] = VERSION << 4 | Kind::Grant as u8;
            return grant;
        }
        let message = self.message(Kind::Rres, 0, 8);
        bytes(&Message { bytes: 8, ..message }, 8)
    }

    /// A message with the id and session that another node may use.
    fn message(&mut self, kind: Kind, code: u8, total: u32) -> Message {
        let heard = self.number_heard();
        let any = self.random.next();
        let (start, id) =
            heard.map_or((any as u16, (any >> 16) as u16), |message| (message.start, message.id));
        let key = KEY + 1 + (any >> 32) as u32 % 1_000;
        let (address, offset) = (8 * self.random.below(3), 0);
        Message { version: VERSION, kind: kind as u8, code, id, key, address, total, offset, bytes: 0, start }
    }

    fn number_heard(&mut self) -> Option<Message> {
        let nth = self.random.below(self.heard.len().max(1) as u64) as usize;
        self.heard.get(nth).and_then(|(_, _, message)| Message::parse(message).ok())
    }
}

fn bytes(message: &Message, carried: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; Message::BYTES + carried];
    message.emit(&mut bytes);
    bytes
}
