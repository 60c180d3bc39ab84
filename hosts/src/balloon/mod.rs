//! The balloon on hosts: a service that lends extents of boards of Clio and of RDMA pools, over gRPC.
//!
//! ```text
//!  holder: Tenancy ═ Ask ═▶ service: Balloon ═ Execute ═▶ lender: Node ─ commands ─▶ board, or pool
//!     └─ Remote ═ UDP with the process of the extent, or RDMA with its key ═════════▶ ┘
//! ```
//!
//! The service does not look into the rights that a memory node gives, so a balloon may have nodes of both kinds.
//!
//! On a board, an extent is a process with frames that are kept for it. Its holder has the token. To fence the extent
//! ends the process: packets with its token are refused from then on. The extent is zeroed when the board has freed all
//! frames of the process, since a board zeroes each frame before another page gets it. In an RDMA pool, an extent is a
//! [reservation](p4rack_fabric::balloon::OnPool) that no connection ends. In both, the place of an extent is one in the
//! balloon's accounts: frames and regions are any.

mod board;
mod convert;
mod holder;
mod key;
mod lender;
mod lends;
mod listing;
mod pool;
pub mod service;

pub use convert::granted;
pub use holder::{LeaseError, Tenancy, leave, list, release};
pub use key::{Key, KeyError};
pub use lender::{serve_board, serve_pool};
pub use listing::{Listed, ListedNode, Phase};
