//! Where values are kept: structs become scalars, headers and stacks get their numbers.

use super::Lower;
use crate::ast::Span;
use crate::ir::{self, Expr, HeaderId, HeaderRef, LValue, StackId, Ty, VarId};
use crate::sema::types::{StructKind, StructTy, Type};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Storage of a value of any type.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Leaf(LValue, Ty),
    /// Struct or tuple.
    Tuple(Vec<Place>),
    Header(HeaderRef, Rc<StructTy>),
    Stack(StackId, Rc<StructTy>),
    Union(Vec<HeaderId>, Rc<StructTy>),
    /// Stack of unions.
    Unions(Vec<Place>),
    Opaque,
}

/// A value of any type.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Leaf(Expr, Ty),
    Tuple(Vec<Val>),
    Header(HeaderRef, Rc<StructTy>),
    /// A header written out, or an invalid one. The values are those of the declared fields.
    HeaderLit(Option<Vec<Val>>, Rc<StructTy>),
    Stack(StackId, Rc<StructTy>),
    /// Elements of a stack, written out or of unions.
    Elements(Vec<Val>),
    Union(Vec<HeaderId>, Rc<StructTy>),
    InvalidUnion,
    Opaque,
}

impl Lower<'_> {
    pub(super) fn new_var(&mut self, name: String, ty: Ty) -> VarId {
        self.prog.vars.push(ir::Var { name, ty });
        VarId(self.prog.vars.len() as u32 - 1)
    }

    /// Storage for a value of the type, called `name`.
    pub(super) fn alloc(&mut self, ty: &Type, name: &str) -> Place {
        if let Some(scalar) = ty.scalar() {
            return Place::Leaf(LValue::Var(self.new_var(name.to_owned(), scalar)), scalar);
        }
        match ty {
            Type::Struct(s) => match s.kind {
                StructKind::Struct => Place::Tuple(
                    s.fields.iter().map(|f| self.alloc(&f.ty, &format!("{name}.{}", f.name))).collect(),
                ),
                StructKind::Header => Place::Header(HeaderRef::Fixed(self.new_header(s, name)), s.clone()),
                StructKind::Union => {
                    let mut members = Vec::new();
                    for field in &s.fields {
                        if let Type::Struct(h) = &field.ty {
                            members.push(self.new_header(h, &format!("{name}.{}", field.name)));
                        }
                    }
                    for member in &members {
                        let siblings = members.iter().filter(|m| *m != member).copied().collect();
                        self.prog.headers[member.0 as usize].union_siblings = siblings;
                    }
                    Place::Union(members, s.clone())
                }
            },
            Type::Stack(element, size) => match &**element {
                Type::Struct(h) if h.kind == StructKind::Header => {
                    let elements = (0..*size).map(|i| self.new_header(h, &format!("{name}[{i}]"))).collect();
                    let next = self.new_var(format!("{name}.$next$"), Ty::Bit(32));
                    self.prog.stacks.push(ir::Stack { name: name.to_owned(), elements, next });
                    Place::Stack(StackId(self.prog.stacks.len() as u32 - 1), h.clone())
                }
                other => {
                    Place::Unions((0..*size).map(|i| self.alloc(other, &format!("{name}[{i}]"))).collect())
                }
            },
            Type::Tuple(items) => Place::Tuple(
                items.iter().enumerate().map(|(i, t)| self.alloc(t, &format!("{name}[{i}]"))).collect(),
            ),
            _ => Place::Opaque,
        }
    }

    fn new_header(&mut self, ty: &Rc<StructTy>, name: &str) -> HeaderId {
        let valid = self.new_var(format!("{name}.$valid$"), Ty::Bool);
        let mut fields = Vec::new();
        for (field, ty) in leaves(ty) {
            let var = self.new_var(format!("{name}.{field}"), ty);
            fields.push(ir::HeaderField { name: field, var });
        }
        self.prog.headers.push(ir::Header {
            name: name.to_owned(),
            type_name: ty.name.clone(),
            valid,
            fields,
            union_siblings: Vec::new(),
        });
        HeaderId(self.prog.headers.len() as u32 - 1)
    }

    /// Reads storage.
    pub(super) fn read(&self, place: &Place) -> Val {
        match place {
            Place::Leaf(lvalue, ty) => Val::Leaf(self.read_lvalue(lvalue), *ty),
            Place::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.read(p)).collect()),
            Place::Header(h, ty) => Val::Header(h.clone(), ty.clone()),
            Place::Stack(s, ty) => Val::Stack(*s, ty.clone()),
            Place::Union(members, ty) => Val::Union(members.clone(), ty.clone()),
            Place::Unions(parts) => Val::Elements(parts.iter().map(|p| self.read(p)).collect()),
            Place::Opaque => Val::Opaque,
        }
    }

    fn read_lvalue(&self, lvalue: &LValue) -> Expr {
        match lvalue {
            LValue::Var(v) => Expr::Var(*v),
            LValue::Field { header, field } => {
                Expr::Field { header: header.clone(), field: *field, ty: self.field_ty(header, *field) }
            }
            LValue::Slice { base, hi, lo } => {
                let from = self.lvalue_ty(base);
                Expr::Slice { expr: Box::new(self.read_lvalue(base)), from, hi: *hi, lo: *lo }
            }
        }
    }

    pub(super) fn lvalue_ty(&self, lvalue: &LValue) -> Ty {
        match lvalue {
            LValue::Var(v) => self.prog.vars[v.0 as usize].ty,
            LValue::Field { header, field } => self.field_ty(header, *field),
            LValue::Slice { hi, lo, .. } => Ty::Bit(hi - lo + 1),
        }
    }

    /// Any header that the reference can mean; all have one type.
    pub(super) fn some_header(&self, header: &HeaderRef) -> HeaderId {
        match header {
            HeaderRef::Fixed(h) => *h,
            HeaderRef::Next(s) | HeaderRef::Last(s) | HeaderRef::Index(s, _) => {
                self.prog.stacks[s.0 as usize].elements[0]
            }
        }
    }

    fn field_ty(&self, header: &HeaderRef, field: u32) -> Ty {
        let var = self.prog.headers[self.some_header(header).0 as usize].fields[field as usize].var;
        self.prog.vars[var.0 as usize].ty
    }

    /// A declared field of a header.
    pub(super) fn header_field(&self, header: &HeaderRef, ty: &StructTy, index: usize) -> Place {
        let before: usize = ty.fields.iter().take(index).map(|f| count(&f.ty)).sum();
        let mut at = before as u32;
        match ty.fields.get(index) {
            Some(field) => self.field_place(header, &field.ty, &mut at),
            None => Place::Opaque,
        }
    }

    fn field_place(&self, header: &HeaderRef, ty: &Type, at: &mut u32) -> Place {
        if let Type::Struct(s) = ty {
            return Place::Tuple(s.fields.iter().map(|f| self.field_place(header, &f.ty, at)).collect());
        }
        let field = *at;
        *at += 1;
        let scalar = ty.scalar().unwrap_or(Ty::Bit(0));
        match header {
            HeaderRef::Fixed(h) => {
                Place::Leaf(LValue::Var(self.prog.headers[h.0 as usize].fields[field as usize].var), scalar)
            }
            _ => Place::Leaf(LValue::Field { header: header.clone(), field }, scalar),
        }
    }

    /// The header of a stack that an index means.
    pub(super) fn element(&self, stack: StackId, index: Expr) -> HeaderRef {
        let elements = &self.prog.stacks[stack.0 as usize].elements;
        if let Expr::Const { value, .. } = &index
            && let Some(h) = value.to_usize().and_then(|i| elements.get(i))
        {
            return HeaderRef::Fixed(*h);
        }
        HeaderRef::Index(stack, Box::new(index))
    }

    /// Whether a header is valid.
    pub(super) fn is_valid(&self, header: &HeaderRef) -> Expr {
        match header {
            HeaderRef::Fixed(h) => Expr::Var(self.prog.headers[h.0 as usize].valid),
            other => Expr::Valid(other.clone()),
        }
    }

    /// Zero, false, invalid.
    pub(super) fn default_val(&mut self, ty: &Type, span: Span) -> Val {
        if let Some(scalar) = ty.scalar() {
            return Val::Leaf(zero(scalar), scalar);
        }
        match ty {
            Type::Struct(s) => match s.kind {
                StructKind::Struct => {
                    Val::Tuple(s.fields.iter().map(|f| self.default_val(&f.ty, span)).collect())
                }
                StructKind::Header => Val::HeaderLit(None, s.clone()),
                StructKind::Union => Val::InvalidUnion,
            },
            Type::Tuple(items) => Val::Tuple(items.iter().map(|t| self.default_val(t, span)).collect()),
            Type::Stack(element, n) => {
                Val::Elements((0..*n).map(|_| self.default_val(element, span)).collect())
            }
            other => {
                self.unsupported(span, format!("a default value of type `{other}`"));
                Val::Opaque
            }
        }
    }
}

