//! Basic blocks of the flat code.

use crate::code::ops::{Nature, Op};
use crate::code::plans::{ApplyPlan, Code, Entry};
use std::collections::{BTreeMap, BTreeSet};

/// The part of the code that one entry reaches.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub entry: Entry,
    /// Index of the entry.
    pub part: usize,
    /// Start of each basic block, and the number of edges that lead there.
    pub starts: BTreeMap<u32, u32>,
    /// Positions of operations that apply a table.
    pub sites: Vec<u32>,
    /// For the end of an action, or a way from one out of the block: the sites that may have called it.
    pub callers: BTreeMap<u32, BTreeSet<usize>>,
    /// Whether loop passes are counted.
    pub has_loops: bool,
}

/// Plan of the table applied at a position.
pub(super) fn applied(code: &Code, at: u32) -> Option<&ApplyPlan> {
    match code.ops[at as usize] {
        Op::Apply { plan } => Some(&code.applies[plan as usize]),
        Op::ApplyIndirect { plan } => Some(&code.applies[code.indirects[plan as usize].apply as usize]),
        _ => None,
    }
}

/// Whether the operation can raise a parser error.
pub(super) fn raises(mut op: Op) -> bool {
    matches!(op.nature(), Nature::Parses | Nature::Fails)
}

/// Jump target of an operation within its block or action, and whether the next operation may follow too. An
/// operation that raises also leads to the parser's end; the end of an action, to where its table was
/// applied.
fn targets(mut op: Op) -> (Option<u32>, bool) {
    match op.nature() {
        Nature::Jumps { to, always } => (Some(*to), !always),
        Nature::JumpsByState { to } => (Some(*to), true),
        Nature::Ends | Nature::Fails => (None, false),
        Nature::Pure | Nature::Parses | Nature::Applies | Nature::Lasting => (None, true),
    }
}

impl Graph {
    /// The graph of blocks that `entry` reaches.
    pub fn new(code: &Code, part: usize, entry: Entry) -> Graph {
        let mut graph = Graph { entry, part, ..Graph::default() };
        graph.starts.insert(entry.start, 1);
        let mut reached = BTreeSet::new();
        let mut pending = vec![entry.start];
        while let Some(at) = pending.pop() {
            if !reached.insert(at) {
                continue;
            }
            let op = code.ops[at as usize];
            let (target, next) = targets(op);
            graph.has_loops |= matches!(op, Op::Fuel);
            let mut lead = |to: u32| {
                *graph.starts.entry(to).or_default() += 1;
                pending.push(to);
            };
            target.into_iter().for_each(&mut lead);
            if raises(op) {
                lead(entry.parsed);
            }
            if let Some(plan) = applied(code, at) {
                code.actions[plan.table as usize].iter().for_each(|action| lead(action.pc));
                lead(at + 1);
                lead(plan.exit);
                graph.sites.push(at);
            } else if next {
                if target.is_some() {
                    lead(at + 1);
                }
                pending.push(at + 1);
            }
        }
        graph.find_callers(code);
        graph.count_falls(code, &reached);
        graph
    }

    /// Follows each action from its start to its ends.
    fn find_callers(&mut self, code: &Code) {
        let mut callers: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (site, at) in self.sites.iter().enumerate() {
            for action in applied(code, *at).into_iter().flat_map(|plan| &code.actions[plan.table as usize]) {
                callers.entry(action.pc).or_default().insert(site);
            }
        }
        for (action, sites) in callers {
            let (mut seen, mut pending) = (BTreeSet::new(), vec![action]);
            while let Some(at) = pending.pop() {
                if !seen.insert(at) {
                    continue;
                }
                let op = code.ops[at as usize];
                if matches!(op, Op::Ret | Op::Exit) {
                    self.callers.entry(at).or_default().extend(&sites);
                }
                let (target, next) = targets(op);
                pending.extend(target);
                pending.extend(next.then_some(at + 1));
            }
        }
        for (at, sites) in &self.callers {
            for site in sites {
                let back = match code.ops[*at as usize] {
                    Op::Ret => self.sites[*site] + 1,
                    _ => applied(code, self.sites[*site]).map_or(0, |plan| plan.exit),
                };
                *self.starts.entry(back).or_default() += 1;
            }
        }
    }

    /// Counts the edges from operations that fall through.
    fn count_falls(&mut self, code: &Code, reached: &BTreeSet<u32>) {
        for &at in reached {
            let (target, next) = targets(code.ops[at as usize]);
            let falls = next && target.is_none() && applied(code, at).is_none();
            if let Some(count) = self.starts.get_mut(&(at + 1)).filter(|_| falls) {
                *count += 1;
            }
        }
    }
}
