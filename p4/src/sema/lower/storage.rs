//! Storage of values: structs become scalars; headers and stacks get numbers.

use super::Lower;
use crate::ast::Span;
use crate::ir::{self, BinOp, Expr, HeaderId, HeaderRef, LValue, StackId, Ty, VarId};
use crate::sema::types::{StructKind, StructTy, Type};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Number of a list's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListId(pub(super) usize);

/// The storage of a value of any type.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Leaf(LValue, Ty),
    /// A struct or tuple.
    Tuple(Vec<Place>),
    Header(HeaderRef, Rc<StructTy>),
    Stack(StackId, Rc<StructTy>),
    /// One reference per member.
    Union(Vec<HeaderRef>, Rc<StructTy>),
    /// A stack of unions: one stack per member, all with the same `nextIndex`.
    Unions(Vec<StackId>, Rc<StructTy>),
    /// An array of anything but headers.
    Array(Vec<Place>),
    /// One of several places, chosen by an index at run time. Beyond the last one, nothing is written.
    Choice(Expr, Ty, Vec<Place>),
    List(ListId),
    Opaque,
}

impl Place {
    /// The variable, if it is one scalar.
    pub(super) fn variable(&self) -> Option<VarId> {
        match self {
            Place::Leaf(LValue::Var(var), _) => Some(*var),
            _ => None,
        }
    }
}

/// A value of any type.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Leaf(Expr, Ty),
    Tuple(Vec<Val>),
    Header(HeaderRef, Rc<StructTy>),
    /// A header literal, or an invalid header. The values are those of the declared fields.
    HeaderLit(Option<Vec<Val>>, Rc<StructTy>),
    Stack(StackId, Rc<StructTy>),
    /// The elements of a stack or array, as values.
    Elements(Vec<Val>),
    Union(Vec<HeaderRef>, Rc<StructTy>),
    Unions(Vec<StackId>, Rc<StructTy>),
    InvalidUnion,
    /// Content of a variable of type `list`.
    List(ListId),
    Opaque,
}

