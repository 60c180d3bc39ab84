//! Expressions. BMv2 computes with numbers of any size and cuts results where the file says so; the IR's operations
//! have a width. An expression is read either modulo a power of two, if only its low bits matter, or in a type that
//! holds whatever it can be.

use super::operation::{Operation, bare};
use super::{Cursor, Reader, Result};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, ToPrimitive, Zero};
use p4rack_p4::ir::{BinOp, Expr, HeaderRef, Ty, UnOp, VarId};

/// Width of a value in bits.
const WIDTH_MAX: u32 = 2048;
/// Nodes of all expressions of a file, in the IR: 18 MB. How deep they are nested, the reader of JSON limits.
const NODES_MAX: usize = 1 << 18;

/// The ones of a width.
pub(super) fn ones(width: u32) -> BigUint {
    (BigUint::one() << width) - 1u8
}

pub(super) fn constant(value: impl Into<BigUint>, ty: Ty) -> Expr {
    Expr::Const { value: value.into(), ty }
}

pub(super) fn binary(op: BinOp, left: Expr, right: Expr, ty: Ty) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), ty }
}

/// A value in another type.
pub(super) fn cast(expr: Expr, from: Ty, to: Ty) -> Expr {
    match (expr, from == to) {
        (expr, true) => expr,
        (Expr::Const { value, .. }, _) if matches!(from, Ty::Bit(_)) && to.width() > 0 => {
            constant(value & ones(to.width()), to)
        }
        // Back to where it came from.
        (Expr::Cast { expr, from: first, .. }, _) if first == to && first.width() <= from.width() => *expr,
        (expr, _) => Expr::Cast { expr: Box::new(expr), from, to },
    }
}

/// A number modulo a power of two.
fn modulo(value: &BigInt, width: u32) -> BigUint {
    let size = BigInt::one() << width;
    let rest = ((value % &size) + &size) % &size;
    rest.to_biguint().unwrap_or_default()
}

fn arithmetic(op: &str) -> Option<BinOp> {
    Some(match op {
        "+" => BinOp::Add,
        "-" => BinOp::Sub,
        "*" => BinOp::Mul,
        "&" => BinOp::BitAnd,
        "|" => BinOp::BitOr,
        "^" => BinOp::BitXor,
        _ => return None,
    })
}

impl<'j> Reader<'j> {
    pub(super) fn operation(&self, node: &Cursor<'j>) -> Result<Option<Operation<'j>>> {
        if node.text_of("type")? != "expression" {
            return Ok(None);
        }
        let node = node.get("value")?;
        let op = node.text_of("op")?;
        Ok(Some(Operation { node, op }))
    }

    /// Counts nodes of expressions before they are made.
    pub(super) fn count(&mut self, node: &Cursor<'_>, nodes: usize) -> Result<()> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            return node.wrong(format!("the expressions up to here have more than {NODES_MAX} parts"));
        }
        Ok(())
    }

    /// A value of a type: that of the place where it is stored.
    pub(super) fn value(&mut self, node: &Cursor<'j>, ty: Ty) -> Result<Expr> {
        match ty {
            Ty::Bit(width) => self.low(node, width),
            Ty::Int(width) => Ok(cast(self.low(node, width)?, Ty::Bit(width), ty)),
            Ty::Bool | Ty::Varbit(_) => {
                let (value, from) = self.exact(node)?;
                match (ty, from) {
                    (Ty::Varbit(_), Ty::Varbit(_)) | (Ty::Bool, Ty::Bool) => Ok(value),
                    _ => node.wrong("expected a field of variable length"),
                }
            }
        }
    }

    /// The low bits of a number, as an unsigned one.
    pub(super) fn low(&mut self, node: &Cursor<'j>, width: u32) -> Result<Expr> {
        let node = bare(node.clone())?;
        self.count(&node, 1)?;
        self.low_of(&node, width)
    }

