//! Expressions. BMv2 computes with numbers of any size, so each operation that may leave the width of its type is
//! followed by one that cuts the result.

use super::depth::{chain, operation, tree};
use super::places::Place;
use super::{Result, Writer};
use crate::names::STANDARD;
use num_bigint::BigUint;
use num_traits::One;
use p4rack_p4::ir::{BinOp, Expr, HeaderId, HeaderRef, StackId, Ty, UnOp, VarId};
use serde_json::{Value, json};

/// A number with the digits of whole bytes.
pub(super) fn hex(value: &BigUint, width: u32) -> Value {
    let digits = 2 * (width.max(1)).div_ceil(8) as usize;
    json!({ "type": "hexstr", "value": format!("0x{value:0digits$x}") })
}

fn number(value: u32) -> Value {
    hex(&BigUint::from(value), 32)
}

/// The ones of a width.
pub(super) fn mask(width: u32) -> BigUint {
    (BigUint::one() << width) - 1u8
}

fn unary(op: &str, right: Value) -> Value {
    operation(op, Value::Null, right)
}

fn choice(cond: Value, left: Value, right: Value) -> Value {
    json!({ "type": "expression", "value": { "op": "?", "cond": cond, "left": left, "right": right } })
}

/// Cuts a number to the width of its type.
fn cut(value: Value, ty: Ty) -> Value {
    match ty {
        Ty::Int(width) => operation("two_comp_mod", value, number(width)),
        other => operation("&", value, hex(&mask(other.width()), other.width())),
    }
}

fn operator(op: BinOp) -> &'static str {
    match op {
        BinOp::Add | BinOp::AddSat => "+",
        BinOp::Sub | BinOp::SubSat => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Mod => "%",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::And => "and",
        BinOp::Or => "or",
    }
}

/// Whether the result is a truth value.
fn compares(op: BinOp) -> bool {
    use BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or)
}

/// Wraps an expression as a primitive's argument.
pub(super) fn argument(value: Value) -> Value {
    json!({ "type": "expression", "value": value })
}

impl Writer {
    /// The type of an expression.
    pub(super) fn ty(&self, expr: &Expr) -> Ty {
        match expr {
            Expr::Const { ty, .. }
            | Expr::Field { ty, .. }
            | Expr::Unary { ty, .. }
            | Expr::Ternary { ty, .. }
            | Expr::Lookahead { ty, .. } => *ty,
            Expr::Var(var) => self.program.vars[var.0 as usize].ty,
            Expr::Valid(_) => Ty::Bool,
            Expr::Binary { op, ty, .. } => {
                if compares(*op) {
                    Ty::Bool
                } else {
                    *ty
                }
            }
            Expr::Cast { to, .. } => *to,
            Expr::Slice { hi, lo, .. } => Ty::Bit(hi - lo + 1),
            Expr::Concat { left_ty, right_ty, .. } => {
                let width = left_ty.width() + right_ty.width();
                if matches!(left_ty, Ty::Int(_)) { Ty::Int(width) } else { Ty::Bit(width) }
            }
            Expr::PacketLength => Ty::Bit(32),
            Expr::DropPort => Ty::Bit(9),
        }
    }

    /// An expression as the argument of a primitive.
    pub(super) fn param(&mut self, expr: &Expr) -> Result<Value> {
        if let Expr::Var(var) = expr
            && let Some(position) = self.params.get(var)
        {
            return Ok(json!({ "type": "runtime_data", "value": position }));
        }
        let value = self.data(expr)?;
        Ok(match value["type"].as_str() {
            Some("field" | "hexstr") => value,
            _ => argument(value),
        })
    }

    fn variable(&mut self, var: VarId) -> Result<Value> {
        if let Some(position) = self.params.get(&var) {
            return Ok(json!({ "type": "local", "value": position }));
        }
        let at = self.at;
        match self.places.of(&self.program, var, at)? {
            Place::Field(instance, field) => Ok(json!({ "type": "field", "value": [instance, field] })),
            Place::Next(stack) => {
                if self.is_union_stack(stack) {
                    return self.refuse("way to read the next index of a stack of header unions");
                }
                Ok(unary("size_stack", self.stack(stack)))
            }
        }
    }

    /// An expression as a number.
    pub(super) fn data(&mut self, expr: &Expr) -> Result<Value> {
        self.nested(|writer| writer.data_of(expr))
    }

