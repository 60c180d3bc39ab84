//! An RDMA pool as the memory of a node: an extent is a reservation of its own, with a protection domain, a key and a token that no
//! other extent has or had.
//!
//! - **Revoking** removes the region and makes the token worthless: each later packet with the key is refused, those of messages under way
//!   too, and no queue pair is added to the domain any longer. Existing queue pairs stay, so that their peers get these
//!   refusals.
//! - **Zeroing** gives the bytes back. That may take long, so the driver takes them ([`PoolExtents::next_withdrawn`]), drops them where no
//!   packet waits, and says so. The next extent has bytes of its own, which begin as zeros.

use super::{Access, Extent, Memory};
use crate::roce::{Region, Regions, Reservation, Reservations, Token};
use std::collections::{BTreeMap, VecDeque};

/// State of an extent's bytes.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// Peers attach with the token.
    Lent(Token),
    /// The token is worthless, and this many bytes are not yet dropped.
    Withdrawn(u64),
}

/// A pool's lent extents, by their starts.
#[derive(Clone, Debug, Default)]
pub struct PoolExtents {
    kept: BTreeMap<u64, Kept>,
    /// Regions that the driver has to drop. There are no more than extents.
    withdrawn: VecDeque<(u64, Vec<Region>)>,
}

impl PoolExtents {
    /// The next extent whose bytes are to be dropped. Once they are, the driver calls [`zeroed`](Self::zeroed).
    pub fn next_withdrawn(&mut self) -> Option<(u64, Vec<Region>)> {
        self.withdrawn.pop_front()
    }

    /// The bytes of the extent that began at `start` are dropped.
    pub fn zeroed(&mut self, start: u64, reservations: &mut Reservations) {
        if let Some(Kept::Withdrawn(bytes)) = self.kept.get(&start).copied() {
            self.kept.remove(&start);
            reservations.give_back(bytes);
        }
    }
}

/// A pool while it executes a command.
#[derive(Debug)]
pub struct OnPool<'a> {
    /// Its memory.
    pub regions: &'a mut Regions,
    /// Its peers' reservations; extents are taken from the same bytes.
    pub reservations: &'a mut Reservations,
    /// Its lent extents.
    pub extents: &'a mut PoolExtents,
    /// For a grant: unguessable, and new.
    pub token: Option<Token>,
    /// Builds the holder's access from token and reservation.
    pub access: fn(&Token, &Reservation) -> Option<Access>,
}

impl Memory for OnPool<'_> {
    fn grant(&mut self, extent: &Extent) -> Option<Access> {
        // Its peers are not known yet: those of each host take turns together.
        let token = self.token?;
        let reservation = self.reservations.reserve(token, None, &[extent.bytes]).ok()?;
        let registered = reservation.register(self.regions).ok();
        match registered.and_then(|()| (self.access)(&token, &reservation)) {
            Some(access) => {
                self.extents.kept.insert(extent.place.start, Kept::Lent(token));
                Some(access)
            }
            None => {
                drop(reservation.remove(self.regions));
                self.reservations.free(&token);
                None
            }
        }
    }

    fn revoke(&mut self, extent: &Extent) {
        let start = extent.place.start;
        let Some(Kept::Lent(token)) = self.extents.kept.get(&start).copied() else { return };
        let Some(reservation) = self.reservations.withdraw(&token) else { return };
        self.extents.kept.insert(start, Kept::Withdrawn(extent.bytes));
        self.extents.withdrawn.push_back((start, reservation.remove(self.regions)));
    }

    fn zero(&mut self, extent: &Extent) -> bool {
        !self.extents.kept.contains_key(&extent.place.start)
    }
}
