//! Controllers' names for the values of translated types, as long as no controller has named any.

use crate::ir::{NewType, Program};
use num_bigint::BigUint;
use std::collections::{HashMap, HashSet};

/// The translated types of a program.
pub(super) struct Names<'p>(HashMap<&'p str, Kind<'p>>);

/// A translated type.
struct Kind<'p> {
    is_text: bool,
    /// Names that the program gives numbers.
    mapped: HashMap<&'p BigUint, Vec<u8>>,
    taken: HashSet<Vec<u8>>,
}

impl<'p> Names<'p> {
    pub fn new(program: &'p Program) -> Names<'p> {
        let kind = |new: &'p NewType| {
            let (_, width) = new.translation.as_ref()?;
            let mapped: HashMap<&BigUint, Vec<u8>> =
                new.mappings.iter().map(|(name, number)| (number, name.bytes())).collect();
            let taken = mapped.values().cloned().collect();
            Some((new.name.as_str(), Kind { is_text: width.is_none(), mapped, taken }))
        };
        Names(program.new_types.iter().filter_map(kind).collect())
    }

    /// The name of a value: what the program maps to it, or else the number itself.
    pub fn shown(&self, type_name: Option<&str>, number: &BigUint) -> Vec<u8> {
        let Some(kind) = type_name.and_then(|name| self.0.get(name)) else { return number.to_bytes_be() };
        if let Some(name) = kind.mapped.get(number) {
            return name.clone();
        }
        if !kind.is_text {
            return number.to_bytes_be();
        }
        let own = number.to_string().into_bytes();
        // That string may name another number.
        if kind.taken.contains(&own) { format!("{number:#x}").into_bytes() } else { own }
    }
}
