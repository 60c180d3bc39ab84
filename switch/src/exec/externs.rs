//! Executes extern objects and functions.

use super::bits::BitWriter;
use super::context::{Cx, misplaced};
use crate::code::ops::*;
use crate::code::plans::*;
use crate::state::{InstanceState, State};
use crate::words::{number, ones};
use p4rack_wire::ipv4::fold;
use std::fmt::Write as _;

/// Reads a cell of a register; 0 beyond the end.
pub(super) fn register_read(state: &State, vars: &mut Vars, instance: u16, index: Slot, dst: Slot) {
    let InstanceState::Register(register) = &state.pipe.instances[instance as usize] else {
        return;
    };
    let cell = register.cell(vars[index as usize]);
    let to = &mut vars[dst as usize..][..register.words];
    match cell {
        Some(cell) => to.copy_from_slice(&state.pipe.registers[cell]),
        None => to.fill(0),
    }
}

/// Sets a cell of a register; does nothing beyond the end.
pub(super) fn register_write(state: &mut State, vars: &Vars, instance: u16, index: Slot, a: Slot) {
    let InstanceState::Register(register) = &state.pipe.instances[instance as usize] else {
        return;
    };
    if let Some(cell) = register.cell(vars[index as usize]) {
        state.pipe.registers[cell].copy_from_slice(&vars[a as usize..][..register.words]);
    }
}

/// Counts a packet; does nothing beyond the end.
pub(crate) fn count(state: &mut State, instance: u16, index: u64, bytes: u64) {
    if let InstanceState::Counter(cells) = &mut state.pipe.instances[instance as usize]
        && let Some(cell) = usize::try_from(index).ok().and_then(|index| cells.get_mut(index))
    {
        cell.packets += 1;
        cell.bytes += bytes;
    }
}

/// Lets a meter colour the packet; 0 beyond the end.
pub(crate) fn meter(state: &mut State, cx: &Cx<'_>, instance: u16, index: u64) -> u64 {
    meter_given(state, instance, index, (cx.counted, 0), cx.now.0)
}

/// Lets a meter colour a packet of this length, which comes with a colour; it keeps that beyond the end.
fn meter_given(
    state: &mut State,
    instance: u16,
    index: u64,
    (counted, given): (u64, u64),
    now_ns: u64,
) -> u64 {
    match &mut state.pipe.instances[instance as usize] {
        InstanceState::Meter { bytes, adjust_bytes, cells } => {
            let meter = usize::try_from(index).ok().and_then(|index| cells.get_mut(index));
            let counted = counted.saturating_add_signed((*adjust_bytes).into());
            meter.map_or(given, |meter| meter.execute(counted, *bytes, given, now_ns))
        }
        _ => given,
    }
}

/// Operations that are too rare for the main loop.
#[inline(never)]
pub(super) fn run(code: &Code, state: &mut State, vars: &mut Vars, cx: &mut Cx<'_>, op: Op) {
    match op {
        Op::Meter { instance, index, dst } => {
            vars[dst as usize] = meter(state, cx, instance, vars[index as usize]);
        }
        Op::MeterGiven { instance, index, given, less, dst } => {
            let [index, given, less] = [index, given, less].map(|slot| vars[slot as usize]);
            let counted = cx.counted.saturating_sub(less);
            vars[dst as usize] = meter_given(state, instance, index, (counted, given), cx.now.0);
        }
        Op::Hash { plan } => {
            let plan = &code.hashes[plan as usize];
            gather(&mut state.scratch, vars, &plan.data, &[]);
            let rng = &mut state.rng;
            let object = plan.object.and_then(|object| state.pipe.instances.get(usize::from(object)));
            let value = match object {
                Some(InstanceState::Hash(Some(changed))) => changed.hash(&state.scratch, &mut state.parts),
                _ => plan.hasher.hash(&state.scratch, || rng.next()),
            };
            let result = match plan.bounds {
                None => value,
                Some((base, max)) => match (vars[base as usize], vars[max as usize]) {
                    (base, 0) => base,
                    (base, max) => base.wrapping_add(value % max),
                },
            };
            store(vars, plan.dst, plan.kind, result);
        }
        Op::Random { dst, lo, hi } => {
            vars[dst as usize] = state.rng.between(vars[lo as usize], vars[hi as usize]);
        }
        Op::Digest { plan } => state.digests.push(&code.digests[plan as usize], vars, cx.now, state.active),
        Op::VerifyChecksum { plan } => {
            let plan = &code.checksums[plan as usize];
            if checksum(state, vars, cx, plan) != vars[plan.value as usize] {
                vars[plan.wrong as usize] = 1;
            }
        }
        Op::UpdateChecksum { plan } => {
            let plan = &code.checksums[plan as usize];
            vars[plan.value as usize] = checksum(state, vars, cx, plan);
        }
        Op::Log { plan } => log(state, vars, &code.logs[plan as usize]),
        op => misplaced(op),
    }
}

