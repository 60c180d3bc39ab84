//! From blocks with jumps to nested statements.
//!
//! The branches of a block meet again in the first block that most of them reach; what is before it is nested, and
//! what leaves past it leaves the whole. Programs that were nested before are so again. Where this would repeat too
//! much, as with loops, the blocks become the cases of a loop over the number of the next one.

use super::expr::constant;
use super::{NOWHERE, Reader};
use crate::graph::{After, BlockId, End, Graph};
use p4rack_p4::ir::{BinOp, Expr, LValue, Stmt, Ty, VarId};

/// Blocks of a control or an action.
const BLOCKS_MAX: usize = 1 << 14;
/// How often a block is written: its expressions are copied.
const REPEATS_MAX: usize = 16;
/// How deep statements are nested.
const DEPTH_MAX: usize = 100;

/// What ends at the end of the blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    Control,
    Action,
}

/// Nested statements that do the same as blocks. The error says what is too large.
pub(super) fn nested(graph: Graph, leave: Leave, reader: &mut Reader<'_>) -> Result<Vec<Stmt>, String> {
    if graph.blocks.len() > BLOCKS_MAX {
        return Err(format!("{} blocks; at most {BLOCKS_MAX} are possible", graph.blocks.len()));
    }
    let order = graph.order();
    let mut place = vec![usize::MAX; graph.blocks.len()];
    for (at, id) in order.iter().enumerate() {
        place[*id] = at;
    }
    let loops =
        order.iter().any(|id| graph.blocks[*id].end.targets().into_iter().any(|to| place[to] <= place[*id]));
    let mut nest =
        Nest { reach: Vec::new(), order, place, graph, leave, reader, budget: 0, repeats: Vec::new() };
    if !loops {
        nest.reach();
        nest.repeats = vec![REPEATS_MAX; nest.graph.blocks.len()];
        nest.budget = 64 + 2 * nest.graph.blocks.iter().map(|block| 1 + block.ops.len()).sum::<usize>();
        if let Some(stmts) = nest.from(nest.graph.entry, None, true, 0) {
            return Ok(stmts);
        }
    }
    Ok(nest.dispatched())
}

struct Nest<'r, 'j> {
    graph: Graph,
    /// Blocks that are reached, each after its predecessors.
    order: Vec<BlockId>,
    /// Position of a block in this order.
    place: Vec<usize>,
    /// Blocks that are reached from a block, by position: a bit for each.
    reach: Vec<Vec<u64>>,
    leave: Leave,
    reader: &'r mut Reader<'j>,
    /// How many blocks and statements may still be written.
    budget: usize,
    /// How often each block may still be written.
    repeats: Vec<usize>,
}

impl Nest<'_, '_> {
    fn reach(&mut self) {
        let words = self.order.len().div_ceil(64);
        self.reach = vec![Vec::new(); self.order.len()];
        for at in (0..self.order.len()).rev() {
            let mut bits = vec![0; words];
            bits[at / 64] |= 1 << (at % 64);
            for to in self.graph.blocks[self.order[at]].end.targets() {
                for (word, other) in bits.iter_mut().zip(&self.reach[self.place[to]]) {
                    *word |= other;
                }
            }
            self.reach[at] = bits;
        }
    }

    /// Where these blocks meet: the first block that most of them reach, else the last of them.
    fn join(&self, targets: &[BlockId]) -> Option<BlockId> {
        let mut distinct: Vec<usize> = targets.iter().map(|to| self.place[*to]).collect();
        distinct.sort_unstable();
        distinct.dedup();
        if let [only] = distinct[..] {
            return Some(self.order[only]);
        }
        let first = *distinct.first()?;
        let count = |at: usize| {
            distinct.iter().filter(|from| self.reach[**from][at / 64] >> (at % 64) & 1 == 1).count()
        };
        let mut best = (1, None);
        for at in first..self.order.len() {
            let reached = count(at);
            if reached > best.0 {
                best = (reached, Some(self.order[at]));
            }
        }
        best.1.or_else(|| distinct.last().map(|at| self.order[*at]))
    }

    /// How statements leave the whole.
    fn out(&self) -> Stmt {
        match self.leave {
            Leave::Control => Stmt::Exit,
            Leave::Action => Stmt::Return,
        }
    }

