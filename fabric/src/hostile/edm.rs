//! Hosts that break EDM's rules, or load the rack as hard as the rules allow.
//!
//! ```text
//!   Machine ── poll_link ──▶ demands at the link's rate, data that was granted or not, anything else
//!           ◀─ handle_link ── grants, answers
//! ```

use crate::common::SplitMix;
use crate::edm::host::offered;
use p4rack_wire::edm::{self, Control, Kind, Message, OPEN, Opcode, SESSION_BYTES, VERSION, WORD_BYTES};
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::{EtherType, MacAddr, Nanos, WireRate};
use std::fmt;
use std::str::FromStr;

/// Bytes of the messages of attacks with long ones.
pub const LONG_BYTES: u32 = 960 << 10;

/// Attack on a memory node, repeated without end, in all lanes that the host has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attack {
    /// Reads messages of 960 KiB.
    BulkRead,
    /// Writes messages of 960 KiB.
    BulkWrite,
    /// Writes messages of one window.
    WindowWrite,
    /// Asks to read a chunk, at the link's rate.
    ReadFlood,
    /// Asks to write a chunk at the link's rate, and writes the granted chunks.
    WriteFlood,
    /// Asks to read 960 KiB with a wrong key, at the link's rate.
    WrongKeyRead,
    /// Like `WriteFlood`, with a wrong key.
    WrongKeyWrite,
    /// Asks for atomic operations at the link's rate.
    AtomicFlood,
    /// Asks to write a window, and writes it in chunks of a byte.
    Bytewise,
    /// Writes messages of 960 KiB, and sends granted data early.
    Early,
    /// Asks in all lanes, for reads and writes of 960 KiB, and falls silent until it may ask again.
    Silent,
    /// Asks to write 960 KiB at the link's rate, and never sends data.
    NotifyFlood,
    /// Sends data without a grant.
    DataFlood,
    /// Forges grants, answers and requests, with its own and with others' addresses.
    Forged,
    /// Sends random bytes behind EDM's EtherType, and random frames.
    Garbage,
    /// Sends untagged frames.
    BestEffortFlood,
}

impl Attack {
    /// All attacks.
    pub const ALL: [Attack; 16] = [
        Attack::BulkRead,
        Attack::BulkWrite,
        Attack::WindowWrite,
        Attack::ReadFlood,
        Attack::WriteFlood,
        Attack::WrongKeyRead,
        Attack::WrongKeyWrite,
        Attack::AtomicFlood,
        Attack::Bytewise,
        Attack::Early,
        Attack::Silent,
        Attack::NotifyFlood,
        Attack::DataFlood,
        Attack::Forged,
        Attack::Garbage,
        Attack::BestEffortFlood,
    ];

    /// Name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Attack::BulkRead => "bulk-read",
            Attack::BulkWrite => "bulk-write",
            Attack::WindowWrite => "window-write",
            Attack::ReadFlood => "read-flood",
            Attack::WriteFlood => "write-flood",
            Attack::WrongKeyRead => "wrong-key-read",
            Attack::WrongKeyWrite => "wrong-key-write",
            Attack::AtomicFlood => "atomic-flood",
            Attack::Bytewise => "bytewise",
            Attack::Early => "early",
            Attack::Silent => "silent",
            Attack::NotifyFlood => "notify-flood",
            Attack::DataFlood => "data-flood",
            Attack::Forged => "forged",
            Attack::Garbage => "garbage",
            Attack::BestEffortFlood => "best-effort-flood",
        }
    }

    /// Whether it demands again in lanes with unfinished messages.
    const fn floods(self) -> bool {
        matches!(
            self,
            Attack::ReadFlood
                | Attack::WriteFlood
                | Attack::WrongKeyRead
                | Attack::WrongKeyWrite
                | Attack::AtomicFlood
                | Attack::NotifyFlood
        )
    }

    /// Whether it sends granted data.
    const fn writes(self) -> bool {
        matches!(
            self,
            Attack::BulkWrite
                | Attack::WindowWrite
                | Attack::WriteFlood
                | Attack::WrongKeyWrite
                | Attack::Bytewise
                | Attack::Early
        )
    }

    /// Whether it sends no demands.
    const fn asks_nothing(self) -> bool {
        matches!(self, Attack::DataFlood | Attack::Forged | Attack::Garbage | Attack::BestEffortFlood)
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Attack {
    type Err = String;
    fn from_str(text: &str) -> Result<Attack, String> {
        super::named(text, &Attack::ALL, Attack::name, " on EDM")
    }
}

/// Attack of a hostile host, and its knowledge of the rack.
#[derive(Clone, Debug)]
pub struct Config {
    /// The attack.
    pub attack: Attack,
    /// Its address.
    pub mac: MacAddr,
    /// Address of the attacked memory node.
    pub victim: MacAddr,
    /// Addresses of all other hosts.
    pub others: Vec<MacAddr>,
    /// EtherType of EDM.
    pub ether_type: EtherType,
    /// Lanes of a pair: a power of two, of which the first `demands` are used.
    pub lanes: u16,
    /// Maximum demands of a pair, each way.
    pub demands: u16,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Chunks of a window.
    pub window: u32,
    /// The valid key, with which it reads.
    pub key: u32,
    /// Key with which it writes and changes words. An invalid one leaves others' memory unchanged.
    pub write_key: u32,
    /// Address at which it reads and writes.
    pub address: u64,
    /// Its open session with the memory node. Without one it opens one first: messages outside a session do no harm.
    pub session: Option<u16>,
    /// Unit of the waits in grants.
    pub wait_unit: Nanos,
    /// Timeout for a grant or answer, after which it demands again.
    pub patience: Nanos,
    /// Rate of its link in bits per second.
    pub rate_bps: u64,
    /// How far a late driver may catch up.
    pub catch_up: Nanos,
}

/// A message in a lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    id: u16,
    total: u32,
    /// Bytes that were granted, and sent.
    granted: u32,
    sent: u32,
    /// When the data granted last may leave.
    leaves: Nanos,
    /// When it demands again.
    again: Nanos,
    /// Whether it waits for an answer or a grant.
    busy: bool,
}

