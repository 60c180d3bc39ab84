//! P4Runtime's rules, each test named by its sentence, over gRPC on localhost.

mod arbitration;
mod entries;
mod packets;
mod pipeline;
mod resources;
mod rig;
