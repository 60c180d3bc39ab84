//! Remote memory over EDM on real packets: compute nodes, which use others' memory, and memory nodes, which offer theirs.
//!
//! ```text
//!  program ─ Client ─┐                                                   ┌─ Server ─ regions
//!  threads ─ Handle ─┴─ fabric's compute node ─ Port ═ link ═ switch ═ Port ─ fabric's memory node
//! ```
//!
//! A [`Client`] runs the node in the thread that asks, so no other thread has to wake between a request and its frame. A
//! [`Handle`] can be shared by threads and tasks; a thread of its own runs the node. Both share the interface with the host's
//! agent, which carries everything else.
//!
//! Guarantees of EDM, and their limits:
//!
//! - A read sees each word of a region either before or after a write of it, and chunks as a whole. A write of more
//!   than a chunk becomes visible chunk by chunk.
//! - Atomic operations and reads are answered. **Writes are not**: a write is done when its last chunk has been sent. To learn
//!   that it arrived, read it back. Requests travel in a higher class than data, so a read may overtake a write.
//! - Writes of a client to the same bytes take effect in the order of the calls, as long as no frame is late.
//! - A client reconnects to a restarted memory node on its own. Operations in flight are then unknown, and writes
//!   sent since its last answer may be lost; the client counts that (`sessions_lost`), and its refused writes
//!   (`writes_refused`).
//! - Without an answer in time, the result is the NULL response, [`Error::Unknown`]: the operation was executed once or
//!   not at all.

mod client;
mod handle;
mod operation;
mod port;
mod server;

pub use client::{Client, ClientConfig, Ticket};
pub use handle::{Handle, Pending};
pub use operation::{Error, Operation, Remote, result};
pub use port::{EdmPortError, NodeAddress, NotHere, PortConfig, PortStats};
pub use server::{Server, ServerConfig, ServerError, ServerReport};
