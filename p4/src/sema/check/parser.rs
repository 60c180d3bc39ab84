//! Checks parser states, transitions and keysets.

use super::Checker;
use super::scope::Symbol;
use crate::ast::{Expr, ExprKind, Ident, ParserState, SelectCase, Span, Transition};
use crate::diag::Diagnostic;
use crate::sema::tree::{EKind, Keyset, StateDef, StateRef, TExpr, TNext};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::Value;

impl Checker {
    pub(super) fn states(&mut self, states: &[ParserState], parser: &Ident) -> Vec<StateDef> {
        let mut names: Vec<&Ident> = Vec::new();
        for state in states {
            if matches!(state.name.name.as_str(), "accept" | "reject") {
                self.error(state.name.span, format!("`{}` is a state of every parser", state.name.name));
            }
            match names.iter().find(|n| n.name == state.name.name) {
                Some(first) => {
                    let first = first.span;
                    self.report(
                        Diagnostic::error(
                            state.name.span,
                            format!("state `{}` is declared twice", state.name.name),
                        )
                        .label(state.name.span, "again here")
                        .label(first, "first declared here"),
                    );
                }
                None => names.push(&state.name),
            }
        }
        if !names.iter().any(|n| n.name == "start") {
            self.error(parser.span, format!("parser `{}` has no state `start`", parser.name));
        }
        let states: Vec<StateDef> = states.iter().map(|s| self.state(s, states)).collect();
        if states.iter().any(|s| s.name == "start") && !ends(&states) {
            let message = format!("parser `{}` never reaches `accept` or `reject`", parser.name);
            self.error(parser.span, message);
        }
        states
    }

    fn state(&mut self, state: &ParserState, all: &[ParserState]) -> StateDef {
        let annos = self.annos(&state.annotations);
        self.scoped(|c| {
            let body = c.stmts(&state.body);
            let next = match &state.transition {
                None => TNext::Goto(StateRef::Reject),
                Some(Transition::Direct(target)) => TNext::Goto(c.target(target, all)),
                Some(Transition::Select { keys, cases, .. }) => c.select(keys, cases, all),
            };
            StateDef { name: state.name.name.clone(), annos, body, next }
        })
    }

