//! Errors of compiling and controlling.

use thiserror::Error;

/// Why a program can't run on this switch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// A construct that this switch has no execution for.
    #[error("{object}: {what} is not supported by the embedded switch; {help}")]
    Unsupported {
        /// Table, instance, header …
        object: String,
        /// The construct.
        what: String,
        /// What to do instead.
        help: String,
    },
    /// The program needs more of something than there is.
    #[error("{object}: needs {needed} {unit}, the embedded switch has {limit}; make it smaller")]
    TooBig {
        /// Table, instance, header …
        object: String,
        /// How much it asks for.
        needed: u64,
        /// The most there is.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
    /// The IR contradicts itself: a fault of the front end.
    #[error("{object}: {what}; this is a fault of the front end, please report it with the program")]
    Malformed {
        /// Table, instance, header …
        object: String,
        /// What is wrong.
        what: String,
    },
}

/// Why a control operation was refused. State is unchanged then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// No such object or entry.
    #[error("{0} not found")]
    NotFound(String),
    /// An entry with this key is there already.
    #[error("{0} already exists")]
    AlreadyExists(String),
    /// An index beyond the array's size.
    #[error("index {index} of {object} is out of range: it has {size} cells")]
    OutOfRange {
        /// Which array.
        object: String,
        /// What was asked for.
        index: u64,
        /// How many there are.
        size: u64,
    },
    /// The object is full.
    #[error("{object} is full: it holds {limit}")]
    ResourceExhausted {
        /// Which table or set.
        object: String,
        /// Its size.
        limit: u64,
    },
    /// A value that doesn't fit the program.
    #[error("{0}")]
    Invalid(String),
    /// Something refers to the object.
    #[error("{0}")]
    InUse(String),
    /// The object is constant.
    #[error("{0} is constant in the program and can't be changed")]
    Constant(String),
}
