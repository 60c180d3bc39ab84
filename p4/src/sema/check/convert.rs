//! Implicit conversions and casts.

use super::Checker;
use super::args::unify;
use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::sema::tree::{EKind, TExpr};
use crate::sema::types::{BlockTy, LiteralTy, StructKind, Subst, Type};
use crate::sema::value::{self, Value};
use num_bigint::BigInt;
use num_traits::{One, Zero};
use std::rc::Rc;

impl Checker {
    /// Converts an expression to the wanted type, or reports why that is impossible.
    pub(super) fn coerce(&mut self, e: TExpr, want: &Type) -> TExpr {
        if e.is_bad() || want.is_poison() {
            return TExpr::bad(e.span);
        }
        if e.ty == *want || matches!(want, Type::DontCare) {
            return e;
        }
        let span = e.span;
        match (&e.ty, want) {
            (Type::InfInt, Type::Bit(_) | Type::Int(_)) => return self.size_int(e, want),
            // The language's text names fixed-width types only; the reference compiler takes a number for
            // each type made of them by `type`, and programs depend on it. Arithmetic stays illegal.
            (Type::InfInt, Type::New(_)) if want.underlying().is_bits() => return self.size_int(e, want),
            (Type::Bit(_) | Type::Int(_), Type::InfInt) => return convert_to(e, want),
            (Type::Enum(en), Type::Bit(_) | Type::Int(_)) if en.repr.as_ref() == Some(want) => {
                return convert_to(e, want);
            }
            (Type::Enum(en), Type::Bit(_) | Type::Int(_)) if en.repr.is_some() => {}
            (Type::InvalidHeader, Type::Struct(s)) if s.kind != StructKind::Struct => {
                return TExpr::new(EKind::Invalid, want.clone(), span);
            }
            (Type::Dots, _) => {
                if !has_default(want) {
                    self.error(span, format!("`{want}` has no default value"));
                    return TExpr::bad(span);
                }
                return TExpr::new(EKind::Default, want.clone(), span);
            }
            (Type::Literal(lit), _) => {
                let lit = lit.clone();
                match e.kind {
                    EKind::List(items) => return self.fill(items, &lit, want, span),
                    // Both sides are lists that take their type from here.
                    EKind::Ternary(cond, then, otherwise) => {
                        let (then, otherwise) = (self.coerce(*then, want), self.coerce(*otherwise, want));
                        if then.is_bad() || otherwise.is_bad() {
                            return TExpr::bad(span);
                        }
                        let sides = EKind::Ternary(cond, Box::new(then), Box::new(otherwise));
                        return TExpr::new(sides, want.clone(), span);
                    }
                    _ => return TExpr::bad(span),
                }
            }
            (Type::Block(actual), Type::Block(pattern)) => {
                return self.block_fits(e.clone(), actual, pattern);
            }
            (Type::Set(item), want) if **item == *want => return e,
            (Type::Extern(a), Type::Extern(b))
                if a.def.id == b.def.id && (a.args.is_empty() || b.args.iter().any(Type::has_vars)) =>
            {
                return e;
            }
            _ => {}
        }
        let mut d = Diagnostic::error(span, format!("expected `{want}`, found `{}`", e.ty));
        let castable = e.ty.underlying().scalar().is_some()
            && want.underlying().scalar().is_some()
            && cast_fits(&e.ty, want);
        if castable {
            d = d.help(format!("cast it explicitly: `({want})…`"));
        }
        self.report(d);
        TExpr::bad(span)
    }

    /// Gives an `int` a width.
    fn size_int(&mut self, e: TExpr, want: &Type) -> TExpr {
        let Some(Value::Int(i)) = e.value() else { return convert_to(e, want) };
        if !value::fits(i, want) {
            let kept = value::wrap(i.clone(), want);
            self.warn(e.span, format!("{i} does not fit in `{want}`: it is truncated to {kept}"));
        }
        convert_to(e, want)
    }

