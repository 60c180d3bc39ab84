//! Hosts that break the rules, to prove that they harm only themselves.
//!
//! The machine has the shape of an endpoint: it takes frames from the link and returns frames to send. It
//! fills its link at full rate with frames of one [`Attack`].

pub mod cowbird;
pub mod edm;
mod fared;
mod frames;
mod twice;

pub use fared::{Compared, Fared};

use crate::common::SplitMix;
use crate::machine::Machine;
use frames::Frames;
use p4rack_wire::ethernet::overhead::wire_bytes;
use p4rack_wire::pl2::{Control, DEMAND_MAX, Kind, NOT_NOW};
use p4rack_wire::{EtherType, MacAddr, Nanos, WireRate};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use twice::{Step, Twice};

/// Behaviour of a hostile host, repeated endlessly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attack {
    /// Sends RSVs for all cells to all destinations.
    RsvFlood,
    /// Sends scheduled frames to the victim without any reservation.
    ScheduledFlood,
    /// Sends unsolicited frames to the victim without any reservation.
    UnsolicitedFlood,
    /// Reserves at the victim, sends the burst immediately (full frames or short ones), and reserves again.
    Early,
    /// Collects reservations at the victim, then sends all of their bursts together.
    Late,
    /// Reserves at the victim in all cells, and sends nothing.
    Hoard,
    /// Waits for its slots, then sends frames of the link's maximum length.
    Overlong,
    /// Reserves at the victim; sends each burst unsolicited and again in its slots.
    Twice,
    /// Sends RSVs with demands of 0, more than K and 255, for existing and other cells.
    WrongDemand,
    /// Repeats control frames that it sent or heard, and makes up grants for others.
    Replay,
    /// Gives back slots that it never held: sends RSVs with demand 0.
    Release,
    /// Sends random bytes, truncated or randomly filled PL2 headers, random EtherTypes, and frames with
    /// others' source addresses.
    Garbage,
    /// Sends untagged frames to the victim.
    BestEffortFlood,
    /// Sends untagged frames to all hosts.
    Broadcast,
}

impl Attack {
    /// All attacks.
    pub const ALL: [Attack; 14] = [
        Attack::RsvFlood,
        Attack::ScheduledFlood,
        Attack::UnsolicitedFlood,
        Attack::Early,
        Attack::Late,
        Attack::Hoard,
        Attack::Overlong,
        Attack::Twice,
        Attack::WrongDemand,
        Attack::Replay,
        Attack::Release,
        Attack::Garbage,
        Attack::BestEffortFlood,
        Attack::Broadcast,
    ];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Attack::RsvFlood => "rsv-flood",
            Attack::ScheduledFlood => "scheduled-flood",
            Attack::UnsolicitedFlood => "unsolicited-flood",
            Attack::Early => "early",
            Attack::Late => "late",
            Attack::Hoard => "hoard",
            Attack::Overlong => "overlong",
            Attack::Twice => "twice",
            Attack::WrongDemand => "wrong-demand",
            Attack::Replay => "replay",
            Attack::Release => "release",
            Attack::Garbage => "garbage",
            Attack::BestEffortFlood => "best-effort-flood",
            Attack::Broadcast => "broadcast",
        }
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
        named(text, &Attack::ALL, Attack::name, "")
    }
}

/// The attack with this name; `on` continues the error, as in "no attack on EDM".
fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str, on: &str) -> Result<T, String> {
    all.iter().copied().find(|attack| name(*attack) == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|attack| name(*attack)).collect();
        format!("`{text}` is no attack{on}; there are {}", names.join(", "))
    })
}

