//! Translates statements and parser states.

use super::builder::{Builder, Label, kind};
use crate::code::ops::*;
use crate::code::plans::*;
use crate::error::CompileError;
use crate::words::limbs_of;
use num_bigint::BigUint;
use p4rack_p4::ir::{
    BinOp, Expr, HashAlgorithm, HeaderRef, InstanceKind, Key, MatchKind, Matcher, Next, NextState, Parser,
    Stmt, TableId, Ty, VarId,
};

type Result<T> = std::result::Result<T, CompileError>;

impl Builder<'_> {
    /// Translates a block (ingress, egress, …). The code behind it runs next.
    pub fn block(&mut self, stmts: &[Stmt]) -> Result<()> {
        let end = self.label();
        self.exit = Some(end);
        self.scopes.push(end);
        self.stmts(stmts)?;
        self.scopes.pop();
        self.exit = None;
        self.bind(end);
        Ok(())
    }

    /// Translates the body of an action and returns its position.
    pub fn action(&mut self, stmts: &[Stmt]) -> Result<u32> {
        let start = self.here();
        let end = self.label();
        self.scopes.push(end);
        self.stmts(stmts)?;
        self.scopes.pop();
        self.bind(end);
        self.emit(Op::Ret);
        Ok(start)
    }

    /// Makes a header valid and the other members of its union invalid, and leaves all fields alone. (Those of unions in
    /// a stack, which no chip indexes at run time, become 0.)
    fn validate(&mut self, at: HeaderAt) -> Result<()> {
        let one = self.number(1)?;
        if at.stack != NO_STACK {
            let elements = &self.code.stacks[at.stack as usize].elements;
            let of_unions = elements.iter().any(|at| !self.code.headers[*at as usize].siblings.is_empty());
            if of_unions {
                let valid = true;
                self.emit(Op::SetValidAt { stack: at.stack, index: at.index, valid });
                return Ok(());
            }
            let plan = self.indexed(at.stack, None)?;
            self.emit(Op::StoreAt { a: one, index: at.index, plan });
            return Ok(());
        }
        let header = &self.code.headers[at.index as usize];
        let (dst, siblings) = (header.valid, header.siblings.clone());
        self.emit(Op::Mov { dst, a: one });
        siblings.iter().for_each(|&dst| self.emit(Op::Zero { dst, n: 1 }));
        Ok(())
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Result<()> {
        for stmt in stmts {
            self.release();
            self.stmt(stmt)?;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        match stmt {
            Stmt::Assign { target, value, .. } => match self.direct(target)? {
                Some(dst) => self.expr_into(value, dst)?,
                None => {
                    let a = self.expr(value, None)?;
                    self.store(target, a)?;
                }
            },
            Stmt::CopyHeader { dst, src } => {
                let src = self.header_at(src)?;
                let dst = self.header_at(dst)?;
                self.copy_header(dst, src)?;
            }
            Stmt::SetValid { header, valid } => {
                let at = self.header_at(header)?;
                if *valid && self.arch.keeps_fields() {
                    self.validate(at)?;
                } else if at.stack != NO_STACK {
                    self.emit(Op::SetValidAt { stack: at.stack, index: at.index, valid: *valid });
                } else if *valid {
                    self.emit(Op::SetValid { header: at.index });
                } else {
                    let dst = self.code.headers[at.index as usize].valid;
                    self.emit(Op::Zero { dst, n: 1 });
                }
            }
            Stmt::StackShift { stack, count } => {
                self.touch_stack(*stack)?;
                self.emit(Op::StackShift { stack: stack.0 as u16, count: *count });
            }
            Stmt::If { cond, then, otherwise, .. } => {
                let (no, end) = (self.label(), self.label());
                self.branch(cond, false, no)?;
                self.stmts(then)?;
                if !otherwise.is_empty() {
                    self.jump(end);
                }
                self.bind(no);
                self.stmts(otherwise)?;
                self.bind(end);
            }
            Stmt::Switch { expr, ty, cases, default } => self.switch(expr, *ty, cases, default)?,
            Stmt::Scope(stmts) => {
                let end = self.label();
                self.scopes.push(end);
                self.stmts(stmts)?;
                self.scopes.pop();
                self.bind(end);
            }
            Stmt::Loop { cond, body, update } => {
                let (head, next, end) = (self.label(), self.label(), self.label());
                self.bind(head);
                self.emit(Op::Fuel);
                self.branch(cond, false, end)?;
                self.loops.push((end, next));
                self.stmts(body)?;
                self.loops.pop();
                self.bind(next);
                self.stmts(update)?;
                self.jump(head);
                self.bind(end);
            }
            Stmt::Break => match self.loops.last() {
                Some(&(end, _)) => self.jump(end),
                None => return Err(self.malformed("break outside of a loop".into())),
            },
            Stmt::Continue => match self.loops.last() {
                Some(&(_, next)) => self.jump(next),
                None => return Err(self.malformed("continue outside of a loop".into())),
            },
            Stmt::Return => match self.scopes.last() {
                Some(&end) => self.jump(end),
                None => return Err(self.malformed("return outside of a block".into())),
            },
            Stmt::Exit => match self.exit {
                Some(end) => self.jump(end),
                // Within an action: back to where its table was applied, and out of that block.
                None => self.emit(Op::Exit),
            },
            Stmt::Apply { table, hit, action_run, .. } => self.apply(*table, *hit, *action_run)?,
            Stmt::Extract { header, varbit_bits } => self.extract(header, varbit_bits.as_ref())?,
            Stmt::Advance(bits) => {
                let bits = self.narrow(bits, "an advance")?;
                self.emit(Op::Advance { bits });
            }
            Stmt::Verify { cond, error } => {
                let fine = self.label();
                self.branch(cond, true, fine)?;
                let a = self.narrow(error, "an error")?;
                self.emit(Op::Raise { a });
                self.bind(fine);
            }
            Stmt::Emit(header) => {
                let at = self.header_at(header)?;
                self.emit(if at.stack == NO_STACK {
                    Op::Emit { header: at.index }
                } else {
                    Op::EmitAt { stack: at.stack, index: at.index }
                });
            }
            Stmt::Extern { call, .. } => self.extern_call(call)?,
        }
        Ok(())
    }

    fn copy_header(&mut self, dst: HeaderAt, src: HeaderAt) -> Result<()> {
        let words = |builder: &Builder<'_>, at: HeaderAt| {
            let header = match at.stack {
                NO_STACK => Some(at.index),
                stack => builder.code.stacks[stack as usize].elements.first().copied(),
            };
            header.map(|header| builder.code.headers[header as usize].words)
        };
        if words(self, dst) != words(self, src) {
            return Err(self.malformed("headers of different types are copied".into()));
        }
        if dst.stack == NO_STACK && src.stack == NO_STACK {
            self.emit(Op::CopyHeader { dst: dst.index, src: src.index });
        } else {
            self.code.copies.push(CopyPlan { dst, src });
            self.emit(Op::CopyHeaderAt { plan: self.code.copies.len() as u32 - 1 });
        }
        Ok(())
    }

    fn switch(
        &mut self,
        expr: &Expr,
        ty: Ty,
        cases: &[(Vec<BigUint>, Vec<Stmt>)],
        default: &[Stmt],
    ) -> Result<()> {
        let a = self.expr(expr, None)?;
        let end = self.label();
        let mut bodies = Vec::new();
        for (values, body) in cases {
            let label = self.label();
            for value in values {
                self.jump_if_equal(a, kind(ty), value, true, label)?;
            }
            bodies.push((label, body));
        }
        self.stmts(default)?;
        self.jump(end);
        for (label, body) in bodies {
            self.bind(label);
            self.stmts(body)?;
            self.jump(end);
        }
        self.bind(end);
        Ok(())
    }

    fn jump_if_equal(
        &mut self,
        a: Slot,
        kind: ValueType,
        value: &BigUint,
        when: bool,
        to: Label,
    ) -> Result<()> {
        let b = self.constant(limbs_of(value, kind.limbs()))?;
        let to = to.0;
        if kind.narrow() {
            self.emit(if when { Op::JumpEq { a, b, to } } else { Op::JumpNe { a, b, to } });
            return Ok(());
        }
        let dst = self.temp(1)?;
        self.wide(WidePlan::Binary { op: BinOp::Eq, dst, a, b, kind, right: kind });
        self.emit(if when { Op::JumpIf { a: dst, to } } else { Op::JumpIfNot { a: dst, to } });
        Ok(())
    }

    fn apply(&mut self, table: TableId, hit: Option<VarId>, action_run: Option<VarId>) -> Result<()> {
        let program = self.program;
        let described = program
            .tables
            .get(table.0 as usize)
            .ok_or_else(|| self.malformed(format!("table {} is not declared", table.0)))?;
        self.applied[table.0 as usize] |= self.half;
        let (selected, matched): (Vec<&Key>, Vec<&Key>) =
            described.keys.iter().partition(|key| key.kind == MatchKind::Selector);
        let mut selector = Vec::new();
        for key in selected {
            selector.push((self.expr(&key.expr, None)?, kind(key.ty)));
        }
        let kinds: Vec<ValueType> = matched.iter().map(|key| kind(key.ty)).collect();
        let words: usize = kinds.iter().map(|kind| kind.words()).sum();
        let key = match &matched[..] {
            // A key that is a variable is matched in place.
            [only] => self.expr(&only.expr, None)?,
            keys => {
                let key = self.temp(words)?;
                let mut slot = key;
                for (described, kind) in keys.iter().zip(&kinds) {
                    self.expr_into(&described.expr, slot)?;
                    slot += kind.words() as Slot;
                }
                key
            }
        };
        let hit = hit.map(|var| self.var(var)).transpose()?.unwrap_or(0);
        let action_run = action_run.map(|var| self.var(var)).transpose()?.unwrap_or(0);
        self.code.applies.push(ApplyPlan {
            table: table.0,
            key,
            words: words as u16,
            hit,
            action_run,
            exit: 0,
        });
        self.exits.push(self.exit);
        let apply = self.code.applies.len() as u32 - 1;
        self.mark(Mark::Apply(apply));
        let Some(profile) = described.implementation else {
            self.emit(Op::Apply { plan: apply });
            return Ok(());
        };
        let algorithm = match program.instances.get(profile.0 as usize).map(|found| &found.kind) {
            Some(InstanceKind::ActionProfile { .. }) => HashAlgorithm::Identity,
            Some(InstanceKind::ActionSelector { algorithm, .. }) => *algorithm,
            _ => return Err(self.malformed(format!("extern object {} is not an action profile", profile.0))),
        };
        self.code.indirects.push(IndirectPlan {
            apply,
            instance: profile.0,
            hasher: algorithm.into(),
            selector,
        });
        self.emit(Op::ApplyIndirect { plan: self.code.indirects.len() as u32 - 1 });
        Ok(())
    }

    fn extract(&mut self, header: &HeaderRef, varbit_bits: Option<&Expr>) -> Result<()> {
        let bits = varbit_bits.map(|bits| self.narrow(bits, "a varbit's length")).transpose()?;
        let at = self.header_at(header)?;
        let op = match (header, bits) {
            (HeaderRef::Fixed(_), None) => Op::Extract { header: at.index },
            (HeaderRef::Fixed(_), Some(bits)) => Op::ExtractVarbit { header: at.index, bits },
            (HeaderRef::Next(_), None) => Op::ExtractNext { stack: at.stack },
            (HeaderRef::Next(_), Some(bits)) => Op::ExtractNextVarbit { stack: at.stack, bits },
            (_, None) => Op::ExtractAt { stack: at.stack, index: at.index },
            (_, Some(_)) => {
                return Err(CompileError::Unsupported {
                    object: self.program.stacks[at.stack as usize].name.clone(),
                    what: "extracting a varbit into an element by index".into(),
                    help: "extract into stack.next".into(),
                });
            }
        };
        self.emit(op);
        Ok(())
    }

    /// Translates a parser; `error` receives the number of its error. A packet that it rejects continues at
    /// `rejected` or, without, like any other. States that close a cycle count passes.
    pub fn parser(&mut self, parser: Option<&Parser>, error: Slot, rejected: Option<Label>) -> Result<()> {
        let parser = parser.ok_or_else(|| self.malformed("there is no parser".into()))?;
        self.in_parser = true;
        let labels: Vec<Label> = parser.states.iter().map(|_| self.label()).collect();
        let mut loops = vec![false; parser.states.len()];
        for (from, state) in parser.states.iter().enumerate() {
            let targets: Vec<u32> = match &state.next {
                Next::Goto(to) => vec![to.0],
                Next::Select { cases, .. } => cases
                    .iter()
                    .filter_map(|(_, target)| match target {
                        NextState::State(to) => Some(to.0),
                        _ => None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
            for to in targets {
                match loops.get_mut(to as usize) {
                    Some(counted) => *counted |= to as usize <= from,
                    None => return Err(self.malformed(format!("parser state {to} is not declared"))),
                }
            }
        }
        let accept = self.label();
        if parser.states.is_empty() {
            self.jump(accept);
        }
        for (index, state) in parser.states.iter().enumerate() {
            self.bind(labels[index]);
            self.mark(Mark::State(state.name.clone()));
            if loops[index] {
                self.emit(Op::Fuel);
            }
            let end = self.label();
            self.scopes.push(end);
            self.stmts(&state.stmts)?;
            self.scopes.pop();
            self.bind(end);
            self.release();
            match &state.next {
                Next::Accept => self.jump(accept),
                Next::Reject => self.jump(rejected.unwrap_or(accept)),
                Next::Goto(to) => self.jump(labels[to.0 as usize]),
                Next::Select { keys, cases } => {
                    self.select(keys, cases, &labels, accept, rejected.unwrap_or(accept))?;
                }
            }
        }
        self.bind(accept);
        let end = self.here();
        if let Some(entry) = self.code.entries.last_mut() {
            (entry.parsed, entry.error) = (end, error);
        }
        self.mark(Mark::Parsed { error });
        self.emit(Op::Parsed);
        self.in_parser = false;
        Ok(())
    }

    fn select(
        &mut self,
        keys: &[(Expr, Ty)],
        cases: &[(Vec<Matcher>, NextState)],
        labels: &[Label],
        accept: Label,
        reject: Label,
    ) -> Result<()> {
        let mut values = Vec::new();
        for (expr, ty) in keys {
            values.push((self.expr(expr, None)?, kind(*ty)));
        }
        for (matchers, target) in cases {
            let to = match target {
                NextState::Accept => accept,
                NextState::Reject => reject,
                NextState::State(state) => labels[state.0 as usize],
            };
            if let ([(a, kind)], [Matcher::Exact(value)]) = (&values[..], &matchers[..]) {
                self.jump_if_equal(*a, *kind, value, true, to)?;
                continue;
            }
            let other = self.label();
            let mut sure = true;
            for (index, (matcher, &(a, kind))) in matchers.iter().zip(&values).enumerate() {
                sure &= matches!(matcher, Matcher::Any);
                if let Matcher::ValueSet(set) = matcher {
                    self.member(set.0, &values[index..], other)?;
                    break;
                }
                self.unless_match(matcher, a, kind, other)?;
            }
            self.jump(to);
            self.bind(other);
            if sure {
                return Ok(());
            }
        }
        let a = self.number(self.code.errors.no_match)?;
        self.emit(Op::Raise { a });
        Ok(())
    }

    fn member(&mut self, set: u32, keys: &[(Slot, ValueType)], other: Label) -> Result<()> {
        let program = self.program;
        let described = program
            .value_sets
            .get(set as usize)
            .ok_or_else(|| self.malformed(format!("value set {set} is not declared")))?;
        let keys: Vec<(Slot, ValueType)> = keys.iter().take(described.fields.len()).copied().collect();
        if keys.len() != described.fields.len() || keys.iter().any(|(_, kind)| kind.varbit) {
            return Err(self.malformed(format!("value set {} has other keys", described.named.name)));
        }
        self.code.value_sets.push(ValueSetPlan { set, keys });
        let plan = self.code.value_sets.len() as u32 - 1;
        self.emit(Op::JumpUnlessMember { plan, to: other.0 });
        Ok(())
    }

    fn unless_match(&mut self, matcher: &Matcher, a: Slot, kind: ValueType, other: Label) -> Result<()> {
        if kind.varbit {
            return Err(self.malformed("select on a varbit".into()));
        }
        let test = |builder: &mut Builder<'_>, op, a, b| -> Result<()> {
            let dst = builder.temp(1)?;
            builder.wide(WidePlan::Binary { op, dst, a, b, kind, right: kind });
            builder.emit(Op::JumpIfNot { a: dst, to: other.0 });
            Ok(())
        };
        match matcher {
            Matcher::Any | Matcher::ValueSet(_) => {}
            Matcher::Exact(value) => self.jump_if_equal(a, kind, value, false, other)?,
            Matcher::Mask { value, mask } => {
                let b = self.constant(limbs_of(mask, kind.limbs()))?;
                let dst = self.temp(kind.limbs())?;
                if kind.narrow() {
                    self.emit(Op::And { dst, a, b });
                } else {
                    self.wide(WidePlan::Binary { op: BinOp::BitAnd, dst, a, b, kind, right: kind });
                }
                self.jump_if_equal(dst, kind, &(value & mask), false, other)?;
            }
            Matcher::Range { lo, hi } => {
                let least = *lo == BigUint::ZERO;
                let lo = self.constant(limbs_of(lo, kind.limbs()))?;
                let hi = self.constant(limbs_of(hi, kind.limbs()))?;
                if kind.narrow() && !kind.signed {
                    if !least {
                        self.emit(Op::JumpLt { a, b: lo, to: other.0 });
                    }
                    self.emit(Op::JumpLt { a: hi, b: a, to: other.0 });
                } else {
                    test(self, BinOp::Le, lo, a)?;
                    test(self, BinOp::Le, a, hi)?;
                }
            }
        }
        Ok(())
    }
}
