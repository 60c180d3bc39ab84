//! The same program with other values in variables that it never sets. If its packets then differ, they
//! depend on behaviour that the language leaves undefined.

use super::Values;
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{Expr, LValue, Program, Stmt, Ty, VarId};
use std::collections::BTreeSet;

/// Initialises header fields and local variables with random values instead of 0, mostly with those that
/// programs compare with: small ones, the largest, those of the program's entries. User metadata stay 0, as
/// in BMv2.
pub fn with_unset_values(program: &Program, seed: u64) -> Program {
    let mut values = Values::new(program, seed);
    let fields = program.headers.iter().flat_map(|header| header.fields.iter().map(|field| field.var));
    let fields: BTreeSet<VarId> = fields.collect();
    let states = program.headers.iter().map(|header| header.valid);
    let states: BTreeSet<VarId> = states.chain(program.stacks.iter().map(|stack| stack.next)).collect();
    // Headers and metadata come first, then intrinsic metadata, then the blocks' own variables.
    let last = program.intrinsics.iter().map(|field| field.var).max();
    let is_unset = |id: &VarId| fields.contains(id) || (last < Some(*id) && !states.contains(id));
    let ids = (0..program.vars.len() as u32).map(VarId).filter(is_unset);
    let set = |id: VarId| match program.vars[id.0 as usize].ty {
        Ty::Varbit(_) => None,
        ty => {
            let value = Expr::Const { value: values.value(ty.width()), ty };
            Some(Stmt::Assign { target: LValue::Var(id), value, span: Span::default() })
        }
    };
    let first: Vec<Stmt> = ids.filter_map(set).collect();
    let mut changed = program.clone();
    // A program starts in the first state of its first parser.
    if let Some(start) = changed.blocks.first_mut().and_then(|block| block.lists_mut().into_iter().next()) {
        start.splice(0..0, first);
    }
    changed
}
