//! Looking into expressions.

use crate::ir::{BinOp, Expr, UnOp};

/// Arithmetic operations on the longest way through an expression.
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
        Expr::Ternary { then, otherwise, .. } => steps(then).max(steps(otherwise)),
        _ => 0,
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