    /// Statements from a block to another one, or to the end. They fall through there only; at the end, they do so if
    /// nothing is behind them (`last`).
    fn from(&mut self, start: BlockId, stop: Option<BlockId>, last: bool, depth: usize) -> Option<Vec<Stmt>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut stmts = Vec::new();
        let mut at = start;
        loop {
            if Some(at) == stop {
                return Some(stmts);
            }
            self.budget = self.budget.checked_sub(1 + self.graph.blocks[at].ops.len())?;
            self.repeats[at] = self.repeats[at].checked_sub(1)?;
            stmts.extend(self.graph.blocks[at].ops.iter().cloned());
            let targets = self.graph.blocks[at].end.targets();
            match &self.graph.blocks[at].end {
                End::Stop => {
                    if !last {
                        stmts.push(self.out());
                    }
                    return Some(stmts);
                }
                End::Leave => {
                    stmts.push(Stmt::Exit);
                    return Some(stmts);
                }
                End::Goto(to) => {
                    at = *to;
                    continue;
                }
                _ => {}
            }
            // A block that branches has targets.
            let join = self.join(&targets)?;
            // The end is nothing to go on with.
            let ends =
                matches!(self.graph.blocks[join].end, End::Stop) && self.graph.blocks[join].ops.is_empty();
            let tail = ends && last;
            let side = |nest: &mut Self, to: BlockId| nest.from(to, Some(join), tail, depth + 1);
            match self.graph.blocks[at].end {
                End::Branch { ref cond, then, otherwise } => {
                    let cond = cond.clone();
                    let (then, otherwise) = (side(self, then)?, side(self, otherwise)?);
                    if !then.is_empty() || !otherwise.is_empty() {
                        stmts.push(Stmt::If { cond, then, otherwise, span: NOWHERE });
                    }
                }
                End::Apply { table, ref after } => {
                    let after = after.clone();
                    self.applied(table, &after, &mut stmts, side)?;
                }
                _ => {}
            }
            at = join;
        }
    }

    fn applied(
        &mut self,
        table: p4rack_p4::ir::TableId,
        after: &After,
        stmts: &mut Vec<Stmt>,
        mut side: impl FnMut(&mut Self, BlockId) -> Option<Vec<Stmt>>,
    ) -> Option<()> {
        let apply = |hit, action_run| Stmt::Apply { table, hit, action_run, span: NOWHERE };
        match after {
            After::Always(_) => stmts.push(apply(None, None)),
            After::Hit { hit, miss } => {
                let (then, otherwise) = (side(self, *hit)?, side(self, *miss)?);
                if then.is_empty() && otherwise.is_empty() {
                    stmts.push(apply(None, None));
                    return Some(());
                }
                let var = self.result("hit", Ty::Bool);
                stmts.push(apply(Some(var), None));
                stmts.push(Stmt::If { cond: Expr::Var(var), then, otherwise, span: NOWHERE });
            }
            After::Action { cases, default } => {
                let mut bodies = Vec::new();
                for (position, to) in cases {
                    bodies.push((vec![(*position).into()], side(self, *to)?));
                }
                let default = side(self, *default)?;
                if default.is_empty() && bodies.iter().all(|(_, body)| body.is_empty()) {
                    stmts.push(apply(None, None));
                    return Some(());
                }
                let ty = Ty::Bit(32);
                let var = self.result("action_run", ty);
                stmts.push(apply(None, Some(var)));
                stmts.push(Stmt::Switch { expr: Expr::Var(var), ty, cases: bodies, default });
            }
        }
        Some(())
    }

    fn result(&mut self, what: &str, ty: Ty) -> VarId {
        let name = format!("{what}_{}", self.reader.program.vars.len());
        self.reader.new_var(name, ty)
    }

    /// A loop whose passes each run a block.
    fn dispatched(&mut self) -> Vec<Stmt> {
        let ty = Ty::Bit(32);
        let next = self.result("next", ty);
        let end = self.order.len();
        let goto =
            |at: usize| Stmt::Assign { target: LValue::Var(next), value: constant(at, ty), span: NOWHERE };
        let mut cases = Vec::new();
        for (at, id) in self.order.clone().into_iter().enumerate() {
            let mut body = std::mem::take(&mut self.graph.blocks[id].ops);
            let place = |to: BlockId| goto(self.place[to]);
            match &self.graph.blocks[id].end {
                End::Stop => body.push(goto(end)),
                End::Leave => body.push(Stmt::Exit),
                End::Goto(to) => body.push(place(*to)),
                End::Branch { cond, then, otherwise } => body.push(Stmt::If {
                    cond: cond.clone(),
                    then: vec![place(*then)],
                    otherwise: vec![place(*otherwise)],
                    span: NOWHERE,
                }),
                End::Apply { table, after } => {
                    let (table, after) = (*table, after.clone());
                    let side = |nest: &mut Self, to: BlockId| Some(vec![goto(nest.place[to])]);
                    // Neither side fails.
                    let _ = self.applied(table, &after, &mut body, side);
                    if let After::Always(to) = after {
                        body.push(goto(self.place[to]));
                    }
                }
            }
            cases.push((vec![at.into()], body));
        }
        let expr = Expr::Var(next);
        let cond = Expr::Binary {
            op: BinOp::Ne,
            left: Box::new(expr.clone()),
            right: Box::new(constant(end, ty)),
            ty,
        };
        let first = goto(self.place[self.graph.entry]);
        let body = vec![Stmt::Switch { expr, ty, cases, default: Vec::new() }];
        vec![first, Stmt::Loop { cond, body, update: Vec::new() }]
    }
}
