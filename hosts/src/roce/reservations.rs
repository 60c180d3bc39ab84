//! Private memory of callers: each reservation is a protection domain, so no other caller's queue pair reaches it.

use super::setup::{Offer, Token};
use p4rack_fabric::roce::{Region, Regions, Rights};
use std::collections::BTreeMap;
use tonic::Status;

/// Regions of a reservation.
const REGIONS_MAX: usize = 256;
/// First address: far from the shared memory, and never reused.
const START: u64 = 1 << 48;
/// Regions begin at multiples of it.
const ALIGNMENT: u64 = 4_096;

/// A reservation.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    /// Its protection domain; used once.
    pub(super) domain: u32,
    /// Its regions.
    pub(super) offers: Vec<Offer>,
    /// Number of its tenant, whose queue pairs take turns together.
    pub(super) party: u64,
}

impl Reservation {
    /// Offers its memory, filled with zeros. Errors: why not; nothing is offered then.
    pub(super) fn register(&self, memory: &mut Regions) -> Result<(), String> {
        for offer in &self.offers {
            let bytes = usize::try_from(offer.bytes).map_err(|error| error.to_string());
            let registered = bytes.and_then(|bytes| {
                let (key, start, bytes) = (offer.key, offer.address, vec![0; bytes]);
                let region = Region { domain: self.domain, key, start, bytes, rights: offer.rights };
                memory.register(region).map_err(|error| error.to_string())
            });
            if registered.is_err() {
                self.remove(memory);
                return registered;
            }
        }
        Ok(())
    }

    /// Offers it no more.
    pub(super) fn remove(&self, memory: &mut Regions) {
        for offer in &self.offers {
            if memory.get(offer.key).is_some_and(|region| region.domain == self.domain) {
                memory.remove(offer.key);
            }
        }
    }
}

/// Reservations and their limits.
#[derive(Debug)]
pub(super) struct Reservations {
    left_bytes: u64,
    domain: u32,
    key: u32,
    address: u64,
    by_token: BTreeMap<Token, Reservation>,
}

impl Reservations {
    /// At most `bytes` bytes in sum. Domains come after `domain`, keys after `key`.
    pub(super) fn new(bytes: u64, domain: u32, key: u32) -> Reservations {
        Reservations { left_bytes: bytes, domain, key, address: START, by_token: BTreeMap::new() }
    }

    /// Takes regions of this many bytes, for the tenant with this number.
    pub(super) fn reserve(
        &mut self,
        token: Token,
        party: u64,
        region_bytes: &[u64],
    ) -> Result<Reservation, Status> {
        if !(1..=REGIONS_MAX).contains(&region_bytes.len()) || region_bytes.contains(&0) {
            return Err(Status::invalid_argument(format!(
                "region_bytes has to have 1 to {REGIONS_MAX} numbers above 0"
            )));
        }
        let sum = region_bytes.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
        let left = sum.and_then(|sum| self.left_bytes.checked_sub(sum)).ok_or_else(|| {
            Status::resource_exhausted(format!("the pool has {} bytes left to reserve", self.left_bytes))
        })?;
        let exhausted = || Status::resource_exhausted("the pool has used up its numbers: start it anew");
        let domain = self.domain.checked_add(1).ok_or_else(exhausted)?;
        let (mut address, mut offers) = (self.address, Vec::with_capacity(region_bytes.len()));
        for bytes in region_bytes.iter().copied() {
            self.key = self.key.wrapping_add(1);
            offers.push(Offer { key: self.key, address, bytes, rights: Rights::ALL });
            let end = address.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
            address = end.ok_or_else(exhausted)?;
        }
        (self.left_bytes, self.domain, self.address) = (left, domain, address);
        let reservation = Reservation { domain, offers, party };
        self.by_token.insert(token, reservation.clone());
        Ok(reservation)
    }

    /// The reservation of a token.
    pub(super) fn get(&self, token: &Token) -> Option<Reservation> {
        self.by_token.get(token).cloned()
    }

    /// Releases the reservation of a token.
    pub(super) fn free(&mut self, token: &Token) {
        if let Some(reservation) = self.by_token.remove(token) {
            self.left_bytes += reservation.offers.iter().map(|offer| offer.bytes).sum::<u64>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_has_its_own_domain_and_comes_back() {
        let (mut all, mut memory) = (Reservations::new(100, 0, u32::MAX), Regions::default());
        let [a, b] = [1, 2].map(|byte| Token::of(&[byte; 16]).expect("it has sixteen bytes"));
        let first = all.reserve(a, 0, &[60, 8]).expect("there is room");
        let refused = all.reserve(b, 0, &[33]).expect_err("32 are left");
        assert!(refused.message().contains("32 bytes left"), "{refused}");
        assert!(all.reserve(b, 0, &[1, u64::MAX]).is_err() && all.reserve(b, 0, &[]).is_err());
        assert!(all.reserve(b, 0, &[0]).is_err() && all.get(&b).is_none());
        let second = all.reserve(b, 0, &[32]).expect("there is room");
        assert_ne!(first.domain, second.domain);
        assert_eq!((first.register(&mut memory), second.register(&mut memory)), (Ok(()), Ok(())));
        // A key that is taken: nothing remains of the others, and whose key it is keeps it.
        let clash = Reservation {
            domain: 9,
            party: 0,
            offers: vec![Offer { key: 77, address: 0, ..first.offers[0] }, second.offers[0]],
        };
        assert!(clash.register(&mut memory).is_err());
        clash.remove(&mut memory);
        assert!(memory.get(77).is_none() && memory.get(second.offers[0].key).is_some());
        all.free(&a);
        first.remove(&mut memory);
        assert!(memory.get(first.offers[0].key).is_none());
        assert!(all.reserve(a, 0, &[68]).is_ok() && all.reserve(a, 0, &[1]).is_err());
    }
}
