//! Numbers as 64-bit words, low word first.

use num_bigint::BigUint;

/// A mask of the `w` low bits, `w` from 0 to 64.
#[inline(always)]
pub(crate) fn ones(w: u32) -> u64 {
    if w >= 64 { u64::MAX } else { (1 << w) - 1 }
}

/// The low `limbs` words of a number.
pub(crate) fn limbs_of(value: &BigUint, limbs: usize) -> Vec<u64> {
    let mut words = value.to_u64_digits();
    words.resize(limbs, 0);
    words
}

/// The number in these words.
pub(crate) fn number(words: &[u64]) -> BigUint {
    if let [word] = words {
        return BigUint::from(*word);
    }
    BigUint::from_slice(
        &words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect::<Vec<u32>>(),
    )
}
