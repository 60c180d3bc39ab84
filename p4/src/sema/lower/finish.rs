//! Final steps of lowering: drops unused objects and orders the actions.

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
                Some(first) => clashes.push((kind, name, span, *first)),
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
        self.check_action_names();
        for (kind, name, span, first) in clashes {
            self.diags.push(
                Diagnostic::error(span, format!("two {kind}s are called `{name}` for the control plane"))
                    .label(first, "the other one"),
            );
        }
    }

    /// Reports actions with one name that the control plane could not tell apart. Usually the table selects one, and
    /// P4Info lists the name once; programs translated from P4_14, whose actions are global, depend on it.
    fn check_action_names(&mut self) {
        let mut clashes: Vec<(ActionId, ActionId, String)> = Vec::new();
        let mut first_of: HashMap<&str, ActionId> = HashMap::new();
        for table in &self.prog.tables {
            let mut own: HashMap<&str, ActionId> = HashMap::new();
            for id in table.actions.iter().map(|listed| listed.action) {
                let action = &self.prog.actions[id.0 as usize];
                let name = action.named.name.as_str();
                let first = *first_of.entry(name).or_insert(id);
                if let Some(other) = own.insert(name, id) {
                    clashes.push((id, other, format!("table `{}` lists both", table.named.name)));
                } else if !same_params(&self.prog.actions[first.0 as usize], action) {
                    let why = "P4Info lists a name once, and their parameters differ";
                    clashes.push((id, first, why.to_owned()));
                }
            }
        }
        let mut told = BTreeSet::new();
        for (id, other, why) in clashes {
            if told.insert(id) {
                let name = &self.prog.actions[id.0 as usize].named.name;
                let what = format!("two actions are called `{name}` for the control plane");
                let span = |id: ActionId| self.action_spans[id.0 as usize];
                self.diags
                    .push(Diagnostic::error(span(id), what).label(span(other), "the other one").note(why));
            }
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

/// Whether the control plane sees the same parameters.
fn same_params(a: &ir::Action, b: &ir::Action) -> bool {
    a.params.len() == b.params.len()
        && a.params.iter().zip(&b.params).all(|(a, b)| {
            a.named.name == b.named.name
                && a.named.id == b.named.id
                && a.ty == b.ty
                && a.type_name == b.type_name
        })
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
