//! Checks the abstract methods that an instance of an extern implements.

use super::Checker;
use super::scope::Symbol;
use super::typeref::bind;
use crate::ast::{Decl, DeclKind, Ident};
use crate::diag::Diagnostic;
use crate::sema::tree::{FnDef, Implemented, LocalId};
use crate::sema::types::{Subst, Type};
use std::rc::Rc;

impl Checker {
    /// Checks `{ … }` after an instance: it must implement each abstract method of its extern once, and
    /// nothing else. Returns its content.
    pub(super) fn implement(
        &mut self,
        id: LocalId,
        ty: &Type,
        init: Option<&[Decl]>,
        name: &Ident,
    ) -> Implemented {
        let mut given = Implemented::default();
        let Type::Extern(ext) = ty else {
            if init.is_some() {
                self.error(name.span, format!("`{ty}` has no abstract methods to implement"));
            }
            return given;
        };
        let wanted: Vec<Rc<FnDef>> = ext.def.methods.iter().filter(|m| m.is_abstract).cloned().collect();
        let types = bind(&ext.def.type_params, &ext.args);
        self.check_wanted(&wanted, &types, ty);
        let mut done: Vec<String> = Vec::new();
        let (place, returns, outer) = (self.place, self.returns.take(), self.this.replace((id, ty.clone())));
        self.scopes.push(super::scope::Scope::default());
        for decl in init.unwrap_or_default() {
            let DeclKind::Function { proto, body } = &decl.kind else {
                self.place = place;
                let DeclKind::Instance { name, .. } = &decl.kind else {
                    self.error(decl.span, "only functions and instances are allowed here");
                    continue;
                };
                self.common_decl(decl);
                if let Some(Symbol::Instance(inst)) = self.find_here(&name.name) {
                    given.instances.push(inst.clone());
                }
                continue;
            };
            let def = Rc::new(self.function(decl, proto, body));
            self.declare(&proto.name, Symbol::Functions(vec![def.clone()]));
            match wanted.iter().find(|w| w.name == def.name && may_have(w, def.params.len())) {
                Some(abstract_one) if fits(&def, abstract_one, &types) => {
                    done.push(def.name.clone());
                    given.methods.push(def);
                }
                Some(_) => {
                    let message = format!("method `{}` differs from the abstract one of `{ty}`", def.name);
                    self.error(proto.name.span, message);
                    done.push(def.name.clone());
                }
                None => {
                    let names = wanted.iter().map(|w| w.name.as_str());
                    let near = super::scope::nearest(&def.name, names);
                    let message = format!("`{ty}` has no abstract method `{}` with this signature", def.name);
                    let d = Diagnostic::error(proto.name.span, message);
                    self.report(match near {
                        Some(near) if near != def.name => d.help(format!("did you mean `{near}`?")),
                        _ => d,
                    });
                }
            }
        }
        self.scopes.pop();
        (self.place, self.returns, self.this) = (place, returns, outer);
        let errors = self.diags.iter().any(|d| d.span.lo >= name.span.lo);
        let required = wanted.iter().filter(|w| !w.annos.optional);
        for missing in required.filter(|w| !done.contains(&w.name) && !errors) {
            self.report(
                Diagnostic::error(
                    name.span,
                    format!("`{}` does not implement `{}`", name.name, missing.name),
                )
                .help(format!("`{ty}` leaves it abstract: add `= {{ … }}` with a function of that name")),
            );
        }
        given
    }

    /// Reports type arguments that make a parameter's type illegal.
    fn check_wanted(&mut self, wanted: &[Rc<FnDef>], types: &Subst, ty: &Type) {
        for method in wanted {
            for param in &method.params {
                let given = param.ty.subst(types);
                let opaque = matches!(given, Type::Str | Type::InfInt | Type::Extern(_) | Type::MatchKind);
                if opaque && param.dir != crate::ast::Direction::None {
                    let message = format!(
                        "in `{ty}` its type is `{given}`, and a parameter of that type has no direction"
                    );
                    self.error(param.span, message);
                }
            }
        }
    }
}

/// Whether an implementation may have this many parameters: optional ones at the end may be left out.
fn may_have(wanted: &FnDef, count: usize) -> bool {
    count <= wanted.params.len() && wanted.params.iter().skip(count).all(|p| p.annos.optional)
}

fn fits(def: &FnDef, wanted: &FnDef, types: &Subst) -> bool {
    let own: Subst = wanted
        .type_params
        .iter()
        .map(|v| v.id)
        .zip(def.type_params.iter().map(|v| Type::Var(v.clone())))
        .collect();
    let expected = |ty: &Type| ty.subst(types).subst(&own);
    def.type_params.len() == wanted.type_params.len()
        && def.ret == expected(&wanted.ret)
        && def.params.iter().zip(&wanted.params).all(|(a, b)| {
            let ty = expected(&b.ty);
            a.dir == b.dir && (a.ty == ty || ty == Type::DontCare)
        })
}
