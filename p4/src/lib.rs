//! P4_16 front end: from text to a typed IR and P4Info. No execution.
//!
//! ```text
//! source ─ preprocess ─ lexer ─ parser ─→ ast ─ sema ─→ ir ─ p4info
//! ```

pub mod arch;
pub mod ast;
pub mod builtin;
pub mod diag;
mod diagnostics;
pub mod ir;
mod ir_text;
pub mod lexer;
pub mod p4info;
pub mod parser;
pub mod preprocess;
pub mod sema;
pub mod source;

pub use diag::{Diagnostic, Severity};
pub use diagnostics::Diagnostics;
pub use preprocess::Options;

use p4rack_p4rt::p4::config::v1::P4Info;
use std::path::Path;
use std::sync::Arc;

/// A program that has been accepted.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program for an executor.
    pub program: ir::Program,
    /// Its interface for the control plane.
    pub p4info: P4Info,
    /// P4Info ids of the IR's objects.
    pub ids: p4info::Ids,
    /// Warnings about the program.
    pub warnings: Diagnostics,
}

/// Result of [`check`] for a program without errors.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// A program that can run.
    Whole(Box<Compiled>),
    /// A program without `main`, or with one for another architecture. Its declarations are well-typed.
    Types(Diagnostics),
}

impl Accepted {
    /// Warnings about the program.
    pub fn warnings(&self) -> &Diagnostics {
        match self {
            Accepted::Whole(compiled) => &compiled.warnings,
            Accepted::Types(warnings) => warnings,
        }
    }

    /// P4Info; empty if there is nothing to control.
    pub fn into_p4info(self) -> P4Info {
        match self {
            Accepted::Whole(compiled) => compiled.p4info,
            Accepted::Types(_) => P4Info::default(),
        }
    }
}

/// Compiles a program given as text. `file_name` appears in messages and locates included files.
///
/// ```
/// let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/forward.p4"));
/// let compiled = p4rack_p4::compile(text, "forward.p4", &p4rack_p4::Options::default())?;
/// assert_eq!(compiled.p4info.tables[0].preamble.as_ref().map(|table| table.name.as_str()), Some("I.hosts"));
///
/// let wrong = text.replace("actions = { to; }", "actions = { drop; }");
/// let refused = p4rack_p4::compile(&wrong, "forward.p4", &p4rack_p4::Options::default()).unwrap_err();
/// assert!(refused.render(false).contains("forward.p4:19:"));
/// # Ok::<(), p4rack_p4::Diagnostics>(())
/// ```
pub fn compile(text: &str, file_name: &str, options: &Options) -> Result<Compiled, Diagnostics> {
    let (sources, tree, diagnostics) = read(text, file_name, options)?;
    elaborate(sources, &tree, file_name, diagnostics)
}

/// Like [`compile`], but also accepts well-typed programs with nothing to run: libraries of declarations, and
/// programs for other architectures.
pub fn check(text: &str, file_name: &str, options: &Options) -> Result<Accepted, Diagnostics> {
    let (sources, tree, mut diagnostics) = read(text, file_name, options)?;
    if arch::is_supported(&tree) {
        let compiled = elaborate(sources, &tree, file_name, diagnostics)?;
        return Ok(Accepted::Whole(Box::new(compiled)));
    }
    diagnostics.extend(sema::check_only(&tree));
    let all = Diagnostics::new(sources, diagnostics);
    if all.has_errors() { Err(all) } else { Ok(Accepted::Types(all)) }
}

/// Text to syntax tree, with warnings.
fn read(
    text: &str,
    file_name: &str,
    options: &Options,
) -> Result<(Arc<source::SourceMap>, ast::Program, Vec<Diagnostic>), Diagnostics> {
    let sources = preprocess::run(text, file_name, options)?;
    let (tree, mut diagnostics) = parser::parse(&sources);
    diagnostics.extend(sources.warnings().iter().cloned());
    let sources = Arc::new(sources);
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return Err(Diagnostics::new(sources, diagnostics));
    }
    Ok((sources, tree, diagnostics))
}

/// Syntax tree to IR and P4Info.
fn elaborate(
    sources: Arc<source::SourceMap>,
    tree: &ast::Program,
    file_name: &str,
    mut diagnostics: Vec<Diagnostic>,
) -> Result<Compiled, Diagnostics> {
    let stem = Path::new(file_name).file_stem().and_then(|s| s.to_str()).unwrap_or("program");
    let (program, more) = sema::analyse(tree, stem);
    diagnostics.extend(more);
    let all = Diagnostics::new(sources, diagnostics);
    match program {
        Some(program) if !all.has_errors() => {
            let (p4info, ids) = p4info::generate(&program);
            Ok(Compiled { program, p4info, ids, warnings: all })
        }
        _ => Err(all),
    }
}

/// The text with includes and macros resolved. `#line` markers refer back to the files.
pub fn preprocess(text: &str, file_name: &str, options: &Options) -> Result<String, Diagnostics> {
    preprocess::run(text, file_name, options).map(|sources| sources.to_marked_text())
}
