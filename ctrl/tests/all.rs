//! All tests of the controller in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod bfrt;
#[path = "../../tests/certificates.rs"]
mod certificates;
mod common;
mod driver;
mod entries;
mod etcd;
mod provision;
mod reconcile;
mod switch;
mod tls;
