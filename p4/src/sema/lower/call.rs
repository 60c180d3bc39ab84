//! Lowers calls. Functions, actions, parsers and controls are inlined; copy-in and copy-out become
//! assignments.

use super::stmt::has_return;
use super::storage::{Place, Val, zero};
use super::{Binding, Lower};
use crate::ast::{Direction, Span};
use crate::diag::Diagnostic;
use crate::ir::{Expr, LValue, StackId, Stmt, Ty, VarId};
use crate::sema::tree::{Callee, EKind, FnDef, Param, TCall, TExpr, TStmt};
use crate::sema::types::{Subst, Type};
use std::rc::Rc;

/// Maximum depth of calls. Real programs stay far below.
const MAX_INLINING: u32 = 128;

impl Lower<'_> {
    pub(super) fn call(&mut self, call: &TCall, e: &TExpr) -> Val {
        let span = e.span;
        match &call.target {
            Callee::Function(def) => self.function(def, call, span),
            Callee::Extern(def) => {
                let evaluated = self.evaluated(&def.params, call);
                self.extern_function(def, evaluated.as_ref().unwrap_or(call), span)
            }
            Callee::Method(object, def) => {
                let evaluated = self.evaluated(&def.params, call);
                self.extern_method(object, def, evaluated.as_ref().unwrap_or(call), span)
            }
            Callee::Action(action) => {
                let parent = if action.global { 0 } else { self.block_frame() };
                let path = self.inner_path(&action.name);
                let body = |l: &mut Self| {
                    l.inline(parent, path, &action.params, call, Subst::new(), &action.body, None, span);
                };
                // An action called by another action has become part of it.
                if self.frames[self.frame].is_block {
                    self.called_action(action);
                    let stmts = self.collect(body);
                    self.emit(Stmt::Scope(stmts));
                } else {
                    body(self);
                }
                Val::Opaque
            }
            Callee::Apply(instance) => {
                self.apply_instance(instance, call, span);
                Val::Opaque
            }
            Callee::DirectApply(inst) => {
                self.instance(inst, &[&call.args]);
                let object = TExpr::new(EKind::Local(inst.id), inst.ty.clone(), span);
                self.apply_instance(&object, call, span);
                Val::Opaque
            }
            Callee::Table(_) => {
                self.apply_table(e, None, None);
                Val::Opaque
            }
            Callee::IsValid(header) => match self.expr(header) {
                Val::Header(h, _) => Val::Leaf(self.is_valid(&h), Ty::Bool),
                Val::Union(members, _) => {
                    let valid = members.iter().map(|m| self.is_valid(m));
                    let any =
                        valid.reduce(|a, b| super::storage::binary(crate::ir::BinOp::Or, a, b, Ty::Bool));
                    Val::Leaf(any.unwrap_or(zero(Ty::Bool)), Ty::Bool)
                }
                Val::HeaderLit(parts, _) => {
                    Val::Leaf(super::storage::constant(u8::from(parts.is_some()), Ty::Bool), Ty::Bool)
                }
                _ => Val::Leaf(zero(Ty::Bool), Ty::Bool),
            },
            Callee::SetValid(header, valid) => {
                if let Some(Place::Header(header, _)) = self.place(header) {
                    self.emit(Stmt::SetValid { header, valid: *valid });
                }
                Val::Opaque
            }
            Callee::Shift(stack, count) => {
                match self.place(stack) {
                    Some(Place::Stack(stack, _)) => self.emit(Stmt::StackShift { stack, count: *count }),
                    Some(Place::Unions(stacks, _)) => self.shift_unions(&stacks, *count, span),
                    _ => {}
                }
                Val::Opaque
            }
        }
    }

    /// Shifts the stacks of all members. The `nextIndex` that they share moves once.
    fn shift_unions(&mut self, stacks: &[StackId], count: i32, span: Span) {
        let Some(first) = stacks.first() else { return };
        let next = self.prog.stacks[first.0 as usize].next;
        let name = self.temp_name("next");
        let before = self.new_var(name, Ty::Bit(32));
        self.emit(Stmt::Assign { target: LValue::Var(before), value: Expr::Var(next), span });
        for stack in stacks {
            self.emit(Stmt::Assign { target: LValue::Var(next), value: Expr::Var(before), span });
            self.emit(Stmt::StackShift { stack: *stack, count });
        }
    }

    fn inner_path(&self, name: &str) -> String {
        match self.frames[self.frame].path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    fn function(&mut self, def: &Rc<FnDef>, call: &TCall, span: Span) -> Val {
        let Some(body) = &def.body else { return Val::Opaque };
        let subst: Subst =
            def.type_params.iter().map(|v| v.id).zip(call.type_args.iter().map(|t| self.ty(t))).collect();
        let ret = def.ret.subst(&subst);
        let result = if matches!(ret, Type::Void) {
            None
        } else {
            let name = self.temp_name(&def.name);
            Some(self.alloc(&ret, &name))
        };
        let path = self.inner_path(&def.name);
        self.inline(0, path, &def.params, call, subst, body, result.clone(), span);
        result.map_or(Val::Opaque, |place| self.read(&place))
    }

    /// Copies in, runs the body in a frame of its own, copies out.
    #[allow(clippy::too_many_arguments)]
    fn inline(
        &mut self,
        parent: usize,
        path: String,
        params: &[Rc<Param>],
        call: &TCall,
        subst: Subst,
        body: &[TStmt],
        returns: Option<Place>,
        span: Span,
    ) {
        if self.exhausted() || !self.may_nest(span) {
            return;
        }
        let frame = self.new_frame(parent, path, false);
        self.frames[frame].subst = subst.clone();
        let mut back = Vec::new();
        for (param, arg) in call.in_order(params) {
            let ty = self.ty(&param.ty.subst(&subst));
            let name = self.frames[frame].path.clone() + "." + &param.name;
            // Arguments are evaluated at the call, in order; values that a later argument could change are
            // saved.
            match param.dir {
                Direction::In | Direction::None => {
                    let Some(arg) = arg else { continue };
                    if self.extern_binding(frame, param, arg) {
                        continue;
                    }
                    // A constant needs no storage, because `in` parameters cannot be written.
                    if let (Some(v), Some(_)) = (self.value(arg), ty.scalar()) {
                        let known = TExpr::constant(v, ty, arg.span);
                        self.bind(frame, param.id, Binding::Const(known));
                        continue;
                    }
                    let value = self.expr(arg);
                    let place = self.alloc(&ty, &name);
                    self.assign(&place, value, arg.span);
                    self.bind(frame, param.id, Binding::Place(place));
                }
                Direction::Out | Direction::InOut => {
                    let place = self.alloc(&ty, &name);
                    match arg {
                        Some(arg) => {
                            let Some(target) = self.place(arg) else { continue };
                            if param.dir == Direction::InOut {
                                let value = self.read(&target);
                                self.assign(&place, value, arg.span);
                            } else {
                                self.invalidate(&place);
                            }
                            back.push((target, self.read(&place)));
                        }
                        None => self.invalidate(&place),
                    }
                    self.bind(frame, param.id, Binding::Place(place));
                }
            }
        }
        self.inlined(frame, body, back.clone(), returns);
        for (target, value) in back {
            self.assign(&target, value, span);
        }
    }

    /// The statements of a callee in its frame, its copies back, and the place of its result.
    pub(super) fn inlined(
        &mut self,
        frame: usize,
        body: &[TStmt],
        back: Vec<(Place, Val)>,
        returns: Option<Place>,
    ) {
        self.pending.push(back);
        self.returns.push(returns);
        self.inlining += 1;
        self.within(frame, |l| l.body(body));
        self.inlining -= 1;
        self.returns.pop();
        self.pending.pop();
    }

    /// Reports calls or instances that are nested too deeply.
    pub(super) fn may_nest(&mut self, span: Span) -> bool {
        let fine = self.inlining < MAX_INLINING;
        if !fine {
            self.error(span, format!("more than {MAX_INLINING} nested calls or instances"));
        }
        fine
    }

    /// The statements of a callee, in a scope of their own if they may return.
    pub(super) fn body(&mut self, body: &[TStmt]) {
        if has_return(body) {
            let stmts = self.collect(|l| l.stmts(body));
            self.emit(Stmt::Scope(stmts));
        } else {
            self.stmts(body);
        }
    }

    /// Binds an extern object or packet to a parameter.
    fn extern_binding(&mut self, frame: usize, param: &Param, arg: &TExpr) -> bool {
        if !matches!(param.ty, Type::Extern(_) | Type::Block(_)) {
            return false;
        }
        let binding = match &arg.kind {
            EKind::Local(id) => self.find(*id).cloned().unwrap_or(Binding::Opaque),
            _ => Binding::Opaque,
        };
        self.bind(frame, param.id, binding);
        true
    }

    /// Applies a parser or control. Its parameters already stand for the arguments or for copies.
    fn apply_instance(&mut self, instance: &TExpr, call: &TCall, span: Span) {
        let EKind::Local(id) = &instance.kind else {
            self.unsupported(span, "applying an instance created in place");
            return;
        };
        let Some(Binding::Block(index)) = self.find(*id).cloned() else {
            self.unsupported(span, "applying this instance");
            return;
        };
        if self.exhausted() || !self.may_nest(span) {
            return;
        }
        let inst = self.blocks[index].clone();
        let Some(def) = inst.ty.body.clone() else { return };
        let mut back = Vec::new();
        for at in &call.order {
            let (Some(param), Some(arg), Some(alias)) =
                (inst.ty.params.get(*at), call.args.get(*at), inst.alias.get(*at))
            else {
                continue;
            };
            let Some(Binding::Place(place)) = self.frames[inst.frame].bound.get(&param.id).cloned() else {
                continue;
            };
            if *alias {
                if param.dir == Direction::Out {
                    self.invalidate(&place);
                }
                continue;
            }
            let Some(arg) = arg else {
                self.invalidate(&place);
                continue;
            };
            match param.dir {
                Direction::In | Direction::None => {
                    let value = self.expr(arg);
                    self.assign(&place, value, arg.span);
                }
                Direction::InOut => {
                    let Some(target) = self.place(arg) else { continue };
                    let value = self.read(&target);
                    self.assign(&place, value, arg.span);
                    back.push((target, self.read(&place)));
                }
                Direction::Out => {
                    let Some(target) = self.place(arg) else { continue };
                    self.invalidate(&place);
                    back.push((target, self.read(&place)));
                }
            }
        }
        self.pending.push(back.clone());
        self.returns.push(None);
        self.inlining += 1;
        match inst.ty.kind {
            crate::sema::types::BlockKind::Parser => self.inline_parser(&inst, &def, span),
            _ => self.within(inst.frame, |l| {
                l.initialise(&def);
                l.body(&def.apply);
            }),
        }
        self.inlining -= 1;
        self.returns.pop();
        self.pending.pop();
        for (target, value) in back {
            self.assign(&target, value, span);
        }
    }

    /// `t.apply()`
    pub(super) fn apply_table(&mut self, e: &TExpr, hit: Option<VarId>, action_run: Option<VarId>) {
        let EKind::Call(call) = &e.kind else { return };
        let Callee::Table(table) = &call.target else { return };
        let frame = self.block_frame();
        let Some(id) = self.tables.get(&(frame, table.id)).copied() else {
            self.error(e.span, format!("table `{}` cannot be applied here", table.name));
            return;
        };
        if let Some(prelude) = self.table_prelude.get(&id).cloned() {
            prelude.into_iter().for_each(|s| self.emit(s));
        }
        let copies_wait = self.pending.iter().any(|p| !p.is_empty());
        if copies_wait && self.may_exit(id) {
            self.diags.push(
                Diagnostic::error(
                    e.span,
                    "an action of this table may `exit`, while arguments wait to be copied back",
                )
                .help("apply the control with the same arguments everywhere, or exit after the apply"),
            );
        }
        self.emit(Stmt::Apply { table: id, hit, action_run, span: e.span });
    }

    fn may_exit(&self, id: crate::ir::TableId) -> bool {
        let table = &self.prog.tables[id.0 as usize];
        table.actions.iter().any(|a| exits(&self.prog.actions[a.action.0 as usize].body))
    }

    /// The scalar behind an argument that is written to.
    pub(crate) fn out_leaf(&mut self, arg: Option<&TExpr>, ty: &Type, span: Span) -> Option<(LValue, Ty)> {
        match arg {
            Some(arg) => match self.place(arg) {
                Some(Place::Leaf(lvalue, ty)) => Some((lvalue, ty)),
                // Through an index: written to a temporary, which is copied after the call.
                Some(target @ Place::Choice(..)) => {
                    let name = self.temp_name("out");
                    let place = self.alloc(&arg.ty.clone(), &name);
                    let value = self.read(&place);
                    self.copy_out.push((target, value));
                    match place {
                        Place::Leaf(lvalue, ty) => Some((lvalue, ty)),
                        _ => None,
                    }
                }
                _ => {
                    self.unsupported(span, format!("a result of type `{}`", arg.ty));
                    None
                }
            },
            None => {
                let name = self.temp_name("unused");
                match self.alloc(ty, &name) {
                    Place::Leaf(lvalue, ty) => Some((lvalue, ty)),
                    _ => None,
                }
            }
        }
    }
}

fn exits(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match s {
        Stmt::Exit => true,
        Stmt::If { then, otherwise, .. } => exits(then) || exits(otherwise),
        Stmt::Switch { cases, default, .. } => cases.iter().any(|c| exits(&c.1)) || exits(default),
        Stmt::Scope(s) => exits(s),
        Stmt::Loop { body, update, .. } => exits(body) || exits(update),
        _ => false,
    })
}
