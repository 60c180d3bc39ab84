//! Sets as memory that an adapter offers: the engine reads and writes them while their threads do.

use crate::sync::{AtomicU64, Ordering};
use crate::words;
use p4rack_fabric::roce::{Access, Denied, Modify, RegisteredMemory, RemoteAddress};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Offer {
    domain: u32,
    start: u64,
    words: Arc<[AtomicU64]>,
}

/// Shared memory under keys. Each permits reading, writing and modifying.
#[derive(Clone, Debug, Default)]
pub struct Area {
    offers: BTreeMap<u32, Offer>,
}

impl Area {
    /// Offers words under a key, at addresses from `start` on, a multiple of 8. Returns whether the key was free.
    pub fn offer(&mut self, domain: u32, key: u32, start: u64, words: Arc<[AtomicU64]>) -> bool {
        let aligned = start.is_multiple_of(words::BYTES as u64);
        let fits = start.checked_add(words.len() as u64 * words::BYTES as u64).is_some();
        let free = aligned && fits && !self.offers.contains_key(&key);
        if free {
            self.offers.insert(key, Offer { domain, start, words });
        }
        free
    }

    /// Withdraws the memory offered under a key. Returns whether there was any.
    pub fn withdraw(&mut self, key: u32) -> bool {
        self.offers.remove(&key).is_some()
    }

    /// The words, and where in them an access begins.
    fn place(&self, place: RemoteAddress, bytes: usize) -> Result<(&Offer, usize), Denied> {
        let offer = self.offers.get(&place.key).filter(|offer| offer.domain == place.domain);
        let offer = offer.ok_or(Denied::Key)?;
        let at = place.address.checked_sub(offer.start).ok_or(Denied::Bounds)?;
        let room = (offer.words.len() as u64 * words::BYTES as u64).checked_sub(at).ok_or(Denied::Bounds)?;
        if bytes as u64 > room { Err(Denied::Bounds) } else { Ok((offer, at as usize)) }
    }
}

impl RegisteredMemory for Area {
    fn check(&self, place: RemoteAddress, _: Access, bytes: u32) -> Result<(), Denied> {
        self.place(place, bytes as usize).map(|_| ())
    }

    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied> {
        let (offer, at) = self.place(place, into.len())?;
        words::read(&offer.words, at, into).ok_or(Denied::Bounds)
    }

    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied> {
        let (offer, at) = self.place(place, bytes.len())?;
        words::write(&offer.words, at, bytes).ok_or(Denied::Bounds)
    }

    fn modify(&mut self, place: RemoteAddress, modify: Modify) -> Result<u64, Denied> {
        let (offer, at) = self.place(place, words::BYTES)?;
        let word = offer.words.get(at / words::BYTES).ok_or(Denied::Bounds)?;
        let apply = |old: u64| Some(modify.apply(u64::from_le(old)).to_le());
        let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, apply);
        old.map(u64::from_le).map_err(|_| Denied::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Area {
        let mut area = Area::default();
        let words: Arc<[AtomicU64]> = (0..4).map(|_| AtomicU64::new(0)).collect();
        assert!(area.offer(1, 7, 64, words.clone()));
        assert!(!area.offer(1, 7, 128, words.clone()), "the key is taken");
        assert!(!area.offer(1, 8, 4, words.clone()), "not aligned");
        assert!(!area.offer(1, 8, u64::MAX - 31, words.clone()), "it has no last address");
        assert!(area.offer(1, 9, u64::MAX - 63, words));
        area
    }

    #[test]
    fn only_the_domains_own_bytes_are_reached() {
        let mut area = area();
        let at = |domain, key, address| RemoteAddress { domain, key, address };
        assert_eq!(area.write(at(1, 7, 67), &[1, 2, 3]), Ok(()));
        let mut bytes = [9; 5];
        assert_eq!(area.read(at(1, 7, 66), &mut bytes), Ok(()));
        assert_eq!(bytes, [0, 1, 2, 3, 0]);
        assert_eq!(area.modify(at(1, 7, 72), Modify::FetchAdd(5)), Ok(0));
        assert_eq!(area.modify(at(1, 7, 72), Modify::CompareSwap(5, 6)), Ok(5));
        for (place, denied) in [
            (at(2, 7, 64), Denied::Key),
            (at(1, 8, 64), Denied::Key),
            (at(1, 7, 63), Denied::Bounds),
            (at(1, 7, 64 + 28), Denied::Bounds),
            (at(1, 7, 64 + 32), Denied::Bounds),
            (at(1, 7, 64 + 33), Denied::Bounds),
            (at(1, 7, u64::MAX), Denied::Bounds),
        ] {
            assert_eq!(area.write(place, &[1; 5]), Err(denied));
            assert_eq!(area.check(place, Access::Read, 5), Err(denied));
        }
        assert_eq!(area.write(at(1, 7, 64 + 27), &[1; 5]), Ok(()), "to the last byte");
        assert_eq!(area.check(at(1, 7, 64), Access::Read, 32), Ok(()));
        assert_eq!(area.check(at(1, 7, 64), Access::Read, 33), Err(Denied::Bounds));
        assert_eq!(area.modify(at(1, 7, 64 + 32), Modify::FetchAdd(1)), Err(Denied::Bounds));
        assert!(area.withdraw(7) && !area.withdraw(7));
        assert_eq!(area.check(at(1, 7, 64), Access::Read, 1), Err(Denied::Key));
    }
}
