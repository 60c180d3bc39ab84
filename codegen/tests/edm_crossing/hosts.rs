//! Hosts that read and write at random.

use crate::common::Built;
use crate::common::edm::{Net, edm_of, message, notification};
use crate::common::random::Random;
use crate::edm_crossing::rack::{CHUNK, MEMORY, PORTS, RATE_BPS, WINDOW, slow};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, Control, Kind, Message};
use p4rack_wire::ethernet::overhead;
use std::collections::{HashMap, HashSet};

/// A message of a host's, on its way.
struct Part {
    at: Nanos,
    from: u16,
    to: u16,
    kind: Kind,
    id: u16,
    total: u32,
    offset: u32,
}

impl Part {
    fn name(&self) -> Name {
        (self.from, self.to, self.kind == Kind::Rres, self.id)
    }
}

/// A message: where its data comes from and where it goes, whether it is an answer, its id.
type Name = (u16, u16, bool, u16);

/// What came of random messages.
#[derive(Default)]
pub struct Seen {
    pub grants: usize,
    pub crossed: usize,
    pub done: usize,
    /// Granted times: the data's destination, begin and end.
    times: Vec<(u16, u64, u64)>,
    pub demoted: [u64; 2],
    /// Grants of what was not asked for, or of a message that is over.
    pub unasked: usize,
    /// When all data that came to each port is on its wire, if it sends as fast as it can.
    sent_by: HashMap<u16, u64>,
    /// The longest for which data waited there.
    pub queued_ns: u64,
    /// How long all of it waited, and its frames.
    pub queued: (u64, u64),
}

impl Seen {
    /// How often a grant begins before another one towards the same link ends.
    pub fn overlaps(&mut self) -> usize {
        self.times.sort_unstable();
        self.times.windows(2).filter(|two| two[0].0 == two[1].0 && two[1].1 < two[0].2).count()
    }
}

/// Hosts of all pipes that read and write, mostly what one of them has, and send what they are granted in its time.
struct Hosts {
    net: Net,
    random: Random,
    totals: HashMap<Name, u32>,
    /// From which offsets on something is to be granted.
    asked: HashSet<(Name, u32)>,
    parts: Vec<Part>,
    busy: HashSet<Name>,
    seen: Seen,
    shares: bool,
    /// Whether grants say when data may leave, not how long it has to wait from their arrival on ([`absolute`]).
    absolute: bool,
}

impl Hosts {
    fn begin(&mut self) {
        let port = |random: &mut Random| PORTS[random.below(6) as usize];
        let asks = port(&mut self.random);
        let memory = match self.random.below(3) {
            0 => MEMORY[self.random.below(3) as usize],
            _ => 131,
        };
        let answer = self.random.below(2) == 0;
        let name = if answer { (memory, asks, true, 0) } else { (asks, memory, false, 0) };
        let name = Name::from((name.0, name.1, name.2, self.random.below(3) as u16));
        if asks == memory || !self.busy.insert(name) {
            return;
        }
        let is_atomic = answer && self.random.below(8) == 0;
        let total = if is_atomic { 8 } else { 1 + self.random.below(3 * u64::from(WINDOW)) as u32 };
        self.totals.insert(name, total);
        self.asked.insert((name, 0));
        let bytes = match answer {
            true if is_atomic => message(Kind::Rmwreq, name.3, total, 0, 8),
            true => message(Kind::Rreq, name.3, total, 0, 0),
            false => notification(name.3, total),
        };
        let frame = self.net.frame(asks, memory, edm::PCP_CONTROL, &bytes);
        self.send(asks, &frame);
    }

    fn send(&mut self, port: u16, frame: &[u8]) {
        let sent = self.net.rig.send(port, frame);
        self.got(sent);
    }

    /// What came out of the switch.
    fn got(&mut self, sent: Vec<(u16, Vec<u8>)>) {
        for (port, frame) in sent {
            let peer =
                self.net.rig.built.rack.hosts.iter().find(|host| host.mac.0 == frame[6..12]).unwrap().port;
            match Kind::of(frame[18]).unwrap() {
                Kind::Grant => {
                    let grant = Control::parse(&frame[18..]).unwrap();
                    self.granted(
                        (port, peer, grant.answer == 1, grant.id),
                        grant.offset,
                        grant.bytes,
                        grant.wait,
                    );
                }
                Kind::Rreq | Kind::Rmwreq => {
                    let request = Message::parse(&frame[18..]).unwrap();
                    let bytes = if self.shares { request.bytes.into() } else { WINDOW.min(request.total) };
                    self.granted((port, peer, true, request.id), 0, bytes, request.offset);
                }
                _ => self.arrived(port, frame.len() as u64),
            }
        }
    }

