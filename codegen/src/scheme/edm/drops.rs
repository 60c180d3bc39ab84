//! Reasons why EDM's part of a program drops or demotes frames. The lists order the cells of counters.

use crate::rack::{Cost, DropReason, reason};

/// Reasons to drop frames, in addition to those of every program.
pub(super) static DROPS: [DropReason; COMMON + 3] = [
    reason("edm_control_meter", "more notifications and requests than the port may send"),
    reason("edm_bad_version", "EDM of another version"),
    reason("edm_bad_kind", "an EDM kind that hosts don't send, or that doesn't exist"),
    reason("edm_bad_demand", "a demand for nothing or for too much, or data without bytes"),
    reason("edm_bad_lane", "names a lane that pairs don't have"),
    reason("edm_no_memory", "a demand for a host without memory"),
    reason(LANE_TAKEN, "the lane's message is not done"),
    reason("edm_management_from_host", "management from a port other than the controller's"),
    reason("edm_bad_target", "management of a register that doesn't exist"),
    reason("edm_bad_index", "management of a cell that doesn't exist"),
    reason("edm_no_time", "a demand for which there is no time, and no room to wait"),
    reason(NO_LOSS[0], "no loss: a notification that waits for its grant").costs(Cost::Nothing),
    reason(NO_LOSS[1], "no loss: a copy that looked for demands that wait, and found none")
        .costs(Cost::Nothing),
];

/// Number of reasons of all modes; `calendar` has the next one as well.
pub(super) const COMMON: usize = 10;

/// Drop reasons of `matched` that are no loss.
pub const NO_LOSS: [&str; 2] = ["edm_waits", "edm_looked"];

/// Reason to drop demands: their pair has the maximum number.
pub const LANE_TAKEN: &str = "edm_lane_taken";

/// Reasons why generated programs deny data its class and carry it as best effort, in the order of the counter
/// `edm.demoted`.
pub const DEMOTED: [DropReason; 2] = [
    reason("uncovered", "no grant has bytes left for it"),
    reason("too_long", "longer than its header says"),
];
