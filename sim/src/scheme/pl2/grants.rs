//! Follows reservations at the switch: requester, time of the request, granted time.

use crate::message::host_of;
use p4rack_wire::ethernet::{Ethernet, Vlan};
use p4rack_wire::pl2::{Control, Kind, NOT_NOW, PCP_CONTROL};
use p4rack_wire::{EtherType, Nanos};
use std::collections::VecDeque;

/// Granted times kept per port, to find overlaps.
const REMEMBERED: usize = 64;
/// Unanswered RSVs kept per host.
const OPEN_RSVS: usize = 4_096;

/// RSVs and GRTs at the switch.
#[derive(Debug)]
pub(crate) struct Grants {
    ether_type: EtherType,
    /// Length of the unit in which a grant counts, per destination: a slot or a time unit.
    unit_ns: Vec<u64>,
    /// Length of a slot, or of the part of a slot in which reservations count, per destination.
    slot_ns: Vec<u64>,
    /// Index of each host's reservations in the switch's registers.
    link: Vec<u16>,
    /// RSVs that entered the switch, per source: id, time.
    asked: Vec<VecDeque<(u32, Nanos)>>,
    /// Times granted on each destination's link: from, to.
    taken: Vec<VecDeque<(u64, u64)>>,
    /// The latest end of any granted time, per link.
    taken_to: Vec<u64>,
    pub granted: u64,
    pub overlapping: u64,
}

/// A parsed control frame.
pub(crate) struct ControlFrame {
    pub kind: u8,
    pub id: u32,
    /// The host that sent the RSV.
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
            granted: 0,
            overlapping: 0,
        }
    }

    /// Parses a control frame; `None` if the frame is something else.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> Option<ControlFrame> {
        read(self.ether_type, frame)
    }

    /// An RSV enters the switch.
    pub fn ask(&mut self, control: &ControlFrame, now: Nanos) {
        let Some(asked) = self.asked.get_mut(control.source) else { return };
        if asked.len() == OPEN_RSVS {
            asked.pop_front();
        }
        asked.push_back((control.id, now));
    }

    /// A GRT leaves the switch.
    pub fn grant(&mut self, grant: &ControlFrame) {
        if grant.control.demand == 0 {
            return;
        }
        let link = self.link.get(grant.destination).map_or(usize::MAX, |link| usize::from(*link));
        let (Some(asked), Some(taken)) = (self.asked.get_mut(grant.source), self.taken.get_mut(link)) else {
            return;
        };
        let Some(at) = asked.iter().position(|(id, _)| *id == grant.id) else { return };
        let Some((_, when)) = asked.remove(at) else { return };
        if grant.control.send_wait == NOT_NOW {
            return;
        }
        self.granted += 1;
        let wait = u64::from(grant.control.send_wait.max(grant.control.recv_wait));
        let from = when.0 + wait * self.unit_ns[grant.destination];
        let to = from + u64::from(grant.control.demand) * self.slot_ns[grant.destination];
        // Most grants begin after all others, so the search is rare.
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

/// Parses a control frame; `None` if the frame is something else.
#[inline]
pub fn read(ether_type: EtherType, frame: &[u8]) -> Option<ControlFrame> {
    const TAGGED: usize = Ethernet::BYTES + Vlan::BYTES;
    // Reads are no wider than the writes: the frame may just have been written, and a wider read would wait for the
    // store.
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
    Some(ControlFrame { kind: control.kind, id: control.id, source, destination, control })
}
