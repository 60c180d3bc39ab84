//! Schemes, as far as they concern the simulator itself.

mod pl2;

pub(crate) use pl2::Controller;
