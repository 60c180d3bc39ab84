//! TNA: each pipeline has two entries, one for each half. Nothing comes between a control and its deparser, which changes no
//! field that the switch reads.

use super::super::builder::Builder;
use crate::code::ops::Op;
use crate::code::plans::{self as half, Mark};
use crate::error::CompileError;
use p4rack_p4::ir::{Intrinsic, Role, Task};

/// Translates the blocks to entries, pipeline by pipeline.
pub(super) fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError> {
    for pipeline in 0..builder.program.pipelines.len() as u32 {
        pipeline_of(builder, pipeline)?;
    }
    Ok(())
}

/// A packet with an error continues only if the program looks at the error, in a block or in an action.
pub(super) fn settle(builder: &mut Builder<'_>) {
    for (at, pipeline) in std::mem::take(&mut builder.error_checks) {
        if let Op::JumpIfNot { to, .. } = builder.code.ops[at]
            && builder.mentions(pipeline, Intrinsic::ParserError)
        {
            builder.code.ops[at] = Op::Jump { to };
        }
    }
}

/// Translates the blocks of a pipeline.
fn pipeline_of(builder: &mut Builder<'_>, pipeline: u32) -> Result<(), CompileError> {
    let program = builder.program;
    let block = |role: Role| program.block(pipeline, role);
    if let Some(ghost) = block(Role::ingress(Task::Watch)).filter(|ghost| !ghost.stmts().is_empty()) {
        return Err(CompileError::Unsupported {
            object: ghost.name.clone(),
            what: "a ghost control".into(),
            help: "leave it out".into(),
        });
    }
    let stmts = |role: Role| block(role).map_or(&[][..], |block| block.stmts());
    let intrinsics = builder.code.pipelines[pipeline as usize];
    builder.begin(half::INGRESS, true);
    builder.mark(Mark::Ingress);
    let (rejected, checked, parsed) = (builder.label(), builder.label(), builder.label());
    let error = intrinsics[Intrinsic::ParserError];
    let parser = block(Role::ingress(Task::Parse)).and_then(|block| block.parser());
    builder.parser(parser, error, Some(rejected))?;
    builder.jump(checked);
    builder.bind(parsed);
    builder.block(stmts(Role::ingress(Task::Process)))?;
    builder.mark(Mark::Fields);
    builder.block(stmts(Role::ingress(Task::Deparse)))?;
    builder.end();
    builder.bind(checked);
    builder.error_checks.push((builder.code.ops.len(), pipeline));
    builder.emit(Op::JumpIfNot { a: error, to: parsed.0 });
    builder.bind(rejected);
    builder.emit(Op::Reject);
    builder.begin(half::EGRESS, true);
    builder.mark(Mark::Egress);
    let (rejected, parsed) = (builder.label(), builder.label());
    let parser = block(Role::egress(Task::Parse)).and_then(|block| block.parser());
    builder.parser(parser, intrinsics[Intrinsic::EgressParserError], Some(rejected))?;
    builder.jump(parsed);
    builder.bind(rejected);
    builder.emit(Op::Reject);
    builder.bind(parsed);
    builder.block(stmts(Role::egress(Task::Process)))?;
    builder.mark(Mark::Fields);
    builder.mark(Mark::Headers);
    builder.block(stmts(Role::egress(Task::Deparse)))?;
    builder.end();
    Ok(())
}
