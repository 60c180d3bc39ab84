//! The interpreter: one loop over flat operations. Functions for single operations are in files of their own,
//! which call each other but never the loop.

pub(crate) mod bits;
mod context;
mod externs;
mod headers;
pub(crate) mod indirect;
mod trace;
mod wide;

#[cfg(feature = "native")]
pub(crate) use externs::{count, meter};

use crate::code::ops::*;
use crate::code::plans::*;
use crate::smooth::Smoother;
use crate::state::{InstanceState, State};
use crate::table::TableState;
use crate::words::ones;
use context::misplaced;
pub(crate) use context::{Cx, Exit, FUEL, Requests};

/// Interprets an entry of the code.
pub(crate) fn execute(
    code: &Code,
    state: &mut State,
    vars: &mut Vars,
    cx: &mut Cx<'_>,
    entry: &Entry,
) -> Exit {
    let ops = &code.ops[..];
    let mut fuel = FUEL;
    let mut back = 0usize;
    let mut exit = entry.parsed;
    let mut pc = entry.start as usize;
    macro_rules! f {
        ($slot:expr) => {
            vars[$slot as usize]
        };
    }
    macro_rules! raise {
        ($number:expr) => {{
            pc = raised(entry, vars, $number);
            continue;
        }};
    }
    loop {
        let op = &ops[pc];
        pc += 1;
        match *op {
            Op::Mov { dst, a } => f!(dst) = f!(a),
            Op::Add { dst, a, b, w } => f!(dst) = f!(a).wrapping_add(f!(b)) & ones(w.into()),
            Op::Sub { dst, a, b, w } => f!(dst) = f!(a).wrapping_sub(f!(b)) & ones(w.into()),
            Op::Mul { dst, a, b, w } => f!(dst) = f!(a).wrapping_mul(f!(b)) & ones(w.into()),
            Op::And { dst, a, b } => f!(dst) = f!(a) & f!(b),
            Op::Or { dst, a, b } => f!(dst) = f!(a) | f!(b),
            Op::Xor { dst, a, b } => f!(dst) = f!(a) ^ f!(b),
            Op::Shl { dst, a, b, w } => {
                f!(dst) = if f!(b) < 64 { (f!(a) << f!(b)) & ones(w.into()) } else { 0 };
            }
            Op::Select { dst, c, a, b } => f!(dst) = if f!(c) != 0 { f!(a) } else { f!(b) },
            Op::Shr { dst, a, b } => f!(dst) = if f!(b) < 64 { f!(a) >> f!(b) } else { 0 },
            Op::Eq { dst, a, b } => f!(dst) = u64::from(f!(a) == f!(b)),
            Op::Ne { dst, a, b } => f!(dst) = u64::from(f!(a) != f!(b)),
            Op::Lt { dst, a, b } => f!(dst) = u64::from(f!(a) < f!(b)),
            Op::Le { dst, a, b } => f!(dst) = u64::from(f!(a) <= f!(b)),
            Op::Slt { dst, a, b, w } => f!(dst) = u64::from(signed(f!(a), w) < signed(f!(b), w)),
            Op::Sle { dst, a, b, w } => f!(dst) = u64::from(signed(f!(a), w) <= signed(f!(b), w)),
            Op::Not { dst, a } => f!(dst) = f!(a) ^ 1,
            Op::BitNot { dst, a, w } => f!(dst) = !f!(a) & ones(w.into()),
            Op::Neg { dst, a, w } => f!(dst) = f!(a).wrapping_neg() & ones(w.into()),
            Op::Cut { dst, a, w } => f!(dst) = f!(a) & ones(w.into()),
            Op::SignExtend { dst, a, from, w } => f!(dst) = signed(f!(a), from) as u64 & ones(w.into()),
            Op::Slice { dst, a, lo, w } => f!(dst) = f!(a) >> lo & ones(w.into()),
            Op::Concat { dst, a, b, lo } => f!(dst) = f!(a) << lo | f!(b),
            Op::Insert { dst, a, lo, w } => {
                let mask = ones(w.into()) << lo;
                f!(dst) = f!(dst) & !mask | f!(a) << lo & mask;
            }

            Op::Jump { to } => pc = to as usize,
            Op::JumpIf { a, to } => {
                if f!(a) != 0 {
                    pc = to as usize;
                }
            }
            Op::JumpIfNot { a, to } => {
                if f!(a) == 0 {
                    pc = to as usize;
                }
            }
            Op::JumpEq { a, b, to } => {
                if f!(a) == f!(b) {
                    pc = to as usize;
                }
            }
            Op::JumpNe { a, b, to } => {
                if f!(a) != f!(b) {
                    pc = to as usize;
                }
            }
            Op::JumpLt { a, b, to } => {
                if f!(a) < f!(b) {
                    pc = to as usize;
                }
            }
            Op::JumpLe { a, b, to } => {
                if f!(a) <= f!(b) {
                    pc = to as usize;
                }
            }
            Op::JumpUnlessMember { plan, to } => {
                if !is_member(code, state, vars, plan) {
                    pc = to as usize;
                }
            }
            Op::Fuel => {
                fuel -= 1;
                if fuel == 0 {
                    return Exit::LoopLimit;
                }
            }
            Op::Parsed => {
                if cx.parse_only {
                    return Exit::Done;
                }
            }
            Op::End => return Exit::Done,
            Op::Ret => pc = back,
            Op::Exit => pc = exit as usize,

            Op::Raise { a } => raise!(f!(a)),
            Op::RaiseIfZero { a, error } => {
                if f!(a) == 0 {
                    raise!(f!(error));
                }
            }
            Op::PacketLength { dst } => f!(dst) = cx.len as u64,
            Op::DropPort { dst } => f!(dst) = cx.drop_port.into(),
            Op::Emit { header } => bits::emit(vars, &code.headers[header as usize], cx.out),
            Op::Apply { plan } => {
                if let Some(action) = apply(code, state, vars, cx, plan) {
                    let plan = &code.applies[plan as usize];
                    (back, exit) = (pc, plan.exit);
                    pc = code.actions[plan.table as usize][action as usize].pc as usize;
                }
            }
            Op::ApplyIndirect { plan } => {
                if let Some(action) = indirect::apply(code, state, vars, cx, plan) {
                    let plan = &code.applies[code.indirects[plan as usize].apply as usize];
                    (back, exit) = (pc, plan.exit);
                    pc = code.actions[plan.table as usize][action as usize].pc as usize;
                }
            }
            Op::AssertFailed => return Exit::AssertFailed,
            Op::Reject => return Exit::Rejected,
            _ => {
                if let Err(error) = rare(code, state, vars, cx, *op) {
                    raise!(error);
                }
            }
        }
    }
}

