//! Pipelines: tables, conditionals and calls of actions, with what follows each.

use super::structure::{self, Leave};
use super::{Cursor, NOWHERE, Reader, Result};
use crate::graph::{After, Block, BlockId, End, Graph};
use crate::names::HIDDEN_TABLE;
use p4rack_p4::ir::{Expr, LValue, Stmt};
use std::collections::HashMap;

/// The block at the end of each pipeline.
const END: BlockId = 0;

/// Names of the nodes of a pipeline, and their blocks.
type Names<'j> = HashMap<&'j str, BlockId>;

impl<'j> Reader<'j> {
    /// Statements of a pipeline; none if the file has no such pipeline.
    pub(super) fn pipeline(&mut self, name: &str) -> Result<Vec<Stmt>> {
        let pipelines = self.root.get("pipelines")?.list()?;
        let mut found = None;
        for pipeline in pipelines {
            if pipeline.text_of("name")? == name {
                found = Some(pipeline);
            }
        }
        let Some(pipeline) = found else { return Ok(Vec::new()) };
        let mut nodes: Vec<(&str, Cursor<'j>)> = Vec::new();
        for kind in ["tables", "conditionals", "action_calls"] {
            for node in pipeline.list_of(kind)? {
                nodes.push((kind, node));
            }
        }
        let mut names = Names::new();
        for (at, (_, node)) in nodes.iter().enumerate() {
            let name = node.text_of("name")?;
            if names.insert(name, at + 1).is_some() {
                return node.wrong(format!("a second node with the name `{name}`"));
            }
        }
        let entry = match pipeline.find("init_table") {
            Some(first) => target(Some(first), &names)?,
            None => return Ok(Vec::new()),
        };
        let mut blocks = vec![Block::new(End::Stop)];
        for (kind, node) in &nodes {
            blocks.push(match *kind {
                "tables" => self.table_block(node, &names)?,
                "conditionals" => {
                    let cond = self.truth(&node.get("expression")?)?;
                    let then = target(node.find("true_next"), &names)?;
                    let otherwise = target(node.find("false_next"), &names)?;
                    Block::new(End::Branch { cond, then, otherwise })
                }
                _ => {
                    let action = self.action_node(&node.get("action_id")?)?;
                    let next = target(node.find("next_node"), &names)?;
                    let mut block = Block::new(End::Goto(next));
                    block.ops = self.called(&action, &[])?;
                    block
                }
            });
        }
        structure::nested(Graph { blocks, entry }, Leave::Control, self).or_else(|what| pipeline.wrong(what))
    }

    fn table_block(&mut self, node: &Cursor<'j>, names: &Names<'j>) -> Result<Block> {
        let Some(table) = self.tables.get(node.text_of("name")?).copied() else {
            // The control plane doesn't see it: it only calls its default action.
            let entry = node.get("default_entry")?;
            let action = self.action_node(&entry.get("action_id")?)?;
            let follows = node.find("next_tables").and_then(|next| next.find(action.text_of("name").ok()?));
            let next = target(follows.or_else(|| node.find("base_default_next")), names)?;
            let mut block = Block::new(End::Goto(next));
            block.ops = self.called(&action, &entry.list_of("action_data")?)?;
            return Ok(block);
        };
        let after = self.after(node, names)?;
        Ok(Block::new(End::Apply { table, after }))
    }

    /// What follows a table.
    fn after(&mut self, node: &Cursor<'j>, names: &Names<'j>) -> Result<After> {
        let base = target(node.find("base_default_next"), names)?;
        let Some(next) = node.find("next_tables") else { return Ok(After::Always(base)) };
        let keys = next.keys()?;
        if keys.iter().any(|key| matches!(*key, "__HIT__" | "__MISS__")) {
            let hit = target(next.find("__HIT__"), names)?;
            let miss = target(next.find("__MISS__"), names)?;
            return Ok(if hit == miss { After::Always(hit) } else { After::Hit { hit, miss } });
        }
        let mut cases = Vec::new();
        for (position, action) in self.action_names(node)?.iter().enumerate() {
            if !keys.contains(&action.as_str()) {
                return next.wrong(format!("the action `{action}` is missing"));
            }
            cases.push((position as u32, target(next.find(action), names)?));
        }
        let first = cases.first().map_or(base, |(_, to)| *to);
        let has_default = node.find("default_entry").is_some();
        if cases.iter().all(|(_, to)| *to == first) && (has_default || base == first) {
            return Ok(After::Always(first));
        }
        cases.retain(|(_, to)| *to != base);
        Ok(After::Action { cases, default: base })
    }

    /// Names of a table's actions, in order.
    fn action_names(&self, node: &Cursor<'j>) -> Result<Vec<String>> {
        let mut names = Vec::new();
        match node.find("action_ids") {
            Some(ids) => {
                for id in ids.list()? {
                    names.push(self.action_node(&id)?.text_of("name")?.to_owned());
                }
            }
            None => {
                for name in node.list_of("actions")? {
                    names.push(name.text()?.to_owned());
                }
            }
        }
        Ok(names)
    }

    /// The statements of an action with constant arguments.
    fn called(&mut self, action: &Cursor<'j>, data: &[Cursor<'j>]) -> Result<Vec<Stmt>> {
        let (params, body) = self.action_body(action)?;
        if params.len() != data.len() {
            return action.wrong(format!("the action has {} parameters, not {}", params.len(), data.len()));
        }
        let mut out = Vec::new();
        for (param, value) in params.iter().zip(data) {
            let value =
                Expr::Const { value: value.natural()? & super::expr::ones(param.ty.width()), ty: param.ty };
            out.push(Stmt::Assign { target: LValue::Var(param.var), value, span: NOWHERE });
        }
        out.extend(body);
        Ok(out)
    }
}

/// The block of the node that comes next.
fn target(node: Option<Cursor<'_>>, names: &Names<'_>) -> Result<BlockId> {
    let Some(node) = node else { return Ok(END) };
    match names.get(node.text()?) {
        Some(block) => Ok(*block),
        None => node.wrong(format!("the pipeline has no `{}`", node.text()?)),
    }
}

/// Whether a table only stands for a call of an action: a compiler made it.
pub(super) fn is_hidden(node: &Cursor<'_>) -> Result<bool> {
    let is_fixed = match node.find("default_entry") {
        Some(entry) => entry.flag_of("action_entry_const")? || entry.flag_of("action_const")?,
        None => false,
    };
    Ok(is_fixed
        && node.list_of("key")?.is_empty()
        && node.list_of("entries")?.is_empty()
        && node.find("action_profile").is_none()
        && node.find("act_prof_name").is_none()
        && node.find("direct_meters").is_none()
        && !node.flag_of("with_counters")?
        && node.text_of("name")?.starts_with(HIDDEN_TABLE))
}
