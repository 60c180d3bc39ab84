//! PL2.

mod controller;

pub(crate) use controller::Controller;
