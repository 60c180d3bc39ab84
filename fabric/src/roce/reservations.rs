//! Private memory of a pool's peers: each reservation is a protection domain, so no other peer's queue pair reaches it.

use super::memory::{Region, Regions, Rights};
use std::collections::BTreeMap;
use std::fmt;

/// Regions of a reservation.
const REGIONS_MAX: usize = 256;
/// First address: far from the shared memory, and never reused.
const START: u64 = 1 << 48;
/// Regions begin at multiples of it.
const ALIGNMENT: u64 = 4_096;

/// Memory that a pool offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its key.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its rights.
    pub rights: Rights,
}

/// Entitles its holder to attach to a reservation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token([u8; 16]);

impl Token {
    /// The token with these bytes, which are random where it has to be unguessable.
    pub fn new(bytes: [u8; 16]) -> Token {
        Token(bytes)
    }

    /// From a message. Errors: how long it is.
    pub fn of(bytes: &[u8]) -> Result<Token, String> {
        let token =
            bytes.try_into().map_err(|_| format!("token has {} bytes; expected sixteen", bytes.len()));
        token.map(Token)
    }

    /// For a message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It is a secret.
        f.write_str("Token")
    }
}

/// Why nothing is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreserved {
    /// There are no regions, too many, or one without bytes.
    Regions,
    /// Too many bytes were requested; this many are left.
    Room(u64),
    /// Domains or addresses are used up.
    Numbers,
}

impl fmt::Display for Unreserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreserved::Regions => write!(f, "region_bytes has to have 1 to {REGIONS_MAX} numbers above 0"),
            Unreserved::Room(bytes) => write!(f, "the pool has {bytes} bytes left to reserve"),
            Unreserved::Numbers => f.write_str("the pool has used up its numbers: start it anew"),
        }
    }
}

impl std::error::Error for Unreserved {}

/// A reservation.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Its protection domain; used once.
    pub domain: u32,
    /// Its regions.
    pub offers: Vec<Offer>,
    /// Number of its tenant, whose queue pairs take turns together; `None`: those of each peer do.
    pub party: Option<u64>,
}

impl Reservation {
    /// Offers its memory, filled with zeros. Errors: why not; nothing is offered then.
    pub fn register(&self, memory: &mut Regions) -> Result<(), String> {
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

    /// Offers it no more. Returns the offered regions.
    pub fn remove(&self, memory: &mut Regions) -> Vec<Region> {
        let is_own =
            |memory: &Regions, key| memory.get(key).is_some_and(|region| region.domain == self.domain);
        let keys = self.offers.iter().map(|offer| offer.key);
        keys.filter_map(|key| is_own(memory, key).then(|| memory.remove(key))?).collect()
    }

    fn bytes(&self) -> u64 {
        self.offers.iter().map(|offer| offer.bytes).sum()
    }
}

/// Reservations and their limits.
#[derive(Debug)]
pub struct Reservations {
    left_bytes: u64,
    domain: u32,
    key: u32,
    address: u64,
    by_token: BTreeMap<Token, Reservation>,
}

impl Reservations {
    /// At most `bytes` bytes in sum. Domains come after `domain`, keys after `key`.
    pub fn new(bytes: u64, domain: u32, key: u32) -> Reservations {
        Reservations { left_bytes: bytes, domain, key, address: START, by_token: BTreeMap::new() }
    }

    /// Bytes that may be reserved.
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Takes regions of this many bytes, for the tenant with this number, or for peers that are given the token. Errors: why not.
    pub fn reserve(
        &mut self,
        token: Token,
        party: Option<u64>,
        region_bytes: &[u64],
    ) -> Result<Reservation, Unreserved> {
        if !(1..=REGIONS_MAX).contains(&region_bytes.len()) || region_bytes.contains(&0) {
            return Err(Unreserved::Regions);
        }
        let sum = region_bytes.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
        let left = sum.and_then(|sum| self.left_bytes.checked_sub(sum));
        let left = left.ok_or(Unreserved::Room(self.left_bytes))?;
        let domain = self.domain.checked_add(1).ok_or(Unreserved::Numbers)?;
        let (mut address, mut offers) = (self.address, Vec::with_capacity(region_bytes.len()));
        for bytes in region_bytes.iter().copied() {
            self.key = self.key.wrapping_add(1);
            offers.push(Offer { key: self.key, address, bytes, rights: Rights::ALL });
            let end = address.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
            address = end.ok_or(Unreserved::Numbers)?;
        }
        (self.left_bytes, self.domain, self.address) = (left, domain, address);
        let reservation = Reservation { domain, offers, party };
        self.by_token.insert(token, reservation.clone());
        Ok(reservation)
    }

    /// The reservation of a token.
    pub fn get(&self, token: &Token) -> Option<Reservation> {
        self.by_token.get(token).cloned()
    }

    /// Makes a token worthless. The bytes stay taken until they [come back](Self::give_back).
    pub fn withdraw(&mut self, token: &Token) -> Option<Reservation> {
        self.by_token.remove(token)
    }

    /// Bytes of a withdrawn reservation may be reserved again.
    pub fn give_back(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_add(bytes);
    }

    /// Releases the reservation of a token.
    pub fn free(&mut self, token: &Token) {
        if let Some(reservation) = self.withdraw(token) {
            self.give_back(reservation.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_has_its_own_domain_and_comes_back() {
        let (mut all, mut memory) = (Reservations::new(100, 0, u32::MAX), Regions::default());
        let [a, b] = [1, 2].map(|byte| Token::new([byte; 16]));
        let first = all.reserve(a, None, &[60, 8]).expect("there is room");
        assert_eq!(all.reserve(b, None, &[33]).err(), Some(Unreserved::Room(32)));
        assert!(all.reserve(b, None, &[1, u64::MAX]).is_err() && all.reserve(b, None, &[]).is_err());
        assert!(all.reserve(b, None, &[0]).is_err() && all.get(&b).is_none());
        let second = all.reserve(b, None, &[32]).expect("there is room");
        assert_ne!(first.domain, second.domain);
        assert_eq!((first.register(&mut memory), second.register(&mut memory)), (Ok(()), Ok(())));
        // A key that is taken: nothing remains of the others, and whose key it is keeps it.
        let clash = Reservation {
            domain: 9,
            party: None,
            offers: vec![Offer { key: 77, address: 0, ..first.offers[0] }, second.offers[0]],
        };
        assert!(clash.register(&mut memory).is_err());
        assert!(clash.remove(&mut memory).is_empty());
        assert!(memory.get(77).is_none() && memory.get(second.offers[0].key).is_some());
        all.free(&a);
        assert_eq!(first.remove(&mut memory).len(), 2);
        assert!(memory.get(first.offers[0].key).is_none());
        assert!(all.reserve(a, None, &[68]).is_ok() && all.reserve(a, None, &[1]).is_err());
        // Withdrawn, it can't be attached to, and its bytes are still taken.
        let withdrawn = all.withdraw(&a).map_or(0, |reservation| reservation.bytes());
        assert!(all.get(&a).is_none() && all.left_bytes() == 0);
        all.give_back(withdrawn);
        assert_eq!(all.left_bytes(), 68);
    }
}
