//! Memory that peers access under keys.

use p4rack_wire::roce::WORD_BYTES;
use std::collections::BTreeMap;
use std::fmt;

/// Start and credentials of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Protection domain of the connection.
    pub domain: u32,
    /// Key of the region.
    pub key: u32,
    /// Address of the first byte.
    pub address: u64,
}

impl RemoteAddress {
    /// The place `bytes` further on. Addresses wrap around, so a region's bounds refuse places past the end.
    #[inline]
    pub(super) fn behind(self, bytes: u32) -> RemoteAddress {
        RemoteAddress { address: self.address.wrapping_add(bytes.into()), ..self }
    }
}

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes a word in one step.
    Atomic,
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No region has the key, or not in this domain.
    Key,
    /// Not all bytes are in the region.
    Bounds,
    /// The region doesn't permit it.
    Rights,
    /// The memory itself failed.
    Failed,
}

/// An atomic operation on a word of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modify {
    /// Writes the second word if memory holds the first.
    CompareSwap(u64, u64),
    /// Adds, modulo 2^64.
    FetchAdd(u64),
}

impl Modify {
    /// The new word.
    #[inline]
    pub const fn apply(self, old: u64) -> u64 {
        match self {
            Modify::CompareSwap(compare, swap) if old == compare => swap,
            Modify::CompareSwap(..) => old,
            Modify::FetchAdd(add) => old.wrapping_add(add),
        }
    }
}

/// Memory for responders. Every access is checked, so a region may be removed at any time.
pub trait RegisteredMemory: Send {
    /// Whether `bytes` bytes from `place` on may be accessed.
    fn check(&self, place: RemoteAddress, access: Access, bytes: u32) -> Result<(), Denied>;
    /// Reads as many bytes as `into` has.
    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied>;
    /// Writes all of `bytes`.
    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied>;
    /// Modifies a word and returns the old one. Its address is a multiple of 8, and its bytes are in x86-64's order:
    /// the lowest first.
    fn modify(&mut self, place: RemoteAddress, modify: Modify) -> Result<u64, Denied>;
}

/// Rights of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// READ.
    pub read: bool,
    /// WRITE.
    pub write: bool,
    /// Compare and swap, fetch and add.
    pub atomic: bool,
}

impl Rights {
    /// All.
    pub const ALL: Rights = Rights { read: true, write: true, atomic: true };

    fn permit(self, access: Access) -> bool {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
            Access::Atomic => self.atomic,
        }
    }
}

/// Memory offered under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Protection domain: connections of others don't see it.
    pub domain: u32,
    /// Key whose holder has `rights`.
    pub key: u32,
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// See `key`.
    pub rights: Rights,
}

impl Region {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Why a region is not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// It has no bytes, or reaches beyond the last address.
    BadSize,
    /// Another region has its key.
    KeyTaken(u32),
    /// The region with this key has some of its addresses.
    Overlaps(u32),
    /// The limit of regions is reached.
    Full,
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::BadSize => {
                write!(f, "a region has at least one byte and ends before the last address")
            }
            RegionError::KeyTaken(key) => write!(f, "another region has the key {key:#x}: choose another"),
            RegionError::Overlaps(key) => {
                write!(f, "the region with key {key:#x} has some of these addresses")
            }
            RegionError::Full => write!(f, "there are as many regions as there may be: remove one first"),
        }
    }
}

impl std::error::Error for RegionError {}

/// Regions that don't overlap, by key.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    regions: BTreeMap<u32, Region>,
}

impl Regions {
    /// Maximum number of regions.
    pub const REGIONS_MAX: usize = 4_096;

    /// Offers a region.
    pub fn register(&mut self, region: Region) -> Result<(), RegionError> {
        if region.bytes.is_empty() || region.start.checked_add(region.bytes.len() as u64).is_none() {
            return Err(RegionError::BadSize);
        }
        if self.regions.contains_key(&region.key) {
            return Err(RegionError::KeyTaken(region.key));
        }
        let overlap =
            self.regions.values().find(|other| region.start < other.end() && other.start < region.end());
        if let Some(other) = overlap {
            return Err(RegionError::Overlaps(other.key));
        }
        if self.regions.len() >= Regions::REGIONS_MAX {
            return Err(RegionError::Full);
        }
        self.regions.insert(region.key, region);
        Ok(())
    }

    /// Withdraws the region with this key.
    pub fn remove(&mut self, key: u32) -> Option<Region> {
        self.regions.remove(&key)
    }

    /// The region with this key.
    pub fn get(&self, key: u32) -> Option<&Region> {
        self.regions.get(&key)
    }

    /// Keys of all regions.
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.regions.keys().copied()
    }

    /// Its bytes, for their owner.
    pub fn bytes_mut(&mut self, key: u32) -> Option<&mut [u8]> {
        self.regions.get_mut(&key).map(|region| region.bytes.as_mut_slice())
    }

    /// Where in its region an access starts.
    fn place(&self, place: RemoteAddress, access: Access, bytes: usize) -> Result<usize, Denied> {
        let region = self.regions.get(&place.key).filter(|region| region.domain == place.domain);
        let region = region.ok_or(Denied::Key)?;
        if !region.rights.permit(access) {
            return Err(Denied::Rights);
        }
        let at = place.address.checked_sub(region.start).ok_or(Denied::Bounds)?;
        let room = (region.bytes.len() as u64).checked_sub(at).ok_or(Denied::Bounds)?;
        if bytes as u64 > room { Err(Denied::Bounds) } else { Ok(at as usize) }
    }

    fn bytes_at(&mut self, place: RemoteAddress, access: Access, bytes: usize) -> Result<&mut [u8], Denied> {
        let at = self.place(place, access, bytes)?;
        let region = self.regions.get_mut(&place.key).ok_or(Denied::Key)?;
        Ok(&mut region.bytes[at..at + bytes])
    }
}

impl RegisteredMemory for Regions {
    fn check(&self, place: RemoteAddress, access: Access, bytes: u32) -> Result<(), Denied> {
        self.place(place, access, bytes as usize).map(|_| ())
    }

    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied> {
        let at = self.place(place, Access::Read, into.len())?;
        let region = self.regions.get(&place.key).ok_or(Denied::Key)?;
        into.copy_from_slice(&region.bytes[at..at + into.len()]);
        Ok(())
    }

    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied> {
        self.bytes_at(place, Access::Write, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn modify(&mut self, place: RemoteAddress, modify: Modify) -> Result<u64, Denied> {
        let word = self.bytes_at(place, Access::Atomic, WORD_BYTES as usize)?;
        let mut old = [0; WORD_BYTES as usize];
        old.copy_from_slice(word);
        let old = u64::from_le_bytes(old);
        word.copy_from_slice(&modify.apply(old).to_le_bytes());
        Ok(old)
    }
}
