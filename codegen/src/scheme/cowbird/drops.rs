//! Reasons why the engine's part of a program drops frames. The list orders the cells of the counter.

use crate::rack::{Cost, DropReason, reason};

/// Reasons to drop frames, in addition to those of every program.
pub(super) const DROPS: [DropReason; 12] = [
    reason("cowbird_bad_frame", "for the engine, but a header is missing or lengths don't agree"),
    free("cowbird_unknown_pair", "no queue pair of the engine, or not from its other end"),
    free("cowbird_no_instance", "of a thread that is served no more"),
    reason("cowbird_bad_opcode", "not what its queue pair is for"),
    reason("cowbird_bad_data", "what was read is not as long as what was asked for"),
    free("cowbird_stale", "not the next one of its queue pair"),
    free("cowbird_gap", "says that a packet before was lost"),
    free("cowbird_waits", "an entry that is asked for again, as it has to wait for others"),
    reason("cowbird_corrupt", "a thread has ruined its rings: its red block says how"),
    free("cowbird_nothing_to_do", "a turn or an answer, and nothing to ask for next"),
    reason("cowbird_management_from_host", "management from a port other than the controller's"),
    reason("cowbird_bad_index", "management of an instance that doesn't exist"),
];

/// A drop that is no loss: the engine has used the frame's contents, requests them again, or doesn't need them.
const fn free(name: &'static str, doc: &'static str) -> DropReason {
    reason(name, doc).costs(Cost::Nothing)
}
