//! A memory node: keeps its lent extents, and checks commands.

use super::{
    Access, Answer, Command, EXTENT_BYTES_MIN, Epoch, Extent, NODE_BYTES_MAX, Order, Place, Report, Reported,
    Session, Term, Told, Why, is_extent,
};
use std::collections::BTreeMap;

/// The memory behind a node, and its keys.
pub trait Memory {
    /// Gives access to bytes that are zeros, under a key that was never used. `None`: there is no room.
    fn grant(&mut self, extent: &Extent) -> Option<Access>;

    /// Revokes the key of an extent: from now on no access succeeds.
    fn revoke(&mut self, extent: &Extent);

    /// Fills an extent that has no key with zeros. Returns whether that is done; if not, it is asked again.
    fn zero(&mut self, extent: &Extent) -> bool;
}

/// A node's record of an extent. The epoch is that of the grant or of the fence.
#[derive(Clone, Debug)]
struct Held {
    bytes: u64,
    epoch: Epoch,
    /// `None` if it is fenced.
    lent: Option<(Session, u64, Access)>,
}

/// How a command's range relates to the extents.
enum Found {
    /// No extent has any of its bytes.
    Free,
    /// An extent has the same bounds.
    Same,
    /// An extent has some of its bytes, and other bounds.
    Across,
}

/// A memory node, without I/O: a command goes in, its answer comes out. It keeps nothing of former extents but the largest of their
/// epochs, below which it takes no grants.
#[derive(Clone, Debug)]
pub struct Node {
    instance: u64,
    bytes: u64,
    extents_max: usize,
    /// Of the service that it has joined.
    term: Term,
    /// Its number at this service; `None` before the first one.
    number: Option<u16>,
    floor: Epoch,
    extents: BTreeMap<u64, Held>,
    #[cfg(test)]
    pub(super) plant: Option<super::plant::Plant>,
}

impl Node {
    /// A node with `bytes` bytes of zeros, rounded down to whole extents, and at most `extents_max` extents. `instance` is another one
    /// whenever the node starts.
    pub fn new(instance: u64, bytes: u64, extents_max: usize) -> Node {
        let bytes = bytes.min(NODE_BYTES_MAX);
        Node {
            instance,
            bytes: bytes - bytes % EXTENT_BYTES_MIN,
            extents_max,
            term: Term::default(),
            number: None,
            floor: Epoch::default(),
            extents: BTreeMap::new(),
            #[cfg(test)]
            plant: None,
        }
    }

    /// Extents that are lent, and those that are fenced and not zeroed yet.
    pub fn counts(&self) -> [usize; 2] {
        let lent = self.extents.values().filter(|held| held.lent.is_some()).count();
        [lent, self.extents.len() - lent]
    }

    #[cfg(test)]
    pub(super) fn term(&self) -> Term {
        self.term
    }

    /// Bytes of the node's part of the pool.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a command. Returns the answer.
    pub fn handle(&mut self, command: &Command, memory: &mut impl Memory) -> Answer {
        let told = self.told(command, memory);
        Answer { instance: self.instance, told }
    }

    fn told(&mut self, command: &Command, memory: &mut impl Memory) -> Told {
        if command.term < self.term {
            return Told::Stale(self.term);
        }
        if let Order::Join { nonce, node } = command.order {
            return self.join(command.term, nonce, node);
        }
        if command.instance != self.instance || command.term != self.term {
            return Told::OtherInstance;
        }
        match &command.order {
            Order::Join { .. } | Order::Probe => Told::Alive,
            Order::Grant { extent, session, number } => self.grant(extent, *session, *number, memory),
            Order::Fence(extent) => self.fence(extent, memory),
            Order::Zero(extent) => self.zero(extent, memory),
        }
    }

    /// Follows a service, under one number.
    fn join(&mut self, term: Term, nonce: u64, number: u16) -> Told {
        match self.number.filter(|_| term == self.term) {
            Some(node) if node != number => Told::OtherNumber { nonce, node },
            _ => {
                (self.term, self.number) = (term, Some(number));
                Told::Joined(self.report(nonce))
            }
        }
    }

