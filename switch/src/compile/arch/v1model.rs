//! v1model: ingress with its parser, egress, and the deparser as three entries.

use super::super::builder::Builder;
use crate::code::ops::Op;
use crate::code::plans::{self as half, Mark};
use crate::error::CompileError;
use p4rack_p4::ir::{Intrinsic, Role, Task};

/// Translates the blocks to entries, in the order of their numbers.
pub(super) fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError> {
    let program = builder.program;
    builder.begin(half::INGRESS, true);
    builder.mark(Mark::Ingress);
    let error = builder.code.intrinsics[Intrinsic::ParserError];
    builder.parser(program.parser(), error, None)?;
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
    builder.mark(Mark::Headers);
    builder.block(program.control(Role::egress(Task::Deparse)))?;
    builder.end();
    Ok(())
}

/// Translates dropping a packet.
pub(super) fn drop(builder: &mut Builder<'_>) {
    let intrinsics = builder.code.intrinsics;
    builder.emit(Op::DropPort { dst: intrinsics[Intrinsic::Destination] });
    builder.emit(Op::Zero { dst: intrinsics[Intrinsic::MulticastGroup], n: 1 });
}