    fn low_of(&mut self, node: &Cursor<'j>, width: u32) -> Result<Expr> {
        let ty = Ty::Bit(width);
        if node.text_of("type")? == "hexstr" {
            return Ok(constant(modulo(&node.get("value")?.hex()?, width), ty));
        }
        if let Some(operation) = self.operation(node)? {
            match operation.op {
                "&" => {
                    for (mask, other) in [("right", "left"), ("left", "right")] {
                        let Some(known) = operation.known(mask).and_then(|known| known.to_biguint()) else {
                            continue;
                        };
                        let bits = (known.bits() as u32).clamp(1, width);
                        let part = self.low(&operation.node.get(other)?, bits)?;
                        let known = known & ones(bits);
                        let is_whole = known == ones(bits);
                        let narrow = Ty::Bit(bits);
                        let part = if is_whole {
                            part
                        } else {
                            binary(BinOp::BitAnd, part, constant(known, narrow), narrow)
                        };
                        return Ok(cast(part, narrow, ty));
                    }
                    let (left, right) =
                        (self.low(&operation.left()?, width)?, self.low(&operation.right()?, width)?);
                    return Ok(binary(BinOp::BitAnd, left, right, ty));
                }
                "-" if operation.node.find("left").is_none() => {
                    let right = self.low(&operation.right()?, width)?;
                    return Ok(Expr::Unary { op: UnOp::Neg, expr: Box::new(right), ty });
                }
                "+" if operation.node.find("left").is_none() => return self.low(&operation.right()?, width),
                "~" => {
                    let right = self.low(&operation.right()?, width)?;
                    return Ok(Expr::Unary { op: UnOp::BitNot, expr: Box::new(right), ty });
                }
                "<<" => {
                    let left = self.low(&operation.left()?, width)?;
                    let right = self.amount(&operation.right()?)?;
                    return Ok(binary(BinOp::Shl, left, right, ty));
                }
                "?" => {
                    let cond = Box::new(self.truth(&operation.node.get("cond")?)?);
                    let then = Box::new(self.low(&operation.left()?, width)?);
                    let otherwise = Box::new(self.low(&operation.right()?, width)?);
                    return Ok(Expr::Ternary { cond, ty, then, otherwise });
                }
                "two_comp_mod" if operation.known("right").is_some_and(|bits| bits >= width.into()) => {
                    return self.low(&operation.left()?, width);
                }
                op => {
                    if let Some(op) = arithmetic(op) {
                        let left = self.low(&operation.left()?, width)?;
                        let right = self.low(&operation.right()?, width)?;
                        return Ok(binary(op, left, right, ty));
                    }
                }
            }
        }
        let (value, from) = self.exact_of(node)?;
        if matches!(from, Ty::Varbit(_)) {
            return node.wrong("a field of variable length is no number");
        }
        Ok(cast(value, from, ty))
    }

    /// How far a number is shifted.
    fn amount(&mut self, node: &Cursor<'j>) -> Result<Expr> {
        let (value, ty) = self.exact(node)?;
        match ty {
            Ty::Bit(_) => Ok(value),
            // Negative amounts have no meaning.
            _ => Ok(cast(value, ty, Ty::Bit(ty.width()))),
        }
    }

    /// A number in a type that holds it.
    pub(super) fn exact(&mut self, node: &Cursor<'j>) -> Result<(Expr, Ty)> {
        let node = bare(node.clone())?;
        self.count(&node, 1)?;
        let (value, ty) = self.exact_of(&node)?;
        if ty.width() > WIDTH_MAX && !matches!(ty, Ty::Varbit(_)) {
            return node.wrong(format!("a number of {} bits; at most {WIDTH_MAX} are possible", ty.width()));
        }
        Ok((value, ty))
    }

