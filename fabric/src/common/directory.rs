//! Lookup of peers by address, for every frame.

use p4rack_wire::MacAddr;
use p4rack_wire::header::FieldValue;

/// Marks a free slot; no address has more than 48 bits.
const FREE: u64 = u64::MAX;

/// A fixed set of addresses with their positions, hashed with open addressing, at most half full.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    cells: Vec<(u64, u32)>,
    shift: u32,
}

impl Directory {
    /// Builds the directory of distinct addresses; positions are those in the list.
    pub fn new(addresses: impl ExactSizeIterator<Item = MacAddr>) -> Directory {
        let len = (2 * addresses.len()).max(2).next_power_of_two();
        let mut directory = Directory { cells: vec![(FREE, 0); len], shift: 64 - len.trailing_zeros() };
        for (position, address) in addresses.enumerate() {
            let at = directory.place(address.to_bits());
            directory.cells[at] = (address.to_bits(), position as u32);
        }
        directory
    }

    /// Position of an address.
    #[inline]
    pub fn find(&self, address: MacAddr) -> Option<usize> {
        let (key, position) = self.cells[self.place(address.to_bits())];
        (key != FREE).then_some(position as usize)
    }

    /// Slot of a key, or the slot where it would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.cells[at].0 != key && self.cells[at].0 != FREE {
            at = (at + 1) & (self.cells.len() - 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_address_and_no_other() {
        let mac = |n: u32| MacAddr([2, 0, (n >> 16) as u8, 7, (n >> 8) as u8, n as u8]);
        for count in [0, 1, 2, 3, 64, 300] {
            let directory = Directory::new((0..count).map(|n| mac(3 * n)));
            for n in 0..3 * count + 5 {
                let expected = (n % 3 == 0 && n / 3 < count).then_some(n as usize / 3);
                assert_eq!(directory.find(mac(n)), expected, "{n} of {count}");
            }
        }
    }
}
