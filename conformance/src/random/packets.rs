//! A packet that follows the program's parser: draws a path through its states and sets the bits that
//! `select` reads so that it is taken.

use super::{PORTS, Packet, Values};
use num_bigint::BigUint;
use p4rack_p4::ir::{
    BinOp, Expr, HeaderId, HeaderRef, LValue, Matcher, Next, NextState, Program, StackId, StateId, Stmt, Ty,
    VarId,
};
use std::collections::HashMap;

/// Maximum bytes of headers.
const HEADER_BYTES: usize = 512;
/// Maximum bytes of payload.
const PAYLOAD_BYTES: u64 = 64;
/// Maximum states of a path.
const STATES: usize = 64;

pub(super) fn packet(program: &Program, values: &mut Values) -> Packet {
    let port = values.rng.below(PORTS) as u16;
    let mut walk = Walk {
        program,
        bits: (0..HEADER_BYTES * 8).map(|_| values.rng.one_in(2)).collect(),
        set: vec![false; HEADER_BYTES * 8],
        at: 0,
        places: HashMap::new(),
        computed: HashMap::new(),
        extracted: HashMap::new(),
        values,
    };
    walk.run();
    let (end, bits) = (walk.at, walk.bits);
    let headers = bits.chunks(8).take(end.div_ceil(8));
    let mut frame: Vec<u8> =
        headers.map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect();
    let payload = values.rng.below(PAYLOAD_BYTES);
    frame.extend((0..payload).map(|_| values.rng.0.next() as u8));
    if values.rng.one_in(10) {
        frame.truncate(values.rng.below(frame.len() as u64 + 1) as usize);
    }
    if frame.is_empty() {
        frame.push(values.rng.0.next() as u8);
    }
    Packet { port, frame }
}

/// A range of bits in the packet: first bit and count.
type BitRange = (usize, u32);

