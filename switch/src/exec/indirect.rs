//! Tables with an action profile: an entry refers to a member, a group or a one-shot set; a hash picks one of
//! several.

use super::context::Cx;
use super::externs::gather;
use crate::code::ops::Vars;
use crate::code::plans::Code;
use crate::hash::Hasher;
use crate::objects::{Indirect, Pick};
use crate::profile::pick;
use crate::state::{InstanceState, State};
use p4rack_p4::ir::{ActionCall, HashAlgorithm};

/// Applies a table and loads the arguments of the action found. Returns the action's position in the table's
/// list.
#[inline(never)]
pub(crate) fn apply(
    code: &Code,
    state: &mut State,
    vars: &mut Vars,
    cx: &mut Cx<'_>,
    plan: u32,
) -> Option<u32> {
    let indirect = &code.indirects[plan as usize];
    let plan = &code.applies[indirect.apply as usize];
    let table = &mut state.pipe.tables[plan.table as usize];
    let row = table.lookup(&vars[plan.key as usize..][..plan.words as usize]);
    if table.observed() {
        cx.row = row;
        cx.color = table.observe(row, cx.counted, cx.now).unwrap_or(cx.color);
    }
    if plan.hit != 0 {
        vars[plan.hit as usize] = u64::from(row.is_some());
    }
    gather(&mut state.scratch, vars, &indirect.selector, &[]);
    let (scratch, rng) = (&state.scratch, &mut state.rng);
    let mut hash = |hasher: &Hasher| hasher.hash(scratch, || rng.next());
    let table = &state.pipe.tables[plan.table as usize];
    let actions = &code.actions[plan.table as usize];
    let mut load = |action: u32, args: &mut dyn Iterator<Item = u64>| {
        let found = &actions[action as usize];
        for (&dst, word) in found.args.iter().zip(args) {
            vars[dst as usize] = word;
        }
        if plan.action_run != 0 {
            vars[plan.action_run as usize] = action.into();
        }
        Some(action)
    };
    let reference = match (row, &table.default) {
        (Some(row), _) => table.indirect(row)?,
        (None, Some(default)) => match &default.indirect {
            Some(reference) => reference,
            None => return load(default.call.action, &mut default.args.iter().copied()),
        },
        (None, None) => return None,
    };
    match reference {
        Indirect::Set(set) => {
            let number = match (set.pick, indirect.hasher.algorithm) {
                (Pick::Random, _) => hash(&HashAlgorithm::Random.into()),
                (Pick::Hash, HashAlgorithm::Random) => hash(&HashAlgorithm::Crc32.into()),
                _ => hash(&indirect.hasher),
            };
            let ActionCall { action, args } = pick(&set.actions, &state.down, number)?;
            // Each argument has as many words as its parameter.
            let widths = &actions[*action as usize].words;
            let words = args.iter().zip(widths).flat_map(|(value, &count)| {
                value.iter_u64_digits().chain(std::iter::repeat(0)).take(count as usize)
            });
            load(*action, &mut words.into_iter())
        }
        reference => {
            let InstanceState::Profile(profile) = &state.pipe.instances[indirect.instance as usize] else {
                return None;
            };
            let member = profile.find(reference, || hash(&indirect.hasher))?;
            load(member.call.action, &mut member.args.iter().copied())
        }
    }
}
