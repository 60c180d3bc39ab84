//! A control, an action or a parser's state as blocks of statements with jumps between them: what is between the
//! nested statements of the IR and BMv2's tables, conditionals, jumps and states.

use p4rack_p4::ast::Span;
use p4rack_p4::ir::{Expr, Stmt, TableId};

/// Position of a block in [`Graph::blocks`].
pub(crate) type BlockId = usize;

/// Blocks with jumps between them.
#[derive(Debug)]
pub(crate) struct Graph {
    pub blocks: Vec<Block>,
    pub entry: BlockId,
}

/// Statements that run in sequence, then a jump.
#[derive(Debug)]
pub(crate) struct Block {
    /// Statements without control flow.
    pub ops: Vec<Stmt>,
    pub end: End,
    /// Source location of the jump.
    pub span: Span,
}

impl Block {
    pub fn new(end: End) -> Block {
        Block { ops: Vec::new(), end, span: Span::default() }
    }
}

/// What follows a block.
#[derive(Debug)]
pub(crate) enum End {
    /// Nothing: the end of the whole.
    Stop,
    /// Nothing, and nothing behind the whole either: `exit` in an action.
    Leave,
    Goto(BlockId),
    Branch {
        cond: Expr,
        then: BlockId,
        otherwise: BlockId,
    },
    Apply {
        table: TableId,
        after: After,
    },
}

/// What follows a table.
#[derive(Clone, Debug)]
pub(crate) enum After {
    Always(BlockId),
    Hit {
        hit: BlockId,
        miss: BlockId,
    },
    /// By the action that ran: its position in the table's list.
    Action {
        cases: Vec<(u32, BlockId)>,
        default: BlockId,
    },
}

impl After {
    /// The blocks that may follow.
    pub fn targets(&self) -> Vec<BlockId> {
        match self {
            After::Always(to) => vec![*to],
            After::Hit { hit, miss } => vec![*hit, *miss],
            After::Action { cases, default } => cases.iter().map(|(_, to)| *to).chain([*default]).collect(),
        }
    }
}

impl End {
    /// The blocks that may follow.
    pub fn targets(&self) -> Vec<BlockId> {
        match self {
            End::Stop | End::Leave => Vec::new(),
            End::Goto(to) => vec![*to],
            End::Branch { then, otherwise, .. } => vec![*then, *otherwise],
            End::Apply { after, .. } => after.targets(),
        }
    }
}

impl Graph {
    /// Blocks that are reached, each after as many of its predecessors as loops permit.
    pub fn order(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::new();
        let mut stack = vec![(self.entry, false)];
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
                continue;
            }
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            stack.push((at, true));
            // The last target first: of two branches, the first one then comes first.
            stack.extend(self.blocks[at].end.targets().into_iter().map(|to| (to, false)));
        }
        order.reverse();
        order
    }
}
