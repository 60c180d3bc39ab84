//! Checks constructor calls: the constructor, its arguments and the resulting type.

use super::Checker;
use super::args::unify;
use super::typeref::bind;
use crate::ast::{Arg, Span};
use crate::diag::Diagnostic;
use crate::sema::tree::{Callee, EKind, InstDecl, Param, TExpr};
use crate::sema::types::{BlockKind, BlockTy, ExternTy, Subst, Type, TypeVar};
use std::rc::Rc;

impl Checker {
    /// An instance created in place, as an argument of a constructor.
    pub(super) fn nameless_instance(&mut self, ty: &Type, args: &[Arg], span: Span) -> TExpr {
        let constructed = match ty {
            Type::Block(block) if block.kind != BlockKind::Package => {
                self.construct_block(block, args, true, span)
            }
            _ => self.construct(ty, args, span),
        };
        let Some((ty, args)) = constructed else { return TExpr::bad(span) };
        if let Type::Extern(ext) = &ty
            && ext.def.methods.iter().any(|m| m.is_abstract)
        {
            self.report(
                Diagnostic::error(span, format!("`{ty}` has abstract methods, which nobody implements here"))
                    .help("declare it with a name, and implement them: `T() name = { … };`"),
            );
            return TExpr::bad(span);
        }
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
                // Parameters that only the abstract methods mention follow from their implementations.
                if ext.def.methods.iter().any(|m| m.is_abstract) {
                    leave_open(vars, &mut subst);
                }
                let types = self.inferred(vars, &subst, &ext.def.name, span)?;
                let args = self.fit_args(&def.params, typed, &subst)?;
                self.constant_args(&args)?;
                Some((Type::Extern(Rc::new(ExternTy { def: ext.def.clone(), args: types })), args))
            }
            Type::Block(block) => self.construct_block(block, args, false, span),
            Type::Stack(element, number) if matches!(**element, Type::Extern(_)) => {
                let (element, args) = self.construct(element, args, span)?;
                Some((Type::Stack(Rc::new(element), *number), args))
            }
            other => {
                self.error(span, format!("`{other}` has no constructor"));
                None
            }
        }
    }

    /// Constructs a parser, control or package; type arguments of a parser or control `may_stay_open` if its user
    /// determines them.
    fn construct_block(
        &mut self,
        block: &Rc<BlockTy>,
        args: &[Arg],
        may_stay_open: bool,
        span: Span,
    ) -> Option<(Type, Vec<Option<TExpr>>)> {
        let block = &self.block_overload(block, args, span)?;
        if block.kind != BlockKind::Package && block.body.is_none() {
            self.error(
                span,
                format!("{} type `{}` has no body to instantiate", block.kind.name(), block.name),
            );
            return None;
        }
        let what = format!("`{}`", block.name);
        let params = block.constructor();
        let typed = self.args(&what, params, args, span)?;
        // Written type arguments are kept; `_` and missing ones are inferred.
        let vars = &block.type_params;
        let given = vars.iter().map(|v| v.id).zip(block.args.iter().cloned());
        let mut subst: Subst = given.filter(|(_, ty)| !ty.is_open(vars)).collect();
        for (param, arg) in params.iter().zip(&typed) {
            if let Some(arg) = arg {
                unify(&param.ty, &arg.ty, vars, &mut subst);
            }
        }
        let open = block.args.iter().any(|ty| ty.is_open(vars));
        let specialised = if open {
            if block.kind == BlockKind::Package {
                let absent = |v: &&Rc<TypeVar>| left_out(v, params, &typed) || unused(v, params);
                let absent: Vec<Rc<TypeVar>> = vars.iter().filter(absent).cloned().collect();
                leave_open(&absent, &mut subst);
            }
            if !may_stay_open {
                self.inferred(vars, &subst, &block.name, span)?;
            }
            Rc::new(block.subst(&subst))
        } else {
            block.clone()
        };
        let args = self.fit_args(specialised.constructor(), typed, &subst)?;
        self.constant_args(&args)?;
        Some((Type::Block(specialised), args))
    }

    /// Of several declarations with a name, the one whose constructor takes these arguments.
    fn block_overload(&mut self, block: &Rc<BlockTy>, args: &[Arg], span: Span) -> Option<Rc<BlockTy>> {
        let Some(others) = self.overloads.get(&block.id) else { return Some(block.clone()) };
        let written = |other: &Rc<BlockTy>| Rc::new(other.subst(&bind(&other.type_params, &block.args)));
        let mut all = vec![block.clone()];
        all.extend(others.iter().map(|other| if block.is_open() { other.clone() } else { written(other) }));
        let found = all.into_iter().find(|block| takes(block.constructor(), args));
        if found.is_none() {
            self.error(span, format!("no `{}` takes these {} arguments", block.name, args.len()));
            self.type_args_and_values(args);
        }
        found
    }

    /// Checks that arguments of a constructor are constants, constructor parameters or instances.
    fn constant_args(&mut self, args: &[Option<TExpr>]) -> Option<()> {
        for arg in args.iter().flatten() {
            if !self.known_at_instantiation(arg) {
                self.error(arg.span, "an argument of a constructor must be known at compile time");
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
            // An extern's result for constants; the architecture defines it.
            EKind::Call(call) if matches!(call.target, Callee::Extern(_)) => {
                call.args.iter().flatten().all(|e| self.known_at_instantiation(e))
            }
            _ => false,
        }
    }

    fn inferred(&mut self, vars: &[Rc<TypeVar>], subst: &Subst, name: &str, span: Span) -> Option<Vec<Type>> {
        let mut types = Vec::new();
        for var in vars {
            let own = |ty: &&Type| matches!(ty, Type::Var(v) if vars.iter().any(|own| own.id == v.id));
            match subst.get(&var.id).filter(|ty| !own(ty)) {
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

/// Lets undetermined type parameters stand for any type.
fn leave_open(vars: &[Rc<TypeVar>], subst: &mut Subst) {
    for var in vars {
        subst.entry(var.id).or_insert(Type::DontCare);
    }
}

/// Whether only parameters mention the type parameter whose arguments are left out.
pub(super) fn left_out(var: &Rc<TypeVar>, params: &[Rc<Param>], args: &[Option<TExpr>]) -> bool {
    let var = std::slice::from_ref(var);
    params.iter().zip(args).all(|(param, arg)| arg.is_none() || !param.ty.is_open(var))
}

/// Whether no parameter of a parser or control that is taken mentions the type parameter: any type will do.
fn unused(var: &Rc<TypeVar>, params: &[Rc<Param>]) -> bool {
    let var = std::slice::from_ref(var);
    params.iter().all(|param| match &param.ty {
        Type::Block(block) => !block.params.iter().any(|inner| inner.ty.is_open(var)),
        ty => !ty.is_open(var),
    })
}

/// Whether parameters fit arguments in number and names.
pub(super) fn takes(params: &[Rc<Param>], args: &[Arg]) -> bool {
    let named = |arg: &Arg| arg.name.as_ref().is_none_or(|n| params.iter().any(|p| p.name == n.name));
    let required = params.iter().filter(|p| !p.may_be_absent()).count();
    args.iter().all(named) && (required..=params.len()).contains(&args.len())
}
