//! Statements as operations: the bits that each reads and writes, and the chip's units that it takes.

use super::access::{self, Bits, Copies};
use super::expr::{each, is_extreme, steps};
use super::rules::{Findings, Rule};
use super::stateful;
use super::view::{self, View};
use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, InstanceId, InstanceKind, LValue, Stmt, VarId};
use crate::source::SourceMap;
use std::collections::{BTreeMap, BTreeSet};

/// Work of one instruction of a stage, or of one of its units.
#[derive(Clone, Debug, Default)]
pub(super) struct Op {
    /// Operands of the instruction.
    pub reads: Vec<Bits>,
    /// Bits that pass the crossbar: hash inputs, indices, operands of stateful ALUs.
    pub matched: Vec<Bits>,
    pub writes: Vec<Bits>,
    /// Whether it does more than write.
    pub effect: bool,
    /// The register, counter or meter that it acts on.
    pub object: Option<InstanceId>,
    /// Bits of a hash that it computes.
    pub hash_bits: u32,
    /// Arithmetic operations that follow upon each other.
    pub steps: u32,
    /// Whether it only stores zero.
    pub is_zero: bool,
    pub span: Span,
    /// Source of its value.
    source: Source,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    #[default]
    Instruction,
    Hash,
    /// A register, counter, meter or another unit.
    Unit,
}

impl Op {
    /// Sets a bit that the deparser looks at.
    pub fn bit(span: Span) -> Op {
        Op { effect: true, span, ..Op::default() }
    }
}

/// Lowers statements to operations and notes those that the chip lacks.
pub(super) struct Reader<'p> {
    pub program: &'p View<'p>,
    pub sources: &'p SourceMap,
    pub findings: Findings,
    /// Parameters of actions: the entry gives them.
    params: BTreeSet<VarId>,
}

impl<'p> Reader<'p> {
    pub fn new(program: &'p View<'p>, sources: &'p SourceMap) -> Reader<'p> {
        let params = program.actions.iter().flat_map(|action| action.params.iter().map(|param| param.var));
        Reader { program, sources, findings: Findings::default(), params: params.collect() }
    }

    /// Whether the compiler made the variable up.
    pub fn is_temporary(&self, var: VarId) -> bool {
        let name = &self.program.vars[var.0 as usize].name;
        // A header's validity ends in a dollar.
        name.contains('$') && !name.ends_with('$')
    }

    /// Operations of a list, one after the other, without regard to each other.
    pub fn list(&mut self, stmts: &[Stmt], copies: &Copies) -> Vec<Op> {
        let mut out = Vec::new();
        self.into(stmts, copies, &[], &mut out);
        out
    }

    fn into(&mut self, stmts: &[Stmt], copies: &Copies, conditions: &[Bits], out: &mut Vec<Op>) {
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            let length = stateful::extent(&stmts[at..]);
            if length > 0 {
                let op = self.stateful(&stmts[at..at + length], copies);
                out.push(op);
                at += length;
                continue;
            }
            at += 1;
            let mut op = Op { reads: conditions.to_vec(), ..Op::default() };
            match stmt {
                Stmt::Assign { target, value, span } => {
                    op.span = *span;
                    self.set(&mut op, target, value, copies);
                    // Copied in and out of a block that does not change it.
                    if matches!(value, Expr::Var(_)) && op.reads == op.writes {
                        continue;
                    }
                }
                Stmt::CopyHeader { dst, src } => {
                    if let Some(pairs) = view::pairs(self.program, dst, src) {
                        for (to, from) in pairs {
                            let mut reads = conditions.to_vec();
                            access::read(self.program, &Expr::Var(from), copies, &mut reads);
                            let writes = vec![access::whole(self.program, to)];
                            if reads != writes {
                                out.push(Op { reads, writes, ..Op::default() });
                            }
                        }
                        continue;
                    }
                    access::header_bits(self.program, src, &mut op.reads);
                    access::header_bits(self.program, dst, &mut op.writes);
                }
                Stmt::SetValid { header, .. } => {
                    access::validity_bits(self.program, header, &mut op.writes);
                }
                Stmt::StackShift { stack, .. } => {
                    let stack = &self.program.stacks[stack.0 as usize];
                    for element in &stack.elements {
                        let header = crate::ir::HeaderRef::Fixed(*element);
                        access::header_bits(self.program, &header, &mut op.writes);
                    }
                    op.writes.push(access::whole(self.program, stack.next));
                    op.reads.extend(&op.writes);
                }
                Stmt::If { cond, then, otherwise, .. } => {
                    let mut more = conditions.to_vec();
                    access::read(self.program, cond, copies, &mut more);
                    self.into(then, copies, &more, out);
                    self.into(otherwise, copies, &more, out);
                    continue;
                }
                Stmt::Switch { expr, cases, default, .. } => {
                    let mut more = conditions.to_vec();
                    access::read(self.program, expr, copies, &mut more);
                    cases.iter().for_each(|(_, body)| self.into(body, copies, &more, out));
                    self.into(default, copies, &more, out);
                    continue;
                }
                Stmt::Scope(inner) | Stmt::Loop { body: inner, .. } => {
                    self.into(inner, copies, conditions, out);
                    continue;
                }
                Stmt::Extern { call, span } => {
                    op.span = *span;
                    self.call(&mut op, call, copies);
                }
                _ => continue,
            }
            out.push(op);
        }
    }

