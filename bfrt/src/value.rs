//! Values of fields, with the widths of the schema.
//!
//! In messages, a number is a big-endian byte string of exactly the field's length. Other types have fields of their own.

use p4rack_p4rt::bfrt_proto::data_field::{self, BoolArray, IntArray, StrArray};
use p4rack_p4rt::bytes;
use thiserror::Error;

/// Type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of this many bits.
    Bits(u32),
    /// True or false.
    Bool,
    /// A real number.
    Float,
    /// Text; if the list is not empty, one of these.
    Text(Vec<String>),
    /// Several numbers of up to 32 bits.
    Numbers,
    /// Several bytes.
    Octets,
    /// Several truth values.
    Bools,
    /// Several texts.
    Texts,
    /// Groups of fields.
    Groups,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of any width, big-endian, in its shortest form.
    Number(Vec<u8>),
    /// True or false.
    Bool(bool),
    /// A real number.
    Float(f32),
    /// Text.
    Text(String),
    /// Several numbers.
    Numbers(Vec<u32>),
    /// Several truth values.
    Bools(Vec<bool>),
    /// Several texts.
    Texts(Vec<String>),
    /// Several groups of fields, each by name.
    Groups(Vec<Vec<(String, Value)>>),
}

/// Why a value does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// The number has more bits than the field.
    #[error("{value} needs {needed} bits, but the field has {width}")]
    TooWide {
        /// The number as text.
        value: String,
        /// Its length in bits.
        needed: u64,
        /// The field's width in bits.
        width: u32,
    },
    /// A received byte string does not have the field's length.
    #[error("{found} bytes, but a field of {width} bits takes {wanted}")]
    Length {
        /// Bytes received.
        found: usize,
        /// The field's length in bytes.
        wanted: usize,
        /// The field's width in bits.
        width: u32,
    },
    /// The value has another type than the field.
    #[error("the field holds {wanted}, not {found}")]
    Kind {
        /// The field's type, in words.
        wanted: &'static str,
        /// The value's type, in words.
        found: &'static str,
    },
    /// The text is not among the field's choices.
    #[error("`{value}` is none of {}", choices.join(", "))]
    Choice {
        /// The text.
        value: String,
        /// The choices.
        choices: Vec<String>,
    },
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(bytes::from_u128(number.into()))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Value {
        Value::from(u64::from(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::from(u64::from(number))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl<const N: usize> From<[u8; N]> for Value {
    fn from(number: [u8; N]) -> Value {
        Value::Number(bytes::canonical(&number))
    }
}

impl Value {
    /// The number, if it has at most 64 bits.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(value) if value.len() <= 8 => {
                Some(value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            }
            _ => None,
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Value::Number(_) => "a number",
            Value::Bool(_) => "a truth value",
            Value::Float(_) => "a real number",
            Value::Text(_) => "text",
            Value::Numbers(_) => "several numbers",
            Value::Bools(_) => "several truth values",
            Value::Texts(_) => "several texts",
            Value::Groups(_) => "groups of fields",
        }
    }
}

impl Kind {
    /// Its width in bits, if it is a number or a truth value.
    pub fn width(&self) -> Option<u32> {
        match self {
            Kind::Bits(width) => Some(*width),
            Kind::Bool => Some(1),
            _ => None,
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Kind::Bits(_) => "a number",
            Kind::Bool => "a truth value",
            Kind::Float => "a real number",
            Kind::Text(_) => "text",
            Kind::Numbers | Kind::Octets => "several numbers",
            Kind::Bools => "several truth values",
            Kind::Texts => "several texts",
            Kind::Groups => "groups of fields",
        }
    }

    /// Converts a value to its form in messages. Errors: it does not fit the type.
    pub fn encode(&self, value: &Value) -> Result<data_field::Value, ValueError> {
        Ok(match (self, value) {
            (Kind::Bits(width), Value::Number(number)) => {
                data_field::Value::Stream(fixed_width(number, *width)?)
            }
            (Kind::Bool, Value::Bool(truth)) => data_field::Value::BoolVal(*truth),
            (Kind::Float, Value::Float(number)) => data_field::Value::FloatVal(*number),
            (Kind::Text(choices), Value::Text(text)) => {
                chosen(text, choices)?;
                data_field::Value::StrVal(text.clone())
            }
            (Kind::Octets, Value::Numbers(val)) if val.iter().any(|one| *one > 0xff) => {
                return Err(ValueError::Kind { wanted: "bytes", found: "larger numbers" });
            }
            (Kind::Numbers | Kind::Octets, Value::Numbers(val)) => {
                data_field::Value::IntArrVal(IntArray { val: val.clone() })
            }
            (Kind::Bools, Value::Bools(val)) => data_field::Value::BoolArrVal(BoolArray { val: val.clone() }),
            (Kind::Texts, Value::Texts(val)) => data_field::Value::StrArrVal(StrArray { val: val.clone() }),
            (wanted, found) => {
                return Err(ValueError::Kind { wanted: wanted.what(), found: found.what() });
            }
        })
    }

    /// Converts from the form in messages. Errors: it does not fit the type.
    pub fn decode(&self, value: &data_field::Value) -> Result<Value, ValueError> {
        Ok(match (self, value) {
            (Kind::Bits(width), data_field::Value::Stream(number)) => {
                Value::Number(received(number, *width)?)
            }
            (Kind::Bool, data_field::Value::BoolVal(truth)) => Value::Bool(*truth),
            (Kind::Float, data_field::Value::FloatVal(number)) => Value::Float(*number),
            (Kind::Text(choices), data_field::Value::StrVal(text)) => {
                chosen(text, choices)?;
                Value::Text(text.clone())
            }
            (Kind::Octets, data_field::Value::Stream(bytes)) => {
                Value::Numbers(bytes.iter().map(|byte| u32::from(*byte)).collect())
            }
            (Kind::Octets, data_field::Value::IntArrVal(array))
                if array.val.iter().any(|one| *one > 0xff) =>
            {
                return Err(ValueError::Kind { wanted: "bytes", found: "larger numbers" });
            }
            (Kind::Numbers | Kind::Octets, data_field::Value::IntArrVal(array)) => {
                Value::Numbers(array.val.clone())
            }
            (Kind::Bools, data_field::Value::BoolArrVal(array)) => Value::Bools(array.val.clone()),
            (Kind::Texts, data_field::Value::StrArrVal(array)) => Value::Texts(array.val.clone()),
            (wanted, found) => {
                return Err(ValueError::Kind { wanted: wanted.what(), found: carried(found) });
            }
        })
    }
}

/// The value of a field in a message.
fn carried(value: &data_field::Value) -> &'static str {
    match value {
        data_field::Value::Stream(_) => "a number",
        data_field::Value::FloatVal(_) => "a real number",
        data_field::Value::StrVal(_) => "text",
        data_field::Value::IntArrVal(_) => "several numbers",
        data_field::Value::BoolArrVal(_) => "several truth values",
        data_field::Value::ContainerArrVal(_) => "groups of fields",
        data_field::Value::BoolVal(_) => "a truth value",
        data_field::Value::StrArrVal(_) => "several texts",
    }
}

