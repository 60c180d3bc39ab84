//! Why generated programs drop frames, demote or refuse them: lists that order the cells of counters.

use crate::Scheme;

/// A reason to drop a frame, or not to give it what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// Its name in reports; in P4 `DROP_`, `DEMOTED_` or `REFUSED_` and this in capitals.
    pub name: &'static str,
    /// What it means, one line.
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

/// Name of the reason that costs nothing: the frames come again.
pub const HAS_SLOTS: &str = "unsolicited_has_slots";

/// How many of them plain switching has.
const L2_REASONS: usize = 5;

const fn reason(name: &'static str, doc: &'static str) -> DropReason {
    DropReason { name, doc }
}

/// Why generated programs deny a frame the class that it claims, and carry it as best effort. The list orders the cells of
/// their counter `demoted`.
pub const DEMOTED: [DropReason; 4] = [
    reason("uncovered", "its reservation has nothing left for it"),
    reason("uncovered_unsolicited", "unsolicited beyond what was asked for"),
    reason("early", "long before its reservation begins"),
    reason("late", "long after its reservation"),
];

/// Why generated programs answer an RSV with "not now". The list orders the cells of their counter `refused`.
pub const REFUSED: [DropReason; 2] =
    [reason("lane", "the lane's reservation has not begun"), reason("calendar", "no free time in sight")];

/// The reasons of `scheme`'s program. A reason's place is its index in the counter, and the same in
/// all schemes.
pub fn drop_reasons(scheme: Scheme) -> &'static [DropReason] {
    match scheme {
        Scheme::L2 => &REASONS[..L2_REASONS],
        Scheme::Pl2Counter | Scheme::Pl2Clock => &REASONS,
    }
}
