//! Updates that were checked.

use super::fixed::Step;
use p4rack_p4rt::p4::v1;

/// A checked update.
pub enum Prepared {
    /// One of P4Runtime's.
    Plain(Box<v1::Update>),
    /// Anything else.
    Step(Step),
}
