//! Lowers actions that tables list.

use super::stmt::has_return;
use super::storage::{Place, Val};
use super::{Binding, Lower, type_name};
use crate::ast::Direction;
use crate::ir::{Action, ActionId, ActionParam, LValue, Named, Stmt};
use crate::sema::tree::{ActionDef, TActionRef};
use std::rc::Rc;

impl Lower<'_> {
    /// The action that a list refers to from the current block. If the list binds arguments, a variant of its
    /// own.
    pub(super) fn listed_action(&mut self, listed: &TActionRef) -> ActionId {
        let action = &listed.action;
        let home = if action.global { 0 } else { self.block_frame() };
        let shared = listed.bound.is_empty();
        if shared && let Some(id) = self.actions.get(&(home, action.id)) {
            return *id;
        }
        let id = self.lower_action(listed, home);
        if shared {
            self.actions.insert((home, action.id), id);
        }
        self.note_order(action);
        id
    }

    /// Records the order for P4Info: the program's actions first, then those of the block, in order of
    /// declaration.
    fn note_order(&mut self, action: &ActionDef) {
        let frame = self.block_frame();
        let position = self.frames[frame].declared.get(&action.id).copied().unwrap_or(0);
        self.action_order.push((frame, position));
    }

    /// An action that is called. The control plane sees it, but cannot use it.
    pub(super) fn called_action(&mut self, action: &ActionDef) {
        let home = if action.global { 0 } else { self.block_frame() };
        if self.called.insert((home, action.id)) {
            let named = self.named(home, &action.name, &action.annos);
            self.action_spans.push(action.span);
            self.note_order(action);
            self.prog.actions.push(Action { named, params: Vec::new(), body: Vec::new(), in_table: false });
        }
    }

    fn lower_action(&mut self, listed: &TActionRef, home: usize) -> ActionId {
        let action: &Rc<ActionDef> = &listed.action;
        let named = self.named(home, &action.name, &action.annos);
        let frame = self.new_frame(home, named.name.clone(), false);
        let outer_pending = std::mem::take(&mut self.pending);
        let outer_returns = std::mem::take(&mut self.returns);
        let mut params = Vec::new();
        let mut back = Vec::new();
        let (free, directed): (Vec<_>, Vec<_>) =
            action.params.iter().partition(|param| param.dir == Direction::None);
        let body = self.collect(|l| {
            for at in &listed.order {
                let (Some(param), Some(arg)) = (directed.get(*at), listed.bound.get(*at)) else { continue };
                let ty = l.ty(&param.ty);
                let name = format!("{}.{}", named.name, param.name);
                if param.dir == Direction::In
                    && let (Some(v), Some(_)) = (l.value(arg), ty.scalar())
                {
                    let known = crate::sema::tree::TExpr::constant(v, ty, arg.span);
                    l.bind(frame, param.id, Binding::Const(known));
                    continue;
                }
                let place = l.alloc(&ty, &name);
                if param.dir == Direction::Out {
                    l.invalidate(&place);
                } else {
                    let value = l.expr(arg);
                    l.assign(&place, value, arg.span);
                }
                if param.dir != Direction::In
                    && let Some(target) = l.place(arg)
                {
                    let value: Val = l.read(&place);
                    back.push((target, value));
                }
                l.bind(frame, param.id, Binding::Place(place));
            }
            for param in free {
                let ty = l.ty(&param.ty);
                let place = l.alloc(&ty, &format!("{}.{}", named.name, param.name));
                match &place {
                    Place::Leaf(LValue::Var(var), scalar) => params.push(ActionParam {
                        named: Named {
                            name: param.annos.name.clone().unwrap_or_else(|| param.name.clone()),
                            id: param.annos.id,
                            hidden: false,
                            annotations: param.annos.rest.clone(),
                        },
                        var: *var,
                        ty: *scalar,
                        type_name: type_name(&ty),
                    }),
                    _ => l.unsupported(param.span, format!("an action parameter of type `{ty}`")),
                }
                l.bind(frame, param.id, Binding::Place(place));
            }
            l.pending.push(back.clone());
            l.within(frame, |l| {
                if has_return(&action.body) {
                    let stmts = l.collect(|l| l.stmts(&action.body));
                    l.emit(Stmt::Scope(stmts));
                } else {
                    l.stmts(&action.body);
                }
            });
            l.pending.pop();
            for (target, value) in back {
                l.assign(&target, value, action.span);
            }
        });
        self.pending = outer_pending;
        self.returns = outer_returns;
        self.action_spans.push(action.span);
        self.prog.actions.push(Action { named, params, body, in_table: true });
        ActionId(self.prog.actions.len() as u32 - 1)
    }
}
