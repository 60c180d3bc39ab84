//! Warns of a header that is extracted and changed, but never emitted: the change is lost.
//!
//! Only changes without any effect are reported. The header is not emitted, not made invalid (then its removal is
//! intended) and not copied, and the changed field has no other use: after parsing, only assignments to the same header
//! read it.

use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::ir::{Block, Expr, ExternCall, HeaderId, HeaderRef, LValue, Program, Stmt, Task, VarId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A warning for each such header, where it is changed first.
pub(super) fn warnings(prog: &Program) -> Vec<Diagnostic> {
    let mut uses = Uses::new(prog);
    for block in &prog.blocks {
        let task = block.role.task;
        // Reads before any change see no change.
        if !matches!(task, Task::Parse | Task::Verify) {
            uses.stmts(block.stmts());
        }
    }
    prog.actions.iter().for_each(|action| uses.stmts(&action.body));
    prog.methods.iter().for_each(|method| uses.stmts(&method.body));
    prog.tables.iter().flat_map(|table| &table.keys).for_each(|key| uses.expr(&key.expr, None));
    uses.read.extend(prog.field_lists.iter().flat_map(|(_, vars)| vars));
    let lost = |header: &HeaderId| {
        let described = &prog.headers[header.0 as usize];
        let unread = described.fields.iter().filter(|field| !uses.read.contains(&field.var));
        let at = unread.filter_map(|field| uses.written.get(&field.var)).min_by_key(|span| span.lo)?;
        let name = &described.name;
        let what = format!("`{name}` is extracted and changed here, but never emitted: the change is lost");
        Some(Diagnostic::warning(*at, what).help(format!("emit `{name}` in the deparser")))
    };
    extracted(prog).iter().filter(|header| !uses.kept.contains(header)).filter_map(lost).collect()
}

/// Headers that parsers fill in pipelines whose deparsers emit anything.
fn extracted(prog: &Program) -> BTreeSet<HeaderId> {
    let emits = |block: &&Block| {
        let deparsers = prog.blocks.iter().filter(|other| other.role.task == Task::Deparse);
        deparsers.into_iter().any(|other| other.pipeline == block.pipeline && has_emit(other.stmts()))
    };
    let parsers = prog.blocks.iter().filter(|block| block.parser().is_some()).filter(emits);
    let filled = |stmt: &Stmt| match stmt {
        Stmt::Extract { header: HeaderRef::Fixed(header), .. } => Some(*header),
        _ => None,
    };
    parsers.flat_map(|block| block.lists()).flatten().filter_map(filled).collect()
}

fn has_emit(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Emit(_) => true,
        Stmt::If { then, otherwise, .. } => has_emit(then) || has_emit(otherwise),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, body)| has_emit(body)) || has_emit(default)
        }
        Stmt::Scope(body) | Stmt::Loop { body, .. } => has_emit(body),
        _ => false,
    })
}

/// Uses of headers after parsing.
struct Uses {
    /// The header of each field.
    of: HashMap<VarId, HeaderId>,
    /// Headers that are emitted, copied or made invalid, or chosen at run time.
    kept: BTreeSet<HeaderId>,
    /// Fields whose values are used outside of their own header.
    read: BTreeSet<VarId>,
    /// Fields that are assigned, and where first.
    written: BTreeMap<VarId, Span>,
}

impl Uses {
    fn new(prog: &Program) -> Uses {
        let headers = prog.headers.iter().enumerate();
        let of = headers
            .flat_map(|(at, header)| header.fields.iter().map(move |field| (field.var, HeaderId(at as u32))));
        let kept = prog.stacks.iter().flat_map(|stack| stack.elements.iter().copied());
        Uses { of: of.collect(), kept: kept.collect(), read: BTreeSet::new(), written: BTreeMap::new() }
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { target, value, span } => {
                let own = self.header_of(target);
                if let (Some(var), Some(_)) = (variable(target), own) {
                    let first = self.written.entry(var).or_insert(*span);
                    if span.lo < first.lo {
                        *first = *span;
                    }
                }
                self.expr(value, own);
            }
            Stmt::CopyHeader { dst, src } => {
                self.keep(dst);
                self.keep(src);
            }
            Stmt::SetValid { header, valid: false } | Stmt::Emit(header) => self.keep(header),
            Stmt::If { cond, then, otherwise, .. } => {
                self.expr(cond, None);
                self.stmts(then);
                self.stmts(otherwise);
            }
            Stmt::Switch { expr, cases, default, .. } => {
                self.expr(expr, None);
                cases.iter().for_each(|(_, body)| self.stmts(body));
                self.stmts(default);
            }
            Stmt::Scope(stmts) => self.stmts(stmts),
            Stmt::Loop { cond, body, update } => {
                self.expr(cond, None);
                self.stmts(body);
                self.stmts(update);
            }
            Stmt::Extract { header, varbit_bits } => {
                self.keep(header);
                varbit_bits.iter().for_each(|bits| self.expr(bits, None));
            }
            Stmt::Advance(bits) => self.expr(bits, None),
            Stmt::Verify { cond, error } => {
                self.expr(cond, None);
                self.expr(error, None);
            }
            Stmt::Extern { call, .. } => {
                // A checksum over a header, stored in the same header.
                let own = match call {
                    ExternCall::UpdateChecksum { dst, .. } => self.header_of(dst),
                    _ => None,
                };
                call.parts().values.into_iter().for_each(|value| self.expr(value, own));
            }
            Stmt::SetValid { .. }
            | Stmt::StackShift { .. }
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Exit
            | Stmt::Apply { .. } => {}
        }
    }

    fn keep(&mut self, header: &HeaderRef) {
        match header {
            HeaderRef::Fixed(header) => drop(self.kept.insert(*header)),
            HeaderRef::Index(_, index) => self.expr(index, None),
            HeaderRef::Next(_) | HeaderRef::Last(_) => {}
        }
    }

    fn header_of(&self, target: &LValue) -> Option<HeaderId> {
        variable(target).and_then(|var| self.of.get(&var)).copied()
    }

    /// Notes the fields that a value reads, unless the value is stored in the same header (`own`).
    fn expr(&mut self, expr: &Expr, own: Option<HeaderId>) {
        match expr {
            Expr::Var(var) => {
                if own.is_none() || self.of.get(var).copied() != own {
                    self.read.insert(*var);
                }
            }
            Expr::Field { header: HeaderRef::Index(_, index), .. }
            | Expr::Valid(HeaderRef::Index(_, index)) => {
                self.expr(index, None);
            }
            Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => {
                self.expr(expr, own);
            }
            Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
                self.expr(left, own);
                self.expr(right, own);
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                [cond, then, otherwise].into_iter().for_each(|expr| self.expr(expr, own));
            }
            Expr::Field { .. }
            | Expr::Valid(_)
            | Expr::Const { .. }
            | Expr::Lookahead { .. }
            | Expr::PacketLength
            | Expr::DropPort => {}
        }
    }
}

/// The variable that a store changes, as a whole or in part.
fn variable(target: &LValue) -> Option<VarId> {
    match target {
        LValue::Var(var) => Some(*var),
        LValue::Slice { base, .. } => variable(base),
        LValue::Field { .. } => None,
    }
}
