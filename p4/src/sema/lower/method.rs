//! Lowers bodies of abstract methods: in place of their calls, or callable, with storage of their own.

use super::storage::{Place, scalars};
use super::{Binding, Lower, Object};
use crate::ast::Span;
use crate::ir::{Expr, Method, MethodParam, VarId};
use crate::sema::tree::{FnDef, InstDecl, TStmt};
use crate::sema::types::Type;
use std::rc::Rc;

impl Lower<'_> {
    /// Elaborates the `{ … }` after an instance, in the current frame. The bodies of an object that the
    /// architecture does not know (`foreign`) are kept; those of others are inlined at their calls.
    pub(super) fn implemented(&mut self, inst: &InstDecl, foreign: bool) {
        for inner in &inst.implemented.instances {
            self.instance(inner, &[]);
        }
        for def in inst.implemented.methods.iter().filter(|_| foreign) {
            if let Some(body) = &def.body
                && self.may_nest(inst.span)
            {
                self.method(inst, def, body);
            }
        }
    }

    fn method(&mut self, inst: &InstDecl, def: &FnDef, body: &[TStmt]) {
        let object = self.full_name(self.frame, &inst.name, &inst.annos);
        let frame = self.new_frame(self.frame, format!("{object}.{}", def.name), false);
        let mut params = Vec::new();
        for param in &def.params {
            let ty = self.ty(&param.ty);
            let place = self.alloc(&ty, &format!("{object}.{}.{}", def.name, param.name));
            params.push(MethodParam { direction: param.dir, vars: self.vars_of(&place) });
            self.bind(frame, param.id, Binding::Place(place));
        }
        let ret = self.ty(&def.ret);
        let returns =
            (!matches!(ret, Type::Void)).then(|| self.alloc(&ret, &format!("{object}.{}.$result", def.name)));
        let result = returns.as_ref().map_or_else(Vec::new, |place| self.vars_of(place));
        // The surroundings of the declaration do not surround the call.
        let pending = std::mem::take(&mut self.pending);
        let state = self.state.take();
        self.returns.push(returns);
        self.inlining += 1;
        let body = self.collect(|l| l.within(frame, |l| l.body(body)));
        self.inlining -= 1;
        self.returns.pop();
        (self.pending, self.state) = (pending, state);
        self.prog.methods.push(Method { object, name: def.name.clone(), params, result, body });
    }

    /// The abstract method of this name that an object implements.
    pub(crate) fn body_of(&self, object: &Object, name: &str) -> Option<Rc<FnDef>> {
        object.inst.implemented.methods.iter().find(|def| def.name == name).cloned()
    }

    /// Inlines the body of such a method. Its parameters stand for these places.
    pub(crate) fn inline_body(&mut self, object: &Object, def: &FnDef, places: &[Place], span: Span) {
        let Some(body) = &def.body else { return };
        if self.exhausted() || !self.may_nest(span) {
            return;
        }
        let path = self.full_name(object.frame, &object.inst.name, &object.inst.annos);
        let frame = self.new_frame(object.frame, format!("{path}.{}", def.name), false);
        for (param, place) in def.params.iter().zip(places) {
            self.bind(frame, param.id, Binding::Place(place.clone()));
        }
        self.inlined(frame, body, Vec::new(), None);
    }

    fn vars_of(&self, place: &Place) -> Vec<VarId> {
        let mut parts = Vec::new();
        scalars(self, &self.read(place), &mut parts);
        let var = |(part, _)| if let Expr::Var(var) = part { Some(var) } else { None };
        parts.into_iter().filter_map(var).collect()
    }
}
