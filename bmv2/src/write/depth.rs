//! How deep expressions are nested: readers of JSON have a limit, so that long chains become trees.

use super::{Refused, Result, Writer};
use p4rack_p4::ir::{BinOp, Expr, Ty};
use serde_json::{Value, json};

/// Levels of an expression in the file. Readers allow 127 of a file, and up to 14 are around an expression.
const LEVELS_MAX: usize = 112;
/// Operands of a chain that stays one.
const CHAIN_MAX: usize = 16;

pub(super) fn operation(op: &str, left: Value, right: Value) -> Value {
    json!({ "type": "expression", "value": { "op": op, "left": left, "right": right } })
}

/// The operands of `a op b op c …`, if they are many and may be grouped in any way.
pub(super) fn chain(expr: &Expr) -> Option<Vec<&Expr>> {
    let Expr::Binary { op: chained, ty: chained_ty, .. } = expr else { return None };
    use BinOp::{Add, And, BitAnd, BitOr, BitXor, Or};
    let is_sum = *chained == Add && matches!(chained_ty, Ty::Bit(_));
    if !is_sum && !matches!(chained, And | Or | BitAnd | BitOr | BitXor) {
        return None;
    }
    let (mut open, mut parts) = (vec![expr], Vec::new());
    while let Some(next) = open.pop() {
        match next {
            Expr::Binary { op, left, right, ty } if op == chained && ty == chained_ty => {
                open.push(right);
                open.push(left);
            }
            other => parts.push(other),
        }
    }
    (parts.len() > CHAIN_MAX).then_some(parts)
}

/// A tree of a chain's operands, in their order.
pub(super) fn tree(op: &str, mut values: Vec<Value>, finish: impl Fn(Value) -> Value) -> Value {
    while values.len() > 1 {
        let mut halved = Vec::new();
        let mut rest = values.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => finish(operation(op, left, right)),
                None => left,
            });
        }
        values = halved;
    }
    values.pop().unwrap_or_default()
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(levels).max().unwrap_or(0),
        Value::Object(values) => 1 + values.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

impl Writer {
    /// Writes an expression, whose levels are counted where it is not a part of another one.
    pub(super) fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<Value>) -> Result<Value> {
        self.nesting += 1;
        let written = write(self);
        self.nesting -= 1;
        let value = written?;
        if self.nesting == 0 && levels(&value) > LEVELS_MAX {
            let message = "BMv2's JSON can't hold an expression that is nested this deep; assign a part of it to \
                           a variable";
            return Err(Refused { at: self.at, message: message.to_owned() });
        }
        Ok(value)
    }
}
