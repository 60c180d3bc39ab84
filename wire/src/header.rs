//! Descriptions of headers. From one list of fields, the [`header!`](crate::header!) macro generates a Rust
//! struct with `parse` and `emit`, and a [`HeaderDesc`] from which the text for other languages is rendered.

use std::fmt;

/// One field of a header, in wire order, most significant bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldDesc {
    /// Name in P4, in the camelCase of the field's own standard.
    pub p4_name: &'static str,
    /// Name in Rust.
    pub name: &'static str,
    /// Width in bits, 1 to 64.
    pub bits: usize,
    /// Meaning, on one line.
    pub doc: &'static str,
}

/// A header format: its fields in wire order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderDesc {
    /// Name of the P4 header type, e.g. `ethernet_t`.
    pub p4_name: &'static str,
    /// Name of the Rust type.
    pub name: &'static str,
    /// Meaning of the header.
    pub doc: &'static str,
    /// Fields in wire order.
    pub fields: &'static [FieldDesc],
}

impl HeaderDesc {
    /// Width of the whole header, in bits.
    pub fn bits(&self) -> usize {
        self.fields.iter().map(|field| field.bits).sum()
    }
}

/// Why bytes do not parse as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Fewer bytes than the header has.
    Truncated {
        /// Bytes of the header.
        need: usize,
        /// Bytes available.
        have: usize,
    },
    /// A field has an undefined value.
    Invalid {
        /// Name of the field in Rust.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Truncated { need, have } => {
                write!(f, "frame cut short: needs {need} bytes, has {have}")
            }
            ParseError::Invalid { field, value } => {
                write!(f, "field {field} holds {value}, which means nothing")
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// A type for a header field of at most 64 bits.
pub trait FieldValue: Copy {
    /// Converts from the field's bits, right-aligned.
    fn from_bits(bits: u64) -> Self;
    /// Converts to the field's bits, right-aligned.
    fn to_bits(self) -> u64;
}

macro_rules! int_field {
    ($($t:ty),*) => { $(impl FieldValue for $t {
        #[inline]
        fn from_bits(bits: u64) -> Self { bits as $t }
        #[inline]
        fn to_bits(self) -> u64 { self as u64 }
    })* };
}
int_field!(u8, u16, u32, u64);

impl FieldValue for bool {
    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    #[inline]
    fn to_bits(self) -> u64 {
        self as u64
    }
}

/// Reads `bits` bits at bit `offset` of `bytes`. The caller has checked the length.
#[inline(always)]
pub fn read_bits(bytes: &[u8], offset: usize, bits: usize) -> u64 {
    // Offsets and widths are constants at the call, so only one of these branches remains.
    if offset.is_multiple_of(8) && bits.is_multiple_of(8) {
        let mut word = [0; 8];
        word[8 - bits / 8..].copy_from_slice(&bytes[offset / 8..(offset + bits) / 8]);
        return u64::from_be_bytes(word);
    }
    let (first, last) = (offset / 8, (offset + bits - 1) / 8);
    if last - first < 8 {
        let mut word = [0; 8];
        word[7 - (last - first)..].copy_from_slice(&bytes[first..=last]);
        return (u64::from_be_bytes(word) >> (7 - (offset + bits - 1) % 8)) & (u64::MAX >> (64 - bits));
    }
    read_unaligned(bytes, offset, bits)
}

fn read_unaligned(bytes: &[u8], offset: usize, bits: usize) -> u64 {
    let (mut at, mut left, mut value) = (offset, bits, 0u64);
    while left > 0 {
        let room = 8 - at % 8;
        let take = room.min(left);
        let byte = (bytes[at / 8] >> (room - take)) & (0xffu16 >> (8 - take)) as u8;
        value = (value << take) | u64::from(byte);
        at += take;
        left -= take;
    }
    value
}

/// Writes the low `bits` bits of `value` at bit `offset` of `bytes`. The caller has checked the length.
#[inline(always)]
pub fn write_bits(bytes: &mut [u8], offset: usize, bits: usize, value: u64) {
    if offset.is_multiple_of(8) && bits.is_multiple_of(8) {
        bytes[offset / 8..(offset + bits) / 8].copy_from_slice(&value.to_be_bytes()[8 - bits / 8..]);
        return;
    }
    let (first, last) = (offset / 8, (offset + bits - 1) / 8);
    if last - first < 8 {
        let mut word = [0; 8];
        word[7 - (last - first)..].copy_from_slice(&bytes[first..=last]);
        let (shift, mask) = (7 - (offset + bits - 1) % 8, u64::MAX >> (64 - bits));
        let word = (u64::from_be_bytes(word) & !(mask << shift)) | ((value & mask) << shift);
        bytes[first..=last].copy_from_slice(&word.to_be_bytes()[7 - (last - first)..]);
        return;
    }
    write_unaligned(bytes, offset, bits, value);
}

fn write_unaligned(bytes: &mut [u8], offset: usize, bits: usize, value: u64) {
    let (mut at, mut left) = (offset, bits);
    while left > 0 {
        let room = 8 - at % 8;
        let take = room.min(left);
        let mask = (0xffu16 >> (8 - take)) as u8;
        let chunk = (value >> (left - take)) as u8 & mask;
        let shift = room - take;
        bytes[at / 8] = (bytes[at / 8] & !(mask << shift)) | (chunk << shift);
        at += take;
        left -= take;
    }
}

/// Describes a header: generates a Rust struct, `parse`, `emit`, `BYTES` and `DESC` from one list.
#[macro_export]
macro_rules! header {
    ($(#[doc = $doc:literal])* $name:ident = $p4:literal {
        $( $(#[doc = $fdoc:literal])* $field:ident / $p4f:literal : $ty:ty = $bits:literal; )*
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $( $(#[doc = $fdoc])* pub $field: $ty, )* }

        impl $name {
            /// Length on the wire, in bytes.
            pub const BYTES: usize = (0 $(+ $bits)*) / 8;
            /// The format, for code generators.
            pub const DESC: $crate::HeaderDesc = $crate::HeaderDesc {
                p4_name: $p4,
                name: stringify!($name),
                doc: concat!($($doc, "\n"),*),
                fields: &[ $( $crate::FieldDesc {
                    p4_name: $p4f, name: stringify!($field), bits: $bits, doc: concat!($($fdoc, "\n"),*),
                }, )* ],
            };

            /// Parses the header at the start of `bytes`. Errors: fewer than `BYTES` bytes.
            #[inline]
            #[allow(unused_assignments)]
            pub fn parse(bytes: &[u8]) -> Result<Self, $crate::ParseError> {
                if bytes.len() < Self::BYTES {
                    return Err($crate::ParseError::Truncated { need: Self::BYTES, have: bytes.len() });
                }
                let mut at = 0;
                Ok(Self { $( $field: {
                    let bits = $crate::header::read_bits(bytes, at, $bits);
                    at += $bits;
                    $crate::header::FieldValue::from_bits(bits)
                }, )* })
            }

            /// Writes the header at the start of `bytes`, which holds at least `BYTES` bytes.
            #[inline]
            #[allow(unused_assignments)]
            pub fn emit(&self, bytes: &mut [u8]) {
                let mut at = 0;
                $( $crate::header::write_bits(bytes, at, $bits, $crate::header::FieldValue::to_bits(self.$field));
                at += $bits; )*
            }
        }
    };
}
