//! A key-value store in FASTER's manner: an index and the newest part of a log are in local memory, the older part is in remote
//! memory. One thread owns a store, as one thread owns a set of Cowbird's rings.
//!
//! ```text
//!          in remote memory                           in local memory
//!  ┌───────────────────────────────────┬────────────────────┬──────────────────┐
//!  │ cold: read with a request         │ read-only: a write │ changed in place │ ◀── new records
//!  └───────────────────────────────────┴────────────────────┴──────────────────┘
//!  begin                             head            read-only end           tail
//! ```
//!
//! Before a page leaves local memory, it becomes read-only and is written to remote memory. The remote region is a ring of pages:
//! compaction reads the oldest page back and appends its current records at the tail.
//!
//! Unlike FASTER's, the index has whole keys and one record for each. So a cold read is always one request, and the index alone
//! shows whether a record is current. There are no deletions.

mod client;
mod index;
mod log;
mod logged;
pub(crate) mod rack;
mod run;

pub use client::{ClientTask, use_store};
pub use log::{Config, Found, LogStore, Replaced, StoreError};
pub use run::{MixFigures, RunError, Setup, run, run_in_switch};
