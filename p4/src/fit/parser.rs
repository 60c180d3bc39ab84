//! Bits that parsers read.

use super::access::{self, Copies};
use super::rules::{Findings, Rule};
use super::view::View;
use crate::ir::{Expr, HeaderRef, Next, NextState, Parser, Program, StateId, Stmt, VarId};
use num_traits::ToPrimitive;
use std::collections::{BTreeMap, BTreeSet};

/// Bits that a parser takes from a packet, on its shortest and its longest path to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bits passed on the shortest path.
    pub shortest: u64,
    /// Bits of headers extracted on the longest path; loops count once.
    pub longest: u64,
}

/// The extent of a parser.
pub(super) fn extent(program: &Program, parser: &Parser) -> Extent {
    let mut known = BTreeMap::new();
    from(program, parser, StateId(0), &mut known).unwrap_or_default()
}

/// Bits from a state to the end; `None` if no path ends.
fn from(
    program: &Program,
    parser: &Parser,
    id: StateId,
    known: &mut BTreeMap<StateId, Option<Extent>>,
) -> Option<Extent> {
    if let Some(found) = known.get(&id) {
        return *found;
    }
    // A loop continues until its stack is full.
    known.insert(id, None);
    let state = parser.states.get(id.0 as usize)?;
    let own = own(program, &state.stmts);
    let mut behind: Option<Extent> = None;
    for target in targets(&state.next) {
        let found = match target {
            NextState::Accept => Some(Extent::default()),
            NextState::Reject => None,
            NextState::State(next) => from(program, parser, next, known),
        };
        behind = match (behind, found) {
            (Some(a), Some(b)) => {
                Some(Extent { shortest: a.shortest.min(b.shortest), longest: a.longest.max(b.longest) })
            }
            (a, b) => a.or(b),
        };
    }
    let whole =
        behind.map(|b| Extent { shortest: own.shortest + b.shortest, longest: own.longest + b.longest });
    known.insert(id, whole);
    whole
}

/// Possible states after a transition.
fn targets(next: &Next) -> Vec<NextState> {
    match next {
        Next::Accept => vec![NextState::Accept],
        Next::Reject => vec![NextState::Reject],
        Next::Goto(id) => vec![NextState::State(*id)],
        Next::Select { cases, .. } => cases.iter().map(|(_, target)| *target).collect(),
    }
}

/// Refuses states that several others lead to, and that note a value that one of these has read: the chip goes back in
/// a packet as far as its buffer reaches, but by the same distance for all.
pub(super) fn looks_back(program: &View<'_>, parser: &Parser, findings: &mut Findings) {
    let extracted: Vec<BTreeSet<VarId>> =
        parser.states.iter().map(|state| extracted(program, &state.stmts)).collect();
    let mut before: BTreeMap<StateId, BTreeSet<usize>> = BTreeMap::new();
    for (n, state) in parser.states.iter().enumerate() {
        for target in targets(&state.next) {
            if let NextState::State(next) = target {
                before.entry(next).or_default().insert(n);
            }
        }
    }
    for (n, state) in parser.states.iter().enumerate() {
        if before.get(&StateId(n as u32)).is_none_or(|before| before.len() < 2) {
            continue;
        }
        let earlier =
            |var: &VarId| !extracted[n].contains(var) && extracted.iter().any(|one| one.contains(var));
        for stmt in &state.stmts {
            let Stmt::Assign { value, span, .. } = stmt else { continue };
            let mut reads = Vec::new();
            access::read(program, value, &Copies::new(), &mut reads);
            if reads.iter().any(|bits| earlier(&bits.var)) {
                let why = "a state to which several lead notes what an earlier one has read: note it in each of these";
                findings.refuse(Rule::ParseBack, *span, why);
            }
        }
    }
}

/// Headers that statements of a state extract.
fn extracted(program: &View<'_>, stmts: &[Stmt]) -> BTreeSet<VarId> {
    let mut bits = Vec::new();
    for stmt in stmts {
        if let Stmt::Extract { header, .. } = stmt {
            access::header_bits(program, header, &mut bits);
        }
    }
    bits.iter().map(|bits| bits.var).collect()
}

fn own(program: &Program, stmts: &[Stmt]) -> Extent {
    let mut out = Extent::default();
    for stmt in stmts {
        match stmt {
            Stmt::Extract { header, varbit_bits } => {
                let bits = header_bits(program, header);
                out.longest += bits;
                if varbit_bits.is_none() {
                    out.shortest += bits;
                }
            }
            Stmt::Advance(Expr::Const { value, .. }) => out.shortest += value.to_u64().unwrap_or(0),
            _ => {}
        }
    }
    out
}

fn header_bits(program: &Program, header: &HeaderRef) -> u64 {
    let any = match header {
        HeaderRef::Fixed(header) => Some(*header),
        HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
            program.stacks[stack.0 as usize].elements.first().copied()
        }
    };
    any.map_or(0, |header| {
        let fields = &program.headers[header.0 as usize].fields;
        fields.iter().map(|field| u64::from(program.vars[field.var.0 as usize].ty.width())).sum()
    })
}
