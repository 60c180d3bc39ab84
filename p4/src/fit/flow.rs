//! Data flow through a control: which operations matter, and which tables depend on which.

use super::access::{self, Bits, Copies};
use super::ops::Op;
use super::tree::{Kind, LogicalTable, Step, Tree};
use super::view::View;
use crate::ir::{Expr, HeaderRef, Program, Stmt, Task, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Why a table comes after another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its key reads bits that the other one writes.
    Match,
    /// Its action reads or writes bits that the other one writes.
    Action,
    /// It writes bits that the other one reads: a later place in the same stage will do.
    Anti,
    /// The other one decides whether it runs: a later place in the same stage will do.
    Control,
}

impl Reason {
    /// Stages from the one to the other, at least.
    pub(super) fn distance(self) -> usize {
        match self {
            Reason::Match | Reason::Action => 1,
            Reason::Anti | Reason::Control => 0,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Match => "match",
            Reason::Action => "action",
            Reason::Anti => "anti",
            Reason::Control => "control",
        }
    }
}

/// A table that must come after another one, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub reason: Reason,
    /// The variable that it is about.
    pub var: Option<VarId>,
}

/// Variables that a half's deparser and the blocks behind the half read.
pub(super) fn outputs(program: &View<'_>, stmts: &[Stmt]) -> BTreeSet<VarId> {
    let mut out = intrinsics(program);
    let mut bits = Vec::new();
    read_by(program, stmts, &mut bits);
    out.extend(bits.iter().map(|bits| bits.var));
    out
}

/// Variables of the structs that have intrinsic fields.
pub(super) fn intrinsics(program: &View<'_>) -> BTreeSet<VarId> {
    let shared = &program.vars[..program.shared_vars.min(program.vars.len())];
    let owner = |name: &str| name.rsplit_once('.').map(|(owner, _)| owner.to_owned());
    let owners: BTreeSet<String> = program
        .intrinsics
        .iter()
        .filter_map(|field| owner(&program.vars[field.var.0 as usize].name))
        .collect();
    let of = |(at, var): (usize, &crate::ir::Var)| {
        owner(&var.name).is_some_and(|owner| owners.contains(&owner)).then_some(VarId(at as u32))
    };
    shared.iter().enumerate().filter_map(of).collect()
}

/// Bits that statements read.
fn read_by(program: &View<'_>, stmts: &[Stmt], out: &mut Vec<Bits>) {
    let none = Copies::new();
    for stmt in stmts {
        match stmt {
            Stmt::Assign { value, .. } => access::read(program, value, &none, out),
            Stmt::Emit(header) | Stmt::CopyHeader { src: header, .. } => {
                access::header_bits(program, header, out);
            }
            Stmt::If { cond, then, otherwise, .. } => {
                access::read(program, cond, &none, out);
                read_by(program, then, out);
                read_by(program, otherwise, out);
            }
            Stmt::Switch { expr, cases, default, .. } => {
                access::read(program, expr, &none, out);
                cases.iter().for_each(|(_, body)| read_by(program, body, out));
                read_by(program, default, out);
            }
            Stmt::Scope(inner) | Stmt::Loop { body: inner, .. } => read_by(program, inner, out),
            Stmt::Extern { call, .. } => {
                call.parts().values.iter().for_each(|value| access::read(program, value, &none, out));
            }
            _ => {}
        }
    }
}