    fn exact_of(&mut self, node: &Cursor<'j>) -> Result<(Expr, Ty)> {
        if let Some(operation) = self.operation(node)? {
            return self.exact_operation(node, &operation);
        }
        let value = node.get("value")?;
        match node.text_of("type")? {
            "hexstr" => {
                let number = value.hex()?;
                let ty = match number.sign() {
                    Sign::Minus => Ty::Int(number.bits() as u32 + 1),
                    _ => Ty::Bit((number.bits() as u32).max(1)),
                };
                Ok((constant(modulo(&number, ty.width()), ty), ty))
            }
            "field" => {
                let var = self.field_var(&value)?;
                Ok(self.number(var))
            }
            "local" | "runtime_data" => {
                let position = value.number()? as usize;
                match self.params.get(position) {
                    Some((var, ty)) => Ok((Expr::Var(*var), *ty)),
                    None => value.wrong(format!("the action has no parameter {position}")),
                }
            }
            "stack_field" => {
                let stack = self.stack_named(&value.at(0)?)?;
                let field = self.field_of(stack, &value.at(1)?)?;
                Ok(self.header_field(HeaderRef::Last(stack), field))
            }
            "union_stack_field" => {
                let stack = self.union_member(&value.at(0)?, &value.at(1)?)?;
                let field = self.field_of(stack, &value.at(2)?)?;
                Ok(self.header_field(HeaderRef::Last(stack), field))
            }
            "bool" => Ok((constant(u8::from(value.flag()?), Ty::Bit(1)), Ty::Bit(1))),
            other => node.wrong(format!("`{other}` is no number")),
        }
    }

    /// A variable as a number.
    fn number(&self, var: VarId) -> (Expr, Ty) {
        match self.program.vars[var.0 as usize].ty {
            Ty::Bool => (cast(Expr::Var(var), Ty::Bool, Ty::Bit(1)), Ty::Bit(1)),
            ty => (Expr::Var(var), ty),
        }
    }

    fn exact_operation(&mut self, node: &Cursor<'j>, operation: &Operation<'j>) -> Result<(Expr, Ty)> {
        match operation.op {
            "&" => {
                let known = ["right", "left"].into_iter().find_map(|side| operation.known(side));
                if let Some(known) = known.and_then(|known| known.to_biguint()) {
                    let width = (known.bits() as u32).max(1);
                    return Ok((self.low_of(node, width)?, Ty::Bit(width)));
                }
                self.joined(operation, BinOp::BitAnd)
            }
            "|" => self.joined(operation, BinOp::BitOr),
            "^" => self.joined(operation, BinOp::BitXor),
            "two_comp_mod" => {
                let width = self.width(operation)?;
                let low = self.low(&operation.left()?, width)?;
                Ok((cast(low, Ty::Bit(width), Ty::Int(width)), Ty::Int(width)))
            }
            "usat_cast" | "sat_cast" => self.saturated(operation),
            "+" | "-" if operation.node.find("left").is_none() => {
                let (value, ty) = self.exact(&operation.right()?)?;
                if operation.op == "+" {
                    return Ok((value, ty));
                }
                let wide = Ty::Int(ty.width() + 2);
                Ok((Expr::Unary { op: UnOp::Neg, expr: Box::new(cast(value, ty, wide)), ty: wide }, wide))
            }
            "+" | "-" | "*" | "/" | "%" => {
                let left = self.exact(&operation.left()?)?;
                let right = self.exact(&operation.right()?)?;
                computed(operation, left, right)
            }
            "<<" => {
                let (left, left_ty) = self.exact(&operation.left()?)?;
                let right = self.amount(&operation.right()?)?;
                let most = operation.known("right").and_then(|bits| bits.to_u32()).unwrap_or(WIDTH_MAX);
                let width = left_ty.width().saturating_add(most).min(WIDTH_MAX);
                let ty = if matches!(left_ty, Ty::Int(_)) { Ty::Int(width) } else { Ty::Bit(width) };
                Ok((binary(BinOp::Shl, cast(left, left_ty, ty), right, ty), ty))
            }
            ">>" => {
                let (left, ty) = self.exact(&operation.left()?)?;
                let right = self.amount(&operation.right()?)?;
                // A constant shift of an unsigned number is a part of it.
                let whole = operation.known("right").and_then(|bits| bits.to_u32());
                if let (Some(lo), Ty::Bit(width)) = (whole, ty)
                    && lo < width
                {
                    let part = Expr::Slice { expr: Box::new(left), from: ty, hi: width - 1, lo };
                    return Ok((part, Ty::Bit(width - lo)));
                }
                Ok((binary(BinOp::Shr, left, right, ty), ty))
            }
            "~" => {
                let (value, ty) = self.exact(&operation.right()?)?;
                let wide = Ty::Int(ty.width() + 1);
                Ok((Expr::Unary { op: UnOp::BitNot, expr: Box::new(cast(value, ty, wide)), ty: wide }, wide))
            }
            "?" => {
                let cond = Box::new(self.truth(&operation.node.get("cond")?)?);
                let (left, right, ty) = self.same(&operation.left()?, &operation.right()?)?;
                Ok((Expr::Ternary { cond, ty, then: Box::new(left), otherwise: Box::new(right) }, ty))
            }
            "b2d" => {
                let truth = self.truth(&operation.right()?)?;
                Ok((cast(truth, Ty::Bool, Ty::Bit(1)), Ty::Bit(1)))
            }
            "last_stack_index" | "size_stack" => {
                let name = operation.right()?.get("value")?;
                let stack = match self.union_stacks.get(name.text()?).and_then(|stacks| stacks.first()) {
                    Some((_, stack)) => *stack,
                    None => self.stack_named(&name)?,
                };
                let next = Expr::Var(self.program.stacks[stack.0 as usize].next);
                let ty = Ty::Bit(32);
                let is_size = operation.op == "size_stack";
                Ok((if is_size { next } else { binary(BinOp::Sub, next, constant(1u8, ty), ty) }, ty))
            }
            "access_field" => {
                let header = self.header_ref(&operation.left()?)?;
                let position = operation.right()?;
                let any = self.any_header(&header);
                let count = self.program.headers[any].fields.len() as u64;
                if count == 0 {
                    return position.wrong("the header has no fields");
                }
                let field = position.within(0, count.saturating_sub(1))? as u32;
                Ok(self.header_field(header, field))
            }
            // A truth value where a number is expected.
            _ => {
                let truth = self.truth_operation(node, operation)?;
                Ok((cast(truth, Ty::Bool, Ty::Bit(1)), Ty::Bit(1)))
            }
        }
    }

