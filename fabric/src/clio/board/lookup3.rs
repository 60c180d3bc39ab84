//! Jenkins' lookup3, of 2006 and in the public domain, for keys of eight bytes.
//!
//! The authors of Clio measured conflicts with it (`hash_lower_bits` in their `pgtable.h`), so the values that they publish are those of
//! this hash.

/// The 32 bits of `hashlittle` with an initial value of 0.
pub(super) fn hash(key: u64) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(size_of::<u64>() as u32);
    let (mut a, mut b) = (start.wrapping_add(key as u32), start.wrapping_add((key >> 32) as u32));
    let mut c = start;
    let step = |to: &mut u32, from: u32, bits: u32| *to = (*to ^ from).wrapping_sub(from.rotate_left(bits));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `hashlittle` of the authors' `lookup3.h` returns.
    #[test]
    fn it_is_the_published_function() {
        assert_eq!(
            [0, 1, 262_143, 1 << 40 | 7].map(hash),
            [0x58c1_84bf, 0x5543_253f, 0x6243_2f75, 0x8f9b_c6e3]
        );
    }
}
