//! P4Runtime's rules, each test named by its sentence, over gRPC on localhost.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::cloned_ref_to_slice_refs, clippy::type_complexity)]

mod arbitration;
mod atomicity;
mod digests;
mod entries;
mod idle;
mod model;
mod oracle;
mod packets;
mod pipeline;
mod preserve;
mod profiles;
mod resources;
mod rig;
mod roles;
mod tls;
mod tna;
mod tracing;
mod unfriendly;
