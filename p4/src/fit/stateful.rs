//! Accesses of registers: inputs, computation and results of a stateful ALU.
//!
//! The front end puts the body that acts on an element between a read and a write of the element, or between reads and writes of
//! a word of elements. A search of an element or a word has variables of its own, `$search…`: the chip has a unit for
//! that.

use super::access::{self, Bits, Copies};
use super::chip::{self, Chip};
use super::expr::{each, steps};
use super::rules::{Findings, Rule};
use super::view::View;
use crate::ast::Span;
use crate::ir::{BinOp, Expr, ExternCall, InstanceId, InstanceKind, LValue, Stmt, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Constants that fit into an instruction.
const SMALL: std::ops::RangeInclusive<i64> = -8..=7;
/// Larger constants that the bodies of one register share.
const LARGE_CONSTANTS: usize = 4;

/// The register whose element a statement reads, if it does.
fn reads(stmt: &Stmt) -> Option<(InstanceId, &LValue, Span)> {
    match stmt {
        Stmt::Extern {
            call:
                ExternCall::RegisterRead { instance, dst, .. } | ExternCall::DirectRegisterRead { instance, dst },
            span,
        } => Some((*instance, dst, *span)),
        _ => None,
    }
}

fn writes(stmt: &Stmt) -> Option<InstanceId> {
    match stmt {
        Stmt::Extern {
            call:
                ExternCall::RegisterWrite { instance, .. } | ExternCall::DirectRegisterWrite { instance, .. },
            ..
        } => Some(*instance),
        _ => None,
    }
}

/// How many statements from the first one on are one access of a register; 0 if none begins here.
pub(super) fn extent(stmts: &[Stmt]) -> usize {
    let Some((instance, ..)) = stmts.first().and_then(reads) else { return 0 };
    let is_write = |stmt: &Stmt| match stmt {
        // Of a word, if it has changed.
        Stmt::If { then, .. } => then.len() > 1 && then.iter().all(|inner| writes(inner) == Some(instance)),
        stmt => writes(stmt) == Some(instance),
    };
    stmts.iter().position(is_write).map_or(1, |last| last + 1)
}

/// Whether a variable holds a search's result so far.
fn is_search(program: &View<'_>, var: VarId) -> bool {
    program.vars[var.0 as usize].name.contains("$search")
}

/// One access of a register.
pub(super) struct Access<'s> {
    pub instance: InstanceId,
    /// Where the program accesses it.
    pub span: Span,
    /// Variables' bits that the access writes.
    pub written: Vec<Bits>,
    /// The variables that hold the element.
    cell: BTreeSet<VarId>,
    stmts: &'s [Stmt],
}

