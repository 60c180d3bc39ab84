//! The balloon on hosts: a service that lends extents of boards of Clio, over gRPC. None of its parts needs root.
//!
//! ```text
//!  holder: Lease ═ Ask ═▶ service: Balloon ═ Execute ═▶ lender: Node ─ commands ─▶ Board
//!     └─ Session ═ UDP, with the process of the extent ═══════════════════════════▶ ┘
//! ```
//!
//! On a board, an extent is a process with frames that are kept for it. Its holder has the token. To fence the extent ends the process: no
//! packet with its token is taken any more. The extent is zeroed when the board has freed all frames of the process, since a board zeroes each frame
//! before another page gets it. The place of an extent is one in the pool's accounts; the board maps it to any frames.

mod convert;
mod holder;
mod key;
mod lender;
mod listing;
pub mod service;

pub use holder::{LeaseError, Tenancy, list, release};
pub use key::{Key, KeyError};
pub use lender::serve_board;
pub use listing::{Listed, ListedNode, Phase};
