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
//! A page becomes read-only before it leaves local memory, and is written to remote memory then; it leaves when that is done. The
//! remote region is a ring of pages: the oldest page is read back, and what is still current in it goes to the tail.
//!
//! Other than FASTER's, the index has whole keys and one record for each. So a cold read is always one request, and whether a
//! record is current needs no look at others. There are no deletions.

mod client;
mod index;
mod log;
pub(crate) mod rack;
mod run;
mod ycsb;

pub use client::{ClientTask, use_store};
pub use log::{Config, Found, LogStore, Replaced, StoreError};
pub use run::{MixFigures, RunError, Setup, run, run_in_switch};