struct Walk<'a> {
    program: &'a Program,
    values: &'a mut Values,
    bits: Vec<bool>,
    /// Bits that a choice has fixed.
    set: Vec<bool>,
    at: usize,
    /// Position of each variable's value in the packet.
    places: HashMap<VarId, BitRange>,
    /// Sources of computed variables, and their bit of the packet.
    computed: HashMap<VarId, (Expr, usize)>,
    /// Number of elements extracted from each stack.
    extracted: HashMap<StackId, usize>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let Some(parser) = self.program.parser() else { return };
        let mut state = StateId(0);
        for _ in 0..STATES {
            let Some(here) = parser.states.get(state.0 as usize) else { return };
            for stmt in &here.stmts {
                if self.step(stmt).is_none() {
                    return;
                }
            }
            let target = match &here.next {
                Next::Accept | Next::Reject => return,
                Next::Goto(next) => NextState::State(*next),
                Next::Select { keys, cases } => {
                    let Some(chosen) = cases.get(self.values.rng.below(cases.len() as u64) as usize) else {
                        return;
                    };
                    for ((key, _), matcher) in keys.iter().zip(&chosen.0) {
                        self.fit(key, matcher);
                    }
                    chosen.1
                }
            };
            match target {
                NextState::State(next) => state = next,
                NextState::Accept | NextState::Reject => return,
            }
        }
    }

    /// Follows a statement. `None` ends the path: no room, or something that is not known.
    fn step(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Extract { header, varbit_bits } => {
                let header = match header {
                    HeaderRef::Next(stack) => {
                        let count = self.extracted.entry(*stack).or_default();
                        *count += 1;
                        *self.program.stacks[stack.0 as usize].elements.get(*count - 1)?
                    }
                    other => self.header(other)?,
                };
                let varbit = match varbit_bits {
                    Some(bits) => self.known(bits)?,
                    None => 0,
                };
                self.extract(header, u32::try_from(varbit).ok()?)
            }
            Stmt::Advance(bits) => {
                let bits = self.known(bits)?;
                self.at = self.at.checked_add(usize::try_from(bits).ok()?)?;
                (self.at <= self.bits.len()).then_some(())
            }
            Stmt::Assign { target: LValue::Var(var), value, .. } => {
                match self.place(value) {
                    Some(place) => drop(self.places.insert(*var, place)),
                    None => {
                        self.places.remove(var);
                        self.computed.insert(*var, (value.clone(), self.at));
                    }
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn header(&self, header: &HeaderRef) -> Option<HeaderId> {
        match header {
            HeaderRef::Fixed(header) => Some(*header),
            HeaderRef::Last(stack) => {
                let last = self.extracted.get(stack)?.checked_sub(1)?;
                self.program.stacks[stack.0 as usize].elements.get(last).copied()
            }
            HeaderRef::Next(_) | HeaderRef::Index(..) => None,
        }
    }

    fn extract(&mut self, header: HeaderId, varbit: u32) -> Option<()> {
        for field in &self.program.headers[header.0 as usize].fields {
            let width = match self.program.vars[field.var.0 as usize].ty {
                Ty::Varbit(most) => varbit.min(most),
                ty => ty.width(),
            };
            let place = (self.at, width);
            if self.at + width as usize > self.bits.len() {
                return None;
            }
            let value = self.values.value(width);
            self.write(place, &value, None);
            self.places.insert(field.var, place);
            self.at += width as usize;
        }
        Some(())
    }

    /// Writes a value to bits that no choice has fixed. Bits outside the mask stay.
    fn write(&mut self, (first, width): BitRange, value: &BigUint, mask: Option<&BigUint>) {
        for at in 0..width as usize {
            let bit = (width as usize - 1 - at) as u64;
            if !self.set[first + at] && mask.is_none_or(|mask| mask.bit(bit)) {
                self.bits[first + at] = value.bit(bit);
            }
        }
    }

    /// Makes a key match, as far as the packet contains it.
    fn fit(&mut self, key: &Expr, matcher: &Matcher) {
        let Some(place) = self.place(key) else { return };
        if place.0 + place.1 as usize > self.bits.len() {
            return;
        }
        let whole = super::max(place.1);
        let (value, mask) = match matcher {
            Matcher::Any | Matcher::ValueSet(_) => return,
            Matcher::Exact(value) => (value.clone(), whole),
            Matcher::Mask { value, mask } => (value.clone(), mask.clone()),
            Matcher::Range { lo, hi } => {
                let inside = [lo.clone(), hi.clone(), (lo + hi) >> 1u8];
                (inside[self.values.rng.below(3) as usize].clone(), whole)
            }
        };
        self.write(place, &value, Some(&mask));
        for at in 0..place.1 as usize {
            self.set[place.0 + at] |= mask.bit((place.1 as usize - 1 - at) as u64);
        }
    }

    /// Position of an expression's value in the packet.
    fn place(&self, expr: &Expr) -> Option<BitRange> {
        match expr {
            Expr::Var(var) => self.places.get(var).copied(),
            Expr::Field { header, field, .. } => {
                let header = self.header(header)?;
                let field = self.program.headers[header.0 as usize].fields.get(*field as usize)?;
                self.places.get(&field.var).copied()
            }
            Expr::Lookahead { offset, ty, .. } => Some((self.at + *offset as usize, ty.width())),
            Expr::Cast { expr, to, .. } => {
                let (first, width) = self.place(expr)?;
                let kept = width.min(to.width());
                Some((first + (width - kept) as usize, kept))
            }
            Expr::Slice { expr, hi, lo, .. } => {
                let (first, width) = self.place(expr)?;
                (*hi < width).then(|| (first + (width - 1 - hi) as usize, hi - lo + 1))
            }
            _ => None,
        }
    }

    /// The value of an expression that is known here. Fixes the bits it was read from.
    fn known(&mut self, expr: &Expr) -> Option<u64> {
        let wrap =
            |value: u64, ty: &Ty| if ty.width() < 64 { value & ((1 << ty.width()) - 1) } else { value };
        match expr {
            Expr::Const { value, .. } => u64::try_from(value).ok(),
            Expr::Cast { expr, to, .. } => self.known(expr).map(|value| wrap(value, to)),
            Expr::Binary { op, left, right, ty } => {
                let (left, right) = (self.known(left)?, self.known(right)?);
                let value = match op {
                    BinOp::Add => left.wrapping_add(right),
                    BinOp::Sub => left.wrapping_sub(right),
                    BinOp::Mul => left.wrapping_mul(right),
                    BinOp::Shl => left.checked_shl(u32::try_from(right).ok()?)?,
                    BinOp::Shr => left.checked_shr(u32::try_from(right).ok()?)?,
                    BinOp::BitAnd => left & right,
                    _ => return None,
                };
                Some(wrap(value, ty))
            }
            Expr::Var(var) if !self.places.contains_key(var) => {
                // Without its own entry, a value that names itself is unknown.
                let (value, at) = self.computed.remove(var)?;
                let here = std::mem::replace(&mut self.at, at);
                let known = self.known(&value);
                self.at = here;
                self.computed.insert(*var, (value, at));
                known
            }
            other => {
                let (first, width) = self.place(other)?;
                let places = first..first + width as usize;
                self.set.get_mut(places.clone())?.fill(true);
                let bits = self.bits.get(places)?;
                (width <= 64).then(|| bits.iter().fold(0, |value, bit| value << 1 | u64::from(*bit)))
            }
        }
    }
}
