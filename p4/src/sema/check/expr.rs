//! Checks expressions.

use super::Checker;
use super::scope::{Symbol, TypeSym, Writable};
use super::typeref::MAX_WIDTH;
use crate::ast::{BinaryOp, Expr, ExprKind, Ident, Name, Span};
use crate::diag::Diagnostic;
use crate::sema::tree::{Callee, EKind, LocalId, StackPart, TExpr};
use crate::sema::types::{LiteralTy, Type};
use crate::sema::value::{self, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Maximum parts of constants that are expanded at their uses, over all uses.
const MAX_COPIED: u64 = 1 << 20;

impl Checker {
    /// Types an expression and folds constants.
    pub(super) fn expr(&mut self, e: &Expr) -> TExpr {
        let span = e.span;
        match &e.kind {
            ExprKind::Bool(b) => TExpr::constant(Value::Bool(*b), Type::Bool, span),
            ExprKind::Int { value, width, .. } => self.literal(value, *width, span),
            ExprKind::String(s) => TExpr::constant(Value::Str(s.clone()), Type::Str, span),
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Dots => TExpr::new(EKind::Default, Type::Dots, span),
            ExprKind::Invalid => TExpr::new(EKind::Invalid, Type::InvalidHeader, span),
            ExprKind::ErrorMember(member) => self.error_member(member, span),
            ExprKind::Member { base, member } => self.member(base, member, span),
            ExprKind::TypeMember { ty, member } => {
                let ty = self.type_ref(ty);
                self.type_member(&ty, member, span)
            }
            ExprKind::Index { base, index } => self.index(base, index, span),
            ExprKind::Slice { base, hi, lo } => {
                let base = self.expr(base);
                let (Some(hi), Some(lo)) =
                    (self.const_int(hi, "a bound of a slice"), self.const_int(lo, "a bound of a slice"))
                else {
                    return TExpr::bad(span);
                };
                self.slice(base, &hi, &lo, span)
            }
            ExprKind::PlusSlice { base, start, width } => {
                let (base, start) = (self.expr(base), self.expr(start));
                let Some(width) = self.const_int(width, "the width of a slice") else {
                    return TExpr::bad(span);
                };
                self.slice_from(base, start, &width, span)
            }
            ExprKind::List { items, dots } => {
                let items: Vec<TExpr> = items.iter().map(|i| self.expr(i)).collect();
                self.list(items, None, *dots, span)
            }
            ExprKind::KeyValues { items, dots } => {
                let mut names: Vec<String> = Vec::new();
                for (name, _) in items {
                    if names.contains(&name.name) {
                        self.error(name.span, format!("`{}` is given twice", name.name));
                    }
                    names.push(name.name.clone());
                }
                let items: Vec<TExpr> = items.iter().map(|(_, i)| self.expr(i)).collect();
                self.list(items, Some(names), *dots, span)
            }
            ExprKind::Unary { op, expr } => {
                let expr = self.expr(expr);
                self.unary(*op, expr, span)
            }
            ExprKind::Binary { op, left, right } => {
                let left = self.expr(left);
                let right = self.expr(right);
                self.binary(*op, left, right, span)
            }
            ExprKind::Ternary { cond, then, otherwise } => {
                let cond = self.expr(cond);
                let then = self.expr(then);
                let otherwise = self.expr(otherwise);
                self.ternary(cond, then, otherwise, span)
            }
            ExprKind::Cast { ty, expr } => {
                let ty = self.type_ref(ty);
                let expr = self.expr(expr);
                self.cast(expr, &ty, span)
            }
            ExprKind::Call { callee, type_args, args } => self.call(callee, type_args, args, span),
            ExprKind::Construct { ty, args } => {
                let ty = self.type_ref(ty);
                self.nameless_instance(&ty, args, span)
            }
            ExprKind::Mask { .. } | ExprKind::Range { .. } | ExprKind::DontCare | ExprKind::Default => {
                self.error(span, "a set of values can only be matched against");
                TExpr::bad(span)
            }
            ExprKind::This => match &self.this {
                Some((id, ty)) => TExpr::new(EKind::Local(*id), ty.clone(), span),
                None => {
                    self.error(span, "`this` is for the methods that an instance implements");
                    TExpr::bad(span)
                }
            },
        }
    }

    fn literal(&mut self, value: &BigInt, width: Option<crate::ast::IntWidth>, span: Span) -> TExpr {
        let ty = match width {
            None => Type::InfInt,
            Some(w) if w.signed => Type::Int(w.bits),
            Some(w) => Type::Bit(w.bits),
        };
        if let Type::Int(0) = ty {
            self.error(span, "a signed number has at least 1 bit");
            return TExpr::bad(span);
        }
        if let Type::Bit(w) | Type::Int(w) = ty
            && w > MAX_WIDTH
        {
            self.error(span, format!("a width is at most {MAX_WIDTH}, not {w}"));
            return TExpr::bad(span);
        }
        if !value::fits(value, &ty) {
            let kept = value::wrap(value.clone(), &ty);
            self.warn(span, format!("{value} does not fit in `{ty}`: it is truncated to {kept}"));
        }
        TExpr::constant(Value::Int(value::wrap(value.clone(), &ty)), ty, span)
    }

    fn name(&mut self, name: &Name, span: Span) -> TExpr {
        let kind = self.match_kinds.iter().position(|k| *k == name.ident.name);
        if let (None, Some(number)) = (self.find(name), kind) {
            return TExpr::constant(Value::Member(number as u32), Type::MatchKind, span);
        }
        match self.lookup(name) {
            Symbol::Poison => TExpr::bad(span),
            Symbol::Const(e) => {
                if let EKind::List(_) = e.kind {
                    self.copied += e.ty.extent().parts;
                    if self.copied > MAX_COPIED {
                        let message = "constants with parts are used too often";
                        self.error(span, format!("{message}: at most {MAX_COPIED} parts in total"));
                        return TExpr::bad(span);
                    }
                }
                TExpr { span, ..e }
            }
            Symbol::Local { id, ty, .. } => TExpr::new(EKind::Local(id), ty, span),
            Symbol::Instance(inst) => TExpr::new(EKind::Local(inst.id), inst.ty.clone(), span),
            Symbol::Table(t) => TExpr::new(EKind::Bad, Type::Table(t), span),
            Symbol::ValueSet(v) => TExpr::new(EKind::ValueSet, Type::Set(Rc::new(v.ty.clone())), span),
            Symbol::Action(_) => {
                self.error(span, format!("action `{}` is called with arguments", name.ident.name));
                TExpr::bad(span)
            }
            Symbol::Functions(_) => {
                self.error(span, format!("function `{}` is called with arguments", name.ident.name));
                TExpr::bad(span)
            }
            Symbol::Type(_) => {
                self.error(span, format!("`{}` is a type, not a value", name.ident.name));
                TExpr::bad(span)
            }
        }
    }

    fn error_member(&mut self, member: &Ident, span: Span) -> TExpr {
        match self.out.errors.iter().position(|e| *e == member.name) {
            Some(number) => TExpr::constant(Value::Member(number as u32), Type::Error, span),
            None => {
                let near = super::scope::nearest(&member.name, self.out.errors.iter().map(String::as_str));
                let mut d = Diagnostic::error(member.span, format!("unknown error `{}`", member.name));
                if let Some(near) = near {
                    d = d.help(format!("did you mean `error.{near}`?"));
                }
                self.report(d);
                TExpr::bad(span)
            }
        }
    }

    fn type_member(&mut self, ty: &Type, member: &Ident, span: Span) -> TExpr {
        match ty {
            Type::Poison => TExpr::bad(span),
            Type::Enum(e) => self.enum_member(e, member, span),
            _ => {
                self.error(member.span, format!("type `{ty}` has no member `{}`", member.name));
                TExpr::bad(span)
            }
        }
    }

    /// The type that a name stands for, if it is a type.
    pub(super) fn as_type(&self, e: &Expr) -> Option<TypeSym> {
        let ExprKind::Name(name) = &e.kind else { return None };
        match self.find(name) {
            Some(Symbol::Type(sym)) => Some(sym.clone()),
            _ => None,
        }
    }

    fn member(&mut self, base: &Expr, member: &Ident, span: Span) -> TExpr {
        match self.as_type(base) {
            Some(TypeSym::Plain(ty)) => return self.type_member(&ty, member, span),
            Some(_) => {
                self.error(member.span, format!("a type has no member `{}`", member.name));
                return TExpr::bad(span);
            }
            None => {}
        }
        let base = self.expr(base);
        if base.is_bad() {
            return TExpr::bad(span);
        }
        let ty = base.ty.clone();
        match &ty {
            Type::Struct(s) => match s.field(&member.name) {
                Some((index, field)) => {
                    if field.ty.is_poison() {
                        return TExpr::bad(span);
                    }
                    select(base, index, field.ty.clone(), span)
                }
                None => {
                    let names = s.fields.iter().map(|f| f.name.as_str());
                    let near = super::scope::nearest(&member.name, names);
                    let mut d =
                        Diagnostic::error(member.span, format!("`{ty}` has no field `{}`", member.name));
                    if matches!(
                        member.name.as_str(),
                        "isValid" | "setValid" | "setInvalid" | "minSizeInBits" | "minSizeInBytes"
                    ) {
                        d = d.help(format!("it is a method: `{}()`", member.name));
                    } else if let Some(near) = near {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    self.report(d);
                    TExpr::bad(span)
                }
            },
            Type::Stack(element, _) if !ty.is_header_stack() && member.name != "size" => {
                self.error(member.span, format!("an array of `{element}` has no `{}`", member.name));
                TExpr::bad(span)
            }
            Type::Stack(element, size) => match member.name.as_str() {
                "next" | "last" => {
                    if self.place != super::Context::Parser {
                        self.error(
                            member.span,
                            format!("`{}` of a header stack can only be used in a parser", member.name),
                        );
                        return TExpr::bad(span);
                    }
                    let part = if member.name == "next" { StackPart::Next } else { StackPart::Last };
                    TExpr::new(EKind::StackPart(Box::new(base), part), (**element).clone(), span)
                }
                "lastIndex" => {
                    if self.place != super::Context::Parser {
                        self.error(member.span, "`lastIndex` of a header stack can only be used in a parser");
                        return TExpr::bad(span);
                    }
                    TExpr::new(EKind::StackPart(Box::new(base), StackPart::LastIndex), Type::Bit(32), span)
                }
                "size" => TExpr::constant(Value::int(*size), Type::Bit(32), span),
                _ => {
                    self.report(
                        Diagnostic::error(member.span, format!("a header stack has no `{}`", member.name))
                            .note("it has next, last, lastIndex, size, push_front and pop_front"),
                    );
                    TExpr::bad(span)
                }
            },
            Type::Applied(table) => match member.name.as_str() {
                "hit" | "miss" => {
                    TExpr::new(EKind::Hit(Box::new(base), member.name == "hit"), Type::Bool, span)
                }
                "action_run" => {
                    TExpr::new(EKind::ActionRun(Box::new(base)), Type::ActionRun(table.clone()), span)
                }
                _ => {
                    self.report(
                        Diagnostic::error(
                            member.span,
                            format!("the result of apply has no `{}`", member.name),
                        )
                        .note("it has hit, miss and action_run"),
                    );
                    TExpr::bad(span)
                }
            },
            _ => {
                self.error(member.span, format!("`{ty}` has no member `{}`", member.name));
                TExpr::bad(span)
            }
        }
    }

    fn index(&mut self, base: &Expr, index: &Expr, span: Span) -> TExpr {
        let base = self.expr(base);
        let index = self.expr(index);
        if base.is_bad() || index.is_bad() {
            return TExpr::bad(span);
        }
        let base = self.settle(base);
        let index = self.as_number(index);
        if !index.ty.is_bits() && !matches!(index.ty, Type::InfInt) {
            self.error(index.span, format!("an index is a number, not `{}`", index.ty));
            return TExpr::bad(span);
        }
        let known = match index.value() {
            Some(Value::Int(i)) => Some(i.clone()),
            _ => None,
        };
        let (len, element) = match &base.ty {
            Type::Stack(element, n) => (*n as usize, Some((**element).clone())),
            Type::Tuple(items) => (items.len(), None),
            other => {
                self.error(base.span, format!("`{other}` cannot be indexed"));
                return TExpr::bad(span);
            }
        };
        // A stack without elements has sizes alone.
        let sizes_only = len == 0 && element.is_some();
        if let Some(i) = &known
            && !sizes_only
            && i.to_usize().is_none_or(|i| i >= len)
        {
            self.error(index.span, format!("index {i} is out of range: there are {len} elements"));
            return TExpr::bad(span);
        }
        match (element, known.and_then(|i| i.to_usize())) {
            (Some(element), _) => {
                let index = match &index.ty {
                    Type::InfInt => self.coerce(index, &Type::Bit(32)),
                    _ => index,
                };
                TExpr::new(EKind::Index(Box::new(base), Box::new(index)), element, span)
            }
            (None, Some(i)) => {
                let Type::Tuple(items) = base.ty.clone() else { return TExpr::bad(span) };
                let Some(ty) = items.get(i) else { return TExpr::bad(span) };
                select(base, i, ty.clone(), span)
            }
            (None, None) => {
                self.error(index.span, "the index of a tuple must be known at compile time");
                TExpr::bad(span)
            }
        }
    }

    /// `base[start +: width]`. Where the start is not constant, it is a shift and a slice; bits beyond the value are 0.
    fn slice_from(&mut self, base: TExpr, start: TExpr, width: &BigInt, span: Span) -> TExpr {
        if base.is_bad() || start.is_bad() {
            return TExpr::bad(span);
        }
        let start = self.as_number(start);
        if let Some(Value::Int(lo)) = start.value() {
            return self.slice(base, &(lo + width - 1), &lo.clone(), span);
        }
        if !matches!(start.ty, Type::Bit(_)) {
            self.error(start.span, format!("the start of a slice is an unsigned number, not `{}`", start.ty));
            return TExpr::bad(span);
        }
        let base = match self.as_number(base) {
            signed if matches!(signed.ty, Type::Int(_)) => {
                let width = signed.ty.scalar().map_or(0, |ty| ty.width());
                super::convert::convert_to(signed, &Type::Bit(width))
            }
            base => base,
        };
        if !matches!(base.ty, Type::Bit(_)) {
            self.error(base.span, format!("`{}` has no bits to slice from a varying place", base.ty));
            return TExpr::bad(span);
        }
        let shifted = self.binary(BinaryOp::Shr, base, start, span);
        self.slice(shifted, &(width - 1), &BigInt::ZERO, span)
    }

    fn slice(&mut self, base: TExpr, hi: &BigInt, lo: &BigInt, span: Span) -> TExpr {
        if base.is_bad() {
            return TExpr::bad(span);
        }
        let base = self.as_number(base);
        let width = match base.ty {
            Type::Bit(w) | Type::Int(w) => w,
            // A number without a width is as wide as needed.
            Type::InfInt => MAX_WIDTH,
            _ => {
                self.error(base.span, format!("`{}` has no bits to slice", base.ty));
                return TExpr::bad(span);
            }
        };
        let (Some(hi), Some(lo)) = (hi.to_u32().filter(|h| *h < width), lo.to_u32()) else {
            self.error(span, format!("bits [{hi}:{lo}] are not within `{}`", base.ty));
            return TExpr::bad(span);
        };
        if lo > hi {
            self.error(span, format!("the high bit comes first: [{lo}:{hi}]"));
            return TExpr::bad(span);
        }
        let ty = Type::Bit(hi - lo + 1);
        match base.value() {
            Some(Value::Int(i)) => TExpr::constant(Value::Int(value::slice(i, hi, lo)), ty, span),
            _ => TExpr::new(EKind::Slice(Box::new(base), hi, lo), ty, span),
        }
    }

    fn list(&mut self, items: Vec<TExpr>, names: Option<Vec<String>>, dots: bool, span: Span) -> TExpr {
        if items.iter().any(TExpr::is_bad) {
            return TExpr::bad(span);
        }
        for item in &items {
            if matches!(item.ty, Type::Void | Type::Table(_) | Type::Applied(_)) {
                self.error(item.span, format!("a list cannot hold `{}`", item.ty));
                return TExpr::bad(span);
            }
        }
        let ty = LiteralTy { names, items: items.iter().map(|i| i.ty.clone()).collect(), dots };
        TExpr::new(EKind::List(items), Type::Literal(Rc::new(ty)), span)
    }

    /// Reports an expression that cannot be assigned; `what` is the reason in the message.
    pub(super) fn lvalue(&mut self, e: &TExpr, what: &str) -> bool {
        if e.is_bad() {
            return false;
        }
        match self.why_not_lvalue(e) {
            None => true,
            Some((span, why)) => {
                let mut d =
                    Diagnostic::error(e.span, format!("{what} must be something that can be written"));
                d = d.label(span, why);
                self.report(d);
                false
            }
        }
    }

    fn why_not_lvalue(&self, e: &TExpr) -> Option<(Span, String)> {
        match &e.kind {
            EKind::Local(id) => {
                if matches!(e.ty, Type::Extern(_) | Type::Block(_)) {
                    return Some((e.span, "this is an instance".to_owned()));
                }
                let name = self.local_name(*id);
                match self.writable.get(id).copied().unwrap_or(Writable::Yes) {
                    Writable::Yes => None,
                    Writable::InParam => Some((e.span, format!("`{name}` is an `in` parameter"))),
                    Writable::NoDirection => Some((e.span, format!("parameter `{name}` has no direction"))),
                    Writable::CtorParam => {
                        Some((e.span, format!("`{name}` is a parameter of the constructor")))
                    }
                }
            }
            EKind::Field(base, _) | EKind::Slice(base, ..) | EKind::Index(base, _) => {
                self.why_not_lvalue(base)
            }
            EKind::StackPart(base, StackPart::Next | StackPart::Last) => self.why_not_lvalue(base),
            EKind::StackPart(..) => Some((e.span, "`lastIndex` can only be read".to_owned())),
            EKind::Const(_) | EKind::List(_) => Some((e.span, "this is a constant".to_owned())),
            EKind::Call(call) if matches!(call.target, Callee::Function(_)) => {
                Some((e.span, "this is the result of a call".to_owned()))
            }
            _ => Some((e.span, "this is a computed value".to_owned())),
        }
    }

    pub(super) fn local_name(&self, id: LocalId) -> &str {
        self.out.locals.get(id.0 as usize).map_or("", |l| l.name.as_str())
    }
}

/// A part of a struct-like value. Of a list expression, the item itself.
pub(in crate::sema) fn select(base: TExpr, index: usize, ty: Type, span: Span) -> TExpr {
    if let EKind::List(items) = &base.kind
        && let Some(item) = items.get(index)
        && (is_constant(item) || !base.has_effects())
    {
        return TExpr { span, ..item.clone() };
    }
    TExpr::new(EKind::Field(Box::new(base), index), ty, span)
}

/// Whether a value is known at compile time.
pub(super) fn is_constant(e: &TExpr) -> bool {
    match &e.kind {
        EKind::Const(_) | EKind::Invalid | EKind::Default => true,
        EKind::List(items) => items.iter().all(is_constant),
        _ => false,
    }
}
