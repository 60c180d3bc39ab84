//! Warns of a header that is extracted and changed, or made valid and written, but never emitted: the change is lost.
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
    let (extracted, emitted_roots) = (extracted(prog), emitted_roots(prog, None));
    let done = |header: &HeaderId| match extracted.contains(header) {
        true => Some(("extracted and changed", "the change")),
        // A header elsewhere, such as in metadata or a local variable, is not for the deparser.
        false if !emitted_roots.contains(root(&prog.headers[header.0 as usize].name)) => None,
        false => Some(("made valid and written", "what is written")),
    };
    let lost = |header: &HeaderId| {
        let described = &prog.headers[header.0 as usize];
        let unread = described.fields.iter().filter(|field| !uses.read.contains(&field.var));
        let at = unread.filter_map(|field| uses.written.get(&field.var)).min_by_key(|span| span.lo)?;
        let (name, (is, change)) = (&described.name, done(header)?);
        let what = format!("`{name}` is {is} here, but never emitted: {change} is lost");
        Some(Diagnostic::warning(*at, what).help(format!("emit `{name}` in the deparser")))
    };
    let headers = extracted.union(&uses.made_valid);
    headers.filter(|header| !uses.kept.contains(header)).filter_map(lost).collect()
}

/// The parameter of a block in which a header is: what precedes the first dot of its name.
fn root(name: &str) -> &str {
    name.split_once('.').map_or(name, |(root, _)| root)
}

/// Roots of the headers that a pipeline's deparsers emit, or with `None` those of all pipelines.
fn emitted_roots(prog: &Program, pipeline: Option<u32>) -> BTreeSet<&str> {
    let deparsers = prog.blocks.iter().filter(|block| block.role.task == Task::Deparse);
    let mut roots = BTreeSet::new();
    for block in deparsers.filter(|block| pipeline.is_none_or(|number| number == block.pipeline)) {
        emits(prog, block.stmts(), &mut roots);
    }
    roots
}

fn emits<'p>(prog: &'p Program, stmts: &[Stmt], roots: &mut BTreeSet<&'p str>) {
    for stmt in stmts {
        match stmt {
            Stmt::Emit(header) => {
                let first = match header {
                    HeaderRef::Fixed(header) => Some(header),
                    HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
                        prog.stacks[stack.0 as usize].elements.first()
                    }
                };
                roots.extend(first.map(|header| root(&prog.headers[header.0 as usize].name)));
            }
            Stmt::If { then, otherwise, .. } => {
                emits(prog, then, roots);
                emits(prog, otherwise, roots);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| emits(prog, body, roots));
                emits(prog, default, roots);
            }
            Stmt::Scope(body) | Stmt::Loop { body, .. } => emits(prog, body, roots),
            _ => {}
        }
    }
}

/// Headers that parsers fill in pipelines whose deparsers emit anything.
fn extracted(prog: &Program) -> BTreeSet<HeaderId> {
    let emits = |block: &&Block| !emitted_roots(prog, Some(block.pipeline)).is_empty();
    let parsers = prog.blocks.iter().filter(|block| block.parser().is_some()).filter(emits);
    let filled = |stmt: &Stmt| match stmt {
        Stmt::Extract { header: HeaderRef::Fixed(header), .. } => Some(*header),
        _ => None,
    };
    parsers.flat_map(|block| block.lists()).flatten().filter_map(filled).collect()
}

/// What is done with headers after parsing.
struct Uses {
    /// The header of each field.
    of: HashMap<VarId, HeaderId>,
    /// Headers that are emitted, copied or made invalid, or chosen at run time.
    kept: BTreeSet<HeaderId>,
    /// Headers that are made valid.
    made_valid: BTreeSet<HeaderId>,
    /// Fields whose values go elsewhere than to their own header.
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
        Uses {
            of: of.collect(),
            kept: kept.collect(),
            made_valid: BTreeSet::new(),
            read: BTreeSet::new(),
            written: BTreeMap::new(),
        }
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
            Stmt::SetValid { header: HeaderRef::Fixed(header), .. } => {
                self.made_valid.insert(*header);
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
