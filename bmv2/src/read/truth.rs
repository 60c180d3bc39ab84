//! Truth values.

use super::expr::{binary, cast, constant};
use super::operation::{Operation, bare, comparison};
use super::{Cursor, Reader, Result};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use p4rack_p4::ir::{BinOp, Expr, HeaderRef, Ty, UnOp};

/// Truth values with `&&` or `||` between them, as a tree that is as flat as can be: what handles expressions goes as deep as they are
/// nested.
fn joined(op: BinOp, mut parts: Vec<Expr>) -> Option<Expr> {
    while parts.len() > 1 {
        let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => binary(op, left, right, Ty::Bool),
                None => left,
            });
        }
        parts = halved;
    }
    parts.pop()
}

impl<'j> Reader<'j> {
    /// A truth value.
    pub(super) fn truth(&mut self, node: &Cursor<'j>) -> Result<Expr> {
        let node = bare(node.clone())?;
        self.count(&node, 1)?;
        if node.text_of("type")? == "bool" {
            return Ok(constant(u8::from(node.get("value")?.flag()?), Ty::Bool));
        }
        match self.operation(&node)? {
            Some(operation) => self.truth_operation(&node, &operation),
            None => self.not_zero(&node),
        }
    }

    fn not_zero(&mut self, node: &Cursor<'j>) -> Result<Expr> {
        let (value, ty) = self.exact(node)?;
        Ok(match (value, ty) {
            (Expr::Cast { expr, from: Ty::Bool, .. }, _) => *expr,
            (value, Ty::Bit(1)) => cast(value, ty, Ty::Bool),
            (value, ty) => binary(BinOp::Ne, value, constant(0u8, ty), ty),
        })
    }

    pub(super) fn truth_operation(&mut self, node: &Cursor<'j>, operation: &Operation<'j>) -> Result<Expr> {
        if let Some(op) = comparison(operation.op) {
            return self.compared(op, operation);
        }
        match operation.op {
            "not" => {
                let right = self.truth(&operation.right()?)?;
                Ok(Expr::Unary { op: UnOp::Not, expr: Box::new(right), ty: Ty::Bool })
            }
            "and" | "or" => {
                let (left, right) = (self.truth(&operation.left()?)?, self.truth(&operation.right()?)?);
                let op = if operation.op == "and" { BinOp::And } else { BinOp::Or };
                Ok(binary(op, left, right, Ty::Bool))
            }
            "d2b" => self.not_zero(&operation.right()?),
            "valid" => match self.header_ref(&operation.right()?)? {
                HeaderRef::Fixed(header) => Ok(Expr::Var(self.program.headers[header.0 as usize].valid)),
                other => Ok(Expr::Valid(other)),
            },
            "valid_union" => {
                let name = operation.right()?.get("value")?;
                let Some(members) = self.unions.get(name.text()?).cloned() else {
                    return name.wrong("there is no such union");
                };
                self.count(&name, 2 * members.len())?;
                let valid = |header: &p4rack_p4::ir::HeaderId| {
                    Expr::Var(self.program.headers[header.0 as usize].valid)
                };
                let any = joined(BinOp::Or, members.iter().map(valid).collect());
                Ok(any.unwrap_or(constant(0u8, Ty::Bool)))
            }
            "?" if self.is_truth(&operation.left()?)? => {
                let cond = Box::new(self.truth(&operation.node.get("cond")?)?);
                let then = Box::new(self.truth(&operation.left()?)?);
                let otherwise = Box::new(self.truth(&operation.right()?)?);
                Ok(Expr::Ternary { cond, ty: Ty::Bool, then, otherwise })
            }
            "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^" | "~" | "<<" | ">>" | "?" | "b2d"
            | "two_comp_mod" | "usat_cast" | "sat_cast" | "access_field" | "last_stack_index"
            | "size_stack" => self.not_zero(node),
            other => operation.node.get("op")?.wrong(format!("there is no operation `{other}`")),
        }
    }

    /// Whether an expression is a truth value.
    fn is_truth(&self, node: &Cursor<'j>) -> Result<bool> {
        let node = bare(node.clone())?;
        Ok(match self.operation(&node)? {
            Some(operation) => {
                comparison(operation.op).is_some()
                    || matches!(operation.op, "not" | "and" | "or" | "d2b" | "valid" | "valid_union")
            }
            None => node.text_of("type")? == "bool",
        })
    }

    fn compared(&mut self, op: BinOp, operation: &Operation<'j>) -> Result<Expr> {
        let (left, right) = (bare(operation.left()?)?, bare(operation.right()?)?);
        if self.is_truth(&left)? || self.is_truth(&right)? {
            let (a, b) = (self.truth(&left)?, self.truth(&right)?);
            return Ok(binary(op, a, b, Ty::Bool));
        }
        if left.text_of("type")? == "header" {
            return self.headers_compared(op, &left, &right);
        }
        let (a, b, ty) = self.same(&left, &right)?;
        // Errors have numbers of their own here.
        let (a, b) = match (&a, &b) {
            (Expr::Var(var), Expr::Const { value, ty }) if Some(*var) == self.parser_error => {
                let number = self.error_number(value);
                (a, constant(number, *ty))
            }
            (Expr::Const { value, ty }, Expr::Var(var)) if Some(*var) == self.parser_error => {
                let number = self.error_number(value);
                (constant(number, *ty), b)
            }
            _ => (a, b),
        };
        Ok(binary(op, a, b, ty))
    }

    /// The switch's number of an error that the file has another number for.
    pub(super) fn error_number(&self, value: &BigUint) -> BigUint {
        let known = value.to_u64().and_then(|number| self.errors.get(&number));
        known.map_or_else(|| value.clone(), |number| BigUint::from(*number))
    }

    fn headers_compared(&mut self, op: BinOp, left: &Cursor<'j>, right: &Cursor<'j>) -> Result<Expr> {
        let (a, b) = (self.header_named(&left.get("value")?)?, self.header_named(&right.get("value")?)?);
        self.count(left, 4 * self.program.headers[a.0 as usize].fields.len())?;
        let (a, b) = (&self.program.headers[a.0 as usize], &self.program.headers[b.0 as usize]);
        if a.fields.len() != b.fields.len() {
            return right.wrong("a header of another type");
        }
        let both = binary(BinOp::And, Expr::Var(a.valid), Expr::Var(b.valid), Ty::Bool);
        let fields = a.fields.iter().zip(&b.fields).map(|(a, b)| {
            let ty = self.program.vars[a.var.0 as usize].ty;
            binary(BinOp::Eq, Expr::Var(a.var), Expr::Var(b.var), ty)
        });
        let equal = match joined(BinOp::And, fields.collect()) {
            Some(fields) => binary(BinOp::And, both, fields, Ty::Bool),
            None => both,
        };
        let either = binary(BinOp::Or, Expr::Var(a.valid), Expr::Var(b.valid), Ty::Bool);
        let neither = Expr::Unary { op: UnOp::Not, expr: Box::new(either), ty: Ty::Bool };
        let equal = binary(BinOp::Or, neither, equal, Ty::Bool);
        Ok(match op {
            BinOp::Ne => Expr::Unary { op: UnOp::Not, expr: Box::new(equal), ty: Ty::Bool },
            _ => equal,
        })
    }
}
