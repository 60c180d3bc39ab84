//! The executable form of a program: operations, the plans beside them, and a trace's marks.

pub(crate) mod ops;
pub(crate) mod plans;
