//! Byte strings of controllers as numbers.

use super::{Checked, refuse};
use num_bigint::BigUint;
use p4rack_p4rt::bytes;
use p4rack_p4rt::google::rpc::Code;
use std::fmt::Display;

/// A byte string as a number of at most `width` bits.
pub fn number(what: impl Display, value: &[u8], width: u32) -> Checked<BigUint> {
    if (1..=8).contains(&value.len()) && bytes::bit_length(value) <= u64::from(width) {
        let number = value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        return Ok(BigUint::from(number));
    }
    match bytes::check(value, width) {
        Ok(value) => Ok(BigUint::from_bytes_be(&value)),
        Err(error) => refuse(Code::OutOfRange, format!("{what}: {error}")),
    }
}
