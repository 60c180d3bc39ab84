//! Semantic analysis: from the syntax tree to the IR.
//!
//! ```text
//! ast ─ check ─→ tree (names resolved, every expression typed, constants folded)
//!     ─ lower ─→ ir   (main instantiated, blocks and calls inlined, structs flattened)
//!     ─ rules ─→ ir's rules for what controllers write
//! ```

mod check;
pub(crate) mod lower;
mod rules;
pub(crate) mod tree;

pub(crate) use tree::{types, value};

use crate::ast;
use crate::diag::{Diagnostic, Severity};
use crate::ir;
use lower::arch;
use types::Type;

/// Elaborated part of a program without errors.
pub enum Analysed {
    /// `main` is a package of an architecture in [`crate::arch`].
    Program(Box<ir::Program>),
    /// There is no `main`, or it is this package of another architecture.
    Types(Option<ast::Ident>),
    /// The program is in error.
    Refused,
}

/// Checks a program of any architecture, and elaborates it if the architecture is known. `name` is the program's name
/// for P4Info.
pub fn analyse(program: &ast::Program, name: &str) -> (Analysed, Vec<Diagnostic>) {
    let failed = |list: &[Diagnostic]| list.iter().any(|d| d.severity == Severity::Error);
    let (checked, mut diagnostics) = check::check(program);
    if failed(&diagnostics) {
        return (Analysed::Refused, diagnostics);
    }
    let package = checked.main.as_ref().and_then(|main| match &main.ty {
        Type::Block(package) => Some(package),
        _ => None,
    });
    let Some((main, package)) = checked.main.as_ref().zip(package) else {
        return (Analysed::Types(None), diagnostics);
    };
    let Some(arch) = arch::of_package(package) else {
        let main = ast::Ident { name: package.name.clone(), span: main.span };
        return (Analysed::Types(Some(main)), diagnostics);
    };
    let (lowered, more) = lower::lower(&checked, main, arch, name);
    diagnostics.extend(more);
    let lowered = lowered.map(|mut program| {
        diagnostics.extend(rules::find(&mut program));
        program
    });
    match lowered {
        Some(program) if !failed(&diagnostics) => (Analysed::Program(Box::new(program)), diagnostics),
        _ => (Analysed::Refused, diagnostics),
    }
}
