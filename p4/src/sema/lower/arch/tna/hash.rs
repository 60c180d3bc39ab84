//! Hashes: their algorithms, also those that a program defines by a polynomial.

use crate::ast::Span;
use crate::ir::{BinOp, Crc, Expr, ExternCall, HashAlgorithm, InstanceId, InstanceKind, Ty};
use crate::sema::lower::{Lower, Made, Object, Val, concatenated};
use crate::sema::tree::TCall;
use crate::sema::types::Type;
use num_traits::ToPrimitive;
use std::cmp::Ordering;

const fn crc(width: u32, polynomial: u64) -> HashAlgorithm {
    HashAlgorithm::Crc(Crc { width, polynomial, reflected: false, initial: 0, final_xor: 0 })
}

/// Castagnoli's CRC-32. The device's own random hash is not published; any fixed one that is none of the others
/// does.
const RANDOM: HashAlgorithm = HashAlgorithm::Crc(Crc {
    width: 32,
    polynomial: 0x1edc_6f41,
    reflected: true,
    initial: 0xffff_ffff,
    final_xor: 0xffff_ffff,
});

/// Member of `HashAlgorithm_t` for a polynomial of the program's own.
const CUSTOM: u64 = 9;

/// Which bits of the remainder become a result of another width than the polynomial's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The low ones; above the remainder, zeros.
    Low,
    /// The high ones, of a polynomial with `msb`.
    High,
    /// All, and again from the lowest on, of one that is `extended`.
    Repeated,
}

/// The algorithm of a hash object, and which bits it gives to a result of this width.
pub(super) fn algorithm(
    lower: &mut Lower<'_>,
    object: &Object,
    result_bits: u32,
) -> Option<(HashAlgorithm, Taken)> {
    let member = lower.at_object(object, |l| l.ctor_number(&object.inst, 0));
    let known = match member {
        0 => HashAlgorithm::Identity,
        1 => RANDOM,
        2 => HashAlgorithm::Xor8,
        3 => HashAlgorithm::Xor16,
        4 => HashAlgorithm::Xor32,
        5 => crc(8, 0x07),
        6 => HashAlgorithm::Crc16,
        7 => HashAlgorithm::Crc32,
        8 => crc(64, 0x42f0_e1eb_a9ea_3693),
        CUSTOM => return polynomial(lower, object, result_bits),
        _ => return None,
    };
    Some((known, Taken::Low))
}

/// `(coefficients, reversed, only high bits, extended, initial, exclusive or)`
fn polynomial(lower: &mut Lower<'_>, object: &Object, result_bits: u32) -> Option<(HashAlgorithm, Taken)> {
    let Some(given) = lower.at_object(object, |l| l.object_arg(&object.inst, 1)) else {
        lower.error(object.inst.span, "a custom hash needs a polynomial: give it a `CRCPolynomial`");
        return None;
    };
    let width = lower.type_arg(&given.ext, 0)?.scalar()?.width();
    let numbers = lower.at_object(&given, |l| [0, 1, 2, 3, 4, 5].map(|at| l.ctor_number(&given.inst, at)));
    let [polynomial, reflected, high, extended, initial, final_xor] = numbers;
    let name = &given.inst.name;
    if !(8..=64).contains(&width) {
        let what = format!("`{name}`: a polynomial of {width} bits, which is not between 8 and 64,");
        lower.unsupported(given.inst.span, what);
        return None;
    }
    let taken = match result_bits.cmp(&width) {
        Ordering::Less if high != 0 => Taken::High,
        Ordering::Greater if extended != 0 => Taken::Repeated,
        _ => Taken::Low,
    };
    let reflected = reflected != 0;
    Some((HashAlgorithm::Crc(Crc { width, polynomial, reflected, initial, final_xor }), taken))
}

/// Bits of a remainder as a result.
fn taken_bits(lower: &Lower<'_>, remainder: Expr, width: u32, taken: Taken, result: Ty) -> Option<Expr> {
    let from = Ty::Bit(width);
    Some(match taken {
        Taken::Low => lower.cast(remainder, from, result),
        Taken::High => {
            let (hi, lo) = (width - 1, width - result.width());
            let bits = Expr::Slice { expr: Box::new(remainder), from, hi, lo };
            lower.cast(bits, Ty::Bit(result.width()), result)
        }
        Taken::Repeated => {
            let times = result.width().div_ceil(width);
            let all = concatenated((0..times).map(|_| (remainder.clone(), from)).collect())?;
            lower.cast(all, Ty::Bit(times * width), result)
        }
    })
}

/// `get(data)`
pub(super) fn get(lower: &mut Lower<'_>, object: &Object, call: &TCall, at: Span) -> Option<Val> {
    let ty = lower.type_arg(&object.ext, 0)?;
    let result = ty.scalar()?;
    let (algorithm, taken) = algorithm(lower, object, result.width())?;
    let mut data = lower.data_arg(call, 0);
    make_symmetric(lower, object, algorithm, &mut data, at);
    if algorithm == HashAlgorithm::Identity {
        // The low bits of all data, first field highest.
        let width: u32 = data.iter().map(|(_, ty)| ty.width()).sum();
        let whole = concatenated(data)?;
        return Some(Val::Leaf(lower.cast(whole, Ty::Bit(width), result), result));
    }
    if let (HashAlgorithm::Crc(Crc { width, .. }), Taken::High | Taken::Repeated) = (algorithm, taken) {
        let (dst, dst_ty) = lower.out_leaf(None, &Type::Bit(width), at)?;
        let remainder = lower.read_target(&dst);
        lower.emit_extern(ExternCall::Hash { object: None, algorithm, dst, dst_ty, data, bounds: None });
        return Some(Val::Leaf(taken_bits(lower, remainder, width, taken, result)?, result));
    }
    let (dst, dst_ty) = lower.out_leaf(None, &ty, at)?;
    let value = lower.read_target(&dst);
    let instance = changeable(lower, object, (algorithm, result.width()), &data, at);
    lower.emit_extern(ExternCall::Hash { object: instance, algorithm, dst, dst_ty, data, bounds: None });
    Some(Val::Leaf(value, dst_ty))
}

