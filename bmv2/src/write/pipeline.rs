//! Controls: tables and conditionals with what follows each. Statements between them are actions of tables without
//! keys, which the control plane doesn't see.

use super::{Result, Writer, flow, visit};
use crate::graph::{After, BlockId, End, Graph};
use crate::names::HIDDEN_TABLE;
use p4rack_p4::ir::{BinOp, Expr, LValue, Role, Stmt, TableId, Ty, VarId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A control while it is written.
#[derive(Default)]
struct Pipeline {
    tables: Vec<Value>,
    conditionals: Vec<Value>,
    /// Where a block begins: the name of a table or conditional; null is the end.
    entries: BTreeMap<BlockId, Value>,
    /// Tables by the blocks that apply them.
    sites: BTreeMap<TableId, Vec<BlockId>>,
    /// What says which of its blocks has applied a table, where there are several.
    marks: BTreeMap<TableId, VarId>,
    /// Profiles of the tables.
    profiles: Vec<Value>,
    profile_names: BTreeSet<String>,
}

impl Writer {
    /// A control.
    pub(super) fn pipeline(&mut self, name: &str, role: Role) -> Result<Value> {
        let blocks = std::mem::take(&mut self.program.blocks);
        let stmts = visit::block(&blocks, role).map_or(&[][..], |block| block.stmts());
        let graph = flow::graph(stmts, &self.program, &self.reads, false);
        self.program.blocks = blocks;
        let order = graph.order();
        let mut pipeline = Pipeline::default();
        for id in &order {
            if let End::Apply { table, .. } = &graph.blocks[*id].end {
                pipeline.sites.entry(*table).or_default().push(*id);
            }
        }
        for (table, sites) in &pipeline.sites {
            if sites.len() > 1 {
                pipeline.marks.insert(*table, self.temp("site_", Ty::Bit(32)));
            }
        }
        self.name_blocks(&graph, &order, &mut pipeline)?;
        for id in order {
            self.block(&graph, id, &mut pipeline)?;
        }
        for (table, sites) in std::mem::take(&mut pipeline.sites) {
            let afters: Vec<(BlockId, After)> = sites
                .into_iter()
                .filter_map(|site| match &graph.blocks[site].end {
                    End::Apply { after, .. } => Some((site, after.clone())),
                    _ => None,
                })
                .collect();
            self.applied(table, &afters, &mut pipeline)?;
        }
        if name == "egress" {
            // Tables that nothing applies are still the control plane's.
            for at in 0..self.program.tables.len() {
                let id = TableId(at as u32);
                if !self.written.contains(&id) {
                    self.unapplied(id, &mut pipeline)?;
                }
            }
        }
        let first = pipeline.entries.get(&graph.entry).cloned().unwrap_or_default();
        Ok(json!({
            "name": name,
            "id": usize::from(name == "egress"),
            "init_table": first,
            "tables": pipeline.tables,
            "action_profiles": pipeline.profiles,
            "conditionals": pipeline.conditionals,
        }))
    }

    /// Gives each block the name of what it begins with.
    fn name_blocks(&mut self, graph: &Graph, order: &[BlockId], pipeline: &mut Pipeline) -> Result<()> {
        for id in order {
            let block = &graph.blocks[*id];
            let name = match &block.end {
                _ if self.begins_with_action(graph, *id, pipeline) => Value::from(self.name(HIDDEN_TABLE)),
                End::Branch { .. } => Value::from(self.name("node_")),
                End::Apply { table, .. } => Value::from(self.table_name(*table)),
                _ => continue,
            };
            pipeline.entries.insert(*id, name);
        }
        // Empty blocks begin where they lead.
        for id in order {
            let mut at = *id;
            let mut steps = 0;
            while !pipeline.entries.contains_key(&at) {
                let End::Goto(to) = &graph.blocks[at].end else { break };
                (at, steps) = (*to, steps + 1);
                if steps > graph.blocks.len() {
                    return self.refuse("endless loop");
                }
            }
            let entry = pipeline.entries.get(&at).cloned().unwrap_or_default();
            pipeline.entries.insert(*id, entry);
        }
        Ok(())
    }

    /// Whether a block has statements, or computes keys.
    fn begins_with_action(&self, graph: &Graph, id: BlockId, pipeline: &Pipeline) -> bool {
        let block = &graph.blocks[id];
        let computes = |table: &TableId| {
            let keys = &self.program.tables[table.0 as usize].keys;
            pipeline.marks.contains_key(table) || keys.iter().any(|key| !self.is_plain_key(&key.expr))
        };
        !block.ops.is_empty() || matches!(&block.end, End::Apply { table, .. } if computes(table))
    }

    /// Writes a block: its statements, and the conditional at its end.
    fn block(&mut self, graph: &Graph, id: BlockId, pipeline: &mut Pipeline) -> Result<()> {
        let block = &graph.blocks[id];
        self.at = block.span;
        let mut ops = block.ops.clone();
        if let End::Apply { table, .. } = &block.end {
            self.keys(*table, &mut ops);
            let site = pipeline.sites.get(table).and_then(|sites| sites.iter().position(|site| *site == id));
            if let (Some(mark), Some(site)) = (pipeline.marks.get(table), site) {
                let value = Expr::Const { value: site.into(), ty: Ty::Bit(32) };
                ops.push(Stmt::Assign { target: LValue::Var(*mark), value, span: block.span });
            }
        }
        let entry = pipeline.entries.get(&id).cloned().unwrap_or_default();
        let mut own = entry.clone();
        if !ops.is_empty() {
            let next = match &block.end {
                End::Goto(to) => pipeline.entries.get(to).cloned().unwrap_or_default(),
                End::Stop | End::Leave => Value::Null,
                End::Branch { .. } => Value::from(self.name("node_")),
                End::Apply { table, .. } => Value::from(self.table_name(*table)),
            };
            let table = self.hidden_table(&entry, &ops, &next)?;
            pipeline.tables.push(table);
            own = next;
        }
        if let End::Branch { cond, then, otherwise } = &block.end {
            self.at = block.span;
            let expression = self.truth(cond)?;
            let to = |to: &BlockId| pipeline.entries.get(to).cloned().unwrap_or_default();
            let id = self.id("conditionals");
            pipeline.conditionals.push(json!({
                "name": own,
                "id": id,
                "expression": expression,
                "true_next": to(then),
                "false_next": to(otherwise),
            }));
        }
        Ok(())
    }

    /// A table that runs statements.
    fn hidden_table(&mut self, name: &Value, ops: &[Stmt], next: &Value) -> Result<Value> {
        let (action, action_id) = self.hidden_action(ops)?;
        let id = self.id("tables");
        let mut next_tables = serde_json::Map::new();
        next_tables.insert(action.clone(), next.clone());
        Ok(json!({
            "name": name,
            "id": id,
            "key": [],
            "match_type": "exact",
            "type": "simple",
            "max_size": 1024,
            "with_counters": false,
            "support_timeout": false,
            "direct_meters": null,
            "action_ids": [action_id],
            "actions": [action],
            "base_default_next": next,
            "next_tables": next_tables,
            "default_entry": {
                "action_id": action_id,
                "action_const": true,
                "action_data": [],
                "action_entry_const": true,
            },
        }))
    }

    /// Writes a table that these blocks apply.
    fn applied(&mut self, id: TableId, sites: &[(BlockId, After)], pipeline: &mut Pipeline) -> Result<()> {
        let entry = |pipeline: &Pipeline, to: &BlockId| pipeline.entries.get(to).cloned().unwrap_or_default();
        let by_hit = sites.iter().any(|(_, after)| matches!(after, After::Hit { .. }));
        let by_action = sites.iter().any(|(_, after)| matches!(after, After::Action { .. }));
        self.at = self.program.tables[id.0 as usize].span;
        if by_hit && by_action {
            return self.refuse("table that one call asks for a hit and another one for the action");
        }
        let (name, actions) = {
            let table = &self.program.tables[id.0 as usize];
            let name = |listed: &p4rack_p4::ir::TableAction| {
                self.program.actions[listed.action.0 as usize].named.name.clone()
            };
            (table.named.name.clone(), table.actions.iter().map(name).collect::<Vec<String>>())
        };
        let mut next_tables = serde_json::Map::new();
        let mut base = Value::Null;
        // One target for each way out of the table, from all calls.
        let out = |writer: &mut Writer, pipeline: &mut Pipeline, pick: &dyn Fn(&After) -> BlockId| {
            let to: Vec<Value> = sites.iter().map(|(_, after)| entry(pipeline, &pick(after))).collect();
            writer.dispatch(id, to, pipeline)
        };
        if by_hit {
            let always = |after: &After, hit: bool| match after {
                After::Hit { hit: to, .. } if hit => *to,
                After::Hit { miss, .. } => *miss,
                After::Always(to) | After::Action { default: to, .. } => *to,
            };
            next_tables.insert("__HIT__".into(), out(self, pipeline, &|after| always(after, true))?);
            next_tables.insert("__MISS__".into(), out(self, pipeline, &|after| always(after, false))?);
        } else {
            for (position, action) in actions.iter().enumerate() {
                let pick = |after: &After| match after {
                    After::Action { cases, default } => {
                        let case = cases.iter().find(|(at, _)| *at as usize == position);
                        case.map_or(*default, |(_, to)| *to)
                    }
                    After::Always(to) | After::Hit { miss: to, .. } => *to,
                };
                let next = out(self, pipeline, &pick)?;
                let other = next_tables.insert(action.clone(), next.clone());
                if other.is_some_and(|other| other != next) {
                    return self
                        .refuse(format!("table `{name}` with two actions of one name that lead apart"));
                }
            }
            base = out(self, pipeline, &|after| match after {
                After::Action { default, .. } => *default,
                After::Always(to) | After::Hit { miss: to, .. } => *to,
            })?;
        }
        self.written.push(id);
        let table = self.table(id, next_tables, base)?;
        pipeline.tables.push(table);
        self.profile(id, pipeline)
    }

    /// Writes a table that nothing applies.
    fn unapplied(&mut self, id: TableId, pipeline: &mut Pipeline) -> Result<()> {
        let table = &self.program.tables[id.0 as usize];
        let name = |listed: &p4rack_p4::ir::TableAction| {
            self.program.actions[listed.action.0 as usize].named.name.clone()
        };
        let next = table.actions.iter().map(|listed| (name(listed), Value::Null)).collect();
        self.keys(id, &mut Vec::new());
        let table = self.table(id, next, Value::Null)?;
        pipeline.tables.push(table);
        self.profile(id, pipeline)
    }

    fn profile(&mut self, id: TableId, pipeline: &mut Pipeline) -> Result<()> {
        if let Some((name, profile)) = self.table_profile(id)?
            && pipeline.profile_names.insert(name)
        {
            pipeline.profiles.push(profile);
        }
        Ok(())
    }

    /// Where the calls of a table go on: if not all in one place, by the mark.
    fn dispatch(&mut self, table: TableId, to: Vec<Value>, pipeline: &mut Pipeline) -> Result<Value> {
        let mut next = to.last().cloned().unwrap_or_default();
        let Some(mark) = pipeline.marks.get(&table).copied() else { return Ok(next) };
        for (site, target) in to.iter().enumerate().rev().skip(1) {
            if *target == next {
                continue;
            }
            let cond = Expr::Binary {
                op: BinOp::Eq,
                left: Box::new(Expr::Var(mark)),
                right: Box::new(Expr::Const { value: site.into(), ty: Ty::Bit(32) }),
                ty: Ty::Bit(32),
            };
            let name = Value::from(self.name("node_"));
            let (id, expression) = (self.id("conditionals"), self.truth(&cond)?);
            pipeline.conditionals.push(json!({
                "name": name,
                "id": id,
                "expression": expression,
                "true_next": target,
                "false_next": next,
            }));
            next = name;
        }
        Ok(next)
    }

    fn table_name(&self, table: TableId) -> String {
        self.program.tables[table.0 as usize].named.name.clone()
    }

    /// The next id of a kind of object.
    pub(super) fn id(&mut self, kind: &'static str) -> usize {
        let id = self.numbers.entry(kind).or_default();
        *id += 1;
        *id - 1
    }
}
