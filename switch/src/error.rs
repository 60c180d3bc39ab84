//! Errors of compiling and controlling.

use p4rack_p4::ast::Span;
use thiserror::Error;

/// Why a program cannot run on this switch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// A construct that this switch does not support.
    #[error("{object}: {what} is not supported by the embedded switch; {help}")]
    Unsupported {
        /// Table, instance, header …
        object: String,
        /// The unsupported construct.
        what: String,
        /// Remedy.
        help: String,
    },
    /// A call of an extern that this switch does not execute.
    #[error("{name}{} is not executed by the embedded switch, which runs {arch} without it; leave the call out", object_of(.object))]
    Foreign {
        /// `function`, `Extern.method`.
        name: String,
        /// Full name of the object; `None` for a function.
        object: Option<String>,
        /// Name of the program's architecture.
        arch: String,
        /// Place of the call in the program.
        span: Span,
    },
    /// The program exceeds a limit.
    #[error("{object}: needs {needed} {unit}, the embedded switch has {limit}; make it smaller")]
    TooBig {
        /// Table, instance, header …
        object: String,
        /// How much it needs.
        needed: u64,
        /// The limit.
        limit: u64,
        /// Unit of both numbers.
        unit: &'static str,
    },
    /// The IR contradicts itself: a fault of the front end.
    #[error("{object}: {what}; this is a bug in the front end; please report it with the program")]
    Malformed {
        /// Table, instance, header …
        object: String,
        /// The mistake.
        what: String,
    },
}

impl CompileError {
    /// The place in the program that it is about, if that is known.
    pub fn span(&self) -> Option<Span> {
        match self {
            CompileError::Foreign { span, .. } => Some(*span),
            _ => None,
        }
    }
}

fn object_of(object: &Option<String>) -> String {
    object.as_ref().map(|object| format!(" of `{object}`")).unwrap_or_default()
}

/// Why a control operation was rejected. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// No such object or entry.
    #[error("{0} not found")]
    NotFound(String),
    /// There is already an entry with this key.
    #[error("{0} already exists")]
    AlreadyExists(String),
    /// An index beyond the size of an array.
    #[error("index {index} of {object} is out of range: it has {size} cells")]
    OutOfRange {
        /// Name of the array.
        object: String,
        /// The index requested.
        index: u64,
        /// Size of the array.
        size: u64,
    },
    /// The object is full.
    #[error("{object} is full: it holds {limit}")]
    ResourceExhausted {
        /// Name of the table or set.
        object: String,
        /// Its capacity.
        limit: u64,
    },
    /// A value that does not fit the program.
    #[error("{0}")]
    Invalid(String),
    /// Something still refers to the object.
    #[error("{0}")]
    InUse(String),
    /// The object is constant.
    #[error("{0} is constant in the program and can't be changed")]
    Constant(String),
}
