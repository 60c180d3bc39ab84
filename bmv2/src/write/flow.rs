//! From nested statements to blocks with jumps.

use crate::graph::{After, Block, BlockId, End, Graph};
use num_bigint::BigUint;
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{BinOp, Expr, LValue, Program, Stmt, TableId, Ty, UnOp, VarId};
use std::collections::BTreeMap;

/// How often each variable is read.
pub(super) type Reads = BTreeMap<VarId, usize>;

/// Blocks for these statements. In an action, `exit` ends more than the statements.
pub(super) fn graph(stmts: &[Stmt], program: &Program, reads: &Reads, in_action: bool) -> Graph {
    let blocks = vec![Block::new(End::Stop), Block::new(End::Stop), Block::new(End::Leave)];
    let mut flow = Flow { graph: Graph { blocks, entry: 0 }, program, reads };
    let exit = if in_action { 2 } else { 1 };
    let targets = Targets { leave: 1, exit, on_break: None, on_continue: None };
    if let Some(last) = flow.stmts(stmts, 0, targets) {
        flow.graph.blocks[last].end = End::Goto(1);
    }
    flow.graph
}

struct Flow<'p> {
    graph: Graph,
    program: &'p Program,
    reads: &'p Reads,
}

/// Where jumps lead.
#[derive(Clone, Copy)]
struct Targets {
    leave: BlockId,
    exit: BlockId,
    on_break: Option<BlockId>,
    on_continue: Option<BlockId>,
}

/// A variable's test by the statement behind a table: its branches.
enum Test<'s> {
    None,
    Hit(&'s [Stmt], &'s [Stmt]),
    Action(&'s [(Vec<BigUint>, Vec<Stmt>)], &'s [Stmt]),
}

