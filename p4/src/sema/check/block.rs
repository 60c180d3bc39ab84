//! Checks parsers and controls with their local declarations.

use super::scope::{Symbol, TypeSym, Writable};
use super::{Checker, Context};
use crate::ast::{self, Decl, DeclKind};
use crate::sema::tree::{BlockDef, Item, SKind, ValueSetDef};
use crate::sema::types::{BlockKind, BlockTy, Type};
use std::rc::Rc;

impl Checker {
    pub(super) fn block(&mut self, decl: &Decl) {
        let (kind, name, type_params, params, ctor_params, locals) = match &decl.kind {
            DeclKind::Parser { name, type_params, params, ctor_params, locals, .. } => {
                (BlockKind::Parser, name, type_params, params, ctor_params, locals)
            }
            DeclKind::Control { name, type_params, params, ctor_params, locals, .. } => {
                (BlockKind::Control, name, type_params, params, ctor_params, locals)
            }
            _ => return,
        };
        let place = if kind == BlockKind::Parser { Context::Parser } else { Context::Control };
        self.annos(&decl.annotations);
        let ty = self.scoped(|c| {
            let vars = c.type_params(type_params);
            let params = c.params(params, Context::TopLevel);
            let ctor_params = c.params(ctor_params, Context::Constructor);
            for param in &ctor_params {
                if param.dir != ast::Direction::None {
                    c.error(param.span, "a parameter of a constructor has no direction");
                }
                c.writable.insert(param.id, Writable::CtorParam);
            }
            let body = c.scoped(|c| {
                c.place = place;
                let items = c.items(locals);
                let mut def = BlockDef { items, span: name.span, ..BlockDef::default() };
                match &decl.kind {
                    DeclKind::Control { apply, .. } => {
                        c.place = Context::Control;
                        def.apply = c.scoped(|c| c.stmts(&apply.stmts));
                    }
                    DeclKind::Parser { states, .. } => {
                        c.place = Context::Parser;
                        def.states = c.states(states, name);
                    }
                    _ => {}
                }
                def
            });
            BlockTy {
                id: c.new_type_id(),
                name: name.name.clone(),
                kind,
                args: vars.iter().map(|v| Type::Var(v.clone())).collect(),
                type_params: vars,
                params,
                ctor_params,
                body: Some(Rc::new(body)),
            }
        });
        self.place = Context::TopLevel;
        // A declaration replaces a prototype of the same name.
        self.declare(name, Symbol::Type(TypeSym::Block(Rc::new(ty))));
    }

    fn items(&mut self, locals: &[Decl]) -> Vec<Item> {
        let place = self.place;
        let mut items = Vec::new();
        for decl in locals {
            self.place = place;
            match &decl.kind {
                DeclKind::Variable { .. } | DeclKind::Instance { .. } => {
                    if let Some(stmt) = self.local_decl(decl) {
                        match stmt.kind {
                            SKind::Var(id, _, init) => items.push(Item::Var(id, init, stmt.span)),
                            SKind::Inst(inst) => items.push(Item::Inst(inst)),
                            _ => {}
                        }
                    }
                }
                DeclKind::Action { name, .. } => {
                    if place == Context::Parser {
                        self.error(name.span, "an action cannot be declared in a parser");
                    }
                    self.common_decl(decl);
                    if let Some(Symbol::Action(action)) = self.find_here(&name.name)
                        && action.span == name.span
                    {
                        items.push(Item::Action(action.clone()));
                    }
                }
                DeclKind::Table { name, properties } => {
                    if place == Context::Parser {
                        self.error(name.span, "a table cannot be declared in a parser");
                        continue;
                    }
                    let table = Rc::new(self.table(decl, name, properties));
                    self.declare(name, Symbol::Table(table.clone()));
                    items.push(Item::Table(table));
                }
                DeclKind::ValueSet { ty, size, name } => {
                    if place != Context::Parser {
                        self.error(name.span, "a value set is declared in a parser");
                    }
                    let ty = self.type_ref(ty);
                    let size = self.expr(size);
                    let size = self.coerce_int(size);
                    let annos = self.annos(&decl.annotations);
                    if ty.is_poison() || size.is_bad() {
                        self.declare(name, Symbol::Poison);
                        continue;
                    }
                    let id = self.new_local(&name.name, &ty);
                    let def = Rc::new(ValueSetDef {
                        id,
                        name: name.name.clone(),
                        ty,
                        size,
                        annos,
                        span: name.span,
                    });
                    self.declare(name, Symbol::ValueSet(def.clone()));
                    items.push(Item::ValueSet(def));
                }
                _ => {
                    if !self.common_decl(decl) {
                        self.error(decl.span, format!("this declaration is not allowed in {}", place.name()));
                    }
                }
            }
        }
        self.place = place;
        items
    }

    /// Reports a value that is not a number known at instantiation.
    pub(super) fn coerce_int(&mut self, e: crate::sema::tree::TExpr) -> crate::sema::tree::TExpr {
        if e.is_bad() {
            return e;
        }
        let fine =
            (e.ty.underlying().is_bits() || matches!(e.ty, Type::InfInt)) && self.known_at_instantiation(&e);
        if !fine {
            self.error(e.span, "this must be a number known at compile time");
            return crate::sema::tree::TExpr::bad(e.span);
        }
        e
    }
}
