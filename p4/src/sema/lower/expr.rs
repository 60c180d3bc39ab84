//! Lowers expressions.

use super::copy::not;
use super::storage::{Place, Val, binary, chosen, constant, zero};
use super::{Binding, Lower};
use crate::ast::{BinaryOp, Span, UnaryOp};
use crate::ir::{BinOp, Expr, HeaderRef, LValue, Stmt, Ty, UnOp};
use crate::sema::tree::{EKind, StackPart, TExpr};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::{self, Value};
use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// Maximum elements that one assignment through several indices may reach.
const MAX_ALTERNATIVES: usize = 1 << 12;

impl Lower<'_> {
    /// Lowers an expression with a scalar value.
    pub(super) fn scalar(&mut self, e: &TExpr) -> Expr {
        match self.expr(e) {
            Val::Leaf(e, _) => e,
            _ => zero(Ty::Bit(1)),
        }
    }

    /// Lowers expressions in order. Saves values that a later one could change.
    pub(crate) fn exprs(&mut self, list: &[&TExpr]) -> Vec<Val> {
        let mut done = Vec::new();
        for (i, e) in list.iter().enumerate() {
            let value = self.expr(e);
            let later = list.iter().skip(i + 1).any(|e| e.has_effects());
            done.push(if later { self.save(value, e.span) } else { value });
        }
        done
    }

    pub(crate) fn expr(&mut self, e: &TExpr) -> Val {
        let span = e.span;
        if let Some((held, place)) = &self.held
            && *held == span
        {
            return self.read(&place.clone());
        }
        match &e.kind {
            EKind::Bad | EKind::ValueSet | EKind::Range(..) => Val::Opaque,
            EKind::Const(v) => self.constant(v, &e.ty),
            EKind::Local(id) => match self.find(*id).cloned() {
                Some(Binding::Place(place)) => self.read(&place),
                Some(Binding::Const(value)) => {
                    let value = if value.ty == e.ty { value } else { TExpr { ty: e.ty.clone(), ..value } };
                    self.expr(&value)
                }
                Some(_) => Val::Opaque,
                None => match self.place(e) {
                    Some(place) => self.read(&place),
                    None => Val::Opaque,
                },
            },
            EKind::New(_) => {
                self.unsupported(span, "an instance created here");
                Val::Opaque
            }
            EKind::Field(base, index) => {
                let base = self.expr(base);
                let part = self.part(base, *index);
                self.without_mark(part)
            }
            EKind::StackPart(base, part) => {
                let (stacks, ty, union) = match self.expr(base) {
                    Val::Stack(stack, ty) => (vec![stack], ty, false),
                    Val::Unions(stacks, ty) => (stacks, ty, true),
                    _ => return Val::Opaque,
                };
                let Some(described) = stacks.first().map(|s| &self.prog.stacks[s.0 as usize]) else {
                    return Val::Opaque;
                };
                let (next, length) = (Expr::Var(described.next), described.elements.len());
                let number = Ty::Bit(32);
                if *part == StackPart::LastIndex {
                    return Val::Leaf(binary(BinOp::Sub, next, constant(1u8, number), number), number);
                }
                let at: Vec<HeaderRef> = if *part == StackPart::Next {
                    let cond = binary(BinOp::Lt, next.clone(), constant(length, number), number);
                    let error = constant(self.error_number("StackOutOfBounds"), number);
                    self.emit(Stmt::Verify { cond, error });
                    stacks.iter().map(|s| HeaderRef::Index(*s, Box::new(next.clone()))).collect()
                } else {
                    stacks.into_iter().map(HeaderRef::Last).collect()
                };
                if union {
                    return Val::Union(at, ty);
                }
                at.into_iter().next().map_or(Val::Opaque, |header| Val::Header(header, ty))
            }
            EKind::Index(base, index) => {
                let [base, index] = &self.exprs(&[base, index])[..] else { return Val::Opaque };
                let (base, Val::Leaf(index, index_ty)) = (base.clone(), index.clone()) else {
                    return Val::Opaque;
                };
                match base {
                    Val::Stack(stack, ty) => Val::Header(self.element(stack, index), ty),
                    Val::Unions(stacks, ty) => Val::Union(self.union_at(&stacks, &index), ty),
                    Val::Elements(mut parts) => match known_index(&index, parts.len()) {
                        Some(i) => parts.swap_remove(i),
                        None => {
                            // Used at every branch of the search, so computed once.
                            let Val::Leaf(index, _) = self.save(Val::Leaf(index, index_ty), span) else {
                                return Val::Opaque;
                            };
                            let value = chosen(&index, index_ty, &parts);
                            if matches!(value, Val::Opaque) {
                                self.unsupported(span, "a header chosen by an index of its struct");
                            }
                            value
                        }
                    },
                    _ => Val::Opaque,
                }
            }
            EKind::Slice(base, hi, lo) => match self.expr(base) {
                Val::Leaf(expr, from) => {
                    let ty = Ty::Bit(hi - lo + 1);
                    self.takes_of_hash(&expr, (*hi, *lo));
                    Val::Leaf(Expr::Slice { expr: Box::new(expr), from, hi: *hi, lo: *lo }, ty)
                }
                other => other,
            },
            EKind::Unary(op, inner) => self.unary(*op, inner, e),
            EKind::Binary(op, left, right) => self.binary(*op, left, right, e),
            EKind::Ternary(cond, then, otherwise) => self.ternary(cond, then, otherwise, e),
            EKind::Cast(inner) => {
                let from_ty = self.ty(&inner.ty);
                let to_ty = self.ty(&e.ty);
                if let Some(v) = self.value(e) {
                    return self.constant(&v, &to_ty);
                }
                let value = self.expr(inner);
                match (value, from_ty.scalar(), to_ty.scalar()) {
                    (Val::Leaf(expr, _), Some(from), Some(to)) => Val::Leaf(cast(expr, from, to), to),
                    (value, ..) => value,
                }
            }
            EKind::List(items) => {
                let refs: Vec<&TExpr> = items.iter().collect();
                let values = self.exprs(&refs);
                match self.ty(&e.ty) {
                    Type::Struct(s) if s.kind == StructKind::Header => Val::HeaderLit(Some(values), s),
                    Type::Stack(..) | Type::List(_) => Val::Elements(values),
                    _ => Val::Tuple(values),
                }
            }
            EKind::Invalid => match self.ty(&e.ty) {
                Type::Struct(s) if s.kind == StructKind::Header => Val::HeaderLit(None, s),
                _ => Val::InvalidUnion,
            },
            EKind::Default => {
                let ty = self.ty(&e.ty);
                self.default_val(&ty, span)
            }
            EKind::Call(call) => self.call(call, e),
            EKind::Hit(apply, hit) => {
                let name = self.temp_name("hit");
                let var = self.new_var(name, Ty::Bool);
                self.apply_table(apply, Some(var), None);
                let value = Expr::Var(var);
                Val::Leaf(if *hit { value } else { not(value) }, Ty::Bool)
            }
            EKind::ActionRun(apply) => {
                let name = self.temp_name("action_run");
                let var = self.new_var(name, Ty::Bit(32));
                self.apply_table(apply, None, Some(var));
                Val::Leaf(Expr::Var(var), Ty::Bit(32))
            }
        }
    }

    pub(super) fn constant(&mut self, v: &Value, ty: &Type) -> Val {
        let ty = self.ty(ty);
        match ty.scalar() {
            Some(scalar) => Val::Leaf(Expr::Const { value: v.bits(scalar.width()), ty: scalar }, scalar),
            // Shift amounts and the like.
            None => match v {
                Value::Int(i) => {
                    let value = i.to_biguint().unwrap_or_default().min(BigUint::from(u32::MAX));
                    Val::Leaf(Expr::Const { value, ty: Ty::Bit(32) }, Ty::Bit(32))
                }
                _ => Val::Opaque,
            },
        }
    }

    /// A declared part of a struct, tuple, header or union.
    pub(super) fn part(&mut self, base: Val, index: usize) -> Val {
        match base {
            Val::Tuple(mut parts) | Val::HeaderLit(Some(mut parts), _) if index < parts.len() => {
                parts.swap_remove(index)
            }
            Val::Header(h, ty) => {
                let place = self.header_field(&h, &ty, index);
                self.read(&place)
            }
            Val::HeaderLit(None, ty) => match ty.fields.get(index) {
                Some(field) => self.default_val(&field.ty.clone(), Default::default()),
                None => Val::Opaque,
            },
            Val::Union(members, ty) => match (members.get(index), ty.fields.get(index).map(|f| &f.ty)) {
                (Some(h), Some(Type::Struct(s))) => Val::Header(h.clone(), s.clone()),
                _ => Val::Opaque,
            },
            _ => Val::Opaque,
        }
    }

    pub(super) fn error_number(&self, name: &str) -> u32 {
        self.checked.errors.iter().position(|e| e == name).map_or(0, |i| i as u32)
    }

    fn unary(&mut self, op: UnaryOp, inner: &TExpr, e: &TExpr) -> Val {
        if let Some(v) = self.value(e) {
            return self.constant(&v, &e.ty);
        }
        let Val::Leaf(expr, ty) = self.expr(inner) else { return Val::Opaque };
        let op = match op {
            UnaryOp::Not => UnOp::Not,
            UnaryOp::BitNot => UnOp::BitNot,
            UnaryOp::Neg => UnOp::Neg,
            UnaryOp::Plus => return Val::Leaf(expr, ty),
        };
        Val::Leaf(Expr::Unary { op, expr: Box::new(expr), ty }, ty)
    }

    fn binary(&mut self, op: BinaryOp, left: &TExpr, right: &TExpr, e: &TExpr) -> Val {
        if let Some(v) = self.value(e) {
            return self.constant(&v, &e.ty);
        }
        if matches!(op, BinaryOp::And | BinaryOp::Or) && right.has_effects() {
            return self.short_circuit(op, left, right);
        }
        let mut sides = self.exprs(&[left, right]).into_iter();
        let (Some(a), Some(b)) = (sides.next(), sides.next()) else { return Val::Opaque };
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let equal = match (&a, &b) {
                (Val::Leaf(x, ty), Val::Leaf(y, _)) => {
                    let op = if op == BinaryOp::Eq { BinOp::Eq } else { BinOp::Ne };
                    return Val::Leaf(self.compared(op, x.clone(), y.clone(), *ty), Ty::Bool);
                }
                _ => self.equal(&a, &b),
            };
            return Val::Leaf(if op == BinaryOp::Eq { equal } else { not(equal) }, Ty::Bool);
        }
        let (Val::Leaf(a, left_ty), Val::Leaf(b, right_ty)) = (a, b) else { return Val::Opaque };
        let ir_op = match op {
            BinaryOp::Concat => {
                let (l, r) = (left_ty.width(), right_ty.width());
                let ty = if matches!(left_ty, Ty::Int(_)) { Ty::Int(l + r) } else { Ty::Bit(l + r) };
                let expr = Expr::Concat { left: Box::new(a), left_ty, right: Box::new(b), right_ty };
                return Val::Leaf(expr, ty);
            }
            BinaryOp::Mul => BinOp::Mul,
            BinaryOp::Div => BinOp::Div,
            BinaryOp::Mod => BinOp::Mod,
            BinaryOp::Add => BinOp::Add,
            BinaryOp::Sub => BinOp::Sub,
            BinaryOp::AddSat => BinOp::AddSat,
            BinaryOp::SubSat => BinOp::SubSat,
            BinaryOp::Shl => BinOp::Shl,
            BinaryOp::Shr => BinOp::Shr,
            BinaryOp::Le => BinOp::Le,
            BinaryOp::Ge => BinOp::Ge,
            BinaryOp::Lt => BinOp::Lt,
            BinaryOp::Gt => BinOp::Gt,
            BinaryOp::Ne => BinOp::Ne,
            BinaryOp::Eq => BinOp::Eq,
            BinaryOp::BitAnd => BinOp::BitAnd,
            BinaryOp::BitXor => BinOp::BitXor,
            BinaryOp::BitOr => BinOp::BitOr,
            BinaryOp::And => BinOp::And,
            BinaryOp::Or => BinOp::Or,
        };
        if matches!(op, BinaryOp::Le | BinaryOp::Ge | BinaryOp::Lt | BinaryOp::Gt) {
            return Val::Leaf(self.compared(ir_op, a, b, left_ty), Ty::Bool);
        }
        Val::Leaf(binary(ir_op, a, b, left_ty), left_ty)
    }

    /// `&&` and `||`: the right side is evaluated only if the left one does not decide.
    fn short_circuit(&mut self, op: BinaryOp, left: &TExpr, right: &TExpr) -> Val {
        let name = self.temp_name("t");
        let var = self.new_var(name, Ty::Bool);
        let first = self.scalar(left);
        self.emit(Stmt::Assign { target: LValue::Var(var), value: first, span: left.span });
        let second = self.collect(|l| {
            let value = l.scalar(right);
            l.emit(Stmt::Assign { target: LValue::Var(var), value, span: right.span });
        });
        let (then, otherwise) = if op == BinaryOp::And { (second, vec![]) } else { (vec![], second) };
        self.emit(Stmt::If { cond: Expr::Var(var), then, otherwise, span: left.span });
        Val::Leaf(Expr::Var(var), Ty::Bool)
    }

    fn ternary(&mut self, cond: &TExpr, then: &TExpr, otherwise: &TExpr, e: &TExpr) -> Val {
        let ty = self.ty(&e.ty);
        let test = self.scalar(cond);
        if let (Some(scalar), false, false) = (ty.scalar(), then.has_effects(), otherwise.has_effects()) {
            let (then, otherwise) = (self.scalar(then), self.scalar(otherwise));
            let expr = Expr::Ternary {
                cond: Box::new(test),
                ty: scalar,
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            };
            return Val::Leaf(expr, scalar);
        }
        let name = self.temp_name("t");
        let place = self.alloc(&ty, &name);
        let side = |l: &mut Self, e: &TExpr| {
            l.collect(|l| {
                let value = l.expr(e);
                l.assign(&place, value, e.span);
            })
        };
        let (then, otherwise) = (side(self, then), side(self, otherwise));
        self.emit(Stmt::If { cond: test, then, otherwise, span: cond.span });
        self.read(&place)
    }

    /// The storage of an lvalue. Evaluates indices once, here.
    pub(crate) fn place(&mut self, e: &TExpr) -> Option<Place> {
        match &e.kind {
            EKind::Local(id) => match self.find(*id).cloned() {
                Some(Binding::Place(place)) => Some(place),
                Some(_) => None,
                None => {
                    let ty = self.ty(&e.ty);
                    Some(self.declare(*id, &ty))
                }
            },
            EKind::Field(base, index) => {
                let base = self.place(base)?;
                self.field_of(base, *index)
            }
            EKind::StackPart(base, part) => match (self.place(base)?, part) {
                (Place::Stack(s, ty), StackPart::Next) => Some(Place::Header(HeaderRef::Next(s), ty)),
                (Place::Stack(s, ty), StackPart::Last) => Some(Place::Header(HeaderRef::Last(s), ty)),
                (Place::Unions(stacks, ty), StackPart::Next) => {
                    Some(Place::Union(stacks.into_iter().map(HeaderRef::Next).collect(), ty))
                }
                (Place::Unions(stacks, ty), StackPart::Last) => {
                    Some(Place::Union(stacks.into_iter().map(HeaderRef::Last).collect(), ty))
                }
                _ => None,
            },
            EKind::Index(base, index) => {
                let place = self.place(base)?;
                let value = self.expr(index);
                let Val::Leaf(i, ty) = self.save(value, index.span) else { return None };
                self.place_at(place, i, ty, e.span)
            }
            EKind::Slice(base, hi, lo) => slice_of(self.place(base)?, *hi, *lo),
            EKind::Cast(base) => self.place(base),
            _ => None,
        }
    }

    /// A field of a struct-like place.
    fn field_of(&self, base: Place, index: usize) -> Option<Place> {
        match base {
            Place::Tuple(mut parts) if index < parts.len() => Some(parts.swap_remove(index)),
            Place::Header(h, ty) => Some(self.header_field(&h, &ty, index)),
            Place::Union(members, ty) => {
                let Type::Struct(s) = &ty.fields.get(index)?.ty else { return None };
                Some(Place::Header(members.get(index)?.clone(), s.clone()))
            }
            Place::Choice(at, ty, options) => {
                let options = options.into_iter().map(|o| self.field_of(o, index)).collect::<Option<_>>()?;
                Some(Place::Choice(at, ty, options))
            }
            _ => None,
        }
    }

    /// An element of a stack or array.
    fn place_at(&mut self, place: Place, index: Expr, ty: Ty, span: Span) -> Option<Place> {
        match place {
            Place::Stack(s, header) => Some(Place::Header(self.element(s, index), header)),
            Place::Unions(stacks, union) => Some(Place::Union(self.union_at(&stacks, &index), union)),
            Place::Array(mut parts) => match known_index(&index, parts.len()) {
                Some(i) => Some(parts.swap_remove(i)),
                None => Some(Place::Choice(index, ty, parts)),
            },
            Place::Choice(at, at_ty, options) => {
                let mut chosen = Vec::new();
                let mut alternatives = 0;
                for option in options {
                    let part = self.place_at(option, index.clone(), ty, span)?;
                    alternatives += if let Place::Choice(_, _, inner) = &part { inner.len() } else { 1 };
                    chosen.push(part);
                }
                if alternatives > MAX_ALTERNATIVES {
                    let message = "more than one index known at run time only, and too many elements";
                    self.error(span, format!("{message}: {alternatives}, at most {MAX_ALTERNATIVES}"));
                    return None;
                }
                Some(Place::Choice(at, at_ty, chosen))
            }
            _ => None,
        }
    }

    /// The value of an expression that is constant once constructors have their arguments.
    pub(crate) fn value(&self, e: &TExpr) -> Option<Value> {
        match &e.kind {
            EKind::Const(v) => Some(v.clone()),
            EKind::Local(id) => match self.find(*id)? {
                Binding::Const(c) => self.value(c),
                _ => None,
            },
            EKind::Unary(op, inner) => value::unary(*op, &self.value(inner)?, &inner.ty),
            EKind::Binary(BinaryOp::Concat, a, b) => {
                let (Value::Int(x), Value::Int(y)) = (self.value(a)?, self.value(b)?) else { return None };
                let width = b.ty.scalar()?.width();
                Some(Value::Int(value::concat(&x, &y, width, &e.ty)))
            }
            EKind::Binary(op, a, b) => value::binary(*op, &self.value(a)?, &self.value(b)?, &a.ty).ok()?,
            EKind::Ternary(c, a, b) => match self.value(c)? {
                Value::Bool(true) => self.value(a),
                _ => self.value(b),
            },
            EKind::Cast(inner) => crate::sema::value::convert(&self.value(inner)?, &self.ty(&e.ty)),
            EKind::Slice(inner, hi, lo) => match self.value(inner)? {
                Value::Int(i) => Some(Value::Int(value::slice(&i, *hi, *lo))),
                _ => None,
            },
            EKind::Field(base, index) => match &base.kind {
                EKind::List(items) => self.value(items.get(*index)?),
                EKind::Local(id) => match self.find(*id)? {
                    Binding::Const(TExpr { kind: EKind::List(items), .. }) => self.value(items.get(*index)?),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// The index, if it is a constant within the length.
fn known_index(index: &Expr, length: usize) -> Option<usize> {
    let Expr::Const { value, .. } = index else { return None };
    value.to_usize().filter(|i| *i < length)
}

/// A slice of a place.
fn slice_of(place: Place, hi: u32, lo: u32) -> Option<Place> {
    let ty = Ty::Bit(hi - lo + 1);
    match place {
        Place::Leaf(LValue::Slice { base, lo: inner, .. }, _) => {
            Some(Place::Leaf(LValue::Slice { base, hi: hi + inner, lo: lo + inner }, ty))
        }
        Place::Leaf(base, _) => Some(Place::Leaf(LValue::Slice { base: Box::new(base), hi, lo }, ty)),
        Place::Choice(index, index_ty, options) => {
            let options = options.into_iter().map(|o| slice_of(o, hi, lo)).collect::<Option<_>>()?;
            Some(Place::Choice(index, index_ty, options))
        }
        _ => None,
    }
}

pub(super) fn cast(expr: Expr, from: Ty, to: Ty) -> Expr {
    if from == to { expr } else { Expr::Cast { expr: Box::new(expr), from, to } }
}
