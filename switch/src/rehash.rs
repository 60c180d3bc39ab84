//! Hashes that the control plane has changed: their fields, the order, and the algorithm.

use crate::hash::Hasher;
use p4rack_p4::ir::{Crc, HashAlgorithm};

/// A part of one of a hash's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashPart {
    /// Number of the field.
    pub field: usize,
    /// Its lowest bit that is hashed.
    pub start: u32,
    /// Bits that are hashed.
    pub bits: u32,
    /// The place among all parts, the smallest number first. The hash stays if two parts of one order are exchanged.
    pub order: u64,
}

/// Configuration of a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashConfig {
    /// Hashed parts; `None`: all fields as the program has them.
    pub parts: Option<Vec<HashPart>>,
    /// The algorithm; `None`: the program's.
    pub algorithm: Option<Crc>,
    /// Bits by which the result is rotated to the left.
    pub rotate: u32,
    /// Whether a result that is wider than the algorithm's is filled with it again and again.
    pub extend: bool,
}

/// A changed hash.
#[derive(Clone, Debug)]
pub(crate) struct Rehash {
    pub config: HashConfig,
    hasher: Hasher,
    /// Bits of the algorithm's result, and of this one.
    widths: (u32, u32),
    /// First bit and length of each part, in order. `None`: all data unchanged.
    parts: Option<Vec<(u32, u32)>>,
    /// The same with symmetric parts exchanged; its hash is combined with the first one. Empty if nothing is.
    exchanged: Vec<(u32, u32)>,
}

impl Rehash {
    /// `fields` are the widths of the fields, `width` is that of the result.
    pub fn new(config: HashConfig, algorithm: HashAlgorithm, fields: &[u32], width: u32) -> Rehash {
        let algorithm = config.algorithm.map_or(algorithm, HashAlgorithm::Crc);
        let mut sorted: Vec<&HashPart> = config.parts.iter().flatten().collect();
        // Parts of one order keep their given sequence.
        sorted.sort_by_key(|part| part.order);
        let place = |part: &HashPart| {
            let before: u32 = fields.iter().take(part.field).sum();
            let own = fields.get(part.field).copied().unwrap_or_default();
            (before + own.saturating_sub(part.start + part.bits), part.bits)
        };
        let places: Vec<(u32, u32)> = sorted.iter().map(|part| place(part)).collect();
        let mut exchanged = places.clone();
        let mut is_symmetric = false;
        for at in 1..sorted.len() {
            if sorted[at].order == sorted[at - 1].order {
                exchanged.swap(at - 1, at);
                is_symmetric = true;
            }
        }
        if !is_symmetric {
            exchanged.clear();
        }
        let widths = (bits_of(algorithm), width);
        let parts = config.parts.is_some().then_some(places);
        Rehash { config, hasher: algorithm.into(), widths, parts, exchanged }
    }

    /// The hash of the fields' bits, which begin with the first byte. `scratch` holds the parts during the call.
    pub fn hash(&self, data: &[u8], scratch: &mut Vec<u8>) -> u64 {
        let value = match &self.parts {
            None => self.hasher.hash(data, || 0),
            Some(parts) => {
                let mut one = |parts: &[(u32, u32)]| {
                    gather(data, parts, scratch);
                    self.hasher.hash(scratch, || 0)
                };
                let value = one(parts);
                if self.exchanged.is_empty() { value } else { value ^ one(&self.exchanged) }
            }
        };
        let (own, width) = self.widths;
        let mask = u64::MAX >> (64 - width.clamp(1, 64));
        let mut value = value & (u64::MAX >> (64 - own.clamp(1, 64)));
        if self.config.extend {
            for _ in 0..64 / own.max(1) {
                value |= value.checked_shl(own).unwrap_or(0);
            }
        }
        value &= mask;
        match self.config.rotate % width.max(1) {
            0 => value,
            by => (value << by | value >> (width - by)) & mask,
        }
    }
}

