//! Mistakes that tests plant, which the checks have to find.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// The end of a write-back cleans the block, although it was written since the write-back left.
    WriteDuringWriteBackLost,
    /// A second access to a block on its way here fetches it again.
    TwoFetches,
    /// A page that moves to the host loses its dirty marks.
    PromotionCleans,
    /// A prefetched block counts as used.
    PrefetchIsUse,
    /// A block that is dropped goes without its write-back.
    EvictionCleans,
    /// A block that is dropped goes although a guard holds it.
    EvictionIgnoresGuards,
    /// The frame of a block that was dropped while a guard held it stays in use.
    ReleaseLeaks,
    /// The end of a guard is no change, so an access that waits for it is not woken.
    ReleaseIsSilent,
    /// An access gives up its claim without a change, so an access that waits for one is not woken.
    ClaimIsSilent,
}
