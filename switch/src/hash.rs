//! Hash and checksum algorithms.

use p4rack_p4::ir::{Crc, HashAlgorithm};
pub(crate) use p4rack_wire::ipv4::checksum as csum16;
use std::sync::Arc;

/// CRC-16/ARC: `crc16` in all architectures.
const CRC16: Crc = Crc { width: 16, polynomial: 0x8005, reflected: true, initial: 0, final_xor: 0 };

/// Exclusive or of words of `N` bytes; the last one is padded at its end.
fn xor<const N: usize>(bytes: &[u8]) -> u64 {
    bytes.chunks(N).fold(0, |sum, chunk| {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        sum ^ word << (8 * (N - chunk.len()))
    })
}

/// The first eight bytes as a number.
fn identity(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// An algorithm with its look-up tables.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    pub algorithm: HashAlgorithm,
    /// A cyclic redundancy check with any parameters: programs and controllers choose them while the switch runs, so no
    /// crate's tables serve. For each byte, its effect on the shift register, whose first bit is the highest of 64 or,
    /// if reflected, the lowest.
    check: Option<(Crc, Arc<[u64; 256]>)>,
}

impl From<HashAlgorithm> for Hasher {
    fn from(algorithm: HashAlgorithm) -> Hasher {
        let check = match algorithm {
            HashAlgorithm::Crc(crc) => Some(crc),
            // Without configured parameters, a custom CRC is the standard one.
            HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => Some(CRC16),
            _ => None,
        };
        let table = |crc: Crc| Arc::new(std::array::from_fn(|byte| shifted(&crc, byte as u64)));
        Hasher { algorithm, check: check.map(|crc| (crc, table(crc))) }
    }
}

impl Hasher {
    /// Hash of bytes; `random` is the result of the random algorithm.
    pub fn hash(&self, bytes: &[u8], random: impl FnOnce() -> u64) -> u64 {
        if let Some((crc, table)) = &self.check {
            return check(crc, table, bytes);
        }
        match self.algorithm {
            // Ethernet's.
            HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => crc32fast::hash(bytes).into(),
            HashAlgorithm::Csum16 => csum16(bytes).into(),
            HashAlgorithm::Xor8 => xor::<1>(bytes),
            HashAlgorithm::Xor16 => xor::<2>(bytes),
            HashAlgorithm::Xor32 => xor::<4>(bytes),
            HashAlgorithm::Identity => identity(bytes),
            HashAlgorithm::Random => random(),
            HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom | HashAlgorithm::Crc(_) => {
                unreachable!("a check has its table")
            }
        }
    }
}

/// The polynomial as the shift register meets it.
fn aligned(crc: &Crc, value: u64) -> u64 {
    match crc.reflected {
        true => value.reverse_bits() >> (64 - crc.width),
        false => value << (64 - crc.width),
    }
}

fn shifted(crc: &Crc, byte: u64) -> u64 {
    let polynomial = aligned(crc, crc.polynomial);
    let step = |value: u64, _| match crc.reflected {
        true => (value >> 1) ^ ((value & 1) * polynomial),
        false => (value << 1) ^ ((value >> 63) * polynomial),
    };
    (0..8).fold(if crc.reflected { byte } else { byte << 56 }, step)
}

/// A cyclic redundancy check.
fn check(crc: &Crc, table: &[u64; 256], bytes: &[u8]) -> u64 {
    let value = bytes.iter().fold(aligned(crc, crc.initial), |value, byte| match crc.reflected {
        true => value >> 8 ^ table[(value as u8 ^ byte) as usize],
        false => value << 8 ^ table[((value >> 56) as u8 ^ byte) as usize],
    });
    crc.final_xor ^ if crc.reflected { value } else { value >> (64 - crc.width) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        let of = |algorithm| Hasher::from(algorithm).hash(b"123456789", || 0);
        assert_eq!([HashAlgorithm::Crc32, HashAlgorithm::Crc32Custom].map(of), [0xCBF4_3926; 2]);
        assert_eq!([HashAlgorithm::Crc16, HashAlgorithm::Crc16Custom].map(of), [0xBB3D; 2]);
        // RFC 1071, section 3.
        assert_eq!(csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(csum16(&[0x01]), !0x0100);
        assert_eq!(xor::<2>(&[0x12, 0x34, 0xff, 0x00, 0x01]), 0x1234 ^ 0xff00 ^ 0x0100);
        assert_eq!(xor::<4>(&[0x12, 0x34, 0xff, 0x00, 0x01]), 0x1234_ff00 ^ 0x0100_0000);
        assert_eq!(identity(&[1, 2, 3]), 0x010203);
    }

    /// Check values of the catalogue of parametrised CRC algorithms.
    #[test]
    fn catalogued_polynomials() {
        let of = |width, polynomial, reflected, initial, final_xor| {
            let crc = Crc { width, polynomial, reflected, initial, final_xor };
            Hasher::from(HashAlgorithm::Crc(crc)).hash(b"123456789", || 0)
        };
        assert_eq!(of(8, 0x07, false, 0, 0), 0xf4);
        assert_eq!(of(16, 0x1021, false, 0xffff, 0), 0x29b1);
        assert_eq!(of(16, 0x8005, true, 0, 0), 0xbb3d);
        assert_eq!(of(32, 0x04c1_1db7, true, 0xffff_ffff, 0xffff_ffff), 0xcbf4_3926);
        assert_eq!(of(32, 0x04c1_1db7, false, 0xffff_ffff, 0xffff_ffff), 0xfc89_1918);
        assert_eq!(of(32, 0x1edc_6f41, true, 0xffff_ffff, 0xffff_ffff), 0xe306_9283);
        assert_eq!(of(64, 0x42f0_e1eb_a9ea_3693, false, 0, 0), 0x6c40_df5f_0b49_7347);
    }
}
