//! What parsers read.

use crate::ir::{Expr, HeaderRef, Next, NextState, Parser, Program, StateId, Stmt};
use num_traits::ToPrimitive;
use std::collections::BTreeMap;

/// Bits that a parser takes from a packet, on its shortest and its longest way to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bits passed on the shortest way.
    pub shortest: u64,
    /// Bits of headers extracted on the longest way; loops count once.
    pub longest: u64,
}

/// The extent of a parser.
pub(super) fn extent(program: &Program, parser: &Parser) -> Extent {
    let mut known = BTreeMap::new();
    from(program, parser, StateId(0), &mut known).unwrap_or_default()
}

/// What comes from a state on; `None` if no way ends.
fn from(
    program: &Program,
    parser: &Parser,
    id: StateId,
    known: &mut BTreeMap<StateId, Option<Extent>>,
) -> Option<Extent> {
    if let Some(found) = known.get(&id) {
        return *found;
    }
    // A loop goes on until its stack is full.
    known.insert(id, None);
    let state = parser.states.get(id.0 as usize)?;
    let own = own(program, &state.stmts);
    let targets: Vec<NextState> = match &state.next {
        Next::Accept => vec![NextState::Accept],
        Next::Reject => vec![NextState::Reject],
        Next::Goto(id) => vec![NextState::State(*id)],
        Next::Select { cases, .. } => cases.iter().map(|(_, target)| *target).collect(),
    };
    let mut behind: Option<Extent> = None;
    for target in targets {
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
