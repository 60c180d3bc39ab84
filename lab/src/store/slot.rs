//! The store's record of a key, the same over every network.
//!
//! ```text
//! 0      8      16         24
//! │ word │ key  │ checksum │ value … │     word: version · 2^16 + owner of the lock, 0 if unlocked
//! ```
//!
//! The word has the byte order of the way's atomic operations; other numbers are big-endian. The checksum covers version, key and
//! value, so it reveals a slot made of parts of several writes.

use p4rack_hosts::remote::WordOrder;

/// Bytes before the value.
pub const HEADER_BYTES: usize = 24;
/// Bits of the word for the owner of the lock.
const OWNER_BITS: u32 = 16;

/// Version and owner of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Number of writes so far.
    pub version: u64,
    /// The client about to write the next version: its number, from 1; 0: none.
    pub owner: u16,
}

impl Word {
    /// Unlocked.
    pub fn free(version: u64) -> Word {
        Word { version, owner: 0 }
    }

    /// The word as a number.
    pub fn bits(self) -> u64 {
        self.version << OWNER_BITS | u64::from(self.owner)
    }

    /// The word of a number.
    pub fn from_bits(bits: u64) -> Word {
        Word { version: bits >> OWNER_BITS, owner: bits as u16 }
    }
}

/// Contents of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The key.
    pub key: u64,
    /// Number of writes so far.
    pub version: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// Bytes of a slot with values of this size. Slots start at multiples of eight.
pub fn slot_bytes(value_bytes: usize) -> usize {
    (HEADER_BYTES + value_bytes).next_multiple_of(8)
}

impl Slot {
    /// The slot's bytes, unlocked.
    pub fn encode(&self, words: WordOrder) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.value.len());
        bytes.extend_from_slice(&words.bytes(Word::free(self.version).bits()));
        for word in [self.key, self.checksum()] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(&self.value);
        bytes
    }

    /// The slot of these bytes, locked or not; `None` if the checksum is wrong.
    pub fn decode(bytes: &[u8], words: WordOrder) -> Option<Slot> {
        let word = |n: usize| bytes.get(8 * n..)?.first_chunk().copied();
        let slot = Slot {
            version: Word::from_bits(words.word(word(0)?)).version,
            key: u64::from_be_bytes(word(1)?),
            value: bytes.get(HEADER_BYTES..)?.to_vec(),
        };
        (u64::from_be_bytes(word(2)?) == slot.checksum()).then_some(slot)
    }

    /// FNV-1a, eight bytes at a time.
    fn checksum(&self) -> u64 {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        let mut hash = mix(mix(0xcbf2_9ce4_8422_2325, self.version), self.key);
        for part in self.value.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            hash = mix(hash, u64::from_le_bytes(word));
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_mixed_is_noticed() {
        let slot = |version, byte| Slot { key: 3, version, value: vec![byte; 100] };
        for words in [WordOrder::BigEndian, WordOrder::LittleEndian] {
            let (one, two) = (slot(1, 5).encode(words), slot(2, 6).encode(words));
            assert_eq!(Slot::decode(&one, words), Some(slot(1, 5)));
            for cut in [8, 16, 24, 60, 123] {
                assert_eq!(Slot::decode(&[&two[..cut], &one[cut..]].concat(), words), None, "{cut}");
            }
            let locked = words.bytes(Word { version: 1, owner: 9 }.bits());
            let locked = [&locked, &one[8..]].concat();
            assert_eq!(Slot::decode(&locked, words), Some(slot(1, 5)), "a lock changes no value");
            assert_eq!(Slot::decode(&one[..20], words), None);
            assert_eq!(Slot::decode(&[0; 124], words), None);
        }
        assert_eq!(slot_bytes(100), 128);
    }
}
