//! The core of the embedded P4 switch: a pure function of (state, port, bytes, now).
//!
//! ```text
//!  handle_frame ─ parser ─ verify ─ ingress ─┬─ traffic manager ─ egress ─ compute ─ deparser ─ poll_transmit
//!       ▲                     │ clone, digest │   (queues, rates)                          │      poll_cpu
//!       └──── resubmit ───────┴───────────────┘◀────────────── recirculate ────────────────┘
//! ```
//!
//! [`Pipeline::compile`] turns a typed program into flat code over 64-bit words; [`Switch`] runs it.
//! Nothing here reads a clock, opens a socket or knows any protocol: time, the seed and the program
//! are parameters. After each [`Switch::handle_frame`], or when [`Switch::next_timeout`] has come,
//! call [`Switch::poll_transmit`] and [`Switch::poll_cpu`] until they yield nothing more.
//!
//! `#[inline(always)]` marks the functions on a frame's way from its arrival to its end. Each form of that way
//! (sent immediately or queued, buffer borrowed or given, traced or not) is a const parameter, such as `THROUGH`,
//! `GIVEN` and `TRACED`. Inlined, each form becomes one function in which the branches of the others are gone. Left
//! to its own estimate, the compiler makes calls of the larger steps, and all forms then share their branches.

mod aging;
mod arch;
mod code;
mod compile;
mod config;
mod depth;
mod dues;
mod error;
mod exec;
mod hash;
mod inlet;
mod meter;
#[cfg(feature = "native")]
mod native;
mod objects;
mod pool;
mod profile;
mod rehash;
mod replicas;
mod shape;
mod smooth;
mod state;
mod stats;
mod switch;
mod table;
mod tm;
mod trace;
mod words;

pub use compile::Pipeline;
pub use config::{Config, PortConfig, Queueing};
pub use error::{CompileError, ControlError};
pub use objects::{
    ActionSet, CloneSession, CounterData, DefaultEntry, DigestMessage, EntryRef, IdleEntry, Indirect,
    MeterConfig, Pick, Pipes, ReplicationSpread, Share, SizeOf, TableEntry,
};
pub use rehash::{HashConfig, HashPart};
pub use replicas::{Replica, Replicas};
pub use smooth::SmootherConfig;
pub use stats::{DepthSample, DepthTime, DropReason, PortStats, QueueStats, Stats};
pub use switch::{
    GeneratorConfig, GeneratorStats, Keep, MAX_GENERATORS, Origin, PACKET_BUFFER_BYTES, PacketApp,
    PacketCounts, PacketPort, PacketTrigger, PortQueues, REPLICATION_SET, ReplicationConfig,
    ReplicationGroup, ReplicationLag, ReplicationMember, ReplicationNode, ReplicationPort, Switch,
    TraceEvent, TraceFilter, TraceState, Traced, TracedChange, TracedKey, TracedValue,
};
pub use table::{FieldLayout, PlainEntry, PlainUpdate, PlainVerb, TableLayout};
pub use tm::plan::{QUEUES, QueueLimit, QueuePlan, Shaping, ShapingUnit};
