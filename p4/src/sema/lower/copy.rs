//! Lowers assignment and equality of values of any type.

use super::Lower;
use super::storage::{Place, Val, binary, constant, scalars, zero};
use crate::ast::Span;
use crate::ir::{BinOp, Expr, HeaderRef, LValue, Stmt, Ty, UnOp, VarId};
use num_bigint::BigUint;
use std::collections::BTreeSet;
use std::rc::Rc;

impl Lower<'_> {
    /// Stores a value. Saves the parts first that the value still reads.
    pub(crate) fn assign(&mut self, target: &Place, value: Val, span: Span) {
        let value = if self.overlaps(target, &value) { self.save(value, span) } else { value };
        self.store(target, value, span);
    }

    /// Whether storing part by part would overwrite something that is still to be read.
    fn overlaps(&self, target: &Place, value: &Val) -> bool {
        match (target, value) {
            (Place::Leaf(..), _) => false,
            // Whole headers, stacks and unions are copied in one piece, or part by part in parallel.
            (
                _,
                Val::Header(..)
                | Val::Stack(..)
                | Val::Union(..)
                | Val::Unions(..)
                | Val::InvalidUnion
                | Val::List(_)
                | Val::Opaque,
            ) => false,
            (Place::Tuple(places), Val::Tuple(values)) if places.len() == 1 && values.len() == 1 => {
                self.overlaps(&places[0], &values[0])
            }
            _ => {
                let mut written = BTreeSet::new();
                self.written(target, &mut written);
                let mut parts = Vec::new();
                scalars(self, value, &mut parts);
                // A plain copy from elsewhere reads other variables only.
                parts.iter().any(|(e, _)| reads(self, e, &written)) || self.mentions_header(value, &written)
            }
        }
    }

    fn mentions_header(&self, value: &Val, written: &BTreeSet<VarId>) -> bool {
        match value {
            Val::Tuple(parts) | Val::Elements(parts) | Val::HeaderLit(Some(parts), _) => {
                parts.iter().any(|p| self.mentions_header(p, written))
            }
            Val::Header(h, _) => written.contains(&self.prog.headers[self.some_header(h).0 as usize].valid),
            _ => false,
        }
    }

    fn written(&self, place: &Place, out: &mut BTreeSet<VarId>) {
        match place {
            Place::Leaf(lvalue, _) => {
                let mut at = lvalue;
                loop {
                    match at {
                        LValue::Var(v) => {
                            out.insert(*v);
                            break;
                        }
                        LValue::Slice { base, .. } => at = base,
                        LValue::Field { header, .. } => {
                            self.written_header(header, out);
                            break;
                        }
                    }
                }
            }
            Place::Tuple(parts) | Place::Array(parts) | Place::Choice(_, _, parts) => {
                parts.iter().for_each(|p| self.written(p, out));
            }
            Place::Header(h, _) => self.written_header(h, out),
            Place::Stack(s, _) => self.written_header(&HeaderRef::Next(*s), out),
            Place::Union(members, _) => {
                members.iter().for_each(|m| self.written_header(m, out));
            }
            Place::Unions(stacks, _) => {
                stacks.iter().for_each(|s| self.written_header(&HeaderRef::Next(*s), out));
            }
            Place::List(list) => {
                let (length, elements) = self.list_parts(*list);
                out.insert(length);
                elements.iter().for_each(|element| self.written(element, out));
            }
            Place::Opaque => {}
        }
    }

    fn written_header(&self, header: &HeaderRef, out: &mut BTreeSet<VarId>) {
        let all = match header {
            HeaderRef::Fixed(h) => vec![*h],
            HeaderRef::Next(s) | HeaderRef::Last(s) | HeaderRef::Index(s, _) => {
                self.prog.stacks[s.0 as usize].elements.clone()
            }
        };
        for h in all {
            let header = &self.prog.headers[h.0 as usize];
            out.insert(header.valid);
            out.extend(header.fields.iter().map(|f| f.var));
        }
    }

    /// Evaluates a value now, before later writes.
    pub(crate) fn save(&mut self, value: Val, span: Span) -> Val {
        match value {
            Val::Leaf(Expr::Const { .. }, _) | Val::Opaque | Val::InvalidUnion | Val::HeaderLit(None, _) => {
                value
            }
            Val::Leaf(e, ty) => {
                let name = self.temp_name("t");
                let var = self.new_var(name, ty);
                self.emit(Stmt::Assign { target: LValue::Var(var), value: e, span });
                Val::Leaf(Expr::Var(var), ty)
            }
            Val::Tuple(parts) => Val::Tuple(parts.into_iter().map(|p| self.save(p, span)).collect()),
            Val::Elements(parts) => Val::Elements(parts.into_iter().map(|p| self.save(p, span)).collect()),
            Val::HeaderLit(Some(parts), ty) => {
                Val::HeaderLit(Some(parts.into_iter().map(|p| self.save(p, span)).collect()), ty)
            }
            Val::Header(_, ref ty) => {
                let ty = crate::sema::types::Type::Struct(ty.clone());
                self.save_whole(&ty, value, span)
            }
            Val::Stack(s, ref ty) => {
                let n = self.prog.stacks[s.0 as usize].elements.len() as u32;
                let element = crate::sema::types::Type::Struct(ty.clone());
                let ty = crate::sema::types::Type::Stack(Rc::new(element), n);
                self.save_whole(&ty, value, span)
            }
            Val::Union(_, ref ty) => {
                let ty = crate::sema::types::Type::Struct(ty.clone());
                self.save_whole(&ty, value, span)
            }
            Val::List(from) => {
                let element = self.list_element(from).clone();
                self.save_whole(&crate::sema::types::Type::List(Rc::new(element)), value, span)
            }
            Val::Unions(ref stacks, ref ty) => {
                let n = self.unions(stacks, ty).len() as u32;
                let element = crate::sema::types::Type::Struct(ty.clone());
                let ty = crate::sema::types::Type::Stack(Rc::new(element), n);
                self.save_whole(&ty, value, span)
            }
        }
    }

    fn save_whole(&mut self, ty: &crate::sema::types::Type, value: Val, span: Span) -> Val {
        let name = self.temp_name("t");
        let place = self.alloc(ty, &name);
        self.store(&place, value, span);
        self.read(&place)
    }

    fn store(&mut self, target: &Place, value: Val, span: Span) {
        match (target, value) {
            (Place::Leaf(lvalue, _), Val::Leaf(value, _)) => {
                if !self.marked.is_empty() {
                    self.written_in_part(lvalue, span);
                }
                self.emit(Stmt::Assign { target: lvalue.clone(), value, span });
            }
            (Place::Tuple(places), Val::Tuple(values)) | (Place::Array(places), Val::Elements(values)) => {
                for (place, value) in places.iter().zip(values) {
                    self.store(place, value, span);
                }
            }
            (Place::Choice(index, ty, options), value) => {
                let value = self.save(value, span);
                let mut cases = Vec::new();
                for (i, option) in options.iter().enumerate() {
                    let body = self.collect(|l| l.store(option, value.clone(), span));
                    cases.push((vec![BigUint::from(i)], body));
                }
                self.emit(Stmt::Switch { expr: index.clone(), ty: *ty, cases, default: vec![] });
            }
            (Place::Header(dst, _), Val::Header(src, _)) => {
                let same = matches!((dst, &src), (HeaderRef::Fixed(a), HeaderRef::Fixed(b)) if a == b);
                if !same {
                    self.emit(Stmt::CopyHeader { dst: dst.clone(), src });
                }
            }
            (Place::Header(dst, ty), Val::HeaderLit(Some(values), _)) => {
                let ty = ty.clone();
                self.emit(Stmt::SetValid { header: dst.clone(), valid: true });
                for (index, value) in values.into_iter().enumerate() {
                    let field = self.header_field(dst, &ty, index);
                    self.store(&field, value, span);
                }
            }
            (Place::Header(dst, _), Val::HeaderLit(None, _)) => {
                self.emit(Stmt::SetValid { header: dst.clone(), valid: false });
            }
            (Place::Stack(dst, ty), Val::Stack(src, _)) => {
                if *dst == src {
                    return;
                }
                let ty = ty.clone();
                let (to, from) =
                    (self.prog.stacks[dst.0 as usize].clone(), self.prog.stacks[src.0 as usize].clone());
                for (d, s) in to.elements.iter().zip(&from.elements) {
                    self.store(
                        &Place::Header(HeaderRef::Fixed(*d), ty.clone()),
                        Val::Header(HeaderRef::Fixed(*s), ty.clone()),
                        span,
                    );
                }
                self.emit(Stmt::Assign { target: LValue::Var(to.next), value: Expr::Var(from.next), span });
            }
            (Place::Stack(dst, ty), Val::Elements(values)) => {
                let (elements, next) = {
                    let stack = &self.prog.stacks[dst.0 as usize];
                    (stack.elements.clone(), stack.next)
                };
                let ty = ty.clone();
                for (d, value) in elements.iter().zip(values) {
                    self.store(&Place::Header(HeaderRef::Fixed(*d), ty.clone()), value, span);
                }
                self.emit(Stmt::Assign { target: LValue::Var(next), value: zero(Ty::Bit(32)), span });
            }
            (Place::Union(dst, ty), Val::Union(src, _)) => {
                let fixed = dst.iter().chain(&src).all(|h| matches!(h, HeaderRef::Fixed(_)));
                if same_headers(dst, &src) {
                    return;
                }
                let ty = crate::sema::types::Type::Struct(ty.clone());
                let src = if fixed {
                    src
                } else {
                    // Both may be the same union: the source is read before anything is written.
                    let name = self.temp_name("t");
                    let Place::Union(copy, _) = self.alloc(&ty, &name) else { return };
                    self.copy_union(&copy, &src);
                    copy
                };
                self.copy_union(dst, &src);
            }
            (Place::Union(dst, _), Val::InvalidUnion) => {
                for d in dst {
                    self.emit(Stmt::SetValid { header: d.clone(), valid: false });
                }
            }
            (Place::Unions(dst, ty), Val::Unions(src, _)) => {
                if *dst == src {
                    return;
                }
                let (to, from) = (self.unions(dst, ty), self.unions(&src, ty));
                for (to, from) in to.into_iter().zip(from) {
                    if let Val::Union(members, ty) = to {
                        self.store(&Place::Union(members, ty), from, span);
                    }
                }
                if let (Some(to), Some(from)) = (dst.first(), src.first()) {
                    let target = LValue::Var(self.prog.stacks[to.0 as usize].next);
                    let value = Expr::Var(self.prog.stacks[from.0 as usize].next);
                    self.emit(Stmt::Assign { target, value, span });
                }
            }
            (Place::Unions(dst, ty), Val::Elements(values)) => {
                for (to, value) in self.unions(dst, ty).into_iter().zip(values) {
                    if let Val::Union(members, ty) = to {
                        self.store(&Place::Union(members, ty), value, span);
                    }
                }
                if let Some(to) = dst.first() {
                    let target = LValue::Var(self.prog.stacks[to.0 as usize].next);
                    self.emit(Stmt::Assign { target, value: zero(Ty::Bit(32)), span });
                }
            }
            (Place::List(list), Val::Elements(values)) => self.store_elements(*list, values, span),
            (Place::List(to), Val::List(from)) => self.copy_list(*to, from, span),
            (Place::Opaque, _) | (_, Val::Opaque) => {}
            (place, value) => {
                debug_assert!(false, "stored {value:?} to {place:?}");
                self.error(span, "this assignment is not supported yet");
            }
        }
    }

    fn copy_union(&mut self, dst: &[HeaderRef], src: &[HeaderRef]) {
        // Validating a member invalidates the others, so invalid members go first.
        for d in dst {
            self.emit(Stmt::SetValid { header: d.clone(), valid: false });
        }
        for (d, s) in dst.iter().zip(src) {
            let copy = Stmt::CopyHeader { dst: d.clone(), src: s.clone() };
            let cond = self.is_valid(s);
            self.emit(Stmt::If { cond, then: vec![copy], otherwise: vec![], span: self.at });
        }
    }

    /// Invalidates the headers of fresh storage, as at each declaration.
    pub(super) fn invalidate(&mut self, place: &Place) {
        match place {
            Place::Header(h, _) => self.emit(Stmt::SetValid { header: h.clone(), valid: false }),
            Place::Tuple(parts) | Place::Array(parts) => parts.iter().for_each(|p| self.invalidate(p)),
            Place::Stack(s, _) => {
                let stack = self.prog.stacks[s.0 as usize].clone();
                for h in stack.elements {
                    self.emit(Stmt::SetValid { header: HeaderRef::Fixed(h), valid: false });
                }
                let span = Span::default();
                self.emit(Stmt::Assign { target: LValue::Var(stack.next), value: zero(Ty::Bit(32)), span });
            }
            Place::Union(members, _) => {
                for h in members {
                    self.emit(Stmt::SetValid { header: h.clone(), valid: false });
                }
            }
            Place::Unions(stacks, _) => {
                for stack in stacks {
                    let stack = self.prog.stacks[stack.0 as usize].clone();
                    for h in stack.elements {
                        self.emit(Stmt::SetValid { header: HeaderRef::Fixed(h), valid: false });
                    }
                    let (value, span) = (zero(Ty::Bit(32)), Span::default());
                    self.emit(Stmt::Assign { target: LValue::Var(stack.next), value, span });
                }
            }
            Place::List(list) => self.clear_list(*list),
            Place::Leaf(..) | Place::Choice(..) | Place::Opaque => {}
        }
    }

    /// `a == b`
    pub(super) fn equal(&mut self, a: &Val, b: &Val) -> Expr {
        match (a, b) {
            (Val::Leaf(a, ty), Val::Leaf(b, _)) => binary(BinOp::Eq, a.clone(), b.clone(), *ty),
            (Val::Tuple(a), Val::Tuple(b)) => {
                let parts: Vec<Expr> = a.iter().zip(b).map(|(a, b)| self.equal(a, b)).collect();
                all(parts)
            }
            (
                Val::Stack(..) | Val::Unions(..) | Val::Elements(_),
                Val::Stack(..) | Val::Unions(..) | Val::Elements(_),
            ) => {
                let (a, b) = (self.elements(a), self.elements(b));
                let parts: Vec<Expr> = a.iter().zip(&b).map(|(a, b)| self.equal(a, b)).collect();
                all(parts)
            }
            (Val::Union(a, ty), Val::Union(b, _)) => {
                let mut parts = Vec::new();
                for ((a, b), field) in a.iter().zip(b).zip(&ty.fields) {
                    if let Some(h) = field.ty.as_struct() {
                        let (a, b) = (Val::Header(a.clone(), h.clone()), Val::Header(b.clone(), h.clone()));
                        parts.push(self.equal(&a, &b));
                    }
                }
                all(parts)
            }
            (Val::Union(members, _), Val::InvalidUnion) | (Val::InvalidUnion, Val::Union(members, _)) => {
                all(members.iter().map(|m| not(self.is_valid(m))).collect())
            }
            (Val::Header(..) | Val::HeaderLit(..), Val::Header(..) | Val::HeaderLit(..)) => {
                let (va, vb) = (self.valid_of(a), self.valid_of(b));
                let (mut fa, mut fb) = (Vec::new(), Vec::new());
                scalars(self, a, &mut fa);
                scalars(self, b, &mut fb);
                let fields = fa.into_iter().zip(fb).map(|((x, ty), (y, _))| binary(BinOp::Eq, x, y, ty));
                let both: Vec<Expr> = [va.clone(), vb.clone()].into_iter().chain(fields).collect();
                let neither = all(vec![not(va), not(vb)]);
                binary(BinOp::Or, neither, all(both), Ty::Bool)
            }
            (Val::InvalidUnion, Val::InvalidUnion) => constant(1u8, Ty::Bool),
            _ => constant(0u8, Ty::Bool),
        }
    }

    fn valid_of(&self, val: &Val) -> Expr {
        match val {
            Val::Header(h, _) => self.is_valid(h),
            Val::HeaderLit(parts, _) => constant(u8::from(parts.is_some()), Ty::Bool),
            _ => constant(0u8, Ty::Bool),
        }
    }

    fn elements(&self, val: &Val) -> Vec<Val> {
        match val {
            Val::Elements(parts) => parts.clone(),
            Val::Unions(stacks, ty) => self.unions(stacks, ty),
            Val::Stack(s, ty) => {
                let elements = &self.prog.stacks[s.0 as usize].elements;
                elements.iter().map(|h| Val::Header(HeaderRef::Fixed(*h), ty.clone())).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn same_headers(a: &[HeaderRef], b: &[HeaderRef]) -> bool {
    a.iter().zip(b).all(|pair| matches!(pair, (HeaderRef::Fixed(a), HeaderRef::Fixed(b)) if a == b))
}

pub(super) fn not(expr: Expr) -> Expr {
    Expr::Unary { op: UnOp::Not, expr: Box::new(expr), ty: Ty::Bool }
}

fn all(parts: Vec<Expr>) -> Expr {
    let mut parts = parts.into_iter();
    match parts.next() {
        None => constant(1u8, Ty::Bool),
        Some(first) => parts.fold(first, |a, b| binary(BinOp::And, a, b, Ty::Bool)),
    }
}

/// Whether an expression reads one of these variables.
fn reads(lower: &Lower<'_>, e: &Expr, written: &BTreeSet<VarId>) -> bool {
    let header = |h: &HeaderRef| {
        let mut vars = BTreeSet::new();
        lower.written_header(h, &mut vars);
        let index = matches!(h, HeaderRef::Index(_, i) if reads(lower, i, written));
        index || !vars.is_disjoint(written)
    };
    match e {
        Expr::Const { .. } | Expr::Lookahead { .. } | Expr::PacketLength | Expr::DropPort => false,
        Expr::Var(v) => written.contains(v),
        Expr::Field { header: h, .. } | Expr::Valid(h) => header(h),
        Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => {
            reads(lower, expr, written)
        }
        Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
            reads(lower, left, written) || reads(lower, right, written)
        }
        Expr::Ternary { cond, then, otherwise, .. } => {
            [cond, then, otherwise].iter().any(|e| reads(lower, e, written))
        }
    }
}
