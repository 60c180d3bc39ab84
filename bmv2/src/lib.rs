//! BMv2's JSON: writes programs for `simple_switch`, and reads those that p4c has compiled for it. The IR is
//! between both, so that the switch runs a program in the same way whichever form it came in.
//!
//! ```text
//!  P4 text ─ p4 ─▶ IR ─ write ─▶ JSON
//!                  IR ◀─ read ── JSON
//! ```
//!
//! The format is that of `docs/JSON_format.md` in p4lang/behavioral-model, version 2.

mod graph;
mod names;
mod read;
mod write;

pub use read::{is_json, is_json_file, read};
pub use write::{VERSION, write};
