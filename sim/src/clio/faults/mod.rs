//! Clio under faults: the client library, boards and their stores, while packets are lost, duplicated, delayed beyond TIMEOUT or
//! damaged, boards restart without their memory, compute nodes crash, and clients use ids again.
//!
//! ```text
//! nodes ─▶ sessions: Client ─▶ network with faults ─▶ boards: Board, Clio-KV
//!   └────▶ histories of words and keys ─▶ is there an order that explains them?
//!          locks: never two owners; at the end nothing of a process is left
//! ```
//!
//! A seed determines everything: the faults and their times, and the operations. The set-up of processes, which is a TCP connection on
//! hosts, has no faults; its reports of a crash or a restart come late.

mod ask;
mod board;
mod finish;
mod history;
mod locks;
mod network;
mod plant;
mod session;
mod world;

pub use plant::ClioPlant;
pub use world::run_clio_faults;
