//! Lowers bodies of abstract methods: callable, with storage of their own.

use super::storage::{Place, scalars};
use super::{Binding, Lower};
use crate::ir::{Expr, Method, MethodParam, VarId};
use crate::sema::tree::{FnDef, InstDecl, TStmt};
use crate::sema::types::Type;

impl Lower<'_> {
    /// Elaborates the `{ … }` after an instance, in the current frame.
    pub(super) fn implemented(&mut self, inst: &InstDecl) {
        for inner in &inst.implemented.instances {
            self.instance(inner, &[]);
        }
        for def in &inst.implemented.methods {
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
        // What surrounds the declaration does not surround the call.
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

    fn vars_of(&self, place: &Place) -> Vec<VarId> {
        let mut parts = Vec::new();
        scalars(self, &self.read(place), &mut parts);
        let var = |(part, _)| if let Expr::Var(var) = part { Some(var) } else { None };
        parts.into_iter().filter_map(var).collect()
    }
}
