//! BFRuntime by name: builds and reads its messages, for controllers and for the switch.
//!
//! ```text
//!  bf-rt.json ─ schema ─→ tables, keys, actions, data fields by name and id
//!  entry      ─ schema ─→ TableEntry       (entry.rs)
//!  value                  one field's value, with the schema's width
//!  p4runtime              TableEntry ↔ P4Runtime's Entity, for a program that has both interfaces
//! ```
//!
//! The messages themselves are `p4rack_p4rt::bfrt_proto`.

mod difference;
mod entry;
pub mod p4runtime;
mod schema;
mod value;

pub use entry::{Entry, EntryError, Match};
pub use schema::{Action, Field, Key, Learn, MatchType, Schema, SchemaError, Table};
pub use value::{Kind, Value, ValueError};