impl Lower<'_> {
    pub(super) fn new_var(&mut self, name: String, ty: Ty) -> VarId {
        if self.charge(1 + name.len() as u64 / 256) || self.prog.vars.is_empty() {
            self.prog.vars.push(ir::Var { name, ty });
        }
        VarId(self.prog.vars.len() as u32 - 1)
    }

    /// Allocates storage for a value of a type, under a name.
    pub(crate) fn alloc(&mut self, ty: &Type, name: &str) -> Place {
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
                    let members = self.new_union(s, name);
                    Place::Union(members.into_iter().map(HeaderRef::Fixed).collect(), s.clone())
                }
            },
            Type::Stack(_, 0) => {
                self.unsupported(self.at, "a header stack without elements");
                Place::Opaque
            }
            Type::Stack(element, size) => match &**element {
                Type::Struct(h) if h.kind == StructKind::Header => {
                    let elements = (0..*size).map(|i| self.new_header(h, &format!("{name}[{i}]"))).collect();
                    let next = self.new_var(format!("{name}.$next$"), Ty::Bit(32));
                    self.prog.stacks.push(ir::Stack { name: name.to_owned(), elements, next });
                    Place::Stack(StackId(self.prog.stacks.len() as u32 - 1), h.clone())
                }
                Type::Struct(u) if u.kind == StructKind::Union => {
                    let unions: Vec<Vec<HeaderId>> =
                        (0..*size).map(|i| self.new_union(u, &format!("{name}[{i}]"))).collect();
                    let next = self.new_var(format!("{name}.$next$"), Ty::Bit(32));
                    let mut stacks = Vec::new();
                    for (member, field) in u.fields.iter().enumerate() {
                        let elements = unions.iter().filter_map(|u| u.get(member)).copied().collect();
                        let name = format!("{name}.{}", field.name);
                        self.prog.stacks.push(ir::Stack { name, elements, next });
                        stacks.push(StackId(self.prog.stacks.len() as u32 - 1));
                    }
                    Place::Unions(stacks, u.clone())
                }
                other => {
                    Place::Array((0..*size).map(|i| self.alloc(other, &format!("{name}[{i}]"))).collect())
                }
            },
            Type::Tuple(items) => Place::Tuple(
                items.iter().enumerate().map(|(i, t)| self.alloc(t, &format!("{name}[{i}]"))).collect(),
            ),
            Type::List(element) => self.new_list(element, name),
            _ => Place::Opaque,
        }
    }

    fn new_union(&mut self, ty: &Rc<StructTy>, name: &str) -> Vec<HeaderId> {
        let mut members = Vec::new();
        for field in &ty.fields {
            if let Type::Struct(h) = &field.ty {
                members.push(self.new_header(h, &format!("{name}.{}", field.name)));
            }
        }
        for member in &members {
            let siblings = members.iter().filter(|m| *m != member).copied().collect();
            self.prog.headers[member.0 as usize].union_siblings = siblings;
        }
        members
    }

    /// Headers are stored as whole bytes: a padding field of its own fills the last byte, as in BMv2.
    fn new_header(&mut self, ty: &Rc<StructTy>, name: &str) -> HeaderId {
        let valid = self.new_var(format!("{name}.$valid$"), Ty::Bool);
        let mut fields = Vec::new();
        for (field, ty) in leaves(ty) {
            let var = self.new_var(format!("{name}.{field}"), ty);
            fields.push(ir::HeaderField { name: field, var });
        }
        if fields.iter().filter(|f| matches!(self.prog.vars[f.var.0 as usize].ty, Ty::Varbit(_))).count() > 1
        {
            self.unsupported(self.at, format!("a header `{}` with several varbit fields", ty.name));
        }
        let fixed = leaves(ty).into_iter().filter(|(_, t)| !matches!(t, Ty::Varbit(_)));
        let odd = fixed.fold(0, |sum, (_, ty)| (sum + ty.width()) % 8);
        if odd > 0 {
            let var = self.new_var(format!("{name}._padding"), Ty::Bit(8 - odd));
            fields.push(ir::HeaderField { name: "_padding".to_owned(), var });
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

    /// The value of a place.
    pub(crate) fn read(&self, place: &Place) -> Val {
        match place {
            Place::Leaf(lvalue, ty) => Val::Leaf(self.read_lvalue(lvalue), *ty),
            Place::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.read(p)).collect()),
            Place::Header(h, ty) => Val::Header(h.clone(), ty.clone()),
            Place::Stack(s, ty) => Val::Stack(*s, ty.clone()),
            Place::Union(members, ty) => Val::Union(members.clone(), ty.clone()),
            Place::Unions(stacks, ty) => Val::Unions(stacks.clone(), ty.clone()),
            Place::Array(parts) => Val::Elements(parts.iter().map(|p| self.read(p)).collect()),
            Place::Choice(index, ty, options) => {
                let options: Vec<Val> = options.iter().map(|o| self.read(o)).collect();
                chosen(index, *ty, &options)
            }
            Place::List(list) => Val::List(*list),
            Place::Opaque => Val::Opaque,
        }
    }

    pub(super) fn read_lvalue(&self, lvalue: &LValue) -> Expr {
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

    /// Any header that the reference can select; all have the same type.
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
        match ty {
            Type::Struct(s) => {
                return Place::Tuple(s.fields.iter().map(|f| self.field_place(header, &f.ty, at)).collect());
            }
            Type::Stack(element, n) => {
                return Place::Array((0..*n).map(|_| self.field_place(header, element, at)).collect());
            }
            _ => {}
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

    /// The header that an index selects in a stack.
    pub(super) fn element(&self, stack: StackId, index: Expr) -> HeaderRef {
        let elements = &self.prog.stacks[stack.0 as usize].elements;
        if let Expr::Const { value, .. } = &index
            && let Some(h) = value.to_usize().and_then(|i| elements.get(i))
        {
            return HeaderRef::Fixed(*h);
        }
        HeaderRef::Index(stack, Box::new(index))
    }

    /// The union that an index selects in a stack of unions.
    pub(super) fn union_at(&self, stacks: &[StackId], index: &Expr) -> Vec<HeaderRef> {
        stacks.iter().map(|s| self.element(*s, index.clone())).collect()
    }

    /// The elements of a stack of unions.
    pub(super) fn unions(&self, stacks: &[StackId], ty: &Rc<StructTy>) -> Vec<Val> {
        let length = stacks.first().map_or(0, |s| self.prog.stacks[s.0 as usize].elements.len());
        let index = |i| constant(BigUint::from(i), Ty::Bit(32));
        (0..length).map(|i| Val::Union(self.union_at(stacks, &index(i)), ty.clone())).collect()
    }

    /// Whether a header is valid.
    pub(super) fn is_valid(&self, header: &HeaderRef) -> Expr {
        match header {
            HeaderRef::Fixed(h) => Expr::Var(self.prog.headers[h.0 as usize].valid),
            other => Expr::Valid(other.clone()),
        }
    }

    /// The default value of a type: zero, false, invalid.
    pub(crate) fn default_val(&mut self, ty: &Type, span: Span) -> Val {
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

/// The value at an index, as a search tree, so that its depth grows slowly. Beyond the last one, the last
/// one.
pub(super) fn chosen(index: &Expr, ty: Ty, options: &[Val]) -> Val {
    let columns = |count: usize| -> Vec<Val> {
        let part = |option: &Val, i: usize| match option {
            Val::Tuple(parts) | Val::Elements(parts) => parts.get(i).cloned().unwrap_or(Val::Opaque),
            _ => Val::Opaque,
        };
        let column = |i| options.iter().map(|o| part(o, i)).collect::<Vec<Val>>();
        (0..count).map(|i| chosen(index, ty, &column(i))).collect()
    };
    match options.first() {
        Some(Val::Leaf(..)) => search(index, ty, options, 0),
        Some(Val::Tuple(parts)) => Val::Tuple(columns(parts.len())),
        Some(Val::Elements(parts)) => Val::Elements(columns(parts.len())),
        _ => Val::Opaque,
    }
}

fn search(index: &Expr, ty: Ty, options: &[Val], first: usize) -> Val {
    let (low, high) = options.split_at(options.len() / 2);
    let middle = BigUint::from(first + low.len());
    match low {
        [] => high.first().cloned().unwrap_or(Val::Opaque),
        // The index is too narrow to get there.
        _ if middle.bits() > u64::from(ty.width()) => search(index, ty, low, first),
        _ => match (search(index, ty, low, first), search(index, ty, high, first + low.len())) {
            (Val::Leaf(then, scalar), Val::Leaf(otherwise, _)) => {
                let cond = binary(BinOp::Lt, index.clone(), constant(middle, ty), ty);
                let (cond, then, otherwise) = (Box::new(cond), Box::new(then), Box::new(otherwise));
                Val::Leaf(Expr::Ternary { cond, ty: scalar, then, otherwise }, scalar)
            }
            _ => Val::Opaque,
        },
    }
}

pub(crate) fn zero(ty: Ty) -> Expr {
    Expr::Const { value: BigUint::ZERO, ty }
}

pub(crate) fn constant(value: impl Into<BigUint>, ty: Ty) -> Expr {
    Expr::Const { value: value.into(), ty }
}

/// The scalars of a header in wire order, with nested structs and arrays flattened.
pub(super) fn leaves(ty: &StructTy) -> Vec<(String, Ty)> {
    let mut all = Vec::new();
    for field in &ty.fields {
        leaves_of(&field.name, &field.ty, &mut all);
    }
    all
}

fn leaves_of(name: &str, ty: &Type, out: &mut Vec<(String, Ty)>) {
    match ty {
        Type::Struct(s) => {
            for field in &s.fields {
                leaves_of(&format!("{name}.{}", field.name), &field.ty, out);
            }
        }
        Type::Stack(element, n) => (0..*n).for_each(|i| leaves_of(&format!("{name}[{i}]"), element, out)),
        other => out.push((name.to_owned(), other.scalar().unwrap_or(Ty::Bit(0)))),
    }
}

fn count(ty: &Type) -> usize {
    match ty {
        Type::Struct(s) => s.fields.iter().map(|f| count(&f.ty)).sum(),
        Type::Stack(element, n) => count(element) * *n as usize,
        _ => 1,
    }
}

/// The scalars of a value, in order; a header contributes its fields.
pub(crate) fn scalars(lower: &Lower<'_>, val: &Val, out: &mut Vec<(Expr, Ty)>) {
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
                    scalars(lower, &Val::Header(member.clone(), h.clone()), out);
                }
            }
        }
        Val::Unions(stacks, ty) => {
            lower.unions(stacks, ty).iter().for_each(|u| scalars(lower, u, out));
        }
        Val::InvalidUnion | Val::List(_) | Val::Opaque => {}
    }
}

pub(super) fn binary(op: BinOp, left: Expr, right: Expr, ty: Ty) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), ty }
}
