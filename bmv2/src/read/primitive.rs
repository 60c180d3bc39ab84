//! Primitives, as statements.

use super::expr::cast;
use super::{Cursor, NOWHERE, Reader, Result};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use p4rack_p4::ir::{BinOp, Expr, ExternCall, HeaderRef, LValue, StackId, Stmt, Ty};

/// Statements of a file, those of an action once for each call of it.
const STATEMENTS_MAX: usize = 1 << 18;

impl<'j> Reader<'j> {
    /// Counts statements.
    pub(super) fn count_statements(&mut self, node: &Cursor<'_>, statements: usize) -> Result<()> {
        self.statements += statements;
        if self.statements > STATEMENTS_MAX {
            return node.wrong(format!(
                "the program has more than {STATEMENTS_MAX} statements up to here, those of an action counted at each \
                 of its calls"
            ));
        }
        Ok(())
    }

    /// Appends what a primitive does.
    pub(super) fn primitive(&mut self, node: &Cursor<'j>, out: &mut Vec<Stmt>) -> Result<()> {
        let before = out.len();
        self.count_statements(node, 1)?;
        self.append(node, out)?;
        self.count_statements(node, out.len() - before)
    }

    fn append(&mut self, node: &Cursor<'j>, out: &mut Vec<Stmt>) -> Result<()> {
        let op = node.text_of("op")?;
        let args = node.list_of("parameters")?;
        let Some(count) = arguments(op) else {
            return node.get("op")?.wrong(format!("simple_switch has no primitive `{op}` that p4rack knows"));
        };
        if !count.contains(&args.len()) {
            return node.wrong(format!(
                "`{op}` has {} arguments; expected {}",
                args.len(),
                count.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ")
            ));
        }
        match op {
            "no_op" => {}
            "assign" | "assign_VL" | "modify_field" => self.assign(&args, out)?,
            "add_to_field" | "subtract_from_field" => {
                let op = if op == "add_to_field" { BinOp::Add } else { BinOp::Sub };
                self.computed(op, &args[0], &args[0], &args[1], out)?;
            }
            "add" | "subtract" | "bit_and" | "bit_or" | "bit_xor" | "shift_left" | "shift_right" => {
                let op = match op {
                    "add" => BinOp::Add,
                    "subtract" => BinOp::Sub,
                    "bit_and" => BinOp::BitAnd,
                    "bit_or" => BinOp::BitOr,
                    "bit_xor" => BinOp::BitXor,
                    "shift_left" => BinOp::Shl,
                    _ => BinOp::Shr,
                };
                self.computed(op, &args[0], &args[1], &args[2], out)?;
            }
            "assign_header" | "copy_header" => {
                let (dst, src) = (self.header_ref(&args[0])?, self.header_ref(&args[1])?);
                out.push(Stmt::CopyHeader { dst, src });
            }
            "assign_header_stack" | "assign_union" | "assign_union_stack" => self.copied(op, &args, out)?,
            "add_header" | "remove_header" => {
                let header = self.header_ref(&args[0])?;
                out.push(Stmt::SetValid { header, valid: op == "add_header" });
            }
            "push" | "pop" => self.shifted(op, &args, out)?,
            // Handled where blocks are made.
            "exit" => out.push(Stmt::Exit),
            _ => {
                let call = self.external(op, &args, out)?;
                if let Some(call) = call {
                    out.push(Stmt::Extern { call, span: NOWHERE });
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, args: &[Cursor<'j>], out: &mut Vec<Stmt>) -> Result<()> {
        let (target, ty) = self.target(&args[0])?;
        let mut value = self.value(&args[1], ty)?;
        if let Some(mask) = args.get(2) {
            // P4_14: only the bits of the mask change.
            let before = self.nodes;
            let mask = self.value(mask, ty)?;
            // It is there twice.
            self.count(&args[0], self.nodes - before)?;
            let binary = |op, left: Expr, right: Expr| Expr::Binary {
                op,
                left: Box::new(left),
                right: Box::new(right),
                ty,
            };
            let inverse = Expr::Unary { op: p4rack_p4::ir::UnOp::BitNot, expr: Box::new(mask.clone()), ty };
            let (kept, _) = self.exact(&args[0])?;
            let kept = binary(BinOp::BitAnd, kept, inverse);
            value = binary(BinOp::BitOr, kept, binary(BinOp::BitAnd, value, mask));
        }
        out.push(Stmt::Assign { target, value, span: NOWHERE });
        Ok(())
    }

    /// An operation with a primitive of its own, as programs in P4_14 have.
    fn computed(
        &mut self,
        op: BinOp,
        to: &Cursor<'j>,
        left: &Cursor<'j>,
        right: &Cursor<'j>,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let (target, ty) = self.target(to)?;
        let left = self.value(left, ty)?;
        let right =
            self.value(right, if matches!(op, BinOp::Shl | BinOp::Shr) { Ty::Bit(ty.width()) } else { ty })?;
        let value = Expr::Binary { op, left: Box::new(left), right: Box::new(right), ty };
        out.push(Stmt::Assign { target, value, span: NOWHERE });
        Ok(())
    }

    /// A place that a primitive writes.
    pub(super) fn target(&mut self, node: &Cursor<'j>) -> Result<(LValue, Ty)> {
        let (value, ty) = self.exact(node)?;
        match value {
            Expr::Var(var) if !self.params.iter().any(|(param, _)| *param == var) => {
                Ok((LValue::Var(var), ty))
            }
            Expr::Field { header, field, .. } => Ok((LValue::Field { header, field }, ty)),
            _ => node.wrong("expected a field that can be written"),
        }
    }

    fn copied(&mut self, op: &str, args: &[Cursor<'j>], out: &mut Vec<Stmt>) -> Result<()> {
        let names = [args[0].get("value")?, args[1].get("value")?];
        if op == "assign_union" {
            let members = |name: &Cursor<'_>| match self.unions.get(name.text()?) {
                Some(members) => Ok(members.clone()),
                None => name.wrong("there is no such union"),
            };
            self.copy_headers(&members(&names[0])?, &members(&names[1])?, out);
            return Ok(());
        }
        let stacks = |name: &Cursor<'_>| -> Result<Vec<StackId>> {
            if op == "assign_header_stack" {
                return Ok(vec![self.stack_named(name)?]);
            }
            match self.union_stacks.get(name.text()?) {
                Some(members) => Ok(members.iter().map(|(_, stack)| *stack).collect()),
                None => name.wrong("there is no such stack of unions"),
            }
        };
        let (to, from) = (stacks(&names[0])?, stacks(&names[1])?);
        let stack = |id: &StackId| self.program.stacks[id.0 as usize].clone();
        for (to, from) in to.iter().map(stack).zip(from.iter().map(stack)).collect::<Vec<_>>() {
            self.copy_headers(&to.elements, &from.elements, out);
            out.push(Stmt::Assign {
                target: LValue::Var(to.next),
                value: Expr::Var(from.next),
                span: NOWHERE,
            });
        }
        Ok(())
    }

    /// Copies headers. Invalid members of a union go first, because a valid one makes the others invalid.
    fn copy_headers(
        &self,
        to: &[p4rack_p4::ir::HeaderId],
        from: &[p4rack_p4::ir::HeaderId],
        out: &mut Vec<Stmt>,
    ) {
        let is_union = to.iter().any(|id| !self.program.headers[id.0 as usize].union_siblings.is_empty());
        if is_union {
            out.extend(to.iter().map(|id| Stmt::SetValid { header: HeaderRef::Fixed(*id), valid: false }));
        }
        for (to, from) in to.iter().zip(from) {
            let copy = Stmt::CopyHeader { dst: HeaderRef::Fixed(*to), src: HeaderRef::Fixed(*from) };
            if !is_union {
                out.push(copy);
                continue;
            }
            let cond = Expr::Var(self.program.headers[from.0 as usize].valid);
            out.push(Stmt::If { cond, then: vec![copy], otherwise: Vec::new(), span: NOWHERE });
        }
    }

    fn shifted(&mut self, op: &str, args: &[Cursor<'j>], out: &mut Vec<Stmt>) -> Result<()> {
        let count = match args.get(1) {
            None => 1,
            Some(count) => {
                let value = count.get("value")?;
                match value.natural()?.to_i32() {
                    Some(number) => number,
                    None => return value.wrong("expected a small number"),
                }
            }
        };
        let count = if op == "pop" { -count } else { count };
        let name = args[0].get("value")?;
        let Some(members) = self.union_stacks.get(name.text()?).cloned() else {
            let stack = self.stack_named(&name)?;
            out.push(Stmt::StackShift { stack, count });
            return Ok(());
        };
        // The stacks of all members move; their common index moves once.
        let next = members.first().map(|(_, stack)| self.program.stacks[stack.0 as usize].next);
        let Some(next) = next else { return Ok(()) };
        let before = self.new_var(format!("{}.before", name.text()?), Ty::Bit(32));
        let assign =
            |to, from| Stmt::Assign { target: LValue::Var(to), value: Expr::Var(from), span: NOWHERE };
        out.push(assign(before, next));
        for (_, stack) in members {
            out.push(assign(next, before));
            out.push(Stmt::StackShift { stack, count });
        }
        Ok(())
    }

    fn external(&mut self, op: &str, args: &[Cursor<'j>], out: &mut Vec<Stmt>) -> Result<Option<ExternCall>> {
        let ty = Ty::Bit(32);
        Ok(Some(match op {
            "mark_to_drop" | "drop" => ExternCall::Drop,
            "count" => ExternCall::CounterCount {
                instance: self.object(&args[0])?,
                index: self.value(&args[1], ty)?,
                less: None,
            },
            "execute_meter" => ExternCall::MeterExecute {
                instance: self.object(&args[0])?,
                index: self.value(&args[1], ty)?,
                given: None,
                less: None,
                dst: self.target(&args[2])?.0,
            },
            "register_read" => {
                let (instance, index) = (self.object(&args[1])?, self.value(&args[2], ty)?);
                let (dst, dst_ty) = self.target(&args[0])?;
                let cell = self.cell(instance);
                if cell == dst_ty {
                    return Ok(Some(ExternCall::RegisterRead { instance, index, dst }));
                }
                // The cell has another type than the field.
                let read = self.new_var(format!("read_{}", self.program.vars.len()), cell);
                let call = ExternCall::RegisterRead { instance, index, dst: LValue::Var(read) };
                out.push(Stmt::Extern { call, span: NOWHERE });
                let value = cast(Expr::Var(read), cell, dst_ty);
                out.push(Stmt::Assign { target: dst, value, span: NOWHERE });
                return Ok(None);
            }
            "register_write" => {
                let instance = self.object(&args[0])?;
                let cell = self.cell(instance);
                let (index, value) = (self.value(&args[1], ty)?, self.value(&args[2], cell)?);
                ExternCall::RegisterWrite { instance, index, value }
            }
            "modify_field_with_hash_based_offset" => {
                let (dst, dst_ty) = self.target(&args[0])?;
                let name = args[2].get("value")?;
                let Some(calculation) = self.calculations.get(name.text()?).cloned() else {
                    return name.wrong(format!("there is no calculation `{}`", name.text()?));
                };
                self.count(&name, calculation.data.len())?;
                let wide = Ty::Bit(dst_ty.width().max(64));
                let (base, max) = (self.value(&args[1], wide)?, self.value(&args[3], wide)?);
                ExternCall::Hash {
                    object: None,
                    algorithm: calculation.algorithm,
                    dst,
                    dst_ty,
                    data: calculation.data,
                    bounds: Some((base, max)),
                }
            }
            "modify_field_rng_uniform" => {
                let (dst, dst_ty) = self.target(&args[0])?;
                let (lo, hi) = (self.value(&args[1], dst_ty)?, self.value(&args[2], dst_ty)?);
                ExternCall::Random { dst, dst_ty, lo, hi }
            }
            "generate_digest" => {
                let receiver = self.value(&args[0], ty)?;
                let id = args[1].get("value")?;
                let list = id.natural()?.to_u64().and_then(|id| self.learn_lists.get(&id).cloned());
                let Some((digest, data)) = list else {
                    return id.wrong("there is no learn list with this id");
                };
                self.count(&id, data.len())?;
                ExternCall::Digest { receiver, digest, data }
            }
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                let field_list = match args.get(1) {
                    Some(list) => self.list(list)?,
                    None => None,
                };
                let session = self.value(&args[0], ty)?;
                ExternCall::Clone { egress: op == "clone_egress_pkt_to_egress", session, field_list }
            }
            "resubmit" => ExternCall::Resubmit { field_list: self.list_or_empty(&args[0])? },
            "recirculate" => ExternCall::Recirculate { field_list: self.list_or_empty(&args[0])? },
            "truncate" => ExternCall::Truncate { bytes: self.value(&args[0], ty)? },
            "log_msg" => {
                let mut values = Vec::new();
                for value in args[1].get("value")?.list()? {
                    values.push(self.exact(&value)?);
                }
                ExternCall::LogMsg { format: args[0].text_of("value")?.to_owned(), args: values }
            }
            "assert" | "assume" => {
                ExternCall::Assert { cond: self.truth(&args[0])?, assume: op == "assume", span: NOWHERE }
            }
            _ => return Ok(None),
        }))
    }

    /// Type of a register's cells.
    fn cell(&self, instance: p4rack_p4::ir::InstanceId) -> Ty {
        match &self.program.instances[instance.0 as usize].kind {
            p4rack_p4::ir::InstanceKind::Register { ty, .. } => *ty,
            _ => Ty::Bit(32),
        }
    }

    /// A field list by its id.
    fn list(&self, node: &Cursor<'_>) -> Result<Option<u32>> {
        let id = node.get("value")?;
        let number = id.natural()?;
        if number == BigUint::ZERO {
            return Ok(None);
        }
        let number =
            number.to_u32().filter(|id| self.program.field_lists.iter().any(|(known, _)| known == id));
        match number {
            Some(id) => Ok(Some(id)),
            None => id.wrong("there is no field list with this id"),
        }
    }

    /// The same where a list must be named: 0 is one without fields.
    fn list_or_empty(&mut self, node: &Cursor<'_>) -> Result<u32> {
        if let Some(id) = self.list(node)? {
            return Ok(id);
        }
        if !self.program.field_lists.iter().any(|(id, _)| *id == 0) {
            self.program.field_lists.push((0, Vec::new()));
        }
        Ok(0)
    }

    /// What writes the colour of a direct meter: BMv2 does so before the action of an entry runs.
    pub(super) fn direct_meter(&mut self, meter: &Cursor<'j>) -> Result<Stmt> {
        let instance = match self.instances.get(meter.text()?) {
            Some(instance) => *instance,
            None => return meter.wrong(format!("there is no meter `{}`", meter.text()?)),
        };
        let Some(array) = self.meters.get(meter.text()?).cloned() else {
            return meter.wrong("there is no such meter");
        };
        let dst = LValue::Var(self.field_var(&array.get("result_target")?)?);
        let call = ExternCall::DirectMeterRead { instance, given: None, less: None, dst };
        Ok(Stmt::Extern { call, span: NOWHERE })
    }
}

/// How many arguments a primitive has; `None` if there is none of this name.
fn arguments(op: &str) -> Option<&'static [usize]> {
    Some(match op {
        "no_op" | "exit" => &[0],
        "drop" => &[0],
        "mark_to_drop" => &[0, 1],
        "add_header" | "remove_header" | "truncate" | "assert" | "assume" => &[1],
        "resubmit" | "recirculate" => &[1],
        "push" | "pop" => &[1, 2],
        "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => &[1, 2],
        "modify_field" => &[2, 3],
        "assign" | "assign_VL" | "assign_header" | "copy_header" | "assign_header_stack" | "assign_union" => {
            &[2]
        }
        "assign_union_stack" | "add_to_field" | "subtract_from_field" | "generate_digest" | "log_msg" => &[2],
        "count" => &[2],
        "add" | "subtract" | "bit_and" | "bit_or" | "bit_xor" | "shift_left" | "shift_right" => &[3],
        "execute_meter" | "register_read" | "register_write" | "modify_field_rng_uniform" => &[3],
        "modify_field_with_hash_based_offset" => &[4],
        _ => return None,
    })
}