    fn width(&self, operation: &Operation<'j>) -> Result<u32> {
        let bits = operation.known("right").and_then(|bits| bits.to_u32());
        match bits.filter(|bits| (1..=WIDTH_MAX).contains(bits)) {
            Some(bits) => Ok(bits),
            None => operation.right()?.wrong(format!("expected a width from 1 to {WIDTH_MAX}")),
        }
    }

    /// Two numbers in one type that holds both.
    pub(super) fn same(&mut self, left: &Cursor<'j>, right: &Cursor<'j>) -> Result<(Expr, Expr, Ty)> {
        let (a, a_ty) = self.exact(left)?;
        let (b, b_ty) = self.exact(right)?;
        let ty = match (a_ty, b_ty) {
            (Ty::Varbit(_), Ty::Varbit(_)) => a_ty,
            (Ty::Varbit(_), _) | (_, Ty::Varbit(_)) => {
                return left.wrong("a field of variable length and a number have no common type");
            }
            (Ty::Bit(a), Ty::Bit(b)) => Ty::Bit(a.max(b)),
            (a, b) => {
                let signed = |ty: Ty| ty.width() + u32::from(!matches!(ty, Ty::Int(_)));
                Ty::Int(signed(a).max(signed(b)))
            }
        };
        if matches!(ty, Ty::Varbit(_)) {
            return Ok((a, b, ty));
        }
        Ok((cast(a, a_ty, ty), cast(b, b_ty, ty), ty))
    }

    fn joined(&mut self, operation: &Operation<'j>, op: BinOp) -> Result<(Expr, Ty)> {
        let (left, right, ty) = self.same(&operation.left()?, &operation.right()?)?;
        Ok((binary(op, left, right, ty), ty))
    }

