//! A control as logical tables: match tables, actions of the control's own statements, and gateways, with the
//! successor of each result.

use super::access::{self, Bits, Copies};
use super::expr::each;
use super::ops::{Op, Reader};
use super::rules::Rule;
use super::stateful;
use super::view;
use crate::ast::Span;
use crate::ir::{BinOp, Expr, InstanceId, LValue, Stmt, Storage, TableId, Ty, UnOp, VarId};
use std::collections::BTreeSet;

/// Variables that the name of a statement or condition lists.
const NAMES: usize = 3;

/// A logical table.
#[derive(Debug, Default)]
pub(super) struct LogicalTable {
    pub name: String,
    pub span: Span,
    pub kind: Kind,
    /// Bits of its key or condition.
    pub key: Vec<Bits>,
    /// Operations of its actions; statements in a control are one action.
    pub actions: Vec<Vec<Op>>,
    /// Variables that get its result.
    pub results: Vec<VarId>,
    /// The search that must be over before.
    pub search: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Table(TableId),
    /// Finds the part of memory in which a table's entries are searched.
    Search(TableId),
    /// Statements in a control, or an action that it calls.
    #[default]
    Action,
    Gateway,
}

impl LogicalTable {
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.actions.iter().flatten()
    }
}

/// A step of a control, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// The node with this number.
    Run(usize),
    /// The node, then one of these.
    Fork(usize, Vec<Vec<Step>>),
}

impl Step {
    pub fn node(&self) -> usize {
        match self {
            Step::Run(node) | Step::Fork(node, _) => *node,
        }
    }

    pub fn arms(&self) -> &[Vec<Step>] {
        match self {
            Step::Run(_) => &[],
            Step::Fork(_, arms) => arms,
        }
    }
}

/// The tree of a control.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub nodes: Vec<LogicalTable>,
    pub steps: Vec<Step>,
}

/// Builds trees.
pub(super) struct Builder<'r, 'p> {
    reader: &'r mut Reader<'p>,
    nodes: Vec<LogicalTable>,
}

impl<'r, 'p> Builder<'r, 'p> {
    /// The tree of a control's statements, and of the conditions of its deparser.
    pub fn build(reader: &'r mut Reader<'p>, stmts: &[Stmt], deparser: &[Stmt]) -> Tree {
        let mut builder = Builder { reader, nodes: Vec::new() };
        let stmts: Vec<&Stmt> = stmts.iter().collect();
        let mut steps = builder.steps(&stmts, &mut Copies::new());
        builder.updates(deparser, &mut steps);
        Tree { nodes: builder.nodes, steps }
    }

    /// A deparser has no conditions but bits that come with a packet: whether to update a checksum is computed behind
    /// the control.
    fn updates(&mut self, deparser: &[Stmt], steps: &mut Vec<Step>) {
        for stmt in deparser {
            if let Stmt::If { cond, then, span, .. } = stmt
                && then.iter().any(|stmt| matches!(stmt, Stmt::Assign { .. }))
            {
                let mut key = Vec::new();
                access::read(self.reader.program, cond, &Copies::new(), &mut key);
                let name = format!("checksum's condition on {}", self.subject([], &key, *span));
                let bit = Op::bit(*span);
                let node = self.add(LogicalTable {
                    name,
                    span: *span,
                    key,
                    actions: vec![vec![bit]],
                    ..LogicalTable::default()
                });
                steps.push(Step::Run(node));
            }
        }
    }

