//! Evaluates arguments of extern calls in the order in which they are written.

use super::{Binding, Lower};
use crate::ast::Direction;
use crate::sema::tree::{EKind, LocalId, Param, TCall, TExpr};
use crate::sema::types::Type;
use std::rc::Rc;

impl Lower<'_> {
    /// A call whose arguments are evaluated: each stands for a temporary or a place. An architecture may read these in
    /// any order. `None` if no other order differs from the written one.
    pub(super) fn evaluated(&mut self, params: &[Rc<Param>], call: &TCall) -> Option<TCall> {
        let varies = |arg: &&TExpr| self.value(arg).is_none();
        let varying = call.args.iter().flatten().filter(varies).count();
        if varying < 2 || !call.args.iter().flatten().any(TExpr::has_effects) {
            return None;
        }
        let mut done = call.clone();
        for at in &call.order {
            let (Some(param), Some(Some(arg))) = (params.get(*at), call.args.get(*at)) else { continue };
            done.args[*at] = Some(self.evaluated_arg(param, arg));
        }
        Some(done)
    }

    fn evaluated_arg(&mut self, param: &Param, arg: &TExpr) -> TExpr {
        let known = matches!(arg.ty, Type::Extern(_) | Type::Block(_)) || self.value(arg).is_some();
        let place = match param.dir {
            _ if known => None,
            Direction::Out | Direction::InOut => self.place(arg),
            Direction::In | Direction::None => {
                let value = self.expr(arg);
                let ty = self.ty(&arg.ty);
                let name = self.temp_name("arg");
                let place = self.alloc(&ty, &name);
                self.assign(&place, value, arg.span);
                Some(place)
            }
        };
        let Some(place) = place else { return arg.clone() };
        // Behind the program's own locals, and not used before.
        self.temps += 1;
        let id = LocalId(self.checked.locals.len() as u32 + self.temps);
        self.bind(self.frame, id, Binding::Place(place));
        TExpr::new(EKind::Local(id), arg.ty.clone(), arg.span)
    }
}
