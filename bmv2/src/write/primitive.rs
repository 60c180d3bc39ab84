//! Statements without control flow, as primitives.

use super::expr::{hex, mask};
use super::{Result, Writer};
use num_bigint::BigUint;
use p4rack_p4::ir::{self, BinOp, Expr, HeaderId, HeaderRef, LValue, StackId, Stmt, Ty, UnOp};
use serde_json::{Value, json};

/// A primitive with its arguments.
pub(super) fn primitive(op: &str, parameters: Vec<Value>) -> Value {
    json!({ "op": op, "parameters": parameters })
}

impl Writer {
    /// Appends what a statement becomes.
    pub(super) fn statement(&mut self, stmt: &Stmt, out: &mut Vec<Value>) -> Result<()> {
        match stmt {
            Stmt::Assign { target, value, span } => {
                self.at = *span;
                self.assign(target, value, out)
            }
            Stmt::CopyHeader { dst, src } => {
                let parameters = vec![self.header_param(dst)?, self.header_param(src)?];
                out.push(primitive("assign_header", parameters));
                Ok(())
            }
            Stmt::SetValid { header, valid } => {
                let op = if *valid { "add_header" } else { "remove_header" };
                let header = self.header_param(header)?;
                out.push(primitive(op, vec![header]));
                Ok(())
            }
            Stmt::StackShift { stack, count } => {
                let op = if *count < 0 { "pop" } else { "push" };
                let stack = self.stack(*stack);
                out.push(primitive(op, vec![stack, hex(&BigUint::from(count.unsigned_abs()), 32)]));
                Ok(())
            }
            Stmt::Extern { call, span } => {
                self.at = *span;
                self.external(call, out)
            }
            Stmt::Extract { .. } | Stmt::Advance(_) | Stmt::Verify { .. } => {
                self.refuse("parser's operation outside of a parser")
            }
            Stmt::Emit(_) => self.refuse("`emit` outside of the deparser"),
            Stmt::If { .. }
            | Stmt::Switch { .. }
            | Stmt::Scope(_)
            | Stmt::Loop { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Exit
            | Stmt::Apply { .. } => self.refuse("way to branch or to apply a table here"),
        }
    }

    fn header_param(&mut self, header: &HeaderRef) -> Result<Value> {
        let value = self.header_expr(header)?;
        Ok(match header {
            HeaderRef::Fixed(_) => value,
            _ => super::expr::argument(value),
        })
    }

    fn assign(&mut self, target: &LValue, value: &Expr, out: &mut Vec<Value>) -> Result<()> {
        if let LValue::Slice { base, .. } = target {
            let ty = self.target_ty(base);
            let read = self.read(base)?;
            let whole = self.spliced(target, value.clone(), read, ty);
            return self.assign(base, &whole, out);
        }
        if self.target_ty(target).width() == 0 {
            return Ok(());
        }
        if let LValue::Var(var) = target
            && let Some(stack) = self.program.stacks.iter().position(|stack| stack.next == *var)
        {
            return self.set_next(StackId(stack as u32), value, out);
        }
        let op = if matches!(self.target_ty(target), Ty::Varbit(_)) { "assign_VL" } else { "assign" };
        let parameters = vec![self.target(target)?, self.param(value)?];
        out.push(primitive(op, parameters));
        Ok(())
    }

    /// Sets a stack's next index. BMv2 has no such operation, so this is possible where nothing depends on the
    /// index, and right after all elements have become invalid or those of another stack, which has the same index then.
    fn set_next(&mut self, stack: StackId, value: &Expr, out: &mut Vec<Value>) -> Result<()> {
        let ir::Stack { name, elements, next } = self.program.stacks[stack.0 as usize].clone();
        let is_read = self.reads.get(&next).is_some_and(|reads| *reads > 0);
        if !self.in_parser && !is_read {
            return Ok(());
        }
        if let Some(from) = self.copied(&elements, value, out) {
            out.truncate(out.len() - elements.len());
            out.push(primitive("assign_header_stack", vec![self.stack(stack), self.stack(from)]));
            return Ok(());
        }
        let last = elements.last().map(|last| self.places.header(*last));
        let cleared = out.last().is_some_and(|before| {
            before["op"] == "remove_header" && Some(&before["parameters"][0]["value"]) == last.as_ref()
        });
        if cleared && matches!(value, Expr::Const { value, .. } if *value == BigUint::ZERO) {
            let count = hex(&BigUint::from(elements.len()), 32);
            let stack = self.stack(stack);
            out.push(primitive("pop", vec![stack, count]));
            return Ok(());
        }
        self.refuse(format!("way to set the next index of a stack, `{name}`"))
    }

    /// The stack whose next index the value is, if the last primitives copy its elements to these.
    fn copied(&self, to: &[HeaderId], value: &Expr, out: &[Value]) -> Option<StackId> {
        let Expr::Var(var) = value else { return None };
        let from = self.program.stacks.iter().position(|stack| stack.next == *var)?;
        let id = StackId(from as u32);
        let from = &self.program.stacks[from].elements;
        let header = |id: &HeaderId| json!({ "type": "header", "value": self.places.header(*id) });
        let copy = |(to, from)| primitive("assign_header", vec![header(to), header(from)]);
        let copies = to.iter().zip(from).map(copy);
        let is_copy = from.len() == to.len() && out.len() >= to.len() && !self.is_union_stack(id);
        (is_copy && copies.eq(out[out.len() - to.len()..].iter().cloned())).then_some(id)
    }

    /// The new value of a whole whose part is set.
    fn spliced(&self, target: &LValue, value: Expr, whole: Expr, ty: Ty) -> Expr {
        let LValue::Slice { hi, lo, .. } = target else { return value };
        let plain = Ty::Bit(ty.width());
        let part = mask(hi - lo + 1) << *lo;
        let rest = mask(ty.width()) - &part;
        let number = |value: BigUint| Box::new(Expr::Const { value, ty: plain });
        let cast = |expr: Expr, from: Ty, to: Ty| Expr::Cast { expr: Box::new(expr), from, to };
        let binary = |op: BinOp, left: Expr, right: Box<Expr>| Expr::Binary {
            op,
            left: Box::new(left),
            right,
            ty: plain,
        };
        let whole = if ty == plain { whole } else { cast(whole, ty, plain) };
        let kept = binary(BinOp::BitAnd, whole, number(rest));
        let from = self.ty(&value);
        let wide = cast(value, from, plain);
        let moved = if *lo == 0 { wide } else { binary(BinOp::Shl, wide, number(BigUint::from(*lo))) };
        let new = binary(BinOp::BitOr, kept, Box::new(moved));
        if ty == plain { new } else { cast(new, plain, ty) }
    }

    /// The value at a place.
    fn read(&self, place: &LValue) -> Result<Expr> {
        Ok(match place {
            LValue::Var(var) => Expr::Var(*var),
            LValue::Field { header, field } => {
                Expr::Field { header: header.clone(), field: *field, ty: self.target_ty(place) }
            }
            LValue::Slice { base, hi, lo } => {
                let from = self.target_ty(base);
                Expr::Slice { expr: Box::new(self.read(base)?), from, hi: *hi, lo: *lo }
            }
        })
    }

    /// The type of a place.
    pub(super) fn target_ty(&self, place: &LValue) -> Ty {
        match place {
            LValue::Var(var) => self.program.vars[var.0 as usize].ty,
            LValue::Field { header, field } => {
                let any = self.some_header(header);
                let var = self.program.headers[any.0 as usize].fields[*field as usize].var;
                self.program.vars[var.0 as usize].ty
            }
            LValue::Slice { hi, lo, .. } => Ty::Bit(hi - lo + 1),
        }
    }

    /// A place as the first argument of a primitive.
    fn target(&mut self, place: &LValue) -> Result<Value> {
        match place {
            LValue::Var(var) if self.program.headers.iter().any(|header| header.valid == *var) => {
                self.refuse("way to set a header's validity to a value")
            }
            LValue::Var(var) => self.param(&Expr::Var(*var)),
            LValue::Field { header, field } => {
                let value = self.field(header, *field)?;
                Ok(match value["type"].as_str() {
                    Some("field" | "stack_field") => value,
                    _ => super::expr::argument(value),
                })
            }
            LValue::Slice { .. } => self.refuse("part of a field in this place"),
        }
    }

    /// Calls `make` with a field that it may write, and then copies that to where the value belongs.
    pub(super) fn write_field(
        &mut self,
        place: &LValue,
        out: &mut Vec<Value>,
        make: impl FnOnce(Value) -> Value,
    ) -> Result<()> {
        if let LValue::Var(var) = place
            && !self.program.headers.iter().any(|header| header.valid == *var)
        {
            let field = self.param(&Expr::Var(*var))?;
            out.push(make(field));
            return Ok(());
        }
        let ty = self.target_ty(place);
        let temp = self.temp("result_", ty);
        let field = self.param(&Expr::Var(temp))?;
        out.push(make(field));
        let (target, span) = (place.clone(), self.at);
        self.step(&Stmt::Assign { target, value: Expr::Var(temp), span }, out)
    }

    /// A value as a field or constant: others are computed first.
    pub(super) fn plain(&mut self, expr: &Expr, out: &mut Vec<Value>) -> Result<Expr> {
        let is_field = |var| self.params.contains_key(&var);
        match expr {
            Expr::Var(var) if !is_field(*var) => Ok(expr.clone()),
            Expr::Const { ty, .. } if *ty != Ty::Bool => Ok(expr.clone()),
            _ => {
                let ty = self.ty(expr);
                let temp = self.temp("value_", ty);
                self.assign(&LValue::Var(temp), expr, out)?;
                Ok(Expr::Var(temp))
            }
        }
    }

    /// The opposite of a condition.
    pub(super) fn not(cond: &Expr) -> Expr {
        Expr::Unary { op: UnOp::Not, expr: Box::new(cond.clone()), ty: Ty::Bool }
    }
}
