//! Bits that parsers read, and fields that they store.

use super::access::{self, Bits, Copies};
use super::rules::{Findings, Rule};
use super::view::View;
use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::ir::{BinOp, Expr, HeaderRef, LValue, Next, NextState, Parser, Program, StateId, Stmt, VarId};
use num_bigint::BigUint;
use num_traits::{One, ToPrimitive, Zero};
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

/// A store into bits of headers or metadata.
struct BitWrite {
    bits: Bits,
    /// The value, if it is constant.
    value: Option<BigUint>,
    /// Place of an assignment; an extraction has none.
    span: Option<Span>,
    /// Whether the program combines both values by OR itself.
    ors: bool,
    /// Branches of this state's `if` statements around it.
    branches: Vec<Branch>,
}

/// A branch of an `if` statement of a parser state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Branch {
    /// Number of the statement in its state.
    statement: usize,
    /// Whether it is the one after `else`.
    is_otherwise: bool,
}

impl BitWrite {
    /// Whether no path through their state passes both.
    fn excludes(&self, other: &BitWrite) -> bool {
        let opposite = |branch: &Branch| Branch { is_otherwise: !branch.is_otherwise, ..*branch };
        self.branches.iter().any(|branch| other.branches.contains(&opposite(branch)))
    }

    /// Whether the chip, which combines this value by OR with `earlier`, ends with this value.
    fn absorbs(&self, earlier: &BitWrite) -> bool {
        let ones = || (BigUint::one() << (self.bits.hi - self.bits.lo + 1)) - 1u32;
        match (&earlier.value, &self.value) {
            (Some(before), _) if before.is_zero() => true,
            (_, Some(value)) if *value == ones() => true,
            (Some(before), Some(value)) => earlier.bits == self.bits && (before | value) == *value,
            _ => false,
        }
    }
}

/// Warns of assignments that another store into the same field precedes on a path, unless an OR of both values is the later
/// one: a chip whose parser combines them by OR has another value then.
pub(super) fn stores_twice(program: &View<'_>, parser: &Parser, findings: &mut Findings) {
    let stores: Vec<Vec<BitWrite>> = parser
        .states
        .iter()
        .map(|state| {
            let mut found = Stores { program, branches: Vec::new(), statements: 0, out: Vec::new() };
            found.collect(&state.stmts);
            found.out
        })
        .collect();
    let before = states_before(parser, |state| !stores[state].is_empty());
    for (n, own) in stores.iter().enumerate() {
        for (at, store) in own.iter().enumerate() {
            let Some(span) = store.span.filter(|_| !store.ors) else { continue };
            let beside = own[..at].iter().filter(|earlier| !earlier.excludes(store));
            let mut earlier = before[n].iter().flat_map(|state| &stores[*state]).chain(beside);
            let kept = earlier.find(|earlier| earlier.bits.overlaps(store.bits) && !store.absorbs(earlier));
            let Some(kept) = kept else { continue };
            let name = &program.vars[store.bits.var.0 as usize].name;
            let warning = Diagnostic::warning(
                span,
                format!("`{name}` may keep bits of an earlier value: this chip's parser combines both by OR"),
            );
            let warning = match kept.span {
                Some(first) => warning.label(first, "the earlier value"),
                None => warning.note("an earlier state extracts it"),
            };
            findings.warn(warning.help("assign it once on each path, or 0 before, or in ingress"));
        }
    }
}

/// For each state, those of the states `of_interest` from which a path leads to it.
fn states_before(parser: &Parser, of_interest: impl Fn(usize) -> bool) -> Vec<BTreeSet<usize>> {
    let mut before = vec![BTreeSet::new(); parser.states.len()];
    let mut grows = true;
    while grows {
        grows = false;
        for (n, state) in parser.states.iter().enumerate() {
            let passed: Vec<usize> = before[n].iter().copied().chain(of_interest(n).then_some(n)).collect();
            for target in targets(&state.next) {
                if let NextState::State(next) = target
                    && let Some(known) = before.get_mut(next.0 as usize)
                {
                    let count = known.len();
                    known.extend(&passed);
                    grows |= known.len() > count;
                }
            }
        }
    }
    before
}

/// Stores of one state into headers and metadata, in order.
struct Stores<'a> {
    program: &'a View<'a>,
    /// Branches around the next statement.
    branches: Vec<Branch>,
    /// Count of `if` statements so far.
    statements: usize,
    out: Vec<BitWrite>,
}

impl Stores<'_> {
    fn collect(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::Assign { target, value, span } => {
                    let mut stored = Vec::new();
                    access::write(self.program, target, &Copies::new(), &mut Vec::new(), &mut stored);
                    let constant = match value {
                        Expr::Const { value, .. } => Some(value.clone()),
                        _ => None,
                    };
                    self.store(stored, constant, Some(*span), is_or_with(value, target));
                }
                Stmt::Extract { header: header @ HeaderRef::Fixed(_), .. } => {
                    let mut stored = Vec::new();
                    access::header_bits(self.program, header, &mut stored);
                    self.store(stored, None, None, false);
                }
                Stmt::Scope(stmts) => self.collect(stmts),
                Stmt::If { then, otherwise, .. } => {
                    let statement = self.statements;
                    self.statements += 1;
                    for (stmts, is_otherwise) in [(then, false), (otherwise, true)] {
                        self.branches.push(Branch { statement, is_otherwise });
                        self.collect(stmts);
                        self.branches.pop();
                    }
                }
                _ => {}
            }
        }
    }

    fn store(&mut self, stored: Vec<Bits>, value: Option<BigUint>, span: Option<Span>, ors: bool) {
        let is_shared = |bits: &Bits| (bits.var.0 as usize) < self.program.shared_vars;
        for bits in stored.into_iter().filter(is_shared) {
            self.out.push(BitWrite {
                bits,
                value: value.clone(),
                span,
                ors,
                branches: self.branches.clone(),
            });
        }
    }
}

/// Whether the value is `target | …`.
fn is_or_with(value: &Expr, target: &LValue) -> bool {
    let is_target =
        |side: &Expr| matches!((side, target), (Expr::Var(side), LValue::Var(target)) if side == target);
    match value {
        Expr::Binary { op: BinOp::BitOr, left, right, .. } => is_target(left) || is_target(right),
        _ => false,
    }
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
