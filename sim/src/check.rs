//! Checks that run beside every simulation, whatever it is for.

use crate::message::host_of;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, PCP_CONTROL};
use p4rack_wire::{EtherType, Nanos};
use serde::Serialize;
use std::collections::VecDeque;

/// Reservations remembered a port, to find overlaps.
const REMEMBERED: usize = 64;
/// RSVs remembered a host.
const OPEN_RSVS: usize = 4_096;

/// What the checks found. Everything but `overlapping_grants` has to be zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Frames that are nowhere: neither delivered nor dropped for a reason nor under way.
    pub unaccounted_frames: i64,
    /// Frames that came to an application after a later one of their flow, or twice.
    pub out_of_order: u64,
    /// Grants whose time overlaps another's at the destination's port. The paper's rule allows it
    /// (§4.1); how many there are is a property of the scheme.
    pub overlapping_grants: u64,
    /// Grants seen.
    pub grants: u64,
    /// Ports on which something was still reserved after everything had arrived.
    pub leaked_reservations: u64,
    /// What was still reserved there: slots or time units.
    pub leaked_amount: u64,
    /// Times that a buffer held more than its limit.
    pub over_limit: u64,
    /// Messages that were neither delivered nor known as lost at the end.
    pub stuck_messages: u64,
}

impl Verdict {
    /// What is wrong, in words; empty if nothing is. `faulty`: hosts fail or links lose frames, so
    /// reservations may leak in the counter mode and order may break where links reorder.
    pub fn problems(&self) -> Vec<String> {
        let found = [
            (self.unaccounted_frames != 0, format!("{} frames unaccounted for", self.unaccounted_frames)),
            (self.out_of_order != 0, format!("{} frames out of order or twice", self.out_of_order)),
            (
                self.leaked_reservations != 0,
                format!("{} still reserved on {} ports", self.leaked_amount, self.leaked_reservations),
            ),
            (self.over_limit != 0, format!("{} buffers over their limit", self.over_limit)),
            (self.stuck_messages != 0, format!("{} messages stuck", self.stuck_messages)),
        ];
        found.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text).collect()
    }
}

/// Watches RSVs and GRTs at the switch.
#[derive(Debug)]
pub(crate) struct Grants {
    ether_type: EtherType,
    /// Time of a unit in a grant: of the destination's slots or of a time unit.
    unit_ns: Vec<u64>,
    /// Time of a slot, or of the part in which reservations count.
    slot_ns: Vec<u64>,
    /// Where each host's reservations are kept.
    link: Vec<u16>,
    /// RSVs that entered the switch, by source: number, when.
    asked: Vec<VecDeque<(u32, Nanos)>>,
    /// Time taken at each destination's link: from, to.
    taken: Vec<VecDeque<(u64, u64)>>,
    /// The latest end of these, also of those forgotten.
    taken_to: Vec<u64>,
    pub seen: u64,
    pub overlapping: u64,
}

/// A control frame's content.
pub(crate) struct Seen {
    pub kind: u8,
    pub id: u32,
    /// The host that asked.
    pub source: usize,
    pub destination: usize,
    pub control: Control,
}

impl Grants {
    /// `counting`: grants count slots; otherwise time units of `time_unit_ns`.
    pub fn new(ether_type: EtherType, counting: bool, time_unit_ns: u64, hosts: Vec<(u64, u16)>) -> Grants {
        let (slot_ns, link): (Vec<u64>, Vec<u16>) = hosts.into_iter().unzip();
        let (hosts, links) = (link.len(), link.iter().max().map_or(0, |last| usize::from(*last) + 1));
        Grants {
            ether_type,
            unit_ns: slot_ns.iter().map(|slot| if counting { *slot } else { time_unit_ns }).collect(),
            slot_ns,
            link,
            asked: vec![VecDeque::new(); hosts],
            taken: vec![VecDeque::new(); links],
            taken_to: vec![0; links],
            seen: 0,
            overlapping: 0,
        }
    }

    /// Reads a control frame; `None` if it is none.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> Option<Seen> {
        const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;
        if frame.len() < TAGGED
            || frame[14] >> 5 != PCP_CONTROL
            || frame[12..14] != EtherType::VLAN.0.to_be_bytes()
        {
            return None;
        }
        if frame[16..18] != self.ether_type.0.to_be_bytes() {
            return None;
        }
        let control = Control::parse(&frame[TAGGED..]).ok()?;
        let (to, from) = (host_of(frame)?, host_of(&frame[6..])?);
        let (source, destination) = if control.kind == Kind::Rsv as u8 { (from, to) } else { (to, from) };
        Some(Seen { kind: control.kind, id: control.id, source, destination, control })
    }

    /// An RSV enters the switch.
    pub fn asked(&mut self, seen: &Seen, now: Nanos) {
        let Some(asked) = self.asked.get_mut(seen.source) else { return };
        if asked.len() == OPEN_RSVS {
            asked.pop_front();
        }
        asked.push_back((seen.id, now));
    }

    /// A GRT leaves the switch.
    pub fn granted(&mut self, seen: &Seen) {
        if seen.control.demand == 0 {
            return;
        }
        let link = self.link.get(seen.destination).map_or(usize::MAX, |link| usize::from(*link));
        let (Some(asked), Some(taken)) = (self.asked.get_mut(seen.source), self.taken.get_mut(link)) else {
            return;
        };
        let Some(at) = asked.iter().position(|(id, _)| *id == seen.id) else { return };
        let Some((_, when)) = asked.remove(at) else { return };
        if seen.control.send_wait == NOT_NOW {
            return;
        }
        self.seen += 1;
        let wait = u64::from(seen.control.send_wait.max(seen.control.recv_wait));
        let from = when.0 + wait * self.unit_ns[seen.destination];
        let to = from + u64::from(seen.control.demand) * self.slot_ns[seen.destination];
        // Most grants begin behind all others.
        let latest = &mut self.taken_to[link];
        if from < *latest && taken.iter().any(|(start, end)| from < *end && *start < to) {
            self.overlapping += 1;
        }
        *latest = to.max(*latest);
        if taken.len() == REMEMBERED {
            taken.pop_front();
        }
        taken.push_back((from, to));
    }
}

/// A checksum of everything that passed, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(pub u64);

impl Digest {
    /// What it looks at of a frame ends here.
    pub const LOOKS_TO: usize = 44;

    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    #[inline]
    pub fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// A frame at a time.
    #[inline]
    pub fn frame(&mut self, now: Nanos, frame: &[u8]) {
        // Behind the addresses, which the place that is summed up stands for: tags, then what control frames and messages say.
        let chunks = [12, 20, 28, 36].map(|at| {
            let chunk = frame.get(at..at + 8).and_then(|chunk| chunk.try_into().ok());
            u64::from_le_bytes(chunk.unwrap_or_default())
        });
        // One after the other would be a chain of multiplications.
        let [tags, first, second, third] = chunks;
        let mixed = tags.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ first.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(16)
            ^ second.wrapping_mul(0x94d0_49bb_1331_11eb).rotate_left(32)
            ^ third.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(48);
        self.add(now.0 ^ (frame.len() as u64) << 48);
        self.add(mixed);
    }
}
