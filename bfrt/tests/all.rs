//! All tests of BFRuntime's messages and schemas in one program: it is linked once.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod direct;
mod entries;
mod names;
mod objects;
mod schemas;
mod sets;
mod translation;
mod values;
