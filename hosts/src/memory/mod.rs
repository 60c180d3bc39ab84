//! Remote memory over EDM on real packets: compute nodes, which use others' memory, and memory nodes, which offer theirs.
//!
//! ```text
//!  program ─ Client ─┐                                                   ┌─ Server ─ regions
//!  threads ─ Handle ─┴─ fabric's compute node ─ Port ═ link ═ switch ═ Port ─ fabric's memory node
//! ```
//!
//! A [`Client`] runs the node in the thread that asks, so nobody else has to wake between a request and its frame. A
//! [`Handle`] can be shared by threads and tasks; a thread of its own runs the node. Both share the interface with the host's
//! agent, which carries everything else.
//!
//! What EDM promises and what not:
//!
//! - A read sees each word of a region either before or after a write of it, and all bytes of a chunk at once. A write of more
//!   than a chunk becomes visible chunk by chunk.
//! - Atomic operations and reads are answered. **Writes are not**: a write is done when its last chunk has been sent. Who has to
//!   know that it arrived reads it back. Requests travel in a higher class than data, so a read may overtake a write.
//! - Writes of a client to the same bytes take effect in the order in which they were asked for, as long as no frame is late.
//! - A memory node that starts again is reached again without the client's doing. What was under way is then unknown, and writes
//!   sent since its last answer may be lost: the client's counters say so (`sessions_lost`). They also say how many of its writes
//!   were refused (`writes_refused`).
//! - Without an answer in time there is the NULL response, [`Error::Unknown`]: the operation may have been carried out, once, or
//!   not at all.

mod client;
mod handle;
mod operation;
mod port;
mod server;

pub use client::{Client, ClientConfig, Ticket};
pub use handle::{Handle, Pending};
pub use operation::{Error, Operation, Remote, result};
pub use port::{NodeAddress, NotHere, PortConfig, PortError, PortStats};
pub use server::{Server, ServerConfig, ServerError, ServerReport};