/// Configuration of a hostile host.
#[derive(Clone, Debug)]
pub struct Config {
    /// The attack to run.
    pub attack: Attack,
    /// Address of the hostile host.
    pub mac: MacAddr,
    /// The host whose senders it wants to harm.
    pub victim: MacAddr,
    /// Addresses of all other hosts.
    pub others: Vec<MacAddr>,
    /// EtherType of PL2.
    pub ether_type: EtherType,
    /// First VLAN of PL2.
    pub vid: u16,
    /// Number of cells per pair.
    pub cells: u8,
    /// Maximum slots of a reservation.
    pub k: u8,
    /// Whether data frames carry sequence numbers.
    pub shim: bool,
    /// Rate of its link in bits per second.
    pub rate_bps: u64,
    /// Unit of the waits in a grant.
    pub wait_unit: Nanos,
    /// Maximum frame that the link carries, without FCS.
    pub frame_max: usize,
    /// How much a late driver may catch up.
    pub catch_up: Nanos,
}

/// Maximum control frames stored for repetition.
const KEPT_MAX: usize = 64;
/// Number of its own frames to record before it replays.
const LEARN: u64 = 200;
/// Duration of a stage of [`Attack::Late`], in full frames on the wire.
const STAGE_FRAMES: u64 = 100;
/// Time after which an RSV counts as unanswered, in full frames on the wire.
const PATIENCE_FRAMES: u64 = 200;

/// A hostile host's machine.
#[derive(Clone, Debug)]
pub struct Hostile {
    config: Config,
    frames: Frames,
    rate: WireRate,
    random: SplitMix,
    /// Time at which the wire is free for the next frame.
    free_at: Nanos,
    /// Number of frames generated.
    made: u64,
    id: u32,
    /// The last control frames that it sent, and those that it heard.
    sent: VecDeque<Vec<u8>>,
    heard: VecDeque<Vec<u8>>,
    /// Position in [`Attack::Early`], [`Attack::Late`] and [`Attack::Overlong`].
    cell: u8,
    left: u8,
    stage: u8,
    /// Start of its burst in [`Attack::Overlong`].
    start: Option<Nanos>,
    /// State of [`Attack::Twice`].
    twice: Twice,
}

impl Hostile {
    /// A machine that starts at `now`.
    pub fn new(config: Config, seed: u64, now: Nanos) -> Hostile {
        Hostile {
            frames: Frames::new(&config),
            rate: WireRate::new(config.rate_bps),
            random: SplitMix(seed),
            free_at: now,
            made: 0,
            id: 0,
            sent: VecDeque::new(),
            heard: VecDeque::new(),
            cell: 0,
            left: 0,
            stage: 0,
            start: None,
            twice: Twice::new(config.cells, config.k),
            config,
        }
    }

    /// Time of its next frame.
    fn due(&self) -> Nanos {
        match self.start {
            Some(start) if self.config.attack == Attack::Overlong => start.max(self.free_at),
            _ if self.config.attack == Attack::Twice => self.twice.due().max(self.free_at),
            _ => self.free_at,
        }
    }

    /// Generates the next frame. Returns how long nothing follows it.
    fn make(&mut self, out: &mut Vec<u8>, now: Nanos) -> Nanos {
        let Config { attack, victim, k, cells, .. } = self.config;
        let any_cell = (self.made % u64::from(cells)) as u8;
        let full = self.frames.full();
        let frame_time = self.rate.time(self.frames.full_wire_bytes());
        match attack {
            Attack::RsvFlood => {
                let others = self.config.others.len() as u64;
                let to = self.config.others[(self.made / u64::from(cells) % others) as usize];
                self.rsv(out, to, any_cell, k);
            }
            Attack::ScheduledFlood => self.frames.data(out, victim, any_cell, false, full),
            Attack::UnsolicitedFlood => self.frames.data(out, victim, any_cell, true, full),
            Attack::BestEffortFlood => self.frames.plain(out, victim, full),
            Attack::Broadcast => self.frames.plain(out, MacAddr::BROADCAST, full),
            Attack::Hoard => {
                self.rsv(out, victim, any_cell, k);
                return Nanos(frame_time.0 * 2);
            }
            Attack::Early => self.early(out),
            Attack::Late => return self.late(out),
            Attack::Overlong => return self.overlong(out),
            Attack::Twice => self.twice(out, now),
            Attack::WrongDemand => {
                let demands = [0, k.saturating_add(1), DEMAND_MAX, 2 * k.min(127)];
                let demand = demands[self.below(demands.len())];
                let cell = self.random.next() as u8;
                let to = self.anybody();
                self.rsv(out, to, if self.made.is_multiple_of(2) { any_cell } else { cell }, demand);
            }
            Attack::Release => {
                let to = if self.made.is_multiple_of(4) { self.anybody() } else { victim };
                self.rsv(out, to, any_cell, 0);
            }
            Attack::Replay => self.replay(out),
            Attack::Garbage => self.garbage(out),
        }
        Nanos::ZERO
    }

