//! FNV-1a with 64 bits: a hash that is the same on every machine. It withstands no adversary.

/// The hash of no bytes.
pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// Fowler, Noll and Vo's hash of these bytes.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    further(EMPTY, bytes)
}

/// The hash of the bytes behind `hash`, and these.
pub fn further(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_function() {
        let of = |text: &str| fnv1a(text.bytes());
        assert_eq!([of(""), of("a"), of("foobar")], [EMPTY, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
        assert_eq!(further(of("foo"), "bar".bytes()), of("foobar"));
    }
}