    fn set(&mut self, op: &mut Op, target: &LValue, value: &Expr, copies: &Copies) {
        access::read(self.program, value, copies, &mut op.reads);
        access::write(self.program, target, copies, &mut op.reads, &mut op.writes);
        op.is_zero = matches!(value, Expr::Const { value, .. } if value.bits() == 0);
        self.arithmetic(value, op.span);
        op.steps = steps(value);
    }

    /// Refuses arithmetic that no action computes.
    fn arithmetic(&mut self, expr: &Expr, span: Span) {
        each(expr, &mut |part| {
            let Expr::Binary { op, left, right, .. } = part else { return };
            let power = |e: &Expr| matches!(e, Expr::Const { value, .. } if value.count_ones() == 1);
            let known = |e: &Expr| matches!(e, Expr::Const { .. });
            let what = match op {
                BinOp::Mul if !power(left) && !power(right) => "a product",
                BinOp::Div | BinOp::Mod if !power(right) => "a division",
                BinOp::Shl | BinOp::Shr if !known(right) => "a shift by a value that is not constant",
                // An instruction's second operand is a field or a constant.
                BinOp::Sub if matches!(**right, Expr::Var(var) if self.params.contains(&var)) => {
                    "a subtraction of what an entry says (add its negative)"
                }
                _ => return,
            };
            self.findings.refuse(Rule::Arithmetic, span, format!("{what}: no stage of the chip computes it"));
        });
    }

    /// An access of a register with all work of its stateful ALU.
    fn stateful(&mut self, stmts: &[Stmt], copies: &Copies) -> Op {
        let mut op = Op { effect: true, source: Source::Unit, ..Op::default() };
        let Some(access) = stateful::Access::of(self.program, stmts) else { return op };
        op.span = access.span;
        op.object = Some(access.instance);
        access.inputs(self.program, copies, &mut op.matched);
        op.writes = access.written.clone();
        op
    }

    fn call(&mut self, op: &mut Op, call: &ExternCall, copies: &Copies) {
        let parts = call.parts();
        for value in &parts.values {
            access::read(self.program, value, copies, &mut op.matched);
        }
        for target in &parts.targets {
            access::write(self.program, target, copies, &mut op.matched, &mut op.writes);
        }
        op.object = parts.object;
        op.source = Source::Unit;
        match call {
            ExternCall::Hash { dst_ty, data, .. } => {
                op.source = Source::Hash;
                // Compilers compute a hash of constants.
                let changes = data.iter().any(|(value, _)| !matches!(value, Expr::Const { .. }));
                op.hash_bits = if changes { dst_ty.width() } else { 0 };
            }
            ExternCall::Random { .. } => {}
            _ => op.effect = true,
        }
    }

    /// Whether an operation takes one of the units that only one statement of an action of its own may take.
    fn takes_unit(op: &Op) -> bool {
        op.source == Source::Unit
    }

    /// Whether an operation only computes variables that the compiler made up.
    fn is_made_up(&self, op: &Op) -> bool {
        !op.effect && op.writes.iter().all(|bits| self.is_temporary(bits.var))
    }