/// The object with which the control plane may change a hash. There is none if its data are not plain fields with
/// different names, or if the program makes it symmetric. An object without fields can't be changed: its hash is taken
/// of other data elsewhere.
fn changeable(
    lower: &mut Lower<'_>,
    object: &Object,
    (algorithm, width): (HashAlgorithm, u32),
    data: &[(Expr, Ty)],
    at: Span,
) -> Option<InstanceId> {
    if width > 64 || object.inst.annos.rest.iter().any(|annotation| annotation.name == "symmetric") {
        return None;
    }
    let fields = plain_fields(lower, data);
    let is_plain = !fields.is_empty();
    let name = lower.name_of(object);
    let known = lower.prog.instances.iter_mut().enumerate().find(|(_, instance)| {
        instance.named.name == name && matches!(instance.kind, InstanceKind::Hash { .. })
    });
    if let Some((number, instance)) = known {
        if let InstanceKind::Hash { fields, at: first, .. } = &mut instance.kind
            && (*first != at || !is_plain)
        {
            fields.clear();
        }
        return is_plain.then_some(InstanceId(number as u32));
    }
    let taken = (width.max(1) - 1, 0);
    let kind = InstanceKind::Hash { algorithm, width, fields, taken, at };
    let made = lower.at_object(object, |lower| lower.add_instance(&object.inst, kind));
    lower.hide(&made);
    match made {
        Made::Instance(instance) => is_plain.then_some(instance),
        _ => None,
    }
}

/// Names of the hashed fields; none unless all are fields with different names.
fn plain_fields(lower: &Lower<'_>, data: &[(Expr, Ty)]) -> Vec<(String, Ty)> {
    let mut fields: Vec<(String, Ty)> = Vec::new();
    for (value, ty) in data {
        let var = if let Expr::Var(var) = value { lower.prog.vars.get(var.0 as usize) } else { None };
        let Some(var) = var else { return Vec::new() };
        if fields.iter().any(|(other, _)| *other == var.name) {
            return Vec::new();
        }
        fields.push((var.name.clone(), *ty));
    }
    fields
}

/// `@symmetric("a", "b")`: the result stays if a packet has these fields exchanged. As p4c does it, both go into the hash
/// at the place of the later one.
fn make_symmetric(
    lower: &mut Lower<'_>,
    object: &Object,
    algorithm: HashAlgorithm,
    data: &mut [(Expr, Ty)],
    at: Span,
) {
    let mut taken = Vec::new();
    for annotation in object.inst.annos.rest.iter().filter(|annotation| annotation.name == "symmetric") {
        let body = &annotation.body;
        if !matches!(algorithm, HashAlgorithm::Crc(_) | HashAlgorithm::Crc16 | HashAlgorithm::Crc32) {
            lower.error(at, format!("`@symmetric({body})`: the algorithm of its hash has to be a CRC"));
            continue;
        }
        let named: Vec<&str> = body.split(',').map(|name| name.trim().trim_matches('"')).collect();
        let places = named.iter().map(|name| data.iter().position(|(expr, _)| is_field(lower, expr, name)));
        let places: Option<Vec<usize>> = places.collect();
        match places.as_deref() {
            Some(&[a, b])
                if a != b && data[a].1 == data[b].1 && !taken.contains(&a) && !taken.contains(&b) =>
            {
                let (first, last) = (a.min(b), a.max(b));
                let ty = data[last].1;
                let zero = Expr::Const { value: 0u8.into(), ty };
                let left = Box::new(std::mem::replace(&mut data[first].0, zero));
                let right = Box::new(data[last].0.clone());
                data[last].0 = Expr::Binary { op: BinOp::BitXor, left, right, ty };
                taken.extend([a, b]);
            }
            _ => {
                let what = "name two fields of equal width of the data, each in one annotation";
                lower.error(at, format!("`@symmetric({body})`: {what}"));
            }
        }
    }
}

/// Whether a value is a field with this name, behind any parameter.
fn is_field(lower: &Lower<'_>, expr: &Expr, name: &str) -> bool {
    let inner = |name: &str| name.split_once('.').map(|(_, inner)| inner.to_owned());
    match expr {
        Expr::Var(var) => {
            let own = lower.prog.vars.get(var.0 as usize).map(|var| &var.name);
            own.is_some_and(|own| own == name || inner(own).is_some() && inner(own) == inner(name))
        }
        _ => false,
    }
}

/// `get()` of a random number.
pub(super) fn random(lower: &mut Lower<'_>, object: &Object, at: Span) -> Option<Val> {
    let ty = lower.type_arg(&object.ext, 0)?;
    let (dst, dst_ty) = lower.out_leaf(None, &ty, at)?;
    let value = lower.read_target(&dst);
    let width = dst_ty.width().min(64);
    let most = u64::MAX >> (64 - width.max(1)).to_u32()?;
    let bound = |value: u64| Expr::Const { value: value.into(), ty: Ty::Bit(width) };
    lower.emit_extern(ExternCall::Random { dst, dst_ty, lo: bound(0), hi: bound(most) });
    Some(Val::Leaf(value, dst_ty))
}
