//! Bugs that tests plant in the service or in a node, which the checks have to find.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// The service frees an extent before its keys are revoked.
    FreeBeforeFence,
    /// The node does not compare epochs: a late grant takes effect after its fence.
    NoEpochAtNode,
    /// The service does not compare epochs: a late Return takes the next extent at the same place.
    NoEpochInReturn,
    /// The node says that it has zeroed, and has not.
    ZeroForgotten,
    /// The node says that it has fenced, and the key is still valid.
    KeyForgotten,
    /// A free range is merged with the neighbour behind it although that is in use.
    MergeInUse,
    /// All services have the same identity, so two whose clocks agree have the same term.
    SameIdentity,
    /// Renewals of a session that has ended count for the next one.
    DeadRenews,
    /// A memory node that is to go offline lends on.
    LeavingLends,
}
