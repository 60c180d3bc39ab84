//! Checks constructor calls: the constructor, its arguments and the resulting type.

use super::Checker;
use super::args::unify;
use super::typeref::bind;
use crate::ast::{Arg, Span};
use crate::diag::Diagnostic;
use crate::sema::tree::{EKind, InstDecl, TExpr};
use crate::sema::types::{BlockKind, ExternTy, Subst, Type, TypeVar};
use std::rc::Rc;

impl Checker {
    /// An instance created in place, as an argument of a constructor.
    pub(super) fn nameless_instance(&mut self, ty: &Type, args: &[Arg], span: Span) -> TExpr {
        let Some((ty, args)) = self.construct(ty, args, span) else { return TExpr::bad(span) };
        let name = match &ty {
            Type::Block(b) => b.name.clone(),
            Type::Extern(e) => e.def.name.clone(),
            _ => String::new(),
        };
        let id = self.new_local(&name, &ty);
        let (implemented, annos) = Default::default();
        let inst = InstDecl { id, name, ty: ty.clone(), args, implemented, annos, span };
        TExpr::new(EKind::New(Rc::new(inst)), ty, span)
    }

    /// Finds the constructor and checks its arguments. Returns the type with its type arguments inferred.
    pub(super) fn construct(
        &mut self,
        ty: &Type,
        args: &[Arg],
        span: Span,
    ) -> Option<(Type, Vec<Option<TExpr>>)> {
        match ty {
            Type::Poison => {
                self.type_args_and_values(args);
                None
            }
            Type::Extern(ext) => {
                if ext.def.ctors.is_empty() {
                    self.error(span, format!("extern `{ty}` has no constructor"));
                    return None;
                }
                let def = self.overload(&ext.def.ctors.clone(), args, &ext.def.name, span)?;
                let typed = self.args(&format!("`{}`", ext.def.name), &def.params, args, span)?;
                let vars = &ext.def.type_params;
                let mut subst = bind(vars, &ext.args);
                for (param, arg) in def.params.iter().zip(&typed) {
                    if let Some(arg) = arg {
                        unify(&param.ty, &arg.ty, vars, &mut subst);
                    }
                }
                let types = self.inferred(vars, &subst, &ext.def.name, span)?;
                let args = self.fit_args(&def.params, typed, &subst)?;
                self.constant_args(&args)?;
                Some((Type::Extern(Rc::new(ExternTy { def: ext.def.clone(), args: types })), args))
            }
            Type::Block(block) => {
                if block.kind != BlockKind::Package && block.body.is_none() {
                    self.error(
                        span,
                        format!("{} type `{}` has no body to instantiate", block.kind.name(), block.name),
                    );
                    return None;
                }
                let what = format!("`{}`", block.name);
                let params =
                    if block.kind == BlockKind::Package { &block.params } else { &block.ctor_params };
                let typed = self.args(&what, params, args, span)?;
                // Explicit type arguments stay; `_` and omitted ones are inferred.
                let vars = &block.type_params;
                let given = vars.iter().map(|v| v.id).zip(block.args.iter().cloned());
                let mut subst: Subst = given.filter(|(_, ty)| !ty.has_vars()).collect();
                let dont_care: Vec<u32> = vars
                    .iter()
                    .zip(&block.args)
                    .filter(|(_, ty)| matches!(ty, Type::DontCare))
                    .map(|(v, _)| v.id)
                    .collect();
                for (param, arg) in params.iter().zip(&typed) {
                    if let Some(arg) = arg {
                        unify(&param.ty, &arg.ty, vars, &mut subst);
                    }
                }
                let open = block.args.iter().any(Type::has_vars);
                let specialised = if open {
                    for var in dont_care {
                        subst.entry(var).or_insert(Type::DontCare);
                    }
                    self.inferred(vars, &subst, &block.name, span)?;
                    Rc::new(block.subst(&subst))
                } else {
                    block.clone()
                };
                let params = if block.kind == BlockKind::Package {
                    &specialised.params
                } else {
                    &specialised.ctor_params
                };
                let args = self.fit_args(params, typed, &Subst::new())?;
                self.constant_args(&args)?;
                Some((Type::Block(specialised), args))
            }
            other => {
                self.error(span, format!("`{other}` has no constructor"));
                None
            }
        }
    }

    /// Checks that arguments of a constructor are constants, constructor parameters or instances.
    fn constant_args(&mut self, args: &[Option<TExpr>]) -> Option<()> {
        for arg in args.iter().flatten() {
            if !self.known_at_instantiation(arg) {
                self.error(arg.span, "an argument of a constructor must be known while compiling");
                return None;
            }
        }
        Some(())
    }

    pub(super) fn known_at_instantiation(&self, e: &TExpr) -> bool {
        match &e.kind {
            EKind::Const(_) | EKind::New(_) | EKind::Default | EKind::Invalid | EKind::Bad => true,
            EKind::Local(id) => {
                matches!(e.ty, Type::Extern(_) | Type::Block(_))
                    || self.writable.get(id) == Some(&super::scope::Writable::CtorParam)
            }
            EKind::Unary(_, e) | EKind::Cast(e) | EKind::Field(e, _) | EKind::Slice(e, ..) => {
                self.known_at_instantiation(e)
            }
            EKind::Binary(_, a, b) => self.known_at_instantiation(a) && self.known_at_instantiation(b),
            EKind::Ternary(a, b, c) => [a, b, c].iter().all(|e| self.known_at_instantiation(e)),
            EKind::List(items) => items.iter().all(|e| self.known_at_instantiation(e)),
            _ => false,
        }
    }

    fn inferred(&mut self, vars: &[Rc<TypeVar>], subst: &Subst, name: &str, span: Span) -> Option<Vec<Type>> {
        let mut types = Vec::new();
        for var in vars {
            match subst.get(&var.id) {
                Some(ty) => types.push(ty.clone()),
                None => {
                    self.report(
                        Diagnostic::error(
                            span,
                            format!("type parameter `{}` of `{name}` cannot be inferred", var.name),
                        )
                        .help(format!("write it: `{name}<…>(…)`")),
                    );
                    return None;
                }
            }
        }
        Some(types)
    }
}
