//! v1model, with BMv2's meaning.

use super::{Architecture, Fields};
use crate::code::plans::EntryId;
use p4rack_p4::ir::{ExternCall, Intrinsic};

pub(super) struct V1model;

/// Parser, checksum verification and ingress.
pub(crate) const INGRESS: EntryId = 0;
/// Egress.
pub(crate) const EGRESS: EntryId = 1;
/// Checksum computation and deparser.
pub(crate) const DEPARSER: EntryId = 2;

/// Values of [`Intrinsic::Origin`]: v1model's `instance_type`.
pub(crate) mod origin {
    pub const INGRESS_CLONE: u32 = 1;
    pub const EGRESS_CLONE: u32 = 2;
    pub const RECIRCULATED: u32 = 4;
    pub const REPLICATED: u32 = 5;
    pub const RESUBMITTED: u32 = 6;
}

impl Architecture for V1model {
    const NAME: &'static str = "v1model";
    const FIELDS: Fields = Fields {
        implied: &[
            Intrinsic::Destination,
            Intrinsic::MulticastGroup,
            Intrinsic::Priority,
            Intrinsic::ParserError,
        ],
        read: [
            &[Intrinsic::Destination, Intrinsic::MulticastGroup, Intrinsic::Priority],
            &[Intrinsic::Destination],
        ],
        written: &[
            Intrinsic::IngressPort,
            Intrinsic::PacketLength,
            Intrinsic::Origin,
            Intrinsic::IngressTime,
        ],
        queue: &[
            Intrinsic::EnqueueDepth,
            Intrinsic::QueueingTime,
            Intrinsic::DequeueDepth,
            Intrinsic::EgressTime,
        ],
        times: &[Intrinsic::EnqueueTime, Intrinsic::IngressTime],
        travel: true,
    };

    fn trace_name(call: &ExternCall) -> Option<&'static str> {
        Some(match call {
            ExternCall::Drop => "mark_to_drop",
            ExternCall::Clone { .. } => "clone",
            ExternCall::Resubmit { .. } => "resubmit",
            ExternCall::Recirculate { .. } => "recirculate",
            ExternCall::Truncate { .. } => "truncate",
            ExternCall::Digest { .. } => "digest",
            _ => return None,
        })
    }

    fn origin(number: u32) -> &'static str {
        match number {
            0 => "normal",
            origin::INGRESS_CLONE => "clone of ingress",
            origin::EGRESS_CLONE => "clone of egress",
            origin::RECIRCULATED => "recirculated",
            origin::REPLICATED => "replica",
            origin::RESUBMITTED => "resubmitted",
            _ => "other",
        }
    }
}
