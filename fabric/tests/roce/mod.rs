//! Soft-RoCE's adapters against each other, over a network that may lose, copy, reorder and corrupt frames.

mod domains;
mod faults;
mod network;
mod requester;
mod rules;
mod tshark;