    fn add(&mut self, node: LogicalTable) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn steps(&mut self, stmts: &[&Stmt], copies: &mut Copies) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut loose: Vec<Stmt> = Vec::new();
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            at += 1;
            match stmt {
                Stmt::If { cond, then, otherwise, span } => {
                    self.loose(&mut loose, copies, &mut steps);
                    // Statements behind a side that leaves belong to the other one.
                    let rest = &stmts[at..];
                    let (mut yes, mut no): (Vec<&Stmt>, Vec<&Stmt>) =
                        (then.iter().collect(), otherwise.iter().collect());
                    let leaving = match (leaves(then), leaves(otherwise)) {
                        (true, true) => true,
                        (true, false) => {
                            no.extend(rest);
                            true
                        }
                        (false, true) => {
                            yes.extend(rest);
                            true
                        }
                        (false, false) => false,
                    };
                    let (mut first, mut second) = (copies.clone(), copies.clone());
                    let result = self.result_of(cond, &steps);
                    let key = if result.is_none() { self.gateway(cond, *span, copies) } else { Vec::new() };
                    let node = result.unwrap_or_else(|| {
                        let name = format!("condition on {}", self.subject([], &key, *span));
                        self.add(LogicalTable {
                            name,
                            span: *span,
                            kind: Kind::Gateway,
                            key,
                            ..LogicalTable::default()
                        })
                    });
                    let arms = vec![self.steps(&yes, &mut first), self.steps(&no, &mut second)];
                    copies.retain(|var, bits| first.get(var) == Some(bits) && second.get(var) == Some(bits));
                    fork(&mut steps, node, arms, result.is_some());
                    if leaving {
                        return steps;
                    }
                }
                Stmt::Switch { expr, cases, default, .. } => {
                    self.loose(&mut loose, copies, &mut steps);
                    let result = self.result_of(expr, &steps);
                    let node = match result {
                        Some(node) => node,
                        None => {
                            let mut key = Vec::new();
                            access::read(self.reader.program, expr, copies, &mut key);
                            let name = format!("switch on {}", self.subject([], &key, Span::default()));
                            self.add(LogicalTable {
                                name,
                                kind: Kind::Gateway,
                                key,
                                ..LogicalTable::default()
                            })
                        }
                    };
                    let mut arms = Vec::new();
                    let before = copies.clone();
                    for body in cases.iter().map(|(_, body)| body).chain([default]) {
                        let body: Vec<&Stmt> = body.iter().collect();
                        let mut own = before.clone();
                        arms.push(self.steps(&body, &mut own));
                        copies.retain(|var, bits| own.get(var) == Some(bits));
                    }
                    fork(&mut steps, node, arms, result.is_some());
                }
                Stmt::Apply { table, hit, action_run, span } => {
                    self.loose(&mut loose, copies, &mut steps);
                    let results = hit.iter().chain(action_run).copied().collect();
                    let node = self.table(*table, results, *span, copies);
                    steps.extend(self.nodes[node].search.map(Step::Run));
                    steps.push(Step::Run(node));
                }
                Stmt::Scope(inner) if holds_tables(inner) => {
                    self.loose(&mut loose, copies, &mut steps);
                    let inner: Vec<&Stmt> = inner.iter().collect();
                    let inner = self.steps(&inner, copies);
                    steps.extend(inner);
                }
                Stmt::Scope(inner) => {
                    self.loose(&mut loose, copies, &mut steps);
                    self.reader.conditions(inner, &mut BTreeSet::new());
                    let ops = self.reader.list(inner, copies);
                    forget(copies, &ops);
                    self.action(ops, &mut steps);
                }
                Stmt::Loop { body, .. } => {
                    self.loose(&mut loose, copies, &mut steps);
                    let inner: Vec<&Stmt> = body.iter().collect();
                    let inner = self.steps(&inner, copies);
                    steps.extend(inner);
                }
                Stmt::Return | Stmt::Exit => break,
                other => {
                    // An access of a register may hold conditions: it stays in one piece.
                    let tail: Vec<Stmt> = match stateful_start(other) {
                        true => stmts[at - 1..].iter().map(|stmt| (*stmt).clone()).collect(),
                        false => Vec::new(),
                    };
                    let length = stateful::extent(&tail).max(1);
                    loose.extend(stmts[at - 1..at - 1 + length].iter().map(|stmt| (*stmt).clone()));
                    at += length - 1;
                }
            }
        }
        self.loose(&mut loose, copies, &mut steps);
        steps
    }

    /// Makes actions of the control's own statements.
    fn loose(&mut self, loose: &mut Vec<Stmt>, copies: &mut Copies, steps: &mut Vec<Step>) {
        if loose.is_empty() {
            return;
        }
        let stmts = std::mem::take(loose);
        self.reader.conditions(&stmts, &mut BTreeSet::new());
        // One after the other, as each may copy what the next one reads.
        let mut ops = Vec::new();
        let mut at = 0;
        while at < stmts.len() {
            let length = stateful::extent(&stmts[at..]).max(1);
            let new = self.reader.list(&stmts[at..at + length], copies);
            forget(copies, &new);
            match &stmts[at] {
                Stmt::Assign { target: LValue::Var(var), value, .. } => self.copy(*var, value, copies),
                Stmt::CopyHeader { dst, src } => {
                    let pairs = view::pairs(self.reader.program, dst, src).unwrap_or_default();
                    pairs.into_iter().for_each(|(to, from)| self.copy(to, &Expr::Var(from), copies));
                }
                _ => {}
            }
            ops.extend(new);
            at += length;
        }
        for group in self.reader.groups(ops) {
            self.action(group, steps);
        }
    }

    /// Notes that a local variable is a copy.
    fn copy(&mut self, var: VarId, value: &Expr, copies: &mut Copies) {
        let program = self.reader.program;
        let is_copy = match value {
            Expr::Const { .. } => true,
            Expr::Var(from) => self.stays(*from, copies),
            Expr::Slice { expr, .. } | Expr::Cast { expr, .. } => {
                matches!(**expr, Expr::Var(from) if self.stays(from, copies))
            }
            _ => false,
        };
        let var = program.same(var);
        if is_copy && (var.0 as usize) >= program.shared_vars {
            let mut bits = Vec::new();
            access::read(program, value, copies, &mut bits);
            copies.insert(var, bits);
        }
    }

    /// Whether a variable is no result of a unit, which exists for one action only.
    fn stays(&self, var: VarId, copies: &Copies) -> bool {
        copies.contains_key(&self.reader.program.same(var)) || !self.reader.is_temporary(var)
    }

    fn action(&mut self, ops: Vec<Op>, steps: &mut Vec<Step>) {
        let ops = self.reader.at_once(ops);
        let span = ops.iter().map(|op| op.span).find(|span| *span != Span::default()).unwrap_or_default();
        let objects: BTreeSet<InstanceId> = ops.iter().filter_map(|op| op.object).collect();
        let written: Vec<Bits> = ops.iter().flat_map(|op| &op.writes).copied().collect();
        let name = self.subject(objects, &written, span);
        let node = self.add(LogicalTable { name, span, actions: vec![ops], ..LogicalTable::default() });
        steps.push(Step::Run(node));
    }

    fn table(&mut self, id: TableId, results: Vec<VarId>, span: Span, copies: &mut Copies) -> usize {
        let program = self.reader.program;
        let table = &program.tables[id.0 as usize];
        let mut key = Vec::new();
        for part in &table.keys {
            access::read(program, &part.expr, copies, &mut key);
        }
        let mut actions = Vec::new();
        for listed in &table.actions {
            let body = &program.actions[listed.action.0 as usize].body;
            self.reader.conditions(body, &mut BTreeSet::new());
            let ops = self.reader.list(body, copies);
            actions.push(self.reader.at_once(ops));
        }
        actions.iter().for_each(|ops| forget(copies, ops));
        let name = table.named.name.clone();
        let search = (table.storage == Storage::Searched).then(|| {
            let (name, key) = (format!("{name}, partitions"), key.clone());
            self.add(LogicalTable { name, span, kind: Kind::Search(id), key, ..LogicalTable::default() })
        });
        self.add(LogicalTable { name, span, kind: Kind::Table(id), key, actions, results, search })
    }

    /// The table whose result a condition is, if that table has just been applied.
    fn result_of(&self, cond: &Expr, steps: &[Step]) -> Option<usize> {
        let var = match cond {
            Expr::Var(var) => *var,
            Expr::Unary { op: UnOp::Not, expr, .. } => match **expr {
                Expr::Var(var) => var,
                _ => return None,
            },
            _ => return None,
        };
        let node = steps.last().filter(|step| step.arms().is_empty())?.node();
        self.nodes[node].results.contains(&var).then_some(node)
    }

    /// Bits that a condition reads; refuses those that no gateway computes.
    fn gateway(&mut self, cond: &Expr, span: Span, copies: &Copies) -> Vec<Bits> {
        let findings = &mut self.reader.findings;
        each(cond, &mut |part| {
            let Expr::Binary { op, left, right, ty } = part else { return };
            let known = |e: &Expr| matches!(e, Expr::Const { .. });
            let why = match op {
                BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge if !known(left) && !known(right) => {
                    "a comparison of two values of the packet: subtract them, and compare the result with 0"
                }
                BinOp::Add | BinOp::Sub | BinOp::AddSat | BinOp::SubSat | BinOp::Mul if *ty != Ty::Bool => {
                    "arithmetic in a condition: compute it before, in a statement of its own"
                }
                _ => return,
            };
            findings.refuse(Rule::Gateway, span, why);
        });
        let mut key = Vec::new();
        access::read(self.reader.program, cond, copies, &mut key);
        key
    }

    /// Subject of something in the control: objects, or else the program's own variables; and its line.
    fn subject(&self, objects: impl IntoIterator<Item = InstanceId>, bits: &[Bits], span: Span) -> String {
        let program = self.reader.program;
        let object = |id: InstanceId| program.instances[id.0 as usize].named.name.as_str();
        let mut names: Vec<&str> = objects.into_iter().map(object).collect();
        if names.is_empty() {
            let vars: BTreeSet<VarId> = bits.iter().map(|bits| bits.var).collect();
            let own = vars.into_iter().filter(|var| !self.reader.is_temporary(*var));
            // A header's validity ends in a dollar.
            names.extend(own.map(|var| program.vars[var.0 as usize].name.trim_end_matches(".$valid$")));
        }
        let line = self.reader.sources.locate(span).line;
        let mut text = match names.len() {
            0 => "a temporary value".to_owned(),
            _ => names[..names.len().min(NAMES)].join(", "),
        };
        if names.len() > NAMES {
            text.push_str(&format!(" and {} more", names.len() - NAMES));
        }
        if span != Span::default() {
            text.push_str(&format!(" (line {line})"));
        }
        text
    }
}