/// Machine of a hostile host: takes frames from the link, yields frames to send.
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    rate: WireRate,
    random: SplitMix,
    free_at: Nanos,
    made: u64,
    /// Writes, then answers.
    lanes: [Vec<Lane>; 2],
    message: Vec<u8>,
    session: Option<u16>,
    /// Identifies this start of the host to the memory node.
    incarnation: u64,
}

const WRITE: usize = 0;
const ANSWER: usize = 1;

impl Machine {
    /// A machine that starts at `now`.
    pub fn new(config: Config, seed: u64, now: Nanos) -> Machine {
        let lanes = || (0..config.demands).map(|id| Lane { id, ..Lane::default() }).collect::<Vec<_>>();
        Machine {
            lanes: [lanes(), lanes()],
            rate: WireRate::new(config.rate_bps),
            random: SplitMix(seed),
            free_at: now,
            made: 0,
            message: Vec::new(),
            session: config.session,
            incarnation: now.0 ^ seed,
            config,
        }
    }

    /// The lane of a message with this id.
    fn lane(&mut self, kind: usize, id: u16) -> Option<&mut Lane> {
        let nth = usize::from(id % self.config.lanes);
        self.lanes[kind].get_mut(nth).filter(|lane| lane.busy && lane.id == id)
    }

    /// Time of its next frame.
    fn due(&self) -> Nanos {
        let attack = self.config.attack;
        if self.opens() {
            let opening = &self.lanes[ANSWER][0];
            return if opening.busy { opening.again.max(self.free_at) } else { self.free_at };
        }
        if attack.floods() || attack.asks_nothing() {
            return self.free_at;
        }
        let due = |lane: &Lane| match (lane.busy, attack.writes() && lane.sent < lane.granted) {
            (false, _) => Nanos::ZERO,
            (true, true) => lane.leaves.min(lane.again),
            (true, false) => lane.again,
        };
        let kinds = self.kinds();
        let lanes = kinds.iter().flat_map(|kind| &self.lanes[*kind]);
        lanes.map(due).min().unwrap_or(Nanos::MAX).max(self.free_at)
    }

    /// Whether it has to open a session first.
    fn opens(&self) -> bool {
        self.session.is_none() && !self.config.attack.asks_nothing()
    }

