//! Shifts of stacks of header unions. The IR shifts the stacks of all members and moves their common index back in
//! between; in BMv2 they are one stack.

use p4rack_p4::ir::{Body, Expr, LValue, Program, Stmt};

/// Makes one shift of those of all members.
pub(super) fn join_shifts(program: &mut Program) {
    if program.headers.iter().all(|header| header.union_siblings.is_empty()) {
        return;
    }
    for block in &mut program.blocks {
        match &mut block.body {
            Body::Control(stmts) => join(stmts),
            Body::Parser(parser) => parser.states.iter_mut().for_each(|state| join(&mut state.stmts)),
        }
    }
    program.actions.iter_mut().for_each(|action| join(&mut action.body));
}

fn join(stmts: &mut Vec<Stmt>) {
    for stmt in stmts.iter_mut() {
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                join(then);
                join(otherwise);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|(_, body)| join(body));
                join(default);
            }
            Stmt::Scope(body) => join(body),
            Stmt::Loop { body, update, .. } => {
                join(body);
                join(update);
            }
            _ => {}
        }
    }
    let mut at = 0;
    while at < stmts.len() {
        if let Some(shift) = shifts(&stmts[at..]) {
            let first = stmts[at + 2].clone();
            stmts.splice(at..at + 1 + 2 * shift, [first]);
        }
        at += 1;
    }
}

/// How many shifts begin here: `before = next; next = before; shift; next = before; shift; …`
fn shifts(stmts: &[Stmt]) -> Option<usize> {
    let [Stmt::Assign { target: LValue::Var(before), value: Expr::Var(next), .. }, rest @ ..] = stmts else {
        return None;
    };
    let is_shift = |pair: &&[Stmt]| match pair {
        [Stmt::Assign { target: LValue::Var(to), value: Expr::Var(from), .. }, Stmt::StackShift { .. }] => {
            to == next && from == before
        }
        _ => false,
    };
    let count = rest.chunks(2).take_while(is_shift).count();
    (count > 0).then_some(count)
}