/// Operations that are too rare for the loop, and those that machine code calls. An error is the number that
/// the parser raises.
#[inline(never)]
pub(crate) fn rare(
    code: &Code,
    state: &mut State,
    vars: &mut Vars,
    cx: &mut Cx<'_>,
    op: Op,
) -> Result<(), u64> {
    match op {
        Op::MovN { dst, a, n } => vars.copy_within(a as usize..a as usize + n as usize, dst as usize),
        Op::Zero { dst, n } => vars[dst as usize..][..n as usize].fill(0),
        Op::Wide { plan } => wide::run(&code.wide[plan as usize], vars),
        Op::Extract { .. }
        | Op::ExtractNext { .. }
        | Op::ExtractVarbit { .. }
        | Op::ExtractNextVarbit { .. }
        | Op::ExtractAt { .. }
        | Op::Advance { .. } => headers::parse(code, vars, cx, op)?,
        Op::Lookahead { dst, plan } => look_ahead(code, vars, cx, dst, plan)?,
        Op::Emit { header } => bits::emit(vars, &code.headers[header as usize], cx.out),
        Op::SetValid { .. }
        | Op::EmitAt { .. }
        | Op::SetValidAt { .. }
        | Op::CopyHeader { .. }
        | Op::CopyHeaderAt { .. }
        | Op::LoadAt { .. }
        | Op::StoreAt { .. }
        | Op::StackShift { .. } => headers::run(code, vars, cx, op),
        Op::RegisterRead { instance, index, dst } => {
            externs::register_read(state, vars, instance, index, dst);
        }
        Op::RegisterWrite { instance, index, a } => {
            externs::register_write(state, vars, instance, index, a);
        }
        Op::Count { instance, index } => {
            externs::count(state, instance, vars[index as usize], cx.counted);
        }
        Op::CountLess { instance, index, less } => {
            let bytes = cx.counted.saturating_sub(vars[less as usize]);
            externs::count(state, instance, vars[index as usize], bytes);
        }
        Op::DirectCount { table } => state.pipe.tables[table as usize].count(cx.row, cx.counted),
        Op::DirectCountLess { table, less } => {
            let bytes = cx.counted.saturating_sub(vars[less as usize]);
            state.pipe.tables[table as usize].count(cx.row, bytes);
        }
        Op::DirectMeter { table, dst } => {
            vars[dst as usize] = state.pipe.tables[table as usize].meter(cx.row, cx.counted, 0, cx.now);
        }
        Op::DirectMeterGiven { table, given, less, dst } => {
            let counted = cx.counted.saturating_sub(vars[less as usize]);
            let table = &mut state.pipe.tables[table as usize];
            vars[dst as usize] = table.meter(cx.row, counted, vars[given as usize], cx.now);
        }
        Op::Smooth { instance, index, a, dst } => {
            let (at, rng) = (vars[index as usize], &mut state.rng);
            if let InstanceState::Smoother { drops, cells } = &mut state.pipe.instances[instance as usize] {
                // Beyond the end, as without configuration.
                let cell = usize::try_from(at).ok().and_then(|at| cells.get_mut(at));
                let mut none = Smoother::default();
                let cell = cell.unwrap_or(&mut none);
                vars[dst as usize] = cell.execute(vars[a as usize], *drops, cx.now.0, || rng.next());
            }
        }
        Op::DirectSmooth { table, a, dst } => {
            let (table, rng) = (&mut state.pipe.tables[table as usize], &mut state.rng);
            vars[dst as usize] = table.smooth(cx.row, vars[a as usize], cx.now, || rng.next());
        }
        Op::Approximate { plan, a, dst } => {
            let (curve, width) = &code.curves[plan as usize];
            vars[dst as usize] = curve.at(vars[a as usize]) & (u64::MAX >> (64 - width.clamp(&1, &64)));
        }
        Op::DirectRegisterRead { table, dst, words } => {
            let element = state.pipe.tables[table as usize].element_mut(cx.row);
            let to = &mut vars[dst as usize..][..words as usize];
            to.iter_mut().zip(element).for_each(|(to, word)| *to = *word);
        }
        Op::DirectRegisterWrite { table, a, words } => {
            let element = state.pipe.tables[table as usize].element_mut(cx.row);
            let from = &vars[a as usize..][..words as usize];
            element.iter_mut().zip(from).for_each(|(to, word)| *to = *word);
        }
        Op::CloneWith { plan } => {
            let plan = &code.prefixes[plan as usize];
            externs::gather(&mut state.clone_header, vars, &plan.header, &[]);
            (cx.requests.any, cx.requests.clone) = (true, Some((vars[plan.session as usize], NO_LIST)));
        }
        Op::ResubmitWith { plan } => {
            externs::gather(&mut state.pass_header, vars, &code.prefixes[plan as usize].header, &[]);
            (cx.requests.any, cx.requests.resubmit) = (true, Some(NO_LIST));
        }
        Op::DirectColor { dst } => vars[dst as usize] = cx.color,
        Op::Clone { .. } | Op::Resubmit { .. } | Op::Recirculate { .. } | Op::Truncate { .. } => {
            cx.requests.add(vars, op);
        }
        Op::Trace { mark } => trace::record(code, state, vars, cx, mark),
        Op::Meter { .. }
        | Op::MeterGiven { .. }
        | Op::Hash { .. }
        | Op::Random { .. }
        | Op::Digest { .. }
        | Op::VerifyChecksum { .. }
        | Op::UpdateChecksum { .. }
        | Op::Log { .. } => externs::run(code, state, vars, cx, op),
        // Handled by the loop itself.
        Op::Mov { .. }
        | Op::Add { .. }
        | Op::Sub { .. }
        | Op::Mul { .. }
        | Op::And { .. }
        | Op::Or { .. }
        | Op::Xor { .. }
        | Op::Shl { .. }
        | Op::Shr { .. }
        | Op::Eq { .. }
        | Op::Ne { .. }
        | Op::Lt { .. }
        | Op::Le { .. }
        | Op::Slt { .. }
        | Op::Sle { .. }
        | Op::Select { .. }
        | Op::Not { .. }
        | Op::BitNot { .. }
        | Op::Neg { .. }
        | Op::Cut { .. }
        | Op::SignExtend { .. }
        | Op::Slice { .. }
        | Op::Concat { .. }
        | Op::Insert { .. }
        | Op::Jump { .. }
        | Op::JumpIf { .. }
        | Op::JumpIfNot { .. }
        | Op::JumpEq { .. }
        | Op::JumpNe { .. }
        | Op::JumpLt { .. }
        | Op::JumpLe { .. }
        | Op::JumpUnlessMember { .. }
        | Op::Fuel
        | Op::Parsed
        | Op::End
        | Op::Ret
        | Op::Exit
        | Op::Raise { .. }
        | Op::RaiseIfZero { .. }
        | Op::PacketLength { .. }
        | Op::DropPort { .. }
        | Op::Apply { .. }
        | Op::ApplyIndirect { .. }
        | Op::AssertFailed
        | Op::Reject => misplaced(op),
    }
    Ok(())
}