    /// The kinds of its demands.
    fn kinds(&self) -> &'static [usize] {
        match self.config.attack {
            Attack::Silent => &[WRITE, ANSWER],
            Attack::BulkRead | Attack::ReadFlood | Attack::WrongKeyRead | Attack::AtomicFlood => &[ANSWER],
            _ => &[WRITE],
        }
    }

    fn make(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        if self.opens() {
            self.open(now, out);
            return true;
        }
        match self.config.attack {
            Attack::DataFlood => {
                let (nth, bytes) = (self.made as u16 % self.config.demands, self.config.chunk_bytes);
                self.data(nth, LONG_BYTES, 0, bytes, out);
            }
            Attack::Forged => self.forged(out),
            Attack::Garbage => self.garbage(out),
            Attack::BestEffortFlood => {
                let Config { victim, mac, .. } = self.config;
                out.resize(Ethernet::BYTES + overhead::MTU as usize, 0);
                Ethernet { dst: victim, src: mac, ether_type: EtherType(0x88b7) }.emit(out);
            }
            attack => {
                if attack.writes() && self.granted(now, out) {
                    return true;
                }
                return self.ask(now, out);
            }
        }
        true
    }

    /// Sends granted data of the next lane that has some.
    fn granted(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let count = self.lanes[WRITE].len();
        let is_due = |lane: &Lane| lane.busy && lane.sent < lane.granted && lane.leaves <= now;
        let due = (0..count).map(|nth| (nth + self.made as usize) % count);
        let Some(nth) = due.into_iter().find(|nth| is_due(&self.lanes[WRITE][*nth])) else { return false };
        let most = if self.config.attack == Attack::Bytewise { 1 } else { self.config.chunk_bytes };
        let lane = &mut self.lanes[WRITE][nth];
        let (id, total, offset) = (lane.id, lane.total, lane.sent);
        let bytes = most.min(lane.granted - lane.sent);
        lane.sent += bytes;
        lane.busy = lane.sent < lane.total;
        self.data(id, total, offset, bytes, out);
        true
    }

    /// Demands in the next lane that is free, or in any if it floods.
    fn ask(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        let attack = self.config.attack;
        let kinds = self.kinds();
        let kind = kinds[self.made as usize % kinds.len()];
        let count = self.lanes[kind].len();
        let is_idle = |lane: &Lane| !lane.busy || lane.again <= now;
        let in_turn = |n: usize| (n + self.made as usize / kinds.len()) % count;
        let idle = (0..count).map(in_turn).find(|nth| is_idle(&self.lanes[kind][*nth]));
        let Some(nth) = idle else {
            // A flood repeats demands that are still open.
            let (id, total) = {
                let lane = &self.lanes[kind][in_turn(0)];
                (lane.id, lane.total)
            };
            if attack.floods() {
                self.demand(kind, id, total, out);
            } else {
                self.made += 1;
            }
            return attack.floods();
        };
        let total = match attack {
            Attack::ReadFlood | Attack::WriteFlood | Attack::WrongKeyWrite => self.config.chunk_bytes,
            Attack::WindowWrite | Attack::Bytewise => self.config.chunk_bytes * self.config.window,
            Attack::AtomicFlood => WORD_BYTES,
            _ => LONG_BYTES,
        };
        let (lanes, patience) = (self.config.lanes, self.config.patience);
        let lane = &mut self.lanes[kind][nth];
        let id = lane.id.wrapping_add(lanes);
        *lane = Lane { id, total, busy: true, again: now + patience, ..Lane::default() };
        self.demand(kind, id, total, out);
        true
    }

    /// Asks for a session, in the first lane of answers.
    fn open(&mut self, now: Nanos, out: &mut Vec<u8>) {
        let again = now.saturating_add(self.config.patience);
        let lane = &mut self.lanes[ANSWER][0];
        let id = lane.id.wrapping_add(self.config.lanes);
        *lane = Lane { id, total: SESSION_BYTES, busy: true, again, ..Lane::default() };
        let (version, kind, address) = (VERSION, Kind::Rreq as u8, self.incarnation);
        let total = SESSION_BYTES;
        let asks =
            Message { version, kind, code: OPEN, id, key: 0, address, total, offset: 0, bytes: 0, start: 0 };
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        message.resize(Message::BYTES, 0);
        asks.emit(&mut message);
        let Config { victim, mac, ether_type, .. } = self.config;
        edm::emit_frame(victim, mac, ether_type, &message, out);
        self.message = message;
    }

    fn demand(&mut self, kind: usize, id: u16, total: u32, out: &mut Vec<u8>) {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        if kind == WRITE {
            message.resize(Control::BYTES, 0);
            let kind = Kind::Notify as u8;
            Control { version: VERSION, kind, answer: 0, id, offset: 0, bytes: total, wait: 0 }
                .emit(&mut message);
        } else if self.config.attack == Attack::AtomicFlood {
            self.header(Kind::Rmwreq, id, (total, 0, WORD_BYTES as u16), &mut message);
            message[1] = Opcode::FetchAdd as u8;
            message.extend_from_slice(&1u64.to_be_bytes());
        } else {
            self.header(Kind::Rreq, id, (total, 0, 0), &mut message);
        }
        let Config { victim, mac, ether_type, .. } = self.config;
        edm::emit_frame(victim, mac, ether_type, &message, out);
        self.message = message;
    }

    fn data(&mut self, id: u16, total: u32, offset: u32, bytes: u32, out: &mut Vec<u8>) {
        let mut message = std::mem::take(&mut self.message);
        self.header(Kind::Wreq, id, (total, offset, bytes as u16), &mut message);
        message.resize(Message::BYTES + bytes as usize, 0);
        let Config { victim, mac, ether_type, .. } = self.config;
        edm::emit_frame(victim, mac, ether_type, &message, out);
        self.message = message;
    }

    fn header(&self, kind: Kind, id: u16, (total, offset, bytes): (u32, u32, u16), out: &mut Vec<u8>) {
        let Config { attack, key, write_key, address, .. } = self.config;
        let key = match attack {
            Attack::WrongKeyRead | Attack::WrongKeyWrite => !key,
            _ if kind == Kind::Rreq => key,
            _ => write_key,
        };
        out.clear();
        out.resize(Message::BYTES, 0);
        let (version, kind, start) = (VERSION, kind as u8, self.session.unwrap_or(1));
        Message { version, kind, code: 0, id, key, address, total, offset, bytes, start }.emit(out);
    }

    /// A forged grant, answer or request of any host.
    fn forged(&mut self, out: &mut Vec<u8>) {
        let (to, from) = (self.anybody(), self.anybody());
        let from = if self.made.is_multiple_of(2) { self.config.mac } else { from };
        let id = self.random.next() as u16 % (8 * self.config.lanes);
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        match self.made % 3 {
            0 => {
                message.resize(Control::BYTES, 0);
                let (kind, answer) = (Kind::Grant as u8, (self.random.next() & 1) as u8);
                let (offset, bytes) = (0, self.config.chunk_bytes);
                Control { version: VERSION, kind, answer, id, offset, bytes, wait: 0 }.emit(&mut message);
            }
            1 => self.header(Kind::Rres, id, (64, 0, 64), &mut message),
            _ => self.header(Kind::Rreq, id, (64, 0, 0), &mut message),
        }
        if self.made % 3 == 1 {
            message.resize(Message::BYTES + 64, 0);
        }
        edm::emit_frame(to, from, self.config.ether_type, &message, out);
        self.message = message;
    }

    fn garbage(&mut self, out: &mut Vec<u8>) {
        let (to, ether_type) = (self.anybody(), self.config.ether_type);
        let len = 1 + (self.random.next() % 400) as usize;
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        message.extend((0..len).map(|_| self.random.next() as u8));
        if self.made.is_multiple_of(2) {
            // With a valid version and kind.
            message[0] = VERSION << 4 | (1 + self.random.next() % 6) as u8;
        }
        let other = EtherType(self.random.next() as u16 | 0x0600);
        let ether_type = if self.made % 8 == 7 { other } else { ether_type };
        edm::emit_frame(to, self.config.mac, ether_type, &message, out);
        self.message = message;
    }

    fn anybody(&mut self) -> MacAddr {
        let nth = self.random.next() as usize % self.config.others.len().max(1);
        self.config.others.get(nth).copied().unwrap_or(self.config.victim)
    }
}