/// Variables that a parser writes.
pub(super) fn parsed(program: &View<'_>, stmts: &[Stmt], out: &mut BTreeSet<VarId>) {
    let mut bits = Vec::new();
    for stmt in stmts {
        match stmt {
            // All metadata begin with zero: storing it changes nothing.
            Stmt::Assign { value: Expr::Const { value, .. }, .. } if value.bits() == 0 => {}
            Stmt::Assign { target, .. } => {
                access::write(program, target, &Copies::new(), &mut Vec::new(), &mut bits);
            }
            Stmt::Extract { header, .. } | Stmt::CopyHeader { dst: header, .. } => {
                access::header_bits(program, header, &mut bits);
            }
            Stmt::SetValid { header, valid: true } => access::validity_bits(program, header, &mut bits),
            Stmt::If { then, otherwise, .. } => {
                parsed(program, then, out);
                parsed(program, otherwise, out);
            }
            Stmt::Scope(inner) => parsed(program, inner, out),
            Stmt::Extern { call, .. } => {
                for target in call.parts().targets {
                    access::write(program, target, &Copies::new(), &mut Vec::new(), &mut bits);
                }
            }
            _ => {}
        }
    }
    out.extend(bits.iter().map(|bits| bits.var));
}

/// Removes operations without effect: those that store zero into metadata that is zero still, and those whose results
/// nothing reads. Then nodes without operations.
pub(super) fn prune(program: &View<'_>, tree: &mut Tree, parsed: BTreeSet<VarId>, outputs: BTreeSet<VarId>) {
    let mut headers = BTreeSet::new();
    for at in 0..program.headers.len() {
        let mut bits = Vec::new();
        access::header_bits(program, &HeaderRef::Fixed(crate::ir::HeaderId(at as u32)), &mut bits);
        headers.extend(bits.iter().map(|bits| bits.var));
    }
    let mut written = parsed;
    written.extend(headers);
    zeros(&mut tree.nodes, &tree.steps, &mut written);
    let mut live = outputs;
    let mut keep = vec![false; tree.nodes.len()];
    unread(&mut tree.nodes, &mut tree.steps, &mut live, &mut keep);
}

fn zeros(nodes: &mut [LogicalTable], steps: &[Step], written: &mut BTreeSet<VarId>) {
    for step in steps {
        let node = &mut nodes[step.node()];
        for ops in &mut node.actions {
            let fresh = |op: &Op| {
                !op.effect && op.is_zero && op.writes.iter().all(|bits| !written.contains(&bits.var))
            };
            ops.retain(|op| !fresh(op));
        }
        written.extend(node.ops().flat_map(|op| &op.writes).map(|bits| bits.var));
        step.arms().iter().for_each(|arm| zeros(nodes, arm, written));
    }
}

/// Walks a list backwards, with the bits that are read behind it.
fn unread(nodes: &mut [LogicalTable], steps: &mut Vec<Step>, live: &mut BTreeSet<VarId>, keep: &mut [bool]) {
    for step in steps.iter_mut().rev() {
        if let Step::Fork(_, arms) = step {
            let behind = live.clone();
            for arm in arms.iter_mut() {
                let mut own = behind.clone();
                unread(nodes, arm, &mut own, keep);
                live.extend(own);
            }
        }
        let number = step.node();
        let empty = step.arms().iter().all(Vec::is_empty);
        let node = &mut nodes[number];
        for ops in &mut node.actions {
            for op in ops.iter_mut() {
                op.writes.retain(|bits| live.contains(&bits.var));
            }
            ops.retain(|op| op.effect || !op.writes.is_empty());
        }
        node.results.retain(|var| live.contains(var));
        keep[number] = match node.kind {
            Kind::Table(_) | Kind::Search(_) => true,
            Kind::Action => node.ops().next().is_some(),
            Kind::Gateway => !empty,
        };
        if keep[number] {
            let read = node.ops().flat_map(|op| op.reads.iter().chain(&op.matched)).chain(&node.key);
            let read: Vec<VarId> = read.map(|bits| bits.var).collect();
            live.extend(read);
        }
    }
    steps.retain(|step| keep[step.node()]);
}

/// Nodes that touched a variable last, on any path.
#[derive(Clone, Debug, Default)]
struct Touched {
    writers: Vec<(usize, Bits)>,
    /// Readers since then.
    readers: Vec<(usize, Bits)>,
}

type State = BTreeMap<VarId, Touched>;