    fn report(&self, nonce: u64) -> Report {
        let reported = |(start, held): (&u64, &Held)| Reported {
            start: *start,
            bytes: held.bytes,
            epoch: held.epoch,
            lent: held.lent.clone(),
        };
        Report { nonce, bytes: self.bytes, extents: self.extents.iter().map(reported).collect() }
    }

    fn find(&self, extent: &Extent) -> Found {
        let (start, end) = (extent.place.start, extent.place.start.saturating_add(extent.bytes));
        match self.extents.range(..end).next_back() {
            Some((at, held)) if *at == start && held.bytes == extent.bytes => Found::Same,
            Some((at, held)) if at + held.bytes > start => Found::Across,
            _ => Found::Free,
        }
    }

    fn is_inside(&self, extent: &Extent) -> bool {
        let Place { start, .. } = extent.place;
        let ends = start.checked_add(extent.bytes).is_some_and(|end| end <= self.bytes);
        is_extent(extent.bytes) && start.is_multiple_of(EXTENT_BYTES_MIN) && ends
    }

    fn grant(&mut self, extent: &Extent, session: Session, number: u64, memory: &mut impl Memory) -> Told {
        if !self.is_inside(extent) {
            return Told::NotGranted(*extent, Why::Full);
        }
        match self.find(extent) {
            Found::Free if extent.epoch <= self.floor && !planted!(self, NoEpochAtNode) => {
                Told::NotGranted(*extent, Why::Late)
            }
            Found::Free if self.extents.len() >= self.extents_max => Told::NotGranted(*extent, Why::Full),
            Found::Free => match memory.grant(extent) {
                Some(access) => {
                    let lent = Some((session, number, access.clone()));
                    let held = Held { bytes: extent.bytes, epoch: extent.epoch, lent };
                    self.extents.insert(extent.place.start, held);
                    Told::Granted(*extent, access)
                }
                None => Told::NotGranted(*extent, Why::Full),
            },
            Found::Same => match self.extents.get(&extent.place.start) {
                Some(Held { epoch, lent: Some((to, of, access)), .. })
                    if (*epoch, *to, *of) == (extent.epoch, session, number) =>
                {
                    Told::Granted(*extent, access.clone())
                }
                Some(held) if held.epoch > extent.epoch => Told::NotGranted(*extent, Why::Late),
                _ => Told::NotGranted(*extent, Why::Taken),
            },
            Found::Across => Told::NotGranted(*extent, Why::Taken),
        }
    }

    fn fence(&mut self, extent: &Extent, memory: &mut impl Memory) -> Told {
        match self.find(extent) {
            Found::Across => Told::Refused(*extent),
            Found::Free => {
                // A grant that is still under way comes too late.
                self.floor = self.floor.max(extent.epoch);
                Told::Fenced(*extent)
            }
            Found::Same => match self.extents.get_mut(&extent.place.start) {
                Some(held) if held.epoch <= extent.epoch => {
                    if held.lent.take().is_some() && !planted!(self, KeyForgotten) {
                        memory.revoke(&Extent { epoch: held.epoch, ..*extent });
                    }
                    held.epoch = extent.epoch;
                    Told::Fenced(*extent)
                }
                _ => Told::Refused(*extent),
            },
        }
    }

    fn zero(&mut self, extent: &Extent, memory: &mut impl Memory) -> Told {
        let start = extent.place.start;
        match (self.find(extent), self.extents.get(&start)) {
            (Found::Free, _) => Told::Zeroed(*extent),
            (Found::Same, Some(Held { epoch, lent: None, .. })) if *epoch == extent.epoch => {
                if !planted!(self, ZeroForgotten) && !memory.zero(extent) {
                    return Told::Zeroing(*extent);
                }
                self.extents.remove(&start);
                self.floor = self.floor.max(extent.epoch);
                Told::Zeroed(*extent)
            }
            _ => Told::Refused(*extent),
        }
    }
}
