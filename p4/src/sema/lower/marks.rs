//! Fields that record whether they are written.
//!
//! The variable of such a field has one bit more than the field. A packet's parser sets that bit first; a store to the
//! field clears it. So the knowledge travels with the value. Reads see the field's own bits. In a deparser, comparisons
//! fail as long as the field is not written.

use super::Lower;
use super::storage::{Place, Val, binary, constant, zero};
use crate::ast::Span;
use crate::ir::{BinOp, Expr, Half, LValue, Next, NextState, State, StateId, Stmt, Task, Ty, VarId};
use num_bigint::BigUint;
use num_traits::One;

impl Lower<'_> {
    /// Widens the variable of such a field.
    pub(super) fn mark(&mut self, pipeline: u32, half: Half, var: VarId) {
        let ty = &mut self.prog.vars[var.0 as usize].ty;
        *ty = Ty::Bit(ty.width() + 1);
        self.marked.push((pipeline, half, var));
    }

    fn is_marked(&self, var: VarId) -> bool {
        self.marked.iter().any(|(_, _, marked)| *marked == var)
    }

    /// The variable at a place, if it is marked.
    fn marked_at(&self, place: &Place) -> Option<VarId> {
        match place {
            Place::Leaf(LValue::Var(var), _) if self.is_marked(*var) => Some(*var),
            _ => None,
        }
    }

    /// The store that makes a field unwritten.
    fn unwritten(&self, var: VarId, span: Span) -> Stmt {
        let ty = self.prog.vars[var.0 as usize].ty;
        let value = Expr::Const { value: BigUint::one() << (ty.width() - 1), ty };
        Stmt::Assign { target: LValue::Var(var), value, span }
    }

    /// The readable part of a variable: its field's own bits.
    pub(super) fn without_mark(&self, value: Val) -> Val {
        match value {
            Val::Leaf(Expr::Var(var), ty) if self.is_marked(var) => {
                let from = Ty::Bit(ty.width() + 1);
                let expr = Box::new(Expr::Var(var));
                Val::Leaf(Expr::Slice { expr, from, hi: ty.width() - 1, lo: 0 }, ty)
            }
            value => value,
        }
    }

    /// The variable of which an expression has just the field's own bits.
    fn marked_in(&self, expr: &Expr) -> Option<VarId> {
        match expr {
            Expr::Slice { expr, from, hi, lo: 0 } if *hi + 2 == from.width() => match **expr {
                Expr::Var(var) if self.is_marked(var) => Some(var),
                _ => None,
            },
            _ => None,
        }
    }

    /// A comparison. In a deparser it fails for a field that is not written.
    pub(super) fn compared(&self, op: BinOp, left: Expr, right: Expr, ty: Ty) -> Expr {
        let marked = match self.role.task {
            Task::Deparse => [self.marked_in(&left), self.marked_in(&right)],
            _ => [None; 2],
        };
        let wide = Ty::Bit(ty.width() + 1);
        match (op, marked, &left, &right) {
            (_, [None, None], ..) => binary(op, left, right, ty),
            // The usual form: the mark is compared along.
            (BinOp::Eq, [Some(var), _], _, Expr::Const { value, .. })
            | (BinOp::Eq, [_, Some(var)], Expr::Const { value, .. }, _) => {
                binary(op, Expr::Var(var), Expr::Const { value: value.clone(), ty: wide }, wide)
            }
            _ => marked.into_iter().flatten().fold(binary(op, left, right, ty), |holds, var| {
                binary(BinOp::And, self.mark_is_clear(var), holds, Ty::Bool)
            }),
        }
    }

    /// Whether a variable's field is written.
    fn mark_is_clear(&self, var: VarId) -> Expr {
        let (from, bit) = (self.prog.vars[var.0 as usize].ty, Ty::Bit(1));
        let at = from.width() - 1;
        let mark = Expr::Slice { expr: Box::new(Expr::Var(var)), from, hi: at, lo: at };
        binary(BinOp::Eq, mark, constant(0u8, bit), bit)
    }

    /// A store to a part of a field writes the field.
    pub(super) fn written_in_part(&mut self, target: &LValue, span: Span) {
        let LValue::Slice { base, .. } = target else { return };
        match &**base {
            LValue::Var(var) if self.is_marked(*var) => {
                let top = self.prog.vars[var.0 as usize].ty.width() - 1;
                let target = LValue::Slice { base: base.clone(), hi: top, lo: top };
                self.emit(Stmt::Assign { target, value: zero(Ty::Bit(1)), span });
            }
            base => self.written_in_part(&base.clone(), span),
        }
    }

    /// Makes a field unwritten; one without a mark becomes 0.
    pub(crate) fn unwrite(&mut self, place: &Place, span: Span) {
        match (self.marked_at(place), place) {
            (Some(var), _) => {
                let store = self.unwritten(var, span);
                self.emit(store);
            }
            (None, Place::Leaf(target, ty)) => {
                self.emit(Stmt::Assign { target: target.clone(), value: zero(*ty), span });
            }
            _ => self.unsupported(span, "making anything but a field invalid"),
        }
    }

    /// Whether a field is written.
    pub(crate) fn is_written(&mut self, place: &Place, span: Span) -> Option<Val> {
        let Some(var) = self.marked_at(place) else {
            self.unsupported(span, "the validity of this field");
            return None;
        };
        Some(Val::Leaf(self.mark_is_clear(var), Ty::Bool))
    }

    /// Has the parser of this half begin with unwritten fields.
    pub(super) fn begin_unwritten(&mut self, pipeline: u32, half: Half, span: Span) {
        let own = self.marked.iter().filter(|(number, of, _)| (*number, *of) == (pipeline, half));
        let stores: Vec<Stmt> = own.map(|(_, _, var)| self.unwritten(*var, span)).collect();
        if stores.is_empty() {
            return;
        }
        let start = StateId(0);
        let returns = self.parser.states.iter().any(|state| match &state.next {
            Next::Goto(to) => *to == start,
            Next::Select { cases, .. } => cases.iter().any(|(_, to)| *to == NextState::State(start)),
            _ => false,
        });
        if let (Some(first), false) = (self.parser.states.first_mut(), returns) {
            first.stmts.splice(0..0, stores);
            return;
        }
        // The program returns to its first state: a state before it.
        let moved = StateId(self.parser.states.len() as u32);
        let entry = State { name: "$entry".into(), stmts: stores, next: Next::Goto(moved) };
        let Some(first) = self.parser.states.first_mut() else { return };
        let first = std::mem::replace(first, entry);
        self.parser.states.push(first);
        for state in self.parser.states.iter_mut().skip(1) {
            match &mut state.next {
                Next::Goto(to) if *to == start => *to = moved,
                Next::Select { cases, .. } => {
                    for (_, to) in cases.iter_mut().filter(|(_, to)| *to == NextState::State(start)) {
                        *to = NextState::State(moved);
                    }
                }
                _ => {}
            }
        }
    }

    /// Statements to run where the parser being lowered accepts.
    pub(crate) fn before_accept(&mut self, span: Span, run: impl FnOnce(&mut Self)) {
        if self.role.task != Task::Parse {
            self.unsupported(span, "this outside of a parser");
            return;
        }
        let stmts = self.collect(run);
        self.at_accept.extend(stmts);
    }

    /// Leads all accepting paths through these statements.
    pub(super) fn end_with_those(&mut self) {
        let stmts = std::mem::take(&mut self.at_accept);
        if stmts.is_empty() {
            return;
        }
        let last = StateId(self.parser.states.len() as u32);
        for state in &mut self.parser.states {
            match &mut state.next {
                next @ Next::Accept => *next = Next::Goto(last),
                Next::Select { cases, .. } => {
                    for (_, to) in cases.iter_mut().filter(|(_, to)| *to == NextState::Accept) {
                        *to = NextState::State(last);
                    }
                }
                _ => {}
            }
        }
        self.parser.states.push(State { name: "$accept".into(), stmts, next: Next::Accept });
    }
}
