//! Requests of programs for the memory of a rack's pool, in virtual time. A program's requests depend on when earlier
//! ones end, so the caller that runs the programs issues them, and gets their ends in order of time.
//!
//! ```text
//!   caller ── ask(now) ──▶ rack with machines of a way: RoCE, Cowbird, EDM, Clio
//!   caller ◀─ next(until) ── an end, or nothing until then
//! ```

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer<'a> {
    /// Read this many bytes.
    Read(u32),
    /// Write these bytes.
    Write(&'a [u8]),
}

/// A request of a compute node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The compute node, from 0.
    pub node: u16,
    /// The caller's own number.
    pub tag: u64,
    /// The first byte in the node's part of the pool, a multiple of 64.
    pub address: u64,
    pub what: Transfer<'a>,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub node: u16,
    pub tag: u64,
    pub at_ps: u64,
    /// The bytes read; `None` for a write. `None`: it was refused, or is lost.
    pub bytes: Option<Vec<u8>>,
}

/// Bytes that the pool's link has carried, with headers, preambles and gaps, and the longest queue at its port of the
/// switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolLink {
    pub to_bytes: u64,
    pub from_bytes: u64,
    pub queue_max_bytes: u64,
}

/// A rack of compute nodes that share a pool.
pub(crate) trait Requests {
    /// When programs may begin: the rack is set up.
    fn start_ps(&self) -> u64;

    /// Issues a request now, which is no earlier than the last result of [`next`](Requests::next). Errors: the rack
    /// takes no more.
    fn ask(&mut self, ask: Ask<'_>, now_ps: u64) -> Result<(), String>;

    /// Goes on until a request has ended, or until this time, if none has.
    fn next(&mut self, until_ps: u64) -> Option<Ended>;

    /// The word at a byte of a node's part of the pool before anything is written there.
    fn fresh(&self, node: u16, address: u64) -> u64;

    /// Bytes that the pool's link has carried until `now_ps`.
    fn pool(&self, now_ps: u64) -> PoolLink;
}

/// How many nodes share a pool, how much of it each has, and the rate of all links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub nodes: u16,
    /// Bytes of each node's part.
    pub part_bytes: u64,
    /// Longest request.
    pub request_bytes_max: u32,
    /// Requests of a node under way at most.
    pub window: u16,
    pub rate_bps: u64,
    pub seed: u64,
}

impl Sharing {
    /// Bytes of the pool.
    pub fn pool_bytes(&self) -> u64 {
        u64::from(self.nodes) * self.part_bytes
    }

    /// Address in the pool of a byte of a node's part.
    pub fn place(&self, node: u16, address: u64) -> u64 {
        u64::from(node) * self.part_bytes + address
    }
}
