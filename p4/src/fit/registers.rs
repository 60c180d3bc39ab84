//! Rules on registers, counters, meters and tables: how often a packet may come by, and where they are.

use super::chip::Chip;
use super::ops::Reader;
use super::rules::{Findings, Rule};
use super::stateful::{self, Bodies};
use super::tree::{Kind, Step, Tree};
use super::view::View;
use crate::ast::Span;
use crate::ir::{Block, InstanceId, Stmt, TableId, Task, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// Registers and tables that a packet has passed.
#[derive(Clone, Debug, Default)]
struct Passed {
    registers: BTreeMap<InstanceId, Span>,
    tables: BTreeMap<TableId, Span>,
}

/// Refuses a second access of a register, and a second apply of a table, on one path through a control.
pub(super) fn once(reader: &mut Reader<'_>, tree: &Tree) {
    pass(reader, tree, &tree.steps, &mut Passed::default());
}

fn pass(reader: &mut Reader<'_>, tree: &Tree, steps: &[Step], passed: &mut Passed) {
    for step in steps {
        let node = &tree.nodes[step.node()];
        if let Kind::Table(id) = node.kind
            && let Some(first) = passed.tables.insert(id, node.span)
        {
            let why = format!("`{}` is applied twice on one way through the control", node.name);
            reader.findings.refuse_beside(Rule::OneApply, node.span, why, (first, "the first time"));
        }
        let before = passed.registers.clone();
        for ops in &node.actions {
            let mut own = before.clone();
            for op in ops {
                let Some(object) = op.object.filter(|object| reader.is_register(*object)) else { continue };
                if let Some(first) = own.insert(object, op.span) {
                    let name = &reader.program.instances[object.0 as usize].named.name;
                    let why = format!("`{name}` is accessed a second time by one packet");
                    reader.findings.refuse_beside(Rule::OneAccess, op.span, why, (first, "the first access"));
                }
            }
            passed.registers.extend(own);
        }
        if let Step::Fork(_, arms) = step {
            let before = passed.clone();
            for arm in arms {
                let mut own = before.clone();
                pass(reader, tree, arm, &mut own);
                passed.registers.extend(own.registers);
                passed.tables.extend(own.tables);
            }
        }
    }
}

/// Refuses objects that ingress and egress, or two pipelines, share; notes where each object is.
pub(super) fn one_place(
    program: &View<'_>,
    tree: &Tree,
    place: (u32, usize),
    places: &mut BTreeMap<InstanceId, ((u32, usize), Span)>,
    findings: &mut Findings,
) {
    for op in tree.nodes.iter().flat_map(|node| node.ops()) {
        let Some(object) = op.object else { continue };
        let (first, span) = *places.entry(object).or_insert((place, op.span));
        // Each pipeline has its own instance of a shared name.
        if first.0 == place.0 && first.1 != place.1 {
            let name = &program.instances[object.0 as usize].named.name;
            let why = format!("`{name}` is in ingress and in egress: it is in the stages of one of them");
            findings.refuse_beside(Rule::OnePlace, op.span, why, (span, "the other one"));
        }
    }
}

/// Refuses register accesses that no stateful ALU supports, in a pipeline's controls and in all actions.
pub(super) fn stateful(program: &View<'_>, chip: &Chip, findings: &mut Findings) {
    let params: BTreeSet<VarId> =
        program.actions.iter().flat_map(|action| action.params.iter().map(|param| param.var)).collect();
    let mut bodies = Bodies::default();
    let mut see = |stmts: &[Stmt]| {
        if let Some(access) = stateful::Access::of(program, stmts) {
            access.check(program, chip, &params, findings);
            bodies.note(program, &access, &params, findings);
        }
    };
    let controls = program.blocks.iter().filter(|block| block.role.task == Task::Process);
    controls.flat_map(Block::lists).for_each(|stmts| accesses(stmts, &mut see));
    program.actions.iter().for_each(|action| accesses(&action.body, &mut see));
}

/// Refuses default actions of tables with keys that access a register's cell which the packet names: a miss hashes nothing.
pub(super) fn misses(program: &View<'_>, findings: &mut Findings) {
    for table in program.tables.iter().filter(|table| !table.keys.is_empty()) {
        let called = table.default_action.as_ref().and_then(|call| table.actions.get(call.action as usize));
        let Some(action) = called.map(|called| &program.actions[called.action.0 as usize]) else { continue };
        accesses(&action.body, &mut |stmts| {
            if let Some(access) = stateful::Access::of(program, stmts)
                && access.names_its_cell(program)
            {
                let why = format!(
                    "the default action of `{}` accesses a cell that the packet names: make it the action of a last entry",
                    table.named.name
                );
                findings.refuse(Rule::DefaultAction, access.span, why);
            }
        });
    }
}

/// All accesses of registers in a list.
fn accesses(stmts: &[Stmt], see: &mut dyn FnMut(&[Stmt])) {
    let mut at = 0;
    while let Some(stmt) = stmts.get(at) {
        let length = stateful::extent(&stmts[at..]);
        if length > 0 {
            see(&stmts[at..at + length]);
            at += length;
            continue;
        }
        at += 1;
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                accesses(then, see);
                accesses(otherwise, see);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| accesses(body, see));
                accesses(default, see);
            }
            Stmt::Scope(inner) | Stmt::Loop { body: inner, .. } => accesses(inner, see),
            _ => {}
        }
    }
}
