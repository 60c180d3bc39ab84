//! Plain switching, which every program contains, with or without protocols beside it.

use crate::rack::{DropReason, reason};

/// Table of the hosts' source addresses, by port.
pub const SOURCE_GUARD: &str = "RackIngress.source_guard";
/// Action of [`SOURCE_GUARD`].
pub const ACCEPT_SOURCE: &str = "RackIngress.accept_source";
/// Table of destinations.
pub const L2_FORWARD: &str = "RackIngress.l2_forward";
/// Action of [`L2_FORWARD`].
pub const FORWARD: &str = "RackIngress.forward";
/// Counter of dropped frames, by reason.
pub const DROPS: &str = "RackIngress.drops";
/// Meter of the ports' best effort, in bytes.
pub const BEST_EFFORT_METER: &str = "RackIngress.best_effort_meter";

/// Reasons for which every program drops frames.
pub(crate) const DROP_REASONS: [DropReason; 5] = [
    reason("malformed", "cut short within a header"),
    reason("spoofed", "source address is not the port's own host's"),
    reason("unknown_destination", "no host has this address"),
    reason("same_port", "the destination is the sender"),
    reason("best_effort_meter", "more best effort than the port may send"),
];
