//! How large a value can be, by the operations that make it: an index that cannot leave a register needs no check.

use cranelift_codegen::ir::{DataFlowGraph, InstructionData, Opcode, Value};

/// Operations that are followed back from a value.
const MAX_DEPTH: u32 = 8;

/// The largest number that a value can be.
pub(super) fn ceiling(dfg: &DataFlowGraph, value: Value) -> u64 {
    within(dfg, value, MAX_DEPTH)
}

fn number(dfg: &DataFlowGraph, value: Value) -> Option<u64> {
    match dfg.insts[dfg.value_def(value).inst()?] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits() as u64),
        _ => None,
    }
}

fn within(dfg: &DataFlowGraph, value: Value, depth: u32) -> u64 {
    let width = dfg.value_type(value).bits();
    let all = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let (Some(made), true) = (dfg.value_def(value).inst(), depth > 0) else { return all };
    let of = |value| within(dfg, value, depth - 1);
    // All bits up to the highest one of either.
    let bits = |a: u64| a.checked_ilog2().map_or(0, |high| u64::MAX >> (63 - high));
    let most = match dfg.insts[made] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => imm.bits() as u64,
        InstructionData::Unary { opcode: Opcode::Uextend, arg } => of(arg),
        InstructionData::Load { opcode: Opcode::Uload8, .. } => 0xff,
        InstructionData::Binary { opcode, args: [a, b] } => match (opcode, number(dfg, b)) {
            (Opcode::Band, _) => of(a).min(of(b)),
            (Opcode::Bor | Opcode::Bxor, _) => bits(of(a) | of(b)),
            (Opcode::Ushr, Some(by)) if by < u64::from(width) => of(a) >> by,
            (Opcode::Ishl, Some(by)) if by < u64::from(width) && of(a).leading_zeros() >= by as u32 => {
                of(a) << by
            }
            _ => all,
        },
        _ => all,
    };
    most.min(all)
}
