//! Sets that an engine serves, and their states.

use p4rack_wire::cowbird::Layout;

/// Remote memory of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Queue pair to the pool.
    pub qpn: u32,
    /// Key of the region.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A thread's rings at a compute node, and the remote memory that they give access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its compute node: owners take turns at the engine, and so do the sets of each.
    pub owner: u32,
    /// Queue pair to the compute node.
    pub qpn: u32,
    /// Key of the rings' memory.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Sizes of the rings.
    pub layout: Layout,
    /// Remote memory, by number of the region.
    pub regions: Vec<Pool>,
}

/// Violations of the ring protocol by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Corruption {
    /// A tail moved back, or is too far ahead.
    Tail = 1,
    /// An entry is neither read nor write.
    Type = 2,
    /// An entry's region is not theirs.
    Region = 3,
    /// An entry reaches beyond its region.
    Bounds = 4,
    /// An entry's length is 0 or more than half of a ring.
    Length = 5,
    /// An entry's data is not where it belongs.
    Place = 6,
    /// An entry's id is not the next one.
    Id = 7,
}

impl Corruption {
    /// All, by code.
    pub const ALL: [Corruption; 7] = [
        Corruption::Tail,
        Corruption::Type,
        Corruption::Region,
        Corruption::Bounds,
        Corruption::Length,
        Corruption::Place,
        Corruption::Id,
    ];
}

/// State of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It reads the blocks of a previous engine.
    Recovering,
    /// It serves.
    Serving,
    /// The client has corrupted its rings. The red block has the reason.
    Corrupt(Corruption),
    /// A queue pair failed: set it up again.
    Lost,
}