    /// A cast that keeps numbers which are too large at the largest.
    fn saturated(&mut self, operation: &Operation<'j>) -> Result<(Expr, Ty)> {
        let width = self.width(operation)?;
        let is_signed = operation.op == "sat_cast";
        let ty = if is_signed { Ty::Int(width) } else { Ty::Bit(width) };
        let inner = bare(operation.left()?)?;
        if let Some(sum) = self.operation(&inner)?
            && let Some(op) = match sum.op {
                "+" => Some(BinOp::AddSat),
                "-" => Some(BinOp::SubSat),
                _ => None,
            }
            && sum.node.find("left").is_some()
        {
            let fits = |known: Ty| known == ty || matches!((known, ty), (Ty::Bit(a), Ty::Bit(b)) if a <= b);
            let (left, left_ty) = self.exact(&sum.left()?)?;
            let (right, right_ty) = self.exact(&sum.right()?)?;
            // Constants have the smallest type that holds them.
            let known = |expr: &Expr, from: Ty| {
                matches!(expr, Expr::Const { .. })
                    && from.width() + u32::from(matches!(from, Ty::Bit(_))) <= width
            };
            if (fits(left_ty) || known(&left, left_ty)) && (fits(right_ty) || known(&right, right_ty)) {
                let (left, right) = (cast(left, left_ty, ty), cast(right, right_ty, ty));
                return Ok((binary(op, left, right, ty), ty));
            }
            let (value, from) = computed(&sum, (left, left_ty), (right, right_ty))?;
            return Ok((limited(value, from, ty), ty));
        }
        let (value, from) = self.exact(&inner)?;
        Ok((limited(value, from, ty), ty))
    }
}

/// A sum, difference, product, quotient or rest, in a type that holds it.
fn computed(
    operation: &Operation<'_>,
    (left, left_ty): (Expr, Ty),
    (right, right_ty): (Expr, Ty),
) -> Result<(Expr, Ty)> {
    let plain = matches!((left_ty, right_ty), (Ty::Bit(_), Ty::Bit(_)));
    let (a, b) = (left_ty.width(), right_ty.width());
    let (op, width) = match operation.op {
        "+" => (BinOp::Add, a.max(b) + 1),
        "-" => (BinOp::Sub, a.max(b) + 1),
        "*" => (BinOp::Mul, a + b),
        "/" => (BinOp::Div, a.max(b)),
        _ => (BinOp::Mod, a.max(b)),
    };
    let ty = if plain && op != BinOp::Sub { Ty::Bit(width) } else { Ty::Int(width + 2) };
    if ty.width() > WIDTH_MAX {
        return operation
            .node
            .wrong(format!("a number of {} bits; at most {WIDTH_MAX} are possible", ty.width()));
    }
    Ok((binary(op, cast(left, left_ty, ty), cast(right, right_ty, ty), ty), ty))
}

/// A number of type `from`, or the closest one of type `to`. The number is read once: added up to where its type ends
/// and taken back again, it loses what is above the largest; below the least, in the same way.
fn limited(value: Expr, from: Ty, to: Ty) -> Expr {
    let width = from.width().max(to.width()) + 2;
    let wide = Ty::Int(width);
    let (least, most) = match to {
        Ty::Int(bits) => {
            let half = BigInt::one() << (bits - 1);
            (-half.clone(), half - 1)
        }
        other => (BigInt::zero(), BigInt::from(ones(other.width()))),
    };
    let end = BigInt::one() << (width - 1);
    let up_to = |value: Expr, distance: &BigInt| {
        let distance = constant(modulo(distance, width), wide);
        let ended = binary(BinOp::AddSat, value, distance.clone(), wide);
        binary(BinOp::Sub, ended, distance, wide)
    };
    let below = up_to(cast(value, from, wide), &(end.clone() - 1 - most));
    cast(up_to(below, &(-end - least)), wide, to)
}