impl<'s> Access<'s> {
    /// The access that these statements are.
    pub fn of(program: &View<'_>, stmts: &'s [Stmt]) -> Option<Access<'s>> {
        let (instance, _, span) = stmts.first().and_then(reads)?;
        let mut cell = Vec::new();
        for (_, dst, _) in stmts.iter().filter_map(reads).filter(|(of, ..)| *of == instance) {
            access::write(program, dst, &Copies::new(), &mut Vec::new(), &mut cell);
        }
        let mut found = Access {
            instance,
            span,
            written: cell.clone(),
            cell: cell.iter().map(|bits| bits.var).collect(),
            stmts,
        };
        assignments(stmts, &mut |target, value, _| {
            access::write(program, target, &Copies::new(), &mut Vec::new(), &mut found.written);
            // A struct's fields are taken from the element as a whole.
            let mut from = Vec::new();
            access::read(program, value, &Copies::new(), &mut from);
            if let LValue::Var(var) = target
                && !from.is_empty()
                && matches!(value, Expr::Slice { .. } | Expr::Var(_) | Expr::Cast { .. })
                && from.iter().all(|bits| found.cell.contains(&bits.var))
                && program.vars[var.0 as usize].name.contains("$cell")
            {
                found.cell.insert(*var);
            }
        });
        Some(found)
    }

    /// Bits that the access takes from the packet: the index, and operands.
    pub fn inputs(&self, program: &View<'_>, copies: &Copies, out: &mut Vec<Bits>) {
        let mut all = Vec::new();
        if let Some(Stmt::Extern { call, .. }) = self.stmts.first() {
            call.parts().values.iter().for_each(|value| access::read(program, value, copies, &mut all));
        }
        values(self.stmts, &mut |_, value, _| access::read(program, value, copies, &mut all));
        out.extend(all.into_iter().filter(|bits| !self.is_own(bits.var)));
    }

    /// Whether the packet says which cell it is.
    pub fn names_its_cell(&self, program: &View<'_>) -> bool {
        let mut index = Vec::new();
        if let Some(Stmt::Extern { call, .. }) = self.stmts.first() {
            call.parts()
                .values
                .iter()
                .for_each(|value| access::read(program, value, &Copies::new(), &mut index));
        }
        !index.is_empty()
    }

    fn is_own(&self, var: VarId) -> bool {
        self.written.iter().any(|bits| bits.var == var)
    }

    /// Refuses accesses that no stateful ALU of the chip supports.
    pub fn check(&self, program: &View<'_>, chip: &Chip, params: &BTreeSet<VarId>, findings: &mut Findings) {
        let ty = match &program.instances[self.instance.0 as usize].kind {
            InstanceKind::Register { ty, .. } | InstanceKind::DirectRegister { ty, .. } => *ty,
            _ => return,
        };
        if ![1, 8, 16, 32, 64].contains(&ty.width()) {
            let name = &program.instances[self.instance.0 as usize].named.name;
            let why = format!(
                "an element of `{name}` has {} bits: it must have 1, 8, 16, 32 or 64, or be a pair of 8, 16 or 32",
                ty.width()
            );
            findings.refuse(Rule::RegisterWidth, self.span, why);
        }
        assignments(self.stmts, &mut |target, value, span| {
            if !matches!(target, LValue::Var(var) if is_search(program, *var)) {
                expression(value, span, chip, findings);
            }
        });
        self.compares(program, chip, findings);
        self.operands(program, params, findings);
    }

    fn compares(&self, program: &View<'_>, chip: &Chip, findings: &mut Findings) {
        let mut different: Vec<(String, Span)> = Vec::new();
        values(self.stmts, &mut |target, cond, span| {
            if target.is_some_and(|var| is_search(program, var)) {
                return;
            }
            each(cond, &mut |part| {
                if let Expr::Binary { op, left, right, .. } = part
                    && matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
                {
                    let text = canonical(*op, left, right);
                    if !different.iter().any(|(other, _)| *other == text) {
                        different.push((text, span));
                    }
                }
            });
        });
        if let Some((_, span)) = different.get(chip.compares) {
            let why =
                format!("{} comparisons in one body: a stateful ALU has {}", different.len(), chip.compares);
            findings.refuse(Rule::StatefulCompares, *span, why);
        }
    }

    fn operands(&self, program: &View<'_>, params: &BTreeSet<VarId>, findings: &mut Findings) {
        let vars = self.taken(program, params);
        if vars.len() > chip::ALU_INPUTS {
            let why = format!("{}: a stateful ALU takes {}", listed(program, &vars), chip::ALU_INPUTS);
            findings.refuse(Rule::StatefulOperands, self.span, why);
        }
        let mut constants = BTreeSet::new();
        values(self.stmts, &mut |target, value, _| {
            if target.is_some_and(|var| is_search(program, var)) {
                return;
            }
            each(value, &mut |part| {
                if let Expr::Const { value, ty } = part {
                    let width = ty.width().min(64);
                    let raw = i128::from(u64::try_from(value).unwrap_or(u64::MAX));
                    let negative = width > 0 && width <= 64 && raw >> (width - 1) & 1 == 1;
                    let signed = if negative { raw - (1i128 << width) } else { raw };
                    if !i64::try_from(signed).is_ok_and(|value| SMALL.contains(&value)) {
                        constants.insert(signed);
                    }
                }
            });
        });
        if constants.len() > LARGE_CONSTANTS {
            let why = format!(
                "{} constants outside of -8 to 7: a stateful ALU has room for {LARGE_CONSTANTS}",
                constants.len()
            );
            findings.refuse(Rule::StatefulOperands, self.span, why);
        }
    }

    /// The packet's values that the body computes with; not those of an entry.
    fn taken(&self, program: &View<'_>, params: &BTreeSet<VarId>) -> BTreeSet<VarId> {
        let mut inputs = Vec::new();
        values(self.stmts, &mut |_, value, _| access::read(program, value, &Copies::new(), &mut inputs));
        let vars = inputs.iter().map(|bits| bits.var);
        vars.filter(|var| !self.is_own(*var) && !params.contains(var)).collect()
    }

    /// Place of the body, to tell bodies apart; `None` if it is the compiler's.
    pub fn body(&self) -> Option<Span> {
        let mut first = None;
        assignments(self.stmts, &mut |_, _, span| {
            // A body at the access's place is its own, and each access has another.
            let apart = span.hi <= self.span.lo || self.span.hi <= span.lo;
            if apart && span != Span::default() && first.is_none() {
                first = Some(span);
            }
        });
        first
    }
}

/// A comparison in one form, in either order of its operands.
fn canonical(op: BinOp, left: &Expr, right: &Expr) -> String {
    let (left, right) = (format!("{left:?}"), format!("{right:?}"));
    match op {
        BinOp::Ne => format!("{left} Eq {right}"),
        BinOp::Ge => format!("{left} Lt {right}"),
        BinOp::Gt => format!("{left} Le {right}"),
        op => format!("{left} {op:?} {right}"),
    }
}