pub(super) fn zero(ty: Ty) -> Expr {
    Expr::Const { value: BigUint::ZERO, ty }
}

pub(super) fn constant(value: impl Into<BigUint>, ty: Ty) -> Expr {
    Expr::Const { value: value.into(), ty }
}

/// Scalars of a header in wire order, nested structs unfolded.
pub(super) fn leaves(ty: &StructTy) -> Vec<(String, Ty)> {
    let mut all = Vec::new();
    for field in &ty.fields {
        match &field.ty {
            Type::Struct(s) => {
                all.extend(leaves(s).into_iter().map(|(name, ty)| (format!("{}.{name}", field.name), ty)));
            }
            other => all.push((field.name.clone(), other.scalar().unwrap_or(Ty::Bit(0)))),
        }
    }
    all
}

fn count(ty: &Type) -> usize {
    match ty {
        Type::Struct(s) => s.fields.iter().map(|f| count(&f.ty)).sum(),
        _ => 1,
    }
}

/// Scalars of a value, in order; a header gives its fields.
pub(super) fn scalars(lower: &Lower<'_>, val: &Val, out: &mut Vec<(Expr, Ty)>) {
    match val {
        Val::Leaf(e, ty) => out.push((e.clone(), *ty)),
        Val::Tuple(parts) | Val::HeaderLit(Some(parts), _) | Val::Elements(parts) => {
            parts.iter().for_each(|p| scalars(lower, p, out));
        }
        Val::Header(h, ty) => {
            for index in 0..ty.fields.len() {
                let place = lower.header_field(h, ty, index);
                scalars(lower, &lower.read(&place), out);
            }
        }
        Val::HeaderLit(None, ty) => {
            out.extend(leaves(ty).into_iter().map(|(_, ty)| (zero(ty), ty)));
        }
        Val::Stack(s, ty) => {
            for element in &lower.prog.stacks[s.0 as usize].elements {
                scalars(lower, &Val::Header(HeaderRef::Fixed(*element), ty.clone()), out);
            }
        }
        Val::Union(members, ty) => {
            for (member, field) in members.iter().zip(&ty.fields) {
                if let Type::Struct(h) = &field.ty {
                    scalars(lower, &Val::Header(HeaderRef::Fixed(*member), h.clone()), out);
                }
            }
        }
        Val::InvalidUnion | Val::Opaque => {}
    }
}
