//! Byte strings: big-endian numbers of any width.
//!
//! Outgoing strings have the shortest form (zero is one zero byte); incoming ones may be zero-padded to any
//! length. An empty string is invalid; it is not zero.

use thiserror::Error;

/// Why a byte string is not a valid value of its field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BytesError {
    /// The string is empty.
    #[error("an empty byte string is not a value; send zero as one zero byte")]
    Empty,
    /// The value has more bits than the field.
    #[error("{value} needs {needed} bits, but the field has {width}")]
    TooWide {
        /// The value, see [`number`].
        value: String,
        /// Bits that the value needs.
        needed: u64,
        /// Bits of the field.
        width: u32,
    },
}

/// The shortest form of a byte string.
pub fn canonical(bytes: &[u8]) -> Vec<u8> {
    let significant = strip(bytes);
    if significant.is_empty() { vec![0] } else { significant.to_vec() }
}

/// Checks a byte string received for a field of `width` bits. Returns its shortest form.
pub fn check(bytes: &[u8], width: u32) -> Result<Vec<u8>, BytesError> {
    if bytes.is_empty() {
        return Err(BytesError::Empty);
    }
    let needed = bit_length(bytes);
    if needed > u64::from(width) {
        return Err(BytesError::TooWide { value: number(bytes), needed, width });
    }
    Ok(canonical(bytes))
}

/// The shortest byte string of a number.
pub fn from_u128(value: u128) -> Vec<u8> {
    canonical(&value.to_be_bytes())
}

/// The number, if it fits.
pub fn to_u128(bytes: &[u8]) -> Option<u128> {
    let significant = strip(bytes);
    if significant.len() > 16 {
        return None;
    }
    Some(significant.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
}

/// `length` ones at the high end of `width` bits.
pub fn leading_ones(width: usize, length: usize) -> Vec<u8> {
    let bytes = width.div_ceil(8);
    let lead = bytes * 8 - width;
    let mut mask = vec![0; bytes];
    for bit in lead..lead + length.min(width) {
        mask[bit / 8] |= 0x80 >> (bit % 8);
    }
    mask
}

/// Bitwise and of two numbers, aligned at their low ends.
pub fn and(left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = left.len().min(right.len());
    let (left, right) = (&left[left.len() - length..], &right[right.len() - length..]);
    canonical(&left.iter().zip(right).map(|(a, b)| a & b).collect::<Vec<u8>>())
}

/// Number of bits, up to the highest one set.
pub fn bit_length(bytes: &[u8]) -> u64 {
    let significant = strip(bytes);
    match significant.first() {
        Some(first) => significant.len() as u64 * 8 - u64::from(first.leading_zeros()),
        None => 0,
    }
}

/// The number as text: decimal if it has up to 128 bits, else hexadecimal.
pub fn number(bytes: &[u8]) -> String {
    to_u128(bytes).map_or_else(|| format!("0x{}", hex(strip(bytes))), |number| number.to_string())
}

/// Hexadecimal digits without prefix.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn strip(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_one_byte() {
        assert_eq!(canonical(&[]), [0]);
        assert_eq!(canonical(&[0, 0, 0]), [0]);
        assert_eq!(from_u128(0), [0]);
    }

    #[test]
    fn empty_or_too_wide_is_refused() {
        assert_eq!(check(&[], 9), Err(BytesError::Empty));
        assert_eq!(check(&[0, 0, 1, 0xff], 9), Ok(vec![1, 0xff]));
        let error = check(&[2, 0], 9).unwrap_err();
        assert_eq!(error.to_string(), "512 needs 10 bits, but the field has 9");
        let error = check(&[1; 17], 9).unwrap_err();
        let digits = "01".repeat(17);
        assert_eq!(error.to_string(), format!("0x{digits} needs 129 bits, but the field has 9"));
    }

    proptest! {
        #[test]
        fn any_padding_gives_the_same_shortest_form(value: u128, zeros in 0usize..40) {
            let mut padded = vec![0; zeros];
            padded.extend(value.to_be_bytes());
            let short = check(&padded, 128).unwrap();
            prop_assert_eq!(&short, &from_u128(value));
            prop_assert!(short.len() == 1 || short[0] != 0);
            prop_assert_eq!(to_u128(&short), Some(value));
        }

        #[test]
        fn the_width_is_exact(value in 1u128.., cut in 0u32..128) {
            let needed = 128 - value.leading_zeros();
            prop_assert_eq!(check(&value.to_be_bytes(), cut).is_ok(), needed <= cut);
        }
    }
}
