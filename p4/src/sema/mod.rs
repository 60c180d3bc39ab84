//! Semantic analysis: from the syntax tree to the IR.
//!
//! ```text
//! ast ─ check ─→ tree (names resolved, every expression typed, constants folded)
//!     ─ lower ─→ ir   (main instantiated, blocks and calls inlined, structs flattened)
//! ```

mod check;
pub(crate) mod lower;
pub(crate) mod tree;
pub(crate) mod types;
pub(crate) mod value;

use crate::ast;
use crate::diag::{Diagnostic, Severity};
use crate::ir;

/// Checks a program and elaborates it if there are no errors. `name` is the program's name for P4Info.
pub fn analyse(program: &ast::Program, name: &str) -> (Option<ir::Program>, Vec<Diagnostic>) {
    let (checked, mut diagnostics) = check::check(program);
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return (None, diagnostics);
    }
    let (lowered, more) = lower::lower(&checked, name);
    diagnostics.extend(more);
    let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
    (lowered.filter(|_| !failed), diagnostics)
}

/// Type checking alone: reports errors that do not depend on the architecture.
pub fn check_only(program: &ast::Program) -> Vec<Diagnostic> {
    check::check(program).1
}
