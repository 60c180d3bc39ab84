//! Checks operators.

use super::Checker;
use crate::ast::{BinaryOp, Span, UnaryOp};
use crate::diag::Diagnostic;
use crate::sema::tree::{EKind, TExpr};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::{self, Value};

/// The operator as written in P4.
pub(in crate::sema) fn symbol(op: BinaryOp) -> &'static str {
    use BinaryOp::*;
    match op {
        Mul => "*",
        Div => "/",
        Mod => "%",
        Add => "+",
        Sub => "-",
        AddSat => "|+|",
        SubSat => "|-|",
        Shl => "<<",
        Shr => ">>",
        Le => "<=",
        Ge => ">=",
        Lt => "<",
        Gt => ">",
        Ne => "!=",
        Eq => "==",
        BitAnd => "&",
        BitXor => "^",
        BitOr => "|",
        Concat => "++",
        And => "&&",
        Or => "||",
    }
}

impl Checker {
    pub(super) fn unary(&mut self, op: UnaryOp, e: TExpr, span: Span) -> TExpr {
        if e.is_bad() {
            return TExpr::bad(span);
        }
        // A serializable enum counts as its number.
        let e = self.as_number(e);
        let fine = match op {
            UnaryOp::Not => matches!(e.ty, Type::Bool),
            UnaryOp::BitNot => e.ty.is_bits(),
            UnaryOp::Neg | UnaryOp::Plus => e.ty.is_bits() || matches!(e.ty, Type::InfInt),
        };
        if !fine {
            let sign = match op {
                UnaryOp::Not => "!",
                UnaryOp::BitNot => "~",
                UnaryOp::Neg => "-",
                UnaryOp::Plus => "+",
            };
            let mut d = Diagnostic::error(span, format!("`{sign}` cannot be applied to `{}`", e.ty));
            if op == UnaryOp::BitNot && matches!(e.ty, Type::InfInt) {
                d = d.help("give the number a width, such as `8w1`");
            }
            self.report(d);
            return TExpr::bad(span);
        }
        let ty = e.ty.clone();
        match e.value().and_then(|v| value::unary(op, v, &ty)) {
            Some(v) => TExpr::constant(v, ty, span),
            None if op == UnaryOp::Plus => TExpr { span, ..e },
            None => TExpr::new(EKind::Unary(op, Box::new(e)), ty, span),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: TExpr, right: TExpr, span: Span) -> TExpr {
        use BinaryOp::*;
        if left.is_bad() || right.is_bad() {
            return TExpr::bad(span);
        }
        match op {
            And | Or => {
                for side in [&left, &right] {
                    if !matches!(side.ty, Type::Bool) {
                        self.error(
                            side.span,
                            format!("`{}` expects `bool`, found `{}`", symbol(op), side.ty),
                        );
                        return TExpr::bad(span);
                    }
                }
                self.build(op, left, right, Type::Bool, span)
            }
            Shl | Shr => self.shift(op, left, right, span),
            Concat => self.concat(left, right, span),
            Eq | Ne => self.equality(op, left, right, span),
            Lt | Le | Gt | Ge => {
                let Some((left, right)) = self.same_numbers(op, left, right, span) else {
                    return TExpr::bad(span);
                };
                self.build(op, left, right, Type::Bool, span)
            }
            Mul | Div | Mod | Add | Sub | AddSat | SubSat | BitAnd | BitXor | BitOr => {
                let Some((left, right)) = self.same_numbers(op, left, right, span) else {
                    return TExpr::bad(span);
                };
                let ty = left.ty.clone();
                let sized = matches!(op, AddSat | SubSat);
                if sized && matches!(ty, Type::InfInt) {
                    self.report(
                        Diagnostic::error(span, format!("`{}` needs numbers with a width", symbol(op)))
                            .help("write one of them with a width, such as `8w1`"),
                    );
                    return TExpr::bad(span);
                }
                if matches!(op, Div | Mod) {
                    if matches!(ty, Type::Int(_)) {
                        self.error(span, format!("`{}` is not defined on `{ty}`", symbol(op)));
                        return TExpr::bad(span);
                    }
                    if right.value() == Some(&Value::int(0)) {
                        self.error(right.span, "division by zero");
                        return TExpr::bad(span);
                    }
                }
                self.build(op, left, right, ty, span)
            }
        }
    }

    /// Folds or builds a binary expression with operands of matching types.
    fn build(&mut self, op: BinaryOp, left: TExpr, right: TExpr, ty: Type, span: Span) -> TExpr {
        if let (BinaryOp::Eq | BinaryOp::Ne, Some(same)) = (op, same_parts(&left, &right)) {
            return TExpr::constant(Value::Bool(same == (op == BinaryOp::Eq)), ty, span);
        }
        if let (Some(a), Some(b)) = (left.value(), right.value()) {
            match value::binary(op, a, b, &left.ty) {
                Ok(Some(v)) => return TExpr::constant(v, ty, span),
                Ok(None) => {}
                Err(e) => {
                    self.error(span, e.message());
                    return TExpr::bad(span);
                }
            }
        }
        // One known side can decide `&&` and `||`.
        if let (BinaryOp::And | BinaryOp::Or, Some(Value::Bool(known))) = (op, left.value()) {
            return if (op == BinaryOp::And) == *known {
                TExpr { span, ..right }
            } else {
                TExpr { span, ..left }
            };
        }
        TExpr::new(EKind::Binary(op, Box::new(left), Box::new(right)), ty, span)
    }

    fn shift(&mut self, op: BinaryOp, left: TExpr, right: TExpr, span: Span) -> TExpr {
        let (left, right) = (self.as_number(left), self.as_number(right));
        let sign = symbol(op);
        if !left.ty.is_bits() && !matches!(left.ty, Type::InfInt) {
            self.error(left.span, format!("`{sign}` expects a number on the left, found `{}`", left.ty));
            return TExpr::bad(span);
        }
        if !right.ty.is_bits() && !matches!(right.ty, Type::InfInt) {
            self.error(right.span, format!("`{sign}` expects a number on the right, found `{}`", right.ty));
            return TExpr::bad(span);
        }
        if matches!(right.ty, Type::Int(_)) && right.value().is_none() {
            self.error(right.span, format!("`{sign}` expects an unsigned amount, found `{}`", right.ty));
            return TExpr::bad(span);
        }
        if matches!(left.ty, Type::InfInt) && right.value().is_none() {
            self.report(
                Diagnostic::error(
                    left.span,
                    format!("`{sign}` by an amount that is not constant needs a width"),
                )
                .help("write it with a width, such as `32w1`"),
            );
            return TExpr::bad(span);
        }
        if let Some(Value::Int(amount)) = right.value() {
            if amount.sign() == num_bigint::Sign::Minus {
                self.error(right.span, "shift by a negative amount");
                return TExpr::bad(span);
            }
            if let Type::Bit(w) | Type::Int(w) = left.ty
                && *amount >= w.into()
                && left.value().is_none()
            {
                self.warn(span, format!("a shift of `{}` by {amount} shifts out all of its bits", left.ty));
            }
        }
        let ty = left.ty.clone();
        self.build(op, left, right, ty, span)
    }

    fn concat(&mut self, left: TExpr, right: TExpr, span: Span) -> TExpr {
        let (left, right) = (self.as_number(left), self.as_number(right));
        if let (Type::Str, Type::Str) = (&left.ty, &right.ty)
            && let (Some(Value::Str(a)), Some(Value::Str(b))) = (left.value(), right.value())
        {
            return TExpr::constant(Value::Str(format!("{a}{b}")), Type::Str, span);
        }
        let ty = match (&left.ty, &right.ty) {
            (Type::Bit(a), Type::Bit(b) | Type::Int(b)) => Type::Bit(a + b),
            (Type::Int(a), Type::Bit(b) | Type::Int(b)) => Type::Int(a + b),
            _ => {
                let bad = if left.ty.is_bits() { &right } else { &left };
                let mut d = Diagnostic::error(
                    bad.span,
                    format!("`++` expects numbers with a width, found `{}`", bad.ty),
                );
                if matches!(bad.ty, Type::InfInt) {
                    d = d.help("give the number a width, such as `8w1`");
                }
                self.report(d);
                return TExpr::bad(span);
            }
        };
        if let (Some(Value::Int(a)), Some(Value::Int(b)), Type::Bit(w) | Type::Int(w)) =
            (left.value(), right.value(), &right.ty)
        {
            return TExpr::constant(Value::Int(value::concat(a, b, *w, &ty)), ty, span);
        }
        TExpr::new(EKind::Binary(BinaryOp::Concat, Box::new(left), Box::new(right)), ty, span)
    }

    fn equality(&mut self, op: BinaryOp, left: TExpr, right: TExpr, span: Span) -> TExpr {
        let (left, right) = match (&left.ty, &right.ty) {
            (Type::Literal(a), Type::Literal(_)) if a.names.is_some() => {
                self.error(span, "neither side of this comparison has a type");
                return TExpr::bad(span);
            }
            (Type::Literal(_), Type::Literal(_)) => (self.settle(left), self.settle(right)),
            (Type::Literal(_) | Type::InvalidHeader | Type::Dots, _) => {
                let want = right.ty.clone();
                (self.coerce(left, &want), right)
            }
            (_, Type::Literal(_) | Type::InvalidHeader | Type::Dots) => {
                let want = left.ty.clone();
                (left, self.coerce(right, &want))
            }
            (a, b) if a == b => (left, right),
            _ => match self.same_numbers(op, left, right, span) {
                Some(pair) => pair,
                None => return TExpr::bad(span),
            },
        };
        if left.is_bad() || right.is_bad() {
            return TExpr::bad(span);
        }
        if !comparable(&left.ty) {
            self.error(span, format!("values of type `{}` cannot be compared", left.ty));
            return TExpr::bad(span);
        }
        if left.ty != right.ty {
            self.error(span, format!("`{}` and `{}` cannot be compared", left.ty, right.ty));
            return TExpr::bad(span);
        }
        self.build(op, left, right, Type::Bool, span)
    }

    /// Converts two numbers to one type; an `int` takes the other's.
    fn same_numbers(
        &mut self,
        op: BinaryOp,
        left: TExpr,
        right: TExpr,
        span: Span,
    ) -> Option<(TExpr, TExpr)> {
        let (left, right) = (self.as_number(left), self.as_number(right));
        if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
            let negative = [&left, &right].into_iter().find(|e| {
                matches!((&e.ty, e.value()), (Type::InfInt, Some(Value::Int(i))) if i.sign() == num_bigint::Sign::Minus)
            });
            if let Some(e) = negative {
                self.error(e.span, "division and modulo are not defined for negative numbers");
                return None;
            }
        }
        let number = |t: &Type| t.is_bits() || matches!(t, Type::InfInt);
        for side in [&left, &right] {
            if !number(&side.ty) {
                let other = if std::ptr::eq(side, &left) { &right } else { &left };
                let mut d = match op {
                    BinaryOp::Eq | BinaryOp::Ne => Diagnostic::error(
                        span,
                        format!("`{}` and `{}` cannot be compared", left.ty, right.ty),
                    ),
                    _ => Diagnostic::error(
                        side.span,
                        format!("`{}` cannot be applied to `{}`", symbol(op), side.ty),
                    ),
                };
                if let Type::New(n) = &side.ty
                    && number(other.ty.underlying())
                {
                    d = d.help(format!("cast it to `{}` first", n.inner));
                }
                self.report(d);
                return None;
            }
        }
        match (&left.ty, &right.ty) {
            (a, b) if a == b => Some((left, right)),
            (Type::InfInt, _) => {
                let want = right.ty.clone();
                Some((self.coerce(left, &want), right))
            }
            (_, Type::InfInt) => {
                let want = left.ty.clone();
                Some((left, self.coerce(right, &want)))
            }
            _ => {
                self.report(
                    Diagnostic::error(span, format!("`{}` needs two operands of one type", symbol(op)))
                        .label(left.span, format!("this is `{}`", left.ty))
                        .label(right.span, format!("this is `{}`", right.ty))
                        .help("cast one of them"),
                );
                None
            }
        }
    }

