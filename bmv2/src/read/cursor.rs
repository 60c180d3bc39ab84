//! Values of the JSON with their path, so that an error says where it is.

use num_bigint::{BigInt, BigUint};
use serde_json::Value;
use thiserror::Error;

/// What is wrong, and where in the file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("at `{path}`: {what}")]
pub(crate) struct Wrong {
    path: String,
    what: String,
}

pub(super) type Result<T> = std::result::Result<T, Wrong>;

/// A value with its path.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'j> {
    value: &'j Value,
    path: String,
}

impl<'j> Cursor<'j> {
    pub fn root(value: &'j Value) -> Cursor<'j> {
        Cursor { value, path: String::new() }
    }

    /// An error at this value.
    pub fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        let path = if self.path.is_empty() { ".".to_owned() } else { self.path.clone() };
        Err(Wrong { path, what: what.into() })
    }

    /// A member that may be missing or null.
    pub fn find(&self, key: &str) -> Option<Cursor<'j>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Some(Cursor { value, path })
    }

    /// A member.
    pub fn get(&self, key: &str) -> Result<Cursor<'j>> {
        match self.find(key) {
            Some(node) => Ok(node),
            None => self.wrong(format!("`{key}` is missing")),
        }
    }

    /// The element at a position.
    pub fn at(&self, index: usize) -> Result<Cursor<'j>> {
        match self.value.get(index) {
            Some(value) => Ok(Cursor { value, path: format!("{}[{index}]", self.path) }),
            None => self.wrong(format!("element {index} is missing")),
        }
    }

    /// All elements of an array.
    pub fn list(&self) -> Result<Vec<Cursor<'j>>> {
        let Value::Array(values) = self.value else { return self.wrong("expected an array") };
        let node = |(at, value)| Cursor { value, path: format!("{}[{at}]", self.path) };
        Ok(values.iter().enumerate().map(node).collect())
    }

    /// All elements of a member, none if it is missing.
    pub fn list_of(&self, key: &str) -> Result<Vec<Cursor<'j>>> {
        self.find(key).map_or(Ok(Vec::new()), |node| node.list())
    }

    pub fn text(&self) -> Result<&'j str> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => self.wrong("expected a string"),
        }
    }

    /// The string at a key.
    pub fn text_of(&self, key: &str) -> Result<&'j str> {
        self.get(key)?.text()
    }

    pub fn is_text(&self) -> bool {
        self.value.is_string()
    }

    pub fn number(&self) -> Result<u64> {
        match self.value.as_u64() {
            Some(number) => Ok(number),
            None => self.wrong("expected a number from 0"),
        }
    }

    /// A number with limits.
    pub fn within(&self, lo: u64, hi: u64) -> Result<u64> {
        let number = self.number()?;
        if (lo..=hi).contains(&number) {
            return Ok(number);
        }
        self.wrong(format!("expected a number from {lo} to {hi}, not {number}"))
    }

    pub fn flag(&self) -> Result<bool> {
        match self.value {
            Value::Bool(flag) => Ok(*flag),
            _ => self.wrong("expected true or false"),
        }
    }

    /// The flag at a key; false if it is missing.
    pub fn flag_of(&self, key: &str) -> Result<bool> {
        self.find(key).map_or(Ok(false), |node| node.flag())
    }

    /// A number as hexadecimal digits, perhaps negative.
    pub fn hex(&self) -> Result<BigInt> {
        let text = self.text()?;
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        if digits.len() > DIGITS_MAX {
            return self.wrong(format!("expected at most {DIGITS_MAX} digits"));
        }
        match BigInt::parse_bytes(digits.as_bytes(), 16) {
            Some(number) => Ok(number * sign),
            None => self.wrong(format!("expected hexadecimal digits, not `{text}`")),
        }
    }

    /// The same, from 0.
    pub fn natural(&self) -> Result<BigUint> {
        let number = self.hex()?;
        match number.to_biguint() {
            Some(number) => Ok(number),
            None => self.wrong("expected a number that is not negative"),
        }
    }

    /// Names of all members.
    pub fn keys(&self) -> Result<Vec<&'j str>> {
        match self.value {
            Value::Object(members) => Ok(members.keys().map(String::as_str).collect()),
            _ => self.wrong("expected an object"),
        }
    }
}

/// Hexadecimal digits of a number: more than any field has.
const DIGITS_MAX: usize = 4096;
