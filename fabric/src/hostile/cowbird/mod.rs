//! Hosts that break the rules of RDMA and of Cowbird, or load a memory pool and an engine as hard as the rules allow.
//!
//! ```text
//!                      ┌── own queue pairs with the pool: long messages, or single frames at the link's rate
//!   Machine ───────────┼── own queue pairs with the engine: answers out of rings that are always full, or none
//!                      └── queue pairs of others: forged frames
//! ```

mod machine;
mod rings;
#[cfg(test)]
mod tests;

pub use machine::{BadMachine, Machine};
pub use rings::{Contents, EndlessSet, Rings};

use crate::roce::{self, Connection};
use p4rack_wire::roce::frame::Path;
use p4rack_wire::{MacAddr, Nanos};
use std::fmt;
use std::str::FromStr;

/// Attack of a hostile host, repeated without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attack {
    /// Reads the longest messages from the pool, on all queue pairs.
    BulkRead,
    /// Writes the longest messages to the pool, on all queue pairs.
    BulkWrite,
    /// Asks the pool for words at the link's rate, whatever it answers.
    ReadFlood,
    /// Writes full packets to the pool at the link's rate, whatever it answers.
    WriteFlood,
    /// Asks the pool for atomic operations at the link's rate.
    AtomicFlood,
    /// Asks the pool to read with a wrong key, at the link's rate.
    WrongKey,
    /// Repeats the same long READ at the link's rate.
    Repeat,
    /// Has rings that are always full of the longest reads.
    FullReads,
    /// Has rings that are always full of the longest writes.
    FullWrites,
    /// Has rings that are always full of reads of a word.
    SmallReads,
    /// Never answers the engine.
    Silent,
    /// Takes one of eight frames of the engine.
    Slow,
    /// Has rings with invalid entries.
    Corrupt,
    /// Forges packets for others' queue pairs, with its own and with their addresses.
    Forged,
    /// Sends random bytes behind the headers of RoCEv2, and random frames.
    Garbage,
    /// Sends frames of no protocol to the pool at the link's rate.
    BestEffortFlood,
}

impl Attack {
    /// All attacks.
    pub const ALL: [Attack; 16] = [
        Attack::BulkRead,
        Attack::BulkWrite,
        Attack::ReadFlood,
        Attack::WriteFlood,
        Attack::AtomicFlood,
        Attack::WrongKey,
        Attack::Repeat,
        Attack::FullReads,
        Attack::FullWrites,
        Attack::SmallReads,
        Attack::Silent,
        Attack::Slow,
        Attack::Corrupt,
        Attack::Forged,
        Attack::Garbage,
        Attack::BestEffortFlood,
    ];

    /// Name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Attack::BulkRead => "bulk-read",
            Attack::BulkWrite => "bulk-write",
            Attack::ReadFlood => "read-flood",
            Attack::WriteFlood => "write-flood",
            Attack::AtomicFlood => "atomic-flood",
            Attack::WrongKey => "wrong-key",
            Attack::Repeat => "repeat",
            Attack::FullReads => "full-reads",
            Attack::FullWrites => "full-writes",
            Attack::SmallReads => "small-reads",
            Attack::Silent => "silent",
            Attack::Slow => "slow",
            Attack::Corrupt => "corrupt",
            Attack::Forged => "forged",
            Attack::Garbage => "garbage",
            Attack::BestEffortFlood => "best-effort-flood",
        }
    }

    /// Whether it attacks an engine, and so needs one.
    pub const fn needs_engine(self) -> bool {
        matches!(
            self,
            Attack::FullReads
                | Attack::FullWrites
                | Attack::SmallReads
                | Attack::Silent
                | Attack::Slow
                | Attack::Corrupt
        )
    }

    /// Content of its rings.
    pub const fn rings(self) -> Contents {
        match self {
            Attack::FullWrites => Contents::Writes,
            Attack::SmallReads => Contents::SmallReads,
            Attack::Corrupt => Contents::Nonsense,
            _ => Contents::Reads,
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Attack {
    type Err = String;
    fn from_str(text: &str) -> Result<Attack, String> {
        super::named(text, &Attack::ALL, Attack::name, " on Cowbird")
    }
}

/// A queue pair between other hosts, as the hostile host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Addresses as its requester sends them.
    pub path: Path,
    /// Number of the queue pair that receives.
    pub qpn: u32,
    /// A sequence number near the next one.
    pub psn: u32,
}

/// Attack of a hostile host, and its knowledge of the rack.
#[derive(Clone, Debug)]
pub struct Config {
    /// The attack.
    pub attack: Attack,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Parameters of its adapter, which others' adapters share.
    pub adapter: roce::Config,
    /// Its queue pairs with the pool: own number and connection.
    pub pool: Vec<(u32, Connection)>,
    /// Key of memory of the pool that it may use.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Bytes of that memory; at least the longest message.
    pub bytes: u64,
    /// Its queue pairs with the engine: own number and connection.
    pub engine: Vec<(u32, Connection)>,
    /// Its rings, which the engine serves.
    pub rings: Rings,
    /// Queue pairs of others.
    pub others: Vec<Aim>,
    /// Rate of its link in bits per second.
    pub rate_bps: u64,
    /// How far a late driver may catch up.
    pub catch_up: Nanos,
}