    /// A burst follows its RSV immediately; every other round uses minimum frames.
    fn early(&mut self, out: &mut Vec<u8>) {
        let Config { victim, k, cells, .. } = self.config;
        if self.left == 0 {
            self.left = k;
            self.cell = (self.cell + 1) % cells;
            self.stage = if self.cell == 0 { 1 - self.stage } else { self.stage };
            return self.rsv(out, victim, self.cell, k);
        }
        self.left -= 1;
        let len = if self.stage == 0 { self.frames.full() } else { 0 };
        self.frames.data(out, victim, self.cell, false, len);
    }

    /// Reserves in the even cells, later in the odd ones, and later still sends everything.
    fn late(&mut self, out: &mut Vec<u8>) -> Nanos {
        let Config { victim, k, cells, .. } = self.config;
        let stage_time = self.rate.time(STAGE_FRAMES * self.frames.full_wire_bytes());
        if self.stage < 2 {
            self.rsv(out, victim, self.cell + self.stage, k);
            self.cell += 2;
            if self.cell + self.stage < cells {
                return Nanos::ZERO;
            }
            (self.cell, self.left) = (0, k);
            self.stage += 1;
            return stage_time;
        }
        self.frames.data(out, victim, self.cell, false, self.frames.full());
        self.left -= 1;
        if self.left == 0 {
            (self.cell, self.left) = (self.cell + 1, k);
            if self.cell == cells {
                (self.cell, self.stage) = (0, 0);
            }
        }
        Nanos::ZERO
    }

    fn overlong(&mut self, out: &mut Vec<u8>) -> Nanos {
        let Config { victim, k, cells, frame_max, .. } = self.config;
        if self.start.is_some() && self.left > 0 {
            self.left -= 1;
            self.frames.data(out, victim, self.cell, false, frame_max);
            return Nanos::ZERO;
        }
        // The other half of the lane is next.
        self.cell = (self.cell + 1) % cells.clamp(1, 2);
        self.start = None;
        self.rsv(out, victim, self.cell, k);
        // The answer ends the pause.
        self.rate.time(PATIENCE_FRAMES * self.frames.full_wire_bytes())
    }

    fn twice(&mut self, out: &mut Vec<u8>, now: Nanos) {
        let patience = self.rate.time(PATIENCE_FRAMES * self.frames.full_wire_bytes());
        let Config { victim, k, .. } = self.config;
        match self.twice.step(now, self.id.wrapping_add(1), now + patience) {
            Some(Step::Rsv(cell)) => {
                self.id = self.id.wrapping_add(1);
                let control = Control { unsolicited: 1, ..self.frames.rsv(self.id, cell, k) };
                self.frames.emit(out, victim, self.config.mac, control);
            }
            Some(Step::Data { cell, unsolicited }) => {
                self.frames.data(out, victim, cell, unsolicited, self.frames.full());
            }
            // Polled too early: sends something harmless.
            None => self.frames.plain(out, victim, 0),
        }
    }

