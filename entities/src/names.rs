//! Controllers' names for the values of translated types.
//!
//! A type with `@p4runtime_translation` has values of its own for controllers: strings, or numbers with more bits than the
//! data plane's. Each such type has a one-to-one mapping:
//!
//! - Mappings in the program (`@p4runtime_translation_mappings`) are fixed.
//! - A number, as a decimal string or as a number that fits, names itself if that number is free.
//! - Any other value takes the highest free number, all ones last, and gives it back with the last entry that uses it.
//!   Programs compare with small constants, so these are taken last.
//! - Ports are numbers or mapped by the program: no other value would be a port that exists.

use super::value::number;
use super::{Checked, refuse};
use num_bigint::BigUint;
use p4rack_p4::ir::{NewType, Program, REPLICA_PORT, Referent, Referrer};
use p4rack_p4rt::bytes;
use p4rack_p4rt::google::rpc::Code;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum values of a type that have names.
const LIMIT: usize = 65_536;
/// Maximum bytes of a name.
const MAX_NAME: usize = 256;
/// Width of a port number.
pub(crate) const PORT_BITS: u32 = 9;

/// The translated types of a program.
#[derive(Debug, Default)]
pub(crate) struct Names {
    kinds: HashMap<String, Arc<Kind>>,
    ports: Option<Arc<Kind>>,
}

/// A translated type.
#[derive(Debug)]
pub(crate) struct Kind {
    name: String,
    /// Bits in the data plane.
    width: u32,
    /// Bits for controllers; `None`: strings.
    sdn_width: Option<u32>,
    is_port: bool,
    mapping: Mutex<Mapping>,
}

#[derive(Debug, Default)]
struct Mapping {
    numbers: HashMap<Vec<u8>, BigUint>,
    names: HashMap<BigUint, Named>,
    /// The number to try next.
    next: BigUint,
}

#[derive(Debug)]
struct Named {
    name: Vec<u8>,
    /// Entries and requests under way; `None`: it is fixed.
    uses: Option<u64>,
}

/// A use of a name, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    kind: Arc<Kind>,
    number: BigUint,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.kind.release(&self.number);
    }
}

/// Treatment of an unknown name.
pub(crate) enum Look<'a> {
    /// Say that there is nothing of that name.
    Find,
    /// Give it a number, used until the end of the request.
    Take(&'a mut Vec<Held>),
}

impl Names {
    /// The translated types of a program. Numbers in the program's own entries name themselves.
    pub fn new(program: &Program) -> Names {
        let port = port_type(program);
        let needs = |new: &&NewType| match &new.translation {
            Some((_, None)) => true,
            Some((_, Some(width))) => *width > new.ty.width() || !new.mappings.is_empty(),
            None => false,
        };
        let kind = |new: &NewType| {
            let is_port = port.as_ref() == Some(&new.name);
            (new.name.clone(), Arc::new(Kind::new(new, is_port)))
        };
        let kinds: HashMap<_, _> = program.new_types.iter().filter(needs).map(kind).collect();
        let ports = port.and_then(|port| kinds.get(&port).cloned());
        Names { kinds, ports }
    }

    /// The names of a type, if it is translated.
    #[inline]
    pub fn of(&self, type_name: Option<&str>) -> Option<&Arc<Kind>> {
        type_name.and_then(|name| self.kinds.get(name))
    }

    /// A type that is translated to strings.
    pub fn text_type(&self) -> Option<&str> {
        self.kinds.values().filter(|kind| kind.is_text()).map(|kind| &*kind.name).min()
    }

    /// The number of a port.
    pub fn port(&self, what: impl Display, value: &[u8]) -> Checked<u16> {
        let number = match &self.ports {
            Some(ports) => ports.number(&what, value, &mut Look::Find)?,
            None => number(what, value, PORT_BITS)?,
        };
        Ok(number.iter_u32_digits().next().and_then(|port| u16::try_from(port).ok()).unwrap_or(0))
    }

    /// Controllers' name of a port.
    pub fn shown_port(&self, port: u16) -> Vec<u8> {
        match &self.ports {
            Some(ports) => ports.shown(&port.into()),
            None => bytes::canonical(&port.to_be_bytes()),
        }
    }
}