impl crate::Machine for Machine {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) {
        let Some((_, bytes)) = edm::parse_frame(frame, self.config.ether_type) else { return };
        match Kind::of(bytes[0]) {
            Ok(Kind::Grant) => {
                let Ok(grant) = Control::parse(bytes) else { return };
                let wait = Nanos(u64::from(grant.wait).saturating_mul(self.config.wait_unit.0));
                let wait = if self.config.attack == Attack::Early { Nanos::ZERO } else { wait };
                let again = now.saturating_add(wait).saturating_add(self.config.patience);
                let lane = self.lane(WRITE, grant.id);
                if let Some(lane) = lane.filter(|lane| grant.answer == 0 && grant.offset == lane.granted) {
                    lane.granted += grant.bytes;
                    lane.leaves = now.saturating_add(wait).max(lane.leaves);
                    lane.again = again;
                }
            }
            Ok(Kind::Rres) => {
                let Ok(answer) = Message::parse(bytes) else { return };
                let again = now.saturating_add(self.config.patience);
                let payload = bytes.get(Message::BYTES..).unwrap_or_default();
                self.session = self.session.or_else(|| offered(payload, self.incarnation));
                if let Some(lane) = self.lane(ANSWER, answer.id) {
                    lane.sent += u32::from(answer.bytes);
                    lane.again = again;
                    lane.busy = answer.total != 0 && lane.sent < lane.total;
                }
            }
            _ => {}
        }
    }

    /// The frame (without FCS) that starts to leave now, if any.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        if self.due() > now {
            return None;
        }
        out.clear();
        if !self.make(now, out) {
            return None;
        }
        self.made += 1;
        let start = self.free_at.max(now.saturating_sub(self.config.catch_up));
        self.free_at = start + self.rate.time(overhead::wire_bytes(out.len() as u64));
        Some(())
    }

    fn next_timeout(&self) -> Option<Nanos> {
        Some(self.due()).filter(|due| *due < Nanos::MAX)
    }
}

#[cfg(test)]
mod tests;
