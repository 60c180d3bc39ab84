//! Executes header operations.

use super::bits;
use super::context::{Cx, misplaced};
use crate::code::ops::*;
use crate::code::plans::*;

/// Parser operations. An error is the number of the error to raise.
#[inline(never)]
pub(super) fn parse(code: &Code, vars: &mut Vars, cx: &mut Cx<'_>, op: Op) -> Result<(), u64> {
    match op {
        Op::Extract { header } => {
            let header = &code.headers[header as usize];
            let bytes = header.fixed_bits as usize / 8;
            if cx.cursor + bytes > cx.len {
                return Err(code.errors.packet_too_short);
            }
            bits::extract(vars, header, cx.bytes, cx.cursor);
            cx.cursor += bytes;
        }
        Op::ExtractNext { stack } => {
            let stack = &code.stacks[stack as usize];
            let index = vars[stack.next as usize];
            extract_at(code, vars, cx, stack, index)?;
            vars[stack.next as usize] = index + 1;
        }
        Op::ExtractAt { stack, index } => {
            extract_at(code, vars, cx, &code.stacks[stack as usize], vars[index as usize])?;
        }
        Op::ExtractVarbit { header, bits } => {
            let bits = vars[bits as usize];
            extract_varbit(code, vars, cx, header, bits)?;
        }
        Op::ExtractNextVarbit { stack, bits } => {
            let stack = &code.stacks[stack as usize];
            let index = vars[stack.next as usize];
            let header = element(stack, index).ok_or(code.errors.stack_out_of_bounds)?;
            let bits = vars[bits as usize];
            extract_varbit(code, vars, cx, header, bits)?;
            vars[stack.next as usize] = index + 1;
        }
        Op::Advance { bits } => {
            let bits = vars[bits as usize];
            if !bits.is_multiple_of(8) {
                return Err(code.errors.parser_invalid_argument);
            }
            if bits / 8 > (cx.len - cx.cursor) as u64 {
                return Err(code.errors.packet_too_short);
            }
            cx.cursor += (bits / 8) as usize;
        }
        op => misplaced(op),
    }
    Ok(())
}

fn element(stack: &StackPlan, index: u64) -> Option<u16> {
    stack.elements.get(usize::try_from(index).ok()?).copied()
}

fn extract_at(
    code: &Code,
    vars: &mut Vars,
    cx: &mut Cx<'_>,
    stack: &StackPlan,
    index: u64,
) -> Result<(), u64> {
    let header = element(stack, index).ok_or(code.errors.stack_out_of_bounds)?;
    let header = &code.headers[header as usize];
    let bytes = header.fixed_bits as usize / 8;
    if cx.cursor + bytes > cx.len {
        return Err(code.errors.packet_too_short);
    }
    if header.has_varbit {
        bits::extract_varbit(vars, header, cx.bytes, cx.cursor, 0);
    } else {
        bits::extract(vars, header, cx.bytes, cx.cursor);
    }
    cx.cursor += bytes;
    Ok(())
}

fn extract_varbit(
    code: &Code,
    vars: &mut Vars,
    cx: &mut Cx<'_>,
    header: u16,
    varbit: u64,
) -> Result<(), u64> {
    let header = &code.headers[header as usize];
    let longest = header.fields.iter().find(|field| field.kind.varbit).map_or(0, |field| field.kind.width);
    // In this order, in which the language's specification defines `extract` with two arguments.
    if !varbit.is_multiple_of(8) {
        return Err(code.errors.parser_invalid_argument);
    }
    let bytes = u64::from(header.fixed_bits / 8) + varbit / 8;
    if bytes > (cx.len - cx.cursor) as u64 {
        return Err(code.errors.packet_too_short);
    }
    if varbit > u64::from(longest) {
        return Err(code.errors.header_too_short);
    }
    let bytes = bytes as usize;
    bits::extract_varbit(vars, header, cx.bytes, cx.cursor, varbit as u32);
    cx.cursor += bytes;
    Ok(())
}

