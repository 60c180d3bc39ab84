//! P4_16 front end: from text to a typed IR and P4Info. No execution.
//!
//! ```text
//! source ─ preprocess ─ lexer ─ parser ─→ ast ─ sema ─→ ir ─ p4info
//! ```

pub mod ast;
pub mod builtin;
pub mod diag;
pub mod ir;
mod ir_text;
pub mod lexer;
pub mod p4info;
pub mod parser;
pub mod preprocess;
pub mod sema;
pub mod source;

pub use diag::{Diagnostic, Diagnostics, Severity};
pub use preprocess::Options;

use p4rack_p4rt::p4::config::v1::P4Info;
use std::path::Path;
use std::sync::Arc;

/// A program that was accepted.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// For an executor.
    pub program: ir::Program,
    /// For the control plane.
    pub p4info: P4Info,
    /// P4Info ids by the IR's numbers.
    pub ids: p4info::Ids,
    /// What the compiler did not like but accepted.
    pub warnings: Diagnostics,
}

/// Compiles a program given as text; `file_name` is used in messages and to find included files.
pub fn compile(text: &str, file_name: &str, options: &Options) -> Result<Compiled, Diagnostics> {
    let sources = preprocess::run(text, file_name, options)?;
    let (tree, mut diagnostics) = parser::parse(&sources);
    diagnostics.extend(sources.warnings().iter().cloned());
    let failed = |list: &[Diagnostic]| list.iter().any(|d| d.severity == Severity::Error);
    let sources = Arc::new(sources);
    if failed(&diagnostics) {
        return Err(Diagnostics::new(sources, diagnostics));
    }
    let stem = Path::new(file_name).file_stem().and_then(|s| s.to_str()).unwrap_or("program");
    let (program, more) = sema::analyse(&tree, stem);
    diagnostics.extend(more);
    let errors = failed(&diagnostics);
    let all = Diagnostics::new(sources, diagnostics);
    match program {
        Some(program) if !errors => {
            let (p4info, ids) = p4info::generate(&program);
            Ok(Compiled { program, p4info, ids, warnings: all })
        }
        _ => Err(all),
    }
}

/// The text with includes and macros resolved, and `#line` markers that lead back to the files.
pub fn preprocess(text: &str, file_name: &str, options: &Options) -> Result<String, Diagnostics> {
    preprocess::run(text, file_name, options).map(|sources| sources.to_marked_text())
}
