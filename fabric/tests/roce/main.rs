//! Soft-RoCE's adapters against each other, over a network that may lose, copy, reorder and corrupt frames.
#![allow(clippy::unwrap_used)]

mod faults;
mod network;
mod rules;
mod tshark;
