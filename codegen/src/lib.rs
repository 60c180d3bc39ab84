//! From a rack description to the switch's input: a P4 program, its table entries, its P4Info and the
//! constants that P4, Rust and Python share.
//!
//! ```text
//! rack.toml ─ Rack::load ─→ Rack ─ generate ─→ NAME.p4  NAME.entries.txtpb  NAME.p4info.txtpb  NAME.json
//!                                              and for Tofino  NAME.bf-rt.json  NAME.switchd.conf …
//! ```

mod arch;
pub mod description;
pub mod kind;
pub mod rack;
mod render;
pub mod scheme;
pub mod setting;
pub mod shell;
pub mod text;
pub mod topology;

pub use arch::Arch;
pub use rack::{Rack, RackError};
pub use render::{
    Artefacts, GenerateError, MULTICAST_GROUP, PRIORITY_BEST_EFFORT, Program, generate, program, render_p4,
    sde,
};
pub use scheme::{
    DropReason, NoParameters, Scheme, SchemeError, endpoint_config, sequence_ether_type, spoken_beside,
};