    /// Data at its destination's port.
    fn arrived(&mut self, port: u16, bytes: u64) {
        let now = self.net.rig.now.0;
        let sent_by = self.seen.sent_by.entry(port).or_default();
        let begins = now.max(*sent_by);
        *sent_by = begins + overhead::wire_bytes(bytes) * 8_000_000_000 / RATE_BPS;
        self.seen.queued_ns = self.seen.queued_ns.max(begins - now);
        self.seen.queued = (self.seen.queued.0 + begins - now, self.seen.queued.1 + 1);
    }

    fn granted(&mut self, name: Name, offset: u32, bytes: u32, wait: u32) {
        let (from, to, answer, id) = name;
        let rack = &self.net.rig.built.rack;
        let edm = edm_of(&self.net.rig.built);
        if !self.asked.remove(&(name, offset)) {
            self.seen.unasked += 1;
            return;
        }
        let begins = if self.absolute { wait.into() } else { self.net.rig.now.0 + u64::from(wait) };
        self.seen.times.push((to, begins, begins + edm.grant_units(rack, bytes.into(), RATE_BPS)));
        self.seen.grants += 1;
        self.seen.crossed += usize::from(from / 128 != to / 128);
        let (total, chunk_ns) = (self.totals[&name], edm.grant_units(rack, CHUNK.into(), RATE_BPS));
        let kind = if answer { Kind::Rres } else { Kind::Wreq };
        for (n, offset) in (offset..offset + bytes).step_by(CHUNK as usize).enumerate() {
            let at = Nanos(begins + n as u64 * chunk_ns);
            self.parts.push(Part { at, from, to, kind, id, total, offset });
        }
    }

    fn send_due(&mut self) {
        let now = self.net.rig.now;
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parts).into_iter().partition(|part| part.at <= now);
        self.parts = later;
        due.sort_by_key(|part| (part.at, part.offset));
        let mut over = HashSet::new();
        for Part { from, to, kind, id, total, offset, .. } in due {
            if over.contains(&(from, to, kind == Kind::Rres, id)) {
                continue;
            }
            let name = (from, to, kind == Kind::Rres, id);
            let is_refused = kind == Kind::Rres && offset == 0 && self.random.below(8) == 0;
            let bytes = if is_refused { 0 } else { CHUNK.min(total - offset) };
            // The NULL response ends its message.
            let total = if is_refused { 0 } else { total };
            if bytes == CHUNK {
                let step = if self.shares { CHUNK } else { WINDOW };
                self.asked.insert((name, offset + step));
            }
            if offset + bytes == total {
                self.busy.remove(&name);
                self.asked.retain(|(of, _)| *of != name);
                self.parts.retain(|part| !is_refused || part.name() != name);
                over.extend(is_refused.then_some(name));
                self.seen.done += 1;
            }
            let bytes = message(kind, id, total, offset, bytes as u16);
            let frame = self.net.frame(from, to, edm::PCP_DATA, &bytes);
            self.send(from, &frame);
        }
    }
}

/// What hosts do with or without shares, and with grants that say when data may leave or how long it has to wait.
pub fn run(
    built: &Built,
    (shares, absolute): (bool, bool),
    (rate_bps, each): (u64, u64),
    steps: u64,
) -> Seen {
    let mut hosts = Hosts {
        net: slow(built, rate_bps),
        random: Random::new(7),
        totals: HashMap::new(),
        asked: HashSet::new(),
        parts: Vec::new(),
        busy: HashSet::new(),
        seen: Seen::default(),
        shares,
        absolute,
    };
    for step in 0..steps {
        let time = hosts.random.below(80);
        hosts.net.wait(time);
        let sent = hosts.net.rig.drain();
        hosts.got(sent);
        hosts.send_due();
        if step % each == 0 {
            hosts.begin();
        }
    }
    hosts.seen.demoted = hosts.net.demoted();
    hosts.seen
}
