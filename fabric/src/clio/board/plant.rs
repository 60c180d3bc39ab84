//! Bugs that tests plant in a board, which the checks have to find.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// A page fault does not write its entry: the second access takes another frame.
    FaultForgotten,
    /// A freed page stays in the TLB.
    StaleTlb,
    /// Executed requests are not remembered.
    NoRetryMemory,
    /// They are remembered without the index of the packet.
    RetryWithoutIndex,
    /// They are remembered by attempt, as in the paper: a late original is executed after its retry.
    LateOriginal,
    /// A range is freed although reads of it are under way.
    FreeAtOnce,
    /// Rights are not checked.
    NoRights,
    /// A fence completes before the reads before it.
    NoFence,
    /// An allocation takes pages whose bucket is full: their entries take others' slots.
    BucketOverflow,
    /// Locks of a process that ends stay held.
    DeadOwner,
    /// Neither epoch nor token is checked: packets of an ended process count as its successor's.
    NoEpoch,
}
