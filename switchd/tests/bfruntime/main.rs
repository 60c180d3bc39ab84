//! The BFRuntime server, over gRPC on localhost.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod both;
mod device;
mod driver;
mod entries;
mod exact;
mod flags;
mod hashes;
mod installing;
mod kinds;
mod limits;
mod ports;
mod queues;
mod rig;
mod serving;
mod settings;
mod unfriendly;
