//! Messages between compute and memory nodes, and what became of them.

/// What a message asks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read: a short request, then so many bytes back.
    Read,
    /// A write of so many bytes.
    Write,
}

/// One operation on remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When its node has it.
    pub at_ps: u64,
    /// What it does.
    pub operation: Operation,
    /// The node that reads or writes.
    pub compute: u16,
    /// The node whose memory it is.
    pub memory: u16,
    /// Bytes read or written.
    pub bytes: u32,
}

/// Times of a message from when its node had it, in picoseconds: until its last byte was where it belongs; `None` if that
/// never happened.
pub type Completions = Vec<Option<u64>>;
