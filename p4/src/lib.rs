//! P4_16 front end: from text to a typed IR and P4Info. No execution.
//!
//! ```text
//! source ─ preprocess ─ lexer ─ parser ─→ ast ─ sema ─→ ir ─ p4info
//! ```

pub mod ast;
pub mod builtin;
pub mod diag;
mod diagnostics;
pub mod fit;
pub mod ir;
mod ir_text;
pub mod lexer;
mod p4_14;
pub mod p4info;
pub mod parser;
pub mod preprocess;
pub mod sema;
pub mod shown;
pub mod source;

pub use diag::{Diagnostic, Severity};
pub use diagnostics::Diagnostics;
pub use preprocess::Options;
pub use sema::lower::arch;

use p4rack_p4rt::p4::config::v1::P4Info;
use sema::Analysed;
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

impl Compiled {
    /// The program's interface as BFRuntime's clients read it (`bf-rt.json`); `None` for architectures without it.
    pub fn bf_rt(&self) -> Option<serde_json::Value> {
        arch::bf_rt(self)
    }
}

/// Result of [`check`] for a program without errors.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// It is for an architecture that this front end elaborates.
    Whole(Box<Compiled>),
    /// Its declarations are well-typed; it has no `main`, or one for another architecture.
    Types {
        /// The package of `main`, and the place of `main`.
        main: Option<ast::Ident>,
        /// Findings that don't reject the program.
        warnings: Diagnostics,
    },
}

impl Accepted {
    /// Warnings about the program.
    pub fn warnings(&self) -> &Diagnostics {
        match self {
            Accepted::Whole(compiled) => &compiled.warnings,
            Accepted::Types { warnings, .. } => warnings,
        }
    }

    /// P4Info; empty if there is nothing to control.
    pub fn into_p4info(self) -> P4Info {
        match self {
            Accepted::Whole(compiled) => compiled.p4info,
            Accepted::Types { .. } => P4Info::default(),
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
    match check(text, file_name, options)? {
        Accepted::Whole(compiled) => Ok(*compiled),
        Accepted::Types { main, mut warnings } => {
            warnings.items.push(arch::not_elaborated(main.as_ref()));
            Err(warnings)
        }
    }
}

/// Like [`compile`], but also accepts well-typed programs with nothing to run: libraries of declarations, and
/// programs for other architectures.
pub fn check(text: &str, file_name: &str, options: &Options) -> Result<Accepted, Diagnostics> {
    let (sources, tree, mut diagnostics) = read(text, file_name, options)?;
    let stem = Path::new(file_name).file_stem().and_then(|s| s.to_str()).unwrap_or("program");
    let (analysed, more) = sema::analyse(&tree, stem);
    diagnostics.extend(more);
    let warnings = Diagnostics::new(sources, diagnostics);
    match analysed {
        Analysed::Program(program) => {
            let (p4info, ids) = p4info::generate(&program);
            Ok(Accepted::Whole(Box::new(Compiled { program: *program, p4info, ids, warnings })))
        }
        Analysed::Types(main) => Ok(Accepted::Types { main, warnings }),
        Analysed::Refused => Err(warnings),
    }
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
        if let Some(why) = p4_14::recognised(sources.text()) {
            diagnostics = vec![why];
        }
        return Err(Diagnostics::new(sources, diagnostics));
    }
    Ok((sources, tree, diagnostics))
}

/// The text with includes and macros resolved, and `#line` markers that lead back to the files.
pub fn preprocess(text: &str, file_name: &str, options: &Options) -> Result<String, Diagnostics> {
    preprocess::run(text, file_name, options).map(|sources| sources.to_marked_text())
}