/// Looks up the key in the variables. Returns the table and the row.
#[inline(always)]
pub(crate) fn look_up<'a>(
    plan: &ApplyPlan,
    state: &'a mut State,
    vars: &Vars,
    cx: &mut Cx<'_>,
) -> (&'a TableState, Option<u32>) {
    let key = &vars[plan.key as usize..][..plan.words as usize];
    let table = &mut state.pipe.tables[plan.table as usize];
    let row = table.lookup(key);
    if table.observed() {
        cx.row = row;
        cx.color = table.observe(row, cx.counted, cx.now).unwrap_or(cx.color);
    }
    (table, row)
}

/// Applies a table and loads the arguments of the action found. Returns the action's position in the table's
/// list.
#[inline(never)]
fn apply(code: &Code, state: &mut State, vars: &mut Vars, cx: &mut Cx<'_>, plan: u32) -> Option<u32> {
    let plan = &code.applies[plan as usize];
    let (table, row) = look_up(plan, state, vars, cx);
    if plan.hit != 0 {
        vars[plan.hit as usize] = u64::from(row.is_some());
    }
    let (action, args) = match row {
        Some(row) => table.action(row),
        None => table.default.as_ref().map(|row| (row.call.action, &row.args[..]))?,
    };
    if plan.action_run != 0 {
        vars[plan.action_run as usize] = action.into();
    }
    for (&dst, &word) in code.actions[plan.table as usize][action as usize].args.iter().zip(args) {
        vars[dst as usize] = word;
    }
    Some(action)
}

