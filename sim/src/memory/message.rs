//! Messages between compute and memory nodes, and their times.

/// Kind of a memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A read: a short request, then this many bytes back.
    Read,
    /// A write of this many bytes.
    Write,
}

/// One operation on remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When its node has it.
    pub at_ps: u64,
    /// Kind of the operation.
    pub operation: Operation,
    /// The node that reads or writes.
    pub compute: u16,
    /// The node that has the memory: another one, or the same, whose memory is local.
    pub memory: u16,
    /// Bytes read or written.
    pub bytes: u32,
}

impl Message {
    /// Whether it is for the node's own memory, and uses no network.
    pub fn is_local(&self) -> bool {
        self.compute == self.memory
    }
}

/// Times of a message, in picoseconds from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Its node began with it.
    pub begun_ps: Option<u64>,
    /// The first block of a read's request left its node.
    pub asked_ps: Option<u64>,
    /// A read's request arrived at the memory node.
    pub reached_ps: Option<u64>,
    /// The first block of data left its source.
    pub sent_ps: Option<u64>,
    /// The last byte arrived.
    pub done_ps: Option<u64>,
}

impl Times {
    /// Time from the message's creation to its completion.
    pub fn completion_ps(&self, message: &Message) -> Option<u64> {
        self.done_ps.map(|done_ps| done_ps.saturating_sub(message.at_ps))
    }
}

/// Results of a run, the same for all schemes.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Times of each message.
    pub times: Vec<Times>,
    /// Messages refused because their node's queue was full.
    pub refused: u64,
    /// Packets dropped by full queues in the switch.
    pub dropped: u64,
    /// Packets that were sent again.
    pub again: u64,
    /// Maximum bytes of data that waited for one port of the switch.
    pub queue_max_bytes: u64,
    /// By node: how long its link to the switch was busy.
    pub sent_ps: Vec<u64>,
    /// Violations: data without a grant, demands that an honest host may not make.
    pub strays: u64,
    /// Counters of the scheme's own, by name.
    pub counters: Vec<(&'static str, u64)>,
}