/// Refuses operators that a stateful ALU has not, and more than it does in one statement.
fn expression(value: &Expr, span: Span, chip: &Chip, findings: &mut Findings) {
    each(value, &mut |part| {
        let Expr::Binary { op, left, right, .. } = part else { return };
        let constant = |e: &Expr| matches!(e, Expr::Const { .. });
        let what = match op {
            BinOp::Mul => "a product",
            BinOp::Div | BinOp::Mod if !chip.divides => "a division",
            // A bit at the number that comparisons form is one of a stateful ALU's results.
            BinOp::Shl | BinOp::Shr if !constant(left) && !constant(right) => "a variable shift",
            _ => return,
        };
        findings.refuse(
            Rule::StatefulExpression,
            span,
            format!("{what}: a stateful ALU has no such operation"),
        );
    });
    let sums = steps(value);
    if sums > 1 {
        let why = format!("{sums} sums in one statement: a stateful ALU computes one");
        findings.refuse(Rule::StatefulExpression, span, why);
    }
}

fn assignments(stmts: &[Stmt], see: &mut dyn FnMut(&LValue, &Expr, Span)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { target, value, span } => see(target, value, *span),
            Stmt::If { then, otherwise, .. } => {
                assignments(then, see);
                assignments(otherwise, see);
            }
            Stmt::Scope(inner) => assignments(inner, see),
            Stmt::Extern { call: ExternCall::Foreign { results, span, .. }, .. } => {
                let nothing = Expr::Const { value: 0u8.into(), ty: crate::ir::Ty::Bit(1) };
                results.iter().for_each(|(target, _)| see(target, &nothing, *span));
            }
            Stmt::Extern { call: ExternCall::Approximate { dst, .. }, .. } => {
                let nothing = Expr::Const { value: 0u8.into(), ty: crate::ir::Ty::Bit(1) };
                see(dst, &nothing, Span::default());
            }
            _ => {}
        }
    }
}

/// All expressions of a body, with the variables that they are assigned to; not the index.
fn values(stmts: &[Stmt], see: &mut dyn FnMut(Option<VarId>, &Expr, Span)) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { target, value, span } => {
                let var = if let LValue::Var(var) = target { Some(*var) } else { None };
                see(var, value, *span);
            }
            Stmt::If { cond, then, otherwise, span } => {
                see(None, cond, *span);
                values(then, see);
                values(otherwise, see);
            }
            Stmt::Scope(inner) => values(inner, see),
            Stmt::Extern { call: ExternCall::Foreign { args, .. }, span } => {
                args.iter().for_each(|(value, _)| see(None, value, *span));
            }
            Stmt::Extern { call: ExternCall::Approximate { value, .. }, span } => see(None, value, *span),
            _ => {}
        }
    }
}

/// How many values of the packet these are, and which.
fn listed(program: &View<'_>, vars: &BTreeSet<VarId>) -> String {
    let names: Vec<&str> = vars.iter().map(|var| program.vars[var.0 as usize].name.as_str()).collect();
    format!("{} values of the packet ({})", names.len(), names.join(", "))
}

/// Bodies that act on each register, to count them and their inputs: the stateful ALU has its inputs for all of them.
#[derive(Default)]
pub(super) struct Bodies {
    of: BTreeMap<InstanceId, BTreeSet<(u32, u32)>>,
    taken: BTreeMap<InstanceId, BTreeSet<VarId>>,
}

impl Bodies {
    /// Notes a body, and refuses one too many.
    pub fn note(
        &mut self,
        program: &View<'_>,
        access: &Access<'_>,
        params: &BTreeSet<VarId>,
        findings: &mut Findings,
    ) {
        let name = || &program.instances[access.instance.0 as usize].named.name;
        let taken = self.taken.entry(access.instance).or_default();
        taken.append(&mut access.taken(program, params));
        if taken.len() > chip::ALU_INPUTS {
            let why = format!(
                "the bodies that act on `{}` take {} together: its stateful ALU takes {}",
                name(),
                listed(program, taken),
                chip::ALU_INPUTS
            );
            findings.refuse(Rule::StatefulOperands, access.span, why);
        }
        let span = access.body().map_or((0, 0), |span| (span.lo, span.hi));
        let bodies = self.of.entry(access.instance).or_default();
        bodies.insert(span);
        if bodies.len() > chip::REGISTER_ACTIONS {
            let why = format!(
                "`{}` has {} bodies that act on it: a stateful ALU holds {}",
                name(),
                bodies.len(),
                chip::REGISTER_ACTIONS
            );
            findings.refuse(Rule::StatefulActions, access.span, why);
        }
    }
}
