//! P4_16 front end: from text to a typed IR and P4Info. No execution.
//!
//! ```text
//! source ─ preprocess ─ lexer ─ parser ─→ ast ─ sema ─→ ir ─ p4info
//! ```

pub mod ast;
pub mod builtin;
pub mod diag;
pub mod ir;
pub mod lexer;
pub mod parser;
pub mod preprocess;
pub mod sema;
pub mod source;