/// Adds a fork; one upon a table's result replaces the step that applies the table.
fn fork(steps: &mut Vec<Step>, node: usize, arms: Vec<Vec<Step>>, of_table: bool) {
    if of_table {
        steps.pop();
    }
    steps.push(Step::Fork(node, arms));
}

/// Forgets copies that operations overwrite, or whose source they overwrite.
fn forget(copies: &mut Copies, ops: &[Op]) {
    for written in ops.iter().flat_map(|op| &op.writes) {
        copies.retain(|var, from| *var != written.var && !from.iter().any(|bits| bits.var == written.var));
    }
}

fn stateful_start(stmt: &Stmt) -> bool {
    stateful::extent(std::slice::from_ref(stmt)) > 0
}

/// Whether control does not continue behind a list.
fn leaves(stmts: &[Stmt]) -> bool {
    match stmts.last() {
        Some(Stmt::Return | Stmt::Exit) => true,
        Some(Stmt::If { then, otherwise, .. }) => leaves(then) && leaves(otherwise),
        // An action that exits.
        Some(Stmt::Scope(inner)) => matches!(inner.last(), Some(Stmt::Exit)),
        _ => false,
    }
}

/// Whether a list is more than one action.
fn holds_tables(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Apply { .. } => true,
        Stmt::If { then, otherwise, .. } => holds_tables(then) || holds_tables(otherwise),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, body)| holds_tables(body)) || holds_tables(default)
        }
        Stmt::Scope(inner) | Stmt::Loop { body: inner, .. } => holds_tables(inner),
        _ => false,
    })
}
