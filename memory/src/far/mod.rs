//! Far memory: definitions that the command `p4rack far run` and its library share. The command passes [`Settings`] in
//! the program's environment; the library opens the memory, and keeps [`Figures`] in a file that the command and
//! `p4rack far top` read. docs/far.md explains it.

mod figures;
mod open;
mod settings;

pub use figures::{About, Figures, Writer, create, is_held, read, unnamed};
pub use open::{FarError, FarMemory, open};
pub use settings::{Files, Full, Settings, Source};

/// Environment variable with the [`Settings`], as JSON.
pub const VARIABLE: &str = "P4RACK_FAR";

/// File name of the library.
pub const LIBRARY: &str = "libp4rack_far.so";

/// Bytes of a page, the unit of far memory.
pub const PAGE_BYTES: u64 = crate::mapping::PAGE_BYTES as u64;
