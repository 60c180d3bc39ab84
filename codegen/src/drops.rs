//! Reasons why generated programs drop, demote or refuse frames. The lists order the cells of counters.

use crate::Scheme;

/// A reason to drop a frame, or to deny what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// Name in reports. In P4 it is in capitals, after `DROP_`, `DEMOTED_` or `REFUSED_`.
    pub name: &'static str,
    /// Meaning, on one line.
    pub doc: &'static str,
}

const REASONS: [DropReason; 15] = [
    reason("malformed", "cut short within a header"),
    reason("spoofed", "source address is not the port's own host's"),
    reason("unknown_destination", "no host has this address"),
    reason("same_port", "the destination is the sender"),
    reason("best_effort_meter", "more best effort than the port may send"),
    reason("control_meter", "more control frames than the port may send"),
    reason("bad_version", "PL2 of another version"),
    reason("bad_kind", "a PL2 kind that hosts don't send, or that doesn't exist"),
    reason("bad_demand", "asks for no slots, or for more than K"),
    reason("bad_lane", "names a lane that the rack does not have"),
    reason("unsolicited_over_threshold", "unsolicited while more than T is reserved"),
    reason("management_from_host", "management from a port other than the controller's"),
    reason("bad_target", "management of a register that doesn't exist"),
    reason("bad_index", "management of a port that doesn't exist"),
    reason(HAS_SLOTS, "unsolicited though its waits are longer than t: it comes again in its slots"),
];

/// Name of the reason that costs nothing, because the frames come again.
pub const HAS_SLOTS: &str = "unsolicited_has_slots";

/// Number of reasons that plain switching has.
const L2_REASONS: usize = 5;

const fn reason(name: &'static str, doc: &'static str) -> DropReason {
    DropReason { name, doc }
}

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

/// The reasons of `scheme`'s program. Their positions are indices of the counter, the same in all schemes.
pub fn drop_reasons(scheme: Scheme) -> &'static [DropReason] {
    match scheme {
        Scheme::L2 => &REASONS[..L2_REASONS],
        Scheme::Pl2Counter | Scheme::Pl2Clock => &REASONS,
    }
}
