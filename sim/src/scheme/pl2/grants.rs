//! Reservations as the switch's ports see them: who asked when, and which time was granted.

use crate::message::host_of;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, PCP_CONTROL};
use p4rack_wire::{EtherType, Nanos};
use std::collections::VecDeque;

/// Reservations remembered a port, to find overlaps.
const REMEMBERED: usize = 64;
/// RSVs remembered a host.
const OPEN_RSVS: usize = 4_096;

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
        read(self.ether_type, frame)
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

/// Reads a control frame; `None` if it is none.
#[inline]
pub fn read(ether_type: EtherType, frame: &[u8]) -> Option<Seen> {
    const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;
    // By what was written in one piece: the frame may just have been written.
    let head = frame.first_chunk::<TAGGED>()?;
    if head[14] >> 5 != PCP_CONTROL
        || head[12..14] != EtherType::VLAN.0.to_be_bytes()
        || head[16..18] != ether_type.0.to_be_bytes()
    {
        return None;
    }
    let control = Control::parse(&frame[TAGGED..]).ok()?;
    let (to, from) = (host_of(frame)?, host_of(&frame[6..])?);
    let (source, destination) = if control.kind == Kind::Rsv as u8 { (from, to) } else { (to, from) };
    Some(Seen { kind: control.kind, id: control.id, source, destination, control })
}