/// All other header operations. An index out of range reads 0 and writes nothing.
#[inline(never)]
pub(super) fn run(code: &Code, vars: &mut Vars, cx: &mut Cx<'_>, op: Op) {
    match op {
        Op::SetValid { header } => {
            let header = &code.headers[header as usize];
            // An invalid header starts with zeros.
            if vars[header.valid as usize] == 0 {
                vars[header.valid as usize..][..header.words as usize].fill(0);
            }
            vars[header.valid as usize] = 1;
            for &sibling in &header.siblings {
                vars[sibling as usize] = 0;
            }
        }
        Op::EmitAt { stack, index } => {
            if let Some(header) = element(&code.stacks[stack as usize], vars[index as usize]) {
                bits::emit(vars, &code.headers[header as usize], cx.out);
            }
        }
        Op::SetValidAt { stack, index, valid } => {
            if let Some(header) = element(&code.stacks[stack as usize], vars[index as usize]) {
                let header = &code.headers[header as usize];
                if valid && vars[header.valid as usize] == 0 {
                    vars[header.valid as usize..][..header.words as usize].fill(0);
                }
                vars[header.valid as usize] = valid.into();
                for &sibling in header.siblings.iter().filter(|_| valid) {
                    vars[sibling as usize] = 0;
                }
            }
        }
        Op::CopyHeader { dst, src } => copy(code, vars, dst, src),
        Op::CopyHeaderAt { plan } => {
            let plan = &code.copies[plan as usize];
            let Some(dst) = resolve(code, vars, plan.dst) else {
                return;
            };
            match resolve(code, vars, plan.src) {
                Some(src) => copy(code, vars, dst, src),
                None => {
                    let header = &code.headers[dst as usize];
                    vars[header.valid as usize..][..header.words as usize].fill(0);
                }
            }
        }
        Op::LoadAt { dst, index, plan } => {
            let plan = &code.indexed[plan as usize];
            let words = plan.words as usize;
            match place(plan, vars[index as usize]) {
                Some(from) => vars.copy_within(from..from + words, dst as usize),
                None => vars[dst as usize..][..words].fill(0),
            }
        }
        Op::StoreAt { a, index, plan } => {
            let plan = &code.indexed[plan as usize];
            if let Some(to) = place(plan, vars[index as usize]) {
                vars.copy_within(a as usize..a as usize + plan.words as usize, to);
            }
        }
        Op::StackShift { stack, count } => shift(code, vars, &code.stacks[stack as usize], count),
        op => misplaced(op),
    }
}

fn place(plan: &IndexedPlan, index: u64) -> Option<usize> {
    (index < u64::from(plan.count)).then(|| plan.base as usize + index as usize * plan.stride as usize)
}

fn resolve(code: &Code, vars: &Vars, at: HeaderAt) -> Option<u16> {
    match at.stack {
        NO_STACK => Some(at.index),
        stack => element(&code.stacks[stack as usize], vars[at.index as usize]),
    }
}

fn copy(code: &Code, vars: &mut Vars, dst: u16, src: u16) {
    let (dst, src) = (&code.headers[dst as usize], &code.headers[src as usize]);
    let from = src.valid as usize;
    vars.copy_within(from..from + src.words as usize, dst.valid as usize);
    if vars[dst.valid as usize] != 0 {
        for &sibling in &dst.siblings {
            vars[sibling as usize] = 0;
        }
    }
}

fn shift(code: &Code, vars: &mut Vars, stack: &StackPlan, count: i32) {
    let size = stack.elements.len();
    let by = (count.unsigned_abs() as usize).min(size);
    let Some(&first) = stack.elements.first() else {
        return;
    };
    let header = &code.headers[first as usize];
    let (base, stride) = (header.valid as usize, header.words as usize);
    let next = vars[stack.next as usize];
    let (moved, gone) = (stride * (size - by), stride * by);
    if count > 0 {
        vars.copy_within(base..base + moved, base + gone);
        vars[base..][..gone].fill(0);
        vars[stack.next as usize] = (next + by as u64).min(size as u64);
    } else {
        vars.copy_within(base + gone..base + gone + moved, base);
        vars[base + moved..][..gone].fill(0);
        vars[stack.next as usize] = next.saturating_sub(by as u64);
    }
}
