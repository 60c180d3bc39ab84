//! v1model, with BMv2's meaning.
//!
//! ```text
//!  pass: parser ─ verify ─ ingress ┊ egress ┊ compute ─ deparser     one packet through one entry, wherever it is
//!  arrival: a frame that has come in, to the end of its way if nothing keeps it
//!  queued:  a packet of the pool: queues, further passes
//!  copies:  groups and clones
//! ```

mod arrival;
mod copies;
mod pass;
mod queued;

use super::{Architecture, Fields};
use crate::compile::Builder;
use crate::compile::builder as half;
use crate::compile::ops::Op;
use crate::compile::plans::EntryId;
use crate::error::CompileError;
use crate::pool::PacketId;
use crate::switch::Switch;
use crate::trace::Mark;
use p4rack_p4::ir::{ExternCall, Intrinsic, Role, Task};
use p4rack_wire::Nanos;

pub(super) struct V1model;

/// Parser, checksum verification and ingress.
const INGRESS: EntryId = 0;
/// Egress.
const EGRESS: EntryId = 1;
/// Checksum computation and deparser.
const DEPARSER: EntryId = 2;

/// Values of [`Intrinsic::Origin`]: v1model's `instance_type`.
mod origin {
    pub const INGRESS_CLONE: u32 = 1;
    pub const EGRESS_CLONE: u32 = 2;
    pub const RECIRCULATED: u32 = 4;
    pub const REPLICATED: u32 = 5;
    pub const RESUBMITTED: u32 = 6;
}

impl Architecture for V1model {
    const NAME: &'static str = "v1model";
    const FIELDS: Fields = Fields {
        read: &[
            Intrinsic::Destination,
            Intrinsic::MulticastGroup,
            Intrinsic::Priority,
            Intrinsic::ParserError,
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
    };

    fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError> {
        let program = builder.program;
        builder.begin(half::INGRESS, true);
        builder.mark(Mark::Ingress);
        let error = builder.code.intrinsics[Intrinsic::ParserError];
        builder.parser(program.parser(), error)?;
        builder.block(program.control(Role::ingress(Task::Verify)))?;
        builder.block(program.control(Role::ingress(Task::Process)))?;
        builder.mark(Mark::Fields);
        builder.end();
        builder.begin(half::EGRESS, false);
        builder.mark(Mark::Egress);
        builder.block(program.control(Role::egress(Task::Process)))?;
        builder.mark(Mark::Fields);
        builder.end();
        builder.begin(half::EGRESS, false);
        builder.block(program.control(Role::egress(Task::Compute)))?;
        builder.block(program.control(Role::egress(Task::Deparse)))?;
        builder.end();
        Ok(())
    }

    fn drop(builder: &mut Builder<'_>) {
        let intrinsics = builder.code.intrinsics;
        builder.emit(Op::DropPort { dst: intrinsics[Intrinsic::Destination] });
        builder.emit(Op::Zero { dst: intrinsics[Intrinsic::MulticastGroup], n: 1 });
    }

    fn told(call: &ExternCall) -> Option<&'static str> {
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

    #[inline(always)]
    fn arrive<const THROUGH: bool, const GIVEN: bool>(
        switch: &mut Switch,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        arrival::arrive::<THROUGH, GIVEN>(switch, port, now, out)
    }

    fn ingress(switch: &mut Switch, id: PacketId, now: Nanos) {
        queued::ingress(switch, id, None, now);
    }

    #[inline(always)]
    fn egress(
        switch: &mut Switch,
        id: PacketId,
        at: usize,
        left: u64,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> bool {
        queued::egress(switch, id, at, left, now, out)
    }
}