    fn target(&mut self, target: &Ident, all: &[ParserState]) -> StateRef {
        match target.name.as_str() {
            "accept" => StateRef::Accept,
            "reject" => StateRef::Reject,
            name => match all.iter().position(|s| s.name.name == name) {
                Some(index) => StateRef::State(index),
                None => {
                    let names = all.iter().map(|s| s.name.name.as_str()).chain(["accept", "reject"]);
                    let mut d = Diagnostic::error(target.span, format!("unknown state `{name}`"));
                    if let Some(near) = super::scope::nearest(name, names) {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    self.report(d);
                    StateRef::Reject
                }
            },
        }
    }

    fn select(&mut self, keys: &[Expr], cases: &[SelectCase], all: &[ParserState]) -> TNext {
        let keys: Vec<TExpr> = keys
            .iter()
            .map(|k| {
                let key = self.expr(k);
                let key = self.settle(key);
                match key.ty {
                    Type::InfInt => {
                        self.error(key.span, "a key of a select needs a width");
                        TExpr::bad(key.span)
                    }
                    ref ty if !ty.is_poison() && !selectable(ty) => {
                        self.error(key.span, format!("a select cannot be on `{ty}`"));
                        TExpr::bad(key.span)
                    }
                    _ => key,
                }
            })
            .collect();
        let mut done = Vec::new();
        let mut caught_all: Option<Span> = None;
        for case in cases {
            let state = self.target(&case.state, all);
            if let Some(first) = caught_all.take() {
                self.report(
                    Diagnostic::warning(case.span, "this case is never reached")
                        .label(first, "everything is caught here"),
                );
            }
            let sets = self.keysets(
                &keys.iter().map(|k| k.ty.clone()).collect::<Vec<_>>(),
                &case.keysets,
                case.span,
            );
            if let Some(sets) = sets {
                if sets.iter().all(|s| matches!(s, Keyset::Any)) {
                    caught_all = Some(case.span);
                }
                done.push((sets, state));
            }
        }
        TNext::Select { keys, cases: done }
    }

    /// One keyset per key. A single `default` or `_` stands for all keys.
    pub(super) fn keysets(&mut self, types: &[Type], sets: &[Expr], span: Span) -> Option<Vec<Keyset>> {
        if let [only] = sets {
            if matches!(only.kind, ExprKind::Default | ExprKind::DontCare) {
                return Some(types.iter().map(|_| Keyset::Any).collect());
            }
            // A value set matches all keys together.
            if let ExprKind::Name(name) = &only.kind
                && let Some(Symbol::ValueSet(v)) = self.find(name)
            {
                let v = v.clone();
                let (mut wanted, mut given) = (Vec::new(), Vec::new());
                flatten(&v.ty, &mut wanted);
                types.iter().for_each(|t| flatten(t, &mut given));
                let fits = wanted == given;
                if !fits && !types.iter().any(Type::is_poison) {
                    self.error(
                        only.span,
                        format!("value set `{}` holds `{}`, but the keys have other types", v.name, v.ty),
                    );
                    return None;
                }
                return Some(vec![Keyset::ValueSet(v, only.span)]);
            }
        }
        // Brackets around a tuple: a single key with several parts.
        if types.len() == 1 && sets.len() > 1 {
            return self.parts(&types[0], sets, span).map(|p| vec![p]);
        }
        if sets.len() != types.len() {
            let plural = if types.len() == 1 { "" } else { "s" };
            self.error(span, format!("expected {} key{plural}, {} given", types.len(), sets.len()));
            return None;
        }
        let sets: Vec<Option<Keyset>> =
            types.iter().zip(sets).map(|(ty, set)| self.keyset(ty, set)).collect();
        sets.into_iter().collect()
    }

    fn parts(&mut self, ty: &Type, sets: &[Expr], span: Span) -> Option<Keyset> {
        let types: Vec<Type> = match ty {
            Type::Tuple(items) => items.to_vec(),
            Type::Struct(s) if s.kind == StructKind::Struct => {
                s.fields.iter().map(|f| f.ty.clone()).collect()
            }
            Type::Poison => return None,
            _ => {
                self.error(span, format!("expected one key of type `{ty}`, {} given", sets.len()));
                return None;
            }
        };
        if types.len() != sets.len() {
            self.error(span, format!("expected {} values, {} given", types.len(), sets.len()));
            return None;
        }
        let parts: Vec<Option<Keyset>> =
            types.iter().zip(sets).map(|(ty, set)| self.keyset(ty, set)).collect();
        Some(Keyset::Parts(parts.into_iter().collect::<Option<_>>()?))
    }

    fn keyset(&mut self, ty: &Type, set: &Expr) -> Option<Keyset> {
        // Masks and ranges are constants; how far a value may vary is for the target to say.
        let varies = self.place == super::Context::Parser
            && !matches!(set.kind, ExprKind::Mask { .. } | ExprKind::Range { .. });
        let side = |c: &mut Checker, e: &Expr| {
            let typed = c.expr(e);
            // Masks and ranges over a serializable enum are written with numbers.
            let want = match (&typed.ty, ty) {
                (Type::InfInt | Type::Bit(_) | Type::Int(_), Type::Enum(en)) if en.repr.is_some() => {
                    ty.underlying()
                }
                _ => ty,
            };
            let typed = c.coerce(typed, &want.clone());
            if !typed.is_bad() && !varies && !c.known_at_instantiation(&typed) {
                c.error(e.span, "a value to match must be known at compile time");
                return None;
            }
            (!typed.is_bad()).then_some(typed)
        };
        match &set.kind {
            ExprKind::Default | ExprKind::DontCare => Some(Keyset::Any),
            ExprKind::Mask { value, mask } => {
                let (value, mask) = (side(self, value), side(self, mask));
                self.wants_bits(ty, set.span).then_some(())?;
                Some(Keyset::Mask(value?, mask?))
            }
            ExprKind::Range { lo, hi } => {
                let (lo, hi) = (side(self, lo)?, side(self, hi)?);
                self.wants_bits(ty, set.span).then_some(())?;
                if let (Some(Value::Int(a)), Some(Value::Int(b))) = (lo.value(), hi.value())
                    && a > b
                {
                    self.warn(set.span, "this range is empty");
                }
                Some(Keyset::Range(lo, hi))
            }
            // Brackets around the only key.
            ExprKind::List { items, .. } if items.len() == 1 && ty.scalar().is_some() => {
                self.keyset(ty, &items[0])
            }
            ExprKind::List { items, .. } if !matches!(ty, Type::Poison) => self.parts(ty, items, set.span),
            ExprKind::Name(name) if matches!(self.find(name), Some(Symbol::ValueSet(_))) => {
                let Some(Symbol::ValueSet(v)) = self.find(name).cloned() else { return None };
                if v.ty != *ty && !ty.is_poison() {
                    self.error(
                        set.span,
                        format!("value set `{}` holds `{}`, the key is `{ty}`", v.name, v.ty),
                    );
                    return None;
                }
                Some(Keyset::ValueSet(v, set.span))
            }
            _ => {
                let value = side(self, set)?;
                if let EKind::List(_) = value.kind {
                    return Some(parts_of(&value));
                }
                Some(Keyset::Value(value))
            }
        }
    }

    fn wants_bits(&mut self, ty: &Type, span: Span) -> bool {
        let fine = ty.underlying().is_bits() || ty.is_poison();
        if !fine {
            self.error(span, format!("masks and ranges are for numbers, the key is `{ty}`"));
        }
        fine
    }
}

/// Whether some path from `start` leads out of the parser.
fn ends(states: &[StateDef]) -> bool {
    let mut seen = vec![false; states.len()];
    let mut todo: Vec<usize> = states.iter().position(|s| s.name == "start").into_iter().collect();
    while let Some(at) = todo.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let targets: Vec<StateRef> = match &states[at].next {
            TNext::Goto(target) => vec![*target],
            // A select without a matching case raises an error, which ends the parser too.
            TNext::Select { cases, .. } => {
                let all = cases.iter().any(|c| c.0.iter().all(|k| matches!(k, Keyset::Any)));
                let none = (!all).then_some(StateRef::Reject);
                cases.iter().map(|c| c.1).chain(none).collect()
            }
        };
        for target in targets {
            match target {
                StateRef::State(next) => todo.push(next),
                StateRef::Accept | StateRef::Reject => return true,
            }
        }
    }
    false
}

/// A constant list as a keyset.
fn parts_of(value: &TExpr) -> Keyset {
    match &value.kind {
        EKind::List(items) => Keyset::Parts(items.iter().map(parts_of).collect()),
        _ => Keyset::Value(value.clone()),
    }
}

/// The scalars of structs and tuples.
fn flatten(ty: &Type, out: &mut Vec<Type>) {
    match ty {
        Type::Tuple(items) => items.iter().for_each(|t| flatten(t, out)),
        Type::Struct(s) if s.kind == StructKind::Struct => s.fields.iter().for_each(|f| flatten(&f.ty, out)),
        other => out.push(other.clone()),
    }
}

fn selectable(ty: &Type) -> bool {
    match ty {
        Type::Tuple(items) => items.iter().all(selectable),
        Type::Varbit(_) => false,
        other => other.scalar().is_some(),
    }
}
