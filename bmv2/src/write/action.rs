//! Actions: primitives in sequence, with jumps.

use super::expr::hex;
use super::flow;
use super::primitive::primitive;
use super::{Result, Writer};
use crate::graph::{BlockId, End, Graph};
use num_bigint::BigUint;
use p4rack_p4::ir::{Expr, HeaderRef, LValue, Stmt};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Position of a jump's target among its arguments.
struct Jump {
    primitive: usize,
    argument: usize,
    /// `None`: the end of the action.
    to: Option<BlockId>,
}

impl Writer {
    /// Writes the actions that tables list.
    pub(super) fn table_actions(&mut self) -> Result<()> {
        let actions = std::mem::take(&mut self.program.actions);
        let written = actions.iter().try_for_each(|action| {
            if !action.in_table {
                self.action_ids.push(usize::MAX);
                return Ok(());
            }
            self.params = action.params.iter().enumerate().map(|(at, param)| (param.var, at)).collect();
            let data = action
                .params
                .iter()
                .map(|param| json!({ "name": param.named.name, "bitwidth": param.ty.width() }));
            let data: Vec<Value> = data.collect();
            let graph = flow::graph(&action.body, &self.program, &self.reads, true);
            let primitives = self.jumps(&graph)?;
            self.params.clear();
            let id = self.action(&action.named.name, data, primitives);
            self.action_ids.push(id);
            Ok(())
        });
        self.program.actions = actions;
        written
    }

    /// Adds an action. Returns its id.
    pub(super) fn action(&mut self, name: &str, data: Vec<Value>, primitives: Vec<Value>) -> usize {
        let id = self.actions.len();
        self.actions.push(json!({ "name": name, "id": id, "runtime_data": data, "primitives": primitives }));
        id
    }

    /// Blocks in sequence.
    fn jumps(&mut self, graph: &Graph) -> Result<Vec<Value>> {
        let order = graph.order();
        let mut out = Vec::new();
        let mut starts: BTreeMap<BlockId, usize> = BTreeMap::new();
        let mut jumps = Vec::new();
        for (position, id) in order.iter().enumerate() {
            starts.insert(*id, out.len());
            let block = &graph.blocks[*id];
            for stmt in &block.ops {
                self.step(stmt, &mut out)?;
            }
            let next = order.get(position + 1).copied();
            // Where the block goes on, unless that follows anyway.
            let to = match &block.end {
                End::Stop => None,
                End::Leave => {
                    out.push(primitive("exit", Vec::new()));
                    None
                }
                End::Goto(block) => Some(*block),
                End::Branch { cond, then, otherwise } => {
                    self.at = block.span;
                    // The side that follows needs no jump.
                    let (cond, yes, no) = if Some(*otherwise) == next {
                        (&Writer::not(cond), *otherwise, *then)
                    } else {
                        (cond, *then, *otherwise)
                    };
                    let cond = self.flag(cond)?;
                    jumps.push(Jump { primitive: out.len(), argument: 1, to: Some(no) });
                    out.push(primitive("_jump_if_zero", vec![cond, Value::Null]));
                    Some(yes)
                }
                End::Apply { .. } => return self.refuse("table in an action"),
            };
            if to != next {
                jumps.push(Jump { primitive: out.len(), argument: 0, to });
                out.push(primitive("_jump", vec![Value::Null]));
            }
        }
        for jump in jumps {
            let to = jump.to.and_then(|block| starts.get(&block).copied()).unwrap_or(out.len());
            out[jump.primitive]["parameters"][jump.argument] = hex(&BigUint::from(to), 32);
        }
        Ok(out)
    }

    /// Appends a statement. One that needs an element of a stack by its index is passed over where there is none: BMv2 would end.
    pub(super) fn step(&mut self, stmt: &Stmt, out: &mut Vec<Value>) -> Result<()> {
        let headers = match stmt {
            // Parsers have no jumps.
            _ if self.in_parser => Vec::new(),
            Stmt::Assign { target, .. } => vec![header_of(target)],
            Stmt::SetValid { header, .. } => vec![Some(header)],
            Stmt::CopyHeader { dst, src } => vec![Some(dst), Some(src)],
            _ => Vec::new(),
        };
        let exist: Vec<Expr> =
            headers.into_iter().flatten().filter_map(|header| self.exists(header)).collect();
        let mut jumps = Vec::new();
        for exists in &exist {
            jumps.push(out.len());
            let exists = self.flag(exists)?;
            out.push(primitive("_jump_if_zero", vec![exists, Value::Null]));
        }
        self.statement(stmt, out)?;
        for jump in jumps {
            out[jump]["parameters"][1] = hex(&BigUint::from(out.len()), 32);
        }
        Ok(())
    }

    /// A condition as a number, 0 or 1.
    pub(super) fn flag(&mut self, cond: &Expr) -> Result<Value> {
        let truth = self.truth(cond)?;
        let number = json!({ "op": "b2d", "left": null, "right": truth });
        Ok(super::expr::argument(json!({ "type": "expression", "value": number })))
    }

    /// Statements that a control runs, as an action. Returns its id.
    pub(super) fn hidden_action(&mut self, stmts: &[Stmt]) -> Result<(String, usize)> {
        let mut primitives = Vec::new();
        for stmt in stmts {
            self.step(stmt, &mut primitives)?;
        }
        let name = self.name("act_");
        let id = self.action(&name, Vec::new(), primitives);
        Ok((name, id))
    }
}

/// The header whose field is set.
fn header_of(target: &LValue) -> Option<&HeaderRef> {
    match target {
        LValue::Var(_) => None,
        LValue::Field { header, .. } => Some(header),
        LValue::Slice { base, .. } => header_of(base),
    }
}
