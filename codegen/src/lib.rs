//! From a rack description to what the switch needs: a P4 program, its table entries, its P4Info
//! and the constants that P4, Rust and Python share.
//!
//! ```text
//! rack.toml ─ Rack::load ─→ Rack ─ generate ─→ NAME.p4  NAME.entries.txtpb  NAME.p4info.txtpb  NAME.json
//! ```

mod drops;
mod endpoint;
pub mod rack;
mod render;

pub use drops::{DEMOTED, DropReason, HAS_SLOTS, REFUSED, drop_reasons};
pub use endpoint::{NoParameters, endpoint_config};
pub use rack::{Rack, RackError, Scheme};
pub use render::{
    Arch, Artefacts, GenerateError, MULTICAST_GROUP, PRIORITY_BEST_EFFORT, Program, check, generate, program,
    render_p4,
};