/// Writes a data list as one string of bits.
pub(super) fn gather(scratch: &mut Vec<u8>, vars: &Vars, data: &DataList, payload: &[u8]) {
    scratch.clear();
    let mut writer = BitWriter::new(scratch);
    for (slot, kind) in data {
        writer.put_value(vars, *slot, *kind);
    }
    writer.finish();
    scratch.extend_from_slice(payload);
}

/// The Internet checksum of the bytes that [`gather`] would write, of values of a word each. A sum modulo 2¹⁶ − 1 is the same over
/// longer words, of which there are fewer.
fn sum_of(vars: &Vars, data: &DataList) -> u16 {
    let (mut sum, mut word, mut held) = (0, 0, 0);
    let mut add = |word: u64| sum += (word >> 32) + (word & 0xffff_ffff);
    for (slot, kind) in data {
        let (value, w) = (vars[*slot as usize], kind.width);
        if held + w < 64 {
            word = word << w | value;
            held += w;
            continue;
        }
        let rest = held + w - 64;
        let high = if held == 0 { 0 } else { word << (64 - held) };
        add(high | value >> rest);
        word = value & ones(rest);
        held = rest;
    }
    if held > 0 {
        add(word << (64 - held));
    }
    fold(sum)
}

fn checksum(state: &mut State, vars: &Vars, cx: &Cx<'_>, plan: &ChecksumPlan) -> u64 {
    if plan.is_sum {
        return u64::from(sum_of(vars, &plan.data)) & ones(plan.kind.width);
    }
    let payload = if plan.payload { cx.bytes.get(cx.cursor..cx.len).unwrap_or(&[]) } else { &[] };
    gather(&mut state.scratch, vars, &plan.data, payload);
    plan.hasher.hash(&state.scratch, || 0) & ones(plan.kind.width)
}

fn store(vars: &mut Vars, dst: Slot, kind: ValueType, value: u64) {
    vars[dst as usize..][..kind.limbs()].fill(0);
    vars[dst as usize] = value & ones(kind.width.min(64));
}

/// Formats a message; `{}` is replaced by the next argument.
fn log(state: &mut State, vars: &Vars, plan: &LogPlan) {
    state.log.count += 1;
    if state.log.limit == 0 {
        return;
    }
    let mut text = String::new();
    let mut args = plan.args.iter();
    let mut parts = plan.format.split("{}");
    text.push_str(parts.next().unwrap_or(""));
    for part in parts {
        if let Some((slot, kind)) = args.next() {
            let from = *slot as usize + usize::from(kind.varbit);
            let _ = write!(text, "{}", number(&vars[from..][..kind.limbs()]));
        }
        text.push_str(part);
    }
    if state.log.messages.len() >= state.log.limit {
        state.log.messages.pop_front();
    }
    state.log.messages.push_back(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::csum16;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_of_words_are_those_of_their_bytes(
            fields in proptest::collection::vec((prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0u32..=64), 0..40),
        ) {
            let vars = vec![0; VARS_WORDS].into_boxed_slice();
            let mut vars: Box<Vars> = vars.try_into().expect("of that size");
            let mut data = DataList::new();
            for (slot, (value, width)) in fields.iter().enumerate() {
                vars[slot] = value & ones(*width);
                data.push((slot as Slot, ValueType { width: *width, signed: false, varbit: false }));
            }
            let mut bytes = Vec::new();
            gather(&mut bytes, &vars, &data, &[]);
            prop_assert_eq!(sum_of(&vars, &data), csum16(&bytes));
        }
    }
}
