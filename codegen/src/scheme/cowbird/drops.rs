//! Reasons why the engine's part of a program drops frames. The list orders the cells of the counter.

use crate::rack::{DropReason, reason};

/// Reasons to drop frames, in addition to those of every program.
pub(super) const DROPS: [DropReason; 12] = [
    reason("cowbird_bad_frame", "for the engine, but a header is missing or lengths don't agree"),
    reason(NO_LOSS[0], "no queue pair of the engine, or not from its other end"),
    reason(NO_LOSS[1], "of a thread that is served no more"),
    reason("cowbird_bad_opcode", "not what its queue pair is for"),
    reason("cowbird_bad_data", "what was read is not as long as what was asked for"),
    reason(NO_LOSS[2], "not the next one of its queue pair"),
    reason(NO_LOSS[3], "says that a packet before was lost"),
    reason(NO_LOSS[4], "an entry that is asked for again, as it has to wait for others"),
    reason("cowbird_corrupt", "a thread has ruined its rings: its red block says how"),
    reason(NO_LOSS[5], "a turn or an answer, and nothing to ask for next"),
    reason("cowbird_management_from_host", "management from a port other than the controller's"),
    reason("cowbird_bad_index", "management of an instance that doesn't exist"),
];

/// Drops that are no loss: the engine has used the frame's contents, requests them again, or doesn't need them.
pub const NO_LOSS: [&str; 6] = [
    "cowbird_unknown_pair",
    "cowbird_no_instance",
    "cowbird_stale",
    "cowbird_gap",
    "cowbird_waits",
    "cowbird_nothing_to_do",
];
