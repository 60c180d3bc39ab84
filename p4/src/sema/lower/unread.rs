//! Removes register reads whose result is never used.
//!
//! Such a read does nothing. A control's register with no other use is then of no interest to the control
//! plane: P4Info omits it, as p4c's does. A register at top level stays, as in p4c.

use crate::ir::{Expr, ExternCall, HeaderRef, InstanceId, InstanceKind, LValue, Next, Program, Stmt, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Variables and objects that a program's text uses.
#[derive(Default)]
struct Uses {
    /// Variables whose value is used.
    read: BTreeSet<VarId>,
    /// The targets of reads of each register; `None` if it has another use.
    registers: BTreeMap<InstanceId, BTreeSet<Option<VarId>>>,
}

/// Hides unused registers. Variables below `shared` are also used outside of the blocks; objects below
/// `global` are at top level.
pub(super) fn hide(prog: &mut Program, shared: usize, global: usize) {
    let mut uses = Uses::default();
    for header in &prog.headers {
        uses.read.insert(header.valid);
        uses.read.extend(header.fields.iter().map(|field| field.var));
    }
    uses.read.extend(prog.stacks.iter().map(|stack| stack.next));
    for block in &prog.blocks {
        block.lists().into_iter().for_each(|stmts| uses.stmts(stmts));
        for state in block.parser().into_iter().flat_map(|parser| &parser.states) {
            if let Next::Select { keys, .. } = &state.next {
                keys.iter().for_each(|(key, _)| uses.expr(key));
            }
        }
    }
    for action in &prog.actions {
        uses.stmts(&action.body);
    }
    for method in &prog.methods {
        uses.read.extend(&method.result);
        uses.read.extend(method.params.iter().flat_map(|param| &param.vars));
        uses.stmts(&method.body);
    }
    for key in prog.tables.iter().flat_map(|table| &table.keys) {
        uses.expr(&key.expr);
    }
    for (index, instance) in prog.instances.iter_mut().enumerate().skip(global) {
        let Some(targets) = uses.registers.get(&InstanceId(index as u32)) else { continue };
        let is_unread = |target: &Option<VarId>| {
            target.is_some_and(|var| var.0 as usize >= shared && !uses.read.contains(&var))
        };
        if matches!(instance.kind, InstanceKind::Register { .. }) && targets.iter().all(is_unread) {
            instance.named.hidden = true;
        }
    }
}

impl Uses {
    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
            Stmt::CopyHeader { dst, src } => {
                self.header(dst);
                self.header(src);
            }
            Stmt::SetValid { header, .. } | Stmt::Emit(header) => self.header(header),
            Stmt::If { cond, then, otherwise, .. } => {
                self.expr(cond);
                self.stmts(then);
                self.stmts(otherwise);
            }
            Stmt::Switch { expr, cases, default, .. } => {
                self.expr(expr);
                cases.iter().for_each(|(_, body)| self.stmts(body));
                self.stmts(default);
            }
            Stmt::Scope(stmts) => self.stmts(stmts),
            Stmt::Loop { cond, body, update } => {
                self.expr(cond);
                self.stmts(body);
                self.stmts(update);
            }
            Stmt::Extract { header, varbit_bits } => {
                self.header(header);
                varbit_bits.iter().for_each(|bits| self.expr(bits));
            }
            Stmt::Advance(bits) => self.expr(bits),
            Stmt::Verify { cond, error } => {
                self.expr(cond);
                self.expr(error);
            }
            Stmt::Extern { call, .. } => self.call(call),
            Stmt::StackShift { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Exit
            | Stmt::Apply { .. } => {}
        }
    }

    fn call(&mut self, call: &ExternCall) {
        match call {
            ExternCall::RegisterRead { instance, dst, .. } => {
                let var = if let LValue::Var(var) = dst { Some(*var) } else { None };
                self.registers.entry(*instance).or_default().insert(var);
            }
            ExternCall::RegisterWrite { instance, .. } => {
                self.registers.entry(*instance).or_default().insert(None);
            }
            _ => {}
        }
        let parts = call.parts();
        parts.values.into_iter().for_each(|value| self.expr(value));
        parts.targets.into_iter().for_each(|target| self.target(target));
    }

    /// Variables that a store uses. Writing a slice preserves the rest of the word, so that counts as a
    /// use.
    fn target(&mut self, target: &LValue) {
        match target {
            LValue::Var(_) => {}
            LValue::Field { header, .. } => self.header(header),
            LValue::Slice { base, .. } => match &**base {
                LValue::Var(var) => drop(self.read.insert(*var)),
                base => self.target(base),
            },
        }
    }

    fn header(&mut self, header: &HeaderRef) {
        if let HeaderRef::Index(_, index) = header {
            self.expr(index);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Var(var) => drop(self.read.insert(*var)),
            Expr::Field { header, .. } | Expr::Valid(header) => self.header(header),
            Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => self.expr(expr),
            Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                self.expr(cond);
                self.expr(then);
                self.expr(otherwise);
            }
            Expr::Const { .. } | Expr::Lookahead { .. } | Expr::PacketLength | Expr::DropPort => {}
        }
    }
}