impl Flow<'_> {
    fn block(&mut self) -> BlockId {
        self.graph.blocks.push(Block::new(End::Stop));
        self.graph.blocks.len() - 1
    }

    fn end(&mut self, at: BlockId, end: End, span: Span) {
        self.graph.blocks[at].end = end;
        self.graph.blocks[at].span = span;
    }

    fn goto(&mut self, at: Option<BlockId>, to: BlockId) {
        if let Some(at) = at {
            self.graph.blocks[at].end = End::Goto(to);
        }
    }

    /// Appends statements to a block. Returns the block behind them, if they have an end.
    fn stmts(&mut self, stmts: &[Stmt], at: BlockId, targets: Targets) -> Option<BlockId> {
        let mut at = at;
        let mut rest = stmts;
        while let [stmt, behind @ ..] = rest {
            rest = behind;
            if let Stmt::Apply { table, hit, action_run, span } = stmt {
                let test = tested(behind.first(), *hit, *action_run);
                if !matches!(test, Test::None) {
                    rest = &behind[1..];
                }
                let results = (*hit, *action_run);
                at = self.apply(at, *table, results, test, targets, *span)?;
            } else {
                at = self.stmt(stmt, at, targets)?;
            }
        }
        Some(at)
    }

    fn stmt(&mut self, stmt: &Stmt, at: BlockId, targets: Targets) -> Option<BlockId> {
        match stmt {
            Stmt::If { cond, then, otherwise, span } => {
                self.branch(at, cond, then, otherwise, targets, *span)
            }
            Stmt::Switch { expr, ty, cases, default } => {
                self.switch(at, (expr, *ty), cases, default, targets)
            }
            Stmt::Scope(body) => {
                let end = self.block();
                let last = self.stmts(body, at, Targets { leave: end, ..targets });
                self.goto(last, end);
                Some(end)
            }
            Stmt::Loop { cond, body, update } => {
                let (head, first, next, end) = (self.block(), self.block(), self.block(), self.block());
                self.goto(Some(at), head);
                let branch = End::Branch { cond: cond.clone(), then: first, otherwise: end };
                self.graph.blocks[head].end = branch;
                let inner = Targets { on_break: Some(end), on_continue: Some(next), ..targets };
                let last = self.stmts(body, first, inner);
                self.goto(last, next);
                let last = self.stmts(update, next, inner);
                self.goto(last, head);
                Some(end)
            }
            Stmt::Break => self.jump(at, targets.on_break.unwrap_or(targets.leave)),
            Stmt::Continue => self.jump(at, targets.on_continue.unwrap_or(targets.leave)),
            Stmt::Return => self.jump(at, targets.leave),
            Stmt::Exit => self.jump(at, targets.exit),
            other => {
                self.graph.blocks[at].ops.push(other.clone());
                Some(at)
            }
        }
    }

    fn jump(&mut self, at: BlockId, to: BlockId) -> Option<BlockId> {
        self.goto(Some(at), to);
        None
    }

    fn branch(
        &mut self,
        at: BlockId,
        cond: &Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
        targets: Targets,
        span: Span,
    ) -> Option<BlockId> {
        let join = self.block();
        let [yes, no] = [then, otherwise].map(|side| self.side(side, join, targets));
        self.end(at, End::Branch { cond: cond.clone(), then: yes, otherwise: no }, span);
        Some(join)
    }

    /// Statements that lead to a common block. Returns where they begin.
    fn side(&mut self, stmts: &[Stmt], join: BlockId, targets: Targets) -> BlockId {
        if stmts.is_empty() {
            return join;
        }
        let first = self.block();
        let last = self.stmts(stmts, first, targets);
        self.goto(last, join);
        first
    }

    fn switch(
        &mut self,
        at: BlockId,
        on: (&Expr, Ty),
        cases: &[(Vec<BigUint>, Vec<Stmt>)],
        default: &[Stmt],
        targets: Targets,
    ) -> Option<BlockId> {
        let (expr, ty) = on;
        let join = self.block();
        let mut at = at;
        for (values, body) in cases {
            let equal = |value: &BigUint| Expr::Binary {
                op: BinOp::Eq,
                left: Box::new(expr.clone()),
                right: Box::new(Expr::Const { value: value.clone(), ty }),
                ty,
            };
            let any = values.iter().map(equal).reduce(|left, right| Expr::Binary {
                op: BinOp::Or,
                left: Box::new(left),
                right: Box::new(right),
                ty: Ty::Bool,
            });
            let Some(cond) = any else { continue };
            let then = self.side(body, join, targets);
            let otherwise = self.block();
            self.graph.blocks[at].end = End::Branch { cond, then, otherwise };
            at = otherwise;
        }
        let last = self.stmts(default, at, targets);
        self.goto(last, join);
        Some(join)
    }

    /// A table, and the statement behind it if that only tests the table's result. A call gives one result at most.
    fn apply(
        &mut self,
        at: BlockId,
        table: TableId,
        results: (Option<VarId>, Option<VarId>),
        test: Test<'_>,
        targets: Targets,
        span: Span,
    ) -> Option<BlockId> {
        let join = self.block();
        // The test itself needs no variable.
        let tests = usize::from(!matches!(test, Test::None));
        let wanted =
            |var: Option<VarId>| var.filter(|var| self.reads.get(var).is_some_and(|reads| *reads > tests));
        let (hit, action_run) = (wanted(results.0), wanted(results.1));
        let listed = self.program.tables[table.0 as usize].actions.len() as u32;
        let mut on = |var: Option<VarId>, value: u32, ty: Ty, stmts: &[Stmt]| {
            let Some(var) = var else { return self.side(stmts, join, targets) };
            let first = self.block();
            let value = Expr::Const { value: value.into(), ty };
            self.graph.blocks[first].ops.push(Stmt::Assign { target: LValue::Var(var), value, span });
            let last = self.stmts(stmts, first, targets);
            self.goto(last, join);
            first
        };
        let number = Ty::Bit(32);
        let after = match (test, hit, action_run) {
            (Test::Hit(yes, no), var, _) => {
                After::Hit { hit: on(var, 1, Ty::Bool, yes), miss: on(var, 0, Ty::Bool, no) }
            }
            (Test::None, var @ Some(_), _) => {
                After::Hit { hit: on(var, 1, Ty::Bool, &[]), miss: on(var, 0, Ty::Bool, &[]) }
            }
            (Test::Action(list, other), None, None) => {
                let mut cases = Vec::new();
                for (values, body) in list {
                    let to = on(None, 0, number, body);
                    cases.extend(values.iter().filter_map(|value| Some((u32::try_from(value).ok()?, to))));
                }
                After::Action { cases, default: on(None, 0, number, other) }
            }
            (Test::None, None, None) => After::Always(join),
            (test, _, var) => {
                let body = |position: u32| match &test {
                    Test::Action(list, other) => {
                        let is = |value: &BigUint| *value == BigUint::from(position);
                        let found = list.iter().find(|(values, _)| values.iter().any(is));
                        found.map_or(*other, |(_, body)| &body[..])
                    }
                    _ => &[],
                };
                let cases = (0..listed).map(|at| (at, on(var, at, number, body(at)))).collect();
                After::Action { cases, default: join }
            }
        };
        self.end(at, End::Apply { table, after }, span);
        Some(join)
    }
}

/// Whether a statement only tests this result of the table before it.
fn tested(stmt: Option<&Stmt>, hit: Option<VarId>, action_run: Option<VarId>) -> Test<'_> {
    match stmt {
        Some(Stmt::If { cond, then, otherwise, .. }) => match cond {
            Expr::Var(var) if Some(*var) == hit && action_run.is_none() => Test::Hit(then, otherwise),
            Expr::Unary { op: UnOp::Not, expr, .. } => match &**expr {
                Expr::Var(var) if Some(*var) == hit && action_run.is_none() => Test::Hit(otherwise, then),
                _ => Test::None,
            },
            _ => Test::None,
        },
        Some(Stmt::Switch { expr: Expr::Var(var), cases, default, .. })
            if Some(*var) == action_run && hit.is_none() =>
        {
            Test::Action(cases, default)
        }
        _ => Test::None,
    }
}