    fn replay(&mut self, out: &mut Vec<u8>) {
        if self.made < LEARN {
            let (to, cell) = (self.anybody(), (self.made % u64::from(self.config.cells)) as u8);
            self.rsv(out, to, cell, self.config.k);
            return remember(&mut self.sent, out);
        }
        if self.made.is_multiple_of(3) {
            let (to, from) =
                (self.anybody(), if self.made.is_multiple_of(2) { self.config.mac } else { self.anybody() });
            let control = Control {
                kind: Kind::Grt as u8,
                id: self.random.next() as u32,
                ..self.frames.rsv(0, 0, self.config.k)
            };
            return self.frames.emit(out, to, from, control);
        }
        let nth = self.below(KEPT_MAX);
        let kept = if self.made % 3 == 1 { &self.sent } else { &self.heard };
        // Nothing has been heard yet if no host answers.
        let frame = kept.get(nth % kept.len().max(1)).or(self.sent.front());
        out.extend_from_slice(frame.map_or(&[], |frame| frame));
    }

    fn garbage(&mut self, out: &mut Vec<u8>) {
        let (to, other) = (self.anybody(), self.anybody());
        let len = 60 + self.below(self.frames.full());
        match self.made % 6 {
            0 => {
                out.resize(len, 0);
                self.fill(out, 0);
            }
            1 => {
                // A control frame with random fields.
                self.rsv(out, to, 0, 1);
                self.fill(out, 18);
            }
            2 => {
                self.rsv(out, to, 0, self.config.k);
                let len = 14 + self.below(out.len() - 14);
                out.truncate(len);
            }
            3 => {
                self.frames.plain(out, to, len);
                self.fill(out, 12);
            }
            4 => {
                // A data frame with random tag and shim.
                self.frames.data(out, to, 0, false, len);
                self.fill(out, 14);
            }
            _ => {
                let control = self.frames.rsv(self.random.next() as u32, 0, self.config.k);
                self.frames.emit(out, to, other, control);
            }
        }
    }

    fn rsv(&mut self, out: &mut Vec<u8>, to: MacAddr, cell: u8, demand: u8) {
        self.id = self.id.wrapping_add(1);
        let control = self.frames.rsv(self.id, cell, demand);
        self.frames.emit(out, to, self.config.mac, control);
    }

    fn anybody(&mut self) -> MacAddr {
        let nth = self.below(self.config.others.len());
        self.config.others[nth]
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random.next() % limit.max(1) as u64) as usize
    }

    /// Fills `out` with random bytes from a position on.
    fn fill(&mut self, out: &mut [u8], from: usize) {
        out.iter_mut().skip(from).for_each(|byte| *byte = self.random.next() as u8);
    }
}

impl Machine for Hostile {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) {
        let Some(control) = self.frames.control(frame) else { return };
        if control.kind != Kind::Grt as u8 {
            return;
        }
        if self.config.attack == Attack::Replay {
            remember(&mut self.heard, frame);
        }
        let wait = u64::from(control.send_wait.max(control.recv_wait));
        let starts_at = now.saturating_add(Nanos(wait.saturating_mul(self.config.wait_unit.0)));
        let again_at = now + self.rate.time(u64::from(self.config.k) * self.frames.full_wire_bytes());
        let granted = control.send_wait != NOT_NOW;
        if self.config.attack == Attack::Twice {
            self.twice.answered(control.id, granted.then_some(starts_at), again_at);
        }
        if self.config.attack == Attack::Overlong && control.id == self.id && self.start.is_none() {
            if !granted {
                self.free_at = again_at;
                return;
            }
            self.free_at = self.free_at.min(now);
            self.start = Some(starts_at);
            self.left = self.config.k;
        }
    }

    /// The frame (without FCS) that starts to leave now, if any.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        if self.due() > now {
            return None;
        }
        out.clear();
        let pause = self.make(out, now);
        self.made += 1;
        let start = self.free_at.max(now.saturating_sub(self.config.catch_up));
        self.free_at = start + self.rate.time(wire_bytes(out.len() as u64)) + pause;
        Some(())
    }

    fn next_timeout(&self) -> Option<Nanos> {
        Some(self.due()).filter(|due| *due < Nanos::MAX)
    }
}

fn remember(kept: &mut VecDeque<Vec<u8>>, frame: &[u8]) {
    if kept.len() == KEPT_MAX {
        kept.pop_front();
    }
    kept.push_back(frame.to_vec());
}

#[cfg(test)]
mod tests;
