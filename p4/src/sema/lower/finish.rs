//! Final steps of lowering: drops what nothing applies and orders the actions.

use super::{Lower, unread};
use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::ir::{self, ActionId, InstanceKind, Stmt, Table, TableId};
use std::collections::{BTreeSet, HashMap};

impl Lower<'_> {
    /// Reports objects of one kind that share a name.
    pub(super) fn check_names(&mut self) {
        let mut seen: HashMap<(&str, String), Span> = HashMap::new();
        let mut clashes = Vec::new();
        for (kind, name, span) in std::mem::take(&mut self.shown) {
            match seen.get(&(kind, name.clone())) {
                // Two instances of a control may share an action with an absolute name, but not a table.
                Some(first) if *first != span || kind != "action" => clashes.push((kind, name, span, *first)),
                Some(_) => {}
                None => {
                    seen.insert((kind, name), span);
                }
            }
        }
        let mut applied = BTreeSet::new();
        self.prog.blocks.iter().for_each(|block| tables_in(block.stmts(), &mut applied));
        let shown = |name: &str| {
            let named = |(at, table): &(usize, &Table)| {
                table.named.name == name && applied.contains(&TableId(*at as u32))
            };
            self.prog.tables.iter().enumerate().filter(named).count()
        };
        // A table that is never applied is not shown.
        clashes.retain(|(kind, name, ..)| *kind != "table" || shown(name) > 1);
        for (kind, name, span, first) in clashes {
            self.diags.push(
                Diagnostic::error(span, format!("two {kind}s are called `{name}` for the control plane"))
                    .label(first, "the other one"),
            );
        }
    }

    pub(super) fn finish(self) -> ir::Program {
        let mut prog = self.prog;
        let mut applied = BTreeSet::new();
        for block in &prog.blocks {
            tables_in(block.stmts(), &mut applied);
        }
        let mut table_at = vec![None; prog.tables.len()];
        let mut tables = Vec::new();
        for (index, table) in prog.tables.into_iter().enumerate() {
            if applied.contains(&TableId(index as u32)) {
                table_at[index] = Some(TableId(tables.len() as u32));
                tables.push(table);
            }
        }
        let used: BTreeSet<u32> = tables.iter().flat_map(|t| t.actions.iter().map(|a| a.action.0)).collect();
        // An action that is both called and listed is shown once, as the listed one.
        let listed_names: BTreeSet<&str> = used
            .iter()
            .filter_map(|i| prog.actions.get(*i as usize))
            .map(|a| a.named.name.as_str())
            .collect();
        let kept = |i: &usize| {
            let action = &prog.actions[*i];
            used.contains(&(*i as u32))
                || (!action.in_table && !listed_names.contains(action.named.name.as_str()))
        };
        let mut order: Vec<usize> = (0..prog.actions.len()).filter(kept).collect();
        order.sort_by_key(|i| self.action_order.get(*i).copied());
        let mut action_at = vec![ActionId(0); prog.actions.len()];
        for (new, old) in order.iter().enumerate() {
            action_at[*old] = ActionId(new as u32);
        }
        let mut actions: Vec<Option<ir::Action>> = prog.actions.into_iter().map(Some).collect();
        prog.actions = order.into_iter().filter_map(|i| actions[i].take()).collect();
        for table in &mut tables {
            for action in &mut table.actions {
                action.action = action_at[action.action.0 as usize];
            }
        }
        prog.tables = tables;
        prog.shared_vars = self.shared_vars;
        for stmts in prog.blocks.iter_mut().flat_map(ir::Block::lists_mut) {
            renumber(stmts, &table_at);
        }
        for instance in &mut prog.instances {
            if let InstanceKind::DirectCounter { table, .. }
            | InstanceKind::DirectMeter { table, .. }
            | InstanceKind::DirectSmoother { table, .. }
            | InstanceKind::DirectRegister { table, .. } = &mut instance.kind
            {
                *table = table.and_then(|t| table_at[t.0 as usize]);
            }
        }
        unread::hide(&mut prog, self.shared_vars, self.shared_instances);
        prog
    }
}

fn tables_in(stmts: &[Stmt], out: &mut BTreeSet<TableId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Apply { table, .. } => {
                out.insert(*table);
            }
            Stmt::If { then, otherwise, .. } => {
                tables_in(then, out);
                tables_in(otherwise, out);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|c| tables_in(&c.1, out));
                tables_in(default, out);
            }
            Stmt::Scope(stmts) => tables_in(stmts, out),
            Stmt::Loop { body, update, .. } => {
                tables_in(body, out);
                tables_in(update, out);
            }
            _ => {}
        }
    }
}

fn renumber(stmts: &mut [Stmt], at: &[Option<TableId>]) {
    for stmt in stmts {
        match stmt {
            Stmt::Apply { table, .. } => {
                if let Some(Some(new)) = at.get(table.0 as usize) {
                    *table = *new;
                }
            }
            Stmt::If { then, otherwise, .. } => {
                renumber(then, at);
                renumber(otherwise, at);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|c| renumber(&mut c.1, at));
                renumber(default, at);
            }
            Stmt::Scope(stmts) => renumber(stmts, at),
            Stmt::Loop { body, update, .. } => {
                renumber(body, at);
                renumber(update, at);
            }
            _ => {}
        }
    }
}
