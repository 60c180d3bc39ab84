//! The form in which people see values of a program in refusals and traces: the same as in reads over P4Runtime.

use crate::ir::{ActionParam, Key, MatchKind, Matcher, Program, Ty};
use crate::p4info::{annotations, field_match};
use num_bigint::BigUint;
use p4rack_p4rt::p4::config::v1::P4NamedType;
use p4rack_p4rt::values::{Description, show_key};

pub use p4rack_p4rt::values::Format;

/// The format of a key's values.
pub fn key(program: &Program, key: &Key) -> Format {
    let shown = annotations(&key.named.annotations, &[]);
    Format::of(Description {
        name: &key.named.name,
        bitwidth: bits(key.ty),
        annotations: &shown.plain,
        type_name: named_type(program, key.type_name.as_deref()).as_ref(),
        is_prefix: key.kind == MatchKind::Lpm,
    })
}

/// The format of an argument.
pub fn param(program: &Program, param: &ActionParam) -> Format {
    let shown = annotations(&param.named.annotations, &[]);
    Format::of(Description {
        name: &param.named.name,
        bitwidth: bits(param.ty),
        annotations: &shown.plain,
        type_name: named_type(program, param.type_name.as_deref()).as_ref(),
        is_prefix: false,
    })
}

/// The format of a variable or of a field of a header.
pub fn variable(name: &str, ty: Ty) -> Format {
    Format::of(Description { name, bitwidth: bits(ty), ..Description::default() })
}

/// A number as text.
pub fn number(format: Format, value: &BigUint) -> String {
    format.show(&value.to_bytes_be())
}

/// What an entry has for a key, as text. `width` is the key's, in bits.
pub fn matcher(format: Format, (kind, width): (MatchKind, u32), matcher: &Matcher) -> String {
    let key = field_match(kind, width, matcher, BigUint::to_bytes_be);
    show_key(key.as_ref(), format, width as i32)
}

/// A width of 0 would be a string, which the data plane does not have.
fn bits(ty: Ty) -> i32 {
    ty.width().max(1) as i32
}

/// The name of a type that the program made with `type`.
fn named_type(program: &Program, name: Option<&str>) -> Option<P4NamedType> {
    let new = program.new_types.iter().find(|new| Some(new.name.as_str()) == name)?;
    Some(P4NamedType { name: new.name.clone() })
}
