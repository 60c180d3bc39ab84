//! Bits that expressions and statements read and write.

use super::view::View;
use crate::ir::{Expr, HeaderId, HeaderRef, LValue, VarId};
use std::collections::BTreeMap;

/// Some bits of a variable, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bits {
    pub var: VarId,
    pub lo: u32,
    pub hi: u32,
}

impl Bits {
    pub fn overlaps(self, other: Bits) -> bool {
        self.var == other.var && self.lo <= other.hi && other.lo <= self.hi
    }

    /// Whether these are at least the others.
    pub fn cover(self, other: Bits) -> bool {
        self.var == other.var && self.lo <= other.lo && self.hi >= other.hi
    }
}

/// Copies known at an expression's place: the variable has the same value as these bits.
pub(super) type Copies = BTreeMap<VarId, Vec<Bits>>;

/// All bits of a variable.
pub(super) fn whole(program: &View<'_>, var: VarId) -> Bits {
    let width = program.vars[var.0 as usize].ty.width();
    Bits { var: program.same(var), lo: 0, hi: width.saturating_sub(1) }
}

/// Headers that a reference may select.
fn headers(program: &View<'_>, header: &HeaderRef) -> Vec<HeaderId> {
    match header {
        HeaderRef::Fixed(header) => vec![*header],
        HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
            program.stacks[stack.0 as usize].elements.clone()
        }
    }
}

/// Bits read to find the header.
fn find(program: &View<'_>, header: &HeaderRef, copies: &Copies, out: &mut Vec<Bits>) {
    match header {
        HeaderRef::Fixed(_) => {}
        HeaderRef::Next(stack) | HeaderRef::Last(stack) => {
            out.push(whole(program, program.stacks[stack.0 as usize].next));
        }
        HeaderRef::Index(_, index) => read(program, index, copies, out),
    }
}

/// All bits of a header, its validity included.
pub(super) fn header_bits(program: &View<'_>, header: &HeaderRef, out: &mut Vec<Bits>) {
    for header in headers(program, header) {
        let header = &program.headers[header.0 as usize];
        out.push(whole(program, header.valid));
        out.extend(header.fields.iter().map(|field| whole(program, field.var)));
    }
}

/// The validity of a header.
pub(super) fn validity_bits(program: &View<'_>, header: &HeaderRef, out: &mut Vec<Bits>) {
    let valid = |header: HeaderId| program.headers[header.0 as usize].valid;
    out.extend(headers(program, header).into_iter().map(|header| whole(program, valid(header))));
}

fn field_bits(program: &View<'_>, header: &HeaderRef, field: u32, out: &mut Vec<Bits>) {
    let var = |header: HeaderId| program.headers[header.0 as usize].fields[field as usize].var;
    out.extend(headers(program, header).into_iter().map(|header| whole(program, var(header))));
}

/// Bits that an expression reads.
pub(super) fn read(program: &View<'_>, expr: &Expr, copies: &Copies, out: &mut Vec<Bits>) {
    match expr {
        Expr::Var(var) => match copies.get(&program.same(*var)) {
            Some(source) => out.extend(source),
            None => out.push(whole(program, *var)),
        },
        Expr::Field { header, field, .. } => {
            find(program, header, copies, out);
            field_bits(program, header, *field, out);
        }
        Expr::Valid(header) => {
            find(program, header, copies, out);
            validity_bits(program, header, out);
        }
        Expr::Unary { expr, .. } => read(program, expr, copies, out),
        Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
            read(program, left, copies, out);
            read(program, right, copies, out);
        }
        Expr::Ternary { cond, then, otherwise, .. } => {
            for part in [cond, then, otherwise] {
                read(program, part, copies, out);
            }
        }
        Expr::Cast { expr, to, .. } => part(program, expr, 0, to.width().saturating_sub(1), copies, out),
        Expr::Slice { expr, hi, lo, .. } => part(program, expr, *lo, *hi, copies, out),
        Expr::Const { .. } | Expr::Lookahead { .. } | Expr::PacketLength | Expr::DropPort => {}
    }
}

/// Bits that some bits of an expression read.
fn part(program: &View<'_>, expr: &Expr, lo: u32, hi: u32, copies: &Copies, out: &mut Vec<Bits>) {
    let from = out.len();
    read(program, expr, copies, out);
    if let (Expr::Var(_), [bits]) = (expr, &mut out[from..]) {
        let shifted = Bits { var: bits.var, lo: bits.lo + lo, hi: (bits.lo + hi).min(bits.hi) };
        if shifted.lo <= shifted.hi {
            *bits = shifted;
        }
    }
}

/// Bits that a store writes, and bits read to find its place.
pub(super) fn write(
    program: &View<'_>,
    target: &LValue,
    copies: &Copies,
    reads: &mut Vec<Bits>,
    out: &mut Vec<Bits>,
) {
    match target {
        LValue::Var(var) => out.push(whole(program, *var)),
        LValue::Field { header, field } => {
            find(program, header, copies, reads);
            field_bits(program, header, *field, out);
        }
        LValue::Slice { base, hi, lo } => {
            let from = out.len();
            write(program, base, copies, reads, out);
            for bits in &mut out[from..] {
                *bits = Bits { var: bits.var, lo: bits.lo + lo, hi: (bits.lo + hi).min(bits.hi) };
            }
        }
    }
}
