//! CLib, the library of compute nodes (§3.2, §4.4, §4.5): order of requests, retries, congestion and incast windows. Boards keep
//! nothing per client, so all of this is here.
//!
//! ```text
//!   submit ─▶ order of the thread ─▶ queue of the seat  ─▶ windows ─▶ packets
//!                    ▲                      ▲                             │
//!                    │ end                  └── retry: NACK, busy, TIMEOUT ┤
//!   outcome ◀────────┴──────────────── all chunks answered ◀──────────────┘
//! ```
//!
//! | module | has |
//! |---|---|
//! | `order` | dependencies between requests of a thread |
//! | `window` | how many packets may be under way, and how many bytes of answers expected |
//! | `split` | how a request is cut into packets |
//! | `part`, `request` | a request's attempts, and which of its packets are done |
//! | `gather` | a call's results, put together |
//! | `silence` | boards that answer nothing |
//! | `turns` | which seat, a process at a board, with something to send comes next, of many that rest |
//! | `client`, `admit`, `flow`, `retry`, `packets` | the machine: operations, which are accepted, which packet leaves next and what answers do, which ones are sent again, packets as bytes |
//!
//! The paper leaves open what follows; p4rack decides:
//!
//! - A request that a board refuses sends nothing more, and ends when nothing of it is on its way.
//! - Without an answer to the request and both retries, an operation is [`Unknown`](Outcome::Unknown), not failed: it may have
//!   happened, and a delayed packet may still make it happen.
//! - When an operation's retries are over and its board has sent nothing since, other operations of the board end with it.
//! - A board that is busy, or has no page yet, has executed nothing. The request pauses and is sent again, which is no loss.
//! - Locks, unlocks and fences are barriers in their thread's order. So what a thread does under a lock ends before the lock is
//!   released.
//! - Packets of requests of a seat take turns, so a long write does not hold short requests back.

mod admit;
mod client;
mod config;
mod flow;
mod gather;
mod operation;
mod order;
mod packets;
mod part;
mod request;
mod retry;
mod silence;
mod split;
mod suspects;
mod timers;
mod turns;
mod window;

pub use client::{Client, Counters, Credentials, NUMBER_BITS, Seat};
pub use config::{Config, Granule, Patience, REQUESTS_MAX};
pub use operation::{Change, Operation, Outcome, Refused};
