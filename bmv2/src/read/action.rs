//! Actions: primitives with jumps, as nested statements.

use super::structure::{self, Leave};
use super::{Cursor, Reader, Result};
use crate::graph::{Block, BlockId, End, Graph};
use num_traits::ToPrimitive;
use p4rack_p4::ir::{Action, ActionId, ActionParam, Named, Stmt, Ty};
use std::collections::BTreeMap;

impl<'j> Reader<'j> {
    /// The action with an id, for tables with this direct meter.
    pub(super) fn action(&mut self, id: &Cursor<'j>, meter: Option<&Cursor<'j>>) -> Result<ActionId> {
        let number = id.number()?;
        let instance = match meter {
            Some(meter) => self.instances.get(meter.text()?).copied(),
            None => None,
        };
        if let Some(built) = self.built.get(&(number, instance)) {
            return Ok(*built);
        }
        let node = self.action_node(id)?;
        let (params, mut body) = self.action_body(&node)?;
        if let Some(meter) = meter {
            body.insert(0, self.direct_meter(meter)?);
        }
        let named = Named { name: node.text_of("name")?.to_owned(), ..Named::default() };
        self.program.actions.push(Action { named, params, body, in_table: true });
        let built = ActionId(self.program.actions.len() as u32 - 1);
        self.built.insert((number, instance), built);
        Ok(built)
    }

    pub(super) fn action_node(&self, id: &Cursor<'_>) -> Result<Cursor<'j>> {
        match self.actions.get(&id.number()?) {
            Some(node) => Ok(node.clone()),
            None => id.wrong(format!("there is no action with the id {}", id.number()?)),
        }
    }

    /// Parameters and statements of an action.
    pub(super) fn action_body(&mut self, node: &Cursor<'j>) -> Result<(Vec<ActionParam>, Vec<Stmt>)> {
        let name = node.text_of("name")?;
        let mut params = Vec::new();
        for data in node.list_of("runtime_data")? {
            self.count_statements(&data, 1)?;
            let (param, ty) = (data.text_of("name")?, Ty::Bit(data.get("bitwidth")?.within(1, 2048)? as u32));
            let var = self.new_var(format!("{name}.{param}"), ty);
            let named = Named { name: param.to_owned(), ..Named::default() };
            params.push(ActionParam { named, var, ty, type_name: None });
        }
        self.params = params.iter().map(|param| (param.var, param.ty)).collect();
        let body = self.primitives(&node.list_of("primitives")?);
        self.params.clear();
        Ok((params, body?))
    }

    fn primitives(&mut self, nodes: &[Cursor<'j>]) -> Result<Vec<Stmt>> {
        let mut jumps = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            if let Some(jump) = self.jump(node, nodes.len())? {
                jumps.insert(at, jump);
            }
        }
        if jumps.is_empty() {
            let mut out = Vec::new();
            for node in nodes {
                self.primitive(node, &mut out)?;
            }
            return Ok(out);
        }
        let graph = self.jumping(nodes, &jumps)?;
        let body = structure::nested(graph, Leave::Action, self)
            .or_else(|what| nodes.first().map_or(Ok(Vec::new()), |first| first.wrong(what)))?;
        Ok(vec![Stmt::Scope(body)])
    }

    /// Where a jump leads.
    fn jump(&self, node: &Cursor<'j>, count: usize) -> Result<Option<usize>> {
        let position = match node.text_of("op")? {
            "_jump" => 0,
            "_jump_if_zero" => 1,
            _ => return Ok(None),
        };
        let target = node.get("parameters")?.at(position)?.get("value")?;
        match target.natural()?.to_usize().filter(|to| *to <= count) {
            Some(to) => Ok(Some(to)),
            None => target.wrong(format!("expected a jump to one of {count} primitives")),
        }
    }

    /// A block for each stretch of primitives without jumps.
    fn jumping(&mut self, nodes: &[Cursor<'j>], jumps: &BTreeMap<usize, usize>) -> Result<Graph> {
        let behind = jumps.keys().map(|at| at + 1);
        let mut starts: Vec<usize> = [0].into_iter().chain(jumps.values().copied()).chain(behind).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|start| *start < nodes.len());
        // The end of the action is the last block.
        let end = starts.len();
        let block_at = |at: usize| -> BlockId { starts.binary_search(&at).unwrap_or(end) };
        let mut blocks = Vec::new();
        for (number, start) in starts.iter().enumerate() {
            let stop = starts.get(number + 1).copied().unwrap_or(nodes.len());
            let mut block = Block::new(End::Goto(number + 1));
            for (at, node) in nodes.iter().enumerate().take(stop).skip(*start) {
                match (node.text_of("op")?, jumps.get(&at)) {
                    ("_jump", Some(to)) => block.end = End::Goto(block_at(*to)),
                    (_, Some(to)) => {
                        let cond = self.truth(&node.get("parameters")?.at(0)?)?;
                        let (then, otherwise) = (block_at(at + 1), block_at(*to));
                        block.end = End::Branch { cond, then, otherwise };
                    }
                    _ => self.primitive(node, &mut block.ops)?,
                }
            }
            blocks.push(block);
        }
        blocks.push(Block::new(End::Stop));
        Ok(Graph { blocks, entry: 0 })
    }
}