    /// Converts a serializable enum to its number; returns anything else unchanged.
    pub(super) fn as_number(&mut self, e: TExpr) -> TExpr {
        match &e.ty {
            Type::Enum(en) => match en.repr.clone() {
                Some(repr) => super::convert::convert_to(e, &repr),
                None => e,
            },
            _ => e,
        }
    }

    pub(super) fn ternary(&mut self, cond: TExpr, then: TExpr, otherwise: TExpr, span: Span) -> TExpr {
        if cond.is_bad() || then.is_bad() || otherwise.is_bad() {
            return TExpr::bad(span);
        }
        if !matches!(cond.ty, Type::Bool) {
            self.error(cond.span, format!("a condition is `bool`, not `{}`", cond.ty));
            return TExpr::bad(span);
        }
        let (then, otherwise) = match (&then.ty, &otherwise.ty) {
            (a, b) if a == b => (then, otherwise),
            // Two lists: the user of one of them determines their type.
            (Type::Literal(_), Type::Literal(_)) => (then, otherwise),
            (Type::InfInt | Type::Literal(_) | Type::InvalidHeader, _) => {
                let want = otherwise.ty.clone();
                (self.coerce(then, &want), otherwise)
            }
            _ => {
                let want = then.ty.clone();
                (then, self.coerce(otherwise, &want))
            }
        };
        if then.is_bad() || otherwise.is_bad() {
            return TExpr::bad(span);
        }
        if let Some(Value::Bool(known)) = cond.value() {
            return TExpr { span, ..(if *known { then } else { otherwise }) };
        }
        if matches!(then.ty, Type::InfInt) {
            self.report(
                Diagnostic::error(span, "the width of this conditional expression is not known")
                    .help("give one of the numbers a width, such as `8w1`"),
            );
            return TExpr::bad(span);
        }
        let ty = then.ty.clone();
        TExpr::new(EKind::Ternary(Box::new(cond), Box::new(then), Box::new(otherwise)), ty, span)
    }
}

/// Whether two constant lists of one type are equal; `None` for anything else.
fn same_parts(left: &TExpr, right: &TExpr) -> Option<bool> {
    match (&left.kind, &right.kind) {
        (EKind::List(a), EKind::List(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| same_parts(a, b).or(Some(a.value()? == b.value()?)));
            pairs.collect::<Option<Vec<bool>>>().map(|pairs| pairs.into_iter().all(|same| same))
        }
        _ => None,
    }
}

/// Whether `==` is defined for the type.
fn comparable(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) => s.kind != StructKind::Struct || s.fields.iter().all(|f| comparable(&f.ty)),
        Type::Tuple(items) => items.iter().all(comparable),
        Type::Stack(..) | Type::InfInt | Type::Str => true,
        Type::Var(_) => false,
        Type::Error => true,
        Type::Enum(_) => true,
        other => other.scalar().is_some(),
    }
}
