//! What an engine serves, and how that is.

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
    /// Its bytes.
    pub bytes: u64,
}

/// A thread's rings at a compute node, and the remote memory that they are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
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

/// What a client has done to its rings that no client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Corruption {
    /// A tail went back, or is too far ahead.
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

/// How an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It learns what was done before.
    Recovering,
    /// It serves.
    Serving,
    /// The client has ruined its rings. The red block tells it so.
    Corrupt(Corruption),
    /// A queue pair failed: set it up anew.
    Lost,
}