/// Bits of an algorithm's result.
fn bits_of(algorithm: HashAlgorithm) -> u32 {
    match algorithm {
        HashAlgorithm::Crc(crc) => crc.width,
        HashAlgorithm::Xor8 => 8,
        HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom | HashAlgorithm::Csum16 | HashAlgorithm::Xor16 => {
            16
        }
        HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom | HashAlgorithm::Xor32 => 32,
        HashAlgorithm::Identity | HashAlgorithm::Random => 64,
    }
}

/// Puts parts of data side by side, filled up with zeros at the end.
fn gather(data: &[u8], parts: &[(u32, u32)], bytes: &mut Vec<u8>) {
    let bits: u32 = parts.iter().map(|(_, bits)| bits).sum();
    bytes.clear();
    bytes.resize(bits.div_ceil(8) as usize, 0);
    let all = parts.iter().flat_map(|(first, bits)| *first..first + bits);
    for (to, from) in all.enumerate() {
        let is_set = data.get(from as usize / 8).is_some_and(|byte| byte & 0x80 >> (from % 8) != 0);
        if is_set {
            bytes[to / 8] |= 0x80 >> (to % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC32: Crc = Crc {
        width: 32,
        polynomial: 0x04c1_1db7,
        reflected: true,
        initial: 0xffff_ffff,
        final_xor: 0xffff_ffff,
    };
    /// "1234" "5678" "9".
    const FIELDS: [u32; 3] = [32, 32, 8];
    const CHECK: u64 = 0xcbf4_3926;

    fn part(field: usize, order: u64) -> HashPart {
        HashPart { field, start: 0, bits: FIELDS[field], order }
    }

    fn rehash(parts: &[HashPart], rotate: u32, extend: bool) -> Rehash {
        let parts = (!parts.is_empty()).then(|| parts.to_vec());
        let config = HashConfig { parts, algorithm: Some(CRC32), rotate, extend };
        Rehash::new(config, HashAlgorithm::Xor8, &FIELDS, 64)
    }

    #[test]
    fn parts_are_hashed_in_their_order() {
        assert_eq!(rehash(&[], 0, false).hash(b"123456789", &mut Vec::new()), CHECK);
        let turned = rehash(&[part(0, 7), part(1, 2), part(2, 9)], 0, false);
        assert_eq!(turned.hash(b"567812349", &mut Vec::new()), CHECK);
        // Bits 16 to 31 of the second field are its first two bytes.
        let cut =
            [HashPart { start: 16, bits: 16, ..part(1, 1) }, HashPart { start: 0, bits: 16, ..part(1, 2) }];
        let rest = [part(0, 0), part(2, 3)];
        assert_eq!(rehash(&[cut, rest].concat(), 0, false).hash(b"123456789", &mut Vec::new()), CHECK);
        assert_eq!(
            rehash(&[part(2, 1)], 0, false).hash(b"aaaaaaaa9", &mut Vec::new()),
            rehash(&[part(2, 1)], 0, false).hash(b"bbbbbbbb9", &mut Vec::new())
        );
    }

    #[test]
    fn parts_of_one_order_may_be_exchanged() {
        let same = rehash(&[part(0, 1), part(1, 1), part(2, 2)], 0, false);
        assert_eq!(same.hash(b"123456789", &mut Vec::new()), same.hash(b"567812349", &mut Vec::new()));
        assert_ne!(same.hash(b"123456789", &mut Vec::new()), same.hash(b"123556789", &mut Vec::new()));
        let other = rehash(&[part(0, 1), part(1, 3), part(2, 2)], 0, false);
        assert_ne!(other.hash(b"123456789", &mut Vec::new()), other.hash(b"567812349", &mut Vec::new()));
    }

    #[test]
    fn results_are_extended_and_rotated() {
        assert_eq!(rehash(&[], 0, true).hash(b"123456789", &mut Vec::new()), CHECK << 32 | CHECK);
        assert_eq!(
            rehash(&[], 4, true).hash(b"123456789", &mut Vec::new()),
            (CHECK << 32 | CHECK).rotate_left(4)
        );
        assert_eq!(rehash(&[], 36, false).hash(b"123456789", &mut Vec::new()), CHECK.rotate_left(36));
    }
}