/// Which node comes after which.
pub(super) fn edges(program: &View<'_>, tree: &Tree) -> Vec<Edge> {
    let mut out = BTreeSet::new();
    follow(program, tree, &tree.steps, &mut State::new(), &mut out);
    out.into_iter().collect()
}

fn follow(program: &View<'_>, tree: &Tree, steps: &[Step], state: &mut State, out: &mut BTreeSet<Edge>) {
    for step in steps {
        let number = step.node();
        if let Some(from) = tree.nodes[number].search {
            out.insert(Edge { from, to: number, reason: Reason::Match, var: None });
        }
        visit(program, number, &tree.nodes[number], state, out);
        if let Step::Fork(_, arms) = step {
            let before = std::mem::take(state);
            for arm in arms {
                let mut own = before.clone();
                arm.iter().for_each(|inner| {
                    out.insert(Edge { from: number, to: inner.node(), reason: Reason::Control, var: None });
                });
                follow(program, tree, arm, &mut own, out);
                join(state, own);
            }
        }
    }
}

fn join(state: &mut State, other: State) {
    for (var, touched) in other {
        let all = state.entry(var).or_default();
        for (list, more) in [(&mut all.writers, touched.writers), (&mut all.readers, touched.readers)] {
            for item in more {
                if !list.contains(&item) {
                    list.push(item);
                }
            }
        }
    }
}

fn visit(
    program: &View<'_>,
    number: usize,
    node: &LogicalTable,
    state: &mut State,
    out: &mut BTreeSet<Edge>,
) {
    let mut after = |list: &[(usize, Bits)], bits: Bits, reason: Reason| {
        for (from, other) in list.iter().filter(|(from, other)| *from != number && other.overlaps(bits)) {
            out.insert(Edge { from: *from, to: number, reason, var: Some(other.var) });
        }
    };
    let matched = || node.key.iter().chain(node.ops().flat_map(|op| &op.matched));
    let reads = || node.ops().flat_map(|op| &op.reads);
    for bits in matched() {
        if let Some(touched) = state.get(&bits.var) {
            after(&touched.writers, *bits, Reason::Match);
        }
    }
    for bits in reads() {
        if let Some(touched) = state.get(&bits.var) {
            after(&touched.writers, *bits, Reason::Action);
        }
    }
    let results: Vec<Bits> = node.results.iter().map(|var| access::whole(program, *var)).collect();
    for bits in node.ops().flat_map(|op| &op.writes).chain(&results) {
        if let Some(touched) = state.get(&bits.var) {
            after(&touched.writers, *bits, Reason::Action);
            after(&touched.readers, *bits, Reason::Anti);
        }
    }
    for bits in matched().chain(reads()) {
        let readers = &mut state.entry(bits.var).or_default().readers;
        if !readers.contains(&(number, *bits)) {
            readers.push((number, *bits));
        }
    }
    // Bits that all actions overwrite are gone; bits that only some overwrite may be either's.
    let mut count: BTreeMap<Bits, usize> = BTreeMap::new();
    for ops in &node.actions {
        let written: BTreeSet<Bits> = ops.iter().flat_map(|op| op.writes.iter().copied()).collect();
        written.into_iter().for_each(|bits| *count.entry(bits).or_default() += 1);
    }
    results.iter().for_each(|bits| *count.entry(*bits).or_default() += node.actions.len().max(1));
    for (bits, times) in count {
        let touched = state.entry(bits.var).or_default();
        if times >= node.actions.len() {
            touched.writers.retain(|(_, other)| !bits.cover(*other));
            touched.readers.retain(|(reader, other)| *reader == number || !bits.cover(*other));
        }
        touched.writers.push((number, bits));
    }
}

/// Statements of a half's block with this task in a pipeline.
pub(super) fn stmts_of(program: &Program, pipeline: u32, half: crate::ir::Half, task: Task) -> Vec<&[Stmt]> {
    program.block(pipeline, crate::ir::Role { half, task }).map_or_else(Vec::new, crate::ir::Block::lists)
}