    /// Splits a control's own statements into groups that compilers turn into one action each: a statement begins a
    /// new one if it depends on the action so far, unless on a hash, or if both take a unit.
    pub fn groups(&self, ops: Vec<Op>) -> Vec<Vec<Op>> {
        let mut groups: Vec<Vec<Op>> = Vec::new();
        let mut group: Vec<Op> = Vec::new();
        let mut written: Vec<Bits> = Vec::new();
        let mut hashes: BTreeSet<VarId> = BTreeSet::new();
        for op in ops {
            let touched = op.reads.iter().chain(&op.matched).chain(&op.writes);
            let depends = touched
                .filter(|bits| !self.is_temporary(bits.var))
                .any(|bits| written.iter().any(|other| other.overlaps(*bits)));
            let both = Reader::takes_unit(&op) && group.iter().any(Reader::takes_unit);
            if (depends || both) && !group.is_empty() {
                // Variables made up for this statement alone, such as its index, belong to it.
                let own = group.iter().rposition(|op| !self.is_made_up(op)).map_or(0, |last| last + 1);
                let next = group.split_off(own);
                groups.push(std::mem::replace(&mut group, next));
                written.clear();
                hashes.clear();
            }
            if op.source == Source::Hash {
                hashes.extend(op.writes.iter().map(|bits| bits.var));
            }
            let of_hash = op.source == Source::Hash
                || !op.reads.is_empty() && op.reads.iter().all(|bits| hashes.contains(&bits.var));
            if !of_hash {
                written.extend(&op.writes);
            }
            group.push(op);
        }
        groups.push(group);
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// The operations of one action, which run in parallel: a value that one writes and another reads is computed
    /// from the inputs of both.
    pub fn at_once(&mut self, mut ops: Vec<Op>) -> Vec<Op> {
        let mut known: BTreeMap<VarId, Op> = BTreeMap::new();
        for op in &mut ops {
            let mut reads = Vec::new();
            let mut steps = op.steps;
            for bits in std::mem::take(&mut op.reads) {
                let Some(earlier) = known.get(&bits.var) else {
                    reads.push(bits);
                    continue;
                };
                reads.extend(&earlier.reads);
                op.matched.extend(&earlier.matched);
                op.hash_bits = op.hash_bits.max(earlier.hash_bits);
                steps = steps.max(op.steps + earlier.steps);
            }
            op.reads = reads;
            let mut matched = Vec::new();
            for bits in std::mem::take(&mut op.matched) {
                match known.get(&bits.var) {
                    Some(earlier) => {
                        matched.extend(earlier.reads.iter().chain(&earlier.matched));
                        op.hash_bits = op.hash_bits.max(earlier.hash_bits);
                    }
                    None => matched.push(bits),
                }
            }
            op.matched = matched;
            op.steps = steps;
            for bits in &op.writes {
                let whole = access::whole(self.program, bits.var);
                if bits.cover(whole) {
                    known.insert(bits.var, op.clone());
                }
            }
            if op.steps > 1 {
                let why = format!("{} operations after each other: a stage does one", op.steps);
                self.findings.refuse(Rule::OneOperation, op.span, why);
            }
        }
        ops
    }

    /// Refuses conditions in actions that read more than the entry's arguments.
    pub fn conditions(&mut self, stmts: &[Stmt], results: &mut BTreeSet<VarId>) {
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            let length = stateful::extent(&stmts[at..]);
            if length > 0 {
                if let Some(access) = stateful::Access::of(self.program, &stmts[at..at + length]) {
                    results.extend(access.written.iter().map(|bits| bits.var));
                }
                at += length;
                continue;
            }
            at += 1;
            match stmt {
                Stmt::If { cond, then, otherwise, span } => {
                    self.condition(cond, *span, results);
                    self.conditions(then, results);
                    self.conditions(otherwise, results);
                }
                Stmt::Assign { target, value, span } => {
                    // A copy of an argument is as good, as in an action that another one calls.
                    let mut reads = Vec::new();
                    access::read(self.program, value, &Copies::new(), &mut reads);
                    if let LValue::Var(var) = target
                        && reads.iter().all(|bits| !self.is_of_packet(bits.var, results))
                    {
                        results.insert(*var);
                    }
                    let mut conds = Vec::new();
                    each(value, &mut |part| {
                        if let Expr::Ternary { cond, .. } = part
                            && !is_extreme(part)
                        {
                            conds.push((**cond).clone());
                        }
                    });
                    conds.iter().for_each(|cond| self.condition(cond, *span, results));
                }
                Stmt::Extern { call, .. } => {
                    let mut written = Vec::new();
                    for target in call.parts().targets {
                        access::write(self.program, target, &Copies::new(), &mut Vec::new(), &mut written);
                    }
                    results.extend(written.iter().map(|bits| bits.var));
                }
                Stmt::Scope(inner) => self.conditions(inner, results),
                _ => {}
            }
        }
    }

    fn is_of_packet(&self, var: VarId, results: &BTreeSet<VarId>) -> bool {
        !self.params.contains(&var) && !results.contains(&var)
    }

    fn condition(&mut self, cond: &Expr, span: Span, results: &BTreeSet<VarId>) {
        let mut reads = Vec::new();
        access::read(self.program, cond, &Copies::new(), &mut reads);
        if let Some(bits) = reads.iter().find(|bits| self.is_of_packet(bits.var, results)) {
            let name = &self.program.vars[bits.var.0 as usize].name;
            let why =
                format!("a condition on `{name}` in an action: move it to the control, or make it a key");
            self.findings.refuse(Rule::ConditionInAction, span, why);
        }
    }

    /// Whether an object is a register.
    pub fn is_register(&self, instance: InstanceId) -> bool {
        let kind = &self.program.instances[instance.0 as usize].kind;
        matches!(kind, InstanceKind::Register { .. } | InstanceKind::DirectRegister { .. })
    }
}
