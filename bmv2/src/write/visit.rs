//! Walks over everything that a program evaluates.

use p4rack_p4::ir::{Block, Expr, HeaderRef, LValue, Next, Program, Stmt};

/// Calls `see` with each expression of a program, outer ones before their parts.
pub(super) fn program(program: &Program, see: &mut dyn FnMut(&Expr)) {
    for block in &program.blocks {
        block.lists().into_iter().for_each(|list| stmts(list, see));
        for state in block.parser().into_iter().flat_map(|parser| &parser.states) {
            if let Next::Select { keys, .. } = &state.next {
                keys.iter().for_each(|(key, _)| expr(key, see));
            }
        }
    }
    program.actions.iter().for_each(|action| stmts(&action.body, see));
    program.tables.iter().flat_map(|table| &table.keys).for_each(|key| expr(&key.expr, see));
}

/// Calls `see` with each expression of statements.
pub(super) fn stmts(list: &[Stmt], see: &mut dyn FnMut(&Expr)) {
    list.iter().for_each(|one| stmt(one, see));
}

fn stmt(one: &Stmt, see: &mut dyn FnMut(&Expr)) {
    match one {
        Stmt::Assign { target: to, value, .. } => {
            target(to, see);
            expr(value, see);
        }
        Stmt::CopyHeader { dst, src } => {
            header(dst, see);
            header(src, see);
        }
        Stmt::SetValid { header: of, .. } | Stmt::Emit(of) => header(of, see),
        Stmt::If { cond, then, otherwise, .. } => {
            expr(cond, see);
            stmts(then, see);
            stmts(otherwise, see);
        }
        Stmt::Switch { expr: on, cases, default, .. } => {
            expr(on, see);
            cases.iter().for_each(|(_, body)| stmts(body, see));
            stmts(default, see);
        }
        Stmt::Scope(body) => stmts(body, see),
        Stmt::Loop { cond, body, update } => {
            expr(cond, see);
            stmts(body, see);
            stmts(update, see);
        }
        Stmt::Extract { header: of, varbit_bits } => {
            header(of, see);
            varbit_bits.iter().for_each(|bits| expr(bits, see));
        }
        Stmt::Advance(bits) => expr(bits, see),
        Stmt::Verify { cond, error } => {
            expr(cond, see);
            expr(error, see);
        }
        Stmt::Extern { call, .. } => {
            let parts = call.parts();
            parts.values.into_iter().for_each(|value| expr(value, see));
            parts.targets.into_iter().for_each(|to| target(to, see));
        }
        Stmt::StackShift { .. }
        | Stmt::Break
        | Stmt::Continue
        | Stmt::Return
        | Stmt::Exit
        | Stmt::Apply { .. } => {}
    }
}

fn target(to: &LValue, see: &mut dyn FnMut(&Expr)) {
    match to {
        LValue::Var(_) => {}
        LValue::Field { header: of, .. } => header(of, see),
        // Writing a part preserves the rest.
        LValue::Slice { base, .. } => match &**base {
            LValue::Var(var) => see(&Expr::Var(*var)),
            base => target(base, see),
        },
    }
}

fn header(of: &HeaderRef, see: &mut dyn FnMut(&Expr)) {
    if let HeaderRef::Index(_, index) = of {
        expr(index, see);
    }
}

/// Calls `see` with an expression and its parts.
pub(super) fn expr(one: &Expr, see: &mut dyn FnMut(&Expr)) {
    see(one);
    match one {
        Expr::Field { header: of, .. } | Expr::Valid(of) => header(of, see),
        Expr::Unary { expr: part, .. } | Expr::Cast { expr: part, .. } | Expr::Slice { expr: part, .. } => {
            expr(part, see);
        }
        Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => {
            expr(left, see);
            expr(right, see);
        }
        Expr::Ternary { cond, then, otherwise, .. } => {
            expr(cond, see);
            expr(then, see);
            expr(otherwise, see);
        }
        Expr::Const { .. } | Expr::Var(_) | Expr::Lookahead { .. } | Expr::PacketLength | Expr::DropPort => {}
    }
}

/// The blocks with a task, in the order of the pipeline.
pub(super) fn block(blocks: &[Block], role: p4rack_p4::ir::Role) -> Option<&Block> {
    blocks.iter().find(|block| block.role == role)
}