/// The type of ports: of the key that replicas' ports are looked up in, or of a field of a controller header.
fn port_type(program: &Program) -> Option<String> {
    let translated = |name: &String| {
        let mut types = program.new_types.iter().filter(|new| new.name == *name);
        types.any(|new| new.translation.is_some() && new.ty.width() == PORT_BITS)
    };
    let of_replicas =
        program.rules.references.iter().find_map(|reference| match (reference.from, reference.to) {
            (Referrer::Replicas, Referent::Table(table)) => {
                let (_, at) = reference.fields.iter().find(|(from, _)| *from == REPLICA_PORT)?;
                let keys = &program.tables.get(table.0 as usize)?.keys;
                keys.get(*at)?.type_name.clone().filter(translated)
            }
            _ => None,
        });
    let mut fields = program.controller_headers.iter().flat_map(|header| &header.fields);
    of_replicas.or_else(|| fields.find_map(|(_, _, name)| name.clone().filter(translated)))
}

impl Kind {
    fn new(new: &NewType, is_port: bool) -> Kind {
        let width = new.ty.width();
        let next = highest(width);
        let mut mapping = Mapping { next, ..Mapping::default() };
        for (value, number) in &new.mappings {
            mapping.enter(value.bytes(), number.clone(), None);
        }
        let sdn_width = new.translation.as_ref().and_then(|(_, width)| *width);
        Kind { name: new.name.clone(), width, sdn_width, is_port, mapping: Mutex::new(mapping) }
    }

    fn mapping(&self) -> MutexGuard<'_, Mapping> {
        // No critical section can panic in the middle of a change.
        self.mapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether controllers use strings.
    pub fn is_text(&self) -> bool {
        self.sdn_width.is_none()
    }

    /// The number of a controller's value. Errors: it is none, or unknown, or all numbers are taken.
    pub fn number(
        self: &Arc<Kind>,
        what: impl Display,
        value: &[u8],
        look: &mut Look<'_>,
    ) -> Checked<BigUint> {
        let name = self.checked(&what, value)?;
        let mut mapping = self.mapping();
        if let Some(number) = mapping.numbers.get(&name).cloned() {
            if let Look::Take(held) = look {
                mapping.keep(&number);
                held.push(Held { kind: self.clone(), number: number.clone() });
            }
            return Ok(number);
        }
        if name.is_empty() {
            return refuse(Code::InvalidArgument, format!("{what}: an empty string is no `{}`", self.name));
        }
        let own = self.own_number(&name).filter(|number| !mapping.names.contains_key(number));
        let number = match (own, &look) {
            (Some(own), _) => own,
            (None, _) if self.is_port => {
                let message = format!(
                    "{what}: {} is no port of type `{}`: give a port's number, or a name that \
                     @p4runtime_translation_mappings maps to one",
                    self.quoted(&name),
                    self.name
                );
                return refuse(Code::InvalidArgument, message);
            }
            (None, Look::Find) => {
                let message = format!("{what}: there is no `{}` {}", self.name, self.quoted(&name));
                return refuse(Code::NotFound, message);
            }
            (None, Look::Take(_)) => match mapping.free(self.width) {
                Some(number) => number,
                None => return self.exhausted(what, mapping.names.len()),
            },
        };
        if let Look::Take(held) = look {
            if mapping.names.len() >= LIMIT {
                return self.exhausted(what, mapping.names.len());
            }
            mapping.enter(name, number.clone(), Some(1));
            held.push(Held { kind: self.clone(), number: number.clone() });
        }
        Ok(number)
    }

    fn exhausted<T>(&self, what: impl Display, count: usize) -> Checked<T> {
        let message = format!(
            "{what}: no more values of `{}`, which has {} bits in the data plane: {count} are in use; delete entries \
             that use some",
            self.name, self.width
        );
        refuse(Code::ResourceExhausted, message)
    }