    fn data_of(&mut self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Const { value, ty: Ty::Int(width) } if value.bit(u64::from(width.saturating_sub(1))) => {
                let negative = (BigUint::one() << *width) - value;
                Ok(json!({ "type": "hexstr", "value": format!("-0x{negative:x}") }))
            }
            Expr::Const { value, ty } => Ok(hex(value, ty.width())),
            Expr::Var(var) => self.variable(*var),
            Expr::Field { header, field, .. } => {
                let value = self.field(header, *field)?;
                self.or_zero(header, value)
            }
            Expr::PacketLength => Ok(json!({ "type": "field", "value": [STANDARD, "packet_length"] })),
            Expr::DropPort => Ok(hex(&mask(9), 9)),
            Expr::Ternary { cond, then, otherwise, .. } => {
                Ok(choice(self.truth(cond)?, self.data(then)?, self.data(otherwise)?))
            }
            other if self.ty(other) == Ty::Bool => Ok(unary("b2d", self.truth(other)?)),
            Expr::Unary { op, expr, ty } => {
                let value = self.data(expr)?;
                let done = match op {
                    UnOp::BitNot => unary("~", value),
                    UnOp::Neg | UnOp::Not => operation("-", number(0), value),
                };
                Ok(cut(done, *ty))
            }
            Expr::Binary { op, left, right, ty } => {
                if let Some(parts) = chain(expr) {
                    let parts: Result<Vec<Value>> = parts.into_iter().map(|part| self.data(part)).collect();
                    let finish = |value| if *op == BinOp::Add { cut(value, *ty) } else { value };
                    return Ok(tree(operator(*op), parts?, finish));
                }
                let done = operation(operator(*op), self.data(left)?, self.data(right)?);
                Ok(match op {
                    BinOp::AddSat | BinOp::SubSat => {
                        let cast = if matches!(ty, Ty::Int(_)) { "sat_cast" } else { "usat_cast" };
                        operation(cast, done, number(ty.width()))
                    }
                    BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => cut(done, *ty),
                    BinOp::Div if matches!(ty, Ty::Int(_)) => cut(done, *ty),
                    _ => done,
                })
            }
            Expr::Cast { expr, from, to } => {
                let value = self.data(expr)?;
                Ok(if contains(*to, *from) { value } else { cut(value, *to) })
            }
            Expr::Slice { expr, hi, lo, .. } => {
                let value = self.data(expr)?;
                let shifted = if *lo > 0 { operation(">>", value, number(*lo)) } else { value };
                Ok(cut(shifted, Ty::Bit(hi - lo + 1)))
            }
            Expr::Concat { left, left_ty, right, right_ty } => {
                let low = self.data(right)?;
                let low =
                    if matches!(right_ty, Ty::Int(_)) { cut(low, Ty::Bit(right_ty.width())) } else { low };
                let high = operation("<<", self.data(left)?, number(right_ty.width()));
                let whole = Ty::Bit(left_ty.width() + right_ty.width());
                // A negative high part stays negative.
                let joined = operation("|", cut(high, whole), low);
                Ok(match left_ty {
                    Ty::Int(_) => cut(joined, Ty::Int(whole.width())),
                    _ => joined,
                })
            }
            Expr::Lookahead { .. } => self.refuse("lookahead in this place"),
            Expr::Valid(_) => self.truth(expr),
        }
    }

    /// An expression as a truth value.
    pub(super) fn truth(&mut self, expr: &Expr) -> Result<Value> {
        self.nested(|writer| writer.truth_of(expr))
    }

    fn truth_of(&mut self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Const { value, .. } => Ok(json!({ "type": "bool", "value": *value != BigUint::ZERO })),
            Expr::Unary { op: UnOp::Not, expr, .. } => Ok(unary("not", self.truth(expr)?)),
            Expr::Binary { op: op @ (BinOp::And | BinOp::Or), left, right, .. } => {
                if let Some(parts) = chain(expr) {
                    let parts: Result<Vec<Value>> = parts.into_iter().map(|part| self.truth(part)).collect();
                    return Ok(tree(operator(*op), parts?, |value| value));
                }
                Ok(operation(operator(*op), self.truth(left)?, self.truth(right)?))
            }
            Expr::Binary { op, left, right, .. } if compares(*op) => {
                Ok(operation(operator(*op), self.data(left)?, self.data(right)?))
            }
            Expr::Valid(header) => {
                let valid = unary("valid", self.header_expr(header)?);
                match self.exists(header) {
                    None => Ok(valid),
                    Some(_) => Ok(unary("d2b", self.or_zero(header, unary("b2d", valid))?)),
                }
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                let chosen = choice(self.truth(cond)?, self.data(then)?, self.data(otherwise)?);
                Ok(unary("d2b", chosen))
            }
            Expr::Cast { expr, from, .. } if *from != Ty::Bool => Ok(unary("d2b", self.data(expr)?)),
            Expr::Cast { expr, .. } => self.truth(expr),
            Expr::Var(_) | Expr::Field { .. } => Ok(unary("d2b", self.data(expr)?)),
            _ => self.refuse("such condition"),
        }
    }

    pub(super) fn is_union_stack(&self, stack: StackId) -> bool {
        let first = self.program.stacks[stack.0 as usize].elements.first();
        first.is_some_and(|first| !self.program.headers[first.0 as usize].union_siblings.is_empty())
    }

    /// A stack as an argument.
    pub(super) fn stack(&self, stack: StackId) -> Value {
        let name = &self.places.stacks[stack.0 as usize];
        json!({ "type": if self.is_union_stack(stack) { "header_union_stack" } else { "header_stack" }, "value": name })
    }

    /// Position of the member that a stack of unions' stack is of.
    pub(super) fn member(&self, stack: StackId) -> usize {
        let next = self.program.stacks[stack.0 as usize].next;
        self.program.stacks[..stack.0 as usize].iter().filter(|other| other.next == next).count()
    }

    /// A header as an expression.
    pub(super) fn header_expr(&mut self, header: &HeaderRef) -> Result<Value> {
        let (stack, index) = match header {
            HeaderRef::Fixed(id) => {
                return Ok(json!({ "type": "header", "value": self.places.header(*id) }));
            }
            HeaderRef::Index(stack, index) => (*stack, self.data(index)?),
            HeaderRef::Last(stack) if !self.is_union_stack(*stack) => {
                (*stack, unary("last_stack_index", self.stack(*stack)))
            }
            HeaderRef::Last(_) => {
                return self.refuse("last element of a stack of header unions in this place");
            }
            HeaderRef::Next(_) => return self.refuse("next element of a stack in this place"),
        };
        if self.is_union_stack(stack) {
            let union = operation("dereference_union_stack", self.stack(stack), index);
            let mut access = operation("access_union_header", union, Value::Null);
            access["value"]["right"] = json!(self.member(stack));
            return Ok(access);
        }
        Ok(operation("dereference_header_stack", self.stack(stack), index))
    }

    /// Whether an element that is chosen by its index exists; `None`: it always does.
    pub(super) fn exists(&self, header: &HeaderRef) -> Option<Expr> {
        let HeaderRef::Index(stack, index) = header else { return None };
        let size = BigUint::from(self.program.stacks[stack.0 as usize].elements.len());
        let ty = self.ty(index);
        let is_behind = match &**index {
            Expr::Const { value, .. } => *value >= size,
            _ => mask(ty.width()) >= size,
        };
        let size = Box::new(Expr::Const { value: size, ty });
        is_behind.then(|| Expr::Binary { op: BinOp::Lt, left: index.clone(), right: size, ty })
    }

    /// What is read of an element, or 0 where there is none. BMv2 computes only one of them, and would end at an element that
    /// doesn't exist.
    fn or_zero(&mut self, header: &HeaderRef, value: Value) -> Result<Value> {
        Ok(match self.exists(header) {
            None => value,
            Some(exists) => choice(self.truth(&exists)?, value, number(0)),
        })
    }

    /// Any header that a reference can mean.
    pub(super) fn some_header(&self, header: &HeaderRef) -> HeaderId {
        match header {
            HeaderRef::Fixed(id) => *id,
            HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
                self.program.stacks[stack.0 as usize].elements[0]
            }
        }
    }

    /// A field of a header.
    pub(super) fn field(&mut self, header: &HeaderRef, field: u32) -> Result<Value> {
        match header {
            HeaderRef::Last(stack) if !self.is_union_stack(*stack) => {
                let any = self.some_header(header);
                let name = &self.program.headers[any.0 as usize].fields[field as usize].name;
                Ok(json!({ "type": "stack_field", "value": [self.places.stacks[stack.0 as usize], name] }))
            }
            HeaderRef::Fixed(id) => {
                let var = self.program.headers[id.0 as usize].fields[field as usize].var;
                self.variable(var)
            }
            other => {
                let mut access = operation("access_field", self.header_expr(other)?, Value::Null);
                access["value"]["right"] = json!(field);
                Ok(access)
            }
        }
    }
}

/// Whether a type has all values of another one.
fn contains(wide: Ty, narrow: Ty) -> bool {
    match (wide, narrow) {
        (Ty::Int(wide), Ty::Int(narrow)) => wide >= narrow,
        (Ty::Int(wide), narrow) => wide > narrow.width(),
        (_, Ty::Int(_)) => false,
        (wide, narrow) => wide.width() >= narrow.width(),
    }
}
