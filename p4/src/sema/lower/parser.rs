//! Lowers parser states. Sub-parsers are inlined where they are applied.

use super::stmt::any;
use super::storage::{Val, scalars};
use super::{BlockInst, Lower};
use crate::ast::Span;
use crate::ir::{Expr, Matcher, Next, NextState, State, StateId, Ty};
use crate::sema::tree::{
    BlockDef, Callee, EKind, Item, Keyset, SKind, StateDef, StateRef, TExpr, TNext, TStmt,
};
use crate::sema::types::{StructKind, Type};
use num_bigint::BigUint;

/// Maximum states after inlining. Real programs stay far below.
const MAX_STATES: usize = 1 << 16;

impl Lower<'_> {
    /// Lowers all states of a parser in the current frame and returns the first. `accept` leads to `exit`.
    pub(super) fn states(&mut self, def: &BlockDef, exit: NextState, span: Span) -> NextState {
        if self.parser.states.len() + def.states.len() > MAX_STATES {
            if !self.exhausted() {
                self.error(span, format!("more than {MAX_STATES} parser states"));
            }
            self.budget = 0;
            return NextState::Reject;
        }
        // `start` comes first, so that the main parser's `start` is state 0.
        let start = def.states.iter().position(|s| s.name == "start").unwrap_or(0);
        // If the program can return to `start`, a state before it initialises the variables.
        let again = |state: &StateDef| match &state.next {
            TNext::Goto(target) => *target == StateRef::State(start),
            TNext::Select { cases, .. } => cases.iter().any(|c| c.1 == StateRef::State(start)),
        };
        let variables = def.items.iter().any(|i| matches!(i, Item::Var(..)));
        let entry = (variables && def.states.iter().any(again)).then(|| {
            let name = format!("{}.$entry", self.frames[self.frame].path);
            self.reserve(name)
        });
        let mut ids = vec![StateId(0); def.states.len()];
        let order: Vec<usize> =
            std::iter::once(start).chain((0..def.states.len()).filter(|i| *i != start)).collect();
        for index in &order {
            if let Some(state) = def.states.get(*index) {
                let name = self.full_name(self.frame, &state.name, &state.annos);
                ids[*index] = self.reserve(name);
            }
        }
        for index in order {
            let Some(state) = def.states.get(index) else { continue };
            let outer = (self.state.replace(ids[index]), std::mem::take(&mut self.out), self.depth);
            self.depth = 0;
            if let (true, Some(entry)) = (index == start, entry) {
                self.state = Some(entry);
                self.initialise(def);
                self.close(Next::Goto(ids[index]));
                self.state = Some(ids[index]);
            } else if index == start {
                self.initialise(def);
            }
            self.stmts(&state.body);
            let next = self.next(&state.next, &ids, exit);
            self.close(next);
            (self.state, self.out, self.depth) = outer;
        }
        entry.or(ids.get(start).copied()).map_or(NextState::Reject, NextState::State)
    }

    fn reserve(&mut self, name: String) -> StateId {
        self.parser.states.push(State { name, stmts: Vec::new(), next: Next::Reject });
        StateId(self.parser.states.len() as u32 - 1)
    }

    /// Ends the state being filled.
    fn close(&mut self, next: Next) {
        let stmts = std::mem::take(&mut self.out);
        if let Some(id) = self.state {
            let state = &mut self.parser.states[id.0 as usize];
            state.stmts = stmts;
            state.next = next;
        }
    }

    /// Inlines a sub-parser. When it accepts, the enclosing state continues in a new state.
    pub(super) fn inline_parser(&mut self, inst: &BlockInst, def: &BlockDef, span: Span) {
        let Some(state) = self.state else { return };
        if self.depth > 0 {
            self.error(span, "a parser cannot be applied inside a loop or `switch` of another");
            return;
        }
        let name = format!("{}$", self.parser.states[state.0 as usize].name);
        let after = self.reserve(name);
        let before = std::mem::take(&mut self.out);
        let entry = self.within(inst.frame, |l| l.states(def, NextState::State(after), span));
        self.out = before;
        let next = match entry {
            NextState::State(id) => Next::Goto(id),
            NextState::Accept => Next::Accept,
            NextState::Reject => Next::Reject,
        };
        self.close(next);
        self.state = Some(after);
    }

    /// Whether statements apply a sub-parser, which splits their state.
    pub(super) fn splits_state(&self, stmts: &[TStmt]) -> bool {
        let applies = |s: &TStmt| match &s.kind {
            SKind::Call(TExpr { kind: EKind::Call(call), .. }) => {
                matches!(call.target, Callee::Apply(_) | Callee::DirectApply(_))
            }
            _ => false,
        };
        self.state.is_some() && self.depth == 0 && any(stmts, &mut |s| applies(s))
    }

    /// An `if` around sub-parsers: one state per branch, and one for the statements behind.
    pub(super) fn branch_states(&mut self, cond: Expr, then: &[TStmt], otherwise: &[TStmt]) {
        let Some(state) = self.state else { return };
        let name = self.parser.states[state.0 as usize].name.clone();
        let [first, second, after] = ["then", "else", ""].map(|part| self.reserve(format!("{name}${part}")));
        let cases = vec![
            (vec![Matcher::Exact(BigUint::from(1u8))], NextState::State(first)),
            (vec![Matcher::Any], NextState::State(second)),
        ];
        self.close(Next::Select { keys: vec![(cond, Ty::Bool)], cases });
        for (id, stmts) in [(first, then), (second, otherwise)] {
            self.state = Some(id);
            self.stmts(stmts);
            self.close(Next::Goto(after));
        }
        self.state = Some(after);
    }

    fn next(&mut self, next: &TNext, ids: &[StateId], exit: NextState) -> Next {
        let target = |state: &StateRef| match state {
            StateRef::Accept => exit,
            StateRef::Reject => NextState::Reject,
            StateRef::State(index) => ids.get(*index).map_or(NextState::Reject, |id| NextState::State(*id)),
        };
        match next {
            TNext::Goto(state) => match target(state) {
                NextState::Accept => Next::Accept,
                NextState::Reject => Next::Reject,
                NextState::State(id) => Next::Goto(id),
            },
            TNext::Select { keys, cases } => {
                let refs: Vec<&TExpr> = keys.iter().collect();
                let values = self.exprs(&refs);
                let mut flat = Vec::new();
                values.iter().for_each(|v| scalars(self, v, &mut flat));
                let types: Vec<Type> = keys.iter().map(|k| self.ty(&k.ty)).collect();
                let mut done = Vec::new();
                for (sets, state) in cases {
                    let mut matchers = Vec::new();
                    for (i, set) in sets.iter().enumerate() {
                        let ty = types.get(i).cloned().unwrap_or(Type::Poison);
                        self.matchers(set, &ty, &mut matchers);
                    }
                    matchers.resize(flat.len(), Matcher::Any);
                    done.push((matchers, target(state)));
                }
                Next::Select { keys: flat, cases: done }
            }
        }
    }

    /// A keyset as one matcher per scalar.
    pub(super) fn matchers(&mut self, set: &Keyset, ty: &Type, out: &mut Vec<Matcher>) {
        match set {
            Keyset::Any => out.extend((0..scalar_count(ty)).map(|_| Matcher::Any)),
            Keyset::Value(e) => match self.bits(e, ty) {
                Some(value) => out.push(Matcher::Exact(value)),
                None => {
                    // A structured constant, part by part.
                    let value = self.expr(e);
                    let mut parts = Vec::new();
                    scalars(self, &value, &mut parts);
                    for (part, _) in parts {
                        match part {
                            crate::ir::Expr::Const { value, .. } => out.push(Matcher::Exact(value)),
                            _ => self.error(e.span, "a value to match must be known at compile time"),
                        }
                    }
                    if matches!(value, Val::Opaque) {
                        self.error(e.span, "a value to match must be known at compile time");
                    }
                }
            },
            Keyset::Mask(value, mask) => {
                if let (Some(value), Some(mask)) = (self.bits(value, ty), self.bits(mask, ty)) {
                    let value = value & &mask;
                    out.push(Matcher::Mask { value, mask });
                }
            }
            Keyset::Range(lo, hi) => {
                if let (Some(lo), Some(hi)) = (self.bits(lo, ty), self.bits(hi, ty)) {
                    out.push(Matcher::Range { lo, hi });
                }
            }
            Keyset::Parts(parts) => {
                let types: Vec<Type> = match ty {
                    Type::Tuple(items) => items.to_vec(),
                    Type::Struct(s) => s.fields.iter().map(|f| f.ty.clone()).collect(),
                    other => vec![other.clone()],
                };
                for (part, ty) in parts.iter().zip(&types) {
                    self.matchers(part, ty, out);
                }
            }
            Keyset::ValueSet(v, span) => {
                let frame = self.block_frame();
                match self.value_sets.get(&(frame, v.id)).copied() {
                    Some(id) => {
                        out.push(Matcher::ValueSet(id));
                        let fields = self.prog.value_sets[id.0 as usize].fields.len();
                        out.extend((1..fields).map(|_| Matcher::Any));
                    }
                    None => self.error(*span, format!("value set `{}` cannot be used here", v.name)),
                }
            }
        }
    }

    /// The bit pattern of a scalar constant.
    pub(super) fn bits(&self, e: &TExpr, ty: &Type) -> Option<BigUint> {
        let width = ty.scalar().map(Ty::width)?;
        self.value(e).map(|v| v.bits(width))
    }
}

fn scalar_count(ty: &Type) -> usize {
    match ty {
        Type::Tuple(items) => items.iter().map(scalar_count).sum(),
        Type::Struct(s) if s.kind == StructKind::Struct => s.fields.iter().map(|f| scalar_count(&f.ty)).sum(),
        _ => 1,
    }
}