/// Reads bits ahead of the cursor. An error is the number to raise.
fn look_ahead(code: &Code, vars: &mut Vars, cx: &Cx<'_>, dst: Slot, plan: u32) -> Result<(), u64> {
    let plan = &code.lookaheads[plan as usize];
    if cx.cursor * 8 + plan.total as usize > cx.len * 8 {
        return Err(vars[plan.error as usize]);
    }
    let bit = cx.cursor * 8 + plan.offset as usize;
    if plan.kind.narrow() {
        vars[dst as usize] = bits::load(cx.bytes, bit, plan.kind.width);
    } else {
        let words = &mut vars[dst as usize..][..plan.kind.limbs()];
        bits::load_wide(cx.bytes, bit, plan.kind.width, words);
    }
    Ok(())
}

/// Whether the key words are a member of a value set.
#[inline(never)]
pub(crate) fn is_member(code: &Code, state: &State, vars: &Vars, plan: u32) -> bool {
    let plan = &code.value_sets[plan as usize];
    state.pipe.value_sets[plan.set as usize].contains(vars, &plan.keys)
}

/// State in which a parser continues after an error.
#[cold]
#[inline(never)]
fn raised(entry: &Entry, vars: &mut Vars, error: u64) -> usize {
    vars[entry.error as usize] = error;
    entry.parsed as usize
}

/// A value of `w` bits as a signed number.
#[inline(always)]
fn signed(value: u64, w: u8) -> i64 {
    let shift = 64 - u32::from(w);
    ((value << shift) as i64) >> shift
}
