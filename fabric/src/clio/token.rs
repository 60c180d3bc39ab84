//! Proof of the right to a process: a keyed hash of its PID and epoch, which a board gives out when the process begins.
//!
//! The paper trusts the PID of each packet. Here a packet also carries a tag that only the board can compute. It is checked with the
//! process's entry alone, so boards keep no state about clients. The tag is a bearer token: hosts that see a process's packets can use it.

use siphasher::sip::SipHasher24;
use std::fmt;

/// A board's secret. It never leaves the board, and should be random.
#[derive(Clone)]
pub struct Secret([u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A secret of these bytes.
    pub const fn new(bytes: [u8; 16]) -> Secret {
        Secret(bytes)
    }

    /// The token of a process: SipHash-2-4 of PID and epoch (Aumasson and Bernstein, INDOCRYPT 2012).
    pub fn token(&self, pid: u32, epoch: u16) -> u64 {
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&pid.to_be_bytes());
        bytes[4..].copy_from_slice(&epoch.to_be_bytes());
        self.hash(&bytes)
    }

    /// A seed for a hash table whose keys clients choose, by the table's name. It is unrelated to all tokens: these are of six bytes.
    pub fn seed(&self, table: &str) -> u64 {
        self.hash(&[b"seed of ", table.as_bytes()].concat())
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(bytes)
    }
}

/// Whether two tokens are equal. The time does not depend on where they differ.
#[inline]
pub fn is_same(one: u64, other: u64) -> bool {
    std::hint::black_box(one ^ other) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference implementation's vector: key 00…0f, message 00…05.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let secret = Secret::new(std::array::from_fn(|nth| nth as u8));
        assert_eq!(secret.hash(&[0, 1, 2, 3, 4, 5]), 0xcbc9_466e_58fe_e3ce);
        assert_eq!(secret.token(0x0001_0203, 0x0405), secret.hash(&[0, 1, 2, 3, 4, 5]));
    }

    proptest! {
        #[test]
        fn a_token_is_of_one_board_process_and_epoch(key: [u8; 16], pid: u32, epoch: u16, bit in 0..176usize) {
            let mut other = (key, pid, epoch);
            match bit {
                0..128 => other.0[bit / 8] ^= 1 << (bit % 8),
                128..160 => other.1 ^= 1 << (bit - 128),
                _ => other.2 ^= 1 << (bit - 160),
            }
            let token = Secret::new(key).token(pid, epoch);
            prop_assert!(is_same(token, Secret::new(key).token(pid, epoch)));
            prop_assert!(!is_same(token, Secret::new(other.0).token(other.1, other.2)));
        }
    }
}
