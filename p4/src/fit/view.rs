//! A program in which parameters of blocks are replaced by their arguments.
//!
//! Where two arguments overlap, the front end copies them in and out. Compilers see that most of it changes nothing.

use crate::ir::{Expr, HeaderRef, LValue, Program, Stmt, VarId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// A program, and which of its variables are one.
pub(super) struct View<'p> {
    program: &'p Program,
    same: BTreeMap<VarId, VarId>,
}

impl Deref for View<'_> {
    type Target = Program;

    fn deref(&self) -> &Program {
        self.program
    }
}

impl<'p> View<'p> {
    /// The view of a program.
    pub fn of(program: &'p Program) -> View<'p> {
        let mut copies = Vec::new();
        for block in &program.blocks {
            block.lists().into_iter().for_each(|stmts| collect(program, stmts, &mut copies));
        }
        let (mut from, mut into): (Arguments, Arguments) = (Arguments::new(), Arguments::new());
        for (to, source) in copies {
            if is_local(program, to) && !is_local(program, source) {
                from.entry(to).or_default().insert(source);
            }
            if is_local(program, source) && !is_local(program, to) {
                into.entry(source).or_default().insert(to);
            }
        }
        let mut same = BTreeMap::new();
        for (var, arguments) in from {
            // Copied in from one place, and out to it.
            if arguments.len() == 1 && into.get(&var) == Some(&arguments) {
                same.extend(arguments.first().map(|argument| (var, *argument)));
            }
        }
        View { program, same }
    }

    /// The variable that represents all of its aliases.
    pub fn same(&self, var: VarId) -> VarId {
        self.same.get(&var).copied().unwrap_or(var)
    }
}

type Arguments = BTreeMap<VarId, BTreeSet<VarId>>;

fn is_local(program: &Program, var: VarId) -> bool {
    (var.0 as usize) >= program.shared_vars
}

/// Copies of whole variables: target and source.
fn collect(program: &Program, stmts: &[Stmt], out: &mut Vec<(VarId, VarId)>) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { target: LValue::Var(to), value: Expr::Var(from), .. } => out.push((*to, *from)),
            Stmt::CopyHeader { dst, src } => out.extend(pairs(program, dst, src).unwrap_or_default()),
            Stmt::If { then, otherwise, .. } => {
                collect(program, then, out);
                collect(program, otherwise, out);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| collect(program, body, out));
                collect(program, default, out);
            }
            Stmt::Scope(inner) | Stmt::Loop { body: inner, .. } => collect(program, inner, out),
            _ => {}
        }
    }
}

/// Pairs of variables that a copy of a header copies; `None` if it finds a header at run time.
pub(super) fn pairs(program: &Program, dst: &HeaderRef, src: &HeaderRef) -> Option<Vec<(VarId, VarId)>> {
    let (HeaderRef::Fixed(dst), HeaderRef::Fixed(src)) = (dst, src) else { return None };
    let [dst, src] = [dst, src].map(|header| &program.headers[header.0 as usize]);
    let fields = dst.fields.iter().zip(&src.fields).map(|(to, from)| (to.var, from.var));
    Some([(dst.valid, src.valid)].into_iter().chain(fields).collect())
}
