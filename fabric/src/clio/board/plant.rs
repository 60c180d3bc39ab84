//! Bugs that tests plant in a board, which the checks have to find.

use std::cell::Cell;

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

thread_local! {
    static TAGS_WITHOUT_EPOCH: Cell<bool> = const { Cell::new(false) };
}

/// A bug in the tags of pages, which have no board at hand: as long as this lives, those that the thread makes have no epoch.
#[derive(Debug)]
pub(super) struct TagsWithoutEpoch(());

impl TagsWithoutEpoch {
    pub fn plant() -> TagsWithoutEpoch {
        TAGS_WITHOUT_EPOCH.set(true);
        TagsWithoutEpoch(())
    }
}

impl Drop for TagsWithoutEpoch {
    fn drop(&mut self) {
        TAGS_WITHOUT_EPOCH.set(false);
    }
}

/// Whether that bug is planted.
pub(super) fn tags_have_no_epoch() -> bool {
    TAGS_WITHOUT_EPOCH.get()
}
