//! Checks arguments: their order, their types, and the type parameters that they imply.

use super::Checker;
use crate::ast::{Arg, Direction, Span};
use crate::diag::Diagnostic;
use crate::sema::tree::{Param, TExpr};
use crate::sema::types::{Subst, Type, TypeVar};
use std::rc::Rc;

impl Checker {
    /// Types the arguments and orders them like the parameters.
    pub(super) fn args(
        &mut self,
        what: &str,
        params: &[Rc<Param>],
        args: &[Arg],
        span: Span,
    ) -> Option<Vec<Option<TExpr>>> {
        let mut slots: Vec<Option<&Arg>> = vec![None; params.len()];
        let mut fine = true;
        if args.len() > params.len() {
            let plural = if params.len() == 1 { "" } else { "s" };
            self.error(span, format!("{what} takes {} argument{plural}, {} given", params.len(), args.len()));
            self.type_args_and_values(args);
            return None;
        }
        let named = args.iter().filter(|a| a.name.is_some()).count();
        if named != 0 && named != args.len() {
            self.error(span, "name either all arguments or none");
            self.type_args_and_values(args);
            return None;
        }
        for (position, arg) in args.iter().enumerate() {
            let slot = match &arg.name {
                None => Some(position),
                Some(name) => params.iter().position(|p| p.name == name.name),
            };
            match slot {
                Some(slot) if slots[slot].is_none() => slots[slot] = Some(arg),
                Some(_) => {
                    self.error(
                        arg.span,
                        format!("parameter `{}` is given twice", arg.name.as_ref().map_or("", |n| &n.name)),
                    );
                    fine = false;
                }
                None => {
                    let name = arg.name.as_ref().map_or("", |n| n.name.as_str());
                    let near = super::scope::nearest(name, params.iter().map(|p| p.name.as_str()));
                    let mut d = Diagnostic::error(arg.span, format!("{what} has no parameter `{name}`"));
                    if let Some(near) = near {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    self.report(d);
                    fine = false;
                }
            }
        }
        let mut typed = Vec::new();
        for (param, slot) in params.iter().zip(&slots) {
            match slot {
                Some(arg) => match &arg.value {
                    Some(value) => {
                        let value = self.expr(value);
                        fine &= !value.is_bad();
                        typed.push(Some(value));
                    }
                    None => {
                        if param.dir != Direction::Out {
                            self.error(
                                arg.span,
                                format!(
                                    "`_` cannot stand for parameter `{}`, which is not `out`",
                                    param.name
                                ),
                            );
                            fine = false;
                        }
                        typed.push(None);
                    }
                },
                None => {
                    if !param.may_be_absent() && fine {
                        if named == 0 {
                            let plural = if params.len() == 1 { "" } else { "s" };
                            self.error(
                                span,
                                format!(
                                    "{what} takes {} argument{plural}, {} given",
                                    params.len(),
                                    args.len()
                                ),
                            );
                        } else {
                            self.error(span, format!("{what}: parameter `{}` is missing", param.name));
                        }
                        fine = false;
                    }
                    typed.push(param.default.clone());
                }
            }
        }
        fine.then_some(typed)
    }

    /// Converts arguments to the parameters' types and checks their directions.
    pub(super) fn fit_args(
        &mut self,
        params: &[Rc<Param>],
        args: Vec<Option<TExpr>>,
        subst: &Subst,
    ) -> Option<Vec<Option<TExpr>>> {
        let mut fine = true;
        let mut fitted = Vec::new();
        for (param, arg) in params.iter().zip(args) {
            let Some(arg) = arg else {
                fitted.push(None);
                continue;
            };
            let want = match param.ty.subst(subst) {
                // An index of unknown type, written as a plain number.
                Type::DontCare if matches!(arg.ty, Type::InfInt) => Type::Bit(32),
                Type::DontCare => arg.ty.clone(),
                want => want,
            };
            let arg = match param.dir {
                Direction::Out | Direction::InOut => {
                    if !self.lvalue(&arg, &format!("the argument for `{}`", param.name)) {
                        fine = false;
                    } else if arg.ty != want && !want.is_poison() {
                        self.error(
                            arg.span,
                            format!("`{}` is `{want}`, the argument is `{}`", param.name, arg.ty),
                        );
                        fine = false;
                    }
                    arg
                }
                Direction::In | Direction::None => {
                    if let Type::Set(item) = &arg.ty
                        && **item == want
                    {
                        self.error(arg.span, "a set of values can only be matched against");
                    }
                    let arg = self.coerce(specialised(arg, subst), &want);
                    self.settle(arg)
                }
            };
            fine &= !arg.is_bad();
            fitted.push(Some(arg));
        }
        fine.then_some(fitted)
    }
}

/// Positions of the parameters in the order in which their arguments are written; those without one come
/// last.
pub(super) fn written_order(params: &[Rc<Param>], args: &[Arg]) -> Vec<usize> {
    let place = |(at, arg): (usize, &Arg)| match &arg.name {
        None => Some(at),
        Some(name) => params.iter().position(|p| p.name == name.name),
    };
    let mut order: Vec<usize> = args.iter().enumerate().filter_map(place).collect();
    let absent: Vec<usize> = (0..params.len()).filter(|at| !order.contains(at)).collect();
    order.extend(absent);
    order
}

/// A default value made in place, its type parameters replaced.
fn specialised(e: TExpr, subst: &Subst) -> TExpr {
    if !matches!(e.ty, Type::Block(_)) || !e.ty.has_vars() {
        return e;
    }
    let ty = e.ty.subst(subst);
    e.of_block(ty)
}

/// Infers the type parameters `vars` from `actual` being given where `pattern` is expected. Does not report a
/// mismatch: the later conversion does.
pub(super) fn unify(pattern: &Type, actual: &Type, vars: &[Rc<TypeVar>], subst: &mut Subst) {
    match (pattern, actual) {
        (_, Type::Poison) => {}
        (Type::Var(v), _) if vars.iter().any(|x| x.id == v.id) => {
            let actual = settled(actual);
            match subst.get(&v.id) {
                None => {
                    subst.insert(v.id, actual);
                }
                // A number without a width leaves the choice to another argument.
                Some(Type::InfInt | Type::DontCare) => {
                    subst.insert(v.id, actual);
                }
                Some(_) => {}
            }
        }
        (Type::Struct(p), Type::Struct(a)) if p.id == a.id => {
            p.args.iter().zip(&a.args).for_each(|(p, a)| unify(p, a, vars, subst));
        }
        (Type::Struct(p), Type::Literal(lit)) => {
            for (field, item) in p.fields.iter().zip(&lit.items) {
                unify(&field.ty, item, vars, subst);
            }
        }
        (Type::Stack(p, _), Type::Stack(a, _))
        | (Type::List(p), Type::List(a))
        | (Type::Set(p), Type::Set(a)) => {
            unify(p, a, vars, subst);
        }
        (Type::Tuple(p), Type::Tuple(a)) => {
            p.iter().zip(a.iter()).for_each(|(p, a)| unify(p, a, vars, subst))
        }
        (Type::Tuple(p), Type::Literal(a)) => {
            p.iter().zip(a.items.iter()).for_each(|(p, a)| unify(p, a, vars, subst));
        }
        (Type::List(p), Type::Literal(a)) => a.items.iter().for_each(|a| unify(p, a, vars, subst)),
        (Type::Extern(p), Type::Extern(a)) if p.def.id == a.def.id => {
            p.args.iter().zip(&a.args).for_each(|(p, a)| unify(p, a, vars, subst));
        }
        (Type::Block(p), Type::Block(a)) => {
            p.params.iter().zip(&a.params).for_each(|(p, a)| unify(&p.ty, &a.ty, vars, subst));
            if p.id == a.id {
                p.args.iter().zip(&a.args).for_each(|(p, a)| unify(p, a, vars, subst));
            }
        }
        _ => {}
    }
}

/// The type of a list that nothing else determines.
fn settled(ty: &Type) -> Type {
    match ty {
        Type::Literal(lit) => Type::Tuple(lit.items.iter().map(settled).collect()),
        other => other.clone(),
    }
}
