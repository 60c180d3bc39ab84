//! Lowers statements.

use super::storage::{Place, Val, constant, scalars};
use super::{Binding, Lower};
use crate::ast::Span;
use crate::ir::{BinOp, Expr, LValue, Stmt, Ty};
use crate::sema::tree::{Callee, EKind, LocalId, SKind, TExpr, TStmt};
use crate::sema::types::Type;
use num_bigint::BigUint;

impl Lower<'_> {
    pub(super) fn stmts(&mut self, stmts: &[TStmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn nested(&mut self, stmts: &[TStmt]) -> Vec<Stmt> {
        self.collect(|l| l.stmts(stmts))
    }

    fn stmt(&mut self, stmt: &TStmt) {
        if self.exhausted() {
            return;
        }
        let span = stmt.span;
        self.at = span;
        match &stmt.kind {
            SKind::Assign(target, value) => self.assign_stmt(target, value, span),
            SKind::Call(call) => {
                let value = self.expr(call);
                let mut parts = Vec::new();
                scalars(self, &value, &mut parts);
                // A lookahead may fail even if its value is not used.
                if let Some((value @ Expr::Lookahead { .. }, ty)) = parts.into_iter().next() {
                    let name = self.temp_name("unused");
                    let target = LValue::Var(self.new_var(name, ty));
                    self.emit(Stmt::Assign { target, value, span });
                }
            }
            SKind::If(cond, then, otherwise) => {
                let (cond, span) = (self.scalar(cond), cond.span);
                if let Expr::Const { value, .. } = &cond {
                    // Unreachable statements are not elaborated: the control plane does not see them.
                    return self.stmts(if *value == BigUint::ZERO { otherwise } else { then });
                }
                if self.splits_state(then) || self.splits_state(otherwise) {
                    return self.branch_states(cond, then, otherwise);
                }
                let (then, otherwise) = (self.nested(then), self.nested(otherwise));
                self.emit(Stmt::If { cond, then, otherwise, span });
            }
            SKind::Block(stmts) => self.stmts(stmts),
            SKind::Exit => {
                for list in self.pending.clone().into_iter().rev() {
                    for (place, value) in list {
                        self.assign(&place, value, span);
                    }
                }
                self.emit(Stmt::Exit);
            }
            SKind::Return(value) => {
                if let (Some(value), Some(place)) = (value, self.returns.last().cloned().flatten()) {
                    let value = self.expr(value);
                    self.assign(&place, value, span);
                }
                self.emit(Stmt::Return);
            }
            SKind::Switch(e, cases, default) => {
                let Val::Leaf(expr, ty) = self.expr(e) else { return };
                let mut done = Vec::new();
                for (labels, body) in cases {
                    let values =
                        labels.iter().filter_map(|l| self.value(l)).map(|v| v.bits(ty.width())).collect();
                    done.push((values, self.nested(body)));
                }
                let default = self.nested(default);
                self.emit(Stmt::Switch { expr, ty, cases: done, default });
            }
            SKind::SwitchAction(e, cases, default) => {
                let Val::Leaf(expr, ty) = self.expr(e) else { return };
                let mut done = Vec::new();
                for (labels, body) in cases {
                    let values = labels.iter().map(|l| BigUint::from(*l)).collect();
                    done.push((values, self.nested(body)));
                }
                let default = self.nested(default);
                self.emit(Stmt::Switch { expr, ty, cases: done, default });
            }
            SKind::For(init, cond, update, body) => {
                self.stmts(init);
                self.loop_stmt(cond, update, body);
            }
            SKind::ForIn(id, ty, over, body) => self.for_in(*id, ty, over, body, span),
            SKind::Break => self.emit(Stmt::Break),
            SKind::Continue => self.emit(Stmt::Continue),
            SKind::Var(id, ty, init) => {
                let ty = self.ty(ty);
                if matches!(&ty, Type::Tuple(items) if items.contains(&Type::InfInt)) {
                    self.unsupported(span, format!("a variable of type `{ty}`"));
                }
                self.variable(*id, &ty, init.as_ref(), span);
            }
            SKind::Inst(inst) => self.instance(inst, &[]),
        }
    }

    fn assign_stmt(&mut self, target: &TExpr, value: &TExpr, span: Span) {
        // Effects of the value come after the indices on the left are evaluated.
        let Some(place) = self.place(target) else {
            return;
        };
        let outer = self.held.take();
        if target.has_effects() {
            self.held = Some((target.span, place.clone()));
        }
        let value = self.expr(value);
        self.held = outer;
        self.assign(&place, value, span);
    }

    /// Executes a declaration: allocates, initialises, invalidates headers.
    pub(super) fn variable(&mut self, id: LocalId, ty: &Type, init: Option<&TExpr>, span: Span) {
        let place = match self.frames[self.frame].bound.get(&id) {
            Some(Binding::Place(place)) => place.clone(),
            _ => self.declare(id, ty),
        };
        match init {
            Some(init) => {
                let value = self.expr(init);
                self.assign(&place, value, span);
            }
            None => self.invalidate(&place),
        }
    }

    /// Allocates a local and binds it in the current frame.
    pub(super) fn declare(&mut self, id: LocalId, ty: &Type) -> Place {
        let name = self.checked.locals.get(id.0 as usize).map_or("", |l| l.name.as_str());
        let path = &self.frames[self.frame].path;
        let name = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let place = self.alloc(ty, &name);
        self.bind(self.frame, id, Binding::Place(place.clone()));
        place
    }

    fn loop_stmt(&mut self, cond: &TExpr, update: &[TStmt], body: &[TStmt]) {
        if cond.has_effects() {
            // The condition's own statements run before each test.
            let name = self.temp_name("t");
            let var = self.new_var(name, Ty::Bool);
            let test = |l: &mut Self| {
                let value = l.scalar(cond);
                l.emit(Stmt::Assign { target: LValue::Var(var), value, span: cond.span });
            };
            test(self);
            let body = self.nested(body);
            let update = self.collect(|l| {
                l.stmts(update);
                test(l);
            });
            self.emit(Stmt::Loop { cond: Expr::Var(var), body, update });
            return;
        }
        let cond = self.scalar(cond);
        let (body, update) = (self.nested(body), self.nested(update));
        self.emit(Stmt::Loop { cond, body, update });
    }

    fn for_in(&mut self, id: LocalId, ty: &Type, over: &TExpr, body: &[TStmt], span: Span) {
        let ty = self.ty(ty);
        let place = match self.find(id) {
            Some(Binding::Place(place)) => place.clone(),
            _ => self.declare(id, &ty),
        };
        if let EKind::Range(lo, hi) = &over.kind {
            let (Place::Leaf(target, scalar), [Val::Leaf(lo, _), Val::Leaf(hi, _)]) =
                (&place, &self.exprs(&[lo, hi])[..])
            else {
                return;
            };
            let scalar = *scalar;
            let (hi_name, at_name, more_name) =
                (self.temp_name("hi"), self.temp_name("at"), self.temp_name("more"));
            let (last, at) = (self.new_var(hi_name, scalar), self.new_var(at_name, scalar));
            let more = self.new_var(more_name, Ty::Bool);
            let set = |target: LValue, value: Expr| Stmt::Assign { target, value, span };
            let compare = |op| super::storage::binary(op, Expr::Var(at), Expr::Var(last), scalar);
            self.emit(set(LValue::Var(last), hi.clone()));
            self.emit(set(LValue::Var(at), lo.clone()));
            self.emit(set(LValue::Var(more), compare(BinOp::Le)));
            let target = target.clone();
            let body = self.collect(|l| {
                l.emit(set(target, Expr::Var(at)));
                l.stmts(body);
            });
            // The last value may be the type's maximum, so compare before incrementing.
            let next = super::storage::binary(BinOp::Add, Expr::Var(at), constant(1u8, scalar), scalar);
            let update = vec![set(LValue::Var(more), compare(BinOp::Lt)), set(LValue::Var(at), next)];
            self.emit(Stmt::Loop { cond: Expr::Var(more), body, update });
            return;
        }
        let mut length = None;
        let values = match self.expr(over) {
            Val::Elements(values) => values.into_iter().map(|v| self.save(v, span)).collect(),
            list @ Val::List(_) => {
                // A copy: the rounds stay the same when the body writes to the variable.
                let Val::List(list) = self.save(list, span) else { return };
                let (values, of_them) = self.list_elements(list);
                length = Some(Expr::Var(of_them));
                values
            }
            Val::Stack(s, h) => {
                let elements = self.prog.stacks[s.0 as usize].elements.clone();
                elements.into_iter().map(|e| Val::Header(crate::ir::HeaderRef::Fixed(e), h.clone())).collect()
            }
            Val::Unions(stacks, ty) => self.unions(&stacks, &ty),
            _ => {
                self.unsupported(over.span, format!("a loop over `{}` here", over.ty));
                return;
            }
        };
        // Unrolled into a switch on the position, inside a loop for `break` and `continue` to refer to.
        let name = self.temp_name("at");
        let ty = Ty::Bit(32);
        let at = self.new_var(name, ty);
        self.emit(Stmt::Assign { target: LValue::Var(at), value: constant(0u8, ty), span });
        let count = length.unwrap_or_else(|| constant(BigUint::from(values.len()), ty));
        let body = self.collect(|l| {
            let mut cases = Vec::new();
            for (i, value) in values.into_iter().enumerate() {
                let stmts = l.collect(|l| l.assign(&place, value, span));
                cases.push((vec![BigUint::from(i)], stmts));
            }
            l.emit(Stmt::Switch { expr: Expr::Var(at), ty, cases, default: vec![] });
            l.stmts(body);
        });
        let next = super::storage::binary(BinOp::Add, Expr::Var(at), constant(1u8, ty), ty);
        let update = vec![Stmt::Assign { target: LValue::Var(at), value: next, span }];
        let cond = super::storage::binary(BinOp::Lt, Expr::Var(at), count, ty);
        self.emit(Stmt::Loop { cond, body, update });
    }
}

/// Whether `return` occurs. Calls do not count: they have scopes of their own.
pub(super) fn has_return(stmts: &[TStmt]) -> bool {
    any(stmts, &mut |s| matches!(s.kind, SKind::Return(_)))
}

/// Whether any statement, nested ones included, fulfils `found`.
pub(super) fn any(stmts: &[TStmt], found: &mut dyn FnMut(&TStmt) -> bool) -> bool {
    stmts.iter().any(|s| {
        found(s)
            || match &s.kind {
                SKind::If(_, a, b) => any(a, found) || any(b, found),
                SKind::Block(a) | SKind::ForIn(_, _, _, a) => any(a, found),
                SKind::Switch(_, cases, d) => cases.iter().any(|c| any(&c.1, found)) || any(d, found),
                SKind::SwitchAction(_, cases, d) => cases.iter().any(|c| any(&c.1, found)) || any(d, found),
                SKind::For(i, _, u, b) => any(i, found) || any(u, found) || any(b, found),
                _ => false,
            }
    })
}

/// The arguments of each application of an instance.
pub(super) fn applications<'t>(stmts: &'t [TStmt], id: LocalId, out: &mut Vec<&'t [Option<TExpr>]>) {
    for s in stmts {
        match &s.kind {
            SKind::Call(TExpr { kind: EKind::Call(call), .. }) => match &call.target {
                Callee::Apply(TExpr { kind: EKind::Local(inst), .. }) if *inst == id => out.push(&call.args),
                _ => {}
            },
            SKind::If(_, a, b) => {
                applications(a, id, out);
                applications(b, id, out);
            }
            SKind::Block(a) | SKind::ForIn(_, _, _, a) => applications(a, id, out),
            SKind::Switch(_, cases, d) => {
                cases.iter().for_each(|c| applications(&c.1, id, out));
                applications(d, id, out);
            }
            SKind::SwitchAction(_, cases, d) => {
                cases.iter().for_each(|c| applications(&c.1, id, out));
                applications(d, id, out);
            }
            SKind::For(i, _, u, b) => {
                applications(i, id, out);
                applications(u, id, out);
                applications(b, id, out);
            }
            _ => {}
        }
    }
}