fn chosen(text: &String, choices: &[String]) -> Result<(), ValueError> {
    if choices.is_empty() || choices.contains(text) {
        return Ok(());
    }
    Err(ValueError::Choice { value: text.clone(), choices: choices.to_vec() })
}

/// Length in bytes of a field of `width` bits.
pub(crate) fn length(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// The largest number of this many bits, as long as a field.
pub(crate) fn ones(width: u32) -> Vec<u8> {
    let mut ones = vec![0xff; length(width)];
    if let Some(first) = ones.first_mut().filter(|_| !width.is_multiple_of(8)) {
        *first >>= 8 - width % 8;
    }
    ones
}

/// A number, padded to its field's length.
pub(crate) fn fixed_width(number: &[u8], width: u32) -> Result<Vec<u8>, ValueError> {
    let number = within(number, width)?;
    let wanted = length(width);
    let mut fixed = vec![0; wanted];
    // The shortest form of zero has one byte, but a field of width zero has none.
    let kept = number.len().min(wanted);
    fixed[wanted - kept..].copy_from_slice(&number[number.len() - kept..]);
    Ok(fixed)
}

/// A received number in its shortest form.
pub(crate) fn received(number: &[u8], width: u32) -> Result<Vec<u8>, ValueError> {
    let wanted = length(width);
    if number.len() != wanted {
        return Err(ValueError::Length { found: number.len(), wanted, width });
    }
    within(number, width)
}

fn within(number: &[u8], width: u32) -> Result<Vec<u8>, ValueError> {
    let needed = bytes::bit_length(number);
    if needed > u64::from(width) {
        return Err(ValueError::TooWide { value: bytes::number(number), needed, width });
    }
    Ok(bytes::canonical(number))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_as_long_as_their_field() {
        let port = Kind::Bits(9);
        assert_eq!(port.encode(&Value::from(1u16)), Ok(data_field::Value::Stream(vec![0, 1])));
        assert_eq!(port.decode(&data_field::Value::Stream(vec![1, 0xff])), Ok(Value::from(511u16)));
        let error = port.encode(&Value::from(512u16)).unwrap_err();
        assert_eq!(error.to_string(), "512 needs 10 bits, but the field has 9");
        let error = port.decode(&data_field::Value::Stream(vec![1])).unwrap_err();
        assert_eq!(error.to_string(), "1 bytes, but a field of 9 bits takes 2");
        let error = port.decode(&data_field::Value::Stream(vec![2, 0])).unwrap_err();
        assert_eq!(error.to_string(), "512 needs 10 bits, but the field has 9");
    }

    #[test]
    fn kinds_and_choices_are_kept_apart() {
        let speed = Kind::Text(vec!["BF_SPEED_100G".into(), "BF_SPEED_25G".into()]);
        assert!(speed.encode(&"BF_SPEED_25G".into()).is_ok());
        let error = speed.encode(&"25G".into()).unwrap_err();
        assert_eq!(error.to_string(), "`25G` is none of BF_SPEED_100G, BF_SPEED_25G");
        let error = speed.encode(&true.into()).unwrap_err();
        assert_eq!(error.to_string(), "the field holds text, not a truth value");
        let error = Kind::Bool.decode(&data_field::Value::Stream(vec![1])).unwrap_err();
        assert_eq!(error.to_string(), "the field holds a truth value, not a number");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(number: u64, width in 1u32..80) {
            let (kind, value) = (Kind::Bits(width), Value::from(number));
            match kind.encode(&value) {
                Ok(sent) => prop_assert_eq!(kind.decode(&sent), Ok(value)),
                Err(_) => prop_assert!(64 - number.leading_zeros() > width),
            }
        }
    }
}