    /// Matches the items of `{…}` with the fields of the type it is converted to.
    fn fill(&mut self, items: Vec<TExpr>, lit: &LiteralTy, want: &Type, span: Span) -> TExpr {
        let slots: Vec<(Option<String>, Type)> = match want {
            Type::Struct(s) if s.kind != StructKind::Union => {
                s.fields.iter().map(|f| (Some(f.name.clone()), f.ty.clone())).collect()
            }
            Type::Tuple(types) => types.iter().map(|t| (None, t.clone())).collect(),
            Type::Stack(element, n) => (0..*n).map(|_| (None, (**element).clone())).collect(),
            Type::List(item) => items.iter().map(|_| (None, (**item).clone())).collect(),
            _ => {
                self.error(span, format!("expected `{want}`, found a list of values"));
                return TExpr::bad(span);
            }
        };
        let mut bad = false;
        let mut filled = Vec::new();
        if let Some(names) = &lit.names {
            if slots.iter().any(|(name, _)| name.is_none()) {
                self.error(span, format!("`{want}` has no names for its parts"));
                return TExpr::bad(span);
            }
            for (name, item) in names.iter().zip(&items) {
                if !slots.iter().any(|(slot, _)| slot.as_ref() == Some(name)) {
                    let near = super::scope::nearest(name, slots.iter().filter_map(|s| s.0.as_deref()));
                    let mut d = Diagnostic::error(item.span, format!("`{want}` has no field `{name}`"));
                    if let Some(near) = near {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    self.report(d);
                    bad = true;
                }
            }
            for (slot, ty) in &slots {
                let found = names.iter().zip(&items).find(|(n, _)| Some(*n) == slot.as_ref());
                match found {
                    Some((_, item)) => filled.push(self.coerce(item.clone(), ty)),
                    None if lit.dots => filled.push(TExpr::new(EKind::Default, ty.clone(), span)),
                    None => {
                        if !bad {
                            let name = slot.as_deref().unwrap_or("");
                            self.error(span, format!("field `{name}` of `{want}` is missing"));
                        }
                        bad = true;
                    }
                }
            }
        } else {
            if items.len() > slots.len() || (items.len() < slots.len() && !lit.dots) {
                let plural = if slots.len() == 1 { "" } else { "s" };
                self.error(span, format!("`{want}` has {} part{plural}, {} given", slots.len(), items.len()));
                return TExpr::bad(span);
            }
            let mut items = items.into_iter();
            for (_, ty) in &slots {
                filled.push(match items.next() {
                    Some(item) => self.coerce(item, ty),
                    None => TExpr::new(EKind::Default, ty.clone(), span),
                });
            }
        }
        if bad || filled.iter().any(TExpr::is_bad) {
            return TExpr::bad(span);
        }
        TExpr::new(EKind::List(filled), want.clone(), span)
    }

    /// Gives a type to a list without context.
    pub(super) fn settle(&mut self, e: TExpr) -> TExpr {
        let Type::Literal(lit) = &e.ty else { return e };
        let items = match e.kind {
            EKind::List(items) => items,
            EKind::Ternary(cond, then, otherwise) => {
                let then = self.settle(*then);
                let otherwise = self.coerce(*otherwise, &then.ty);
                if then.is_bad() || otherwise.is_bad() {
                    return TExpr::bad(e.span);
                }
                let ty = then.ty.clone();
                return TExpr::new(EKind::Ternary(cond, Box::new(then), Box::new(otherwise)), ty, e.span);
            }
            _ => return e,
        };
        if lit.dots {
            self.error(e.span, "`...` needs a type to stand for");
            return TExpr::bad(e.span);
        }
        let items: Vec<TExpr> = items.into_iter().map(|i| self.settle(i)).collect();
        if items.iter().any(TExpr::is_bad) {
            return TExpr::bad(e.span);
        }
        let ty = Type::Tuple(items.iter().map(|i| i.ty.clone()).collect());
        TExpr::new(EKind::List(items), ty, e.span)
    }

    /// `(want) e`
    pub(super) fn cast(&mut self, e: TExpr, want: &Type, span: Span) -> TExpr {
        if e.is_bad() || want.is_poison() {
            return TExpr::bad(span);
        }
        if e.ty == *want {
            return TExpr { span, ..e };
        }
        let structured = matches!(e.ty, Type::Literal(_) | Type::InvalidHeader | Type::Dots);
        if structured {
            let done = self.coerce(e, want);
            return TExpr { span, ..done };
        }
        if !cast_fits(&e.ty, want) {
            self.error(span, format!("`{}` cannot be cast to `{want}`", e.ty));
            return TExpr::bad(span);
        }
        if let (Type::InfInt, Some(Value::Int(i)), Type::Bool) = (&e.ty, e.value(), want)
            && *i != BigInt::zero()
            && *i != BigInt::one()
        {
            self.error(span, format!("only 0 and 1 can be cast to `bool`, not {i}"));
            return TExpr::bad(span);
        }
        if let (Type::InfInt, Some(Value::Int(i)), Type::Bit(_) | Type::Int(_)) = (&e.ty, e.value(), want)
            && !value::fits(i, want)
        {
            self.warn(
                span,
                format!("{i} does not fit in `{want}`: it is truncated to {}", value::wrap(i.clone(), want)),
            );
        }
        TExpr { span, ..convert_to(e, want) }
    }

    /// Whether a parser or control has the requested signature.
    fn block_fits(&mut self, e: TExpr, actual: &Rc<BlockTy>, pattern: &Rc<BlockTy>) -> TExpr {
        let span = e.span;
        let mut mismatch = None;
        if actual.kind != pattern.kind {
            mismatch = Some(format!("expected a {}, found a {}", pattern.kind.name(), actual.kind.name()));
        } else if actual.params.len() != pattern.params.len() {
            let optional = pattern.params.iter().skip(actual.params.len()).all(|p| p.may_be_absent());
            if !optional || actual.params.len() > pattern.params.len() {
                mismatch = Some(format!(
                    "expected {} parameters, it has {}",
                    pattern.params.len(),
                    actual.params.len()
                ));
            }
        }
        if mismatch.is_none() {
            for (number, (a, p)) in actual.params.iter().zip(&pattern.params).enumerate() {
                if a.ty.is_poison() || p.ty.is_poison() {
                    continue;
                }
                if a.dir != p.dir {
                    mismatch = Some(format!("parameter {} `{}` has another direction", number + 1, a.name));
                } else if a.ty != p.ty && !p.ty.has_vars() && !a.ty.has_vars() {
                    mismatch =
                        Some(format!("parameter {} `{}` is `{}`, not `{}`", number + 1, a.name, a.ty, p.ty));
                }
                if mismatch.is_some() {
                    break;
                }
            }
        }
        match mismatch {
            // The wanted type determines what the block's own arguments leave open.
            None if actual.is_open() => {
                let mut subst = Subst::new();
                for (a, p) in actual.params.iter().zip(&pattern.params) {
                    unify(&a.ty, &p.ty, &actual.type_params, &mut subst);
                }
                let inferred = actual.subst(&subst);
                if inferred.params.iter().any(|p| p.ty.is_open(&actual.type_params)) {
                    let what = format!("the type arguments of `{}` cannot be inferred", actual.name);
                    let write = format!("write them: `{}<…>(…)`", actual.name);
                    self.report(Diagnostic::error(span, what).help(write));
                    return TExpr::bad(span);
                }
                e.of_block(Type::Block(Rc::new(inferred)))
            }
            None => e,
            Some(why) => {
                self.report(
                    Diagnostic::error(span, format!("`{}` does not fit `{}`", actual.name, pattern.name))
                        .note(why),
                );
                TExpr::bad(span)
            }
        }
    }
}

/// Whether an explicit cast is legal.
fn cast_fits(from: &Type, to: &Type) -> bool {
    use Type::*;
    match (from, to) {
        (New(a), New(b)) => a.id == b.id || a.inner == *to || b.inner == *from,
        (New(n), to) => n.inner == *to || cast_fits(&n.inner, to),
        (from, New(n)) => n.inner == *from || cast_fits(from, &n.inner),
        (Bit(_), Bit(_)) | (Int(_), Int(_)) => true,
        (Bit(a), Int(b)) | (Int(a), Bit(b)) => a == b,
        (Bit(1), Bool) | (Bool, Bit(1)) => true,
        (InfInt, Bit(_) | Int(_) | Bool) | (Bit(_) | Int(_), InfInt) => true,
        (Enum(e), to) if e.repr.is_some() => e.repr.as_ref().is_some_and(|r| r == to || cast_fits(r, to)),
        (from, Enum(e)) if e.repr.is_some() => {
            e.repr.as_ref().is_some_and(|r| r == from || cast_fits(from, r))
        }
        (from, to) => from == to,
    }
}

/// Whether `...` can stand for a value of the type.
fn has_default(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) => s.fields.iter().all(|f| has_default(&f.ty)),
        Type::Tuple(items) => items.iter().all(has_default),
        Type::Stack(e, _) => has_default(e),
        Type::Enum(_) | Type::Error | Type::Bool | Type::InfInt | Type::Str | Type::Poison => true,
        other => other.scalar().is_some(),
    }
}

/// Converts without checks; folds constants.
pub(super) fn convert_to(e: TExpr, want: &Type) -> TExpr {
    let span = e.span;
    if let Some(v) = e.value()
        && let Some(v) = value::convert(v, want)
    {
        return TExpr::constant(v, want.clone(), span);
    }
    TExpr::new(EKind::Cast(Box::new(e)), want.clone(), span)
}
