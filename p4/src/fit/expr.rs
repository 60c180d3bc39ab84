//! Looking into expressions.

use crate::ir::{BinOp, Expr, UnOp};

/// Arithmetic operations on the longest path through an expression.
pub(super) fn steps(expr: &Expr) -> u32 {
    match expr {
        Expr::Binary { op, left, right, .. } => {
            let inner = steps(left).max(steps(right));
            // Constants are added up beforehand.
            let sums = |op: BinOp| matches!(op, BinOp::Add | BinOp::Sub);
            let known = |e: &Expr| matches!(e, Expr::Const { .. });
            let joins = sums(*op)
                && known(right)
                && matches!(&**left, Expr::Binary { op, right, .. } if sums(*op) && known(right));
            let counts = matches!(op, BinOp::Add | BinOp::Sub | BinOp::AddSat | BinOp::SubSat);
            inner + u32::from(counts && !joins)
        }
        Expr::Unary { op, expr, .. } => steps(expr) + u32::from(*op == UnOp::Neg),
        Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => steps(expr),
        Expr::Concat { left, right, .. } => steps(left).max(steps(right)),
        Expr::Ternary { then, otherwise, .. } => {
            steps(then).max(steps(otherwise)) + u32::from(is_extreme(expr))
        }
        _ => 0,
    }
}

/// Whether it is the smaller or the larger one of two values, which is one operation and no condition.
pub(super) fn is_extreme(expr: &Expr) -> bool {
    let Expr::Ternary { cond, then, otherwise, .. } = expr else { return false };
    matches!(&**cond, Expr::Binary { op: BinOp::Lt | BinOp::Gt, left, right, .. }
        if is_same(left, then) && is_same(right, otherwise))
}

/// Whether both are the same variable or the same constant.
fn is_same(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Var(a), Expr::Var(b)) => a == b,
        (Expr::Const { value: a, .. }, Expr::Const { value: b, .. }) => a == b,
        _ => false,
    }
}

/// Calls `see` on an expression and all its parts.
pub(super) fn each(expr: &Expr, see: &mut dyn FnMut(&Expr)) {
    see(expr);
    match expr {
        Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => each(expr, see),
        Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
            each(left, see);
            each(right, see);
        }
        Expr::Ternary { cond, then, otherwise, .. } => {
            each(cond, see);
            each(then, see);
            each(otherwise, see);
        }
        _ => {}
    }
}
