//! Messages between compute and memory nodes, and what became of them.

/// What a message asks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// When things happened to a message, in picoseconds of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The first block of a read's request left its node.
    pub asked_ps: Option<u64>,
    /// A read's request was at the memory node.
    pub reached_ps: Option<u64>,
    /// The first block of data left its source.
    pub sent_ps: Option<u64>,
    /// The last byte was where it belongs.
    pub done_ps: Option<u64>,
}

impl Times {
    /// From when its node had the message until it was done.
    pub fn completion_ps(&self, message: &Message) -> Option<u64> {
        self.done_ps.map(|done_ps| done_ps.saturating_sub(message.at_ps))
    }
}

/// What a run shows, whatever the scheme.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Of each message.
    pub times: Vec<Times>,
    /// Messages that found their node's queue full.
    pub refused: u64,
    /// Packets that a full queue in the switch dropped.
    pub dropped: u64,
    /// Packets that were sent again.
    pub again: u64,
    /// Most bytes of data that waited for one port of the switch.
    pub queue_max_bytes: u64,
    /// Things that must not happen: data without a grant, demands that an honest host may not make.
    pub strays: u64,
    /// Counters of the scheme's own, by name.
    pub counters: Vec<(&'static str, u64)>,
}
