//! Reasons why PL2's part of a program drops, demotes or refuses frames. The lists order the cells of counters.

use crate::rack::{Cost, DropReason, reason};

/// Reasons to drop frames, in addition to those of every program.
pub(super) const DROPS: [DropReason; 10] = [
    reason("control_meter", "more control frames than the port may send"),
    reason("bad_version", "PL2 of another version"),
    reason("bad_kind", "a PL2 kind that hosts don't send, or that doesn't exist"),
    reason("bad_demand", "asks for no slots, or for more than K"),
    reason("bad_lane", "names a lane that the rack does not have"),
    reason(OVER_THRESHOLD, "unsolicited while more than T is reserved").costs(Cost::SentAgain),
    reason("management_from_host", "management from a port other than the controller's"),
    reason("bad_target", "management of a register that doesn't exist"),
    reason("bad_index", "management of a port that doesn't exist"),
    reason(HAS_SLOTS, "unsolicited though its waits are longer than t: it comes again in its slots")
        .costs(Cost::SentAgain),
];

/// Reason to drop unsolicited frames whose burst has slots. Nothing is lost: the host sends them again in these.
pub const HAS_SLOTS: &str = "unsolicited_has_slots";
/// Reason to drop unsolicited frames because others have reserved more than the threshold.
pub const OVER_THRESHOLD: &str = "unsolicited_over_threshold";

/// Reasons why generated programs deny a frame its class and carry it as best effort, in the order of the
/// counter `demoted`.
pub const DEMOTED: [DropReason; 4] = [
    reason("uncovered", "its reservation has nothing left for it"),
    reason("uncovered_unsolicited", "unsolicited beyond what was asked for"),
    reason("early", "long before its reservation begins"),
    reason("late", "long after its reservation"),
];

/// Reasons why generated programs answer an RSV with "not now", in the order of the counter `refused`.
pub const REFUSED: [DropReason; 2] =
    [reason("lane", "the lane's reservation has not begun"), reason("calendar", "no free time in sight")];