    /// A value in the form in which it is stored.
    fn checked(&self, what: impl Display, value: &[u8]) -> Checked<Vec<u8>> {
        match self.sdn_width {
            None if value.len() > MAX_NAME => {
                let message =
                    format!("{what}: a string of {} bytes, over the limit of {MAX_NAME}", value.len());
                refuse(Code::InvalidArgument, message)
            }
            None if std::str::from_utf8(value).is_err() => {
                refuse(Code::InvalidArgument, format!("{what}: the string is not UTF-8"))
            }
            None => Ok(value.to_vec()),
            Some(width) => bytes::check(value, width).or_else(|error| {
                let message = format!("{what}: {error}: `{}` is translated to {width} bits", self.name);
                refuse(Code::OutOfRange, message)
            }),
        }
    }

    /// The number that a value names if that number is free.
    fn own_number(&self, name: &[u8]) -> Option<BigUint> {
        let number = match self.sdn_width {
            Some(_) => BigUint::from_bytes_be(name),
            None => {
                let is_decimal = name.len() <= 80
                    && name.iter().all(u8::is_ascii_digit)
                    && (name.len() == 1 || !name.starts_with(b"0"));
                BigUint::parse_bytes(name, 10).filter(|_| is_decimal)?
            }
        };
        (number.bits() <= u64::from(self.width)).then_some(number)
    }

    fn quoted(&self, name: &[u8]) -> String {
        match self.sdn_width {
            None => format!("\"{}\"", String::from_utf8_lossy(name).escape_debug()),
            Some(_) => bytes::number(name),
        }
    }

    /// Controllers' name of a number.
    pub fn shown(&self, number: &BigUint) -> Vec<u8> {
        let mapping = self.mapping();
        if let Some(named) = mapping.names.get(number) {
            return named.name.clone();
        }
        let own = self.own_name(number);
        match mapping.numbers.contains_key(&own) && self.is_text() {
            // That string names another number.
            true => format!("{number:#x}").into_bytes(),
            false => own,
        }
    }

    fn own_name(&self, number: &BigUint) -> Vec<u8> {
        if self.is_text() { number.to_string().into_bytes() } else { number.to_bytes_be() }
    }

    /// Begins a use of a number. A number without a name takes its own, if no other has it; else there is nothing to
    /// hold.
    pub fn hold(self: &Arc<Kind>, number: &BigUint) -> Option<Held> {
        self.keep(number).then(|| Held { kind: self.clone(), number: number.clone() })
    }

    /// Counts a use. Returns whether the number has a name.
    pub fn keep(&self, number: &BigUint) -> bool {
        let mut mapping = self.mapping();
        if mapping.keep(number) {
            return true;
        }
        let own = self.own_name(number);
        if mapping.numbers.contains_key(&own) {
            return false;
        }
        mapping.enter(own, number.clone(), Some(1));
        true
    }

    /// Ends a use. A name that is no longer used is forgotten.
    pub fn release(&self, number: &BigUint) {
        let mut mapping = self.mapping();
        let Some(named) = mapping.names.get_mut(number) else { return };
        let Some(uses) = &mut named.uses else { return };
        *uses = uses.saturating_sub(1);
        if *uses == 0
            && let Some(named) = mapping.names.remove(number)
        {
            mapping.numbers.remove(&named.name);
        }
    }
}

impl Mapping {
    fn enter(&mut self, name: Vec<u8>, number: BigUint, uses: Option<u64>) {
        self.numbers.insert(name.clone(), number.clone());
        self.names.insert(number, Named { name, uses });
    }

    /// Counts a use of a number that has a name.
    fn keep(&mut self, number: &BigUint) -> bool {
        let Some(named) = self.names.get_mut(number) else { return false };
        named.uses = named.uses.map(|uses| uses.saturating_add(1));
        true
    }

    /// The next number without a name, downwards; all ones are the last one.
    fn free(&mut self, width: u32) -> Option<BigUint> {
        // One of these numbers is free, unless all of them have names.
        for _ in 0..=self.names.len() {
            let number = self.next.clone();
            self.next = match number == BigUint::ZERO {
                true => (BigUint::from(1u8) << width) - 1u8,
                false => &number - 1u8,
            };
            if !self.names.contains_key(&number) {
                return Some(number);
            }
        }
        None
    }
}

/// The number below all ones.
fn highest(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - BigUint::from(if width > 1 { 2u8 } else { 1 })
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests;
